//! The trap platform driven by a minimal kernel. Runs as root, or with user namespaces.

mod guest;

use guest::{Note, begin, next, platform, run};
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
    let (_sink, _task, notes) = run(&platform, hello(), |sink, event, port| {
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
