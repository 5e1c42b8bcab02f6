//! uname(2), sethostname(2), setdomainname(2), sysinfo(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::creds::cap;
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

fn put(field: &mut [u8; 65], text: impl AsRef<[u8]>) {
    for (to, from) in field.iter_mut().take(64).zip(text.as_ref()) {
        *to = *from;
    }
}

/// uname(2)
pub fn uname(cx: &mut Cx, buf: Out<Utsname>) -> SysResult {
    let mut name = Utsname::new_zeroed();
    put(&mut name.sysname, "Linux");
    {
        let uts = cx.task.namespaces().uts;
        let names = uts.names.lock();
        put(&mut name.nodename, &names.host);
        put(&mut name.domainname, &names.domain);
    }
    let persona = cx.task.process.personality.load(Relaxed);
    put(&mut name.release, if persona & UNAME26 != 0 { RELEASE_26 } else { RELEASE });
    put(&mut name.version, VERSION);
    put(&mut name.machine, if persona & PER_MASK == PER_LINUX32 { "i686" } else { "x86_64" });
    cx.write_value(buf.addr(), &name).map(|()| 0)
}

/// A new name, of somebody who may give it.
fn given(cx: &mut Cx, name: InBuf, len: i32) -> SysResult<Vec<u8>> {
    if !cx.task.creds().capable_in(&cx.task.namespaces().uts.owner, cap::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let len = usize::try_from(len).ok().filter(|len| *len <= MOST).ok_or(Errno::EINVAL)?;
    let mut bytes = vec![0; len];
    cx.copy_in(name.addr(), &mut bytes)?;
    Ok(bytes)
}

/// __NEW_UTS_LEN
const MOST: usize = 64;

/// sethostname(2)
pub fn sethostname(cx: &mut Cx, name: InBuf, len: i32) -> SysResult {
    let name = given(cx, name, len)?;
    cx.task.namespaces().uts.names.lock().host = name;
    Ok(0)
}

/// setdomainname(2)
pub fn setdomainname(cx: &mut Cx, name: InBuf, len: i32) -> SysResult {
    let name = given(cx, name, len)?;
    cx.task.namespaces().uts.names.lock().domain = name;
    Ok(0)
}

/// sysinfo(2)
pub fn sysinfo(cx: &mut Cx, info: Out<Sysinfo>) -> SysResult {
    let host = rustix::system::sysinfo();
    let mut out = Sysinfo::new_zeroed();
    let offset = cx.task.clock_offsets().boottime;
    let up = time::shifted(time::ticks::uptime(), offset);
    out.uptime = up.as_secs().saturating_add(1) as i64;
    out.mem_unit = 1;
    // Fixed-point numbers with 16 bits behind the point (SI_LOAD_SHIFT).
    let load = (crate::fs::proc::load(cx.task) * 65536.0) as u64;
    out.loads = [load; 3];
    (out.totalram, out.freeram) = crate::memory::total_and_free();
    if crate::memory::limit().is_none() {
        out.bufferram = host.bufferram.saturating_mul(u64::from(host.mem_unit.max(1)));
    }
    out.procs = u16::try_from(cx.kernel().tree.task_count()).unwrap_or(u16::MAX);
    cx.write_value(info.addr(), &out).map(|()| 0)
}
