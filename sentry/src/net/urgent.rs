//! What is sent out of band (MSG_OOB, SO_OOBINLINE, SIOCATMARK): the urgent byte of TCP (tcp(7)), and that of AF_UNIX streams
//! (unix(7)), which keeps its place among the others and leaves a mark there when it was read by itself.

use super::control::Ancillary;
use super::socket::{Kind, MESSAGES, Message, Socket, State, Urgent, wait_until};
use super::transfer::Progress;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::signal;
use crate::wait::Ready;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

impl Socket {
    /// Sends the last byte out of band, and those before it as others. `progress`: as much was done when the call had to wait.
    pub(super) fn send_urgent(
        &self,
        cx: &mut Cx,
        data: &[u8],
        ancillary: &mut Ancillary,
        progress: Option<usize>,
        nonblocking: bool,
        flags: i32,
    ) -> SysResult<usize> {
        let unix = self.family == AF_UNIX;
        if self.kind != Kind::Stream || unix && data.is_empty() {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let Some((last, before)) = data.split_last() else { return Ok(0) };
        if !before.is_empty() && progress.is_none_or(|done| done < before.len()) {
            cx.state::<Progress>().0 = progress;
            let sent = self.send(cx, before, ancillary, None, nonblocking, flags & !MSG_OOB)?;
            if sent < before.len() {
                return Ok(sent);
            }
        }
        let target = self.target(None)?;
        let (over, wait, names_itself) = {
            let state = self.state.lock();
            (state.shut_write || state.ended, state.send_wait, state.passes_creds())
        };
        let Some(target) = target.filter(|_| !over) else { return self.broken(cx, before.len(), flags) };
        let (inline, buffer) = (target.option(SO_OOBINLINE), self.send_buffer());
        let sender = unix.then(|| super::control::sender(cx));
        let charge = self.charge_for(cx, &target, ancillary)?;
        let mut carries = false;
        cx.wait_on(&target.queue, Ready::OUT);
        let deferred = {
            let mut state = target.state.lock();
            if unix && state.eof {
                drop(state);
                return self.broken(cx, before.len(), flags);
            }
            if state.inbox.len() >= MESSAGES || unix && state.charged >= target.room(&state, buffer) {
                drop(state);
                return match (before.len(), nonblocking) {
                    (0, true) => Err(Errno::EAGAIN.into()),
                    (sent, true) => Ok(sent),
                    (sent, false) if sent > 0 && signal::deliver::pending(cx.task) => Ok(sent),
                    (sent, false) => {
                        cx.state::<Progress>().0 = Some(sent);
                        match wait_until(cx, wait) {
                            Err(Fail::Error(Errno::EAGAIN)) if sent > 0 => Ok(sent),
                            other => other,
                        }
                    }
                };
            }
            let mut message = Message { data: vec![*last], ..Message::default() };
            if unix {
                message.ancillary =
                    ancillary.part(cx, charge, sender.filter(|_| names_itself || state.passes_creds()));
                carries = !message.ancillary.rights.is_empty();
            }
            let at = if unix { u64::MAX } else { state.taken.saturating_add(state.bytes as u64) };
            if unix && let Some(before) = state.inbox.iter_mut().find(|message| message.urgent) {
                before.urgent = false;
            }
            if unix || inline {
                message.urgent = unix;
                state.inbox.push_back(message);
                state.bytes = state.bytes.saturating_add(1);
                state.charged = state.charged.saturating_add(1);
            }
            let inline = inline && !unix;
            state.urgent = Some(Urgent { at, byte: *last, inline, read: false });
            state.deferred.take()
        };
        if let Some(deferred) = deferred {
            target.undefer(deferred, true);
        }
        if carries {
            self.net.flight().carries(&target);
            self.net.flight().look(false);
        }
        let inline = if inline || unix { Ready::IN | Ready::RDNORM } else { Ready::empty() };
        target.queue.wake(Ready::PRI | inline);
        Ok(data.len())
    }

    /// Receives the urgent byte (MSG_OOB).
    ///
    /// # Errors
    /// EINVAL: none was sent, it was read, or SO_OOBINLINE is on. EOPNOTSUPP: it is no stream.
    pub fn receive_urgent(&self, buf: &mut [u8], flags: i32) -> SysResult<usize> {
        let unix = self.family == AF_UNIX;
        if self.kind != Kind::Stream {
            return Err(Errno::EOPNOTSUPP.into());
        }
        let peek = flags & MSG_PEEK != 0;
        let mut gone = None;
        {
            let mut state = self.state.lock();
            let inline = unix && state.options.get(&(SOL_SOCKET, SO_OOBINLINE)).is_some_and(|on| *on != 0);
            let urgent =
                state.urgent.as_mut().filter(|u| !u.read && !u.inline && !inline).ok_or(Errno::EINVAL)?;
            urgent.read |= !peek;
            if let Some(to) = buf.first_mut() {
                *to = urgent.byte;
            }
            if unix
                && !peek
                && let Some(at) = state.inbox.iter().position(|message| message.urgent)
            {
                state.bytes = state.bytes.saturating_sub(1);
                state.charged = state.charged.saturating_sub(1);
                if let Some(mark) = state.inbox.get_mut(at) {
                    (mark.urgent, mark.start) = (false, mark.data.len());
                    mark.ancillary.charge = None;
                    if !mark.ancillary.rights.is_empty() {
                        self.net.flight().took();
                    }
                    gone = Some((std::mem::take(&mut mark.ancillary), None));
                }
                // One mark is enough at a place.
                let before =
                    at.checked_sub(1).filter(|at| state.inbox.get(*at).is_some_and(Message::is_mark));
                if let (Some(at), Some((_, mark))) = (before, &mut gone) {
                    *mark = state.inbox.remove(at);
                }
            }
        }
        drop(gone);
        if unix && !peek {
            self.queue.wake(Ready::ROOM);
            self.wake_peer(Ready::ROOM);
        }
        Ok(buf.len().min(1))
    }

    /// Whether the next byte to read is the one that was sent out of band (SIOCATMARK).
    ///
    /// # Errors
    /// EOPNOTSUPP.
    pub fn at_mark(&self) -> SysResult<bool> {
        let state = self.state.lock();
        match (self.family, self.kind) {
            (AF_UNIX, Kind::Stream) => Ok(state.inbox.front().is_some_and(|first| {
                let next = || state.inbox.get(1).is_some_and(|next| next.urgent);
                first.urgent || first.is_mark() && (!state.is_pressed() || next())
            })),
            (_, Kind::Stream) => Ok(state.urgent.as_ref().is_some_and(|u| u.at == state.taken)),
            _ => Err(Errno::EOPNOTSUPP.into()),
        }
    }
}

impl Message {
    /// What is left where an urgent byte was.
    fn is_mark(&self) -> bool {
        self.start >= self.data.len()
    }
}

impl State {
    /// There is an urgent byte that nobody read.
    fn is_pressed(&self) -> bool {
        self.urgent.as_ref().is_some_and(|urgent| !urgent.read)
    }

    /// A read that begins with this message ends before all that there is: at an urgent byte, or where one was.
    pub(super) fn ends_at_mark(&self, first: usize) -> bool {
        let ends = |message: &Message| message.urgent || message.is_mark() && !self.is_pressed();
        self.inbox.iter().skip(first.saturating_add(1)).any(ends)
    }

    /// Where a stream of AF_UNIX is read on when it has come to a message: past marks, and past an urgent byte that is not `inline`,
    /// which is lost then unless this is a `peek`. None: what was `copied` up to here ends here. What is dropped is left in `emptied`.
    pub(super) fn past_mark(
        &mut self,
        index: usize,
        copied: bool,
        (peek, inline): (bool, bool),
        emptied: &mut Vec<Message>,
    ) -> Option<usize> {
        let mut index = index;
        if self.inbox.get(index).is_some_and(Message::is_mark) {
            if copied && !self.is_pressed() {
                return None;
            }
            match peek {
                true => index = index.saturating_add(1),
                false => emptied.extend(self.inbox.remove(index)),
            }
        }
        if !self.inbox.get(index).is_some_and(|message| message.urgent) {
            return Some(index);
        }
        match (copied, peek, inline) {
            (true, ..) => return None,
            (_, true, true) => {}
            (_, true, false) => index = index.saturating_add(1),
            (_, false, _) => {
                if let Some(urgent) = &mut self.urgent {
                    urgent.read = true;
                }
                if inline {
                    if let Some(message) = self.inbox.get_mut(index) {
                        message.urgent = false;
                    }
                } else {
                    emptied.extend(self.inbox.remove(index));
                    self.bytes = self.bytes.saturating_sub(1);
                    self.charged = self.charged.saturating_sub(1);
                }
            }
        }
        Some(index)
    }
}
