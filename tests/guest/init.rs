//! What calls by pid say of pid 1, of nobody and of pids that cannot be.

use guest_tests::*;
use libc::*;

cases![
    init_schedule, init_schedule_denied, init_ids_and_limits, init_signals, init_clock, negative_pids, order_of_errors, setscheduler_rights,
    reset_on_fork, setpriority_tries_all, ioprio_of_several, ioprio_classes
];

const INIT: i32 = 1;
const IOPRIO_WHO_PROCESS: i32 = 1;
const IOPRIO_WHO_PGRP: i32 = 2;
const IOPRIO_WHO_USER: i32 = 3;

fn attr(policy: i32, flags: u64, nice: i32, priority: u32) -> [u32; 12] {
    [48, policy as u32, flags as u32, (flags >> 32) as u32, nice as u32, priority, 0, 0, 0, 0, 0, 0]
}

fn is_root() -> bool {
    sys!(SYS_geteuid) == 0
}

/// Becomes somebody without rights, if it can.
fn drop_rights() {
    if is_root() {
        ok(sys!(SYS_setresgid, 64321, 64321, 64321));
        ok(sys!(SYS_setresuid, 64321, 64321, 64321));
    }
}

fn init_schedule() {
    let mut b = [0u64; 16];
    ok(sys!(SYS_getpriority, PRIO_PROCESS, INIT));
    ok(sys!(SYS_sched_getscheduler, INIT));
    ok(sys!(SYS_sched_getparam, INIT, &mut b));
    ok(sys!(SYS_sched_getattr, INIT, &mut b, 48, 0));
    ok(sys!(SYS_sched_rr_get_interval, INIT, &mut b));
    ok(sys!(SYS_sched_getaffinity, INIT, 128, &mut b));
    check(b[0] != 0, "processors");
    ok(sys!(SYS_ioprio_get, IOPRIO_WHO_PROCESS, INIT));
    err(sys!(SYS_sched_getparam, INIT, bad()), EFAULT);
    err(sys!(SYS_sched_getaffinity, INIT, 128, bad()), EFAULT);
    err(sys!(SYS_sched_setscheduler, INIT, 77, &0i32), EINVAL);
}

fn init_schedule_denied() {
    in_child(|| {
        drop_rights();
        err(sys!(SYS_setpriority, PRIO_PROCESS, INIT, 5), EPERM);
        err(sys!(SYS_sched_setparam, INIT, &0i32), EPERM);
        err(sys!(SYS_sched_setscheduler, INIT, SCHED_OTHER, &0i32), EPERM);
        err(sys!(SYS_sched_setaffinity, INIT, 8, &1u64), EPERM);
        err(sys!(SYS_sched_setattr, INIT, &attr(SCHED_OTHER, 0, 0, 0), 0), EPERM);
        err(sys!(SYS_ioprio_set, IOPRIO_WHO_PROCESS, INIT, 2 << 13 | 4), EPERM);
    });
}

fn init_ids_and_limits() {
    ok(sys!(SYS_getpgid, INIT));
    ok(sys!(SYS_getsid, INIT));
    err(sys!(SYS_setpgid, INIT, 0), ESRCH);
    ok(sys!(SYS_capget, &mut [0x2008_0522u32, INIT as u32], &mut [0u32; 6]));
    let mut limit = [0u64; 2];
    if is_root() {
        ok(sys!(SYS_prlimit64, INIT, RLIMIT_NOFILE, 0, &mut limit));
        check(limit[0] > 0 && limit[0] <= limit[1], "a limit");
        err(sys!(SYS_prlimit64, INIT, 77, 0, &mut limit), EINVAL);
    }
    in_child(|| {
        drop_rights();
        let mut limit = [0u64; 2];
        err(sys!(SYS_prlimit64, INIT, RLIMIT_NOFILE, 0, &mut limit), EPERM);
        err(sys!(SYS_prlimit64, INIT, 77, 0, &mut limit), EPERM);
        err(sys!(SYS_get_robust_list, INIT, &mut [0u64; 1], &mut [0u64; 1]), EPERM);
    });
}

fn init_signals() {
    if is_root() {
        ok(sys!(SYS_kill, INIT, 0));
        ok(sys!(SYS_tkill, INIT, 0));
        ok(sys!(SYS_tgkill, INIT, INIT, 0));
    }
    in_child(|| {
        drop_rights();
        err(sys!(SYS_kill, INIT, 0), EPERM);
        err(sys!(SYS_tkill, INIT, 0), EPERM);
        err(sys!(SYS_tgkill, INIT, INIT, 0), EPERM);
    });
    err(sys!(SYS_tgkill, sys!(SYS_getpid), INIT, 0), ESRCH);
}

/// The clock of clock_getcpuclockid(3).
fn clock_of(pid: i32) -> i32 {
    (!pid) << 3 | 2
}

fn init_clock() {
    let mut t = [0i64; 2];
    ok(sys!(SYS_clock_gettime, clock_of(INIT), &mut t));
    ok(sys!(SYS_clock_getres, clock_of(INIT), &mut t));
    err(sys!(SYS_clock_gettime, clock_of(99_999_999), &mut t), EINVAL);
    err(sys!(SYS_clock_getres, clock_of(99_999_999), &mut t), EINVAL);
    // Of a thread, and not of this process.
    err(sys!(SYS_clock_getres, clock_of(INIT) | 4, &mut t), EINVAL);
}

fn negative_pids() {
    let mut b = [0u64; 16];
    for pid in [-1, i32::MIN] {
        err(sys!(SYS_sched_getscheduler, pid), EINVAL);
        err(sys!(SYS_sched_getparam, pid, &mut b), EINVAL);
        err(sys!(SYS_sched_setparam, pid, bad()), EINVAL);
        err(sys!(SYS_sched_setscheduler, pid, SCHED_OTHER, bad()), EINVAL);
        err(sys!(SYS_sched_rr_get_interval, pid, &mut b), EINVAL);
        err(sys!(SYS_sched_getattr, pid, &mut b, 48, 0), EINVAL);
        err(sys!(SYS_sched_setattr, pid, bad(), 0), EINVAL);
        err(sys!(SYS_sched_getaffinity, pid, 128, &mut b), ESRCH);
        err(sys!(SYS_sched_getaffinity, pid, 128, bad()), ESRCH);
        err(sys!(SYS_sched_setaffinity, pid, 8, &1u64), ESRCH);
        err(sys!(SYS_sched_setaffinity, pid, 8, bad()), EFAULT);
        err(sys!(SYS_ioprio_get, IOPRIO_WHO_PROCESS, pid), ESRCH);
        err(sys!(SYS_ioprio_set, IOPRIO_WHO_PROCESS, pid, 2 << 13 | 4), ESRCH);
        err(sys!(SYS_getpriority, PRIO_PROCESS, pid), ESRCH);
        err(sys!(SYS_setpriority, PRIO_PROCESS, pid, 0), ESRCH);
        err(sys!(SYS_prlimit64, pid, RLIMIT_NOFILE, 0, &mut b), ESRCH);
        err(sys!(SYS_prlimit64, pid, 77, 0, &mut b), ESRCH);
        err(sys!(SYS_getpgid, pid), ESRCH);
        err(sys!(SYS_getsid, pid), ESRCH);
    }
}

fn order_of_errors() {
    let nobody = 99_999_999;
    err(sys!(SYS_sched_setparam, nobody, bad()), EFAULT);
    err(sys!(SYS_sched_setscheduler, nobody, 77, &0i32), ESRCH);
    err(sys!(SYS_sched_setscheduler, nobody, -1, bad()), EINVAL);
    err(sys!(SYS_sched_getaffinity, nobody, 4, &mut [0u8; 8]), EINVAL);
    err(sys!(SYS_prlimit64, nobody, RLIMIT_NOFILE, bad(), 0), EFAULT);
    err(sys!(SYS_prlimit64, nobody, 77, 0, 0), ESRCH);
    err(sys!(SYS_ioprio_get, IOPRIO_WHO_USER, nobody), ESRCH);
    err(sys!(SYS_ioprio_set, IOPRIO_WHO_PGRP, nobody, 2 << 13), ESRCH);
    err(sys!(SYS_ioprio_set, 9, nobody, 7 << 13), EINVAL);
}

fn setscheduler_rights() {
    in_child(|| {
        drop_rights();
        let none = [0u64; 2];
        ok(sys!(SYS_setrlimit, RLIMIT_RTPRIO, &none));
        ok(sys!(SYS_setrlimit, RLIMIT_NICE, &none));
        err(sys!(SYS_sched_setscheduler, 0, SCHED_FIFO, &1i32), EPERM);
        err(sys!(SYS_sched_setscheduler, 0, SCHED_RR, &0i32), EINVAL);
        err(sys!(SYS_sched_setscheduler, 0, SCHED_OTHER, &1i32), EINVAL);
        // A better nice value by this call is EPERM, not EACCES.
        err(sys!(SYS_sched_setattr, 0, &attr(SCHED_OTHER, 0, -5, 0), 0), EPERM);
        ok(sys!(SYS_sched_setattr, 0, &attr(SCHED_BATCH, 0, 7, 0), 0));
        eq(sys!(SYS_getpriority, PRIO_PROCESS, 0), 13);
        err(sys!(SYS_sched_setattr, 0, &attr(SCHED_BATCH, 0, 6, 0), 0), EPERM);
        // Parameters kept (0x10): the nice value is not looked at, and the policy is kept with them.
        ok(sys!(SYS_sched_setattr, 0, &attr(SCHED_OTHER, 0x10, 0, 0), 0));
        eq(sys!(SYS_getpriority, PRIO_PROCESS, 0), 13);
        eq(sys!(SYS_sched_getscheduler, 0), SCHED_BATCH.into());
        // Policy kept (0x8).
        ok(sys!(SYS_sched_setattr, 0, &attr(SCHED_OTHER, 0x8, 8, 0), 0));
        eq(sys!(SYS_sched_getscheduler, 0), SCHED_BATCH.into());
        eq(sys!(SYS_getpriority, PRIO_PROCESS, 0), 12);
        // What is set cannot be taken back.
        ok(sys!(SYS_sched_setscheduler, 0, SCHED_OTHER | SCHED_RESET_ON_FORK, &0i32));
        err(sys!(SYS_sched_setscheduler, 0, SCHED_OTHER, &0i32), EPERM);
        eq(sys!(SYS_sched_getscheduler, 0), (SCHED_OTHER | SCHED_RESET_ON_FORK).into());
        // Nor left.
        ok(sys!(SYS_sched_setscheduler, 0, SCHED_IDLE | SCHED_RESET_ON_FORK, &0i32));
        err(sys!(SYS_sched_setscheduler, 0, SCHED_OTHER | SCHED_RESET_ON_FORK, &0i32), EPERM);
    });
}

fn reset_on_fork() {
    in_child(|| {
        ok(sys!(SYS_setpriority, PRIO_PROCESS, 0, 4));
        ok(sys!(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 2 << 13 | 6));
        ok(sys!(SYS_sched_setscheduler, 0, SCHED_BATCH | SCHED_RESET_ON_FORK, &0i32));
        // A worse nice value and another policy that is no real-time one stay; the flag goes.
        exits(
            child(|| {
                let same = sys!(SYS_getpriority, PRIO_PROCESS, 0) == 16
                    && sys!(SYS_sched_getscheduler, 0) == SCHED_BATCH.into()
                    && sys!(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) == 2 << 13 | 6;
                i32::from(!same)
            }),
            0,
        );
    });
}

fn setpriority_tries_all() {
    if !is_root() {
        skip("needs two users");
    }
    in_child(|| {
        ok(sys!(SYS_setpgid, 0, 0));
        let hold = pipe_pair();
        let other = child(|| {
            drop_rights();
            sys!(SYS_write, hold[1], b"r", 1);
            sleep_ms(10_000);
            0
        });
        eq(sys!(SYS_read, hold[0], &mut [0u8; 1], 1), 1);
        let group = sys!(SYS_getpid);
        // Somebody who may change one of two.
        exits(
            child(|| {
                sys!(SYS_setresuid, 64322, 64322, 64322);
                let pid = child(forever);
                let r = sys!(SYS_setpriority, PRIO_PGRP, group, 9);
                let own = sys!(SYS_getpriority, PRIO_PROCESS, pid);
                sys!(SYS_kill, pid, SIGKILL);
                i32::from(r != -i64::from(EPERM) || own != 11)
            }),
            0,
        );
        ok(sys!(SYS_kill, other, SIGKILL));
        killed_by(other, SIGKILL);
    });
}

fn ioprio_of_several() {
    in_child(|| {
        ok(sys!(SYS_setpgid, 0, 0));
        let value = 2 << 13 | 6;
        ok(sys!(SYS_ioprio_set, IOPRIO_WHO_PGRP, 0, value));
        eq(sys!(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0), value.into());
        eq(sys!(SYS_ioprio_get, IOPRIO_WHO_PGRP, 0), value.into());
        // The best of the group.
        let hold = pipe_pair();
        let pid = child(|| {
            sys!(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 2 << 13 | 3);
            sys!(SYS_write, hold[1], b"r", 1);
            sleep_ms(10_000);
            0
        });
        eq(sys!(SYS_read, hold[0], &mut [0u8; 1], 1), 1);
        eq(sys!(SYS_ioprio_get, IOPRIO_WHO_PGRP, 0), 2 << 13 | 3);
        eq(sys!(SYS_ioprio_get, IOPRIO_WHO_PGRP, sys!(SYS_getpid)), 2 << 13 | 3);
        ok(sys!(SYS_kill, pid, SIGKILL));
        killed_by(pid, SIGKILL);
        // Of a task that has set none, that of its nice value; by itself it has none.
        ok(sys!(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, 0));
        ok(sys!(SYS_setpriority, PRIO_PROCESS, 0, 10));
        eq(sys!(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0), 0);
        eq(sys!(SYS_ioprio_get, IOPRIO_WHO_PGRP, 0), 2 << 13 | 6);
    });
}

fn ioprio_classes() {
    in_child(|| {
        drop_rights();
        let set = |value: i32| sys!(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, value);
        err(set(1 << 13 | 4), EPERM);
        err(set(4), EINVAL);
        err(set(4 << 13), EINVAL);
        err(set(-1), EINVAL);
        // Between class and level there are hints.
        for value in [0, 2 << 13 | 1 << 3 | 4, 3 << 13 | 7] {
            ok(set(value));
            eq(sys!(SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0), value.into());
        }
    });
}
