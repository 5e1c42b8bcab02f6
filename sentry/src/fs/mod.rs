//! File systems.

mod dev;
pub mod devpts;
pub mod gofer;
pub mod host_stream;
pub mod host_tty;
pub mod hostfile;
pub(crate) mod kinds;
pub mod memfs;
pub mod memory;
pub mod merged;
pub(crate) mod mqueue;
pub(crate) mod nsfs;
pub(crate) mod proc;
pub(crate) mod pseudo;
mod set_up;
mod sys;

pub(crate) use dev::inherited_device;
pub use set_up::set_up;

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::pipe::Pipe;
use crate::vfs::file::File;
use std::sync::Arc;
use syscall_table::abi::S_IFIFO;
use syscall_table::abi::open::O_PATH;

/// What open(2) has still to do with a file that was opened by name.
pub(crate) fn opened(cx: &mut Cx, file: Arc<File>) -> SysResult<Arc<File>> {
    let Some(inode) = file.ops.inode().filter(|inode| inode.kind() == S_IFIFO) else { return Ok(file) };
    if file.flags() & O_PATH != 0 {
        return Ok(file);
    }
    let pipe = {
        let Some(place) = inode.attachment() else { return Ok(file) };
        let mut attached = place.lock();
        let there = attached.clone().and_then(|any| any.downcast::<Pipe>().ok());
        there.unwrap_or_else(|| {
            let pipe = Arc::new(Pipe::new((0, 0)));
            *attached = Some(pipe.clone());
            pipe
        })
    };
    pipe.open_fifo(cx, file.flags(), file.path.clone(), Some(inode))
}
