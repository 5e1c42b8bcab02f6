//! execve(2), execveat(2).

use guest_tests::*;
use libc::*;
use std::ffi::CStr;

cases![
    argv_and_env, empty_argv, script, script_with_argument, script_recursion, script_missing_interpreter, enoexec, not_executable, missing,
    directory, loader_errors, too_big, bad_pointers, cloexec, keeps_pid_and_cwd, keeps_fds, memory_is_new, from_thread, fexecve, memfd, at_errors,
    busy_text, running_is_busy, busy_script, vfork_exec, many, auxv_plausible, path_in_proc_exe, comm_is_base_name, stack_limit, posix_spawn, long_args,
    script_line_edges, script_of_closed_descriptor, only_check, truncated_program, too_many_tasks
];

/// Runs `path` with `args` and `env`, its output in a pipe: what it printed and its wait status. An exec that
/// fails exits with the errno + 100.
fn run_env(path: &CStr, args: &[&CStr], env: &[&CStr]) -> (String, i32) {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_dup2, p[1], 1);
        sys!(SYS_close, p[0]);
        sys!(SYS_close, p[1]);
        let mut a: Vec<usize> = args.iter().map(|x| x.as_ptr() as usize).collect();
        a.push(0);
        let mut e: Vec<usize> = env.iter().map(|x| x.as_ptr() as usize).collect();
        e.push(0);
        let r = sys!(SYS_execve, path, &a[..], &e[..]);
        (100 - r) as i32
    });
    shut([p[1]]);
    let mut out = Vec::new();
    let mut b = [0u8; 4096];
    loop {
        let n = ok(sys!(SYS_read, p[0], &mut b, 4096)) as usize;
        if n == 0 {
            break;
        }
        out.extend_from_slice(&b[..n]);
    }
    shut([p[0]]);
    (String::from_utf8_lossy(&out).into_owned(), reap(pid))
}

fn run(path: &CStr, args: &[&CStr]) -> (String, i32) {
    run_env(path, args, &[c"PATH=/bin:/usr/bin"])
}

fn sh(script: &str) -> (String, i32) {
    run(c"/bin/sh", &[c"sh", c"-c", cstr(script)])
}

fn program(t: &Tmp, name: &str, text: &[u8]) -> &'static CStr {
    shut([t.file(name, text)]);
    ok(sys!(SYS_chmod, t.path(name), 0o755));
    t.path(name)
}

#[track_caller]
fn fails(path: &CStr, e: i32) {
    eq(run(path, &[path]).1, (100 + e) << 8);
}

fn argv_and_env() {
    let (o, s) = run_env(c"/bin/sh", &[c"zero", c"-c", c"echo \"$0|$1|$#|$X\"", c"a b", c"", c"c"], &[c"X=yes"]);
    eq((o.as_str(), s), ("a b||2|yes\n", 0));
    eq(sh("exit 7").1, 7 << 8);
}

fn empty_argv() {
    // Linux puts an empty string there since 5.18.
    let pid = child(|| {
        sys!(SYS_execve, c"/bin/true", &[0usize], &[0usize]);
        1
    });
    reap(pid);
    let pid = child(|| {
        sys!(SYS_execve, c"/bin/true", 0, 0);
        1
    });
    exits(pid, 0);
}

fn script() {
    let t = Tmp::new();
    let p = program(&t, "s", b"#!/bin/sh\necho \"$0 $1 $2\"\n");
    let (o, s) = run(p, &[c"ignored", c"x", c"y"]);
    eq((o, s), (format!("{} x y\n", p.to_str().unwrap()), 0));
}

fn script_with_argument() {
    let t = Tmp::new();
    let p = program(&t, "s", b"#! /bin/echo  one two \n");
    // Everything behind the interpreter is one argument, blanks at its end cut.
    let (o, _) = run(p, &[c"s", c"three"]);
    eq(o, format!("one two {} three\n", p.to_str().unwrap()));
    let i = program(&t, "i", format!("#!{} x\n", p.to_str().unwrap()).as_bytes());
    let (o, _) = run(i, &[c"i"]);
    eq(o, format!("one two {} x {}\n", p.to_str().unwrap(), i.to_str().unwrap()));
}

fn script_recursion() {
    let t = Tmp::new();
    let me = t.path("s").to_str().unwrap().to_string();
    let p = program(&t, "s", format!("#!{me}\n").as_bytes());
    fails(p, ELOOP);
}

fn script_missing_interpreter() {
    let t = Tmp::new();
    fails(program(&t, "s", b"#!/no/such/interpreter\n"), ENOENT);
    fails(program(&t, "n", b"#!\n"), ENOEXEC);
}

fn enoexec() {
    let t = Tmp::new();
    fails(program(&t, "e", b""), ENOEXEC);
    fails(program(&t, "t", b"plain text\n"), ENOEXEC);
    fails(program(&t, "x", b"\x7fELF\x02\x01\x01"), ENOEXEC);
    let mut arm = std::fs::read("/bin/true").unwrap();
    arm[18] = 183;
    fails(program(&t, "a", &arm), ENOEXEC);
}

fn not_executable() {
    let t = Tmp::new();
    shut([t.file("f", b"#!/bin/sh\n")]);
    ok(sys!(SYS_chmod, t.path("f"), 0o644));
    fails(t.path("f"), EACCES);
}

fn missing() {
    let t = Tmp::new();
    fails(t.path("no"), ENOENT);
    fails(c"", ENOENT);
    shut([t.file("f", b"")]);
    fails(t.path("f/x"), ENOTDIR);
}

fn directory() {
    fails(c"/", EACCES);
}

fn loader_errors() {
    let t = Tmp::new();
    // A dynamic program whose loader is not there.
    let mut b = std::fs::read("/bin/true").unwrap();
    let name = b"/lib64/ld-linux-x86-64.so.2";
    let at = b.windows(name.len()).position(|w| w == name).expect("a loader's name");
    b[at + 1] = b'X';
    fails(program(&t, "l", &b), ENOENT);
}

fn too_big() {
    let big = cstr("x".repeat(131_072));
    eq(run(c"/bin/true", &[c"true", big]).1, (100 + E2BIG) << 8);
    let most = cstr("x".repeat(131_071));
    eq(run(c"/bin/true", &[c"true", most]).1, 0);
}

fn long_args() {
    let one = cstr("y".repeat(1000));
    let args: Vec<&CStr> = std::iter::once(c"sh" as &CStr).chain([c"-c" as &CStr, c"echo $#", c"z"]).chain((0..500).map(|_| one)).collect();
    eq(run(c"/bin/sh", &args), ("500\n".into(), 0));
}

fn bad_pointers() {
    in_child(|| {
        err(sys!(SYS_execve, bad(), &[0usize], &[0usize]), EFAULT);
        err(sys!(SYS_execve, c"/bin/true", bad(), &[0usize]), EFAULT);
        err(sys!(SYS_execve, c"/bin/true", &[0usize], bad()), EFAULT);
        err(sys!(SYS_execve, c"/bin/true", &[bad() as usize, 0], &[0usize]), EFAULT);
    });
}

fn cloexec() {
    let t = Tmp::new();
    let a = ok(t.open("", O_RDONLY | O_CLOEXEC)) as i32;
    let b = ok(t.open("", O_RDONLY)) as i32;
    ok(sys!(SYS_dup2, b, 210));
    ok(sys!(SYS_dup3, a, 211, O_CLOEXEC));
    let (o, _) = sh("for f in 210 211; do [ -e /proc/self/fd/$f ] && echo $f; done; true");
    eq(o, "210\n");
    // The parent's stay.
    shut([a, b, 210, 211]);
}

fn keeps_pid_and_cwd() {
    let p = pipe_pair();
    let pid = child(|| {
        sys!(SYS_dup2, p[1], 1);
        sys!(SYS_chdir, c"/usr");
        sys!(SYS_umask, 0o31);
        sys!(SYS_execve, c"/bin/sh", &[c"sh".as_ptr(), c"-c".as_ptr(), c"echo $$; pwd; umask".as_ptr(), std::ptr::null()], &[0usize]);
        1
    });
    let mut b = [0u8; 100];
    exits(pid, 0);
    let n = ok(sys!(SYS_read, p[0], &mut b, 100)) as usize;
    eq(String::from_utf8_lossy(&b[..n]), format!("{pid}\n/usr\n0031\n"));
    shut(p);
}

fn keeps_fds() {
    let t = Tmp::new();
    let fd = t.file("f", b"0123456789");
    ok(sys!(SYS_dup2, fd, 9));
    ok(sys!(SYS_lseek, fd, 4, SEEK_SET));
    let (o, _) = sh("cat <&9");
    eq(o, "456789");
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 10);
    shut([fd, 9]);
}

fn memory_is_new() {
    let p = ok(sys!(SYS_mmap, 0x2000_0000usize, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    let (o, _) = sh("grep -c '^20000000' /proc/self/maps");
    eq(o, "0\n");
    ok(sys!(SYS_munmap, p, 4096));
}

fn from_thread() {
    let pid = child(|| {
        std::thread::spawn(forever);
        std::thread::spawn(|| {
            sys!(SYS_execve, c"/bin/sh", &[c"sh".as_ptr(), c"-c".as_ptr(), c"exit 12".as_ptr(), std::ptr::null()], &[0usize]);
        });
        forever();
        1
    });
    // The thread that execs becomes the process.
    exits(pid, 12);
}

fn fexecve() {
    let fd = ok(sys!(SYS_openat, AT_FDCWD, c"/bin/true", O_RDONLY | O_CLOEXEC, 0)) as i32;
    let pid = child(|| {
        sys!(SYS_execveat, fd, c"", &[c"true".as_ptr(), std::ptr::null()], &[0usize], AT_EMPTY_PATH);
        1
    });
    exits(pid, 0);
    let d = ok(sys!(SYS_openat, AT_FDCWD, c"/bin", O_PATH, 0)) as i32;
    let pid = child(|| {
        sys!(SYS_execveat, d, c"false", &[c"false".as_ptr(), std::ptr::null()], &[0usize], 0);
        9
    });
    exits(pid, 1);
    shut([fd, d]);
}

fn memfd() {
    let fd = ok(sys!(SYS_memfd_create, c"prog", MFD_CLOEXEC)) as i32;
    let b = std::fs::read("/bin/true").unwrap();
    eq(sys!(SYS_write, fd, &b[..], b.len()), b.len() as i64);
    let pid = child(|| {
        sys!(SYS_execveat, fd, c"", &[c"true".as_ptr(), std::ptr::null()], &[0usize], AT_EMPTY_PATH);
        1
    });
    exits(pid, 0);
    shut([fd]);
}

fn at_errors() {
    in_child(|| {
        let a = [0usize];
        err(sys!(SYS_execveat, AT_FDCWD, c"/bin/true", &a, &a, 0x8000_0000u32), EINVAL);
        err(sys!(SYS_execveat, 9999, c"x", &a, &a, 0), EBADF);
        err(sys!(SYS_execveat, AT_FDCWD, c"", &a, &a, 0), ENOENT);
        let t = Tmp::new();
        ok(sys!(SYS_symlink, c"/bin/true", t.path("l")));
        err(sys!(SYS_execveat, AT_FDCWD, t.path("l"), &a, &a, AT_SYMLINK_NOFOLLOW), ELOOP);
    });
}

fn busy_text() {
    let t = Tmp::new();
    let b = std::fs::read("/bin/true").unwrap();
    let p = program(&t, "p", &b);
    let w = ok(t.open("p", O_WRONLY)) as i32;
    fails(p, ETXTBSY);
    shut([w]);
    eq(run(p, &[p]).1, 0);
}

fn running_is_busy() {
    let t = Tmp::new();
    let p = program(&t, "p", &std::fs::read("/bin/sleep").unwrap());
    let (go, pid) = (pipe_pair(), child(|| {
        sys!(SYS_execve, p, &[p.as_ptr() as usize, c"100".as_ptr() as usize, 0], &[0usize]);
        1
    }));
    let exe = format!("/proc/{pid}/exe");
    until("it runs", || std::fs::read_link(&exe).is_ok_and(|l| l.to_str() == p.to_str().ok()));
    for flags in [O_WRONLY, O_RDWR, O_WRONLY | O_APPEND, O_RDONLY | O_TRUNC] {
        err(t.open("p", flags), ETXTBSY);
    }
    err(sys!(SYS_truncate, p, 0), ETXTBSY);
    // Reading, a second copy, a new name and removal are allowed.
    shut([ok(t.open("p", O_RDONLY)) as i32]);
    ok(sys!(SYS_link, p, t.path("q")));
    err(t.open("q", O_WRONLY), ETXTBSY);
    ok(sys!(SYS_unlink, p));
    sys!(SYS_kill, pid, SIGKILL);
    killed_by(pid, SIGKILL);
    shut([ok(t.open("q", O_WRONLY)) as i32]);
    shut(go);
}

fn busy_script() {
    let t = Tmp::new();
    let p = program(&t, "s", b"#!/bin/sh\nexit 3\n");
    let w = ok(t.open("s", O_WRONLY | O_APPEND)) as i32;
    fails(p, ETXTBSY);
    // Closed by another that had it by fork.
    let pid = child(|| {
        sys!(SYS_close, w);
        0
    });
    exits(pid, 0);
    fails(p, ETXTBSY);
    shut([w]);
    eq(run(p, &[p]).1, 3 << 8);
    // A script is not busy while its interpreter runs.
    let p = program(&t, "r", b"#!/bin/sh\necho >>\"$0\"; exit 4\n");
    eq(run(p, &[p]).1, 4 << 8);
}

fn vfork_exec() {
    // glibc's system() and posix_spawn use CLONE_VM | CLONE_VFORK.
    // SAFETY: the string ends in NUL.
    eq(unsafe { system(c"exit 14".as_ptr()) }, 14 << 8);
}

fn posix_spawn() {
    let s = std::process::Command::new("/bin/sh").args(["-c", "exit 15"]).status().unwrap();
    eq(s.code(), Some(15));
    check(std::process::Command::new("/no/such").status().is_err(), "a missing program is an error here");
}

fn many() {
    for _ in 0..20 {
        eq(run(c"/bin/true", &[c"true"]).1, 0);
    }
}

fn auxv_plausible() {
    // SAFETY: getauxval takes numbers; what AT_RANDOM and the like point to is the kernel's and stays.
    unsafe {
        eq(getauxval(AT_PAGESZ), 4096);
        eq(getauxval(AT_CLKTCK), 100);
        eq(getauxval(AT_UID) as i64, sys!(SYS_getuid));
        eq(getauxval(AT_EGID) as i64, sys!(SYS_getegid));
        check(getauxval(AT_RANDOM) != 0 && getauxval(AT_PHDR) != 0 && getauxval(AT_ENTRY) != 0, "addresses");
        eq(CStr::from_ptr(getauxval(AT_PLATFORM) as *const c_char), c"x86_64");
        eq(getauxval(AT_SECURE), 0);
        let f = CStr::from_ptr(getauxval(AT_EXECFN) as *const c_char);
        check(f.to_bytes().ends_with(b"guest"), "the program's name");
    }
}

fn path_in_proc_exe() {
    let (o, _) = run(c"/bin/sh", &[c"sh", c"-c", c"readlink /proc/self/exe"]);
    let want = std::fs::canonicalize("/bin/readlink").unwrap();
    eq(o.trim_end(), want.to_str().unwrap());
}

fn comm_is_base_name() {
    let (o, _) = run(c"/bin/cat", &[c"whatever", c"/proc/self/comm"]);
    check(o == "cat\n" || o == "coreutils\n" || o == "busybox\n", "the base name of the file");
}

fn stack_limit() {
    let (o, _) = sh("ulimit -s");
    let mut l = [0u64; 2];
    ok(sys!(SYS_prlimit64, 0, RLIMIT_STACK, 0, &mut l));
    let want = if l[0] == u64::MAX { "unlimited".into() } else { (l[0] / 1024).to_string() };
    eq(o.trim_end(), want);
}

/// `#!` lines are looked at in the first 256 bytes.
fn script_line_edges() {
    let t = Tmp::new();
    let line = |name: &str, text: &[u8]| run(program(&t, name, text), &[c"x", c"y"]);
    // An argument is cut, a name that goes on is none.
    let long = line("long", format!("#!/bin/echo {}\n", "x".repeat(300)).as_bytes());
    eq(long.0.split(' ').next().map(str::len), Some(255 - 12));
    eq(line("name", format!("#!{}/bin/echo\n", "/".repeat(300)).as_bytes()).1, (100 + ENOEXEC) << 8);
    let blanks = format!("#!/bin/echo{}b\n", " ".repeat(250));
    check(line("blanks", blanks.as_bytes()).0.ends_with("blanks y\n"), "blanks alone");
    eq(line("only_blanks", format!("#!{}", " ".repeat(300)).as_bytes()).1, (100 + ENOEXEC) << 8);
    check(line("nul", b"#!/bin/echo a\0b\n").0.starts_with("a /"), "up to a NUL");
    check(line("nul_name", b"#!/bin/echo\0b c\n").0.starts_with('/'), "a name up to a NUL");
    check(line("tabs", b"#! \t/bin/echo\t a\tb \t\n").0.starts_with("a\tb /"), "tabs");
    check(line("open_end", b"#!/bin/echo q").0.starts_with("q /"), "no end of line");
}

/// A script whose descriptor is closed by execve cannot be found by its interpreter.
fn script_of_closed_descriptor() {
    let t = Tmp::new();
    program(&t, "s", b"#!/bin/true\n");
    let at = |flags: i32, dir: bool| {
        let path = if dir { t.path(".") } else { t.path("s") };
        let fd = ok(sys!(SYS_openat, AT_FDCWD, path, O_RDONLY | flags, 0)) as i32;
        let pid = child(|| {
            let name = if dir { c"s" } else { c"" };
            let r = sys!(SYS_execveat, fd, name, &[c"s".as_ptr(), std::ptr::null()], &[0usize], AT_EMPTY_PATH);
            (100 - r) as i32
        });
        shut([fd]);
        reap(pid) >> 8
    };
    eq([at(0, false), at(0, true)], [0, 0]);
    eq([at(O_CLOEXEC, false), at(O_CLOEXEC, true)], [100 + ENOENT; 2]);
}

/// AT_EXECVE_CHECK
fn only_check() {
    const CHECK: i32 = 0x1_0000;
    let t = Tmp::new();
    let a = [0usize];
    program(&t, "yes", b"no format at all");
    shut([t.file("no", b"#!/bin/sh\n")]);
    eq(sys!(SYS_execveat, AT_FDCWD, t.path("yes"), &a, &a, CHECK), 0);
    err(sys!(SYS_execveat, AT_FDCWD, t.path("no"), &a, &a, CHECK), EACCES);
    err(sys!(SYS_execveat, AT_FDCWD, t.path("none"), &a, &a, CHECK), ENOENT);
    let fd = ok(sys!(SYS_openat, AT_FDCWD, t.path("yes"), O_RDONLY, 0));
    eq(sys!(SYS_execveat, fd, c"", &a, &a, CHECK | AT_EMPTY_PATH), 0);
    err(sys!(SYS_execveat, fd, c"", bad(), &a, CHECK | AT_EMPTY_PATH), EFAULT);
    shut([fd as i32]);
}

/// A failure behind the point of no return is a fault.
fn truncated_program() {
    let t = Tmp::new();
    // A header, one segment of code and one of data that begins beyond the end of the file, where bss begins in a page.
    let mut elf = vec![0u8; 64 + 2 * 56];
    elf[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let mut put = |at: usize, bytes: &[u8]| elf[at..at + bytes.len()].copy_from_slice(bytes);
    put(16, &[2, 0, 62, 0, 1, 0, 0, 0]);
    put(24, &0x40_0000u64.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 2, 0]);
    for (i, (flags, offset, at)) in [(5u32, 0u64, 0x40_0000u64), (6, 0x8000, 0x60_8000)].into_iter().enumerate() {
        let base = 64 + i * 56;
        put(base, &1u32.to_le_bytes());
        put(base + 4, &flags.to_le_bytes());
        for (j, value) in [offset, at, at, 0x100, 0x1800, 0x1000].into_iter().enumerate() {
            put(base + 8 + j * 8, &value.to_le_bytes());
        }
    }
    let path = program(&t, "p", &elf);
    let status = run(path, &[path]).1;
    check(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, &format!("{status:#x}"));
}

/// RLIMIT_NPROC binds who has become another user at execve.
fn too_many_tasks() {
    if sys!(SYS_geteuid) != 0 {
        skip("needs to be root");
    }
    const NOBODY: u32 = 54_321;
    let become_one = |limit: u64| {
        child(|| {
            ok(sys!(SYS_prlimit64, 0, RLIMIT_NPROC, &[limit, limit], 0));
            ok(sys!(SYS_setresuid, NOBODY, NOBODY, NOBODY));
            let r = sys!(SYS_execve, c"/bin/true", &[c"true".as_ptr(), std::ptr::null()], &[0usize]);
            (100 - r) as i32
        })
    };
    exits(become_one(1), 0);
    // The host counts the caller where it becomes the user, or does not: two others are enough for either.
    let others = [(); 2].map(|()| {
        let p = pipe_pair();
        let other = child(|| {
            ok(sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL));
            ok(sys!(SYS_setresuid, NOBODY, NOBODY, NOBODY));
            // Changing the user takes it back.
            ok(sys!(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL));
            eq(sys!(SYS_write, p[1], [0u8].as_ptr(), 1), 1);
            sys!(SYS_pause);
            0
        });
        eq(sys!(SYS_read, p[0], [0u8; 1].as_mut_ptr(), 1), 1);
        shut(p);
        other
    });
    exits(become_one(1), 100 + EAGAIN);
    exits(become_one(3), 0);
    for other in others {
        ok(sys!(SYS_kill, other, SIGKILL));
        killed_by(other, SIGKILL);
    }
}
