//! A task's first steps in its own context.

use super::exec::Program;
use super::tree::Ending;
use super::{Task, exit};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::run::Call;
use crate::signal::mask;
use crate::vfs::walk::Walk;
use platform::Port;
use std::sync::Arc;
use syscall_table::abi::open::AT_FDCWD;
use syscall_table::abi::sigaction::SIGKILL;
use syscall_table::errno::Errno;

/// For gaps of the first program's start.
const EXECVE: u32 = 59;

/// What a new task does before its first guest instruction.
pub enum First {
    /// Loads a program (the sandbox's first task).
    Exec(Box<Program>, Place),
    /// Starts with the registers it was created with (fork, clone).
    Child {
        /// CLONE_CHILD_SETTID: where its tid goes.
        set_tid: Option<u64>,
    },
}

/// Where the first program starts.
pub struct Place {
    /// Working directory.
    pub cwd: Vec<u8>,
    /// Without it the program is not started; else it starts in `/`.
    pub must: bool,
}

/// The first program, found in PATH if its name has no slash (execvp(3)), in its working directory.
fn first_program(cx: &mut Cx, mut program: Program, place: &Place) -> SysResult<()> {
    let task = cx.task.clone();
    let vfs = &task.kernel.vfs;
    let cwd = Walk::new(vfs, &task, AT_FDCWD, &place.cwd).and_then(|mut walk| walk.to(&place.cwd, true));
    match cwd {
        Ok(cwd) if cwd.inode().is_dir() => task.fs().set_cwd(cwd),
        Ok(_) if place.must => {
            task.kernel.tree.set_ending(Ending::NoPlace(Errno::ENOTDIR));
            return Err(Errno::ENOTDIR.into());
        }
        Err(fail) if place.must => {
            task.kernel.tree.set_ending(Ending::NoPlace(fail.errno().unwrap_or(Errno::EIO)));
            return Err(fail);
        }
        _ => {}
    }
    if !program.path.contains(&b'/') {
        program.path = search(cx, &program)?;
    }
    super::exec::first(cx, program)
}

fn search(cx: &mut Cx, program: &Program) -> SysResult<Vec<u8>> {
    let path = program.envp.iter().find_map(|entry| entry.strip_prefix(b"PATH="));
    let path = path.unwrap_or(b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let mut result = Err(Errno::ENOENT.into());
    for dir in path.split(|byte| *byte == b':') {
        let dir = if dir.is_empty() { b"." } else { dir };
        let candidate = [dir, b"/", &program.path].concat();
        match super::exec::open_at(cx, AT_FDCWD, &candidate, 0) {
            Ok(_) => return Ok(candidate),
            Err(Fail::Error(Errno::ENOENT | Errno::ENOTDIR)) => {}
            // Another directory may have one that can be executed.
            Err(fail) => result = Err(fail),
        }
    }
    result
}

/// Does it. Err: the task has ended.
pub(crate) fn started(task: &Arc<Task>, call: &mut Call, port: &mut dyn Port) -> Result<(), ()> {
    let first = task.first.lock().take();
    match first {
        Some(First::Exec(program, place)) => {
            let mut cx = Cx::new(task, call, Some(port));
            match first_program(&mut cx, *program, &place) {
                Ok(()) => Ok(()),
                Err(fail) => {
                    match &fail {
                        Fail::Denial(denial) => task.kernel.report.denial(task, EXECVE, denial),
                        Fail::Gap(gap) => task.kernel.report.gap(task, EXECVE, &gap.detail, gap.errno),
                        _ => {}
                    }
                    task.kernel.tree.set_ending(Ending::NotStarted(fail.errno().unwrap_or(Errno::EIO)));
                    exit::host_death(task, SIGKILL);
                    Err(())
                }
            }
        }
        Some(First::Child { set_tid }) => {
            task.tell_own();
            mask::lend(task);
            super::sched::place(task);
            if let Some(addr) = set_tid {
                // As Linux: no error if it cannot be written.
                port.put_u32(addr, task.own_tid() as u32);
            }
            Ok(())
        }
        None => Err(()),
    }
}
