//! ptrace(2): attaching, groups, events, ends, and waits.

use super::tracee::*;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

cases![
    proc_files, errors_of_attach, attach_and_detach, attach_blocked_in_call, seize_interrupt, seize_group_stop_and_listen, group_stop, fork_event, vfork_events, clone_event, thread_event_and_exit, exec_trap, exec_event, exec_of_thread, exit_event, exit_event_of_signal, exitkill, tracer_death_detaches, wait_forms, real_parent_and_tracer, kill_stopped, detach_with_signal, sigchld_of_stops, threads_have_their_own_tracer, wnothread];

fn errors_of_attach() {
    let own = sys!(SYS_getpid) as i32;
    err(pt!(r(PTRACE_ATTACH), own, 0, 0), EPERM);
    err(pt!(r(PTRACE_SEIZE), own, 0, 0), EPERM);
    let pid = child(forever);
    err(pt!(r(PTRACE_SEIZE), pid, 1, 0), EIO);
    err(pt!(r(PTRACE_SEIZE), pid, 0, 1 << 30), EIO);
    ok(pt!(r(PTRACE_SEIZE), pid, 0, PTRACE_O_TRACESYSGOOD));
    err(pt!(r(PTRACE_SEIZE), pid, 0, 0), EPERM);
    err(pt!(r(PTRACE_ATTACH), pid, 0, 0), EPERM);
    ok(sys!(SYS_kill, pid, SIGKILL));
    eq(wait_end(pid), SIGKILL);
    // A zombie.
    let pid = child(|| 0);
    // SAFETY: plain data, for which zeroes are a value.
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_waitid, P_PID, pid, &raw mut i, WEXITED | WNOWAIT, 0));
    err(pt!(r(PTRACE_ATTACH), pid, 0, 0), EPERM);
    eq(wait_end(pid), 0);
    // Not dumpable: of somebody with the capability alone.
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_prctl, PR_SET_DUMPABLE, 0);
        sys!(SYS_write, p[1], b"x", 1);
        forever()
    });
    eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
    shut(p);
    if sys!(SYS_geteuid) != 0 {
        err(pt!(r(PTRACE_ATTACH), pid, 0, 0), EPERM);
    }
    // Of another user: nor then.
    if sys!(SYS_geteuid) == 0 {
        in_child(|| {
            ok(sys!(SYS_setgroups, 0, 0));
            ok(sys!(SYS_setresgid, 1000, 1000, 1000));
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
            err(pt!(r(PTRACE_ATTACH), pid, 0, 0), EPERM);
            err(pt!(r(PTRACE_SEIZE), pid, 0, 0), EPERM);
        });
    }
    ok(sys!(SYS_kill, pid, SIGKILL));
    eq(wait_end(pid), SIGKILL);
}

fn spinning() -> i32 {
    let start = now_ms();
    while now_ms() - start < 5000 {
        std::hint::black_box(());
    }
    1
}

fn attach_and_detach() {
    for busy in [true, false] {
        let pid = child(|| {
            if busy {
                return spinning();
            }
            forever()
        });
        sleep_ms(30);
        ok(pt!(r(PTRACE_ATTACH), pid, 0, 0));
        eq(wait_stop(pid), SIGSTOP);
        eq(regs(pid).cs, 0x33);
        ok(pt!(r(PTRACE_DETACH), pid, 0, 0));
        err(pt!(r(PTRACE_CONT), pid, 0, 0), ESRCH);
        // It runs, and can be attached to again.
        ok(pt!(r(PTRACE_ATTACH), pid, 0, 0));
        eq(wait_stop(pid), SIGSTOP);
        ok(pt!(r(PTRACE_KILL), pid, 0, 0));
        eq(wait_end(pid), SIGKILL);
    }
}

fn attach_blocked_in_call() {
    let p = pipe_pair();
    let pid = child(|| {
        let mut b = [0u8; 1];
        (sys!(SYS_read, p[0], &mut b, 1) != 1) as i32
    });
    until_child_asleep(pid.into());
    ok(pt!(r(PTRACE_ATTACH), pid, 0, 0));
    eq(wait_stop(pid), SIGSTOP);
    let e = regs(pid);
    // It will be restarted.
    eq((e.orig_rax as i64, e.rax as i64), (SYS_read, -512));
    ok(sys!(SYS_write, p[1], b"x", 1));
    finish(pid, 0);
    shut(p);
}

fn seize_interrupt() {
    let pid = child(forever);
    sleep_ms(30);
    ok(pt!(r(PTRACE_SEIZE), pid, 0, PTRACE_O_TRACESYSGOOD));
    // Attaching does not stop it.
    let mut s = 0;
    eq(sys!(SYS_wait4, pid, &mut s, __WALL | WNOHANG, 0), 0);
    ok(pt!(r(PTRACE_INTERRUPT), pid, 0, 0));
    eq(wait_stop(pid), SIGTRAP | 128 << 8);
    let i = info(pid);
    eq((i.si_signo, i.si_code), (SIGTRAP, SIGTRAP | 128 << 8));
    // One that is stopped stays so, and stops again when it goes on.
    ok(pt!(r(PTRACE_INTERRUPT), pid, 0, 0));
    cont(pid);
    eq(wait_stop(pid), SIGTRAP | 128 << 8);
    ok(pt!(r(PTRACE_KILL), pid, 0, 0));
    eq(wait_end(pid), SIGKILL);
}

fn seize_group_stop_and_listen() {
    let pid = child(forever);
    ok(pt!(r(PTRACE_SEIZE), pid, 0, 0));
    ok(sys!(SYS_kill, pid, SIGSTOP));
    eq(wait_stop(pid), SIGSTOP);
    err(pt!(r(PTRACE_LISTEN), pid, 0, 0), EIO);
    go(PTRACE_CONT, pid, SIGSTOP);
    eq(wait_stop(pid), SIGSTOP | 128 << 8);
    ok(pt!(r(PTRACE_LISTEN), pid, 0, 0));
    // Listening, it cannot be asked.
    err(pt!(r(PTRACE_CONT), pid, 0, 0), ESRCH);
    let mut s = 0;
    eq(sys!(SYS_wait4, pid, &mut s, __WALL | WNOHANG, 0), 0);
    ok(sys!(SYS_kill, pid, SIGCONT));
    eq(wait_stop(pid), SIGTRAP | 128 << 8);
    cont(pid);
    eq(wait_stop(pid), SIGCONT);
    ok(pt!(r(PTRACE_KILL), pid, 0, 0));
    eq(wait_end(pid), SIGKILL);
}

fn group_stop() {
    let pid = traced(|| {
        self_raise(SIGTSTP);
        4
    });
    go(PTRACE_CONT, pid, SIGSTOP);
    // The group's stop has no siginfo.
    eq(wait_stop(pid), SIGSTOP);
    // SAFETY: plain data, for which zeroes are a value.
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    err(pt!(r(PTRACE_GETSIGINFO), pid, 0, &raw mut i), EINVAL);
    cont(pid);
    eq(wait_stop(pid), SIGTSTP);
    finish(pid, 4);
}

/// The event's stop.
fn event(n: i32) -> i32 {
    SIGTRAP | n << 8
}

fn fork_event() {
    let pid = traced(|| {
        // SAFETY: the child makes system calls alone until it ends.
        let c = unsafe { libc::fork() };
        if c == 0 {
            return 5;
        }
        let mut s = 0;
        sys!(SYS_wait4, c, &mut s, 0, 0);
        WEXITSTATUS(s)
    });
    options(pid, PTRACE_O_TRACEFORK);
    cont(pid);
    eq(wait_stop(pid), event(PTRACE_EVENT_FORK));
    let new = message(pid) as i32;
    eq(wait_stop(new), SIGSTOP);
    eq(regs(new).rax, 0);
    finish(new, 5);
    cont(pid);
    eq(wait_stop(pid), SIGCHLD);
    finish(pid, 5);
}

fn vfork_events() {
    let pid = traced(|| {
        #[expect(deprecated, reason = "the child ends at once")]
        // SAFETY: the child makes system calls alone until it ends.
        let c = unsafe { libc::vfork() };
        if c == 0 {
            unsafe { _exit(6) };
        }
        let mut s = 0;
        sys!(SYS_wait4, c, &mut s, 0, 0);
        WEXITSTATUS(s)
    });
    options(pid, PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE);
    cont(pid);
    eq(wait_stop(pid), event(PTRACE_EVENT_VFORK));
    let new = message(pid) as i32;
    eq(wait_stop(new), SIGSTOP);
    cont(pid);
    // The parent waits for the child.
    let mut s = 0;
    eq(sys!(SYS_wait4, pid, &mut s, __WALL | WNOHANG, 0), 0);
    cont(new);
    eq(wait_end(new), 6 << 8);
    let mut seen = vec![];
    loop {
        let s = wait_stop(pid);
        seen.push(s);
        cont(pid);
        if seen.len() == 2 {
            break;
        }
    }
    eq(seen, vec![event(PTRACE_EVENT_VFORK_DONE), SIGCHLD]);
    eq(wait_end(pid), 6 << 8);
}

fn clone_event() {
    let pid = traced(|| {
        let c = sys!(SYS_clone, 0, 0, 0, 0, 0) as i32;
        if c == 0 {
            return 7;
        }
        let mut s = 0;
        sys!(SYS_wait4, c, &mut s, __WALL, 0);
        WEXITSTATUS(s)
    });
    options(pid, PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK);
    cont(pid);
    eq(wait_stop(pid), event(PTRACE_EVENT_CLONE));
    let new = message(pid) as i32;
    eq(wait_stop(new), SIGSTOP);
    finish(new, 7);
    finish(pid, 7);
    // CLONE_UNTRACED hides the child, CLONE_PTRACE shows one that no option does.
    let pid = traced(|| {
        let c = sys!(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0) as i32;
        if c == 0 {
            return 0;
        }
        let mut s = 0;
        sys!(SYS_wait4, c, &mut s, 0, 0);
        1
    });
    options(pid, PTRACE_O_TRACEFORK);
    cont(pid);
    eq(wait_stop(pid), SIGCHLD);
    finish(pid, 1);
    let pid = traced(|| {
        let c = sys!(SYS_clone, CLONE_PTRACE, 0, 0, 0, 0) as i32;
        if c == 0 {
            return 3;
        }
        let mut s = 0;
        sys!(SYS_wait4, c, &mut s, __WALL, 0);
        WEXITSTATUS(s)
    });
    cont(pid);
    let mut s = 0;
    let new = ok(sys!(SYS_wait4, -1, &mut s, __WALL, 0)) as i32;
    check(new != pid && s >> 8 == SIGSTOP, "the child stops");
    finish(new, 3);
    eq(wait_end(pid), 3 << 8);
}

fn thread_event_and_exit() {
    let p = pipe_pair();
    let pid = traced(|| {
        std::mem::forget(std::thread::spawn(|| {
            sys!(SYS_exit, 9);
        }));
        (sys!(SYS_read, p[0], &mut [0u8; 1], 1) + 1) as i32
    });
    options(pid, PTRACE_O_TRACECLONE);
    cont(pid);
    eq(wait_stop(pid), event(PTRACE_EVENT_CLONE));
    let new = message(pid) as i32;
    eq(wait_stop(new), SIGSTOP);
    err(sys!(SYS_tgkill, new, new, 0), ESRCH);
    ok(sys!(SYS_tgkill, pid, new, 0));
    // A thread's end is told of, to its tracer alone.
    finish(new, 9);
    cont(pid);
    ok(sys!(SYS_write, p[1], b"x", 1));
    eq(wait_end(pid), 2 << 8);
    shut(p);
}

fn exec_true() -> i32 {
    let path = cstr("/bin/true");
    let argv = [path.as_ptr(), std::ptr::null()];
    let envp = [std::ptr::null::<c_char>()];
    sys!(SYS_execve, path.as_ptr(), argv.as_ptr(), envp.as_ptr());
    9
}

fn exec_trap() {
    let pid = traced(exec_true);
    cont(pid);
    eq(wait_stop(pid), SIGTRAP);
    let i = info(pid);
    eq(i.si_code, SI_USER);
    // SAFETY: the kernel filled in this kind of siginfo.
    unsafe { eq(i.si_pid(), pid) };
    finish(pid, 0);
}

fn exec_event() {
    let pid = traced(exec_true);
    options(pid, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD);
    go(PTRACE_SYSCALL, pid, 0);
    loop {
        if wait_stop(pid) == event(PTRACE_EVENT_EXEC) {
            break;
        }
        go(PTRACE_SYSCALL, pid, 0);
    }
    eq(message(pid), pid as u64);
    // The end of execve comes behind it.
    go(PTRACE_SYSCALL, pid, 0);
    eq(wait_stop(pid), ENTRY);
    eq(message(pid), 2);
    let e = regs(pid);
    eq((e.orig_rax as i64, e.rax), (SYS_execve, 0));
    finish(pid, 0);
}

fn exec_of_thread() {
    let pid = traced(|| {
        std::thread::spawn(exec_true).join().ok();
        1
    });
    options(pid, PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC);
    cont(pid);
    eq(wait_stop(pid), event(PTRACE_EVENT_CLONE));
    let new = message(pid) as i32;
    eq(wait_stop(new), SIGSTOP);
    cont(pid);
    cont(new);
    // It has the leader's number now.
    eq(wait_stop(pid), event(PTRACE_EVENT_EXEC));
    eq(message(pid), new as u64);
    finish(pid, 0);
    err(sys!(SYS_wait4, new, 0, __WALL, 0), ECHILD);
}

fn exit_event() {
    let pid = traced(|| 21);
    options(pid, PTRACE_O_TRACEEXIT);
    cont(pid);
    eq(wait_stop(pid), event(PTRACE_EVENT_EXIT));
    eq(message(pid), 21 << 8);
    eq(regs(pid).orig_rax as i64, SYS_exit_group);
    finish(pid, 21);
}

fn exit_event_of_signal() {
    let pid = traced(|| {
        self_raise(SIGTERM);
        0
    });
    options(pid, PTRACE_O_TRACEEXIT);
    cont(pid);
    eq(wait_stop(pid), SIGTERM);
    go(PTRACE_CONT, pid, SIGTERM);
    eq(wait_stop(pid), event(PTRACE_EVENT_EXIT));
    eq(message(pid), SIGTERM as u64);
    cont(pid);
    eq(wait_end(pid), SIGTERM);
}

/// A child that traces a grandchild and ends; the grandchild's pid.
fn orphan_tracee(options: i32) -> (i32, [i32; 2]) {
    ok(sys!(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1));
    let (p, go_on) = (pipe_pair(), pipe_pair());
    let tracer = child(|| {
        let pid = child(|| {
            sys!(SYS_read, go_on[0], &mut [0u8; 1], 1);
            sys!(SYS_write, p[1], b"lives", 5);
            forever()
        });
        ok(pt!(r(PTRACE_SEIZE), pid, 0, options));
        ok(pt!(r(PTRACE_INTERRUPT), pid, 0, 0));
        wait_stop(pid);
        sys!(SYS_write, p[1], &pid.to_le_bytes(), 4);
        0
    });
    let mut b = [0u8; 4];
    eq(sys!(SYS_read, p[0], &mut b, 4), 4);
    exits(tracer, 0);
    sys!(SYS_write, go_on[1], b"x", 1);
    (i32::from_le_bytes(b), p)
}

fn exitkill() {
    in_child(|| {
        let (pid, p) = orphan_tracee(PTRACE_O_EXITKILL);
        killed_by(pid, SIGKILL);
        shut(p);
    });
}

fn tracer_death_detaches() {
    in_child(|| {
        let (pid, p) = orphan_tracee(0);
        let mut b = [0u8; 5];
        eq(sys!(SYS_read, p[0], &mut b, 5), 5);
        eq(&b, b"lives");
        ok(sys!(SYS_kill, pid, SIGKILL));
        killed_by(pid, SIGKILL);
        shut(p);
    });
}

fn wait_forms() {
    let pid = traced(|| {
        self_raise(SIGUSR1);
        0
    });
    // Reported once.
    let mut s = 0;
    eq(sys!(SYS_wait4, pid, &mut s, __WALL | WNOHANG, 0), 0);
    cont(pid);
    // SAFETY: plain data, for which zeroes are a value.
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    for _ in 0..2 {
        ok(sys!(SYS_waitid, P_PID, pid, &raw mut i, WEXITED | WNOWAIT, 0));
        eq((i.si_signo, i.si_code), (SIGCHLD, CLD_TRAPPED));
        // SAFETY: the kernel filled in this kind of siginfo.
        unsafe { eq((i.si_pid(), i.si_status()), (pid, SIGUSR1)) };
    }
    eq(ok(sys!(SYS_wait4, pid, &mut s, 0, 0)), i64::from(pid));
    eq(s, SIGUSR1 << 8 | 0x7f);
    finish(pid, 0);
    // An event is in the status.
    let pid = traced(|| 0);
    options(pid, PTRACE_O_TRACEEXIT);
    cont(pid);
    ok(sys!(SYS_waitid, P_ALL, 0, &raw mut i, WSTOPPED, 0));
    // SAFETY: the kernel filled in this kind of siginfo.
    unsafe { eq((i.si_code, i.si_status()), (CLD_TRAPPED, event(PTRACE_EVENT_EXIT))) };
    finish(pid, 0);
}

fn real_parent_and_tracer() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        8
    });
    let tracer = child(|| {
        ok(pt!(r(PTRACE_SEIZE), pid, 0, 0));
        ok(pt!(r(PTRACE_INTERRUPT), pid, 0, 0));
        wait_stop(pid);
        cont(pid);
        sys!(SYS_write, p[1], b"x", 1);
        let s = wait_end(pid);
        sleep_ms(100);
        WEXITSTATUS(s)
    });
    // The parent sees no stop, and the end when the tracer has seen it.
    let mut s = 0;
    eq(ok(sys!(SYS_wait4, pid, &mut s, WUNTRACED, 0)), i64::from(pid));
    eq(s, 8 << 8);
    exits(tracer, 8);
    shut(p);
}

fn kill_stopped() {
    let pid = traced(|| 0);
    ok(sys!(SYS_kill, pid, SIGKILL));
    eq(wait_end(pid), SIGKILL);
    let pid = traced(|| 0);
    options(pid, PTRACE_O_TRACESYSGOOD);
    go(PTRACE_SYSCALL, pid, 0);
    eq(wait_stop(pid), ENTRY);
    ok(sys!(SYS_kill, pid, SIGKILL));
    eq(wait_end(pid), SIGKILL);
    // Injected.
    let pid = traced(|| 0);
    go(PTRACE_CONT, pid, SIGKILL);
    eq(wait_end(pid), SIGKILL);
}

fn detach_with_signal() {
    let pid = traced(forever);
    go(PTRACE_DETACH, pid, SIGTERM);
    eq(wait_end(pid), SIGTERM);
    let pid = traced(|| 6);
    go(PTRACE_DETACH, pid, 0);
    eq(wait_end(pid), 6 << 8);
    // The signal that stopped it stops it for good.
    let pid = traced(|| 6);
    go(PTRACE_DETACH, pid, SIGSTOP);
    let mut s = 0;
    eq(ok(sys!(SYS_wait4, pid, &mut s, WUNTRACED, 0)), i64::from(pid));
    eq(s, SIGSTOP << 8 | 0x7f);
    ok(sys!(SYS_kill, pid, SIGCONT));
    eq(wait_end(pid), 6 << 8);
}

fn sigchld_of_stops() {
    in_child(|| {
        sig::handle(SIGCHLD, note as *const () as usize, SA_SIGINFO);
        let pid = child(|| {
            traceme();
            self_raise(SIGUSR1);
            0
        });
        while sys!(SYS_wait4, pid, 0, __WALL, 0) < 0 {}
        eq((CODE.load(SeqCst), STATUS.load(SeqCst)), (CLD_TRAPPED, SIGUSR1));
        cont(pid);
        while sys!(SYS_wait4, pid, 0, __WALL, 0) < 0 {}
        eq((CODE.load(SeqCst), STATUS.load(SeqCst)), (CLD_EXITED, 0));
        // Not of stops when the tracer does not want it.
        sig::handle(SIGCHLD, note as *const () as usize, SA_SIGINFO | SA_NOCLDSTOP);
        CODE.store(-1, SeqCst);
        let pid = traced(|| 0);
        eq(CODE.load(SeqCst), -1);
        cont(pid);
        while sys!(SYS_wait4, pid, 0, __WALL, 0) < 0 {}
        eq(CODE.load(SeqCst), CLD_EXITED);
    });
}

fn threads_have_their_own_tracer() {
    // Requests come from the thread that attached, and from no other.
    let pid = traced(|| 4);
    let other = std::thread::spawn(move || pt!(r(PTRACE_CONT), pid, 0, 0)).join().unwrap();
    err(other, ESRCH);
    // Any thread of it may wait.
    cont(pid);
    let s = std::thread::spawn(move || wait_end(pid)).join().unwrap();
    eq(s, 4 << 8);
    // A tracer's thread that ends lets go.
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_read, p[0], &mut [0u8; 1], 1);
        5
    });
    std::thread::spawn(move || {
        ok(pt!(r(PTRACE_SEIZE), pid, 0, 0));
        ok(pt!(r(PTRACE_INTERRUPT), pid, 0, 0));
        wait_stop(pid);
    })
    .join()
    .unwrap();
    err(pt!(r(PTRACE_CONT), pid, 0, 0), ESRCH);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    exits(pid, 5);
    shut(p);
}

fn wnothread() {
    let pid = child(|| {
        sleep_ms(300);
        5
    });
    let done = std::sync::Arc::new(AtomicI32::new(0));
    let (go_on, tracer) = (done.clone(), done.clone());
    let t = std::thread::spawn(move || {
        ok(pt!(r(PTRACE_SEIZE), pid, 0, 0));
        ok(pt!(r(PTRACE_INTERRUPT), pid, 0, 0));
        // SAFETY: plain data, for which zeroes are a value.
        let mut i: siginfo_t = unsafe { std::mem::zeroed() };
        ok(sys!(SYS_waitid, P_PID, pid, &raw mut i, WEXITED | WNOWAIT | __WNOTHREAD, 0));
        tracer.store(1, SeqCst);
        while tracer.load(SeqCst) == 1 {
            sleep_ms(5);
        }
    });
    while done.load(SeqCst) == 0 {
        sleep_ms(5);
    }
    // A third thread has nothing to do with it; the child's maker has.
    let third = std::thread::spawn(move || sys!(SYS_wait4, pid, 0, WNOHANG | __WNOTHREAD, 0));
    err(third.join().unwrap(), ECHILD);
    // SAFETY: plain data, for which zeroes are a value.
    let mut i: siginfo_t = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_waitid, P_PID, pid, &raw mut i, WEXITED | WNOWAIT | WNOHANG | __WNOTHREAD, 0));
    unsafe { eq(i.si_pid(), pid) };
    eq(sys!(SYS_wait4, pid, 0, WNOHANG, 0), i64::from(pid));
    go_on.store(2, SeqCst);
    t.join().unwrap();
    exits(pid, 5);
}

fn read_text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn proc_files() {
    let pid = traced(|| 0);
    let status = read_text(&format!("/proc/{pid}/status"));
    check(status.contains(&format!("TracerPid:\t{}\n", sys!(SYS_gettid))), &status);
    check(status.contains("State:\tt (tracing stop)\n"), &status);
    let stat = read_text(&format!("/proc/{pid}/task/{pid}/stat"));
    check(stat.contains(") t "), &stat);
    check(!read_text(&format!("/proc/{pid}/maps")).is_empty(), "maps");
    eq(std::fs::read(format!("/proc/{pid}/auxv")).map_or(0, |b| b.len()) >= 16, true);
    go(PTRACE_DETACH, pid, SIGSTOP);
    let mut s = 0;
    ok(sys!(SYS_wait4, pid, &mut s, WUNTRACED, 0));
    let status = read_text(&format!("/proc/{pid}/status"));
    check(status.contains("TracerPid:\t0\n"), &status);
    check(status.contains("State:\tT (stopped)\n"), &status);
    ok(sys!(SYS_kill, pid, SIGKILL));
    killed_by(pid, SIGKILL);
}
