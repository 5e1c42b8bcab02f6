//! Hostile programs: the guest may die, the sandbox and the other guests in it must not, nothing may stay behind
//! and nothing outside may change.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::time::Duration;
use support::{
    LIMIT, Place, Who, alive, bins, command, expectations, family, finish, listed, run, start, until, weigh,
};

fn modes() -> Vec<String> {
    let guest = bins().guest.to_str().expect("UTF-8");
    let o = run(&mut command(Place::Native, Who::Caller, &[], &[guest, "hostile"]), LIMIT, b"");
    o.out().lines().map(String::from).collect()
}

fn judge(place: Place, who: Who, mode: &str) -> Result<(), Failed> {
    let guest = bins().guest.to_str().expect("UTF-8");
    let child = start(&mut command(place, who, &[], &[guest, "hostile", mode]));
    let launcher = child.id();
    // The family is looked at while it runs, to see afterwards that all of it is gone.
    let mut seen = Vec::new();
    for _ in 0..20 {
        seen.extend(family(launcher));
        std::thread::sleep(Duration::from_millis(10));
    }
    seen.sort_unstable();
    seen.dedup();
    let o = finish(child, LIMIT);
    let what = |s: &str| Err(Failed::from(format!("{s}: {}; stdout {:?}", o.brief(), o.out())));
    if o.code() != Some(0) {
        return what("lazaret does not end cleanly");
    }
    let text = o.out();
    if !text.contains("sibling 500000500000\n") || !text.contains("sibling status 0\n") {
        return what("the sibling was harmed");
    }
    if let Some(l) = text.lines().find(|l| l.contains("succeeded")) {
        return what(l);
    }
    let mut left = Vec::new();
    if !until(LIMIT, || {
        left = alive(&seen);
        left.is_empty()
    }) {
        return what(&format!("{} processes stay behind", left.len()));
    }
    Ok(())
}

fn main() {
    let args = Arguments::from_args();
    let mut places = vec![(Place::Native, Who::Caller)];
    for p in support::PLATFORMS {
        match support::unusable(p) {
            None => places.push((Place::Inside(p), Who::Caller)),
            Some(why) => eprintln!("hostile: not run on {p}: {why}"),
        }
    }
    if support::is_root() && places.len() > 1 {
        places.push((Place::Inside("trap"), Who::Ordinary));
    }
    let mut trials = Vec::new();
    for mode in modes() {
        for (place, who) in &places {
            // Garbage calls as root on the host itself would do what they say.
            let who = if *place == Place::Native { Who::Ordinary } else { *who };
            if *place == Place::Native
                && (mode == "garbage_calls" || mode == "fork_bomb" || !support::is_root())
            {
                continue;
            }
            let suffix = if who == Who::Ordinary && *place != Place::Native { "-user" } else { "" };
            let (place, m) = (*place, mode.clone());
            trials.push(Trial::test(format!("{}{suffix}/{mode}", place.name()), move || {
                let text = judge(place, who, &m).map_err(|f| f.message().unwrap_or("no reason").to_string());
                if place == Place::Native {
                    return text.map_err(Failed::from);
                }
                weigh(listed(&expectations(), "hostile", &m, place.name()), text).map_err(Failed::from)
            }));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
