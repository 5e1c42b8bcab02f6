//! Core files (core(5)).

use guest_tests::*;
use libc::*;
use std::path::Path;

cases![
    flag_and_file, no_limit_no_flag, undumpable, other_signals, threads_are_in_it, memory_is_in_it, filter_chooses, cut_off, replaced,
    links_are_not_followed, not_others, advised_memory_is_left_out, siginfo_says, seccomp_kills,
    numbers_of_a_namespace
];

/// Cores go into the working directory, by the name `core`.
fn needs_plain_cores() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.trim() != "core" {
        skip("cores go elsewhere here");
    }
}

/// Runs `f` in a child whose core may be of `limit` bytes and goes into `t`; its wait status.
fn dies(t: &Tmp, limit: u64, f: impl FnOnce()) -> i32 {
    needs_plain_cores();
    let pid = child(|| {
        ok(sys!(SYS_chdir, t.path("")));
        sys!(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
        let hard = {
            let mut old = [0u64; 2];
            ok(sys!(SYS_prlimit64, 0, RLIMIT_CORE, 0, &mut old));
            std::hint::black_box(&old)[1]
        };
        if hard < limit {
            skip("the hard limit forbids cores");
        }
        ok(sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[limit, hard], 0));
        // The Rust runtime looks at faults first.
        sig::handle(SIGSEGV, SIG_DFL, 0);
        sig::handle(SIGBUS, SIG_DFL, 0);
        f();
        0
    });
    reap(pid)
}

fn core(t: &Tmp) -> Vec<u8> {
    std::fs::read(format!("{}/core", t.dir())).expect("a core file")
}

fn exists(t: &Tmp) -> bool {
    Path::new(&format!("{}/core", t.dir())).exists()
}

fn abort() {
    sys!(SYS_kill, sys!(SYS_getpid), SIGABRT);
}

fn word<const N: usize>(b: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word[..N].copy_from_slice(&b[at..at + N]);
    u64::from_le_bytes(word)
}

/// Type, address, offset, bytes in the file, bytes in memory of each program header.
fn headers(core: &[u8]) -> Vec<[u64; 5]> {
    check(core.starts_with(b"\x7fELF\x02\x01\x01"), "an ELF file");
    eq((word::<2>(core, 16), word::<2>(core, 18)), (4, 62));
    let count = word::<2>(core, 56) as usize;
    (0..count)
        .map(|i| 64 + i * 56)
        .map(|at| [word::<4>(core, at), word::<8>(core, at + 16), word::<8>(core, at + 8), word::<8>(core, at + 32), word::<8>(core, at + 40)])
        .collect()
}

/// Notes: name, type, content.
fn notes(core: &[u8]) -> Vec<(String, u64, Vec<u8>)> {
    let note = headers(core)[0];
    eq(note[0], 4);
    let (mut at, end) = (note[2] as usize, (note[2] + note[3]) as usize);
    let mut all = Vec::new();
    while at < end {
        let (name, len, kind) = (word::<4>(core, at) as usize, word::<4>(core, at + 4) as usize, word::<4>(core, at + 8));
        let text = String::from_utf8_lossy(&core[at + 12..at + 12 + name - 1]).into_owned();
        let content = at + 12 + name.next_multiple_of(4);
        all.push((text, kind, core[content..content + len].to_vec()));
        at = content + len.next_multiple_of(4);
    }
    all
}

/// Memory of an address, if the core has it.
fn memory(core: &[u8], addr: usize, len: usize) -> Option<&[u8]> {
    let h = headers(core);
    let h = h.iter().find(|h| h[0] == 1 && (h[1]..h[1] + h[3]).contains(&(addr as u64)))?;
    let at = (addr as u64 - h[1] + h[2]) as usize;
    core.get(at..at + len)
}

fn flag_and_file() {
    let t = Tmp::new();
    let s = dies(&t, RLIM_INFINITY, abort);
    check(WIFSIGNALED(s) && WTERMSIG(s) == SIGABRT && WCOREDUMP(s), &format!("{s:#x}"));
    let fd = ok(t.open("core", O_RDONLY)) as i32;
    eq(stat_fd(fd).st_mode & 0o7777, 0o600);
    shut([fd]);
    let core = core(&t);
    let kinds: Vec<u64> = notes(&core).iter().map(|n| n.1).collect();
    // NT_PRSTATUS, NT_PRPSINFO, NT_SIGINFO, NT_AUXV, NT_FILE, NT_FPREGSET, NT_X86_XSTATE
    eq(&kinds[..7], [1, 3, 0x5349_4749, 6, 0x4649_4c45, 2, 0x202]);
    let lengths: Vec<usize> = notes(&core).iter().map(|n| n.2.len()).collect();
    eq((lengths[0], lengths[1], lengths[2], lengths[5]), (336, 136, 128, 512));
}

fn no_limit_no_flag() {
    let t = Tmp::new();
    for limit in [0, 1, 4095] {
        let s = dies(&t, limit, abort);
        check(WIFSIGNALED(s) && !WCOREDUMP(s) && !exists(&t), "no core");
    }
}

fn undumpable() {
    let t = Tmp::new();
    let s = dies(&t, RLIM_INFINITY, || {
        ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
        abort();
    });
    check(WIFSIGNALED(s) && !WCOREDUMP(s) && !exists(&t), "no core");
}

fn other_signals() {
    let t = Tmp::new();
    for signal in [SIGTERM, SIGKILL, SIGUSR1, SIGALRM] {
        let s = dies(&t, RLIM_INFINITY, || _ = sys!(SYS_kill, sys!(SYS_getpid), signal));
        check(WTERMSIG(s) == signal && !WCOREDUMP(s), "no core");
    }
    for signal in [SIGQUIT, SIGILL, SIGTRAP, SIGFPE, SIGBUS, SIGSEGV, SIGSYS, SIGXCPU, SIGXFSZ] {
        let s = dies(&t, RLIM_INFINITY, || _ = sys!(SYS_kill, sys!(SYS_getpid), signal));
        check(WTERMSIG(s) == signal && WCOREDUMP(s), &format!("a core of {signal}: {s:#x}"));
    }
}

fn threads_are_in_it() {
    let t = Tmp::new();
    let p = pipe_pair();
    let s = dies(&t, RLIM_INFINITY, || {
        // One waits, one computes.
        std::thread::spawn(move || sys!(SYS_read, p[0], &mut [0u8; 1], 1));
        std::thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
        sleep_ms(30);
        abort();
    });
    shut(p);
    check(WCOREDUMP(s), "a core");
    let core = core(&t);
    let status: Vec<_> = notes(&core).into_iter().filter(|n| n.1 == 1).collect();
    eq(status.len(), 3);
    let mut ids: Vec<u64> = status.iter().map(|n| word::<4>(&n.2, 32)).collect();
    // The one whose signal it is comes first.
    let first = ids[0];
    ids.sort_unstable();
    eq(ids[0], first);
    ids.dedup();
    eq(ids.len(), 3);
    for one in &status {
        let (rip, rsp) = (word::<8>(&one.2, 112 + 16 * 8), word::<8>(&one.2, 112 + 19 * 8));
        check(rip != 0 && memory(&core, rsp as usize, 8).is_some(), "registers, and the stack of each");
    }
}

fn memory_is_in_it() {
    let t = Tmp::new();
    let text = std::hint::black_box(b"remember these very bytes, please".to_vec());
    let at = text.as_ptr() as usize;
    let on_stack = std::hint::black_box([0x5eed_u64; 4]);
    let stack = on_stack.as_ptr() as usize;
    let s = dies(&t, RLIM_INFINITY, abort);
    check(WCOREDUMP(s), "a core");
    let core = core(&t);
    eq(memory(&core, at, text.len()), Some(&text[..]));
    eq(memory(&core, stack, 8), Some(&0x5eed_u64.to_le_bytes()[..]));
    // Code is in its file.
    let code = flag_and_file as *const () as usize;
    check(memory(&core, code, 8).is_none(), "no code");
}

fn filter_chooses() {
    let t = Tmp::new();
    let shared = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) as usize;
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    unsafe { (shared as *mut u64).write_volatile(0x1234) };
    let code = flag_and_file as *const () as usize;
    let heap = Box::new(7u64);
    let heap_at = std::hint::black_box(&raw const *heap) as usize;
    for (filter, want) in [("0x33", [true, true, false]), ("0", [false; 3]), ("1", [true, false, false]), ("0x4", [false, false, true])] {
        let s = dies(&t, RLIM_INFINITY, || {
            std::fs::write("/proc/self/coredump_filter", filter).unwrap();
            abort();
        });
        check(WCOREDUMP(s), "a core");
        let core = core(&t);
        let has = [heap_at, shared, code].map(|at| memory(&core, at, 8).is_some());
        eq((filter, has), (filter, want));
    }
}

fn cut_off() {
    let t = Tmp::new();
    let s = dies(&t, 16384, abort);
    check(WCOREDUMP(s), "a part is a core, too");
    let size = core(&t).len();
    check(size > 0 && size <= 65536, &format!("{size} bytes"));
}

/// What has the name is unlinked first, whatever it is and whoever may look into it.
fn replaced() {
    let t = Tmp::new();
    for mode in [0o600, 0o644, 0o400] {
        std::fs::write(format!("{}/core", t.dir()), vec![b'x'; 100_000]).unwrap();
        ok(sys!(SYS_chmod, t.path("core"), mode));
        check(WCOREDUMP(dies(&t, RLIM_INFINITY, abort)), "replaced");
        check(core(&t).starts_with(b"\x7fELF"), "by a core");
        let fd = ok(t.open("core", O_RDONLY)) as i32;
        eq(stat_fd(fd).st_mode & 0o7777, 0o600);
        shut([fd]);
    }
}

fn links_are_not_followed() {
    let t = Tmp::new();
    std::fs::write(format!("{}/victim", t.dir()), b"precious").unwrap();
    ok(sys!(SYS_chmod, t.path("victim"), 0o600));
    ok(sys!(SYS_symlink, c"victim", t.path("core")));
    check(WCOREDUMP(dies(&t, RLIM_INFINITY, abort)), "instead of a symbolic link");
    ok(sys!(SYS_unlink, t.path("core")));
    ok(sys!(SYS_link, t.path("victim"), t.path("core")));
    check(WCOREDUMP(dies(&t, RLIM_INFINITY, abort)), "instead of a second name");
    eq(std::fs::read(format!("{}/victim", t.dir())).unwrap(), b"precious");
    ok(sys!(SYS_unlink, t.path("core")));
    ok(sys!(SYS_mkdir, t.path("core"), 0o700));
    check(!WCOREDUMP(dies(&t, RLIM_INFINITY, abort)), "a directory stays");
}

/// Nothing of another user's changes, and a process that was another user's is not looked into.
fn not_others() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    let t = Tmp::new();
    ok(sys!(SYS_chmod, t.path(""), 0o1777));
    std::fs::write(format!("{}/core", t.dir()), b"theirs").unwrap();
    let as_user = |limit| {
        dies(&t, limit, || {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
            ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0));
            abort();
        })
    };
    check(!WCOREDUMP(as_user(RLIM_INFINITY)), "a sticky directory");
    eq(core(&t), b"theirs");
    ok(sys!(SYS_unlink, t.path("core")));
    check(WCOREDUMP(as_user(RLIM_INFINITY)), "its own");
    ok(sys!(SYS_unlink, t.path("core")));
    let s = dies(&t, RLIM_INFINITY, || {
        ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        abort();
    });
    check(!WCOREDUMP(s) && !exists(&t), "it may know what its new user must not");
}

fn advised_memory_is_left_out() {
    let t = Tmp::new();
    let at = ok(sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as usize;
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    unsafe {
        (at as *mut u64).write_volatile(1);
        ((at + 4096) as *mut u64).write_volatile(2);
    }
    ok(sys!(SYS_madvise, at, 4096, MADV_DONTDUMP));
    check(WCOREDUMP(dies(&t, RLIM_INFINITY, abort)), "a core");
    let core = core(&t);
    check(memory(&core, at, 8).is_none(), "a key stays out");
    eq(memory(&core, at + 4096, 8), Some(&2u64.to_le_bytes()[..]));
}

fn siginfo_says() {
    let t = Tmp::new();
    let hole = bad() as usize;
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    let s = dies(&t, RLIM_INFINITY, || unsafe { (hole as *mut u8).write_volatile(1) });
    check(WCOREDUMP(s) && WTERMSIG(s) == SIGSEGV, "a core");
    let core = core(&t);
    let info = &notes(&core)[2].2;
    // si_signo, si_code: SEGV_ACCERR, si_addr
    eq((word::<4>(info, 0), word::<4>(info, 8), word::<8>(info, 16)), (11, 2, hole as u64));
    let process = &notes(&core)[1].2;
    check(process[40..56].starts_with(b"guest\0"), "its name");
    check(String::from_utf8_lossy(&process[56..]).contains("guest coredump"), "its arguments");
}

fn seccomp_kills() {
    let t = Tmp::new();
    let s = dies(&t, RLIM_INFINITY, || {
        ok(sys!(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
        // ld [nr]; jeq getppid, kill process; allow
        let code: [u64; 4] = [0x20, 0x15 | 1 << 24 | (SYS_getppid as u64) << 32, 6 | 0x8000_0000 << 32, 6 | 0x7fff_0000 << 32];
        ok(sys!(SYS_seccomp, 1, 0, &[4u64, code.as_ptr() as u64]));
        sys!(SYS_getppid);
    });
    check(WIFSIGNALED(s) && WTERMSIG(s) == SIGSYS && WCOREDUMP(s), &format!("{s:#x}"));
}

/// The notes have the numbers that the process has for itself.
fn numbers_of_a_namespace() {
    guest_tests::space::alone(|| {
        let t = Tmp::new();
        let init = crate::pidns::as_init(|| {
            let s = dies(&t, RLIM_INFINITY, || {
                ok(sys!(SYS_setpgid, 0, 0));
                abort();
            });
            i32::from(!WCOREDUMP(s))
        });
        exits(init, 0);
        let core = core(&t);
        let notes = notes(&core);
        let of = |kind: u64| &notes.iter().find(|n| n.1 == kind).expect("the note").2;
        // pr_pid, pr_ppid, pr_pgrp, pr_sid; si_pid.
        let four = |note: &[u8], at: usize| [0, 4, 8, 12].map(|more| word::<4>(note, at + more));
        eq(four(of(1), 32), [2, 1, 2, 0]);
        eq(four(of(3), 24), [2, 1, 2, 0]);
        eq(word::<4>(of(0x5349_4749), 16), 2);
    });
}
