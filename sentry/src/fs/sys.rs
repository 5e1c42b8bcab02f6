//! /sys: what programs ask for the number of processors, and little more.

use super::pseudo::{Fixed, Generated, Super, ino};
use crate::fail::SysResult;
use crate::vfs::Vfs;
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::Inode;
use crate::vfs::mount::NewMount;
use std::sync::Arc;
use syscall_table::abi::SYSFS_MAGIC;
use syscall_table::abi::stat::makedev;

const FS: Super = Super { dev: makedev(0, 22), magic: SYSFS_MAGIC };

type Names = Vec<(&'static [u8], Arc<dyn Inode>)>;

fn dir(name: &'static [u8], names: Names) -> (&'static [u8], Arc<dyn Inode>) {
    (name, Arc::new(Fixed { fs: FS, ino: ino(&[b"sys", name]), names }))
}

fn text(name: &'static [u8], text: String) -> (&'static [u8], Arc<dyn Inode>) {
    let make = Box::new(move |_: &crate::task::Task| Ok(text.clone().into_bytes()));
    (
        name,
        Arc::new(Generated {
            fs: FS,
            ino: ino(&[b"sysfile", name]),
            mode: 0o444,
            owner: (0, 0),
            make,
            take: None,
        }),
    )
}

/// Mounts /sys.
pub(super) fn mount(vfs: &Vfs, cpus: usize) -> SysResult<()> {
    let range = if cpus > 1 { format!("0-{}\n", cpus.saturating_sub(1)) } else { "0\n".to_owned() };
    let cpu = vec![
        text(b"online", range.clone()),
        text(b"possible", range.clone()),
        text(b"present", range.clone()),
        text(b"offline", "\n".to_owned()),
        text(b"isolated", "\n".to_owned()),
    ];
    let node0 = vec![text(b"cpulist", range)];
    let node =
        vec![text(b"online", "0\n".to_owned()), text(b"possible", "0\n".to_owned()), dir(b"node0", node0)];
    let transparent = vec![
        text(b"enabled", "always [madvise] never\n".to_owned()),
        text(b"hpage_pmd_size", "2097152\n".to_owned()),
    ];
    let root = vec![
        dir(b"block", Vec::new()),
        dir(b"bus", Vec::new()),
        dir(b"class", vec![dir(b"net", Vec::new()), dir(b"block", Vec::new())]),
        dir(b"devices", vec![dir(b"system", vec![dir(b"cpu", cpu), dir(b"node", node)])]),
        dir(b"fs", vec![dir(b"cgroup", Vec::new())]),
        dir(b"kernel", vec![dir(b"mm", vec![dir(b"transparent_hugepage", transparent)])]),
    ];
    let (_, root) = dir(b"/", root);
    let at = super::set_up::place(vfs, b"/sys", true)?;
    vfs.mount(
        at,
        NewMount {
            root: Dentry::root(root),
            fstype: "sysfs",
            source: "sysfs".to_owned(),
            read_only: true,
            options: "nosuid,nodev,noexec,relatime",
        },
    );
    Ok(())
}
