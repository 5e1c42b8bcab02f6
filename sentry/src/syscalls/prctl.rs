//! prctl(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::{self, Creds, cap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::prctl::*;
use syscall_table::abi::seccomp::{SECCOMP_MODE_FILTER, SECCOMP_MODE_STRICT};
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
            if task.creds().securebits & creds::SECBIT_KEEP_CAPS_LOCKED != 0 {
                return Err(Errno::EPERM.into());
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
            let old = task.creds().securebits;
            // Every second bit locks the one before it, and itself.
            let locks = old & 0xaa;
            let changes = (bits ^ old) & (locks >> 1) != 0 || locks & !bits != 0;
            if !task.creds().capable(cap::SETPCAP) || changes {
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
        PR_GET_SECCOMP => Ok(task.seccomp.mode()),
        PR_SET_SECCOMP => match arg2 {
            SECCOMP_MODE_STRICT => crate::seccomp::set_strict(&task).map(|()| 0),
            SECCOMP_MODE_FILTER => super::seccomp::set_filter(cx, 0, Addr(arg3)),
            _ => Err(Errno::EINVAL.into()),
        },
        // Nobody has anything but the default, as long as setting it is a gap.
        PR_GET_MDWE => zero(&[arg2, arg3, arg4, arg5]).map(|()| 0),
        // What is not measured goes on not being measured.
        PR_TASK_PERF_EVENTS_DISABLE | PR_TASK_PERF_EVENTS_ENABLE => Ok(0),
        PR_SET_PTRACER => Ok(0),
        PR_MCE_KILL | PR_MCE_KILL_GET | PR_SET_THP_DISABLE | PR_GET_THP_DISABLE | PR_SET_IO_FLUSHER
        | PR_GET_IO_FLUSHER | PR_SET_MEMORY_MERGE | PR_GET_MEMORY_MERGE => {
            advice(cx, op.bits(), [arg2, arg3, arg4, arg5])
        }
        PR_GET_SPECULATION_CTRL | PR_SET_SPECULATION_CTRL => {
            speculation(op.bits() == PR_SET_SPECULATION_CTRL, arg2, &[arg4, arg5], arg3)
        }
        // PR_SYS_DISPATCH_OFF, which it is.
        PR_SET_SYSCALL_USER_DISPATCH if [arg2, arg3, arg4, arg5] == [0; 4] => Ok(0),
        PR_SET_MM if !task.creds().capable(cap::SYS_RESOURCE) => Err(Errno::EPERM.into()),
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
        | PR_LOCK_SHADOW_STACK_STATUS => Err(Errno::EINVAL.into()),
        other => {
            let row = syscall_table::sub::prctl::PRCTL.by_value(other as u32 as u64);
            match row {
                Some(row) => Err(Fail::gap(Errno::EINVAL, format!("prctl {}", row.name))),
                None => Err(Errno::EINVAL.into()),
            }
        }
    }
}

/// Options that the host never hears of: kept, so that what was set is read back.
fn advice(cx: &Cx, option: i32, args: [u64; 4]) -> SysResult {
    let [first, rest @ ..] = args;
    let mut kept = cx.task.process.advice.lock();
    match option {
        PR_MCE_KILL => {
            let policy = match args {
                // PR_MCE_KILL_CLEAR: the default. PR_MCE_KILL_SET: late, early, default.
                [0, 0, 0, 0] => PR_MCE_KILL_DEFAULT,
                [1, policy @ 0..=PR_MCE_KILL_DEFAULT, 0, 0] => policy,
                _ => return Err(Errno::EINVAL.into()),
            };
            kept.mce_kill = Some(policy);
            Ok(0)
        }
        PR_MCE_KILL_GET => {
            zero(&args)?;
            Ok(kept.mce_kill.unwrap_or(PR_MCE_KILL_DEFAULT))
        }
        PR_SET_THP_DISABLE | PR_SET_MEMORY_MERGE => {
            zero(&rest)?;
            let slot =
                if option == PR_SET_THP_DISABLE { &mut kept.thp_disable } else { &mut kept.memory_merge };
            *slot = first != 0;
            Ok(0)
        }
        PR_GET_THP_DISABLE | PR_GET_MEMORY_MERGE => {
            zero(&args)?;
            Ok(u64::from(if option == PR_GET_THP_DISABLE { kept.thp_disable } else { kept.memory_merge }))
        }
        // What is left is PR_SET_IO_FLUSHER and PR_GET_IO_FLUSHER.
        _ => {
            drop(kept);
            if !cx.task.creds().capable(cap::SYS_RESOURCE) {
                return Err(Errno::EPERM.into());
            }
            zero(&rest)?;
            let mut kept = cx.task.process.advice.lock();
            match (option, first) {
                (PR_GET_IO_FLUSHER, 0) => return Ok(u64::from(kept.io_flusher)),
                (PR_SET_IO_FLUSHER, 0 | 1) => kept.io_flusher = first == 1,
                _ => return Err(Errno::EINVAL.into()),
            }
            Ok(0)
        }
    }
}

const PR_MCE_KILL_DEFAULT: u64 = 2;
/// PR_SPEC_STORE_BYPASS, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_L1D_FLUSH.
const SPECULATIONS: u64 = 3;

/// As on a processor without these troubles (PR_SPEC_NOT_AFFECTED); what the host does about them cannot be changed.
fn speculation(set: bool, which: u64, rest: &[u64], control: u64) -> SysResult {
    zero(rest)?;
    if !set {
        zero(&[control])?;
    }
    match (which < SPECULATIONS, set) {
        (false, _) => Err(Errno::ENODEV.into()),
        (true, true) => Err(Errno::ENXIO.into()),
        (true, false) => Ok(0),
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
    let own = cx.task.creds();
    match what {
        PR_CAP_AMBIENT_IS_SET => Ok(u64::from(own.ambient & bit != 0)),
        PR_CAP_AMBIENT_RAISE => {
            let forbidden = own.securebits & creds::SECBIT_NO_CAP_AMBIENT_RAISE != 0;
            if forbidden || own.permitted & own.inheritable & bit == 0 {
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
