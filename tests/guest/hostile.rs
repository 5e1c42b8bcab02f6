//! Programs that attack the code in their own address space that enters the sandbox's kernel.
//!
//! Each is a mode of the guest binary, `guest hostile MODE`. It starts a sibling that computes and must finish
//! unharmed (it prints `sibling 500000500000` and exits 0), then does its harm in a child, waits for the child
//! and prints `child ended`. What the child's end is does not matter. Natively nothing is there to attack: the
//! addresses are unmapped and the child dies of SIGSEGV, or the calls fail.

use guest_tests::*;
use libc::*;

/// Where the shim lives. Nothing natively: user space ends there with 4-level tables, but for the stack.
const SHIM: usize = 0x7fff_c000_0000;
const SHIM_END: usize = 0x7fff_f000_0000;

fn sibling() -> i32 {
    child(|| {
        let mut sum = 0u64;
        for i in 0..=1_000_000u64 {
            sum += i;
            if i % 1000 == 0 {
                sys!(SYS_getppid);
                sys!(SYS_sched_yield);
            }
        }
        let p = pipe_pair();
        for _ in 0..100 {
            sys!(SYS_write, p[1], b"x", 1);
            sys!(SYS_read, p[0], &mut [0u8; 1], 1);
            sleep_ms(5);
        }
        let line = format!("sibling {sum}\n");
        sys!(SYS_write, 1, line.as_bytes(), line.len());
        0
    })
}

/// Ranges of the shim's region that this process can see in its own map, or guesses where it cannot.
fn regions() -> Vec<(usize, usize)> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut v: Vec<(usize, usize)> = text
        .lines()
        .filter_map(|l| l.split(' ').next()?.split_once('-'))
        .filter_map(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)))
        .filter(|(a, _)| (SHIM..SHIM_END).contains(a))
        .collect();
    if v.is_empty() {
        v = (SHIM..SHIM + (64 << 20)).step_by(1 << 20).map(|a| (a, a + 4096)).collect();
    }
    v
}

fn readable(p: usize) -> bool {
    // A write to a pipe copies from the address without a fault.
    let f = pipe_pair();
    let r = sys!(SYS_write, f[1], p, 16) == 16;
    shut(f);
    r
}

fn xorshift(s: &mut u64) -> u64 {
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    *s
}

/// Every `syscall` instruction of the shim's code, the last first.
pub fn calls() -> Vec<usize> {
    let mut all = Vec::new();
    for page in (SHIM..SHIM + 0x1_0000).step_by(4096).filter(|page| readable(*page)) {
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        let code = unsafe { std::slice::from_raw_parts(page as *const u8, 4096) };
        all.extend(
            code.windows(2).enumerate().filter(|(_, two)| *two == [0x0f, 0x05]).map(|(at, _)| page + at),
        );
    }
    all.reverse();
    all
}

/// Calls `p` with the registers of a call.
fn jump(p: usize, nr: u64, a: [u64; 6]) {
    // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
    unsafe {
        std::arch::asm!("push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15", "call r11",
            "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
            in("r11") p, inout("rax") nr => _, inout("rdi") a[0] => _, inout("rsi") a[1] => _, inout("rdx") a[2] => _,
            inout("r10") a[3] => _, inout("r8") a[4] => _, inout("r9") a[5] => _, out("rcx") _);
    }
}

/// Jumps to every `syscall` instruction of the region, with numbers and arguments that would do harm outside.
fn jump_into_shim() -> i32 {
    let mut seed = 88_172_645_463_325_252;
    let numbers: [u64; 16] = [59, 2, 257, 41, 42, 56, 57, 62, 101, 165, 9, 10, 11, 25, 231, 317];
    for (a, b) in regions() {
        for page in (a..b).step_by(4096) {
            if !readable(page) {
                continue;
            }
            for p in page..page + 4095 {
                // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
                if unsafe {
                    (p as *const u8).read_volatile() != 0x0f || ((p + 1) as *const u8).read_volatile() != 0x05
                } {
                    continue;
                }
                for n in numbers {
                    // A child for each: it need not come back.
                    let pid = child(|| {
                        let mut r = || xorshift(&mut seed);
                        jump(p, n, [r() % 4096, SHIM as u64, r(), r() % 16, r(), r()]);
                        0
                    });
                    let end = now_ms() + 200;
                    while sys!(SYS_wait4, pid, 0, WNOHANG, 0) == 0 {
                        if now_ms() > end {
                            sys!(SYS_kill, pid, SIGKILL);
                            reap(pid);
                            break;
                        }
                        sleep_ms(1);
                    }
                }
            }
        }
    }
    0
}

/// Writes random bytes over the region while other threads make calls.
fn scribble() -> i32 {
    for _ in 0..3 {
        std::thread::spawn(|| {
            loop {
                sys!(SYS_getppid);
                let fd = sys!(SYS_openat, AT_FDCWD, c"/", O_RDONLY, 0);
                sys!(SYS_close, fd);
            }
        });
    }
    sleep_ms(20);
    let all = regions();
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    let end = now_ms() + 1500;
    while now_ms() < end {
        let (a, b) = all[xorshift(&mut seed) as usize % all.len()];
        let p = (a + xorshift(&mut seed) as usize % (b - a)) & !7;
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        unsafe { (p as *mut u64).write_volatile(xorshift(&mut seed)) };
    }
    0
}

/// Scribbles over writable pages only, so that it lives as long as possible.
fn scribble_data() -> i32 {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let w: Vec<(usize, usize)> = text
        .lines()
        .filter(|l| l.contains(" rw"))
        .filter_map(|l| l.split(' ').next()?.split_once('-'))
        .filter_map(|(a, b)| Some((usize::from_str_radix(a, 16).ok()?, usize::from_str_radix(b, 16).ok()?)))
        .filter(|(a, _)| (SHIM..SHIM_END).contains(a))
        .collect();
    if w.is_empty() {
        return scribble();
    }
    let mut seed = 0x1234_5678_9abc_def1;
    for round in 0..200_000u32 {
        let (a, b) = w[xorshift(&mut seed) as usize % w.len()];
        let p = (a + xorshift(&mut seed) as usize % (b - a)) & !3;
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        unsafe { (p as *mut u32).write_volatile(xorshift(&mut seed) as u32) };
        if round % 64 == 0 {
            sys!(SYS_getppid);
        }
    }
    0
}

/// Every memory call against the region: refused, or the child is lost.
fn unmap_shim() -> i32 {
    let bads = |what: &str, r: i64| {
        if r >= 0 {
            let line = format!("{what} over the shim succeeded\n");
            sys!(SYS_write, 1, line.as_bytes(), line.len());
        }
    };
    let inside = std::fs::read_to_string("/proc/self/maps").is_ok_and(|m| m.contains("7fffc"));
    for (a, b) in regions() {
        let n = b - a;
        let anon = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        let m = sys!(SYS_mmap, 0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        let calls = [
            ("mprotect", sys!(SYS_mprotect, a, n, PROT_READ | PROT_WRITE | PROT_EXEC)),
            ("mremap from", sys!(SYS_mremap, a, n, n * 2, MREMAP_MAYMOVE, 0)),
            ("mremap to", sys!(SYS_mremap, m, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, a)),
            ("mmap", sys!(SYS_mmap, a, n, PROT_READ | PROT_WRITE, anon, -1, 0)),
            ("madvise", sys!(SYS_madvise, a, n, MADV_DONTNEED)),
        ];
        if inside {
            calls.iter().for_each(|(w, r)| bads(w, *r));
        }
        sys!(SYS_munmap, a, n);
        sys!(SYS_munmap, m, n);
    }
    // Below, across and above at once.
    sys!(SYS_munmap, SHIM - (1 << 20), SHIM_END - SHIM);
    sys!(SYS_getppid);
    0
}

/// Forks without end for a third of a second, all of it in one process group that is killed then.
fn fork_bomb() -> i32 {
    sys!(SYS_setpgid, 0, 0);
    sys!(SYS_prlimit64, 0, RLIMIT_NPROC, &[200u64, 200], 0);
    let end = now_ms() + 300;
    let mut made = 0;
    while now_ms() < end && made < 400 {
        let r = sys!(SYS_fork);
        if r == 0 {
            // The child forks on; the group's kill ends all.
            continue;
        }
        made += i32::from(r > 0);
    }
    sys!(SYS_kill, 0, SIGKILL);
    0
}

/// `guest bomb forks` and `guest bomb threads`: makes what sleeps until no more can be made, and says how many and why.
pub fn bomb(args: &[String]) -> i32 {
    let say = |line: &str| sys!(SYS_write, 1, line.as_bytes(), line.len());
    say("ready\n");
    let threads = args.first().is_some_and(|kind| kind == "threads");
    let mut made = 0;
    let error = loop {
        let result = if threads {
            let thread = std::thread::Builder::new().stack_size(32 << 10).spawn(|| sys!(SYS_pause));
            thread.map_or_else(|e| -i64::from(e.raw_os_error().unwrap_or(0)), |_| 1)
        } else {
            match sys!(SYS_fork) {
                0 => loop {
                    sys!(SYS_pause);
                },
                result => result,
            }
        };
        if result < 0 {
            break -result;
        }
        made += 1;
    };
    say(&format!("{} after {made}\n", check::errname(error)));
    0
}

/// A million descriptors, or as many as the limit has.
fn descriptors() -> i32 {
    let mut l = [0u64; 2];
    sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &mut l);
    l[0] = l[1];
    sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &l, 0);
    let mut n = 0;
    while n < 1_000_000 {
        let r = sys!(SYS_dup, 1);
        if r < 0 {
            break;
        }
        n += 1;
    }
    for _ in 0..1000 {
        sys!(SYS_openat, AT_FDCWD, c"/etc/passwd", O_RDONLY, 0);
        sys!(SYS_eventfd2, 0, 0);
    }
    0
}

/// Numbers beyond the table, other conventions, and pointers to everywhere.
fn garbage_calls() -> i32 {
    let mut seed = 0x0dd0_5eed_0dd0_5eed;
    // Calls that end, stop or block this process are left out.
    let skip =
        [15, 34, 35, 23, 60, 61, 62, 130, 200, 202, 230, 231, 234, 247, 270, 271, 7, 0, 101, 219, 449, 455];
    for _ in 0..20_000 {
        let nr = xorshift(&mut seed) % 480;
        if skip.contains(&nr)
            || (56..=59).contains(&nr)
            || nr == 322
            || nr == 435
            || nr == 11
            || nr == 12
            || nr == 9
            || nr == 10
            || nr == 25
        {
            continue;
        }
        let mut v = || match xorshift(&mut seed) % 5 {
            0 => xorshift(&mut seed) % 8 + 900,
            1 => 0,
            2 => SHIM as u64,
            3 => u64::MAX,
            _ => xorshift(&mut seed),
        } as usize;
        let a = [v(), v(), v(), v(), v(), v()];
        sys!(nr as i64, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    for nr in [512i64, 1000, 4095, 0x4000_0000, 0x4000_0001, -1, i64::MAX, i64::MIN] {
        sys!(nr, 0, 0, 0, 0, 0, 0);
    }
    0
}

/// The `syscall` instructions of the region's beginning, where its code is.
fn entries() -> Vec<usize> {
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    let byte = |p: usize| unsafe { (p as *const u8).read_volatile() };
    let pages = (SHIM..SHIM + (1 << 20)).step_by(4096).filter(|p| readable(*p));
    pages.flat_map(|page| page..page + 4095).filter(|p| byte(*p) == 0x0f && byte(p + 1) == 0x05).collect()
}

const TARGET: usize = 0x1_2345_0000;

extern "C" fn write_target() {
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    unsafe { (TARGET as *mut u8).write_volatile(b'1') };
    child::exit_now(0);
}

/// Memory that was opened for reading is made writable by the host's own calls, from the code that may make them: by
/// mprotect(2) of a mapping, and by mmap(2) of the descriptor while another thread maps it.
fn write_read_only() -> i32 {
    let path = c"/dev/shm/hostile-read-only";
    sys!(SYS_unlink, path);
    let fd = ok(sys!(SYS_open, path, O_RDWR | O_CREAT | O_EXCL, 0o644));
    ok(sys!(SYS_ftruncate, fd, 4096));
    let ro = ok(sys!(SYS_open, path, O_RDONLY)) as i32;
    let all = entries();
    let (target, spot) = (TARGET, TARGET + 0x1_0000);
    let map = move || sys!(SYS_mmap, target, 4096, PROT_READ, MAP_SHARED | MAP_FIXED, ro, 0);
    ok(map());
    for p in &all {
        let pid = child(|| {
            // What follows the instruction may fault: the write comes then.
            for x in [SIGSEGV, SIGILL, SIGBUS, SIGTRAP, SIGSYS] {
                sig::handle(x, write_target as *const () as usize, 0);
            }
            jump(*p, 10, [target as u64, 4096, 3, 0, 0, 0]);
            write_target();
            0
        });
        finish(pid, 100);
    }
    for p in &all {
        let pid = child(|| {
            std::thread::spawn(move || {
                loop {
                    map();
                }
            });
            let end = now_ms() + 300;
            while now_ms() < end {
                for fd in 0..8 {
                    jump(*p, 9, [spot as u64, 4096, 3, 0x11, fd, 0]);
                    if sys!(SYS_getrandom, spot, 1, 0) == 1 {
                        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
                        unsafe { (spot as *mut u8).write_volatile(b'2') };
                    }
                }
            }
            0
        });
        finish(pid, 600);
    }
    let mut now = [0u8; 1];
    sys!(SYS_pread64, fd, &mut now, 1, 0);
    if now[0] != 0 {
        let line = format!("writing what was opened for reading succeeded ({})\n", now[0] as char);
        sys!(SYS_write, 1, line.as_bytes(), line.len());
    }
    sys!(SYS_unlink, path);
    0
}

/// In the area that is shared with the sandbox's kernel: the data of a slot that nobody has.
const SPOT: usize = SHIM + 0x100_0000 + 2000 * 0x4000 + 0x1000;
const MARK: u64 = 0x6c61_7a61_7265_7421;

fn scribble_unheard() -> i32 {
    unheard(66);
    0
}

/// So many processes write what a shim would not, where a new one tells the sandbox's kernel that it listens, or ends; before
/// any call, and then go on.
pub fn unheard(count: usize) {
    const CTL: usize = SHIM + 0x100_0000;
    const SLOT: usize = 0x8000;
    // That it ends, that it is dead, an error, descriptors that it has or has not, and what says nothing.
    let values = [0x7fff_ffff, 0x7fff_fffe, 0x8000_0016, 1, 2, 3, 40, 41, 42, 0x7fff_fff0, 0];
    for (i, value) in values.iter().cycle().take(count).enumerate() {
        let pid = child(|| {
            for slot in 1..4 {
                for at in (CTL + slot * SLOT + 0x800..CTL + slot * SLOT + 0xc00).step_by(4) {
                    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
                    unsafe { (at as *mut u32).write_volatile(*value) };
                }
            }
            if i % 3 == 0 {
                let end = now_ms() + 20;
                while now_ms() < end {
                    std::hint::spin_loop();
                }
            }
            if i % 2 == 0 {
                sys!(SYS_getppid);
            }
            0
        });
        finish(pid, 3000);
    }
}

/// Natively there is no such area.
extern "C" fn nothing_there(_: i32) {
    child::exit_now(7);
}

/// What is written near the shim before execve(2) is not there when a set-user-ID program runs: code would be, too.
fn leave_behind() -> i32 {
    if sys!(SYS_geteuid) != 0 {
        return 0;
    }
    let t = Tmp::new();
    ok(sys!(SYS_chmod, t.path(""), 0o755));
    std::fs::copy("/proc/self/exe", format!("{}/p", t.dir())).expect("a copy");
    ok(sys!(SYS_chmod, t.path("p"), 0o4755));
    let pid = child(|| {
        ok(sys!(SYS_setgroups, 0, 0));
        ok(sys!(SYS_setresgid, 1000, 1000, 1000));
        ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        sig::handle(SIGSEGV, nothing_there as *const () as usize, 0);
        // SAFETY: nobody but the sandbox's kernel has it; where it is not mapped the handler ends this process.
        unsafe { (SPOT as *mut u64).write_volatile(MARK) };
        let argv = [t.path("p").as_ptr() as usize, c"look".as_ptr() as usize, 0];
        sys!(SYS_execve, t.path("p"), &argv, &[0usize]) as i32
    });
    // It says that it has the rights.
    eq(reap(pid), 7 << 8);
    0
}

/// The set-user-ID program of [`leave_behind`].
pub fn look(_: &[String]) -> i32 {
    sig::handle(SIGSEGV, nothing_there as *const () as usize, 0);
    // SAFETY: as there.
    if unsafe { (SPOT as *const u64).read_volatile() } == MARK {
        let line = b"leaving something to a set-user-ID program succeeded\n";
        sys!(SYS_write, 1, &line[..], line.len());
    }
    if sys!(SYS_geteuid) == 0 { 7 } else { 8 }
}

/// Ends a child that does not end by itself in time.
fn finish(pid: i32, ms: i64) {
    let end = now_ms() + ms;
    while sys!(SYS_wait4, pid, 0, WNOHANG, 0) == 0 {
        if now_ms() > end {
            sys!(SYS_kill, pid, SIGKILL);
            reap(pid);
            return;
        }
        sleep_ms(1);
    }
}

type Harm = fn() -> i32;

const MODES: &[(&str, Harm)] = &[
    ("jump_into_shim", jump_into_shim),
    ("scribble", scribble),
    ("scribble_data", scribble_data),
    ("scribble_unheard", scribble_unheard),
    ("unmap_shim", unmap_shim),
    ("fork_bomb", fork_bomb),
    ("descriptors", descriptors),
    ("garbage_calls", garbage_calls),
    ("write_read_only", write_read_only),
    ("leave_behind", leave_behind),
];

/// `guest hostile MODE`.
pub fn run(args: &[String]) -> i32 {
    let Some((_, harm)) = args.first().and_then(|a| MODES.iter().find(|(n, _)| n == a)) else {
        MODES.iter().for_each(|(n, _)| println!("{n}"));
        return i32::from(!args.is_empty()) * 2;
    };
    check::keep_failures();
    let s = sibling();
    let pid = child(|| {
        for x in [SIGSEGV, SIGBUS, SIGILL, SIGSYS] {
            sig::handle(x, SIG_DFL, 0);
        }
        sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
        // Nothing it does to its descriptors shows outside.
        let null = sys!(SYS_openat, AT_FDCWD, c"/dev/null", O_RDWR, 0);
        sys!(SYS_dup2, null, 0);
        if args[0] == "garbage_calls" {
            sys!(SYS_dup2, null, 1);
            sys!(SYS_dup2, null, 2);
            sys!(SYS_setpgid, 0, 0);
        }
        harm()
    });
    let end = now_ms() + 15_000;
    while sys!(SYS_wait4, pid, 0, WNOHANG, 0) == 0 {
        if now_ms() > end {
            sys!(SYS_kill, pid, SIGKILL);
            reap(pid);
            break;
        }
        sleep_ms(5);
    }
    let st = reap(s);
    let line = format!("child ended\nsibling status {st}\n");
    sys!(SYS_write, 1, line.as_bytes(), line.len());
    st
}
