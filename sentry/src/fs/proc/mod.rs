//! /proc: processes, and the system as the sandbox sees it.

mod cpu;
pub(crate) mod memory;
pub(crate) mod mounts;
mod net;
mod pid;
mod sysctl;
mod system;
mod sysvipc;

pub(crate) use cpu::caches;
pub(crate) use system::{FILESYSTEMS, load};

use super::pseudo::{Generated, Link, Super, ino};
use crate::fail::SysResult;
use crate::kernel::Kernel;
use crate::task::pidns::PidNs;
use crate::task::{Process, Task};
use crate::vfs::attr::Attr;
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::{Caching, Inode, Listed, StatFs, dirent_kind};
use crate::vfs::mount::NewMount;
use std::sync::Arc;
use syscall_table::abi::stat::makedev;
use syscall_table::abi::{PROC_SUPER_MAGIC, S_IFDIR};
use syscall_table::errno::Errno;

const FS: Super = Super { dev: makedev(0, 21), magic: PROC_SUPER_MAGIC };

/// The process of a directory /proc/PID, which pidfd_send_signal(2) takes for a pidfd. None: the inode is no such one.
pub(crate) fn process_of(inode: &Arc<dyn Inode>) -> Option<Arc<Process>> {
    pid::process_of(inode)
}

/// A file with generated text.
fn text(
    number: u64,
    mode: u32,
    owner: (u32, u32),
    make: impl Fn(&Task) -> SysResult<Vec<u8>> + Send + Sync + 'static,
) -> Arc<dyn Inode> {
    Arc::new(Generated { fs: FS, ino: number, mode, owner, make: Box::new(make), take: None })
}

/// The root of /proc.
struct Root {
    /// Whose numbers it shows.
    ns: Arc<PidNs>,
    fixed: Vec<(&'static [u8], Arc<dyn Inode>)>,
}

impl Inode for Root {
    fn kind(&self) -> u32 {
        S_IFDIR
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(FS.attr(1, S_IFDIR | 0o555, (0, 0)))
    }

    fn caching(&self) -> Caching {
        Caching::Never
    }

    fn given(&self) -> bool {
        true
    }

    fn lookup(&self, task: &Task, name: &[u8]) -> SysResult<Arc<dyn Inode>> {
        if let Some((_, inode)) = self.fixed.iter().find(|(n, _)| *n == name) {
            return Ok(inode.clone());
        }
        let pid = number(name).ok_or(Errno::ENOENT)?;
        pid::directory(task, &self.ns, self.ns.global(pid))
    }

    fn list_for(&self, task: &Task) -> SysResult<Arc<Vec<Listed>>> {
        let mut listed = Vec::new();
        for (name, inode) in &self.fixed {
            listed.push(Listed {
                name: (*name).into(),
                ino: inode.attr()?.ino,
                kind: dirent_kind(inode.kind()),
            });
        }
        let all = task.kernel.tree.processes();
        let numbers = all.iter().map(|process| process.pid).chain([crate::task::tree::INIT]);
        let mut pids: Vec<i32> = numbers.map(|pid| self.ns.local(pid)).filter(|pid| *pid != 0).collect();
        pids.sort_unstable();
        for pid in pids {
            let name = pid.to_string().into_bytes();
            listed.push(Listed { ino: ino(&[b"pid", &name]), name: name.into(), kind: 4 });
        }
        Ok(Arc::new(listed))
    }

    fn statfs(&self) -> SysResult<StatFs> {
        FS.statfs()
    }
}

/// A decimal number without sign or leading zero.
fn number(name: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(name).ok()?;
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

fn link(
    number: u64,
    owner: (u32, u32),
    text: impl Fn(&Task) -> SysResult<Vec<u8>> + Send + Sync + 'static,
) -> Arc<dyn Inode> {
    Arc::new(Link { fs: FS, ino: number, owner, text: Box::new(text), follow: None })
}

/// The root of a /proc that shows the processes of a namespace.
pub(super) fn root(kernel: &Arc<Kernel>, ns: Arc<PidNs>) -> Arc<dyn Inode> {
    let mut fixed = system::files(kernel);
    // Nobody outside is in it.
    let own = |ns: &PidNs, pid: i32| Some(ns.local(pid)).filter(|pid| *pid != 0).ok_or(Errno::ENOENT);
    let of = ns.clone();
    let text = move |task: &Task| Ok(own(&of, task.process.pid)?.to_string().into_bytes());
    fixed.push((b"self", link(ino(&[b"self"]), (0, 0), text)));
    let of = ns.clone();
    let text = move |task: &Task| {
        Ok(format!("{}/task/{}", own(&of, task.process.pid)?, own(&of, task.tid())?).into_bytes())
    };
    fixed.push((b"thread-self", link(ino(&[b"thread-self"]), (0, 0), text)));
    for (name, target) in [(&b"mounts"[..], "self/mounts"), (b"net", "self/net")] {
        fixed.push((name, link(ino(&[name]), (0, 0), move |_| Ok(target.as_bytes().to_vec()))));
    }
    Arc::new(Root { ns, fixed })
}

/// Mounts /proc.
pub(super) fn mount(kernel: &Arc<Kernel>) -> SysResult<()> {
    let at = super::set_up::place(&kernel.vfs, b"/proc", true)?;
    kernel.vfs.mount(
        at,
        NewMount {
            root: Dentry::root(root(kernel, PidNs::first())),
            fstype: "proc",
            source: "proc".to_owned(),
            read_only: false,
            options: "nosuid,nodev,noexec,relatime",
        },
    );
    Ok(())
}
