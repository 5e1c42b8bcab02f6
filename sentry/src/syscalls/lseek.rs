//! lseek(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

pub fn lseek(cx: &mut Cx, fd: Fd, offset: i64, whence: Whence) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    if !(SEEK_SET..=SEEK_HOLE).contains(&whence.bits()) {
        return Err(Errno::EINVAL.into());
    }
    if file.ops.seeks_nowhere() {
        return Ok(0);
    }
    if !file.ops.seekable() {
        return Err(Errno::ESPIPE.into());
    }
    if let Some(done) = file.ops.seek_own(offset, whence.bits()) {
        return done;
    }
    let mut position = file.pos.lock();
    let to = match whence.bits() {
        SEEK_SET => offset,
        SEEK_CUR => {
            let here = i64::try_from(*position).map_err(|_| Errno::EOVERFLOW)?;
            here.checked_add(offset).ok_or(Errno::EOVERFLOW)?
        }
        SEEK_END => {
            let size = i64::try_from(file.ops.size()?).map_err(|_| Errno::EOVERFLOW)?;
            size.checked_add(offset).ok_or(Errno::EOVERFLOW)?
        }
        SEEK_DATA | SEEK_HOLE => i64::try_from(file.ops.seek_special(&file, offset, whence.bits())?)
            .map_err(|_| Errno::EOVERFLOW)?,
        _ => return Err(Errno::EINVAL.into()),
    };
    let to = u64::try_from(to).map_err(|_| Errno::EINVAL)?;
    *position = to;
    Ok(to)
}
