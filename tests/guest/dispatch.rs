//! PR_SET_SYSCALL_USER_DISPATCH of prctl(2): calls that a program answers itself.

use guest_tests::*;
use libc::*;
use std::arch::asm;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering::SeqCst};

cases![modes, selector_blocks, range_passes, inverted_range, not_inherited, bad_selector, strange_selector, of_each_thread];

const OPTION: i32 = 59;
static SELECTOR: AtomicU8 = AtomicU8::new(0);
static CODE: AtomicI64 = AtomicI64::new(0);
static NUMBER: AtomicI64 = AtomicI64::new(0);

fn set(mode: u64, offset: u64, len: u64, selector: usize) -> i64 {
    sys!(SYS_prctl, OPTION, mode, offset, len, selector)
}

fn selector() -> usize {
    SELECTOR.as_ptr() as usize
}

/// Opens the gate, notes what was asked, and answers 4321.
extern "C" fn answer(_: i32, info: *mut siginfo_t, context: *mut c_void) {
    SELECTOR.store(0, SeqCst);
    // SAFETY: a call of libc with live arguments.
    unsafe {
        let info = info.cast::<i32>();
        CODE.store((*info.add(2)).into(), SeqCst);
        // si_syscall behind si_call_addr.
        NUMBER.store((*info.add(6)).into(), SeqCst);
        let context = &mut *context.cast::<ucontext_t>();
        let ax = &mut context.uc_mcontext.gregs[REG_RAX as usize];
        check(*ax == NUMBER.load(SeqCst), "the number is in rax");
        *ax = 4321;
    }
}

fn blocked(nr: i64) -> i64 {
    SELECTOR.store(1, SeqCst);
    let ret: i64;
    // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
    unsafe {
        asm!("syscall", inlateout("rax") nr => ret, in("rdi") 0, lateout("rcx") _, lateout("r11") _);
    }
    SELECTOR.store(0, SeqCst);
    ret
}

fn modes() {
    in_child(|| {
        for (mode, offset, len, selector, want) in [
            (0, 0, 0, 0, 0),
            (0, 1, 0, 0, EINVAL),
            (0, 0, 1, 0, EINVAL),
            (0, 0, 0, 1, EINVAL),
            (1, 0x1000, 0, 0, EINVAL),
            (1, 0x1000, u64::MAX, 0, EINVAL),
            (3, 0, 0, 0, EINVAL),
            (1, 0, 0x7fff_ffff_f000, usize::MAX, EFAULT),
            (1, 0, u64::MAX, 0, 0),
            (0, 0, 0, 0, 0),
        ] {
            eq((mode, offset, len, set(mode, offset, len, selector)), (mode, offset, len, -i64::from(want)));
        }
    });
}

fn selector_blocks() {
    in_child(|| {
        let _on = sig::with(SIGSYS, answer as *const () as usize, SA_SIGINFO);
        ok(set(1, 0, 0, selector()));
        eq(sys!(SYS_getppid) != 4321, true);
        eq(blocked(SYS_getppid), 4321);
        // SYS_USER_DISPATCH
        eq((CODE.load(SeqCst), NUMBER.load(SeqCst)), (2, SYS_getppid));
        // Numbers that the kernel does not know, too.
        eq(blocked(7777), 4321);
        eq(NUMBER.load(SeqCst), 7777);
        for nr in [SYS_getpid, SYS_gettid, SYS_getuid, SYS_rt_sigprocmask] {
            eq(blocked(nr), 4321);
        }
        ok(set(0, 0, 0, 0));
        eq(blocked(SYS_getpid), sys!(SYS_getpid));
    });
}

fn range_passes() {
    in_child(|| {
        let _on = sig::with(SIGSYS, answer as *const () as usize, SA_SIGINFO);
        // Everything passes: the byte is not looked at.
        ok(set(1, 1, (1 << 47) - 1, selector()));
        eq(blocked(SYS_getpid), sys!(SYS_getpid));
        ok(set(1, 1, 4096, selector()));
        eq(blocked(SYS_getpid), 4321);
    });
}

fn inverted_range() {
    in_child(|| {
        if set(2, 4096, 4096, 0) == -i64::from(EINVAL) {
            skip("a kernel before 6.17");
        }
        err(set(2, 0, 0, 0), EINVAL);
        err(set(2, 4096, 0, 0), EINVAL);
        let _on = sig::with(SIGSYS, answer as *const () as usize, SA_SIGINFO);
        ok(set(2, 4096, 4096, selector()));
        eq(blocked(SYS_getpid), sys!(SYS_getpid));
        ok(set(2, 4096, 1 << 47, selector()));
        eq(blocked(SYS_getpid), 4321);
    });
}

fn not_inherited() {
    in_child(|| {
        let _on = sig::with(SIGSYS, answer as *const () as usize, SA_SIGINFO);
        ok(set(1, 0, 0, selector()));
        exits(child(|| i32::from(blocked(SYS_getpid) == 4321)), 0);
        eq(blocked(SYS_getpid), 4321);
        let of_thread = std::thread::spawn(|| blocked(SYS_gettid)).join().unwrap();
        check(of_thread != 4321, "a thread begins without it");
    });
}

fn bad_selector() {
    let pid = child(|| {
        ok(set(1, 0, 0, bad() as usize));
        0
    });
    killed_by(pid, SIGSEGV);
}

fn strange_selector() {
    let pid = child(|| {
        let _on = sig::with(SIGSYS, answer as *const () as usize, SA_SIGINFO);
        ok(set(1, 0, 0, selector()));
        SELECTOR.store(2, SeqCst);
        sys!(SYS_getpid);
        0
    });
    killed_by(pid, SIGSYS);
}

fn of_each_thread() {
    in_child(|| {
        let _on = sig::with(SIGSYS, answer as *const () as usize, SA_SIGINFO);
        let got = std::thread::spawn(|| {
            ok(set(1, 0, 0, selector()));
            let got = blocked(SYS_getppid);
            ok(set(0, 0, 0, 0));
            got
        });
        eq(got.join().unwrap(), 4321);
        check(blocked(SYS_getppid) != 4321, "not this one's");
    });
}
