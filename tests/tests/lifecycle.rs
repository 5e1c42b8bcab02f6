//! Signals to a sandbox and its end: what reaches the program, and that nothing stays behind.

mod support;

use libtest_mimic::{Arguments, Failed};
use std::time::Duration;
use support::{
    Check, Ctx, LIMIT, Place, alive, all_end, bins, command, contexts, expect, fail, family, finish, run,
    sentry_of, shell, signal_taken, start, until, wait_ready,
};

fn signals_are_forwarded(c: &Ctx) -> Result<(), Failed> {
    for (sig, name) in
        [(libc::SIGTERM, "TERM"), (libc::SIGINT, "INT"), (libc::SIGHUP, "HUP"), (libc::SIGQUIT, "QUIT")]
    {
        let script =
            format!("trap 'echo got {name}; exit 7' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = start(&mut command(Place::Inside(c.platform), c.who, &[], &shell(&script)));
        wait_ready(&mut child)?;
        unsafe { libc::kill(child.id() as i32, sig) };
        let o = finish(child, LIMIT);
        expect(&o, 7, &format!("got {name}\n"))?;
    }
    Ok(())
}

/// Default actions: the exit status is 128 and the signal's number.
fn signals_end_it(c: &Ctx) -> Result<(), Failed> {
    for sig in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGUSR1] {
        // A shell on its way to exec may lose one.
        let script = "echo ready; read line";
        let mut child = start(&mut command(Place::Inside(c.platform), c.who, &[], &shell(script)));
        wait_ready(&mut child)?;
        unsafe { libc::kill(child.id() as i32, sig) };
        let o = finish(child, LIMIT);
        if o.code() != Some(128 + sig) {
            return Err(fail(&format!("signal {sig} gives {}", 128 + sig), &o));
        }
    }
    let o = run(&mut command(Place::Native, c.who, &[], &timeout_argv(c)), LIMIT, b"");
    if o.code() == Some(124) { Ok(()) } else { Err(fail("timeout gives 124", &o)) }
}

fn timeout_argv(c: &Ctx) -> [&str; 9] {
    let lazaret = bins().lazaret.as_ref().and_then(|p| p.to_str()).unwrap_or_default();
    ["/usr/bin/timeout", "1", lazaret, "do", "--platform", c.platform, "--", "/bin/sleep", "100"]
}

/// The third SIGTERM ends a program that does not want to.
fn third_sigterm_ends_it(c: &Ctx) -> Result<(), Failed> {
    let script = "trap '' TERM; echo ready; while :; do sleep 1; done";
    let mut child = start(&mut command(Place::Inside(c.platform), c.who, &[], &shell(script)));
    wait_ready(&mut child)?;
    let all = family(child.id());
    for _ in 0..3 {
        if alive(&all).len() < 3 {
            return Err("ended before the third".into());
        }
        signal_taken(child.id(), libc::SIGTERM)?;
    }
    let o = finish(child, LIMIT);
    if o.code() != Some(125) || o.err().lines().count() != 1 {
        return Err(fail("exit 125 and one line", &o));
    }
    all_end(&all)
}

/// A sentry that does nothing any more is ended by the first SIGTERM. (A stop takes its time: it may come after the
/// signal was taken.)
fn hung_sentry_is_ended(c: &Ctx) -> Result<(), Failed> {
    let mut child =
        start(&mut command(Place::Inside(c.platform), c.who, &[], &shell("echo ready; exec sleep 1000")));
    wait_ready(&mut child)?;
    let all = family(child.id());
    unsafe {
        libc::kill(sentry_of(child.id())? as i32, libc::SIGSTOP);
        libc::kill(child.id() as i32, libc::SIGTERM);
    }
    ends_with_one_line(child, &all)
}

/// The same when it hangs after it has taken the signal.
fn hung_after_a_signal_is_ended(c: &Ctx) -> Result<(), Failed> {
    let script = "trap 'echo ready' TERM; echo ready; while :; do sleep 0.1; done";
    let mut child = start(&mut command(Place::Inside(c.platform), c.who, &[], &shell(script)));
    wait_ready(&mut child)?;
    let all = family(child.id());
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    wait_ready(&mut child)?;
    // SAFETY: takes no pointers.
    unsafe { libc::kill(sentry_of(child.id())? as i32, libc::SIGSTOP) };
    ends_with_one_line(child, &all)
}

/// Exit 125, one line, and all of them gone.
fn ends_with_one_line(child: std::process::Child, all: &[u32]) -> Result<(), Failed> {
    let o = finish(child, LIMIT);
    if o.code() != Some(125) || o.err().lines().count() != 1 {
        return Err(fail("exit 125 and one line", &o));
    }
    all_end(all)
}

/// SIGTSTP stops program and launcher, SIGCONT continues both.
fn stops_and_continues(c: &Ctx) -> Result<(), Failed> {
    let script = "echo ready; read line; echo on; exit 3";
    let mut child = start(&mut command(Place::Inside(c.platform), c.who, &[], &shell(script)));
    wait_ready(&mut child)?;
    let pid = child.id();
    let stopped = || {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|s| s.rsplit_once(") ").is_some_and(|(_, r)| r.starts_with('T')))
    };
    unsafe { libc::kill(pid as i32, libc::SIGTSTP) };
    let was = until(LIMIT, stopped);
    std::io::Write::write_all(&mut child.stdin.take().ok_or("no stdin")?, b"go\n")?;
    unsafe { libc::kill(pid as i32, libc::SIGCONT) };
    let o = finish(child, LIMIT);
    if !was {
        return Err(fail("stopped", &o));
    }
    expect(&o, 3, "on\n")
}

/// Ignored signals stay ignored, as for any program that execve(2) starts.
fn ignored_stay_ignored(c: &Ctx) -> Result<(), Failed> {
    use std::os::unix::process::CommandExt;
    let mut cmd = command(
        Place::Inside(c.platform),
        c.who,
        &[],
        &shell("kill -HUP $$; kill -USR2 $$; grep SigIgn /proc/self/status; echo alive"),
    );
    unsafe {
        cmd.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            libc::signal(libc::SIGUSR2, libc::SIG_IGN);
            Ok(())
        });
    }
    let o = run(&mut cmd, LIMIT, b"");
    if o.code() == Some(0) && o.out().ends_with("alive\n") { Ok(()) } else { Err(fail("lives on", &o)) }
}

/// Processes and threads without end: EAGAIN at the limit, and nothing stays.
fn bombs_are_bounded(c: &Ctx) -> Result<(), Failed> {
    let guest = bins().guest.to_str().expect("UTF-8");
    for kind in ["forks", "threads"] {
        let mut child = start(&mut command(
            Place::Inside(c.platform),
            c.who,
            &["--tasks", "150"],
            &[guest, "bomb", kind],
        ));
        wait_ready(&mut child)?;
        let all = family(child.id());
        let o = finish(child, LIMIT);
        let made: usize =
            o.out().trim().strip_prefix("EAGAIN after ").and_then(|n| n.parse().ok()).unwrap_or(0);
        if o.code() != Some(0) || !(100..150).contains(&made) {
            return Err(fail(&format!("{kind}: EAGAIN below 150"), &o));
        }
        all_end(&all)?;
    }
    let script = "f() { f | f & }; f 2>/dev/null; sleep 2; echo end";
    let mut child = start(&mut command(
        Place::Inside(c.platform),
        c.who,
        &["--tasks", "150"],
        &["/bin/bash", "-c", script],
    ));
    std::thread::sleep(Duration::from_secs(1));
    let all = family(child.id());
    let live = alive(&all).len();
    unsafe { libc::kill(child.id() as i32, libc::SIGKILL) };
    let _ = child.wait();
    // Those that have ended and wait to be reaped are no longer the guest's.
    if live > 160 {
        return Err(format!("{live} processes").into());
    }
    all_end(&all)
}

fn nothing_stays_behind(c: &Ctx) -> Result<(), Failed> {
    ends_all(c, &["launcher", "lazaret-sentry", "init", "zygote"])
}

fn gofer_death_ends_it(c: &Ctx) -> Result<(), Failed> {
    ends_all(c, &["lazaret-gofer"])
}

/// Processes that the sentry made: their parent is the sentry. The first is the init of the guests, the second what
/// guests are made from.
fn is_guest(pid: u32) -> bool {
    let field = |pid: &str, at: usize| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        text.rsplit_once(") ")
            .and_then(|(_, rest)| Some(rest.split(' ').nth(at)?.to_owned()))
            .unwrap_or_default()
    };
    let parent = field(&pid.to_string(), 1);
    std::fs::read_to_string(format!("/proc/{parent}/comm")).is_ok_and(|name| name.trim() == "lazaret-sentry")
}

/// SIGKILL of each of `victims` ends everything.
fn ends_all(c: &Ctx, victims: &[&str]) -> Result<(), Failed> {
    let busy = "(while :; do sleep 1; done) & sleep 1000 & echo ready; while :; do :; done";
    victims.iter().try_for_each(|victim| ends_by_death_of(c, victim, busy))
}

/// The same while guest processes are made all the time.
fn death_while_processes_are_made(c: &Ctx) -> Result<(), Failed> {
    let script = "echo ready; while :; do /bin/true; done";
    ["init", "zygote"].iter().cycle().take(8).try_for_each(|victim| ends_by_death_of(c, victim, script))
}

fn ends_by_death_of(c: &Ctx, victim: &str, script: &str) -> Result<(), Failed> {
    let mut child = start(&mut command(Place::Inside(c.platform), c.who, &[], &shell(script)));
    wait_ready(&mut child)?;
    let mut all = family(child.id());
    all.sort_unstable();
    let target = all.iter().copied().find(|p| {
        let guests = || all.iter().filter(|p| is_guest(**p));
        (victim == "launcher" && *p == child.id())
            || victim == "init" && guests().next() == Some(p)
            || victim == "zygote" && guests().nth(1) == Some(p)
            || std::fs::read_to_string(format!("/proc/{p}/comm")).is_ok_and(|n| n.trim() == victim)
    });
    let Some(t) = target else {
        unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
        let _ = child.wait();
        return Err(format!("no process named {victim} among {}", all.len()).into());
    };
    unsafe { libc::kill(t as i32, libc::SIGKILL) };
    let o = finish(child, LIMIT);
    if o.status.is_none() {
        return Err(format!("SIGKILL of {victim} does not end the launcher").into());
    }
    if victim != "launcher" && o.code() != Some(125) {
        return Err(fail(&format!("exit 125 after SIGKILL of {victim}"), &o));
    }
    all_end(&all)
        .map_err(|f| Failed::from(format!("after SIGKILL of {victim} {}", f.message().unwrap_or_default())))
}

fn orphans_end_with_the_program(c: &Ctx) -> Result<(), Failed> {
    let mut child = start(&mut command(
        Place::Inside(c.platform),
        c.who,
        &[],
        &shell("sleep 1000 >/dev/null 2>&1 & echo ready; read line; exit 4"),
    ));
    wait_ready(&mut child)?;
    let all = family(child.id());
    drop(child.stdin.take());
    let o = finish(child, LIMIT);
    if o.code() != Some(4) {
        return Err(fail("exit 4", &o));
    }
    all_end(&all)
}

const CHECKS: &[(&str, Check)] = &[
    ("signals_are_forwarded", signals_are_forwarded),
    ("nothing_stays_behind", nothing_stays_behind),
    ("death_while_processes_are_made", death_while_processes_are_made),
    ("gofer_death_ends_it", gofer_death_ends_it),
    ("signals_end_it", signals_end_it),
    ("third_sigterm_ends_it", third_sigterm_ends_it),
    ("hung_sentry_is_ended", hung_sentry_is_ended),
    ("hung_after_a_signal_is_ended", hung_after_a_signal_is_ended),
    ("stops_and_continues", stops_and_continues),
    ("ignored_stay_ignored", ignored_stay_ignored),
    ("bombs_are_bounded", bombs_are_bounded),
    ("orphans_end_with_the_program", orphans_end_with_the_program),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        trials.extend(CHECKS.iter().map(|(name, check)| c.trial("lifecycle", name, *check)));
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
