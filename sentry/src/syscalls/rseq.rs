//! rseq(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use syscall_table::errno::Errno;

/// As a kernel without CONFIG_RSEQ: C libraries ask at every start and do without.
pub fn rseq(_cx: &mut Cx, _rseq: Addr, _len: u32, _flags: RseqFlags, _sig: u32) -> SysResult {
    Err(Errno::ENOSYS.into())
}
