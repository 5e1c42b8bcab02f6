//! Moving bytes between guest memory and open files, in bounded chunks through a buffer that each thread keeps.

use crate::args::{Fd, InSlice};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ipc::eventfd::Eventfd;
use crate::net::socket::Socket;
use crate::signal::{deliver, send};
use crate::sync::{Level, Lock};
use crate::vfs::file::{File, OWN_POSITION};
use crate::vfs::watch;
use std::cell::Cell;
use syscall_table::abi::getrlimit::{RLIM_INFINITY, RLIMIT_FSIZE};
use syscall_table::abi::inotify::{IN_ACCESS, IN_MODIFY};
use syscall_table::abi::open::{O_DSYNC, O_SYNC, SEEK_CUR};
use syscall_table::abi::readv::*;
use syscall_table::abi::sigaction::{SIGXFSZ, Siginfo};
use syscall_table::errno::Errno;

/// Bytes moved at once from or to files with a position.
const CHUNK: usize = 128 * 1024;
/// Most bytes of one message or pipe transfer: these are moved in one piece or not at all.
const PIECE: usize = 1024 * 1024;

/// Longest buffer that a thread keeps: there may be thousands of threads.
const OWN: usize = 32 * 1024;
/// So many longer ones are kept by all together.
const LONG: usize = 4;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

static LONGER: Lock<Vec<Vec<u8>>> = Lock::new(Level::Field, Vec::new());

/// Runs `f` with a buffer of `len` bytes of arbitrary contents.
pub fn with_scratch<T>(len: usize, f: impl FnOnce(&mut [u8]) -> T) -> T {
    if len > OWN {
        let mut buffer = LONGER.lock().pop().unwrap_or_default();
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        let result = f(buffer.get_mut(..len).unwrap_or_default());
        let mut kept = LONGER.lock();
        if kept.len() < LONG {
            kept.push(buffer);
        }
        return result;
    }
    let mut buffer = SCRATCH.take();
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let result = f(buffer.get_mut(..len).unwrap_or_default());
    SCRATCH.set(buffer);
    result
}

/// Ranges of guest memory.
pub type Ranges<'a> = &'a [(u64, usize)];

/// Reads an iovec array; the total is cut at MAX_RW_COUNT.
///
/// # Errors
/// EINVAL for too many or negative lengths, EFAULT.
pub fn read_iovec(cx: &mut Cx, addr: u64, count: usize) -> SysResult<Vec<(u64, usize)>> {
    if count > UIO_MAXIOV {
        return Err(Errno::EINVAL.into());
    }
    let mut ranges = Vec::with_capacity(count);
    let mut total = 0usize;
    let mut bytes = vec![0u8; count.saturating_mul(16)];
    cx.copy_in(addr, &mut bytes)?;
    for entry in bytes.chunks_exact(16) {
        let iov: Iovec = zerocopy::FromBytes::read_from_bytes(entry).map_err(|_| Errno::EFAULT)?;
        let len = isize::try_from(iov.iov_len).map_err(|_| Errno::EINVAL)?.unsigned_abs();
        let len = len.min(MAX_RW_COUNT.saturating_sub(total));
        total = total.saturating_add(len);
        ranges.push((iov.iov_base, len));
    }
    Ok(ranges)
}

fn total(ranges: Ranges<'_>) -> usize {
    ranges.iter().fold(0usize, |sum, (_, len)| sum.saturating_add(*len)).min(MAX_RW_COUNT)
}

/// The part of the ranges from `skip` on, `len` bytes long, piece by piece: address, and where it is in the part.
fn pieces(
    ranges: Ranges<'_>,
    skip: usize,
    len: usize,
    mut f: impl FnMut(u64, usize, usize) -> SysResult<()>,
) -> SysResult<()> {
    let (mut before, mut done) = (skip, 0usize);
    for (addr, size) in ranges {
        if before >= *size {
            before = before.saturating_sub(*size);
            continue;
        }
        let part = size.saturating_sub(before).min(len.saturating_sub(done));
        if part == 0 {
            break;
        }
        f(addr.wrapping_add(before as u64), done, part)?;
        done = done.saturating_add(part);
        before = 0;
    }
    Ok(())
}

/// Writes `data` to guest memory at the ranges, `skip` bytes in. Gives how much came before a fault.
///
/// # Errors
/// EFAULT when not even the first byte could be written.
pub fn scatter(cx: &mut Cx, ranges: Ranges<'_>, skip: usize, data: &[u8]) -> SysResult<usize> {
    let mut done = 0usize;
    let result = pieces(ranges, skip, data.len(), |addr, at, len| {
        let part = data.get(at..at.saturating_add(len)).unwrap_or_default();
        if cx.copy_out(addr, part).is_ok() {
            done = done.saturating_add(len);
            return Ok(());
        }
        // Page by page up to the fault.
        let (mut addr, mut rest) = (addr, part);
        while !rest.is_empty() {
            let room = usize::try_from(4096 - (addr & 4095)).unwrap_or(4096).min(rest.len());
            let (now, later) = rest.split_at(room);
            cx.copy_out(addr, now)?;
            done = done.saturating_add(room);
            addr = addr.wrapping_add(room as u64);
            rest = later;
        }
        Ok(())
    });
    match result {
        Err(fail) if done == 0 => Err(fail),
        _ => Ok(done),
    }
}

/// How much can be written to the ranges, one after the other, by the records.
pub fn room_in(cx: &Cx, ranges: Ranges<'_>) -> usize {
    let mm = cx.task.mm();
    let layout = mm.layout.lock();
    let mut sum = 0usize;
    for (addr, len) in ranges {
        let room = layout.writable(*addr, *len);
        sum = sum.saturating_add(room);
        if room < *len {
            break;
        }
    }
    sum
}

/// EFAULT unless the ranges lie in what may be user memory at all.
fn check_ranges(ranges: Ranges<'_>) -> SysResult<()> {
    let fits =
        |(addr, len): &(u64, usize)| addr.checked_add(*len as u64).is_some_and(|end| end <= 0x7fff_ffff_f000);
    if ranges.iter().all(fits) { Ok(()) } else { Err(Errno::EFAULT.into()) }
}

/// Reads guest memory at the ranges, `skip` bytes in.
pub fn gather(cx: &mut Cx, ranges: Ranges<'_>, skip: usize, data: &mut [u8]) -> SysResult<()> {
    let len = data.len();
    pieces(ranges, skip, len, |addr, at, len| {
        cx.copy_in(addr, data.get_mut(at..at.saturating_add(len)).unwrap_or_default())
    })
}

/// As [`gather`], up to what cannot be read: how much came before it.
///
/// # Errors
/// EFAULT when not even the first byte could be read.
fn gather_some(cx: &mut Cx, ranges: Ranges<'_>, skip: usize, data: &mut [u8]) -> SysResult<usize> {
    let mut done = 0usize;
    let result = pieces(ranges, skip, data.len(), |addr, at, len| {
        let part = data.get_mut(at..at.saturating_add(len)).unwrap_or_default();
        let got = cx.copy_in_some(addr, part)?;
        done = done.saturating_add(got);
        if got < len { Err(Errno::EFAULT.into()) } else { Ok(()) }
    });
    match result {
        Err(fail) if done == 0 => Err(fail),
        _ => Ok(done),
    }
}

/// read, readv, pread, preadv: at the file's position, or at `at`.
///
/// # Errors
/// EBADF, ESPIPE, EFAULT and the object's. After a part was read that part is the result.
pub fn read(cx: &mut Cx, file: &File, ranges: Ranges<'_>, at: Option<u64>) -> SysResult {
    let seekable = file.ops.seekable();
    if at.is_some() && !seekable {
        return Err(Errno::ESPIPE.into());
    }
    if !file.readable() {
        return Err(Errno::EBADF.into());
    }
    check_ranges(ranges)?;
    let count = total(ranges);
    if !seekable {
        cx.room = room_in(cx, ranges);
        return with_scratch(count.min(PIECE), |buffer| {
            let got = file.ops.read(cx, file, buffer, 0)?;
            Ok(scatter(cx, ranges, 0, buffer.get(..got).unwrap_or_default())? as u64)
        });
    }
    let mut position = if at.is_none() { Some(file.pos.lock()) } else { None };
    let mut offset = at.or(position.as_ref().map(|p| **p)).unwrap_or(0);
    let mut done = 0usize;
    let result: SysResult<()> = with_scratch(count.min(CHUNK), |buffer| {
        loop {
            let want = count.saturating_sub(done).min(buffer.len());
            let part = buffer.get_mut(..want).unwrap_or_default();
            let got = file.ops.read(cx, file, part, offset)?;
            let got = scatter(cx, ranges, done, part.get(..got).unwrap_or_default())?;
            done = done.saturating_add(got);
            offset = offset.saturating_add(got as u64);
            if got < want || done >= count {
                return Ok(());
            }
        }
    });
    if let Some(position) = &mut position {
        **position = offset;
    }
    if done == 0 {
        result?;
    } else if let Some(place) = &file.path {
        watch::tell_place(place, IN_ACCESS);
    }
    Ok(done as u64)
}

/// write, writev, pwrite, pwritev: at the file's position, or at `at`.
///
/// # Errors
/// As [`read`].
pub fn write(cx: &mut Cx, file: &File, ranges: Ranges<'_>, at: Option<u64>) -> SysResult {
    let seekable = file.ops.seekable();
    if at.is_some() && !seekable {
        return Err(Errno::ESPIPE.into());
    }
    if !file.writable() {
        return Err(Errno::EBADF.into());
    }
    check_ranges(ranges)?;
    let mut count = total(ranges);
    if file.ops.ignores_data() {
        return Ok(count as u64);
    }
    if !seekable {
        return write_stream(cx, file, ranges, count);
    }
    if count == 0 {
        return Ok(0);
    }
    let mut position = if at.is_none() { Some(file.pos.lock()) } else { None };
    let mut offset = at.or(position.as_ref().map(|p| **p)).unwrap_or(0);
    count = count.min(room(cx, file, offset)?);
    let mut done = 0usize;
    let result: SysResult<()> = with_scratch(count.min(CHUNK), |buffer| {
        while done < count {
            let want = count.saturating_sub(done).min(buffer.len());
            let part = buffer.get_mut(..want).unwrap_or_default();
            let have = gather_some(cx, ranges, done, part)?;
            let written = file.ops.write(cx, file, part.get(..have).unwrap_or_default(), offset)?;
            done = done.saturating_add(written.count);
            offset = written.end;
            if written.count < want {
                break;
            }
        }
        Ok(())
    });
    if let Some(position) = &mut position {
        **position = offset;
    }
    if done == 0 {
        result?;
    }
    wrote(cx, file, done)?;
    Ok(done as u64)
}

/// How much may be written at `offset` for RLIMIT_FSIZE.
///
/// # Errors
/// EFBIG, after SIGXFSZ, when nothing may.
fn room(cx: &Cx, file: &File, offset: u64) -> SysResult<usize> {
    let limit = cx.task.process.limit(RLIMIT_FSIZE);
    if limit == RLIM_INFINITY || file.ops.inode().is_none_or(|inode| !inode.is_file()) {
        return Ok(usize::MAX);
    }
    let from = match file.ops.seek_own(0, SEEK_CUR) {
        _ if cx.appends(file) => file.ops.size()?,
        Some(own) if offset == OWN_POSITION => own?,
        _ => offset,
    };
    let room = usize::try_from(limit.saturating_sub(from)).unwrap_or(usize::MAX);
    if room == 0 {
        send::to_process(cx.kernel(), &cx.task.process, Siginfo::kernel(SIGXFSZ));
        return Err(Errno::EFBIG.into());
    }
    Ok(room)
}

/// What follows a write to an object with a position: watches, O_SYNC and its kin.
fn wrote(cx: &Cx, file: &File, count: usize) -> SysResult<()> {
    if count == 0 {
        return Ok(());
    }
    if let Some(place) = &file.path {
        watch::tell_place(place, IN_MODIFY);
    }
    let data_only = file.flags() & O_SYNC != O_SYNC && cx.rwf & RWF_SYNC == 0;
    let durable = file.flags() & O_DSYNC != 0 || cx.rwf & (RWF_DSYNC | RWF_SYNC) != 0;
    if durable && file.ops.inode().is_some_and(|inode| inode.is_file()) {
        file.ops.fsync(data_only)?;
    }
    Ok(())
}

/// Which way a transfer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Into guest memory.
    Read,
    /// Out of it.
    Write,
}

/// The vector calls: `at` None is the file's position; `flags` are RWF_ bits.
///
/// # Errors
/// EINVAL, EBADF, ESPIPE, EFAULT, EOPNOTSUPP for flags the object does not know, and as [`read`] and [`write`].
pub fn vector(
    cx: &mut Cx,
    way: Way,
    fd: Fd,
    (iov, count): (InSlice<Iovec>, usize),
    at: Option<i64>,
    flags: i32,
) -> SysResult {
    let at = at.map(u64::try_from).transpose().map_err(|_| Errno::EINVAL)?;
    let file = cx.task.files().get(fd.raw())?;
    if at.is_some() && !file.ops.seekable() {
        return Err(Errno::ESPIPE.into());
    }
    if !(if way == Way::Read { file.readable() } else { file.writable() }) {
        return Err(Errno::EBADF.into());
    }
    // Linux has room for 32 bits of it.
    let ranges = read_iovec(cx, iov.addr(), count & 0xffff_ffff)?;
    if flags != 0 && total(&ranges) > 0 {
        check_flags(&file, flags)?;
        cx.rwf = flags;
    }
    // No bytes are no message, and nobody waits for them (read(2) and write(2) ask the object).
    let directory = file.ops.inode().is_some_and(|inode| inode.is_dir());
    let asked = match way {
        Way::Read => file.ops.hurries() || directory,
        Way::Write => file.downcast::<Socket>().is_some() || file.downcast::<Eventfd>().is_some(),
    };
    if total(&ranges) == 0 && asked {
        return check_ranges(&ranges).map(|()| 0);
    }
    let result = match way {
        Way::Read => read(cx, &file, &ranges, at),
        Way::Write => write(cx, &file, &ranges, at),
    };
    cx.rwf = 0;
    result
}

fn check_flags(file: &File, flags: i32) -> SysResult<()> {
    let known = RWF_FLAGS.iter().fold(0, |all, (_, bit)| all | bit);
    let both = RWF_APPEND | RWF_NOAPPEND;
    if flags & !known != 0 {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if flags & both == both {
        return Err(Errno::EINVAL.into());
    }
    let uncached = flags & RWF_DONTCACHE == 0 || file.ops.inode().is_some_and(|inode| inode.is_file());
    // No file here can be written in larger units than others see.
    if flags & RWF_ATOMIC != 0 || !uncached || (flags & RWF_NOWAIT != 0 && !file.ops.hurries()) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    Ok(())
}

/// How much of a write to an object without position is done.
#[derive(Default)]
struct Streamed(usize);

/// Bytes from `at` to the end of the range in which it lies.
fn rest_of_piece(ranges: Ranges<'_>, at: usize) -> usize {
    let mut end = 0usize;
    for (_, len) in ranges {
        end = end.saturating_add(*len);
        if end > at {
            break;
        }
    }
    end.saturating_sub(at).min(PIECE)
}

/// A write to an object without position, in pieces; it blocks until all is written.
fn write_stream(cx: &mut Cx, file: &File, ranges: Ranges<'_>, count: usize) -> SysResult {
    let mut done = std::mem::take(&mut cx.state::<Streamed>().0).min(count);
    // A counter takes each number by itself.
    let apart = file.downcast::<Eventfd>().is_some();
    loop {
        let most = if apart { rest_of_piece(ranges, done) } else { PIECE };
        let want = count.saturating_sub(done).min(most);
        let result = with_scratch(want, |buffer| {
            gather(cx, ranges, done, buffer)?;
            Ok(file.ops.write(cx, file, buffer, 0)?.count)
        });
        match result {
            Ok(part) => {
                done = done.saturating_add(part);
                let goes_on = part > 0 && file.ops.goes_on_writing() && !file.nonblocking();
                if done >= count || part < want && (!goes_on || deliver::pending(cx.task)) {
                    return Ok(done as u64);
                }
            }
            Err(fail @ (Fail::Block(_) | Fail::NeedPort)) => {
                if done > 0 && deliver::pending(cx.task) {
                    return Ok(done as u64);
                }
                cx.state::<Streamed>().0 = done;
                return Err(fail);
            }
            Err(_) if done > 0 => return Ok(done as u64),
            Err(fail) => return Err(fail),
        }
    }
}

/// Reads up to `buffer.len()` bytes for the kernel, at the position or at `at`.
///
/// # Errors
/// EBADF, ESPIPE, the object's.
pub fn read_into(cx: &mut Cx, file: &File, buffer: &mut [u8], at: Option<u64>) -> SysResult<usize> {
    if !file.readable() {
        return Err(Errno::EBADF.into());
    }
    let seekable = file.ops.seekable();
    match at {
        Some(_) if !seekable => Err(Errno::ESPIPE.into()),
        Some(at) => file.ops.read(cx, file, buffer, at),
        None if !seekable => file.ops.read(cx, file, buffer, 0),
        None => {
            let mut position = file.pos.lock();
            let got = file.ops.read(cx, file, buffer, *position)?;
            *position = position.saturating_add(got as u64);
            Ok(got)
        }
    }
}

/// Writes bytes of the kernel, at the position or at `at`.
///
/// # Errors
/// EBADF, ESPIPE, the object's.
pub fn write_from(cx: &mut Cx, file: &File, data: &[u8], at: Option<u64>) -> SysResult<usize> {
    if !file.writable() {
        return Err(Errno::EBADF.into());
    }
    let seekable = file.ops.seekable();
    if at.is_some() && !seekable {
        return Err(Errno::ESPIPE.into());
    }
    if !seekable {
        return Ok(file.ops.write(cx, file, data, 0)?.count);
    }
    let mut position = if at.is_none() { Some(file.pos.lock()) } else { None };
    let offset = at.or(position.as_ref().map(|p| **p)).unwrap_or(0);
    let may = room(cx, file, offset)?;
    let written = file.ops.write(cx, file, data.get(..may).unwrap_or(data), offset)?;
    if let Some(position) = &mut position {
        **position = written.end;
    }
    drop(position);
    wrote(cx, file, written.count)?;
    Ok(written.count)
}
