//! uname(2), sethostname(2), setdomainname(2), sysinfo(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::time;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::errno::Errno;
use zerocopy::FromZeros;

/// The kernel version that guests see: the newest one whose calls all have a row.
pub const RELEASE: &str = "6.18.0-lazaret";
/// The same as programs that know 2.6 alone want it (setarch --uname-2.6).
const RELEASE_26: &str = "2.6.78-lazaret";
/// personality(2): UNAME26, PER_MASK, PER_LINUX32.
const UNAME26: u32 = 0x2_0000;
const PER_MASK: u32 = 0xff;
const PER_LINUX32: u32 = 8;
/// What uname calls the version.
pub const VERSION: &str = "#1 SMP PREEMPT_DYNAMIC lazaret";

fn put(field: &mut [u8; 65], text: &str) {
    for (to, from) in field.iter_mut().take(64).zip(text.bytes()) {
        *to = from;
    }
}

/// uname(2)
pub fn uname(cx: &mut Cx, buf: Out<Utsname>) -> SysResult {
    let mut name = Utsname::new_zeroed();
    put(&mut name.sysname, "Linux");
    put(&mut name.nodename, &cx.kernel().config.hostname);
    let persona = cx.task.process.personality.load(Relaxed);
    put(&mut name.release, if persona & UNAME26 != 0 { RELEASE_26 } else { RELEASE });
    put(&mut name.version, VERSION);
    put(&mut name.machine, if persona & PER_MASK == PER_LINUX32 { "i686" } else { "x86_64" });
    put(&mut name.domainname, "(none)");
    cx.write_value(buf.addr(), &name).map(|()| 0)
}

/// sethostname(2): the guest has no right to.
pub fn sethostname(_cx: &mut Cx, _name: InBuf, _len: i32) -> SysResult {
    Err(Errno::EPERM.into())
}

/// setdomainname(2): the guest has no right to.
pub fn setdomainname(_cx: &mut Cx, _name: InBuf, _len: i32) -> SysResult {
    Err(Errno::EPERM.into())
}

/// sysinfo(2)
pub fn sysinfo(cx: &mut Cx, info: Out<Sysinfo>) -> SysResult {
    let host = rustix::system::sysinfo();
    let mut out = Sysinfo::new_zeroed();
    out.uptime = time::ticks::uptime().as_secs().saturating_add(1) as i64;
    out.mem_unit = 1;
    let unit = u64::from(host.mem_unit.max(1));
    out.totalram = host.totalram.saturating_mul(unit);
    out.freeram = host.freeram.saturating_mul(unit);
    out.bufferram = host.bufferram.saturating_mul(unit);
    out.procs = u16::try_from(cx.kernel().tree.task_count()).unwrap_or(u16::MAX);
    cx.write_value(info.addr(), &out).map(|()| 0)
}
