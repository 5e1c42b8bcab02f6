//! prctl(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::{self, Creds, cap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::prctl::*;
use syscall_table::abi::sigaction::SIGRTMAX;
use syscall_table::errno::Errno;

const TASK_COMM_LEN: usize = 16;
const DEFAULT_SLACK: u64 = 50_000;
const LAST_CAP: u64 = 40;

fn zero(args: &[u64]) -> SysResult<()> {
    if args.iter().all(|a| *a == 0) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

fn change_creds(cx: &Cx, edit: impl FnOnce(&mut Creds)) {
    let mut new = Creds::clone(&cx.task.creds());
    edit(&mut new);
    *cx.task.creds.lock() = Arc::new(new);
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
            task.sched.lock().timer_slack = arg2;
            Ok(0)
        }
        PR_GET_TIMERSLACK => {
            let slack = task.sched.lock().timer_slack;
            Ok(if slack == 0 { DEFAULT_SLACK } else { slack })
        }
        PR_GET_TID_ADDRESS => {
            cx.write_value(arg2, &task.clear_child_tid.load(Ordering::Relaxed))?;
            Ok(0)
        }
        PR_GET_KEEPCAPS => Ok(u64::from(task.creds().securebits & creds::SECBIT_KEEP_CAPS != 0)),
        PR_SET_KEEPCAPS => {
            if arg2 > 1 {
                return Err(Errno::EINVAL.into());
            }
            change_creds(cx, |c| {
                c.securebits &= !creds::SECBIT_KEEP_CAPS;
                if arg2 == 1 {
                    c.securebits |= creds::SECBIT_KEEP_CAPS;
                }
            });
            Ok(0)
        }
        PR_GET_SECUREBITS => Ok(u64::from(task.creds().securebits)),
        PR_SET_SECUREBITS => {
            let bits = u32::try_from(arg2).ok().filter(|b| *b <= 0xff).ok_or(Errno::EPERM)?;
            let locked = (task.creds().securebits & 0xaa) >> 1;
            if !task.creds().capable(cap::SETPCAP) || (bits ^ task.creds().securebits) & locked != 0 {
                return Err(Errno::EPERM.into());
            }
            change_creds(cx, |c| c.securebits = bits);
            Ok(0)
        }
        PR_CAPBSET_READ if arg2 <= LAST_CAP => Ok(task.creds().bounding >> arg2 & 1),
        PR_CAPBSET_DROP if arg2 <= LAST_CAP => {
            if !task.creds().capable(cap::SETPCAP) {
                return Err(Errno::EPERM.into());
            }
            change_creds(cx, |c| c.bounding &= !(1 << arg2));
            Ok(0)
        }
        PR_CAPBSET_READ | PR_CAPBSET_DROP => Err(Errno::EINVAL.into()),
        PR_CAP_AMBIENT => ambient(cx, arg2, arg3, arg4, arg5),
        PR_GET_AUXV => {
            zero(&[arg4, arg5])?;
            let auxv = task.process.auxv.lock().clone();
            let room = usize::try_from(arg3).unwrap_or(usize::MAX).min(auxv.len());
            cx.copy_out(arg2, auxv.get(..room).unwrap_or_default())?;
            Ok(auxv.len() as u64)
        }
        // Names of anonymous memory only show in /proc/pid/maps; without CONFIG_ANON_VMA_NAME this is the answer.
        PR_SET_VMA => Err(Errno::EINVAL.into()),
        PR_GET_SECCOMP => Ok(0),
        PR_SET_SECCOMP => Err(Fail::gap(Errno::EINVAL, "prctl PR_SET_SECCOMP")),
        PR_GET_THP_DISABLE | PR_GET_IO_FLUSHER | PR_GET_MDWE | PR_GET_MEMORY_MERGE => Ok(0),
        // Advice that changes no answer.
        PR_SET_THP_DISABLE | PR_SET_PTRACER | PR_MCE_KILL => Ok(0),
        // PR_MCE_KILL_DEFAULT.
        PR_MCE_KILL_GET => Ok(2),
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
        PR_GET_UNALIGN | PR_SET_UNALIGN | PR_GET_FPEMU | PR_SET_FPEMU | PR_GET_FPEXC | PR_SET_FPEXC
        | PR_GET_ENDIAN | PR_SET_ENDIAN => Err(Errno::EINVAL.into()),
        other => {
            let row = syscall_table::sub::prctl::PRCTL.by_value(other as u32 as u64);
            match row {
                Some(row) => Err(Fail::gap(Errno::EINVAL, format!("prctl {}", row.name))),
                None => Err(Errno::EINVAL.into()),
            }
        }
    }
}

fn ambient(cx: &mut Cx, what: u64, capability: u64, arg4: u64, arg5: u64) -> SysResult {
    zero(&[arg4, arg5])?;
    if what == PR_CAP_AMBIENT_CLEAR_ALL {
        zero(&[capability])?;
        change_creds(cx, |c| c.ambient = 0);
        return Ok(0);
    }
    if capability > LAST_CAP {
        return Err(Errno::EINVAL.into());
    }
    let bit = 1u64 << capability;
    let creds = cx.task.creds();
    match what {
        PR_CAP_AMBIENT_IS_SET => Ok(u64::from(creds.ambient & bit != 0)),
        PR_CAP_AMBIENT_RAISE => {
            if creds.permitted & creds.inheritable & bit == 0 {
                return Err(Errno::EPERM.into());
            }
            change_creds(cx, |c| c.ambient |= bit);
            Ok(0)
        }
        PR_CAP_AMBIENT_LOWER => {
            change_creds(cx, |c| c.ambient &= !bit);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
