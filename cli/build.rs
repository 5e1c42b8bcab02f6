//! How the binary is linked.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Half a megabyte of relocations, read by each process at its start, becomes a few kilobytes.
    println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
}
