//! The `lazaret` command. It forks the sentry and executes itself again as the gofer.
#![forbid(unsafe_code)]

mod check;
mod control;
mod exposure;
mod gofer_role;
mod launch;
mod options;
mod sentry_role;
mod setup;
mod syscalls;

use clap::Parser;
use options::{Cli, Verb};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // A role is started by `lazaret do` alone: its configuration lies in a descriptor.
    if let Some(role) = args.next()
        && let Some(role) = role.to_str().and_then(|role| role.strip_prefix("--role="))
    {
        let fd = args.next().and_then(|fd| fd.to_str()?.parse().ok());
        return match (role, fd) {
            ("gofer", Some(fd)) => gofer_role::run(fd),
            _ => failure("not a role"),
        };
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output and is no failure.
            let code = if error.use_stderr() { FAILURE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match cli.verb {
        Verb::Do(options) => launch::run(&options),
        Verb::Syscalls(options) => syscalls::run(&options),
        Verb::Exposure(options) => exposure::run(&options),
        Verb::Check => check::run(),
    }
}

/// The exit status of lazaret's own failures.
const FAILURE: u8 = 125;

/// One line on standard error, and the status of lazaret's own failures.
fn failure(text: &str) -> ExitCode {
    eprintln!("lazaret: {text}");
    ExitCode::from(FAILURE)
}
