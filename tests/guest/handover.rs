//! Tasks that wake each other in turn, by the C library's own calls: nobody sleeps on, nothing is lost on the way.

use guest_tests::*;
use libc::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering::SeqCst};

cases![
    futex_ring,
    futex_races,
    futex_requeued,
    results_of_all_kinds,
    results_in_their_order,
    results_where_nothing_can_be_written,
    signals_take_no_byte,
    no_guess_holds
];

fn fx(w: &AtomicU32, op: i32, val: u32) -> i64 {
    // SAFETY: words that outlive the call.
    unsafe { syscall(SYS_futex, w, op | FUTEX_PRIVATE_FLAG, val, 0, 0, 0) }
}

/// Four threads, one word: each waits for its own number.
fn futex_ring() {
    const ROUNDS: u32 = 20_000;
    let word = Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..4u32)
        .map(|own| {
            let word = word.clone();
            std::thread::spawn(move || {
                loop {
                    let now = word.load(SeqCst);
                    if now >= ROUNDS {
                        return;
                    }
                    if now % 4 == own {
                        word.store(now + 1, SeqCst);
                        fx(&word, FUTEX_WAKE, i32::MAX as u32);
                    } else {
                        fx(&word, FUTEX_WAIT, now);
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    eq(word.load(SeqCst), ROUNDS);
}

/// Two threads that do a little and more between looking and waiting: a wake-up comes before, in between and after.
fn futex_races() {
    let word = Arc::new(AtomicU32::new(0));
    let run = |own: u32, word: Arc<AtomicU32>| {
        let mut random = own.wrapping_add(12345);
        for round in 0..15_000u32 {
            let turn = round * 2 + own;
            loop {
                let now = word.load(SeqCst);
                if now == turn {
                    break;
                }
                random = random.wrapping_mul(1_103_515_245).wrapping_add(12345);
                for _ in 0..random >> 22 {
                    std::hint::spin_loop();
                }
                fx(&word, FUTEX_WAIT, now);
            }
            word.store(turn + 1, SeqCst);
            fx(&word, FUTEX_WAKE, 1);
        }
    };
    let other = word.clone();
    let thread = std::thread::spawn(move || run(1, other));
    run(0, word.clone());
    thread.join().unwrap();
    eq(word.load(SeqCst), 30_000);
}

/// The same, where a waiter is moved to another word before it is woken.
fn futex_requeued() {
    let words: Arc<[AtomicU32; 2]> = Arc::default();
    let (other, done) = (words.clone(), Arc::new(AtomicBool::new(false)));
    let over = done.clone();
    let thread = std::thread::spawn(move || {
        for round in 1..=3_000u32 {
            while other[0].load(SeqCst) < round {
                fx(&other[0], FUTEX_WAIT, round - 1);
            }
            other[1].store(round, SeqCst);
        }
        over.store(true, SeqCst);
    });
    for round in 1..=3_000u32 {
        words[0].store(round, SeqCst);
        // Whoever did not sleep yet finds another value.
        let op = FUTEX_REQUEUE | FUTEX_PRIVATE_FLAG;
        // SAFETY: words that outlive the call.
        ok(unsafe { syscall(SYS_futex, &words[0], op, 0, 1, &words[1], 0) }.max(0));
        while words[1].load(SeqCst) < round {
            fx(&words[1], FUTEX_WAKE, 1);
        }
    }
    thread.join().unwrap();
    check(done.load(SeqCst), "all rounds");
}

/// A process that answers each byte by `with` so many.
fn echo(fds: [i32; 2], with: usize) -> i32 {
    child(|| {
        let mut byte = [0u8; 1];
        // SAFETY: buffers of this function, as long as the call says.
        while unsafe { read(fds[0], byte.as_mut_ptr().cast(), 1) } == 1 {
            let answer = vec![byte[0]; with];
            if unsafe { write(fds[1], answer.as_ptr().cast(), with) } != with as isize {
                return 1;
            }
        }
        0
    })
}

fn ask(fd: i32, byte: u8) {
    // SAFETY: buffers of this function, as long as the call says.
    eq(unsafe { write(fd, [byte].as_ptr().cast(), 1) }, 1);
}

/// Calls that block and then have results in memory: each finds what was sent.
fn results_of_all_kinds() {
    for with in [1usize, 300, 20_000] {
        let mut pair = [0; 2];
        // SAFETY: buffers of this function, as long as the call says.
        ok(unsafe { socketpair(AF_UNIX, SOCK_STREAM, 0, pair.as_mut_ptr()) }.into());
        let [here, there] = pair;
        let pid = child(|| {
            // SAFETY: takes no pointers.
            unsafe { close(here) };
            std::process::exit({
                let peer = echo([there, there], with);
                // SAFETY: takes no pointers.
                unsafe { close(there) };
                reap(peer)
            })
        });
        // SAFETY: takes no pointers.
        unsafe { close(there) };
        let ep = unsafe { epoll_create1(0) };
        let mut event = epoll_event { events: EPOLLIN as u32, u64: 77 };
        // SAFETY: buffers of this function, as long as the call says.
        ok(unsafe { epoll_ctl(ep, EPOLL_CTL_ADD, here, &mut event) }.into());
        for round in 0..300u32 {
            let byte = round as u8;
            ask(here, byte);
            let mut got = vec![!byte; with];
            let mut at = 0;
            match round % 6 {
                0 => {}
                1 => {
                    let mut set = pollfd { fd: here, events: POLLIN, revents: 0 };
                    // SAFETY: buffers of this function, as long as the call says.
                    eq(unsafe { poll(&mut set, 1, -1) }, 1);
                    eq(set.revents, POLLIN);
                }
                2 => {
                    let mut event = epoll_event { events: 0, u64: 0 };
                    // SAFETY: buffers of this function, as long as the call says.
                    eq(unsafe { epoll_wait(ep, &mut event, 1, -1) }, 1);
                    eq(({ event.events }, { event.u64 }), (EPOLLIN as u32, 77));
                }
                3 => {
                    let first = with / 2;
                    let base: *mut u8 = got.as_mut_ptr();
                    let parts = [
                        iovec { iov_base: base.cast(), iov_len: first },
                        iovec { iov_base: base.wrapping_add(first).cast(), iov_len: with - first },
                    ];
                    // SAFETY: buffers of this function, as long as the call says.
                    at = unsafe { readv(here, parts.as_ptr(), 2) } as usize;
                }
                4 => {
                    let mut part = iovec { iov_base: got.as_mut_ptr().cast(), iov_len: with };
                    // SAFETY: plain data, of which zeroes are a value.
                    let mut message: msghdr = unsafe { std::mem::zeroed() };
                    (message.msg_iov, message.msg_iovlen, message.msg_flags) = (&mut part, 1, -1);
                    at = unsafe { recvmsg(here, &mut message, 0) } as usize;
                    eq(message.msg_flags, 0);
                }
                _ => {
                    // SAFETY: plain data, of which zeroes are a value.
                    let mut set: fd_set = unsafe { std::mem::zeroed() };
                    unsafe { FD_SET(here, &mut set) };
                    let null = std::ptr::null_mut();
                    // SAFETY: buffers of this function, as long as the call says.
                    eq(unsafe { select(here + 1, &mut set, null, null, null.cast()) }, 1);
                    check(unsafe { FD_ISSET(here, &set) }, "readable");
                }
            }
            while at < with {
                let rest = &mut got[at..];
                // SAFETY: buffers of this function, as long as the call says.
                let count = unsafe { read(here, rest.as_mut_ptr().cast(), rest.len()) };
                check(count > 0, "a read");
                at += count as usize;
            }
            check(got.iter().all(|b| *b == byte), "what was sent");
        }
        shut([ep, here]);
        exits(pid, 0);
    }
}

/// Pieces that overlap, short and long ones: the last one is what stays.
fn results_in_their_order() {
    let (there, back) = (pipe_pair(), pipe_pair());
    let pid = child(|| {
        // SAFETY: takes no pointers.
        unsafe { close(there[1]) };
        let mut byte = [0u8; 1];
        while unsafe { read(there[0], byte.as_mut_ptr().cast(), 1) } == 1 {
            let answer: Vec<u8> = (0..40_000u32).map(|i| (i / 100) as u8).collect();
            // SAFETY: buffers of this function, as long as the call says.
            if unsafe { write(back[1], answer.as_ptr().cast(), answer.len()) } != 40_000 {
                return 1;
            }
        }
        0
    });
    shut([there[0], back[1]]);
    for _ in 0..100 {
        ask(there[1], 1);
        let mut memory = vec![255u8; 40_000];
        let base: *mut u8 = memory.as_mut_ptr();
        let part = |at: usize, len: usize| iovec { iov_base: base.wrapping_add(at).cast(), iov_len: len };
        let parts = [part(0, 100), part(50, 30_050), part(20, 100), part(30_100, 9_750)];
        // SAFETY: buffers of this function, as long as the call says.
        eq(unsafe { readv(back[0], parts.as_ptr(), 4) }, 40_000);
        let source = |i: usize| (i / 100) as u8;
        eq(memory[0], source(0));
        eq(memory[20], source(30_150));
        eq(memory[119], source(30_249));
        eq(memory[120], source(100 + 70));
        eq(memory[30_099], source(30_149));
        eq(memory[30_100], source(30_250));
    }
    shut([there[1], back[0]]);
    exits(pid, 0);
}

/// A reader whose buffer is protected while it waits: EFAULT, and the byte stays.
fn results_where_nothing_can_be_written() {
    let (there, back) = (pipe_pair(), pipe_pair());
    let pid = echo([there[0], back[1]], 1);
    // SAFETY: pages of this test alone; where they may not be written the call fails, which is tested.
    let page = |prot: i32| unsafe {
        let at = mmap(std::ptr::null_mut(), 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(at != MAP_FAILED, "a page");
        at
    };
    for _ in 0..40 {
        ask(there[1], 5);
        let mut byte = [0u8; 1];
        // SAFETY: buffers of this function, as long as the call says.
        eq(unsafe { read(back[0], byte.as_mut_ptr().cast(), 1) }, 1);
    }
    let fixed = page(PROT_READ);
    ask(there[1], 6);
    // SAFETY: pages of this test alone; where they may not be written the call fails, which is tested.
    eq(unsafe { read(back[0], fixed, 1) }, -1);
    eq(std::io::Error::last_os_error().raw_os_error(), Some(EFAULT));
    let mut byte = [0u8; 1];
    // SAFETY: buffers of this function, as long as the call says.
    eq(unsafe { read(back[0], byte.as_mut_ptr().cast(), 1) }, 1);
    eq(byte, [6]);
    let open = page(PROT_READ | PROT_WRITE) as usize;
    let to = there[1];
    let thread = std::thread::spawn(move || {
        sleep_ms(50);
        // SAFETY: pages of this test alone; where they may not be written the call fails, which is tested.
        unsafe { mprotect(open as *mut c_void, 4096, PROT_READ) };
        ask(to, 7);
    });
    // SAFETY: pages of this test alone; where they may not be written the call fails, which is tested.
    eq(unsafe { read(back[0], open as *mut c_void, 1) }, -1);
    eq(std::io::Error::last_os_error().raw_os_error(), Some(EFAULT));
    thread.join().unwrap();
    // SAFETY: buffers of this function, as long as the call says.
    eq(unsafe { read(back[0], byte.as_mut_ptr().cast(), 1) }, 1);
    eq(byte, [7]);
    shut([there[1]]);
    // SAFETY: takes no pointers.
    unsafe { close(there[0]) };
    unsafe { kill(pid, SIGKILL) };
    reap(pid);
    shut([back[0], back[1]]);
}

/// A reader that signals interrupt all the time gets each byte once.
fn signals_take_no_byte() {
    let (there, back) = (pipe_pair(), pipe_pair());
    let _on = sig::on(SIGUSR1, 0);
    // SAFETY: takes no pointers.
    let me = unsafe { getpid() };
    let pid = child(|| {
        shut([there[1], back[0]]);
        let mut byte = [0u8; 1];
        // SAFETY: buffers of this function, as long as the call says.
        while unsafe { read(there[0], byte.as_mut_ptr().cast(), 1) } == 1 {
            unsafe { kill(me, SIGUSR1) };
            if unsafe { write(back[1], byte.as_ptr().cast(), 1) } != 1 {
                return 1;
            }
            // SAFETY: takes no pointers.
            unsafe { kill(me, SIGUSR1) };
        }
        0
    });
    shut([there[0], back[1]]);
    for round in 0..4_000u32 {
        let byte = [round as u8];
        // SAFETY: buffers of this function, as long as the call says.
        while unsafe { write(there[1], byte.as_ptr().cast(), 1) } != 1 {}
        let mut got = [!byte[0]];
        loop {
            // SAFETY: buffers of this function, as long as the call says.
            match unsafe { read(back[0], got.as_mut_ptr().cast(), 1) } {
                1 => break,
                -1 => {}
                other => eq(other, 1),
            }
        }
        eq(got, byte);
    }
    check(sig::hits() > 0, "signals came");
    shut([there[1], back[0]]);
    exits(pid, 0);
}

/// A descriptor that blocks often and then not at all, and one that is another after a while.
fn no_guess_holds() {
    let (there, back) = (pipe_pair(), pipe_pair());
    let pid = echo([there[0], back[1]], 1);
    let sum = AtomicI64::new(0);
    let next = |fd: i32| {
        let mut byte = [0u8; 1];
        // SAFETY: buffers of this function, as long as the call says.
        eq(unsafe { read(fd, byte.as_mut_ptr().cast(), 1) }, 1);
        sum.fetch_add(byte[0].into(), SeqCst);
    };
    for round in 0..200 {
        let many = 1 + round % 17;
        for _ in 0..many {
            ask(there[1], 1);
        }
        for _ in 0..many {
            next(back[0]);
        }
    }
    eq(sum.load(SeqCst), (0..200).map(|round| 1 + round % 17).sum::<i64>());
    // The same number, another file: it never blocks.
    let t = Tmp::new();
    let fd = t.file("f", &[2; 4096]);
    // SAFETY: takes no pointers.
    let number = unsafe { dup(back[0]) };
    for _ in 0..200 {
        ask(there[1], 1);
        next(number);
    }
    // SAFETY: takes no pointers.
    ok(unsafe { dup2(fd, number) }.into());
    for _ in 0..2_000 {
        next(number);
    }
    shut([fd, number, there[1]]);
    // SAFETY: takes no pointers.
    unsafe { close(there[0]) };
    unsafe { kill(pid, SIGKILL) };
    reap(pid);
    shut([back[0], back[1]]);
}
