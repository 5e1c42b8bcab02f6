//! Guests that attack their shim. The guest may die; the sentry, the platform and other guests must not.

mod guest;

const PLATFORM: &str = "trap";

use guest::{Note, platform, run};
use lazaret_shim::layout;
use platform::{Event, Platform, Port, Verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

guest!(loops, "2: mov eax, 1001", "syscall", "jmp 2b",);

/// Runs the hostile guest beside a good one, for a while or until the hostile one is gone; then checks that the
/// good one still makes calls and that new guests can be started.
fn beside(
    code: &'static [u8],
    prepare: impl Fn(&mut dyn Port) + Send + Sync + 'static,
) -> (Option<Note>, u64) {
    let platform = platform();
    let good = Arc::new(AtomicU64::new(0));
    let count = good.clone();
    let (_good_sink, good_task, _good_notes) = run(&platform, loops(), move |_, event, _| match event {
        Event::Syscall(_) => {
            count.fetch_add(1, Relaxed);
            Verdict::Return(0)
        }
        other => panic!("{other:?}"),
    });
    let events = Arc::new(AtomicU64::new(0));
    let seen = events.clone();
    let (_sink, task, notes) = run(&platform, code, move |sink, event, port| {
        let n = seen.fetch_add(1, Relaxed);
        match event {
            // A guest that asks for it goes on behind its faults.
            Event::Exception(_)
                if n < 3000 && port.regs().is_ok_and(|regs| regs.r15 >> 12 == guest::CODE >> 12) =>
            {
                let mut regs = port.regs().unwrap();
                regs.rip = regs.r15;
                regs.rsp = guest::STACK_TOP;
                regs.eflags = 0x202;
                port.set_regs(&regs).unwrap();
                Verdict::Resume
            }
            Event::Exception(e) => {
                sink.note(Note::Say(format!("exception {} at {:#x}", e.signo, e.addr)));
                Verdict::Exit
            }
            Event::Syscall(call) if call.nr == 1002 => {
                if port.full() {
                    prepare(port);
                    Verdict::Return(0)
                } else {
                    sink.control().kick();
                    Verdict::Park
                }
            }
            Event::Again => {
                prepare(port);
                Verdict::Return(0)
            }
            // Host calls while the guest scribbles.
            Event::Syscall(_) if n.is_multiple_of(16) && port.full() => {
                let _ = port.mprotect(guest::DATA, 4096, 3);
                let _ = port.regs();
                let _ = port.xstate();
                Verdict::Return(0)
            }
            _ => Verdict::Return(0),
        }
    });
    let start = Instant::now();
    let note = notes.recv_timeout(Duration::from_millis(1500)).ok();
    task.control.kick();
    std::thread::sleep(Duration::from_millis(20));
    task.space.kill();
    let (before, since) = (good.load(Relaxed), Instant::now());
    while good.load(Relaxed) - before < 100 {
        assert!(since.elapsed() < Duration::from_secs(20), "the good guest goes on no more");
        std::thread::sleep(Duration::from_millis(5));
    }
    good_task.space.kill();
    works(&platform);
    println!("{note:?} after {:?}, {} events", start.elapsed(), events.load(Relaxed));
    (note, events.load(Relaxed))
}

fn works(platform: &Arc<dyn Platform>) {
    let (_sink, task, notes) = run(platform, loops(), |sink, event, _| match event {
        Event::Syscall(_) => {
            sink.note(Note::Value(3));
            Verdict::Exit
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(guest::next(&notes), Note::Value(3));
    drop(task);
}

// Every `syscall` instruction of the shim with changing registers. A SIGSYS or an error brings it back or not.
guest!(
    jumps,
    "mov rbx, 0x7fffc0001000",
    "mov r12, 1",
    "2: cmp word ptr [rbx], 0x050f",
    "jne 3f",
    "mov r13, 6364136223846793005",
    "imul r12, r13",
    "mov r13, 1442695040888963407",
    "add r12, r13",
    "mov rax, r12",
    "shr rax, 55",
    "mov rdi, r12",
    "rol rdi, 13",
    "mov rsi, r12",
    "rol rsi, 27",
    "mov rdx, 7",
    "mov r10, 0x32",
    "mov r8, r12",
    "lea r15, [rip + 3f]",
    "lea rsp, [0x7f8000]",
    "push r15",
    "push r15",
    "jmp rbx",
    "3: mov r15d, 0",
    "inc rbx",
    "mov rcx, 0x7fffc0003000",
    "cmp rbx, rcx",
    "jb 2b",
    "mov eax, 1001",
    "syscall",
    "mov rbx, 0x7fffc0001000",
    "jmp 2b",
);

#[test]
fn jumps_into_the_shim() {
    beside(jumps(), |_| {});
}

// Scribbles over the control area and the stacks while it makes calls.
guest!(
    scribbles,
    "mov r12, 1",
    "2: mov r13, 6364136223846793005",
    "imul r12, r13",
    "mov r13, 1442695040888963407",
    "add r12, r13",
    "mov rax, r12",
    "shr rax, 44",
    "and eax, 0xfff8",
    "mov rbx, 0x7fffc1000000",
    "mov rcx, r12",
    "rol rcx, 20",
    "mov [rbx + rax], rcx",
    "test r12, 0x700000",
    "jnz 2b",
    "mov eax, 1001",
    "syscall",
    "jmp 2b",
);

#[test]
fn scribbles_over_the_control_area() {
    beside(scribbles(), |_| {});
}

// Zeroes all of the stacks, then calls.
guest!(
    stacks,
    "2: mov rdi, 0x7fffd0000000",
    "mov ecx, 0x60000",
    "mov rax, 0x4141414141414141",
    "shr rcx, 3",
    "rep stosq",
    "mov eax, 1001",
    "syscall",
    "jmp 2b",
);

#[test]
fn spoils_the_stacks() {
    beside(stacks(), |_| {});
}

// The control words of its own slot (2: a child of the zygote, whose task is 1) as it likes: forged requests.
guest!(
    forges,
    "mov rbx, 0x7fffc1008000",
    "2: inc dword ptr [rbx + 64]",
    "mov dword ptr [rbx + 68], 31",
    "mov qword ptr [rbx + 72], 1001",
    "mov eax, 1001",
    "syscall",
    "inc dword ptr [rbx]",
    "mov dword ptr [rbx + 16], 1",
    "mov eax, 1001",
    "syscall",
    "jmp 2b",
);

#[test]
fn forges_requests() {
    beside(forges(), |_| {});
}

// Takes the shim away from under itself through the shim's own call instruction.
guest!(
    unmaps,
    "mov rbx, 0x7fffc0001000",
    "2: cmp word ptr [rbx], 0x050f",
    "je 3f",
    "inc rbx",
    "jmp 2b",
    "3: mov eax, 11",
    "mov rdi, 0x7fffc0000000",
    "mov esi, 0x30000000",
    "lea rcx, [rip + 4f]",
    "push rcx",
    "push rcx",
    "jmp rbx",
    "4: mov eax, 1001",
    "syscall",
    "jmp 4b",
);

#[test]
fn unmaps_the_shim() {
    beside(unmaps(), |_| {});
}

// Masks every signal by a frame of its own making, and computes for ever.
guest!(
    masks,
    "mov eax, 1001",
    "syscall",
    "mov rbx, 0x7fffc0001000",
    "2: mov rax, [rbx]",
    "mov rcx, 0xffffffffffffff",
    "and rax, rcx",
    "mov rcx, 0x050f0000000fb8",
    "cmp rax, rcx",
    "je 3f",
    "inc rbx",
    "jmp 2b",
    "3: sub rsp, 1024",
    "mov rdi, rsp",
    "mov ecx, 128",
    "xor eax, eax",
    "rep stosq",
    "lea rax, [rip + 4f]",
    "mov [rsp + 40 + 16*8], rax",
    "mov [rsp + 40 + 15*8], rsp",
    "mov rax, 0x002b000000000033",
    "mov [rsp + 40 + 18*8], rax",
    "mov qword ptr [rsp + 296], -1",
    "jmp rbx",
    "4: jmp 4b",
);

#[test]
fn masks_the_interrupt() {
    let platform = platform();
    let (_sink, task, notes) = run(&platform, masks(), |sink, event, _| match event {
        Event::Syscall(_) => {
            sink.note(Note::Value(1));
            Verdict::Return(0)
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(guest::next(&notes), Note::Value(1));
    std::thread::sleep(Duration::from_millis(20));
    task.control.kick();
    assert_eq!(guest::next(&notes), Note::Gone(libc::SIGKILL));
    works(&platform);
}

// Forks by itself, through the shim's own instruction, as often as it may; the copies call and spin.
guest!(
    bombs,
    "mov r14d, 200",
    "mov rbx, 0x7fffc0001000",
    "2: cmp word ptr [rbx], 0x050f",
    "jne 3f",
    "lea r15, [rip + 3f]",
    "lea rsp, [0x7f8000]",
    "push r15",
    "push r15",
    "mov eax, 56",
    "mov edi, 0x9000",
    "xor esi, esi",
    "mov edx, 0x600000",
    "jmp rbx",
    "3: mov r15d, 0",
    "inc rbx",
    "mov rcx, 0x7fffc0003000",
    "cmp rbx, rcx",
    "jb 2b",
    "mov eax, 1001",
    "syscall",
    "mov rbx, 0x7fffc0001000",
    "dec r14d",
    "jnz 2b",
    "4: jmp 4b",
);

#[test]
fn forks_by_itself() {
    beside(bombs(), |_| {});
}

#[test]
fn port_refuses_the_shim_range() {
    let platform = platform();
    let (_sink, _task, notes) = run(&platform, loops(), |sink, event, port| match event {
        Event::Syscall(_) => {
            let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            assert!(port.mmap(layout::CTL, 4096, 3, anonymous, None).is_err());
            assert!(port.munmap(layout::REGION_START - 4096, 8192).is_err());
            assert!(port.mprotect(layout::CODE, 4096, 7).is_err());
            assert!(port.mremap(guest::DATA, 4096, 4096, layout::STACK, false).is_err());
            assert!(port.madvise(layout::STACK, 1 << 20, 4).is_err());
            assert!(port.madvise(guest::DATA, 4096, 9).is_err());
            sink.note(Note::Exit(0));
            Verdict::Exit
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(guest::next(&notes), Note::Exit(0));
}

#[test]
fn decodes_any_slot() {
    let mut seed = 1u64;
    for len in [0, 8, 64, 511, 4096, 16384, 20000] {
        for _ in 0..50 {
            let data: Vec<u8> = (0..len)
                .map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seed >> 56) as u8
                })
                .collect();
            platform::trap::fuzz_slot(&data);
        }
    }
}
