//! Giving up capabilities for good.

use rustix::thread::{
    CapabilitiesSecureBits as Bits, CapabilitySet, CapabilitySets, remove_capability_from_bounding_set,
    set_capabilities, set_capabilities_secure_bits,
};
use std::io;

/// Keeps these capabilities alone; nothing that is executed later gets any.
///
/// # Errors
/// What the host says.
pub fn keep_only(kept: CapabilitySet) -> io::Result<()> {
    set_capabilities_secure_bits(
        Bits::NO_ROOT
            | Bits::NO_ROOT_LOCKED
            | Bits::NO_SETUID_FIXUP
            | Bits::NO_SETUID_FIXUP_LOCKED
            | Bits::KEEP_CAPS_LOCKED
            | Bits::NO_CAP_AMBIENT_RAISE
            | Bits::NO_CAP_AMBIENT_RAISE_LOCKED,
    )?;
    for bit in 0..64 {
        // The kernel has fewer than 64: EINVAL past its last.
        if remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << bit)).is_err() {
            break;
        }
    }
    let sets = CapabilitySets { effective: kept, permitted: kept, inheritable: CapabilitySet::empty() };
    Ok(set_capabilities(None, sets)?)
}
