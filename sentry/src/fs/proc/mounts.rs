//! mounts, mountinfo, mountstats.

use crate::fail::SysResult;
use crate::task::Task;
use std::fmt::Write;

/// The file called `name` as `asker` sees it.
pub(super) fn text(asker: &Task, name: &[u8]) -> SysResult<Vec<u8>> {
    let vfs = &asker.kernel.vfs;
    let root = vfs.root_of(asker)?;
    let mut out = String::new();
    for mount in vfs.mounts() {
        let at = match &mount.parent {
            Some(place) => place.absolute(Some(&root)).bytes,
            None => b"/".to_vec(),
        };
        let at =
            String::from_utf8_lossy(&at).replace('\\', "\\134").replace(' ', "\\040").replace('\n', "\\012");
        let access = if mount.read_only { "ro" } else { "rw" };
        let options =
            if mount.options.is_empty() { access.to_owned() } else { format!("{access},{}", mount.options) };
        let (fstype, source) = (mount.fstype, &mount.source);
        let _ = match name {
            b"mountinfo" => {
                let dev = mount.root.inode.attr().map_or(0, |a| a.dev);
                let parent = mount.parent.as_ref().map_or(1, |p| p.mount.id);
                let (major, minor) =
                    (syscall_table::abi::stat::major(dev), syscall_table::abi::stat::minor(dev));
                let id = mount.id;
                writeln!(out, "{id} {parent} {major}:{minor} / {at} {options} - {fstype} {source} {access}")
            }
            b"mountstats" => writeln!(out, "device {source} mounted on {at} with fstype {fstype}"),
            _ => writeln!(out, "{source} {at} {fstype} {options} 0 0"),
        };
    }
    Ok(out.into_bytes())
}
