//! The gofer's host calls: one table from which the filter is built and `lazaret exposure` prints.
//!
//! Anything that is not here kills the gofer. The filter is installed on all threads at once, after the lanes'
//! threads have started, so nothing that starts a thread or a program, makes a socket, or changes mounts,
//! namespaces or ids is here. A gofer without a writable mount does not get the calls that change files.

use confine::bpf::Insn;
use confine::calls;
use confine::rules::Cond::{Given, Is, OneOf, Within};
use confine::rules::{Filter, Otherwise, Rule};

const WRITABLE: &str = "with writable mounts only";

/// What all gofers get beside [`calls::OWN`].
const RULES: &[Rule] = &[
    Rule::new("recvmsg", libc::SYS_recvmsg, &[], "receives requests, and answers about owners"),
    Rule::new("sendto", libc::SYS_sendto, &[Is(4, 0)], "answers requests; no address can be given"),
    Rule::new("sendmsg", libc::SYS_sendmsg, &[], "answers with a descriptor, and asks about owners"),
    Rule::new(
        "openat2",
        libc::SYS_openat2,
        &[],
        "walks one component below a held descriptor; makes and lists by the same way",
    ),
    Rule::new("openat", libc::SYS_openat, &[], "opens a regular file through its held O_PATH descriptor"),
    Rule::new("statx", libc::SYS_statx, &[], "reads attributes"),
    Rule::new(
        "fstatfs",
        libc::SYS_fstatfs,
        &[],
        "tells of a file system, and finds those that are the kernel's own",
    ),
    Rule::new("readlinkat", libc::SYS_readlinkat, &[], "reads a symbolic link"),
    Rule::new("getdents64", libc::SYS_getdents64, &[], "lists a directory"),
    Rule::new("lseek", libc::SYS_lseek, &[OneOf(2, &[(0, "SEEK_SET")])], "continues a listing at a cursor"),
    Rule::new("getxattr", libc::SYS_getxattr, &[], "reads an extended attribute"),
    Rule::new("listxattr", libc::SYS_listxattr, &[], "lists extended attributes"),
    Rule::new(
        "inotify_init1",
        libc::SYS_inotify_init1,
        &[Within(0, &[(0x800, "IN_NONBLOCK"), (0x8_0000, "IN_CLOEXEC")])],
        "makes the instance that tells the sentry of changes",
    ),
    Rule::new(
        "inotify_add_watch",
        libc::SYS_inotify_add_watch,
        &[],
        "watches a node through its held descriptor",
    ),
    Rule::new("inotify_rm_watch", libc::SYS_inotify_rm_watch, &[], "ends a watch"),
    Rule::new(
        "memfd_create",
        libc::SYS_memfd_create,
        &[Within(1, &[(0x1, "MFD_CLOEXEC"), (0x2, "MFD_ALLOW_SEALING")])],
        "memory for the sentry, opened a second time for reading alone",
    ),
    Rule::new(
        "fcntl",
        libc::SYS_fcntl,
        &[OneOf(1, &[(libc::F_DUPFD_CLOEXEC as u32, "F_DUPFD_CLOEXEC")])],
        "a node of its own for each attach, a copy of the watches' instance",
    ),
    Rule::new(
        "write",
        libc::SYS_write,
        &[Given(0, 0, "the launcher's pipe")],
        "tells the launcher that it is ready",
    ),
];

const fn change(
    call: &'static str,
    nr: libc::c_long,
    when: &'static [confine::rules::Cond],
    reason: &'static str,
) -> Rule {
    Rule::new(call, nr, when, reason).only(WRITABLE)
}

/// What gofers with a writable mount get too.
const CHANGES: &[Rule] = &[
    change("mkdirat", libc::SYS_mkdirat, &[], "makes a directory"),
    change(
        "mknodat",
        libc::SYS_mknodat,
        &[OneOf(3, &[(0, "no device")])],
        "makes a FIFO, socket or regular file",
    ),
    change("symlinkat", libc::SYS_symlinkat, &[], "makes a symbolic link"),
    change("linkat", libc::SYS_linkat, &[], "gives an inode one more name"),
    change("renameat2", libc::SYS_renameat2, &[], "renames"),
    change("renameat", libc::SYS_renameat, &[], "renames, without flags"),
    change("unlinkat", libc::SYS_unlinkat, &[], "removes a name"),
    change("fchownat", libc::SYS_fchownat, &[], "changes an owner"),
    change("fchmodat", libc::SYS_fchmodat, &[], "changes permission bits"),
    change("utimensat", libc::SYS_utimensat, &[], "changes times"),
    change("ftruncate", libc::SYS_ftruncate, &[], "changes a size"),
    change("setxattr", libc::SYS_setxattr, &[], "sets an extended attribute"),
    change("removexattr", libc::SYS_removexattr, &[], "removes an extended attribute"),
    change("fsync", libc::SYS_fsync, &[], "writes a directory or file through to the disk"),
    change("fdatasync", libc::SYS_fdatasync, &[], "writes a file's data through to the disk"),
    change("syncfs", libc::SYS_syncfs, &[], "writes a file system through to the disk"),
    change("setfsuid", libc::SYS_setfsuid, &[], "makes inodes for their owner"),
    change("setfsgid", libc::SYS_setfsgid, &[], "makes inodes for their group"),
];

fn rules(writable: bool) -> Vec<Rule> {
    let changes = if writable { CHANGES } else { &[] };
    [RULES, changes, calls::OWN].concat()
}

/// The host calls that a gofer can make once it serves. Those that only a gofer with a writable mount gets say so.
pub fn exposure() -> Vec<Rule> {
    rules(true)
}

/// The filter as the kernel takes it; `ready`: the descriptor of the launcher's pipe.
pub(crate) fn assemble(writable: bool, ready: u32) -> Vec<Insn> {
    let mut rules = rules(writable);
    rules.extend(calls::DEBUG);
    let filter = Filter { rules: &rules, inside: None, refused: Otherwise::Kill, unknown: Otherwise::Kill };
    filter.assemble(&[ready])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_there_once_and_has_a_reason() {
        let rules = exposure();
        let mut numbers: Vec<_> = rules.iter().map(|rule| rule.nr).collect();
        numbers.sort();
        numbers.dedup();
        assert_eq!(numbers.len(), rules.len());
        assert!(rules.iter().all(|rule| !rule.reason.is_empty()));
        assert!(assemble(false, 3).len() < assemble(true, 3).len());
    }
}
