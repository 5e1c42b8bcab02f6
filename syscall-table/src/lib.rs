//! The single source of system calls: which there are, what their arguments mean, how far they are supported.
//!
//! - [`for_each_syscall!`]: the table, one row for each number, from which the sentry's dispatch, the reports and
//!   the documentation are made.
//! - [`Arg`], [`args`]: the argument types and how a register becomes one.
//! - [`abi`]: structs and constants by man page.
//! - [`Errno`].
#![forbid(unsafe_code)]

#[macro_use]
mod table;

pub mod abi;
pub mod errno;
pub mod fmt;
pub mod render;
mod row;
pub mod sub;
pub mod types;

pub use errno::Errno;
pub use row::{ArgInfo, Level, Row, SYSCALLS, SubLevel, SubRow, SubTable, by_name, by_number};
pub use types::{Arg, ArgKind, Pod};

/// Every type that the rows of [`for_each_syscall!`] name: `use syscall_table::args::*;`.
pub mod args {
    pub use crate::abi::{
        Cachestat, CachestatRange, CapHeader, EpollEvent, FdPair, FutexWaitv, IoUringParams, Iovec,
        Itimerspec, Itimerval, Mmsghdr, MqAttr, Msghdr, Pollfd, Rlimit, Rusage, SchedParam, Sembuf,
        Sigaction, Sigevent, Siginfo, Sigset, SigsetArg, Stack, Stat, Statfs, Statx, Sysinfo, Timespec,
        TimespecPair, Timeval, TimevalPair, Timex, Timezone, Tms, Ustat, Utimbuf, Utsname, WaitStatus,
    };
    pub use crate::types::*;
}
