//! What the policy says of mounts: which rule made each, and what would allow what it refuses.

use crate::fail::{Denial, Fail};
use crate::sync::{Level, Lock};
use crate::vfs::mount::Mount;
use crate::vfs::path::Path;
use syscall_table::errno::Errno;

/// A mount of the policy.
pub struct Given {
    /// The mount's number.
    pub mount: u64,
    /// Where it is inside.
    pub at: Vec<u8>,
    /// What of the host it shows; empty for files in memory.
    pub src: Vec<u8>,
    /// The rule as it was written: option, or file and line.
    pub rule: String,
}

/// The mounts of the policy.
pub struct Mounts(Lock<Vec<Given>>);

impl Default for Mounts {
    fn default() -> Self {
        Mounts(Lock::new(Level::Field, Vec::new()))
    }
}

impl Mounts {
    /// One more.
    pub fn add(&self, given: Given) {
        self.0.lock().push(given);
    }

    /// Why `path`, or `name` in it, which lies on a read-only mount, cannot be changed: the policy's denial, or EROFS of a
    /// mount that the program made so itself. `what`: the operation.
    pub fn read_only(&self, path: &Path, name: &[u8], what: &'static str) -> Fail {
        let mounts = self.0.lock();
        let Some(given) = mounts
            .iter()
            .find(|given| given.mount == path.mount.origin && path.mount.sb.fixed && !given.src.is_empty())
        else {
            return Errno::EROFS.into();
        };
        let (rule, src, at) = (given.rule.clone(), text(&given.src), text(&given.at));
        drop(mounts);
        let mut object = path.absolute(None).bytes;
        if !name.is_empty() {
            if object.last() != Some(&b'/') {
                object.push(b'/');
            }
            object.extend_from_slice(name);
        }
        let object = text(&object);
        let allow_with = if src == at { format!("--write {src}") } else { format!("--write {src}:{at}") };
        Fail::Denial(Box::new(Denial { errno: Errno::EROFS, what, object, rule, allow_with }))
    }

    /// Why what was asked of a mount cannot be done: it is the policy's, or else `errno`. `what`: the operation. Nothing but
    /// another policy would allow it.
    pub fn locked(&self, mount: &Mount, errno: Errno, what: &'static str) -> Fail {
        let mounts = self.0.lock();
        let Some(given) = mounts.iter().find(|given| given.mount == mount.origin) else {
            return errno.into();
        };
        let (rule, object) = (given.rule.clone(), text(&given.at));
        Fail::Denial(Box::new(Denial { errno, what, object, rule, allow_with: String::new() }))
    }

    /// The option that shows the hidden `object` on this mount.
    pub fn shows(&self, mount: u64, object: &[u8]) -> String {
        let inside = text(object);
        let mounts = self.0.lock();
        let host =
            mounts.iter().find(|given| given.mount == mount && !given.src.is_empty()).and_then(|given| {
                let at = given.at.strip_suffix(b"/").unwrap_or(&given.at);
                let src = given.src.strip_suffix(b"/").unwrap_or(&given.src);
                Some(text(&[src, object.strip_prefix(at)?].concat()))
            });
        match host {
            Some(host) if host != inside => format!("--read-only {host}:{inside}"),
            _ => format!("--read-only {inside}"),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
