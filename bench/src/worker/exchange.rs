//! Ping-pong: a byte there and back between two processes, a word between two threads.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Measured, Place, batches};
use bench::host;

/// Two pipes between two processes.
pub fn pipe(place: &Place<'_>) -> Measured {
    let (there_read, there_write) = host::pipe()?;
    let (back_read, back_write) = host::pipe()?;
    let child = || echo(there_read.as_fd(), back_write.as_fd());
    // The child must not keep the end open whose closing tells it to leave.
    let mut there_write = Some(there_write);
    let pid = host::fork(|| {
        drop(there_write.take());
        child()
    })?;
    let Some(write_end) = there_write else { return Err(io::Error::other("no pipe")) };
    drop(there_read);
    drop(back_write);
    let result = ping(place, write_end.as_fd(), back_read.as_fd());
    drop(write_end);
    host::waitpid(pid)?;
    result
}

/// A unix stream between two processes.
pub fn unix(place: &Place<'_>) -> Measured {
    let (here, there) = host::socketpair()?;
    socket(place, here, there)
}

/// A TCP stream over loopback between two processes.
pub fn tcp(place: &Place<'_>) -> Measured {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let here = TcpStream::connect(listener.local_addr()?)?;
    let (there, _) = listener.accept()?;
    here.set_nodelay(true)?;
    there.set_nodelay(true)?;
    socket(place, here.into(), there.into())
}

fn socket(place: &Place<'_>, here: OwnedFd, there: OwnedFd) -> Measured {
    let mut here = Some(here);
    let pid = host::fork(|| {
        drop(here.take());
        echo(there.as_fd(), there.as_fd())
    })?;
    let Some(here) = here else { return Err(io::Error::other("no socket")) };
    drop(there);
    let result = ping(place, here.as_fd(), here.as_fd());
    drop(here);
    host::waitpid(pid)?;
    result
}

fn ping(place: &Place<'_>, write: BorrowedFd<'_>, read: BorrowedFd<'_>) -> Measured {
    batches(place.budget, |count| {
        for _ in 0..count {
            host::write(write, b"x")?;
            if host::read(read, &mut [0; 1])? == 0 {
                return Err(io::Error::other("the other side is gone"));
            }
        }
        Ok(())
    })
}

fn echo(read: BorrowedFd<'_>, write: BorrowedFd<'_>) -> i32 {
    let mut byte = [0; 1];
    while matches!(host::read(read, &mut byte), Ok(1)) {
        if host::write(write, &byte).is_err() {
            return 1;
        }
    }
    0
}

/// A futex word handed to and fro between two threads.
pub fn futex(place: &Place<'_>) -> Measured {
    const MINE: u32 = 0;
    const THEIRS: u32 = 1;
    const END: u32 = 2;
    let word = Arc::new(AtomicU32::new(MINE));
    let other = Arc::clone(&word);
    let partner = std::thread::spawn(move || {
        loop {
            match other.load(Ordering::Acquire) {
                MINE => host::futex_wait(&other, MINE),
                THEIRS => {
                    other.store(MINE, Ordering::Release);
                    host::futex_wake(&other);
                }
                _ => return,
            }
        }
    });
    let result = batches(place.budget, |count| {
        for _ in 0..count {
            word.store(THEIRS, Ordering::Release);
            host::futex_wake(&word);
            while word.load(Ordering::Acquire) == THEIRS {
                host::futex_wait(&word, THEIRS);
            }
        }
        Ok(())
    });
    word.store(END, Ordering::Release);
    host::futex_wake(&word);
    partner.join().map_err(|_| io::Error::other("the partner panicked"))?;
    result
}
