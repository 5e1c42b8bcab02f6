//! Signals at changes in a directory (fcntl(2), F_NOTIFY): those of [`super::outside`] too.

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::vfs::file::File;
use crate::vfs::inode::Inode;
use crate::vfs::outside;
use crate::vfs::owner::FileOwner;
use crate::vfs::watch::{self, Watcher};
use crate::wait::later;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use syscall_table::abi::fcntl::*;
use syscall_table::abi::inotify::*;
use syscall_table::abi::sigaction::{POLL_MSG, SIGIO, Siginfo};
use syscall_table::errno::Errno;

/// What si_band says with POLL_MSG: POLLIN, POLLRDNORM, POLLMSG.
const BAND: i64 = 0x441;

/// The changes that DN_* bits mean, one in a directory's own names aside.
const CHANGES: [(u32, u32); 5] = [
    (DN_ACCESS, IN_ACCESS),
    (DN_MODIFY, IN_MODIFY),
    (DN_CREATE, IN_CREATE | IN_MOVED_TO),
    (DN_DELETE, IN_DELETE | IN_MOVED_FROM),
    (DN_ATTRIB, IN_ATTRIB),
];

/// What one descriptor table asked to be told of one description.
pub(crate) struct Mark {
    file: Weak<File>,
    kernel: Weak<Kernel>,
    /// Id of the table: closing any descriptor of the description in it ends the mark.
    table: u64,
    inode: Arc<dyn Inode>,
    /// DN_* bits, and the descriptor that siginfo names.
    wanted: Mutex<(u32, i32)>,
    /// What the host tells of.
    _outside: Vec<outside::Held>,
}

impl Mark {
    fn tell(self: &Arc<Self>, bit: u32) {
        let (mask, fd) = *self.wanted.lock();
        let (Some(file), Some(kernel)) = (self.file.upgrade(), self.kernel.upgrade()) else { return };
        if mask & bit == 0 {
            return;
        }
        if mask & DN_MULTISHOT == 0 {
            remove(&file, |mark| Arc::ptr_eq(mark, self));
        }
        let owner = *file.owner.lock();
        let info = match owner.signal {
            0 => Siginfo::kernel(SIGIO),
            signal => Siginfo::poll(signal, POLL_MSG, BAND, fd),
        };
        if owner.id != 0 {
            // Whoever makes a change may hold locks that a signal needs.
            later(Box::new(move || owner.tell(&kernel, &info)));
        }
    }
}

impl Watcher for Mark {
    fn event(self: Arc<Self>, _: usize, mask: u32, _: u32, name: &[u8]) {
        if name.is_empty() && mask & IN_ISDIR == 0 {
            return;
        }
        let bits = CHANGES.iter().filter(|(_, events)| mask & events != 0).fold(0, |all, (bit, _)| all | bit);
        self.tell(bits);
    }

    fn renamed(self: Arc<Self>) {
        self.tell(DN_RENAME);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        watch::forget(watch::key(&self.inode), self);
    }
}

/// Takes marks off a description. They end outside of its lock.
fn remove(file: &File, gone: impl Fn(&Arc<Mark>) -> bool) {
    let mut marks = file.marks.lock();
    let (ended, kept) = std::mem::take(&mut *marks).into_iter().partition::<Vec<_>, _>(gone);
    *marks = kept;
    drop(marks);
    drop(ended);
}

/// A descriptor of the description was closed in the table `table`.
pub(crate) fn closed(table: u64, file: &File) {
    if !file.marks.lock().is_empty() {
        remove(file, |mark| mark.table == table);
    }
}

/// F_NOTIFY: adds to what the caller's table is told of, or ends it when `mask` names nothing.
///
/// # Errors
/// ENOTDIR. ENOMEM: too many marks and watches.
pub(crate) fn set(cx: &Cx, file: &Arc<File>, fd: i32, mask: u32) -> SysResult {
    let table = cx.task.files().id();
    if mask & !DN_MULTISHOT == 0 {
        closed(table, file);
        return Ok(0);
    }
    let inode = file.ops.inode().filter(|inode| inode.is_dir()).ok_or(Errno::ENOTDIR)?;
    {
        let creds = cx.task.creds();
        let mut owner = file.owner.lock();
        if owner.id == 0 {
            let signal = owner.signal;
            let id = cx.task.process.pid;
            *owner = FileOwner { kind: F_OWNER_PID, id, uid: creds.uid, euid: creds.euid, signal, ..*owner };
        }
    }
    // A round trip, without the lock.
    let outside = outside::watch(&inode, file.path.as_ref().map(|place| &place.dentry))?;
    let mut marks = file.marks.lock();
    if let Some(mark) = marks.iter().find(|mark| mark.table == table) {
        let mut wanted = mark.wanted.lock();
        *wanted = (wanted.0 | mask, fd);
        return Ok(0);
    }
    let key = watch::key(&inode);
    watch::admit().ok_or(Errno::ENOMEM)?;
    let mark = Arc::new(Mark {
        file: Arc::downgrade(file),
        kernel: Arc::downgrade(cx.kernel()),
        table,
        inode,
        wanted: Mutex::new((mask, fd)),
        _outside: outside,
    });
    let weak: Weak<Mark> = Arc::downgrade(&mark);
    watch::register(key, weak);
    marks.push(mark);
    Ok(0)
}
