//! epoll(7): an interest list and a list of those that may be ready. Waiting costs as much as there are ready
//! descriptors, however many are watched.

use super::{anonymous_attr, next_ino};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::sync::{Level, Lock};
use crate::task::pidns::PidNs;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::wait::{Listener, Ready, WaitQueue};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Most links of a chain of epolls (EP_MAX_NESTS): a wake-up and a look at readiness go along all of them.
const NESTS: usize = 4;
/// Held while epolls are linked, so that two links together make no circle and no longer chain.
static LINKING: Lock<()> = Lock::new(Level::Inode, ());
const INPUT_FLAGS: u32 = EPOLLET | EPOLLONESHOT | EPOLLEXCLUSIVE | EPOLLWAKEUP;

#[derive(Clone, Copy)]
struct Interest {
    events: u32,
    data: u64,
    /// EPOLLONESHOT has reported.
    spent: bool,
}

struct Item {
    epoll: Weak<Epoll>,
    file: Weak<File>,
    /// The file's epoll, if it is one.
    inner: Option<Weak<Epoll>>,
    key: (i32, u64),
    interest: Lock<Interest>,
    epoch: AtomicU64,
    listed: AtomicBool,
}

impl Item {
    fn ready(&self) -> Option<(u32, Interest, Arc<File>)> {
        let file = self.file.upgrade()?;
        let interest = *self.interest.lock();
        if interest.spent {
            return None;
        }
        let wanted = interest.events & !INPUT_FLAGS | EPOLLERR | EPOLLHUP;
        let events = file.ops.poll(&file).bits() & wanted;
        (events != 0).then_some((events, interest, file))
    }

    fn list(self: &Arc<Self>, epoll: &Epoll) {
        if !self.listed.swap(true, Ordering::SeqCst) {
            epoll.ready.lock().push_back(self.clone());
        }
    }
}

struct Watch(Arc<Item>);

impl Listener for Watch {
    fn fire(&self, epoch: u64, _mask: Ready) -> bool {
        if !self.alive(epoch) {
            return false;
        }
        let Some(epoll) = self.0.epoll.upgrade() else { return false };
        self.0.list(&epoll);
        epoll.queue.wake(Ready::IN | Ready::RDNORM) != 0
    }

    fn alive(&self, epoch: u64) -> bool {
        self.0.epoch.load(Ordering::SeqCst) == epoch && self.0.file.strong_count() > 0
    }
}

/// An epoll instance.
pub struct Epoll {
    items: Lock<HashMap<(i32, u64), Arc<Item>>>,
    ready: Lock<VecDeque<Arc<Item>>>,
    queue: WaitQueue,
    /// Those that watch this one.
    outer: Lock<Vec<Weak<Epoll>>>,
    me: Weak<Epoll>,
    ino: u64,
}

impl Epoll {
    /// An empty one.
    pub fn new() -> Arc<Epoll> {
        Arc::new_cyclic(|me| Epoll {
            items: Lock::new(Level::Epoll, HashMap::new()),
            ready: Lock::new(Level::Ready, VecDeque::new()),
            queue: WaitQueue::new(),
            outer: Lock::new(Level::Epoll, Vec::new()),
            me: me.clone(),
            ino: next_ino(),
        })
    }

    /// What to wait on.
    pub fn wait_queue(&self) -> &WaitQueue {
        &self.queue
    }

    /// The id of the `nth` description that is watched under this number (kcmp(2)).
    pub fn target(&self, fd: i32, nth: u32) -> Option<u64> {
        let mut ids: Vec<u64> = self.items.lock().keys().filter(|k| k.0 == fd).map(|k| k.1).collect();
        ids.sort_unstable();
        ids.get(usize::try_from(nth).ok()?).copied()
    }

    /// EPOLL_CTL_ADD
    ///
    /// # Errors
    /// EPERM, EEXIST, ELOOP, EINVAL.
    pub fn add(&self, fd: i32, file: &Arc<File>, event: EpollEvent) -> SysResult<()> {
        let alone = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE;
        if event.events & EPOLLEXCLUSIVE != 0 && event.events & !alone != 0 {
            return Err(Errno::EINVAL.into());
        }
        if file.ops.queue().is_none() {
            return Err(Errno::EPERM.into());
        }
        let inner = file.downcast::<Epoll>();
        let linking = inner.map(|_| LINKING.lock());
        if let Some(inner) = inner {
            if std::ptr::eq(inner, self) || event.events & EPOLLEXCLUSIVE != 0 {
                return Err(Errno::EINVAL.into());
            }
            let links = inner.layers(Epoll::inside, self).zip(self.layers(Epoll::outside, inner));
            if links.is_none_or(|(below, above)| below + above + 1 > NESTS) {
                return Err(Errno::ELOOP.into());
            }
        }
        let key = (fd, file.id);
        let item = Arc::new(Item {
            epoll: self.me.clone(),
            file: Arc::downgrade(file),
            inner: inner.map(|inner| inner.me.clone()),
            key,
            interest: Lock::new(
                Level::Object,
                Interest { events: event.events, data: event.data, spent: false },
            ),
            epoch: AtomicU64::new(1),
            listed: AtomicBool::new(false),
        });
        {
            let mut items = self.items.lock();
            if items.contains_key(&key) {
                return Err(Errno::EEXIST.into());
            }
            if items.len() >= 64 && items.len().is_power_of_two() {
                items.retain(|_, item| item.file.strong_count() > 0);
            }
            items.insert(key, item.clone());
        }
        if let Some(inner) = inner {
            let mut outer = inner.outer.lock();
            outer.retain(|epoll| epoll.strong_count() > 0);
            outer.push(self.me.clone());
        }
        drop(linking);
        self.register(&item, file, event.events);
        Ok(())
    }

    fn register(&self, item: &Arc<Item>, file: &Arc<File>, events: u32) {
        let Some(queue) = file.ops.queue() else { return };
        let epoch = item.epoch.load(Ordering::SeqCst);
        let mask = Ready::from_bits_retain(events & !INPUT_FLAGS);
        queue.add(Arc::new(Watch(item.clone())), epoch, mask, events & EPOLLEXCLUSIVE != 0);
        if item.ready().is_some() {
            item.list(self);
            self.queue.wake(Ready::IN | Ready::RDNORM);
        }
    }

    /// EPOLL_CTL_MOD
    ///
    /// # Errors
    /// ENOENT, EINVAL.
    pub fn modify(&self, fd: i32, file: &Arc<File>, event: EpollEvent) -> SysResult<()> {
        let item = self.items.lock().get(&(fd, file.id)).cloned().ok_or(Errno::ENOENT)?;
        {
            let mut interest = item.interest.lock();
            if (interest.events | event.events) & EPOLLEXCLUSIVE != 0 {
                return Err(Errno::EINVAL.into());
            }
            *interest = Interest { events: event.events, data: event.data, spent: false };
        }
        item.epoch.fetch_add(1, Ordering::SeqCst);
        self.register(&item, file, event.events);
        Ok(())
    }

    /// EPOLL_CTL_DEL
    ///
    /// # Errors
    /// ENOENT.
    pub fn delete(&self, fd: i32, file: &Arc<File>) -> SysResult<()> {
        let item = self.items.lock().remove(&(fd, file.id)).ok_or(Errno::ENOENT)?;
        item.epoch.fetch_add(1, Ordering::SeqCst);
        item.interest.lock().spent = true;
        if let Some(inner) = item.inner.as_ref().and_then(Weak::upgrade) {
            let mut outer = inner.outer.lock();
            // One of them: it may be watched under another number too.
            if let Some(at) = outer.iter().position(|epoll| Weak::ptr_eq(epoll, &self.me)) {
                outer.swap_remove(at);
            }
        }
        Ok(())
    }

    /// The epolls that this one watches.
    fn inside(&self) -> Vec<Arc<Epoll>> {
        self.items.lock().values().filter_map(|item| item.inner.as_ref()?.upgrade()).collect()
    }

    /// The epolls that watch this one.
    fn outside(&self) -> Vec<Arc<Epoll>> {
        self.outer.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// How many layers of epolls there are in one direction. None: `target` is in one of them.
    fn layers(&self, next: fn(&Epoll) -> Vec<Arc<Epoll>>, target: &Epoll) -> Option<usize> {
        let mut layer = next(self);
        for depth in 0..=NESTS {
            if layer.iter().any(|epoll| std::ptr::eq(&**epoll, target)) {
                return None;
            }
            if layer.is_empty() {
                return Some(depth);
            }
            let mut seen = HashSet::new();
            layer =
                layer.iter().flat_map(|epoll| next(epoll)).filter(|epoll| seen.insert(epoll.ino)).collect();
        }
        None
    }

    /// Up to `max` ready events.
    pub fn collect(&self, max: usize) -> Vec<EpollEvent> {
        let mut out = Vec::new();
        let mut again = Vec::new();
        let mut left = self.ready.lock().len();
        while left > 0 && out.len() < max {
            left -= 1;
            let Some(item) = self.ready.lock().pop_front() else { break };
            // From here on a wake-up lists it anew.
            item.listed.store(false, Ordering::SeqCst);
            let Some((events, interest, _file)) = item.ready() else {
                if item.file.strong_count() == 0 {
                    self.items.lock().remove(&item.key);
                }
                continue;
            };
            if interest.events & EPOLLONESHOT != 0 {
                item.interest.lock().spent = true;
            } else if interest.events & EPOLLET == 0 {
                again.push(item);
            }
            out.push(EpollEvent { events, data: interest.data });
        }
        for item in again {
            item.list(self);
        }
        if !out.is_empty() && !self.ready.lock().is_empty() {
            // Another waiter may take what is left.
            self.queue.wake(Ready::IN | Ready::RDNORM);
        }
        out
    }
}

impl FileOps for Epoll {
    fn seeks_nowhere(&self) -> bool {
        true
    }

    fn poll(&self, _file: &File) -> Ready {
        let listed: Vec<_> = self.ready.lock().iter().cloned().collect();
        if listed.iter().any(|item| item.ready().is_some()) {
            Ready::IN | Ready::RDNORM
        } else {
            Ready::empty()
        }
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.queue)
    }

    fn ioctl(&self, _cx: &mut Cx, _file: &File, request: u32, _arg: u64) -> SysResult {
        // Since Linux 6.9 it has requests of its own, and knows those that it has not.
        match request >> 8 & 0xff {
            0x8a => Err(Fail::gap(Errno::EINVAL, "ioctl EPIOCSPARAMS and EPIOCGPARAMS")),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(anonymous_attr(15, self.ino, 0o600))
    }

    fn info(&self, _: &PidNs) -> String {
        use std::fmt::Write;
        let mut items: Vec<_> = self.items.lock().values().cloned().collect();
        items.sort_unstable_by_key(|item| item.key);
        let mut out = String::new();
        for item in items {
            let Some(file) = item.file.upgrade() else { continue };
            let interest = *item.interest.lock();
            let (ino, dev) = file.ops.attr().map_or((0, 0), |attr| (attr.ino, attr.dev));
            let _ = writeln!(
                out,
                "tfd: {:8} events: {:8x} data: {:16x}  pos:{} ino:{ino:x} sdev:{dev:x}",
                item.key.0,
                interest.events | EPOLLERR | EPOLLHUP,
                interest.data,
                file.pos.peek().unwrap_or(0)
            );
        }
        out
    }

    fn describe(&self) -> String {
        "anon_inode:[eventpoll]".into()
    }
}
