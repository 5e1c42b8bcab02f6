//! time_namespaces(7): clocks, waits and files of those in one.

use guest_tests::child::CloneArgs;
use guest_tests::space::{alone, become_root, is_root};
use guest_tests::*;
use libc::*;

cases![
    own_clocks_stay,
    programs_join,
    children_join,
    absolute_waits,
    files_and_calls,
    offsets_are_checked,
    frozen_by_the_first,
    inherited_and_copied,
    links,
    threads_and_memory,
    joining,
    rights,
    born_in_one
];

const NEWTIME: i32 = 0x80;

/// A clock in nanoseconds, by the kernel itself.
fn clock(id: i32) -> i64 {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, id, &mut t));
    let t = std::hint::black_box(&t);
    t[0] * 1_000_000_000 + t[1]
}

/// The same as the C library reads it.
fn library_clock(id: i32) -> i64 {
    let mut t = timespec { tv_sec: 0, tv_nsec: 0 };
    eq(unsafe { clock_gettime(id, &mut t) }, 0);
    t.tv_sec * 1_000_000_000 + t.tv_nsec
}

fn offsets() -> String {
    std::fs::read_to_string("/proc/self/timens_offsets").expect("offsets")
}

/// Writes offsets; the errno, negated, if that fails.
fn set(text: &str) -> i64 {
    space::put(c"/proc/self/timens_offsets", text)
}

/// Runs `guest VERB ...` as another program; what it prints.
fn program(args: &[&str]) -> String {
    let out = std::process::Command::new("/proc/self/exe").args(args).output().expect("runs");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

/// A helper program: prints clocks, in seconds, and more that depends on them.
pub fn clocks(args: &[String]) -> i32 {
    let second = |ns: i64| (ns / 1_000_000_000).to_string();
    let ids = [CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_REALTIME];
    let mut all: Vec<String> = Vec::new();
    match args.first().map(String::as_str) {
        Some("kernel") => all.extend(ids.map(|id| second(clock(id)))),
        Some("library") => all.extend(ids.map(|id| second(library_clock(id)))),
        Some("waits") => all.extend(waits()),
        Some("files") => {
            let word = |path: &str, at: usize| {
                let text = std::fs::read_to_string(path).unwrap_or_default();
                let text = text.rsplit(')').next().unwrap_or_default().to_owned();
                text.split_whitespace().nth(at).unwrap_or("0").to_owned()
            };
            all.push(word("/proc/uptime", 0).split('.').next().unwrap_or("0").to_owned());
            let mut info = [0u64; 14];
            sys!(SYS_sysinfo, &mut info);
            all.push(std::hint::black_box(&info)[0].to_string());
            let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
            all.push(stat.lines().find_map(|l| l.strip_prefix("btime ")).unwrap_or("0").to_owned());
            // When process and parent began, in seconds.
            for who in ["self".to_owned(), sys!(SYS_getppid).to_string()] {
                let ticks: i64 = word(&format!("/proc/{who}/stat"), 19).parse().unwrap_or(0);
                all.push((ticks / 100).to_string());
            }
        }
        Some("offsets") => all.push(offsets()),
        _ => all.push(format!("{:?}", std::fs::read_link("/proc/self/ns/time").expect("a link"))),
    }
    println!("{}", all.join(" "));
    0
}

/// Milliseconds that absolute waits of 30 ms take.
fn waits() -> Vec<String> {
    let at = |id: i32| {
        let at = clock(id) + 30_000_000;
        [at / 1_000_000_000, at % 1_000_000_000]
    };
    let timed = |f: &mut dyn FnMut()| {
        let begun = clock(CLOCK_REALTIME);
        f();
        ((clock(CLOCK_REALTIME) - begun) / 1_000_000).to_string()
    };
    let mut all = Vec::new();
    for id in [CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME] {
        all.push(timed(&mut || {
            sys!(SYS_clock_nanosleep, id, TIMER_ABSTIME, &at(id), 0);
        }));
        all.push(timed(&mut || {
            let fd = sys!(SYS_timerfd_create, id, 0);
            let [s, ns] = at(id);
            sys!(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &[0, 0, s, ns], 0);
            sys!(SYS_read, fd, &mut [0u64; 1], 8);
        }));
        all.push(timed(&mut || {
            let mask = sig::set(&[SIGRTMIN()]);
            sig::mask(SIG_BLOCK, mask);
            let mut timer = 0;
            sys!(SYS_timer_create, id, &[0u64, SIGRTMIN() as u64, 0, 0, 0, 0, 0, 0], &mut timer);
            let [s, ns] = at(id);
            sys!(SYS_timer_settime, timer, TIMER_ABSTIME, &[0, 0, s, ns], 0);
            sys!(SYS_rt_sigtimedwait, &mask, 0, &[5i64, 0], 8);
            sys!(SYS_timer_delete, timer);
        }));
    }
    let word = 1u32;
    all.push(timed(&mut || {
        sys!(SYS_futex, &word, FUTEX_WAIT_BITSET, 1, &at(CLOCK_MONOTONIC), 0, -1);
    }));
    all.push(timed(&mut || {
        sys!(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &at(CLOCK_REALTIME), 0, -1);
    }));
    // futex_waitv
    all.push(timed(&mut || {
        let waiter = [1u64, (&raw const word) as u64, 2];
        sys!(449, &waiter, 1, 0, &at(CLOCK_MONOTONIC), CLOCK_MONOTONIC);
    }));
    // FUTEX_LOCK_PI2 of a lock of this very task's parent.
    let lock = sys!(SYS_getppid) as u32;
    all.push(timed(&mut || {
        sys!(SYS_futex, &lock, 13, 0, &at(CLOCK_MONOTONIC), 0, 0);
    }));
    // Relative ones do not change.
    all.push(timed(&mut || {
        sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &[0i64, 30_000_000], 0);
    }));
    all.push(timed(&mut || {
        sys!(SYS_futex, &word, FUTEX_WAIT, 1, &[0i64, 30_000_000], 0, 0);
    }));
    all
}

fn numbers(text: &str) -> Vec<i64> {
    text.split(' ').map(|n| n.parse().unwrap_or(i64::MIN)).collect()
}

#[track_caller]
fn near(got: &[i64], want: &[i64], by: i64) {
    let close = got.len() == want.len() && got.iter().zip(want).all(|(a, b)| (a - b).abs() <= by);
    check(close, &format!("{got:?} is near {want:?}"));
}

/// What was looked at lies between what other clocks showed before and after.
#[track_caller]
fn between(before: &[i64], got: &[i64], after: &[i64]) {
    let within = got.len() == before.len() && (0..got.len()).all(|i| (before[i]..=after[i]).contains(&got[i]));
    check(within, &format!("{got:?} between {before:?} and {after:?}"));
}

fn seconds() -> [i64; 5] {
    let ids = [CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_REALTIME];
    ids.map(|id| clock(id) / 1_000_000_000)
}

const NONE: &str = "monotonic           0         0\nboottime            0         0\n";

fn own_clocks_stay() {
    alone(|| {
        let before = seconds();
        eq(offsets(), NONE);
        ok(sys!(SYS_unshare, NEWTIME));
        eq(offsets(), NONE);
        ok(set("monotonic 1000 0\nboottime 2000 5\n"));
        eq(offsets(), "monotonic        1000         0\nboottime         2000         5\n");
        between(&before, &seconds(), &seconds());
        between(&before[..1], &[library_clock(CLOCK_MONOTONIC) / 1_000_000_000], &seconds()[..1]);
    });
}

fn programs_join() {
    alone(|| {
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("1 100000 0\n7 -3 900000000\n"));
        eq(offsets(), "monotonic      100000         0\nboottime           -3 900000000\n");
        // 2.1 seconds less are two or three whole ones.
        let moved = |less: i64| {
            let [mono, raw, coarse, boot, real] = seconds();
            [mono + 100_000, raw + 100_000, coarse + 100_000, boot - less, real]
        };
        for reads in ["kernel", "library"] {
            between(&moved(3), &numbers(&program(&["clocks", reads])), &moved(2));
        }
    });
}

/// At once, without another program.
fn children_join() {
    alone(|| {
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("monotonic 1000 0\nboottime 2000 0\n"));
        let p = pipe_pair();
        let moved = || {
            let [mono, _, _, boot, real] = seconds();
            [mono + 1000, mono + 1000, boot + 2000, real]
        };
        let before = moved();
        let pid = child(|| {
            let [mono, _, _, boot, real] = seconds();
            let all = [library_clock(CLOCK_MONOTONIC) / 1_000_000_000, mono, boot, real];
            sys!(SYS_write, p[1], &all, 32);
            0
        });
        exits(pid, 0);
        let mut all = [0i64; 4];
        eq(sys!(SYS_read, p[0], &mut all, 32), 32);
        between(&before, &all, &moved());
        shut(p);
    });
}

fn absolute_waits() {
    for text in ["monotonic 100000 0\nboottime 200000 0\n", "boottime -1 0\nmonotonic -1 0\n"] {
        alone(|| {
            ok(sys!(SYS_unshare, NEWTIME));
            ok(set(text));
            let all = numbers(&program(&["clocks", "waits"]));
            eq(all.len(), 15);
            check(all.iter().all(|ms| *ms >= 25), &format!("{text:?}: {all:?}"));
        });
    }
}

fn files_and_calls() {
    alone(|| {
        let begin = now_ms();
        let plain = numbers(&program(&["clocks", "files"]));
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("monotonic 7 0\nboottime 50000 0\n"));
        let shifted = numbers(&program(&["clocks", "files"]));
        let want =
            [plain[0] + 50_000, plain[1] + 50_000, plain[2] - 50_000, plain[3] + 50_000, plain[4] + 50_000];
        // All but what is of this very program go on meanwhile.
        near(&shifted, &want, 2 + (now_ms() - begin) / 1000);
    });
}

fn offsets_are_checked() {
    let system = is_root();
    alone(|| {
        // Those of the first one never change.
        err(set("monotonic 1 0\n"), if system { EACCES } else { EPERM });
        ok(sys!(SYS_unshare, NEWTIME));
        for bad in ["realtime 1 0", "monotonic 1", "2 1 0", "monotonic x 0", "monotonic 1 1000000000", "monotonic", "\n"] {
            err(set(bad), EINVAL);
        }
        for far in ["monotonic -100000000 0", "boottime 9223372036 0", "boottime -9223372037 0", "monotonic 4611686018 0"] {
            err(set(far), ERANGE);
        }
        // Nothing of the line before one that is wrong.
        err(set("monotonic 5 0\nboottime 9223372036 0\n"), ERANGE);
        eq(offsets(), NONE);
        ok(set("boottime 5 999999999"));
        ok(set("monotonic 4 0\n"));
        eq(offsets(), "monotonic           4         0\nboottime            5 999999999\n");
        // Each is set anew.
        ok(set("monotonic 0 0\nboottime 0 0\n"));
        eq(offsets(), NONE);
        err(set("bogus"), EINVAL);
    });
}

fn frozen_by_the_first() {
    alone(|| {
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("monotonic 3 0\n"));
        program(&["clocks", "kernel"]);
        err(set("monotonic 4 0\n"), EACCES);
        err(set("monotonic x 0\n"), EINVAL);
        eq(offsets(), "monotonic           3         0\nboottime            0         0\n");
    });
}

fn inherited_and_copied() {
    alone(|| {
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("monotonic 50 0\n"));
        // A second one begins with the offsets of the first.
        ok(sys!(SYS_unshare, NEWTIME));
        eq(offsets(), "monotonic          50         0\nboottime            0         0\n");
        ok(set("boottime 60 0\n"));
        eq(program(&["clocks", "offsets"]), "monotonic          50         0\nboottime           60         0");
    });
}

fn link(name: &str) -> String {
    format!("{:?}", std::fs::read_link(format!("/proc/self/ns/{name}")).expect("a link"))
}

fn links() {
    alone(|| {
        let first = link("time");
        check(first.starts_with("\"time:["), &first);
        eq(link("time_for_children"), first.clone());
        ok(sys!(SYS_unshare, NEWTIME));
        eq(link("time"), first.clone());
        let next = link("time_for_children");
        check(next != first && next.starts_with("\"time:["), &next);
        eq(program(&["clocks"]), next);
        let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/time_for_children", O_RDONLY)) as i32;
        eq(sys!(SYS_ioctl, fd, 0xb703), i64::from(NEWTIME));
        err(sys!(SYS_ioctl, fd, 0xb702), EINVAL);
        shut([ok(sys!(SYS_ioctl, fd, 0xb701)) as i32, fd]);
    });
}

/// Those with the same memory stay where it is.
fn threads_and_memory() {
    alone(|| {
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("monotonic 1000 0\n"));
        let before = seconds()[0];
        let other = std::thread::spawn(|| seconds()[0]).join().expect("joined");
        between(&[before], &[other], &seconds()[..1]);
        let mut told = 0i64;
        let pid = sys!(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
        if pid == 0 {
            told = seconds()[0];
            // SAFETY: as far as the parent sees.
            unsafe { (&raw mut told).write_volatile(told) };
            child::exit_now(0);
        }
        exits(ok(pid) as i32, 0);
        // SAFETY: a variable of this function, which another process may have written by now.
    between(&[before], &[unsafe { (&raw const told).read_volatile() }], &seconds()[..1]);
    });
}

fn joining() {
    let system = is_root();
    alone(|| {
        let old = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/time", O_RDONLY)) as i32;
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("monotonic 1000 0\n"));
        let new = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/time_for_children", O_RDONLY)) as i32;
        let next = link("time_for_children");
        if system {
            // Only who has rights in it goes back.
            ok(sys!(SYS_setns, old, NEWTIME));
            check(link("time_for_children") != next, "another one");
        } else {
            err(sys!(SYS_setns, old, NEWTIME), EPERM);
        }
        ok(sys!(SYS_setns, new, NEWTIME));
        eq(link("time_for_children"), next.clone());
        eq(program(&["clocks"]), next);
        err(sys!(SYS_setns, new, CLONE_NEWPID), EINVAL);
        std::thread::spawn(move || err(sys!(SYS_setns, new, NEWTIME), EUSERS)).join().expect("joined");
        shut([old, new]);
    });
}

fn rights() {
    in_child(|| {
        if is_root() {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        }
        err(sys!(SYS_unshare, NEWTIME), EPERM);
        err(sys!(SYS_setns, ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/user", O_RDONLY)), NEWTIME), EINVAL);
    });
    in_child(|| {
        if is_root() {
            skip("as an ordinary user");
        }
        become_root();
        let own = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/time", O_RDONLY));
        // No rights in the one outside.
        err(sys!(SYS_setns, own, NEWTIME), EPERM);
        ok(sys!(SYS_unshare, NEWTIME));
        ok(set("monotonic 1 0\n"));
    });
}

/// clone3(2) makes one for the child, in which it is at once.
fn born_in_one() {
    alone(|| {
        let args =
            CloneArgs { flags: NEWTIME as u64, exit_signal: SIGCHLD as u64, ..CloneArgs::default() };
        let first = link("time_for_children");
        let pid = sys!(SYS_clone3, &args, size_of::<CloneArgs>());
        if pid == 0 {
            child::exit_now(i32::from(link("time_for_children") == first));
        }
        exits(ok(pid) as i32, 0);
        eq(link("time_for_children"), first);
    });
}
