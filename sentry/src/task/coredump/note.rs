//! Notes of a core file: what the threads were doing, and whose memory it is (elfcore.h, binfmt_elf.c).

use super::Thread;
use crate::mm::area::Area;
use crate::task::{Task, usage};
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::sigaction::Siginfo;
use zerocopy::IntoBytes;

const NT_PRSTATUS: u32 = 1;
const NT_FPREGSET: u32 = 2;
const NT_PRPSINFO: u32 = 3;
const NT_AUXV: u32 = 6;
const NT_FILE: u32 = 0x4649_4c45;
const NT_SIGINFO: u32 = 0x5349_4749;
const NT_X86_XSTATE: u32 = 0x202;
const NT_X86_XSAVE_LAYOUT: u32 = 0x205;
const PAGE: u64 = 4096;
/// Bytes of NT_FPREGSET.
const FPREGS: usize = 512;

fn put(out: &mut Vec<u8>, name: &str, kind: u32, content: &[u8]) {
    let words = [name.len() as u32 + 1, content.len() as u32, kind];
    out.extend_from_slice(words.as_bytes());
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend_from_slice(content);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// pid, ppid, pgrp, sid.
fn ids(task: &Task, id: i32) -> [i32; 4] {
    let tree = task.kernel.tree.lock();
    let node = tree.nodes.get(&task.process.pid);
    let (parent, group, session) = node.map_or((0, 0, 0), |n| (n.parent, n.pgid, n.sid));
    [id, parent, group, session].map(|number| task.shown(number))
}

fn timeval(time: Duration) -> [i64; 2] {
    [time.as_secs() as i64, i64::from(time.subsec_micros())]
}

/// struct elf_prstatus.
fn status(thread: &Thread, info: &Siginfo) -> Vec<u8> {
    let task = &thread.task;
    let (pending, held) = {
        let signals = task.signals.lock();
        (signals.queue.set(), signals.mask)
    };
    let mut out = Vec::with_capacity(336);
    out.extend_from_slice([info.si_signo, 0, 0, info.si_signo & 0xffff].as_bytes());
    out.extend_from_slice([pending, held].as_bytes());
    out.extend_from_slice(ids(task, task.tid()).as_bytes());
    let (cpu, children) = if task.tid() == task.process.pid {
        (usage::of_process(&task.process), task.process.usage.lock().children.cpu)
    } else {
        (platform::CpuTime { user: usage::of_task(task), ..Default::default() }, Default::default())
    };
    for time in [cpu.user, cpu.system, children.user, children.system] {
        out.extend_from_slice(timeval(time).as_bytes());
    }
    out.extend_from_slice(thread.regs.as_bytes());
    // pr_fpvalid, and room.
    out.extend_from_slice([1u32, 0].as_bytes());
    out
}

/// struct elf_prpsinfo.
fn process(task: &Task, arguments: &[u8]) -> Vec<u8> {
    let creds = task.creds();
    let nice = task.sched.lock().nice;
    let mut out = vec![0, b'R', 0, nice as i8 as u8, 0, 0, 0, 0];
    out.extend_from_slice(&0u64.to_le_bytes());
    out.extend_from_slice([creds.uid, creds.gid].as_bytes());
    out.extend_from_slice(ids(task, task.process.pid).as_bytes());
    let mut text = |bytes: &[u8], room: usize| {
        let end = out.len().saturating_add(room);
        out.extend(bytes.iter().take(room - 1));
        out.resize(end, 0);
    };
    text(&task.comm.lock(), 16);
    let line: Vec<u8> = arguments.iter().map(|b| if *b == 0 { b' ' } else { *b }).collect();
    text(&line, 80);
    out
}

/// Mapped files: their ranges, then their names.
fn files(task: &Task, areas: &[(u64, Area)]) -> Vec<u8> {
    let root = task.kernel.vfs.root_of(task).ok();
    let (mut ranges, mut names, mut count) = (Vec::new(), Vec::new(), 0u64);
    for (start, area) in areas {
        let Some(file) = area.file() else { continue };
        ranges.extend_from_slice([*start, area.end, area.offset() / PAGE].as_bytes());
        match &file.path {
            Some(path) => names.extend(path.display(root.as_ref())),
            None => names.extend(file.ops.describe().into_bytes()),
        }
        names.push(0);
        count += 1;
    }
    let mut out = [count, PAGE].as_bytes().to_vec();
    out.extend(ranges);
    out.extend(names);
    out
}

/// Where the parts of NT_X86_XSTATE lie.
fn layout(xstate: &[u8]) -> Vec<u8> {
    use std::arch::x86_64::__cpuid_count;
    // XCR0 is kept in bytes that the processor leaves to software.
    let word = xstate.get(464..472).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_le_bytes(*b));
    let mut out = Vec::new();
    for part in (2..63u32).filter(|part| word >> part & 1 != 0) {
        let cpuid = __cpuid_count(0xd, part);
        out.extend_from_slice([part, cpuid.eax, cpuid.ebx, 0].as_bytes());
    }
    out
}

/// All notes; the first thread is the one whose signal it was.
pub(super) fn notes(threads: &[Thread], info: &Siginfo, arguments: &[u8], areas: &[(u64, Area)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, thread) in threads.iter().enumerate() {
        let task: &Arc<Task> = &thread.task;
        put(&mut out, "CORE", NT_PRSTATUS, &status(thread, info));
        if at == 0 {
            put(&mut out, "CORE", NT_PRPSINFO, &process(task, arguments));
            put(&mut out, "CORE", NT_SIGINFO, info.as_bytes());
            put(&mut out, "CORE", NT_AUXV, &task.process.auxv.lock());
            put(&mut out, "CORE", NT_FILE, &files(task, areas));
        }
        put(&mut out, "CORE", NT_FPREGSET, thread.xstate.get(..FPREGS).unwrap_or_default());
        put(&mut out, "LINUX", NT_X86_XSTATE, &thread.xstate);
    }
    let xstate = threads.first().map_or(&[][..], |thread| &thread.xstate);
    put(&mut out, "LINUX", NT_X86_XSAVE_LAYOUT, &layout(xstate));
    out
}
