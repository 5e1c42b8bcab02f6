//! statmount(2), listmount(2).

use super::mount::refuse_beyond;
use super::open_tree::attributes;
use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::fs::proc::mounts;
use crate::task::creds::cap;
use crate::vfs::mount::{Mount, UNIQUE};
use crate::vfs::path::Path as Place;
use std::sync::Arc;
use syscall_table::abi::mount::{MS_PRIVATE, MS_SHARED, MS_SLAVE, MS_UNBINDABLE};
use syscall_table::abi::stat::{major, minor};
use syscall_table::errno::Errno;
use zerocopy::{FromZeros, IntoBytes};

const SB_BASIC: u64 = 0x1;
const MNT_BASIC: u64 = 0x2;
const PROPAGATE_FROM: u64 = 0x4;
const MNT_ROOT: u64 = 0x8;
const MNT_POINT: u64 = 0x10;
const FS_TYPE: u64 = 0x20;
const MNT_NS_ID: u64 = 0x40;
const MNT_OPTS: u64 = 0x80;
const SB_SOURCE: u64 = 0x200;
const SUPPORTED_MASK: u64 = 0x1000;
const SUPPORTED: u64 = SB_BASIC
    | MNT_BASIC
    | PROPAGATE_FROM
    | MNT_ROOT
    | MNT_POINT
    | FS_TYPE
    | MNT_NS_ID
    | MNT_OPTS
    | SB_SOURCE
    | SUPPORTED_MASK;
/// Where the strings of `struct statmount` begin.
const FIXED: usize = 512;
/// LSMT_ROOT: the root of the asker's namespace.
const LSMT_ROOT: u64 = u64::MAX;
const LISTMOUNT_REVERSE: u32 = 1;
/// The most numbers that listmount(2) gives at once.
const MOST: usize = 1_000_000;

/// `struct mnt_id_req`, of 24 or 32 bytes.
struct Request {
    id: u64,
    param: u64,
}

fn request(cx: &mut Cx, req: Addr) -> SysResult<Request> {
    let size: u32 = cx.read_value(req.addr())?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    if size < 24 {
        return Err(Errno::EINVAL.into());
    }
    let mut raw = vec![0; size];
    cx.copy_in(req.addr(), &mut raw)?;
    let mut words = <[u64; 4]>::new_zeroed();
    refuse_beyond(&raw, words.as_mut_bytes())?;
    let [head, id, param, space] = words;
    // Its upper half is spare.
    if head >> 32 != 0 || id <= UNIQUE {
        return Err(Errno::EINVAL.into());
    }
    if space != 0 && space != cx.task.namespaces().mnt.id {
        return Err(Errno::ENOENT.into());
    }
    Ok(Request { id, param })
}

fn find(cx: &Cx, id: u64) -> SysResult<Arc<Mount>> {
    let space = cx.task.namespaces().mnt.id;
    let found = cx.kernel().vfs.find_mount(space, id & !UNIQUE).filter(|mount| mount.unique() == id);
    found.ok_or(Errno::ENOENT.into())
}

/// The fixed part and the strings.
struct Answer {
    bytes: Vec<u8>,
    mask: u64,
}

impl Answer {
    fn put(&mut self, at: usize, value: &[u8]) {
        if let Some(field) = self.bytes.get_mut(at..at.saturating_add(value.len())) {
            field.copy_from_slice(value);
        }
    }

    fn put32(&mut self, at: usize, value: u64) {
        self.put(at, &u32::try_from(value).unwrap_or(u32::MAX).to_ne_bytes());
    }

    fn put64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_ne_bytes());
    }

    /// A string behind the fixed part; its place goes to `at`.
    fn string(&mut self, at: usize, text: &[u8]) {
        self.put32(at, self.bytes.len().saturating_sub(FIXED) as u64);
        self.bytes.extend_from_slice(text);
        self.bytes.push(0);
    }
}

pub fn statmount(cx: &mut Cx, req: Addr, buf: OutBuf, bufsize: usize, flags: NoFlags) -> SysResult {
    if flags.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let request = request(cx, req)?;
    let mount = find(cx, request.id)?;
    let root = cx.kernel().vfs.root_of(cx.task)?;
    let point = mounts::point(&mount, &root);
    // What the asker's root does not reach is for those who may change mounts.
    if point.is_none() && !cx.task.creds().capable_in(&cx.task.namespaces().mnt.owner, cap::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let mut out = Answer { bytes: vec![0; FIXED], mask: request.param & SUPPORTED };
    let (group, master, unbindable) = mount.propagation();
    if out.mask & SB_BASIC != 0 {
        out.put32(16, major(mount.sb.dev).into());
        out.put32(20, minor(mount.sb.dev).into());
        let magic = mount.root.inode.statfs().map_or(0, |s| s.kind);
        out.put64(24, magic.cast_unsigned());
        out.put32(32, mount.sb.is_read_only().into());
    }
    if out.mask & MNT_BASIC != 0 {
        let parent = mount.parent().map_or_else(|| mount.clone(), |place| place.mount);
        out.put64(40, mount.unique());
        out.put64(48, parent.unique());
        out.put32(56, mount.id);
        out.put32(60, parent.id);
        out.put64(64, attributes(mount.flags()));
        let mut propagation = if group != 0 { MS_SHARED } else { 0 };
        propagation |= if master != 0 { MS_SLAVE } else { 0 };
        propagation |= if unbindable { MS_UNBINDABLE } else { 0 };
        out.put64(72, if propagation == 0 { MS_PRIVATE } else { propagation });
        out.put64(80, group);
        out.put64(88, master);
    }
    if out.mask & PROPAGATE_FROM != 0 {
        out.put64(96, master);
    }
    if out.mask & FS_TYPE != 0 {
        out.string(36, mount.sb.fstype.as_bytes());
    }
    if out.mask & MNT_ROOT != 0 {
        out.string(104, &mounts::root_in_fs(&mount));
    }
    if out.mask & MNT_POINT != 0 {
        out.string(108, &point.unwrap_or_default());
    }
    if out.mask & MNT_NS_ID != 0 {
        out.put64(112, cx.task.namespaces().mnt.id);
    }
    if out.mask & MNT_OPTS != 0 {
        let own = mount.sb.options.lock().clone();
        if own.is_empty() {
            out.mask &= !MNT_OPTS;
        } else {
            out.string(4, own.as_bytes());
        }
    }
    if out.mask & SB_SOURCE != 0 {
        if mount.source.is_empty() {
            out.mask &= !SB_SOURCE;
        } else {
            out.string(124, mount.source.as_bytes());
        }
    }
    if out.mask & SUPPORTED_MASK != 0 {
        out.put64(144, SUPPORTED);
    }
    let strings = out.bytes.len() > FIXED;
    out.put32(0, out.bytes.len() as u64);
    out.put64(8, out.mask);
    // Without strings a short buffer gets as much as fits; strings come whole.
    if strings && out.bytes.len() > bufsize {
        return Err(Errno::EOVERFLOW.into());
    }
    out.bytes.truncate(bufsize);
    cx.copy_out(buf.addr(), &out.bytes)?;
    Ok(0)
}

pub fn listmount(
    cx: &mut Cx,
    req: Addr,
    mnt_ids: OutSlice<u64>,
    nr_mnt_ids: usize,
    flags: NewMountFlags,
) -> SysResult {
    if flags.unknown(LISTMOUNT_REVERSE) != 0 {
        return Err(Errno::EINVAL.into());
    }
    if nr_mnt_ids > MOST {
        return Err(Errno::EOVERFLOW.into());
    }
    let request = request(cx, req)?;
    let last = request.param;
    if last != 0 && last <= UNIQUE {
        return Err(Errno::EINVAL.into());
    }
    let space = cx.task.namespaces().mnt;
    let root = cx.kernel().vfs.root_of(cx.task)?;
    let top = match request.id {
        LSMT_ROOT => Place { mount: root.mount.clone(), dentry: root.mount.root.clone() },
        id => {
            let mount = find(cx, id)?;
            Place { dentry: mount.root.clone(), mount }
        }
    };
    let reverse = flags.has(LISTMOUNT_REVERSE);
    let mut found: Vec<u64> = space
        .mounts()
        .iter()
        .filter(|mount| mount.id != top.mount.id)
        .filter(|mount| mount.parent().is_some_and(|at| crate::vfs::mounting::reaches(&at, &top)))
        .map(|mount| mount.unique())
        .filter(|id| last == 0 || if reverse { *id < last } else { *id > last })
        .collect();
    if reverse {
        found.reverse();
    }
    found.truncate(nr_mnt_ids);
    cx.copy_out(mnt_ids.addr(), found.as_bytes())?;
    Ok(found.len() as u64)
}
