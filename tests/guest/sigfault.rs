//! Faults: code, address and trap number of each kind.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::SeqCst};

cases![
    sigsegv_maperr, sigsegv_accerr, sigbus_adrerr, sigfpe, sigill, sigtrap_int3, segv_not_maskable, fault_in_handler_kills, sigfpe_float,
    sigtrap_step, sigbus_adraln, segv_on_fetch, segv_privileged, frame_tells_write_or_read
];

// Faults: the handler notes si_code and si_addr, and goes on behind the faulting instruction by changing RIP to
// what r15 says.
static CODE: AtomicI32 = AtomicI32::new(0);

static ADDR: AtomicUsize = AtomicUsize::new(0);

static TRAPNO: AtomicUsize = AtomicUsize::new(0);

static CR2: AtomicUsize = AtomicUsize::new(0);

extern "C" fn on_fault(s: i32, i: *const siginfo_t, uc: *mut c_void) {
    sig::count(s);
    let (i, uc) = unsafe { (&*i, &mut *uc.cast::<ucontext_t>()) };
    CODE.store(i.si_code, SeqCst);
    ADDR.store(unsafe { i.si_addr() } as usize, SeqCst);
    let g = &mut uc.uc_mcontext.gregs;
    TRAPNO.store(g[REG_TRAPNO as usize] as usize, SeqCst);
    CR2.store(g[REG_CR2 as usize] as usize, SeqCst);
    g[REG_RIP as usize] = g[REG_R15 as usize];
}

macro_rules! fault {
    ($sig:expr, $code:literal, $in:expr) => {{
        let _on = sig::with($sig, on_fault as *const () as usize, SA_SIGINFO);
        CODE.store(0, SeqCst);
        unsafe {
            std::arch::asm!("lea r15, [rip + 2f]", $code, "2:", out("r15") _, inout("rax") $in => _, out("rdx") _, out("rcx") _);
        }
        (CODE.load(SeqCst), ADDR.load(SeqCst), TRAPNO.load(SeqCst))
    }};
}

fn sigsegv_maperr() {
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as usize;
    ok(sys!(SYS_munmap, p, 4096));
    eq(fault!(SIGSEGV, "mov dl, [rax + 5]", p), (1, p + 5, 14));
    eq(CR2.load(SeqCst), p + 5);
    eq(fault!(SIGSEGV, "mov dl, [rax]", 0usize), (1, 0, 14));
}

fn sigsegv_accerr() {
    let p = bad() as usize;
    eq(fault!(SIGSEGV, "mov [rax], dl", p), (2, p, 14));
    // A non-canonical address is a general protection fault without an address.
    eq(fault!(SIGSEGV, "mov dl, [rax]", 0x8000_0000_0000_0000usize), (0x80, 0, 13));
}

fn sigbus_adrerr() {
    let t = Tmp::new();
    let fd = t.file("f", b"x");
    let p = ok(sys!(SYS_mmap, 0, 8192, PROT_READ, MAP_SHARED, fd, 0)) as usize;
    eq(fault!(SIGBUS, "mov dl, [rax]", p + 4096), (2, p + 4096, 14));
    ok(sys!(SYS_munmap, p, 8192));
    shut([fd]);
}

fn sigfpe() {
    let (code, addr, trap) = fault!(SIGFPE, "xor edx, edx; xor ecx, ecx; div ecx", 5usize);
    eq((code, trap), (1, 0));
    check(addr != 0, "the address of the instruction");
}

fn sigill() {
    let (code, addr, trap) = fault!(SIGILL, "ud2", 0usize);
    eq((code, trap), (2, 6));
    check(addr != 0, "the address of the instruction");
}

fn sigtrap_int3() {
    let (code, _, trap) = fault!(SIGTRAP, "int3", 0usize);
    eq((code, trap), (0x80, 3));
}

fn segv_not_maskable() {
    // A blocked or ignored fault kills.
    for block in [true, false] {
        killed_by(
            child(|| {
                sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
                if block {
                    sig::handle(SIGSEGV, sig::count as *const () as usize, 0);
                    sig::mask(SIG_BLOCK, sig::set(&[SIGSEGV]));
                } else {
                    sig::handle(SIGSEGV, SIG_IGN, 0);
                }
                unsafe { (bad()).read_volatile() };
                0
            }),
            SIGSEGV,
        );
    }
}

fn fault_in_handler_kills() {
    extern "C" fn h(_: i32) {
        unsafe { bad().read_volatile() };
    }
    killed_by(
        child(|| {
            sys!(SYS_prlimit64, 0, RLIMIT_CORE, &[0u64, 0], 0);
            sig::handle(SIGSEGV, h as *const () as usize, 0);
            unsafe { bad().read_volatile() };
            0
        }),
        SIGSEGV,
    );
}

/// With the SSE exceptions of this MXCSR enabled.
macro_rules! float_fault {
    ($mxcsr:expr, $code:literal, $a:expr, $b:expr) => {{
        let _on = sig::with(SIGFPE, on_fault as *const () as usize, SA_SIGINFO);
        CODE.store(0, SeqCst);
        let (new, old) = ($mxcsr as u32, 0x1f80u32);
        // SAFETY: the handler goes on at the label; MXCSR is what it was afterwards.
        unsafe {
            std::arch::asm!("ldmxcsr [{n}]", "lea r15, [rip + 2f]", $code, "2:", "ldmxcsr [{o}]", n = in(reg) &new, o = in(reg) &old,
                out("r15") _, inout("xmm0") $a => _, in("xmm1") $b);
        }
        (CODE.load(SeqCst), TRAPNO.load(SeqCst))
    }};
}

fn sigfpe_float() {
    // Masks: invalid 0x80, divide 0x200, overflow 0x400, underflow 0x800, precision 0x1000.
    eq(float_fault!(0x1f80 & !0x200, "divsd xmm0, xmm1", 1f64, 0f64), (3, 19));
    eq(float_fault!(0x1f80 & !0x400, "mulsd xmm0, xmm1", f64::MAX, f64::MAX), (4, 19));
    eq(float_fault!(0x1f80 & !0x800, "mulsd xmm0, xmm1", f64::MIN_POSITIVE, f64::MIN_POSITIVE), (5, 19));
    eq(float_fault!(0x1f80 & !0x1000, "divsd xmm0, xmm1", 1f64, 3f64), (6, 19));
    eq(float_fault!(0x1f80 & !0x80, "divsd xmm0, xmm1", 0f64, 0f64), (7, 19));
}

fn sigtrap_step() {
    let _on = sig::with(SIGTRAP, on_step as *const () as usize, SA_SIGINFO);
    CODE.store(0, SeqCst);
    sig::HITS.store(0, SeqCst);
    // SAFETY: sets the trap flag; the handler clears it.
    unsafe {
        std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq", "nop", "nop");
    }
    eq((CODE.load(SeqCst), TRAPNO.load(SeqCst), sig::hits()), (2, 1, 1));
}

extern "C" fn on_step(s: i32, i: *const siginfo_t, uc: *mut c_void) {
    sig::count(s);
    // SAFETY: what the kernel gives a handler with SA_SIGINFO.
    let (i, uc) = unsafe { (&*i, &mut *uc.cast::<ucontext_t>()) };
    CODE.store(i.si_code, SeqCst);
    let g = &mut uc.uc_mcontext.gregs;
    TRAPNO.store(g[REG_TRAPNO as usize] as usize, SeqCst);
    g[REG_EFL as usize] &= !0x100;
}

fn sigbus_adraln() {
    let data = [0u64; 2];
    let _on = sig::with(SIGBUS, on_unaligned as *const () as usize, SA_SIGINFO);
    CODE.store(0, SeqCst);
    // SAFETY: an unaligned load with alignment checks on; the handler turns them off.
    unsafe {
        std::arch::asm!("pushfq", "or qword ptr [rsp], 0x40000", "popfq", "lea r15, [rip + 2f]", "mov rdx, [{p} + 1]", "2:", "pushfq",
            "and qword ptr [rsp], -0x40001", "popfq", p = in(reg) &raw const data, out("r15") _, out("rdx") _);
    }
    eq((CODE.load(SeqCst), TRAPNO.load(SeqCst)), (1, 17));
}

extern "C" fn on_unaligned(s: i32, i: *const siginfo_t, uc: *mut c_void) {
    // SAFETY: what the kernel gives a handler with SA_SIGINFO.
    let g = unsafe { &mut (*uc.cast::<ucontext_t>()).uc_mcontext.gregs };
    g[REG_EFL as usize] &= !0x40000;
    on_fault(s, i, uc);
}

fn segv_on_fetch() {
    let p = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as usize;
    // A page without PROT_EXEC, and no page at all.
    eq(fault!(SIGSEGV, "jmp rax", p), (2, p, 14));
    ok(sys!(SYS_munmap, p, 4096));
    eq(fault!(SIGSEGV, "jmp rax", p), (1, p, 14));
}

fn segv_privileged() {
    eq(fault!(SIGSEGV, "hlt", 0usize), (0x80, 0, 13));
    eq(fault!(SIGSEGV, "in al, dx", 0usize), (0x80, 0, 13));
}

static ERROR: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note_error(s: i32, i: *const siginfo_t, uc: *mut c_void) {
    // SAFETY: what the kernel gives a handler with SA_SIGINFO.
    let g = unsafe { &(*uc.cast::<ucontext_t>()).uc_mcontext.gregs };
    ERROR.store(g[REG_ERR as usize] as usize, SeqCst);
    on_fault(s, i, uc);
}

fn frame_tells_write_or_read() {
    let _on = sig::with(SIGSEGV, note_error as *const () as usize, SA_SIGINFO);
    let at = bad() as usize;
    for (write, want) in [(false, 4), (true, 6)] {
        // SAFETY: faults; the handler goes on at the label.
        unsafe {
            if write {
                std::arch::asm!("lea r15, [rip + 2f]", "mov [rax], dl", "2:", out("r15") _, in("rax") at, out("rdx") _);
            } else {
                std::arch::asm!("lea r15, [rip + 2f]", "mov dl, [rax]", "2:", out("r15") _, in("rax") at, out("rdx") _);
            }
        }
        // Whether a page was there depends on the page tables alone.
        eq(ERROR.load(SeqCst) & !1, want);
    }
}

