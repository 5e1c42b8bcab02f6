//! What calls read and write by their pointers, often and from call sites of both sorts: a library's, which a kernel may
//! make faster, and one of the program's own.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

cases![
    results_land, results_refused, results_at_an_end, read_in_part, pipe_keeps_what_cannot_be_read, strings, strings_at_an_end, long_strings, bytes_written,
    bytes_at_an_end, structs_at_an_end, several_results, string_changes, buffer_changes, contents_while_signals_come, results_before_a_handler
];

/// More than a kernel waits before it takes a site for a hot one.
const OFTEN: usize = 120;

type Caller = fn(i64, [u64; 6]) -> i64;

fn own(nr: i64, a: [u64; 6]) -> i64 {
    sys!(nr, a[0], a[1], a[2], a[3], a[4], a[5])
}

fn library(nr: i64, a: [u64; 6]) -> i64 {
    // SAFETY: a call of libc with live arguments.
    match unsafe { syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]) } {
        -1 => -i64::from(unsafe { *__errno_location() }),
        value => value,
    }
}

const CALLERS: [Caller; 2] = [own, library];

fn at<T: ?Sized>(value: &T) -> u64 {
    std::ptr::from_ref(value).cast::<u8>() as u64
}

/// A call that writes `len` bytes to where argument `arg` points.
struct Result {
    name: &'static str,
    nr: i64,
    args: [u64; 6],
    arg: usize,
    len: usize,
}

impl Result {
    fn call(&self, caller: Caller, to: u64) -> i64 {
        let mut args = self.args;
        args[self.arg] = to;
        caller(self.nr, args)
    }

    /// What it gives, and what it leaves in memory.
    fn told(&self) -> (i64, Vec<u8>) {
        let mut bytes = vec![0x5a; self.len];
        let got = self.call(own, bytes.as_mut_ptr() as u64);
        check(got >= 0, self.name);
        (got, bytes)
    }
}

/// Runs `f` with calls whose results stay the same.
fn with_results(f: impl Fn(&Result)) {
    let t = Tmp::new();
    let fd = t.file("f", &(0..=255).cycle().take(8192).collect::<Vec<u8>>()) as u64;
    let path = t.path("f");
    ok(sys!(SYS_symlink, c"where it leads to", t.path("l")));
    let link = t.path("l");
    let (here, empty) = (AT_FDCWD as u64, at(c""));
    let result = |name, nr, args: [u64; 6], arg, len| f(&Result { name, nr, args, arg, len });
    let (file, link) = (path.as_ptr() as u64, link.as_ptr() as u64);
    result("stat", SYS_stat, [file, 0, 0, 0, 0, 0], 1, 144);
    result("lstat", SYS_lstat, [link, 0, 0, 0, 0, 0], 1, 144);
    result("fstat", SYS_fstat, [fd, 0, 0, 0, 0, 0], 1, 144);
    result("newfstatat", SYS_newfstatat, [here, file, 0, 0, 0, 0], 2, 144);
    result("newfstatat of a descriptor", SYS_newfstatat, [fd, empty, 0, AT_EMPTY_PATH as u64, 0, 0], 2, 144);
    result("statx", SYS_statx, [here, file, 0, STATX_BASIC_STATS.into(), 0, 0], 4, 256);
    result("readlink", SYS_readlink, [link, 0, 100, 0, 0, 0], 1, 17);
    result("uname", SYS_uname, [0; 6], 0, 390);
    result("getrlimit", SYS_getrlimit, [RLIMIT_NOFILE.into(), 0, 0, 0, 0, 0], 1, 16);
    result("prlimit64", SYS_prlimit64, [0, RLIMIT_STACK.into(), 0, 0, 0, 0], 3, 16);
    result("sigaltstack", SYS_sigaltstack, [0; 6], 1, 24);
    result("rt_sigaction", SYS_rt_sigaction, [SIGUSR2 as u64, 0, 0, 8, 0, 0], 2, 32);
    result("clock_getres", SYS_clock_getres, [CLOCK_REALTIME as u64, 0, 0, 0, 0, 0], 1, 16);
    for len in [1usize, 7, 8, 9, 64, 300, 1000, 4096] {
        result("pread64", SYS_pread64, [fd, 0, len as u64, 13, 0, 0], 1, len);
    }
    let mut pair = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut pair));
    let length = 2u32;
    result("getsockname", SYS_getsockname, [pair[0] as u64, 0, at(&length), 0, 0, 0], 1, 2);
    shut(pair);
    shut([fd as i32]);
}

fn results_land() {
    with_results(|it| {
        let (value, bytes) = it.told();
        let mut room = vec![0u8; 4096 + 64];
        for caller in CALLERS {
            for i in 0..OFTEN {
                let from = i % 19;
                room.fill(0xa5);
                eq(it.call(caller, at(&room[from..])), value);
                check(room[from..from + it.len] == bytes, it.name);
                check(room[..from].iter().chain(&room[from + it.len..]).all(|b| *b == 0xa5), it.name);
            }
        }
    });
}

fn results_refused() {
    let page = sys!(SYS_mmap, 0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as u64;
    let gone = sys!(SYS_mmap, 0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as u64;
    ok(sys!(SYS_munmap, gone, 8192));
    with_results(|it| {
        for caller in CALLERS {
            for _ in 0..OFTEN {
                for to in [page, gone, 1, bad() as u64, 1 << 63, u64::MAX - 100] {
                    eq((it.name, it.call(caller, to)), (it.name, -i64::from(EFAULT)));
                }
            }
        }
    });
    // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
    eq(unsafe { std::slice::from_raw_parts(page as *const u8, 4096) }, &[0; 4096][..]);
    ok(sys!(SYS_munmap, page, 8192));
}

fn results_at_an_end() {
    with_results(|it| {
        let (value, bytes) = it.told();
        let g = Guarded::new();
        for caller in CALLERS {
            for _ in 0..OFTEN {
                let to = g.tail(it.len);
                eq(it.call(caller, to as u64), value);
                // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
                check(unsafe { std::slice::from_raw_parts(to, it.len) } == &bytes[..], it.name);
                // Reads of files give what fits.
                if it.nr != SYS_pread64 {
                    eq((it.name, it.call(caller, g.tail(it.len - 1) as u64)), (it.name, -i64::from(EFAULT)));
                }
            }
        }
    });
}

fn read_in_part() {
    let t = Tmp::new();
    let fd = t.file("f", &[7; 4096]) as u64;
    let g = Guarded::new();
    for caller in CALLERS {
        for i in 1..OFTEN {
            eq(caller(SYS_pread64, [fd, g.tail(i) as u64, 600, 0, 0, 0]), i as i64);
            // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
            eq(unsafe { *g.tail(1) }, 7);
            unsafe { *g.tail(1) = 0 };
        }
    }
    shut([fd as i32]);
}

fn pipe_keeps_what_cannot_be_read() {
    let p = pipe_pair();
    let page = sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as u64;
    let (fd, g) = (p[0] as u64, Guarded::new());
    for caller in CALLERS {
        for i in 0..OFTEN {
            let data = [i as u8; 5];
            eq(sys!(SYS_write, p[1], &data, 5), 5);
            eq(caller(SYS_read, [fd, page, 5, 0, 0, 0]), -i64::from(EFAULT));
            eq(caller(SYS_read, [fd, bad() as u64, 5, 0, 0, 0]), -i64::from(EFAULT));
            eq(caller(SYS_read, [fd, g.tail(3) as u64, 5, 0, 0, 0]), -i64::from(EFAULT));
            let mut got = [0u8; 8];
            eq(caller(SYS_read, [fd, got.as_mut_ptr() as u64, 8, 0, 0, 0]), 5);
            eq(&got[..5], &data[..]);
        }
    }
    shut(p);
}

fn access(caller: Caller, path: *const u8) -> i64 {
    caller(SYS_access, [path as u64, F_OK as u64, 0, 0, 0, 0])
}

/// A string of that many bytes without its end, which names something that exists.
fn there(len: usize) -> Vec<u8> {
    let mut path = vec![b'/'; len];
    path.truncate(len);
    path
}

fn strings() {
    let mut room = vec![b'x'; 8192];
    for caller in CALLERS {
        for i in 0..OFTEN * 8 {
            let (from, len) = (i % 23, 1 + i * 5 % 290);
            room[from..from + len].copy_from_slice(&there(len));
            room[from + len] = 0;
            eq(access(caller, &room[from]), 0);
            room[from + len - 1] = b'?';
            eq(access(caller, &room[from]), -i64::from(ENOENT));
            room[from + len] = b'x';
            room[from] = 0;
            eq(access(caller, &room[from]), -i64::from(ENOENT));
            eq(access(caller, std::ptr::null()), -i64::from(EFAULT));
            eq(access(caller, bad()), -i64::from(EFAULT));
        }
    }
}

/// Over the end of a page, and up to it.
fn strings_at_an_end() {
    let g = Guarded::new();
    let pages = sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as u64;
    for caller in CALLERS {
        for len in 1..OFTEN * 3 {
            // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
            let put = |to: *mut u8, bytes: &[u8]| unsafe { to.copy_from(bytes.as_ptr(), bytes.len()) };
            let mut path = there(len);
            path.push(0);
            put(g.tail(len + 1), &path);
            eq(access(caller, g.tail(len + 1)), 0);
            put(g.tail(len), &there(len));
            eq(access(caller, g.tail(len)), -i64::from(EFAULT));
            let over = (pages + 4096 - len as u64 / 2) as *mut u8;
            put(over, &path);
            eq(access(caller, over), 0);
        }
    }
    ok(sys!(SYS_munmap, pages, 8192));
}

fn long_strings() {
    for caller in CALLERS {
        for _ in 0..OFTEN {
            for (len, result) in [(4095, 0), (4096, -i64::from(ENAMETOOLONG)), (9000, -i64::from(ENAMETOOLONG))] {
                let mut path = there(len);
                path.push(0);
                eq(access(caller, path.as_ptr()), result);
            }
        }
    }
}

fn bytes_written() {
    let p = pipe_pair();
    let data: Vec<u8> = (0..=250).cycle().take(4096).collect();
    for caller in CALLERS {
        for i in 0..OFTEN * 8 {
            let (from, len) = (i % 17, if i % 50 == 0 { 3000 } else { 1 + i * 7 % 1200 });
            eq(caller(SYS_write, [p[1] as u64, at(&data[from..]), len as u64, 0, 0, 0]), len as i64);
            let mut got = vec![0u8; 4096];
            eq(sys!(SYS_read, p[0], &mut got[..], 4096), len as i64);
            check(got[..len] == data[from..from + len], "what was written");
        }
    }
    shut(p);
}

fn bytes_at_an_end() {
    let mut pair = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_DGRAM, 0, &mut pair));
    let g = Guarded::new();
    for caller in CALLERS {
        for len in 1..OFTEN * 10 {
            let from = g.tail(len);
            // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
            unsafe { from.write_bytes(len as u8, len) };
            eq(caller(SYS_sendto, [pair[0] as u64, from as u64, len as u64, 0, 0, 0]), len as i64);
            let mut got = vec![0u8; 2000];
            eq(sys!(SYS_recvfrom, pair[1], &mut got[..], 2000, 0, 0, 0), len as i64);
            check(got[..len].iter().all(|b| *b == len as u8), "what was sent");
            let more = caller(SYS_sendto, [pair[0] as u64, from as u64, len as u64 + 1, MSG_DONTWAIT as u64, 0, 0]);
            eq(more, -i64::from(EFAULT));
        }
    }
    shut(pair);
}

fn structs_at_an_end() {
    let (g, t) = (Guarded::new(), Tmp::new());
    let fd = ok(sys!(SYS_timerfd_create, CLOCK_MONOTONIC, 0)) as u64;
    let e = ok(sys!(SYS_epoll_create1, 0)) as u64;
    let p = pipe_pair();
    t.file("f", b"");
    let path = t.path("f");
    let file = path.as_ptr() as u64;
    let tail = |words: &[u64]| {
        let to = g.tail(words.len() * 8).cast::<u64>();
        for (i, word) in words.iter().enumerate() {
            // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
            unsafe { to.add(i).write_unaligned(*word) };
        }
        to as u64
    };
    let fault = -i64::from(EFAULT);
    for caller in CALLERS {
        for i in 0..OFTEN as u64 {
            eq(caller(SYS_nanosleep, [tail(&[0, 1]), 0, 0, 0, 0, 0]), 0);
            eq(caller(SYS_nanosleep, [tail(&[0, 1]) + 1, 0, 0, 0, 0, 0]), fault);
            eq(caller(SYS_nanosleep, [tail(&[0, 1_000_000_000]), 0, 0, 0, 0, 0]), -i64::from(EINVAL));
            eq(caller(SYS_timerfd_settime, [fd, 0, tail(&[i, 7, 1000, 0]), 0, 0, 0]), 0);
            let mut now = [0u64; 4];
            eq(caller(SYS_timerfd_gettime, [fd, now.as_mut_ptr() as u64, 0, 0, 0, 0]), 0);
            eq(&now[..2], &[i, 7][..]);
            eq(caller(SYS_timerfd_settime, [fd, 0, tail(&[i, 7, 1000, 0]) + 8, 0, 0, 0]), fault);
            eq(caller(SYS_utimensat, [AT_FDCWD as u64, file, tail(&[i, 5, i + 1, 6]), 0, 0, 0]), 0);
            let mut st = [0u64; 18];
            eq(caller(SYS_stat, [file, st.as_mut_ptr() as u64, 0, 0, 0, 0]), 0);
            eq(&st[9..13], &[i, 5, i + 1, 6][..]);
            eq(caller(SYS_utimensat, [AT_FDCWD as u64, file, tail(&[i, 5, i + 1, 6]) + 8, 0, 0, 0]), fault);
            // Three words and a half.
            let event = g.tail(12);
            // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
            unsafe { event.cast::<u32>().write_unaligned(EPOLLIN as u32) };
            unsafe { event.add(4).cast::<u64>().write_unaligned(i) };
            eq(caller(SYS_epoll_ctl, [e, EPOLL_CTL_ADD as u64, p[0] as u64, event as u64, 0, 0]), 0);
            eq(caller(SYS_epoll_ctl, [e, EPOLL_CTL_MOD as u64, p[0] as u64, event as u64 + 1, 0, 0]), fault);
            ok(sys!(SYS_write, p[1], b"x", 1));
            let mut events = [0u8; 24];
            eq(caller(SYS_epoll_wait, [e, events.as_mut_ptr() as u64, 2, 0, 0, 0]), 1);
            eq(&events[4..12], &i.to_ne_bytes()[..]);
            eq(caller(SYS_epoll_ctl, [e, EPOLL_CTL_DEL as u64, p[0] as u64, 0, 0, 0]), 0);
            let poll = tail(&[p[0] as u64 | (POLLIN as u64) << 32]);
            eq(caller(SYS_poll, [poll, 1, 0, 0, 0, 0]), 1);
            // SAFETY: mapped for this test, and large enough; where it faults, that is what is tested.
            eq(unsafe { (poll as *const u64).read_unaligned() } >> 48, POLLIN as u64);
            eq(caller(SYS_poll, [poll + 1, 1, 0, 0, 0, 0]), fault);
            ok(sys!(SYS_read, p[0], &mut [0u8; 1], 1));
            let word = 5u32;
            eq(caller(SYS_futex, [at(&word), FUTEX_WAIT as u64, 5, tail(&[0, 1]), 0, 0]), -i64::from(ETIMEDOUT));
            eq(caller(SYS_futex, [at(&word), FUTEX_WAIT as u64, 5, tail(&[0, 1]) + 1, 0, 0]), fault);
        }
    }
    shut(p);
    shut([fd as i32, e as i32]);
}

/// More than one argument is written to.
fn several_results() {
    let mut pair = [0i32; 2];
    for caller in CALLERS {
        for i in 0..OFTEN as u64 {
            let mut ids = [u32::MAX; 3];
            let base = ids.as_mut_ptr() as u64;
            let to = |i: u64| base + 4 * i;
            eq(caller(SYS_getresuid, [to(0), to(1), to(2), 0, 0, 0]), 0);
            eq(i64::from(ids[0]), sys!(SYS_getuid));
            check(ids[2] != u32::MAX, "the third one");
            eq(caller(SYS_getresuid, [to(0), to(1), 1, 0, 0, 0]), -i64::from(EFAULT));
            eq(caller(SYS_socketpair, [AF_UNIX as u64, SOCK_DGRAM as u64, 0, pair.as_mut_ptr() as u64, 0, 0]), 0);
            eq(sys!(SYS_sendto, pair[0], &i, 8, 0, 0, 0), 8);
            let (mut data, mut name, mut len) = (0u64, [0x7fu8; 110], 110u32);
            let args = [pair[1] as u64, &raw mut data as u64, 8, 0, name.as_mut_ptr() as u64, &raw mut len as u64];
            eq(caller(SYS_recvfrom, args), 8);
            eq((data, len, name[0]), (i, 0, 0x7f));
            let (mut kind, mut size) = (0i32, 4u32);
            let args = [pair[0] as u64, SOL_SOCKET as u64, SO_TYPE as u64, &raw mut kind as u64, &raw mut size as u64, 0];
            eq(caller(SYS_getsockopt, args), 0);
            eq((kind, size), (SOCK_DGRAM, 4));
            eq(caller(SYS_getsockopt, [args[0], args[1], args[2], 1, args[4], 0]), -i64::from(EFAULT));
            shut(pair);
        }
    }
}

/// Another thread changes the name all the time: one of the two is looked for.
fn string_changes() {
    let done = AtomicBool::new(false);
    let name = AtomicU64::new(u64::from_le_bytes(*b"/dev//\0\0"));
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(SeqCst) {
                name.store(u64::from_le_bytes(*b"/nil//\0\0"), SeqCst);
                name.store(u64::from_le_bytes(*b"/dev//\0\0"), SeqCst);
            }
        });
        for caller in CALLERS {
            for _ in 0..OFTEN * 10 {
                let got = access(caller, name.as_ptr().cast());
                check(got == 0 || got == -i64::from(ENOENT), "one of both");
            }
        }
        done.store(true, SeqCst);
    });
}

/// Another thread takes the buffer away all the time.
fn buffer_changes() {
    let t = Tmp::new();
    let fd = t.file("f", &[7; 4096]) as u64;
    let done = AtomicBool::new(false);
    let page = ok(sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) as u64;
    std::thread::scope(|s| {
        s.spawn(|| {
            let fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
            while !done.load(SeqCst) {
                sys!(SYS_mprotect, page, 4096, PROT_NONE);
                sys!(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE);
                sys!(SYS_mmap, page, 4096, PROT_READ, fixed, -1, 0);
                sys!(SYS_mmap, page, 4096, PROT_READ | PROT_WRITE, fixed, -1, 0);
            }
        });
        let fault = -i64::from(EFAULT);
        let began = std::time::Instant::now();
        for caller in CALLERS {
            for _ in (0..OFTEN * 20).take_while(|_| began.elapsed().as_secs() < 4) {
                let got = caller(SYS_fstat, [fd, page + 8, 0, 0, 0, 0]);
                check(got == 0 || got == fault, "fstat");
                let got = caller(SYS_pread64, [fd, page, 100, 0, 0, 0]);
                check(got == 100 || got == fault, "pread64");
                let got = caller(SYS_access, [page, 0, 0, 0, 0, 0]);
                check(got == fault || got <= 0, "access");
            }
        }
        done.store(true, SeqCst);
    });
    ok(sys!(SYS_munmap, page, 4096));
    shut([fd as i32]);
}

extern "C" fn nothing(_: i32) {}

/// Signals from another thread find calls in all their states: what they were given and what they gave is whole.
fn contents_while_signals_come() {
    let _on = sig::with(SIGUSR1, nothing as *const () as usize, SA_RESTART);
    let t = Tmp::new();
    let data: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let fd = t.file("f", &data) as u64;
    let (there, nowhere) = (t.path("f"), t.path("nowhere, with a long name to copy, and more of it").to_owned());
    let p = pipe_pair();
    let done = AtomicBool::new(false);
    let (me, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    std::thread::scope(|s| {
        s.spawn(|| {
            let mut step = 1u64;
            while !done.load(SeqCst) {
                sys!(SYS_tgkill, me, tid, SIGUSR1);
                step = step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                for _ in 0..step >> 52 {
                    std::hint::spin_loop();
                }
            }
        });
        for caller in CALLERS {
            let began = std::time::Instant::now();
            for i in (0..20_000usize).take_while(|_| began.elapsed().as_millis() < 1500) {
                let (from, len) = (i % 256, 1 + i * 3 % 500);
                let mut got = [0x5au8; 512];
                eq(caller(SYS_pread64, [fd, got.as_mut_ptr() as u64, len as u64, from as u64, 0, 0]), len as i64);
                check(got[..len] == data[from..from + len] && got[len..].iter().all(|b| *b == 0x5a), "what is read");
                eq(access(caller, there.as_ptr().cast()), 0);
                eq(access(caller, nowhere.as_ptr().cast()), -i64::from(ENOENT));
                eq(caller(SYS_write, [p[1] as u64, at(&data[from..]), len as u64, 0, 0, 0]), len as i64);
                eq(caller(SYS_read, [p[0] as u64, got.as_mut_ptr() as u64, 512, 0, 0, 0]), len as i64);
                check(got[..len] == data[from..from + len], "what went through a pipe");
            }
        }
        done.store(true, SeqCst);
    });
    shut(p);
    shut([fd as i32]);
}

static BUFFER: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

extern "C" fn look(_: i32) {
    SEEN.store(BUFFER.load(SeqCst), SeqCst);
}

/// A signal that is pending when a call ends: its handler sees what the call has written.
fn results_before_a_handler() {
    let _on = sig::with(SIGUSR1, look as *const () as usize, SA_RESTART);
    let (usr1, open) = (sig::set(&[SIGUSR1]), 0u64);
    for caller in CALLERS {
        for i in 1..OFTEN {
            BUFFER.store(0, SeqCst);
            SEEN.store(0, SeqCst);
            eq(sys!(SYS_rt_sigprocmask, SIG_SETMASK, &usr1, 0, 8), 0);
            eq(sys!(SYS_tgkill, sys!(SYS_getpid), sys!(SYS_gettid), SIGUSR1), 0);
            // The call that lets it in writes as well.
            eq(caller(SYS_rt_sigprocmask, [SIG_SETMASK as u64, at(&open), BUFFER.as_ptr() as u64, 8, 0, 0]), 0);
            eq((i, SEEN.load(SeqCst)), (i, usr1));
            let mut mask = 0u64;
            BUFFER.store(0, SeqCst);
            let args = [SIGUSR1 as u64, 0, BUFFER.as_ptr() as u64, 8, 0, 0];
            eq(caller(SYS_rt_sigaction, args), 0);
            eq(BUFFER.load(SeqCst), look as *const () as u64);
            eq(sys!(SYS_rt_sigprocmask, SIG_SETMASK, 0, &mut mask, 8), 0);
        }
    }
}
