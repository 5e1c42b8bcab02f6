//! getrandom(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::errno::Errno;

const KNOWN: u32 = 7;
const RANDOM: u32 = 2;
const INSECURE: u32 = 4;

/// getrandom(2): from the host's generator, a part at a time, so that a large request holds nothing up.
pub fn getrandom(cx: &mut Cx, buf: OutBuf, buflen: usize, flags: GetrandomFlags) -> SysResult {
    if flags.unknown(KNOWN) != 0 || flags.has(RANDOM | INSECURE) {
        return Err(Errno::EINVAL.into());
    }
    let total = buflen.min(1 << 25);
    let mut part = [0u8; 4096];
    let mut done = 0;
    while done < total {
        let want = (total - done).min(part.len());
        let Some(bytes) = part.get_mut(..want) else { break };
        let got = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
        let at = buf.addr().checked_add(done as u64).ok_or(Errno::EFAULT)?;
        match cx.copy_out(at, part.get(..got).unwrap_or_default()) {
            Ok(()) => done += got,
            Err(_) if done > 0 => break,
            Err(fail) => return Err(fail),
        }
    }
    Ok(done as u64)
}
