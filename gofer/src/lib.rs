//! The gofer: the only process of a sandbox that touches files.
//!
//! It assumes that the sentry at the other end of its sockets is the attacker's. [`protocol`] is what the two
//! say to each other.

pub mod client;
mod codec;
mod config;
pub mod protocol;
mod wire;

pub use client::{Client, GoferError, Walk};
pub use codec::fuzz_decode;
pub use config::{GoferConfig, HideRule, Mount};
