//! What launcher and sentry say to each other: single packets on a seqpacket socket.

use confine::host::Arrived;
use rustix::net::{RecvFlags, SendFlags};
use std::os::fd::AsFd;

/// A packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// To the sentry: the launcher got a signal.
    Signal(Arrived),
    /// To the sentry: whether the launcher is in its terminal's foreground group.
    Foreground(bool),
    /// To the sentry: it is to say [`Message::Heard`].
    Ask,
    /// To the launcher: a signal was passed on, or it was asked.
    Heard,
    /// To the launcher: a program wants the terminal; [`Message::Foreground`] is the answer.
    Terminal,
    /// To the launcher: the run could not begin; the exit status and a line for standard error.
    Failed(u8, String),
    /// To the launcher: job control stopped the program with this signal.
    Stopped(i32),
    /// To the launcher: lines for standard error.
    Lines(String),
    /// To the sentry: the first program is to be killed.
    End,
    /// To the launcher: the checkpoint of this number is whole.
    Kept(u8),
    /// To the sentry: whether the last checkpoint counts from now on.
    Counts(bool),
    /// To the launcher: the archives that were asked for are written.
    Written,
    /// To the launcher: the program exited.
    Exited(u8),
    /// To the launcher: a signal killed the program.
    Killed(i32),
}

/// Longest packet.
const MAX: usize = 8192;

impl Message {
    fn encode(&self) -> Vec<u8> {
        let with = |tag: u8, rest: &[u8]| [&[tag], rest].concat();
        match self {
            Message::Signal(Arrived { signal, from_kernel }) => {
                with(b's', &[&signal.to_le_bytes()[..], &[u8::from(*from_kernel)]].concat())
            }
            Message::Foreground(yes) => with(b'g', &[u8::from(*yes)]),
            Message::Ask => with(b'a', &[]),
            Message::Heard => with(b'h', &[]),
            Message::End => with(b'x', &[]),
            Message::Written => with(b'd', &[]),
            Message::Kept(n) => with(b'c', &[*n]),
            Message::Counts(yes) => with(b'p', &[u8::from(*yes)]),
            Message::Terminal => with(b'w', &[]),
            Message::Failed(code, text) => with(b'f', &[&[*code], text.as_bytes()].concat()),
            Message::Stopped(n) => with(b't', &n.to_le_bytes()),
            Message::Lines(text) => with(b'l', text.as_bytes()),
            Message::Exited(code) => with(b'e', &[*code]),
            Message::Killed(n) => with(b'k', &n.to_le_bytes()),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Message> {
        let (tag, rest) = bytes.split_first()?;
        let number = || rest.first_chunk::<4>().map(|n| i32::from_le_bytes(*n));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match tag {
            b's' => {
                let from_kernel = *rest.get(4)? != 0;
                number().map(|signal| Message::Signal(Arrived { signal, from_kernel }))
            }
            b'g' => rest.first().map(|yes| Message::Foreground(*yes != 0)),
            b'a' => Some(Message::Ask),
            b'h' => Some(Message::Heard),
            b'x' => Some(Message::End),
            b'd' => Some(Message::Written),
            b'c' => rest.first().map(|n| Message::Kept(*n)),
            b'p' => rest.first().map(|yes| Message::Counts(*yes != 0)),
            b'w' => Some(Message::Terminal),
            b'f' => rest.split_first().map(|(code, rest)| Message::Failed(*code, text(rest))),
            b't' => number().map(Message::Stopped),
            b'l' => Some(Message::Lines(text(rest))),
            b'e' => rest.first().map(|code| Message::Exited(*code)),
            b'k' => number().map(Message::Killed),
            _ => None,
        }
    }

    /// Sends it. A receiver that is gone is found out by its end.
    pub fn send(&self, socket: impl AsFd) {
        let mut bytes = self.encode();
        bytes.truncate(MAX);
        let _ = rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL);
    }

    /// The next one; `None` at the end of the socket. Packets that say nothing known are passed over.
    pub fn receive(socket: impl AsFd) -> Option<Message> {
        let mut buffer = [0; MAX];
        loop {
            let length = match rustix::net::recv(socket.as_fd(), &mut buffer[..], RecvFlags::empty()) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) | Ok((0, _)) => return None,
                Ok((length, _)) => length,
            };
            if let Some(message) = buffer.get(..length).and_then(Message::decode) {
                return Some(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Message::*;

    #[test]
    fn packets_come_back_as_they_went() {
        for message in [
            Signal(super::Arrived { signal: 2, from_kernel: true }),
            Foreground(true),
            Ask,
            Heard,
            End,
            Written,
            Kept(1),
            Counts(true),
            Terminal,
            Failed(127, "x: no".into()),
            Stopped(20),
            Lines("a\nb".into()),
            Exited(3),
            Killed(9),
        ] {
            assert_eq!(super::Message::decode(&message.encode()), Some(message));
        }
        assert_eq!(super::Message::decode(&[]), None);
        assert_eq!(super::Message::decode(b"s1"), None);
    }
}
