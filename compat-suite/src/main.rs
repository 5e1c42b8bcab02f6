//! Whole suites run natively and inside, compared: Python's own tests, stress-ng, and lines for the shell.
//!
//! Each suite is a file of `suites/`: what to run, and what is expected to differ, with a reason each. The exit
//! status is 0 when nothing differs but what is expected, and when nothing expected to differ is the same.
//!
//! As root the native side runs in a UTS namespace of its own and neither side may set the clock: tests of both are
//! among the suites, and the host is not theirs.

mod commands;
mod python;
mod report;
mod stress;
mod under;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use report::Report;
use under::Under;

/// Runs suites natively and inside and compares.
#[derive(Parser)]
struct Options {
    /// What to run; all without one.
    #[arg(value_enum)]
    suites: Vec<Suite>,
    /// The platform inside.
    #[arg(long, value_parser = ["trap", "ptrace"])]
    platform: Option<String>,
    /// Only what has one of these words in its name, separated by commas.
    #[arg(long, default_value = "")]
    only: String,
    /// Write the results to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// The lazaret to run under, instead of the one built beside this program.
    #[arg(long)]
    lazaret: Option<PathBuf>,
    /// Run under this command instead of lazaret, words separated by blanks: another sandbox, for comparison.
    #[arg(long)]
    under: Option<String>,
    /// Run both sides as this user (as root alone).
    #[arg(long)]
    user: Option<String>,
    /// Keep the output of both sides of what differs in this directory.
    #[arg(long)]
    keep: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Suite {
    Commands,
    Python,
    StressNg,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compat-suite: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool, Box<dyn std::error::Error>> {
    let mut under = match &options.under {
        Some(words) => Under::words(words),
        None => Under::lazaret(options.lazaret.as_deref(), options.platform.as_deref()),
    }?;
    if let Some(dir) = &options.keep {
        std::fs::create_dir_all(dir)?;
        under.keep(dir);
    }
    if let Some(user) = &options.user {
        under.become_user(user)?;
    }
    let words: Vec<&str> = options.only.split(',').filter(|word| !word.is_empty()).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word));
    let mut report = Report::new(&under);
    let all = [Suite::Commands, Suite::Python, Suite::StressNg];
    for suite in if options.suites.is_empty() { &all[..] } else { &options.suites } {
        match suite {
            Suite::Commands => commands::run(&under, &wanted, &mut report)?,
            Suite::Python => python::run(&under, &wanted, &mut report)?,
            Suite::StressNg => stress::run(&under, &wanted, &mut report)?,
        }
    }
    report.summary();
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(report.good())
}
