//! seccomp(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc;
use crate::seccomp::bpf::{MAX_INSNS, Program};
use crate::seccomp::notify::Notifier;
use crate::seccomp::{attach, set_strict};
use crate::task::creds::cap;
use std::sync::atomic::Ordering;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::seccomp::*;
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

const FLAGS: u32 = SECCOMP_FILTER_FLAG_TSYNC
    | SECCOMP_FILTER_FLAG_LOG
    | SECCOMP_FILTER_FLAG_SPEC_ALLOW
    | SECCOMP_FILTER_FLAG_NEW_LISTENER
    | SECCOMP_FILTER_FLAG_TSYNC_ESRCH
    | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

pub fn seccomp(cx: &mut Cx, op: SeccompOp, flags: SeccompFlags, args: Addr) -> SysResult {
    let plain = || if flags.bits() == 0 { Ok(()) } else { Err(Errno::EINVAL) };
    match op.bits() {
        SECCOMP_SET_MODE_STRICT => {
            plain()?;
            if !args.is_null() {
                return Err(Errno::EINVAL.into());
            }
            set_strict(cx.task).map(|()| 0)
        }
        SECCOMP_SET_MODE_FILTER => set_filter(cx, flags.bits(), args),
        SECCOMP_GET_ACTION_AVAIL => {
            plain()?;
            let action: u32 = cx.read_value(args.addr())?;
            match SECCOMP_ACTIONS.iter().any(|(_, known)| *known == action) {
                true => Ok(0),
                false => Err(Errno::EOPNOTSUPP.into()),
            }
        }
        SECCOMP_GET_NOTIF_SIZES => {
            plain()?;
            let size = |bytes: usize| bytes as u16;
            let sizes = SeccompNotifSizes {
                seccomp_notif: size(size_of::<SeccompNotif>()),
                seccomp_notif_resp: size(size_of::<SeccompNotifResp>()),
                seccomp_data: size(size_of::<SeccompData>()),
            };
            cx.write_value(args.addr(), &sizes)?;
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

/// SECCOMP_SET_MODE_FILTER, also of prctl(2).
pub(super) fn set_filter(cx: &mut Cx, flags: u32, args: Addr) -> SysResult {
    let has = |flag: u32| flags & flag != 0;
    let listens = has(SECCOMP_FILTER_FLAG_NEW_LISTENER);
    // With both, nobody could tell a descriptor from the thread that could not follow.
    let ambiguous = listens && has(SECCOMP_FILTER_FLAG_TSYNC) && !has(SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
    let idle = has(SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV) && !listens;
    if flags & !FLAGS != 0 || ambiguous || idle {
        return Err(Errno::EINVAL.into());
    }
    let program = read_program(cx, args)?;
    if !listens {
        return attach(cx.task, program, flags, None);
    }
    cx.task.files().check_room(cx.task.process.limit(RLIMIT_NOFILE))?;
    let notifier = Notifier::new();
    let file = notifier.file();
    attach(cx.task, program, flags, Some(notifier))?;
    Ok(u64::from(ipc::install_file(cx, file, true)?.unsigned_abs()))
}

fn read_program(cx: &mut Cx, args: Addr) -> SysResult<Program> {
    let fprog: SockFprog = cx.read_value(args.addr())?;
    let len = usize::from(fprog.len);
    if !(1..=MAX_INSNS).contains(&len) {
        return Err(Errno::EINVAL.into());
    }
    // Who may gain rights by execve(2) could lead a privileged program astray.
    if !cx.task.no_new_privs.load(Ordering::Relaxed) && !cx.task.creds().has(cap::SYS_ADMIN) {
        return Err(Errno::EACCES.into());
    }
    if fprog.filter == 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut insns = vec![SockFilter::new_zeroed(); len];
    cx.copy_in(fprog.filter, insns.as_mut_bytes())?;
    Program::new(insns).ok_or(Errno::EINVAL.into())
}
