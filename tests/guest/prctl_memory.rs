//! prctl(2) about memory: PR_SET_MDWE, PR_SET_VMA, PR_SET_MM, and personality(2) where it has effect there.

use guest_tests::*;
use libc::*;

cases![
    mdwe_bits, mdwe_refuses, mdwe_and_children, labels, labels_refused, mm_arguments, mm_map_of_arguments, mm_needs_right, mm_map_checks,
    read_implies_exec, no_randomize
];

const PR_SET_MDWE: i32 = 65;
const PR_GET_MDWE: i32 = 66;
const RW: i32 = PROT_READ | PROT_WRITE;
const RX: i32 = PROT_READ | PROT_EXEC;

fn prctl5(op: i32, a: u64, b: u64, c: u64, d: u64) -> i64 {
    sys!(SYS_prctl, op, a, b, c, d)
}

fn map(prot: i32, flags: i32) -> i64 {
    sys!(SYS_mmap, 0, 8192, prot, flags | MAP_ANONYMOUS, -1, 0)
}

fn mdwe_bits() {
    in_child(|| {
        eq(prctl5(PR_GET_MDWE, 0, 0, 0, 0), 0);
        err(prctl5(PR_GET_MDWE, 1, 0, 0, 0), EINVAL);
        for bits in [2, 4, 5] {
            err(prctl5(PR_SET_MDWE, bits, 0, 0, 0), EINVAL);
        }
        err(prctl5(PR_SET_MDWE, 1, 1, 0, 0), EINVAL);
        eq(prctl5(PR_SET_MDWE, 0, 0, 0, 0), 0);
        eq(prctl5(PR_SET_MDWE, 3, 0, 0, 0), 0);
        eq(prctl5(PR_SET_MDWE, 3, 0, 0, 0), 0);
        eq(prctl5(PR_GET_MDWE, 0, 0, 0, 0), 3);
        err(prctl5(PR_SET_MDWE, 1, 0, 0, 0), EPERM);
        err(prctl5(PR_SET_MDWE, 0, 0, 0, 0), EPERM);
    });
}

fn mdwe_refuses() {
    in_child(|| {
        let data = ok(map(RW, MAP_PRIVATE));
        let code = ok(map(RX, MAP_PRIVATE));
        eq(prctl5(PR_SET_MDWE, 1, 0, 0, 0), 0);
        for flags in [MAP_PRIVATE, MAP_SHARED] {
            err(map(RW | PROT_EXEC, flags), EACCES);
            ok(map(RX, flags));
            ok(map(RW, flags));
        }
        err(sys!(SYS_mprotect, data, 4096, RX), EACCES);
        err(sys!(SYS_mprotect, data, 4096, RW | PROT_EXEC), EACCES);
        ok(sys!(SYS_mprotect, code, 4096, RX));
        err(sys!(SYS_mprotect, code, 4096, RW | PROT_EXEC), EACCES);
        ok(sys!(SYS_mprotect, code, 4096, PROT_READ));
        err(sys!(SYS_mprotect, code, 4096, RX), EACCES);
        // The part before the one that is refused is changed.
        err(sys!(SYS_mprotect, code, 8192, PROT_EXEC), EACCES);
    });
}

fn mdwe_and_children() {
    in_child(|| {
        eq(prctl5(PR_SET_MDWE, 1, 0, 0, 0), 0);
        exits(child(|| i32::from(prctl5(PR_GET_MDWE, 0, 0, 0, 0) != 1)), 0);
    });
    in_child(|| {
        eq(prctl5(PR_SET_MDWE, 3, 0, 0, 0), 0);
        exits(child(|| i32::from(prctl5(PR_GET_MDWE, 0, 0, 0, 0) != 0)), 0);
    });
}

/// The line of /proc/self/maps that begins at an address.
fn line(at: i64) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().find(|l| l.starts_with(&format!("{at:x}-"))).unwrap_or("none").to_string()
}

fn name(at: i64, len: u64, name: *const c_char) -> i64 {
    sys!(SYS_prctl, PR_SET_VMA, 0, at, len, name)
}

fn needs_labels(at: i64) {
    if name(at, 4096, c"x".as_ptr()) == -i64::from(EINVAL) {
        skip("a kernel without CONFIG_ANON_VMA_NAME");
    }
}

fn labels() {
    in_child(|| {
        let at = ok(map(RW, MAP_PRIVATE));
        needs_labels(at);
        eq(name(at + 4096, 4096, c"second half".as_ptr()), 0);
        check(line(at + 4096).ends_with("[anon:second half]"), &line(at + 4096));
        check(line(at).ends_with("[anon:x]"), &line(at));
        eq(name(at, 4096, std::ptr::null()), 0);
        check(!line(at).contains("anon"), &line(at));
        let shared = ok(map(RW, MAP_SHARED));
        eq(name(shared, 8192, c"s".as_ptr()), 0);
        check(line(shared).ends_with("[anon_shmem:s]"), &line(shared));
        exits(child(|| i32::from(!line(shared).ends_with("[anon_shmem:s]"))), 0);
    });
}

fn labels_refused() {
    in_child(|| {
        let at = ok(map(RW, MAP_PRIVATE));
        err(sys!(SYS_prctl, PR_SET_VMA, 1, at, 4096, c"x".as_ptr()), EINVAL);
        err(name(at + 1, 4096, c"x".as_ptr()), EINVAL);
        needs_labels(at);
        eq(name(at, 0, c"x".as_ptr()), 0);
        eq(name(at, 1, c"x".as_ptr()), 0);
        err(name(at, 4096, bad().cast()), EFAULT);
        for bad in [c"a[b", c"a]b", c"a$", c"a`", c"a\\", c"a\n", c"\x7f"] {
            err(name(at, 4096, bad.as_ptr()), EINVAL);
        }
        let longest = cstr("n".repeat(79));
        eq(name(at, 4096, longest.as_ptr()), 0);
        let longer = cstr("n".repeat(80));
        err(name(at, 4096, longer.as_ptr()), EINVAL);
        ok(sys!(SYS_munmap, at, 4096));
        err(name(at, 8192, c"x".as_ptr()), ENOMEM);
        check(line(at + 4096).ends_with("[anon:x]"), "the rest is named");
        let file = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/exe", O_RDONLY, 0));
        let mapped = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE, file, 0));
        err(name(mapped, 4096, c"x".as_ptr()), EBADF);
    });
}

const MM_ARG_START: u64 = 8;

fn mm_arguments() {
    let mut size = [0u32];
    eq(sys!(SYS_prctl, PR_SET_MM, 15, &mut size, 0, 0), 0);
    eq(std::hint::black_box(&size)[0], 104);
    err(sys!(SYS_prctl, PR_SET_MM, 15, bad(), 0, 0), EFAULT);
    for what in 0..16 {
        err(prctl5(PR_SET_MM, what, 4096, 0, 1), EINVAL);
    }
    for what in [1, 5, 13] {
        err(prctl5(PR_SET_MM, what, 4096, 1, 0), EINVAL);
    }
}

/// What /proc/self/stat says from the 26th field on (startcode).
fn marks() -> Vec<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let rest: Vec<u64> =
        stat.rsplit(") ").next().unwrap().split(' ').skip(1).map(|f| f.trim().parse().unwrap_or(0)).collect();
    [22, 23, 41, 42, 43, 43, 24, 44, 45, 46, 47].map(|at| rest[at]).to_vec()
}

fn map_of(marks: &[u64]) -> [u64; 13] {
    let mut map = [0u64; 13];
    map[..11].copy_from_slice(marks);
    // The end of the heap.
    map[5] = sys!(SYS_brk, 0) as u64;
    map[12] = u64::from(u32::MAX) << 32;
    map
}

/// Without any right: a program says that its arguments lie elsewhere, as setproctitle does.
fn mm_map_of_arguments() {
    in_child(|| {
        let at = ok(map(RW, MAP_PRIVATE)) as u64;
        let text = b"another name\0second\0VAR=1\0";
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), at as *mut u8, text.len()) };
        let mut map = map_of(&marks());
        map[7..11].copy_from_slice(&[at, at + 20, at + 20, at + 26]);
        eq(sys!(SYS_prctl, PR_SET_MM, 14, &map, 104, 0), 0);
        eq(std::fs::read("/proc/self/cmdline").unwrap(), b"another name\0second\0");
        eq(std::fs::read("/proc/self/environ").unwrap(), b"VAR=1\0");
        eq(marks()[7..11].to_vec(), vec![at, at + 20, at + 20, at + 26]);
        exits(child(|| i32::from(std::fs::read("/proc/self/environ").unwrap() != b"VAR=1\0")), 0);
    });
}

fn mm_map_checks() {
    in_child(|| {
        let good = map_of(&marks());
        let try_it = |edit: fn(&mut [u64; 13])| {
            let mut map = good;
            edit(&mut map);
            sys!(SYS_prctl, PR_SET_MM, 14, &map, 104, 0)
        };
        eq(try_it(|_| {}), 0);
        for size in [0, 96, 103, 112] {
            err(sys!(SYS_prctl, PR_SET_MM, 14, &good, size, 0), EINVAL);
        }
        err(sys!(SYS_prctl, PR_SET_MM, 14, bad(), 104, 0), EFAULT);
        let edits: [fn(&mut [u64; 13]); 7] = [
            |m| m[0] = 0,
            |m| m[1] = m[0],
            |m| m[3] = m[2] - 1,
            |m| m[8] = m[7] - 1,
            |m| m[10] = m[9] - 1,
            |m| m[6] = 1 << 47,
            |m| m[5] = m[4] - 1,
        ];
        for edit in edits {
            err(try_it(edit), EINVAL);
        }
        // An auxiliary vector without an address, and one that is too long.
        err(try_it(|m| m[12] |= 16), EINVAL);
        err(try_it(|m| (m[11], m[12]) = (m[7], m[12] | 4096)), EINVAL);
        if sys!(SYS_geteuid) == 0 {
            ok(sys!(SYS_setresuid, 65534, 65534, 65534));
        }
        err(try_it(|m| m[12] = 0), EPERM);
    });
}

fn mm_needs_right() {
    in_child(|| {
        if prctl5(PR_SET_MM, 0, 4096, 0, 0) == -i64::from(EPERM) {
            skip("without CAP_SYS_RESOURCE");
        }
        let at = ok(map(RW, MAP_PRIVATE)) as u64;
        eq(prctl5(PR_SET_MM, MM_ARG_START, at, 0, 0), 0);
        eq(prctl5(PR_SET_MM, MM_ARG_START + 1, at + 10, 0, 0), 0);
        eq(std::fs::read("/proc/self/cmdline").unwrap(), [0; 10]);
        err(prctl5(PR_SET_MM, MM_ARG_START, at + 11, 0, 0), EINVAL);
        err(prctl5(PR_SET_MM, MM_ARG_START, 0, 0, 0), EINVAL);
        err(prctl5(PR_SET_MM, 1, at, 0, 0), EINVAL);
        err(prctl5(PR_SET_MM, 99, at, 0, 0), EINVAL);
        err(prctl5(PR_SET_MM, 13, 9999, 0, 0), EBADF);
        let file = ok(sys!(SYS_openat, AT_FDCWD, c"/bin/true", O_RDONLY, 0)) as u64;
        err(prctl5(PR_SET_MM, 13, file, 0, 0), EBUSY);
    });
}

fn read_implies_exec() {
    in_child(|| {
        ok(sys!(SYS_personality, 0x40_0000));
        let at = ok(map(PROT_READ, MAP_PRIVATE));
        check(line(at).contains(" r-xp "), &line(at));
        let none = ok(map(PROT_NONE, MAP_PRIVATE));
        check(line(none).contains(" ---p "), &line(none));
        ok(sys!(SYS_mprotect, none, 8192, RW));
        check(line(none).contains(" rwxp "), &line(none));
    });
}

/// ADDR_NO_RANDOMIZE: each new program lies where the one before did.
fn no_randomize() {
    let places = |persona: u32| {
        let p = pipe_pair();
        let pid = child(|| {
            ok(sys!(SYS_personality, persona));
            sys!(SYS_dup2, p[1], 1);
            let args =
                [c"/bin/cat".as_ptr() as usize, c"/proc/self/maps".as_ptr() as usize, 0];
            sys!(SYS_execve, c"/bin/cat", &args, &[0usize]);
            1
        });
        shut([p[1]]);
        let mut text = Vec::new();
        let mut b = [0u8; 4096];
        loop {
            let n = ok(sys!(SYS_read, p[0], &mut b, 4096)) as usize;
            if n == 0 {
                break;
            }
            text.extend_from_slice(&std::hint::black_box(&b)[..n]);
        }
        shut([p[0]]);
        exits(pid, 0);
        let text = String::from_utf8_lossy(&text).into_owned();
        let of = |what: &str| text.lines().find(|l| l.ends_with(what)).unwrap_or("").to_string();
        [of("/cat"), of("[heap]"), of("[stack]")]
    };
    eq(places(0x4_0000), places(0x4_0000));
    check(places(0) != places(0), "they differ otherwise");
}
