//! Call sites that are used often: whatever a kernel does to make them fast must not show. Code is written into fresh
//! memory, so that each case begins with sites that nobody has called from.

use guest_tests::child::exit_now;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

cases![
    forms, registers_kept, flags_kept, flags_while_signals_come, red_zone_kept, vector_kept, jump_to_the_instruction, both_forms_at_once, jump_behind_the_instruction, signal_storm,
    restart_at_a_site, eintr_at_a_site, fork_and_sites, threads_at_once, code_moved, code_rewritten, code_replaced, gs_claimed, execve_forgets,
    own_ids_follow, constant_between
];

pub const OFTEN: usize = 200;

/// A page of code.
pub struct Code(*mut u8);

impl Code {
    pub fn new(bytes: &[u8]) -> Code {
        let at = sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as *mut u8;
        let code = Code(at);
        code.put(bytes);
        code
    }

    /// Nops, then the code at 512.
    pub fn put(&self, bytes: &[u8]) {
        eq(sys!(SYS_mprotect, self.0, 4096, PROT_READ | PROT_WRITE), 0);
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        unsafe {
            self.0.write_bytes(0x90, 4096);
            self.0.add(512).copy_from(bytes.as_ptr(), bytes.len());
        }
        eq(sys!(SYS_mprotect, self.0, 4096, PROT_READ | PROT_EXEC), 0);
    }

    pub fn entry(&self, offset: usize) -> extern "C" fn(u64, u64, u64, u64) -> i64 {
        // SAFETY: the page holds a function of this type, written by `new`.
        unsafe { std::mem::transmute(self.0.add(512 + offset)) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        sys!(SYS_munmap, self.0, 4096);
    }
}

/// mov eax, NR; syscall; ret
pub fn first(nr: i64) -> Vec<u8> {
    [&[0xb8][..], &(nr as u32).to_le_bytes(), &[0x0f, 0x05, 0xc3]].concat()
}

/// mov rax, rdi; mov rdi, rsi; mov rsi, rdx; mov rdx, rcx; syscall; cmp rax, -4095; jae 1f; ret; 1: neg rax; neg rax; ret
pub fn second() -> Vec<u8> {
    let moves = [0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, 0x48, 0x89, 0xd6, 0x48, 0x89, 0xca];
    let rest = [0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0x73, 0x01, 0xc3, 0x48, 0xf7, 0xd8, 0x48, 0xf7, 0xd8, 0xc3];
    [&moves[..], &rest].concat()
}

fn forms() {
    let (a, b) = (Code::new(&first(SYS_getppid)), Code::new(&second()));
    let (a, b) = (a.entry(0), b.entry(0));
    let parent = sys!(SYS_getppid);
    for _ in 0..OFTEN {
        eq(a(0, 0, 0, 0), parent);
        eq(b(SYS_getppid as u64, 0, 0, 0), parent);
        eq(b(SYS_lseek as u64, 999, 0, 0), i64::from(-EBADF));
        eq(b(SYS_getsid as u64, 0, 0, 0), sys!(SYS_getsid, 0));
        eq(b(100_000, 0, 0, 0), i64::from(-ENOSYS));
        eq(b(u64::MAX, 0, 0, 0), i64::from(-ENOSYS));
    }
    let t = Tmp::new();
    let fd = t.file("f", &[7; 4096]);
    let read = Code::new(&second());
    let mut buf = [0u8; 16];
    for i in 0..OFTEN {
        buf[0] = 0;
        eq(read.entry(0)(SYS_read as u64, fd as u64, buf.as_mut_ptr() as u64, 16), 16);
        eq((buf[0], i64::try_from(16 * (i + 1)).unwrap()), (7, sys!(SYS_lseek, fd, 0, SEEK_CUR)));
    }
    eq(read.entry(0)(SYS_read as u64, fd as u64, 8, 16), i64::from(-EFAULT));
    shut([fd]);
}

/// Registers that a call keeps, all of them set and looked at around `call rbx`.
fn registers_kept() {
    for bytes in [first(SYS_getppid), second()] {
        let code = Code::new(&bytes);
        for _ in 0..OFTEN {
            let at = code.entry(if bytes.len() > 10 { 12 } else { 0 }) as usize as u64;
            let mut out = [0u64; 9];
            // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
            unsafe {
                std::arch::asm!(
                    "push rbp", "push rbx", "push {out}", "mov rbx, {at}",
                    "mov eax, 110", "mov edi, 0x101", "mov esi, 0x102", "mov edx, 0x103", "mov r10d, 0x104", "mov r8d, 0x105", "mov r9d, 0x106",
                    "mov ebp, 0x107", "mov r12d, 0x108", "mov r13d, 0x109",
                    "call rbx",
                    "pop rcx",
                    "mov [rcx], rdi", "mov [rcx+8], rsi", "mov [rcx+16], rdx", "mov [rcx+24], r10", "mov [rcx+32], r8", "mov [rcx+40], r9",
                    "mov [rcx+48], rbp", "mov [rcx+56], r12", "mov [rcx+64], r13",
                    "pop rbx", "pop rbp",
                    at = in(reg) at, out = in(reg) &mut out,
                    out("rax") _, out("rdi") _, out("rsi") _, out("rdx") _, out("rcx") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                    out("r12") _, out("r13") _, clobber_abi("C"),
                );
            }
            eq(out, [0x101, 0x102, 0x103, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109]);
        }
    }
}

fn flags_kept() {
    let code = Code::new(&first(SYS_getppid));
    flags_after(&code, OFTEN * 4);
}

pub fn nothing(_: i32) {}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Runs `f` while another thread sends SIGUSR1 to this one all the time; a failure ends that too.
pub fn under_signals(f: impl FnOnce()) {
    let (tgid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(SeqCst) {
                sys!(SYS_tgkill, tgid, tid, SIGUSR1);
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
        let _set = SetAtEnd(&done);
        f();
    });
}

/// Whether the call finds its registers for itself or not: with GS the guest's own, too.
fn flags_while_signals_come() {
    let _on = sig::with(SIGUSR1, nothing as *const () as usize, SA_RESTART);
    let code = Code::new(&first(SYS_getppid));
    let data = [0u64; 8];
    for base in [std::ptr::null(), data.as_ptr()] {
        eq(sys!(SYS_arch_prctl, 0x1001, base), 0);
        under_signals(|| {
            let begin = std::time::Instant::now();
            while begin.elapsed().as_millis() < 700 {
                flags_after(&code, OFTEN);
            }
        });
    }
    eq(sys!(SYS_arch_prctl, 0x1001, 0), 0);
}

/// Flags are the same after a call as before.
fn flags_after(code: &Code, times: usize) {
    for i in 0..times {
        // CF PF AF ZF SF OF
        let set: u64 = [0x8d5, 0, 0x801, 0x0d4, 0x001, 0x800, 0x040][i % 7];
        let got: u64;
        // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
        unsafe {
            std::arch::asm!("push {set}", "popfq", "call {at}", "pushfq", "pop {got}", "cld",
                set = in(reg) set | 2, at = in(reg) code.entry(0), got = lateout(reg) got,
                out("rax") _, out("rcx") _, out("r11") _);
        }
        eq(got & 0x8d5, set);
    }
}

fn red_zone_kept() {
    // mov qword [rsp-8], 0x1234; mov qword [rsp-128], 0x5678; mov eax, 110; syscall; mov rax, [rsp-8]; shl rax, 16; or rax, [rsp-128]; ret
    let bytes = [
        &[0x48, 0xc7, 0x44, 0x24, 0xf8, 0x34, 0x12, 0, 0, 0x48, 0xc7, 0x44, 0x24, 0x80, 0x78, 0x56, 0, 0][..],
        &[0xb8, 110, 0, 0, 0, 0x0f, 0x05],
        &[0x48, 0x8b, 0x44, 0x24, 0xf8, 0x48, 0xc1, 0xe0, 16, 0x48, 0x0b, 0x44, 0x24, 0x80, 0xc3],
    ]
    .concat();
    let code = Code::new(&bytes);
    for _ in 0..OFTEN {
        eq(code.entry(0)(0, 0, 0, 0), 0x1234_5678);
    }
}

fn vector_kept() {
    let code = Code::new(&first(SYS_getppid));
    for i in 0..OFTEN as u64 {
        let got: u64;
        // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
        unsafe {
            std::arch::asm!("movq xmm7, {v}", "call {at}", "movq {got}, xmm7",
                v = in(reg) i, at = in(reg) code.entry(0), got = lateout(reg) got, out("rax") _, out("rcx") _, out("r11") _, out("xmm7") _);
        }
        eq(got, i);
    }
}

/// The instruction itself stays where it is.
fn jump_to_the_instruction() {
    let code = Code::new(&first(SYS_getppid));
    let parent = sys!(SYS_getppid);
    for _ in 0..OFTEN {
        eq(code.entry(0)(0, 0, 0, 0), parent);
    }
    for _ in 0..OFTEN {
        let got: i64;
        // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
        unsafe {
            std::arch::asm!("call {at}", at = in(reg) code.entry(5), inout("rax") SYS_getpgid => got, in("rdi") 0, out("rcx") _, out("r11") _);
        }
        eq(got, sys!(SYS_getpgid, 0));
    }
}

/// mov eax, NR; syscall; cmp rax, -4096; ja 1f; ret; 1: ret: entered at its start, then at the `syscall` (as a restarted
/// call is), then at its start again.
fn both_forms_at_once() {
    let mut bytes = vec![0xb8];
    bytes.extend((SYS_getppid as u32).to_le_bytes());
    bytes.extend([0x0f, 0x05, 0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77, 0x01, 0xc3, 0xc3]);
    let code = Code::new(&bytes);
    let parent = sys!(SYS_getppid);
    for _ in 0..2 {
        for _ in 0..OFTEN {
            eq(code.entry(0)(0, 0, 0, 0), parent);
        }
        for _ in 0..OFTEN {
            let got: i64;
            // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
            unsafe {
                std::arch::asm!("call {at}", at = in(reg) code.entry(5), inout("rax") SYS_getpgid => got, in("rdi") 0, out("rcx") _, out("r11") _);
            }
            eq(got, sys!(SYS_getpgid, 0));
        }
    }
}

/// Code that compares without having called: jmp over the call into the comparison.
fn jump_behind_the_instruction() {
    // test rdi, rdi; jz 1f; mov rax, rdi; syscall; 1: cmp rax, -4095; jae 2f; ret; 2: mov eax, 77; ret
    let bytes = [
        &[0x48, 0x85, 0xff, 0x48, 0x89, 0xf8, 0x74, 0x02, 0x0f, 0x05, 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff][..],
        &[0x73, 0x01, 0xc3, 0xb8, 77, 0, 0, 0, 0xc3],
    ]
    .concat();
    // The moves do not change the flags.
    let code = Code::new(&bytes);
    for _ in 0..OFTEN {
        eq(code.entry(0)(SYS_getppid as u64, 0, 0, 0), sys!(SYS_getppid));
        eq(code.entry(0)(0, 0, 0, 0), 0);
    }
}

fn signal_storm() {
    static STOP: AtomicBool = AtomicBool::new(false);
    STOP.store(false, SeqCst);
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let (a, b) = (Code::new(&first(SYS_getppid)), Code::new(&second()));
    let (me, tid, parent) = (sys!(SYS_getpid), sys!(SYS_gettid), sys!(SYS_getppid));
    let storm = std::thread::spawn(move || {
        while !STOP.load(SeqCst) {
            sys!(SYS_tgkill, me, tid, SIGUSR1);
        }
    });
    let t = Tmp::new();
    let fd = t.file("f", &[7; 64]);
    let mut buf = [0u8; 64];
    let mut step = 0x1234_5678_u64;
    // Where no site is rewritten a call costs much and there is nothing more to find: the work ends by time there.
    let began = std::time::Instant::now();
    for i in (0..30_000u64).take_while(|_| began.elapsed().as_secs() < 4) {
        eq(a.entry(0)(0, 0, 0, 0), parent);
        eq(b.entry(0)(SYS_pread64 as u64, fd as u64, buf.as_mut_ptr() as u64, 8), 8);
        eq(b.entry(0)(SYS_lseek as u64, fd as u64, i & 63, SEEK_SET as u64), (i & 63) as i64);
        // Gaps of all sorts: interrupts find every instruction sooner or later.
        step = step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for _ in 0..step >> 58 {
            std::hint::spin_loop();
        }
    }
    STOP.store(true, SeqCst);
    storm.join().expect("the other thread");
    shut([fd]);
}

fn reader(flags: i32, code: &Code) -> (i64, [u8; 1], usize) {
    let _on = sig::on(SIGUSR1, flags);
    let p = pipe_pair();
    let mut buf = [0u8; 1];
    let read = |buf: &mut [u8; 1]| code.entry(0)(SYS_read as u64, p[0] as u64, buf.as_mut_ptr() as u64, 1);
    for _ in 0..OFTEN {
        eq(sys!(SYS_write, p[1], b"x", 1), 1);
        eq(read(&mut buf), 1);
    }
    let (me, tid, w) = (sys!(SYS_getpid), sys!(SYS_gettid), p[1]);
    let other = std::thread::spawn(move || {
        for sent in 1..4 {
            sleep_ms(5);
            until_asleep(tid);
            sys!(SYS_tgkill, me, tid, SIGUSR1);
            until("the handler ran", || sig::hits() == sent);
            if flags & SA_RESTART == 0 {
                return;
            }
        }
        until_asleep(tid);
        sys!(SYS_write, w, b"y", 1);
    });
    let got = read(&mut buf);
    other.join().unwrap();
    shut(p);
    (got, buf, sig::hits() as usize)
}

fn restart_at_a_site() {
    let code = Code::new(&second());
    eq(reader(SA_RESTART, &code), (1, *b"y", 3));
}

fn eintr_at_a_site() {
    let code = Code::new(&second());
    let (got, _, hits) = reader(0, &code);
    eq(got, i64::from(-EINTR));
    eq(hits, 1);
}

fn fork_and_sites() {
    let (a, b) = (Code::new(&first(SYS_getpid)), Code::new(&second()));
    for _ in 0..OFTEN {
        eq(a.entry(0)(0, 0, 0, 0), sys!(SYS_getpid));
        eq(b.entry(0)(SYS_gettid as u64, 0, 0, 0), sys!(SYS_gettid));
    }
    // The fork itself comes from such a site.
    let pid = b.entry(0)(SYS_fork as u64, 0, 0, 0);
    if pid == 0 {
        let fresh = Code::new(&second());
        let mut good = true;
        for _ in 0..OFTEN {
            let me = sys!(SYS_getpid);
            good &= a.entry(0)(0, 0, 0, 0) == me && b.entry(0)(SYS_gettid as u64, 0, 0, 0) == me;
            good &= fresh.entry(0)(SYS_getpid as u64, 0, 0, 0) == me;
        }
        exit_now(i32::from(!good));
    }
    let mut status = 0;
    eq(sys!(SYS_wait4, pid, &mut status, 0, 0), pid);
    eq(status, 0);
}

fn threads_at_once() {
    let (a, b) = (Code::new(&first(SYS_gettid)), Code::new(&second()));
    let (a, b) = (a.entry(0), b.entry(0));
    let wrong = AtomicU64::new(0);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let tid = sys!(SYS_gettid);
                for i in 0..5_000u64 {
                    let bad = a(0, 0, 0, 0) != tid || b(SYS_gettid as u64, 0, 0, 0) != tid || b(SYS_getsid as u64, i & 1, 0, 0) < -3;
                    wrong.fetch_add(u64::from(bad), SeqCst);
                    if i % 100 == 0 {
                        std::thread::yield_now();
                    }
                }
            });
        }
    });
    eq(wrong.load(SeqCst), 0);
}

fn code_moved() {
    for bytes in [first(SYS_getppid), second()] {
        let code = Code::new(&bytes);
        for _ in 0..OFTEN {
            eq(code.entry(0)(SYS_getppid as u64, 0, 0, 0), sys!(SYS_getppid));
        }
        let to = sys!(SYS_mmap, 0x2000_0000, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        eq(sys!(SYS_mremap, code.0, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
        let moved = Code(to as *mut u8);
        std::mem::forget(code);
        for _ in 0..OFTEN {
            eq(moved.entry(0)(SYS_getppid as u64, 0, 0, 0), sys!(SYS_getppid));
        }
    }
}

fn code_rewritten() {
    let code = Code::new(&first(SYS_getppid));
    for (nr, bytes) in [(SYS_getppid, first(SYS_getppid)), (SYS_gettid, first(SYS_gettid)), (SYS_getpgrp, second()), (SYS_getpid, first(SYS_getpid))] {
        code.put(&bytes);
        for _ in 0..OFTEN {
            eq(code.entry(0)(nr as u64, 0, 0, 0), sys!(nr));
        }
    }
    // What is read is what was written, once it may be written again.
    code.put(&first(SYS_getppid));
    for _ in 0..OFTEN {
        code.entry(0)(0, 0, 0, 0);
    }
    eq(sys!(SYS_mprotect, code.0, 4096, PROT_READ | PROT_WRITE), 0);
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    eq(unsafe { std::slice::from_raw_parts(code.0.add(512), 8) }, &first(SYS_getppid)[..]);
}

fn code_replaced() {
    let code = Code::new(&second());
    for _ in 0..OFTEN {
        eq(code.entry(0)(SYS_getppid as u64, 0, 0, 0), sys!(SYS_getppid));
    }
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    eq(sys!(SYS_mmap, code.0, 4096, PROT_READ | PROT_WRITE, flags, -1, 0), code.0 as i64);
    // Another comparison behind the same instruction.
    let mut bytes = second();
    bytes[14..20].copy_from_slice(&[0x48, 0x83, 0xc0, 0x05, 0x90, 0x90]); // add rax, 5; nop; nop
    bytes[20..22].copy_from_slice(&[0x90, 0x90]);
    code.put(&bytes);
    for _ in 0..OFTEN {
        eq(code.entry(0)(SYS_getppid as u64, 0, 0, 0), sys!(SYS_getppid) + 5);
    }
}

fn gs_claimed() {
    const SET_GS: i32 = 0x1001;
    const GET_GS: i32 = 0x1004;
    let code = Code::new(&second());
    let data = [0x5a5a_u64; 8];
    let calls = || {
        for _ in 0..OFTEN {
            eq(code.entry(0)(SYS_getppid as u64, 0, 0, 0), sys!(SYS_getppid));
        }
    };
    let base = || {
        let mut base = 1u64;
        eq(sys!(SYS_arch_prctl, GET_GS, &mut base), 0);
        base
    };
    calls();
    eq(base(), 0);
    eq(sys!(SYS_arch_prctl, SET_GS, data.as_ptr()), 0);
    calls();
    let word: u64;
    // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
    unsafe { std::arch::asm!("mov {}, gs:[8]", out(reg) word) };
    eq((base(), word), (data.as_ptr() as u64, 0x5a5a));
    eq(data, [0x5a5a; 8]);
    eq(sys!(SYS_arch_prctl, SET_GS, 0), 0);
    calls();
    eq(base(), 0);
}

fn execve_forgets() {
    let code = Code::new(&second());
    for _ in 0..OFTEN {
        eq(code.entry(0)(SYS_getppid as u64, 0, 0, 0), sys!(SYS_getppid));
    }
    let script = "for i in 1 2 3; do /bin/true || exit 1; done; exit 5";
    let status = std::process::Command::new("/bin/sh").args(["-c", script]).status().expect("a shell");
    eq(status.code(), Some(5));
}

fn own_ids_follow() {
    let code = Code::new(&second());
    let ids = |code: &Code| [SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid].map(|nr| code.entry(0)(nr as u64, 0, 0, 0));
    for _ in 0..OFTEN {
        let got = ids(&code);
        eq(got, [SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid].map(|nr| sys!(nr)));
    }
    let uid = sys!(SYS_getuid);
    in_child(|| {
        let got = ids(&code);
        eq((got[0], got[1]), (sys!(SYS_getpid), sys!(SYS_getpid)));
        if got[2] == 0 && sys!(SYS_setresgid, -1, 54321, -1) == 0 && sys!(SYS_setresuid, -1, 12345, -1) == 0 {
            eq(&ids(&code)[2..], [0, 12345, got[4], 54321]);
        }
        let call = code.entry(0);
        let other = std::thread::scope(|s| s.spawn(|| call(SYS_gettid as u64, 0, 0, 0)).join().expect("a thread"));
        check(other != got[1], "a thread has an id of its own");
    });
    eq(code.entry(0)(SYS_getuid as u64, 0, 0, 0), uid);
}

/// mov r10, rcx; mov eax, 14; lea rsi, [rip + 1]; syscall; ret; the mask
fn constant_between() {
    let usr2 = sig::set(&[SIGUSR2]);
    let call = [0x49, 0x89, 0xca, 0xb8, 14, 0, 0, 0, 0x48, 0x8d, 0x35, 3, 0, 0, 0, 0x0f, 0x05, 0xc3];
    let code = Code::new(&[&call[..], &usr2.to_le_bytes()].concat());
    let entry = code.entry(0);
    let _on = sig::with(SIGUSR1, nothing as *const () as usize, SA_RESTART);
    let (mut old, mut before) = (0u64, 0u64);
    let told = &raw mut old as u64;
    eq(sys!(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mut before, 8), 0);
    let round = || {
        eq(entry(SIG_BLOCK as u64, 0, told, 8), 0);
        // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
        eq(unsafe { (told as *const u64).read_volatile() }, before);
        eq(entry(SIG_UNBLOCK as u64, 0, told, 8), 0);
        eq(unsafe { (told as *const u64).read_volatile() }, before | usr2);
        eq(entry(77, 0, told, 8), -i64::from(EINVAL));
    };
    (0..OFTEN).for_each(|_| round());
    under_signals(|| (0..5000).for_each(|_| round()));
    // From the middle: the instruction is as it was.
    let middle = code.entry(8);
    let mut after = 0u64;
    for _ in 0..OFTEN {
        let rax: i64;
        // SAFETY: the instructions touch nothing but the named registers and the memory they are given.
        unsafe {
            std::arch::asm!("call {at}", at = in(reg) middle as usize, inlateout("rax") 14i64 => rax, in("rdi") u64::from(SIG_BLOCK as u32),
                out("rsi") _, in("rdx") told, in("r10") 8u64, out("rcx") _, out("r11") _);
        }
        eq(rax, 0);
        eq(sys!(SYS_rt_sigprocmask, SIG_SETMASK, &before, &mut after, 8), 0);
        eq(after, before | usr2);
    }
}
