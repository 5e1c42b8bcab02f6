//! What a user must not get at: memory, descriptors and files of processes that have or had other rights (ptrace(2),
//! proc(5), prctl(2) on dumpable), and signals (kill(2), rt_sigqueueinfo(2)).

use guest_tests::*;
use libc::*;
use std::ffi::CStr;

cases![
    former_root_is_closed, set_uid_is_closed, unreadable_program_is_closed, own_process_is_open, memory_file_ends_with_the_program, persona_is_left_behind,
    file_rights_go_with_fsuid, signals_within_a_session, forged_siginfo, capabilities_only_sink, groups_need_right
];

const USER: u32 = 1000;

fn needs_root() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
}

fn become_user(uid: u32) {
    ok(sys!(SYS_setgroups, 0, 0));
    ok(sys!(SYS_setresgid, uid, uid, uid));
    ok(sys!(SYS_setresuid, uid, uid, uid));
}

/// The helper program: says that it is there and sleeps.
pub fn wait(_: &[String]) -> i32 {
    sys!(SYS_write, 1, b"x", 1);
    sleep_ms(20_000);
    0
}

/// A process that waits: made by `before` in a child, which tells by the pipe when it is ready.
struct Victim(i32);

impl Victim {
    fn new(before: impl FnOnce(i32)) -> Victim {
        let p = pipe_pair();
        let pid = child(|| {
            before(p[1]);
            sys!(SYS_write, p[1], b"x", 1);
            sleep_ms(20_000);
            0
        });
        shut([p[1]]);
        eq(sys!(SYS_read, p[0], &mut [0u8; 1], 1), 1);
        shut([p[0]]);
        Victim(pid)
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        sys!(SYS_kill, self.0, SIGKILL);
        reap(self.0);
    }
}

fn of(pid: i32, name: &str) -> &'static CStr {
    cstr(format!("/proc/{pid}/{name}"))
}

static SECRET: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0x5ec4e7);

/// Every way in, tried as the user; what each one answered.
fn ways_in(pid: i32) -> Vec<(&'static str, i64)> {
    let at = SECRET.as_ptr() as usize;
    let mut word = [0u64];
    let mut all = Vec::new();
    let local = [word.as_mut_ptr() as usize, 8];
    all.push(("process_vm_readv", sys!(SYS_process_vm_readv, pid, &local, 1, &[at, 8], 1, 0)));
    all.push(("process_vm_writev", sys!(SYS_process_vm_writev, pid, &local, 1, &[at, 8], 1, 0)));
    for (name, flags) in [("mem", O_RDONLY), ("mem", O_RDWR), ("maps", O_RDONLY), ("environ", O_RDONLY), ("auxv", O_RDONLY)] {
        let fd = sys!(SYS_openat, AT_FDCWD, of(pid, name), flags, 0);
        let got = if fd < 0 { fd } else { sys!(SYS_pread64, fd, &mut word, 8, at) };
        if fd >= 0 {
            shut([fd as i32]);
        }
        all.push((name, got));
    }
    all.push(("cwd", sys!(SYS_readlink, of(pid, "cwd"), &mut [0u8; 64], 64)));
    all.push(("exe", sys!(SYS_readlink, of(pid, "exe"), &mut [0u8; 64], 64)));
    all.push(("fd/0", sys!(SYS_openat, AT_FDCWD, of(pid, "fd/0"), O_PATH, 0)));
    let pidfd = ok(sys!(SYS_pidfd_open, pid, 0));
    all.push(("pidfd_getfd", sys!(SYS_pidfd_getfd, pidfd, 1, 0)));
    shut([pidfd as i32]);
    all.push(("kcmp", sys!(SYS_kcmp, pid, sys!(SYS_getpid), 0, 0, 1)));
    all.push(("get_robust_list", sys!(SYS_get_robust_list, pid, &mut [0u64; 1], &mut [0u64; 1])));
    all.push(("PTRACE_SEIZE", sys!(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0)));
    all.push(("PTRACE_ATTACH", sys!(SYS_ptrace, PTRACE_ATTACH, pid, 0, 0)));
    all
}

#[track_caller]
fn closed_to_user(pid: i32) {
    in_child(|| {
        become_user(USER);
        for (way, got) in ways_in(pid) {
            check([-EPERM, -EACCES].iter().any(|e| got == i64::from(*e)), &format!("{way} gave {got}"));
        }
    });
}

/// Root that became a user knows what the user must not.
fn former_root_is_closed() {
    needs_root();
    let victim = Victim::new(|_| become_user(USER));
    closed_to_user(victim.0);
    let only_fs = Victim::new(|_| _ = sys!(SYS_setfsuid, USER));
    closed_to_user(only_fs.0);
}

fn program(t: &Tmp, owner: u32, mode: u32) -> &'static CStr {
    needs_root();
    ok(sys!(SYS_chmod, t.path(""), 0o755));
    std::fs::copy("/proc/self/exe", format!("{}/p", t.dir())).unwrap();
    ok(sys!(SYS_chown, t.path("p"), owner, owner));
    ok(sys!(SYS_chmod, t.path("p"), mode));
    t.path("p")
}

fn start(path: &CStr) {
    let args = [path.as_ptr() as usize, c"attacked".as_ptr() as usize, 0];
    ok(sys!(SYS_execve, path, &args, &[0usize]));
}

fn running(path: &CStr, before: impl FnOnce()) -> Victim {
    Victim::new(|out| {
        sys!(SYS_dup2, out, 1);
        become_user(USER);
        before();
        start(path);
    })
}

fn set_uid_is_closed() {
    let t = Tmp::new();
    for (owner, mode) in [(0, 0o4755), (1234, 0o4755), (1234, 0o2755)] {
        let victim = running(program(&t, owner, mode), || {});
        closed_to_user(victim.0);
        // Its limits are its own; signals of its real user reach it.
        in_child(|| {
            become_user(USER);
            err(sys!(SYS_prlimit64, victim.0, RLIMIT_CORE, 0, &mut [0u64; 2]), EPERM);
            eq(sys!(SYS_kill, victim.0, 0), 0);
        });
    }
}

/// What may be executed and not read is not read by way of a process either.
fn unreadable_program_is_closed() {
    let t = Tmp::new();
    let victim = running(program(&t, 0, 0o711), || {});
    closed_to_user(victim.0);
}

fn own_process_is_open() {
    let t = Tmp::new();
    let victim = running(program(&t, 0, 0o755), || {});
    in_child(|| {
        become_user(USER);
        let fd = ok(sys!(SYS_openat, AT_FDCWD, of(victim.0, "maps"), O_RDONLY, 0));
        check(sys!(SYS_read, fd, &mut [0u8; 64], 64) > 0, "its maps");
        ok(sys!(SYS_ptrace, PTRACE_SEIZE, victim.0, 0, 0));
    });
}

/// Who opened the memory of a child before it became a privileged program holds the old memory, which is gone.
fn memory_file_ends_with_the_program() {
    let t = Tmp::new();
    let p = program(&t, 0, 0o4755);
    in_child(|| {
        become_user(USER);
        ok(sys!(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0));
        let (ready, go) = (pipe_pair(), pipe_pair());
        let pid = child(|| {
            sys!(SYS_dup2, ready[1], 1);
            sys!(SYS_read, go[0], &mut [0u8; 1], 1);
            start(p);
            1
        });
        let mem = ok(sys!(SYS_openat, AT_FDCWD, of(pid, "mem"), O_RDWR, 0));
        let at = SECRET.as_ptr() as usize;
        eq(sys!(SYS_pread64, mem, &mut [0u64; 1], 8, at), 8);
        sys!(SYS_write, go[1], b"x", 1);
        eq(sys!(SYS_read, ready[0], &mut [0u8; 1], 1), 1);
        eq(sys!(SYS_pread64, mem, &mut [0u64; 1], 8, at), 0);
        eq(sys!(SYS_pwrite64, mem, &[1u64], 8, at), 0);
        sys!(SYS_kill, pid, SIGKILL);
        reap(pid);
    });
}

/// A program that gains rights is loaded at random places, whatever its caller wished.
fn persona_is_left_behind() {
    let t = Tmp::new();
    let persona = |mode: u32| {
        // ADDR_NO_RANDOMIZE, MMAP_PAGE_ZERO, READ_IMPLIES_EXEC, SHORT_INODE
        let victim = running(program(&t, 0, mode), || _ = ok(sys!(SYS_personality, 0x154_0000)));
        std::fs::read_to_string(format!("/proc/{}/personality", victim.0)).unwrap().trim().to_string()
    };
    eq(persona(0o755), "01140000");
    eq(persona(0o4755), "01000000");
}

fn file_rights_go_with_fsuid() {
    needs_root();
    let t = Tmp::new();
    std::fs::write(format!("{}/f", t.dir()), b"root's").unwrap();
    ok(sys!(SYS_chmod, t.path(""), 0o755));
    ok(sys!(SYS_chmod, t.path("f"), 0o600));
    in_child(|| {
        let caps = || {
            let mut d = [0u32; 6];
            ok(sys!(SYS_capget, &[0x2008_0522u32, 0], &mut d));
            std::hint::black_box(d)[0]
        };
        let before = caps();
        sys!(SYS_setfsuid, USER);
        err(t.open("f", O_RDONLY), EACCES);
        err(sys!(SYS_chown, t.path("f"), 5, 5), EPERM);
        // CAP_CHOWN, DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID, LINUX_IMMUTABLE, MKNOD
        let files = 0b1_1111 | 1 << 9 | 1 << 27;
        eq(caps() & files, 0);
        eq(caps() | files, before | files);
        sys!(SYS_setfsuid, 0);
        eq(caps(), before);
        ok(t.open("f", O_RDONLY));
        // SECBIT_NO_SETUID_FIXUP
        ok(sys!(SYS_prctl, PR_SET_SECUREBITS, 4, 0, 0, 0));
        sys!(SYS_setfsuid, USER);
        eq(caps(), before);
    });
}

fn signals_within_a_session() {
    needs_root();
    let same = Victim::new(|_| become_user(2000));
    let other = Victim::new(|_| {
        ok(sys!(SYS_setsid));
        become_user(2000);
    });
    in_child(|| {
        become_user(USER);
        eq(sys!(SYS_kill, same.0, SIGCONT), 0);
        eq(sys!(SYS_tkill, same.0, SIGCONT), 0);
        for signal in [0, SIGTERM, SIGSTOP] {
            err(sys!(SYS_kill, same.0, signal), EPERM);
        }
        err(sys!(SYS_kill, other.0, SIGCONT), EPERM);
    });
}

fn forged_siginfo() {
    let victim = Victim::new(|_| {});
    let queue = |pid: i32, code: i32| {
        let mut info = [0i32; 32];
        info[0] = SIGURG;
        info[2] = code;
        let tgid = pid;
        [
            sys!(SYS_rt_sigqueueinfo, pid, SIGURG, &info),
            sys!(SYS_rt_tgsigqueueinfo, tgid, pid, SIGURG, &info),
        ]
    };
    // SI_USER, SI_KERNEL and SI_TKILL say who it was: only the kernel says that to others.
    for code in [0, 0x80, 1, -6] {
        eq(queue(victim.0, code), [-i64::from(EPERM); 2]);
    }
    for code in [-1, -2, -60] {
        eq(queue(victim.0, code), [0, 0]);
    }
    in_child(|| {
        let own = sys!(SYS_getpid) as i32;
        for code in [0, 0x80, -6, -1] {
            eq(queue(own, code), [0, 0]);
        }
    });
}

fn capabilities_only_sink() {
    in_child(|| {
        if sys!(SYS_geteuid) == 0 {
            become_user(USER);
        }
        let header = [0x2008_0522u32, 0];
        for at in 0..6 {
            let mut d = [0u32; 6];
            d[at] = 1;
            err(sys!(SYS_capset, &header, &d), EPERM);
        }
        // Bits that no kernel knows are none.
        eq(sys!(SYS_capset, &header, &[0u32, 0, 0, 1 << 31, 1 << 31, 1 << 31]), 0);
        eq(sys!(SYS_capset, &header, &[0u32; 6]), 0);
        err(sys!(SYS_capset, &[0x2008_0522u32, sys!(SYS_getppid) as u32], &[0u32; 6]), EPERM);
        err(sys!(SYS_capset, &[0x2008_0522u32, u32::MAX], &[0u32; 6]), EPERM);
    });
}

fn groups_need_right() {
    in_child(|| {
        if sys!(SYS_geteuid) == 0 {
            err(sys!(SYS_setgroups, 1, &[u32::MAX]), EINVAL);
            err(sys!(SYS_setgroups, 65_537, 0), EINVAL);
            err(sys!(SYS_setgroups, -1, 0), EINVAL);
            err(sys!(SYS_setgroups, 1, bad()), EFAULT);
            become_user(USER);
        }
        err(sys!(SYS_setgroups, 0, 0), EPERM);
        err(sys!(SYS_setgroups, -1, 0), EPERM);
    });
}
