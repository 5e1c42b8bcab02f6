//! fork(2), vfork(2), clone(2), clone3(2), exit(2), exit_group(2), getpid(2) and kin.

use guest_tests::child::CloneArgs;
use guest_tests::*;
use libc::*;

cases![
    fork_ids, fork_memory_is_private, fork_shares_offsets, fork_clears_pending_and_keeps_handlers, vfork_shares_memory, vfork_parent_and_signals, clone_vm_thread_like,
    clone_fork_like, clone_settid, clone_cleartid_wakes, clone_errors, clone3_basic, clone3_errors, clone_pidfd, clone_parent, exit_codes,
    exit_group_ends_threads, exit_one_thread, main_thread_exits_first, threads_exit_one_by_one, getppid_after_orphan, many_children, gettid_is_pid, deep_fork_chain,
    fork_from_thread, forks_from_threads, clone_exit_signal_zero
];

fn fork_ids() {
    let me = sys!(SYS_getpid);
    let p = pipe_pair();
    let pid = child(|| {
        let v = [sys!(SYS_getpid), sys!(SYS_getppid), sys!(SYS_gettid), sys!(SYS_getpgrp), sys!(SYS_getsid, 0)];
        sys!(SYS_write, p[1], &v, 40);
        0
    });
    let mut v = [0i64; 5];
    eq(sys!(SYS_read, p[0], &mut v, 40), 40);
    exits(pid, 0);
    eq(v, [pid.into(), me, pid.into(), sys!(SYS_getpgrp), sys!(SYS_getsid, 0)]);
    shut(p);
}

fn fork_memory_is_private() {
    let mut x = vec![1u8; 100_000];
    let pid = child(|| {
        x[5] = 2;
        i32::from(x[5])
    });
    exits(pid, 2);
    eq(x[5], 1);
}

fn fork_shares_offsets() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    exits(child(|| sys!(SYS_lseek, fd, 6, SEEK_SET) as i32), 6);
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 6);
    shut([fd]);
}

fn fork_clears_pending_and_keeps_handlers() {
    let _on = sig::on(SIGUSR1, 0);
    let old = sig::mask(SIG_BLOCK, sig::set(&[SIGUSR1]));
    sig::raise(SIGUSR1);
    let pid = child(|| {
        let pending = sig::pending();
        sig::raise(SIGUSR1);
        sig::mask(SIG_SETMASK, 0);
        i32::from(pending != 0) * 10 + sig::hits()
    });
    exits(pid, 1);
    sig::mask(SIG_SETMASK, old);
    eq(sig::hits(), 1);
}

/// vfork and clone with a stack of its own cannot go through a Rust function that returns twice: the child's
/// half is here, in assembly, and only stores `value` at `to` and exits with `code`.
fn clone_store(flags: u64, stack: usize, to: *mut u32, value: u32, code: i32, ptid: usize, ctid: usize) -> i64 {
    let ret: i64;
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov dword ptr [r12], r13d",
            "mov edi, r14d",
            "mov eax, 60",
            "syscall",
            "2:",
            inlateout("rax") SYS_clone => ret, in("rdi") flags, in("rsi") stack, in("rdx") ptid, in("r10") ctid,
            in("r8") 0, in("r12") to, in("r13") value, in("r14") code, lateout("rcx") _, lateout("r11") _,
        );
    }
    ret
}

fn vfork_shares_memory() {
    let mut x = 0u32;
    let pid = ok(clone_store((CLONE_VM | CLONE_VFORK | SIGCHLD) as u64, 0, &mut x, 77, 5, 0, 0)) as i32;
    // The parent runs on only when the child is done.
    eq(unsafe { (&raw const x).read_volatile() }, 77);
    exits(pid, 5);
}

/// vfork's parent waits whatever is sent to it, unless that ends it.
fn vfork_parent_and_signals() {
    // The parent's status; whether it ends at once, its child being there still.
    let ends = |signal, at_once| {
        let (runs, go) = (pipe_pair(), pipe_pair());
        let pid = child(|| {
            let _on = sig::on(SIGUSR1, 0);
            ok(sys!(SYS_setrlimit, RLIMIT_CORE, &[0u64; 2]));
            let pid = ok(sys!(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0));
            if pid == 0 {
                sys!(SYS_write, runs[1], b"r", 1);
                sys!(SYS_read, go[0], &mut [0u8], 1);
                return 0;
            }
            sig::hits()
        });
        eq(sys!(SYS_read, runs[0], &mut [0u8], 1), 1);
        ok(sys!(SYS_kill, pid, signal));
        let early = if at_once { Some(reap(pid)) } else { None };
        if early.is_none() {
            sleep_ms(50);
            eq(sys!(SYS_wait4, pid, 0, WNOHANG, 0), 0);
        }
        eq(sys!(SYS_write, go[1], b"g", 1), 1);
        let status = early.unwrap_or_else(|| reap(pid));
        shut(runs);
        shut(go);
        status
    };
    eq(ends(SIGUSR1, false), 1 << 8);
    eq(ends(SIGTERM, true), SIGTERM);
    eq(ends(SIGKILL, true), SIGKILL);
    // A core file would be written in the parent's own time.
    eq(ends(SIGQUIT, false), SIGQUIT);
}

fn clone_vm_thread_like() {
    let mut stack = vec![0u8; 65536];
    let top = (stack.as_mut_ptr() as usize + 65536) & !15;
    let mut x = 0u32;
    let mut tid = 1u32;
    let flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
    let at = (&raw mut tid) as usize;
    let r = ok(clone_store(flags as u64, top, &mut x, 78, 0, at, at));
    let deadline = now_ms() + 2000;
    while unsafe { (&raw const tid).read_volatile() } != 0 {
        sys!(SYS_futex, at, FUTEX_WAIT, r as i32, &[0i64, 100_000_000], 0, 0);
        check(now_ms() < deadline, "the thread ends");
    }
    eq(unsafe { (&raw const x).read_volatile() }, 78);
    // A thread is no child.
    err(sys!(SYS_wait4, r, 0, 0, 0), ECHILD);
}

fn clone_fork_like() {
    let mut x = 0u32;
    let pid = ok(clone_store(SIGCHLD as u64, 0, &mut x, 9, 4, 0, 0)) as i32;
    exits(pid, 4);
    eq(unsafe { (&raw const x).read_volatile() }, 0);
}

fn clone_settid() {
    let (mut p, mut x) = (0i32, 0u32);
    let at = (&raw mut p) as usize;
    let pid = ok(clone_store((CLONE_PARENT_SETTID | SIGCHLD) as u64, 0, &mut x, 0, 0, at, 0));
    eq(i64::from(unsafe { (&raw const p).read_volatile() }), pid);
    exits(pid as i32, 0);
}

fn clone_cleartid_wakes() {
    let shared = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) as usize;
    let word = shared as *mut u32;
    unsafe { word.write_volatile(5) };
    // Without CLONE_VM the child's copy is a shared page here: exit clears it.
    let mut x = 0u32;
    let pid = ok(clone_store((CLONE_VM | CLONE_VFORK | CLONE_CHILD_CLEARTID | SIGCHLD) as u64, 0, &mut x, 1, 0, 0, shared));
    exits(pid as i32, 0);
    eq(unsafe { word.read_volatile() }, 0);
    ok(sys!(SYS_munmap, shared, 4096));
}

fn clone_errors() {
    let c = |f: i32| sys!(SYS_clone, f as u32 as u64, 0, 0, 0, 0);
    err(c(CLONE_SIGHAND | SIGCHLD), EINVAL);
    err(c(CLONE_THREAD | SIGCHLD), EINVAL);
    err(c(CLONE_THREAD | CLONE_SIGHAND), EINVAL);
    err(c(CLONE_NEWNS | CLONE_FS), EINVAL);
    err(c(CLONE_PIDFD | CLONE_PARENT_SETTID), EINVAL);
}

fn clone3_basic() {
    let a = CloneArgs { exit_signal: SIGCHLD as u64, ..Default::default() };
    let pid = sys!(SYS_clone3, &a, 88);
    if pid == 0 {
        child::exit_now(6);
    }
    exits(ok(pid) as i32, 6);
    let pid = sys!(SYS_clone3, &a, 64);
    if pid == 0 {
        child::exit_now(7);
    }
    exits(ok(pid) as i32, 7);
}

fn clone3_errors() {
    let a = CloneArgs { exit_signal: SIGCHLD as u64, ..Default::default() };
    err(sys!(SYS_clone3, &a, 8), EINVAL);
    err(sys!(SYS_clone3, &a, 5000), E2BIG);
    err(sys!(SYS_clone3, bad(), 88), EFAULT);
    err(sys!(SYS_clone3, &CloneArgs { exit_signal: 99, ..Default::default() }, 88), EINVAL);
    err(sys!(SYS_clone3, &CloneArgs { flags: CLONE_THREAD as u64, ..Default::default() }, 88), EINVAL);
    err(sys!(SYS_clone3, &CloneArgs { stack: 4096, ..Default::default() }, 88), EINVAL);
    err(sys!(SYS_clone3, &CloneArgs { flags: 1 << 40, ..Default::default() }, 88), EINVAL);
}

fn clone_pidfd() {
    let mut fd = -1i32;
    let a = CloneArgs { flags: CLONE_PIDFD as u64, pidfd: (&raw mut fd) as u64, exit_signal: SIGCHLD as u64, ..Default::default() };
    let end = pipe_pair();
    let pid = sys!(SYS_clone3, &a, 88);
    if pid == 0 {
        sys!(SYS_read, end[0], &mut [0u8; 1], 1);
        child::exit_now(3);
    }
    ok(pid);
    let fd = unsafe { (&raw const fd).read_volatile() };
    eq(sys!(SYS_fcntl, fd, F_GETFD), i64::from(FD_CLOEXEC));
    let mut p = pollfd { fd, events: POLLIN, revents: 0 };
    eq(sys!(SYS_poll, &mut p, 1, 0), 0);
    eq(sys!(SYS_write, end[1], b"x", 1), 1);
    eq(sys!(SYS_poll, &mut p, 1, -1), 1);
    eq(p.revents, POLLIN);
    shut(end);
    eq(sys!(SYS_pidfd_send_signal, fd, 0, 0, 0), 0);
    exits(pid as i32, 3);
    err(sys!(SYS_pidfd_send_signal, fd, 0, 0, 0), ESRCH);
    shut([fd]);
    let fd = ok(sys!(SYS_pidfd_open, sys!(SYS_getpid), 0)) as i32;
    shut([fd]);
    err(sys!(SYS_pidfd_open, 0, 0), EINVAL);
    err(sys!(SYS_pidfd_open, 1, 0x10_0000), EINVAL);
    err(sys!(SYS_pidfd_open, 99_999_999, 0), ESRCH);
}

fn clone_parent() {
    let me = sys!(SYS_getpid);
    let p = pipe_pair();
    let pid = child(|| {
        let g = sys!(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if g == 0 {
            let pp = sys!(SYS_getppid);
            sys!(SYS_write, p[1], &pp, 8);
            child::exit_now(9);
        }
        sys!(SYS_write, p[1], &-g, 8);
        0
    });
    let (mut a, mut b) = (0i64, 0i64);
    eq(sys!(SYS_read, p[0], &mut a, 8), 8);
    eq(sys!(SYS_read, p[0], &mut b, 8), 8);
    let (sibling, parent) = if a < 0 { (-a, b) } else { (-b, a) };
    eq(parent, me);
    exits(pid, 0);
    exits(sibling as i32, 9);
    shut(p);
}

fn exit_codes() {
    exits(child(|| 0), 0);
    exits(child(|| 255), 255);
    exits(child(|| 0x1234), 0x34);
    exits(
        child(|| {
            sys!(SYS_exit, 17);
            0
        }),
        17,
    );
}

/// Sleeping and spinning threads end too.
fn exit_group_ends_threads() {
    exits(
        child(|| {
            for _ in 0..3 {
                std::thread::spawn(forever);
            }
            std::thread::spawn(|| {
                loop {
                    std::hint::spin_loop();
                }
            });
            sleep_ms(20);
            21
        }),
        21,
    );
}

fn exit_one_thread() {
    exits(
        child(|| {
            let h = std::thread::spawn(|| {
                sys!(SYS_exit, 3);
            });
            drop(h);
            sleep_ms(30);
            22
        }),
        22,
    );
}

fn main_thread_exits_first() {
    exits(
        child(|| {
            std::thread::spawn(|| {
                sleep_ms(50);
                child::exit_now(23);
            });
            sys!(SYS_exit, 1);
            0
        }),
        23,
    );
}

/// The last thread's status is the process's.
fn threads_exit_one_by_one() {
    exits(
        child(|| {
            std::thread::spawn(|| {
                sleep_ms(50);
                sys!(SYS_exit, 9);
            });
            sys!(SYS_exit, 3);
            0
        }),
        9,
    );
}

fn getppid_after_orphan() {
    let p = pipe_pair();
    let pid = child(|| {
        let middle = sys!(SYS_getpid);
        child(|| {
            let deadline = now_ms() + 2000;
            while sys!(SYS_getppid) == middle && now_ms() < deadline {
                sleep_ms(2);
            }
            let v = [middle, sys!(SYS_getppid)];
            sys!(SYS_write, p[1], &v, 16);
            0
        });
        0
    });
    exits(pid, 0);
    let mut v = [0i64; 2];
    eq(sys!(SYS_read, p[0], &mut v, 16), 16);
    check(v[0] != v[1] && v[1] != sys!(SYS_getpid), "init or a subreaper is the new parent");
    shut(p);
}

fn many_children() {
    let pids: Vec<i32> = (0..50).map(|i| child(move || i)).collect();
    let mut set = pids.clone();
    set.sort_unstable();
    set.dedup();
    eq(set.len(), 50);
    for (i, p) in pids.iter().enumerate() {
        exits(*p, i as i32);
    }
}

fn gettid_is_pid() {
    in_child(|| {
        eq(sys!(SYS_gettid), sys!(SYS_getpid));
        let me = sys!(SYS_getpid);
        let (pid, tid) = std::thread::spawn(|| (sys!(SYS_getpid), sys!(SYS_gettid))).join().unwrap();
        eq(pid, me);
        check(tid != me, "a thread has its own id");
    });
}

fn deep_fork_chain() {
    fn chain(n: i32) -> i32 {
        if n == 0 {
            return 33;
        }
        WEXITSTATUS(reap(child(|| chain(n - 1))))
    }
    eq(chain(20), 33);
}

/// Threads that make processes at the same time, again and again: each child runs.
fn forks_from_threads() {
    in_child(|| {
        let make = |n: usize| move || (0..150).for_each(|i| exits(child(|| (n * 16 + i % 16) as i32), (n * 16 + i % 16) as i32));
        let threads: Vec<_> = (0..4).map(|n| std::thread::spawn(make(n))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn fork_from_thread() {
    in_child(|| {
        let r = std::thread::spawn(|| {
            let pid = child(|| i32::from(sys!(SYS_getpid) != sys!(SYS_gettid)) + 40);
            WEXITSTATUS(reap(pid))
        })
        .join()
        .unwrap();
        eq(r, 40);
    });
}

fn clone_exit_signal_zero() {
    let _on = sig::on(SIGCHLD, 0);
    let mut x = 0u32;
    let pid = ok(clone_store(0, 0, &mut x, 0, 2, 0, 0)) as i32;
    // No signal, and only __WALL or __WCLONE sees it.
    err(sys!(SYS_wait4, pid, 0, 0, 0), ECHILD);
    let mut s = 0i32;
    eq(sys!(SYS_wait4, pid, &mut s, __WCLONE, 0), i64::from(pid));
    eq((WEXITSTATUS(s), sig::hits()), (2, 0));
}
