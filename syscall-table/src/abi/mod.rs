//! ABI structs and constants of Linux x86-64, one file for each man page.
//!
//! Names are Linux's own (structs in CamelCase). Every struct is [`Pod`](crate::Pod): no padding bytes, any
//! bit pattern is valid; its size is checked where it is declared. `Default` is all zero bytes.

/// Declares ABI structs with their size in bytes, which is checked at compile time.
macro_rules! pod {
    ($($(#[$attr:meta])* pub struct $name:ident [$size:literal] { $($body:tt)* })*) => {$(
        $(#[$attr])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
        )]
        pub struct $name { $($body)* }

        impl Default for $name {
            fn default() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }
        }

        const _: () = assert!(core::mem::size_of::<$name>() == $size);
    )*};
}

/// Declares constants of one kind, and beside them a list of their names and values.
macro_rules! consts {
    ($(#[$attr:meta])* $list:ident : $int:ident { $($(#[$doc:meta])* $name:ident = $value:expr;)* }) => {
        $($(#[$doc])* #[allow(missing_docs)] pub const $name: $int = $value;)*

        $(#[$attr])*
        pub static $list: &[(&str, $int)] = &[$((stringify!($name), $name)),*];
    };
}

pub mod clock_gettime;
pub mod clone;
pub mod fcntl;
pub mod futex;
pub mod getauxval;
pub mod getdents;
pub mod getrlimit;
pub mod getsockopt;
pub mod inotify;
pub mod io_submit;
pub mod ioctl;
pub mod ioctl_dev;
pub mod mmap;
pub mod mount;
pub mod open;
pub mod poll;
pub mod prctl;
pub mod ptrace;
pub mod readv;
pub mod sched;
pub mod seccomp;
pub mod shmget;
pub mod sigaction;
pub mod sigreturn;
pub mod socket;
pub mod stat;
pub mod statfs;
pub mod statx;
pub mod timer_create;
pub mod uname;
pub mod wait;

pub use clock_gettime::*;
pub use clone::*;
pub use fcntl::*;
pub use futex::*;
pub use getauxval::*;
pub use getdents::*;
pub use getrlimit::*;
pub use getsockopt::*;
pub use inotify::*;
pub use io_submit::*;
pub use ioctl::*;
pub use ioctl_dev::*;
pub use mmap::*;
pub use mount::*;
pub use open::*;
pub use poll::*;
pub use prctl::*;
pub use ptrace::*;
pub use readv::*;
pub use sched::*;
pub use seccomp::*;
pub use shmget::*;
pub use sigaction::*;
pub use sigreturn::*;
pub use socket::*;
pub use stat::*;
pub use statfs::*;
pub use statx::*;
pub use timer_create::*;
pub use uname::*;
pub use wait::*;
