//! getpid(2), gettid(2), getppid(2), set_tid_address(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use std::sync::atomic::Ordering;

pub fn getpid(cx: &mut Cx) -> SysResult {
    Ok(cx.task.shown(cx.task.process.pid) as u64)
}

pub fn gettid(cx: &mut Cx) -> SysResult {
    Ok(cx.task.own_tid() as u64)
}

pub fn getppid(cx: &mut Cx) -> SysResult {
    let parent = cx.kernel().tree.parent(cx.task.process.pid);
    Ok(cx.task.shown(parent) as u64)
}

pub fn set_tid_address(cx: &mut Cx, tidptr: Addr) -> SysResult {
    cx.task.clear_child_tid.store(tidptr.addr(), Ordering::Relaxed);
    Ok(cx.task.own_tid() as u64)
}
