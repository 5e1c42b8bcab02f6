//! Flags of clone(2), clone3(2), unshare(2).

use crate::abi::*;

sub_table! {
    /// Flags of clone(2), clone3(2) and unshare(2).
    CLONE, "flags", "clone" {
        [CLONE_NEWTIME, Partial, "joined by execve, not by fork"],
        [CLONE_VM, Full, ""],
        [CLONE_FS, Full, ""],
        [CLONE_FILES, Full, ""],
        [CLONE_SIGHAND, Full, ""],
        [CLONE_PIDFD, Full, ""],
        [CLONE_PTRACE, Full, ""],
        [CLONE_VFORK, Full, ""],
        [CLONE_PARENT, Full, ""],
        [CLONE_THREAD, Full, ""],
        [CLONE_NEWNS, Full, ""],
        [CLONE_SYSVSEM, Full, ""],
        [CLONE_SETTLS, Full, ""],
        [CLONE_PARENT_SETTID, Full, ""],
        [CLONE_CHILD_CLEARTID, Full, ""],
        [CLONE_DETACHED, Full, ""],
        [CLONE_UNTRACED, Full, ""],
        [CLONE_CHILD_SETTID, Full, ""],
        [CLONE_NEWCGROUP, Full, ""],
        [CLONE_NEWUTS, Full, ""],
        [CLONE_NEWIPC, Full, ""],
        [CLONE_NEWUSER, Full, ""],
        [CLONE_NEWPID, Missing, "EINVAL"],
        [CLONE_NEWNET, Full, ""],
        [CLONE_IO, Partial, "I/O priority is not shared; it has no effect"],
        [CLONE_CLEAR_SIGHAND, Full, ""],
        [CLONE_INTO_CGROUP, Refused(EPERM), "no control groups inside the sandbox"],
    }
}
