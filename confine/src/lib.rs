//! What holds the processes of a sandbox, in one place for all of them: namespaces, an empty root, capabilities, and
//! the filters of host calls.
//!
//! - [`rules`]: a filter as data, which is what `lazaret exposure` prints; [`bpf`] makes the program of it;
//!   [`calls`]: what several filters have in common.
//! - [`enter`]: own namespaces with ids mapped; [`root`]: an empty root; [`capabilities`]: none, or few.
//! - [`count`]: counts the host calls that all of them make, when asked.
//! - [`host`] and `tracing`: the host calls for this that no safe wrapper offers, the crate's only unsafe code.
#![deny(unsafe_code)]

pub mod bpf;
pub mod calls;
pub mod capabilities;
pub mod count;
pub mod enter;
#[allow(unsafe_code)]
pub mod host;
pub mod root;
pub mod rules;
#[allow(unsafe_code)]
mod tracing;
