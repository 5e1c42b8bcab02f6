//! Handlers, one file per man-page verb, and the dispatch generated from the table.

pub mod access;
pub mod acct;
pub mod arch_prctl;
pub mod brk;
pub mod capget;
pub mod chdir;
pub mod chmod;
pub mod clock_gettime;
pub mod clone;
pub mod close;
pub mod dup;
pub mod epoll_create;
pub mod epoll_wait;
pub mod eventfd;
pub mod execve;
pub mod exit;
pub mod fcntl;
pub mod flock;
pub mod fsopen;
pub mod fsync;
pub mod futex;
pub mod futex_waitv;
pub mod get_robust_list;
pub mod getdents;
pub mod getitimer;
pub mod getpid;
pub mod getrandom;
pub mod getrlimit;
pub mod getrusage;
pub mod getuid;
pub mod inotify;
pub mod io_submit;
pub mod ioctl;
pub mod iopl;
pub mod kcmp;
pub mod kill;
pub mod link;
pub mod lseek;
pub mod madvise;
pub mod membarrier;
pub mod memfd_create;
pub mod mincore;
pub mod mkdir;
pub mod mlock;
pub mod mmap;
pub mod mount;
pub mod mprotect;
pub mod mq_open;
pub mod mremap;
pub mod mseal;
pub mod msgget;
pub mod msync;
pub mod nanosleep;
pub mod open;
pub mod open_tree;
pub mod personality;
pub mod pidfd_open;
pub mod pipe;
pub mod poll;
pub mod prctl;
pub mod process_vm_readv;
pub mod ptrace;
pub mod quotactl;
pub mod read;
pub mod readlink;
pub mod remap_file_pages;
pub mod rename;
pub mod restart_syscall;
pub mod rseq;
pub mod sched;
pub mod seccomp;
pub mod select;
pub mod semget;
pub mod send;
pub mod sendfile;
pub mod set_mempolicy;
pub mod setpgid;
pub mod setpriority;
pub mod setuid;
pub mod shmget;
pub mod sigaction;
pub mod sigaltstack;
pub mod signalfd;
pub mod sigpending;
pub mod sigprocmask;
pub mod sigreturn;
pub mod sigsuspend;
pub mod sigtimedwait;
pub mod socket;
pub mod splice;
pub mod stat;
pub mod statfs;
pub mod statmount;
pub mod statx;
pub mod timer_create;
pub mod timerfd;
pub mod truncate;
pub mod uname;
pub mod unlink;
pub mod unshare;
pub mod utimensat;
pub mod wait;
pub mod write;
pub mod xattr;

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use syscall_table::errno::Errno;

/// A register's value; of one that names a process, as the kernel calls it.
fn meant<T: 'static>(cx: &Cx, raw: u64) -> u64 {
    if std::any::TypeId::of::<T>() != std::any::TypeId::of::<Pid>() {
        return raw;
    }
    i64::from(cx.task.meant(Pid::from_raw(raw).raw())).cast_unsigned()
}

macro_rules! answer {
    ($cx:ident, $a:ident, Full, ($module:ident :: $function:ident), $note:literal, $($arg:ident : $ty:ty),*) => {
        answer!($cx, $a, Partial, ($module::$function), $note, $($arg: $ty),*)
    };
    ($cx:ident, $a:ident, Partial, ($module:ident :: $function:ident), $note:literal, $($arg:ident : $ty:ty),*) => {{
        #[allow(unused_mut)]
        let mut registers = $a.into_iter();
        // A table row has at most six arguments, as many as there are registers.
        $(let $arg = <$ty as Arg>::from_raw(meant::<$ty>($cx, registers.next().unwrap_or_default()));)*
        let _ = registers;
        $module::$function($cx, $($arg),*)
    }};
    ($cx:ident, $a:ident, Missing, (), $note:literal, $($arg:ident : $ty:ty),*) => {
        Err(Fail::gap(Errno::ENOSYS, $note))
    };
    ($cx:ident, $a:ident, Refused, ($errno:ident), $note:literal, $($arg:ident : $ty:ty),*) => {
        Err(Fail::gap(Errno::$errno, $note))
    };
}

macro_rules! dispatcher {
    ($([$nr:literal, $name:ident, ($($arg:ident : $ty:ty),*), $level:ident $(($($target:tt)*))?, $note:literal],)*) => {
        /// Calls the handler of `cx.call.nr`. A number without a row is ENOSYS, as Linux has it for numbers never assigned.
        pub(crate) fn dispatch(cx: &mut Cx) -> SysResult {
            let args = cx.call.args;
            match cx.call.nr {
                $($nr => answer!(cx, args, $level, ($($($target)*)?), $note, $($arg: $ty),*),)*
                _ => Err(Errno::ENOSYS.into()),
            }
        }
    };
}

syscall_table::for_each_syscall!(dispatcher);
