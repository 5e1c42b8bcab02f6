//! Runs a static program named by LAZARET_TEST_PROGRAM with a kernel of a dozen calls. Does nothing without one.

mod guest;

const PLATFORM: &str = if option_env!("LAZARET_TEST_PTRACE").is_some() { "ptrace" } else { "trap" };

use guest::{Note, next, platform, run};
use platform::{Event, Port, Verdict};
use std::sync::Mutex;

guest!(nothing, "ud2");

fn word(data: &[u8], at: usize, len: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..len].copy_from_slice(&data[at..at + len]);
    u64::from_le_bytes(bytes)
}

fn load(port: &mut dyn Port, elf: &[u8], vdso: u64) -> (u64, u64, u64) {
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let (phoff, phnum) = (word(elf, 32, 8) as usize, word(elf, 56, 2) as usize);
    let mut end = 0;
    for i in 0..phnum {
        let at = phoff + i * 56;
        if word(elf, at, 4) != 1 {
            continue;
        }
        let (offset, addr) = (word(elf, at + 8, 8), word(elf, at + 16, 8));
        let (file, mem) = (word(elf, at + 32, 8), word(elf, at + 40, 8));
        let (start, stop) = (addr & !4095, (addr + mem).next_multiple_of(4096));
        port.mmap(start, stop - start, 7, anonymous, None).unwrap();
        port.write_mem(addr, &elf[offset as usize..(offset + file) as usize]).unwrap();
        end = end.max(stop);
    }
    let top = 0x7fff_0000_0000;
    port.mmap(top - 0x10_0000, 0x10_0000, 3, anonymous, None).unwrap();
    let name = top - 64;
    port.write_mem(name, b"program\0").unwrap();
    let auxv =
        [3, 0x40_0040, 4, 56, 5, phnum as u64, 6, 4096, 9, word(elf, 24, 8), 25, name + 16, 33, vdso, 0, 0];
    let words: Vec<u64> = [1, name, 0, 0].into_iter().chain(auxv).collect();
    let rsp = (top - 4096) & !15;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    port.write_mem(rsp, &bytes).unwrap();
    (word(elf, 24, 8), rsp, end)
}

#[test]
fn runs_a_static_program() {
    let Some(path) = std::env::var_os("LAZARET_TEST_PROGRAM") else { return };
    let elf = std::fs::read(path).unwrap();
    let platform = platform();
    let brk = Mutex::new(0u64);
    let (_sink, _task, notes) = run(&platform, nothing(), move |sink, event, port| {
        let call = match event {
            Event::Exception(_) if *brk.lock().unwrap() == 0 => {
                let space = port.replace_space(false).unwrap();
                let (rip, rsp, end) = load(port, &elf, space.vdso().unwrap());
                *brk.lock().unwrap() = end;
                let mut regs = port.regs().unwrap();
                (regs.rip, regs.rsp, regs.eflags) = (rip, rsp, 0x202);
                port.set_regs(&regs).unwrap();
                return Verdict::Resume;
            }
            Event::Syscall(call) => call,
            Event::Again => {
                let regs = port.regs().unwrap();
                platform::SyscallRequest {
                    abi: platform::Abi::X86_64,
                    nr: regs.orig_rax as u32,
                    args: [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9],
                }
            }
            other => panic!("{other:?} {:x?}", port.regs()),
        };
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        if !port.full() && call.nr != 110 {
            sink.control().kick();
            return Verdict::Park;
        }
        match call.nr {
            1 => {
                let mut text = vec![0; call.args[2] as usize];
                port.read_mem(call.args[1], &mut text).unwrap();
                sink.note(Note::Say(String::from_utf8(text).unwrap()));
                Verdict::Return(call.args[2] as i64)
            }
            9 => {
                let addr = 0x7000_0000_0000 + call.args[1].next_multiple_of(4096);
                port.mmap(addr, call.args[1], call.args[2] as i32, anonymous, None).unwrap();
                Verdict::Return(addr as i64)
            }
            10 => match port.mprotect(call.args[0], call.args[1], call.args[2] as i32) {
                Ok(()) => Verdict::Return(0),
                Err(_) => Verdict::Return(-22),
            },
            12 => {
                let mut brk = brk.lock().unwrap();
                if call.args[0] > *brk {
                    let (start, end) = (brk.next_multiple_of(4096), call.args[0].next_multiple_of(4096));
                    if end > start {
                        port.mmap(start, end - start, 3, anonymous, None).unwrap();
                    }
                    *brk = call.args[0];
                }
                Verdict::Return(*brk as i64)
            }
            158 => {
                let mut regs = port.regs().unwrap();
                regs.fs_base = call.args[1];
                port.set_regs(&regs).unwrap();
                Verdict::Return(0)
            }
            110 | 218 | 273 => Verdict::Return(1),
            5 | 262 | 16 => Verdict::Return(-9),
            231 => {
                sink.note(Note::Exit(call.args[0]));
                Verdict::Exit
            }
            nr => {
                println!("call {nr}: ENOSYS");
                Verdict::Return(-38)
            }
        }
    });
    loop {
        match next(&notes) {
            Note::Say(text) => print!("{text}"),
            Note::Exit(status) => {
                println!("exit {status}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}
