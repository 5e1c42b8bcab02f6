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
}

/// Options of `lazaret do`.
#[derive(Args)]
pub struct DoOptions {
    /// Host directory that is the root inside
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Let writes below PATH pass through to the host (repeatable)
    #[arg(long, value_name = "PATH")]
    pub write: Vec<PathBuf>,
    /// Hide PATH (repeatable)
    #[arg(long, value_name = "PATH")]
    pub hide: Vec<PathBuf>,
    /// Show PATH, read-only, although a default rule hides it (repeatable)
    #[arg(long, value_name = "PATH")]
    pub show: Vec<PathBuf>,
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
