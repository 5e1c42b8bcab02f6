//! sched_setattr(2) and sched_getattr(2): sizes, flags, deadlines, slices, what children get.

use guest_tests::*;
use libc::*;

cases![sizes, larger_answers, flags, slices, deadlines, deadline_rules, deadline_and_fork, reset_on_fork];

#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
struct Attr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    clamp: [u32; 2],
}

const DEADLINE: u32 = 6;

fn set(attr: Attr) -> i64 {
    sys!(SYS_sched_setattr, 0, &Attr { size: 56, ..attr }, 0)
}

fn get() -> Attr {
    let mut a = Attr::default();
    ok(sys!(SYS_sched_getattr, 0, &mut a, 56, 0));
    std::hint::black_box(a)
}

fn nice(yes: bool) -> bool {
    // CAP_SYS_NICE
    let mut d = [0u32; 6];
    ok(sys!(SYS_capget, &[0x2008_0522u32, 0], &mut d));
    (std::hint::black_box(d)[0] >> 23 & 1 != 0) == yes
}

fn sizes() {
    in_child(|| {
        for (size, tail, want) in
            [(0u32, 0u8, 0), (4, 0, E2BIG), (47, 0, E2BIG), (48, 0, 0), (56, 0, 0), (57, 0, 0), (57, 1, E2BIG), (4096, 0, 0), (4096, 1, E2BIG), (4097, 0, E2BIG)]
        {
            let mut a = [0u32; 1100];
            a[0] = size;
            if tail != 0 {
                let at = size as usize - 1;
                a[at / 4] = 1 << (at % 4 * 8);
            }
            eq((size, tail, sys!(SYS_sched_setattr, 0, &mut a, 0)), (size, tail, -i64::from(want)));
            eq(std::hint::black_box(&a)[0], if want == 0 { size } else { 56 });
        }
        err(sys!(SYS_sched_setattr, 0, bad(), 0), EFAULT);
        err(sys!(SYS_sched_setattr, 0, &Attr::default(), 1), EINVAL);
    });
}

/// What the kernel does not know of is zero.
fn larger_answers() {
    let mut a = [0xffu8; 128];
    eq(sys!(SYS_sched_getattr, 0, &mut a, 100, 0), 0);
    let a = std::hint::black_box(a);
    eq((a[0], &a[56..100], a[100]), (56, &[0u8; 44][..], 0xff));
    for size in [0, 47, 4097] {
        err(sys!(SYS_sched_getattr, 0, &mut [0u8; 128], size, 0), EINVAL);
    }
}

fn flags() {
    in_child(|| {
        for flags in [1, 2, 4, 7] {
            eq((flags, set(Attr { flags, ..Attr::default() })), (flags, 0));
            if flags & 1 != 0 && nice(false) {
                err(set(Attr::default()), EPERM);
                return;
            }
        }
        eq(set(Attr::default()), 0);
        err(set(Attr { flags: 0x80, ..Attr::default() }), EINVAL);
        err(set(Attr { flags: 0x100, ..Attr::default() }), EINVAL);
        // Without CONFIG_UCLAMP_TASK: EOPNOTSUPP
        errs(set(Attr { flags: 0x20, clamp: [5, 0], ..Attr::default() }).min(-1), &[EPERM, EOPNOTSUPP]);
        for policy in [4, 7, 8, 77, u32::MAX] {
            err(set(Attr { policy, ..Attr::default() }), EINVAL);
        }
        err(set(Attr { priority: 1, ..Attr::default() }), EINVAL);
    });
}

fn slices() {
    in_child(|| {
        let usual = get().runtime;
        if usual == 0 {
            skip("a kernel before 6.12");
        }
        for (wish, have) in [(5_000_000, 5_000_000), (100, 100_000), (200_000_000, 100_000_000), (0, usual)] {
            eq(set(Attr { runtime: wish, ..Attr::default() }), 0);
            eq((wish, get().runtime), (wish, have));
        }
        eq(set(Attr { runtime: 3_000_000, policy: 3, ..Attr::default() }), 0);
        exits(child(|| i32::from(get().runtime != 3_000_000)), 0);
    });
}

const GOOD: Attr = Attr {
    size: 56,
    policy: DEADLINE,
    flags: 0,
    nice: 0,
    priority: 0,
    runtime: 1_000_000,
    deadline: 30_000_000,
    period: 40_000_000,
    clamp: [0; 2],
};

fn deadlines() {
    in_child(|| {
        if nice(false) {
            err(set(GOOD), EPERM);
            return;
        }
        let got = set(GOOD);
        if got != 0 {
            skip("no deadlines for this group of processes");
        }
        let now = get();
        eq((now.policy, now.runtime, now.deadline, now.period), (DEADLINE, 1_000_000, 30_000_000, 40_000_000));
        eq(set(Attr { period: 0, ..GOOD }), 0);
        eq(get().period, 30_000_000);
        eq(set(Attr::default()), 0);
        eq((get().policy, get().deadline), (0, 0));
    });
}

fn deadline_rules() {
    in_child(|| {
        let bad: [Attr; 9] = [
            Attr { runtime: 0, deadline: 0, period: 0, ..GOOD },
            Attr { runtime: 1023, ..GOOD },
            Attr { runtime: 31_000_000, ..GOOD },
            Attr { period: 20_000_000, ..GOOD },
            Attr { deadline: 1 << 63, period: 0, ..GOOD },
            Attr { period: 1 << 63, ..GOOD },
            Attr { period: 5_000_000_000, ..GOOD },
            Attr { runtime: 2000, deadline: 50_000, period: 50_000, ..GOOD },
            Attr { priority: 1, ..GOOD },
        ];
        for a in bad {
            eq((a.runtime, a.deadline, a.period, set(a)), (a.runtime, a.deadline, a.period, -i64::from(EINVAL)));
        }
        err(sys!(SYS_sched_setscheduler, 0, DEADLINE, &[0i32]), EINVAL);
    });
}

fn deadline_and_fork() {
    in_child(|| {
        if nice(false) || set(GOOD) != 0 {
            skip("no deadlines");
        }
        err(sys!(SYS_fork), EAGAIN);
        eq(set(Attr { flags: 1, ..GOOD }), 0);
        exits(child(|| i32::from(get().policy != 0 || get().flags != 0)), 0);
        eq(get().policy, DEADLINE);
    });
}

fn reset_on_fork() {
    in_child(|| {
        eq(set(Attr { flags: 1, nice: 4, ..Attr::default() }), 0);
        eq((get().flags, get().nice), (1, 4));
        exits(child(|| i32::from(get().flags != 0 || get().nice != 4)), 0);
        if nice(true) {
            eq(set(Attr { flags: 1, nice: -3, policy: 3, ..Attr::default() }), 0);
            exits(child(|| i32::from(get().flags != 0 || get().nice != 0 || get().policy != 3)), 0);
        }
    });
}
