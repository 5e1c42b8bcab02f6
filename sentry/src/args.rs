//! Arguments as handlers see them: the types of the system call table.

pub use syscall_table::args::*;
