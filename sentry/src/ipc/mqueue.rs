//! POSIX message queues (mq_overview(7)): files of /dev/mqueue whose contents are messages by priority.
//!
//! Bounded by the number of queues, by RLIMIT_MSGQUEUE for each user, and by the bytes of all messages together.

use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::sysv::Counter;
use crate::net::socket::Socket;
use crate::signal::send;
use crate::sync::{Level, Lock};
use crate::task::pidns::Name;
use crate::task::{Process, Task};
use crate::time;
use crate::vfs::attr::{Attr, FileTime};
use crate::vfs::file::{File, FileOps};
use crate::wait::{Ready, WaitQueue};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Queues that an ordinary user may have made in all (fs.mqueue.queues_max).
pub const QUEUES_MAX: usize = 256;
/// Queues that anybody may.
const HARD_QUEUES: usize = 1 << 14;
/// Messages of a queue made without attributes, and the most that an ordinary user may ask for (fs.mqueue.msg_max).
pub const MSG_MAX: i64 = 10;
/// Bytes of a message, likewise (fs.mqueue.msgsize_max).
pub const MSGSIZE_MAX: i64 = 8192;
/// The most that anybody may ask for.
const HARD_MSG_MAX: i64 = 65536;
const HARD_MSGSIZE_MAX: i64 = 16 << 20;
/// One past the highest priority (MQ_PRIO_MAX).
pub const PRIO_MAX: u32 = 32768;
/// What Linux counts for each message beside its bytes: the message's record, and one of its priority.
const COST: u64 = 48 + 48;
/// Bytes of all messages that are queued.
const BYTES: usize = 64 << 20;
/// st_size of a queue.
const FILE_SIZE: u64 = 80;

/// Who is told when a message comes to an empty queue.
struct Notify {
    process: Weak<Process>,
    /// Its descriptor table.
    table: u64,
    name: Name,
    how: How,
}

/// How somebody is told.
pub enum How {
    /// Not at all (SIGEV_NONE): nobody else can be told.
    Silent,
    /// By a signal with a value.
    Signal(i32, u64),
    /// By a message to an AF_NETLINK socket (SIGEV_THREAD): a thread of the C library waits there.
    Socket(Arc<Socket>, [u8; COOKIE]),
}

/// Bytes of such a message (NOTIFY_COOKIE_LEN); the last says what happened.
pub const COOKIE: usize = 32;
const WOKEN: u8 = 1;
const REMOVED: u8 = 2;

impl How {
    fn tell_socket(&self, what: u8) {
        if let How::Socket(socket, cookie) = self {
            let mut message = cookie.to_vec();
            if let Some(last) = message.last_mut() {
                *last = what;
            }
            socket.take_from_kernel(message, false);
        }
    }
}

/// Attributes of the file.
#[derive(Clone, Copy)]
pub(crate) struct Owner {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub atime: FileTime,
    pub mtime: FileTime,
    pub ctime: FileTime,
}

#[derive(Default)]
struct Messages {
    by_prio: BTreeMap<u32, VecDeque<Vec<u8>>>,
    count: i64,
    bytes: u64,
    /// Calls that wait for one.
    receivers: usize,
    notify: Option<Notify>,
}

/// One queue.
pub struct Queue {
    pub(crate) ino: u64,
    /// Most messages, most bytes of one.
    limits: (i64, i64),
    pub(crate) owner: Lock<Owner>,
    messages: Lock<Messages>,
    /// Woken when a message comes or goes.
    wait: WaitQueue,
    account: Arc<Account>,
    /// Whose limit it counts against, and how much.
    charged: (u32, u64),
}

/// The queues of one namespace by name.
pub struct Queues {
    names: Lock<BTreeMap<Box<[u8]>, Arc<Queue>>>,
    account: Arc<Account>,
}

impl Default for Queues {
    fn default() -> Self {
        Queues::with(Arc::new(Account {
            charges: Lock::new(Level::Field, Charges::default()),
            bytes: Counter::default(),
        }))
    }
}

/// What the queues of all namespaces hold.
struct Account {
    charges: Lock<Charges>,
    /// Of messages.
    bytes: Counter,
}

#[derive(Default)]
struct Charges {
    /// Bytes reserved, by user; queues that are unlinked count until they are closed.
    by_user: HashMap<u32, u64>,
    made: usize,
}

impl Drop for Queue {
    fn drop(&mut self) {
        let bytes = self.messages.lock().bytes;
        self.account.bytes.give(usize::try_from(bytes).unwrap_or(usize::MAX));
        let mut charges = self.account.charges.lock();
        charges.made = charges.made.saturating_sub(1);
        let (user, bytes) = self.charged;
        let left = charges.by_user.get(&user).copied().unwrap_or(0).saturating_sub(bytes);
        if left == 0 {
            charges.by_user.remove(&user);
        } else {
            charges.by_user.insert(user, left);
        }
    }
}

/// Who makes a queue.
pub struct Maker {
    /// Its owner, and whose limit counts.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// RLIMIT_MSGQUEUE.
    pub limit: u64,
    /// CAP_SYS_RESOURCE.
    pub resource: bool,
}

impl Queues {
    fn with(account: Arc<Account>) -> Queues {
        Queues { names: Lock::new(Level::Object, BTreeMap::new()), account }
    }

    /// Those of another namespace: none yet.
    pub fn beside(&self) -> Queues {
        Queues::with(self.account.clone())
    }

    /// The queue of a name.
    pub fn find(&self, name: &[u8]) -> Option<Arc<Queue>> {
        self.names.lock().get(name).cloned()
    }

    /// All names.
    pub fn all(&self) -> Vec<(Box<[u8]>, Arc<Queue>)> {
        self.names.lock().iter().map(|(name, queue)| (name.clone(), queue.clone())).collect()
    }

    /// Makes a queue.
    ///
    /// # Errors
    /// EINVAL, ENOSPC, EMFILE, EEXIST.
    pub fn create(
        &self,
        name: &[u8],
        mode: u32,
        attr: Option<(i64, i64)>,
        maker: &Maker,
    ) -> SysResult<Arc<Queue>> {
        let (count, size) = attr.unwrap_or((MSG_MAX, MSGSIZE_MAX));
        let (most, largest) =
            if maker.resource { (HARD_MSG_MAX, HARD_MSGSIZE_MAX) } else { (MSG_MAX, MSGSIZE_MAX) };
        if count <= 0 || size <= 0 || count > most || size > largest {
            return Err(Errno::EINVAL.into());
        }
        let bytes = count.unsigned_abs().saturating_mul(size.unsigned_abs().saturating_add(COST));
        let now = FileTime::now();
        let owner =
            Owner { mode: mode & 0o7777, uid: maker.uid, gid: maker.gid, atime: now, mtime: now, ctime: now };
        let mut names = self.names.lock();
        if names.contains_key(name) {
            return Err(Errno::EEXIST.into());
        }
        let mut charges = self.account.charges.lock();
        if charges.made >= if maker.resource { HARD_QUEUES } else { QUEUES_MAX } {
            return Err(Errno::ENOSPC.into());
        }
        let charged = charges.by_user.get(&maker.uid).copied().unwrap_or(0).saturating_add(bytes);
        if charged > maker.limit {
            return Err(Errno::EMFILE.into());
        }
        let queue = Arc::new(Queue {
            ino: super::next_ino(),
            limits: (count, size),
            owner: Lock::new(Level::Field, owner),
            messages: Lock::new(Level::Object, Messages::default()),
            wait: WaitQueue::new(),
            account: self.account.clone(),
            charged: (maker.uid, bytes),
        });
        charges.by_user.insert(maker.uid, charged);
        charges.made += 1;
        drop(charges);
        names.insert(name.into(), queue.clone());
        Ok(queue)
    }

    /// Takes a name away; the queue lives as long as it is open.
    pub fn unlink(&self, name: &[u8]) -> Option<Arc<Queue>> {
        self.names.lock().remove(name)
    }
}

/// An open queue.
pub struct MqFile {
    pub(crate) queue: Arc<Queue>,
    pub(crate) name: Vec<u8>,
}

/// A waiting mq_timedreceive(2), counted: a message that it gets is no reason to tell anybody.
#[derive(Default)]
pub struct Receiver {
    queue: Option<Arc<Queue>>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            let mut messages = queue.messages.lock();
            messages.receivers = messages.receivers.saturating_sub(1);
        }
    }
}

impl Queue {
    pub(crate) fn attr(&self) -> Attr {
        let owner = *self.owner.lock();
        Attr {
            dev: stat::makedev(0, 22),
            ino: self.ino,
            mode: S_IFREG | owner.mode,
            nlink: 1,
            uid: owner.uid,
            gid: owner.gid,
            size: FILE_SIZE,
            blksize: 4096,
            atime: owner.atime,
            mtime: owner.mtime,
            ctime: owner.ctime,
            ..Attr::default()
        }
    }

    /// As mq_getattr(3) has it, without flags.
    pub fn limits(&self) -> MqAttr {
        MqAttr {
            mq_maxmsg: self.limits.0,
            mq_msgsize: self.limits.1,
            mq_curmsgs: self.messages.lock().count,
            ..zerocopy::FromZeros::new_zeroed()
        }
    }

    /// Largest message.
    pub fn message_size(&self) -> usize {
        usize::try_from(self.limits.1).unwrap_or(0)
    }

    /// mq_timedsend(2).
    ///
    /// # Errors
    /// EAGAIN, ETIMEDOUT, ENOMEM; blocks.
    pub fn send(
        &self,
        cx: &mut Cx,
        file: &File,
        text: &[u8],
        prio: u32,
        until: Option<Duration>,
    ) -> SysResult<()> {
        cx.wait_on(&self.wait, Ready::OUT);
        let creds = cx.task.creds();
        let uid = creds.ns.user(creds.uid);
        let mut messages = self.messages.lock();
        if messages.count >= self.limits.0 {
            drop(messages);
            return wait(cx, file, until);
        }
        if !self.account.bytes.take(text.len(), BYTES) {
            return Err(Errno::ENOMEM.into());
        }
        messages.by_prio.entry(prio).or_default().push_back(text.to_vec());
        messages.count += 1;
        messages.bytes = messages.bytes.saturating_add(text.len() as u64);
        let first = messages.count == 1 && messages.receivers == 0;
        let notify = if first { messages.notify.take() } else { None };
        drop(messages);
        let now = FileTime::now();
        {
            let mut owner = self.owner.lock();
            (owner.mtime, owner.ctime) = (now, now);
        }
        self.wait.wake(Ready::IN | Ready::RDNORM);
        if let Some(notify) = &notify {
            notify.how.tell_socket(WOKEN);
        }
        if let Some(notify) = notify
            && let (Some(process), How::Signal(signal, value)) = (notify.process.upgrade(), notify.how)
        {
            let pid = cx.task.process.seen_by(&process);
            let info = Siginfo::queue(signal, SI_MESGQ, pid, uid, value);
            // A signal that waits already is enough.
            let _ = send::by(cx.task, &process, None, info);
        }
        Ok(())
    }

    /// mq_timedreceive(2): the oldest message of the highest priority, and that priority.
    ///
    /// # Errors
    /// EAGAIN, ETIMEDOUT; blocks.
    pub fn receive(
        self: &Arc<Self>,
        cx: &mut Cx,
        file: &File,
        until: Option<Duration>,
    ) -> SysResult<(Vec<u8>, u32)> {
        cx.wait_on(&self.wait, Ready::IN);
        let mut messages = self.messages.lock();
        let taken = messages.by_prio.last_entry().and_then(|mut list| {
            let (prio, text) = (*list.key(), list.get_mut().pop_front()?);
            if list.get().is_empty() {
                list.remove();
            }
            Some((text, prio))
        });
        let Some((text, prio)) = taken else {
            let counted = cx.state::<Receiver>().queue.is_some();
            if !counted && !file.nonblocking() {
                messages.receivers += 1;
                cx.state::<Receiver>().queue = Some(self.clone());
            }
            drop(messages);
            return wait(cx, file, until);
        };
        messages.count -= 1;
        messages.bytes = messages.bytes.saturating_sub(text.len() as u64);
        drop(messages);
        self.account.bytes.give(text.len());
        let now = FileTime::now();
        {
            let mut owner = self.owner.lock();
            (owner.atime, owner.ctime) = (now, now);
        }
        self.wait.wake(Ready::OUT | Ready::WRNORM);
        Ok((text, prio))
    }

    /// mq_notify(2): registers.
    ///
    /// # Errors
    /// EBUSY.
    pub fn register(&self, task: &Task, how: How) -> SysResult<()> {
        let table = task.files().id();
        let mut messages = self.messages.lock();
        let taken =
            messages.notify.as_ref().and_then(|n| n.process.upgrade()).is_some_and(|p| !p.is_exiting());
        if taken {
            return Err(Errno::EBUSY.into());
        }
        let process = Arc::downgrade(&task.process);
        messages.notify = Some(Notify { process, table, name: task.process.name.clone(), how });
        Ok(())
    }

    /// mq_notify(2) with nothing, and close(2): the registration by the owner of this descriptor table is gone.
    pub fn unregister(&self, table: u64) {
        let gone = {
            let mut messages = self.messages.lock();
            let own = messages.notify.as_ref().is_some_and(|notify| notify.table == table);
            if own { messages.notify.take() } else { None }
        };
        if let Some(notify) = gone {
            notify.how.tell_socket(REMOVED);
        }
    }
}

fn wait<T>(cx: &mut Cx, file: &File, until: Option<Duration>) -> SysResult<T> {
    if file.nonblocking() {
        return Err(Errno::EAGAIN.into());
    }
    if until.is_some_and(|until| time::now() >= until) {
        return Err(Errno::ETIMEDOUT.into());
    }
    cx.block_until(until, Restart::Sys)
}

impl FileOps for MqFile {
    fn read(&self, cx: &mut Cx, _: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        let messages = self.queue.messages.lock();
        let (kind, signal) = match &messages.notify {
            Some(Notify { how: How::Signal(signal, _), .. }) => (SIGEV_SIGNAL, *signal),
            Some(Notify { how: How::Socket(..), .. }) => (SIGEV_THREAD, 0),
            Some(_) => (SIGEV_NONE, 0),
            None => (0, 0),
        };
        let pid = messages.notify.as_ref().map_or(0, |notify| notify.name.in_ns(&cx.task.process.pidns));
        let text =
            format!("QSIZE:{:<10} NOTIFY:{kind:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n", messages.bytes);
        drop(messages);
        Ok(crate::fs::pseudo::copy_at(text.as_bytes(), buf, offset))
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        Ok(FILE_SIZE)
    }

    fn poll(&self, _: &File) -> Ready {
        let count = self.queue.messages.lock().count;
        let mut ready = Ready::empty();
        if count > 0 {
            ready |= Ready::IN | Ready::RDNORM;
        }
        if count < self.queue.limits.0 {
            ready |= Ready::OUT | Ready::WRNORM;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue.wait)
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(self.queue.attr())
    }

    fn inode(&self) -> Option<Arc<dyn crate::vfs::inode::Inode>> {
        Some(Arc::new(crate::fs::mqueue::Name { queue: self.queue.clone(), name: self.name.clone() }))
    }

    fn describe(&self) -> String {
        format!("/{}", String::from_utf8_lossy(&self.name))
    }
}

/// A descriptor in this table was closed.
pub(crate) fn closed(table: u64, file: &File) {
    if let Some(mq) = file.downcast::<MqFile>() {
        mq.queue.unregister(table);
    }
}
