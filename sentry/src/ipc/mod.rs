//! Inter-process communication inside the sandbox.
pub mod futex;
