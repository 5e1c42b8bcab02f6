//! What the command line takes.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Runs programs in a user-space kernel.
#[derive(Parser)]
#[command(name = "lazaret", version, about, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Run a program inside
    Do(Box<DoOptions>),
    /// Print the system-call table
    Syscalls(SyscallsOptions),
    /// Print which host calls each process of a sandbox can make
    Exposure(ExposureOptions),
    /// Say what this host offers
    Check,
    /// Say what a policy allows
    #[command(subcommand)]
    Policy(PolicyVerb),
}

#[derive(Subcommand)]
pub enum PolicyVerb {
    /// Print what can be read, written and reached, without running anything
    Explain(ExplainOptions),
}

/// Options of `lazaret policy explain`.
#[derive(Args)]
pub struct ExplainOptions {
    #[command(flatten)]
    pub policy: PolicyOptions,
    /// How to print
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text)]
    pub format: ExplainFormat,
    /// A policy file; options come after it
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ExplainFormat {
    Text,
    Json,
}

/// What a program may reach. Rules hold in the order in which they are given: a later mount covers what was below its place.
#[derive(Args)]
#[command(next_help_heading = "Policy (rules in their order)")]
pub struct PolicyOptions {
    /// Host directory that is the root inside (default: /)
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Show SRC at DST, read-only; also what a default rule hides, if SRC is it or lies in it (repeatable)
    #[arg(long, value_name = "SRC[:DST]", visible_alias = "show")]
    pub read_only: Vec<PathBuf>,
    /// Show SRC at DST, and let changes pass through to the host (repeatable)
    #[arg(long, value_name = "SRC[:DST]")]
    pub write: Vec<PathBuf>,
    /// Hide PATH (repeatable)
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Mount files in memory at DST (repeatable)
    #[arg(long, value_name = "DST[:size=N]")]
    pub tmpfs: Vec<PathBuf>,
    /// Take rules from a file, see docs/policy.md (repeatable)
    #[arg(long, value_name = "FILE")]
    pub policy: Vec<PathBuf>,
    /// Keep changes in DIR, for later runs: overlayfs's form of an upper directory, written when the program has ended
    #[arg(long, value_name = "DIR")]
    pub upper: Option<PathBuf>,
    /// Most bytes that changes take in memory: a number, or one with K, M, G (default: half of the machine's memory)
    #[arg(long, value_name = "N", value_parser = crate::policy::size_of)]
    pub upper_size: Option<u64>,
}

/// Options of `lazaret do`.
#[derive(Args)]
pub struct DoOptions {
    #[command(flatten)]
    pub policy: PolicyOptions,
    /// List the paths that were added (A), modified (M) and deleted (D) in the upper layer, on standard error
    #[arg(long)]
    pub diff: bool,
    /// Write the upper layer to FILE, a tar archive in the form of OCI layers
    #[arg(long, value_name = "FILE")]
    pub export: Option<PathBuf>,
    /// Apply the upper layer to DIR, or what of it is below PATH
    #[arg(long, value_name = "DIR[:PATH]")]
    pub commit: Option<PathBuf>,
    /// Set an environment variable (repeatable)
    #[arg(long, value_name = "K=V")]
    pub env: Vec<OsString>,
    /// Start from an empty environment
    #[arg(long)]
    pub clear_env: bool,
    /// Working directory inside (default: the current one, or / if it is not there)
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Most threads and processes inside, together (default: by what the host has, at most 32768)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32768))]
    pub tasks: Option<u32>,
    /// Most memory that all programs inside may use together, such as 512M or 2G
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// How guest code runs
    #[arg(long, value_enum, default_value_t = PlatformName::Trap)]
    pub platform: PlatformName,
    /// Write a report of the run (JSON) to FILE
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write every call with decoded arguments to FILE (- for standard error)
    #[arg(long, value_name = "FILE|-")]
    pub trace: Option<PathBuf>,
    /// Count the host calls of all processes in the report (slow: all are traced)
    #[arg(long, requires = "report")]
    pub host_calls: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Least memory that anything runs with.
const LEAST_MEMORY: u64 = 8 << 20;

/// A number of bytes: K, M, G and T are powers of 1024, with or without B or iB behind them.
fn size(text: &str) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" if !unit.starts_with('i') => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("not a size such as 512M or 2G".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "not a size such as 512M or 2G".to_owned())?;
    match number.checked_mul(1 << shift) {
        Some(bytes) if bytes >= LEAST_MEMORY => Ok(bytes),
        Some(_) => Err("8M is the least".to_owned()),
        None => Err("too large".to_owned()),
    }
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum PlatformName {
    /// System calls raise signals (the fast one)
    Trap,
    /// System calls stop at a tracer (the second opinion)
    Ptrace,
}

/// Options of `lazaret syscalls`.
#[derive(Args)]
pub struct SyscallsOptions {
    /// Only this call
    pub name: Option<String>,
    /// How to print
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum TableFormat {
    Table,
    Md,
    Json,
    Csv,
}

/// Options of `lazaret exposure`.
#[derive(Args)]
pub struct ExposureOptions {
    /// How to print
    #[arg(long, value_enum, default_value_t = ExposureFormat::Table)]
    pub format: ExposureFormat,
}

#[derive(Clone, Copy, ValueEnum)]
pub enum ExposureFormat {
    Table,
    Md,
    Json,
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("16777216", 16 << 20),
            ("512M", 512 << 20),
            ("512m", 512 << 20),
            ("512MiB", 512 << 20),
            ("512MB", 512 << 20),
            ("2G", 2 << 30),
            ("9000k", 9000 << 10),
            ("1T", 1 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "1", "7M", "12X", "1.5G", "-1G", "16777216i", "99999999999T", "1G1"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
