//! What the sentry and the process that meters memory say to each other: single packets on a seqpacket socket.

use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::AsFd;

/// To the meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The sentry holds so many bytes in memory files. The first one says that the sandbox is about to start.
    Held(u64),
    /// A task goes on, after it was said that all wait.
    Stir,
    /// What was to be done about [`Asked::Over`] has been done: who says it again must have looked after that.
    Done,
    /// Whether all tasks wait: the answer to [`Asked::Quiet`].
    Quiet(bool),
}

/// To the sentry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Bytes in use: private memory of guests with its page tables, and what the sentry has grown by.
    Used {
        /// Of guests.
        guests: u64,
        /// Of the sentry.
        sentry: u64,
    },
    /// To say [`Told::Held`].
    Count,
    /// To say [`Told::Quiet`], and [`Told::Stir`] when it is over.
    Quiet,
    /// More is in use than the limit: somebody is to be killed.
    Over {
        /// Bytes in use.
        used: u64,
        /// How many of them the sentry is thought to hold in memory files.
        held: u64,
        /// The largest processes.
        seen: Vec<Seen>,
    },
}

/// A guest's host process as the meter sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its id in the sentry's pid namespace.
    pub pid: i32,
    /// Bytes resident.
    pub resident: u64,
    /// Bytes of page tables.
    pub tables: u64,
}

/// Longest packet.
const MAX: usize = 8192;
const SEEN: usize = 20;
/// Processes that one packet can name.
pub const MOST_SEEN: usize = (MAX - 17) / SEEN;

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk::<8>().map(|n| u64::from_le_bytes(*n))
}

fn send(socket: impl AsFd, bytes: &[u8]) {
    // Nobody waits for the other: the meter asks again, and looks by itself. One that is gone is found out by its end.
    let _ = rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
}

/// The next packet that `decode` knows; None at the end of the socket, or when nothing is there and `flags` say not to
/// wait.
fn receive<T>(socket: impl AsFd, flags: RecvFlags, decode: impl Fn(&[u8]) -> Option<T>) -> Next<T> {
    let mut buffer = [0; MAX];
    loop {
        let length = match rustix::net::recv(socket.as_fd(), &mut buffer[..], flags) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::AGAIN) => return Next::Nothing,
            Err(_) | Ok((0, _)) => return Next::End,
            Ok((length, _)) => length,
        };
        if let Some(packet) = buffer.get(..length).and_then(&decode) {
            return Next::Packet(packet);
        }
    }
}

/// What a socket has.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// A packet.
    Packet(T),
    /// Nothing just now.
    Nothing,
    /// Nothing any more.
    End,
}

impl Told {
    fn encode(self) -> Vec<u8> {
        match self {
            Told::Held(bytes) => [&b"h"[..], &bytes.to_le_bytes()].concat(),
            Told::Stir => b"s".to_vec(),
            Told::Done => b"d".to_vec(),
            Told::Quiet(yes) => vec![b'q', u8::from(yes)],
        }
    }

    fn decode(bytes: &[u8]) -> Option<Told> {
        match bytes.first()? {
            b'h' => number(bytes, 1).map(Told::Held),
            b's' => Some(Told::Stir),
            b'd' => Some(Told::Done),
            b'q' => bytes.get(1).map(|yes| Told::Quiet(*yes != 0)),
            _ => None,
        }
    }

    /// Sends it.
    pub fn send(self, socket: impl AsFd) {
        send(socket, &self.encode());
    }

    /// The next one, without waiting.
    pub fn next(socket: impl AsFd) -> Next<Told> {
        receive(socket, RecvFlags::DONTWAIT, Told::decode)
    }
}

impl Asked {
    fn encode(&self) -> Vec<u8> {
        match self {
            Asked::Used { guests, sentry } => {
                [&b"u"[..], &guests.to_le_bytes(), &sentry.to_le_bytes()].concat()
            }
            Asked::Count => b"c".to_vec(),
            Asked::Quiet => b"q".to_vec(),
            Asked::Over { used, held, seen } => {
                let mut bytes = [&b"o"[..], &used.to_le_bytes(), &held.to_le_bytes()].concat();
                for one in seen.iter().take(MOST_SEEN) {
                    bytes.extend_from_slice(&one.pid.to_le_bytes());
                    bytes.extend_from_slice(&one.resident.to_le_bytes());
                    bytes.extend_from_slice(&one.tables.to_le_bytes());
                }
                bytes
            }
        }
    }

    fn decode(bytes: &[u8]) -> Option<Asked> {
        match bytes.first()? {
            b'u' => Some(Asked::Used { guests: number(bytes, 1)?, sentry: number(bytes, 9)? }),
            b'c' => Some(Asked::Count),
            b'q' => Some(Asked::Quiet),
            b'o' => {
                let seen = |one: &[u8]| {
                    let pid = i32::from_le_bytes(*one.first_chunk::<4>()?);
                    Some(Seen { pid, resident: number(one, 4)?, tables: number(one, 12)? })
                };
                let seen = bytes.get(17..)?.chunks_exact(SEEN).filter_map(seen).collect();
                Some(Asked::Over { used: number(bytes, 1)?, held: number(bytes, 9)?, seen })
            }
            _ => None,
        }
    }

    /// Sends it.
    pub fn send(&self, socket: impl AsFd) {
        send(socket, &self.encode());
    }

    /// Waits for the next one; None at the end.
    pub(super) fn receive(socket: impl AsFd) -> Option<Asked> {
        match receive(socket, RecvFlags::empty(), Asked::decode) {
            Next::Packet(asked) => Some(asked),
            Next::Nothing | Next::End => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_back_as_they_went() {
        for told in [Told::Held(1 << 40), Told::Stir, Told::Done, Told::Quiet(true), Told::Quiet(false)] {
            assert_eq!(Told::decode(&told.encode()), Some(told));
        }
        let seen = |n: i32| Seen { pid: n, resident: 4096 * n.unsigned_abs() as u64, tables: 8192 };
        for asked in [
            Asked::Used { guests: 1, sentry: u64::MAX },
            Asked::Count,
            Asked::Quiet,
            Asked::Over { used: 7, held: 3, seen: Vec::new() },
            Asked::Over { used: 7, held: 3, seen: (1..=3).map(seen).collect() },
        ] {
            assert_eq!(Asked::decode(&asked.encode()), Some(asked));
        }
        let many = Asked::Over { used: 7, held: 3, seen: (0..9999).map(seen).collect() };
        assert!(many.encode().len() <= MAX);
        assert_eq!(Told::decode(&[]), None);
        assert_eq!(Asked::decode(b"o123"), None);
    }
}
