//! The gofer's system calls: one table from which the filter is built and `lazaret exposure` prints.
//!
//! Anything that is not here kills the gofer. The filter is installed on all threads at once, after the lanes'
//! threads have started, so nothing that starts a thread or a program, makes a socket, or changes mounts,
//! namespaces or ids is here. A gofer without a writable mount does not get the calls that change files.

use std::collections::BTreeMap;
use std::os::fd::RawFd;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};

/// A host call that the gofer's filter admits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The call's name.
    pub call: &'static str,
    /// What its arguments must be; empty for any.
    pub args: String,
    /// Why the gofer needs it.
    pub reason: &'static str,
}

/// What an argument must be.
#[derive(Clone, Copy)]
enum Check {
    /// Any arguments.
    Any,
    /// The argument with this number has none of these bits.
    Without(u8, u32, &'static str),
    /// The argument is this.
    Is(u8, u32, &'static str),
    /// The first argument is the descriptor that tells the launcher that the gofer is ready.
    Ready,
}

/// Which gofers get a call.
#[derive(Clone, Copy, PartialEq)]
enum For {
    All,
    Writable,
}

use Check::{Any, Is, Ready, Without};
use For::{All, Writable};

const PROT_EXEC: Check = Without(2, libc::PROT_EXEC as u32, "prot without PROT_EXEC");

type Row = (&'static str, libc::c_long, Check, For, &'static str);

/// Every call that is admitted.
const RULES: &[Row] = &[
    ("recvmsg", libc::SYS_recvmsg, Any, All, "receives requests, and answers about owners"),
    (
        "sendto",
        libc::SYS_sendto,
        Any,
        All,
        "answers requests; no address can be reached from its network namespace",
    ),
    ("sendmsg", libc::SYS_sendmsg, Any, All, "answers with a descriptor, and asks about owners"),
    (
        "openat2",
        libc::SYS_openat2,
        Any,
        All,
        "walks one component below a held descriptor; makes and lists by the same way",
    ),
    ("openat", libc::SYS_openat, Any, All, "opens a regular file through its held O_PATH descriptor"),
    ("statx", libc::SYS_statx, Any, All, "reads attributes"),
    (
        "fstatfs",
        libc::SYS_fstatfs,
        Any,
        All,
        "tells of a file system, and finds those that are the kernel's own",
    ),
    ("readlinkat", libc::SYS_readlinkat, Any, All, "reads a symbolic link"),
    ("getdents64", libc::SYS_getdents64, Any, All, "lists a directory"),
    ("lseek", libc::SYS_lseek, Any, All, "continues a listing at a cursor"),
    ("getxattr", libc::SYS_getxattr, Any, All, "reads an extended attribute"),
    ("listxattr", libc::SYS_listxattr, Any, All, "lists extended attributes"),
    (
        "inotify_init1",
        libc::SYS_inotify_init1,
        Any,
        All,
        "makes the instance that tells the sentry of changes",
    ),
    (
        "inotify_add_watch",
        libc::SYS_inotify_add_watch,
        Any,
        All,
        "watches a node through its held descriptor",
    ),
    ("inotify_rm_watch", libc::SYS_inotify_rm_watch, Any, All, "ends a watch"),
    ("close", libc::SYS_close, Any, All, "closes forgotten nodes and files that were sent"),
    (
        "fcntl",
        libc::SYS_fcntl,
        Is(1, libc::F_DUPFD_CLOEXEC as u32, "F_DUPFD_CLOEXEC"),
        All,
        "a node of its own for each attach",
    ),
    ("write", libc::SYS_write, Ready, All, "tells the launcher that it is ready"),
    ("mkdirat", libc::SYS_mkdirat, Any, Writable, "makes a directory"),
    ("mknodat", libc::SYS_mknodat, Is(3, 0, "no device"), Writable, "makes a FIFO, socket or regular file"),
    ("symlinkat", libc::SYS_symlinkat, Any, Writable, "makes a symbolic link"),
    ("linkat", libc::SYS_linkat, Any, Writable, "gives an inode one more name"),
    ("renameat2", libc::SYS_renameat2, Any, Writable, "renames"),
    ("renameat", libc::SYS_renameat, Any, Writable, "renames, without flags"),
    ("unlinkat", libc::SYS_unlinkat, Any, Writable, "removes a name"),
    ("fchownat", libc::SYS_fchownat, Any, Writable, "changes an owner"),
    ("fchmodat", libc::SYS_fchmodat, Any, Writable, "changes permission bits"),
    ("utimensat", libc::SYS_utimensat, Any, Writable, "changes times"),
    ("ftruncate", libc::SYS_ftruncate, Any, Writable, "changes a size"),
    ("setxattr", libc::SYS_setxattr, Any, Writable, "sets an extended attribute"),
    ("removexattr", libc::SYS_removexattr, Any, Writable, "removes an extended attribute"),
    ("fsync", libc::SYS_fsync, Any, Writable, "writes a directory or file through to the disk"),
    ("fdatasync", libc::SYS_fdatasync, Any, Writable, "writes a file's data through to the disk"),
    ("syncfs", libc::SYS_syncfs, Any, Writable, "writes a file system through to the disk"),
    ("setfsuid", libc::SYS_setfsuid, Any, Writable, "makes inodes for their owner"),
    ("setfsgid", libc::SYS_setfsgid, Any, Writable, "makes inodes for their group"),
    ("futex", libc::SYS_futex, Any, All, "the threads' locks"),
    ("mmap", libc::SYS_mmap, PROT_EXEC, All, "memory of the allocator"),
    ("mprotect", libc::SYS_mprotect, PROT_EXEC, All, "memory of the allocator"),
    ("munmap", libc::SYS_munmap, Any, All, "memory of the allocator and of ended threads"),
    ("mremap", libc::SYS_mremap, Any, All, "memory of the allocator"),
    ("madvise", libc::SYS_madvise, Any, All, "memory of the allocator and of ended threads"),
    ("brk", libc::SYS_brk, Any, All, "memory of the allocator"),
    ("getrandom", libc::SYS_getrandom, Any, All, "seeds of hash tables"),
    ("sched_yield", libc::SYS_sched_yield, Any, All, "the threads' locks"),
    ("rt_sigprocmask", libc::SYS_rt_sigprocmask, Any, All, "the end of a thread"),
    ("rt_sigreturn", libc::SYS_rt_sigreturn, Any, All, "return from a signal, should one come"),
    ("restart_syscall", libc::SYS_restart_syscall, Any, All, "goes on with a call after a stop"),
    ("sigaltstack", libc::SYS_sigaltstack, Any, All, "the end of a thread"),
    ("exit", libc::SYS_exit, Any, All, "the end of a thread"),
    ("exit_group", libc::SYS_exit_group, Any, All, "the end, when the sentry's sockets close"),
];

/// The host calls that a gofer can make once it serves. Those that only a gofer with a writable mount gets say so.
pub fn exposure() -> Vec<Rule> {
    RULES
        .iter()
        .map(|(call, _, check, whom, reason)| Rule { call, args: describe(*check, *whom), reason })
        .collect()
}

fn describe(check: Check, whom: For) -> String {
    let args = match check {
        Any => "",
        Without(_, _, text) | Is(_, _, text) => text,
        Ready => "fd is the launcher's pipe",
    };
    match (whom, args) {
        (All, args) => args.to_string(),
        (Writable, "") => "with writable mounts only".to_string(),
        (Writable, args) => format!("{args}; with writable mounts only"),
    }
}

/// The filter as the kernel takes it.
///
/// # Errors
/// What the compiler says.
pub(crate) fn compile(writable: bool, ready: RawFd) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for (_, number, check, whom, _) in RULES {
        if *whom == All || writable {
            rules.insert(*number, conditions(*check, ready)?);
        }
    }
    if cfg!(debug_assertions) {
        // The standard library's check, in such builds, that a descriptor which it closes is open.
        let check = conditions(Is(1, libc::F_GETFD as u32, ""), ready)?;
        rules.entry(libc::SYS_fcntl).or_default().extend(check);
    }
    let filter =
        SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, TargetArch::x86_64)?;
    filter.try_into()
}

/// No rule at all admits any arguments.
fn conditions(check: Check, ready: RawFd) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let (arg, op, value) = match check {
        Any => return Ok(Vec::new()),
        Without(arg, bits, _) => (arg, SeccompCmpOp::MaskedEq(bits.into()), 0),
        Is(arg, value, _) => (arg, SeccompCmpOp::Eq, value.into()),
        Ready => (0, SeccompCmpOp::Eq, u64::from(ready.cast_unsigned())),
    };
    let condition = SeccompCondition::new(arg, SeccompCmpArgLen::Dword, op, value)?;
    Ok(vec![SeccompRule::new(vec![condition])?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_there_once_and_has_a_reason() {
        let mut numbers: Vec<_> = RULES.iter().map(|(_, number, ..)| number).collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), RULES.len());
        assert!(exposure().iter().all(|rule| !rule.reason.is_empty()));
        assert!(compile(false, 3).unwrap().len() < compile(true, 3).unwrap().len());
    }
}
