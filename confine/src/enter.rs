//! Into namespaces: a fork into new and empty ones, with ids mapped.

use crate::host;
use rustix::process::{Pid, WaitOptions, getegid, geteuid, waitpid};
use std::ffi::CStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::RawFd;

/// What failed, and how.
pub type Failed = (&'static str, io::Error);

/// How ids are mapped into the new user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdMap {
    /// All ids that this namespace has, as they are.
    All,
    /// The effective ids alone.
    Own,
}

/// Whose child the new process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kin {
    /// This process's.
    Child,
    /// This process's parent's.
    Sibling,
}

/// The two sides of [`enter_namespaces`].
#[derive(Debug)]
pub enum Side {
    /// The process that forked, and the pid of the new one.
    Old(i32),
    /// The new process: its pid as the old one sees it, and its ids.
    New(i32, IdMap),
}

/// Forks into own user, mount, pid, network, IPC and UTS namespaces, with ids mapped: all of them where that is
/// allowed, else the own one.
///
/// One thread only: the new process has no other, and locks that another holds stay held.
///
/// # Errors
/// In the old process; the new one ends then.
pub fn enter_namespaces(kin: Kin) -> Result<Side, Failed> {
    let (mut from_old, mut to_new) = io::pipe().map_err(|e| ("making a pipe", e))?;
    match host::fork_confined(kin).map_err(|e| ("making namespaces", e))? {
        Some(pid) => {
            // The new process ends when the pipe does.
            let map = write_maps(pid).map_err(|e| ("mapping ids", e))?;
            let [a, b, c, d] = pid.to_le_bytes();
            let message = [u8::from(map == IdMap::All), a, b, c, d];
            to_new.write_all(&message).map_err(|e| ("starting a process", e))?;
            Ok(Side::Old(pid))
        }
        None => {
            drop(to_new);
            let mut message = [0; 5];
            if from_old.read_exact(&mut message).is_err() {
                host::exit_now(125);
            }
            let [all, pid @ ..] = message;
            Ok(Side::New(i32::from_le_bytes(pid), if all == 1 { IdMap::All } else { IdMap::Own }))
        }
    }
}

/// Forks a process that helps from outside the sandbox, in the namespaces of this one, with the name and with these
/// descriptors and the standard ones. Its pid, or none in it. One thread only.
///
/// # Errors
/// What the host says.
pub fn helper(keep: &[RawFd], name: &CStr) -> io::Result<Option<i32>> {
    let child = crate::tracing::fork()?;
    if child.is_none() {
        host::close_all_but(keep);
        host::forget_command_line(name);
    }
    Ok(child)
}

fn write_maps(pid: i32) -> io::Result<IdMap> {
    let file = |name: &str| format!("/proc/{pid}/{name}");
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    if uid == 0 {
        let all = fs::write(file("uid_map"), identity("/proc/self/uid_map")?)
            .and_then(|()| fs::write(file("gid_map"), identity("/proc/self/gid_map")?));
        if all.is_ok() {
            return Ok(IdMap::All);
        }
    }
    fs::write(file("uid_map"), format!("{uid} {uid} 1\n"))?;
    fs::write(file("setgroups"), "deny")?;
    fs::write(file("gid_map"), format!("{gid} {gid} 1\n"))?;
    Ok(IdMap::Own)
}

/// Every id of a map, to itself.
fn identity(map: &str) -> io::Result<String> {
    let lines = fs::read_to_string(map)?;
    let identity = lines.lines().filter_map(|line| {
        let mut numbers = line.split_whitespace();
        let (inside, count) = (numbers.next()?, numbers.nth(1)?);
        Some(format!("{inside} {inside} {count}\n"))
    });
    Ok(identity.collect())
}

/// Whether namespaces can be made here: a child that makes them and ends. One thread only.
///
/// # Errors
/// What the host says.
pub fn try_namespaces() -> io::Result<()> {
    match host::fork_confined(Kin::Child)? {
        Some(pid) => {
            let _ = waitpid(Pid::from_raw(pid), WaitOptions::empty());
            Ok(())
        }
        None => host::exit_now(0),
    }
}

/// What to change where namespaces are forbidden, to be put behind the error.
pub fn hint(error: &io::Error) -> &'static str {
    let is = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    let forbidden = matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EINVAL | libc::EUSERS)
    );
    if !forbidden {
        ""
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "; user namespaces are off: set sysctl user.max_user_namespaces above 0"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "; user namespaces are off for ordinary users: set sysctl kernel.unprivileged_userns_clone=1"
    } else if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "; AppArmor restricts user namespaces: set sysctl kernel.apparmor_restrict_unprivileged_userns=0 or add a profile"
    } else {
        "; user, mount, pid, network, IPC and UTS namespaces and Linux 6.13 are needed"
    }
}
