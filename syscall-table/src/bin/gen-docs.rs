//! Writes docs/syscalls.md of the workspace: `make docs`.
#![forbid(unsafe_code)]

use std::path::Path;
use syscall_table::render::{Format, render};

fn main() -> std::io::Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/syscalls.md");
    if let Some(docs) = page.parent() {
        std::fs::create_dir_all(docs)?;
    }
    std::fs::write(page, render(Format::Md, None))
}
