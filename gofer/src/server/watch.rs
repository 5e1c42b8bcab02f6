//! Watches for changes that are made on the host.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init, remove_watch};
use rustix::io::Errno;

use crate::protocol::{Bytes, MAX_NAMES, MAX_WATCHES, NodeId, Response};

use super::walk::component;
use super::{Answer, Failure, Server, done};

/// What a watch may ask beside events.
const OPTIONS: WatchFlags = WatchFlags::EXCL_UNLINK.union(WatchFlags::MASK_ADD).union(WatchFlags::ONESHOT);

/// The connection's inotify instance, made with the first watch, and its watches.
#[derive(Default)]
pub(super) struct Watches(Mutex<Option<(OwnedFd, HashSet<i32>)>>);

impl Server {
    pub(super) fn watch(&self, node: NodeId, events: u32) -> Answer {
        let node = self.nodes.get(node)?;
        let events = WatchFlags::from_bits_retain(events);
        if !(WatchFlags::ALL_EVENTS | OPTIONS).contains(events) || !events.intersects(WatchFlags::ALL_EVENTS)
        {
            return Err(Errno::INVAL.into());
        }
        let mut watches = self.watches.0.lock();
        let (instance, known) = match &mut *watches {
            Some(watches) => watches,
            none => none.insert((init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?, HashSet::new())),
        };
        if known.len() >= MAX_WATCHES {
            return Err(Errno::NOSPC.into());
        }
        let copy = rustix::io::fcntl_dupfd_cloexec(&*instance, 0)?;
        // By its link: following that leads to the node's inode, and no further.
        let watch = add_watch(&*instance, self.self_fds.path(&*node), events)?;
        known.insert(watch);
        Ok((Response::Watching(watch), Some(copy)))
    }

    /// Which names of a directory are hidden, by themselves or as another name of what is.
    pub(super) fn are_hidden(&self, dir: NodeId, names: &[Bytes]) -> Answer {
        let dir = self.nodes.dir(dir)?;
        if names.len() > MAX_NAMES {
            return Err(Errno::INVAL.into());
        }
        let names = names.iter().map(component).collect::<Result<Vec<CString>, Errno>>()?;
        let hidden = |name: &CString| {
            self.policy.step(&dir.position, name.as_bytes()).is_err()
                || matches!(self.glance(&dir, name), Err(Failure::Hidden(_)))
        };
        Ok((Response::Flags(names.iter().map(hidden).collect()), None))
    }

    pub(super) fn unwatch(&self, watch: i32) -> Answer {
        let mut watches = self.watches.0.lock();
        let (instance, known) = watches.as_mut().ok_or(Errno::INVAL)?;
        known.remove(&watch);
        remove_watch(&*instance, watch)?;
        done()
    }
}
