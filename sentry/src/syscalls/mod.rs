//! Handlers, one file per man-page verb, and the dispatch generated from the table.

use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use syscall_table::errno::Errno;

/// Calls the handler of `cx.call.nr`.
pub(crate) fn dispatch(cx: &mut Cx) -> SysResult {
    let _ = &cx;
    Err(Fail::gap(Errno::ENOSYS, ""))
}
