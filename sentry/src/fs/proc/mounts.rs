//! mounts, mountinfo, mountstats: the mounts of a process's namespace as seen from its root (proc_pid_mounts(5)).

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::fs::pseudo::Made;
use crate::task::Task;
use crate::vfs::attr::Attr;
use crate::vfs::file::{File, FileOps};
use crate::vfs::inode::Inode;
use crate::vfs::mount::Mount;
use crate::vfs::mountns::MountNs;
use crate::vfs::path::Path;
use crate::wait::{Ready, WaitQueue};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use syscall_table::abi::stat::{major, minor};

/// Whose mounts are shown.
pub(super) struct View {
    space: Arc<MountNs>,
    root: Path,
}

impl View {
    /// Those of `task`.
    pub(super) fn of(task: &Task) -> SysResult<View> {
        Ok(View { space: task.namespaces().mnt, root: task.kernel.vfs.root_of(task)? })
    }
}

/// A name with what separates fields written in octal.
fn escaped(name: &[u8]) -> String {
    let mut out = Vec::with_capacity(name.len());
    for byte in name {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' | b'#' => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The path of a mount's root in its file system.
pub(crate) fn root_in_fs(mount: &Arc<Mount>) -> Vec<u8> {
    if crate::fs::nsfs::is_namespace(&mount.root.inode) {
        return crate::fs::nsfs::namespace(&mount.root.inode)
            .map(|ns| ns.label().into_bytes())
            .unwrap_or_default();
    }
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let (mut at, mut deleted) = (mount.root.clone(), false);
    loop {
        let (parent, name, gone) = at.place();
        let Some(parent) = parent else { break };
        deleted |= gone;
        names.push(name);
        at = parent;
    }
    let mut path = Vec::new();
    for name in names.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    if deleted {
        path.extend_from_slice(b"//deleted");
    }
    path
}

/// Where a mount is as seen from `root`; None: not below it.
pub(crate) fn point(mount: &Arc<Mount>, root: &Path) -> Option<Vec<u8>> {
    let place = Path { mount: mount.clone(), dentry: mount.root.clone() };
    let absolute = place.absolute(Some(root));
    absolute.reached.then_some(absolute.bytes)
}

/// What a file system shows of itself behind `rw`.
pub(crate) fn super_options(mount: &Mount) -> String {
    let mut words = String::from(if mount.sb.is_read_only() { "ro" } else { "rw" });
    let own = mount.sb.options.lock().clone();
    if !own.is_empty() {
        words.push(',');
        words.push_str(&own);
    }
    words
}

fn line(out: &mut String, name: &[u8], mount: &Arc<Mount>, at: &[u8]) {
    let at = escaped(at);
    let (fstype, source) = (mount.sb.fstype, escaped(mount.source.as_bytes()));
    let source = if source.is_empty() { "none".to_owned() } else { source };
    // Writing to a string cannot fail.
    let _ = match name {
        b"mountinfo" => {
            let parent = mount.parent().map_or(1, |p| p.mount.id);
            let (major, minor) = (major(mount.sb.dev), minor(mount.sb.dev));
            let (id, root, options) = (mount.id, escaped(&root_in_fs(mount)), mount.words());
            let mut optional = String::new();
            let (group, master, unbindable) = mount.propagation();
            if group != 0 {
                let _ = write!(optional, "shared:{group} ");
            }
            if master != 0 {
                let _ = write!(optional, "master:{master} ");
            }
            if unbindable {
                optional.push_str("unbindable ");
            }
            let own = super_options(mount);
            writeln!(
                out,
                "{id} {parent} {major}:{minor} {root} {at} {options} {optional}- {fstype} {source} {own}"
            )
        }
        b"mountstats" => writeln!(out, "device {source} mounted on {at} with fstype {fstype}"),
        _ => {
            // One list here: read-only if either is, then the file system's words.
            let words = mount.words();
            let flags = words.split_once(',').map(|(_, flags)| flags);
            let access = if mount.read_only() { "ro" } else { "rw" };
            let own = mount.sb.options.lock().clone();
            let parts: Vec<&str> = [Some(access), flags, Some(own.as_str())]
                .into_iter()
                .flatten()
                .filter(|p| !p.is_empty())
                .collect();
            writeln!(out, "{source} {at} {fstype} {} 0 0", parts.join(","))
        }
    };
}

/// An open one: poll(2) tells of changes since it was last asked.
pub(super) struct Mounts<I> {
    inode: Arc<I>,
    name: &'static [u8],
    view: View,
    text: Made,
    seen: AtomicU64,
}

impl<I: Inode> Mounts<I> {
    pub(super) fn new(inode: Arc<I>, name: &'static [u8], view: View) -> Mounts<I> {
        let seen = AtomicU64::new(view.space.changes.count());
        Mounts { inode, name, view, text: Made::default(), seen }
    }

    fn make(&self) -> Vec<u8> {
        let mut out = String::new();
        for mount in self.view.space.mounts() {
            if let Some(at) = point(&mount, &self.view.root) {
                line(&mut out, self.name, &mount, &at);
            }
        }
        out.into_bytes()
    }
}

impl<I: Inode> FileOps for Mounts<I> {
    fn read(&self, _: &mut Cx, _: &File, buf: &mut [u8], offset: u64) -> SysResult<usize> {
        self.text.read(buf, offset, || Ok(self.make()))
    }

    fn seekable(&self) -> bool {
        true
    }

    fn size(&self) -> SysResult<u64> {
        Ok(0)
    }

    fn poll(&self, _: &File) -> Ready {
        let mut ready = Ready::IN | Ready::RDNORM;
        let now = self.view.space.changes.count();
        if self.name != b"mountstats" && self.seen.swap(now, Ordering::SeqCst) != now {
            ready |= Ready::ERR | Ready::PRI;
        }
        ready
    }

    fn queue(&self) -> Option<&WaitQueue> {
        Some(&self.view.space.changes.queue)
    }

    fn attr(&self) -> SysResult<Attr> {
        self.inode.attr()
    }

    fn inode(&self) -> Option<Arc<dyn Inode>> {
        Some(self.inode.clone())
    }
}
