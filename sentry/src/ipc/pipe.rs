//! Pipes and fifos (pipe(7), fifo(7)).

use super::{anonymous_attr, next_ino};
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::sync::{Level, Lock};
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps, Written, o};
use crate::vfs::nameless::Owned;
use crate::wait::{Ready, WaitQueue};
use std::collections::VecDeque;
use std::sync::Arc;
use syscall_table::abi::FIONREAD;
use syscall_table::errno::Errno;

/// Writes up to this size are not torn.
const PIPE_BUF: usize = 4096;
/// Capacity of a new pipe.
const CAPACITY: usize = 65536;
/// fs.pipe-max-size
const CAPACITY_MAX: usize = 1 << 20;
/// S_IFIFO
const FIFO: u32 = 0o010000;
/// The pipe file system's device number.
const DEV: u64 = 14;

struct State {
    bytes: VecDeque<u8>,
    capacity: usize,
    readers: usize,
    writers: usize,
    /// Times that a reading end was opened; a fifo's opener waits for a change.
    read_opens: u64,
    write_opens: u64,
    /// Sizes of the packets in `bytes` (O_DIRECT writers); others are one run.
    packets: VecDeque<usize>,
}

impl State {
    /// Takes bytes out, packets or not.
    fn take(&mut self, count: usize) -> Vec<u8> {
        let count = count.min(self.bytes.len());
        let mut left = count;
        while let Some(packet) = self.packets.front_mut().filter(|_| left > 0) {
            let part = left.min(*packet);
            *packet -= part;
            left -= part;
            if *packet == 0 {
                self.packets.pop_front();
            }
        }
        self.bytes.drain(..count).collect()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        // Among packets, what has no bounds of its own is one more.
        if !self.packets.is_empty() {
            self.packets.push_back(bytes.len());
        }
    }

    fn room(&self) -> usize {
        self.capacity.saturating_sub(self.bytes.len())
    }

    /// How much can be read now.
    fn filled(&self) -> Result<usize, Stuck> {
        match self.bytes.len() {
            0 if self.writers == 0 => Err(Stuck::Ended),
            0 => Err(Stuck::Empty),
            count => Ok(count),
        }
    }

    /// How much can be written now.
    fn free(&self) -> Result<usize, Stuck> {
        match self.room() {
            _ if self.readers == 0 => Err(Stuck::Broken),
            0 => Err(Stuck::Full),
            room => Ok(room),
        }
    }
}

/// Why nothing can be moved (splice(2), tee(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stuck {
    /// Nothing is in it.
    Empty,
    /// Nothing is in it, and nobody can write.
    Ended,
    /// No room.
    Full,
    /// Nobody can read.
    Broken,
}

/// A pipe, or what the openings of a fifo have in common.
pub struct Pipe {
    state: Lock<State>,
    queue: WaitQueue,
    ino: u64,
    owned: Owned,
}

impl Pipe {
    /// A pipe of this user and group.
    pub fn new(owner: (u32, u32)) -> Self {
        let state = State {
            bytes: VecDeque::new(),
            capacity: CAPACITY,
            readers: 0,
            writers: 0,
            read_opens: 0,
            write_opens: 0,
            packets: VecDeque::new(),
        };
        let ino = next_ino();
        let attr = Attr { uid: owner.0, gid: owner.1, ..anonymous_attr(DEV, ino, FIFO | 0o600) };
        Pipe { state: Lock::new(Level::Object, state), queue: WaitQueue::new(), ino, owned: Owned::new(attr) }
    }

    /// Woken when something was read or written.
    pub(crate) fn queue(&self) -> &WaitQueue {
        &self.queue
    }

    /// Takes up to `most` bytes out.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) fn take(&self, most: usize) -> Result<Vec<u8>, Stuck> {
        let bytes = {
            let mut state = self.state.lock();
            state.filled()?;
            state.take(most)
        };
        self.queue.wake(Ready::OUT | Ready::WRNORM);
        Ok(bytes)
    }

    /// Puts what [`take`](Self::take) gave back in front.
    pub(crate) fn give_back(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        for byte in bytes.iter().rev() {
            state.bytes.push_front(*byte);
        }
        if !state.packets.is_empty() {
            state.packets.push_front(bytes.len());
        }
        drop(state);
        self.queue.wake(Ready::IN | Ready::RDNORM);
    }

    /// How much can be written.
    ///
    /// # Errors
    /// Why nothing can.
    pub(crate) fn free(&self) -> Result<usize, Stuck> {
        self.state.lock().free()
    }

    /// Writes all of `bytes`, for which there was room a moment ago.
    pub(crate) fn put(&self, bytes: &[u8]) {
        self.state.lock().put(bytes);
        self.queue.wake(Ready::IN | Ready::RDNORM);
    }

    /// Moves bytes into another pipe; with `keep` they stay here too. In one step for whoever looks.
    ///
    /// # Errors
    /// Why there are none to move.
    pub(crate) fn pour(&self, to: &Pipe, most: usize, keep: bool) -> Result<usize, Stuck> {
        let count = {
            // Two locks of one level: by address.
            let (mut from, mut into) = if std::ptr::from_ref(self) < std::ptr::from_ref(to) {
                let first = self.state.lock();
                (first, to.state.lock_peer())
            } else {
                let second = to.state.lock();
                (self.state.lock_peer(), second)
            };
            let count = from.filled()?.min(into.free()?).min(most);
            if keep {
                let bytes: Vec<u8> = from.bytes.iter().take(count).copied().collect();
                into.put(&bytes);
            } else {
                let bytes = from.take(count);
                into.put(&bytes);
            }
            count
        };
        if !keep {
            self.queue.wake(Ready::OUT | Ready::WRNORM);
        }
        to.queue.wake(Ready::IN | Ready::RDNORM);
        Ok(count)
    }
}

/// One description of a pipe.
pub struct PipeEnd {
    pipe: Arc<Pipe>,
    inode: Option<Arc<dyn crate::vfs::inode::Inode>>,
}

/// A fifo being opened, kept while the opener waits for the other side.
#[derive(Default)]
struct Opening {
    file: Option<Arc<File>>,
    seen: u64,
}

/// How much of a blocking write is done.
#[derive(Default)]
struct Progress(usize);

/// A new pipe's reading and writing description. `flags`: O_NONBLOCK, O_DIRECT; `owner`: user and group.
pub fn pair(flags: i32, owner: (u32, u32)) -> (Arc<File>, Arc<File>) {
    let pipe = Arc::new(Pipe::new(owner));
    (pipe.description(o::O_RDONLY | flags, None, None), pipe.description(o::O_WRONLY | flags, None, None))
}

impl Pipe {
    fn description(
        self: &Arc<Self>,
        flags: i32,
        path: Option<crate::vfs::path::Path>,
        inode: Option<Arc<dyn crate::vfs::inode::Inode>>,
    ) -> Arc<File> {
        let (read, write) = sides(flags);
        let mut state = self.state.lock();
        state.readers += usize::from(read);
        state.writers += usize::from(write);
        state.read_opens += u64::from(read);
        state.write_opens += u64::from(write);
        drop(state);
        self.queue.wake(Ready::IN | Ready::OUT);
        File::new(Arc::new(PipeEnd { pipe: self.clone(), inode }), flags, path)
    }

    /// Opens a fifo (fifo(7)): waits for the other side, unless O_NONBLOCK or O_RDWR. `flags`: access mode and status flags.
    ///
    /// # Errors
    /// ENXIO: for writing, without waiting, and nobody reads.
    pub fn open_fifo(
        self: &Arc<Self>,
        cx: &mut Cx,
        flags: i32,
        path: Option<crate::vfs::path::Path>,
        inode: Option<Arc<dyn crate::vfs::inode::Inode>>,
    ) -> SysResult<Arc<File>> {
        let (read, write) = sides(flags);
        if cx.state::<Opening>().file.is_none() {
            if write && !read && flags & o::O_NONBLOCK != 0 && self.state.lock().readers == 0 {
                return Err(Errno::ENXIO.into());
            }
            let (seen, met) = {
                let state = self.state.lock();
                if read {
                    (state.write_opens, state.writers > 0)
                } else {
                    (state.read_opens, state.readers > 0)
                }
            };
            let file = self.description(flags, path, inode);
            if met || read && write || flags & o::O_NONBLOCK != 0 {
                return Ok(file);
            }
            *cx.state::<Opening>() = Opening { file: Some(file), seen };
        }
        cx.wait_on(&self.queue, Ready::IN | Ready::OUT);
        let opens = {
            let state = self.state.lock();
            if read { state.write_opens } else { state.read_opens }
        };
        let opening = cx.state::<Opening>();
        if opens != opening.seen
            && let Some(file) = opening.file.take()
        {
            return Ok(file);
        }
        cx.block(Restart::Sys)
    }
}

fn sides(flags: i32) -> (bool, bool) {
    match flags & o::O_ACCMODE {
        o::O_RDONLY => (true, false),
        o::O_WRONLY => (false, true),
        _ => (true, true),
    }
}

impl PipeEnd {
    /// The pipe.
    pub(crate) fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    /// F_GETPIPE_SZ
    pub fn capacity(&self) -> usize {
        self.pipe.state.lock().capacity
    }

    /// F_SETPIPE_SZ; returns the size it got.
    ///
    /// # Errors
    /// EBUSY when more is in it; EPERM past the system's limit; EINVAL.
    pub fn set_capacity(&self, size: usize) -> SysResult<usize> {
        if size > CAPACITY_MAX {
            return Err(if size > 1 << 31 { Errno::EINVAL } else { Errno::EPERM }.into());
        }
        let size = size.max(4096).next_power_of_two();
        let mut state = self.pipe.state.lock();
        if state.bytes.len() > size {
            return Err(Errno::EBUSY.into());
        }
        state.capacity = size;
        drop(state);
        self.pipe.queue.wake(Ready::OUT | Ready::WRNORM);
        Ok(size)
    }
}

impl FileOps for PipeEnd {
    fn takes_direct(&self) -> bool {
        true
    }

    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], _offset: u64) -> SysResult<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        cx.wait_on(&self.pipe.queue, Ready::IN);
        let mut state = self.pipe.state.lock();
        if state.bytes.is_empty() {
            if state.writers == 0 {
                return Ok(0);
            }
            drop(state);
            if cx.hurries(file) {
                return Err(Errno::EAGAIN.into());
            }
            return cx.block(Restart::Sys);
        }
        let packet = state.packets.front().copied();
        let count = packet.unwrap_or(state.bytes.len()).min(buf.len());
        if count > cx.room {
            return Err(Errno::EFAULT.into());
        }
        state.packets.pop_front();
        let (first, second) = state.bytes.as_slices();
        let head = first.len().min(count);
        copy(buf, 0, first.get(..head));
        copy(buf, head, second.get(..count - head));
        // What of a packet does not fit is lost.
        state.bytes.drain(..packet.unwrap_or(count).max(count));
        drop(state);
        self.pipe.queue.wake(Ready::OUT | Ready::WRNORM);
        Ok(count)
    }

    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], _offset: u64) -> SysResult<Written> {
        let written = |count| Ok(Written { count, end: 0 });
        let mut done =
            if cx.hurries(file) { 0 } else { std::mem::take(&mut cx.state::<Progress>().0) }.min(data.len());
        cx.wait_on(&self.pipe.queue, Ready::OUT);
        let mut state = self.pipe.state.lock();
        if state.readers == 0 {
            drop(state);
            if done > 0 {
                return written(done);
            }
            cx.sigpipe();
            return Err(Errno::EPIPE.into());
        }
        if data.is_empty() {
            return written(0);
        }
        let rest = data.get(done..).unwrap_or_default();
        let room = state.capacity.saturating_sub(state.bytes.len());
        let whole = rest.len() <= PIPE_BUF;
        let part = if whole && rest.len() > room { 0 } else { rest.len().min(room) };
        if part > 0 && !crate::memory::room_for(part as u64) {
            return if done > 0 { written(done) } else { Err(Errno::ENOMEM.into()) };
        }
        if part > 0 {
            state.bytes.extend(rest.get(..part).unwrap_or_default());
            if file.flags() & o::O_DIRECT != 0 {
                let mut left = part;
                while left > 0 {
                    state.packets.push_back(left.min(PIPE_BUF));
                    left -= left.min(PIPE_BUF);
                }
            }
        }
        drop(state);
        if part > 0 {
            done += part;
            self.pipe.queue.wake(Ready::IN | Ready::RDNORM);
        }
        if done == data.len() {
            return written(done);
        }
        if cx.hurries(file) {
            return if done > 0 { written(done) } else { Err(Errno::EAGAIN.into()) };
        }
        // A signal would otherwise make the caller write what was written already once more.
        if done > 0 && crate::signal::deliver::pending(cx.task) {
            return written(done);
        }
        cx.state::<Progress>().0 = done;
        cx.block(Restart::Sys)
    }

    fn hurries(&self) -> bool {
        true
    }

    fn poll(&self, file: &File) -> Ready {
        let (read, write) = sides(file.flags());
        let state = self.pipe.state.lock();
        let mut ready = Ready::empty();
        if read {
            if !state.bytes.is_empty() {
                ready |= Ready::IN | Ready::RDNORM;
            }
            if state.writers == 0 && (state.write_opens > 0 || self.inode.is_none()) {
                ready |= Ready::HUP;
            }
        }
        if write {
            if state.capacity.saturating_sub(state.bytes.len()) >= PIPE_BUF {
                ready |= Ready::OUT | Ready::WRNORM;
            }
            if state.readers == 0 {
                ready |= Ready::ERR;
            }
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.pipe.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        if let Some(inode) = &self.inode {
            return inode.attr();
        }
        Ok(self.pipe.owned.attr())
    }

    fn owned(&self) -> Option<&Owned> {
        Some(&self.pipe.owned)
    }

    fn inode(&self) -> Option<Arc<dyn crate::vfs::inode::Inode>> {
        self.inode.clone()
    }

    fn ioctl(&self, cx: &mut Cx, _file: &File, request: u32, arg: u64) -> SysResult {
        match request {
            FIONREAD => {
                let count = self.pipe.state.lock().bytes.len();
                cx.write_value(arg, &i32::try_from(count).unwrap_or(i32::MAX))?;
                Ok(0)
            }
            _ => Err(Errno::ENOTTY.into()),
        }
    }

    fn fallocate(&self, _mode: i32, _offset: u64, _len: u64) -> SysResult<()> {
        Err(Errno::ESPIPE.into())
    }

    fn release(&self, flags: i32) {
        let (read, write) = sides(flags);
        let mut state = self.pipe.state.lock();
        state.readers = state.readers.saturating_sub(usize::from(read));
        state.writers = state.writers.saturating_sub(usize::from(write));
        if state.readers == 0 && state.writers == 0 {
            state.bytes = VecDeque::new();
            state.packets.clear();
        }
        drop(state);
        self.pipe.queue.wake(Ready::IN | Ready::OUT | Ready::HUP | Ready::ERR);
    }

    fn describe(&self) -> String {
        format!("pipe:[{}]", self.pipe.ino)
    }
}

fn copy(buf: &mut [u8], at: usize, from: Option<&[u8]>) {
    let Some(from) = from else { return };
    if let Some(to) = buf.get_mut(at..at + from.len()) {
        to.copy_from_slice(from);
    }
}
