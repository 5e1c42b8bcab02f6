//! Arguments as handlers see them.
//!
//! The types come from the system call table; this module adds what needs a [`Cx`].

pub use syscall_table::types::*;
