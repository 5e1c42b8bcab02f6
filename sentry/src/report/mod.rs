//! What the sandbox has to tell: denials, gaps, counts, traces.

use crate::fail::Denial;
use crate::run::Call;
use crate::task::Task;
use syscall_table::errno::Errno;

/// Collects during a run.
#[derive(Default)]
pub struct Report {}

impl Report {
    /// Counts a gap.
    pub fn gap(&self, _task: &Task, _nr: u32, _detail: &str, _errno: Errno) {}

    /// Counts a denial.
    pub fn denial(&self, _task: &Task, _denial: &Denial) {}

    /// A call begins.
    pub fn trace_enter(&self, _task: &Task, _call: &Call) {}

    /// A call ends with this value of rax; None: it did not return to where it came from.
    pub fn trace_leave(&self, _task: &Task, _call: &Call, _value: Option<i64>) {}
}
