//! Programs with privileges of their own: set-user-ID, set-group-ID and capabilities of files (execve(2),
//! capabilities(7)).

use guest_tests::*;
use libc::*;
use std::ffi::CStr;

cases![
    set_uid, set_gid, set_gid_without_execute, no_new_privs_keeps, own_set_uid_is_not_secure, script_bits_are_ignored, file_caps, file_caps_inheritable,
    file_caps_ask_too_much, file_caps_lost_by_write, file_caps_rules, root_set_uid, root_stays_root, secure_exec_cleans_up, traced_gains_nothing, set_uid_by_descriptor
];

/// capget(2) of this process: effective, permitted, inheritable.
fn caps() -> [u64; 3] {
    let mut d = [0u32; 6];
    ok(sys!(SYS_capget, &[0x2008_0522u32, 0], &mut d));
    [0, 1, 2].map(|i| u64::from(d[i]) | u64::from(d[i + 3]) << 32)
}

/// The helper program: ids, AT_SECURE, capabilities, dumpable, parent-death signal and stack limit in one line.
pub fn show(_: &[String]) -> i32 {
    let (mut u, mut g) = ([0u32; 3], [0u32; 3]);
    sys!(SYS_getresuid, &mut u[0], &mut u[1], &mut u[2]);
    sys!(SYS_getresgid, &mut g[0], &mut g[1], &mut g[2]);
    let (u, g): (Vec<_>, Vec<_>) = unsafe {
        let at = |p: *const u32| (0..3).map(|i| p.add(i).read_volatile()).collect::<Vec<_>>();
        (at(u.as_ptr()), at(g.as_ptr()))
    };
    let secure = unsafe { getauxval(AT_SECURE) };
    let (mut pd, mut l) = ([0i32; 1], [0u64; 2]);
    let dumpable = sys!(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0);
    sys!(SYS_prctl, PR_GET_PDEATHSIG, &mut pd, 0, 0, 0);
    sys!(SYS_prlimit64, 0, RLIMIT_STACK, 0, &mut l);
    let [e, p, _] = caps();
    let stack = unsafe { l.as_ptr().read_volatile() };
    let pd = unsafe { pd.as_ptr().read_volatile() };
    let line =
        format!("{u:?} {g:?} secure={secure} e={e:x} p={p:x} dumpable={dumpable} pdeath={pd} stack={stack}\n");
    sys!(SYS_write, 1, line.as_bytes(), line.len());
    0
}

/// A copy of this program that others may run, with owner and mode.
fn program(t: &Tmp, owner: (u32, u32), mode: u32) -> &'static CStr {
    if sys!(SYS_geteuid) != 0 {
        skip("needs root");
    }
    ok(sys!(SYS_chmod, t.path(""), 0o755));
    std::fs::copy("/proc/self/exe", format!("{}/p", t.dir())).unwrap();
    ok(sys!(SYS_chown, t.path("p"), owner.0, owner.1));
    ok(sys!(SYS_chmod, t.path("p"), mode));
    t.path("p")
}

/// What the helper says when `before` has run in a child of user and group 1000 that then starts it.
fn said(path: &CStr, before: impl FnOnce()) -> String {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_dup2, p[1], 1);
        sys!(SYS_setgroups, 0, 0);
        ok(sys!(SYS_setresgid, 1000, 1000, 1000));
        ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        before();
        start(path)
    });
    shut([p[1]]);
    let mut b = [0u8; 512];
    let n = ok(sys!(SYS_read, p[0], &mut b, 512)) as usize;
    shut([p[0]]);
    let s = reap(pid);
    if n == 0 {
        return format!("ended with {s:#x}");
    }
    String::from_utf8_lossy(&b[..n]).trim_end().to_string()
}

fn start(path: &CStr) -> i32 {
    let args = [path.as_ptr() as usize, c"credentials".as_ptr() as usize, 0];
    (100 - sys!(SYS_execve, path, &args, &[0usize])) as i32
}

/// The words of `said` that begin as one of `keys`, and the ids.
#[track_caller]
fn says(path: &CStr, before: impl FnOnce(), want: &str) {
    let got = said(path, before);
    check(got.starts_with(want), &format!("{got} begins with {want}"));
}

fn set_uid() {
    let t = Tmp::new();
    let p = program(&t, (1234, 2345), 0o4755);
    says(p, || {}, "[1000, 1234, 1234] [1000, 1000, 1000] secure=1 e=0 p=0 dumpable=0");
}

fn set_gid() {
    let t = Tmp::new();
    let p = program(&t, (1234, 2345), 0o2755);
    says(p, || {}, "[1000, 1000, 1000] [1000, 2345, 2345] secure=1 e=0 p=0 dumpable=0");
    ok(sys!(SYS_chmod, p, 0o6755));
    says(p, || {}, "[1000, 1234, 1234] [1000, 2345, 2345] secure=1 e=0 p=0 dumpable=0");
}

fn set_gid_without_execute() {
    let t = Tmp::new();
    let p = program(&t, (1234, 2345), 0o2745);
    says(p, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=0 e=0 p=0 dumpable=1");
}

fn no_new_privs_keeps() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o6755);
    let nnp = || _ = ok(sys!(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    says(p, nnp, "[1000, 1000, 1000] [1000, 1000, 1000] secure=0 e=0 p=0 dumpable=1");
}

fn own_set_uid_is_not_secure() {
    let t = Tmp::new();
    let p = program(&t, (1000, 1000), 0o6755);
    says(p, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=0 e=0 p=0 dumpable=1");
}

fn script_bits_are_ignored() {
    let t = Tmp::new();
    program(&t, (0, 0), 0o755);
    let s = cstr(format!("{}/s", t.dir()));
    std::fs::write(s.to_str().unwrap(), format!("#!{}/p credentials\n", t.dir())).unwrap();
    ok(sys!(SYS_chmod, s, 0o6755));
    says(s, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=0");
}

const NET_BIND: u32 = 1 << 10;

/// A value of security.capability: revision 2.
fn value(effective: bool, permitted: u32, inheritable: u32) -> [u32; 5] {
    [0x0200_0000 | u32::from(effective), permitted, inheritable, 0, 0]
}

fn give(p: &CStr, v: &[u32; 5]) {
    ok(sys!(SYS_setxattr, p, c"security.capability", v.as_ptr() as usize, 20, 0));
}

fn file_caps() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o755);
    give(p, &value(true, NET_BIND, 0));
    says(p, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=1 e=400 p=400 dumpable=0");
    give(p, &value(false, NET_BIND, 0));
    says(p, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=1 e=0 p=400 dumpable=0");
    let nnp = || _ = ok(sys!(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    says(p, nnp, "[1000, 1000, 1000] [1000, 1000, 1000] secure=0 e=0 p=0 dumpable=1");
    ok(sys!(SYS_removexattr, p, c"security.capability"));
    says(p, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=0 e=0 p=0 dumpable=1");
}

fn file_caps_inheritable() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o755);
    give(p, &value(true, 0, NET_BIND));
    says(p, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=1 e=0 p=0");
}

fn file_caps_ask_too_much() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o755);
    give(p, &value(true, NET_BIND, 0));
    in_child(|| {
        ok(sys!(SYS_prctl, PR_CAPBSET_DROP, 10, 0, 0, 0));
        eq(said(p, || {}), format!("ended with {:#x}", (100 + EPERM) << 8));
        give(p, &value(false, NET_BIND, 0));
        says(p, || {}, "[1000, 1000, 1000] [1000, 1000, 1000] secure=0 e=0 p=0");
    });
}

fn file_caps_lost_by_write() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o755);
    for change in 0..2 {
        give(p, &value(true, NET_BIND, 0));
        let fd = ok(t.open("p", O_RDWR)) as i32;
        match change {
            0 => eq(sys!(SYS_pwrite64, fd, b"\x7f", 1, 0), 1),
            _ => eq(sys!(SYS_ftruncate, fd, stat_fd(fd).st_size), 0),
        }
        shut([fd]);
        err(sys!(SYS_getxattr, p, c"security.capability", 0, 0), ENODATA);
    }
}

fn file_caps_rules() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o755);
    let v = value(true, NET_BIND, 0);
    err(sys!(SYS_setxattr, p, c"security.capability", v.as_ptr() as usize, 19, 0), EINVAL);
    err(sys!(SYS_setxattr, p, c"security.capability", &[0x0900_0000u32, 0, 0, 0, 0], 20, 0), EINVAL);
    give(p, &v);
    let mut b = [0u32; 5];
    eq(sys!(SYS_getxattr, p, c"security.capability", &mut b, 20), 20);
    eq(unsafe { (&raw const b).read_volatile() }, v);
    let mut l = [0u8; 64];
    let n = ok(sys!(SYS_listxattr, p, &mut l, 64)) as usize;
    check(l[..n].split(|c| *c == 0).any(|x| x == b"security.capability"), "it is listed");
    in_child(|| {
        ok(sys!(SYS_chown, p, 1000, 1000));
        // A new owner: they are gone.
        err(sys!(SYS_getxattr, p, c"security.capability", 0, 0), ENODATA);
        ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        err(sys!(SYS_setxattr, p, c"security.capability", v.as_ptr() as usize, 20, 0), EPERM);
        err(sys!(SYS_setxattr, p, c"security.other", b"x", 1, 0), EPERM);
        err(sys!(SYS_setxattr, p, c"trusted.x", b"x", 1, 0), EPERM);
        err(sys!(SYS_getxattr, p, c"trusted.x", 0, 0), ENODATA);
    });
}

fn root_set_uid() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o4755);
    let said = said(p, || {});
    check(said.starts_with("[1000, 0, 0] [1000, 1000, 1000] secure=1 e="), &said);
    check(!said.contains(" e=0 "), "all capabilities");
    // With capabilities of its own it has these alone.
    give(p, &value(true, NET_BIND, 0));
    says(p, || {}, "[1000, 0, 0] [1000, 1000, 1000] secure=1 e=400 p=400 dumpable=0");
}

fn root_stays_root() {
    let t = Tmp::new();
    let p = program(&t, (1234, 2345), 0o6755);
    let out = pipe_pair();
    let pid = child(|| {
        sys!(SYS_dup2, out[1], 1);
        start(p)
    });
    exits(pid, 0);
    let mut b = [0u8; 256];
    let n = ok(sys!(SYS_read, out[0], &mut b, 256)) as usize;
    let said = String::from_utf8_lossy(&b[..n]).into_owned();
    // The real user is root: all are permitted, none in force.
    check(said.starts_with("[0, 1234, 1234] [0, 2345, 2345] secure=1 e=0 p="), &said);
    check(!said.contains(" p=0 "), "permitted");
    shut(out);
}

fn secure_exec_cleans_up() {
    let t = Tmp::new();
    let p = program(&t, (1234, 2345), 0o4755);
    let said = said(p, || {
        sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0);
        sys!(SYS_prlimit64, 0, RLIMIT_STACK, &[16u64 << 20, u64::MAX], 0);
    });
    check(said.ends_with("dumpable=0 pdeath=0 stack=8388608"), &said);
}

fn set_uid_by_descriptor() {
    let t = Tmp::new();
    let p = program(&t, (1234, 2345), 0o4755);
    let out = pipe_pair();
    let pid = child(|| {
        sys!(SYS_dup2, out[1], 1);
        let fd = ok(sys!(SYS_openat, AT_FDCWD, p, O_PATH, 0));
        ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        let args = [p.as_ptr() as usize, c"credentials".as_ptr() as usize, 0];
        sys!(SYS_execveat, fd, c"", &args, &[0usize], AT_EMPTY_PATH);
        1
    });
    exits(pid, 0);
    let mut b = [0u8; 256];
    let n = ok(sys!(SYS_read, out[0], &mut b, 256)) as usize;
    check(b[..n].starts_with(b"[1000, 1234, 1234]"), "the owner's rights");
    shut(out);
}

/// Goes on in a child that is traced: its parent lets it run whatever stops it, and ends with it.
fn be_traced() {
    let pid = ok(call::libc_ret(unsafe { fork() })) as i32;
    if pid == 0 {
        ok(sys!(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0));
        return;
    }
    loop {
        let mut s = 0;
        if sys!(SYS_wait4, pid, &mut s, 0, 0) < 0 || !WIFSTOPPED(s) {
            child::exit_now(0);
        }
        sys!(SYS_ptrace, PTRACE_CONT, pid, 0, 0);
    }
}

fn traced_gains_nothing() {
    let t = Tmp::new();
    let p = program(&t, (0, 0), 0o6755);
    says(p, be_traced, "[1000, 1000, 1000] [1000, 1000, 1000] secure=1 e=0 p=0 dumpable=1");
    let p = program(&t, (1234, 2345), 0o4755);
    says(p, be_traced, "[1000, 1000, 1000] [1000, 1000, 1000] secure=1 e=0 p=0 dumpable=1");
    says(p, || {}, "[1000, 1234, 1234] [1000, 1000, 1000] secure=1 e=0 p=0");
}
