//! What the guest test programs share: raw system calls, checks with a place and a reason, scratch
//! directories and children.
//!
//! A case is a plain function; it passes by returning and fails by panicking ([`eq`], [`err`], [`check`]).
//! Expected values are what the host kernel answers: every case passes natively before it runs inside.

pub mod call;
pub mod check;
pub mod child;
pub mod fd;
pub mod filter;
pub mod here;
pub mod mem;
pub mod sig;
pub mod space;
pub mod tmp;

pub use call::Arg;
pub use check::{check, eq, err, errname, errs, ok, skip};
pub use child::{child, exits, forever, in_child, killed_by, reap};
pub use fd::{
    blocked, now_ms, pipe_pair, ready, shut, sleep_ms, stat_fd, took, until, until_asleep,
    until_child_asleep, until_ready, until_unread,
};
pub use here::inside;
pub use mem::{Guarded, bad};
pub use tmp::{Tmp, cstr, unique};

/// A named test.
pub struct Case {
    /// What is tested, as a path component of the test's name.
    pub name: &'static str,
    /// The test.
    pub run: fn(),
}

/// Declares the cases of a verb: the functions named must be in scope.
#[macro_export]
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub const CASES: &[$crate::Case] = &[$($crate::Case { name: stringify!($name), run: $name }),*];
    };
}

/// A raw system call: what the kernel left in rax, so a negative errno on failure.
#[macro_export]
macro_rules! sys {
    ($nr:expr $(, $arg:expr)* $(,)?) => {
        // One expression, so that temporaries among the arguments live until the call is over.
        $crate::call::raw($nr, &[$($crate::Arg::arg($arg)),*])
    };
}
