//! What threads, processes and programs that came and went leave in the sentry: nothing.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use support::{Place, Who, bins, command, sentry_of, settled, steady};

/// The program `churn` inside.
struct Churn {
    child: std::process::Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    sentry: u32,
}

impl Churn {
    fn start(platform: &'static str) -> Result<Churn, Failed> {
        let argv = [bins().guest.to_str().ok_or("a path in UTF-8")?, "churn"];
        let mut started = command(Place::Inside(platform), Who::Caller, &[], &argv);
        let mut child = started.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let to = child.stdin.take().ok_or("its standard input")?;
        let from = BufReader::new(child.stdout.take().ok_or("its standard output")?);
        let mut churn = Churn { child, to, from, sentry: 0 };
        churn.tell("thread 0")?;
        churn.sentry = sentry_of(churn.child.id())?;
        Ok(churn)
    }

    fn tell(&mut self, line: &str) -> Result<(), Failed> {
        writeln!(self.to, "{line}")?;
        let mut answer = String::new();
        self.from.read_line(&mut answer)?;
        if answer == "done\n" { Ok(()) } else { Err(format!("{line}: {answer:?}").into()) }
    }
}

/// After the first, further lines leave nothing.
fn keeps(platform: &'static str, first: &[&str], then: &[&str]) -> Result<(), Failed> {
    held_after(platform, first, then).map(drop)
}

/// KiB, descriptors and threads after `first`, and after each round of `then`.
fn held_after(platform: &'static str, first: &[&str], then: &[&str]) -> Result<Vec<[u64; 3]>, Failed> {
    let mut churn = Churn::start(platform)?;
    for line in first {
        churn.tell(line)?;
    }
    let looks = steady(churn.sentry, 1..=24, || then.iter().try_for_each(|line| churn.tell(line)));
    let looks = looks.map_err(|f| Failed::from(format!("{then:?}: {}", f.message().unwrap_or_default())))?;
    let Churn { mut child, to, .. } = churn;
    drop(to);
    child.wait()?;
    println!("{platform}: KiB, descriptors, threads after each {then:?}: {looks:?}");
    Ok(looks)
}

// What is kept for reuse is there after the first few; a crowd fills the pool of the sentry's own threads.

fn threads(platform: &'static str) -> Result<(), Failed> {
    keeps(platform, &["crowd 40", "thread 300"], &["thread 4000"])
}

fn forks(platform: &'static str) -> Result<(), Failed> {
    keeps(platform, &["crowd 40", "fork 1000"], &["fork 4000"])
}

fn programs(platform: &'static str) -> Result<(), Failed> {
    keeps(platform, &["crowd 40", "exec 100"], &["exec 300"])
}

/// Two thousand at the same time, again and again.
fn many_threads(platform: &'static str) -> Result<(), Failed> {
    keeps(platform, &["crowd 2000"; 2], &["crowd 2000"; 2])
}

fn connections(platform: &'static str) -> Result<(), Failed> {
    keeps(platform, &["connect 1000", "message 1000"], &["connect 3000", "message 3000"])
}

/// Descriptors that nobody can receive any more are closed: a pipe and 64 KiB with each.
fn cycles(platform: &'static str) -> Result<(), Failed> {
    keeps(platform, &["cycle 200"], &["cycle 1000"])
}

fn namespaces(platform: &'static str) -> Result<(), Failed> {
    keeps(platform, &["alone 100"], &["alone 500"])
}

/// Processes that claim what they are not: nobody in the sentry waits for one that has died, not even until another has its area.
fn unheard(platform: &'static str) -> Result<(), Failed> {
    let looks = held_after(platform, &["crowd 40"], &["unheard 66"; 3])?;
    let more = looks.iter().any(|now| now[1] > looks[0][1] + 8 || now[2] > looks[0][2] + 8);
    if more { Err(format!("descriptors or threads stay: {looks:?}").into()) } else { Ok(()) }
}

/// What is left in every round is seen, a few descriptors of it.
fn a_leak_is_seen(platform: &'static str) -> Result<(), Failed> {
    let mut churn = Churn::start(platform)?;
    let looks = steady(churn.sentry, 1..=8, || churn.tell("keep 20"));
    match looks {
        Err(f) if f.message().is_some_and(|text| text.contains("after each round")) => Ok(()),
        Err(f) => Err(f),
        Ok(looks) => Err(format!("not seen: {looks:?}").into()),
    }
}

/// Ten thousand connections that nothing comes through.
fn idle_connections(platform: &'static str) -> Result<(), Failed> {
    let mut churn = Churn::start(platform)?;
    churn.tell("hold 10")?;
    let before = settled(churn.sentry);
    churn.tell("hold 10000")?;
    let after = settled(churn.sentry);
    churn.tell("free 0")?;
    let Churn { mut child, to, .. } = churn;
    drop(to);
    child.wait()?;
    let grown = after[0].saturating_sub(before[0]);
    println!("{platform}: 10,000 connections take {grown} KiB, {} bytes each", grown * 1024 / 10_000);
    if grown < 100 * 1024 && after[1] <= before[1] + 16 {
        Ok(())
    } else {
        Err(format!("{before:?} became {after:?}").into())
    }
}

/// Threads and processes that wait for something cost the sentry no threads, and little memory; all of them wake.
fn blocked(platform: &'static str) -> Result<(), Failed> {
    let mut churn = Churn::start(platform)?;
    churn.tell("crowd 100")?;
    let before = settled(churn.sentry);
    churn.tell("block 2000")?;
    let threads = settled(churn.sentry);
    churn.tell("wake 0")?;
    churn.tell("block 2000")?;
    let again = settled(churn.sentry);
    churn.tell("wake 0")?;
    let Churn { mut child, to, .. } = churn;
    drop(to);
    child.wait()?;
    println!(
        "{platform}: {before:?} KiB, descriptors, threads, with 2,000 blocked threads {threads:?}, {again:?}"
    );
    let each = again[0].saturating_sub(before[0]) * 1024 / 2000;
    if again[2] <= 64 && threads[2] <= 64 && each < 24 << 10 {
        Ok(())
    } else {
        Err(format!("{before:?} became {threads:?}, {again:?}").into())
    }
}

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for p in support::PLATFORMS {
        if let Some(why) = support::unusable(p) {
            eprintln!("leaks: not run on {p}: {why}");
            continue;
        }
        type Check = fn(&'static str) -> Result<(), Failed>;
        let checks: [(&str, Check); 11] = [
            ("threads", threads),
            ("forks", forks),
            ("programs", programs),
            ("many_threads", many_threads),
            ("connections", connections),
            ("cycles", cycles),
            ("namespaces", namespaces),
            ("unheard", unheard),
            ("a_leak_is_seen", a_leak_is_seen),
            ("idle_connections", idle_connections),
            ("blocked", blocked),
        ];
        for (name, f) in checks {
            trials.push(Trial::test(format!("{p}/{name}"), move || f(p)));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
