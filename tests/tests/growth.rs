//! Servers that work, end and begin again in one sandbox: what the sentry holds does not become more and more. A
//! few times in `make test`; in `make growth` (LAZARET_LONG) a round is twenty seconds of a server, and there are
//! three at least. The programs are in `tests/programs/`.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Place, Who, bins, command, present, sentry_of, steady};

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

/// The pool of the sentry's own threads is filled by a crowd ($2 is the guest program). Then a server's turn for
/// each line: its text is the first argument. What it says, and how it ended.
const TURNS: &str = r#"echo crowd 40 | "$2" churn
while read line; do sh -c "$1" 2>/dev/null </dev/null; echo "done $?"; done"#;

fn growth(platform: &'static str, text: &str) -> Result<(), Failed> {
    let long = std::env::var_os("LAZARET_LONG").is_some();
    let guest = bins().guest.to_str().ok_or("a path in UTF-8")?;
    let argv = ["sh", "-c", TURNS, "turns", text, guest];
    let mut native = command(Place::Native, Who::Caller, &[], &["sh", "-c", text]);
    let native = native.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    let wanted =
        format!("{}done {}\n", String::from_utf8_lossy(&native.stdout), native.status.code().unwrap_or(-1));
    let mut started = command(Place::Inside(platform), Who::Caller, &[], &argv);
    let mut child = started.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut to = child.stdin.take().ok_or("its standard input")?;
    let mut from = BufReader::new(child.stdout.take().ok_or("its standard output")?);
    let mut answer = |wanted: &str| -> Result<(), Failed> {
        let mut answer = String::new();
        loop {
            let start = answer.len();
            if from.read_line(&mut answer)? == 0 {
                return Err(format!("the sandbox ended: {answer:?}").into());
            }
            if answer[start..].starts_with("done") {
                break;
            }
        }
        if answer == wanted { Ok(()) } else { Err(format!("{answer:?} instead of {wanted:?}").into()) }
    };
    answer("done\n")?;
    let mut turns = 0;
    let mut round = || -> Result<(), Failed> {
        let start = Instant::now();
        loop {
            writeln!(to, "go")?;
            answer(&wanted)?;
            turns += 1;
            if !long || start.elapsed() > Duration::from_secs(20) {
                return Ok(());
            }
        }
    };
    // Caches fill in the first.
    round()?;
    let looks = steady(sentry_of(child.id())?, if long { 3..=24 } else { 1..=24 }, &mut round)?;
    drop(to);
    child.wait()?;
    println!("{platform}: KiB, descriptors, threads after each round, {turns} turns: {looks:?}");
    Ok(())
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
