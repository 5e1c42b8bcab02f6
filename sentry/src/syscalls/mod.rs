//! Handlers, one file per man-page verb, and the dispatch generated from the table.

pub mod arch_prctl;
pub mod brk;
pub mod capget;
pub mod clone;
pub mod epoll_create;
pub mod epoll_wait;
pub mod eventfd;
pub mod execve;
pub mod exit;
pub mod futex;
pub mod get_robust_list;
pub mod getpid;
pub mod getrlimit;
pub mod getrusage;
pub mod getuid;
pub mod kill;
pub mod madvise;
pub mod mincore;
pub mod mlock;
pub mod mmap;
pub mod mprotect;
pub mod mremap;
pub mod msync;
pub mod personality;
pub mod pidfd_open;
pub mod pipe;
pub mod poll;
pub mod prctl;
pub mod restart_syscall;
pub mod rseq;
pub mod sched;
pub mod select;
pub mod setpgid;
pub mod setuid;
pub mod sigaction;
pub mod sigaltstack;
pub mod signalfd;
pub mod sigpending;
pub mod sigprocmask;
pub mod sigreturn;
pub mod sigsuspend;
pub mod sigtimedwait;
pub mod timerfd;
pub mod unshare;
pub mod wait;

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use syscall_table::errno::Errno;

macro_rules! answer {
    ($cx:ident, $a:ident, Full, ($module:ident :: $function:ident), $note:literal, $($arg:ident : $ty:ty),*) => {
        answer!($cx, $a, Partial, ($module::$function), $note, $($arg: $ty),*)
    };
    ($cx:ident, $a:ident, Partial, ($module:ident :: $function:ident), $note:literal, $($arg:ident : $ty:ty),*) => {{
        #[allow(unused_mut)]
        let mut registers = $a.into_iter();
        // A table row has at most six arguments, as many as there are registers.
        $(let $arg = <$ty as Arg>::from_raw(registers.next().unwrap_or_default());)*
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
