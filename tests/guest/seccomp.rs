//! seccomp(2), prctl(2) with PR_SET_SECCOMP: modes, flags, what filters say and who has them.

use guest_tests::filter::{ALLOW, ARCH, ARGS, ERRNO, IP, NR, add, jump, load, no_new_privs, on, ret, set, stmt};
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

cases![
    actions_and_sizes, errors, needs_no_new_privs, errno_values, precedence, newest_wins, argument_words, architecture,
    instruction_pointer, numbers_beyond, own_calls, hot_calls, log_and_trace, listener_missing, trap, trap_returns, trap_blocked,
    trap_ignored, trap_unhandled, trap_and_restart, kill_process, kill_thread, kill_thread_alone, kill_leader, kill_unknown_action,
    kill_beats_all, exit_judged, sigreturn_judged, strict, strict_by_seccomp, strict_thread, strict_then_filter, filter_then_strict,
    get_mode, blocked_call_goes_on, restart_judged, restart_syscall_judged, path_limit, files_in_proc
];

const SECCOMP_RET_KILL_PROCESS: u32 = 0x8000_0000;
const SECCOMP_RET_USER_NOTIF: u32 = 0x7fc0_0000;
pub const TSYNC: u64 = 1;
pub const NEW_LISTENER: u64 = 8;
pub const TSYNC_ESRCH: u64 = 16;
const WAIT_KILLABLE_RECV: u64 = 32;

fn no_core() {
    let none = [0u64; 2];
    ok(sys!(SYS_setrlimit, RLIMIT_CORE, &none));
}

/// The wait status of a child that runs `f` and exits with what it gives.
#[track_caller]
pub fn status(f: impl FnOnce() -> i32) -> i32 {
    reap(child(|| {
        no_core();
        f()
    }))
}

fn actions_and_sizes() {
    for action in [SECCOMP_RET_KILL_PROCESS, 0, 0x3_0000, 0x5_0000, SECCOMP_RET_USER_NOTIF, 0x7ff0_0000, 0x7ffc_0000, 0x7fff_0000u32] {
        eq(sys!(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action), 0);
    }
    for action in [1u32, 0x1_0000, 0x7fff_0001, 0xffff_0000] {
        err(sys!(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action), EOPNOTSUPP);
    }
    err(sys!(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 1, &0u32), EINVAL);
    err(sys!(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, bad()), EFAULT);
    let mut sizes = [0u16; 3];
    eq(sys!(SYS_seccomp, 3, 0, &mut sizes), 0);
    eq(sizes, [80, 24, 64]);
    err(sys!(SYS_seccomp, 3, 1, &mut sizes), EINVAL);
    err(sys!(SYS_seccomp, 3, 0, bad()), EFAULT);
    err(sys!(SYS_seccomp, 4, 0, 0), EINVAL);
    err(sys!(SYS_seccomp, -1, 0, 0), EINVAL);
}

fn errors() {
    in_child(|| {
        no_new_privs();
        let good = on(SYS_getppid, ALLOW);
        for flags in [64, 1 << 31, TSYNC | NEW_LISTENER, WAIT_KILLABLE_RECV, WAIT_KILLABLE_RECV | TSYNC] {
            err(set(flags, &good), EINVAL);
        }
        // Only the low half of the register counts.
        eq(set(1 << 32, &good), 0);
        // SECCOMP_FILTER_FLAG_LOG, _SPEC_ALLOW, and _TSYNC_ESRCH alone.
        for flags in [0, 2, 4, TSYNC_ESRCH, 2 | 4 | TSYNC] {
            eq(set(flags, &good), 0);
        }
        err(sys!(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0), EFAULT);
        err(sys!(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 64, 0), EINVAL);
        err(sys!(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, bad()), EFAULT);
        let prog = |len: u16, filter: *mut sock_filter| sys!(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &sock_fprog { len, filter });
        err(prog(0, good.as_ptr().cast_mut()), EINVAL);
        err(prog(4097, bad().cast()), EINVAL);
        err(prog(4, std::ptr::null_mut()), EINVAL);
        err(prog(4, bad().cast()), EFAULT);
        let guarded = Guarded::new();
        err(prog(4, guarded.tail(24).cast()), EFAULT);
        err(sys!(SYS_prctl, PR_SET_SECCOMP, 0, 0), EINVAL);
        err(sys!(SYS_prctl, PR_SET_SECCOMP, 3, 0), EINVAL);
        err(sys!(SYS_prctl, PR_SET_SECCOMP, 2, 0), EFAULT);
        err(sys!(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, 0), EINVAL);
        err(sys!(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 1), EINVAL);
        let prog = sock_fprog { len: 4, filter: good.as_ptr().cast_mut() };
        eq(sys!(SYS_prctl, PR_SET_SECCOMP, 2, &prog, 9, 9), 0);
    });
}

fn needs_no_new_privs() {
    in_child(|| {
        let good = [ret(ALLOW)];
        if sys!(SYS_geteuid) == 0 {
            // CAP_SYS_ADMIN is as good.
            eq(set(0, &good), 0);
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        }
        err(set(0, &good), EACCES);
        err(set(NEW_LISTENER, &good), EACCES);
        err(set(0, &[]), EINVAL);
        let prog = sock_fprog { len: 1, filter: std::ptr::null_mut() };
        err(sys!(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog), EACCES);
        err(sys!(SYS_prctl, PR_SET_SECCOMP, 2, &prog), EACCES);
        no_new_privs();
        eq(set(0, &good), 0);
        eq(sys!(SYS_getresuid, &mut 0u32, &mut 0u32, &mut 0u32), 0);
    });
}

fn errno_values() {
    in_child(|| {
        let values: [(i64, u32, i64); 5] = [
            (SYS_getppid, 0, 0),
            (SYS_getpgrp, 1, -1),
            (SYS_getuid, 4095, -4095),
            (SYS_uname, 4096, -4095),
            (SYS_getgid, 0xffff, -4095),
        ];
        for (nr, data, _) in values {
            add(&on(nr, ERRNO | data));
        }
        for (nr, _, value) in values {
            eq(sys!(nr, bad()), value);
        }
    });
}

fn precedence() {
    // From the strictest; each is put both below and above all milder ones.
    let order = [ERRNO | 7, SECCOMP_RET_USER_NOTIF, SECCOMP_RET_TRACE, SECCOMP_RET_LOG, ALLOW];
    let gives = [-7, -i64::from(ENOSYS), -i64::from(ENOSYS), 0, 0];
    for (i, strict) in order.iter().enumerate() {
        for mild in &order[i..] {
            for pair in [[*strict, *mild], [*mild, *strict]] {
                in_child(|| {
                    for value in pair {
                        add(&on(SYS_getpriority, value));
                    }
                    let got = sys!(SYS_getpriority, 0, 0);
                    eq(got.min(0), gives[i]);
                });
            }
        }
    }
}

fn newest_wins() {
    in_child(|| {
        for errno in [3, 5, 4] {
            add(&on(SYS_getppid, ERRNO | errno));
        }
        eq(sys!(SYS_getppid), -4);
        add(&on(SYS_getpgrp, ERRNO | 9));
        eq(sys!(SYS_getppid), -4);
        eq(sys!(SYS_getpgrp), -9);
    });
}

/// An errno made of six argument words, each halved to its high or low part.
fn argument_words() {
    in_child(|| {
        for (i, high) in [(0, false), (1, true), (2, false), (3, true), (4, false), (5, true)] {
            let nr = [SYS_getppid, SYS_getpgrp, SYS_getuid, SYS_getgid, SYS_geteuid, SYS_getegid][i];
            add(&[
                load(NR),
                jump(BPF_JEQ | BPF_K, nr as u32, 0, 3),
                load(ARGS + 8 * i as u32 + 4 * u32::from(high)),
                stmt(BPF_ALU | BPF_OR | BPF_K, ERRNO),
                stmt(BPF_RET | BPF_A, 0),
                ret(ALLOW),
            ]);
            let mut args = [u64::MAX; 6];
            args[i] = if high { 77 << 32 | 0xffff_ffff } else { 0xffff_ffff_0000_0000 | 77 };
            eq(sys!(nr, args[0], args[1], args[2], args[3], args[4], args[5]), -77);
        }
    });
}

fn int80(nr: u64, arg: u64) -> i64 {
    let ret: i64;
    // SAFETY: the numbers used have no effect on memory.
    unsafe {
        std::arch::asm!("push rbx", "mov ebx, {arg:e}", "int 0x80", "pop rbx", arg = in(reg) arg, inlateout("rax") nr as i64 => ret,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("rcx") _, out("rdx") _, out("rsi") _, out("rdi") _)
    };
    ret
}

fn architecture() {
    in_child(|| {
        add(&[
            load(ARCH),
            jump(BPF_JEQ | BPF_K, 0xc000_003e, 0, 1),
            ret(ALLOW),
            jump(BPF_JEQ | BPF_K, 0x4000_0003, 1, 0),
            ret(ERRNO | 1),
            load(ARGS),
            stmt(BPF_ALU | BPF_OR | BPF_K, ERRNO),
            stmt(BPF_RET | BPF_A, 0),
        ]);
        eq(int80(20, 0x1_0000_0055) as i32, -0x55);
        check(sys!(SYS_getppid) > 0, "a call of this architecture");
    });
}

core::arch::global_asm!(
    ".globl lz_site_a",
    "lz_site_a:",
    "mov eax, 110",
    "syscall",
    ".globl lz_site_a_end",
    "lz_site_a_end:",
    "ret",
    ".globl lz_site_b",
    "lz_site_b:",
    "mov eax, 110",
    "syscall",
    "ret",
);

unsafe extern "C" {
    fn lz_site_a() -> i64;
    fn lz_site_b() -> i64;
    static lz_site_a_end: u8;
}

fn instruction_pointer() {
    in_child(|| {
        let at = &raw const lz_site_a_end as u64;
        // SAFETY: getppid.
        let both = || unsafe { (lz_site_a(), lz_site_b()) };
        let mine = both().0;
        check(mine > 0 && both().1 == mine, "without a filter");
        add(&[
            load(IP),
            jump(BPF_JEQ | BPF_K, at as u32, 0, 3),
            load(IP + 4),
            jump(BPF_JEQ | BPF_K, (at >> 32) as u32, 0, 1),
            ret(ERRNO | 6),
            ret(ALLOW),
        ]);
        for _ in 0..300 {
            eq(both(), (-6, mine));
        }
    });
}

/// Numbers that no call has, and those of the x32 kind.
fn numbers_beyond() {
    in_child(|| {
        for nr in [0x4000_0027u32, 5000, 0xffff_ffff, 0x8000_0001] {
            add(&on(i64::from(nr), ERRNO | 3));
            eq(sys!(i64::from(nr)), -3);
            eq(sys!(i64::from(nr) | 0x7_0000_0000), -3);
        }
        check(sys!(SYS_getpid) > 0, "the call without the x32 bit");
        err(sys!(5001), ENOSYS);
    });
}

/// Calls that some kernels answer without being entered.
fn own_calls() {
    in_child(|| {
        let own = [
            SYS_getpid,
            SYS_gettid,
            SYS_getuid,
            SYS_geteuid,
            SYS_getgid,
            SYS_getegid,
            SYS_rt_sigprocmask,
            SYS_set_robust_list,
            SYS_rseq,
            SYS_sched_yield,
        ];
        let mut head = [0u64; 3];
        let mut ask = || own.map(|nr| (0..100).map(|_| sys!(nr, 0, 0, &mut head, 8)).max().unwrap_or(0));
        check(ask().iter().all(|v| *v != -8), "before");
        for nr in own {
            add(&on(nr, ERRNO | 8));
        }
        for _ in 0..5 {
            eq(ask(), [-8; 10]);
            // Whatever tells anew what the answers are.
            ok(sys!(SYS_setresgid, -1, -1, -1));
        }
        exits(child(|| i32::from(ask() != [-8; 10])), 0);
    });
}

fn hot_calls() {
    in_child(|| {
        let mut errors = 0;
        let often = |errors: &mut i32| (0..3000).for_each(|_| *errors += i32::from(sys!(SYS_getpgid, 0) == -5));
        often(&mut errors);
        eq(errors, 0);
        add(&on(SYS_getpgid, ERRNO | 5));
        often(&mut errors);
        eq(errors, 3000);
        for _ in 0..3000 {
            check(sys!(SYS_getpgrp) > 0, "an allowed call");
        }
    });
}

fn log_and_trace() {
    in_child(|| {
        add(&on(SYS_getppid, SECCOMP_RET_LOG));
        check(sys!(SYS_getppid) > 0, "a logged call is made");
        add(&on(SYS_getppid, SECCOMP_RET_TRACE | 5));
        err(sys!(SYS_getppid), ENOSYS);
    });
}

fn listener_missing() {
    in_child(|| {
        add(&on(SYS_getppid, SECCOMP_RET_USER_NOTIF));
        err(sys!(SYS_getppid), ENOSYS);
    });
}

static SEEN: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static RETURNS: AtomicI64 = AtomicI64::new(0);

extern "C" fn on_sigsys(sig: i32, info: *const i32, context: *mut ucontext_t) {
    // SAFETY: the kernel's siginfo and context.
    unsafe {
        let regs = &mut (*context).uc_mcontext.gregs;
        let addr = *(info.add(4).cast::<u64>());
        let seen = [
            sig as u64,
            *info as u64,
            *info.add(1) as u64,
            *info.add(2) as u64,
            u64::from(addr == regs[REG_RIP as usize] as u64),
            *info.add(6) as u64,
            u64::from(*info.add(7) as u32),
            regs[REG_RAX as usize] as u64,
        ];
        SEEN.iter().zip(seen).for_each(|(to, from)| to.store(from, SeqCst));
        let returns = RETURNS.load(SeqCst);
        if returns != 0 {
            regs[REG_RAX as usize] = returns;
        }
    }
}

fn seen() -> [u64; 8] {
    SEEN.each_ref().map(|s| s.swap(0, SeqCst))
}

fn catch(flags: i32) -> sig::On {
    sig::with(SIGSYS, on_sigsys as *const () as usize, SA_SIGINFO | flags)
}

fn trap() {
    in_child(|| {
        let _on = catch(0);
        add(&on(SYS_getpgid, SECCOMP_RET_TRAP | 0x1234));
        // More than once: kernels make sites fast.
        for _ in 0..60 {
            eq(sys!(SYS_getpgid, 0), SYS_getpgid);
            eq(seen(), [31, 31, 0x1234, 1, 1, SYS_getpgid as u64, 0xc000_003e, SYS_getpgid as u64]);
        }
        add(&on(0x4000_0055, SECCOMP_RET_TRAP));
        eq(sys!(0x4000_0055), 0x4000_0055);
        eq(seen()[5], 0x4000_0055);
    });
}

fn trap_returns() {
    in_child(|| {
        let _on = catch(0);
        add(&on(SYS_getpgid, SECCOMP_RET_TRAP));
        RETURNS.store(-77, SeqCst);
        for _ in 0..20 {
            eq(sys!(SYS_getpgid, 0), -77);
        }
        eq(seen()[0], 31);
        RETURNS.store(0, SeqCst);
    });
}

fn trap_blocked() {
    let s = status(|| {
        let _on = catch(0);
        sig::mask(SIG_BLOCK, sig::set(&[SIGSYS]));
        add(&on(SYS_getppid, SECCOMP_RET_TRAP));
        sys!(SYS_getppid);
        1
    });
    eq(s, SIGSYS);
}

fn trap_ignored() {
    let s = status(|| {
        let _on = sig::with(SIGSYS, SIG_IGN, 0);
        add(&on(SYS_getppid, SECCOMP_RET_TRAP));
        sys!(SYS_getppid);
        1
    });
    eq(s, SIGSYS);
}

/// The whole process, not the thread.
fn trap_unhandled() {
    let s = status(|| {
        add(&on(SYS_getppid, SECCOMP_RET_TRAP));
        let _ = thread::spawn(|| sys!(SYS_getppid)).join();
        1
    });
    eq(s, SIGSYS);
}

/// A trapped call is over: SA_RESTART does not make it again.
fn trap_and_restart() {
    in_child(|| {
        let _on = catch(SA_RESTART);
        add(&on(SYS_pause, SECCOMP_RET_TRAP));
        eq(sys!(SYS_pause), SYS_pause);
        eq(seen()[5], SYS_pause as u64);
    });
}

fn kill_process() {
    let s = status(|| {
        let _on = catch(0);
        add(&on(SYS_getppid, SECCOMP_RET_KILL_PROCESS));
        let _ = thread::spawn(|| sys!(SYS_getppid)).join();
        1
    });
    eq(s, SIGSYS);
    // The parent is told so.
    in_child(|| {
        let pid = child(|| {
            no_core();
            add(&on(SYS_getppid, SECCOMP_RET_KILL_PROCESS));
            sys!(SYS_getppid);
            1
        });
        let mut info = [0i32; 32];
        eq(sys!(SYS_waitid, P_PID, pid, &mut info, WEXITED, 0), 0);
        // CLD_KILLED
        eq((info[0], info[2], info[6]), (SIGCHLD, 2, SIGSYS));
    });
}

/// Waits until this process has `n` threads.
pub fn until_threads(n: usize) {
    for _ in 0..2000 {
        let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        if text.lines().any(|l| l == format!("Threads:\t{n}")) {
            return;
        }
        sleep_ms(1);
    }
    panic!("never {n} threads");
}

fn kill_thread() {
    let s = status(|| {
        let _on = catch(0);
        add(&on(SYS_getppid, SECCOMP_RET_KILL_THREAD));
        let (tx, rx) = mpsc::channel();
        let _thread = thread::spawn(move || {
            sys!(SYS_getppid);
            let _ = tx.send(());
        });
        until_threads(1);
        // Nothing of the thread's was run any more.
        check(rx.try_recv().is_err(), "it sent nothing");
        5
    });
    eq(s, 5 << 8);
}

fn kill_thread_alone() {
    let s = status(|| {
        let _on = catch(0);
        add(&on(SYS_getppid, SECCOMP_RET_KILL_THREAD));
        sys!(SYS_getppid);
        1
    });
    eq(s, SIGSYS);
}

/// The leader is killed, another thread ends the process: by exit_group(2), and by exit(2).
fn kill_leader() {
    for (nr, wanted) in [(SYS_exit_group, 9 << 8), (SYS_exit, 9 << 8)] {
        let s = status(|| {
            add(&on(SYS_getppid, SECCOMP_RET_KILL_THREAD));
            let _thread = thread::spawn(move || {
                let own = format!("/proc/self/task/{}/status", sys!(SYS_getpid));
                for _ in 0..2000 {
                    let text = std::fs::read_to_string(&own).unwrap_or_default();
                    if text.is_empty() || text.contains("State:\tZ") {
                        break;
                    }
                    sleep_ms(1);
                }
                sys!(nr, 9);
            });
            sys!(SYS_getppid);
            1
        });
        eq(s, wanted);
    }
}

fn kill_unknown_action() {
    for value in [0x1_0000u32, 0x7ffe_0000, 0x4_0000, 0x9000_0000] {
        let s = status(|| {
            add(&on(SYS_getppid, value));
            let _ = thread::spawn(|| sys!(SYS_getppid)).join();
            1
        });
        eq(s, SIGSYS);
    }
}

fn kill_beats_all() {
    let s = status(|| {
        let _on = catch(0);
        for value in [SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_TRAP, ERRNO | 1] {
            add(&on(SYS_getppid, value));
        }
        let _ = thread::spawn(|| sys!(SYS_getppid)).join();
        1
    });
    eq(s, SIGSYS);
    let s = status(|| {
        let _on = catch(0);
        for value in [SECCOMP_RET_KILL_THREAD, SECCOMP_RET_TRAP, ERRNO | 1] {
            add(&on(SYS_getppid, value));
        }
        let _thread = thread::spawn(|| sys!(SYS_getppid));
        until_threads(1);
        eq(seen()[0], 0);
        3
    });
    eq(s, 3 << 8);
}

fn exit_judged() {
    let s = status(|| {
        add(&on(SYS_exit_group, SECCOMP_RET_KILL_PROCESS));
        7
    });
    eq(s, SIGSYS);
    let s = status(|| {
        add(&on(SYS_exit, ERRNO | 33));
        (-sys!(SYS_exit, 1)) as i32
    });
    eq(s, 33 << 8);
}

fn sigreturn_judged() {
    let s = status(|| {
        let _on = sig::on(SIGUSR1, 0);
        sig::raise(SIGUSR1);
        add(&on(SYS_rt_sigreturn, SECCOMP_RET_KILL_PROCESS));
        sig::raise(SIGUSR1);
        1
    });
    eq(s, SIGSYS);
}

fn strict() {
    let p = pipe_pair();
    let s = status(|| {
        let _on = sig::on(SIGALRM, 0);
        // SAFETY: a timer of this process.
        unsafe { alarm(0) };
        ok(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0));
        let mut byte = [0u8];
        sys!(SYS_write, p[1], b"x", 1);
        sys!(SYS_read, p[0], &mut byte, 1);
        sys!(SYS_exit, i32::from(byte[0]));
        1
    });
    eq(s, i32::from(b'x') << 8);
    for nr in [SYS_getpid, SYS_exit_group, SYS_prctl, SYS_close, 0x4000_0000, 5000, -1] {
        let s = status(|| {
            let _on = sig::on(SIGSYS, 0);
            ok(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0));
            sys!(nr, 0);
            sys!(SYS_exit, 1);
            1
        });
        eq(s, SIGKILL);
    }
    // Signals are handled and returned from.
    let s = status(|| {
        let _on = sig::on(SIGUSR1, 0);
        let (pid, me) = (sys!(SYS_getpid), sys!(SYS_gettid));
        let helper = child(|| {
            sleep_ms(50);
            until_child_asleep(pid);
            ok(sys!(SYS_tgkill, pid, me, SIGUSR1));
            0
        });
        check(helper > 0, "a helper");
        let p = pipe_pair();
        ok(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0));
        let mut byte = [0u8];
        let r = sys!(SYS_read, p[0], &mut byte, 1);
        sys!(SYS_exit, i32::from(r == -i64::from(EINTR) && sig::hits() == 1) + 20);
        1
    });
    eq(s, 21 << 8);
    shut(p);
}

fn strict_by_seccomp() {
    let s = status(|| {
        ok(sys!(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0));
        sys!(SYS_exit, 4);
        1
    });
    eq(s, 4 << 8);
}

/// Strict mode kills the thread alone.
fn strict_thread() {
    let s = status(|| {
        let _thread = thread::spawn(|| {
            ok(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0));
            sys!(SYS_getpid);
        });
        until_threads(1);
        6
    });
    eq(s, 6 << 8);
}

fn strict_then_filter() {
    let s = status(|| {
        ok(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0));
        set(0, &[ret(ALLOW)]);
        sys!(SYS_exit, 1);
        1
    });
    eq(s, SIGKILL);
}

fn filter_then_strict() {
    in_child(|| {
        add(&[ret(ALLOW)]);
        err(sys!(SYS_prctl, PR_SET_SECCOMP, 1, 0, 0, 0), EINVAL);
        err(sys!(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0), EINVAL);
        eq(sys!(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0), 2);
    });
}

fn get_mode() {
    in_child(|| {
        eq(sys!(SYS_prctl, PR_GET_SECCOMP, 9, 9, 9, 9), 0);
        add(&[ret(ALLOW)]);
        eq(sys!(SYS_prctl, PR_GET_SECCOMP, 9, 9, 9, 9), 2);
    });
}

/// A call that had begun is not judged when it is gone on with.
fn blocked_call_goes_on() {
    in_child(|| {
        let p = pipe_pair();
        let reader = blocked(move || sys!(SYS_read, p[0], &mut [0u8; 8], 8));
        no_new_privs();
        eq(set(TSYNC, &on(SYS_read, ERRNO | EXDEV as u32)), 0);
        sleep_ms(20);
        eq(sys!(SYS_write, p[1], b"abc", 3), 3);
        eq(reader.join().unwrap(), 3);
        err(sys!(SYS_read, p[0], &mut [0u8; 8], 8), EXDEV);
    });
}

/// One that is made again after a signal is.
fn restart_judged() {
    in_child(|| {
        static TID: AtomicI32 = AtomicI32::new(0);
        let _on = sig::on(SIGUSR1, SA_RESTART);
        let p = pipe_pair();
        let reader = blocked(move || {
            TID.store(sys!(SYS_gettid) as i32, SeqCst);
            sys!(SYS_read, p[0], &mut [0u8; 8], 8)
        });
        no_new_privs();
        eq(set(TSYNC, &on(SYS_read, ERRNO | EXDEV as u32)), 0);
        ok(sys!(SYS_tgkill, sys!(SYS_getpid), TID.load(SeqCst), SIGUSR1));
        eq(reader.join().unwrap(), -i64::from(EXDEV));
        eq(sig::hits(), 1);
    });
}

/// A sleep that is gone on with after a stop is another call.
fn restart_syscall_judged() {
    let pid = child(|| {
        add(&on(SYS_restart_syscall, ERRNO | EXDEV as u32));
        let time = [100i64, 0];
        let r = sys!(SYS_nanosleep, &time, 0);
        i32::from(r != -i64::from(EXDEV))
    });
    until_child_asleep(pid.into());
    ok(sys!(SYS_kill, pid, SIGSTOP));
    let mut s = 0;
    ok(sys!(SYS_wait4, pid, &mut s, WUNTRACED, 0));
    ok(sys!(SYS_kill, pid, SIGCONT));
    exits(pid, 0);
}

/// How many filters a call may go through: by what the kernel makes of each instruction, and four more for each.
fn path_limit() {
    let wide = vec![load(NR), jump(BPF_JEQ | BPF_K, 0x8000_0000, 0, 1), ret(ERRNO), ret(ALLOW)];
    let two_ways = vec![load(NR), jump(BPF_JGT | BPF_K, 5000, 1, 2), ret(ERRNO), ret(ERRNO), ret(ALLOW)];
    let mut divides = vec![load(NR); 3];
    divides.push(stmt(BPF_LDX | BPF_IMM, 3));
    divides.push(stmt(BPF_ALU | BPF_DIV | BPF_X, 0));
    divides.push(jump(BPF_JSET | BPF_K, 0, 0, 1));
    divides.extend([ret(ALLOW), ret(ALLOW)]);
    let long = vec![ret(ALLOW); 4096];
    let shapes = [
        (vec![ret(ALLOW)], 3 + 2),
        (on(SYS_getpgrp, ERRNO), 3 + 1 + 1 + 2 + 2),
        (wide, 3 + 1 + 2 + 2 + 2),
        (two_ways, 3 + 1 + 2 + 6),
        (divides, 3 + 3 + 1 + 5 + 2 + 4),
        (long, 3 + 8192),
    ];
    for (program, weight) in shapes {
        in_child(|| {
            no_new_privs();
            let mut count = 0;
            let last = loop {
                match set(0, &program) {
                    0 => count += 1,
                    other => break other,
                }
            };
            err(last, ENOMEM);
            eq(count, (32768 + 4) / (weight + 4));
            check(sys!(SYS_getppid) > 0, "calls are made");
            // Something smaller may still fit.
            let used = count * (weight + 4);
            eq(set(0, &[ret(ALLOW)]) == 0, used + 5 <= 32768);
        });
    }
}

fn files_in_proc() {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/seccomp/{name}")).unwrap_or_default();
    eq(read("actions_avail").as_str(), "kill_process kill_thread trap errno user_notif trace log allow\n");
    check(read("actions_logged").starts_with("kill_process kill_thread trap errno"), "actions_logged");
}
