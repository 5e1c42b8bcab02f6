//! A task's first steps in its own context.

use super::exec::Program;
use super::tree::Ending;
use super::{Task, exit};
use crate::cx::Cx;
use crate::run::Call;
use platform::Port;
use std::sync::Arc;
use syscall_table::abi::sigaction::SIGKILL;
use syscall_table::errno::Errno;

/// What a new task does before its first guest instruction.
pub enum First {
    /// Loads a program (the sandbox's first task).
    Exec(Box<Program>),
    /// Starts with the registers it was created with (fork, clone).
    Child {
        /// CLONE_CHILD_SETTID: where its tid goes.
        set_tid: Option<u64>,
    },
}

/// Does it. Err: the task has ended.
pub(crate) fn started(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port) -> Result<(), ()> {
    let first = task.first.lock().take();
    match first {
        Some(First::Exec(program)) => {
            let mut cx = Cx::new(task, call, Some(port));
            match super::exec::first(&mut cx, *program) {
                Ok(()) => Ok(()),
                Err(fail) => {
                    task.kernel.tree.set_ending(Ending::NotStarted(fail.errno().unwrap_or(Errno::EIO)));
                    exit::host_death(task, SIGKILL);
                    Err(())
                }
            }
        }
        Some(First::Child { set_tid }) => {
            if let Some(addr) = set_tid {
                // As Linux: no error if it cannot be written.
                let _ = port.write_mem(addr, &task.tid().to_le_bytes());
            }
            Ok(())
        }
        None => Err(()),
    }
}
