//! Requests of ptrace(2) that look into a stopped task, or change what is seen: memory, register sets, pending signals, the
//! call under way, filters.

use super::with;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ptrace::{Kind, force, regs};
use crate::seccomp::Filter;
use crate::task::Task;
use crate::task::creds::cap;
use std::sync::Arc;
use syscall_table::abi::ptrace::*;
use syscall_table::abi::readv::Iovec;
use syscall_table::abi::seccomp::SECCOMP_FILTER_FLAG_LOG;
use syscall_table::abi::sigaction::{SIGTRAP, Siginfo};
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// PTRACE_SECCOMP_GET_FILTER and PTRACE_SECCOMP_GET_METADATA: the newest filter of a task that has one.
fn filters(cx: &Cx, task: &Task) -> SysResult<Arc<Filter>> {
    if !cx.task.creds().capable(cap::SYS_ADMIN) || cx.task.seccomp.is_on() {
        return Err(Errno::EACCES.into());
    }
    task.seccomp.newest().ok_or(Errno::EINVAL.into())
}

/// A filter's instructions, if there is a place for them; how many they are. The oldest filter is 0.
pub(super) fn filter(cx: &mut Cx, task: &Task, number: u64, to: u64) -> SysResult {
    let newest = filters(cx, task)?;
    let filter = newest.nth(number).ok_or(Errno::ENOENT)?;
    if to != 0 {
        cx.copy_out(to, filter.insns().as_bytes())?;
    }
    Ok(filter.insns().len() as u64)
}

/// struct seccomp_metadata: the number of a filter, which is read, and its flags.
pub(super) fn filter_flags(cx: &mut Cx, task: &Task, size: u64, at: u64) -> SysResult {
    let size = size.min(16);
    if size < 8 {
        return Err(Errno::EINVAL.into());
    }
    filters(cx, task)?;
    let number: u64 = cx.read_value(at)?;
    let newest = filters(cx, task)?;
    let filter = newest.nth(number).ok_or(Errno::ENOENT)?;
    let flags = if filter.logs() { u64::from(SECCOMP_FILTER_FLAG_LOG) } else { 0 };
    let bytes = [number.to_le_bytes(), flags.to_le_bytes()].concat();
    cx.copy_out(at, bytes.get(..size as usize).unwrap_or_default())?;
    Ok(size)
}

/// Reads a word of the tracee, or writes one.
pub(super) fn memory(cx: &mut Cx, task: &Arc<Task>, addr: u64, new: Option<u64>) -> SysResult<[u8; 8]> {
    let mm = task.mm();
    // Nothing of the platform's own.
    let own = addr.checked_add(8).is_some_and(|end| end <= mm.layout.lock().end());
    let shown = own || new.is_none() && mm.in_vdso(addr, 8);
    if !shown {
        return Err(Errno::EIO.into());
    }
    let mut word = new.unwrap_or_default().to_le_bytes();
    let done = match new {
        Some(_) => mm.space.write(addr, &word),
        None => mm.space.read_code(addr, &mut word),
    };
    if done.is_err() {
        force::transfer(cx, task, &mm, addr, &mut word, new.is_some())?;
    }
    Ok(word)
}

pub(super) fn get(cx: &mut Cx, to: u64, len: usize, bytes: &[u8]) -> SysResult<()> {
    cx.copy_out(to, bytes.get(..len).unwrap_or(bytes))
}

const NT_PRSTATUS: u64 = 1;
const NT_PRFPREG: u64 = 2;
const NT_X86_XSTATE: u64 = 0x202;

/// Bytes of a set, or EINVAL.
fn set_of(task: &Task, kind: u64) -> SysResult<Vec<u8>> {
    with(task, |_, stop| match kind {
        NT_PRSTATUS => Ok(stop.regs.as_bytes().to_vec()),
        NT_PRFPREG => {
            let mut state = stop.xstate.regset();
            state.truncate(regs::FPREGS);
            Ok(state)
        }
        NT_X86_XSTATE => Ok(stop.xstate.regset()),
        _ => Err(Errno::EINVAL.into()),
    })
}

/// The range that a request is about, as long as the set at most.
fn range(cx: &mut Cx, at: u64, whole: usize) -> SysResult<(u64, usize)> {
    let iov: Iovec = cx.read_value(at)?;
    if !iov.iov_len.is_multiple_of(8) {
        return Err(Errno::EINVAL.into());
    }
    Ok((iov.iov_base, usize::try_from(iov.iov_len).unwrap_or(usize::MAX).min(whole)))
}

pub(super) fn get_set(cx: &mut Cx, task: &Task, kind: u64, at: u64) -> SysResult<()> {
    let bytes = set_of(task, kind)?;
    let (base, len) = range(cx, at, bytes.len())?;
    get(cx, base, len, &bytes)?;
    cx.write_value(at.wrapping_add(8), &(len as u64))
}

pub(super) fn set_set(cx: &mut Cx, task: &Task, kind: u64, at: u64) -> SysResult<()> {
    let whole = set_of(task, kind)?.len();
    let (base, len) = range(cx, at, whole)?;
    let mut bytes = vec![0; len];
    cx.copy_in(base, &mut bytes)?;
    with(task, |_, stop| match kind {
        NT_PRSTATUS => regs::set(stop, &bytes),
        NT_PRFPREG if len != whole => Err(Errno::EINVAL.into()),
        NT_PRFPREG => regs::set_fp(stop, &bytes),
        _ => regs::set_xstate(stop, &bytes),
    })?;
    cx.write_value(at.wrapping_add(8), &(len as u64))
}

/// struct ptrace_peeksiginfo_args.
const SHARED: u32 = 1;

pub(super) fn pending(cx: &mut Cx, task: &Task, addr: u64, data: u64) -> SysResult {
    let [low, high, flags, count]: [u32; 4] = cx.read_value(addr)?;
    if flags & !SHARED != 0 || count > i32::MAX as u32 {
        return Err(Errno::EINVAL.into());
    }
    let skip = usize::try_from(u64::from(high) << 32 | u64::from(low)).unwrap_or(usize::MAX);
    let list: Vec<Siginfo> = if flags & SHARED != 0 {
        task.process.pending.lock().queue.infos(skip, count as usize)
    } else {
        task.signals.lock().queue.infos(skip, count as usize)
    };
    for (at, info) in list.iter().enumerate() {
        let to = data.wrapping_add((at as u64).wrapping_mul(size_of::<Siginfo>() as u64));
        match cx.write_value(to, info) {
            Err(fail) if at == 0 => return Err(fail),
            Err(_) => return Ok(at as u64),
            Ok(()) => {}
        }
    }
    Ok(list.len() as u64)
}

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;

/// struct ptrace_syscall_info.
pub(super) fn call_info(cx: &mut Cx, task: &Task, size: u64, to: u64) -> SysResult {
    let bytes = with(task, |by, stop| {
        let shows = stop.info.is_some_and(|info| info.si_code == SIGTRAP | 0x80);
        let judged = stop.code == SIGTRAP | PTRACE_EVENT_SECCOMP << 8;
        let op = match (shows, stop.kind) {
            (true, Kind::Entry) => 1u8,
            (true, Kind::Exit) => 2,
            _ if judged => 3,
            _ => 0,
        };
        let r = &stop.regs;
        let mut bytes = vec![op, 0, 0, 0];
        bytes.extend(AUDIT_ARCH_X86_64.to_le_bytes());
        let mut words = vec![r.rip, r.rsp];
        match op {
            1 | 3 => words.extend([r.orig_rax, r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9]),
            2 => words.push(r.rax),
            _ => {}
        }
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        if op == 3 {
            bytes.extend((by.message as u32).to_le_bytes());
        }
        if op == 2 {
            bytes.push(u8::from((-4095..0).contains(&(r.rax as i64))));
        }
        Ok(bytes)
    })?;
    let len = bytes.len().min(usize::try_from(size).unwrap_or(usize::MAX));
    get(cx, to, len, &bytes)?;
    Ok(bytes.len() as u64)
}

const ARCH_SET_GS: u64 = 0x1001;
const ARCH_SET_FS: u64 = 0x1002;
const ARCH_GET_FS: u64 = 0x1003;
const ARCH_GET_GS: u64 = 0x1004;
/// Places of fs_base and gs_base in struct user_regs_struct.
const FS_BASE: u64 = 21 * 8;
const GS_BASE: u64 = 22 * 8;

pub(super) fn arch_prctl(cx: &mut Cx, task: &Task, option: u64, arg: u64) -> SysResult {
    let place = if matches!(option, ARCH_SET_FS | ARCH_GET_FS) { FS_BASE } else { GS_BASE };
    match option {
        ARCH_GET_FS | ARCH_GET_GS => {
            let base = with(task, |by, stop| regs::peek(by, stop, place))?;
            cx.write_value(arg, &base)?;
            Ok(0)
        }
        ARCH_SET_FS | ARCH_SET_GS => {
            let set = with(task, |by, stop| regs::poke(by, stop, place, arg));
            set.map(|()| 0).map_err(|_| Errno::EPERM.into())
        }
        _ => Err(Fail::gap(Errno::EINVAL, "ptrace PTRACE_ARCH_PRCTL option")),
    }
}
