//! The sentry: a kernel in user space that answers the system calls of guest programs.
//!
//! Nothing here sleeps for a guest: a handler returns a value, an errno or [`Block`](fail::Block), and runs
//! again when what it waits for has happened (see [`run`]). No unsafe code; host access goes through the
//! `platform`, `gofer` and `rustix` crates.
#![forbid(unsafe_code)]

pub mod args;
pub mod boot;
pub mod cx;
pub mod fail;
pub mod fs;
pub mod ipc;
pub mod kernel;
pub mod layer;
pub mod memory;
pub mod mm;
pub mod net;
pub mod policy;
pub mod ptrace;
mod random;
pub mod reactor;
pub mod report;
mod results;
pub mod run;
pub mod seccomp;
pub mod signal;
pub mod sync;
pub mod syscalls;
pub mod task;
pub mod time;
pub mod tty;
pub mod vfs;
pub mod wait;
