//! What a task's end does to the futexes it holds (get_robust_list(2)).

use super::{load, pi, store, wake_address};
use crate::mm::Mm;
use crate::task::Task;
use syscall_table::abi::*;
use zerocopy::{FromZeros, IntoBytes};

/// Releases what a task holds that ends (`closed`) or gives up its memory: the futexes of its robust list, then the locks
/// that others wait for.
pub fn release(task: &Task, closed: bool) {
    release_list(task);
    pi::release(task, closed);
}

/// Walks the robust list: marks its futexes' owners dead and wakes a waiter of each. The lowest bit of an entry's pointer
/// says that it is a lock, whose waiters are not woken but given it.
fn release_list(task: &Task) {
    let head_at = task.robust_list();
    task.set_robust_list(0);
    // The list is the guest's, and so is what it says of it.
    if head_at == 0 || task.robust_list_idle(head_at) {
        return;
    }
    let mm = task.mm();
    let mut head = RobustListHead::new_zeroed();
    if mm.space.read(head_at, head.as_mut_bytes()).is_err() {
        return;
    }
    let pending = head.list_op_pending;
    let mut at = head.list;
    for _ in 0..ROBUST_LIST_LIMIT {
        if at & !1 == head_at || at == 0 {
            break;
        }
        // Read before the entry is released: whoever gets it may move it.
        let mut next = [0u8; 8];
        let read = mm.space.read(at & !1, &mut next);
        if at & !1 != pending & !1 {
            release_one(task, &mm, (at & !1).wrapping_add_signed(head.futex_offset), at & 1 != 0, false);
        }
        if read.is_err() {
            return;
        }
        let next = u64::from_le_bytes(next);
        if next == at {
            // An entry that leads to itself (the head of another list): Linux finds nothing more there, again and again.
            break;
        }
        at = next;
    }
    if pending & !1 != 0 {
        release_one(task, &mm, (pending & !1).wrapping_add_signed(head.futex_offset), pending & 1 != 0, true);
    }
}

/// `pending`: the task was about to take or release it.
fn release_one(task: &Task, mm: &Mm, addr: u64, lock: bool, pending: bool) {
    if addr & 3 != 0 {
        return;
    }
    let wake = {
        let state = task.kernel.futexes.state.lock();
        let Ok(word) = load(mm, addr) else { return };
        if pending && !lock && word == 0 {
            // Given up, but perhaps nobody woken yet.
            true
        } else if word & FUTEX_TID_MASK != task.own_tid().cast_unsigned() {
            return;
        } else {
            let dead = word & FUTEX_WAITERS | FUTEX_OWNER_DIED;
            let stored = store(mm, addr, dead).is_ok();
            drop(state);
            // Somebody may have set FUTEX_WAITERS since the word was read, and wait: woken in any case.
            stored && !lock
        }
    };
    if wake {
        wake_address(task, addr, 1);
    }
}
