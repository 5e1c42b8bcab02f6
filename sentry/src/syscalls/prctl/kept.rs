//! Options of prctl(2) that have no effect here, or none that can be seen: kept, so that what was set is read back.

use super::zero;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::abi::prctl::*;
use syscall_table::errno::Errno;

const PR_MCE_KILL_DEFAULT: u64 = 2;
/// With PR_SET_THP_DISABLE: not for memory that was advised to have them.
const PR_THP_DISABLE_EXCEPT_ADVISED: u64 = 2;
/// PR_SPEC_STORE_BYPASS, PR_SPEC_INDIRECT_BRANCH, PR_SPEC_L1D_FLUSH.
const STORE_BYPASS: u64 = 0;
const INDIRECT_BRANCH: u64 = 1;
const PR_SPEC_PRCTL: u64 = 1;
const PR_SPEC_ENABLE: u64 = 2;
const PR_SPEC_DISABLE: u64 = 4;
const PR_SPEC_FORCE_DISABLE: u64 = 8;

/// Options that the host never hears of: kept, so that what was set is read back.
pub(super) fn advice(cx: &Cx, option: i32, args: [u64; 4]) -> SysResult {
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
        PR_SET_THP_DISABLE => {
            kept.thp_disable = match (first, rest) {
                (0, [0, 0, 0]) => 0,
                (1.., [0 | PR_THP_DISABLE_EXCEPT_ADVISED, 0, 0]) => 1 | rest[0],
                _ => return Err(Errno::EINVAL.into()),
            };
            Ok(0)
        }
        PR_GET_THP_DISABLE => zero(&args).map(|()| kept.thp_disable),
        PR_SET_MEMORY_MERGE => {
            zero(&rest)?;
            kept.memory_merge = first != 0;
            Ok(0)
        }
        PR_GET_MEMORY_MERGE => zero(&args).map(|()| u64::from(kept.memory_merge)),
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

/// What the processor speculates about is the host's affair: its state is told, and nothing of it can be changed.
pub(super) fn speculation(cx: &Cx, set: bool, args: [u64; 4]) -> SysResult {
    let [which, control, rest @ ..] = args;
    zero(&rest)?;
    if !set {
        zero(&[control])?;
    }
    let place = usize::try_from(which).ok().and_then(|at| cx.kernel().config.speculation.get(at));
    let state = u64::from(*place.ok_or(Errno::ENODEV)?) & !PR_SPEC_PRCTL;
    match (set, which, control) {
        (false, ..) => Ok(state),
        (true, STORE_BYPASS, _) => Err(Errno::ENXIO.into()),
        (true, INDIRECT_BRANCH, PR_SPEC_ENABLE) if matches!(state, 0 | PR_SPEC_ENABLE) => Ok(0),
        (true, INDIRECT_BRANCH, PR_SPEC_ENABLE | PR_SPEC_DISABLE | PR_SPEC_FORCE_DISABLE) => {
            Err(Errno::EPERM.into())
        }
        (true, INDIRECT_BRANCH, _) => Err(Errno::ERANGE.into()),
        (true, ..) => Err(Errno::EPERM.into()),
    }
}

/// PR_FUTEX_HASH_SET_SLOTS, PR_FUTEX_HASH_GET_SLOTS.
const SET_SLOTS: u64 = 1;
const GET_SLOTS: u64 = 2;

/// PR_FUTEX_HASH: the sentry's table of futexes is one for all, and grows.
pub(super) fn futex_hash(cx: &Cx, what: u64, slots: u64, flags: u64) -> SysResult {
    let kept = &cx.task.process.futex_slots;
    match what {
        GET_SLOTS => Ok(kept.load(Relaxed).into()),
        SET_SLOTS if flags == 0 => {
            // The kernel takes it as an unsigned int.
            let slots = slots as u32;
            if slots == 1 || slots != 0 && !slots.is_power_of_two() {
                return Err(Errno::EINVAL.into());
            }
            kept.store(slots, Relaxed);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
