//! clone(2), clone3, fork(2), vfork(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::clone::{Request, clone as create};
use syscall_table::abi::clone::*;
use syscall_table::abi::sigaction::SIGCHLD;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

pub fn clone(
    cx: &mut Cx,
    flags: CloneFlags,
    stack: Addr,
    parent_tid: Out<i32>,
    child_tid: Addr,
    tls: u64,
) -> SysResult {
    // The upper half is not looked at.
    let bits = flags.bits() & 0xffff_ffff;
    if bits & CLONE_PIDFD != 0 && bits & CLONE_PARENT_SETTID != 0 {
        return Err(Errno::EINVAL.into());
    }
    create(
        cx,
        &Request {
            flags: bits & !CSIGNAL,
            exit_signal: (bits & CSIGNAL) as i32,
            stack: stack.addr(),
            tls,
            parent_tid: parent_tid.addr(),
            child_tid: child_tid.addr(),
            pidfd: parent_tid.addr(),
            wanted: Vec::new(),
        },
    )
}

pub fn fork(cx: &mut Cx) -> SysResult {
    create(cx, &Request { exit_signal: SIGCHLD, ..Request::default() })
}

pub fn vfork(cx: &mut Cx) -> SysResult {
    create(cx, &Request { flags: CLONE_VM | CLONE_VFORK, exit_signal: SIGCHLD, ..Request::default() })
}

pub fn clone3(cx: &mut Cx, cl_args: InBuf, size: usize) -> SysResult {
    if size < CLONE_ARGS_SIZE_VER0 {
        return Err(Errno::EINVAL.into());
    }
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    let mut raw = vec![0u8; size];
    cx.copy_in(cl_args.addr(), &mut raw)?;
    let known = size_of::<CloneArgs>();
    // What a newer program asks for beyond our struct.
    if raw.get(known..).unwrap_or_default().iter().any(|b| *b != 0) {
        return Err(Errno::E2BIG.into());
    }
    let mut args = CloneArgs::new_zeroed();
    for (to, from) in args.as_mut_bytes().iter_mut().zip(&raw) {
        *to = *from;
    }
    // One entry for each level of pid namespaces.
    if args.set_tid_size > 32 || (args.set_tid == 0) != (args.set_tid_size == 0) {
        return Err(Errno::EINVAL.into());
    }
    let into_cgroup = args.flags & CLONE_INTO_CGROUP != 0;
    if into_cgroup && (size < size_of::<CloneArgs>() || args.cgroup > i32::MAX as u64) {
        return Err(Errno::EINVAL.into());
    }
    let bad = args.flags & (CSIGNAL & !CLONE_NEWTIME | CLONE_DETACHED) != 0
        || args.exit_signal & !CSIGNAL != 0
        || args.flags & (CLONE_THREAD | CLONE_PARENT) != 0 && args.exit_signal != 0
        || (args.stack == 0) != (args.stack_size == 0);
    if bad {
        return Err(Errno::EINVAL.into());
    }
    let stack = args.stack.checked_add(args.stack_size).ok_or(Errno::EINVAL)?;
    // Read before anything of them is judged.
    let mut wanted = Vec::new();
    for at in 0..args.set_tid_size {
        wanted.push(cx.read_value(args.set_tid.wrapping_add(at * 4))?);
    }
    if into_cgroup {
        cx.task.files().get_any(args.cgroup as i32)?;
    }
    create(
        cx,
        &Request {
            flags: args.flags,
            exit_signal: args.exit_signal as i32,
            stack,
            tls: args.tls,
            parent_tid: args.parent_tid,
            child_tid: args.child_tid,
            pidfd: args.pidfd,
            wanted,
        },
    )
}
