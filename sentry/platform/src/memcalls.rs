//! What both platforms check of a memory call before a guest's process makes it.

use crate::{CallError, guestfilter};
use lazaret_shim::layout;

const MREMAP_MAYMOVE: u64 = 1;
const MREMAP_FIXED: u64 = 2;
const MREMAP_DONTUNMAP: u64 = 4;

/// Refuses a range that reaches into the platform's own.
pub(crate) fn range(addr: u64, len: u64) -> Result<(), CallError> {
    match addr.checked_add(len) {
        Some(end) if end <= layout::REGION_START => Ok(()),
        _ => Err(CallError::Errno(libc::ENOMEM)),
    }
}

/// The flags of an mremap from one place to another, or in place.
pub(crate) fn mremap_flags(old: u64, new: u64, dont_unmap: bool) -> u64 {
    match (old == new, dont_unmap) {
        (_, true) => MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
        (true, false) => 0,
        (false, false) => MREMAP_MAYMOVE | MREMAP_FIXED,
    }
}

/// A madvise advice, if the host may be given it.
pub(crate) fn advice(advice: i32) -> Result<u64, CallError> {
    match u32::try_from(advice) {
        Ok(known) if guestfilter::is_advice(known) => Ok(known.into()),
        _ => Err(CallError::Errno(libc::EINVAL)),
    }
}

/// A membarrier command, if the host may be given it.
pub(crate) fn barrier(command: u32) -> Result<u64, CallError> {
    if guestfilter::is_barrier(command) { Ok(command.into()) } else { Err(CallError::Errno(libc::EINVAL)) }
}
