//! Reaching memory that its protection keeps from being read or written, as a tracer and /proc/PID/mem may (FOLL_FORCE in
//! Linux): private memory alone is written so.
//!
//! Only a task of the space can lift the protection, on its own worker. So the one who asks leaves it an [`Errand`], kicks
//! it, and blocks; the task does it at the start of its next event and goes on as before.

use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::mm::Mm;
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::wait::{Ready, WaitQueue};
use platform::Port;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, Weak};
use syscall_table::errno::Errno;

const DUE: u8 = 0;
const DONE: u8 = 1;
const FAILED: u8 = 2;

/// Something to be done with memory.
struct Errand {
    mm: u64,
    addr: u64,
    write: bool,
    data: Lock<Vec<u8>>,
    state: AtomicU8,
    queue: WaitQueue,
}

/// Errands of a task: at most one of each task that asks, which waits for it.
pub(crate) struct Errands {
    list: Lock<Vec<Arc<Errand>>>,
    due: AtomicBool,
}

impl Default for Errands {
    fn default() -> Self {
        Errands { list: Lock::new(Level::Field, Vec::new()), due: AtomicBool::new(false) }
    }
}

/// What the asker waits for, between attempts of its call, and of whom. It ends with the call: one that is interrupted and
/// made again leaves nothing behind.
#[derive(Default)]
struct Waiting(Option<(Arc<Errand>, Weak<Task>)>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((errand, task)) = self.0.take()
            && let Some(task) = task.upgrade()
        {
            task.errands.list.lock().retain(|other| !Arc::ptr_eq(other, &errand));
        }
    }
}

impl Errand {
    fn end(&self, done: bool) {
        self.state.store(if done { DONE } else { FAILED }, SeqCst);
        self.queue.wake(Ready::IN);
    }
}

/// Has `task` read or write its memory, whatever the protection: a page at most. For a handler, which
/// is run again.
///
/// # Errors
/// EIO where there is no such memory, or shared memory is not writable. Blocks.
pub(crate) fn transfer(
    cx: &mut Cx,
    task: &Arc<Task>,
    mm: &Mm,
    addr: u64,
    data: &mut [u8],
    write: bool,
) -> SysResult<()> {
    if Arc::ptr_eq(task, cx.task) {
        return mm.force(cx.port()?, addr, data, write);
    }
    let known = cx.state::<Waiting>().0.as_ref().map(|(errand, _)| errand.clone());
    let errand = match known {
        Some(errand) => errand,
        None => {
            let errand = Arc::new(Errand {
                mm: mm.id,
                addr,
                write,
                data: Lock::new(Level::Field, data.to_vec()),
                state: AtomicU8::new(DUE),
                queue: WaitQueue::new(),
            });
            cx.state::<Waiting>().0 = Some((errand.clone(), Arc::downgrade(task)));
            task.errands.list.lock().push(errand.clone());
            task.errands.due.store(true, SeqCst);
            if task.is_dead() {
                abandon(task);
            }
            task.control().kick();
            errand
        }
    };
    cx.wait_on(&errand.queue, Ready::IN);
    match errand.state.load(SeqCst) {
        DUE => cx.block(Restart::NoIntr),
        state => {
            cx.state::<Waiting>().0 = None;
            let result = errand.data.lock();
            if state == FAILED || result.len() != data.len() {
                return Err(Errno::EIO.into());
            }
            data.copy_from_slice(&result);
            Ok(())
        }
    }
}

/// At the start of an event: does what others have asked for.
pub(crate) fn run(task: &Task, port: &mut dyn Port) {
    if !task.errands.due.load(SeqCst) || !port.full() {
        return;
    }
    task.errands.due.store(false, SeqCst);
    let list = std::mem::take(&mut *task.errands.list.lock());
    let mm = task.mm();
    for errand in list {
        let mut data = errand.data.lock().clone();
        let done = errand.mm == mm.id && mm.force(port, errand.addr, &mut data, errand.write).is_ok();
        *errand.data.lock() = data;
        errand.end(done);
    }
}

/// The task has ended: nobody waits for it any more.
pub(crate) fn abandon(task: &Task) {
    let list = std::mem::take(&mut *task.errands.list.lock());
    for errand in list {
        errand.end(false);
    }
}
