//! Operations of futex(2).

use crate::abi::*;

sub_table! {
    /// Operations of futex(2).
    FUTEX, "operations", "futex" {
        [FUTEX_WAIT, Missing, ""],
        [FUTEX_WAKE, Missing, ""],
        [FUTEX_FD, Missing, ""],
        [FUTEX_REQUEUE, Missing, ""],
        [FUTEX_CMP_REQUEUE, Missing, ""],
        [FUTEX_WAKE_OP, Missing, ""],
        [FUTEX_LOCK_PI, Missing, ""],
        [FUTEX_UNLOCK_PI, Missing, ""],
        [FUTEX_TRYLOCK_PI, Missing, ""],
        [FUTEX_WAIT_BITSET, Missing, ""],
        [FUTEX_WAKE_BITSET, Missing, ""],
        [FUTEX_WAIT_REQUEUE_PI, Missing, ""],
        [FUTEX_CMP_REQUEUE_PI, Missing, ""],
        [FUTEX_LOCK_PI2, Missing, ""],
    }
}
