//! F_NOTIFY of fcntl(2).

use guest_tests::*;
use libc::*;

cases![changes, one_shot, adds_up, ends_with_its_table, details, errors, owner];

const DN_ACCESS: u32 = 0x1;
const DN_MODIFY: u32 = 0x2;
const DN_CREATE: u32 = 0x4;
const DN_DELETE: u32 = 0x8;
const DN_RENAME: u32 = 0x10;
const DN_ATTRIB: u32 = 0x20;
const ALL: u32 = DN_ACCESS | DN_MODIFY | DN_CREATE | DN_DELETE | DN_RENAME | DN_ATTRIB;
const MULTI: u32 = 0x8000_0000;
const RT: i32 = 40;
const F_SETSIG: i32 = 10;

fn notify(fd: i64, what: u32) -> i64 {
    sys!(SYS_fcntl, fd, F_NOTIFY, what)
}

/// Signals that wait, taken.
fn taken() -> Vec<siginfo_t> {
    let mut all = Vec::new();
    loop {
        // SAFETY: all zero is a valid siginfo.
        let mut info: siginfo_t = unsafe { std::mem::zeroed() };
        if sys!(SYS_rt_sigtimedwait, &sig::set(&[SIGIO, RT]), &mut info, &[0i64; 2], 8) < 0 {
            return all;
        }
        all.push(info);
    }
}

fn at(t: &Tmp, name: &str) -> String {
    format!("{}/{name}", t.dir())
}

fn blocked() {
    sig::mask(SIG_BLOCK, sig::set(&[SIGIO, RT]));
}

/// Which of the bits a change is: each is asked for by itself.
fn bits(change: impl Fn(&Tmp, &Tmp)) -> u32 {
    let mut seen = 0;
    for bit in [DN_ACCESS, DN_MODIFY, DN_CREATE, DN_DELETE, DN_RENAME, DN_ATTRIB] {
        let (here, there) = (Tmp::new(), Tmp::new());
        std::fs::write(at(&here, "a"), "x").unwrap();
        std::fs::write(at(&there, "o"), "x").unwrap();
        std::fs::create_dir(at(&here, "sub")).unwrap();
        std::fs::write(at(&here, "sub/b"), "x").unwrap();
        let fd = ok(sys!(SYS_open, here.path(""), O_RDONLY | O_DIRECTORY));
        ok(notify(fd, bit | MULTI));
        change(&here, &there);
        if !taken().is_empty() {
            seen |= bit;
        }
        ok(sys!(SYS_close, fd));
    }
    seen
}

fn changes() {
    in_child(|| {
        blocked();
        let none: u32 = 0;
        eq(bits(|t, _| std::fs::write(at(t, "new"), "").unwrap()), DN_CREATE);
        eq(bits(|t, _| drop(std::fs::read(at(t, "a")).unwrap())), DN_ACCESS);
        eq(bits(|t, _| ok_truncate(t, "a")), DN_MODIFY);
        eq(bits(|t, _| append(t, "a")), DN_MODIFY);
        eq(bits(|t, _| std::fs::create_dir(at(t, "d")).unwrap()), DN_CREATE);
        eq(bits(|t, _| std::fs::remove_file(at(t, "a")).unwrap()), DN_DELETE);
        eq(bits(|t, _| std::fs::rename(at(t, "a"), at(t, "c")).unwrap()), DN_CREATE | DN_DELETE | DN_RENAME);
        eq(bits(|t, _| std::fs::rename(at(t, "sub"), at(t, "c")).unwrap()), DN_CREATE | DN_DELETE | DN_RENAME);
        eq(bits(|t, o| std::fs::rename(at(t, "a"), at(o, "c")).unwrap()), DN_DELETE);
        eq(bits(|t, o| std::fs::rename(at(o, "o"), at(t, "c")).unwrap()), DN_CREATE);
        eq(bits(|t, o| std::fs::rename(at(o, "o"), at(t, "a")).unwrap()), DN_CREATE);
        eq(bits(|t, _| std::fs::hard_link(at(t, "a"), at(t, "l")).unwrap()), DN_CREATE);
        eq(bits(|t, _| std::os::unix::fs::symlink("a", at(t, "l")).unwrap()), DN_CREATE);
        eq(bits(|t, _| mode(t, "a")), DN_ATTRIB);
        eq(bits(|t, _| mode(t, "sub")), DN_ATTRIB);
        eq(bits(|t, _| mode(t, ".")), DN_ATTRIB);
        eq(bits(|t, _| eq(std::fs::read_dir(at(t, ".")).unwrap().count(), 2)), DN_ACCESS);
        // Of what is deeper nothing is told.
        eq(bits(|t, _| std::fs::write(at(t, "sub/n"), "").unwrap()), none);
        eq(bits(|t, _| append(t, "sub/b")), none);
    });
}

fn ok_truncate(t: &Tmp, name: &str) {
    ok(sys!(SYS_truncate, t.path(name), 0));
}

fn append(t: &Tmp, name: &str) {
    let fd = ok(sys!(SYS_open, t.path(name), O_WRONLY | O_APPEND));
    ok(sys!(SYS_write, fd, b"y", 1));
    ok(sys!(SYS_close, fd));
}

fn mode(t: &Tmp, name: &str) {
    ok(sys!(SYS_chmod, t.path(name), 0o700));
}

fn one_shot() {
    in_child(|| {
        blocked();
        let t = Tmp::new();
        let fd = ok(sys!(SYS_open, t.path(""), O_RDONLY));
        ok(notify(fd, DN_CREATE));
        std::fs::create_dir(at(&t, "1")).unwrap();
        let got = taken();
        eq(got.len(), 1);
        eq((got[0].si_signo, got[0].si_code), (SIGIO, SI_KERNEL));
        std::fs::create_dir(at(&t, "2")).unwrap();
        eq(taken().len(), 0);
    });
}

fn adds_up() {
    in_child(|| {
        blocked();
        let t = Tmp::new();
        let fd = ok(sys!(SYS_open, t.path(""), O_RDONLY));
        ok(notify(fd, DN_CREATE | MULTI));
        ok(notify(fd, DN_DELETE));
        std::fs::create_dir(at(&t, "1")).unwrap();
        eq(taken().len(), 1);
        std::fs::remove_dir(at(&t, "1")).unwrap();
        eq(taken().len(), 1);
        ok(notify(fd, 0));
        std::fs::create_dir(at(&t, "1")).unwrap();
        eq(taken().len(), 0);
    });
}

fn ends_with_its_table() {
    in_child(|| {
        blocked();
        let t = Tmp::new();
        let make = |name: &str| {
            std::fs::create_dir(at(&t, name)).unwrap();
            taken().len()
        };
        let fd = ok(sys!(SYS_open, t.path(""), O_RDONLY));
        ok(notify(fd, DN_CREATE | MULTI));
        // Closed by a child: another table.
        exits(child(|| sys!(SYS_close, fd) as i32), 0);
        eq(make("1"), 1);
        // Any descriptor of the description ends it.
        let other = ok(sys!(SYS_dup, fd));
        ok(sys!(SYS_close, other));
        eq(make("2"), 0);
        ok(notify(fd, DN_CREATE | MULTI));
        eq(make("3"), 1);
        ok(sys!(SYS_dup2, 0, fd));
        eq(make("4"), 0);
    });
}

fn details() {
    in_child(|| {
        blocked();
        let t = Tmp::new();
        let fd = ok(sys!(SYS_open, t.path(""), O_RDONLY));
        ok(sys!(SYS_fcntl, fd, F_SETSIG, RT));
        ok(notify(fd, DN_CREATE | MULTI));
        std::fs::create_dir(at(&t, "1")).unwrap();
        std::fs::create_dir(at(&t, "2")).unwrap();
        let got = taken();
        eq(got.len(), 2);
        // si_band and si_fd.
        // SAFETY: siginfo is longer, and any bytes are numbers.
        let words: [i64; 4] = unsafe { std::mem::transmute_copy(&got[0]) };
        eq((got[0].si_signo, got[0].si_code, words[2], words[3] as i32), (RT, 3, 0x441, fd as i32));
    });
}

fn errors() {
    in_child(|| {
        let t = Tmp::new();
        std::fs::write(at(&t, "a"), "").unwrap();
        let file = ok(sys!(SYS_open, t.path("a"), O_RDONLY));
        err(notify(file, ALL), ENOTDIR);
        ok(notify(file, 0));
        ok(notify(file, MULTI));
        let dir = ok(sys!(SYS_open, t.path(""), O_RDONLY));
        // Bits that nobody knows.
        ok(notify(dir, 0x100));
        ok(notify(dir, 0));
        let path = ok(sys!(SYS_open, t.path(""), O_PATH));
        err(notify(path, DN_CREATE), EBADF);
        err(notify(99, DN_CREATE), EBADF);
        err(notify(pipe_pair()[0].into(), DN_CREATE), ENOTDIR);
    });
}

fn owner() {
    in_child(|| {
        blocked();
        let t = Tmp::new();
        let fd = ok(sys!(SYS_open, t.path(""), O_RDONLY));
        ok(notify(fd, DN_CREATE | MULTI));
        eq(sys!(SYS_fcntl, fd, F_GETOWN, 0), sys!(SYS_getpid));
        ok(sys!(SYS_fcntl, fd, F_SETOWN, 0));
        std::fs::create_dir(at(&t, "1")).unwrap();
        eq(taken().len(), 0);
        // Asking again makes the caller its owner again.
        ok(notify(fd, DN_CREATE | MULTI));
        std::fs::create_dir(at(&t, "2")).unwrap();
        eq(taken().len(), 1);
    });
}
