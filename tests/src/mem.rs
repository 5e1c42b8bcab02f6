//! Addresses that fault.

use libc::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An address that cannot be read or written, in the middle of a mapping without access.
pub fn bad() -> *mut u8 {
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    let mut p = PAGE.load(Ordering::Relaxed);
    if p == 0 {
        p = crate::ok(crate::sys!(SYS_mmap, 0, 16 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
            as usize;
        PAGE.store(p, Ordering::Relaxed);
    }
    (p + (8 << 20)) as *mut u8
}

/// Two pages, the second without access: a buffer at its end faults after exactly so many bytes.
pub struct Guarded(*mut u8);

impl Guarded {
    /// Maps the pages.
    pub fn new() -> Self {
        let p = crate::ok(crate::sys!(
            SYS_mmap,
            0,
            8192,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS,
            -1,
            0
        ));
        crate::ok(crate::sys!(SYS_mprotect, p + 4096, 4096, PROT_NONE));
        Guarded(p as *mut u8)
    }
    /// The address `n` bytes before the page without access.
    pub fn tail(&self, n: usize) -> *mut u8 {
        self.0.wrapping_add(4096 - n)
    }
}

impl Default for Guarded {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        crate::sys!(SYS_munmap, self.0, 8192);
    }
}
