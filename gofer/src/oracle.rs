//! Owner ids for an ordinary user's gofer.
//!
//! An ordinary user's user namespace maps one id, so in the gofer every other owner reads as the overflow id
//! (65534). The launcher stays in the initial user namespace, where fstat(2) tells the real ids, and answers for the
//! gofer: one packet with up to 253 `O_PATH` descriptors asks, one packet with 8 bytes for each (uid and gid, little
//! endian) answers. A gofer that is the attacker's learns nothing by it that the user cannot see with `ls -n`.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::io::Errno;

use crate::protocol::{Attr, Time};
use crate::wire::{MAX_FDS, recv_packet, send_packet};

/// What an id reads as that the namespace does not map (`/proc/sys/kernel/overflowuid`; both are 65534 unless the
/// administrator set something else, and then ids read as that).
const OVERFLOW: u32 = 65534;
/// Remembered owners; above this all are forgotten.
const REMEMBERED: usize = 32 * 1024;

/// Answers owner questions on `sock` until its other end closes. The launcher runs this on a thread of its own.
/// It calls recvmsg, fstat, close and sendto, nothing else.
pub fn serve_ids(sock: OwnedFd) {
    let mut buffer = [0u8; 16];
    let mut fds = Vec::new();
    loop {
        fds.clear();
        match recv_packet(&sock, &mut buffer, &mut fds) {
            Ok(length) if length > 0 => {}
            _ => return,
        }
        let answer: Vec<u8> = fds.iter().flat_map(|fd| owner_bytes(fd.as_fd())).collect();
        if send_packet(&sock, &answer, &[]).is_err() {
            return;
        }
    }
}

fn owner_bytes(fd: BorrowedFd<'_>) -> [u8; 8] {
    let (uid, gid) = rustix::fs::fstat(fd).map_or((OVERFLOW, OVERFLOW), |stat| (stat.st_uid, stat.st_gid));
    let mut bytes = [0; 8];
    let (low, high) = bytes.split_at_mut(4);
    low.copy_from_slice(&uid.to_le_bytes());
    high.copy_from_slice(&gid.to_le_bytes());
    bytes
}

/// An inode as it was at its last change: the key under which an owner stays true.
type Version = (u64, u64, Time);

/// The gofer's side: asks the launcher, and remembers.
pub(crate) struct Ids {
    socket: Mutex<OwnedFd>,
    known: Mutex<HashMap<Version, (u32, u32)>>,
}

impl Ids {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket: Mutex::new(socket), known: Mutex::new(HashMap::new()) }
    }

    /// Fills in the owner from memory.
    ///
    /// Returns false when the launcher must be asked.
    pub(crate) fn recall(&self, attr: &mut Attr) -> bool {
        if attr.uid != OVERFLOW && attr.gid != OVERFLOW {
            return true;
        }
        // A change of owner changes ctime, so a remembered owner is that of this very version.
        let Some((uid, gid)) = self.known.lock().get(&version(attr)).copied() else { return false };
        (attr.uid, attr.gid) = (uid, gid);
        true
    }

    /// Asks for the owners of these and fills them in. An owner that cannot be had stays the overflow id.
    pub(crate) fn ask(&self, questions: &mut [(BorrowedFd<'_>, &mut Attr)]) {
        for batch in questions.chunks_mut(MAX_FDS) {
            if self.ask_batch(batch).is_err() {
                return;
            }
        }
    }

    fn ask_batch(&self, batch: &mut [(BorrowedFd<'_>, &mut Attr)]) -> Result<(), Errno> {
        let fds: Vec<BorrowedFd<'_>> = batch.iter().map(|(fd, _)| *fd).collect();
        let mut buffer = vec![0u8; fds.len() * 8 + 1];
        let socket = self.socket.lock();
        send_packet(&*socket, &[0], &fds)?;
        let length = recv_packet(&*socket, &mut buffer, &mut Vec::new())?;
        drop(socket);
        let mut known = self.known.lock();
        if known.len() + batch.len() > REMEMBERED {
            known.clear();
        }
        let answers = buffer.get(..length).unwrap_or_default().chunks_exact(8);
        for ((_, attr), answer) in batch.iter_mut().zip(answers) {
            if let (Some(uid), Some(gid)) = (le32(answer.get(..4)), le32(answer.get(4..))) {
                (attr.uid, attr.gid) = (uid, gid);
                known.insert(version(attr), (uid, gid));
            }
        }
        Ok(())
    }
}

fn version(attr: &Attr) -> Version {
    (attr.dev, attr.ino, attr.ctime)
}

fn le32(bytes: Option<&[u8]>) -> Option<u32> {
    Some(u32::from_le_bytes(bytes?.try_into().ok()?))
}
