//! Code of files that is mapped again and again: whatever a kernel remembers of its call sites must not show.

use crate::sites::{first, second};
use guest_tests::*;
use libc::*;

// The first ones first: a process has places for so many sites only, which those after them use up.
cases![
    changed_by_stores, within_another_instruction, same_again, others_read_it, changed_between, no_site_any_more, other_places, writable_later, writable_from_the_start, fork_after, file_stays, shortened, many_files
];

const PAGE: usize = 4096;
/// Where in a page the functions are, and how far apart.
const AT: usize = 1024;
const STEP: usize = 64;
const ROUNDS: usize = 5;

type Call = extern "C" fn(u64, u64, u64, u64) -> i64;

/// Code of a file.
struct Text(*mut u8, usize);

impl Text {
    fn new(fd: i32, len: usize, offset: usize, prot: i32, flags: i32) -> Text {
        let at = ok(sys!(SYS_mmap, 0, len, prot, flags, fd, offset)) as *mut u8;
        Text(at, len)
    }

    fn private(fd: i32, len: usize, offset: usize) -> Text {
        Text::new(fd, len, offset, PROT_READ | PROT_EXEC, MAP_PRIVATE)
    }

    fn call(&self, at: usize) -> Call {
        // SAFETY: the file has a function of this type there.
        unsafe { std::mem::transmute(self.0.add(at)) }
    }

    /// What others see of it.
    fn seen(&self) -> Vec<u8> {
        let mut buf = vec![0u8; self.1];
        let (local, remote) =
            (iovec { iov_base: buf.as_mut_ptr().cast(), iov_len: self.1 }, iovec { iov_base: self.0.cast(), iov_len: self.1 });
        eq(sys!(SYS_process_vm_readv, sys!(SYS_getpid), &local, 1, &remote, 1, 0), self.1 as i64);
        buf
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        sys!(SYS_munmap, self.0, self.1);
    }
}

/// A file that stays in memory as it is, so that each mapping is of the same one: what is small and has a name may be another one of the
/// host's each time.
fn code(bytes: &[u8]) -> i32 {
    let fd = ok(sys!(SYS_memfd_create, c"code", 0)) as i32;
    eq(sys!(SYS_write, fd, bytes.as_ptr(), bytes.len()), bytes.len() as i64);
    fd
}

/// Nops with these functions.
fn page(functions: &[Vec<u8>]) -> Vec<u8> {
    let mut page = vec![0x90; PAGE];
    for (i, function) in functions.iter().enumerate() {
        page[AT + i * STEP..][..function.len()].copy_from_slice(function);
    }
    page
}

/// Calls of both forms, and one that the kernel may answer in the process.
fn usual() -> Vec<u8> {
    page(&[first(SYS_getppid), second(), first(SYS_getpid), first(SYS_getsid)])
}

fn calls_work(text: &Text, base: usize) {
    let at = |i: usize| text.call(base + AT + i * STEP);
    eq(at(0)(0, 0, 0, 0), sys!(SYS_getppid));
    eq(at(1)(SYS_getpgid as u64, 0, 0, 0), sys!(SYS_getpgid, 0));
    eq(at(1)(SYS_lseek as u64, 999, 0, 0), i64::from(-EBADF));
    eq(at(2)(0, 0, 0, 0), sys!(SYS_getpid));
    eq(at(3)(0, 0, 0, 0), sys!(SYS_getsid, 0));
}

fn same_again() {
    let fd = code(&usual());
    for _ in 0..ROUNDS {
        let text = Text::private(fd, PAGE, 0);
        for _ in 0..40 {
            calls_work(&text, 0);
        }
    }
    // Two at a time.
    let both = [Text::private(fd, PAGE, 0), Text::private(fd, PAGE, 0)];
    both.iter().for_each(|text| calls_work(text, 0));
    shut([fd]);
}

fn others_read_it() {
    let fd = code(&usual());
    for _ in 0..ROUNDS {
        let text = Text::private(fd, PAGE, 0);
        eq(text.seen(), usual());
        calls_work(&text, 0);
        eq(text.seen(), usual());
        let mem = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/mem", O_RDONLY, 0)) as i32;
        let mut buf = vec![0u8; PAGE];
        eq(sys!(SYS_pread64, mem, buf.as_mut_ptr(), PAGE, text.0), PAGE as i64);
        eq(buf, usual());
        shut([mem]);
    }
    shut([fd]);
}

/// The same file, of the same length and with the same time of change, has another call there.
fn changed_between() {
    let fd = code(&usual());
    let same_time = || {
        let times = [timespec { tv_sec: 1_000_000_000, tv_nsec: 0 }; 2];
        eq(sys!(SYS_utimensat, fd, 0, &times, 0), 0);
    };
    same_time();
    for round in 0..ROUNDS {
        let text = Text::private(fd, PAGE, 0);
        calls_work(&text, 0);
        drop(text);
        let numbers = [SYS_getuid, SYS_getsid, SYS_getpgrp];
        let nr = numbers[round % numbers.len()];
        let other = page(&[first(nr), second(), first(SYS_getppid), first(SYS_getpid)]);
        eq(sys!(SYS_pwrite64, fd, other.as_ptr(), PAGE, 0), PAGE as i64);
        same_time();
        for _ in 0..2 {
            let text = Text::private(fd, PAGE, 0);
            eq(text.call(AT)(0, 0, 0, 0), sys!(nr, 0));
            eq(text.call(AT + 2 * STEP)(0, 0, 0, 0), sys!(SYS_getppid));
            eq(text.call(AT + 3 * STEP)(0, 0, 0, 0), sys!(SYS_getpid));
            eq(&text.seen(), &other);
        }
        eq(sys!(SYS_pwrite64, fd, usual().as_ptr(), PAGE, 0), PAGE as i64);
        same_time();
    }
    shut([fd]);
}

/// The bytes that looked like a call are something else.
fn no_site_any_more() {
    let fd = code(&usual());
    for _ in 0..ROUNDS {
        calls_work(&Text::private(fd, PAGE, 0), 0);
    }
    // mov eax, 110; nop; nop; ret. And: mov rax, rdi, eight times; ret
    let plain = vec![0xb8, 110, 0, 0, 0, 0x90, 0x90, 0xc3];
    let other = page(&[plain.clone(), [[0x48, 0x89, 0xf8].repeat(8), vec![0xc3]].concat(), plain.clone(), plain]);
    eq(sys!(SYS_pwrite64, fd, other.as_ptr(), PAGE, 0), PAGE as i64);
    for _ in 0..ROUNDS {
        let text = Text::private(fd, PAGE, 0);
        eq([0, 2, 3].map(|i| text.call(AT + i * STEP)(0, 0, 0, 0)), [110; 3]);
        eq(text.call(AT + STEP)(1234, 0, 0, 0), 1234);
        eq(&text.seen(), &other);
        eq(sys!(SYS_mprotect, text.0, PAGE, PROT_READ | PROT_WRITE), 0);
        // SAFETY: mapped.
        eq(unsafe { std::slice::from_raw_parts(text.0, PAGE) }, &other[..]);
    }
    shut([fd]);
}

/// As before, by stores: nothing but the bytes tells it.
fn changed_by_stores() {
    let fd = code(&usual());
    let shared = Text::new(fd, PAGE, 0, PROT_READ | PROT_WRITE, MAP_SHARED);
    // mov eax, 110; nop; nop; ret. And: mov rax, rdi, eight times; ret
    let plain = vec![0xb8, 110, 0, 0, 0, 0x90, 0x90, 0xc3];
    let other = page(&[plain.clone(), [[0x48, 0x89, 0xf8].repeat(8), vec![0xc3]].concat(), plain.clone(), plain]);
    for _ in 0..ROUNDS {
        for _ in 0..2 * ROUNDS {
            calls_work(&Text::private(fd, PAGE, 0), 0);
        }
        // SAFETY: both are a page, and nothing else reads this one meanwhile.
        unsafe { std::ptr::copy_nonoverlapping(other.as_ptr(), shared.0, PAGE) };
        let text = Text::private(fd, PAGE, 0);
        eq([0, 2, 3].map(|i| text.call(AT + i * STEP)(0, 0, 0, 0)), [110; 3]);
        eq(text.call(AT + STEP)(1234, 0, 0, 0), 1234);
        eq(&text.seen(), &other);
        drop(text);
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(usual().as_ptr(), shared.0, PAGE) };
    }
    shut([fd]);
}

/// Parts of a file, and the whole.
fn other_places() {
    let quiet = page(&[[0xb8, 7, 0, 0, 0, 0xc3]; 4].map(|f| f.to_vec()));
    let fd = code(&[usual(), quiet, usual()].concat());
    for _ in 0..ROUNDS {
        let whole = Text::private(fd, 3 * PAGE, 0);
        let parts = [0, 1, 2].map(|i| Text::private(fd, PAGE, i * PAGE));
        let tail = Text::private(fd, 2 * PAGE, PAGE);
        calls_work(&whole, 0);
        calls_work(&whole, 2 * PAGE);
        calls_work(&parts[0], 0);
        calls_work(&parts[2], 0);
        calls_work(&tail, PAGE);
        for at in [whole.call(PAGE + AT), parts[1].call(AT), tail.call(AT)] {
            eq(at(0, 0, 0, 0), 7);
        }
    }
    shut([fd]);
}

fn writable_later() {
    let fd = code(&usual());
    for round in 0..2 * ROUNDS {
        let text = Text::private(fd, PAGE, 0);
        if round % 2 == 0 {
            calls_work(&text, 0);
        }
        eq(sys!(SYS_mprotect, text.0, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
        // SAFETY: mapped, and a page.
        unsafe {
            eq(std::slice::from_raw_parts(text.0, PAGE), &usual()[..]);
            calls_work(&text, 0);
            // Another call takes its place.
            text.0.add(AT + 1).write_volatile(SYS_getpgrp as u8);
        }
        eq(text.call(AT)(0, 0, 0, 0), sys!(SYS_getpgrp));
        eq(sys!(SYS_mprotect, text.0, PAGE, PROT_READ | PROT_EXEC), 0);
        eq(text.call(AT)(0, 0, 0, 0), sys!(SYS_getpgrp));
        eq(text.call(AT + 2 * STEP)(0, 0, 0, 0), sys!(SYS_getpid));
    }
    shut([fd]);
}

fn writable_from_the_start() {
    let fd = code(&usual());
    for _ in 0..ROUNDS {
        calls_work(&Text::private(fd, PAGE, 0), 0);
        let text = Text::new(fd, PAGE, 0, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE);
        // SAFETY: mapped, and a page.
        eq(unsafe { std::slice::from_raw_parts(text.0, PAGE) }, &usual()[..]);
        calls_work(&text, 0);
    }
    shut([fd]);
}

fn fork_after() {
    let fd = code(&usual());
    for _ in 0..ROUNDS {
        let text = Text::private(fd, PAGE, 0);
        calls_work(&text, 0);
        exits(
            child(|| {
                calls_work(&text, 0);
                eq(text.seen(), usual());
                eq(sys!(SYS_mprotect, text.0, PAGE, PROT_READ | PROT_WRITE), 0);
                // SAFETY: mapped, and a page.
                eq(unsafe { std::slice::from_raw_parts(text.0, PAGE) }, &usual()[..]);
                calls_work(&Text::private(fd, PAGE, 0), 0);
                3
            }),
            3,
        );
        calls_work(&text, 0);
    }
    shut([fd]);
}

/// Nothing of it comes into the file, nor into a mapping that shows the file.
fn file_stays() {
    let fd = code(&usual());
    for _ in 0..ROUNDS {
        let private = Text::private(fd, PAGE, 0);
        let shared = Text::new(fd, PAGE, 0, PROT_READ | PROT_EXEC, MAP_SHARED);
        calls_work(&private, 0);
        calls_work(&shared, 0);
        // SAFETY: mapped, and a page.
        eq(unsafe { std::slice::from_raw_parts(shared.0, PAGE) }, &usual()[..]);
        let mut buf = vec![0u8; PAGE];
        eq(sys!(SYS_pread64, fd, buf.as_mut_ptr(), PAGE, 0), PAGE as i64);
        eq(buf, usual());
    }
    shut([fd]);
}

/// The file ends before the place where calls were.
fn shortened() {
    let both = [usual(), usual()].concat();
    let fd = code(&both);
    for _ in 0..ROUNDS {
        calls_work(&Text::private(fd, 2 * PAGE, 0), PAGE);
    }
    for _ in 0..ROUNDS {
        eq(sys!(SYS_ftruncate, fd, PAGE), 0);
        let text = Text::private(fd, 2 * PAGE, 0);
        calls_work(&text, 0);
        killed_by(child(|| text.call(PAGE + AT)(0, 0, 0, 0) as i32), SIGBUS);
        eq(sys!(SYS_pwrite64, fd, both.as_ptr(), 2 * PAGE, 0), 2 * PAGE as i64);
        drop(text);
        calls_work(&Text::private(fd, 2 * PAGE, 0), PAGE);
    }
    shut([fd]);
}

/// Who jumps into the middle of instructions finds a call there. That is no reason to change the instructions for those who
/// do not.
fn within_another_instruction() {
    // xor eax, eax; cmp eax, 0x6eb8; add [rdi], cl; add eax, 0xc3; ret. One byte into the second one: mov eax, 110; syscall; ret
    let fd = code(&page(&[vec![0x31, 0xc0, 0x3d, 0xb8, 0x6e, 0, 0, 0, 0x0f, 0x05, 0xc3, 0, 0, 0, 0xc3]]));
    for _ in 0..2 * ROUNDS {
        exits(
            child(|| {
                // Nearly all who map it do so.
                let once = || Text::private(fd, PAGE, 0).call(AT + 3)(0, 0, 0, 0) == sys!(SYS_getppid);
                i32::from((0..20).all(|_| once()))
            }),
            1,
        );
        let text = Text::private(fd, PAGE, 0);
        let mut byte = 1u8;
        eq(text.call(AT)(&raw mut byte as u64, 0, 0, 5), 0xc3);
        eq(byte, 6);
    }
    shut([fd]);
}

/// More than a kernel may want to remember.
fn many_files() {
    for _ in 0..300 {
        let fd = code(&usual());
        for _ in 0..2 {
            calls_work(&Text::private(fd, PAGE, 0), 0);
        }
        shut([fd]);
    }
}
