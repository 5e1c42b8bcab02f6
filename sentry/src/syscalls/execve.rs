//! execve(2), execveat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::exec::{self, ARG_LEN_MAX, Program};
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

/// Most bytes that are read before the stack limit is looked at.
const TOTAL_MAX: usize = 8 << 20;

pub fn execve(cx: &mut Cx, path: Path, argv: CStrArray, envp: CStrArray) -> SysResult {
    run(cx, AT_FDCWD, path, argv, envp, 0)
}

pub fn execveat(
    cx: &mut Cx,
    dirfd: DirFd,
    path: Path,
    argv: CStrArray,
    envp: CStrArray,
    flags: AtFlags,
) -> SysResult {
    if flags.unknown(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0 {
        return Err(Errno::EINVAL.into());
    }
    run(cx, dirfd.raw(), path, argv, envp, flags.bits())
}

fn run(cx: &mut Cx, dirfd: i32, path: Path, argv: CStrArray, envp: CStrArray, flags: i32) -> SysResult {
    cx.port()?;
    let path = cx.read_path(path.addr())?;
    let file = exec::open_at(cx, dirfd, &path, flags)?;
    let mut room = TOTAL_MAX;
    let argv = strings(cx, argv, &mut room)?;
    let envp = strings(cx, envp, &mut room)?;
    // What /proc and AT_EXECFN show of a program opened by descriptor.
    let path = match path.first() {
        Some(b'/') => path,
        _ if dirfd == AT_FDCWD => path,
        None => format!("/dev/fd/{dirfd}").into_bytes(),
        Some(_) => [format!("/dev/fd/{dirfd}/").as_bytes(), &path].concat(),
    };
    exec::execve(cx, file, Program { path, argv, envp })
}

/// A NULL-terminated array of strings; NULL itself is an empty one.
fn strings(cx: &mut Cx, array: CStrArray, room: &mut usize) -> SysResult<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    if array.is_null() {
        return Ok(strings);
    }
    let mut at = array.addr();
    loop {
        let pointer: u64 = cx.read_value(at)?;
        if pointer == 0 {
            return Ok(strings);
        }
        let string = cx.read_cstr(pointer, ARG_LEN_MAX - 1, Errno::E2BIG)?;
        *room = room.checked_sub(string.len() + 9).ok_or(Errno::E2BIG)?;
        strings.push(string);
        at = at.checked_add(8).ok_or(Errno::EFAULT)?;
    }
}
