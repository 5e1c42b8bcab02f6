//! Register and vector state, single steps, and kicks that race with calls, on any platform.

use crate::guest::{self, Note, begin, next, platform, run, run_full};
use platform::{Event, Regs, Verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

guest!(
    bases,
    "mov eax, 1000",
    "syscall",
    "mov rdi, fs:[0]",
    "mov rsi, gs:[8]",
    "movq rdx, xmm5",
    "vextracti128 xmm6, ymm5, 1",
    "movq r10, xmm6",
    "mov eax, 1001",
    "syscall",
    "mov eax, 231",
    "syscall",
);

#[test]
fn bases_and_vectors_are_the_guest_s() {
    let platform = platform();
    let (_sink, _task, notes) = run_full(&platform, bases(), |sink, event, port| match event {
        Event::Syscall(call) if call.nr == 1000 => {
            let mut regs = port.regs().unwrap();
            regs.fs_base = guest::DATA + 0x100;
            regs.gs_base = guest::DATA + 0x200;
            port.write_mem(guest::DATA + 0x100, &0x1111u64.to_le_bytes()).unwrap();
            port.write_mem(guest::DATA + 0x208, &0x2222u64.to_le_bytes()).unwrap();
            port.set_regs(&regs).unwrap();
            let mut state = port.xstate().unwrap();
            // xmm5, and the upper half of ymm5 in the component at 576; both marked as in use.
            state.0[160 + 5 * 16..160 + 5 * 16 + 8].copy_from_slice(&0x3333u64.to_le_bytes());
            state.0[576 + 5 * 16..576 + 5 * 16 + 8].copy_from_slice(&0x4444u64.to_le_bytes());
            state.0[512] |= 7;
            port.set_xstate(&state).unwrap();
            let back = port.xstate().unwrap();
            assert_eq!(back, state);
            let mut bad = state.clone();
            bad.0[24..28].copy_from_slice(&0xffff_ffffu32.to_le_bytes());
            assert!(port.set_xstate(&bad).is_err());
            bad = state.clone();
            bad.0[520 + 8] = 1;
            assert!(port.set_xstate(&bad).is_err());
            assert!(port.set_xstate(&platform::XState(state.0[..600].to_vec())).is_err());
            Verdict::Return(0)
        }
        Event::Syscall(call) if call.nr == 1001 => {
            sink.note(Note::Say(format!("{:x?}", &call.args[..4])));
            let regs = port.regs().unwrap();
            assert_eq!(regs.fs_base, guest::DATA + 0x100);
            assert_eq!(regs.gs_base, guest::DATA + 0x200);
            Verdict::Return(0)
        }
        Event::Syscall(_) => Verdict::Exit,
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&notes), Note::Say("[1111, 2222, 3333, 4444]".into()));
}

/// Extended state without the note that the vector registers are in use, where all of them are zero: a processor may make it or not.
fn meaning(state: &platform::XState) -> Vec<u8> {
    let mut bytes = state.0.clone();
    if bytes[160..416].iter().all(|byte| *byte == 0) {
        bytes[512] &= !2;
    }
    bytes
}

#[test]
fn fresh_tasks_have_the_initial_state() {
    let platform = platform();
    let (_sink, _task, notes) = run_full(&platform, bases(), |sink, event, port| {
        assert!(matches!(event, Event::Syscall(_)), "{event:?}");
        let seen = port.xstate().unwrap();
        port.replace_space(true).unwrap();
        let emptied = port.xstate().unwrap();
        port.replace_space(false).unwrap();
        let initial = port.xstate().unwrap();
        assert_eq!(meaning(&emptied), meaning(&initial));
        assert_eq!(initial.0.len(), seen.0.len());
        assert_eq!(initial.0[464..488], seen.0[464..488]);
        port.set_xstate(&initial).unwrap();
        let space = port.replace_space(false).unwrap();
        let vdso = space.vdso().unwrap();
        let mut elf = [0; 4];
        space.read(vdso, &mut elf).unwrap();
        assert_eq!(&elf, b"\x7fELF");
        sink.note(Note::Exit(0));
        Verdict::Exit
    });
    assert_eq!(next(&notes), Note::Exit(0));
}

guest!(steps, "mov eax, 1000", "syscall", "nop", "nop", "mov eax, 231", "syscall",);

#[test]
fn single_steps() {
    let platform = platform();
    let (_sink, _task, notes) = run_full(&platform, steps(), |sink, event, port| match event {
        Event::Syscall(call) if call.nr == 1000 => {
            port.single_step(true).unwrap();
            Verdict::Return(0)
        }
        Event::Exception(e) => {
            let regs = port.regs().unwrap();
            sink.note(Note::Say(format!("{} {} +{}", e.signo, e.code, regs.rip - guest::CODE)));
            port.single_step(regs.rip - guest::CODE < 9).unwrap();
            Verdict::Resume
        }
        Event::Syscall(_) => {
            sink.note(Note::Exit(0));
            Verdict::Exit
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&notes), Note::Say("5 2 +8".into()));
    assert_eq!(next(&notes), Note::Say("5 2 +9".into()));
    assert_eq!(next(&notes), Note::Exit(0));
}

guest!(
    counts,
    "xor ebx, ebx",
    "2: mov rdi, rbx",
    "mov eax, 1001",
    "syscall",
    "inc rbx",
    "cmp rax, rbx",
    "je 2b",
    "ud2",
);

/// A task that calls as fast as it can, hot and cold in turns, gets each kick, and no call is lost or repeated.
#[test]
fn kicks_race_with_calls() {
    let platform = platform();
    let expected = AtomicU64::new(0);
    let (_sink, task, notes) = run(&platform, counts(), move |sink, event, port| match event {
        Event::Syscall(call) => {
            let n = expected.fetch_add(1, Relaxed);
            assert_eq!(call.args[0], n);
            if n % 1000 == 999 && !port.full() {
                sink.control().kick();
                return Verdict::Park;
            }
            if n % 1000 == 999 {
                std::thread::sleep(std::time::Duration::from_micros(300));
            }
            Verdict::Return(n as i64 + 1)
        }
        Event::Again => {
            sink.note(Note::Value(2));
            Verdict::Return(expected.load(Relaxed) as i64)
        }
        Event::Interrupted => {
            sink.note(Note::Value(2));
            Verdict::Resume
        }
        other => panic!("{other:?}"),
    });
    for i in 0..5000u64 {
        task.control.kick();
        assert_eq!(next(&notes), Note::Value(2));
        while notes.try_recv().is_ok() {}
        if i % 8 == 0 {
            std::thread::sleep(std::time::Duration::from_micros(i % 700));
        }
    }
    task.space.kill();
}

guest!(
    storm,
    "mov r14d, 40",
    "2: lea rdi, [rip + 5f]",
    "lea rsi, [rsp - 0x4000]",
    "mov eax, 1000",
    "syscall",
    "dec r14d",
    "jnz 2b",
    "5: mov eax, 1001",
    "syscall",
    "mov eax, 60",
    "syscall",
);

/// Many threads and processes at once, many of them killed in the middle.
#[test]
fn storms_of_tasks() {
    for fork in [false, true] {
        let platform = platform();
        let made = Arc::new(AtomicU64::new(0));
        let count = made.clone();
        let (_sink, task, notes) = run_full(&platform, storm(), move |sink, event, port| match event {
            Event::Started => Verdict::Resume,
            Event::Syscall(call) if call.nr == 1000 => {
                let start = Regs { rip: call.args[0], rsp: call.args[1], ..port.regs().unwrap() };
                let child = sink.child("child");
                let result =
                    if fork { port.fork(&start, child.clone()) } else { port.spawn(&start, child.clone()) };
                match result {
                    Ok(new) => {
                        begin(&child, new);
                        count.fetch_add(1, Relaxed);
                        Verdict::Return(0)
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            Event::Syscall(call) if call.nr == 60 => {
                sink.note(Note::Exit(0));
                Verdict::Exit
            }
            Event::Syscall(call) if call.nr == 1001 => Verdict::Return(0),
            other => panic!("{other:?}"),
        });
        for _ in 0..41 {
            assert_eq!(next(&notes), Note::Exit(0));
        }
        assert_eq!(made.load(Relaxed), 40);
        drop(task);
    }
}

/// A process that dies by itself is reported, once for each of its tasks.
#[test]
fn death_is_reported() {
    let platform = platform();
    let (_sink, task, notes) = run(&platform, counts(), |sink, event, _| match event {
        // By the doorbell or by the poller: who begins a program may be watched already.
        Event::Syscall(_) => {
            sink.note(Note::Value(1));
            Verdict::Park
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&notes), Note::Value(1));
    let pid = task.control.host_tid();
    // SAFETY: no pointers; the thread exists.
    let tgid = unsafe { libc::kill(pid, libc::SIGKILL) };
    assert_eq!(tgid, 0);
    assert_eq!(next(&notes), Note::Gone(libc::SIGKILL));
}

/// An idle platform with parked tasks uses no processor time.
#[test]
fn idles() {
    let platform = platform();
    let (_sink, task, notes) = run(&platform, counts(), |sink, event, _| match event {
        Event::Syscall(call) if call.args[0] == 2000 => {
            sink.note(Note::Value(1));
            Verdict::Park
        }
        Event::Syscall(call) => Verdict::Return(call.args[0] as i64 + 1),
        other => panic!("{other:?}"),
    });
    assert_eq!(next(&notes), Note::Value(1));
    std::thread::sleep(std::time::Duration::from_millis(50));
    let used = || {
        // SAFETY: an all-zero rusage is valid and getrusage fills it in.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
            usage
        };
        (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1_000_000
            + usage.ru_utime.tv_usec
            + usage.ru_stime.tv_usec
    };
    let before = used();
    std::thread::sleep(std::time::Duration::from_millis(500));
    println!("{} µs in 500 ms", used() - before);
    task.space.kill();
}

guest!(
    sheds,
    "lea rdi, [rip + 5f]",
    "lea rsi, [rsp - 0x4000]",
    "mov eax, 1000",
    "syscall",
    "mov edi, [0x600000]",
    "mov eax, 1001",
    "syscall",
    "mov eax, 60",
    "syscall",
    "5: mov dword ptr [0x600000], 9",
    "mov eax, 1002",
    "syscall",
    "ud2",
);

/// A thread that moves to a space of its own leaves the rest of its process alone, again and again.
#[test]
fn threads_exec() {
    let platform = platform();
    let rounds = AtomicU64::new(0);
    let (_sink, _task, notes) = run_full(&platform, sheds(), move |sink, event, port| match event {
        Event::Started => Verdict::Resume,
        Event::Syscall(call) if call.nr == 1000 => {
            let start = Regs { rip: call.args[0], rsp: call.args[1], ..port.regs().unwrap() };
            let child = sink.child("child");
            let new = port.spawn(&start, child.clone()).unwrap();
            begin(&child, new);
            Verdict::Park
        }
        Event::Syscall(call) if call.nr == 1001 => {
            sink.note(Note::Value(call.args[0] as i64));
            Verdict::Return(0)
        }
        Event::Syscall(call) if call.nr == 1002 => {
            port.replace_space(rounds.load(Relaxed).is_multiple_of(2)).unwrap();
            guest::load(port, sheds());
            sink.note(Note::Say("moved".into()));
            if rounds.fetch_add(1, Relaxed) == 30 {
                return Verdict::Exit;
            }
            Verdict::Resume
        }
        Event::Syscall(_) => Verdict::Exit,
        other => panic!("{other:?}"),
    });
    for _ in 0..31 {
        assert_eq!(next(&notes), Note::Say("moved".into()));
    }
}

/// Parked calls that are finished by one thread and kicked by another at the same time: each call returns once,
/// with its value.
#[test]
fn finishes_race_with_kicks() {
    let platform = platform();
    let calls = Arc::new(std::sync::Mutex::new((0u64, false)));
    let shared = calls.clone();
    let (_sink, task, notes) = run(&platform, counts(), move |sink, event, port| match event {
        Event::Syscall(call) => {
            let mut call_state = shared.lock().unwrap();
            assert_eq!(call.args[0], call_state.0);
            call_state.1 = true;
            sink.note(Note::Value(1));
            Verdict::Park
        }
        Event::Again => {
            let call_state = shared.lock().unwrap();
            let rax = port.regs().unwrap().rax;
            if call_state.1 {
                return Verdict::Park;
            }
            assert_eq!(rax, call_state.0);
            Verdict::Resume
        }
        Event::Interrupted => Verdict::Resume,
        other => panic!("{other:?}"),
    });
    let kicker = task.control.clone();
    let stop = Arc::new(AtomicU64::new(0));
    let ended = stop.clone();
    let thread = std::thread::spawn(move || {
        while ended.load(Relaxed) == 0 {
            kicker.kick();
            for _ in 0..2000 {
                std::hint::spin_loop();
            }
        }
    });
    for _ in 0..20000u64 {
        assert_eq!(next(&notes), Note::Value(1));
        let mut state = calls.lock().unwrap();
        state.0 += 1;
        state.1 = false;
        task.control.finish(state.0 as i64);
    }
    stop.store(1, Relaxed);
    thread.join().unwrap();
    task.space.kill();
}

/// A kernel bug costs the process that met it; the poller and the workers go on.
#[test]
fn sinks_may_panic() {
    let platform = platform();
    for hot in [false, true] {
        let (_sink, _task, notes) = run(&platform, counts(), move |sink, event, port| match event {
            Event::Syscall(call) if call.args[0] > 20_000 || (hot && call.args[0] > 500 && !port.full()) => {
                sink.note(Note::Value(1));
                std::panic::resume_unwind(Box::new("a test's own panic"));
            }
            Event::Syscall(call) => Verdict::Return(call.args[0] as i64 + 1),
            other => panic!("{other:?}"),
        });
        assert_eq!(next(&notes), Note::Value(1));
        assert_eq!(next(&notes), Note::Gone(libc::SIGKILL));
    }
}
