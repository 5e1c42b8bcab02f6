//! strace-like lines.
//!
//! A line is written when its call ends, so that what the kernel filled in can be shown; arguments of calls that do
//! not come back (execve, exit) are read at their begin.

use crate::run::Call;
use crate::sync::{Level, Lock};
use crate::task::Task;
use rustix::fd::OwnedFd;
use std::collections::HashMap;
use syscall_table::by_number;

const RT_SIGRETURN: u32 = 15;
const EXECVE: u32 = 59;
const EXIT: u32 = 60;
const EXIT_GROUP: u32 = 231;
const EXECVEAT: u32 = 322;

pub(super) struct Trace {
    file: OwnedFd,
    begun: Lock<HashMap<i32, String>>,
}

impl Trace {
    pub(super) fn new(file: OwnedFd) -> Self {
        Trace { file, begun: Lock::new(Level::Report, HashMap::new()) }
    }

    pub(super) fn enter(&self, task: &Task, call: &Call) {
        match call.nr {
            EXECVE | EXECVEAT => {
                let line = format(task, call, None);
                self.begun.lock().insert(task.tid(), line);
            }
            EXIT | EXIT_GROUP => self.line(task.tid(), &format!("{} = ?", format(task, call, None))),
            _ => {}
        }
    }

    pub(super) fn leave(&self, task: &Task, call: &Call, value: Option<i64>) {
        match (call.nr, value) {
            (EXIT | EXIT_GROUP, _) => {}
            (EXECVE | EXECVEAT, value) => {
                let line = self.begun.lock().remove(&task.tid()).unwrap_or_default();
                let line = match value {
                    // Not the old program's any more: the call had succeeded.
                    None => format!("{line} = 0"),
                    Some(_) => format(task, call, value),
                };
                self.line(task.tid(), &line);
            }
            (RT_SIGRETURN, None) => self.line(task.tid(), "rt_sigreturn() = ?"),
            _ => self.line(task.tid(), &format(task, call, value)),
        }
    }

    fn line(&self, tid: i32, text: &str) {
        // Where the lines go is the user's choice; a full disk must not end the run.
        let _ = rustix::io::write(&self.file, format!("{tid:>5} {text}\n").as_bytes());
    }
}

fn format(task: &Task, call: &Call, value: Option<i64>) -> String {
    let space = task.space();
    match by_number(call.nr) {
        Some(row) => {
            let read = |addr: u64, len: usize| {
                let mut buffer = vec![0; len.min(1 << 16)];
                space.read(addr, &mut buffer).ok().map(|()| buffer)
            };
            syscall_table::fmt::format_call(row, &call.args, &read, value)
        }
        None => syscall_table::fmt::format_unknown(call.nr, &call.args, value),
    }
}
