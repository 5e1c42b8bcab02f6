//! File systems that can be mounted inside, and their options.

use super::memfs::MemFs;
use crate::fail::{Fail, SysResult};
use crate::task::Task;
use crate::task::creds::cap;
use crate::task::userns::Ids;
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::{NewOwner, SetAttr, downcast};
use crate::vfs::mount::Super;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use syscall_table::abi::stat::makedev;
use syscall_table::abi::{RAMFS_MAGIC, TMPFS_MAGIC};
use syscall_table::errno::Errno;

/// Types that there are.
const KNOWN: [&str; 7] = ["tmpfs", "ramfs", "proc", "sysfs", "devpts", "mqueue", "devtmpfs"];
/// Types that Linux has and this kernel lacks.
const LACKING: [&str; 34] = [
    "overlay",
    "cgroup",
    "cgroup2",
    "cpuset",
    "binfmt_misc",
    "configfs",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
    "hugetlbfs",
    "ext2",
    "ext3",
    "ext4",
    "xfs",
    "btrfs",
    "f2fs",
    "squashfs",
    "erofs",
    "vfat",
    "msdos",
    "exfat",
    "ntfs3",
    "iso9660",
    "udf",
    "fuse",
    "fuseblk",
    "fusectl",
    "autofs",
    "pstore",
    "efivarfs",
    "nfs",
    "9p",
    "virtiofs",
];

/// A type by its name.
///
/// # Errors
/// ENODEV; a gap for types that Linux has.
pub(crate) fn find(name: &[u8]) -> SysResult<&'static str> {
    // `fuse.sshfs` is a subtype of fuse.
    let base = name.split(|b| *b == b'.').next().unwrap_or(name);
    match KNOWN.iter().find(|known| known.as_bytes() == name) {
        Some(known) => Ok(known),
        None => match LACKING.iter().find(|lacking| lacking.as_bytes() == base) {
            Some(lacking) => Err(Fail::gap(Errno::ENODEV, format!("file system {lacking}"))),
            None => Err(Errno::ENODEV.into()),
        },
    }
}

/// Options as words, each with its value.
pub(crate) type Words = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// Splits the options of mount(2).
pub(crate) fn words(data: &[u8]) -> Words {
    let word = |word: &[u8]| match word.iter().position(|b| *b == b'=') {
        Some(at) => (
            word.get(..at).unwrap_or_default().to_vec(),
            word.get(at.saturating_add(1)..).map(<[u8]>::to_vec),
        ),
        None => (word.to_vec(), None),
    };
    data.split(|b| *b == b',').filter(|part| !part.is_empty()).map(word).collect()
}

/// The word is one of the flags that every file system has: `ro` as it is, nothing for those without effect.
fn general(name: &[u8]) -> Option<Option<bool>> {
    match name {
        b"ro" => Some(Some(true)),
        b"rw" => Some(Some(false)),
        b"sync" | b"async" | b"dirsync" | b"lazytime" | b"nolazytime" | b"mand" | b"nomand" => Some(None),
        _ => None,
    }
}

/// Options read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// `ro` or `rw`.
    pub read_only: Option<bool>,
    size: Option<u64>,
    inodes: Option<u64>,
    mode: Option<u32>,
    uid: Option<u32>,
    gid: Option<u32>,
    ptmxmode: Option<u32>,
}

fn number(value: Option<&Vec<u8>>, radix: u32) -> SysResult<u64> {
    let text = value.and_then(|v| std::str::from_utf8(v).ok()).ok_or(Errno::EINVAL)?;
    let (text, radix) = match text.strip_prefix("0x") {
        Some(rest) if radix == 10 => (rest, 16),
        _ => (text, radix),
    };
    u64::from_str_radix(text, radix).map_err(|_| Errno::EINVAL.into())
}

/// A number with `k`, `m`, `g`, `t`, as memparse() reads it; what follows it.
fn sized(value: Option<&Vec<u8>>) -> SysResult<(u64, &[u8])> {
    let value = value.ok_or(Errno::EINVAL)?;
    let digits = value.iter().take_while(|b| b.is_ascii_digit()).count();
    let (text, rest) = (value.get(..digits).unwrap_or_default(), value.get(digits..).unwrap_or_default());
    let base: u64 = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).unwrap_or(0);
    let shift = match rest.first().map(u8::to_ascii_lowercase) {
        Some(b'k') => 10,
        Some(b'm') => 20,
        Some(b'g') => 30,
        Some(b't') => 40,
        _ => 0,
    };
    let rest = if shift == 0 { rest } else { rest.get(1..).unwrap_or_default() };
    Ok((base.checked_mul(1 << shift).ok_or(Errno::EINVAL)?, rest))
}

/// Half of the sandbox's memory.
pub(super) fn room() -> u64 {
    crate::memory::total() / 2
}

/// Half of the sandbox's pages, as many inodes as a tmpfs has unless it is told.
fn default_inodes() -> u64 {
    room() / 4096
}

impl Options {
    /// Reads one word for a file system of type `kind`.
    ///
    /// # Errors
    /// EINVAL.
    pub(crate) fn add(
        &mut self,
        task: &Task,
        kind: &str,
        name: &[u8],
        value: Option<&Vec<u8>>,
    ) -> SysResult<()> {
        if let Some(read_only) = general(name) {
            self.read_only = read_only.or(self.read_only);
            return Ok(());
        }
        let id = |ids| -> SysResult<u32> {
            let id = u32::try_from(number(value, 10)?).map_err(|_| Errno::EINVAL)?;
            task.creds().ns.to_kernel(ids, id).ok_or(Errno::EINVAL.into())
        };
        let mode = || -> SysResult<u32> { Ok(u32::try_from(number(value, 8)? & 0o7777).unwrap_or(0)) };
        match (kind, name) {
            ("tmpfs", b"size") => {
                let (size, rest) = sized(value)?;
                self.size = Some(match rest {
                    b"" => size,
                    b"%" => (room() / 100).saturating_mul(2).saturating_mul(size),
                    _ => return Err(Errno::EINVAL.into()),
                });
            }
            ("tmpfs", b"nr_blocks") => {
                let (blocks, rest) = sized(value)?;
                self.size = Some(blocks.checked_mul(4096).filter(|_| rest.is_empty()).ok_or(Errno::EINVAL)?);
            }
            ("tmpfs", b"nr_inodes") => {
                let (inodes, rest) = sized(value)?;
                self.inodes = Some(Some(inodes).filter(|_| rest.is_empty()).ok_or(Errno::EINVAL)?);
            }
            ("tmpfs" | "ramfs" | "devpts", b"mode") => self.mode = Some(mode()?),
            ("tmpfs" | "devpts", b"uid") => self.uid = Some(id(Ids::Users)?),
            ("tmpfs" | "devpts", b"gid") => self.gid = Some(id(Ids::Groups)?),
            ("tmpfs", b"inode32" | b"inode64") if value.is_none() => {}
            ("tmpfs", b"huge") if value.is_some_and(|v| matches!(v.as_slice(), b"never" | b"advise")) => {}
            ("tmpfs", b"mpol" | b"huge" | b"noswap" | b"quota" | b"usrquota" | b"grpquota") => {
                let name = String::from_utf8_lossy(name);
                return Err(Fail::gap(Errno::EINVAL, format!("tmpfs option {name}")));
            }
            ("devpts", b"ptmxmode") => self.ptmxmode = Some(mode()?),
            ("devpts", b"newinstance") => {}
            ("devpts", b"max") => {
                number(value, 10)?;
            }
            ("proc", b"hidepid" | b"gid" | b"subset") => {
                let name = String::from_utf8_lossy(name);
                return Err(Fail::gap(Errno::EINVAL, format!("proc option {name}")));
            }
            // These take anything.
            ("ramfs", _) => {}
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(())
    }
}

/// EPERM unless the task may mount file systems of this type (`mount_capable`).
///
/// # Errors
/// EPERM.
pub(crate) fn may(task: &Task, kind: &str) -> SysResult<()> {
    let creds = task.creds();
    let may = match kind {
        "tmpfs" | "ramfs" | "devpts" => creds.has(cap::SYS_ADMIN),
        // Devices are the host's: refused as in a user namespace.
        "devtmpfs" => false,
        "proc" => creds.capable_in(&task.process.pidns.owner, cap::SYS_ADMIN),
        // Owners of the namespaces that these show.
        _ => creds.capable(cap::SYS_ADMIN),
    };
    if may { Ok(()) } else { Err(Errno::EPERM.into()) }
}

fn new_device() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(40);
    // Minor numbers have 20 bits; what comes round is long gone.
    makedev(0, 40 | (NEXT.fetch_add(1, Ordering::Relaxed) & 0xf_ffff))
}

fn shown(options: &Options) -> String {
    let mut words = Vec::new();
    if let Some(size) = options.size.filter(|size| *size != 0) {
        words.push(format!("size={}k", size.div_ceil(4096).saturating_mul(4)));
    }
    if let Some(inodes) = options.inodes.filter(|inodes| *inodes != 0) {
        words.push(format!("nr_inodes={inodes}"));
    }
    if let Some(mode) = options.mode.filter(|mode| *mode != 0o1777) {
        words.push(format!("mode={mode:03o}"));
    }
    if let Some(uid) = options.uid.filter(|uid| *uid != 0) {
        words.push(format!("uid={uid}"));
    }
    if let Some(gid) = options.gid.filter(|gid| *gid != 0) {
        words.push(format!("gid={gid}"));
    }
    words.join(",")
}

/// Bytes and inodes of a tmpfs with these options.
fn limits(options: &Options) -> (u64, u64) {
    let size = match options.size {
        None => room(),
        Some(0) => u64::MAX,
        Some(size) => size.div_ceil(4096).saturating_mul(4096),
    };
    let inodes = match options.inodes {
        None => default_inodes(),
        Some(0) => u64::MAX,
        Some(inodes) => inodes,
    };
    (size, inodes)
}

/// A file system of type `kind`: a new one, or the only one of its kind.
///
/// # Errors
/// EPERM, and EINVAL for options.
pub(crate) fn make(task: &Task, kind: &'static str, options: &Options) -> SysResult<Arc<Super>> {
    may(task, kind)?;
    let creds = task.creds();
    match kind {
        "tmpfs" | "ramfs" => {
            let mode = options.mode.unwrap_or(if kind == "tmpfs" { 0o1777 } else { 0o755 });
            let owner = NewOwner {
                mode,
                masked: 0,
                uid: options.uid.unwrap_or(creds.fsuid),
                gid: options.gid.unwrap_or(creds.fsgid),
            };
            let (size, inodes) = if kind == "tmpfs" { limits(options) } else { (u64::MAX, u64::MAX) };
            let magic = if kind == "tmpfs" { TMPFS_MAGIC } else { RAMFS_MAGIC };
            let root = MemFs::guests_own(new_device(), magic, (size, inodes), owner);
            let (uid, gid) = (Some(owner.uid), Some(owner.gid));
            let shown =
                if kind == "tmpfs" { shown(&Options { uid, gid, ..options.clone() }) } else { String::new() };
            Ok(Arc::new(Super::new(kind, Dentry::root(root), shown, creds.ns.clone())))
        }
        "devtmpfs" => Err(Errno::EPERM.into()),
        "proc" if task.process.pidns.level > 0 => {
            let root = super::proc::root(&task.kernel, task.process.pidns.clone());
            Ok(Arc::new(Super::new(kind, Dentry::root(root), String::new(), creds.ns.clone())))
        }
        _ => {
            let sb = task.kernel.vfs.only(kind).ok_or(Errno::ENODEV)?;
            if let Some(mode) = options.ptmxmode
                && let Ok(ptmx) = sb.root.inode.lookup(task, b"ptmx")
            {
                ptmx.set_attr(&SetAttr { mode: Some(mode), ..SetAttr::default() })?;
            }
            Ok(sb)
        }
    }
}

/// Changes the options of a file system (remount).
///
/// # Errors
/// EINVAL where it has outgrown them.
pub(crate) fn reconfigure(sb: &Super, options: &Options) -> SysResult<()> {
    if sb.fstype != "tmpfs" {
        return Ok(());
    }
    let Some(root) = downcast::<super::memfs::Node>(&sb.root.inode) else { return Ok(()) };
    let (size, inodes) = limits(options);
    root.set_limits(options.size.map(|_| size), options.inodes.map(|_| inodes))?;
    let mut words: Vec<String> = Vec::new();
    let new = shown(&Options { mode: None, uid: None, gid: None, ..options.clone() });
    let mut own = sb.options.lock();
    let changed = |word: &str| {
        word.starts_with("size=") && options.size.is_some()
            || word.starts_with("nr_inodes=") && options.inodes.is_some()
    };
    words.extend([new].into_iter().filter(|w| !w.is_empty()));
    words.extend(own.split(',').filter(|w| !w.is_empty() && !changed(w)).map(str::to_owned));
    *own = words.join(",");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let size = |text: &str| sized(Some(&text.as_bytes().to_vec())).map(|(n, rest)| (n, rest.to_vec()));
        assert_eq!(size("64k"), Ok((65536, Vec::new())));
        assert_eq!(size("50%"), Ok((50, b"%".to_vec())));
        assert_eq!(size("3x"), Ok((3, b"x".to_vec())));
        assert_eq!(words(b"a=1,b,,c=d=e").len(), 3);
    }
}
