//! The launcher's standard streams, and its place among jobs, as the sentry gets them.

use crate::setup::{JobSetup, StreamSetup};
use confine::host;
use rustix::fs::OFlags;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The standard streams; those opened anew live as long as this.
pub struct Streams {
    pub setup: [Option<StreamSetup>; 3],
    _anew: Vec<OwnedFd>,
}

/// Looks at the standard streams. `root` is the host directory that is the root inside.
///
/// A terminal is opened anew where that is allowed: its description is the sentry's own then, and O_NONBLOCK on it is
/// nobody else's business.
pub fn streams(root: &Path) -> Streams {
    let open = host::start_state().open;
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let own: [BorrowedFd<'_>; 3] = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let mut anew = Vec::new();
    let mut setup: [Option<StreamSetup>; 3] = [None, None, None];
    for (number, fd) in own.iter().enumerate().filter(|(number, _)| open[*number]) {
        let same_as = (0..number).find(|n| open[*n] && host::same_description(own[*n], *fd));
        let flags = rustix::fs::fcntl_getfl(fd).unwrap_or(OFlags::RDWR).bits();
        let terminal = rustix::termios::isatty(fd);
        let reopened = if terminal && same_as.is_none() { open_anew(number) } else { None };
        setup[number] = Some(StreamSetup {
            fd: reopened.as_ref().map_or(fd.as_raw_fd(), AsRawFd::as_raw_fd),
            same_as,
            flags: flags as i32,
            controlling: rustix::termios::tcgetpgrp(fd).is_ok(),
            name: if terminal { None } else { name(number, root) },
        });
        anew.extend(reopened);
    }
    Streams { setup, _anew: anew }
}

fn open_anew(number: usize) -> Option<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY;
    rustix::fs::open(format!("/proc/self/fd/{number}"), flags, rustix::fs::Mode::empty()).ok()
}

/// The path of what a stream was opened by, if it lies below the root inside.
fn name(number: usize, root: &Path) -> Option<Vec<u8>> {
    let path = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    let root = std::fs::canonicalize(root).ok()?;
    let below = path.strip_prefix(&root).ok()?;
    Some([b"/", below.as_os_str().as_bytes()].concat())
}

/// Lets go of what only the program uses now: who reads or writes the other end sees when the program closes it.
/// Standard error stays, for lazaret's own lines.
pub fn let_go() {
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stdout(&null);
    }
}

/// The launcher's place among jobs; `tty` is its terminal.
pub fn job(tty: Option<BorrowedFd<'_>>) -> JobSetup {
    let state = host::start_state();
    let foreground = tty.is_none_or(in_foreground);
    JobSetup { ignored: state.ignored, blocked: state.blocked, orphaned: orphaned(), foreground }
}

/// Whether this process's group is in the foreground of its terminal. A terminal that cannot be asked is gone: reading it
/// shows that.
pub fn in_foreground(tty: BorrowedFd<'_>) -> bool {
    let own = rustix::process::getpgid(None).ok();
    rustix::termios::tcgetpgrp(tty).map_or(true, |group| Some(group) == own)
}

/// Whether this process's group is orphaned: no ancestor within the group has a parent in another group of the session
/// (POSIX, "orphaned process group"; members that are no ancestors are not looked at).
fn orphaned() -> bool {
    let Some(mut at) = stat("self") else { return false };
    let (group, session) = (at.group, at.session);
    for _ in 0..64 {
        let Some(parent) = stat(&at.parent.to_string()) else { return true };
        if parent.session != session {
            return true;
        }
        if parent.group != group {
            return false;
        }
        at = parent;
    }
    true
}

struct Stat {
    parent: i32,
    group: i32,
    session: i32,
}

fn stat(pid: &str) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // pid (name) state ppid pgrp session ...; the name may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::parse);
    let mut next = || fields.next()?.ok();
    Some(Stat { parent: next()?, group: next()?, session: next()? })
}
