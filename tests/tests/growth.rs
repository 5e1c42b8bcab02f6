//! Servers that work, end and begin again in one sandbox: what the sentry holds after the first rounds is what it holds after
//! many. Three rounds in `make test`; `make growth` (LAZARET_LONG) goes on for a minute with each server. The programs are in
//! `tests/programs/`.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Place, Who, command, family, present, settled};

/// Name, program that must be there, shell text, whether the short form has it.
const SERVERS: &[(&str, &str, &str, bool)] = &[
    ("redis", "redis-benchmark", include_str!("../programs/redis.sh"), true),
    ("nginx", "wrk", include_str!("../programs/nginx.sh"), true),
    ("memcached", "memcached", include_str!("../programs/memcached.sh"), true),
    ("pgbench", "psql", include_str!("../programs/pgbench.sh"), false),
    ("node_http", "node", include_str!("../programs/node_http.sh"), false),
    ("asyncio_echo", "python3", include_str!("../programs/asyncio_echo.sh"), false),
    ("java_echo", "javac", include_str!("../programs/java_echo.sh"), false),
    ("go_http", "go", include_str!("../programs/go_http.sh"), false),
    ("sshd", "ssh-keygen", include_str!("../programs/sshd.sh"), false),
];

/// A round for each line: the text is the first argument. What it says, and how it ended.
const ROUNDS: &str = "while read line; do sh -c \"$1\" 2>/dev/null </dev/null; echo \"done $?\"; done";

fn growth(platform: &'static str, text: &str) -> Result<(), Failed> {
    let long = std::env::var_os("LAZARET_LONG").is_some();
    let argv = ["sh", "-c", ROUNDS, "rounds", text];
    let mut native = command(Place::Native, Who::Caller, &[], &["sh", "-c", text]);
    let native = native.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    let wanted =
        format!("{}done {}\n", String::from_utf8_lossy(&native.stdout), native.status.code().unwrap_or(-1));
    let mut started = command(Place::Inside(platform), Who::Caller, &[], &argv);
    let mut child = started.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut to = child.stdin.take().ok_or("its standard input")?;
    let mut from = BufReader::new(child.stdout.take().ok_or("its standard output")?);
    let mut round = || -> Result<(), Failed> {
        writeln!(to, "go")?;
        let mut answer = String::new();
        loop {
            let start = answer.len();
            if from.read_line(&mut answer)? == 0 {
                return Err(format!("the sandbox ended: {answer:?}").into());
            }
            if answer[start..].starts_with("done ") {
                break;
            }
        }
        if answer == wanted { Ok(()) } else { Err(format!("{answer:?} instead of {wanted:?}").into()) }
    };
    // Caches with bounds fill in the first rounds.
    let start = Instant::now();
    let mut first = 0;
    while first < 2 || long && start.elapsed() < Duration::from_secs(30) {
        round()?;
        first += 1;
    }
    let named = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == "lazaret-sentry")
    };
    let sentry = family(child.id()).into_iter().find(named).ok_or("no sentry")?;
    let before = settled(sentry);
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < 1 || long && start.elapsed() < Duration::from_secs(60) {
        round()?;
        rounds += 1;
    }
    let after = settled(sentry);
    drop(to);
    child.wait()?;
    println!("{platform}: {before:?} KiB, descriptors, threads, then {after:?} after {rounds} rounds more");
    let more = |i: usize| after[i].saturating_sub(before[i]);
    // What the allocator keeps of a round's peak varies.
    let fits = more(0) <= 4096 && more(1) <= 4 && more(2) <= 8;
    if fits { Ok(()) } else { Err(format!("{before:?} became {after:?} after {rounds} rounds").into()) }
}

fn main() {
    let args = Arguments::from_args();
    let long = std::env::var_os("LAZARET_LONG").is_some();
    let mut trials = Vec::new();
    for p in support::PLATFORMS {
        if let Some(why) = support::unusable(p) {
            eprintln!("growth: not run on {p}: {why}");
            continue;
        }
        for (name, program, text, short) in SERVERS {
            if !long && (!short || *p != *"trap") {
                continue;
            }
            let roots = *name == "sshd" && !support::is_root();
            let trial = Trial::test(format!("{p}/{name}"), move || growth(p, text));
            trials.push(trial.with_ignored_flag(!present(program) || roots));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
