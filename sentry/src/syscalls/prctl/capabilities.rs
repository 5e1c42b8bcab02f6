//! Options of prctl(2) that change capabilities (capabilities(7)).

use super::zero;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::{self, Creds, cap};
use syscall_table::abi::prctl::*;
use syscall_table::errno::Errno;

const LAST_CAP: u64 = 40;
/// Every bit that is known, each with its lock.
const SECURE_ALL: u32 = 0xfff;
/// SECBIT_EXEC_RESTRICT_FILE and SECBIT_EXEC_DENY_INTERACTIVE with their locks: they bind interpreters that ask, and need no
/// right.
const SECURE_UNPRIVILEGED: u32 = 0xf00;
const LOCKS: u32 = 0xaaa;

fn edit(cx: &Cx, edit: impl FnOnce(&mut Creds)) {
    let mut new = Creds::clone(&cx.task.creds());
    edit(&mut new);
    cx.task.set_creds(new);
}

/// The options of this kind.
///
/// # Errors
/// As prctl(2).
pub(super) fn change(cx: &mut Cx, option: i32, args: [u64; 4]) -> SysResult {
    let [first, ..] = args;
    let own = cx.task.creds();
    match option {
        PR_GET_KEEPCAPS => Ok(u64::from(own.securebits & creds::SECBIT_KEEP_CAPS != 0)),
        PR_SET_KEEPCAPS => {
            if first > 1 {
                return Err(Errno::EINVAL.into());
            }
            if own.securebits & creds::SECBIT_KEEP_CAPS_LOCKED != 0 {
                return Err(Errno::EPERM.into());
            }
            edit(cx, |c| {
                c.securebits &= !creds::SECBIT_KEEP_CAPS;
                if first == 1 {
                    c.securebits |= creds::SECBIT_KEEP_CAPS;
                }
            });
            Ok(0)
        }
        PR_GET_SECUREBITS => Ok(u64::from(own.securebits)),
        PR_SET_SECUREBITS => {
            let bits = u32::try_from(first).ok().filter(|b| b & !SECURE_ALL == 0).ok_or(Errno::EPERM)?;
            let old = own.securebits;
            // Every second bit locks the one before it, and itself.
            let locks = old & LOCKS;
            let changed = bits ^ old;
            let locked = changed & (locks >> 1) != 0 || locks & !bits != 0;
            let free = changed != 0 && changed & !SECURE_UNPRIVILEGED == 0;
            if locked || !own.has(cap::SETPCAP) && !free {
                return Err(Errno::EPERM.into());
            }
            edit(cx, |c| c.securebits = bits);
            Ok(0)
        }
        PR_CAPBSET_READ if first <= LAST_CAP => Ok(own.bounding >> first & 1),
        PR_CAPBSET_DROP if !own.has(cap::SETPCAP) => Err(Errno::EPERM.into()),
        PR_CAPBSET_DROP if first <= LAST_CAP => {
            edit(cx, |c| c.bounding &= !(1 << first));
            Ok(0)
        }
        PR_CAP_AMBIENT => {
            let [what, capability, arg4, arg5] = args;
            ambient(cx, what, capability, arg4, arg5)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

fn ambient(cx: &mut Cx, what: u64, capability: u64, arg4: u64, arg5: u64) -> SysResult {
    zero(&[arg4, arg5])?;
    if what == PR_CAP_AMBIENT_CLEAR_ALL {
        zero(&[capability])?;
        edit(cx, |c| c.ambient = 0);
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
            edit(cx, |c| c.ambient |= bit);
            Ok(0)
        }
        PR_CAP_AMBIENT_LOWER => {
            edit(cx, |c| c.ambient &= !bit);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
