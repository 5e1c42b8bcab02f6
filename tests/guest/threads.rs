//! Many threads and processes: begun, ended, killed, replaced, and changing memory at the same time.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

cases![
    one_after_the_other, many_at_once, many_processes_at_once, exec_while_threads_run, exec_from_a_thread,
    killed_while_making_threads, float_control_is_inherited, own_stack_and_tls, map_at_the_same_time, unmap_is_done_before_reuse,
    refused_map, refused_fixed_map, fork_while_others_map, move_while_others_map, exit_while_others_map, vfork_and_exec_often
];

const RW: i32 = PROT_READ | PROT_WRITE;
const ANON: i32 = MAP_PRIVATE | MAP_ANONYMOUS;

fn small<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> std::thread::JoinHandle<T> {
    std::thread::Builder::new().stack_size(64 << 10).spawn(f).expect("a thread")
}

fn one_after_the_other() {
    in_child(|| {
        let mut last = 0;
        for i in 0..500 {
            let (n, tid) = small(move || (i, sys!(SYS_gettid))).join().expect("no panic");
            eq(n, i);
            check(tid != last, "thread ids are not used again at once");
            last = tid;
        }
        eq(std::fs::read_dir("/proc/self/task").expect("its threads").count(), 1);
    });
}

fn many_at_once() {
    in_child(|| together(2000));
}

/// So many threads that all live at the same time.
fn together(count: usize) {
    let up = std::sync::Arc::new(AtomicUsize::new(0));
    let gate = std::sync::Arc::new(AtomicU32::new(0));
    let threads: Vec<_> = (0..count)
        .map(|i| {
            let (up, gate) = (up.clone(), gate.clone());
            small(move || {
                up.fetch_add(1, SeqCst);
                while gate.load(SeqCst) == 0 {
                    sys!(SYS_futex, gate.as_ptr(), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0);
                }
                i
            })
        })
        .collect();
    while up.load(SeqCst) < count {
        sleep_ms(5);
    }
    gate.store(1, SeqCst);
    sys!(SYS_futex, gate.as_ptr(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, i32::MAX, 0, 0, 0);
    for (i, thread) in threads.into_iter().enumerate() {
        eq(thread.join().expect("no panic"), i);
    }
}

fn many_processes_at_once() {
    in_child(|| {
        let p = pipe_pair();
        let pids: Vec<i32> = (0..300)
            .map(|i| {
                child(|| {
                    sys!(SYS_close, p[1]);
                    let mut b = 0u8;
                    sys!(SYS_read, p[0], &mut b, 1);
                    i & 0x7f
                })
            })
            .collect();
        sys!(SYS_close, p[1]);
        for (i, pid) in pids.into_iter().enumerate() {
            exits(pid, i as i32 & 0x7f);
        }
    });
}

/// Threads that sleep, compute and call.
fn crowd(n: usize) {
    for i in 0..n {
        drop(small(move || {
            loop {
                match i % 3 {
                    0 => sleep_ms(10_000),
                    1 => {
                        sys!(SYS_getppid);
                    }
                    _ => (0..1000).for_each(|_| std::hint::spin_loop()),
                }
            }
        }));
    }
}

fn exec(code: &str) -> i64 {
    let args = [c"sh".as_ptr() as usize, c"-c".as_ptr() as usize, cstr(code).as_ptr() as usize, 0];
    sys!(SYS_execve, c"/bin/sh", &args, 0)
}

fn exec_while_threads_run() {
    exits(
        child(|| {
            crowd(50);
            sleep_ms(20);
            exec("exit 41");
            1
        }),
        41,
    );
}

fn exec_from_a_thread() {
    let pid = child(|| {
        crowd(20);
        let _ = small(|| exec("test $$ = $PPID; exit 42")).join();
        sleep_ms(10_000);
        1
    });
    exits(pid, 42);
}

fn killed_while_making_threads() {
    for i in 0..15 {
        let pid = child(|| {
            loop {
                let two: Vec<_> = (0..3).map(|_| small(|| sys!(SYS_getppid))).collect();
                for thread in two {
                    let _ = thread.join();
                }
            }
        });
        sleep_ms(2 + i);
        eq(sys!(SYS_kill, pid, SIGKILL), 0);
        killed_by(pid, SIGKILL);
    }
}

fn mxcsr() -> u32 {
    let mut value = 0u32;
    unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut value) };
    value
}

fn set_mxcsr(value: u32) {
    unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const value) };
}

fn float_control_is_inherited() {
    in_child(|| {
        let plain = mxcsr();
        for i in 0..20 {
            // Rounding up and to nearest in turns.
            set_mxcsr(if i % 2 == 0 { 0x5f80 } else { 0x1f80 });
            let own = mxcsr() & 0xffc0;
            eq(small(mxcsr).join().expect("no panic") & 0xffc0, own);
        }
        set_mxcsr(plain);
    });
}

fn own_stack_and_tls() {
    thread_local!(static MINE: std::cell::Cell<usize> = const { std::cell::Cell::new(7) });
    in_child(|| {
        for round in 0..30 {
            let threads: Vec<_> = (0..8usize)
                .map(|i| {
                    small(move || {
                        eq(MINE.get(), 7);
                        MINE.set(i);
                        let local = [i as u8; 3000];
                        sys!(SYS_sched_yield);
                        check(std::hint::black_box(&local).iter().all(|b| *b == i as u8), "the stack is its own");
                        MINE.get()
                    })
                })
                .collect();
            for (i, thread) in threads.into_iter().enumerate() {
                eq((round, thread.join().expect("no panic")), (round, i));
            }
        }
    });
}

fn map(len: usize) -> usize {
    ok(sys!(SYS_mmap, 0, len, RW, ANON, -1, 0)) as usize
}

fn fill(at: usize, len: usize, mark: usize) {
    for p in (at..at + len).step_by(4096) {
        unsafe {
            eq((p as *const usize).read_volatile(), 0);
            (p as *mut usize).write_volatile(mark);
        }
    }
}

fn holds(at: usize, len: usize, mark: usize) {
    for p in (at..at + len).step_by(4096) {
        eq(unsafe { (p as *const usize).read_volatile() }, mark);
    }
}

fn map_at_the_same_time() {
    in_child(|| {
        let threads: Vec<_> = (1..5usize)
            .map(|mark| {
                small(move || {
                    let mut kept = Vec::new();
                    for i in 0..1500usize {
                        let len = 4096 * (1 + (i * mark) % 7);
                        let at = map(len);
                        fill(at, len, mark);
                        kept.push((at, len));
                        if kept.len() > 5 {
                            let (at, len) = kept.swap_remove(i % kept.len());
                            holds(at, len, mark);
                            eq(sys!(SYS_munmap, at, len), 0);
                        }
                        if i % 5 == 0 {
                            let (at, len) = kept[0];
                            eq(sys!(SYS_mprotect, at, len, PROT_READ), 0);
                            holds(at, len, mark);
                            eq(sys!(SYS_mprotect, at, len, RW), 0);
                        }
                        if i % 11 == 0 {
                            let (at, len) = kept[0];
                            eq(sys!(SYS_madvise, at, len, MADV_DONTNEED), 0);
                            fill(at, len, mark);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

/// One thread frees what another takes at once: the taker's pages must stay.
fn unmap_is_done_before_reuse() {
    in_child(|| {
        let threads: Vec<_> = (1..3usize)
            .map(|mark| {
                small(move || {
                    for _ in 0..4000 {
                        let at = map(8192);
                        fill(at, 8192, mark);
                        holds(at, 8192, mark);
                        eq(sys!(SYS_munmap, at, 8192), 0);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

fn refused_map() {
    in_child(|| {
        let before = map(4096);
        for _ in 0..100 {
            // More than there can be.
            err(sys!(SYS_mmap, 0, 1usize << 46, RW, ANON, -1, 0), ENOMEM);
            let at = map(4096);
            fill(at, 4096, 5);
            eq(sys!(SYS_munmap, at, 4096), 0);
        }
        fill(before, 4096, 1);
    });
}

fn refused_fixed_map() {
    in_child(|| {
        let at = ok(sys!(SYS_mmap, 0, 1usize << 45, PROT_NONE, ANON | MAP_NORESERVE, -1, 0)) as usize;
        err(sys!(SYS_mmap, at, 1usize << 45, RW, ANON | MAP_FIXED, -1, 0), ENOMEM);
        let own = ok(sys!(SYS_mmap, at, 4096, RW, ANON | MAP_FIXED, -1, 0)) as usize;
        fill(own, 4096, 5);
    });
}

fn fork_while_others_map() {
    in_child(|| {
        static STOP: AtomicU32 = AtomicU32::new(0);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                small(|| {
                    while STOP.load(SeqCst) == 0 {
                        let at = map(16384);
                        fill(at, 16384, 9);
                        eq(sys!(SYS_munmap, at, 16384), 0);
                    }
                })
            })
            .collect();
        for i in 0..50 {
            let pid = child(|| {
                for _ in 0..20 {
                    let at = map(16384);
                    fill(at, 16384, 3);
                    eq(sys!(SYS_munmap, at, 16384), 0);
                }
                i
            });
            exits(pid, i);
        }
        STOP.store(1, SeqCst);
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

fn exit_while_others_map() {
    for i in 0..20 {
        let pid = child(|| {
            for _ in 0..3 {
                drop(small(|| {
                    loop {
                        let at = map(16384);
                        sys!(SYS_munmap, at, 16384);
                    }
                }));
            }
            sleep_ms(3);
            i
        });
        exits(pid, i);
    }
}

/// Moving memory waits until nobody's change is under way, however many follow each other.
fn move_while_others_map() {
    in_child(|| {
        let stop = std::sync::Arc::new(AtomicU32::new(0));
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let stop = stop.clone();
                small(move || {
                    while stop.load(SeqCst) == 0 {
                        let at = map(8192);
                        eq(sys!(SYS_munmap, at, 8192), 0);
                    }
                })
            })
            .collect();
        for mark in 1..50 {
            let at = map(8192);
            fill(at, 8192, mark);
            let to = ok(sys!(SYS_mremap, at, 8192, 4 << 20, MREMAP_MAYMOVE)) as usize;
            holds(to, 8192, mark);
            eq(sys!(SYS_munmap, to, 4 << 20), 0);
        }
        stop.store(1, SeqCst);
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

fn vfork_and_exec_often() {
    for i in 0..30 {
        let status = std::process::Command::new("/bin/sh").args(["-c", &format!("exit {i}")]).status();
        eq(status.expect("a program").code(), Some(i));
    }
}

/// Threads that wait in read, poll and futex.
struct Blocked {
    threads: Vec<std::thread::JoinHandle<i64>>,
    ends: [i32; 2],
    gate: std::sync::Arc<AtomicU32>,
}

impl Blocked {
    fn new(count: usize) -> Blocked {
        let ends = pipe_pair();
        let gate = std::sync::Arc::new(AtomicU32::new(0));
        let up = std::sync::Arc::new(AtomicUsize::new(0));
        let one = |i: usize| {
            let (gate, up) = (gate.clone(), up.clone());
            small(move || {
                up.fetch_add(1, SeqCst);
                let mut b = [0u8; 8];
                let mut p = [(ends[0], POLLIN, 0i16)];
                match i % 3 {
                    0 => sys!(SYS_read, ends[0], &mut b, 8),
                    1 => sys!(SYS_poll, &mut p[..], 1, -1) - 1,
                    _ => {
                        while gate.load(SeqCst) == 0 {
                            sys!(SYS_futex, gate.as_ptr(), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, 0, 0, 0);
                        }
                        0
                    }
                }
            })
        };
        let threads = (0..count).map(one).collect();
        while up.load(SeqCst) < count {
            sleep_ms(1);
        }
        Blocked { threads, ends, gate }
    }

    fn wake(self) {
        shut([self.ends[1]]);
        self.gate.store(1, SeqCst);
        sys!(SYS_futex, self.gate.as_ptr(), FUTEX_WAKE | FUTEX_PRIVATE_FLAG, i32::MAX, 0, 0, 0);
        for thread in self.threads {
            eq(thread.join().expect("no panic"), 0);
        }
        shut([self.ends[0]]);
    }
}

/// Does what its standard input says, a line at a time, and answers each with `done`: `thread N`, `fork N`,
/// `exec N` one after the other, `crowd N` threads at the same time, `block N` threads that wait until `wake 0`,
/// `unheard N` processes of `hostile::unheard`, and what `sockets::churn` knows.
pub fn churn(_: &[String]) -> i32 {
    let mut held = Vec::new();
    let mut blocked = None;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Some((what, count)) = line.split_once(' ') else { return 1 };
        let count = count.parse().unwrap_or(0);
        if what == "crowd" {
            together(count);
            println!("done");
            continue;
        }
        if what == "block" {
            blocked = Some(Blocked::new(count));
            println!("done");
            continue;
        }
        if what == "wake" {
            if let Some(blocked) = blocked.take() {
                blocked.wake();
            }
            println!("done");
            continue;
        }
        if what == "unheard" {
            crate::hostile::unheard(count);
            println!("done");
            continue;
        }
        if crate::sockets::churn(what, count, &mut held) {
            println!("done");
            continue;
        }
        for _ in 0..count {
            match what {
                "thread" => drop(small(|| ()).join()),
                "fork" => exits(child(|| 3), 3),
                "exec" => drop(std::process::Command::new("/bin/true").status().expect("a program")),
                _ => return 1,
            }
        }
        println!("done");
    }
    0
}
