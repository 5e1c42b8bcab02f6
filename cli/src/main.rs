//! The `lazaret` command. `lazaret do` forks the sentry and the gofer.
#![forbid(unsafe_code)]

mod check;
mod control;
mod exposure;
mod launch;
mod layer;
mod meter;
mod options;
mod policy;
mod sentry_role;
mod setup;
mod sizes;
mod stdio;
mod syscalls;
mod watch;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use options::{Cli, ExplainFormat, ExplainOptions, PolicyVerb, Verb};
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    // The matches too: they know in which order options were given.
    let parsed = Cli::command()
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches).map(|cli| (cli, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help goes to standard output and is no failure.
            let code = if error.use_stderr() { FAILURE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let mut matches = &matches;
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    match cli.verb {
        Verb::Do(options) => launch::run(&options, matches),
        Verb::Syscalls(options) => syscalls::run(&options),
        Verb::Exposure(options) => exposure::run(&options),
        Verb::Check => check::run(),
        Verb::Policy(PolicyVerb::Explain(options)) => match explain(&options, matches) {
            Ok(()) => ExitCode::SUCCESS,
            Err(text) => failure(&text),
        },
    }
}

fn explain(options: &ExplainOptions, matches: &ArgMatches) -> Result<(), String> {
    let plan = policy::Plan::new(&policy::gather(matches)?)?;
    let text = match options.format {
        ExplainFormat::Text => policy::explain::text(&plan),
        ExplainFormat::Json => format!("{:#}\n", policy::explain::json(&plan)),
    };
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| format!("standard output: {e}"))
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
