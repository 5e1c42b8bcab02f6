//! File systems.

pub mod gofer;
pub mod host_stream;
pub mod host_tty;
pub mod hostfile;
pub mod memfs;
mod set_up;

pub use set_up::set_up;

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::Task;
use crate::vfs::file::File;
use crate::vfs::lock::{Owner, Range};
use std::sync::Arc;

/// What open(2) has still to do with a file that was opened by name.
pub(crate) fn opened(_cx: &mut Cx, file: Arc<File>) -> SysResult<Arc<File>> {
    Ok(file)
}

/// A descriptor was closed: the process loses its record locks on the file (fcntl(2)).
pub(crate) fn closed(task: &Task, file: &File) {
    let vfs = &task.kernel.vfs;
    if vfs.locks.used()
        && let Ok(attr) = file.ops.attr()
    {
        let key = (attr.dev, attr.ino);
        vfs.locks.unlock(key, Owner::Process(task.process.pid), Range::ALL);
    }
}
