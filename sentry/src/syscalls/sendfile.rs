//! sendfile(2), copy_file_range(2): bytes copied through the sentry.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use crate::vfs::file::File;
use crate::vfs::io;
use syscall_table::abi::open::{O_APPEND, SEEK_CUR};
use syscall_table::abi::readv::*;
use syscall_table::errno::Errno;

/// Bytes moved at once; from an object without position what was read must then be written, so it is little.
const CHUNK: usize = 128 * 1024;
const PIECE: usize = 64 * 1024;

/// Where bytes come from or go to: the file's position, or an offset.
pub(super) fn offset(cx: &mut Cx, at: InOut<i64>, file: &File) -> SysResult<Option<u64>> {
    if at.is_null() {
        return Ok(None);
    }
    if !file.ops.seekable() {
        return Err(Errno::ESPIPE.into());
    }
    let value: i64 = cx.read_value(at.addr())?;
    Ok(Some(u64::try_from(value).map_err(|_| Errno::EINVAL)?))
}

/// What was read from a stream and not written yet when the call blocked.
#[derive(Default)]
struct Held {
    data: Vec<u8>,
    done: u64,
}

pub(super) fn copy(
    cx: &mut Cx,
    from: &File,
    mut from_at: Option<u64>,
    to: &File,
    mut to_at: Option<u64>,
    count: usize,
) -> SysResult {
    if !from.readable() || !to.writable() {
        return Err(Errno::EBADF.into());
    }
    let count = count.min(MAX_RW_COUNT) as u64;
    let stream = !from.ops.seekable();
    let mut done = std::mem::take(&mut cx.state::<Held>().done);
    let mut pending = std::mem::take(&mut cx.state::<Held>().data);
    from_at = from_at.map(|at| at.saturating_add(done).saturating_add(pending.len() as u64));
    to_at = to_at.map(|at| at.saturating_add(done));
    loop {
        if pending.is_empty() {
            let left = usize::try_from(count.saturating_sub(done)).unwrap_or(0);
            if left == 0 {
                return Ok(done);
            }
            pending = vec![0; left.min(if stream { PIECE } else { CHUNK })];
            match io::read_into(cx, from, &mut pending, from_at) {
                Ok(got) => pending.truncate(got),
                Err(fail) if done == 0 => return Err(fail),
                Err(_) => return Ok(done),
            }
            if pending.is_empty() {
                return Ok(done);
            }
            from_at = from_at.map(|at| at.saturating_add(pending.len() as u64));
        }
        match io::write_from(cx, to, &pending, to_at) {
            Ok(written) => {
                done = done.saturating_add(written as u64);
                to_at = to_at.map(|at| at.saturating_add(written as u64));
                pending.drain(..written.min(pending.len()));
                if stream && pending.is_empty() {
                    return Ok(done);
                }
            }
            // What was read from a file is read again later; a signal ends the call with what is done.
            Err(fail @ (Fail::Block(_) | Fail::NeedPort))
                if stream || done == 0 || !crate::signal::deliver::pending(cx.task) =>
            {
                *cx.state::<Held>() = Held { data: pending, done };
                return Err(fail);
            }
            Err(fail) => {
                // Not written: a file is read again from here.
                let back = i64::try_from(pending.len()).unwrap_or(0).saturating_neg();
                if from_at.is_none() && !stream && from.ops.seek_own(back, SEEK_CUR).is_none() {
                    let mut position = from.pos.lock();
                    *position = position.saturating_sub(pending.len() as u64);
                }
                return if done > 0 { Ok(done) } else { Err(fail) };
            }
        }
    }
}

pub(super) fn put_offset(cx: &mut Cx, at: InOut<i64>, start: Option<u64>, moved: u64) -> SysResult<()> {
    if let Some(start) = start {
        cx.write_value(at.addr(), &i64::try_from(start.saturating_add(moved)).unwrap_or(i64::MAX))?;
    }
    Ok(())
}

pub fn sendfile(cx: &mut Cx, out_fd: Fd, in_fd: Fd, at: InOut<i64>, count: usize) -> SysResult {
    // As Linux: the offset is read first, then one end is judged after the other.
    let start: Option<i64> = if at.is_null() { None } else { Some(cx.read_value(at.addr())?) };
    let files = cx.task.files();
    let from = files.get(in_fd.raw())?;
    if !from.readable() {
        return Err(Errno::EBADF.into());
    }
    if start.is_some() && !from.ops.seekable() {
        return Err(Errno::ESPIPE.into());
    }
    let start = start.map(u64::try_from).transpose().map_err(|_| Errno::EINVAL)?;
    let to = files.get(out_fd.raw())?;
    if !to.writable() {
        return Err(Errno::EBADF.into());
    }
    let pipe = super::splice::pipe_of(&to);
    // What was read and cannot be written must not be lost.
    let lost = !from.ops.seekable() && (pipe.is_none() || super::splice::is_pipe(&from));
    let is_dir = from.ops.inode().is_some_and(|inode| inode.is_dir());
    if lost || is_dir || to.flags() & O_APPEND != 0 {
        return Err(Errno::EINVAL.into());
    }
    if count == 0 {
        return Ok(0);
    }
    let moved = match pipe {
        Some(pipe) => {
            let wait = !to.nonblocking();
            super::splice::into_pipe(cx, &from, start, &pipe, count.min(MAX_RW_COUNT), wait)?
        }
        None => copy(cx, &from, start, &to, None, count)?,
    };
    put_offset(cx, at, start, moved)?;
    Ok(moved)
}

/// Whether a copy within one file would read what it writes.
///
/// # Errors
/// EOVERFLOW: past the end of what offsets can say.
fn overlap(
    from: &File,
    start_in: Option<u64>,
    to: &File,
    start_out: Option<u64>,
    len: usize,
) -> SysResult<bool> {
    let start_in = start_in.unwrap_or_else(|| from.position());
    let start_out = start_out.unwrap_or_else(|| to.position());
    let fits = |start: u64| start.checked_add(len as u64).is_some_and(|end| end <= i64::MAX as u64);
    if !fits(start_in) || !fits(start_out) {
        return Err(Errno::EOVERFLOW.into());
    }
    let (a, b) = (from.ops.attr()?, to.ops.attr()?);
    let len = a.size.saturating_sub(start_in).min(len as u64);
    let meets = start_out.saturating_add(len) > start_in && start_out < start_in.saturating_add(len);
    Ok((a.dev, a.ino) == (b.dev, b.ino) && meets)
}

pub fn copy_file_range(
    cx: &mut Cx,
    fd_in: Fd,
    off_in: InOut<i64>,
    fd_out: Fd,
    off_out: InOut<i64>,
    len: usize,
    flags: NoFlags,
) -> SysResult {
    if flags.bits() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let files = cx.task.files();
    let (from, to) = (files.get(fd_in.raw())?, files.get(fd_out.raw())?);
    for file in [&from, &to] {
        match file.ops.inode() {
            Some(inode) if inode.is_dir() => return Err(Errno::EISDIR.into()),
            Some(inode) if inode.is_file() => {}
            _ => return Err(Errno::EINVAL.into()),
        }
    }
    if to.flags() & O_APPEND != 0 {
        return Err(Errno::EBADF.into());
    }
    let (start_in, start_out) = (offset(cx, off_in, &from)?, offset(cx, off_out, &to)?);
    if !from.readable() || !to.writable() {
        return Err(Errno::EBADF.into());
    }
    if overlap(&from, start_in, &to, start_out, len)? {
        return Err(Errno::EINVAL.into());
    }
    let moved = copy(cx, &from, start_in, &to, start_out, len)?;
    put_offset(cx, off_in, start_in, moved)?;
    put_offset(cx, off_out, start_out, moved)?;
    Ok(moved)
}
