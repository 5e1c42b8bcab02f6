//! Scratch directories.

use libc::*;
use std::ffi::{CStr, CString};
use std::sync::atomic::{AtomicU32, Ordering};

/// `s` as C has it. Never freed: a guest program is short.
pub fn cstr(s: impl Into<Vec<u8>>) -> &'static CStr {
    Box::leak(CString::new(s).expect("no NUL inside").into_boxed_c_str())
}

/// A name that no process has which runs the same at the same time: what is named so is the whole host's.
pub fn unique(name: &str) -> &'static CStr {
    cstr(format!("{name}-{}", std::process::id()))
}

/// A directory of its own that goes with its content when this is dropped.
pub struct Tmp(String);

impl Tmp {
    /// Makes the directory below $TMPDIR or /tmp.
    pub fn new() -> Self {
        Self::below(&std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".into()))
    }

    /// Makes the directory below `dir`.
    pub fn below(dir: &str) -> Self {
        static N: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        loop {
            let p = format!("{dir}/guest.{pid}.{}", N.fetch_add(1, Ordering::Relaxed));
            let r = crate::sys!(SYS_mkdirat, AT_FDCWD, cstr(p.clone()), 0o777);
            if r == -i64::from(EEXIST) {
                continue;
            }
            crate::ok(r);
            return Tmp(p);
        }
    }

    /// The directory itself.
    pub fn dir(&self) -> &str {
        &self.0
    }

    /// `name` below the directory.
    pub fn path(&self, name: &str) -> &'static CStr {
        cstr(if name.is_empty() { self.0.clone() } else { format!("{}/{name}", self.0) })
    }

    /// A new file with `content`, open for reading and writing at offset 0.
    #[track_caller]
    pub fn file(&self, name: &str, content: &[u8]) -> i32 {
        let p = self.path(name);
        let fd = crate::ok(crate::sys!(SYS_openat, AT_FDCWD, p, O_RDWR | O_CREAT | O_TRUNC, 0o644));
        if !content.is_empty() {
            crate::eq(crate::sys!(SYS_pwrite64, fd, content, content.len(), 0), content.len() as i64);
        }
        fd as i32
    }

    /// The content of `name`.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(format!("{}/{name}", self.0)).expect("read back")
    }

    /// Opens `name` with `flags`.
    pub fn open(&self, name: &str, flags: i32) -> i64 {
        crate::sys!(SYS_openat, AT_FDCWD, self.path(name), flags, 0o644)
    }
}

impl Default for Tmp {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Tmp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
