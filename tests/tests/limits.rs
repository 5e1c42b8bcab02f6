//! What a sandbox may cost: time to start, resident memory, processor time at rest, two cores for two guests.
//!
//! These need a quiet machine and a release build, so they run by name only:
//! `make limits`.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::time::{Duration, Instant};
use support::{Place, Who, command, family, finish, run, start};

const LIMIT: Duration = Duration::from_secs(60);

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}

/// `do /bin/true` takes at most three times bubblewrap's time, both measured in turns.
fn start_time(platform: &'static str) -> Result<(), Failed> {
    let bwrap =
        ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "/bin/true"];
    let time = |place, argv: &[&str]| -> Result<f64, Failed> {
        let o = run(&mut command(place, Who::Caller, &[], argv), LIMIT, b"");
        if o.code() == Some(0) {
            Ok(o.took.as_secs_f64() * 1e3)
        } else {
            Err(format!("{argv:?}: {}", o.brief()).into())
        }
    };
    let (mut a, mut b) = (vec![], vec![]);
    for _ in 0..21 {
        a.push(time(Place::Inside(platform), &["/bin/true"])?);
        b.push(time(Place::Native, &bwrap)?);
    }
    let (a, b) = (median(a), median(b));
    println!("start on {platform}: {a:.1} ms, bubblewrap {b:.1} ms, {:.2}x", a / b);
    if a <= 3.0 * b { Ok(()) } else { Err(format!("{a:.1} ms against {b:.1} ms of bubblewrap").into()) }
}

fn stat_field(pid: u32, i: usize) -> Option<u64> {
    let s = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    s.rsplit_once(") ")?.1.split(' ').nth(i)?.parse().ok()
}

/// utime + stime in ticks of 10 ms.
fn ticks(pids: &[u32]) -> u64 {
    pids.iter().map(|p| stat_field(*p, 11).unwrap_or(0) + stat_field(*p, 12).unwrap_or(0)).sum()
}

fn with_running<T>(
    platform: &'static str,
    argv: &[&str],
    f: impl FnOnce(&[u32]) -> Result<T, Failed>,
) -> Result<T, Failed> {
    let child = start(&mut command(Place::Inside(platform), Who::Caller, &[], argv));
    std::thread::sleep(Duration::from_millis(700));
    let all = family(child.id());
    let r = f(&all);
    unsafe { libc::kill(child.id() as i32, libc::SIGKILL) };
    finish(child, Duration::from_secs(5));
    r
}

/// Sentry, gofer and launcher have at most 10 MiB resident together, pages that they share counted for each.
fn memory(platform: &'static str) -> Result<(), Failed> {
    with_running(platform, &["/bin/sleep", "100"], |all| {
        let mut sum = 0;
        for p in all {
            let name = std::fs::read_to_string(format!("/proc/{p}/comm")).unwrap_or_default();
            if !["lazaret", "lazaret-sentry", "lazaret-gofer"].contains(&name.trim()) {
                continue;
            }
            let kib = support::holdings(*p)[0];
            println!("memory on {platform}: {} {kib} KiB", name.trim());
            sum += kib;
        }
        if sum > 0 && sum <= 10 * 1024 { Ok(()) } else { Err(format!("{sum} KiB").into()) }
    })
}

/// A sandbox whose program sleeps uses no processor time over 10 s.
fn idle(platform: &'static str) -> Result<(), Failed> {
    with_running(platform, &["/bin/sleep", "100"], |all| {
        let a = ticks(all);
        std::thread::sleep(Duration::from_secs(10));
        let used = (ticks(all) - a) * 10;
        println!("idle on {platform}: {used} ms in 10 s");
        if used == 0 { Ok(()) } else { Err(format!("{used} ms of processor time").into()) }
    })
}

/// Two programs that compute and make a call now and then keep two cores busy.
fn two_cores(platform: &'static str) -> Result<(), Failed> {
    let script = "f() { i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; }; f & f; wait";
    let argv = ["/bin/sh", "-c", script];
    let time = |place| {
        let b = Instant::now();
        let o = run(&mut command(place, Who::Caller, &[], &argv), LIMIT, b"");
        if o.code() == Some(0) { Ok(b.elapsed().as_secs_f64()) } else { Err(Failed::from(o.brief())) }
    };
    let (n, i) = (time(Place::Native)?, time(Place::Inside(platform))?);
    println!("two guests on {platform}: {i:.2} s, natively {n:.2} s");
    // One after the other would be two times as long.
    if i <= n * 1.4 + 0.1 { Ok(()) } else { Err(format!("{i:.2} s against {n:.2} s").into()) }
}

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for p in support::PLATFORMS {
        if let Some(why) = support::unusable(p) {
            eprintln!("limits: not run on {p}: {why}");
            continue;
        }
        type Limit = fn(&'static str) -> Result<(), Failed>;
        let limits: [(&str, Limit); 4] =
            [("start_time", start_time), ("memory", memory), ("idle", idle), ("two_cores", two_cores)];
        for (name, f) in limits {
            trials.push(Trial::test(format!("{p}/{name}"), move || f(p)).with_ignored_flag(true));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
