//! Starts the zygote, the template of all guest processes, and the idle init of the guests' pid namespace.
//!
//! Both are fresh execs of an ELF from a memory file (the shim's for this platform), so nothing of the sentry (memory, descriptors,
//! signal handlers, restartable sequences) is in them. The exec runs without address randomisation: the host then
//! puts stack and vDSO above the shim's region, never into it. Guest addresses are the sentry's choice anyway.

use super::TrapConfig;
use crate::hostcalls;
use lazaret_shim::layout;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// What the child does between clone and exec; all prepared beforehand, for it shares our memory.
struct Child {
    elf: i32,
    ctl: i32,
    argv: [*const libc::c_char; 3],
    envp: [*const libc::c_char; 1],
    empty: Option<CString>,
    mounts: bool,
    limits: Vec<(u32, u64)>,
    /// For the init: a descriptor of /proc, and what its namespace's pid_max is to be.
    ids: Option<(i32, Vec<u8>)>,
}

const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x004_0000;
const SECBITS: libc::c_ulong = 0x2f;

extern "C" fn child(arg: *mut libc::c_void) -> i32 {
    // SAFETY: `spawn` passes a Child and sleeps until we exec or exit.
    let child = unsafe { &*arg.cast::<Child>() };
    // SAFETY: plain host calls whose pointers lie in `child`.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        if child.mounts {
            libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            );
            if let Some(dir) = &child.empty {
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
                let options = c"size=4k,mode=111".as_ptr().cast();
                if libc::mount(c"none".as_ptr(), dir.as_ptr(), c"tmpfs".as_ptr(), flags, options) != 0
                    || libc::chdir(dir.as_ptr()) != 0
                    || libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) != 0
                    || libc::umount2(c".".as_ptr(), libc::MNT_DETACH) != 0
                    || libc::chdir(c"/".as_ptr()) != 0
                {
                    libc::_exit(101);
                }
            }
        }
        if let Some((proc, text)) = &child.ids {
            let path = c"sys/kernel/pid_max".as_ptr();
            let fd = libc::openat(*proc, path, libc::O_WRONLY | libc::O_CLOEXEC);
            // Where it cannot be set the other limits stand.
            if fd >= 0 {
                libc::write(fd, text.as_ptr().cast(), text.len());
                libc::close(fd);
            }
        }
        for (resource, value) in &child.limits {
            let limit = libc::rlimit { rlim_cur: *value, rlim_max: *value };
            libc::setrlimit(*resource, &raw const limit);
        }
        for cap in 0..64 {
            libc::prctl(libc::PR_CAPBSET_DROP, cap, 0, 0, 0);
        }
        libc::prctl(libc::PR_SET_SECUREBITS, SECBITS, 0, 0, 0);
        libc::personality(ADDR_NO_RANDOMIZE);
        if child.ctl >= 0 {
            libc::dup2(child.ctl, layout::CTL_FD as i32);
            // It may have had this number before, and would then be closed by the exec.
            libc::fcntl(layout::CTL_FD as i32, libc::F_SETFD, 0);
        }
        libc::syscall(
            libc::SYS_execveat,
            child.elf,
            c"".as_ptr(),
            child.argv.as_ptr(),
            child.envp.as_ptr(),
            libc::AT_EMPTY_PATH,
        );
        libc::_exit(102)
    }
}

/// An ELF as a memory file, numbered so that the child's dup2 does not hit it.
fn elf_file(elf: &[u8]) -> io::Result<OwnedFd> {
    const MFD_EXEC: u32 = 0x10;
    let make = |flags| {
        // SAFETY: the name is a C string; the descriptor is new and ours.
        unsafe {
            let fd = libc::memfd_create(c"lazaret-shim".as_ptr(), flags);
            if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
        }
    };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Kernels before 6.3 do not know MFD_EXEC and need none.
    let fd = make(flags | MFD_EXEC).or_else(|_| make(flags))?;
    let mut rest = elf;
    while !rest.is_empty() {
        let done = rustix::io::write(&fd, rest)?;
        rest = rest.get(done..).unwrap_or_default();
    }
    Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 16)?)
}

fn spawn(child_args: &mut Child, namespaces: i32) -> io::Result<(i32, OwnedFd)> {
    let mut stack = vec![0u128; 4096];
    let top = stack.as_mut_ptr_range().end;
    let mut pidfd: i32 = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD | namespaces;
    // SAFETY: the child has its own stack, shares our memory until exec while we sleep (VFORK), and makes only
    // plain host calls.
    let pid = unsafe { libc::clone(child, top.cast(), flags, (&raw mut *child_args).cast(), &raw mut pidfd) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: clone just made this descriptor for us.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// The processes started.
pub struct Booted {
    pub zygote: OwnedFd,
    pub zygote_pid: i32,
    pub init: Option<OwnedFd>,
    pub init_pid: Option<i32>,
}

/// Starts the idle init (if there are to be namespaces) and the zygote, both from `elf`; the zygote's shared area
/// is `ctl`.
pub fn boot(config: &TrapConfig, elf: &[u8], ctl: Option<BorrowedFd<'_>>) -> Result<Booted, String> {
    let ctl = ctl.map_or(-1, |fd| fd.as_raw_fd());
    let elf = elf_file(elf).map_err(|e| format!("memory file for the shim: {e}"))?;
    let mut limits = vec![
        (libc::RLIMIT_CORE, 0),
        // A new thread's listener is open until it has been started, and all slots may be filled at once.
        (libc::RLIMIT_NOFILE, u64::from(layout::SLOTS) + 64),
        (libc::RLIMIT_STACK, 8 << 20),
        (libc::RLIMIT_MSGQUEUE, 0),
        (libc::RLIMIT_SIGPENDING, 4096),
    ];
    if let Some(bytes) = config.address_space {
        limits.push((libc::RLIMIT_AS, bytes));
    }
    if let Some(tasks) = config.tasks {
        limits.push((libc::RLIMIT_NPROC, tasks));
    }
    let empty = match &config.empty_dir {
        Some(dir) => Some(CString::new(dir.as_os_str().as_bytes()).map_err(|e| e.to_string())?),
        None => None,
    };
    let mut args = Child {
        elf: elf.as_raw_fd(),
        ctl: -1,
        argv: [c"lazaret-guest".as_ptr(), c"init".as_ptr(), std::ptr::null()],
        envp: [std::ptr::null()],
        empty,
        mounts: false,
        limits: limits.iter().map(|&(resource, value)| (resource, value)).collect(),
        // The kernel reserves 300.
        ids: config.ids.map(|(most, proc)| (proc, format!("{}\n", most.max(301)).into_bytes())),
    };
    let mut init = None;
    let mut namespaces = 0;
    if config.namespaces {
        let own = hostcalls::pidfd_open(std::process::id() as i32).map_err(|e| format!("pidfd_open: {e}"))?;
        // SAFETY: no pointers. Affects only children that this thread makes from now on, until setns below.
        if unsafe { libc::unshare(libc::CLONE_NEWPID) } != 0 {
            return Err(format!("pid namespace for guests: {}", io::Error::last_os_error()));
        }
        init = Some(spawn(&mut args, 0).map_err(|e| format!("init of the guests: {e}"))?);
        namespaces = libc::CLONE_NEWUSER
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS;
        args.ids = None;
        args.mounts = true;
        args.ctl = ctl;
        args.argv[1] = std::ptr::null();
        let zygote = spawn(&mut args, namespaces);
        // SAFETY: no pointers.
        if unsafe { libc::setns(own.as_raw_fd(), libc::CLONE_NEWPID) } != 0 {
            return Err(format!("back to the own pid namespace: {}", io::Error::last_os_error()));
        }
        let (zygote_pid, zygote) = zygote.map_err(|e| format!("guest namespaces: {e}"))?;
        let (init_pid, init) = init.unzip();
        return Ok(Booted { zygote, zygote_pid, init_pid, init });
    }
    args.ctl = ctl;
    args.argv[1] = std::ptr::null();
    let (zygote_pid, zygote) = spawn(&mut args, namespaces).map_err(|e| format!("zygote: {e}"))?;
    let (init_pid, init) = init.unzip();
    Ok(Booted { zygote, zygote_pid, init_pid, init })
}

/// Distance from the vDSO's start back to its first data page, and forward to its end, from this process's own
/// mappings: (0, 0) if there is none.
pub fn vdso_extent() -> (u64, u64) {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return (0, 0) };
    let mut first = None;
    let mut vdso = None;
    for line in maps.lines() {
        let Some((range, _)) = line.split_once(' ') else { continue };
        let Some((start, end)) = range.split_once('-') else { continue };
        let (Ok(start), Ok(end)) = (u64::from_str_radix(start, 16), u64::from_str_radix(end, 16)) else {
            continue;
        };
        if line.contains("[vvar") {
            first = first.or(Some(start));
        } else if line.ends_with("[vdso]") {
            vdso = Some((start, end));
        }
    }
    match (first, vdso) {
        (Some(first), Some((start, end))) if first <= start => (start - first, end - start),
        (None, Some((start, end))) => (0, end - start),
        _ => (0, 0),
    }
}
