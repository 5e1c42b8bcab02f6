//! Who is told by signal that a description became ready (fcntl(2), F_SETOWN, F_SETSIG, O_ASYNC).

use crate::kernel::Kernel;
use crate::signal::send;
use crate::task::Process;
use crate::task::creds::Creds;
use crate::vfs::file::File;
use crate::wait::{Listener, Ready, later};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use syscall_table::abi::fcntl::{F_OWNER_PGRP, F_OWNER_PID, F_OWNER_TID};
use syscall_table::abi::open::FASYNC;
use syscall_table::abi::sigaction::{POLL_HUP, POLL_IN, POLL_OUT, POLL_PRI, SIGIO, SIGURG, Siginfo};

/// Owner of a description.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileOwner {
    /// F_OWNER_TID, F_OWNER_PID or F_OWNER_PGRP.
    pub kind: i32,
    /// Its number; 0: nobody.
    pub id: i32,
    /// Real user of who set it.
    pub uid: u32,
    /// Effective user of who set it.
    pub euid: u32,
    /// F_SETSIG; 0 is SIGIO without details.
    pub signal: i32,
    /// A socket's: [`watch_urgent`] was called.
    pub hears: bool,
}

impl FileOwner {
    fn may_signal(&self, target: &Creds) -> bool {
        self.euid == 0 || [self.uid, self.euid].iter().any(|id| *id == target.uid || *id == target.suid)
    }

    pub(super) fn tell(&self, kernel: &Arc<Kernel>, info: &Siginfo) {
        let allowed =
            |process: &Process| process.any_thread().is_some_and(|task| self.may_signal(&task.creds()));
        match self.kind {
            F_OWNER_TID => {
                if let Ok(task) = kernel.tree.task(self.id)
                    && self.may_signal(&task.creds())
                {
                    send::event(kernel, &task.process, Some(&task), *info);
                }
            }
            F_OWNER_PGRP => {
                for process in kernel.tree.members(self.id).iter().filter(|p| allowed(p)) {
                    send::event(kernel, process, None, *info);
                }
            }
            _ => {
                if let Ok(process) = kernel.tree.process(self.id)
                    && allowed(&process)
                {
                    send::event(kernel, &process, None, *info);
                }
            }
        }
    }
}

/// Whether a process, thread or group of this number exists.
pub(crate) fn exists(kernel: &Kernel, kind: i32, id: i32) -> bool {
    match kind {
        F_OWNER_TID => kernel.tree.task(id).is_ok(),
        F_OWNER_PID => kernel.tree.process(id).is_ok(),
        _ => !kernel.tree.members(id).is_empty(),
    }
}

/// Waits on a description's queue as long as O_ASYNC is set.
struct Watcher {
    file: Weak<File>,
    kernel: Weak<Kernel>,
    fd: i32,
}

impl Listener for Watcher {
    fn fire(&self, epoch: u64, mask: Ready) -> bool {
        let Some(file) = self.file.upgrade().filter(|_| self.alive(epoch)) else { return false };
        let read = file.readable() && mask.intersects(Ready::IN | Ready::HUP | Ready::ERR);
        let write = file.writable() && mask.intersects(Ready::OUT | Ready::ERR);
        // A socket whose other end is closed says so; a pipe that nobody writes to is one to read from.
        let closed = mask.contains(Ready::RDHUP | Ready::HUP | Ready::ERR);
        let ready = match (closed, read, write) {
            (true, true, _) => Some((POLL_HUP, Ready::HUP | Ready::ERR)),
            (_, true, _) => Some((POLL_IN, Ready::IN | Ready::RDNORM)),
            (_, _, true) => Some((POLL_OUT, Ready::OUT | Ready::WRNORM | Ready::WRBAND)),
            _ => None,
        };
        let owner = *file.owner.lock();
        let Some(kernel) = self.kernel.upgrade().filter(|_| owner.id != 0) else { return false };
        let info = |(code, band): (i32, Ready)| match owner.signal {
            0 => Siginfo::kernel(SIGIO),
            signal => Siginfo::poll(signal, code, i64::from(band.bits()), self.fd),
        };
        // Of what came out of band SIGURG tells, and this one if it was chosen.
        let urgent = (mask.contains(Ready::PRI) && owner.signal != 0)
            .then_some((POLL_PRI, Ready::PRI | Ready::RDBAND));
        // Whoever fires may hold locks that a signal needs.
        for info in urgent.into_iter().chain(ready).map(info) {
            let kernel = kernel.clone();
            later(Box::new(move || owner.tell(&kernel, &info)));
        }
        false
    }

    fn alive(&self, epoch: u64) -> bool {
        self.file.upgrade().is_some_and(|file| {
            file.flags() & FASYNC != 0 && file.async_epoch.load(Ordering::Relaxed) == epoch
        })
    }
}

/// Waits on a socket's queue for what is sent out of band, which its owner hears of by SIGURG whether O_ASYNC is set or not.
struct Urgent {
    file: Weak<File>,
    kernel: Weak<Kernel>,
}

impl Listener for Urgent {
    fn fire(&self, _epoch: u64, mask: Ready) -> bool {
        let Some(file) = self.file.upgrade().filter(|_| mask.contains(Ready::PRI)) else { return false };
        let owner = *file.owner.lock();
        if let Some(kernel) = self.kernel.upgrade().filter(|_| owner.id != 0) {
            later(Box::new(move || owner.tell(&kernel, &Siginfo::kernel(SIGURG))));
        }
        false
    }

    fn alive(&self, _epoch: u64) -> bool {
        self.file.strong_count() > 0
    }
}

/// A socket has an owner.
pub(crate) fn watch_urgent(kernel: &Arc<Kernel>, file: &Arc<File>) {
    let Some(queue) = file.ops.queue().filter(|_| file.ops.protocol().is_some()) else { return };
    if !std::mem::replace(&mut file.owner.lock().hears, true) {
        let urgent = Urgent { file: Arc::downgrade(file), kernel: Arc::downgrade(kernel) };
        queue.add(Arc::new(urgent), 0, Ready::PRI, false);
    }
}

/// O_ASYNC was set by way of `fd`, if the object is one that becomes ready.
pub(crate) fn watch(kernel: &Arc<Kernel>, file: &Arc<File>, fd: i32) {
    let Some(queue) = file.ops.queue() else { return };
    let epoch = file.async_epoch.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    let watcher = Watcher { file: Arc::downgrade(file), kernel: Arc::downgrade(kernel), fd };
    queue.add(Arc::new(watcher), epoch, Ready::IN | Ready::OUT | Ready::PRI, false);
}
