//! getdents(2), getdents64(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::vfs::watch;
use syscall_table::abi::getdents::{dirent_reclen, dirent64_reclen};
use syscall_table::abi::inotify::IN_ACCESS;
use syscall_table::errno::Errno;

/// Most bytes of one answer.
const MOST: usize = 256 * 1024;

fn list(cx: &mut Cx, fd: Fd, dirp: OutBuf, count: u32, old: bool) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    // A directory can always be read.
    if !file.readable() {
        return Err(Errno::ENOTDIR.into());
    }
    let room = usize::try_from(count).unwrap_or(usize::MAX).min(MOST);
    let mut out: Vec<u8> = Vec::with_capacity(room.min(32 * 1024));
    let mut next = None;
    let mut full = false;
    file.ops.readdir(cx, &file, &mut |entry| {
        let len = if old { dirent_reclen(entry.name.len()) } else { dirent64_reclen(entry.name.len()) };
        if out.len().saturating_add(len) > room {
            full = true;
            return false;
        }
        let end = out.len().saturating_add(len);
        out.extend_from_slice(&entry.ino.to_ne_bytes());
        out.extend_from_slice(&entry.next.to_ne_bytes());
        out.extend_from_slice(&u16::try_from(len).unwrap_or(0).to_ne_bytes());
        if !old {
            out.push(entry.kind);
        }
        out.extend_from_slice(entry.name);
        out.resize(end, 0);
        if old && let Some(last) = out.last_mut() {
            *last = entry.kind;
        }
        next = Some(entry.next);
        true
    })?;
    if full && out.is_empty() {
        return Err(Errno::EINVAL.into());
    }
    cx.copy_out(dirp.addr(), &out)?;
    if let Some(place) = file.path.as_ref().filter(|_| !out.is_empty()) {
        place.inode().accessed();
        watch::tell_place(place, IN_ACCESS);
    }
    if let Some(next) = next {
        *file.pos.lock() = next;
    }
    Ok(out.len() as u64)
}

pub fn getdents(cx: &mut Cx, fd: Fd, dirp: OutBuf, count: u32) -> SysResult {
    list(cx, fd, dirp, count, true)
}

pub fn getdents64(cx: &mut Cx, fd: Fd, dirp: OutBuf, count: u32) -> SysResult {
    list(cx, fd, dirp, count, false)
}
