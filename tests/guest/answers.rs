//! Calls that a kernel may answer where they are made: masks, robust lists, advice, actions, alternate stacks. What it keeps
//! aside must not show. The sites are those of `sites`.

use super::sites::{Code, OFTEN, first, nothing, under_signals};
use guest_tests::child::exit_now;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

cases![
    masks, mask_while_signals_come, robust_lists, memory_dropped, memory_dropped_while_signals_come, actions_asked, actions_shared, altstacks,
    altstacks_inherited
];

/// rt_sigprocmask in a form that can be rewritten, and in one that cannot.
fn mask_calls() -> [Code; 2] {
    let r10 = [0x49, 0x89, 0xca];
    let apart = [0xb8, 14, 0, 0, 0, 0x90, 0x0f, 0x05, 0x90, 0xc3];
    [Code::new(&[&r10[..], &first(SYS_rt_sigprocmask)].concat()), Code::new(&[&r10[..], &apart].concat())]
}

fn masks() {
    let (usr1, usr2) = (sig::set(&[SIGUSR1]), sig::set(&[SIGUSR2]));
    let unmaskable = sig::set(&[SIGKILL, SIGSTOP]);
    let at = |mask: &u64| mask as *const u64 as u64;
    let now = || {
        let mut mask = 0u64;
        eq(sys!(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mut mask, 8), 0);
        mask
    };
    for code in mask_calls() {
        let call = code.entry(0);
        let (block, unblock, set) = (SIG_BLOCK as u64, SIG_UNBLOCK as u64, SIG_SETMASK as u64);
        let begin = now();
        for i in 0..OFTEN {
            let old = AtomicU64::new(7);
            eq(call(set, at(&usr1), old.as_ptr() as u64, 8), 0);
            eq(old.load(SeqCst), if i == 0 { begin } else { usr1 });
            eq(call(block, at(&usr2), old.as_ptr() as u64, 8), 0);
            eq((old.load(SeqCst), now()), (usr1, usr1 | usr2));
            eq(call(unblock, at(&usr2), 0, 8), 0);
            eq(call(block, 0, old.as_ptr() as u64, 8), 0);
            eq(old.load(SeqCst), usr1);
            // Without a set, how is not looked at.
            eq(call(77, 0, old.as_ptr() as u64, 8), 0);
            eq(call(77, at(&usr2), 0, 8), -i64::from(EINVAL));
            eq(call(set, at(&usr2), 0, 4), -i64::from(EINVAL));
            eq(call(set, 1, old.as_ptr() as u64, 8), -i64::from(EFAULT));
            eq(now(), usr1);
            eq(call(block, at(&usr2), 1, 8), -i64::from(EFAULT));
            eq(now(), usr1 | usr2);
            // One place for both.
            let both = AtomicU64::new(!0);
            eq(call(set, both.as_ptr() as u64, both.as_ptr() as u64, 8), 0);
            eq((both.load(SeqCst), now()), (usr1 | usr2, !unmaskable));
            eq(call(set, at(&usr1), 0, 8), 0);
        }
        let _on = sig::on(SIGUSR1, 0);
        for i in 1..50 {
            eq(call(set, at(&usr1), 0, 8), 0);
            sys!(SYS_tgkill, sys!(SYS_getpid), sys!(SYS_gettid), SIGUSR1);
            eq(sig::hits(), i - 1);
            eq(call(unblock, at(&usr1), 0, 8), 0);
            eq(sig::hits(), i);
            in_child(|| eq(now(), 0));
        }
        eq(call(set, at(&begin), 0, 8), 0);
    }
}

static BLOCKED: AtomicBool = AtomicBool::new(false);
static WRONG: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn not_while_blocked(_: i32) {
    SEEN.fetch_add(1, SeqCst);
    WRONG.fetch_add(u64::from(BLOCKED.load(SeqCst)), SeqCst);
}

/// Signals from another thread while the mask changes all the time: none comes while it is blocked, each when it is not.
fn mask_while_signals_come() {
    let _on = sig::with(SIGUSR1, not_while_blocked as *const () as usize, SA_RESTART);
    let usr1 = sig::set(&[SIGUSR1]);
    let at = &raw const usr1 as u64;
    for code in mask_calls() {
        let call = code.entry(0);
        under_signals(|| {
            let begin = std::time::Instant::now();
            let mut old = 0u64;
            let told = &raw mut old as u64;
            let mut rounds = 0;
            while rounds < 5000 || too_few(begin) {
                rounds += 1;
                eq(call(SIG_BLOCK as u64, at, told, 8), 0);
                BLOCKED.store(true, SeqCst);
                // What was before, not what an interrupted attempt made of it.
                // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
                eq(unsafe { (told as *const u64).read_volatile() } & usr1, 0);
                BLOCKED.store(false, SeqCst);
                eq(call(SIG_UNBLOCK as u64, at, told, 8), 0);
                // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
                eq(unsafe { (told as *const u64).read_volatile() } & usr1, usr1);
            }
        });
        eq(WRONG.load(SeqCst), 0);
        check(SEEN.swap(0, SeqCst) >= 20, "signals come");
    }
}

fn robust_lists() {
    let code = Code::new(&first(SYS_set_robust_list));
    let call = code.entry(0);
    in_child(|| {
        let (mut head, mut len) = (0u64, 0u64);
        for i in 1..OFTEN as u64 {
            eq(call(i * 16, 24, 0, 0), 0);
            eq(call(i * 16 + 8, 23, 0, 0), -i64::from(EINVAL));
            eq(sys!(SYS_get_robust_list, 0, &mut head, &mut len), 0);
            eq((head, len), (i * 16, 24));
        }
        eq(call(0, 24, 0, 0), 0);
        eq(sys!(SYS_get_robust_list, 0, &mut head, &mut len), 0);
        eq(head, 0);
    });
}

/// madvise in the forms that can be rewritten, and in one that cannot.
fn advice_calls() -> [Code; 2] {
    let apart = [0xb8, 28, 0, 0, 0, 0x90, 0x0f, 0x05, 0x90, 0xc3];
    [Code::new(&first(SYS_madvise)), Code::new(&apart)]
}

fn memory_dropped() {
    let private = MAP_PRIVATE | MAP_ANONYMOUS;
    for code in advice_calls() {
        let call = code.entry(0);
        let at = sys!(SYS_mmap, 0, 4 * 4096, PROT_READ | PROT_WRITE, private, -1, 0) as u64;
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        let byte = |page: u64| unsafe { ((at + page * 4096) as *mut u8).as_mut() }.expect("a page");
        for _ in 0..OFTEN {
            (0..4).for_each(|page| *byte(page) = 7);
            eq(call(at, 2 * 4096, 4, 0), 0);
            eq([0, 1, 2, 3].map(|page| *byte(page)), [0, 0, 7, 7]);
            // Rounded up.
            eq(call(at + 2 * 4096, 1, 4, 0), 0);
            eq((*byte(2), *byte(3)), (0, 7));
            eq(call(at + 1, 4096, 4, 0), -i64::from(EINVAL));
            eq(call(at, 4096, 99, 0), -i64::from(EINVAL));
            eq(call(at, 4 * 4096, 0, 0), 0);
            eq(call(at, 0, 4, 0), 0);
            eq(call(!4095, 2 * 4096, 4, 0), -i64::from(EINVAL));
            eq(*byte(3), 7);
        }
        eq(sys!(SYS_munmap, at + 4096, 4096), 0);
        for _ in 0..OFTEN {
            *byte(3) = 7;
            eq(call(at, 4 * 4096, 4, 0), -i64::from(ENOMEM));
            eq(*byte(3), 0);
        }
        // Locked memory is kept, whichever thread locked it.
        std::thread::scope(|s| s.spawn(|| eq(sys!(SYS_mlock, at, 4096), 0)).join().expect("a thread"));
        *byte(0) = 7;
        eq(call(at, 4096, 4, 0), -i64::from(EINVAL));
        eq(*byte(0), 7);
        in_child(|| {
            eq(call(at, 4096, 4, 0), 0);
            eq(*byte(0), 0);
        });
        eq(sys!(SYS_munlock, at, 4096), 0);
        eq(call(at, 4096, 4, 0), 0);
        eq(*byte(0), 0);
        eq(sys!(SYS_munmap, at, 4 * 4096), 0);
    }
}

static MARKED: AtomicU64 = AtomicU64::new(0);

extern "C" fn mark(_: i32) {
    SEEN.fetch_add(1, SeqCst);
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    if let Some(page) = unsafe { (MARKED.load(SeqCst) as *const AtomicU64).as_ref() } {
        page.fetch_add(1, SeqCst);
    }
}

/// A thousand signals within two seconds are enough; on a busy machine twenty are.
fn too_few(begin: std::time::Instant) -> bool {
    let wanted = if begin.elapsed().as_secs() < 2 { 1000 } else { 20 };
    SEEN.load(SeqCst) < wanted && begin.elapsed().as_secs() < 50
}

/// A call is made once, and is over before a handler runs: what that one writes afterwards stays.
fn memory_dropped_while_signals_come() {
    let at = sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as u64;
    MARKED.store(at, SeqCst);
    let _on = sig::with(SIGUSR1, mark as *const () as usize, SA_RESTART);
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    let page = unsafe { (at as *const AtomicU64).as_ref() }.expect("a page");
    for code in advice_calls() {
        let call = code.entry(0);
        under_signals(|| {
            let begin = std::time::Instant::now();
            let mut rounds = 0;
            while rounds < 5000 || too_few(begin) {
                rounds += 1;
                let (before, marks) = (SEEN.load(SeqCst), page.load(SeqCst));
                eq(call(at, 4096, 4, 0), 0);
                let left = page.load(SeqCst);
                check(left <= SEEN.load(SeqCst) - before || left <= marks + SEEN.load(SeqCst) - before, "dropped");
            }
        });
        check(SEEN.swap(0, SeqCst) >= 20, "signals come");
    }
    MARKED.store(0, SeqCst);
    eq(sys!(SYS_munmap, at, 4096), 0);
}

/// rt_sigaction in a form that can be rewritten, and in one that cannot.
fn action_calls() -> [Code; 2] {
    let r10 = [0x49, 0x89, 0xca];
    let apart = [0xb8, 13, 0, 0, 0, 0x90, 0x0f, 0x05, 0x90, 0xc3];
    [Code::new(&[&r10[..], &first(SYS_rt_sigaction)].concat()), Code::new(&[&r10[..], &apart].concat())]
}

const UNTOUCHED: [u64; 4] = [0; 4];

fn actions_asked() {
    let handler = [nothing as *const () as u64, SA_RESTART as u64 | 0x400_0000, nothing as *const () as u64, 2];
    let pages = sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as u64;
    eq(sys!(SYS_munmap, pages + 4096, 4096), 0);
    for code in action_calls() {
        let call = code.entry(0);
        let get = |signal: i32| {
            let mut old = [7u64; 5];
            eq(call(signal as u64, 0, old.as_mut_ptr() as u64, 8), 0);
            eq(old[4], 7);
            [old[0], old[1], old[2], old[3]]
        };
        let set = |signal: i32, action: &[u64; 4]| eq(sys!(SYS_rt_sigaction, signal, action, 0, 8), 0);
        for _ in 0..OFTEN {
            eq((get(SIGUSR2), get(SIGKILL), get(64)), (UNTOUCHED, UNTOUCHED, UNTOUCHED));
            eq(call(SIGUSR2 as u64, 0, 0, 8), 0);
            let mut old = [7u64; 4];
            let to = old.as_mut_ptr() as u64;
            eq(call(0, 0, to, 8), -i64::from(EINVAL));
            eq(call(65, 0, to, 8), -i64::from(EINVAL));
            eq(call(u64::MAX, 0, to, 8), -i64::from(EINVAL));
            eq(call(SIGUSR2 as u64, 0, to, 4), -i64::from(EINVAL));
            eq(old, [7; 4]);
            // Only the lower half counts.
            eq(call(1 << 32 | SIGUSR2 as u64, 0, to, 8), 0);
            eq(old, UNTOUCHED);
            eq(call(SIGUSR2 as u64, 0, 1, 8), -i64::from(EFAULT));
            eq(call(SIGUSR2 as u64, 0, pages + 4096 - 16, 8), -i64::from(EFAULT));
            eq(call(SIGUSR2 as u64, 1, to, 8), -i64::from(EFAULT));
        }
        for _ in 0..20 {
            std::thread::scope(|s| s.spawn(|| set(SIGUSR2, &handler)).join().expect("a thread"));
            eq(get(SIGUSR2), handler);
            in_child(|| {
                eq(get(SIGUSR2), handler);
                set(SIGUSR2, &UNTOUCHED);
                eq(get(SIGUSR2), UNTOUCHED);
            });
            eq(get(SIGUSR2), handler);
            std::thread::scope(|s| s.spawn(|| eq(get(SIGUSR2), handler)).join().expect("a thread"));
            // Ignored, and the default with flags, are no more what a program finds.
            set(SIGUSR2, &[1, 0, 0, 0]);
            eq(get(SIGUSR2), [1, 0, 0, 0]);
            set(SIGUSR2, &[0, SA_RESTART as u64, 0, 0]);
            eq(get(SIGUSR2), [0, SA_RESTART as u64, 0, 0]);
            set(SIGUSR2, &UNTOUCHED);
            eq(get(SIGUSR2), UNTOUCHED);
        }
    }
    eq(sys!(SYS_munmap, pages, 4096), 0);
}

extern "C" fn take_usr2(action: *mut c_void) -> i32 {
    exit_now(i32::from(sys!(SYS_rt_sigaction, SIGUSR2, action as u64, 0, 8) != 0))
}

/// Actions that two processes share (CLONE_SIGHAND): what one changes the other sees at once.
fn actions_shared() {
    let ignore = [1u64, 0, 0, 0];
    let mut stack = vec![0u8; 1 << 16];
    for code in action_calls() {
        let call = code.entry(0);
        let get = || {
            let mut old = [7u64; 4];
            eq(call(SIGUSR2 as u64, 0, old.as_mut_ptr() as u64, 8), 0);
            old
        };
        for _ in 0..OFTEN {
            eq(get(), UNTOUCHED);
        }
        for action in [&ignore, &UNTOUCHED] {
            let top = stack.as_mut_ptr_range().end.cast();
            let flags = CLONE_VM | CLONE_SIGHAND | SIGCHLD;
            // SAFETY: the child makes system calls alone until it ends.
            let pid = unsafe { clone(take_usr2, top, flags, action.as_ptr() as *mut c_void) };
            check(pid > 0, "a process");
            let mut status = -1;
            eq(sys!(SYS_wait4, pid, &mut status, 0, 0), i64::from(pid));
            eq((status, get()), (0, *action));
        }
    }
}

/// sigaltstack in a form that can be rewritten, and in one that cannot.
fn altstack_calls() -> [Code; 2] {
    let apart = [0xb8, 131, 0, 0, 0, 0x90, 0x0f, 0x05, 0x90, 0xc3];
    [Code::new(&first(SYS_sigaltstack)), Code::new(&apart)]
}

const NO_ALTSTACK: [u64; 3] = [0, SS_DISABLE as u64, 0];
static ON_STACK: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

extern "C" fn on_altstack(_: i32) {
    let here = 0u8;
    let mut now = [7u64; 3];
    let asked = sys!(SYS_sigaltstack, 0, &mut now);
    let changed = sys!(SYS_sigaltstack, &NO_ALTSTACK, 0);
    for (to, value) in ON_STACK.iter().zip([&raw const here as u64, now[1], (asked * 1000 + changed) as u64]) {
        to.store(value, SeqCst);
    }
}

fn altstacks() {
    let mut memory = vec![0u8; 1 << 16];
    let at = memory.as_mut_ptr() as u64;
    let plain = [at, 0, 1 << 16];
    let _on = sig::with(SIGUSR1, on_altstack as *const () as usize, SA_ONSTACK);
    let mut before = [0u64; 3];
    eq(sys!(SYS_sigaltstack, 0, &mut before), 0);
    for code in altstack_calls() {
        let call = code.entry(0);
        let set = |stack: &[u64; 3]| call(stack.as_ptr() as u64, 0, 0, 0);
        let get = || {
            let mut old = [7u64; 4];
            eq(call(0, old.as_mut_ptr() as u64, 0, 0), 0);
            eq(old[3], 7);
            [old[0], old[1], old[2]]
        };
        let handled = || {
            sig::raise(SIGUSR1);
            let [sp, flags, results] = ON_STACK.each_ref().map(|word| word.load(SeqCst));
            ((at..=at + (1 << 16)).contains(&sp), flags, results as i64)
        };
        for _ in 0..OFTEN {
            eq(set(&plain), 0);
            eq(get(), plain);
            let mut old = [7u64; 3];
            eq(call(NO_ALTSTACK.as_ptr() as u64, old.as_mut_ptr() as u64, 0, 0), 0);
            eq((old, get()), (plain, NO_ALTSTACK));
            // The mode counts as none; what is not needed is not looked at.
            eq((set(&[at, 1, 4096]), get()), (0, [at, 0, 4096]));
            eq((set(&[5, 2, 5]), get()), (0, NO_ALTSTACK));
            eq(set(&[at, 0, 2047]), -i64::from(ENOMEM));
            eq(set(&[at, 3, 4096]), -i64::from(EINVAL));
            eq((call(1, 0, 0, 0), call(0, 1, 0, 0)), (-i64::from(EFAULT), -i64::from(EFAULT)));
            eq(call(0, 0, 0, 0), 0);
            // What was is told last.
            eq((call(plain.as_ptr() as u64, 1, 0, 0), get()), (-i64::from(EFAULT), plain));
        }
        for _ in 0..50 {
            eq((set(&plain), handled()), (0, (true, 1, -i64::from(EPERM))));
            eq(get(), plain);
            eq((set(&NO_ALTSTACK), handled()), (0, (false, 2, 0)));
            // SS_AUTODISARM
            let disarmed = [at, 1 << 31, 1 << 16];
            eq((set(&disarmed), get()), (0, disarmed));
            eq(handled(), (true, 2, 0));
            eq((get(), set(&NO_ALTSTACK)), (disarmed, 0));
        }
    }
    eq(sys!(SYS_sigaltstack, &before, 0), 0);
}

fn altstacks_inherited() {
    let mut memory = vec![0u8; 1 << 16];
    let plain = [memory.as_mut_ptr() as u64, 0, 1 << 16];
    let mut before = [0u64; 3];
    eq(sys!(SYS_sigaltstack, 0, &mut before), 0);
    let now = || {
        let mut old = [7u64; 3];
        eq(sys!(SYS_sigaltstack, 0, &mut old), 0);
        old
    };
    for code in altstack_calls() {
        let call = code.entry(0);
        for _ in 0..20 {
            eq(call(plain.as_ptr() as u64, 0, 0, 0), 0);
            in_child(|| eq(now(), plain));
            eq(call(NO_ALTSTACK.as_ptr() as u64, 0, 0, 0), 0);
            in_child(|| eq(now(), NO_ALTSTACK));
            eq(call(plain.as_ptr() as u64, 0, 0, 0), 0);
            // A thread begins without; Rust's own gives it one.
            let other = std::thread::scope(|s| s.spawn(now).join().expect("a thread"));
            check(other[0] != plain[0], "a thread has a stack of its own");
            eq(now(), plain);
        }
    }
    eq(sys!(SYS_sigaltstack, &before, 0), 0);
}
