//! `lazaret syscalls`: the table.

use crate::options::SyscallsOptions;
use std::process::ExitCode;
use syscall_table::{SYSCALLS, by_name};

pub fn run(options: &SyscallsOptions) -> ExitCode {
    let rows: Vec<_> = match &options.name {
        Some(name) => match by_name(name) {
            Some(row) => vec![row],
            None => return crate::failure(&format!("{name}: Linux has no such call on x86-64")),
        },
        None => SYSCALLS.iter().collect(),
    };
    for row in rows {
        println!("{:>4} {:<24} {:<8} {}", row.number, row.name, row.level.name(), row.note);
    }
    ExitCode::SUCCESS
}
