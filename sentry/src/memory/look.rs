//! How much memory a guest's host process has: the launcher sees it in /proc, the sentry has none.

use super::areas::{ALL_ROWS, Asked, MOST_PAGES, PACKET, Row};
use crate::sync::{Level, Lock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::net::{RecvFlags, SendFlags};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of a host process, as /proc/PID/status of the host has them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Private memory (RssAnon).
    pub anon: u64,
    /// Pages of files (RssFile).
    pub file: u64,
    /// Pages of shared memory (RssShmem).
    pub shmem: u64,
    /// Page tables (VmPTE).
    pub tables: u64,
    /// VmSwap.
    pub swap: u64,
    /// Most that was resident at once (VmHWM).
    pub peak: u64,
}

/// A question or an answer: a number that both have, and for an answer the figures.
pub const QUESTION: usize = 12;
/// See [`QUESTION`].
pub const ANSWER: usize = 56;

impl Figures {
    /// All that is resident.
    pub fn resident(&self) -> u64 {
        self.anon.saturating_add(self.file).saturating_add(self.shmem)
    }

    /// The answer to `question`, in which a pid follows the number.
    pub fn answer(&self, question: &[u8; QUESTION]) -> Vec<u8> {
        let mut bytes = question[..8].to_vec();
        for value in [self.anon, self.file, self.shmem, self.tables, self.swap, self.peak] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8; ANSWER]) -> (u64, Figures) {
        let mut words =
            bytes.chunks_exact(8).map(|word| word.first_chunk().map_or(0, |w| u64::from_le_bytes(*w)));
        let mut next = || words.next().unwrap_or(0);
        let number = next();
        let (anon, file, shmem, tables, swap, peak) = (next(), next(), next(), next(), next(), next());
        (number, Figures { anon, file, shmem, tables, swap, peak })
    }
}

/// The pid that a question is about, in the sentry's namespace.
pub fn asked(question: &[u8; QUESTION]) -> i32 {
    let [.., a, b, c, d] = *question;
    i32::from_le_bytes([a, b, c, d])
}

struct Launcher {
    socket: OwnedFd,
    number: u64,
    /// It did not answer then: job control may have stopped it.
    silent: Option<Instant>,
}

static LAUNCHER: OnceLock<Lock<Launcher>> = OnceLock::new();

/// How long an answer is waited for, and how long nothing is asked after none came.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const PAUSE: Duration = Duration::from_secs(10);

/// Who is asked from now on.
pub fn ask_by(socket: OwnedFd) {
    // A process has one sandbox and one launcher.
    let _ = LAUNCHER.set(Lock::new(Level::Field, Launcher { socket, number: 0, silent: None }));
}

/// Whether there is somebody who answers.
pub fn answers() -> bool {
    LAUNCHER.get().is_some_and(|launcher| launcher.lock().silent.is_none())
}

impl Launcher {
    /// Asks; `question` is told the number that the answer will have.
    fn ask(&mut self, question: impl FnOnce(u64) -> Vec<u8>) -> Option<()> {
        if self.silent.is_some_and(|since| since.elapsed() < PAUSE) {
            return None;
        }
        self.silent = None;
        self.number = self.number.wrapping_add(1);
        let question = question(self.number);
        rustix::net::send(&self.socket, &question, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).ok().map(|_| ())
    }

    /// The next packet that answers the last question. `quick`: a launcher that runs has the answer at once, so that none
    /// means that it was stopped.
    fn hear<'a>(&mut self, bytes: &'a mut [u8], quick: bool) -> Option<&'a [u8]> {
        loop {
            let ready = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&PATIENCE));
            match ready {
                Ok(0) => {
                    self.silent = quick.then(Instant::now);
                    return None;
                }
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            }
            let (length, _) = rustix::net::recv(&self.socket, &mut *bytes, RecvFlags::DONTWAIT).ok()?;
            // An older answer that came too late is passed over.
            let number = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))?;
            if length >= 8 && number == self.number {
                return bytes.get(..length);
            }
        }
    }
}

/// What a host process has; None when nobody knows. Waits for the launcher, which takes some 50 us.
pub fn figures(pid: i32) -> Option<Figures> {
    let mut launcher = LAUNCHER.get().filter(|_| pid > 0)?.lock();
    launcher.ask(|number| [&number.to_le_bytes()[..], &pid.to_le_bytes()].concat())?;
    let mut bytes = [0; ANSWER];
    let (_, figures) = Figures::decode(launcher.hear(&mut bytes, true)?.first_chunk()?);
    (figures.resident() > 0).then_some(figures)
}

/// What the areas of a host process have, by address; None when nobody knows.
pub fn areas(pid: i32) -> Option<Vec<Row>> {
    let mut launcher = LAUNCHER.get().filter(|_| pid > 0)?.lock();
    launcher.ask(|number| Asked::Areas.encode(number, pid))?;
    let mut rows = Vec::new();
    let mut bytes = [0; PACKET];
    loop {
        // The host may take long to look at the pages of a large program.
        let (more, body) = launcher.hear(&mut bytes, false)?.get(8..)?.split_first()?;
        rows.extend(Row::all(body));
        if *more == 0 || rows.len() > ALL_ROWS {
            return (!rows.is_empty()).then_some(rows);
        }
    }
}

/// The page map's words of a host process from a page on, at most [`MOST_PAGES`]; None when nobody knows.
pub fn pages(pid: i32, first: u64, count: usize) -> Option<Vec<u64>> {
    let mut launcher = LAUNCHER.get().filter(|_| pid > 0)?.lock();
    launcher.ask(|number| Asked::Pages { first, count }.encode(number, pid))?;
    let mut bytes = [0; 9 + 8 * MOST_PAGES];
    let body = launcher.hear(&mut bytes, true)?.get(9..)?;
    Some(
        body.chunks_exact(8)
            .filter_map(|word| word.first_chunk())
            .map(|word| u64::from_le_bytes(*word))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_as_they_went() {
        let figures = Figures { anon: 1, file: 2, shmem: 3, tables: 4, swap: 5, peak: u64::MAX };
        let question = [7, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 0];
        let bytes = figures.answer(&question);
        assert_eq!(Figures::decode(&bytes.try_into().unwrap()), (7, figures));
        assert_eq!(asked(&question), 265);
    }

    #[test]
    fn a_long_look_is_no_silence() {
        let (own, _launcher) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let mut launcher = Launcher { socket: own.into(), number: 0, silent: None };
        let mut bytes = [0; ANSWER];
        for (quick, silent) in [(false, false), (true, true)] {
            assert!(launcher.ask(|number| Asked::Areas.encode(number, 5)).is_some());
            assert!(launcher.hear(&mut bytes, quick).is_none());
            assert_eq!(launcher.silent.is_some(), silent);
        }
        assert!(launcher.ask(|_| Vec::new()).is_none());
    }
}
