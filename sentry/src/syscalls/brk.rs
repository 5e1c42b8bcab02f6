//! brk(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;

/// brk(2): the kernel's form, which returns the end of the heap whatever happens.
pub fn brk(cx: &mut Cx, addr: Addr) -> SysResult {
    let mm = cx.task.mm();
    if addr.is_null() {
        return Ok(mm.layout.lock().heap().1);
    }
    mm.set_room(&cx.task.process);
    mm.brk(cx.memory_port(false)?, addr.addr())
}
