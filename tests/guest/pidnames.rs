//! pid_namespaces(7): whoever is told of a process is told the number that his own namespace has for it, also when the
//! process has ended; what reaches an init.

use crate::pidns::{as_init, passes};
use crate::tracee::{go, pt, r, traced, traceme, wait_stop};
use guest_tests::child::clone_with;
use guest_tests::space::{alone, is_root, mount};
use guest_tests::*;
use libc::*;

cases![
    ends_and_stops,
    other_exit_signals,
    stops_of_tracees,
    threads_of_tracees,
    end_of_a_parent,
    senders_with_pidfds,
    init_is_spared,
    traced_init_that_faults,
    sysv_objects,
    semaphores,
    pidfds,
    record_locks,
    owners_of_files,
    terminals,
    listeners,
    files_of_proc,
    credentials_of_the_dead,
    timers_of_threads,
    waits_by_pidfd,
    wanted_on_levels,
    locks_with_owners,
    robust_locks
];

const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_GETOWN_EX: i32 = 16;

fn getpid() -> i32 {
    sys!(SYS_getpid) as i32
}

fn gettid() -> i32 {
    sys!(SYS_gettid) as i32
}

/// Blocks `signals` for the rest of the process.
fn block(signals: &[i32]) {
    sig::mask(SIG_BLOCK, sig::set(signals));
}

/// Takes a signal that is blocked: code, pid, user, status.
#[track_caller]
fn taken(signal: i32) -> [i32; 4] {
    let mut info = [0i32; 32];
    let mask = sig::set(&[signal]);
    eq(sys!(SYS_rt_sigtimedwait, &mask, &mut info, &[50i64, 0], 8), i64::from(signal));
    [info[2], info[4], info[5], info[6]]
}

/// SIGCHLD names the child though somebody has waited for it meanwhile.
fn ends_and_stops() {
    alone(|| {
        passes(|| {
            block(&[SIGCHLD]);
            for _ in 0..20 {
                let pid = child(|| 3);
                exits(pid, 3);
                eq(taken(SIGCHLD), [CLD_EXITED, pid, 0, 3]);
            }
            let pid = child(|| {
                sig::raise(SIGSTOP);
                4
            });
            eq(taken(SIGCHLD), [CLD_STOPPED, pid, 0, SIGSTOP]);
            ok(sys!(SYS_kill, pid, SIGCONT));
            eq(taken(SIGCHLD)[1], pid);
            exits(pid, 4);
        });
    });
    // From above, by another number.
    alone(|| {
        block(&[SIGCHLD]);
        let pid = as_init(getpid);
        exits(pid, 1);
        eq(taken(SIGCHLD), [CLD_EXITED, pid, 0, 1]);
    });
}

fn other_exit_signals() {
    alone(|| {
        passes(|| {
            for signal in [SIGUSR1, SIGRTMIN()] {
                block(&[signal]);
                let pid = sys!(SYS_clone, signal, 0, 0, 0, 0) as i32;
                if pid == 0 {
                    child::exit_now(5);
                }
                let mut status = 0;
                eq(sys!(SYS_wait4, pid, &mut status, __WALL, 0), i64::from(pid));
                eq(taken(signal), [CLD_EXITED, pid, 0, 5]);
            }
        });
    });
}

fn stops_of_tracees() {
    alone(|| {
        passes(|| {
            block(&[SIGCHLD]);
            let pid = child(|| {
                traceme();
                sig::raise(SIGSTOP);
                6
            });
            eq(taken(SIGCHLD), [CLD_TRAPPED, pid, 0, SIGSTOP]);
            eq(wait_stop(pid), SIGSTOP);
            let mut info = [0i32; 32];
            ok(pt!(r(PTRACE_GETSIGINFO), pid, 0, &mut info));
            eq((info[2], info[4]), (SI_TKILL, pid));
            // The tracer's choice is its own doing.
            block(&[SIGUSR1]);
            go(PTRACE_SYSCALL, pid, 0);
            wait_stop(pid);
            ok(pt!(r(PTRACE_GETSIGINFO), pid, 0, &mut info));
            eq((info[0], info[4]), (SIGTRAP, pid));
            ok(sys!(SYS_kill, pid, SIGKILL));
            killed_by(pid, SIGKILL);
        });
    });
    // A tracer from above.
    alone(|| {
        block(&[SIGCHLD]);
        let pid = as_init(|| {
            traceme();
            sig::raise(SIGSTOP);
            7
        });
        eq(taken(SIGCHLD), [CLD_TRAPPED, pid, 0, SIGSTOP]);
        eq(wait_stop(pid), SIGSTOP);
        let mut info = [0i32; 32];
        ok(pt!(r(PTRACE_GETSIGINFO), pid, 0, &mut info));
        eq((info[2], info[4]), (SI_TKILL, 1));
        go(PTRACE_CONT, pid, 0);
        exits(pid, 7);
    });
}

/// A thread that ends is a tracee that ends.
fn threads_of_tracees() {
    alone(|| {
        passes(|| {
            let pid = traced(|| {
                std::thread::spawn(|| {}).join().expect("joined");
                0
            });
            ok(pt!(r(PTRACE_SETOPTIONS), pid, 0, i64::from(PTRACE_O_TRACECLONE)));
            block(&[SIGCHLD]);
            let none = [0i64, 0];
            let all = sig::set(&[SIGCHLD]);
            while sys!(SYS_rt_sigtimedwait, &all, 0, &none, 8) > 0 {}
            go(PTRACE_CONT, pid, 0);
            eq(wait_stop(pid), SIGTRAP | PTRACE_EVENT_CLONE << 8);
            let mut tid = 0u64;
            ok(pt!(r(PTRACE_GETEVENTMSG), pid, 0, &mut tid));
            eq(tid as i32, pid + 1);
            let tid = tid as i32;
            eq(wait_stop(tid), SIGSTOP);
            // Who waits may see a stop before its signal is sent: there is one at least, and all when both can be asked.
            taken(SIGCHLD);
            ok(pt!(r(PTRACE_GETEVENTMSG), tid, 0, &mut 0u64));
            while sys!(SYS_rt_sigtimedwait, &all, 0, &none, 8) > 0 {}
            // The thread alone goes on.
            go(PTRACE_CONT, tid, 0);
            let mut told = taken(SIGCHLD);
            while told[0] != CLD_EXITED {
                told = taken(SIGCHLD);
            }
            eq(told[1], tid);
            ok(sys!(SYS_kill, pid, SIGKILL));
        });
    });
}

/// PR_SET_PDEATHSIG says who has ended.
fn end_of_a_parent() {
    alone(|| {
        passes(|| {
            let p = pipe_pair();
            let middle = child(|| {
                child(|| {
                    block(&[SIGUSR1]);
                    ok(sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0));
                    eq(sys!(SYS_write, p[1], b"x", 1), 1);
                    i32::from(taken(SIGUSR1) != [SI_USER, 2, 0, 0])
                });
                let mut b = [0u8];
                eq(sys!(SYS_read, p[0], &mut b, 1), 1);
                0
            });
            eq(middle, 2);
            exits(middle, 0);
            exits(3, 0);
            shut(p);
        });
    });
    // A parent from above has no number.
    alone(|| {
        let p = pipe_pair();
        let q = pipe_pair();
        let middle = child(|| {
            as_init(|| {
                block(&[SIGUSR1]);
                ok(sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0));
                eq(sys!(SYS_write, p[1], b"x", 1), 1);
                let told = taken(SIGUSR1);
                sys!(SYS_write, q[1], &told, 16);
                0
            });
            let mut b = [0u8];
            eq(sys!(SYS_read, p[0], &mut b, 1), 1);
            0
        });
        exits(middle, 0);
        let mut told = [0i32; 4];
        eq(sys!(SYS_read, q[0], &mut told, 16), 16);
        eq(told, [SI_USER, 0, 0, 0]);
        shut(p);
        shut(q);
    });
}

/// A pidfd leads down, not up.
fn senders_with_pidfds() {
    alone(|| {
        let own = ok(sys!(SYS_pidfd_open, getpid(), 0));
        block(&[SIGUSR1]);
        let init = as_init(|| {
            for signal in [0, SIGUSR1] {
                err(sys!(SYS_pidfd_send_signal, own, signal, 0, 0), EINVAL);
            }
            eq(taken(SIGUSR1), [SI_USER, 0, 0, 0]);
            0
        });
        let fd = ok(sys!(SYS_pidfd_open, init, 0));
        ok(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 0));
        exits(init, 0);
        shut([fd as i32, own as i32]);
    });
}

/// Nothing that is set up within a namespace kills or stops its init, unless it has a handler.
fn init_is_spared() {
    alone(|| {
        let name = unique("spared");
        passes(|| {
            let signals = [SIGKILL, SIGSTOP, SIGTERM, SIGABRT, SIGUSR1, SIGRTMIN()];
            let p = pipe_pair();
            let mut b = [0u8; 8];
            for signal in signals {
                ok(sys!(SYS_fcntl, p[0], F_SETOWN, 1));
                ok(sys!(SYS_fcntl, p[0], F_SETSIG, signal));
                ok(sys!(SYS_fcntl, p[0], F_SETFL, O_ASYNC));
                eq(sys!(SYS_write, p[1], b"x", 1), 1);
                eq(sys!(SYS_read, p[0], &mut b, 8), 1);
                exits(child(|| i32::from(sys!(SYS_write, p[1], b"x", 1) != 1)), 0);
                eq(sys!(SYS_read, p[0], &mut b, 8), 1);
                ok(sys!(SYS_fcntl, p[0], F_SETFL, 0));
            }
            shut(p);
            for signal in signals {
                let event = [0u64, signal as u64, 0, 0, 0, 0, 0, 0];
                let mut id = 0;
                ok(sys!(SYS_timer_create, CLOCK_MONOTONIC, &event, &mut id));
                ok(sys!(SYS_timer_settime, id, 0, &[0i64, 0, 0, 1_000_000], 0));
                sleep_ms(3);
                ok(sys!(SYS_timer_delete, id));
            }
            let attr = [0i64, 1, 8, 0, 0, 0, 0, 0];
            let queue = ok(sys!(SYS_mq_open, name, O_CREAT | O_RDWR, 0o600, &attr));
            ok(sys!(SYS_mq_unlink, name));
            for signal in signals {
                ok(sys!(SYS_mq_notify, queue, &[0u64, signal as u64, 0, 0, 0, 0, 0, 0]));
                exits(child(|| sys!(SYS_mq_timedsend, queue, b"x", 1, 0, 0) as i32), 0);
                eq(sys!(SYS_mq_timedreceive, queue, &mut b, 8, 0, 0), 1);
            }
            // To its group, of which it is.
            ok(sys!(SYS_setsid));
            for signal in signals {
                ok(sys!(SYS_kill, 0, signal));
            }
            // Its own timers and limits.
            ok(sys!(SYS_setitimer, ITIMER_REAL, &[0i64, 0, 0, 1000], 0));
            sleep_ms(5);
            eq(getpid(), 1);
        });
    });
}

/// A debugger of an init does not make it mortal, as long as it does not let the fault through with a handler gone.
fn traced_init_that_faults() {
    alone(|| {
        let pid = as_init(|| {
            traceme();
            sig::handle(SIGSEGV, SIG_DFL, 0);
            sig::raise(SIGSTOP);
            // SAFETY: the fault is what is wanted.
            unsafe { (8 as *mut u8).write_volatile(1) };
            0
        });
        eq(wait_stop(pid), SIGSTOP);
        go(PTRACE_CONT, pid, 0);
        eq(wait_stop(pid), SIGSEGV);
        // Let through, it is not lethal: the instruction faults again.
        go(PTRACE_CONT, pid, SIGSEGV);
        eq(wait_stop(pid), SIGSEGV);
        ok(sys!(SYS_kill, pid, SIGTERM));
        go(PTRACE_CONT, pid, 0);
        eq(wait_stop(pid), SIGTERM);
        go(PTRACE_CONT, pid, SIGTERM);
        eq(wait_stop(pid), SIGSEGV);
        ok(pt!(r(PTRACE_DETACH), pid, 0, 0));
        killed_by(pid, SIGSEGV);
    });
}

fn line_of(path: &str, id: i32) -> Vec<i64> {
    let text = std::fs::read_to_string(path).expect("a list");
    let fields = |line: &str| line.split_whitespace().filter_map(|f| f.parse().ok()).collect::<Vec<i64>>();
    text.lines().map(fields).find(|line| line.get(1) == Some(&i64::from(id))).expect("the object")
}

fn sysv_objects() {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWIPC));
        let queue = ok(sys!(SYS_msgget, IPC_PRIVATE, 0o600)) as i32;
        let segment = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096, 0o600)) as i32;
        let own = getpid();
        let numbers = |queue: i32, segment: i32| {
            let (mut msq, mut shm) = ([0i32; 30], [0i32; 28]);
            ok(sys!(SYS_msgctl, queue, IPC_STAT, &mut msq));
            ok(sys!(SYS_shmctl, segment, IPC_STAT, &mut shm));
            // msg_lspid, msg_lrpid; shm_cpid, shm_lpid.
            ([msq[24], msq[25]], [shm[20], shm[21]])
        };
        let init = as_init(|| {
            eq(numbers(queue, segment), ([0, 0], [0, 0]));
            let user = child(|| {
                let mut text = [1u64, 0];
                ok(sys!(SYS_msgsnd, queue, &text, 8, 0));
                ok(sys!(SYS_msgrcv, queue, &mut text, 8, 0, 0));
                let at = ok(sys!(SYS_shmat, segment, 0, 0));
                ok(sys!(SYS_shmdt, at));
                0
            });
            exits(user, 0);
            // The dead keep their names.
            eq(numbers(queue, segment), ([2, 2], [0, 2]));
            let line = line_of("/proc/sysvipc/msg", queue);
            eq([line[5], line[6]], [2, 2]);
            let line = line_of("/proc/sysvipc/shm", segment);
            eq([line[4], line[5]], [0, 2]);
            0
        });
        exits(init, 0);
        let (msq, shm) = numbers(queue, segment);
        check(msq[0] > init && msq[0] == msq[1] && msq[0] == shm[1], &format!("{msq:?} {shm:?}, init {init}"));
        eq(shm[0], own);
        ok(sys!(SYS_msgctl, queue, IPC_RMID, 0));
        ok(sys!(SYS_shmctl, segment, IPC_RMID, 0));
    });
}

fn semaphores() {
    const GETPID: i32 = 11;
    const SETVAL: i32 = 16;
    alone(|| {
        let set = ok(sys!(SYS_semget, IPC_PRIVATE, 1, 0o600)) as i32;
        ok(sys!(SYS_semctl, set, 0, SETVAL, 1));
        eq(sys!(SYS_semctl, set, 0, GETPID, 0), i64::from(getpid()));
        let init = as_init(|| {
            eq(sys!(SYS_semctl, set, 0, GETPID, 0), 0);
            let user = child(|| sys!(SYS_semop, set, &[0i16, -1, 0], 1) as i32);
            exits(user, 0);
            eq(sys!(SYS_semctl, set, 0, GETPID, 0), i64::from(user));
            // What is undone is the dead one's doing.
            let user = child(|| sys!(SYS_semop, set, &[0i16, 1, 0x1000], 1) as i32);
            exits(user, 0);
            eq(sys!(SYS_semctl, set, 0, GETPID, 0), i64::from(user));
            0
        });
        exits(init, 0);
        check(sys!(SYS_semctl, set, 0, GETPID, 0) > i64::from(init), "named from above");
        ok(sys!(SYS_semctl, set, 0, IPC_RMID, 0));
    });
}

/// PIDFD_GET_INFO.
fn info_of(fd: i32) -> Result<[i32; 3], i64> {
    let mut info = [0u64; 8];
    info[0] = 1;
    let answer = sys!(SYS_ioctl, fd, 0xc040_ff0bu32, &mut info);
    if answer < 0 {
        return Err(answer);
    }
    let info = std::hint::black_box(&info);
    Ok([info[2] as i32, (info[2] >> 32) as i32, info[3] as i32])
}

fn fdinfo(fd: i32, name: &str) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}")).expect("fdinfo");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t")).expect("the line");
    line.split('\t').map(|n| n.parse().expect("a number")).collect()
}

fn pidfds() {
    alone(|| {
        let above = ok(sys!(SYS_pidfd_open, getpid(), 0)) as i32;
        let p = pipe_pair();
        let init = as_init(|| {
            ok(sys!(SYS_unshare, CLONE_NEWNS));
            ok(mount("proc", "/proc", Some("proc"), 0));
            let pid = child(|| loop {
                sys!(SYS_pause);
            });
            let fd = ok(sys!(SYS_pidfd_open, pid, 0)) as i32;
            eq(info_of(fd), Ok([2, 2, 1]));
            eq((fdinfo(fd, "Pid"), fdinfo(fd, "NSpid")), (vec![2], vec![2]));
            eq(info_of(above), Err(-i64::from(EREMOTE)));
            eq((fdinfo(above, "Pid"), fdinfo(above, "NSpid")), (vec![0], vec![0]));
            ok(sys!(SYS_kill, pid, SIGKILL));
            killed_by(pid, SIGKILL);
            eq((fdinfo(fd, "Pid"), fdinfo(fd, "NSpid")), (vec![-1], vec![-1]));
            eq(sys!(SYS_write, p[1], b"x", 1), 1);
            loop {
                sys!(SYS_pause);
            }
        });
        shut([p[1]]);
        let mut b = [0u8];
        eq(sys!(SYS_read, p[0], &mut b, 1), 1);
        let fd = ok(sys!(SYS_pidfd_open, init, 0)) as i32;
        eq(info_of(fd), Ok([init, init, getpid()]));
        let all = fdinfo(fd, "NSpid");
        eq((fdinfo(fd, "Pid"), all[all.len() - 2..].to_vec()), (vec![init], vec![init, 1]));
        ok(sys!(SYS_kill, init, SIGKILL));
        killed_by(init, SIGKILL);
        shut([p[0], fd, above]);
    });
}

fn record_locks() {
    alone(|| {
        let t = Tmp::new();
        let fd = ok(sys!(SYS_openat, AT_FDCWD, t.path("locked"), O_CREAT | O_RDWR, 0o600)) as i32;
        let mut lock: flock = unsafe { std::mem::zeroed() };
        (lock.l_type, lock.l_len) = (F_WRLCK as i16, 10);
        ok(sys!(SYS_fcntl, fd, F_SETLK, &lock));
        passes(|| {
            let asked = |start: i64| {
                let mut lock: flock = unsafe { std::mem::zeroed() };
                (lock.l_type, lock.l_start, lock.l_len) = (F_WRLCK as i16, start, 1);
                ok(sys!(SYS_fcntl, fd, F_GETLK, &mut lock));
                (i32::from(lock.l_type), lock.l_pid)
            };
            eq(asked(0), (F_WRLCK, 0));
            (lock.l_start, lock.l_len) = (20, 10);
            ok(sys!(SYS_fcntl, fd, F_SETLK, &lock));
            exits(child(|| i32::from(asked(25) != (F_WRLCK, 1))), 0);
        });
    });
}

fn owners_of_files() {
    alone(|| {
        let p = pipe_pair();
        ok(sys!(SYS_fcntl, p[0], F_SETOWN, getpid()));
        passes(|| {
            eq(sys!(SYS_fcntl, p[0], F_GETOWN), 0);
            let pid = child(|| {
                ok(sys!(SYS_setpgid, 0, 0));
                ok(sys!(SYS_fcntl, p[0], F_SETOWN, 0));
                ok(sys!(SYS_fcntl, p[0], F_SETOWN, -getpid()));
                eq(sys!(SYS_fcntl, p[0], F_GETOWN), -2);
                // F_OWNER_TID
                let mut owner = [0i32, gettid()];
                ok(sys!(SYS_fcntl, p[0], F_SETOWN_EX, &owner));
                ok(sys!(SYS_fcntl, p[0], F_GETOWN_EX, &mut owner));
                eq(owner, [0, 2]);
                0
            });
            exits(pid, 0);
            // The dead are nobody's owners.
            eq(sys!(SYS_fcntl, p[0], F_GETOWN), 0);
            block(&[SIGIO]);
            ok(sys!(SYS_fcntl, p[0], F_SETOWN, 1));
            ok(sys!(SYS_fcntl, p[0], F_SETFL, O_ASYNC));
            exits(child(|| i32::from(sys!(SYS_write, p[1], b"x", 1) != 1)), 0);
            taken(SIGIO);
        });
        shut(p);
    });
}

fn terminals() {
    alone(|| {
        passes(|| {
            eq(sys!(SYS_setsid), 1);
            let (m, s, _) = crate::pty::pair();
            ok(sys!(SYS_ioctl, s, TIOCSCTTY, 0));
            let mut n = 0i32;
            ok(sys!(SYS_ioctl, s, TIOCGSID, &mut n));
            eq(n, 1);
            ok(sys!(SYS_ioctl, s, TIOCGPGRP, &mut n));
            eq(n, 1);
            eq(sys!(SYS_ioctl, s, TIOCSPGRP, &77i32), -i64::from(ESRCH));
            let p = pipe_pair();
            block(&[SIGINT]);
            let pid = child(|| {
                shut([p[1]]);
                ok(sys!(SYS_setpgid, 0, 0));
                let mut b = [0u8];
                sys!(SYS_read, p[0], &mut b, 1);
                taken(SIGINT);
                0
            });
            eq(pid, 2);
            sys!(SYS_setpgid, pid, pid);
            ok(sys!(SYS_ioctl, s, TIOCSPGRP, &pid));
            ok(sys!(SYS_ioctl, s, TIOCGPGRP, &mut n));
            eq(n, pid);
            ok(sys!(SYS_ioctl, m, TIOCGPGRP, &mut n));
            eq(n, pid);
            shut(p);
            crate::pty::put(m, b"\x03");
            exits(pid, 0);
            shut([m]);
        });
    });
}

/// Whose call a listener of seccomp is asked about.
fn listeners() {
    use guest_tests::filter::{ALLOW, NR, load, no_new_privs, on, ret};
    const NEW_LISTENER: u64 = 8;
    const RECV: u32 = 0xc050_2100;
    const SEND: u32 = 0xc018_2101;
    alone(|| {
        let mut pair = [0i32; 2];
        ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut pair));
        let init = as_init(|| {
            let pid = child(|| {
                no_new_privs();
                let mut filter = vec![load(NR)];
                filter.extend(on(SYS_getppid, 0x7fc0_0000));
                filter.push(ret(ALLOW));
                let program = (filter.len() as u64, filter.as_ptr());
                let fd = ok(sys!(SYS_seccomp, 1, NEW_LISTENER, &program)) as i32;
                send_fd(pair[1], fd);
                eq(sys!(SYS_getppid), 55);
                0
            });
            i32::from(reap(pid) != 0)
        });
        let fd = receive_fd(pair[0]);
        let mut notice = [0u64; 10];
        ok(sys!(SYS_ioctl, fd, RECV, &mut notice));
        let seen = std::hint::black_box(&notice)[1] as i32;
        check(seen > init, &format!("{seen}, init {init}"));
        ok(sys!(SYS_ioctl, fd, SEND, &[notice[0], 55, 0]));
        exits(init, 0);
        shut(pair);
        shut([fd]);
    });
}

fn send_fd(socket: i32, fd: i32) {
    let control = [20u64, u64::from(SOL_SOCKET as u32) | (SCM_RIGHTS as u64) << 32, fd as u64];
    let piece = (b"x".as_ptr(), 1usize);
    let message = [0usize, 0, (&raw const piece) as usize, 1, control.as_ptr() as usize, 24, 0];
    eq(sys!(SYS_sendmsg, socket, &message, 0), 1);
}

fn receive_fd(socket: i32) -> i32 {
    let mut control = [0u64; 3];
    let mut b = [0u8];
    let piece = (b.as_mut_ptr(), 1usize);
    let mut message = [0usize, 0, (&raw const piece) as usize, 1, control.as_mut_ptr() as usize, 24, 0];
    eq(sys!(SYS_recvmsg, socket, &mut message, 0), 1);
    std::hint::black_box(&control)[2] as i32
}

fn files_of_proc() {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWNS));
        passes(|| {
            ok(mount("proc", "/proc", Some("proc"), 0));
            let pid = child(|| {
                let text = std::fs::read_to_string("/proc/self/sched").expect("sched");
                i32::from(!text.lines().next().is_some_and(|line| line.contains(" (2, #threads: 1)")))
            });
            exits(pid, 0);
            let load = std::fs::read_to_string("/proc/loadavg").expect("loadavg");
            eq(load.trim().rsplit(' ').next(), Some("2"));
        });
    });
}

fn credentials_of_the_dead() {
    let (system, uid) = (is_root(), sys!(SYS_geteuid));
    check(system || uid > 0, "a user");
    alone(|| {
        let mut pair = [0i32; 2];
        ok(sys!(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, &mut pair));
        ok(sys!(SYS_setsockopt, pair[0], SOL_SOCKET, SO_PASSCRED, &1i32, 4));
        let receive = |fd: i32| {
            let mut control = [0u32; 8];
            let mut b = [0u8; 8];
            let piece = (b.as_mut_ptr(), 8usize);
            let mut message = [0usize, 0, (&raw const piece) as usize, 1, control.as_mut_ptr() as usize, 32, 0];
            eq(sys!(SYS_recvmsg, fd, &mut message, 0), 1);
            let control = std::hint::black_box(&control);
            (control[3], control[4] as i32)
        };
        let init = as_init(|| {
            let pid = child(|| i32::from(sys!(SYS_write, pair[1], b"a", 1) != 1));
            exits(pid, 0);
            eq(receive(pair[0]), (SCM_CREDENTIALS as u32, pid));
            let pid = child(|| i32::from(sys!(SYS_write, pair[1], b"b", 1) != 1));
            exits(pid, 0);
            // Whoever made a connection.
            let mut name: sockaddr_un = unsafe { std::mem::zeroed() };
            name.sun_family = AF_UNIX as u16;
            name.sun_path[1] = b'p' as c_char;
            let listener = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
            ok(sys!(SYS_bind, listener, &name, 6));
            ok(sys!(SYS_listen, listener, 4));
            let pid = child(|| {
                let s = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
                sys!(SYS_connect, s, &name, 6) as i32
            });
            exits(pid, 0);
            let s = ok(sys!(SYS_accept, listener, 0, 0)) as i32;
            let (mut creds, mut len) = ([0i32; 3], 12u32);
            ok(sys!(SYS_getsockopt, s, SOL_SOCKET, SO_PEERCRED, &mut creds, &mut len));
            eq(creds[0], pid);
            0
        });
        exits(init, 0);
        let (kind, pid) = receive(pair[0]);
        eq(kind, SCM_CREDENTIALS as u32);
        check(pid > init, &format!("{pid}, init {init}"));
        shut(pair);
    });
}

fn timers_of_threads() {
    alone(|| {
        passes(|| {
            block(&[SIGRTMIN()]);
            std::thread::spawn(|| {
                let tid = gettid();
                eq(tid, 2);
                let event = |tid: i32| [5u64, SIGRTMIN() as u64 | (SIGEV_THREAD_ID as u64) << 32, tid as u64, 0, 0, 0, 0, 0];
                let mut id = 0;
                err(sys!(SYS_timer_create, CLOCK_MONOTONIC, &event(77), &mut id), EINVAL);
                ok(sys!(SYS_timer_create, CLOCK_MONOTONIC, &event(tid), &mut id));
                ok(sys!(SYS_timer_settime, id, 0, &[0i64, 0, 0, 1000], 0));
                eq(taken(SIGRTMIN())[0], SI_TIMER);
                ok(sys!(SYS_timer_delete, id));
            })
            .join()
            .expect("joined");
        });
    });
}

fn waits_by_pidfd() {
    alone(|| {
        passes(|| {
            let mut fd = 0i32;
            let pid = sys!(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &mut fd, 0, 0);
            if pid == 0 {
                child::exit_now(9);
            }
            eq(pid, 2);
            let mut info = [0i32; 32];
            ok(sys!(SYS_waitid, P_PIDFD, fd, &mut info, WEXITED, 0));
            eq([info[0], info[2], info[4], info[6]], [SIGCHLD, CLD_EXITED, 2, 9]);
            shut([fd]);
        });
    });
}

/// set_tid names a number for each level, the innermost first.
fn wanted_on_levels() {
    alone(|| {
        passes(|| {
            eq(ok(clone_with(&[1, 40], CLONE_NEWPID)), 40);
            exits(40, 0);
            err(clone_with(&[1, 1], CLONE_NEWPID), EEXIST);
            err(clone_with(&[2, 40], CLONE_NEWPID), EINVAL);
            err(clone_with(&[1, 0], CLONE_NEWPID), EINVAL);
            // The same number, free again.
            exits(ok(clone_with(&[1, 40], CLONE_NEWPID)) as i32, 0);
            // A level below, whose init lives.
            ok(sys!(SYS_unshare, CLONE_NEWPID));
            let init = child(|| loop {
                sys!(SYS_pause);
            });
            eq(ok(clone_with(&[30, 50], 0)), 50);
            exits(50, 0);
            err(clone_with(&[1, 50], 0), EEXIST);
            err(clone_with(&[31, init], 0), EEXIST);
            let many = [31; 33];
            err(clone_with(&many, 0), EINVAL);
            // Numbers that were asked for move no others.
            let next = i64::from(init) + 1;
            eq(ok(clone_with(&[30], 0)), next);
            exits(next as i32, 0);
            ok(sys!(SYS_kill, init, SIGKILL));
            killed_by(init, SIGKILL);
        });
    });
}

/// Words of locks hold the number that their owner has for itself.
fn locks_with_owners() {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    alone(|| {
        passes(|| {
            let word = AtomicU32::new(0);
            eq(sys!(SYS_futex, &word, FUTEX_LOCK_PI, 0, 0, 0, 0), 0);
            eq(word.load(SeqCst), 1);
            err(sys!(SYS_futex, &word, FUTEX_LOCK_PI, 0, 0, 0, 0), EDEADLK);
            std::thread::scope(|scope| {
                let other = scope.spawn(|| {
                    eq(sys!(SYS_futex, &word, FUTEX_LOCK_PI, 0, 0, 0, 0), 0);
                    eq((gettid(), word.load(SeqCst) & 0x3fff_ffff), (2, 2));
                    eq(sys!(SYS_futex, &word, FUTEX_UNLOCK_PI, 0, 0, 0, 0), 0);
                });
                until("a waiter", || word.load(SeqCst) & FUTEX_WAITERS != 0);
                eq(sys!(SYS_futex, &word, FUTEX_UNLOCK_PI, 0, 0, 0, 0), 0);
                other.join().expect("joined");
            });
            eq(word.load(SeqCst) & 0x3fff_ffff, 0);
            // A number that only others have for somebody here.
            word.store(4_000_000, SeqCst);
            err(sys!(SYS_futex, &word, FUTEX_LOCK_PI, 0, &[0i64, 0], 0, 0), ESRCH);
        });
    });
}

fn robust_locks() {
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    alone(|| {
        passes(|| {
            let at = unsafe {
                mmap(std::ptr::null_mut(), 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)
            };
            let words = at.cast::<u64>();
            // SAFETY: a word of the page.
            let word = unsafe { &*words.add(9).cast::<AtomicU32>() };
            let pid = child(|| {
                // Head: list, offset of the word from its entry, nothing pending.
                // SAFETY: own memory.
                unsafe {
                    words.write(words.add(8) as u64);
                    words.add(1).write(8);
                    words.add(2).write(0);
                    words.add(8).write(words as u64);
                }
                word.store(getpid() as u32, SeqCst);
                ok(sys!(SYS_set_robust_list, words, 24));
                child::exit_now(0);
            });
            eq(pid, 2);
            exits(pid, 0);
            eq(word.load(SeqCst), FUTEX_OWNER_DIED);
            let mut head = [0usize; 2];
            ok(sys!(SYS_get_robust_list, 1, &mut head[0], &mut head[1]));
            err(sys!(SYS_get_robust_list, 77, &mut head[0], &mut head[1]), ESRCH);
        });
    });
}
