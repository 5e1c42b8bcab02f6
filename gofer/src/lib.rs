//! The gofer: the only process of a sandbox that touches files.
//!
//! It assumes that the sentry at the other end of its sockets is the attacker's. [`protocol`] is what the two
//! say to each other; [`client`] is the sentry's side, and `server` the other.
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
pub use confine::{GoferFds, run};
pub use exports::serve_unconfined;
pub use filter::{Rule, exposure};
pub use oracle::serve_ids;
