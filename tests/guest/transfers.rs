//! Bytes of file calls of every size, called often enough that whatever makes frequent calls fast is at work.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

cases![sizes, missing_pages, direction_flag, under_signals, shared_and_private, locks];

const OFTEN: usize = 60;
/// Around the limits of what travels in one way or another.
const SIZES: [usize; 21] = [
    1, 7, 8, 9, 63, 64, 255, 256, 257, 1024, 1025, 4095, 4096, 4097, 10_239, 10_240, 10_241, 16_384, 16_385, 65_536,
    131_073,
];

fn pattern(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed) * 7 + (i >> 8)) as u8).collect()
}

fn sizes() {
    let t = Tmp::new();
    let fd = t.file("f", b"");
    for (round, size) in (0..OFTEN).flat_map(|round| SIZES.map(|size| (round, size))) {
        let data = pattern(size + 3, round);
        // From an address that is not aligned.
        eq(sys!(SYS_pwrite64, fd, &data[3..], size, round), size as i64);
        let mut back = vec![0xa5u8; size + 16];
        eq(sys!(SYS_pread64, fd, &mut back[5..], size, round), size as i64);
        check(back[5..5 + size] == data[3..], "what was written is read");
        check(back[..5].iter().chain(&back[5 + size..]).all(|b| *b == 0xa5), "nothing beside it");
    }
    eq(sys!(SYS_ftruncate, fd, 5000), 0);
    for size in SIZES {
        let mut back = vec![0u8; size];
        let there = size.min(5000 - 100);
        eq(sys!(SYS_pread64, fd, &mut back[..], size, 100), there as i64);
        eq(sys!(SYS_pread64, fd, &mut back[..], size, 5000), 0);
    }
    shut([fd]);
}

/// The second of two pages cannot be accessed: what lies before it is moved, and nothing if nothing does.
fn missing_pages() {
    let t = Tmp::new();
    let data = pattern(8192, 1);
    let fd = t.file("f", &data);
    let at = sys!(SYS_mmap, 0, 12_288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as usize;
    eq(sys!(SYS_mprotect, at + 4096, 4096, PROT_NONE), 0);
    for before in [4096usize, 300, 100, 1] {
        let from = at + 4096 - before;
        for _ in 0..OFTEN {
            eq(sys!(SYS_pread64, fd, from, 4096 + before, 7), before as i64);
            // SAFETY: mapped above, and as long.
            let got = unsafe { std::slice::from_raw_parts(from as *const u8, before) };
            check(*got == data[7..7 + before], "the part before it");
            eq(sys!(SYS_pwrite64, fd, from, 4096 + before, 7), before as i64);
        }
    }
    for _ in 0..OFTEN {
        err(sys!(SYS_pread64, fd, at + 4096, 4096, 0), EFAULT);
        err(sys!(SYS_pwrite64, fd, at + 4096, 4096, 0), EFAULT);
        err(sys!(SYS_pread64, fd, 8, 4096, 0), EFAULT);
        err(sys!(SYS_pwrite64, fd, 8, 4096, 0), EFAULT);
    }
    // At the end of the file no memory is looked at.
    eq(sys!(SYS_pread64, fd, 8, 4096, 8192), 0);
    // Read-only memory is a source and no target.
    eq(sys!(SYS_mprotect, at + 4096, 4096, PROT_READ), 0);
    for _ in 0..OFTEN {
        err(sys!(SYS_pread64, fd, at + 4096, 4096, 0), EFAULT);
        eq(sys!(SYS_pwrite64, fd, at + 4096, 4096, 0), 4096);
    }
    eq(sys!(SYS_munmap, at, 12_288), 0);
    shut([fd]);
}

/// The direction flag is a program's own, and a kernel does not go by it.
fn direction_flag() {
    let t = Tmp::new();
    let fd = t.file("f", &[0; 8192]);
    for round in 0..OFTEN * 4 {
        let data = pattern(4096, round);
        let mut back = [0xa5u8; 4096 + 512];
        let (mut wrote, mut read): (i64, i64);
        let (wrote_flags, read_flags): (u64, u64);
        // SAFETY: the buffers are as long as the calls are told, and the flag is cleared before other code runs.
        unsafe {
            std::arch::asm!("std", "mov eax, 18", "syscall", "pushfq", "pop {flags}", "cld", flags = lateout(reg) wrote_flags,
                out("rax") wrote, in("rdi") fd, in("rsi") data.as_ptr(), in("rdx") 4096, in("r10") 64, out("rcx") _, out("r11") _);
            std::arch::asm!("std", "mov eax, 17", "syscall", "pushfq", "pop {flags}", "cld", flags = lateout(reg) read_flags,
                out("rax") read, in("rdi") fd, in("rsi") back.as_mut_ptr().add(256), in("rdx") 4096, in("r10") 64, out("rcx") _, out("r11") _);
        }
        eq((wrote, read), (4096, 4096));
        eq((wrote_flags & 0x400, read_flags & 0x400), (0x400, 0x400));
        check(back[256..256 + 4096] == data, "what was written is read");
        check(back[..256].iter().chain(&back[256 + 4096..]).all(|b| *b == 0xa5), "nothing beside it");
    }
    shut([fd]);
}

fn nothing(_: i32) {}

fn under_signals() {
    let _on = sig::with(SIGUSR1, nothing as *const () as usize, SA_RESTART);
    let (tgid, tid) = (sys!(SYS_getpid), sys!(SYS_gettid));
    let done = AtomicBool::new(false);
    let t = Tmp::new();
    let fd = t.file("f", &[0; 20_000]);
    std::thread::scope(|s| {
        s.spawn(|| {
            while !done.load(SeqCst) {
                sys!(SYS_tgkill, tgid, tid, SIGUSR1);
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        });
        let begin = std::time::Instant::now();
        let mut same = true;
        let mut round = 0;
        while same && begin.elapsed().as_millis() < 700 {
            for size in [200, 4096, 10_240] {
                round += 1;
                let data = pattern(size, round);
                let mut back = vec![0u8; size];
                same &= sys!(SYS_pwrite64, fd, &data[..], size, 9) == size as i64;
                same &= sys!(SYS_pread64, fd, &mut back[..], size, 9) == size as i64;
                same &= back == data;
            }
        }
        done.store(true, SeqCst);
        check(same, "every call moves all its bytes");
    });
    shut([fd]);
}

/// A buffer that is a file's memory itself, shared or copied when it is written.
fn shared_and_private() {
    let t = Tmp::new();
    let data = pattern(4096, 3);
    let fd = t.file("f", &data);
    let target = t.file("g", &[0; 4096]);
    for flags in [MAP_SHARED, MAP_PRIVATE] {
        let at = sys!(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, flags, target, 0) as usize;
        for _ in 0..OFTEN {
            eq(sys!(SYS_pread64, fd, at, 4096, 0), 4096);
            let mut seen = vec![0u8; 4096];
            eq(sys!(SYS_pread64, target, &mut seen[..], 4096, 0), 4096);
            check(seen == data, "in the file");
            eq(sys!(SYS_pwrite64, fd, at, 4096, 0), 4096);
        }
        eq(sys!(SYS_munmap, at, 4096), 0);
    }
    shut([fd, target]);
}

/// A struct flock is read for the commands that have one, and only for them.
fn locks() {
    let t = Tmp::new();
    let fd = t.file("f", &[0; 4096]);
    let other = ok(t.open("f", O_RDWR)) as i32;
    let at = sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) as usize;
    eq(sys!(SYS_mprotect, at + 4096, 4096, PROT_NONE), 0);
    // The last bytes that can be read.
    let place = (at + 4096 - size_of::<flock>()) as *mut flock;
    let lock = |kind: i32, start: i64, len: i64| flock {
        l_type: kind as i16,
        l_whence: SEEK_SET as i16,
        l_start: start,
        l_len: len,
        l_pid: 0,
    };
    let put = |lock: flock| {
        // SAFETY: mapped above, aligned, and as long.
        unsafe { place.write(lock) }
    };
    for round in 0..OFTEN as i64 {
        put(lock(F_WRLCK, round, 10));
        eq(sys!(SYS_fcntl, fd, F_SETLK, place), 0);
        put(lock(F_WRLCK, 0, 0));
        eq(sys!(SYS_fcntl, other, F_OFD_GETLK, place), 0);
        // SAFETY: as above.
        let got = unsafe { place.read() };
        eq((i32::from(got.l_type), got.l_start, got.l_len), (F_WRLCK, round, 10));
        put(lock(F_RDLCK, round + 9, 1));
        err(sys!(SYS_fcntl, other, F_OFD_SETLK, place), EAGAIN);
        put(lock(F_UNLCK, 0, 0));
        eq(sys!(SYS_fcntl, fd, F_SETLKW, place), 0);
        put(lock(9, 0, 0));
        err(sys!(SYS_fcntl, fd, F_SETLK, place), EINVAL);
        for bad in [8, at + 4096 - 16, at + 4096] {
            err(sys!(SYS_fcntl, fd, F_SETLK, bad), EFAULT);
            err(sys!(SYS_fcntl, fd, F_GETLK, bad), EFAULT);
        }
        // Numbers, and arguments that nobody looks at.
        let copy = ok(sys!(SYS_fcntl, fd, F_DUPFD, 100)) as i32;
        check(copy >= 100, "from there on");
        eq(sys!(SYS_fcntl, copy, F_SETFD, FD_CLOEXEC), 0);
        eq(sys!(SYS_fcntl, copy, F_GETFD, at + 4096), i64::from(FD_CLOEXEC));
        eq(sys!(SYS_fcntl, copy, F_GETFL, 8) & i64::from(O_ACCMODE), i64::from(O_RDWR));
        shut([copy]);
    }
    eq(sys!(SYS_munmap, at, 8192), 0);
    shut([fd, other]);
}
