//! RLIMIT_AS, RLIMIT_DATA and RLIMIT_STACK (getrlimit(2)), and areas that grow down.

use guest_tests::*;
use libc::*;

cases![
    as_mmap, as_mmap_fixed, as_brk, as_mremap, as_none_is_charged, data_mmap, data_mprotect, data_brk, data_not_shared, data_zero_limit,
    data_mremap, as_exec, stack_overflow, stack_small, stack_raised_later, growsdown, growsdown_limit, growsdown_gap, growsdown_not_by_far_reads,
    malloc_fails
];

const RW: i32 = PROT_READ | PROT_WRITE;
const ANON: i32 = MAP_PRIVATE | MAP_ANONYMOUS;
const MIB: usize = 1 << 20;

fn limit(which: u32, soft: usize) {
    let mut l = [0u64; 2];
    eq(sys!(SYS_prlimit64, 0, which, 0, &mut l), 0);
    l[0] = soft as u64;
    eq(sys!(SYS_prlimit64, 0, which, &l, 0), 0);
}

/// A number of /proc/self/status, in bytes.
fn status(key: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").expect("its status");
    let line = text.lines().find(|l| l.starts_with(key)).expect("the line");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).expect("a number") << 10
}

fn map(len: usize, prot: i32, flags: i32) -> i64 {
    sys!(SYS_mmap, 0, len, prot, flags, -1, 0)
}

fn put(p: usize, v: u8) {
    unsafe { (p as *mut u8).write_volatile(v) }
}

fn get(p: usize) -> u8 {
    unsafe { (p as *const u8).read_volatile() }
}

fn as_mmap() {
    in_child(|| {
        limit(RLIMIT_AS, status("VmSize:") + 16 * MIB);
        let p = ok(map(8 * MIB, RW, ANON));
        err(map(12 * MIB, RW, ANON), ENOMEM);
        err(map(12 * MIB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS), ENOMEM);
        let q = ok(map(6 * MIB, RW, ANON));
        eq(sys!(SYS_munmap, p, 8 * MIB), 0);
        ok(map(8 * MIB, RW, ANON));
        eq(sys!(SYS_munmap, q, 6 * MIB), 0);
    });
}

fn as_mmap_fixed() {
    in_child(|| {
        let p = ok(map(8 * MIB, RW, ANON));
        limit(RLIMIT_AS, status("VmSize:") + MIB);
        // What is replaced makes room.
        ok(sys!(SYS_mmap, p, 8 * MIB, RW, ANON | MAP_FIXED, -1, 0));
        err(sys!(SYS_mmap, p, 16 * MIB, RW, ANON | MAP_FIXED, -1, 0), ENOMEM);
    });
}

fn as_brk() {
    in_child(|| {
        let now = sys!(SYS_brk, 0);
        limit(RLIMIT_AS, status("VmSize:") + 4 * MIB);
        eq(sys!(SYS_brk, now + 64 * MIB as i64), now);
        eq(sys!(SYS_brk, now + MIB as i64), now + MIB as i64);
    });
}

fn as_mremap() {
    in_child(|| {
        let p = ok(map(4 * MIB, RW, ANON));
        limit(RLIMIT_AS, status("VmSize:") + 4 * MIB);
        err(sys!(SYS_mremap, p, 4 * MIB, 32 * MIB, MREMAP_MAYMOVE, 0), ENOMEM);
        ok(sys!(SYS_mremap, p, 4 * MIB, 6 * MIB, MREMAP_MAYMOVE, 0));
    });
}

fn as_none_is_charged() {
    in_child(|| {
        limit(RLIMIT_AS, status("VmSize:") + 4 * MIB);
        err(map(16 * MIB, PROT_NONE, ANON | MAP_NORESERVE), ENOMEM);
    });
}

fn data_mmap() {
    in_child(|| {
        limit(RLIMIT_DATA, status("VmData:") + 8 * MIB);
        err(map(16 * MIB, RW, ANON), ENOMEM);
        ok(map(16 * MIB, PROT_READ, ANON));
        ok(map(16 * MIB, PROT_NONE, ANON));
        ok(map(4 * MIB, RW, ANON));
        err(map(6 * MIB, RW, ANON), ENOMEM);
    });
}

fn data_mprotect() {
    in_child(|| {
        let p = ok(map(16 * MIB, PROT_NONE, ANON));
        limit(RLIMIT_DATA, status("VmData:") + 8 * MIB);
        err(sys!(SYS_mprotect, p, 16 * MIB, RW), ENOMEM);
        eq(sys!(SYS_mprotect, p, 4 * MIB, RW), 0);
        eq(sys!(SYS_mprotect, p, 16 * MIB, PROT_READ), 0);
    });
}

fn data_brk() {
    in_child(|| {
        let now = sys!(SYS_brk, 0);
        limit(RLIMIT_DATA, status("VmData:") + 4 * MIB);
        eq(sys!(SYS_brk, now + 64 * MIB as i64), now);
        eq(sys!(SYS_brk, now + MIB as i64), now + MIB as i64);
    });
}

fn data_not_shared() {
    in_child(|| {
        limit(RLIMIT_DATA, status("VmData:") + MIB);
        ok(map(16 * MIB, RW, MAP_SHARED | MAP_ANONYMOUS));
        err(map(16 * MIB, RW, ANON), ENOMEM);
    });
}

fn data_zero_limit() {
    in_child(|| {
        // The hard limit holds then: a workaround that Linux keeps for valgrind.
        limit(RLIMIT_DATA, 0);
        ok(map(MIB, RW, ANON));
    });
}

fn data_mremap() {
    in_child(|| {
        let p = ok(map(4 * MIB, RW, ANON));
        limit(RLIMIT_DATA, status("VmData:") + 4 * MIB);
        err(sys!(SYS_mremap, p, 4 * MIB, 32 * MIB, MREMAP_MAYMOVE, 0), ENOMEM);
    });
}

fn as_exec() {
    let pid = child(|| {
        limit(RLIMIT_AS, 300 * MIB);
        let args = [c"sh".as_ptr() as usize, c"-c".as_ptr() as usize, c"ulimit -v; exit 7".as_ptr() as usize, 0];
        let null = ok(sys!(SYS_open, c"/dev/null", O_WRONLY));
        sys!(SYS_dup2, null, 1);
        sys!(SYS_execve, c"/bin/sh", &args, 0);
        1
    });
    exits(pid, 7);
}

#[inline(never)]
fn deep(n: usize) -> usize {
    let a = std::hint::black_box([n as u8; 16384]);
    if n == 0 { 0 } else { deep(n - 1) + usize::from(a[n % 16384] == n as u8) }
}

/// Runs the guest program again with a stack limit: [`on_stack`].
fn with_stack(soft: usize, what: &str) -> i32 {
    let own = std::env::current_exe().expect("its path");
    child(|| {
        limit(RLIMIT_STACK, soft);
        let (own, what) = (cstr(own.to_str().expect("UTF-8")), cstr(what));
        let args = [own.as_ptr() as usize, c"on_stack".as_ptr() as usize, what.as_ptr() as usize, 0];
        sys!(SYS_execve, own, &args, 0);
        1
    })
}

/// The helper of [`with_stack`].
pub fn on_stack(args: &[String]) -> i32 {
    for signo in [SIGSEGV, SIGBUS] {
        sig::handle(signo, SIG_DFL, 0);
    }
    match args.first().map(String::as_str) {
        Some("2m") => i32::from(deep(2 * MIB / 16384) == 0),
        Some("raise") => {
            limit(RLIMIT_STACK, 32 * MIB);
            i32::from(deep(16 * MIB / 16384) == 0)
        }
        _ => 3,
    }
}

fn stack_overflow() {
    killed_by(with_stack(MIB, "2m"), SIGSEGV);
}

fn stack_small() {
    exits(with_stack(4 * MIB, "2m"), 0);
}

fn stack_raised_later() {
    exits(with_stack(4 * MIB, "raise"), 0);
}

/// An area that grows down with nothing near it: its start.
fn growing(room: usize) -> usize {
    let p = ok(map(room + 8192, PROT_NONE, ANON | MAP_NORESERVE)) as usize;
    eq(sys!(SYS_munmap, p, room + 8192), 0);
    ok(sys!(SYS_mmap, p + room, 8192, RW, ANON | MAP_GROWSDOWN | MAP_FIXED, -1, 0)) as usize
}

fn growsdown() {
    in_child(|| {
        let p = growing(8 * MIB);
        put(p, 1);
        put(p - 4096, 2);
        put(p - 40_000, 3);
        // Everything in between is there.
        eq((get(p - 20_000), get(p - 4096), get(p)), (0, 2, 1));
        let maps = std::fs::read_to_string("/proc/self/maps").expect("its maps");
        let start = (p - 40_000) & !4095;
        check(maps.lines().any(|l| l.starts_with(&format!("{start:x}-"))), "the area begins where it was touched");
    });
}

fn segv_at(p: usize) {
    killed_by(
        child(|| {
            sig::handle(SIGSEGV, SIG_DFL, 0);
            i32::from(get(p))
        }),
        SIGSEGV,
    );
}

fn growsdown_limit() {
    in_child(|| {
        let p = growing(16 * MIB);
        limit(RLIMIT_STACK, 4 * MIB);
        put(p - 2 * MIB, 1);
        segv_at(p - 6 * MIB);
    });
}

fn growsdown_gap() {
    in_child(|| {
        let p = growing(8 * MIB);
        ok(sys!(SYS_mmap, p - 4 * MIB, 4096, RW, ANON | MAP_FIXED, -1, 0));
        put(p - 2 * MIB, 1);
        // Within the guard gap above the other area.
        segv_at(p - 4 * MIB + 8192);
        // One without access needs none.
        eq(sys!(SYS_mprotect, p - 4 * MIB, 4096, PROT_NONE), 0);
        put(p - 4 * MIB + 8192, 1);
    });
}

fn growsdown_not_by_far_reads() {
    in_child(|| {
        // An ordinary area does not grow.
        let p = ok(map(8 * MIB, PROT_NONE, ANON)) as usize;
        eq(sys!(SYS_munmap, p, 8 * MIB), 0);
        let q = ok(sys!(SYS_mmap, p + 4 * MIB, 4096, RW, ANON | MAP_FIXED, -1, 0)) as usize;
        segv_at(q - 1);
    });
}

fn malloc_fails() {
    in_child(|| {
        limit(RLIMIT_AS, status("VmSize:") + 8 * MIB);
        let p = std::hint::black_box(unsafe { malloc(std::hint::black_box(64 * MIB)) });
        check(p.is_null(), "malloc fails");
    });
}
