//! The frame of a handler: registers, vector state, stacks, what a handler changes in it.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

cases![
    altstack, altstack_errors, altstack_nested, registers_survive, vector_registers_survive, flags_survive, change_return_in_context,
    siglongjmp_out, nested_handlers, mask_restored_from_context, red_zone_kept, sigreturn_bad_frame, gs_and_fs_kept, mxcsr_and_x87_survive,
    avx512_survives
];

static SP: AtomicUsize = AtomicUsize::new(0);

static ONSTACK: AtomicI32 = AtomicI32::new(0);

extern "C" fn note_sp(_: i32) {
    let x = 0u8;
    SP.store((&raw const x) as usize, SeqCst);
    let mut ss: stack_t = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_sigaltstack, 0, &mut ss));
    ONSTACK.store(ss.ss_flags, SeqCst);
    // It cannot be changed while in use.
    let new = stack_t { ss_sp: std::ptr::null_mut(), ss_flags: SS_DISABLE, ss_size: 0 };
    if sys!(SYS_sigaltstack, &new, 0) != -i64::from(EPERM) {
        ONSTACK.store(-1, SeqCst);
    }
}

fn altstack() {
    let mut mem = vec![0u8; 65536];
    let base = mem.as_mut_ptr();
    let mut old: stack_t = unsafe { std::mem::zeroed() };
    let new = stack_t { ss_sp: base.cast(), ss_flags: 0, ss_size: 65536 };
    ok(sys!(SYS_sigaltstack, &new, &mut old));
    let _on = sig::with(SIGUSR1, note_sp as *const () as usize, SA_ONSTACK);
    sig::raise(SIGUSR1);
    let sp = SP.load(SeqCst);
    check(sp > base as usize && sp < base as usize + 65536, "the handler ran on it");
    eq(ONSTACK.load(SeqCst), SS_ONSTACK);
    // Without SA_ONSTACK it is not used.
    let _on = sig::with(SIGUSR2, note_sp as *const () as usize, 0);
    sig::raise(SIGUSR2);
    let sp = SP.load(SeqCst);
    check(sp < base as usize || sp > base as usize + 65536, "the handler ran on the normal stack");
    // The note disabled it, which is allowed there: restore what was.
    sys!(SYS_sigaltstack, &old, 0);
}

fn altstack_errors() {
    let mut mem = vec![0u8; 65536];
    let s = |flags, size| stack_t { ss_sp: std::ptr::null_mut(), ss_flags: flags, ss_size: size };
    err(sys!(SYS_sigaltstack, &s(0, 100), 0), ENOMEM);
    err(sys!(SYS_sigaltstack, &s(0x77, 65536), 0), EINVAL);
    err(sys!(SYS_sigaltstack, bad(), 0), EFAULT);
    err(sys!(SYS_sigaltstack, 0, bad()), EFAULT);
    mem.clear();
}

extern "C" fn outer(_: i32) {
    sig::raise(SIGUSR2);
}

fn altstack_nested() {
    let mut mem = vec![0u8; 65536];
    let mut old: stack_t = unsafe { std::mem::zeroed() };
    let new = stack_t { ss_sp: mem.as_mut_ptr().cast(), ss_flags: 0, ss_size: 65536 };
    ok(sys!(SYS_sigaltstack, &new, &mut old));
    let _a = sig::with(SIGUSR1, outer as *const () as usize, SA_ONSTACK);
    let _b = sig::with(SIGUSR2, note_sp as *const () as usize, SA_ONSTACK);
    sig::raise(SIGUSR1);
    let sp = SP.load(SeqCst);
    check(sp > mem.as_ptr() as usize && sp < mem.as_ptr() as usize + 65536, "nested on the same stack");
    ok(sys!(SYS_sigaltstack, &old, 0));
}

/// Raises SIGUSR1 by tgkill with all other registers loaded with known values; what they are afterwards.
#[rustfmt::skip]
fn regs_around_signal() -> [u64; 10] {
    let mut out = [0u64; 10];
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    unsafe {
        std::arch::asm!(
            "push rbx", "push rbp", "push {out}",
            "mov rbx, 0x1111111111111111", "mov rbp, 0x2222222222222222",
            "mov r8, 0x3333333333333333", "mov r9, 0x4444444444444444",
            "mov r10, 0x5555555555555555", "mov r12, 0x6666666666666666",
            "mov r13, 0x7777777777777777", "mov r14, 0x8888888888888888",
            "mov r15, 0x9999999999999999",
            "syscall",
            "mov r11, [rsp]",
            "mov [r11], rbx", "mov [r11 + 8], rbp", "mov [r11 + 16], r8", "mov [r11 + 24], r9",
            "mov [r11 + 32], r10", "mov [r11 + 40], r12", "mov [r11 + 48], r13", "mov [r11 + 56], r14",
            "mov [r11 + 64], r15", "mov [r11 + 72], rax",
            "pop {out}", "pop rbp", "pop rbx",
            out = in(reg) out.as_mut_ptr(),
            inout("rax") SYS_tgkill => _, inout("rdi") pid => _, inout("rsi") tid => _, inout("rdx") i64::from(SIGUSR1) => _,
            out("rcx") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _, out("r12") _, out("r13") _, out("r14") _, out("r15") _,
        );
    }
    out
}

/// Overwrites what a handler may overwrite.
extern "C" fn clobber(s: i32) {
    sig::count(s);
    unsafe {
        std::arch::asm!("xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "pxor xmm0, xmm0", "pxor xmm15, xmm15",
            out("r8") _, out("r9") _, out("r10") _, out("xmm0") _, out("xmm15") _);
        if std::is_x86_feature_detected!("avx") {
            std::arch::asm!("vzeroall", out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _, out("ymm4") _, out("ymm5") _,
                out("ymm6") _, out("ymm7") _, out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _, out("ymm12") _,
                out("ymm13") _, out("ymm14") _, out("ymm15") _);
        }
    }
}

fn registers_survive() {
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, clobber as *const () as usize, 0);
    let r = regs_around_signal();
    eq(sig::hits(), 1);
    for (i, v) in r[..9].iter().enumerate() {
        eq(*v, 0x1111_1111_1111_1111 * (i as u64 + 1));
    }
    eq(r[9], 0);
}

fn vector_registers_survive() {
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, clobber as *const () as usize, 0);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let a = [0x0123_4567_89ab_cdefu64, 0xfedc_ba98_7654_3210, 3, 4];
    let mut b = [0u64; 4];
    let mut c = [0u64; 4];
    if std::is_x86_feature_detected!("avx") {
        unsafe {
            std::arch::asm!("vmovdqu ymm0, [{a}]", "vmovdqu ymm15, [{a}]", "syscall", "vmovdqu [{b}], ymm0", "vmovdqu [{c}], ymm15", "vzeroupper",
                a = in(reg) a.as_ptr(), b = in(reg) b.as_mut_ptr(), c = in(reg) c.as_mut_ptr(),
                inout("rax") SYS_tgkill => _, in("rdi") pid, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _,
                out("ymm0") _, out("ymm15") _);
        }
        eq((b, c), (a, a));
    } else {
        unsafe {
            std::arch::asm!("movdqu xmm0, [{a}]", "movdqu xmm15, [{a}]", "syscall", "movdqu [{b}], xmm0", "movdqu [{c}], xmm15",
                a = in(reg) a.as_ptr(), b = in(reg) b.as_mut_ptr(), c = in(reg) c.as_mut_ptr(),
                inout("rax") SYS_tgkill => _, in("rdi") pid, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _,
                out("xmm0") _, out("xmm15") _);
        }
        eq((&b[..2], &c[..2]), (&a[..2], &a[..2]));
    }
    eq(sig::hits(), 1);
}

fn flags_survive() {
    let _on = sig::on(SIGUSR1, 0);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let f: u64;
    unsafe {
        // Carry, zero and direction set.
        std::arch::asm!("pushfq", "pop {f}", "or {f}, 0x441", "push {f}", "popfq", "syscall", "pushfq", "pop {f}", "cld",
            f = out(reg) f, inout("rax") SYS_tgkill => _, in("rdi") pid, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _);
    }
    eq(f & 0x441, 0x441);
    eq(sig::hits(), 1);
}

fn mxcsr_and_x87_survive() {
    extern "C" fn change(s: i32) {
        sig::count(s);
        let m = 0x1f80u32;
        unsafe { std::arch::asm!("ldmxcsr [{m}]", "fninit", m = in(reg) &m) };
    }
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, change as *const () as usize, 0);
    let (new, mut got, cw, mut gotcw) = (0x7f80u32, 0u32, 0x0f7fu16, 0u16);
    let old = 0x1f80u32;
    unsafe { std::arch::asm!("ldmxcsr [{m}]", "fldcw [{c}]", m = in(reg) &new, c = in(reg) &cw) };
    sig::raise(SIGUSR1);
    unsafe {
        std::arch::asm!("stmxcsr [{m}]", "fnstcw [{c}]", "ldmxcsr [{o}]", "fninit", m = in(reg) &mut got, c = in(reg) &mut gotcw, o = in(reg) &old);
    }
    eq((got, gotcw, sig::hits()), (new, cw, 1));
}

extern "C" fn set_rax(s: i32, _: *const siginfo_t, uc: *mut c_void) {
    sig::count(s);
    let uc = unsafe { &mut *uc.cast::<ucontext_t>() };
    uc.uc_mcontext.gregs[REG_RAX as usize] = 4711;
}

fn change_return_in_context() {
    let _on = sig::with(SIGUSR1, set_rax as *const () as usize, SA_SIGINFO);
    eq(sys!(SYS_tgkill, sys!(SYS_getpid), sys!(SYS_gettid), SIGUSR1), 4711);
}

unsafe extern "C" {
    #[link_name = "__sigsetjmp"]
    fn sigsetjmp(env: *mut u64, save: i32) -> i32;
    fn siglongjmp(env: *mut u64, val: i32) -> !;
}

static mut ENV: [u64; 64] = [0; 64];

extern "C" fn jump(s: i32) {
    sig::count(s);
    unsafe { siglongjmp((&raw mut ENV).cast(), 5) }
}

fn siglongjmp_out() {
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, jump as *const () as usize, 0);
    let before = sig::mask(SIG_BLOCK, 0);
    for n in 1..4 {
        // Rust has no returns_twice; nothing but statics is used across.
        match unsafe { sigsetjmp((&raw mut ENV).cast(), 1) } {
            0 => {
                sig::raise(SIGUSR1);
                panic!("the handler returned");
            }
            v => eq(v, 5),
        }
        eq(sig::hits(), n);
        eq(sig::mask(SIG_BLOCK, 0), before);
    }
}

static TRACE: std::sync::Mutex<Vec<i32>> = std::sync::Mutex::new(Vec::new());

extern "C" fn nest(s: i32) {
    TRACE.lock().unwrap().push(s);
    if s < SIGUSR1 + 4 && s == SIGUSR1 {
        sig::raise(SIGUSR2);
    }
    TRACE.lock().unwrap().push(-s);
}

fn nested_handlers() {
    TRACE.lock().unwrap().clear();
    let _a = sig::with(SIGUSR1, nest as *const () as usize, 0);
    let _b = sig::with(SIGUSR2, nest as *const () as usize, 0);
    sig::raise(SIGUSR1);
    eq(&TRACE.lock().unwrap()[..], [SIGUSR1, SIGUSR2, -SIGUSR2, -SIGUSR1]);
}

extern "C" fn block_in_context(s: i32, _: *const siginfo_t, uc: *mut c_void) {
    sig::count(s);
    let uc = unsafe { &mut *uc.cast::<ucontext_t>() };
    unsafe { sigaddset(&mut uc.uc_sigmask, SIGUSR2) };
}

fn mask_restored_from_context() {
    let _on = sig::with(SIGUSR1, block_in_context as *const () as usize, SA_SIGINFO);
    let before = sig::mask(SIG_BLOCK, 0);
    sig::raise(SIGUSR1);
    eq(sig::mask(SIG_SETMASK, before), before | sig::set(&[SIGUSR2]));
}

fn red_zone_kept() {
    let _on = sig::on(SIGUSR1, 0);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let got: u64;
    unsafe {
        std::arch::asm!("mov qword ptr [rsp - 8], 0x1234567", "mov qword ptr [rsp - 128], 0x7654321", "syscall",
            "mov rdi, [rsp - 8]", "add rdi, [rsp - 128]",
            inout("rax") SYS_tgkill => _, inout("rdi") pid => got, in("rsi") tid, in("rdx") SIGUSR1 as i64, out("rcx") _, out("r11") _);
    }
    eq(got, 0x1234567 + 0x7654321);
    eq(sig::hits(), 1);
}

fn sigreturn_bad_frame() {
    killed_by(
        child(|| {
            sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
            sig::handle(SIGSEGV, SIG_DFL, 0);
            unsafe { std::arch::asm!("mov rsp, {p}", "mov eax, 15", "syscall", "ud2", p = in(reg) bad(), options(noreturn)) }
        }),
        SIGSEGV,
    );
}

fn gs_and_fs_kept() {
    let _on = sig::on(SIGUSR1, 0);
    in_child(|| {
        let (mut fs, mut fs2) = (0usize, 0usize);
        ok(sys!(SYS_arch_prctl, 0x1003, &mut fs));
        let data = [0x55u64; 2];
        ok(sys!(SYS_arch_prctl, 0x1001, &data));
        sig::raise(SIGUSR1);
        let v: u64;
        unsafe { std::arch::asm!("mov {v}, gs:[0]", v = out(reg) v) };
        eq(v, 0x55);
        ok(sys!(SYS_arch_prctl, 0x1003, &mut fs2));
        eq(fs, fs2);
    });
}

/// Zeroes what AVX-512 adds.
extern "C" fn clobber_512(s: i32) {
    sig::count(s);
    // SAFETY: only reached where the processor has AVX-512F; all registers written are declared.
    unsafe {
        std::arch::asm!("vpxorq zmm0, zmm0, zmm0", "vpxorq zmm17, zmm17, zmm17", "vpxorq zmm31, zmm31, zmm31", "kxorw k1, k1, k1",
            "kxorw k7, k7, k7", out("zmm0") _, out("zmm17") _, out("zmm31") _, out("k1") _, out("k7") _);
    }
}

fn avx512_survives() {
    if !std::is_x86_feature_detected!("avx512f") {
        skip("no AVX-512");
    }
    let _count = sig::on(SIGUSR1, 0);
    let _on = sig::with(SIGUSR1, clobber_512 as *const () as usize, 0);
    let (pid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let a: [u64; 8] = std::array::from_fn(|i| 0x0101_0101_0101_0101 * (i as u64 + 1));
    let (mut b, mut c, mut d, mut k) = ([0u64; 8], [0u64; 8], [0u64; 8], 0u32);
    // SAFETY: the buffers are as long as the registers; all registers written are declared.
    unsafe {
        std::arch::asm!("vmovdqu64 zmm0, [{a}]", "vmovdqu64 zmm17, [{a}]", "vmovdqu64 zmm31, [{a}]", "mov ecx, 0xa5a5", "kmovw k1, ecx",
            "kmovw k7, ecx", "syscall", "vmovdqu64 [{b}], zmm0", "vmovdqu64 [{c}], zmm17", "vmovdqu64 [{d}], zmm31", "kmovw ecx, k1",
            "kmovw r11d, k7", "shl r11d, 16", "or r11d, ecx", "mov [{k}], r11d", "vzeroupper",
            a = in(reg) a.as_ptr(), b = in(reg) b.as_mut_ptr(), c = in(reg) c.as_mut_ptr(), d = in(reg) d.as_mut_ptr(), k = in(reg) &raw mut k,
            inout("rax") SYS_tgkill => _, in("rdi") pid, in("rsi") tid, in("rdx") i64::from(SIGUSR1), out("rcx") _, out("r11") _,
            out("zmm0") _, out("zmm17") _, out("zmm31") _, out("k1") _, out("k7") _);
    }
    eq(sig::hits(), 1);
    eq((b, c, d), (a, a, a));
    eq(k, 0xa5a5_a5a5);
}

