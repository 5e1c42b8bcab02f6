//! Every verb of the guest program, natively and inside on every platform.
//!
//! One test for each (place, verb). Inside, the cases listed in `tests/expect.toml` are expected to fail; one
//! that is listed and passes is an error too. `cargo test --test guest -- trap/` runs a part.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::fmt::Write;
use support::{
    Expected, LIMIT, Place, Who, bins, command, expectations, listed, run, run_while_it_speaks, weigh,
};

fn listing(args: &[&str]) -> Vec<String> {
    let mut argv = vec![bins().guest.to_str().expect("a path in UTF-8")];
    argv.extend(args);
    let out = run(&mut command(Place::Native, Who::Caller, &[], &argv), LIMIT, b"");
    assert_eq!(out.code(), Some(0), "guest {args:?}: {}", out.brief());
    out.out().lines().map(String::from).collect()
}

/// One run of a verb, continued behind each case that hangs or ends the program (one that takes [`LIMIT`] hangs):
/// case to outcome, `None` for passed; skipped ones are left out.
fn outcomes(place: Place, who: Who, verb: &str, cases: &[String]) -> BTreeMap<String, Option<String>> {
    let mut done = BTreeMap::new();
    let mut next = 0;
    while next < cases.len() {
        let argv = [bins().guest.to_str().expect("UTF-8"), verb, "--from", &cases[next]];
        let out = run_while_it_speaks(&mut command(place, who, &[], &argv), LIMIT);
        for line in out.out().lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (name, why) = rest.split_once(": ").unwrap_or((rest, ""));
            let result = match kind {
                "ok" => None,
                // Says nothing about a listed failure.
                "skip" => {
                    next = cases.iter().position(|c| c == name).map_or(next, |i| i + 1);
                    continue;
                }
                "FAIL" => Some(why.to_string()),
                _ => continue,
            };
            if let Some(i) = cases.iter().position(|c| c == name) {
                next = i + 1;
                done.insert(name.to_string(), result);
            }
        }
        if next < cases.len() {
            done.insert(cases[next].clone(), Some(out.brief()));
            next += 1;
        } else if !matches!(out.code(), Some(0 | 1)) {
            done.insert("(end of the program)".into(), Some(out.brief()));
        }
    }
    done
}

fn judge(place: Place, who: Who, verb: &str, expected: &[Expected]) -> Result<(), Failed> {
    let cases = listing(&[verb, "--list"]);
    let mut bad = String::new();
    for (case, outcome) in outcomes(place, who, verb, &cases) {
        let entry = listed(expected, verb, &case, place.name());
        if let Err(why) = weigh(entry, outcome.map_or(Ok(()), Err)) {
            writeln!(bad, "  {case}: {why}").expect("write to a string");
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(format!("{verb} on {}:\n{bad}", place.name()).into()) }
}

fn main() {
    let args = Arguments::from_args();
    let verbs = listing(&["--list"]);
    let expected = expectations();
    let mut places = vec![(Place::Native, Who::Caller)];
    if support::is_root() {
        places.push((Place::Native, Who::Ordinary));
    }
    for p in support::PLATFORMS {
        match support::unusable(p) {
            None => places.push((Place::Inside(p), Who::Caller)),
            Some(why) => eprintln!("guest: not run on {p}: {why}"),
        }
    }
    if support::is_root() && places.iter().any(|(p, _)| *p == Place::Inside("trap")) {
        places.push((Place::Inside("trap"), Who::Ordinary));
    }
    let mut trials = Vec::new();
    for (place, who) in places {
        for verb in &verbs {
            let suffix = if who == Who::Ordinary { "-user" } else { "" };
            let name = format!("{}{suffix}/{verb}", place.name());
            let (verb, expected) =
                (verb.clone(), if place == Place::Native { Vec::new() } else { expected.clone() });
            trials.push(Trial::test(name, move || judge(place, who, &verb, &expected)));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
