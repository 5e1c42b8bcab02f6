//! Which tasks have a filter: by fork, thread, execve and SECCOMP_FILTER_FLAG_TSYNC.

use crate::seccomp::{NEW_LISTENER, TSYNC, TSYNC_ESRCH, status, until_threads};
use guest_tests::child::exit_now;
use guest_tests::filter::*;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

cases![
    in_status, inherited_by_fork, inherited_by_thread, inherited_by_vfork, kept_over_exec, tsync, tsync_unable, tsync_strict, tsync_privs,
    tsync_descends, many_threads
];

/// Seccomp and Seccomp_filters of a task.
fn lines(path: &str) -> (String, String) {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).unwrap_or("none").trim().to_string();
    (line("Seccomp:"), line("Seccomp_filters:"))
}

#[track_caller]
fn has_filters(path: &str, mode: i32, count: i32) {
    eq(lines(path), (mode.to_string(), count.to_string()));
}

fn in_status() {
    in_child(|| {
        has_filters("/proc/self/status", 0, 0);
        for n in 1..4 {
            add(&[ret(ALLOW)]);
            has_filters("/proc/self/status", 2, n);
        }
    });
    let p = pipe_pair();
    let pid = child(|| {
        ok(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0));
        sys!(SYS_read, p[0], &mut [0u8], 1);
        sys!(SYS_exit, 0);
        1
    });
    for _ in 0..2000 {
        if lines(&format!("/proc/{pid}/status")).0 == "1" {
            break;
        }
        sleep_ms(1);
    }
    has_filters(&format!("/proc/{pid}/status"), 1, 0);
    sys!(SYS_write, p[1], b"x", 1);
    exits(pid, 0);
    shut(p);
}

fn denied() -> bool {
    sys!(SYS_getpgid, 0) == -i64::from(EXDEV)
}

fn deny() {
    add(&on(SYS_getpgid, ERRNO | EXDEV as u32));
}

fn inherited_by_fork() {
    in_child(|| {
        deny();
        exits(child(|| i32::from(!denied())), 0);
        // What a child adds is its own.
        exits(
            child(|| {
                add(&on(SYS_getppid, ERRNO | 1));
                has_filters("/proc/self/status", 2, 2);
                i32::from(!denied() || sys!(SYS_getppid) != -1)
            }),
            0,
        );
        check(denied() && sys!(SYS_getppid) > 0, "the parent has one");
        has_filters("/proc/self/status", 2, 1);
    });
}

fn inherited_by_thread() {
    in_child(|| {
        deny();
        check(thread::spawn(denied).join().unwrap(), "a new thread has the filter");
        // A thread's own is not that of the others.
        thread::spawn(|| add(&on(SYS_getppid, ERRNO | 1))).join().unwrap();
        check(sys!(SYS_getppid) > 0, "of the other thread alone");
    });
}

fn inherited_by_vfork() {
    in_child(|| {
        deny();
        #[allow(deprecated)]
        // SAFETY: the child makes two calls.
        let pid = unsafe { vfork() };
        if pid == 0 {
            exit_now(i32::from(!denied()));
        }
        exits(pid, 0);
    });
}

fn kept_over_exec() {
    in_child(|| {
        deny();
        let (p, script) = (pipe_pair(), c"grep Seccomp /proc/self/status; kill -0 1; echo $?");
        let pid = child(|| {
            add(&on(SYS_kill, ERRNO | EXDEV as u32));
            sys!(SYS_dup2, p[1], 1);
            let null = sys!(SYS_open, c"/dev/null", O_WRONLY);
            sys!(SYS_dup2, null, 2);
            let args = [c"sh".as_ptr(), c"-c".as_ptr(), script.as_ptr(), std::ptr::null()];
            let env = [c"PATH=/bin:/usr/bin".as_ptr(), std::ptr::null()];
            sys!(SYS_execve, c"/bin/sh", &args, &env);
            1
        });
        shut([p[1]]);
        exits(pid, 0);
        let mut text = [0u8; 200];
        let n = ok(sys!(SYS_read, p[0], &mut text, 200)) as usize;
        eq(String::from_utf8_lossy(&text[..n]).into_owned(), "Seccomp:\t2\nSeccomp_filters:\t2\n1\n");
    });
}

/// A thread that says what it was asked to do; the calling case has it end.
struct Other {
    tid: i32,
    ask: mpsc::Sender<fn() -> i64>,
    told: mpsc::Receiver<i64>,
}

impl Other {
    fn new() -> Other {
        let (ask, asked) = mpsc::channel::<fn() -> i64>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let _ = tell.send(sys!(SYS_gettid));
            while let Ok(what) = asked.recv() {
                let _ = tell.send(what());
            }
        });
        let tid = told.recv().unwrap() as i32;
        Other { tid, ask, told }
    }

    fn does(&self, what: fn() -> i64) -> i64 {
        self.ask.send(what).unwrap();
        self.told.recv().unwrap()
    }
}

fn tsync() {
    in_child(|| {
        let others: Vec<Other> = (0..5).map(|_| Other::new()).collect();
        no_new_privs();
        eq(set(TSYNC, &on(SYS_getpgid, ERRNO | EXDEV as u32)), 0);
        for other in &others {
            check(other.does(|| i64::from(denied())) == 1, "every thread has it");
            has_filters(&format!("/proc/self/task/{}/status", other.tid), 2, 1);
        }
        // Also calls that kernels answer without being entered, asked often before.
        let often: fn() -> i64 = || (0..200).map(|_| sys!(SYS_getuid)).min().unwrap_or(0);
        check(others[1].does(often) >= 0, "before");
        eq(set(TSYNC, &on(SYS_getuid, ERRNO | 8)), 0);
        eq(others[1].does(often), -8);
        eq(thread::spawn(often).join().unwrap(), -8);
    });
}

fn tsync_unable() {
    in_child(|| {
        let (a, b) = (Other::new(), Other::new());
        no_new_privs();
        eq(b.does(|| set(0, &[ret(ALLOW)])), -i64::from(EACCES) * i64::from(sys!(SYS_geteuid) != 0));
        eq(
            b.does(|| {
                no_new_privs();
                set(0, &[ret(ALLOW)])
            }),
            0,
        );
        // Nothing happens to anybody: the number of a thread whose filters are not the caller's.
        eq(set(TSYNC, &on(SYS_getpgid, ERRNO | EXDEV as u32)), i64::from(b.tid));
        err(set(TSYNC | TSYNC_ESRCH, &on(SYS_getpgid, ERRNO | EXDEV as u32)), ESRCH);
        err(set(TSYNC | TSYNC_ESRCH | NEW_LISTENER, &on(SYS_getpgid, ERRNO | EXDEV as u32)), ESRCH);
        check(!denied() && a.does(|| i64::from(denied())) == 0, "no filter");
        has_filters("/proc/self/status", 0, 0);
        drop(b.ask);
        until_threads(2);
        eq(set(TSYNC, &on(SYS_getpgid, ERRNO | EXDEV as u32)), 0);
        check(a.does(|| i64::from(denied())) == 1, "once it has ended");
    });
}

fn tsync_strict() {
    let s = status(|| {
        static TID: AtomicI32 = AtomicI32::new(0);
        let p = pipe_pair();
        let _thread = thread::spawn(move || {
            let tid = sys!(SYS_gettid) as i32;
            ok(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0));
            TID.store(tid, SeqCst);
            sys!(SYS_read, p[0], &mut [0u8], 1);
            sys!(SYS_exit, 0);
        });
        while TID.load(SeqCst) == 0 {
            sleep_ms(1);
        }
        no_new_privs();
        eq(set(TSYNC, &[ret(ALLOW)]), i64::from(TID.load(SeqCst)));
        3
    });
    eq(s, 3 << 8);
}

/// The others may not gain privileges either, if the caller may not.
fn tsync_privs() {
    in_child(|| {
        let other = Other::new();
        let get: fn() -> i64 = || sys!(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
        no_new_privs();
        eq(set(0, &[ret(ALLOW)]), 0);
        eq(other.does(get), 0);
        eq(set(TSYNC, &[ret(ALLOW)]), 0);
        eq(other.does(get), 1);
    });
}

/// A thread whose filters the caller's grew out of can follow.
fn tsync_descends() {
    in_child(|| {
        add(&[ret(ALLOW)]);
        let other = Other::new();
        add(&[ret(ALLOW)]);
        let same = Other::new();
        eq(set(TSYNC, &on(SYS_getpgid, ERRNO | EXDEV as u32)), 0);
        for thread in [&other, &same] {
            check(thread.does(|| i64::from(denied())) == 1, "it follows");
            has_filters(&format!("/proc/self/task/{}/status", thread.tid), 2, 3);
        }
        // One that went further cannot.
        eq(other.does(|| set(0, &[ret(ALLOW)])), 0);
        eq(set(TSYNC, &[ret(ALLOW)]), i64::from(other.tid));
    });
}

fn many_threads() {
    in_child(|| {
        deny();
        let threads: Vec<_> = (0..8)
            .map(|i| {
                thread::spawn(move || {
                    for j in 0..20 {
                        add(&on(SYS_getpriority, ERRNO | (i * 20 + j + 1)));
                        eq(sys!(SYS_getpriority, 0, 0), -i64::from(i * 20 + j + 1));
                        check(denied(), "the old one too");
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        check(sys!(SYS_getpriority, 0, 0) > 0, "nothing of theirs");
    });
}
