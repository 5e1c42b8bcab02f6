//! A platform driven by a minimal kernel. Runs as root, or with user namespaces.

use crate::guest::{self, Note, begin, next, platform, run, run_full};
use platform::{Event, Regs, Verdict};
use std::sync::Arc;

guest!(
    hello,
    "mov eax, 1",
    "mov edi, 1",
    "lea rsi, [rip + 2f]",
    "mov edx, 6",
    "mov r8d, 0x1234",
    "mov rbx, 0x1122334455667788",
    "mov r15, -1",
    "syscall",
    "cmp rax, 6",
    "jne 3f",
    "mov rcx, 0x1122334455667788",
    "cmp rbx, rcx",
    "jne 3f",
    "cmp r15, -1",
    "jne 3f",
    "cmp r8d, 0x1234",
    "jne 3f",
    "xor edi, edi",
    "mov eax, 231",
    "syscall",
    "3: mov edi, 1",
    "mov eax, 231",
    "syscall",
    "2: .ascii \"hello\\n\"",
);

#[test]
fn prints_and_exits() {
    let platform = platform();
    let (_sink, _task, notes) = run_full(&platform, hello(), |sink, event, port| {
        let Event::Syscall(call) = event else { panic!("{event:?}") };
        match call.nr {
            1 => {
                let mut text = vec![0; call.args[2] as usize];
                port.read_mem(call.args[1], &mut text).unwrap();
                sink.note(Note::Say(String::from_utf8(text).unwrap()));
                Verdict::Return(call.args[2] as i64)
            }
            231 => {
                sink.note(Note::Exit(call.args[0]));
                Verdict::Exit
            }
            nr => panic!("call {nr}"),
        }
    });
    assert_eq!(next(&notes), Note::Say("hello\n".into()));
    assert_eq!(next(&notes), Note::Exit(0));
}

// Calls 1000 + n are the test's own: 1000 = make a task that goes on at rdi with stack rsi, thread if rdx == 0,
// process if rdx == 1; 1001 = tell the value; 1002 = exec into nothing, then come back at rdi.
guest!(
    family,
    // A thread that stores to memory and exits.
    "mov r12, rsp",
    "movq xmm3, r12",
    "lea rdi, [rip + 5f]",
    "lea rsi, [rsp - 0x4000]",
    "xor edx, edx",
    "mov eax, 1000",
    "syscall",
    "mov rbx, 0x600000",
    "2: pause",
    "mov eax, [rbx]",
    "test eax, eax",
    "jz 2b",
    "mov edi, eax",
    "mov eax, 1001",
    "syscall",
    // A process whose stores are its own.
    "lea rdi, [rip + 6f]",
    "lea rsi, [rsp - 0x4000]",
    "mov edx, 1",
    "mov eax, 1000",
    "syscall",
    "mov edi, [rbx + 4]",
    "mov eax, 1001",
    "syscall",
    "mov edi, 0",
    "mov eax, 231",
    "syscall",
    "5: movq rax, xmm3",
    "cmp rax, r12",
    "jne 9f",
    "mov rbx, 0x600000",
    "mov dword ptr [rbx], 77",
    "mov eax, 60",
    "mov edi, 1",
    "syscall",
    "6: movq rax, xmm3",
    "cmp rax, r12",
    "jne 9f",
    "mov edi, [rbx]",
    "mov dword ptr [rbx + 4], 5",
    "mov eax, 1001",
    "syscall",
    "mov eax, 60",
    "mov edi, 2",
    "syscall",
    "9: ud2",
);

#[test]
fn makes_threads_and_processes() {
    let platform = platform();
    let (_sink, _task, notes) = run_full(&platform, family(), |sink, event, port| {
        let call = match event {
            Event::Syscall(call) => call,
            Event::Started => return Verdict::Resume,
            other => panic!("{other:?}"),
        };
        match call.nr {
            1000 => {
                let regs = port.regs().unwrap();
                let start = Regs { rip: call.args[0], rsp: call.args[1], ..regs };
                let child = sink.child("child");
                let made = if call.args[2] == 0 {
                    port.spawn(&start, child.clone())
                } else {
                    port.fork(&start, child.clone())
                };
                let made = made.unwrap();
                begin(&child, made);
                Verdict::Return(7)
            }
            1001 => {
                sink.note(Note::Value(call.args[0] as i64));
                Verdict::Return(0)
            }
            60 | 231 => {
                sink.note(Note::Exit(call.args[0]));
                Verdict::Exit
            }
            nr => panic!("call {nr}"),
        }
    });
    let mut heard: Vec<_> = (0..6).map(|_| next(&notes)).collect();
    heard.sort_by_key(|note| format!("{note:?}"));
    let mut expected =
        vec![Note::Exit(1), Note::Value(77), Note::Value(77), Note::Value(0), Note::Exit(2), Note::Exit(0)];
    expected.sort_by_key(|note| format!("{note:?}"));
    assert_eq!(heard, expected);
}

guest!(execs, "mov dword ptr [0x600000], 1", "mov eax, 1002", "syscall", "ud2",);

#[test]
fn replaces_space() {
    let platform = platform();
    let again = std::sync::atomic::AtomicU32::new(0);
    let (_sink, _task, notes) = run(&platform, execs(), move |sink, event, port| {
        match event {
            Event::Syscall(call) => assert_eq!(call.nr, 1002),
            Event::Again => {}
            other => panic!("{other:?}"),
        }
        if !port.full() {
            sink.control().kick();
            return Verdict::Park;
        }
        let mut data = [0; 4];
        port.read_mem(guest::DATA, &mut data).unwrap();
        assert_eq!(data[0], 1);
        port.replace_space(again.load(std::sync::atomic::Ordering::Relaxed).is_multiple_of(2)).unwrap();
        assert!(port.read_mem(guest::DATA, &mut data).is_err());
        assert_eq!(port.regs().unwrap(), Regs { cs: 0, ..Regs::default() });
        if again.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 20 {
            sink.note(Note::Exit(0));
            return Verdict::Exit;
        }
        guest::load(port, execs());
        Verdict::Resume
    });
    assert_eq!(next(&notes), Note::Exit(0));
}

guest!(
    faults,
    "mov rax, 0x1230",
    "mov rbx, [rax]",
    "ud2",
    "int3",
    "xor ecx, ecx",
    "div ecx",
    "mov eax, 20",
    "int 0x80",
    "mov eax, 0x40000001",
    "syscall",
    "mov eax, 231",
    "syscall",
);

#[test]
fn reports_exceptions_and_foreign_calls() {
    let platform = platform();
    let (_sink, _task, notes) = run_full(&platform, faults(), |sink, event, port| match event {
        Event::Exception(e) => {
            let mut regs = port.regs().unwrap();
            sink.note(Note::Say(format!("{} {:#x} +{}", e.signo, e.addr, regs.rip - guest::CODE)));
            regs.rip += match e.signo {
                libc::SIGSEGV => 3,
                libc::SIGTRAP => 0,
                _ => 2,
            };
            port.set_regs(&regs).unwrap();
            Verdict::Resume
        }
        Event::Syscall(call) if call.nr == 231 => Verdict::Exit,
        Event::Syscall(call) => {
            sink.note(Note::Say(format!("{:?} {}", call.abi, call.nr)));
            Verdict::Return(-38)
        }
        other => panic!("{other:?}"),
    });
    let heard: Vec<_> = (0..6)
        .map(|_| match next(&notes) {
            Note::Say(text) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(heard[0], "11 0x1230 +7");
    assert_eq!(heard[1], "4 0x40000a +10");
    assert_eq!(heard[2], "5 0x0 +13");
    assert_eq!(heard[3], "8 0x40000f +15");
    assert_eq!(heard[4], "I386 20");
    assert_eq!(heard[5], "X32 1");
}

guest!(spins, "mov r13, 0x55aa", "mov eax, 1001", "syscall", "2: inc r14", "jmp 2b",);

#[test]
fn kicks_reach_a_running_task() {
    let platform = platform();
    let (_sink, task, notes) = run_full(&platform, spins(), |sink, event, port| match event {
        Event::Syscall(_) => {
            sink.note(Note::Value(1));
            Verdict::Return(0)
        }
        Event::Interrupted => {
            let regs = port.regs().unwrap();
            assert_eq!(regs.r13, 0x55aa);
            sink.note(Note::Value(2));
            Verdict::Resume
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&notes), Note::Value(1));
    for _ in 0..2000 {
        task.control.kick();
        assert_eq!(next(&notes), Note::Value(2));
    }
    task.space.kill();
}

guest!(parks, "2: mov eax, 1001", "syscall", "mov rdi, rax", "jmp 2b",);

#[test]
fn parked_tasks_are_finished_and_kicked() {
    let platform = platform();
    let (_sink, task, notes) = run_full(&platform, parks(), |sink, event, port| match event {
        Event::Syscall(call) => {
            sink.note(Note::Value(call.args[0] as i64));
            Verdict::Park
        }
        Event::Again => {
            assert!(port.full());
            let regs = port.regs().unwrap();
            assert_eq!(regs.orig_rax, 1001);
            sink.note(Note::Say("again".into()));
            if regs.rdi % 2 == 0 { Verdict::Return(regs.rdi as i64 + 1) } else { Verdict::Park }
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&notes), Note::Value(0));
    for i in 0..1000 {
        task.control.kick();
        assert_eq!(next(&notes), Note::Say("again".into()));
        assert_eq!(next(&notes), Note::Value(2 * i + 1));
        task.control.kick();
        assert_eq!(next(&notes), Note::Say("again".into()));
        task.control.finish(2 * i + 2);
        assert_eq!(next(&notes), Note::Value(2 * i + 2));
    }
    task.space.kill();
}

guest!(loops, "2: mov eax, 1001", "syscall", "jmp 2b",);

/// Not a check of speed by the clock of a busy machine, only a print: `cargo test --release -- --nocapture cost`.
#[test]
fn cost_of_calls() {
    let platform = platform();
    let count = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = count.clone();
    let (_sink, task, notes) = run(&platform, loops(), move |_, event, port| match event {
        Event::Syscall(_) => {
            seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if port.full() {
                seen.fetch_add(1 << 32, std::sync::atomic::Ordering::Relaxed);
            }
            Verdict::Return(0)
        }
        other => panic!("{other:?}"),
    });
    let _ = &notes;
    for round in 0..3 {
        let before = count.load(std::sync::atomic::Ordering::Relaxed);
        let start = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(500));
        let done = count.load(std::sync::atomic::Ordering::Relaxed) - before;
        let (all, cold) = (done & 0xffff_ffff, done >> 32);
        println!(
            "round {round}: {} ns per call, {cold} of {all} cold",
            start.elapsed().as_nanos() as u64 / all.max(1)
        );
        assert!(all > 1000);
    }
    task.space.kill();
}
