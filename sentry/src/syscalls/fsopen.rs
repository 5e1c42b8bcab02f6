//! fsopen(2), fsconfig(2), fsmount(2), fspick(2).

use super::mount::{read_only_from_start, set_read_only};
use super::open_tree::{FSMOUNT_VALID, access_times, install, place, plain};
use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::fs::kinds::{self, Options};
use crate::sync::{Level, Lock};
use crate::task::creds::cap;
use crate::vfs::attr::Attr;
use crate::vfs::dir::LooseTree;
use crate::vfs::file::{File, FileOps};
use crate::vfs::mount::{Mount, Super};
use crate::vfs::path::Path as Place;
use std::sync::Arc;
use syscall_table::abi::mount::*;
use syscall_table::abi::open::{AT_FDCWD, O_PATH, O_RDWR};
use syscall_table::errno::Errno;

const FSOPEN_CLOEXEC: u32 = 1;
const FSPICK_CLOEXEC: u32 = 1;
const FSPICK_SYMLINK_NOFOLLOW: u32 = 2;
const FSPICK_NO_AUTOMOUNT: u32 = 4;
const FSPICK_EMPTY_PATH: u32 = 8;

/// How far a file system is.
enum Phase {
    /// Options are taken for one that is to be made.
    Create,
    /// It is made.
    Made(Arc<Super>),
    /// Options are taken for one that is mounted.
    Reconfigure(Arc<Super>),
    /// Nothing more is taken.
    Failed,
}

struct Context {
    kind: &'static str,
    phase: Phase,
    options: Options,
    source: Option<String>,
}

/// The object behind a descriptor of fsopen(2).
struct FsFile(Lock<Context>);

impl FileOps for FsFile {
    /// Messages, of which there are none.
    fn read(&self, _: &mut Cx, _: &File, _: &mut [u8], _: u64) -> SysResult<usize> {
        Err(Errno::ENODATA.into())
    }

    fn attr(&self) -> SysResult<Attr> {
        Ok(Attr { mode: 0o600, nlink: 1, blksize: 4096, ..Attr::default() })
    }

    fn describe(&self) -> String {
        "anon_inode:[fscontext]".into()
    }
}

fn context(kind: &'static str, phase: Phase) -> Arc<File> {
    let context = Context { kind, phase, options: Options::default(), source: None };
    File::new(Arc::new(FsFile(Lock::new(Level::Pos, context))), O_RDWR, None)
}

pub fn fsopen(cx: &mut Cx, fsname: CStr, flags: NewMountFlags) -> SysResult {
    cx.kernel().vfs.may_mount(cx.task)?;
    if flags.unknown(FSOPEN_CLOEXEC) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let name = cx.read_cstr(fsname.addr(), 4095, Errno::EINVAL)?;
    let kind = kinds::find(&name)?;
    install(cx, context(kind, Phase::Create), flags.has(FSOPEN_CLOEXEC))
}

/// Whether the arguments fit the command; EOPNOTSUPP for commands that there are not.
fn check(cmd: u32, key: bool, value: bool, aux: i32) -> SysResult<()> {
    let fits = match cmd {
        FSCONFIG_SET_FLAG => key && !value && aux == 0,
        FSCONFIG_SET_STRING => key && value && aux == 0,
        FSCONFIG_SET_BINARY => key && value && aux > 0 && aux <= 1 << 20,
        FSCONFIG_SET_PATH | FSCONFIG_SET_PATH_EMPTY => key && value && (aux == AT_FDCWD || aux >= 0),
        FSCONFIG_SET_FD => key && !value && aux >= 0,
        FSCONFIG_CMD_CREATE | FSCONFIG_CMD_CREATE_EXCL | FSCONFIG_CMD_RECONFIGURE => {
            !key && !value && aux == 0
        }
        _ => return Err(Errno::EOPNOTSUPP.into()),
    };
    if fits { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

pub fn fsconfig(cx: &mut Cx, fd: Fd, cmd: FsconfigCmd, key: CStr, value: Addr, aux: i32) -> SysResult {
    if fd.raw() < 0 {
        return Err(Errno::EINVAL.into());
    }
    let cmd = cmd.bits();
    check(cmd, key.addr() != 0, value.addr() != 0, aux)?;
    let file = cx.task.files().get(fd.raw())?;
    let fs = file.downcast::<FsFile>().ok_or(Errno::EINVAL)?;
    let name = match key.addr() {
        0 => Vec::new(),
        addr => cx.read_cstr(addr, 255, Errno::EINVAL)?,
    };
    let value = match cmd {
        FSCONFIG_SET_STRING => Some(cx.read_cstr(value.addr(), 255, Errno::EINVAL)?),
        _ => None,
    };
    let mut context = fs.0.lock();
    match cmd {
        FSCONFIG_CMD_CREATE | FSCONFIG_CMD_CREATE_EXCL => create(cx, &mut context, cmd),
        FSCONFIG_CMD_RECONFIGURE => {
            let Phase::Reconfigure(sb) = &context.phase else { return Err(Errno::EBUSY.into()) };
            if !cx.task.creds().capable_in(&sb.owner, cap::SYS_ADMIN) {
                return Err(Errno::EPERM.into());
            }
            if let Some(read_only) = context.options.read_only {
                set_read_only(sb, read_only)?;
            }
            kinds::reconfigure(sb, &context.options)?;
            context.options = Options::default();
            Ok(0)
        }
        _ if !matches!(context.phase, Phase::Create | Phase::Reconfigure(_)) => Err(Errno::EBUSY.into()),
        FSCONFIG_SET_FLAG | FSCONFIG_SET_STRING => {
            if name == b"source" {
                let source = value.filter(|_| context.source.is_none()).ok_or(Errno::EINVAL)?;
                context.source = Some(String::from_utf8_lossy(&source).into_owned());
                return Ok(0);
            }
            let kind = context.kind;
            context.options.add(cx.task, kind, &name, value.as_ref()).map(|()| 0)
        }
        // No file system here has options of these kinds.
        _ => Err(Errno::EINVAL.into()),
    }
}

fn create(cx: &Cx, context: &mut Context, cmd: u32) -> SysResult {
    if !matches!(context.phase, Phase::Create) {
        return Err(Errno::EBUSY.into());
    }
    kinds::may(cx.task, context.kind)?;
    let made = kinds::make(cx.task, context.kind, &context.options);
    let sb = match made {
        Ok(sb) if cmd == FSCONFIG_CMD_CREATE_EXCL && Arc::strong_count(&sb) > 1 => {
            context.phase = Phase::Failed;
            return Err(Errno::EBUSY.into());
        }
        Ok(sb) => sb,
        Err(fail) => {
            context.phase = Phase::Failed;
            return Err(fail);
        }
    };
    if context.options.read_only == Some(true) {
        read_only_from_start(&sb);
    }
    context.phase = Phase::Made(sb);
    Ok(0)
}

pub fn fsmount(cx: &mut Cx, fsfd: Fd, flags: NewMountFlags, attr_flags: NewMountFlags) -> SysResult {
    let vfs = &cx.kernel().vfs;
    vfs.may_mount(cx.task)?;
    let attr = u64::from(attr_flags.bits());
    if flags.unknown(FSOPEN_CLOEXEC) != 0 || attr & !FSMOUNT_VALID != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mount_flags = plain(attr) | access_times(attr)?;
    let file = cx.task.files().get(fsfd.raw())?;
    let fs = file.downcast::<FsFile>().ok_or(Errno::EINVAL)?;
    let mount = {
        let mut context = fs.0.lock();
        let sb = match &context.phase {
            Phase::Made(sb) => sb.clone(),
            Phase::Reconfigure(_) => return Err(Errno::EBUSY.into()),
            _ => return Err(Errno::EINVAL.into()),
        };
        let source = context.source.take().unwrap_or_else(|| "none".to_owned());
        context.phase = Phase::Reconfigure(sb.clone());
        context.options = Options::default();
        Mount::new(&sb, sb.root.clone(), source, mount_flags)
    };
    let space = vfs.loose(cx.task, std::slice::from_ref(&mount))?;
    let root = Place { dentry: mount.root.clone(), mount };
    let file = File::new(Arc::new(LooseTree::new(root.inode().clone(), space)), O_PATH, Some(root));
    install(cx, file, flags.has(FSOPEN_CLOEXEC))
}

pub fn fspick(cx: &mut Cx, dirfd: DirFd, path: Path, flags: NewMountFlags) -> SysResult {
    cx.kernel().vfs.may_mount(cx.task)?;
    let known = FSPICK_CLOEXEC | FSPICK_SYMLINK_NOFOLLOW | FSPICK_NO_AUTOMOUNT | FSPICK_EMPTY_PATH;
    if flags.unknown(known) != 0 {
        return Err(Errno::EINVAL.into());
    }
    let follow = !flags.has(FSPICK_SYMLINK_NOFOLLOW);
    let at = place(cx, dirfd, path, follow, flags.has(FSPICK_EMPTY_PATH))?;
    if !Arc::ptr_eq(&at.dentry, &at.mount.root) {
        return Err(Errno::EINVAL.into());
    }
    let sb = at.mount.sb.clone();
    install(cx, context(sb.fstype, Phase::Reconfigure(sb)), flags.has(FSPICK_CLOEXEC))
}
