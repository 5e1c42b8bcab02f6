//! `lazaret syscalls`: the table.

use crate::options::{SyscallsOptions, TableFormat};
use std::process::ExitCode;
use syscall_table::render::{Format, render};

pub fn run(options: &SyscallsOptions) -> ExitCode {
    let format = match options.format {
        TableFormat::Table => Format::Table,
        TableFormat::Md => Format::Md,
        TableFormat::Json => Format::Json,
        TableFormat::Csv => Format::Csv,
    };
    let text = render(format, options.name.as_deref());
    if text.is_empty() {
        let name = options.name.as_deref().unwrap_or_default();
        return crate::failure(&format!("{name}: no system call of x86-64 Linux"));
    }
    // A reader that is gone needs no line.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    ExitCode::SUCCESS
}
