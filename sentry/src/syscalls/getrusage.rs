//! getrusage(2), times(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::usage;
use crate::time::now;
use syscall_table::abi::getrlimit::*;
use syscall_table::errno::Errno;

pub fn getrusage(cx: &mut Cx, who: RusageWho, rusage: Out<Rusage>) -> SysResult {
    let process = cx.task.process.clone();
    let used = match who.bits() {
        RUSAGE_SELF => {
            usage::settle(cx, &process)?;
            usage::of_own_process(cx)?
        }
        RUSAGE_CHILDREN => {
            usage::settle(cx, &process)?;
            process.usage.lock().children
        }
        RUSAGE_THREAD => {
            // The largest resident size is the process's.
            let max_rss = process.usage.lock().ended.max_rss;
            let used = usage::of_caller(cx)?;
            platform::Rusage { max_rss: used.max_rss.max(max_rss), ..used }
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    process.timers.check();
    cx.write_value(rusage.addr(), &usage::rusage(used))?;
    Ok(0)
}

pub fn times(cx: &mut Cx, buf: Out<Tms>) -> SysResult {
    if !buf.is_null() {
        let own = usage::of_process(&cx.task.process);
        let children = cx.task.process.usage.lock().children.cpu;
        let tms = Tms {
            tms_utime: usage::ticks(own.user),
            tms_stime: usage::ticks(own.system),
            tms_cutime: usage::ticks(children.user),
            tms_cstime: usage::ticks(children.system),
        };
        cx.write_value(buf.addr(), &tms)?;
    }
    Ok(usage::ticks(now()) as u64)
}
