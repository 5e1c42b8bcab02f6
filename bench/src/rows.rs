//! The rows, in the order in which they are printed.

use serde::Serialize;

/// What a figure is held against.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// At most this many times the native figure.
    Native(f64),
    /// At most this many times bubblewrap's figure.
    Bubblewrap(f64),
    /// At most this many of the row's units.
    Most(f64),
    /// Shown for comparison.
    None,
}

/// How a row is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By a worker in the sandbox; the figure is the time of one operation.
    Time,
    /// By a worker; the figure is what a call adds to the work around it.
    Added,
    /// By the driver: from the start of the sandbox to its end.
    Start,
    /// By the driver, from one idle sandbox.
    Idle,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub id: &'static str,
    pub label: &'static str,
    pub group: &'static str,
    pub unit: Unit,
    pub kind: Kind,
    pub goal: Goal,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Ns,
    Bytes,
    /// Parts of a thousand of one processor.
    CpuPerMille,
}

const fn row(id: &'static str, label: &'static str, group: &'static str, kind: Kind, goal: Goal) -> Row {
    Row { id, label, group, unit: Unit::Ns, kind, goal }
}

const CALLS: &str = "calls, one after the other";
const COLD: &str = "calls, 60 us of computing before each: what the call adds";
const EXCHANGE: &str = "there and back between two";
const MEMORY: &str = "memory";
const PROCESS: &str = "threads and processes";
const PROGRAM: &str = "programs, started inside";
const SANDBOX: &str = "the sandbox itself";
const HANDOFF: &str = "hand-off: what lseek adds beyond the gap before it";

/// Every row.
pub const ROWS: &[Row] = &[
    row("getpid", "getpid", CALLS, Kind::Time, Goal::Native(0.25)),
    row("fstat", "fstat", CALLS, Kind::Time, Goal::Native(1.0)),
    row("lseek", "lseek", CALLS, Kind::Time, Goal::Native(1.0)),
    row("read", "read 1 B", CALLS, Kind::Time, Goal::Native(1.0)),
    row("pread", "pread 4 KiB, cached", CALLS, Kind::Time, Goal::Native(1.0)),
    row("stat", "stat", CALLS, Kind::Time, Goal::Native(1.0)),
    row("open", "open + close", CALLS, Kind::Time, Goal::Native(1.0)),
    row("pwrite", "pwrite 4 KiB", CALLS, Kind::Time, Goal::Native(1.5)),
    row("getdents", "list a directory of 1,000", CALLS, Kind::Time, Goal::Native(1.5)),
    row("create", "create + unlink", CALLS, Kind::Time, Goal::Native(1.5)),
    row("cold-getpid", "getpid", COLD, Kind::Added, Goal::Most(8_000.0)),
    row("cold-fstat", "fstat", COLD, Kind::Added, Goal::Most(8_000.0)),
    row("cold-lseek", "lseek", COLD, Kind::Added, Goal::Most(8_000.0)),
    row("cold-read", "read 1 B", COLD, Kind::Added, Goal::Most(8_000.0)),
    row("cold-pread", "pread 4 KiB, cached", COLD, Kind::Added, Goal::Most(8_000.0)),
    row("cold-stat", "stat", COLD, Kind::Added, Goal::Most(8_000.0)),
    row("cold-open", "open + close", COLD, Kind::Added, Goal::Most(8_000.0)),
    row("pipe", "pipe, two processes", EXCHANGE, Kind::Time, Goal::Native(1.0)),
    row("unix", "unix stream, two processes", EXCHANGE, Kind::Time, Goal::Native(1.0)),
    row("tcp", "TCP over loopback, two processes", EXCHANGE, Kind::Time, Goal::Native(1.2)),
    row("futex", "futex, two threads", EXCHANGE, Kind::Time, Goal::Native(1.1)),
    row("fault", "page fault", MEMORY, Kind::Time, Goal::Native(1.1)),
    row("mmap", "mmap + munmap of 64 KiB", MEMORY, Kind::Time, Goal::Native(1.1)),
    row("memcpy", "memcpy of 1 MiB", MEMORY, Kind::Time, Goal::Native(1.1)),
    row("thread", "thread create + join", PROCESS, Kind::Time, Goal::Native(1.1)),
    row("fork", "fork + wait", PROCESS, Kind::Time, Goal::Native(1.5)),
    row("exec", "fork + exec + wait", PROCESS, Kind::Time, Goal::Native(1.5)),
    row("python", "python3 -c pass", PROGRAM, Kind::Time, Goal::Native(1.2)),
    row("sqlite", "sqlite3 fills and queries a file", PROGRAM, Kind::Time, Goal::Native(1.2)),
    row("git", "git status, 500 files", PROGRAM, Kind::Time, Goal::Native(1.2)),
    row("tar", "tar of 1,000 files", PROGRAM, Kind::Time, Goal::Native(1.2)),
    row("gcc", "gcc of one file", PROGRAM, Kind::Time, Goal::Native(1.2)),
    row("redis", "redis, 20,000 requests", PROGRAM, Kind::Time, Goal::Native(1.2)),
    row("nginx", "nginx under wrk, one request", PROGRAM, Kind::Time, Goal::Native(1.67)),
    row("memcached", "memcached, set + get", PROGRAM, Kind::Time, Goal::Native(1.43)),
    row("true", "true, start to end", SANDBOX, Kind::Start, Goal::Bubblewrap(1.0)),
    Row {
        unit: Unit::Bytes,
        ..row("pss", "memory beside the program's (PSS)", SANDBOX, Kind::Idle, Goal::Most(6.0 * MIB))
    },
    Row {
        unit: Unit::Bytes,
        ..row("rss", "resident in its own processes (RSS)", SANDBOX, Kind::Idle, Goal::Most(10.0 * MIB))
    },
    Row { unit: Unit::CpuPerMille, ..row("cpu", "CPU while idle", SANDBOX, Kind::Idle, Goal::Most(0.0)) },
    row("handoff-1-0", "one guest, 0 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-1-1", "one guest, 1 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-1-5", "one guest, 5 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-1-20", "one guest, 20 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-1-60", "one guest, 60 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-2-0", "two guests, 0 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-2-1", "two guests, 1 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-2-5", "two guests, 5 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-2-20", "two guests, 20 us", HANDOFF, Kind::Added, Goal::None),
    row("handoff-2-60", "two guests, 60 us", HANDOFF, Kind::Added, Goal::None),
];

const MIB: f64 = 1024.0 * 1024.0;
