//! Locks with a declared order.
//!
//! A thread may take a lock only if its level is greater than that of every lock it holds; in debug builds
//! anything else panics where it happens. Outer (taken first) to inner:
//!
//! ```text
//! Call           the task's current system call (held while its handler runs)
//!  └ Pos         a description's file position, held across the read or write that uses it
//!  └ Tree        pids, parents, groups, sessions
//!     └ Process  thread-group state: signal actions, shared pending signals, limits
//!        └ Task  per-thread state: mask, private pending signals
//!           └ Mm           address-space records
//!              └ FsContext root, cwd, umask
//!                 └ FdTable
//!                    └ Mounts
//!                       └ Dir  directory contents, dentries
//!                          └ Inode  attributes, contents
//!                             └ Epoll  interest list
//!                                └ File  offset, flags, locks
//!                                   └ Object  pipes, sockets, eventfds, ttys
//!                                      └ Futex  futex buckets
//!                                         └ Ready  epoll ready lists
//!                                            └ Queue  wait queues
//!                                               └ Timer
//!                                                  └ Report
//!                                                     └ Field  plain values of tasks and processes (names, arguments)
//! ```
//! Two locks of one level need [`Lock::lock_peer`] for the second, and an order of their own (address order).

use std::ops::{Deref, DerefMut};

/// Lock levels, outer to inner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Level {
    Call = 1,
    Pos,
    Tree,
    Process,
    Task,
    Mm,
    FsContext,
    FdTable,
    Mounts,
    Dir,
    Inode,
    Epoll,
    File,
    Object,
    Futex,
    Ready,
    Queue,
    Timer,
    Report,
    Field,
}

/// A mutex with a level.
#[derive(Debug)]
pub struct Lock<T: ?Sized> {
    level: Level,
    inner: parking_lot::Mutex<T>,
}

/// Guard of a [`Lock`].
pub struct Guard<'a, T: ?Sized> {
    guard: parking_lot::MutexGuard<'a, T>,
    #[cfg(debug_assertions)]
    _held: held::Held,
}

#[cfg(debug_assertions)]
mod held {
    use super::Level;
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) struct Held(Level);

    impl Held {
        #[track_caller]
        pub(super) fn enter(level: Level, peer: bool) -> Held {
            let at = std::panic::Location::caller();
            HELD.with_borrow_mut(|held| {
                if let Some(top) = held.iter().max() {
                    assert!(
                        level > *top || (peer && level == *top),
                        "lock order: taking {level:?} while holding {held:?}, at {at}"
                    );
                }
                held.push(level);
            });
            Held(level)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            HELD.with_borrow_mut(|held| {
                if let Some(at) = held.iter().rposition(|l| *l == self.0) {
                    held.remove(at);
                }
            });
        }
    }
}

impl<T> Lock<T> {
    /// A lock of this level.
    pub const fn new(level: Level, value: T) -> Self {
        Lock { level, inner: parking_lot::Mutex::new(value) }
    }
}

impl<T: Copy> Lock<T> {
    /// A copy of the value, unless somebody holds the lock just now. Never waits, so the order does not matter.
    pub fn peek(&self) -> Option<T> {
        self.inner.try_lock().map(|value| *value)
    }
}

impl<T: ?Sized> Lock<T> {
    /// Looks at the value, unless somebody holds the lock just now. Never waits, so the order does not matter as long as `f`
    /// takes no lock.
    pub fn glance<R>(&self, f: impl FnOnce(&T) -> R) -> Option<R> {
        self.inner.try_lock().map(|value| f(&value))
    }

    /// Takes the lock. Debug builds panic when the order is violated.
    #[track_caller]
    pub fn lock(&self) -> Guard<'_, T> {
        self.take(false)
    }

    /// The value, which nobody else can have just now.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut()
    }

    /// Takes a second lock of the same level as one already held.
    #[track_caller]
    pub fn lock_peer(&self) -> Guard<'_, T> {
        self.take(true)
    }

    #[track_caller]
    fn take(&self, peer: bool) -> Guard<'_, T> {
        #[cfg(debug_assertions)]
        let _held = held::Held::enter(self.level, peer);
        let _ = (peer, self.level);
        Guard {
            guard: self.inner.lock(),
            #[cfg(debug_assertions)]
            _held,
        }
    }
}

impl<T: ?Sized> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
