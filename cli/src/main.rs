//! The `lazaret` command. `lazaret do` forks the sentry and the gofer.
#![forbid(unsafe_code)]

mod check;
mod control;
mod exposure;
mod launch;
mod options;
mod sentry_role;
mod setup;
mod stdio;
mod syscalls;
mod watch;

use clap::Parser;
use options::{Cli, Verb};
use std::process::ExitCode;

fn main() -> ExitCode {
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

/// How many processors this process may run on. Control groups' shares are not looked at: they take reading files, and
/// say how much, not how many.
fn processors() -> usize {
    let set = rustix::thread::sched_getaffinity(None);
    set.map_or(1, |set| set.count().try_into().unwrap_or(1)).max(1)
}

/// The exit status of lazaret's own failures.
const FAILURE: u8 = 125;

/// One line on standard error (none for an empty text), and the status of lazaret's own failures.
fn failure(text: &str) -> ExitCode {
    if !text.is_empty() {
        watch::say(&format!("lazaret: {text}\n"));
    }
    ExitCode::from(FAILURE)
}
