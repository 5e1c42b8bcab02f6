//! The sentry's confinement: from a freshly executed process to one that can reach nothing but what it holds.
//!
//! | confinement | how |
//! |---|---|
//! | user namespace | root: all ids as they are; ordinary user: the own id alone |
//! | mount namespace | empty read-only root |
//! | pid namespace | own; the sentry is its init, so that its end is the end of everything in it |
//! | network, IPC, UTS namespaces | new and empty |
//! | capabilities | none in the end; those of the own user namespace until guests' namespaces are made |
//! | system calls | allow-list ([`exposure`]); anything else ends the sentry with one line |
//! | lifetime | killed when the launcher ends |

mod enter;
mod filter;
pub mod host;

pub use enter::{drop_capabilities, empty_root, enter_namespaces, try_namespaces};
pub use filter::{Rule, exposure, install};
