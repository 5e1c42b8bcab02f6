//! The shim. Runs in guest address spaces only; see layout.rs for its place and its words.
//!
//! Nothing here is a guard. Everything is written so that a guest that jumps anywhere into this text or changes
//! any of its memory at any time can hurt only itself.
#![no_std]
#![no_main]

#[path = "../layout.rs"]
#[allow(dead_code)]
mod layout;

mod boot;
mod data;
mod forker;
mod gate;
mod host;
mod mem;
mod own;
mod task;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    host::die()
}
