//! Hands descriptors to guest processes.
//!
//! A process that is to map a file makes the doorbell call, which its filter turns into a notification; this
//! thread answers with the descriptor (ADDFD), so that it appears in that process alone, for the moment of the
//! mapping. Unlike a socket that every guest process would inherit, this leaves no descriptor in the guest and
//! needs no message structures in memory that guest threads can write. The waiting is done on a thread of its own,
//! because a process may die before it has asked, of which only the tracer hears.

use crate::hostcalls;
use parking_lot::Mutex;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// The descriptor on its way. The tracer injects one call at a time, so there is never a second one; but the doorbell of a
/// process that died in it may be heard when the next one's descriptor is there.
#[derive(Default)]
pub struct Fds {
    next: Arc<Mutex<Option<(i32, OwnedFd)>>>,
}

impl Fds {
    /// Serves a listener until every process under its filter is gone.
    pub fn serve(listener: OwnedFd) -> io::Result<Fds> {
        let fds = Fds::default();
        let next = fds.next.clone();
        std::thread::Builder::new().name("descriptors".into()).stack_size(128 * 1024).spawn(move || {
            loop {
                let notif = match hostcalls::notif_recv(listener.as_fd()) {
                    Ok(notif) => notif,
                    Err(error) if error.raw_os_error() == Some(libc::EINTR) => continue,
                    // Who rang was killed before it was heard.
                    Err(error)
                        if error.raw_os_error() == Some(libc::ENOENT)
                            && !hostcalls::hung_up(listener.as_fd()) =>
                    {
                        continue;
                    }
                    Err(_) => return,
                };
                let id = notif.id;
                let given = next.lock().take_if(|(tid, _)| *tid == notif.pid as i32);
                let error = match given.map(|(_, fd)| hostcalls::notif_give(listener.as_fd(), id, fd.as_fd()))
                {
                    Some(Ok(())) => continue,
                    Some(Err(error)) => error.raw_os_error().unwrap_or(libc::EIO),
                    None => libc::EBADF,
                };
                // A process that is dead by now needs no answer.
                let _ = hostcalls::notif_refuse(listener.as_fd(), id, error);
            }
        })?;
        Ok(fds)
    }

    /// The next doorbell of this thread is answered with this descriptor.
    pub fn offer(&self, tid: i32, fd: BorrowedFd<'_>) -> io::Result<()> {
        let copy = rustix::io::fcntl_dupfd_cloexec(fd, 3)?;
        *self.next.lock() = Some((tid, copy));
        Ok(())
    }

    /// The doorbell has been answered, or never will be.
    pub fn withdraw(&self) {
        self.next.lock().take();
    }
}
