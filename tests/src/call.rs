//! Raw system calls.

use std::arch::asm;
use std::ffi::CStr;
use std::sync::atomic::AtomicU32;

/// A value that can be passed in an argument register.
pub trait Arg {
    /// The register's content.
    fn arg(self) -> usize;
}

macro_rules! int_args {
    ($($t:ty),*) => { $(impl Arg for $t { fn arg(self) -> usize { self as usize } })* };
}
// Signed types sign-extend, as a compiler passing a long does.
int_args!(i32, i64, isize, u32, u64, usize, u8, u16);

impl<T> Arg for *const T {
    fn arg(self) -> usize {
        self as usize
    }
}
impl<T> Arg for *mut T {
    fn arg(self) -> usize {
        self as usize
    }
}
impl<T> Arg for &T {
    fn arg(self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}
impl<T> Arg for &mut T {
    fn arg(self) -> usize {
        std::ptr::from_mut(self) as usize
    }
}
impl<T> Arg for &[T] {
    fn arg(self) -> usize {
        self.as_ptr() as usize
    }
}
impl<T> Arg for &mut [T] {
    fn arg(self) -> usize {
        self.as_mut_ptr() as usize
    }
}
impl Arg for &CStr {
    fn arg(self) -> usize {
        self.as_ptr() as usize
    }
}
/// System call `nr` with up to six arguments; the missing ones are 0.
#[inline(always)]
pub fn raw(nr: i64, args: &[usize]) -> i64 {
    let a = |i: usize| args.get(i).copied().unwrap_or(0);
    let ret: i64;
    unsafe {
        asm!("syscall", inlateout("rax") nr => ret, in("rdi") a(0), in("rsi") a(1), in("rdx") a(2),
            in("r10") a(3), in("r8") a(4), in("r9") a(5), lateout("rcx") _, lateout("r11") _);
    }
    ret
}

/// futex(2) without a second word.
pub fn futex(word: &AtomicU32, op: i32, val: u32, time: usize) -> i64 {
    crate::sys!(libc::SYS_futex, word, op, val, time, 0, 0)
}

/// glibc's errno, negated, when `r` is -1: the raw convention for calls made through the C library.
pub fn libc_ret<T: Into<i64>>(r: T) -> i64 {
    let r = r.into();
    if r == -1 { -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)) } else { r }
}
