//! getrusage(2), times(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::usage;
use crate::time::now;
use syscall_table::abi::getrlimit::*;
use syscall_table::errno::Errno;

pub fn getrusage(cx: &mut Cx, who: RusageWho, rusage: Out<Rusage>) -> SysResult {
    let cpu = match who.bits() {
        RUSAGE_SELF => usage::of_process(&cx.task.process),
        RUSAGE_CHILDREN => cx.task.process.usage.lock().children,
        RUSAGE_THREAD => usage::of_task(cx.task),
        _ => return Err(Errno::EINVAL.into()),
    };
    cx.write_value(rusage.addr(), &usage::rusage(cpu))?;
    Ok(0)
}

pub fn times(cx: &mut Cx, buf: Out<Tms>) -> SysResult {
    if !buf.is_null() {
        let own = usage::of_process(&cx.task.process);
        let children = cx.task.process.usage.lock().children;
        let tms = Tms { tms_utime: usage::ticks(own), tms_cutime: usage::ticks(children), ..Tms::default() };
        cx.write_value(buf.addr(), &tms)?;
    }
    Ok(usage::ticks(now()) as u64)
}
