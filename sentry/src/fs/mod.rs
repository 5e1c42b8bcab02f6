//! File systems.

pub mod gofer;
pub mod host_stream;
pub mod host_tty;
pub mod hostfile;
pub mod memfs;

use crate::boot::HostMount;
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::vfs::dentry::Dentry;
use crate::vfs::mount::NewMount;
use std::sync::Arc;

/// Mounts what every sandbox has.
///
/// # Errors
/// What the gofer says of its mounts.
pub fn set_up(kernel: &Arc<Kernel>, client: &Arc<::gofer::Client>, mounts: &[HostMount]) -> SysResult<()> {
    let _ = mounts;
    let root = gofer::GoferFs::attach(client, 0)?;
    kernel.vfs.mount_root(NewMount {
        root: Dentry::root(root),
        fstype: "overlay",
        source: "overlay".to_owned(),
        read_only: true,
        options: "relatime",
    });
    Ok(())
}
