//! unshare(2), setns(2).

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::fs::nsfs::{self, Namespace};
use crate::task::access::may_inspect;
use crate::task::creds::{Creds, cap};
use crate::task::namespaces::{self, Namespaces};
use crate::task::pidfd;
use crate::task::userns::UserNs;
use crate::vfs::path::Path as Place;
use std::sync::Arc;
use syscall_table::abi::clone::*;
use syscall_table::errno::Errno;

const NAMESPACES: u64 = CLONE_NEWTIME
    | CLONE_NEWNS
    | CLONE_NEWCGROUP
    | CLONE_NEWUTS
    | CLONE_NEWIPC
    | CLONE_NEWUSER
    | CLONE_NEWPID
    | CLONE_NEWNET;

pub fn unshare(cx: &mut Cx, flags: CloneFlags) -> SysResult {
    let flags = flags.bits() & 0xffff_ffff;
    let known = CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM;
    if flags & !(known | NAMESPACES) != 0 {
        return Err(Errno::EINVAL.into());
    }
    // As Linux: these only say that the caller has one thread.
    let alone = CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_NEWUSER;
    if flags & alone != 0 && cx.task.process.thread_count() > 1 {
        return Err(Errno::EINVAL.into());
    }
    let new = match flags & NAMESPACES {
        0 => None,
        wanted => Some(namespaces::make(cx.task, wanted)?),
    };
    if flags & CLONE_FILES != 0 {
        let own = Arc::new(cx.task.files().duplicate());
        let shared = std::mem::replace(&mut *cx.task.files.lock(), own);
        drop(shared);
    }
    if flags & (CLONE_SYSVSEM | CLONE_NEWIPC) != 0 {
        crate::ipc::sysv::sem::leave(cx.task);
    }
    if flags & (CLONE_FS | CLONE_NEWNS | CLONE_NEWUSER) != 0 {
        let own = Arc::new(cx.task.fs().duplicate());
        let shared = std::mem::replace(&mut *cx.task.fs.lock(), own);
        drop(shared);
    }
    if let Some(new) = new {
        new.enter(cx.task);
        cx.task.tell_own();
    }
    Ok(0)
}

/// setns(2): by a namespace's file, or into those of a pidfd's process.
pub fn setns(cx: &mut Cx, fd: Fd, nstype: NsType) -> SysResult {
    let file = cx.task.files().get(fd.raw())?;
    let wanted = u64::from(nstype.bits().cast_unsigned());
    let namespace = file.ops.inode().and_then(|inode| nsfs::namespace(&inode));
    let wanted: Vec<Namespace> = match namespace {
        Some(namespace) if wanted == 0 || wanted == namespace.flag() => vec![namespace],
        Some(_) => return Err(Errno::EINVAL.into()),
        None => {
            let Ok(process) = pidfd::process(&file) else { return Err(Errno::EINVAL.into()) };
            if wanted == 0 || wanted & !NAMESPACES != 0 {
                return Err(Errno::EINVAL.into());
            }
            let other = process.any_thread().ok_or(Errno::ESRCH)?;
            if !may_inspect(cx.task, &other) {
                return Err(Errno::EPERM.into());
            }
            // The user namespace first: it gives the right to enter the others.
            let names = [&b"user"[..], b"mnt", b"uts", b"ipc", b"pid", b"cgroup", b"net", b"time"];
            let all = names.iter().filter_map(|name| Namespace::of(&other, name));
            all.filter(|ns| ns.flag() & wanted != 0).collect()
        }
    };
    // Everything is judged before anything changes.
    let mut creds = cx.task.creds();
    let mut namespaces = cx.task.namespaces();
    let mut places = None;
    for namespace in wanted {
        join(cx, namespace, &mut creds, &mut namespaces, &mut places)?;
    }
    *cx.task.creds.lock() = creds;
    if !Arc::ptr_eq(&cx.task.ipc(), &namespaces.ipc) {
        // What is to be undone belongs to the objects left behind.
        crate::ipc::sysv::sem::leave(cx.task);
    }
    let old = std::mem::replace(&mut *cx.task.namespaces.lock(), namespaces);
    drop(old);
    if let Some(root) = places {
        let fs = cx.task.fs();
        fs.set_root(root.clone());
        fs.set_cwd(root);
    }
    cx.task.tell_own();
    Ok(0)
}

/// Notes what joining one namespace changes.
fn join(
    cx: &Cx,
    namespace: Namespace,
    creds: &mut Arc<Creds>,
    namespaces: &mut Namespaces,
    root: &mut Option<Place>,
) -> SysResult<()> {
    let need = |may: bool| if may { Ok(()) } else { Err(Fail::Error(Errno::EPERM)) };
    let alone = Arc::strong_count(&*cx.task.fs.lock()) == 1;
    match namespace {
        Namespace::User(ns) => {
            if ns == creds.ns || cx.task.process.thread_count() > 1 || !alone {
                return Err(Errno::EINVAL.into());
            }
            need(creds.capable_in(&ns, cap::SYS_ADMIN))?;
            *creds = Arc::new(namespaces::entering(creds, ns));
        }
        Namespace::Mnt(ns) => {
            let may = creds.capable_in(&ns.owner, cap::SYS_ADMIN);
            need(may && creds.has(cap::SYS_CHROOT) && creds.has(cap::SYS_ADMIN))?;
            if !alone {
                return Err(Errno::EINVAL.into());
            }
            let mount = ns.root().ok_or(Errno::EINVAL)?;
            let top = Place { dentry: mount.root.clone(), mount };
            *root = Some(cx.kernel().vfs.mounted(top));
            namespaces.mnt = ns;
        }
        Namespace::Time(ns) => {
            need(creds.capable_in(&ns.owner, cap::SYS_ADMIN) && creds.has(cap::SYS_ADMIN))?;
            if cx.task.process.thread_count() > 1 {
                return Err(Errno::EUSERS.into());
            }
            // As the children's alone: see `task::timens`.
            namespaces.time_for_children = ns;
        }
        Namespace::Uts(ns) => {
            need(creds.capable_in(&ns.owner, cap::SYS_ADMIN) && creds.has(cap::SYS_ADMIN))?;
            namespaces.uts = ns;
        }
        Namespace::Cgroup(ns) => {
            let owner = ns.as_ref().map_or_else(UserNs::first, |ns| ns.owner.clone());
            need(creds.capable_in(&owner, cap::SYS_ADMIN) && creds.has(cap::SYS_ADMIN))?;
            namespaces.cgroup = ns;
        }
        Namespace::Ipc(ns) => {
            need(creds.capable_in(&ns.owner, cap::SYS_ADMIN) && creds.has(cap::SYS_ADMIN))?;
            namespaces.ipc = ns;
        }
        Namespace::Net(ns) => {
            need(creds.capable_in(&ns.owner, cap::SYS_ADMIN) && creds.has(cap::SYS_ADMIN))?;
            namespaces.net = ns;
        }
        Namespace::Pid(ns) => {
            need(creds.capable_in(&ns.owner, cap::SYS_ADMIN) && creds.has(cap::SYS_ADMIN))?;
            // Children never get out of what their parent is in.
            if !ns.is_within(&cx.task.process.pidns) {
                return Err(Errno::EINVAL.into());
            }
            namespaces.pid = ns;
        }
    }
    Ok(())
}
