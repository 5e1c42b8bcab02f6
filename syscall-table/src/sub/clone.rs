//! Flags of clone(2), clone3(2), unshare(2).

use crate::abi::*;

sub_table! {
    /// Flags of clone(2), clone3(2) and unshare(2).
    CLONE, "flags", "clone" {
        [CLONE_NEWTIME, Missing, ""],
        [CLONE_VM, Missing, ""],
        [CLONE_FS, Missing, ""],
        [CLONE_FILES, Missing, ""],
        [CLONE_SIGHAND, Missing, ""],
        [CLONE_PIDFD, Missing, ""],
        [CLONE_PTRACE, Missing, ""],
        [CLONE_VFORK, Missing, ""],
        [CLONE_PARENT, Missing, ""],
        [CLONE_THREAD, Missing, ""],
        [CLONE_NEWNS, Missing, ""],
        [CLONE_SYSVSEM, Missing, ""],
        [CLONE_SETTLS, Missing, ""],
        [CLONE_PARENT_SETTID, Missing, ""],
        [CLONE_CHILD_CLEARTID, Missing, ""],
        [CLONE_DETACHED, Missing, ""],
        [CLONE_UNTRACED, Missing, ""],
        [CLONE_CHILD_SETTID, Missing, ""],
        [CLONE_NEWCGROUP, Missing, ""],
        [CLONE_NEWUTS, Missing, ""],
        [CLONE_NEWIPC, Missing, ""],
        [CLONE_NEWUSER, Missing, ""],
        [CLONE_NEWPID, Missing, ""],
        [CLONE_NEWNET, Missing, ""],
        [CLONE_IO, Missing, ""],
        [CLONE_CLEAR_SIGHAND, Missing, ""],
        [CLONE_INTO_CGROUP, Missing, ""],
    }
}
