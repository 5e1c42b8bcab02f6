//! splice(2), tee(2), vmsplice(2): bytes are copied, never pages.

use super::sendfile::{copy, offset, put_offset};
use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, Restart, SysResult};
use crate::ipc::pipe::{Pipe, PipeEnd, Stuck};
use crate::vfs::file::File;
use crate::vfs::io;
use crate::wait::Ready;
use std::sync::Arc;
use syscall_table::abi::open::{O_APPEND, O_NONBLOCK};
use syscall_table::abi::readv::*;
use syscall_table::abi::{S_IFIFO, S_IFMT};
use syscall_table::errno::Errno;

/// Most bytes moved at once.
const PIECE: usize = 64 * 1024;

/// The pipe behind a description, unless it is one of the host's.
pub(super) fn pipe_of(file: &File) -> Option<Arc<Pipe>> {
    file.downcast::<PipeEnd>().map(|end| end.pipe().clone())
}

pub(super) fn is_pipe(file: &File) -> bool {
    file.downcast::<PipeEnd>().is_some() || file.ops.attr().is_ok_and(|a| a.mode & S_IFMT == S_IFIFO)
}

fn check_flags(flags: SpliceFlags) -> SysResult<()> {
    let known = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;
    if flags.unknown(known) != 0 { Err(Errno::EINVAL.into()) } else { Ok(()) }
}

/// Nothing could be moved: 0 at the end, EPIPE, or wait (EAGAIN without `wait`) for the pipe that was registered on.
fn stuck(cx: &Cx, why: Stuck, wait: bool) -> SysResult {
    match why {
        Stuck::Ended => Ok(0),
        Stuck::Broken => {
            cx.sigpipe();
            Err(Errno::EPIPE.into())
        }
        Stuck::Empty | Stuck::Full if wait => cx.block(Restart::Sys),
        Stuck::Empty | Stuck::Full => Err(Errno::EAGAIN.into()),
    }
}

/// From anything to a pipe: as much as there is room for.
pub(super) fn into_pipe(
    cx: &mut Cx,
    from: &File,
    at: Option<u64>,
    to: &Pipe,
    len: usize,
    wait: bool,
) -> SysResult {
    cx.wait_on(to.queue(), Ready::OUT);
    let room = match to.free() {
        Ok(room) => room,
        Err(why) => return stuck(cx, why, wait),
    };
    let mut bytes = vec![0; len.min(room)];
    let got = io::read_into(cx, from, &mut bytes, at)?;
    bytes.truncate(got);
    if !bytes.is_empty() {
        to.put(&bytes);
    }
    Ok(got as u64)
}

/// From a pipe to anything but a pipe: what is in it, up to `len`.
fn out_of_pipe(
    cx: &mut Cx,
    from: &Pipe,
    to: &File,
    mut at: Option<u64>,
    len: usize,
    wait: bool,
) -> SysResult {
    cx.wait_on(from.queue(), Ready::IN);
    let mut done = 0usize;
    while done < len {
        let bytes = match from.take(len.saturating_sub(done).min(PIECE)) {
            Ok(bytes) => bytes,
            Err(_) if done > 0 => break,
            Err(why) => return stuck(cx, why, wait),
        };
        let written = io::write_from(cx, to, &bytes, at);
        let count = *written.as_ref().unwrap_or(&0);
        from.give_back(bytes.get(count..).unwrap_or_default());
        done = done.saturating_add(count);
        at = at.map(|at| at.saturating_add(count as u64));
        match written {
            Ok(count) if count == bytes.len() => {}
            Err(fail) if done == 0 => return Err(fail),
            _ => break,
        }
    }
    Ok(done as u64)
}

fn pour(cx: &Cx, from: &Pipe, to: &Pipe, len: usize, keep: bool, wait: bool) -> SysResult {
    cx.wait_on(from.queue(), Ready::IN);
    cx.wait_on(to.queue(), Ready::OUT);
    match from.pour(to, len, keep) {
        Ok(count) => Ok(count as u64),
        Err(why) => stuck(cx, why, wait),
    }
}

pub fn splice(
    cx: &mut Cx,
    fd_in: Fd,
    off_in: InOut<i64>,
    fd_out: Fd,
    off_out: InOut<i64>,
    len: usize,
    flags: SpliceFlags,
) -> SysResult {
    check_flags(flags)?;
    if len == 0 {
        return Ok(0);
    }
    let files = cx.task.files();
    let (from, to) = (files.get(fd_in.raw())?, files.get(fd_out.raw())?);
    let (pipe_in, pipe_out) = (is_pipe(&from), is_pipe(&to));
    if (pipe_in && !off_in.is_null()) || (pipe_out && !off_out.is_null()) {
        return Err(Errno::ESPIPE.into());
    }
    if !from.readable() || !to.writable() {
        return Err(Errno::EBADF.into());
    }
    if !pipe_in && !pipe_out {
        return Err(Errno::EINVAL.into());
    }
    for (at, file) in [(&off_in, &from), (&off_out, &to)] {
        if !at.is_null() && !file.ops.seekable() {
            return Err(Errno::EINVAL.into());
        }
    }
    if !pipe_out && to.flags() & O_APPEND != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (start_in, start_out) = (offset(cx, off_in, &from)?, offset(cx, off_out, &to)?);
    let len = len.min(MAX_RW_COUNT);
    let hurry = |file: &File, pipe: bool| pipe && file.flags() & O_NONBLOCK != 0;
    let wait = !flags.has(SPLICE_F_NONBLOCK) && !hurry(&from, pipe_in) && !hurry(&to, pipe_out);
    let moved = match (pipe_of(&from), pipe_of(&to)) {
        (Some(a), Some(b)) if Arc::ptr_eq(&a, &b) => return Err(Errno::EINVAL.into()),
        (Some(a), Some(b)) => pour(cx, &a, &b, len, false, wait)?,
        (Some(a), None) => out_of_pipe(cx, &a, &to, start_out, len, wait)?,
        (None, Some(b)) => into_pipe(cx, &from, start_in, &b, len, wait)?,
        // Pipes of the host, which do not tell what room they have.
        (None, None) => copy(cx, &from, start_in, &to, start_out, len)?,
    };
    put_offset(cx, off_in, start_in, moved)?;
    put_offset(cx, off_out, start_out, moved)?;
    Ok(moved)
}

pub fn tee(cx: &mut Cx, fd_in: Fd, fd_out: Fd, len: usize, flags: SpliceFlags) -> SysResult {
    check_flags(flags)?;
    if len == 0 {
        return Ok(0);
    }
    let files = cx.task.files();
    let (from, to) = (files.get(fd_in.raw())?, files.get(fd_out.raw())?);
    if !from.readable() || !to.writable() {
        return Err(Errno::EBADF.into());
    }
    let wait = !flags.has(SPLICE_F_NONBLOCK) && (from.flags() | to.flags()) & O_NONBLOCK == 0;
    match (pipe_of(&from), pipe_of(&to)) {
        (Some(a), Some(b)) if !Arc::ptr_eq(&a, &b) => pour(cx, &a, &b, len.min(MAX_RW_COUNT), true, wait),
        (Some(_), None) | (None, Some(_)) if is_pipe(&from) && is_pipe(&to) => {
            Err(Fail::gap(Errno::EINVAL, "a pipe of the host"))
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

pub fn vmsplice(cx: &mut Cx, fd: Fd, iov: InSlice<Iovec>, nr_segs: usize, flags: SpliceFlags) -> SysResult {
    check_flags(flags)?;
    let file = cx.task.files().get(fd.raw())?;
    if !file.writable() && !file.readable() {
        return Err(Errno::EBADF.into());
    }
    let ranges = io::read_iovec(cx, iov.addr(), nr_segs)?;
    let len = ranges.iter().fold(0usize, |sum, (_, len)| sum.saturating_add(*len));
    if len == 0 {
        return Ok(0);
    }
    let Some(pipe) = pipe_of(&file) else {
        return Err(if is_pipe(&file) {
            Fail::gap(Errno::EBADF, "a pipe of the host")
        } else {
            Errno::EBADF.into()
        });
    };
    let wait = !flags.has(SPLICE_F_NONBLOCK);
    if file.writable() {
        cx.wait_on(pipe.queue(), Ready::OUT);
        let room = match pipe.free() {
            Ok(room) => room,
            Err(why) => return stuck(cx, why, wait),
        };
        let mut bytes = vec![0; len.min(room)];
        io::gather(cx, &ranges, 0, &mut bytes)?;
        pipe.put(&bytes);
        return Ok(bytes.len() as u64);
    }
    cx.wait_on(pipe.queue(), Ready::IN);
    let bytes = match pipe.take(len) {
        Ok(bytes) => bytes,
        Err(why) => return stuck(cx, why, wait),
    };
    let done = io::scatter(cx, &ranges, 0, &bytes);
    pipe.give_back(bytes.get(*done.as_ref().unwrap_or(&0)..).unwrap_or_default());
    Ok(done? as u64)
}
