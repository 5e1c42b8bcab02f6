//! The trap platform.

#[macro_use]
mod guest;
mod cases;

const PLATFORM: &str = "trap";
