//! open(2), openat(2), openat2(2), creat(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::Fail;
use crate::fail::SysResult;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::open::*;
use syscall_table::errno::Errno;

fn open_at(cx: &mut Cx, dirfd: i32, path: Path, flags: i32, mode: u32, resolve: u64) -> SysResult {
    check(flags)?;
    let path = cx.read_path(path.addr())?;
    let task = cx.task;
    let opened = cx.kernel().vfs.open_resolving(task, dirfd, &path, flags, mode, resolve);
    if matches!(opened, Err(Fail::Error(Errno::ENOENT)))
        && (path.starts_with(b"/proc/") || path.starts_with(b"/sys/"))
        && !numbered(&path)
        // The root of the cgroup tree has no limit files on Linux either.
        && !path.starts_with(b"/sys/fs/cgroup/")
    {
        let detail = format!("path {}", String::from_utf8_lossy(&path));
        return Err(Fail::gap(Errno::ENOENT, detail));
    }
    let file = opened?;
    let file = crate::fs::opened(cx, file)?;
    let limit = task.process.limit(RLIMIT_NOFILE);
    let fd = task.files().install(file, flags & O_CLOEXEC != 0, 0, limit)?;
    Ok(u64::from(fd.unsigned_abs()))
}

/// What Linux refuses before it looks at the path (build_open_flags).
fn check(flags: i32) -> SysResult<()> {
    let makes_directory = flags & (O_CREAT | O_DIRECTORY) == O_CREAT | O_DIRECTORY;
    let nameless = flags & __O_TMPFILE != 0;
    let half = nameless && (flags & O_DIRECTORY == 0 || flags & O_ACCMODE == O_RDONLY);
    if flags & O_PATH == 0 && (makes_directory || half) {
        return Err(Errno::EINVAL.into());
    }
    Ok(())
}

/// /proc/123/...: a process that is gone is no gap.
fn numbered(path: &[u8]) -> bool {
    path.split(|b| *b == b'/').nth(2).is_some_and(|n| n.first().is_some_and(u8::is_ascii_digit))
}

pub fn open(cx: &mut Cx, path: Path, flags: OpenFlags, mode: Mode) -> SysResult {
    open_at(cx, AT_FDCWD, path, flags.bits(), mode.raw(), 0)
}

pub fn openat(cx: &mut Cx, dirfd: DirFd, path: Path, flags: OpenFlags, mode: Mode) -> SysResult {
    open_at(cx, dirfd.raw(), path, flags.bits(), mode.raw(), 0)
}

pub fn creat(cx: &mut Cx, path: Path, mode: Mode) -> SysResult {
    open_at(cx, AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode.raw(), 0)
}

pub fn openat2(cx: &mut Cx, dirfd: DirFd, path: Path, how: InBuf, size: usize) -> SysResult {
    let known = size_of::<OpenHow>();
    if size < known {
        return Err(Errno::EINVAL.into());
    }
    if size > 4096 {
        return Err(Errno::E2BIG.into());
    }
    let value: OpenHow = cx.read_value(how.addr())?;
    let mut rest = vec![0u8; size.saturating_sub(known)];
    cx.copy_in(how.addr().wrapping_add(known as u64), &mut rest)?;
    if rest.iter().any(|b| *b != 0) {
        return Err(Errno::E2BIG.into());
    }
    let all = OPEN_FLAGS.iter().fold(0, |all, (_, bit)| all | bit);
    let flags = i32::try_from(value.flags).map_err(|_| Errno::EINVAL)?;
    let resolve_all = RESOLVE_FLAGS.iter().fold(0, |all, (_, bit)| all | bit);
    let creates = flags & O_CREAT != 0 || flags & O_TMPFILE == O_TMPFILE;
    let both = RESOLVE_BENEATH | RESOLVE_IN_ROOT;
    if flags & !all != 0
        || value.resolve & !resolve_all != 0
        || value.resolve & both == both
        || (value.mode != 0 && !creates)
        || value.mode & !0o7777 != 0
        || (flags & O_PATH != 0 && flags & !(O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) != 0)
    {
        return Err(Errno::EINVAL.into());
    }
    check(flags)?;
    // What changes something waits for it (build_open_flags in Linux).
    let changes = creates || flags & O_TRUNC != 0;
    if value.resolve & RESOLVE_CACHED != 0 && changes {
        return Err(Errno::EAGAIN.into());
    }
    open_at(cx, dirfd.raw(), path, flags, u32::try_from(value.mode).unwrap_or(0), value.resolve)
}
