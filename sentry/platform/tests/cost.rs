//! What things cost here: `cargo test --release -p platform --test cost -- --nocapture --test-threads 1`.
//! Prints figures; checks only that things happen at all.

mod guest;

const PLATFORM: &str = "trap";

use guest::{Note, begin, next, platform, run};
use platform::{Event, Regs, Verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

// Computes for r15 rounds, then calls.
guest!(
    loops,
    "mov eax, 1000",
    "syscall",
    "mov r15, rax",
    "3: mov rcx, r15",
    "2: pause",
    "dec rcx",
    "jns 2b",
    "mov eax, 1001",
    "syscall",
    "jmp 3b",
);

fn calls(guests: usize, rounds: i64) -> (Vec<(u64, u64)>, Duration) {
    let platform = platform();
    let mut all = Vec::new();
    for _ in 0..guests {
        let count = Arc::new(AtomicU64::new(0));
        let seen = count.clone();
        let (sink, task, notes) = run(&platform, loops(), move |_, event, port| match event {
            Event::Syscall(call) if call.nr == 1000 => Verdict::Return(rounds),
            Event::Syscall(_) => {
                seen.fetch_add(1 + (u64::from(port.full()) << 32), Relaxed);
                Verdict::Return(0)
            }
            other => panic!("{other:?}"),
        });
        all.push((count, sink, task, notes));
    }
    std::thread::sleep(Duration::from_millis(100));
    let before: Vec<_> = all.iter().map(|it| it.0.load(Relaxed)).collect();
    let start = Instant::now();
    std::thread::sleep(Duration::from_millis(400));
    let time = start.elapsed();
    let done = all.iter().zip(before).map(|(it, before)| it.0.load(Relaxed) - before);
    let done = done.map(|n| (n & 0xffff_ffff, n >> 32)).collect();
    for it in &all {
        it.2.space.kill();
    }
    (done, time)
}

#[test]
fn calls_by_gap() {
    for guests in [1, 2, 4] {
        for rounds in [0, 25, 125, 500, 1500] {
            let (done, time) = calls(guests, rounds);
            for (all, cold) in done {
                let each = time.as_nanos() as u64 / all.max(1);
                println!("{guests} guests, {rounds} pauses: {each} ns between calls, {cold} of {all} cold");
            }
        }
    }
}

guest!(
    maker,
    "2: lea rdi, [rip + 5f]",
    "lea rsi, [rsp - 0x4000]",
    "mov eax, 1000",
    "syscall",
    "mov eax, 1001",
    "syscall",
    "jmp 2b",
    "5: mov eax, 60",
    "syscall",
);

#[test]
fn tasks() {
    for (what, fork) in [("thread", false), ("fork", true)] {
        let platform = platform();
        let making = Arc::new(AtomicU64::new(0));
        let sum = making.clone();
        // A call that wants a full port, until it is run again.
        let waiting = std::sync::Mutex::new(None);
        let again = move |event| match event {
            Event::Again => Event::Syscall(waiting.lock().unwrap().take().expect("a call that waits")),
            Event::Syscall(call) if call.nr == 1000 => {
                *waiting.lock().unwrap() = Some(call);
                event
            }
            _ => event,
        };
        let (_sink, task, notes) = run(&platform, maker(), move |sink, event, port| match again(event) {
            Event::Started => Verdict::Resume,
            Event::Syscall(call) if call.nr == 1000 => {
                if !port.full() {
                    sink.control().kick();
                    return Verdict::Park;
                }
                let start = Regs { rip: call.args[0], rsp: call.args[1], ..port.regs().unwrap() };
                let child = sink.child("child");
                let start_time = Instant::now();
                let made =
                    if fork { port.fork(&start, child.clone()) } else { port.spawn(&start, child.clone()) };
                sum.fetch_add(start_time.elapsed().as_nanos() as u64, Relaxed);
                begin(&child, made.unwrap());
                Verdict::Return(7)
            }
            Event::Syscall(call) if call.nr == 60 => {
                sink.note(Note::Exit(0));
                Verdict::Exit
            }
            // Goes on when the child has exited.
            Event::Syscall(_) => {
                sink.note(Note::Value(0));
                Verdict::Park
            }
            other => panic!("{other:?}"),
        });
        let start = Instant::now();
        let many = 300;
        for _ in 0..many {
            let both = [next(&notes), next(&notes)];
            assert!(both.contains(&Note::Exit(0)) && both.contains(&Note::Value(0)), "{both:?}");
            // The verdict follows the note.
            std::thread::sleep(Duration::from_micros(20));
            task.control.finish(0);
        }
        let made = making.load(Relaxed) / many as u64 / 1000;
        println!(
            "{what}, start to exit: {} µs, of them making: {made} µs",
            start.elapsed().as_micros() / many
        );
        task.space.kill();
    }
}

#[test]
fn platforms() {
    for _ in 0..5 {
        let start = Instant::now();
        let platform = platform();
        let up = start.elapsed();
        let (_sink, task, notes) = run(&platform, maker(), |sink, event, _| match event {
            Event::Syscall(_) => {
                sink.note(Note::Exit(0));
                Verdict::Exit
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(next(&notes), Note::Exit(0));
        println!("platform up {up:?}, first call {:?}", start.elapsed());
        drop(task);
        let start = Instant::now();
        drop(platform);
        println!("platform down {:?}", start.elapsed());
    }
}

#[test]
fn memory_and_maps() {
    let platform = platform();
    let (_sink, _task, notes) = run(&platform, maker(), |sink, event, port| match event {
        Event::Syscall(_) if !port.full() => {
            sink.control().kick();
            Verdict::Park
        }
        Event::Syscall(_) | Event::Again => {
            let mut buf = [0; 8];
            let mut time = |what: &str, f: &mut dyn FnMut(&mut dyn platform::Port)| {
                let start = Instant::now();
                for _ in 0..1000 {
                    f(port);
                }
                println!("{what}: {} ns", start.elapsed().as_nanos() / 1000);
            };
            time("read_mem 8", &mut |port| port.read_mem(guest::DATA, &mut buf).unwrap());
            time("write_mem 8", &mut |port| port.write_mem(guest::DATA, &[1; 8]).unwrap());
            time("regs", &mut |port| assert!(port.regs().is_ok()));
            time("xstate", &mut |port| drop(port.xstate().unwrap()));
            time("mprotect", &mut |port| port.mprotect(guest::DATA, 4096, 3).unwrap());
            let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            time("mmap + munmap", &mut |port| {
                port.mmap(0x1000_0000, 0x1_0000, 3, anonymous, None).unwrap();
                port.munmap(0x1000_0000, 0x1_0000).unwrap();
            });
            let file = Arc::new(std::fs::File::open("/proc/self/exe").unwrap().into());
            time("mmap of a file", &mut |port| {
                port.mmap(0x1000_0000, 0x1000, 1, libc::MAP_PRIVATE, Some((&file, 0))).unwrap();
            });
            time("replace_space", &mut |port| drop(port.replace_space(false).unwrap()));
            sink.note(Note::Exit(0));
            Verdict::Exit
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&notes), Note::Exit(0));
}
