//! Memory calls through the C library's own functions, over and over: whatever a kernel does to make them fast must not show.
//! And processes whose first thread has gone, which are to work as any other.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

cases![results, code_of_files, while_signals_come, signal_comes_at_once, host_refuses, many_sites_made_writable, first_thread_gone, forks_of_forks_with_threads];

const PAGE: usize = 4096;
const OWN: i32 = MAP_PRIVATE | MAP_ANONYMOUS;
static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn count(_: i32) {
    SEEN.fetch_add(1, SeqCst);
}

fn map(len: usize) -> *mut u8 {
    // SAFETY: new memory.
    let at = unsafe { mmap(std::ptr::null_mut(), len, PROT_READ | PROT_WRITE, OWN, -1, 0) };
    check(at != MAP_FAILED, "mapped");
    at.cast()
}

/// Maps, fills, protects and unmaps; what is in the memory is what was put there.
fn round(fill: u8) {
    let at = map(3 * PAGE);
    // SAFETY: three pages that were just mapped; the middle one may only be read afterwards.
    unsafe {
        eq((at.read_volatile(), at.add(3 * PAGE - 1).read_volatile()), (0, 0));
        at.write_bytes(fill, 3 * PAGE);
        eq(mprotect(at.add(PAGE).cast(), PAGE, PROT_READ), 0);
        eq(at.add(PAGE).read_volatile(), fill);
        eq(munmap(at.cast(), PAGE), 0);
        eq(at.add(2 * PAGE).read_volatile(), fill);
        eq(munmap(at.add(PAGE).cast(), 2 * PAGE), 0);
    }
}

fn results() {
    for i in 0..400 {
        round(i as u8);
        // SAFETY: nothing is mapped by these.
        unsafe {
            eq(munmap(std::ptr::dangling_mut(), PAGE), -1);
            eq(*__errno_location(), EINVAL);
            eq(mprotect(0x1000 as *mut c_void, PAGE, PROT_READ), -1);
            eq(*__errno_location(), ENOMEM);
            eq(mmap(std::ptr::null_mut(), 0, PROT_READ, OWN, -1, 0), MAP_FAILED);
            eq(*__errno_location(), EINVAL);
        }
    }
    for _ in 0..200 {
        // SAFETY: grows the heap and gives that back.
        unsafe {
            let before = sbrk(0);
            eq(sbrk(2 * PAGE as isize), before);
            before.cast::<u8>().add(PAGE).write_volatile(3);
            eq(sbrk(-(2 * PAGE as isize)), before.add(2 * PAGE));
            eq(sbrk(0), before);
        }
    }
}

fn while_signals_come() {
    let _on = sig::with(SIGUSR1, count as *const () as usize, SA_RESTART);
    let stop = AtomicBool::new(false);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    SEEN.store(0, SeqCst);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(SeqCst) {
                sys!(SYS_tgkill, pid, tid, SIGUSR1);
                for _ in 0..200 {
                    std::hint::spin_loop();
                }
            }
        });
        let begin = std::time::Instant::now();
        let mut rounds = 0u32;
        while begin.elapsed().as_millis() < 700 || SEEN.load(SeqCst) < 20 && begin.elapsed().as_secs() < 50 {
            rounds += 1;
            round(rounds as u8);
        }
        stop.store(true, SeqCst);
    });
    check(SEEN.load(SeqCst) >= 20, "signals come");
}

/// Protections that alternate need a mapping each, and there is a limit to those (vm.max_map_count).
fn host_refuses() {
    const PAGES: usize = 140_000;
    let at = map(PAGES * PAGE);
    // SAFETY: mapped above.
    unsafe {
        at.write_volatile(7);
        let mut refused = 0;
        for i in (1..PAGES).step_by(2) {
            if mprotect(at.add(i * PAGE).cast(), PAGE, PROT_READ) != 0 {
                eq(*__errno_location(), ENOMEM);
                refused = i;
                break;
            }
        }
        check(refused > 10_000, "refused at some time");
        eq(at.read_volatile(), 7);
        // The page that was refused is as it was.
        at.add(refused * PAGE).write_volatile(9);
        eq(munmap(at.cast(), PAGES * PAGE), 0);
        round(1);
    }
}

/// Code of a file in which calls are made all the time, mapped once more and made writable: each call says what it did.
fn code_of_files() {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("its maps");
    let code = maps.lines().find(|line| line.contains(" r-xp ") && line.contains("/libc.so")).expect("the C library");
    let words: Vec<&str> = code.split_whitespace().collect();
    let hex = |text: &str| usize::from_str_radix(text, 16).expect("a number");
    let (start, end) = words[0].split_once('-').map(|(start, end)| (hex(start), hex(end))).expect("a range");
    let fd = ok(sys!(SYS_open, cstr(words[5]), O_RDONLY)) as i32;
    let (len, offset) = (end - start, hex(words[2]) as i64);
    let again = map(len);
    for i in 0..200 {
        // SAFETY: only memory that was mapped above, and code of the library that stays what it is.
        unsafe {
            getppid();
            eq(mmap(again.cast(), len, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, offset), again.cast());
            let prot = PROT_READ | PROT_EXEC | if i % 2 == 0 { PROT_WRITE } else { 0 };
            eq(mprotect(again.cast(), len, prot), 0);
            eq(mprotect(start as *mut c_void, len, prot), 0);
        }
    }
    // SAFETY: as above.
    unsafe {
        eq(munmap(again.cast(), len), 0);
    }
    shut([fd]);
}

/// More call sites in a page than are put back at once: who may write the page finds there what was there.
fn many_sites_made_writable() {
    const SITES: usize = 24;
    // mov eax, SYS_getppid; syscall; ret
    const CODE: [u8; 8] = [0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3];
    // So that this function's own calls are used to it.
    (0..100).for_each(|i| round(i as u8));
    let at = map(PAGE);
    // SAFETY: mapped above, and filled with functions of this type before they are called.
    unsafe {
        for i in 0..SITES {
            at.add(i * 16).copy_from(CODE.as_ptr(), CODE.len());
        }
        eq(mprotect(at.cast(), PAGE, PROT_READ | PROT_EXEC), 0);
        let parent = sys!(SYS_getppid);
        let call = |i: usize| std::mem::transmute::<*mut u8, extern "C" fn() -> i64>(at.add(i * 16))();
        for i in (0..SITES).cycle().take(SITES * 100) {
            eq(call(i), parent);
        }
        eq(mprotect(at.cast(), PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
        for i in 0..SITES {
            eq(at.add(i * 16).cast::<[u8; 8]>().read_volatile(), CODE);
            // Another call takes its place.
            at.add(i * 16 + 1).write_volatile(39);
            eq(call(i), sys!(SYS_getpid));
        }
        eq(munmap(at.cast(), PAGE), 0);
    }
}

/// Sent while a memory call is made, a signal comes then, not with a later call.
fn signal_comes_at_once() {
    const ROUNDS: u64 = 200;
    const LONG: usize = 4 << 20;
    let _on = sig::with(SIGUSR1, count as *const () as usize, SA_RESTART);
    // The call's site is one by now that needs no signal, and the call takes long enough to be met.
    (0..400).for_each(|i| round(i as u8));
    let fill = || {
        let begin = std::time::Instant::now();
        // SAFETY: new memory.
        let at = unsafe { mmap(std::ptr::null_mut(), LONG, PROT_READ | PROT_WRITE, OWN | MAP_POPULATE, -1, 0) };
        check(at != MAP_FAILED, "mapped");
        (at, begin.elapsed())
    };
    let free = |at| {
        // SAFETY: mapped by `fill`.
        unsafe { eq(munmap(at, LONG), 0) };
    };
    let (at, takes) = fill();
    free(at);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let (wanted, sent) = (AtomicU64::new(0), AtomicU64::new(0));
    SEEN.store(0, SeqCst);
    let mut lost = false;
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=ROUNDS {
                while wanted.load(SeqCst) < n {
                    std::thread::yield_now();
                }
                // Somewhere in the other one's call.
                let begin = std::time::Instant::now();
                while begin.elapsed() < takes * (n % 40) as u32 / 40 {
                    std::hint::spin_loop();
                }
                sys!(SYS_tgkill, pid, tid, SIGUSR1);
                sent.store(n, SeqCst);
            }
        });
        for n in 1..=ROUNDS {
            wanted.store(n, SeqCst);
            let (at, _) = fill();
            // Without a call, in which it could come too. A busy machine takes its time.
            while sent.load(SeqCst) < n {
                std::hint::spin_loop();
            }
            let begin = std::time::Instant::now();
            while SEEN.load(SeqCst) < n && begin.elapsed().as_secs() < 20 {
                std::hint::spin_loop();
            }
            lost = SEEN.load(SeqCst) < n;
            free(at);
            if lost || begun.elapsed().as_secs() > 10 {
                // The other one need not wait.
                wanted.store(ROUNDS, SeqCst);
                break;
            }
        }
    });
    check(!lost, "it comes without another call");
}

fn first_thread_gone() {
    let pid = child(|| {
        let me = sys!(SYS_getpid);
        std::thread::spawn(move || {
            // As long as it is there its state is not Z.
            let zombie = || std::fs::read_to_string(format!("/proc/self/task/{me}/stat")).is_ok_and(|s| s.contains(") Z "));
            while !zombie() {
                sleep_ms(1);
            }
            for i in 0..20 {
                exits(child(move || i), i);
                let mut buf = vec![0u8; 20_000];
                let p = pipe_pair();
                eq(sys!(SYS_write, p[1], vec![5u8; 20_000].as_ptr(), 20_000), 20_000);
                eq(sys!(SYS_read, p[0], buf.as_mut_ptr(), 20_000), 20_000);
                check(buf.iter().all(|byte| *byte == 5), "read");
                shut(p);
                std::thread::spawn(|| round(1)).join().expect("joined");
            }
            sys!(SYS_exit_group, 7);
        });
        // Threads that end before it does, so that there is no need to keep the first one for others.
        let gate = std::sync::Barrier::new(40);
        std::thread::scope(|scope| (0..40).for_each(|_| drop(scope.spawn(|| gate.wait().is_leader()))));
        sys!(SYS_exit, 0);
        1
    });
    exits(pid, 7);
}

/// Each makes threads before it forks, and after.
fn forks_of_forks_with_threads() {
    fn chain(n: i32) -> i32 {
        let thread = || std::thread::spawn(|| sys!(SYS_gettid)).join().expect("joined");
        check(thread() != sys!(SYS_getpid), "a thread");
        if n == 0 {
            return 33;
        }
        let status = WEXITSTATUS(reap(child(move || chain(n - 1))));
        check(thread() != sys!(SYS_getpid), "a thread");
        status
    }
    eq(WEXITSTATUS(reap(child(|| chain(16)))), 33);
}
