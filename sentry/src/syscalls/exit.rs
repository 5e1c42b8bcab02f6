//! exit(2), exit_group(2).

use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::exit::by_call;

pub fn exit(cx: &mut Cx, status: i32) -> SysResult {
    by_call(cx, status, false)
}

pub fn exit_group(cx: &mut Cx, status: i32) -> SysResult {
    by_call(cx, status, true)
}
