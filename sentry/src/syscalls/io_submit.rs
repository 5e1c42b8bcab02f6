//! io_setup(2), io_destroy(2), io_submit(2), io_getevents(2), io_pgetevents(2), io_cancel(2)

use super::poll::with_mask;
use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, Restart, SysResult};
use crate::ipc::aio::{AIO_MAX_NR, Context};
use crate::ipc::eventfd::Eventfd;
use crate::mm::{PAGE, Request};
use crate::time;
use crate::vfs::file::File;
use crate::vfs::io;
use crate::wait::Ready;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

/// More events than this are no number (fs/aio.c: 256 MiB of them, twice as many as asked for).
const MOST: u32 = 0x1000_0000 / 32 / 2;

fn find(cx: &Cx, id: u64) -> SysResult<Arc<Context>> {
    cx.task.mm().aio.find(id).ok_or(Errno::EINVAL.into())
}

/// io_setup(2)
pub fn io_setup(cx: &mut Cx, nr_events: u32, ctx_idp: InOut<u64>) -> SysResult {
    let id: u64 = cx.read_value(ctx_idp.addr())?;
    if id != 0 || nr_events == 0 || nr_events > MOST {
        return Err(Errno::EINVAL.into());
    }
    cx.port()?;
    let room = usize::try_from(nr_events).ok().filter(|n| *n <= AIO_MAX_NR).ok_or(Errno::EAGAIN)?;
    let context = Context::new(room).ok_or(Errno::EAGAIN)?;
    let mm = cx.task.mm();
    mm.set_room(&cx.task.process);
    let request = Request {
        addr: 0,
        len: PAGE,
        prot: PROT_READ | PROT_WRITE,
        flags: MAP_PRIVATE | MAP_ANONYMOUS,
        source: None,
        name: "/[aio] (deleted)",
        attached: None,
    };
    let id = mm.map(cx.port()?, &request)?;
    mm.aio.add(id, context);
    if let Err(fail) = cx.write_value(ctx_idp.addr(), &id) {
        io_destroy(cx, id)?;
        return Err(fail);
    }
    Ok(0)
}

/// io_destroy(2)
pub fn io_destroy(cx: &mut Cx, ctx_id: u64) -> SysResult {
    let mm = cx.task.mm();
    let port = cx.port()?;
    let context = mm.aio.remove(ctx_id).ok_or(Errno::EINVAL)?;
    context.end();
    // The page is the guest's to keep or lose.
    let _ = mm.unmap(port, ctx_id, PAGE);
    Ok(0)
}

/// io_submit(2)
pub fn io_submit(cx: &mut Cx, ctx_id: u64, nr: i64, iocbpp: Addr) -> SysResult {
    let count = u64::try_from(nr).map_err(|_| Errno::EINVAL)?;
    let context = find(cx, ctx_id)?;
    let mut done = 0u64;
    // More than fits is EAGAIN or a short count in any case.
    while done < count {
        match submit(cx, &context, iocbpp.addr().wrapping_add(done.wrapping_mul(8))) {
            Ok(()) => done += 1,
            // What would wait is left to the next call, or waited for when there is nothing else.
            Err(fail) if done == 0 => return Err(fail),
            Err(_) => break,
        }
    }
    Ok(done)
}

fn submit(cx: &mut Cx, context: &Arc<Context>, pointer: u64) -> SysResult<()> {
    let at: u64 = cx.read_value(pointer)?;
    let iocb: Iocb = cx.read_value(at)?;
    if iocb.reserved2 != 0 || isize::try_from(iocb.nbytes).is_err() {
        return Err(Errno::EINVAL.into());
    }
    if !context.has_room() {
        return Err(Errno::EAGAIN.into());
    }
    let files = cx.task.files();
    let file = files.get(iocb.fildes.cast_signed())?;
    let signal = match iocb.flags & IOCB_FLAG_RESFD {
        0 => None,
        _ => {
            let eventfd = files.get(iocb.resfd.cast_signed())?;
            if eventfd.downcast::<Eventfd>().is_none() {
                return Err(Errno::EINVAL.into());
            }
            Some(eventfd)
        }
    };
    // The key of a request that io_cancel(2) may name.
    cx.write_value(at.wrapping_add(8), &0u32)?;
    if iocb.lio_opcode == IOCB_CMD_POLL {
        return poll(cx, context, &file, &iocb, at, signal.is_some());
    }
    let result = match transfer(cx, &file, &iocb) {
        Ok(value) => i64::try_from(value).unwrap_or(i64::MAX),
        Err(Outcome::Refused(fail)) => return Err(fail),
        Err(Outcome::Failed(errno)) => -i64::from(errno.raw()),
    };
    context.complete(IoEvent { data: iocb.data, obj: at, res: result, res2: 0 });
    if let Some(eventfd) = signal.as_ref().and_then(|file| file.downcast::<Eventfd>()) {
        eventfd.signal();
    }
    Ok(())
}

/// How a transfer fails: when it is submitted, or in its event.
enum Outcome {
    Refused(Fail),
    Failed(Errno),
}

impl From<Errno> for Outcome {
    fn from(errno: Errno) -> Self {
        Outcome::Refused(errno.into())
    }
}

fn transfer(cx: &mut Cx, file: &Arc<File>, iocb: &Iocb) -> Result<u64, Outcome> {
    let write = match iocb.lio_opcode {
        IOCB_CMD_PREAD | IOCB_CMD_PREADV => false,
        IOCB_CMD_PWRITE | IOCB_CMD_PWRITEV => true,
        op @ (IOCB_CMD_FSYNC | IOCB_CMD_FDSYNC) => {
            if iocb.buf != 0 || iocb.offset != 0 || iocb.nbytes != 0 || iocb.rw_flags != 0 {
                return Err(Errno::EINVAL.into());
            }
            return match file.ops.fsync(op == IOCB_CMD_FDSYNC) {
                Ok(()) => Ok(0),
                // A file that cannot be synced is refused at once.
                Err(Fail::Error(Errno::EINVAL)) => Err(Errno::EINVAL.into()),
                Err(fail) => Err(Outcome::Failed(fail.errno().unwrap_or(Errno::EIO))),
            };
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    if iocb.rw_flags != 0 {
        return Err(Outcome::Refused(Fail::gap(Errno::EOPNOTSUPP, "io_submit RWF flags")));
    }
    if write && !file.writable() || !write && !file.readable() {
        return Err(Errno::EBADF.into());
    }
    let count = usize::try_from(iocb.nbytes).map_err(|_| Errno::EINVAL)?;
    let ranges = match iocb.lio_opcode {
        IOCB_CMD_PREADV | IOCB_CMD_PWRITEV => {
            io::read_iovec(cx, iocb.buf, count).map_err(Outcome::Refused)?
        }
        _ => vec![(iocb.buf, count)],
    };
    let at = match file.ops.seekable() {
        true => Some(u64::try_from(iocb.offset).map_err(|_| Outcome::Failed(Errno::EINVAL))?),
        false => None,
    };
    let moved = if write { io::write(cx, file, &ranges, at) } else { io::read(cx, file, &ranges, at) };
    moved.map_err(|fail| match fail.errno() {
        Some(errno) => Outcome::Failed(errno),
        None => Outcome::Refused(fail),
    })
}

fn poll(
    cx: &mut Cx,
    context: &Arc<Context>,
    file: &Arc<File>,
    iocb: &Iocb,
    at: u64,
    signal: bool,
) -> SysResult<()> {
    let mask = u16::try_from(iocb.buf).map_err(|_| Errno::EINVAL)?;
    if iocb.offset != 0 || iocb.nbytes != 0 || iocb.rw_flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    if signal {
        cx.note_gap("IOCB_CMD_POLL with IOCB_FLAG_RESFD", Errno::EINVAL);
        return Err(Errno::EINVAL.into());
    }
    context.poll(file, Ready::from_bits_retain(mask.into()), at, iocb.data);
    Ok(())
}

fn wait(
    cx: &mut Cx,
    ctx_id: u64,
    (min_nr, nr): (i64, i64),
    events: Addr,
    deadline: Option<Duration>,
) -> SysResult {
    let context = find(cx, ctx_id)?;
    let least = usize::try_from(min_nr).map_err(|_| Errno::EINVAL)?;
    let most = usize::try_from(nr).ok().filter(|most| *most >= least).ok_or(Errno::EINVAL)?;
    cx.wait_on(&context.queue, Ready::IN);
    let over = deadline.is_some_and(|deadline| time::now() >= deadline);
    match context.take(if over { 0 } else { least }, most) {
        Some(taken) => {
            cx.copy_out(events.addr(), taken.as_bytes())?;
            Ok(taken.len() as u64)
        }
        None => cx.block_until(deadline, Restart::Never),
    }
}

fn deadline(cx: &mut Cx, timeout: In<Timespec>) -> SysResult<Option<Duration>> {
    let until = match timeout.is_null() || cx.call.deadline.is_some() {
        true => None,
        false => {
            let spec: Timespec = cx.read_value(timeout.addr())?;
            Some(time::now().saturating_add(time::from_timespec(&spec)?))
        }
    };
    Ok(cx.deadline(|| until))
}

/// io_getevents(2)
pub fn io_getevents(
    cx: &mut Cx,
    ctx_id: u64,
    min_nr: i64,
    nr: i64,
    events: Addr,
    timeout: In<Timespec>,
) -> SysResult {
    let deadline = deadline(cx, timeout)?;
    wait(cx, ctx_id, (min_nr, nr), events, deadline)
}

/// io_pgetevents(2)
pub fn io_pgetevents(
    cx: &mut Cx,
    ctx_id: u64,
    min_nr: i64,
    nr: i64,
    events: Addr,
    timeout: In<Timespec>,
    usig: In<SigsetArg>,
) -> SysResult {
    let deadline = deadline(cx, timeout)?;
    let mask = match usig.is_null() {
        true => SigsetArg::default(),
        false => cx.read_value(usig.addr())?,
    };
    with_mask(cx, mask.ss, mask.ss_len, |cx| wait(cx, ctx_id, (min_nr, nr), events, deadline))
}

/// io_cancel(2): a poll ends with an event; anything else is done already.
pub fn io_cancel(cx: &mut Cx, ctx_id: u64, iocb: Addr, _result: Addr) -> SysResult {
    let key: u32 = cx.read_value(iocb.addr().wrapping_add(8))?;
    if key != 0 {
        return Err(Errno::EINVAL.into());
    }
    let context = find(cx, ctx_id)?;
    Err(if context.cancel(iocb.addr()) { Errno::EINPROGRESS } else { Errno::EINVAL }.into())
}
