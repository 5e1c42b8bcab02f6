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
    /// Most bytes that changes take in memory: a number, or one with K, M, G (default: half of the machine's memory)
    #[arg(long, value_name = "N", value_parser = crate::policy::size_of)]
    pub upper_size: Option<u64>,
}

/// Options of `lazaret do`.
#[derive(Args)]
pub struct DoOptions {
    #[command(flatten)]
    pub policy: PolicyOptions,
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
