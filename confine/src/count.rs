//! Counts the host calls of a sandbox's processes, from outside: a process of its own that traces the launcher and all
//! that comes of it (ptrace(2)). Slow, true, and nothing when it is not asked for.
//!
//! A call counts when its process enters it and the host carries it out. What a filter refuses does not count: it raises
//! SIGSYS, or ends with ENOSYS, in guests with EPERM. Nobody but the host decides what is counted here: a guest that
//! drives the shim by hand is counted like any other.
//!
//! A process has one tracer. Guests of the ptrace platform have the sentry, which counts what it lets them do itself.

use crate::host;
use crate::tracing::{self, Call, Stop};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, setsid, waitpid};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Whose calls they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Launcher,
    Sentry,
    Gofer,
    Meter,
    Guest,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Role::Launcher => "launcher",
            Role::Sentry => "sentry",
            Role::Gofer => "gofer",
            Role::Meter => "meter",
            Role::Guest => "guest",
        }
    }

    /// The role of what this one makes, being the launcher's fork with that number.
    fn child(self, by_fork: bool, forks: usize) -> Role {
        match (self, by_fork) {
            (Role::Launcher, true) if forks == 0 => Role::Sentry,
            (Role::Launcher, true) if forks == 1 => Role::Gofer,
            (Role::Launcher, true) => Role::Meter,
            (Role::Sentry, true) => Role::Guest,
            (role, _) => role,
        }
    }
}

/// Calls by process and number.
type Counts = BTreeMap<(Role, u64), u64>;

/// The process that counts.
#[derive(Debug)]
pub struct Counter {
    socket: OwnedFd,
    pid: Pid,
}

impl Counter {
    /// The descriptor that answers [`read`].
    pub fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Ends it, when only this process is left of all that it traces.
    pub fn end(self) {
        if send(&self.socket, END, SendFlags::NOSIGNAL).is_ok() {
            // It lets go of this process at the call that follows the answer.
            let _ = recv(&self.socket, &mut [0; 1], RecvFlags::empty());
            let _ = waitpid(Some(self.pid), WaitOptions::empty());
        }
    }
}

const ASK: &[u8] = b"?";
const END: &[u8] = b"x";

/// Starts counting this process, which has one thread, and all that it makes: first the sentry, then the gofer. With
/// `guests`, what the sentry makes is a guest and counted.
///
/// # Errors
/// What the host says; EPERM where tracing is forbidden.
pub fn start(guests: bool) -> io::Result<Counter> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let launcher = rustix::process::getpid().as_raw_nonzero().get();
    match tracing::fork()? {
        Some(pid) => {
            drop(theirs);
            tracing::allow_tracer(pid);
            send(&ours, b"go", SendFlags::NOSIGNAL)?;
            let mut answer = [0; 4];
            match recv(&ours, &mut answer, RecvFlags::empty())? {
                (4, _) => match i32::from_le_bytes(answer) {
                    0 => Ok(Counter { socket: ours, pid: Pid::from_raw(pid).ok_or(io::ErrorKind::Other)? }),
                    errno => Err(io::Error::from_raw_os_error(errno)),
                },
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        None => {
            host::close_all_but(&[theirs.as_raw_fd()]);
            host::forget_command_line(c"lazaret-counter");
            count(launcher, &theirs, guests);
            host::exit_now(0)
        }
    }
}

/// The calls so far: process, number of the call, count.
///
/// # Errors
/// What the host says; the counter is gone.
pub fn read(counter: impl AsFd) -> io::Result<Vec<(String, u64, u64)>> {
    send(counter.as_fd(), ASK, SendFlags::NOSIGNAL)?;
    let mut text = vec![0; 256 * 1024];
    let (length, _) = recv(counter.as_fd(), &mut text[..], RecvFlags::empty())?;
    let text = String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned();
    let line = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// The counter: until no tracee is left.
fn count(launcher: i32, socket: &OwnedFd, guests: bool) {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // The terminal's signals are not for it.
    let _ = setsid();
    let _ = rustix::thread::set_name(c"lazaret-counter");
    if recv(socket, &mut [0; 2], RecvFlags::empty()).is_err() {
        return;
    }
    let seized = tracing::seize(launcher, tracing::ALL);
    let errno = seized.as_ref().err().map_or(0, |e| e.raw_os_error().unwrap_or(libc::EPERM));
    if send(socket, &errno.to_le_bytes(), SendFlags::NOSIGNAL).is_err() || seized.is_err() {
        return;
    }
    let counts = Arc::new(Mutex::new(Counts::new()));
    let over = Arc::new(AtomicBool::new(false));
    let (shared, socket) = ((counts.clone(), over.clone()), socket.try_clone());
    if let Ok(socket) = socket {
        // Without it nobody gets an answer, and the report says so.
        let _ = std::thread::Builder::new().spawn(move || answer(&socket, &shared.0, &shared.1));
    }
    let mut tracees = Tracees { guests, over, ..Tracees::default() };
    tracees.roles.insert(launcher, Role::Launcher);
    while let Some((tid, stop)) = tracing::wait() {
        tracees.turn(tid, stop, &counts);
    }
}

fn answer(socket: &OwnedFd, counts: &Mutex<Counts>, over: &AtomicBool) {
    let mut asked = [0];
    while let Ok((1.., _)) = recv(socket, &mut asked, RecvFlags::empty()) {
        let mut text = String::new();
        if asked == END {
            over.store(true, Ordering::Release);
            text.push('.');
        }
        for ((role, number), count) in counts.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if *count > 0 {
                let _ = writeln!(text, "{} {number} {count}", role.name());
            }
        }
        if send(socket, text.as_bytes(), SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

#[derive(Default)]
struct Tracees {
    guests: bool,
    /// Only the launcher is left, and is to be let go.
    over: Arc<AtomicBool>,
    roles: HashMap<i32, Role>,
    /// Stopped at their start before their makers told of them.
    early: HashSet<i32>,
    /// The call that a tracee is in, or was in last.
    last: HashMap<i32, u64>,
    /// How many processes the launcher has forked.
    forks: usize,
}

impl Tracees {
    fn turn(&mut self, tid: i32, stop: Stop, counts: &Mutex<Counts>) {
        if stop != Stop::Ended && self.over.load(Ordering::Acquire) {
            tracing::let_go(tid, if let Stop::Signal(signal) = stop { signal } else { 0 });
            self.roles.remove(&tid);
            // Other threads of the launcher may be waiting for something.
            return self.roles.keys().for_each(|tid| tracing::interrupt(*tid));
        }
        match stop {
            Stop::Ended => {
                self.roles.remove(&tid);
                self.last.remove(&tid);
                self.early.remove(&tid);
                return;
            }
            Stop::Made(by_fork) => self.made(tid, by_fork),
            Stop::Call => self.call(tid, counts),
            Stop::Signal(signal) => {
                if signal == libc::SIGSYS && tracing::by_filter(tid) {
                    self.add(tid, -1, counts);
                }
                return tracing::go_on(tid, signal);
            }
            Stop::Group => return tracing::listen(tid),
            Stop::Other => {
                match self.roles.get(&tid) {
                    Some(role) => self.begin(tid, *role),
                    None => {
                        self.early.insert(tid);
                    }
                }
                return;
            }
        }
        tracing::go_on(tid, 0);
    }

    fn made(&mut self, tid: i32, by_fork: bool) {
        let (Some(new), Some(role)) = (tracing::made(tid), self.roles.get(&tid)) else { return };
        let child = role.child(by_fork, self.forks);
        if *role == Role::Launcher && by_fork {
            self.forks += 1;
        }
        self.roles.insert(new, child);
        if self.early.remove(&new) {
            self.begin(new, child);
        }
    }

    /// A tracee that is new, or was stopped, goes on.
    fn begin(&self, tid: i32, role: Role) {
        if role == Role::Sentry && !self.guests {
            tracing::set_options(tid, tracing::THREADS);
        }
        tracing::go_on(tid, 0);
    }

    fn call(&mut self, tid: i32, counts: &Mutex<Counts>) {
        match tracing::call(tid) {
            Some(Call::Enter(number)) => {
                self.last.insert(tid, number);
                self.add(tid, 1, counts);
            }
            Some(Call::Leave(value)) => {
                let refused = value == -i64::from(libc::ENOSYS)
                    || (value == -i64::from(libc::EPERM) && self.roles.get(&tid) == Some(&Role::Guest));
                if refused {
                    self.add(tid, -1, counts);
                }
            }
            None => {}
        }
    }

    fn add(&self, tid: i32, change: i64, counts: &Mutex<Counts>) {
        if let (Some(role), Some(number)) = (self.roles.get(&tid), self.last.get(&tid)) {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry((*role, *number)).or_default();
            *count = count.saturating_add_signed(change);
        }
    }
}
