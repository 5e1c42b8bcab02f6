//! The code that lazaret places in every guest address space, as bytes, and the layout it is built for.
//!
//! The shim is a convenience, never a guard: the guest can jump into it and write its data. See `layout`.

pub mod layout;

/// The shim as a static ELF executable. Started in `lazaret-zygote` position it empties its address space and
/// becomes the template of all guest processes; started with an argument it idles as the init of the guests'
/// pid namespace.
pub const ELF: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/shim.elf"));
