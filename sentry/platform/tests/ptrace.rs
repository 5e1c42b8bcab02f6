//! The ptrace platform.

#[macro_use]
mod guest;
mod cases;

const PLATFORM: &str = "ptrace";
