//! pread(2) of files that are read often, again and again: by descriptors that change their meaning, with what is wrong, while others close
//! them, and signals come. The files are the program itself and the C library, which no test writes.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

cases![
    same_bytes, descriptor_means_another, closed, wrong_arguments, faulty_buffers, threads_each, closed_by_another_thread, signals_come,
    children_and_programs, watched, other_forms, filtered, flags_change
];

const PAGE: usize = 4096;

/// The call by the C library: its call site, near enough to be rewritten, is the one that programs use.
fn pread(args: [usize; 4]) -> i64 {
    // SAFETY: the call writes where the test says.
    let got = unsafe { pread64(args[0] as i32, args[1] as *mut c_void, args[2], args[3] as i64) };
    call::libc_ret(got as i64)
}

macro_rules! pread {
    ($($arg:expr),*) => { pread([$(Arg::arg($arg)),*]) };
}

fn own() -> i32 {
    ok(sys!(SYS_open, cstr("/proc/self/exe"), O_RDONLY)) as i32
}

fn other() -> i32 {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let libc = maps.lines().find_map(|line| line.split_once('/').filter(|(_, path)| path.contains("libc.so")));
    let (_, path) = libc.unwrap_or_else(|| skip("no C library"));
    ok(sys!(SYS_open, cstr(format!("/{path}")), O_RDONLY)) as i32
}

/// The first bytes, read another way.
fn start_of(fd: i32, len: usize) -> Vec<u8> {
    let mut all = vec![0u8; len];
    let mut done = 0;
    ok(sys!(SYS_lseek, fd, 0, SEEK_SET));
    while done < len {
        let got = ok(sys!(SYS_read, fd, all[done..].as_mut_ptr(), (len - done).min(100_000))) as usize;
        check(got > 0, "long enough");
        done += got;
    }
    all
}

/// Reads so often that whatever is done for those who do is done.
fn warm(fd: i32) {
    let mut b = [0u8; 64];
    for at in 0..400 {
        eq(pread!(fd, &mut b, 64, at), 64);
    }
}

/// Some bytes, the last of which is not 0 in either file: only such are read without being asked for.
fn first(fd: i32) -> Vec<u8> {
    static LEN: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let len = *LEN.get_or_init(|| {
        let files = [own(), other()];
        let [a, b] = files.map(|fd| start_of(fd, PAGE + 4000));
        shut(files);
        let both = (200..4000).find(|len| a[PAGE + len - 1] != 0 && b[PAGE + len - 1] != 0);
        both.unwrap_or_else(|| skip("files of zeroes"))
    });
    // Behind the header, which all programs share.
    let mut b = vec![0u8; len];
    eq(pread!(fd, b.as_mut_ptr(), len, PAGE), len as i64);
    b
}

fn same_bytes() {
    let fd = own();
    const LEN: usize = 1 << 20;
    let all = start_of(fd, LEN);
    let mut b = vec![0u8; 70_000];
    let mut x = 1u64;
    for n in 0..6000 {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let len = [1, 7, 64, 255, 256, 4096, 5000, 65_536][n % 8];
        let at = (x >> 33) as usize % (LEN - len);
        b[..len + 1].fill(0xa5);
        eq(pread!(fd, b.as_mut_ptr(), len, at), len as i64);
        check(b[..len] == all[at..at + len], "bytes");
        eq(b[len], 0xa5);
    }
    shut([fd]);
}

fn descriptor_means_another() {
    let (a, b) = (own(), other());
    let (of_a, of_b) = (first(a), first(b));
    check(of_a != of_b, "two files");
    let fd = ok(sys!(SYS_dup, a)) as i32;
    for _ in 0..20 {
        warm(fd);
        check(first(fd) == of_a, "its bytes");
        ok(sys!(SYS_dup2, b, fd));
        check(first(fd) == of_b, "its bytes");
        warm(fd);
        check(first(fd) == of_b, "its bytes");
        ok(sys!(SYS_dup3, a, fd, O_CLOEXEC));
        check(first(fd) == of_a, "its bytes");
    }
    shut([a, b, fd]);
}

fn closed() {
    let mut b = [0u8; 16];
    for n in 0..20 {
        let fd = own();
        warm(fd);
        if n % 2 == 0 {
            shut([fd]);
        } else {
            ok(sys!(SYS_close_range, fd, fd, 0));
        }
        err(pread!(fd, &mut b, 16, 0), EBADF);
        let again = other();
        eq(again, fd);
        warm(fd);
        check(first(fd) != first(own_once()), "the other file");
        shut([fd]);
    }
}

/// A descriptor that stays.
fn own_once() -> i32 {
    static KEPT: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
    *KEPT.get_or_init(own)
}

fn wrong_arguments() {
    let fd = own();
    let size = stat_fd(fd).st_size;
    let mut b = [0u8; 300];
    warm(fd);
    err(pread!(fd, &mut b, 16, -1), EINVAL);
    err(pread!(fd, &mut b, 16, i64::MIN), EINVAL);
    err(pread!(-1, &mut b, 16, 0), EBADF);
    eq(pread!(fd, &mut b, 0, 0), 0);
    eq(pread!(fd, &mut b, 300, size), 0);
    eq(pread!(fd, &mut b, 300, size - 100), 100);
    eq(pread!(fd, &mut b, 300, i64::MAX - 300), 0);
    // The upper half of a descriptor's register does not count.
    eq(sys!(SYS_pread64, 7i64 << 32 | i64::from(fd), &mut b, 100, 0), 100);
    shut([fd]);
}

fn faulty_buffers() {
    let fd = own();
    let all = start_of(fd, 3 * PAGE);
    warm(fd);
    err(pread!(fd, mem::bad(), 16, 0), EFAULT);
    err(pread!(fd, 0usize, 16, 0), EFAULT);
    err(pread!(fd, usize::MAX - 8, 16, 0), EFAULT);
    // All that fits before the end of what can be written, and no more.
    let edge = mem::Guarded::new();
    let to = edge.tail(100);
    let got = pread!(fd, to, 200, 64);
    eq(got, 100);
    // SAFETY: a hundred bytes that belong to the page.
    check(unsafe { std::slice::from_raw_parts(to, 100) } == &all[64..164], "what fits");
    // SAFETY: fresh memory, read-only.
    let fixed = unsafe { mmap(std::ptr::null_mut(), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
    err(pread!(fd, fixed, 16, 64), EFAULT);
    let some = first(fd);
    check(some[..] == all[PAGE..PAGE + some.len()], "bytes");
    shut([fd]);
}

fn threads_each() {
    let fd = own();
    let all = start_of(fd, 1 << 16);
    std::thread::scope(|scope| {
        for n in 0..6 {
            let all = &all;
            scope.spawn(move || {
                let mut b = [0u8; 333];
                for i in 0..3000usize {
                    let at = (i * 37 + n * 1000) % 60_000;
                    eq(pread!(fd, &mut b, 333, at), 333);
                    check(b[..] == all[at..at + 333], "bytes");
                }
            });
        }
    });
    shut([fd]);
}

/// Whoever reads gets all of one file or of the other.
fn closed_by_another_thread() {
    let (a, b) = (own(), other());
    let (of_a, of_b) = (first(a), first(b));
    let fd = ok(sys!(SYS_dup, a)) as i32;
    let stop = AtomicBool::new(false);
    let mut seen = [0u32; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..300 {
                ok(sys!(SYS_dup2, if n % 2 == 0 { b } else { a }, fd));
                sleep_ms(1);
            }
            stop.store(true, SeqCst);
        });
        while !stop.load(SeqCst) {
            let got = first(fd);
            check(got == of_a || got == of_b, "one of them");
            seen[usize::from(got == of_b)] += 1;
        }
    });
    check(seen.iter().all(|n| *n > 0), "both");
    // After the change nothing of the former is read.
    for _ in 0..200 {
        ok(sys!(SYS_dup2, b, fd));
        check(first(fd) == of_b, "its bytes");
        ok(sys!(SYS_dup2, a, fd));
        check(first(fd) == of_a, "its bytes");
    }
    shut([a, b, fd]);
}

static CAUGHT: AtomicU64 = AtomicU64::new(0);

extern "C" fn caught(_: i32) {
    let mut b = [0u8; 64];
    pread!(own_once(), &mut b, 64, 0);
    check(b[..4] == *b"\x7fELF", "in the handler");
    CAUGHT.fetch_add(1, SeqCst);
}

fn signals_come() {
    let fd = own_once();
    let all = start_of(fd, 1 << 17);
    let _on = sig::with(SIGALRM, caught as *const () as usize, SA_RESTART);
    let every = itimerval { it_interval: timeval { tv_sec: 0, tv_usec: 300 }, it_value: timeval { tv_sec: 0, tv_usec: 300 } };
    ok(sys!(SYS_setitimer, ITIMER_REAL, &every, 0));
    let mut b = vec![0u8; 16_384];
    let end = now_ms() + 1500;
    let mut n = 0usize;
    while now_ms() < end {
        n += 1;
        let at = n * 4099 % 100_000;
        eq(pread!(fd, b.as_mut_ptr(), 16_384, at), 16_384);
        check(b[..] == all[at..at + 16_384], "bytes");
    }
    let never = itimerval { it_interval: timeval { tv_sec: 0, tv_usec: 0 }, it_value: timeval { tv_sec: 0, tv_usec: 0 } };
    ok(sys!(SYS_setitimer, ITIMER_REAL, &never, 0));
    check(CAUGHT.load(SeqCst) > 100, "signals");
}

fn children_and_programs() {
    let fd = own();
    let wanted = first(fd);
    warm(fd);
    for _ in 0..5 {
        let pid = child(|| {
            let b = other();
            warm(fd);
            let same = first(fd) == wanted;
            warm(b);
            let differs = first(b) != wanted;
            i32::from(!(same && differs && first(fd) == wanted))
        });
        exits(pid, 0);
        check(first(fd) == wanted, "its bytes");
    }
    // Another program by the same number has another file.
    let out = std::process::Command::new("/bin/sh")
        .args(["-c", "exec 9</etc/passwd; head -c 20 <&9"])
        .output()
        .expect("sh");
    eq(&out.stdout[..], &std::fs::read("/etc/passwd").expect("passwd")[..20]);
    check(first(fd) == wanted, "its bytes");
    shut([fd]);
}

fn watched() {
    let fd = own();
    warm(fd);
    let watch = ok(sys!(SYS_inotify_init1, IN_NONBLOCK)) as i32;
    if sys!(SYS_inotify_add_watch, watch, cstr("/proc/self/exe"), IN_ACCESS) < 0 {
        skip("it may not be watched");
    }
    first(fd);
    let mut b = [0u8; 256];
    let got = sys!(SYS_read, watch, &mut b, 256);
    check(got >= 16, "told of the read");
    eq(u32::from_ne_bytes([b[4], b[5], b[6], b[7]]) & IN_ACCESS, IN_ACCESS);
    shut([fd, watch]);
}

/// Reading at the position is not confused.
fn other_forms() {
    let fd = own();
    let all = start_of(fd, 4096);
    warm(fd);
    ok(sys!(SYS_lseek, fd, 10, SEEK_SET));
    let mut b = [0u8; 50];
    eq(pread!(fd, &mut b, 50, 100), 50);
    check(b[..] == all[100..150], "bytes");
    eq(sys!(SYS_read, fd, &mut b, 50), 50);
    check(b[..] == all[10..60], "bytes");
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 60);
    let write_only = Tmp::new();
    let w = write_only.open("f", O_WRONLY | O_CREAT) as i32;
    for _ in 0..100 {
        err(pread!(w, &mut b, 50, 0), EBADF);
    }
    let p = pipe_pair();
    for _ in 0..100 {
        err(pread!(p[0], &mut b, 50, 0), ESPIPE);
    }
    shut([fd, w, p[0], p[1]]);
}

/// A filter judges each call.
fn filtered() {
    in_child(|| {
        let fd = own();
        warm(fd);
        filter::no_new_privs();
        filter::add(&filter::on(SYS_pread64, SECCOMP_RET_ERRNO | EXDEV as u32));
        let mut b = [0u8; 16];
        for _ in 0..100 {
            err(pread!(fd, &mut b, 16, 0), EXDEV);
        }
    });
}

fn flags_change() {
    let fd = own();
    warm(fd);
    let flags = ok(sys!(SYS_fcntl, fd, F_GETFL)) as i32;
    if sys!(SYS_fcntl, fd, F_SETFL, flags | O_DIRECT) < 0 {
        skip("no O_DIRECT here");
    }
    // Natively some file systems want aligned memory; what is aligned can be read in any case.
    let at = map_page();
    let len = PAGE;
    eq(pread!(fd, at, len, 0), len as i64);
    ok(sys!(SYS_fcntl, fd, F_SETFL, flags));
    eq(first(fd), first(own_once()));
    shut([fd]);
}

fn map_page() -> usize {
    // SAFETY: fresh memory.
    let at = unsafe { mmap(std::ptr::null_mut(), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
    at as usize
}

/// Preads from a file as its standard input says, a line at a time, so often that whatever can be done for those who do is done:
/// an offset and a length; says how much came, and its first and last byte.
pub fn reads(args: &[String]) -> i32 {
    let fd = ok(sys!(SYS_open, cstr(args[0].clone()), O_RDONLY)) as i32;
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let numbers: Vec<usize> = line.split(' ').filter_map(|n| n.parse().ok()).collect();
        let [at, len] = numbers[..] else { return 1 };
        let mut b = vec![0u8; len];
        let mut got = 0;
        for _ in 0..100 {
            b.fill(b'-');
            got = pread!(fd, b.as_mut_ptr(), len, at);
        }
        let last = usize::try_from(got).unwrap_or(0).saturating_sub(1);
        println!("{got} {} {}", b[0], b[last]);
    }
    0
}
