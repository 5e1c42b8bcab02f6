//! ioctl(2): the requests of every descriptor, then the object's own.

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use syscall_table::abi::ioctl::*;
use syscall_table::abi::open::{FASYNC, O_NONBLOCK, O_PATH};
use syscall_table::errno::Errno;

pub fn ioctl(cx: &mut Cx, fd: Fd, request: IoctlRequest, arg: u64) -> SysResult {
    let files = cx.task.files();
    let file = files.get(fd.raw())?;
    if file.flags() & O_PATH != 0 {
        return Err(Errno::EBADF.into());
    }
    match request.bits() {
        FIOCLEX => files.set_cloexec(fd.raw(), true).map(|()| 0),
        FIONCLEX => files.set_cloexec(fd.raw(), false).map(|()| 0),
        FIONBIO => {
            let on: i32 = cx.read_value(arg)?;
            file.set_flags(if on != 0 { O_NONBLOCK } else { 0 }, O_NONBLOCK);
            file.ops.flags_changed(&file);
            Ok(0)
        }
        FIOASYNC => {
            let on: i32 = cx.read_value(arg)?;
            file.set_flags(if on != 0 { FASYNC } else { 0 }, FASYNC);
            file.ops.flags_changed(&file);
            Ok(0)
        }
        FIONREAD if file.ops.inode().is_some_and(|inode| inode.is_file()) => {
            let left = file.ops.size()?.saturating_sub(file.position());
            cx.write_value(arg, &i32::try_from(left).unwrap_or(i32::MAX))?;
            Ok(0)
        }
        // What a file system without reflinks says.
        FICLONE | FICLONERANGE | FIDEDUPERANGE if file.ops.inode().is_some_and(|inode| inode.is_file()) => {
            Err(Errno::EOPNOTSUPP.into())
        }
        other => match file.ops.ioctl(cx, &file, other, arg) {
            // A terminal request to something else is how programs ask what it is.
            Err(Fail::Error(Errno::ENOTTY)) if other >> 8 & 0xff != u32::from(b'T') => {
                Err(Fail::gap(Errno::ENOTTY, format!("ioctl {other:#x}")))
            }
            result => result,
        },
    }
}
