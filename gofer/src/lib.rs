//! The gofer: the only process of a sandbox that touches files.
//!
//! It assumes that the sentry at the other end of its sockets is the attacker's. [`protocol`] is what the two
//! say to each other; [`client`] is the sentry's side, and `server` the other; `confine` is what holds the gofer.
//!
//! # Using it
//!
//! The launcher makes a socket pair (`SOCK_SEQPACKET`) for each processor, one more for [`serve_ids`], which it runs on
//! a thread, and a pipe; it calls [`start`] while it has one thread, reads the pipe's line,
//! and gives its ends of the lanes to the sentry, which makes a [`Client`] of them.
//!
//! # What it costs
//!
//! Measured by `cargo test --release -p gofer --test confined -- --measure` on two processors under a
//! hypervisor (Linux 6.18), as a round trip of a thread that sleeps until the answer comes:
//!
//! | call | µs |
//! |---|---|
//! | attributes of a node | 5.4 |
//! | walk of one name that is missing / is there | 5.8 / 6.8 |
//! | walk of two names and open, and forget (two round trips) | 16.7 |
//! | forget | 5.3 |
//! | a directory of 1,068 entries with attributes (3 round trips) | 2,200 |
//!
//! A lane's thread stays on its lane's processor and the client takes the lane of the processor where it runs, so that a
//! wake-up need not cross, which costs 25 µs. Spinning would not help: the answer takes less time than a wake-up
//! of another processor.
//!
//! A gofer that serves the whole root with all default rules takes 1.3 ms to start: 0.55 in clone with its six
//! namespaces, 0.2 looking for hidden paths, 0.1 in mounts, 0.2 starting threads, 0.1 in the filter. To execute it would
//! cost as much again: under a hypervisor the C library's start alone takes 0.6 ms, since each CPUID is an exit.
#![deny(unsafe_code)]

pub mod client;
mod codec;
mod config;
mod confine;
mod exports;
mod filter;
pub mod hidden;
#[allow(unsafe_code)]
mod host;
mod mounts;
pub mod oracle;
pub mod protocol;
mod server;
mod wire;

pub use client::{Client, GoferError, Walk};
pub use codec::fuzz_decode;
pub use config::{GoferConfig, HideRule, Mount};
pub use confine::{GoferFds, run, start};
pub use exports::serve_unconfined;
pub use filter::exposure;
pub use oracle::serve_ids;
