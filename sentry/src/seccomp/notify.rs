//! SECCOMP_RET_USER_NOTIF: the holder of a filter's descriptor answers calls in the filter's place (seccomp_unotify(2)).

use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::{anonymous_attr, next_ino};
use crate::sync::{Level, Lock};
use crate::task::Task;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::wait::{Ready, WaitQueue};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::ioctl_dev::*;
use syscall_table::abi::open::O_CLOEXEC;
use syscall_table::abi::seccomp::*;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// What became of a call that somebody is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Not yet read.
    Init,
    Sent,
    /// Answered: the call's value; None lets it run.
    Replied(Option<u64>),
}

struct Notification {
    /// Not to be dropped with the list locked: the last reference takes the task's place in the list away.
    task: Weak<Task>,
    tid: i32,
    data: SeccompData,
    stage: Stage,
    /// The task waits here.
    queue: Arc<WaitQueue>,
}

#[derive(Default)]
struct Asked {
    /// By id, which grows: the oldest first.
    list: BTreeMap<u64, Notification>,
    next: u64,
    /// Notifications that were made and not taken by a read; more than there are after some were interrupted.
    requests: usize,
    closed: bool,
    /// No task has the filter any more.
    orphaned: bool,
}

/// A filter's listener: between the tasks that have the filter and those that have the descriptor.
pub(crate) struct Notifier {
    asked: Lock<Asked>,
    /// Readers and those that poll the descriptor.
    queue: WaitQueue,
    ino: u64,
}

/// SECCOMP_IOCTL_NOTIF_ID_VALID as it was numbered first.
const ID_VALID_WRONG_DIR: u32 = 0x8008_2102;
/// Direction and size of a request's number.
const IOC_DIR_SIZE: u32 = 0xffff_0000;
const PAGE: usize = 4096;

impl Notifier {
    pub(crate) fn new() -> Arc<Notifier> {
        let mut first = [0u8; 8];
        // Less randomness is no reason to fail: ids need only be unlikely to be taken for others'.
        let _ = rustix::rand::getrandom(&mut first, rustix::rand::GetRandomFlags::empty());
        let asked = Asked { next: u64::from_le_bytes(first), ..Asked::default() };
        Arc::new(Notifier {
            asked: Lock::new(Level::Object, asked),
            queue: WaitQueue::new(),
            ino: next_ino(),
        })
    }

    /// A descriptor's description for it.
    pub(crate) fn file(self: &Arc<Notifier>) -> Arc<File> {
        File::new(Arc::new(Listener(self.clone())), syscall_table::abi::open::O_RDWR, None)
    }

    /// Whether nobody is there to answer.
    pub(crate) fn is_closed(&self) -> bool {
        self.asked.lock().closed
    }

    /// The filter is gone.
    pub(super) fn orphaned(&self) {
        self.asked.lock().orphaned = true;
        self.queue.wake(Ready::HUP);
    }

    /// A task has ended.
    pub(super) fn forget(&self, tid: i32) {
        self.asked.lock().list.retain(|_, n| n.tid != tid);
    }

    fn close(&self) {
        let mut waiting = Vec::new();
        {
            let mut asked = self.asked.lock();
            asked.closed = true;
            for notification in asked.list.values_mut() {
                if !matches!(notification.stage, Stage::Replied(_)) {
                    notification.stage = Stage::Replied(Some(NOBODY));
                    waiting.push(notification.queue.clone());
                }
            }
        }
        for queue in waiting {
            queue.wake(Ready::IN);
        }
    }

    fn reply(&self, id: u64, value: Option<u64>) -> SysResult<()> {
        let queue = {
            let mut asked = self.asked.lock();
            let found = asked.list.get_mut(&id).ok_or(Errno::ENOENT)?;
            // One reply, to what was read.
            if found.stage != Stage::Sent {
                return Err(Errno::EINPROGRESS.into());
            }
            found.stage = Stage::Replied(value);
            found.queue.clone()
        };
        queue.wake(Ready::IN);
        Ok(())
    }
}

/// What a call gives that nobody answers: -ENOSYS.
const NOBODY: u64 = (-38i64) as u64;

/// Kept by the call that waits for an answer; the notification ends with it.
#[derive(Default)]
struct Waiting {
    at: Option<(Arc<Notifier>, u64, Arc<WaitQueue>)>,
    killable: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((notifier, id, _)) = &self.at {
            notifier.asked.lock().list.remove(id);
        }
    }
}

/// Whether this call waits for an answer.
pub(super) fn is_waiting(cx: &mut Cx) -> bool {
    cx.call.state.iter().any(|s| s.is::<Waiting>())
}

/// Asks about a call; as [`wait`] then.
pub(super) fn ask(
    cx: &mut Cx,
    notifier: &Arc<Notifier>,
    killable: bool,
    data: &SeccompData,
) -> SysResult<Option<u64>> {
    let queue = Arc::new(WaitQueue::new());
    let id = {
        let mut asked = notifier.asked.lock();
        if asked.closed {
            return Ok(Some(NOBODY));
        }
        let id = asked.next;
        asked.next = id.wrapping_add(1);
        asked.requests = asked.requests.saturating_add(1);
        let task = Arc::downgrade(cx.task);
        let tid = cx.task.tid();
        let notification = Notification { task, tid, data: *data, stage: Stage::Init, queue: queue.clone() };
        asked.list.insert(id, notification);
        id
    };
    *cx.state::<Waiting>() = Waiting { at: Some((notifier.clone(), id, queue)), killable };
    notifier.queue.wake(Ready::IN | Ready::RDNORM);
    wait(cx)
}

/// Waits for the answer: the call's value, None to let it run.
pub(super) fn wait(cx: &mut Cx) -> SysResult<Option<u64>> {
    let waiting = cx.state::<Waiting>();
    let (at, killable) = (waiting.at.clone(), waiting.killable);
    let Some((notifier, id, queue)) = at else { return Ok(Some(NOBODY)) };
    cx.wait_on(&queue, Ready::IN);
    let stage = notifier.asked.lock().list.get(&id).map(|n| n.stage);
    match stage {
        Some(Stage::Replied(value)) => {
            cx.call.state.retain(|s| !s.is::<Waiting>());
            Ok(value)
        }
        // Read already: it is about to be answered, and doing it twice might do harm.
        Some(Stage::Sent) if killable => cx.block(Restart::Uninterruptible),
        Some(_) => cx.block(Restart::Sys),
        None => Ok(Some(NOBODY)),
    }
}

/// The descriptor's side.
struct Listener(Arc<Notifier>);

impl Listener {
    fn receive(&self, cx: &mut Cx, arg: u64) -> SysResult {
        let notifier = &self.0;
        let given: SeccompNotif = cx.read_value(arg)?;
        if given != SeccompNotif::default() {
            return Err(Errno::EINVAL.into());
        }
        cx.wait_on(&notifier.queue, Ready::IN);
        let notif = {
            let mut asked = notifier.asked.lock();
            if !asked.orphaned {
                let Some(left) = asked.requests.checked_sub(1) else {
                    drop(asked);
                    return cx.block(Restart::Sys);
                };
                asked.requests = left;
            }
            let first = asked.list.iter_mut().find(|(_, n)| n.stage == Stage::Init);
            // It was interrupted.
            let Some((id, found)) = first else { return Err(Errno::ENOENT.into()) };
            found.stage = Stage::Sent;
            SeccompNotif { id: *id, pid: cx.task.shown(found.tid).unsigned_abs(), flags: 0, data: found.data }
        };
        notifier.queue.wake(Ready::OUT | Ready::WRNORM);
        if let Err(fail) = cx.write_value(arg, &notif) {
            let mut asked = notifier.asked.lock();
            if let Some(found) = asked.list.get_mut(&notif.id) {
                found.stage = Stage::Init;
                asked.requests = asked.requests.saturating_add(1);
            }
            drop(asked);
            notifier.queue.wake(Ready::IN | Ready::RDNORM);
            return Err(fail);
        }
        Ok(0)
    }

    fn send(&self, cx: &mut Cx, arg: u64) -> SysResult {
        let resp: SeccompNotifResp = cx.read_value(arg)?;
        let goes_on = resp.flags & SECCOMP_USER_NOTIF_FLAG_CONTINUE != 0;
        let unknown = resp.flags & !SECCOMP_USER_NOTIF_FLAG_CONTINUE != 0;
        if unknown || goes_on && (resp.error != 0 || resp.val != 0) {
            return Err(Errno::EINVAL.into());
        }
        let value = if resp.error != 0 { i64::from(resp.error) } else { resp.val };
        self.0.reply(resp.id, (!goes_on).then_some(value as u64))?;
        Ok(0)
    }

    fn is_valid(&self, cx: &mut Cx, arg: u64) -> SysResult {
        let id = cx.read_value(arg)?;
        match self.0.asked.lock().list.get(&id) {
            Some(found) if found.stage == Stage::Sent => Ok(0),
            _ => Err(Errno::ENOENT.into()),
        }
    }

    fn add_fd(&self, cx: &mut Cx, arg: u64, size: usize) -> SysResult {
        const KNOWN: usize = size_of::<SeccompNotifAddfd>();
        if !(KNOWN..PAGE).contains(&size) {
            return Err(Errno::EINVAL.into());
        }
        let mut bytes = vec![0; size];
        cx.copy_in(arg, &mut bytes)?;
        let mut addfd = SeccompNotifAddfd::default();
        let (known, more) = bytes.split_at(KNOWN);
        addfd.as_mut_bytes().copy_from_slice(known);
        if more.iter().any(|byte| *byte != 0) {
            return Err(Errno::E2BIG.into());
        }
        let cloexec = addfd.newfd_flags & O_CLOEXEC as u32 != 0;
        let sets = addfd.flags & SECCOMP_ADDFD_FLAG_SETFD != 0;
        let sends = addfd.flags & SECCOMP_ADDFD_FLAG_SEND != 0;
        if addfd.newfd_flags & !(O_CLOEXEC as u32) != 0
            || addfd.flags & !(SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND) != 0
            || addfd.newfd != 0 && !sets
        {
            return Err(Errno::EINVAL.into());
        }
        let file = cx.task.files().get(addfd.srcfd as i32)?;
        let notifier = &self.0;
        let task = {
            let asked = notifier.asked.lock();
            let found = asked.list.get(&addfd.id).ok_or(Errno::ENOENT)?;
            if found.stage != Stage::Sent {
                return Err(Errno::EINPROGRESS.into());
            }
            found.task.upgrade().ok_or(Errno::ENOENT)?
        };
        let limit = task.process.limit(RLIMIT_NOFILE);
        let files = task.files();
        let fd = if sets {
            let fd = addfd.newfd as i32;
            drop(files.replace(fd, file, cloexec, limit)?);
            fd
        } else {
            files.install(file, cloexec, 0, limit)?
        };
        let fd = u64::from(fd.unsigned_abs());
        if sends {
            // Answered by somebody else meanwhile: the descriptor is there all the same.
            let _ = notifier.reply(addfd.id, Some(fd));
        }
        Ok(fd)
    }
}

impl FileOps for Listener {
    fn ioctl(&self, cx: &mut Cx, _file: &File, request: u32, arg: u64) -> SysResult {
        match request {
            SECCOMP_IOCTL_NOTIF_RECV => self.receive(cx, arg),
            SECCOMP_IOCTL_NOTIF_SEND => self.send(cx, arg),
            SECCOMP_IOCTL_NOTIF_ID_VALID | ID_VALID_WRONG_DIR => self.is_valid(cx, arg),
            // On which processor somebody wakes up is the host's affair.
            SECCOMP_IOCTL_NOTIF_SET_FLAGS if arg & !SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP == 0 => Ok(0),
            other if other & !IOC_DIR_SIZE == SECCOMP_IOCTL_NOTIF_ADDFD & !IOC_DIR_SIZE => {
                self.add_fd(cx, arg, (other >> 16 & 0x3fff) as usize)
            }
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn poll(&self, _file: &File) -> Ready {
        let asked = self.0.asked.lock();
        let mut ready = Ready::empty();
        for notification in asked.list.values() {
            match notification.stage {
                Stage::Init => ready |= Ready::IN | Ready::RDNORM,
                Stage::Sent => ready |= Ready::OUT | Ready::WRNORM,
                Stage::Replied(_) => {}
            }
        }
        if asked.orphaned {
            ready |= Ready::HUP;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.0.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(anonymous_attr(15, self.0.ino, 0o600))
    }

    fn describe(&self) -> String {
        "anon_inode:seccomp notify".into()
    }

    fn release(&self, _flags: i32) {
        self.0.close();
    }
}
