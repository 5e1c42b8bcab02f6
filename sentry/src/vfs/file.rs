//! Open file descriptions and what stands behind them.
//!
//! [`FileOps`] is implemented by every kind of open object (regular file, directory, pipe end, socket, eventfd, epoll, tty, …).
//! Its defaults answer what Linux answers for an object without the operation.

use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::sync::{Level, Lock};
use crate::task::pidns::PidNs;
use crate::vfs::attr::Attr;
use crate::vfs::owner::FileOwner;
use crate::vfs::text::{Running, Writer};
use crate::wait::{Ready, WaitQueue};
use rustix::fd::BorrowedFd;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use syscall_table::errno::Errno;

/// Access mode bits and status flags, as in open(2) and fcntl(2).
pub use syscall_table::abi::open as o;

/// An open file description: shared by dup and fork.
pub struct File {
    /// The object.
    pub ops: Arc<dyn FileOps>,
    /// O_ACCMODE and status flags (O_APPEND, O_NONBLOCK, …; never O_CLOEXEC).
    flags: AtomicI32,
    /// File position for objects that have one. Held across a read or write that uses it, as Linux does.
    pub pos: Lock<u64>,
    /// Where it was opened, for /proc/self/fd, fchdir, *at calls; None for objects without a path.
    pub path: Option<crate::vfs::path::Path>,
    /// F_SETOWN and F_SETSIG.
    pub(crate) owner: parking_lot::Mutex<FileOwner>,
    /// F_NOTIFY.
    pub(crate) marks: parking_lot::Mutex<Vec<Arc<crate::vfs::dnotify::Mark>>>,
    /// Counts how often O_ASYNC was set.
    pub(crate) async_epoch: AtomicU64,
    /// The open that made it made the file too (F_CREATED_QUERY).
    pub(crate) created: AtomicBool,
    /// Unique in the sandbox: for epoll, locks and kcmp.
    pub id: u64,
    /// Set while it is open for writing by name: it cannot be executed meanwhile.
    pub(crate) writer: OnceLock<Writer>,
    /// With it: nor can its mount become read-only.
    pub(crate) written: OnceLock<crate::vfs::mount::Written>,
    /// Set while it is a program being executed: it cannot be opened for writing meanwhile.
    pub(crate) running: parking_lot::Mutex<Option<Running>>,
    /// Where this description may hold locks: released with it.
    pub(crate) locked: parking_lot::Mutex<Vec<Held>>,
    /// Tasks that may read it without being served.
    pub(crate) lent: crate::vfs::lend::Lent,
}

/// A lock table and the inode (device, number) that it was locked under.
pub(crate) type Held = (Arc<crate::vfs::lock::Locks>, (u64, u64));

/// The offset that reads and writes at the position of an object with one of its own get ([`FileOps::seek_own`]): what
/// [`File::pos`] is then.
pub const OWN_POSITION: u64 = u64::MAX;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl File {
    /// A new description with position 0.
    pub fn new(ops: Arc<dyn FileOps>, flags: i32, path: Option<crate::vfs::path::Path>) -> Arc<File> {
        Arc::new(File {
            ops,
            flags: AtomicI32::new(flags),
            pos: Lock::new(Level::Pos, 0),
            path,
            owner: parking_lot::Mutex::default(),
            marks: parking_lot::Mutex::default(),
            async_epoch: AtomicU64::new(0),
            created: AtomicBool::new(false),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            writer: OnceLock::new(),
            written: OnceLock::new(),
            running: parking_lot::Mutex::new(None),
            locked: parking_lot::Mutex::new(Vec::new()),
            lent: crate::vfs::lend::Lent::default(),
        })
    }

    /// Access mode and status flags.
    pub fn flags(&self) -> i32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Replaces the flags in `mask` by those of `flags`.
    pub fn set_flags(&self, flags: i32, mask: i32) {
        // A failed exchange cannot happen: the closure always returns Some.
        let _ = self
            .flags
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| Some((old & !mask) | (flags & mask)));
    }

    /// The position now. Takes the lock of [`pos`](Self::pos).
    pub fn position(&self) -> u64 {
        match self.ops.seek_own(0, o::SEEK_CUR) {
            Some(position) => position.unwrap_or(0),
            None => *self.pos.lock(),
        }
    }

    /// Of a mount that nothing may be executed from.
    pub fn no_exec(&self) -> bool {
        self.path.as_ref().is_some_and(|place| place.mount.has(crate::vfs::mount::mnt::NOEXEC))
    }

    /// O_NONBLOCK.
    pub fn nonblocking(&self) -> bool {
        self.flags() & o::O_NONBLOCK != 0
    }

    /// Opened for reading (and not O_PATH).
    pub fn readable(&self) -> bool {
        let flags = self.flags();
        flags & o::O_PATH == 0 && matches!(flags & o::O_ACCMODE, o::O_RDONLY | o::O_RDWR)
    }

    /// Opened for writing (and not O_PATH).
    pub fn writable(&self) -> bool {
        let flags = self.flags();
        flags & o::O_PATH == 0 && matches!(flags & o::O_ACCMODE, o::O_WRONLY | o::O_RDWR)
    }

    /// The object as its concrete type.
    pub fn downcast<T: FileOps>(&self) -> Option<&T> {
        (&*self.ops as &dyn Any).downcast_ref::<T>()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for (locks, key) in self.locked.get_mut().drain(..) {
            locks.release(key, crate::vfs::lock::Owner::File(self.id));
        }
        self.ops.release(self.flags());
        if let Some(place) = self.path.as_ref().filter(|_| self.flags() & o::O_PATH == 0) {
            use syscall_table::abi::inotify::{IN_CLOSE_NOWRITE, IN_CLOSE_WRITE};
            let mask = if self.writable() { IN_CLOSE_WRITE } else { IN_CLOSE_NOWRITE };
            crate::vfs::watch::tell_place(place, mask);
        }
        // Before the place goes, which may be the end of the inode.
        drop(self.writer.take());
        drop(self.running.get_mut().take());
    }
}

/// Operations of an open object. All may be called by several tasks at once.
///
/// Blocking: register on [`queue`](Self::queue) through [`Cx::wait_on`], test, and return `cx.block(...)`; honour
/// `file.nonblocking()` with EAGAIN.
#[allow(unused_variables)]
pub trait FileOps: Any + Send + Sync {
    /// Reads at `offset` (None: the object has no position, or the caller used none) into `buf`; 0 is end of file.
    /// Position bookkeeping is the caller's. EINVAL by default.
    fn read(&self, cx: &mut Cx, file: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        Err(Errno::EINVAL.into())
    }

    /// Writes `data` at `offset`; may write less. O_APPEND is the object's business: it returns how much it wrote and, with
    /// O_APPEND, sets the position through the returned end offset.
    fn write(&self, cx: &mut Cx, file: &File, data: &[u8], offset: u64) -> SysResult<Written> {
        Err(Errno::EINVAL.into())
    }

    /// Whether what is written is not even looked at (/dev/null).
    fn ignores_data(&self) -> bool {
        false
    }

    /// Whether it honours RWF_NOWAIT (preadv2(2)): EOPNOTSUPP otherwise.
    fn hurries(&self) -> bool {
        false
    }

    /// Whether a write that took a part of the data is gone on with until all is taken (streams of the host).
    fn goes_on_writing(&self) -> bool {
        false
    }

    /// lseek of an object whose position is not [`File::pos`] (inherited files: the host's is used). None: it is.
    fn seek_own(&self, offset: i64, whence: i32) -> Option<SysResult<u64>> {
        None
    }

    /// Whether the object has a position: lseek, pread and pwrite work (ESPIPE otherwise).
    fn seekable(&self) -> bool {
        false
    }

    /// Whether it takes O_DIRECT (EINVAL otherwise).
    fn takes_direct(&self) -> bool {
        false
    }

    /// Whether lseek succeeds without a position and gives 0 (what descriptors for events do); ESPIPE otherwise.
    fn seeks_nowhere(&self) -> bool {
        false
    }

    /// Size for SEEK_END.
    fn size(&self) -> SysResult<u64> {
        Err(Errno::ESPIPE.into())
    }

    /// lseek with SEEK_SET/CUR/END is done by the caller from [`size`](Self::size); this handles SEEK_DATA and SEEK_HOLE and directories.
    fn seek_special(&self, file: &File, offset: i64, whence: i32) -> SysResult<u64> {
        Err(Errno::EINVAL.into())
    }

    /// Current readiness.
    fn poll(&self, file: &File) -> Ready {
        Ready::IN | Ready::OUT | Ready::RDNORM | Ready::WRNORM
    }

    /// The queue woken when readiness changes; None if it never does (regular files: epoll answers EPERM).
    fn queue(&self) -> Option<&WaitQueue> {
        None
    }

    /// Attributes for fstat.
    fn attr(&self) -> SysResult<Attr>;

    /// ioctl. `Fail::Error(ENOTTY)` by default, which is what Linux answers.
    fn ioctl(&self, cx: &mut Cx, file: &File, request: u32, arg: u64) -> SysResult {
        Err(Errno::ENOTTY.into())
    }

    /// What mmap maps: a host descriptor that carries no more rights than the guest has. ENODEV by default.
    fn mmap(&self, file: &File, prot: i32, flags: i32) -> SysResult<Mapping> {
        Err(Errno::ENODEV.into())
    }

    /// fsync / fdatasync. EINVAL by default.
    fn fsync(&self, data_only: bool) -> SysResult<()> {
        Err(Errno::EINVAL.into())
    }

    /// Directory entries from `file.pos`: calls `emit` until it returns false. ENOTDIR by default.
    fn readdir(&self, cx: &mut Cx, file: &File, emit: &mut dyn FnMut(DirEntry<'_>) -> bool) -> SysResult<()> {
        Err(Errno::ENOTDIR.into())
    }

    /// ftruncate. EINVAL by default.
    fn truncate(&self, size: u64) -> SysResult<()> {
        Err(Errno::EINVAL.into())
    }

    /// fallocate. ENODEV by default (ESPIPE for pipes).
    fn fallocate(&self, mode: i32, offset: u64, len: u64) -> SysResult<()> {
        Err(Errno::ENODEV.into())
    }

    /// The inode behind it, for fchmod, fchown, futimens, xattrs, /proc/self/fd, flock.
    fn inode(&self) -> Option<Arc<dyn crate::vfs::inode::Inode>> {
        None
    }

    /// The attributes that can be changed of an object without an inode.
    fn owned(&self) -> Option<&crate::vfs::nameless::Owned> {
        None
    }

    /// The name of a socket's protocol.
    fn protocol(&self) -> Option<&'static str> {
        None
    }

    /// Told when fcntl F_SETFL changed flags.
    fn flags_changed(&self, file: &File) {}

    /// The last reference to the description is gone. `flags` as in [`File::flags`].
    fn release(&self, flags: i32) {}

    /// A host descriptor to read the object's bytes from directly (regular files of the gofer), for sendfile and copies.
    fn host_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What a task may read by itself: a descriptor whose mapping always has what a read gives, and how long it is now.
    fn lendable(&self) -> Option<(Arc<rustix::fd::OwnedFd>, u64)> {
        None
    }

    /// Reads at `offset` for the kernel itself (program loading): regular files. EINVAL by default.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        Err(Errno::EINVAL.into())
    }

    /// Lines of /proc/self/fdinfo/N beside those that every description has (proc_pid_fdinfo(5)), in a /proc of `ns`.
    fn info(&self, ns: &PidNs) -> String {
        String::new()
    }

    /// What /proc/self/fd/N reads as when there is no path: `pipe:[7]`, `anon_inode:[eventpoll]`, …
    fn describe(&self) -> String {
        "anon_inode:[unknown]".into()
    }
}

/// Result of [`FileOps::write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Bytes taken.
    pub count: usize,
    /// Position after the write.
    pub end: u64,
}

/// Result of [`FileOps::mmap`].
pub enum Mapping {
    /// Map this host descriptor at the same offset.
    Host(Arc<rustix::fd::OwnedFd>),
    /// Anonymous private memory (/dev/zero).
    Anonymous,
}

/// One entry of a directory listing.
#[derive(Debug, Clone, Copy)]
pub struct DirEntry<'a> {
    /// Inode number.
    pub ino: u64,
    /// d_off: position of the next entry.
    pub next: u64,
    /// DT_ type.
    pub kind: u8,
    /// Name without '/'.
    pub name: &'a [u8],
}

/// ESPIPE or the like for a result that must be an error.
pub fn refuse<T>(errno: Errno) -> SysResult<T> {
    Err(Fail::Error(errno))
}
