//! Files that tasks read by themselves ([`platform::Port::lend`]): regular files of read-only mounts that a task reads often by pread.

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::file::{File, o};
use crate::vfs::watch;
use parking_lot::Mutex;
use platform::TaskControl;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// So many preads that come to the sentry make it worth while to lend a description, and twice as many each time to lend it again.
const OFTEN: u32 = 32;

/// What is lent of a description.
#[derive(Default)]
pub(crate) struct Lent {
    reads: AtomicU32,
    lent: OnceLock<Arc<Borrowers>>,
}

#[derive(Default)]
struct Borrowers {
    any: AtomicBool,
    /// To whom, by which descriptor.
    tasks: Mutex<Vec<(Weak<dyn TaskControl>, i32)>>,
}

/// Of all descriptions that were lent, with the address of the inode. Nothing else is behind this lock.
static ALL: Mutex<Vec<(Weak<Borrowers>, usize)>> = Mutex::new(Vec::new());

impl Borrowers {
    fn take_back(&self) {
        if !self.any.load(Ordering::SeqCst) {
            return;
        }
        let mut tasks = self.tasks.lock();
        self.any.store(false, Ordering::SeqCst);
        let all = std::mem::take(&mut *tasks);
        drop(tasks);
        for (control, fd) in all {
            if let Some(control) = control.upgrade() {
                control.take_back(fd);
            }
        }
    }
}

impl Lent {
    /// A descriptor of it is closed or means something else: whoever reads asks again.
    pub(crate) fn take_back(&self) {
        if let Some(borrowers) = self.lent.get() {
            borrowers.take_back();
        }
    }
}

fn take_back_if(which: impl Fn(usize) -> bool) {
    let mut some = Vec::new();
    ALL.lock().retain(|(borrowers, inode)| match borrowers.upgrade() {
        Some(borrowers) if which(*inode) => {
            some.push(borrowers);
            false
        }
        known => known.is_some(),
    });
    some.iter().for_each(|borrowers| borrowers.take_back());
}

/// Takes everything back: somebody is to be told of reads.
pub(crate) fn take_all_back() {
    take_back_if(|_| true);
}

/// Takes back what is lent of an inode: its contents are elsewhere now.
pub(crate) fn take_back_of<T>(inode: *const T) {
    take_back_if(|lent| lent == inode.addr());
}

/// Nothing but the bytes of the file counts.
fn allowed(file: &File) -> bool {
    file.flags() & (o::O_ACCMODE | o::O_DIRECT | o::O_PATH) == o::O_RDONLY && !watch::any()
}

/// The task is about to pread from a description by this descriptor.
///
/// # Errors
/// NeedPort: it is to be lent.
pub(crate) fn consider(cx: &mut Cx, fd: i32, file: &Arc<File>) -> SysResult<()> {
    let reads = file.lent.reads.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    if reads < OFTEN || !reads.is_power_of_two() || !allowed(file) || !cx.task.answers_itself() {
        return Ok(());
    }
    let Some((host, len)) = file.ops.lendable() else { return Ok(()) };
    let control = Arc::downgrade(cx.task.control());
    match cx.port() {
        Ok(port) => {
            if port.lend(fd, &host, len) != Ok(true) {
                return Ok(());
            }
        }
        Err(fail) => {
            // Counted again when it comes with a port.
            file.lent.reads.fetch_sub(1, Ordering::Relaxed);
            return Err(fail);
        }
    }
    let borrowers = file.lent.lent.get_or_init(Arc::default);
    let mut tasks = borrowers.tasks.lock();
    tasks.retain(|(known, at)| known.strong_count() > 0 && !(known.ptr_eq(&control) && *at == fd));
    tasks.push((control, fd));
    borrowers.any.store(true, Ordering::SeqCst);
    drop(tasks);
    let inode = file.ops.inode().map_or(0, |inode| Arc::as_ptr(&inode).addr());
    let mut all = ALL.lock();
    all.retain(|(known, _)| {
        known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(borrowers))
    });
    all.push((Arc::downgrade(borrowers), inode));
    drop(all);
    // Whoever closed it, began to watch or to write meanwhile may have found nothing to take back.
    let same = cx.task.files().get(fd).is_ok_and(|now| Arc::ptr_eq(&now, file));
    if !same || !allowed(file) || file.ops.lendable().is_none() {
        borrowers.take_back();
    }
    Ok(())
}
