//! pid_namespaces(7): numbers, init, /proc, signals, ends.

use crate::tracee::{pt, r};
use guest_tests::child::clone_with;
use guest_tests::space::{alone, is_root, mount};
use guest_tests::*;
use libc::*;

cases![
    numbers_inside,
    init_takes_orphans,
    init_ends_all,
    init_and_signals,
    init_dies_of_faults,
    faults_of_calls,
    own_proc,
    status_of_levels,
    signals_tell_pids,
    groups_and_sessions,
    pidfds_across,
    setns_into,
    nested,
    wanted_numbers,
    who_is_a_peer,
    many_come_and_go,
    no_threads_elsewhere, children_that_end_at_once, numbers_of_lost_tracees
];

/// Runs `f` as the init of a new namespace; what it returns is its status.
pub(crate) fn as_init(f: impl FnOnce() -> i32) -> i32 {
    ok(sys!(SYS_unshare, CLONE_NEWPID));
    child(|| {
        // Nobody else is left to end it if a check fails.
        ok(sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
        f()
    })
}

pub(crate) fn passes(f: impl FnOnce()) {
    let mut p = [0i32; 2];
    ok(sys!(SYS_pipe2, &mut p, O_CLOEXEC));
    let pid = as_init(|| {
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
        if done.is_err() {
            let text = check::last_failure();
            sys!(SYS_write, p[1], text.as_bytes(), text.len());
            return 1;
        }
        0
    });
    let status = reap(pid);
    shut([p[1]]);
    let mut buf = [0u8; 400];
    let n = sys!(SYS_read, p[0], &mut buf, buf.len()).max(0) as usize;
    let text = String::from_utf8_lossy(&buf[..n]).into_owned();
    check(status == 0, &format!("in its init: {status:#x} {text}"));
}

fn getpid() -> i64 {
    sys!(SYS_getpid)
}

fn numbers_inside() {
    alone(|| {
        let outside = getpid();
        passes(|| {
            eq((getpid(), sys!(SYS_gettid), sys!(SYS_getppid)), (1, 1, 0));
            eq(sys!(SYS_getpgid, 0), 0);
            eq(sys!(SYS_getsid, 0), 0);
            let pid = child(|| {
                eq((getpid(), sys!(SYS_getppid)), (2, 1));
                0
            });
            eq(pid, 2);
            exits(pid, 0);
            // Who is outside has no number.
            err(sys!(SYS_kill, outside, 0), ESRCH);
            err(sys!(SYS_getpgid, outside + 100_000), ESRCH);
            let tid = std::thread::spawn(|| sys!(SYS_gettid)).join().expect("joined");
            eq(tid, 3);
        });
        // The caller stays where it was.
        eq(getpid(), outside);
    });
}

/// Orphans become the init's.
fn init_takes_orphans() {
    alone(|| {
        passes(|| {
            let p = pipe_pair();
            let middle = child(|| {
                child(|| {
                    shut([p[1]]);
                    let mut b = [0u8];
                    // Until its parent is gone and the init has waited for that.
                    sys!(SYS_read, p[0], &mut b, 1);
                    i32::from(sys!(SYS_getppid) != 1)
                });
                0
            });
            exits(middle, 0);
            shut(p);
            exits(middle + 1, 0);
            err(sys!(SYS_wait4, -1, 0, 0, 0), ECHILD);
        });
    });
}

/// All end with their init, those below it too; nobody comes after that.
fn init_ends_all() {
    alone(|| {
        let p = pipe_pair();
        let init = as_init(|| {
            let kept = || {
                shut([p[0]]);
                loop {
                    sys!(SYS_pause);
                }
            };
            child(kept);
            let ready = pipe_pair();
            child(|| {
                child(kept);
                ok(sys!(SYS_unshare, CLONE_NEWPID));
                child(kept);
                eq(sys!(SYS_write, ready[1], b"x", 1), 1);
                kept()
            });
            let mut b = [0u8];
            eq(sys!(SYS_read, ready[0], &mut b, 1), 1);
            shut(ready);
            7
        });
        shut([p[1]]);
        exits(init, 7);
        // The last writer is gone.
        let mut b = [0u8];
        eq(sys!(SYS_read, p[0], &mut b, 1), 0);
        shut([p[0]]);
        err(sys!(SYS_clone, SIGCHLD, 0, 0, 0, 0), ENOMEM);
        err(sys!(SYS_wait4, -1, 0, 0, 0), ECHILD);
    });
}

fn init_and_signals() {
    alone(|| {
        let p = pipe_pair();
        let init = as_init(|| {
            // From within: only what it has a handler for.
            for signal in [SIGKILL, SIGSTOP, SIGTERM, SIGUSR1, SIGABRT, SIGRTMIN()] {
                eq(sys!(SYS_kill, 1, signal), 0);
                exits(child(|| sys!(SYS_kill, 1, signal) as i32), 0);
            }
            {
                let _on = sig::on(SIGUSR2, 0);
                sig::raise(SIGUSR2);
                eq(sig::hits(), 1);
            }
            // One that was blocked is forgotten later.
            sig::mask(SIG_BLOCK, sig::set(&[SIGTERM]));
            eq(sys!(SYS_kill, 1, SIGTERM), 0);
            eq(sig::pending(), sig::set(&[SIGTERM]));
            sig::mask(SIG_UNBLOCK, sig::set(&[SIGTERM]));
            // Everybody but itself.
            let pid = child(|| {
                loop {
                    sys!(SYS_pause);
                }
            });
            eq(sys!(SYS_kill, -1, SIGKILL), 0);
            killed_by(pid, SIGKILL);
            err(sys!(SYS_kill, -1, SIGKILL), ESRCH);
            eq(sys!(SYS_write, p[1], b"x", 1), 1);
            loop {
                sys!(SYS_pause);
            }
        });
        // From above: as from within, but SIGKILL and SIGSTOP.
        eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
        eq(sys!(SYS_kill, init, SIGTERM), 0);
        eq(sys!(SYS_kill, init, SIGSTOP), 0);
        let mut status = 0;
        eq(sys!(SYS_wait4, init, &mut status, WUNTRACED, 0), i64::from(init));
        check(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "stopped");
        eq(sys!(SYS_kill, init, SIGCONT), 0);
        eq(sys!(SYS_kill, init, SIGKILL), 0);
        killed_by(init, SIGKILL);
        shut(p);
    });
}

fn init_dies_of_faults() {
    alone(|| {
        let init = as_init(|| {
            ok(sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64; 2], 0));
            // SAFETY: the fault is what is wanted.
            unsafe { (8 as *mut u8).write_volatile(1) };
            0
        });
        killed_by(init, SIGSEGV);
    });
}

fn faults_of_calls() {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWPID));
        // Once until somebody is in it; a process in it may again.
        err(sys!(SYS_unshare, CLONE_NEWPID), EINVAL);
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWPID));
            0
        });
        exits(pid, 0);
        err(sys!(SYS_unshare, CLONE_NEWPID), EINVAL);
    });
    err(sys!(SYS_clone, CLONE_NEWPID | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM, 0, 0, 0, 0), EINVAL);
}

/// Threads belong where their process is.
fn no_threads_elsewhere() {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWPID));
        check(std::thread::Builder::new().spawn(|| ()).is_err(), "no thread");
    });
}

fn numbers_of(dir: &str) -> Vec<i32> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut all: Vec<i32> = entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect();
    all.sort_unstable();
    all
}

fn field(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
    line.unwrap_or("?").to_owned()
}

fn own_proc() {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWNS));
        passes(|| {
            // Its own numbers are not those of a /proc from outside.
            check(std::fs::read_link("/proc/self").is_ok_and(|to| to.to_str() != Some("1")), "the old one");
            ok(mount("proc", "/proc", Some("proc"), 0));
            eq(std::fs::read_link("/proc/self").expect("a link").to_str(), Some("1"));
            eq(std::fs::read_link("/proc/thread-self").expect("a link").to_str(), Some("1/task/1"));
            let pid = child(|| {
                loop {
                    sys!(SYS_pause);
                }
            });
            eq(numbers_of("/proc"), [1, pid]);
            eq(numbers_of(&format!("/proc/{pid}/task")), [pid]);
            let status = format!("/proc/{pid}/status");
            eq(
                ["Pid", "Tgid", "PPid", "NSpid"].map(|name| field(&status, name)),
                ["2", "2", "1", "2"].map(String::from),
            );
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
            check(stat.starts_with("2 (") && stat.contains(" 1 0 0 "), &stat);
            eq(sys!(SYS_faccessat, AT_FDCWD, cstr("/proc/5000/stat"), F_OK), -i64::from(ENOENT));
            eq(std::fs::read_link("/proc/1/ns/pid").ok(), std::fs::read_link("/proc/2/ns/pid").ok());
            ok(sys!(SYS_kill, pid, SIGKILL));
            killed_by(pid, SIGKILL);
            eq(numbers_of("/proc"), [1]);
        });
    });
}

/// Seen from above, who is below has a number for each level.
fn status_of_levels() {
    alone(|| {
        let init = as_init(|| {
            loop {
                sys!(SYS_pause);
            }
        });
        let status = format!("/proc/{init}/status");
        let all: Vec<String> = field(&status, "NSpid").split('\t').map(String::from).collect();
        eq(all.last().map(String::as_str), Some("1"));
        eq(all[all.len() - 2].clone(), init.to_string());
        eq(field(&status, "NStgid").split('\t').count(), all.len());
        let ns = |pid: &str, name: &str| std::fs::read_link(format!("/proc/{pid}/ns/{name}")).ok();
        check(ns("self", "pid") != ns(&init.to_string(), "pid"), "another one");
        eq(ns("self", "pid_for_children"), ns(&init.to_string(), "pid"));
        ok(sys!(SYS_kill, init, SIGKILL));
        killed_by(init, SIGKILL);
    });
}

static FROM: std::sync::atomic::AtomicI32 = std::sync::atomic::AtomicI32::new(-1);

extern "C" fn note(_: i32, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's.
    FROM.store(unsafe { (*info).si_pid() }, std::sync::atomic::Ordering::SeqCst);
}

fn signals_tell_pids() {
    use std::sync::atomic::Ordering::SeqCst;
    alone(|| {
        let _on = sig::with(SIGUSR1, note as *const () as usize, SA_SIGINFO | SA_RESTART);
        let above = getpid();
        let p = pipe_pair();
        let init = as_init(|| {
            let told = |from: i32| {
                until(&format!("from {from}"), || FROM.load(SeqCst) == from);
            };
            let _chld = sig::with(SIGCHLD, note as *const () as usize, SA_SIGINFO | SA_RESTART);
            let pid = child(|| {
                ok(sys!(SYS_kill, 1, SIGUSR1));
                0
            });
            told(pid);
            eq(pid, 2);
            FROM.store(-1, SeqCst);
            let mut info = [0i32; 32];
            ok(sys!(SYS_waitid, P_ALL, 0, &mut info, WEXITED, 0));
            eq(info[4], 2);
            FROM.store(-1, SeqCst);
            eq(sys!(SYS_write, p[1], b"x", 1), 1);
            // Whoever is above has no number here, and cannot say one.
            told(0);
            FROM.store(-1, SeqCst);
            eq(sys!(SYS_write, p[1], b"x", 1), 1);
            told(0);
            0
        });
        let mut b = [0u8];
        eq(sys!(SYS_read, p[0], &mut b, 1), 1);
        ok(sys!(SYS_kill, init, SIGUSR1));
        eq(sys!(SYS_read, p[0], &mut b, 1), 1);
        let mut info = [0i32; 32];
        (info[0], info[2], info[4]) = (SIGUSR1, SI_QUEUE, above as i32);
        ok(sys!(SYS_rt_sigqueueinfo, init, SIGUSR1, &info));
        exits(init, 0);
        check(above > 1, "outside");
        shut(p);
    });
}

fn groups_and_sessions() {
    alone(|| {
        passes(|| {
            eq(sys!(SYS_setsid), 1);
            eq((sys!(SYS_getsid, 0), sys!(SYS_getpgrp)), (1, 1));
            let pid = child(|| {
                eq((sys!(SYS_getsid, 0), sys!(SYS_getpgrp)), (1, 1));
                eq(sys!(SYS_setpgid, 0, 0), 0);
                eq(sys!(SYS_getpgrp), getpid());
                eq(sys!(SYS_getpgid, 1), 1);
                loop {
                    sys!(SYS_pause);
                }
            });
            until("a group of its own", || sys!(SYS_getpgid, pid) == i64::from(pid));
            eq(sys!(SYS_kill, -pid, SIGKILL), 0);
            eq(sys!(SYS_wait4, -pid, 0, 0, 0), i64::from(pid));
        });
    });
}

fn pidfds_across() {
    alone(|| {
        let own = ok(sys!(SYS_pidfd_open, getpid(), 0));
        let p = pipe_pair();
        let init = as_init(|| {
            // A descriptor does not lead up.
            err(sys!(SYS_pidfd_send_signal, own, 0, 0, 0), EINVAL);
            err(sys!(SYS_pidfd_open, 4_000_000, 0), ESRCH);
            shut([ok(sys!(SYS_pidfd_open, 1, 0)) as i32]);
            eq(sys!(SYS_write, p[1], b"x", 1), 1);
            loop {
                sys!(SYS_pause);
            }
        });
        let fd = ok(sys!(SYS_pidfd_open, init, 0));
        let mut b = [0u8];
        shut([p[1]]);
        eq(sys!(SYS_read, p[0], &mut b, 1), 1);
        ok(sys!(SYS_pidfd_send_signal, fd, SIGKILL, 0, 0));
        let mut info = [0i32; 32];
        ok(sys!(SYS_waitid, P_PIDFD, fd, &mut info, WEXITED, 0));
        eq((info[2], info[4], info[6]), (CLD_KILLED, init, SIGKILL));
        shut([p[0]]);
        shut([fd as i32, own as i32]);
    });
}

fn setns_into() {
    let system = is_root();
    alone(|| {
        let init = as_init(|| {
            loop {
                sys!(SYS_pause);
            }
        });
        let file = ok(sys!(SYS_openat, AT_FDCWD, cstr(format!("/proc/{init}/ns/pid")), O_RDONLY)) as i32;
        let back = ok(sys!(SYS_openat, AT_FDCWD, cstr("/proc/self/ns/pid"), O_RDONLY)) as i32;
        // NS_GET_NSTYPE, NS_GET_PARENT: its parent is here.
        eq(sys!(SYS_ioctl, file, 0xb703), i64::from(CLONE_NEWPID));
        let parent = ok(sys!(SYS_ioctl, file, 0xb702)) as i32;
        eq(stat_fd(parent).st_ino, stat_fd(back).st_ino);
        if system {
            ok(sys!(SYS_setns, back, CLONE_NEWPID));
            exits(child(|| i32::from(getpid() < 2)), 0);
        } else {
            // Its own one is not its own to enter.
            eq(sys!(SYS_setns, back, CLONE_NEWPID), -i64::from(EPERM));
        }
        ok(sys!(SYS_setns, file, CLONE_NEWPID));
        let pid = child(|| {
            eq((getpid(), sys!(SYS_getppid)), (2, 0));
            // Not up again.
            err(sys!(SYS_setns, back, CLONE_NEWPID), if system { EINVAL } else { EPERM });
            0
        });
        exits(pid, 0);
        ok(sys!(SYS_kill, init, SIGKILL));
        killed_by(init, SIGKILL);
        err(sys!(SYS_clone, SIGCHLD, 0, 0, 0, 0), ENOMEM);
        shut([file, back, parent]);
    });
}

fn nested() {
    fn down(level: i32) -> i32 {
        if level == 0 {
            return 0;
        }
        if sys!(SYS_unshare, CLONE_NEWPID) != 0 {
            return 100;
        }
        let pid = child(|| {
            if (getpid(), sys!(SYS_getppid)) != (1, 0) {
                return 50;
            }
            down(level - 1)
        });
        WEXITSTATUS(reap(pid))
    }
    alone(|| {
        eq(down(6), 0);
    });
}

/// The number of a traced thread that has ended is free when its tracer has ended too, which never waited for it.
fn numbers_of_lost_tracees() {
    alone(|| {
        passes(|| {
            let (said, go) = (pipe_pair(), pipe_pair());
            let program = child(|| {
                std::thread::spawn(move || {
                    let tid = sys!(SYS_gettid) as i32;
                    sys!(SYS_write, said[1], &tid, 4);
                    sys!(SYS_read, go[0], &mut [0u8], 1);
                });
                loop {
                    sys!(SYS_pause);
                }
            });
            let mut tid = 0i32;
            eq(sys!(SYS_read, said[0], &mut tid, 4), 4);
            let tracer = child(|| {
                ok(pt!(r(PTRACE_SEIZE), tid, 0, 0));
                eq(sys!(SYS_write, go[1], b"g", 1), 1);
                let mut info = [0i32; 32];
                ok(sys!(SYS_waitid, P_PID, tid, &mut info, WEXITED | WNOWAIT | __WALL, 0));
                i32::from(info[2] != CLD_EXITED)
            });
            exits(tracer, 0);
            exits(ok(clone_with(&[tid], 0)) as i32, 0);
            ok(sys!(SYS_kill, program, SIGKILL));
            killed_by(program, SIGKILL);
            shut(said);
            shut(go);
        });
    });
}

fn wanted_numbers() {
    alone(|| {
        err(clone_with(&[5], CLONE_NEWPID), EINVAL);
        exits(ok(clone_with(&[1], CLONE_NEWPID)) as i32, 0);
        passes(|| {
            // Given back, it can be had again.
            for _ in 0..3 {
                exits(ok(clone_with(&[77], 0)) as i32, 0);
            }
            err(clone_with(&[1], 0), EEXIST);
            err(clone_with(&[-1], 0), EINVAL);
        });
    });
}

/// Who makes a child hears its number, though the child has ended and nobody waits for it.
fn children_that_end_at_once() {
    alone(|| {
        passes(|| {
            ok(sys!(SYS_rt_sigaction, SIGCHLD, &[SIG_IGN as u64, 0, 0, 0], 0, 8));
            for _ in 0..1000 {
                let pid = sys!(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
                if pid == 0 {
                    // The parent, if it was told so.
                    child::exit_now(i32::from(getpid() == 1));
                }
                check(pid > 1, "the child's number");
            }
        });
    });
}

fn who_is_a_peer() {
    alone(|| {
        let mut pair = [0i32; 2];
        ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut pair));
        let peer = |fd: i32| {
            let (mut creds, mut len) = ([0i32; 3], 12u32);
            ok(sys!(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &mut creds, &mut len));
            creds[0]
        };
        eq(i64::from(peer(pair[0])), getpid());
        passes(|| {
            eq(peer(pair[0]), 0);
            let mut own = [0i32; 2];
            ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut own));
            eq(peer(own[0]), 1);
            shut(own);
        });
        shut(pair);
    });
}

/// Numbers are given back.
fn many_come_and_go() {
    alone(|| {
        passes(|| {
            for i in 0..300 {
                exits(child(|| 0), 0);
                if i % 30 == 0 {
                    std::thread::spawn(|| ()).join().expect("joined");
                }
            }
            eq(sys!(SYS_kill, -1, 0), -i64::from(ESRCH));
        });
    });
}
