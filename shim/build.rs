//! Builds the shim (src/blob) with the toolchain that builds the rest.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src/blob");
    println!("cargo:rerun-if-changed=src/layout.rs");
    println!("cargo:rerun-if-changed=build.rs");
    let out = std::env::var("OUT_DIR").expect("OUT_DIR");
    let rustc = std::env::var("RUSTC").expect("RUSTC");
    let dir = std::env::var("CARGO_MANIFEST_DIR").expect("CARGO_MANIFEST_DIR");
    let blob = Path::new(&dir).join("src/blob");
    let script = blob.join("link.ld");
    let status = Command::new(rustc)
        .current_dir(&dir)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WRAPPER")
        .args(["--edition", "2024", "--crate-name", "shim", "--crate-type", "bin"])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .args([
            "-C",
            "panic=abort",
            "-C",
            "opt-level=2",
            "-C",
            "debug-assertions=off",
            "-C",
            "overflow-checks=off",
        ])
        .args(["-C", "relocation-model=pic", "-C", "force-unwind-tables=no", "-C", "strip=symbols"])
        .args(["-C", "codegen-units=1", "-C", "link-dead-code=no"])
        .args(["-C", "link-arg=-nostartfiles", "-C", "link-arg=-nostdlib", "-C", "link-arg=-static"])
        .args([
            "-C",
            "link-arg=-no-pie",
            "-C",
            "link-arg=-Wl,-z,max-page-size=4096,-z,noexecstack,--build-id=none",
        ])
        .args(["-C", "target-feature=+crt-static"])
        .args(["-C", &format!("link-arg=-Wl,-T,{}", script.display())])
        .arg("-o")
        .arg(format!("{out}/shim.elf"))
        .arg(blob.join("main.rs"))
        .status()
        .expect("run rustc");
    assert!(status.success(), "the shim does not build");
}
