//! close(2), close_range(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use std::sync::Arc;
use syscall_table::abi::clone::{CLOSE_RANGE_CLOEXEC, CLOSE_RANGE_UNSHARE};
use syscall_table::errno::Errno;

pub fn close(cx: &mut Cx, fd: Fd) -> SysResult {
    drop(cx.task.files().remove(fd.raw())?);
    Ok(0)
}

pub fn close_range(cx: &mut Cx, first: u32, last: u32, flags: CloseRangeFlags) -> SysResult {
    if flags.unknown(CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE) != 0 || first > last {
        return Err(Errno::EINVAL.into());
    }
    if flags.has(CLOSE_RANGE_UNSHARE) {
        let own = Arc::new(cx.task.files().duplicate());
        let old = std::mem::replace(&mut *cx.task.files.lock(), own);
        drop(old);
    }
    let files = cx.task.files();
    let within = |fd: i32| u32::try_from(fd).is_ok_and(|fd| first <= fd && fd <= last);
    if flags.has(CLOSE_RANGE_CLOEXEC) {
        for fd in files.numbers().into_iter().filter(|fd| within(*fd)) {
            // It may have been closed meanwhile.
            let _ = files.set_cloexec(fd, true);
        }
        return Ok(0);
    }
    drop(files.take_if(|fd, _| within(fd)));
    Ok(0)
}
