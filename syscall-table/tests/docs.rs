//! docs/syscalls.md is what the table says.

use syscall_table::render::{Format, render};

#[test]
fn the_page_is_up_to_date() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/syscalls.md");
    let written = std::fs::read_to_string(page).unwrap_or_default();
    let now = render(Format::Md, None);
    let differs = written.lines().zip(now.lines()).find(|(old, new)| old != new);
    assert!(written == now, "docs/syscalls.md is stale, run `make docs`; first difference: {differs:?}");
}
