//! prctl(2).

mod capabilities;
mod kept;
mod set_mm;

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ptrace::links::hush;
use crate::seccomp::dispatch;
use crate::task::tree::INIT;
use std::sync::atomic::Ordering;
use syscall_table::abi::prctl::*;
use syscall_table::abi::seccomp::{SECCOMP_MODE_FILTER, SECCOMP_MODE_STRICT};
use syscall_table::abi::sigaction::SIGRTMAX;
use syscall_table::errno::Errno;

const TASK_COMM_LEN: usize = 16;
const DEFAULT_SLACK: u64 = 50_000;

fn zero(args: &[u64]) -> SysResult<()> {
    if args.iter().all(|a| *a == 0) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

pub fn prctl(cx: &mut Cx, op: PrctlOption, arg2: u64, arg3: u64, arg4: u64, arg5: u64) -> SysResult {
    let task = cx.task.clone();
    match op.bits() {
        PR_SET_NAME => {
            let mut name = [0u8; TASK_COMM_LEN - 1];
            let got = cx.copy_in_some(arg2, &mut name)?;
            let name = name.get(..got).unwrap_or_default();
            let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
            *task.comm.lock() = name.get(..end).unwrap_or_default().to_vec();
            Ok(0)
        }
        PR_GET_NAME => {
            let mut name = task.comm.lock().clone();
            name.resize(TASK_COMM_LEN, 0);
            cx.copy_out(arg2, &name)?;
            Ok(0)
        }
        PR_SET_PDEATHSIG => {
            let signal = i32::try_from(arg2).ok().filter(|s| *s <= SIGRTMAX).ok_or(Errno::EINVAL)?;
            task.pdeath_signal.store(signal, Ordering::Relaxed);
            Ok(0)
        }
        PR_GET_PDEATHSIG => {
            cx.write_value(arg2, &task.pdeath_signal.load(Ordering::Relaxed))?;
            Ok(0)
        }
        PR_GET_DUMPABLE => Ok(task.process.dumpable.load(Ordering::Relaxed) as u64),
        PR_SET_DUMPABLE => {
            let value = i32::try_from(arg2).ok().filter(|v| *v <= 1).ok_or(Errno::EINVAL)?;
            task.process.dumpable.store(value, Ordering::Relaxed);
            Ok(0)
        }
        PR_SET_NO_NEW_PRIVS => {
            zero(&[arg3, arg4, arg5])?;
            if arg2 != 1 {
                return Err(Errno::EINVAL.into());
            }
            task.no_new_privs.store(true, Ordering::Relaxed);
            Ok(0)
        }
        PR_GET_NO_NEW_PRIVS => {
            zero(&[arg2, arg3, arg4, arg5])?;
            Ok(u64::from(task.no_new_privs.load(Ordering::Relaxed)))
        }
        PR_SET_CHILD_SUBREAPER => {
            cx.kernel().tree.lock().node_mut(task.process.pid)?.subreaper = arg2 != 0;
            Ok(0)
        }
        PR_GET_CHILD_SUBREAPER => {
            let value = cx.kernel().tree.lock().node(task.process.pid)?.subreaper;
            cx.write_value(arg2, &i32::from(value))?;
            Ok(0)
        }
        PR_SET_TIMERSLACK => {
            let mut sched = task.sched.lock();
            if !sched.is_real_time() {
                sched.timer_slack = arg2;
            }
            Ok(0)
        }
        PR_GET_TIMERSLACK => {
            let sched = *task.sched.lock();
            Ok(match sched.timer_slack {
                _ if sched.is_real_time() => 0,
                0 => DEFAULT_SLACK,
                slack => slack,
            })
        }
        PR_GET_TID_ADDRESS => {
            cx.write_value(arg2, &task.clear_child_tid.load(Ordering::Relaxed))?;
            Ok(0)
        }
        PR_GET_KEEPCAPS | PR_SET_KEEPCAPS | PR_GET_SECUREBITS | PR_SET_SECUREBITS | PR_CAPBSET_READ
        | PR_CAPBSET_DROP | PR_CAP_AMBIENT => capabilities::change(cx, op.bits(), [arg2, arg3, arg4, arg5]),
        PR_GET_AUXV => {
            zero(&[arg4, arg5])?;
            let auxv = task.process.auxv.lock().clone();
            let room = usize::try_from(arg3).unwrap_or(usize::MAX).min(auxv.len());
            cx.copy_out(arg2, auxv.get(..room).unwrap_or_default())?;
            Ok(auxv.len() as u64)
        }
        PR_SET_VMA if arg2 == PR_SET_VMA_ANON_NAME => label(cx, arg3, arg4, arg5),
        PR_SET_VMA => Err(Errno::EINVAL.into()),
        PR_GET_SECCOMP => Ok(task.seccomp.mode()),
        PR_SET_SECCOMP => match arg2 {
            SECCOMP_MODE_STRICT => crate::seccomp::set_strict(&task).map(|()| 0),
            SECCOMP_MODE_FILTER => super::seccomp::set_filter(cx, 0, Addr(arg3)),
            _ => Err(Errno::EINVAL.into()),
        },
        PR_SET_MDWE => {
            zero(&[arg3, arg4, arg5])?;
            let known = PR_MDWE_REFUSE_EXEC_GAIN | PR_MDWE_NO_INHERIT;
            if arg2 & !known != 0 || arg2 == PR_MDWE_NO_INHERIT {
                return Err(Errno::EINVAL.into());
            }
            // Never taken back.
            let set = |old| (old == 0 || u64::from(old) == arg2).then_some(arg2 as u32);
            let mdwe = &task.mm().mdwe;
            mdwe.fetch_update(Ordering::Relaxed, Ordering::Relaxed, set).map_err(|_| Errno::EPERM)?;
            Ok(0)
        }
        PR_GET_MDWE => {
            zero(&[arg2, arg3, arg4, arg5])?;
            Ok(task.mm().mdwe.load(Ordering::Relaxed).into())
        }
        // What is not measured goes on not being measured.
        PR_TASK_PERF_EVENTS_DISABLE | PR_TASK_PERF_EVENTS_ENABLE => Ok(0),
        // ptrace_scope is 0: nobody needs to be let in. Linux still wants to know whom it is about.
        PR_SET_PTRACER if arg2 == 0 || arg2 == PR_SET_PTRACER_ANY => Ok(0),
        PR_SET_PTRACER => {
            let pid = Some(task.meant(arg2 as i32))
                .filter(|pid| *pid == INIT || cx.kernel().tree.task(*pid).is_ok());
            pid.map(|_| 0).ok_or(Errno::EINVAL.into())
        }
        PR_MCE_KILL | PR_MCE_KILL_GET | PR_SET_THP_DISABLE | PR_GET_THP_DISABLE | PR_SET_IO_FLUSHER
        | PR_GET_IO_FLUSHER | PR_SET_MEMORY_MERGE | PR_GET_MEMORY_MERGE => {
            kept::advice(cx, op.bits(), [arg2, arg3, arg4, arg5])
        }
        PR_GET_SPECULATION_CTRL | PR_SET_SPECULATION_CTRL => {
            kept::speculation(cx, op.bits() == PR_SET_SPECULATION_CTRL, [arg2, arg3, arg4, arg5])
        }
        PR_SET_SYSCALL_USER_DISPATCH => {
            task.dispatch.set(dispatch::Config { mode: arg2, offset: arg3, len: arg4, selector: arg5 })?;
            hush(&task);
            Ok(0)
        }
        PR_SET_MM => set_mm::set_mm(cx, arg2, arg3, arg4, arg5),
        PR_TIMER_CREATE_RESTORE_IDS => {
            zero(&[arg3, arg4, arg5])?;
            task.process.timers.restore_ids(arg2)
        }
        PR_FUTEX_HASH => kept::futex_hash(cx, arg2, arg3, arg4),
        PR_GET_TSC => {
            // PR_TSC_ENABLE
            cx.write_value(arg2, &1i32)?;
            Ok(0)
        }
        PR_SET_TSC if arg2 == 1 => Ok(0),
        // PR_TIMING_STATISTICAL
        PR_GET_TIMING => Ok(0),
        PR_SET_TIMING if arg2 == 0 => Ok(0),
        PR_SET_TIMING => Err(Errno::EINVAL.into()),
        // Calls of other processors.
        PR_GET_UNALIGN
        | PR_SET_UNALIGN
        | PR_GET_FPEMU
        | PR_SET_FPEMU
        | PR_GET_FPEXC
        | PR_SET_FPEXC
        | PR_GET_ENDIAN
        | PR_SET_ENDIAN
        | PR_MPX_ENABLE_MANAGEMENT
        | PR_MPX_DISABLE_MANAGEMENT
        | PR_SET_FP_MODE
        | PR_GET_FP_MODE
        | PR_SVE_SET_VL
        | PR_SVE_GET_VL
        | PR_PAC_RESET_KEYS
        | PR_SET_TAGGED_ADDR_CTRL
        | PR_GET_TAGGED_ADDR_CTRL
        | PR_PAC_SET_ENABLED_KEYS
        | PR_PAC_GET_ENABLED_KEYS
        | PR_SME_SET_VL
        | PR_SME_GET_VL
        | PR_RISCV_V_SET_CONTROL
        | PR_RISCV_V_GET_CONTROL
        | PR_RISCV_SET_ICACHE_FLUSH_CTX
        | PR_PPC_GET_DEXCR
        | PR_PPC_SET_DEXCR
        | PR_GET_SHADOW_STACK_STATUS
        | PR_SET_SHADOW_STACK_STATUS
        | PR_LOCK_SHADOW_STACK_STATUS
        | PR_SCHED_CORE => Err(Errno::EINVAL.into()),
        other => {
            let row = syscall_table::sub::prctl::PRCTL.by_value(other as u32 as u64);
            match row {
                Some(row) => Err(Fail::gap(Errno::EINVAL, format!("prctl {}", row.name))),
                None => Err(Errno::EINVAL.into()),
            }
        }
    }
}

/// Longest label, its NUL counted (ANON_VMA_NAME_MAX_LEN).
const LABEL_MOST: usize = 80;

/// PR_SET_VMA_ANON_NAME.
fn label(cx: &mut Cx, addr: u64, len: u64, name: u64) -> SysResult {
    let name = match name {
        0 => None,
        at => Some(cx.read_cstr(at, LABEL_MOST - 1, Errno::EINVAL)?),
    };
    let good = |byte: &u8| matches!(byte, b' '..=b'~') && !b"\\`$[]".contains(byte);
    if name.as_ref().is_some_and(|name| !name.iter().all(good)) {
        return Err(Errno::EINVAL.into());
    }
    cx.task.mm().set_label(addr, len, name.as_deref()).map(|()| 0)
}
