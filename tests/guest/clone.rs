//! clone(2) and clone3: the flags that C libraries, Go and the Java VM use, and mixes of what is shared.

use guest_tests::child::CloneArgs;
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};

cases![
    musl_thread, go_thread, shares_files, shares_fs, shares_handlers, own_files, clears_handlers, parent_keeps_exit_signal,
    settid_of_a_process, settls_of_a_process, thread_pidfd, pidfd_and_settid, pidfd_bad_address, sibling_memory, vfork_in_a_thread,
    spawn_flags, set_tid_checks, cgroup_bad, exit_signal_other, wrong_mixes, clone3_small_stack_struct, leader_ends_first_exec,
    nested_threads, pidfd_of_a_thread, robust_word_of_a_killed_process
];

const VM: u64 = CLONE_VM as u64;
const FS: u64 = CLONE_FS as u64;
const FILES: u64 = CLONE_FILES as u64;
const SIGHAND: u64 = CLONE_SIGHAND as u64;
const THREAD: u64 = CLONE_THREAD as u64;
const SYSVSEM: u64 = CLONE_SYSVSEM as u64;
const SETTLS: u64 = CLONE_SETTLS as u64;
const PARENT_SETTID: u64 = CLONE_PARENT_SETTID as u64;
const CHILD_SETTID: u64 = CLONE_CHILD_SETTID as u64;
const CHILD_CLEARTID: u64 = CLONE_CHILD_CLEARTID as u64;
const DETACHED: u64 = 0x40_0000;
const PARENT: u64 = CLONE_PARENT as u64;
const PIDFD: u64 = CLONE_PIDFD as u64;
const VFORK: u64 = CLONE_VFORK as u64;
const CHLD: u64 = SIGCHLD as u64;
const CLEAR_SIGHAND: u64 = 1 << 32;
const INTO_CGROUP: u64 = 1 << 33;

/// What a child that shares its parent's memory runs. It has no thread-local data of its own.
type Body = extern "C" fn(u64) -> i32;

struct Stack(usize);

impl Stack {
    const SIZE: usize = 64 << 10;

    fn new() -> Stack {
        let (prot, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
        Stack(ok(sys!(SYS_mmap, 0, Self::SIZE, prot, flags, -1, 0)) as usize)
    }

    /// With what [`start`] pops.
    fn top(&self, body: Body, arg: u64) -> usize {
        let top = self.0 + Self::SIZE - 64;
        // SAFETY: both words lie in the mapping, and nothing runs on it yet.
        unsafe {
            (top as *mut u64).write(arg);
            (top as *mut u64).add(1).write(body as *const () as u64);
        }
        top
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        sys!(SYS_munmap, self.0, Self::SIZE);
    }
}

/// clone(2) whose child runs `body(arg)` on `stack` and exits (this thread alone) with what it returns.
fn start(flags: u64, stack: &Stack, ids: (usize, usize, u64), body: Body, arg: u64) -> i64 {
    let top = stack.top(body, arg);
    let ret: i64;
    // SAFETY: the child runs on a stack of its own and never returns here; the parent's registers are named.
    unsafe {
        std::arch::asm!(
            "syscall", "test rax, rax", "jnz 2f",
            "xor ebp, ebp", "pop rdi", "pop rax", "call rax",
            "mov edi, eax", "mov eax, 60", "syscall", "ud2",
            "2:",
            inlateout("rax") SYS_clone => ret, in("rdi") flags, in("rsi") top, in("rdx") ids.0, in("r10") ids.1,
            in("r8") ids.2, lateout("rcx") _, lateout("r11") _,
        );
    }
    ret
}

fn wait_zero(word: &AtomicI32) {
    for _ in 0..2000 {
        let now = word.load(SeqCst);
        if now == 0 {
            return;
        }
        let short = [0i64, 5_000_000];
        sys!(SYS_futex, word.as_ptr(), FUTEX_WAIT, now, &short, 0, 0);
    }
    panic!("the word was not cleared");
}

extern "C" fn add_one(at: u64) -> i32 {
    // SAFETY: the argument is the address of the caller's word, which outlives the child.
    unsafe { (*(at as *const AtomicU64)).fetch_add(1, SeqCst) };
    0
}

fn arg<T>(value: &T) -> u64 {
    std::ptr::from_ref(value) as u64
}

fn musl_thread() {
    in_child(|| {
        let stack = Stack::new();
        let count = AtomicU64::new(0);
        let flags = VM | FS | FILES | SIGHAND | THREAD | SYSVSEM | SETTLS | PARENT_SETTID | CHILD_CLEARTID | DETACHED;
        eq(flags, 0x7d_0f00);
        for i in 1..50u64 {
            let word = AtomicI32::new(1);
            let mut ptid = 0i32;
            let tls = [0u64; 16];
            let at = (&raw mut ptid as usize, word.as_ptr() as usize, arg(&tls));
            let tid = ok(start(flags, &stack, at, add_one, arg(&count)));
            wait_zero(&word);
            eq((i64::from(ptid), count.load(SeqCst)), (tid, i));
        }
    });
}

fn go_thread() {
    in_child(|| {
        let stack = Stack::new();
        let count = AtomicU64::new(0);
        ok(start(VM | FS | FILES | SIGHAND | SYSVSEM | THREAD, &stack, (0, 0, 0), add_one, arg(&count)));
        while count.load(SeqCst) == 0 {
            sleep_ms(1);
        }
        // It ends without a word: its stack must outlive it.
        std::mem::forget(stack);
    });
}

extern "C" fn open_null(at: u64) -> i32 {
    let fd = sys!(SYS_open, c"/dev/null", O_RDONLY);
    // SAFETY: the argument is the address of the caller's word, which outlives the child.
    unsafe { (*(at as *const AtomicU64)).store(fd as u64, SeqCst) };
    9
}

fn run(flags: u64, body: Body, value: &AtomicU64) -> i32 {
    let stack = Stack::new();
    WEXITSTATUS(reap(ok(start(flags | CHLD, &stack, (0, 0, 0), body, arg(value))) as i32))
}

fn shares_files() {
    in_child(|| {
        let fd = AtomicU64::new(0);
        eq(run(VM | FILES, open_null, &fd), 9);
        ok(sys!(SYS_fcntl, fd.load(SeqCst), F_GETFD));
        eq(sys!(SYS_close, fd.load(SeqCst)), 0);
    });
}

fn own_files() {
    in_child(|| {
        let fd = AtomicU64::new(0);
        eq(run(VM, open_null, &fd), 9);
        err(sys!(SYS_fcntl, fd.load(SeqCst), F_GETFD), EBADF);
    });
}

extern "C" fn to_root(at: u64) -> i32 {
    let moved = sys!(SYS_chdir, c"/");
    let old = sys!(SYS_umask, 0o123);
    // SAFETY: the argument is the address of the caller's word, which outlives the child.
    unsafe { (*(at as *const AtomicU64)).store((moved + old) as u64, SeqCst) };
    8
}

fn shares_fs() {
    in_child(|| {
        eq(sys!(SYS_chdir, c"/tmp"), 0);
        sys!(SYS_umask, 0o77);
        let value = AtomicU64::new(0);
        eq(run(VM, to_root, &value), 8);
        eq(sys!(SYS_umask, 0o77), 0o77);
        eq(run(VM | FS, to_root, &value), 8);
        eq(sys!(SYS_umask, 0o77), 0o123);
        let mut path = [0u8; 64];
        eq(sys!(SYS_getcwd, &mut path, 64), 2);
    });
}

extern "C" fn ignore_usr1(_: u64) -> i32 {
    let action = [SIG_IGN as u64, 0, 0, 0];
    sys!(SYS_rt_sigaction, SIGUSR1, &action, 0, 8) as i32
}

fn handler_of(signo: i32) -> u64 {
    let mut old = [0u64; 4];
    eq(sys!(SYS_rt_sigaction, signo, 0, &mut old, 8), 0);
    old[0]
}

fn shares_handlers() {
    in_child(|| {
        let value = AtomicU64::new(0);
        eq(run(VM, ignore_usr1, &value), 0);
        eq(handler_of(SIGUSR1), SIG_DFL as u64);
        eq(run(VM | SIGHAND, ignore_usr1, &value), 0);
        eq(handler_of(SIGUSR1), SIG_IGN as u64);
    });
}

fn clone3(args: &CloneArgs) -> i64 {
    sys!(SYS_clone3, args, 88)
}

fn clears_handlers() {
    in_child(|| {
        let _on = sig::on(SIGUSR1, 0);
        sig::handle(SIGUSR2, SIG_IGN, 0);
        let pid = clone3(&CloneArgs { flags: CLEAR_SIGHAND, exit_signal: CHLD, ..Default::default() });
        if pid == 0 {
            let kept = handler_of(SIGUSR2) == SIG_IGN as u64;
            child::exit_now(if handler_of(SIGUSR1) == SIG_DFL as u64 && kept { 5 } else { 6 });
        }
        exits(ok(pid) as i32, 5);
        err(clone3(&CloneArgs { flags: CLEAR_SIGHAND | SIGHAND | VM, exit_signal: CHLD, ..Default::default() }), EINVAL);
    });
}

fn parent_keeps_exit_signal() {
    in_child(|| {
        let p = pipe_pair();
        sig::handle(SIGUSR1, SIG_IGN, 0);
        // The child has SIGUSR1 as its exit signal, and so has its sibling by CLONE_PARENT.
        let pid = sys!(SYS_clone, SIGUSR1, 0, 0, 0, 0);
        if pid == 0 {
            let sibling = sys!(SYS_clone, PARENT | CHLD, 0, 0, 0, 0);
            if sibling == 0 {
                child::exit_now(3);
            }
            sys!(SYS_write, p[1], &sibling, 8);
            child::exit_now(2);
        }
        ok(pid);
        let mut sibling = 0i64;
        eq(sys!(SYS_read, p[0], &mut sibling, 8), 8);
        for (pid, code) in [(pid, 2), (sibling, 3)] {
            let mut status = 0i32;
            // Not a SIGCHLD child.
            err(sys!(SYS_wait4, pid, &mut status, WNOHANG, 0), ECHILD);
            eq(sys!(SYS_wait4, pid, &mut status, __WALL, 0), pid);
            eq(WEXITSTATUS(status), code);
        }
    });
}

fn settid_of_a_process() {
    in_child(|| {
        let (mut parent_word, mut child_word) = (0i32, 7i32);
        let (a, b) = (&raw mut parent_word, &raw mut child_word);
        let pid = sys!(SYS_clone, PARENT_SETTID | CHILD_SETTID | CHILD_CLEARTID | CHLD, 0, a, b, 0);
        // SAFETY: both point to variables of this function; the kernel writes them.
        let seen = unsafe { (a.read_volatile(), b.read_volatile()) };
        if pid == 0 {
            let own = sys!(SYS_getpid) as i32;
            // The parent's word is written when the copy has been made.
            child::exit_now(if seen == (0, own) { 4 } else { 5 });
        }
        eq(seen, (ok(pid) as i32, 7));
        exits(pid as i32, 4);
    });
}

fn settls_of_a_process() {
    in_child(|| {
        let area = [0u64; 8];
        let stack = Stack::new();
        extern "C" fn base(at: u64) -> i32 {
            let mut base = 0u64;
            sys!(SYS_arch_prctl, 0x1003, &mut base);
            i32::from(base == at) + 20
        }
        let pid = ok(start(SETTLS | CHLD, &stack, (0, 0, arg(&area)), base, arg(&area)));
        exits(pid as i32, 21);
        err(start(SETTLS | CHLD, &stack, (0, 0, u64::MAX), base, 0), EPERM);
    });
}

fn thread_pidfd() {
    in_child(|| {
        let stack = Stack::new();
        let count = AtomicU64::new(0);
        let mut fd = -1i32;
        let flags = VM | FS | FILES | SIGHAND | THREAD | SYSVSEM | PIDFD;
        let tid = start(flags, &stack, (&raw mut fd as usize, 0, 0), add_one, arg(&count));
        if tid == -i64::from(EINVAL) {
            skip("the kernel has no descriptors for threads");
        }
        ok(tid);
        // SAFETY: a variable of this function, which the kernel wrote.
        let fd = unsafe { (&raw const fd).read_volatile() };
        let mut p = pollfd { fd, events: POLLIN, revents: 0 };
        eq(sys!(SYS_poll, &mut p, 1, -1), 1);
        check(p.revents & POLLIN != 0, "it says that the thread ended");
        eq(count.load(SeqCst), 1);
    });
}

fn pidfd_and_settid() {
    // Both would be stored at one place.
    err(sys!(SYS_clone, PIDFD | PARENT_SETTID | CHLD, 0, 0, 0, 0), EINVAL);
    let (mut fd, mut tid) = (-1i32, 0i32);
    let pid = clone3(&CloneArgs {
        flags: PIDFD | PARENT_SETTID,
        pidfd: &raw mut fd as u64,
        parent_tid: &raw mut tid as u64,
        exit_signal: CHLD,
        ..Default::default()
    });
    if pid == 0 {
        child::exit_now(1);
    }
    // SAFETY: variables of this function, which the kernel wrote.
    let (tid, fd) = unsafe { ((&raw const tid).read_volatile(), (&raw const fd).read_volatile()) };
    eq(i64::from(tid), ok(pid));
    exits(pid as i32, 1);
    eq(sys!(SYS_close, fd), 0);
    err(clone3(&CloneArgs { flags: PIDFD | DETACHED, exit_signal: CHLD, ..Default::default() }), EINVAL);
}

fn pidfd_bad_address() {
    in_child(|| {
        let before = std::fs::read_dir("/proc/self/fd").expect("its descriptors").count();
        err(sys!(SYS_clone, PIDFD | CHLD, 0, bad(), 0, 0), EFAULT);
        eq(std::fs::read_dir("/proc/self/fd").expect("its descriptors").count(), before);
        err(sys!(SYS_wait4, -1, 0, WNOHANG, 0), ECHILD);
    });
}

/// A child that shares memory and outlives its parent.
fn sibling_memory() {
    in_child(|| {
        extern "C" fn slow(at: u64) -> i32 {
            let nap = [0i64, 30_000_000];
            sys!(SYS_nanosleep, &nap, 0);
            add_one(at)
        }
        let stack = Stack::new();
        let count = AtomicU64::new(0);
        let pid = ok(start(VM | FILES | FS | CHLD, &stack, (0, 0, 0), slow, arg(&count)));
        eq(count.load(SeqCst), 0);
        exits(pid as i32, 0);
        eq(count.load(SeqCst), 1);
    });
}

fn vfork_in_a_thread() {
    in_child(|| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    let (stack, count) = (Stack::new(), AtomicU64::new(0));
                    for i in 1..20 {
                        let pid = ok(start(VM | VFORK | CHLD, &stack, (0, 0, 0), add_one, arg(&count)));
                        // It has ended or replaced its memory by then.
                        eq(count.load(SeqCst), i);
                        exits(pid as i32, 0);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

/// As posix_spawn of glibc 2.38 and later.
fn spawn_flags() {
    in_child(|| {
        extern "C" fn run_true(_: u64) -> i32 {
            let args = [c"true".as_ptr() as usize, 0];
            sys!(SYS_execve, c"/bin/true", &args, 0);
            9
        }
        let stack = Stack::new();
        for _ in 0..10 {
            let top = stack.top(run_true, 0);
            let args = CloneArgs {
                flags: VM | VFORK | CLEAR_SIGHAND,
                exit_signal: CHLD,
                stack: stack.0 as u64,
                stack_size: (top - stack.0) as u64,
                ..Default::default()
            };
            let pid: i64;
            // SAFETY: as in `start`.
            unsafe {
                std::arch::asm!(
                    "syscall", "test rax, rax", "jnz 2f",
                    "xor ebp, ebp", "pop rdi", "pop rax", "call rax",
                    "mov edi, eax", "mov eax, 60", "syscall", "ud2",
                    "2:",
                    inlateout("rax") SYS_clone3 => pid, in("rdi") &args, in("rsi") 88,
                    lateout("rcx") _, lateout("r11") _,
                );
            }
            exits(ok(pid) as i32, 0);
        }
    });
}

fn set_tid_checks() {
    let tid = 1i32;
    let with = |set_tid_size| CloneArgs { exit_signal: CHLD, set_tid: arg(&tid), set_tid_size, ..Default::default() };
    err(clone3(&with(0)), EINVAL);
    err(clone3(&with(33)), EINVAL);
    err(clone3(&CloneArgs { exit_signal: CHLD, set_tid_size: 1, ..Default::default() }), EINVAL);
}

fn cgroup_bad() {
    let args = CloneArgs { flags: INTO_CGROUP, exit_signal: CHLD, cgroup: 9999, ..Default::default() };
    errs(clone3(&args), &[EBADF, EPERM]);
}

fn exit_signal_other() {
    in_child(|| {
        let _on = sig::on(SIGUSR2, 0);
        let pid = sys!(SYS_clone, SIGUSR2, 0, 0, 0, 0);
        if pid == 0 {
            child::exit_now(1);
        }
        let mut status = 0i32;
        let mut got = -i64::from(EINTR);
        while got == -i64::from(EINTR) {
            got = sys!(SYS_wait4, pid, &mut status, __WCLONE, 0);
        }
        eq(got, pid);
        eq(sig::hits(), 1);
    });
}

fn wrong_mixes() {
    for flags in [
        THREAD,
        THREAD | SIGHAND,
        SIGHAND,
        CLONE_NEWNS as u64 | FS,
        CLONE_NEWUSER as u64 | FS,
        CLONE_NEWIPC as u64 | SYSVSEM,
        CLONE_NEWUSER as u64 | VM | SIGHAND | THREAD,
    ] {
        // Without rights some of them are looked at later than the rights.
        errs(sys!(SYS_clone, flags | CHLD, 0, 0, 0, 0), &[EINVAL, EPERM]);
    }
    err(clone3(&CloneArgs { flags: THREAD | SIGHAND | VM, exit_signal: CHLD, ..Default::default() }), EINVAL);
    err(clone3(&CloneArgs { flags: PARENT, exit_signal: CHLD, ..Default::default() }), EINVAL);
    err(clone3(&CloneArgs { flags: 0x11, ..Default::default() }), EINVAL);
    err(clone3(&CloneArgs { exit_signal: 65, ..Default::default() }), EINVAL);
    err(clone3(&CloneArgs { exit_signal: CHLD | 1 << 32, ..Default::default() }), EINVAL);
}

fn clone3_small_stack_struct() {
    err(clone3(&CloneArgs { stack_size: 4096, exit_signal: CHLD, ..Default::default() }), EINVAL);
    let long = [[0u64; 32]];
    let mut args = long;
    args[0][4] = CHLD;
    args[0][20] = 1;
    err(sys!(SYS_clone3, &args, 256), E2BIG);
    args[0][20] = 0;
    let pid = sys!(SYS_clone3, &args, 256);
    if pid == 0 {
        child::exit_now(8);
    }
    exits(ok(pid) as i32, 8);
}

/// The leader has ended; another thread replaces the program and is then known by the leader's id.
fn leader_ends_first_exec() {
    let p = pipe_pair();
    let pid = child(|| {
        drop(std::thread::spawn(move || {
            sleep_ms(20);
            sys!(SYS_dup2, p[1], 1);
            let args = [c"sh".as_ptr() as usize, c"-c".as_ptr() as usize, c"echo $$".as_ptr() as usize, 0];
            sys!(SYS_execve, c"/bin/sh", &args, 0);
        }));
        sys!(SYS_exit, 0);
        1
    });
    exits(pid, 0);
    let mut text = [0u8; 32];
    let n = ok(sys!(SYS_read, p[0], &mut text, 32)) as usize;
    eq(String::from_utf8_lossy(&text[..n]).trim(), pid.to_string());
    shut(p);
}

fn nested_threads() {
    fn down(n: usize) -> usize {
        if n == 0 { 0 } else { std::thread::spawn(move || down(n - 1) + 1).join().expect("no panic") }
    }
    in_child(|| eq(down(40), 40));
}

fn pidfd_of_a_thread() {
    const THREAD_FD: i32 = O_EXCL;
    in_child(|| {
        let _on = sig::on(SIGUSR1, 0);
        let own = sys!(SYS_gettid);
        let fd = sys!(SYS_pidfd_open, own, THREAD_FD);
        if fd == -i64::from(EINVAL) {
            skip("the kernel has no descriptors for threads");
        }
        ok(fd);
        eq(sys!(SYS_fcntl, fd, F_GETFL), i64::from(O_RDWR | THREAD_FD));
        for flags in [0, 1, 2] {
            let before = sig::hits();
            eq(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, flags), 0);
            eq(sig::hits(), before + 1);
        }
        err(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 3), EINVAL);
        err(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 8), EINVAL);
        err(sys!(SYS_pidfd_open, 99_999_999, THREAD_FD), ESRCH);
        err(sys!(SYS_pidfd_open, own, 1), EINVAL);
        let (p, end) = (pipe_pair(), pipe_pair());
        let thread = std::thread::spawn(move || {
            let tid = sys!(SYS_gettid);
            sys!(SYS_write, p[1], &tid, 8);
            sys!(SYS_read, end[0], &mut [0u8; 1], 1);
        });
        let mut tid = 0i64;
        eq(sys!(SYS_read, p[0], &mut tid, 8), 8);
        err(sys!(SYS_pidfd_open, tid, 0), ENOENT);
        let fd = ok(sys!(SYS_pidfd_open, tid, THREAD_FD)) as i32;
        let mut p = pollfd { fd, events: POLLIN, revents: 0 };
        eq(sys!(SYS_poll, &mut p, 1, 0), 0);
        eq(sys!(SYS_pidfd_send_signal, fd, 0, 0, 0), 0);
        eq(sys!(SYS_write, end[1], b"x", 1), 1);
        eq(sys!(SYS_poll, &mut p, 1, -1), 1);
        thread.join().expect("no panic");
        err(sys!(SYS_pidfd_send_signal, fd, SIGUSR1, 0, 0), ESRCH);
    });
}

/// A process that is killed with a robust lock held in shared memory: the owner's bit is set, a waiter woken.
fn robust_word_of_a_killed_process() {
    #[repr(C)]
    struct Lock {
        next: u64,
        word: AtomicI32,
    }
    in_child(|| {
        let (prot, flags) = (PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS);
        let at = ok(sys!(SYS_mmap, 0, 4096, prot, flags, -1, 0)) as usize;
        // SAFETY: a fresh mapping of zeros, which is a valid Lock; only the child uses this reference.
        let lock = unsafe { &mut *(at as *mut Lock) };
        let pid = child(|| {
            let head = [at as u64, 8, 0];
            lock.next = arg(&head);
            lock.word.store(sys!(SYS_gettid) as i32, SeqCst);
            sys!(SYS_set_robust_list, &head, 24);
            sys!(SYS_kill, sys!(SYS_getpid), SIGKILL);
            1
        });
        killed_by(pid, SIGKILL);
        // SAFETY: the mapping is still there, and the child that wrote it has ended.
        let lock = unsafe { &*(at as *const Lock) };
        eq(lock.word.load(SeqCst) as u32 & 0x7fff_ffff, 0x4000_0000 | pid as u32 & 0x4000_0000);
    });
}
