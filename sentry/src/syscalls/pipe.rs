//! pipe(2), pipe2(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::{install_file, pipe};
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// pipe(2)
pub fn pipe(cx: &mut Cx, pipefd: Out<FdPair>) -> SysResult {
    pipe2(cx, pipefd, OpenFlags(0))
}

/// pipe2(2)
pub fn pipe2(cx: &mut Cx, pipefd: Out<FdPair>, flags: OpenFlags) -> SysResult {
    if flags.unknown(O_CLOEXEC | O_NONBLOCK | O_DIRECT) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let cloexec = flags.has(O_CLOEXEC);
    let creds = cx.task.creds();
    let owner = (creds.fsuid, creds.fsgid);
    let (read, write) = pipe::pair(flags.bits() & (O_NONBLOCK | O_DIRECT), owner);
    let read = install_file(cx, read, cloexec)?;
    let result = install_file(cx, write, cloexec).and_then(|write| {
        let pair = FdPair { fds: [read, write] };
        cx.write_value(pipefd.addr(), &pair).inspect_err(|_| drop(cx.task.files().remove(write)))
    });
    if let Err(fail) = result {
        drop(cx.task.files().remove(read));
        return Err(fail);
    }
    Ok(0)
}
