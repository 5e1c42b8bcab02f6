//! One level down: what is supported of the calls that are many calls in one.
//!
//! A row is `[CONSTANT, Level, "note"]` with the levels of [`crate::SubLevel`] and the constant from [`crate::abi`];
//! a path row has the path in quotes. Who implements an entry changes its level in the same commit.

use crate::SubTable;

/// Declares a table of constants. Two rows with one value do not compile.
macro_rules! sub_table {
    ($(#[$doc:meta])* $table:ident, $title:literal, $call:literal {
        $([$name:ident, $level:ident $(($errno:ident))?, $note:literal],)*
    }) => {
        $(#[$doc])*
        pub static $table: crate::SubTable = crate::SubTable {
            title: $title,
            call: $call,
            rows: &[$(crate::SubRow {
                name: stringify!($name),
                value: $name as u64,
                level: crate::SubLevel::$level $((crate::Errno::$errno))?,
                note: $note,
            }),*],
        };
        const _: () = $table.check();
    };
}

/// Declares a table of paths.
macro_rules! path_table {
    ($(#[$doc:meta])* $table:ident, $title:literal, $call:literal {
        $([$name:literal, $level:ident $(($errno:ident))?, $note:literal],)*
    }) => {
        $(#[$doc])*
        pub static $table: crate::SubTable = crate::SubTable {
            title: $title,
            call: $call,
            rows: &[$(crate::SubRow {
                name: $name,
                value: 0,
                level: crate::SubLevel::$level $((crate::Errno::$errno))?,
                note: $note,
            }),*],
        };
    };
}

pub mod clone;
pub mod fcntl;
pub mod futex;
pub mod ioctl;
pub mod ioctl_dev;
pub mod mmap;
pub mod open;
pub mod paths;
pub mod prctl;
pub mod ptrace;
pub mod sockopt;

/// All of them, in the order of the documentation.
pub static TABLES: &[SubTable] = &[
    open::OPEN,
    open::RESOLVE,
    fcntl::FCNTL,
    mmap::MMAP,
    mmap::MADVISE,
    clone::CLONE,
    futex::FUTEX,
    prctl::PRCTL,
    prctl::ARCH_PRCTL,
    ptrace::PTRACE,
    ioctl::TTY_IOCTL,
    ioctl::FILE_IOCTL,
    ioctl::SOCKET_IOCTL,
    ioctl_dev::DEVICE_IOCTL,
    sockopt::FAMILIES,
    sockopt::SOCKET_OPTIONS,
    sockopt::TCP_OPTION,
    sockopt::IPV4_OPTION,
    sockopt::IPV6_OPTION,
    sockopt::UDP_OPTION,
    sockopt::NETLINK_OPTION,
    paths::PROC_PATHS,
    paths::SYS_PATHS,
    paths::DEV_PATHS,
];
