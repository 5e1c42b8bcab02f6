//! Operations of futex(2).

use crate::abi::*;

sub_table! {
    /// Operations of futex(2).
    FUTEX, "operations", "futex" {
        [FUTEX_WAIT, Full, ""],
        [FUTEX_WAKE, Full, ""],
        [FUTEX_FD, Missing, "removed in Linux 2.6.26"],
        [FUTEX_REQUEUE, Full, ""],
        [FUTEX_CMP_REQUEUE, Full, ""],
        [FUTEX_WAKE_OP, Partial, "not atomic against the guest's own instructions"],
        [FUTEX_LOCK_PI, Partial, "waiters go by priority, but none is inherited"],
        [FUTEX_UNLOCK_PI, Partial, "waiters go by priority, but none is inherited"],
        [FUTEX_TRYLOCK_PI, Partial, "waiters go by priority, but none is inherited"],
        [FUTEX_WAIT_BITSET, Full, ""],
        [FUTEX_WAKE_BITSET, Full, ""],
        [FUTEX_WAIT_REQUEUE_PI, Partial, "waiters go by priority, but none is inherited"],
        [FUTEX_CMP_REQUEUE_PI, Partial, "waiters go by priority, but none is inherited"],
        [FUTEX_LOCK_PI2, Partial, "waiters go by priority, but none is inherited"],
    }
}
