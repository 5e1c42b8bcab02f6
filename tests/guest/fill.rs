//! Programs that use memory without end, each in its own way: `guest fill MODE`. Each goes to 768 MiB and says `filled`; with
//! a limit inside it is to get an error before (it says `refused`), or to be killed (it says nothing). The first process
//! only watches, and says `child STATUS` and `alive`.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

const GOAL: usize = 768 << 20;
const STEP: usize = 4 << 20;
const PAGE: usize = 4096;
const RW: i32 = PROT_READ | PROT_WRITE;
const ANON: i32 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

fn map(len: usize, flags: i32) -> usize {
    let p = sys!(SYS_mmap, 0, len, RW, flags, -1, 0);
    if p < 0 { refused() } else { p as usize }
}

fn refused() -> ! {
    say("refused");
    child::exit_now(0)
}

fn filled() -> i32 {
    say("filled");
    0
}

fn touch(p: usize, len: usize) {
    for at in (p..p + len).step_by(PAGE) {
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        unsafe { (at as *mut u8).write_volatile(1) }
    }
}

fn private() -> i32 {
    touch(map(GOAL, ANON), GOAL);
    filled()
}

fn populated() -> i32 {
    let p = map(GOAL, ANON);
    if sys!(SYS_madvise, p, GOAL, MADV_POPULATE_WRITE) < 0 {
        refused();
    }
    filled()
}

/// Reads alone: the page is the one of zeroes, but each needs a page table, as large as itself.
fn page_tables() -> i32 {
    let span = (GOAL / PAGE) * (2 << 20);
    let p = map(span, ANON);
    sys!(SYS_madvise, p, span, MADV_NOHUGEPAGE);
    for at in (p..p + span).step_by(2 << 20) {
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        unsafe { (at as *const u8).read_volatile() };
    }
    filled()
}

fn shared() -> i32 {
    for _ in 0..GOAL / STEP {
        touch(map(STEP, MAP_SHARED | MAP_ANONYMOUS), STEP);
    }
    filled()
}

/// Files that nobody has mapped.
fn memfds() -> i32 {
    let block = vec![7u8; STEP];
    for _ in 0..GOAL / STEP {
        let fd = sys!(SYS_memfd_create, c"fill", 0);
        if fd < 0 || sys!(SYS_write, fd, &block[..], STEP) < STEP as i64 {
            refused();
        }
    }
    filled()
}

/// Small files in a directory, which the kernel keeps by itself.
fn small_files() -> i32 {
    let dir = Tmp::new();
    let block = vec![7u8; 128 << 10];
    for i in 0..GOAL / block.len() {
        let fd = dir.open(&format!("f{i}"), O_CREAT | O_WRONLY);
        if fd < 0 || sys!(SYS_write, fd, &block[..], block.len()) < block.len() as i64 {
            refused();
        }
        sys!(SYS_close, fd);
    }
    filled()
}

fn pipes() -> i32 {
    sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &[4096u64, 4096], 0);
    let block = vec![7u8; 64 << 10];
    let mut all = 0;
    while all < GOAL {
        let p = pipe_pair();
        sys!(SYS_fcntl, p[1], F_SETPIPE_SZ, 1 << 20);
        sys!(SYS_fcntl, p[1], F_SETFL, O_NONBLOCK);
        loop {
            match sys!(SYS_write, p[1], &block[..], block.len()) {
                n if n > 0 => all += n as usize,
                n if n == -i64::from(EAGAIN) => break,
                _ => refused(),
            }
        }
    }
    filled()
}

/// Many processes that have little each.
fn processes() -> i32 {
    let each = 2 << 20;
    let touched = pipe_pair();
    for made in 0..GOAL / each {
        let pid = sys!(SYS_fork);
        if pid == 0 {
            // Rather than the first program, which has as much.
            let fd = sys!(SYS_open, c"/proc/self/oom_score_adj", O_WRONLY, 0);
            sys!(SYS_write, fd, b"500", 3);
            touch(map(each, ANON), each);
            sys!(SYS_write, touched[1], b"x", 1);
            loop {
                sys!(SYS_pause);
            }
        }
        if pid < 0 {
            refused();
        }
        // Making them is faster than filling them.
        for _ in 0..1000 {
            // Who was killed does not count.
            if sys!(SYS_wait4, -1, 0, WNOHANG, 0) > 0 {
                return 0;
            }
            let mut count = 0i32;
            sys!(SYS_ioctl, touched[0], FIONREAD, &mut count);
            if count as usize + 16 > made {
                break;
            }
            sleep_ms(5);
        }
    }
    filled()
}

/// Copies of pages that were shared: what is resident does not grow.
fn copies() -> i32 {
    let part = 96 << 20;
    let p = map(part, ANON);
    touch(p, part);
    let (go, touched) = (pipe_pair(), pipe_pair());
    let copies = GOAL / part;
    for _ in 0..copies {
        match sys!(SYS_fork) {
            0 => {
                // All are there before one copies.
                sys!(SYS_read, go[0], &mut [0u8], 1);
                touch(p, part);
                sys!(SYS_write, touched[1], b"x", 1);
                loop {
                    sys!(SYS_pause);
                }
            }
            pid if pid < 0 => refused(),
            _ => {}
        }
    }
    sys!(SYS_write, go[1], &vec![b'g'; copies][..], copies);
    // Until all have copied, or one was killed.
    loop {
        if sys!(SYS_wait4, -1, 0, WNOHANG, 0) > 0 {
            return 0;
        }
        let mut count = 0i32;
        sys!(SYS_ioctl, touched[0], FIONREAD, &mut count);
        if count as usize == copies {
            return filled();
        }
        sleep_ms(5);
    }
}

/// Grows only while the limit is far, then waits, then all at once: whoever looks seldom sees too late.
fn bursts() -> i32 {
    for _ in 0..4 {
        let p = map(STEP, ANON);
        touch(p, STEP);
        sleep_ms(400);
    }
    private()
}

/// Two threads at once.
fn threads() -> i32 {
    let half = || touch(map(GOAL / 2, ANON), GOAL / 2);
    let other = std::thread::spawn(half);
    half();
    let _ = other.join();
    filled()
}

static STACK: AtomicU64 = AtomicU64::new(0);

/// Forks by the `syscall` instruction at `at`, as the shim would (CLONE_PIDFD, CLONE_PARENT); what rax is when it comes
/// back. The code behind it takes some words off the stack and returns: all of them lead back here.
fn fork_at(at: usize, pidfd: u64) -> u64 {
    let rax;
    // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
    unsafe {
        std::arch::asm!("push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
            "mov [rip + {stack}], rsp", "lea rcx, [rip + 2f]",
            "push rcx", "push rcx", "push rcx", "push rcx", "push rcx", "push rcx", "push rcx", "push rcx",
            "jmp r11",
            "2: mov rsp, [rip + {stack}]",
            "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
            stack = sym STACK, in("r11") at, inout("rax") SYS_clone => rax, inout("rdi") 0x9000u64 => _,
            inout("rsi") 0u64 => _, inout("rdx") pidfd => _, inout("r10") 0u64 => _, inout("r8") 0u64 => _,
            inout("r9") 0u64 => _, out("rcx") _);
    }
    rax
}

/// Makes a process by hand with the shim's own call, of which the kernel knows nothing. Natively there is no shim.
fn by_hand() -> i32 {
    let flag = map(PAGE, MAP_SHARED | MAP_ANONYMOUS);
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    let made = unsafe { &*(flag as *const AtomicU32) };
    let p = map(GOAL, ANON);
    let mut tries = 0;
    for at in super::hostile::calls() {
        // One that does not come back ends a child alone.
        let pid = child(|| {
            let made_pid = fork_at(at, flag as u64 + 64) as i64;
            if made_pid > 0 {
                // Its memory stays what it was.
                loop {
                    sleep_ms(1000);
                }
            }
            if made_pid == 0 {
                // No call of its own: it would be found out.
                made.store(1, SeqCst);
                touch(p, GOAL);
                made.store(2, SeqCst);
                loop {
                    std::hint::spin_loop();
                }
            }
            0
        });
        let end = now_ms() + 300;
        while sys!(SYS_wait4, pid, 0, WNOHANG, 0) == 0 {
            if made.load(SeqCst) != 0 {
                break;
            }
            if now_ms() > end {
                sys!(SYS_kill, pid, SIGKILL);
                reap(pid);
                break;
            }
            sleep_ms(1);
        }
        tries += 1;
        if made.load(SeqCst) != 0 {
            break;
        }
    }
    if made.load(SeqCst) == 0 {
        say(&format!("not made in {tries} tries"));
        return 0;
    }
    say("made");
    sleep_ms(3000);
    if made.load(SeqCst) == 2 { filled() } else { 0 }
}

fn say(text: &str) {
    let line = format!("{text}\n");
    sys!(SYS_write, 1, line.as_bytes(), line.len());
}

type Mode = (&'static str, fn() -> i32);

const MODES: &[Mode] = &[
    ("private", private),
    ("populated", populated),
    ("page_tables", page_tables),
    ("shared", shared),
    ("memfds", memfds),
    ("small_files", small_files),
    ("pipes", pipes),
    ("processes", processes),
    ("copies", copies),
    ("bursts", bursts),
    ("threads", threads),
    ("by_hand", by_hand),
];

/// `guest fill MODE`; without a mode their names.
pub fn run(args: &[String]) -> i32 {
    let Some((_, fill)) = args.first().and_then(|a| MODES.iter().find(|(n, _)| n == a)) else {
        MODES.iter().for_each(|(n, _)| println!("{n}"));
        return i32::from(!args.is_empty()) * 2;
    };
    let pid = child(|| {
        sys!(SYS_setpgid, 0, 0);
        // What the kernel holds for it is not its own: without this the two would be much the same.
        let _ = std::fs::write("/proc/self/oom_score_adj", "300");
        fill()
    });
    let status = reap(pid);
    sys!(SYS_kill, -pid, SIGKILL);
    say(&format!("child {status}"));
    say("alive");
    0
}
