//! execve(2), execveat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::task::exec::{self, ARG_LEN_MAX, Program};
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

/// Most bytes that are read before the stack limit is looked at.
const TOTAL_MAX: usize = 8 << 20;
const PAGE: usize = 4096;
/// execveat(2): say whether the file may be executed, and do not.
const AT_EXECVE_CHECK: i32 = 0x1_0000;

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
    if flags.unknown(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_EXECVE_CHECK) != 0 {
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
    if flags & AT_EXECVE_CHECK != 0 {
        return Ok(0);
    }
    let by_descriptor = dirfd != AT_FDCWD && path.first() != Some(&b'/');
    let closes = by_descriptor && cx.task.files().get_with_flag(dirfd).is_ok_and(|(_, cloexec)| cloexec);
    // What /proc and AT_EXECFN show of a program opened by descriptor.
    let path = match path.first() {
        Some(b'/') => path,
        _ if dirfd == AT_FDCWD => path,
        None => format!("/dev/fd/{dirfd}").into_bytes(),
        Some(_) => [format!("/dev/fd/{dirfd}/").as_bytes(), &path].concat(),
    };
    exec::execve(cx, file, Program { path, argv, envp, closes })
}

/// What was read of guest memory last, to the end of its page: strings and pointers have neighbours.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// What lies at `at` in its page: at least one byte.
    fn at(&mut self, cx: &mut Cx, at: u64) -> SysResult<&[u8]> {
        if at < self.start || at - self.start >= self.bytes.len() as u64 {
            self.start = at;
            self.bytes.resize(PAGE - at as usize % PAGE, 0);
            let got = cx.copy_in_some(at, &mut self.bytes).inspect_err(|_| self.bytes.clear())?;
            self.bytes.truncate(got);
        }
        let from = (at - self.start) as usize;
        self.bytes.get(from..).filter(|rest| !rest.is_empty()).ok_or(Errno::EFAULT.into())
    }

    /// A pointer, which may lie across pages.
    fn pointer(&mut self, cx: &mut Cx, at: u64) -> SysResult<u64> {
        match self.at(cx, at)?.first_chunk() {
            Some(word) => Ok(u64::from_le_bytes(*word)),
            None => cx.read_value(at),
        }
    }

    /// A string without its NUL.
    fn string(&mut self, cx: &mut Cx, mut at: u64) -> SysResult<Vec<u8>> {
        let mut string = Vec::new();
        loop {
            let rest = self.at(cx, at)?;
            let end = rest.iter().position(|byte| *byte == 0);
            let part = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            string.extend_from_slice(part);
            if string.len() >= ARG_LEN_MAX {
                return Err(Errno::E2BIG.into());
            }
            if end.is_some() {
                return Ok(string);
            }
            at = at.checked_add(part.len() as u64).ok_or(Errno::EFAULT)?;
        }
    }
}

/// A NULL-terminated array of strings; NULL itself is an empty one.
fn strings(cx: &mut Cx, array: CStrArray, room: &mut usize) -> SysResult<Vec<Vec<u8>>> {
    let mut strings = Vec::new();
    if array.is_null() {
        return Ok(strings);
    }
    let mut at = array.addr();
    let (mut pointers, mut texts) = (Window::default(), Window::default());
    loop {
        let pointer = pointers.pointer(cx, at)?;
        if pointer == 0 {
            return Ok(strings);
        }
        let string = texts.string(cx, pointer)?;
        *room = room.checked_sub(string.len() + 9).ok_or(Errno::E2BIG)?;
        strings.push(string);
        at = at.checked_add(8).ok_or(Errno::EFAULT)?;
    }
}
