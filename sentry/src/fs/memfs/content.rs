//! Contents of a regular file: the lower's, bytes in memory, or a memfd.

use super::MemFs;
use crate::fail::SysResult;
use crate::fs::memory;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use syscall_table::abi::fcntl::{
    F_SEAL_EXEC, F_SEAL_FUTURE_WRITE, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_WRITE,
};
use syscall_table::errno::Errno;

/// Larger files live in a memfd, where holes and growth are the host's business.
const IN_MEMORY: u64 = 512 * 1024;
/// Most bytes of a lower file that are copied for a shared mapping, before anybody writes to it.
const MIRRORED: u64 = 1024 * 1024;
/// Bytes copied at once.
const CHUNK: usize = 256 * 1024;

/// Where the bytes are.
pub(crate) enum Bytes {
    /// Still the lower's.
    Lower,
    /// Here.
    Memory(Vec<u8>),
    /// In a host memfd: once mapped, or large.
    Fd(Arc<OwnedFd>, u64),
}

/// A memfd with the lower's bytes.
pub(crate) struct Mirror {
    both: Arc<OwnedFd>,
    read_only: Arc<OwnedFd>,
    size: u64,
}

/// Contents of a regular file.
pub struct Content {
    pub(crate) bytes: Bytes,
    /// Seals of memfd_create(2). Those against writing are the memfd's own too, if there is one.
    pub(crate) seals: i32,
    /// The memfd, for those who may only read.
    read_only: Option<Arc<OwnedFd>>,
    charged: u64,
    /// While the lower's: the same bytes, for mappings that must show what is written later.
    mirror: Option<Mirror>,
    /// In the file system's list of memfds that may become bytes again.
    listed: bool,
    /// Mapped for writing since [`Content::take_mapped`].
    written: bool,
}

impl Content {
    pub(crate) fn lower() -> Content {
        Content {
            bytes: Bytes::Lower,
            seals: F_SEAL_SEAL,
            read_only: None,
            charged: 0,
            mirror: None,
            listed: false,
            written: false,
        }
    }

    pub(crate) fn empty() -> Content {
        Content {
            bytes: Bytes::Memory(Vec::new()),
            seals: F_SEAL_SEAL,
            read_only: None,
            charged: 0,
            mirror: None,
            listed: false,
            written: false,
        }
    }

    pub(crate) fn is_lower(&self) -> bool {
        matches!(self.bytes, Bytes::Lower)
    }

    /// Bytes charged to the file system.
    pub(crate) fn charged(&self) -> u64 {
        self.charged
    }

    /// None while the lower's.
    pub(crate) fn size(&self) -> Option<u64> {
        match &self.bytes {
            Bytes::Lower => None,
            Bytes::Memory(bytes) => Some(bytes.len() as u64),
            Bytes::Fd(_, size) => Some(*size),
        }
    }

    /// 512-byte blocks that it takes.
    pub(crate) fn blocks(&self) -> u64 {
        match &self.bytes {
            Bytes::Lower => 0,
            Bytes::Memory(bytes) => (bytes.len() as u64).div_ceil(4096).saturating_mul(8),
            // Holes are the host's business.
            Bytes::Fd(fd, size) => match rustix::fs::fstat(fd) {
                Ok(stat) => u64::try_from(stat.st_blocks).unwrap_or(0),
                Err(_) => size.div_ceil(4096).saturating_mul(8),
            },
        }
    }

    /// The mirror becomes the contents, if there is one.
    pub(crate) fn take_mirror(&mut self) -> bool {
        let Some(mirror) = self.mirror.take() else { return false };
        self.read_only = Some(mirror.read_only);
        self.bytes = Bytes::Fd(mirror.both, mirror.size);
        true
    }

    /// Takes the bytes of `lower`, of which there are `size`.
    pub(crate) fn copy_up(&mut self, fs: &MemFs, lower: &OwnedFd, size: u64) -> SysResult<()> {
        if self.take_mirror() {
            return Ok(());
        }
        fs.charge(size)?;
        let copied = if size <= IN_MEMORY {
            Bytes::Memory(read_all(lower, size)?)
        } else {
            let memory = memory::new()?;
            let fd = memory.both;
            self.read_only = Some(memory.read_only);
            let mut chunk = vec![0; CHUNK];
            let mut at = 0u64;
            loop {
                let count = rustix::io::pread(lower, &mut chunk, at)?;
                if count == 0 {
                    break;
                }
                write_all(&fd, chunk.get(..count).unwrap_or_default(), at)?;
                at = at.saturating_add(count as u64);
            }
            Bytes::Fd(fd, at)
        };
        self.bytes = copied;
        self.charged = size;
        Ok(())
    }

    /// What a shared mapping of the lower's bytes maps, so that it shows what is written later. None if they are too many, or
    /// no longer the lower's.
    pub(crate) fn mirrored(&mut self, fs: &MemFs, lower: &OwnedFd, size: u64) -> Option<Arc<OwnedFd>> {
        if !self.is_lower() || size > MIRRORED {
            return None;
        }
        if self.mirror.is_none() {
            fs.charge(size).ok()?;
            let made = (|| {
                let memory = memory::new()?;
                write_all(&memory.both, &read_all(lower, size)?, 0)?;
                SysResult::Ok(memory)
            })();
            let Ok(memory) = made else {
                fs.release(size);
                return None;
            };
            self.charged = size;
            self.mirror = Some(Mirror { both: memory.both, read_only: memory.read_only, size });
        }
        self.mirror.as_ref().map(|mirror| mirror.read_only.clone())
    }

    /// The memfd, made from the bytes in memory if need be. None while the lower's.
    pub(crate) fn host(&mut self) -> SysResult<Option<Arc<OwnedFd>>> {
        match &self.bytes {
            Bytes::Lower => Ok(None),
            Bytes::Fd(fd, _) => Ok(Some(fd.clone())),
            Bytes::Memory(bytes) => {
                let memory = memory::new()?;
                let fd = memory.both;
                write_all(&fd, bytes, 0)?;
                seal(&fd, self.seals)?;
                self.bytes = Bytes::Fd(fd.clone(), bytes.len() as u64);
                self.read_only = Some(memory.read_only);
                Ok(Some(fd))
            }
        }
    }

    /// Whether it is a memfd that [`Content::rest`] may end and that nobody has listed for it. It counts as listed then.
    pub(crate) fn lists(&mut self) -> bool {
        let small = self.mirror.is_some() || matches!(&self.bytes, Bytes::Fd(_, size) if *size <= IN_MEMORY);
        small && self.seals == F_SEAL_SEAL && !std::mem::replace(&mut self.listed, true)
    }

    /// Makes bytes of a small memfd that nobody maps or uses any more: descriptors are few. True if it stays a memfd.
    pub(crate) fn rest(&mut self, fs: &MemFs) -> bool {
        if let Some(mirror) = &self.mirror {
            if Arc::strong_count(&mirror.read_only) > 1 {
                return true;
            }
            self.mirror = None;
            fs.release(std::mem::take(&mut self.charged));
            self.listed = false;
            return false;
        }
        let (Bytes::Fd(fd, size), seals) = (&self.bytes, self.seals) else {
            self.listed = false;
            return false;
        };
        // Areas of memory hold what they map.
        let used =
            Arc::strong_count(fd) > 1 || self.read_only.as_ref().is_some_and(|fd| Arc::strong_count(fd) > 1);
        if used && *size <= IN_MEMORY {
            return true;
        }
        if *size <= IN_MEMORY && seals == F_SEAL_SEAL {
            let Ok(bytes) = read_all(fd, *size) else { return true };
            self.bytes = Bytes::Memory(bytes);
            self.read_only = None;
        }
        self.listed = false;
        false
    }

    /// What to map: the memfd with no more rights than asked. None while the lower's.
    pub(crate) fn mapped(&mut self, write: bool) -> SysResult<Option<Arc<OwnedFd>>> {
        let both = self.host()?;
        if write && self.seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) == 0 {
            self.written = both.is_some();
            return Ok(both);
        }
        Ok(both.and(self.read_only.clone()))
    }

    /// Whether those who map it may have changed it since this was asked before: they do so without a call.
    pub(crate) fn take_mapped(&mut self) -> bool {
        let mapped = matches!(&self.bytes, Bytes::Fd(fd, _) if Arc::strong_count(fd) > 1);
        // The last of them may have gone meanwhile.
        mapped || std::mem::take(&mut self.written)
    }

    /// F_ADD_SEALS; `executable`: any execute bit is set.
    pub(crate) fn add_seals(&mut self, mut seals: i32, executable: bool) -> SysResult<()> {
        self.sealed(F_SEAL_SEAL)?;
        if seals & F_SEAL_EXEC != 0 && executable {
            // What stays executable stays as it is (memfd_create(2)).
            seals |= F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;
        }
        if let Bytes::Fd(fd, _) = &self.bytes {
            seal(fd, seals & !self.seals)?;
        }
        self.seals |= seals;
        Ok(())
    }

    fn sealed(&self, seals: i32) -> SysResult<()> {
        if self.seals & seals != 0 { Err(Errno::EPERM.into()) } else { Ok(()) }
    }

    /// Writes; the contents are no longer the lower's.
    pub(crate) fn write(&mut self, fs: &MemFs, data: &[u8], offset: u64) -> SysResult<usize> {
        self.sealed(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)?;
        let end =
            offset.checked_add(data.len() as u64).filter(|e| *e <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let size = self.size().ok_or(Errno::EIO)?;
        if end > size {
            self.sealed(F_SEAL_GROW)?;
        }
        if end > IN_MEMORY {
            self.host()?;
        }
        // Overwriting is charged again until as much is charged as the file is long: holes cost nothing, twice is too much.
        let more = end.max(size).saturating_sub(self.charged).min(data.len() as u64);
        if let Err(fail) = fs.charge(more) {
            // What fits, in whole pages.
            let half = (data.len() / 2) & !0xfff;
            let part = data.get(..half).filter(|part| !part.is_empty()).ok_or(fail)?;
            return self.write(fs, part, offset);
        }
        self.charged = self.charged.saturating_add(more);
        match &mut self.bytes {
            Bytes::Lower => Err(Errno::EIO.into()),
            Bytes::Memory(bytes) => {
                let (start, end) = (
                    usize::try_from(offset).map_err(|_| Errno::EFBIG)?,
                    usize::try_from(end).map_err(|_| Errno::EFBIG)?,
                );
                if start == bytes.len() {
                    bytes.extend_from_slice(data);
                } else {
                    if bytes.len() < end {
                        bytes.resize(end, 0);
                    }
                    bytes.get_mut(start..end).ok_or(Errno::EIO)?.copy_from_slice(data);
                }
                Ok(data.len())
            }
            Bytes::Fd(fd, size) => {
                let count = rustix::io::pwrite(&*fd, data, offset)?;
                *size = (*size).max(offset.saturating_add(count as u64));
                Ok(count)
            }
        }
    }

    /// Sets the size; the contents are no longer the lower's.
    pub(crate) fn truncate(&mut self, fs: &MemFs, to: u64) -> SysResult<()> {
        let size = self.size().ok_or(Errno::EIO)?;
        if to > i64::MAX as u64 {
            return Err(Errno::EINVAL.into());
        }
        if to > size {
            self.sealed(F_SEAL_GROW)?;
        }
        if to < size {
            self.sealed(F_SEAL_SHRINK)?;
        }
        if to > IN_MEMORY {
            self.host()?;
        }
        match &mut self.bytes {
            Bytes::Lower => return Err(Errno::EIO.into()),
            Bytes::Memory(bytes) => {
                bytes.resize(usize::try_from(to).map_err(|_| Errno::EFBIG)?, 0);
                if to == 0 {
                    *bytes = Vec::new();
                }
            }
            Bytes::Fd(fd, size) => {
                rustix::fs::ftruncate(&*fd, to)?;
                *size = to;
            }
        }
        if self.charged > to {
            fs.release(self.charged.saturating_sub(to));
            self.charged = to;
        }
        Ok(())
    }

    /// fallocate(2) by the host's memfd.
    pub(crate) fn fallocate(&mut self, fs: &MemFs, mode: i32, offset: u64, len: u64) -> SysResult<()> {
        let fd = self.host()?.ok_or(Errno::EIO)?;
        let end = offset.checked_add(len).filter(|e| *e <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let before = self.size().unwrap_or(0);
        if end > before && mode & 1 == 0 {
            self.sealed(F_SEAL_GROW)?;
        }
        if mode & !1 != 0 {
            self.sealed(F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)?;
        } else {
            let more = end.saturating_sub(self.charged).min(len);
            fs.charge(more)?;
            self.charged = self.charged.saturating_add(more);
        }
        let flags = rustix::fs::FallocateFlags::from_bits_retain(mode.cast_unsigned());
        rustix::fs::fallocate(&*fd, flags, offset, len)?;
        let size = u64::try_from(rustix::fs::fstat(&*fd)?.st_size).unwrap_or(0);
        self.bytes = Bytes::Fd(fd, size);
        Ok(())
    }
}

/// Gives a memfd the seals against writing: the host knows which mappings are in the way (EBUSY).
fn seal(fd: &OwnedFd, seals: i32) -> SysResult<()> {
    let seals = seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
    if seals != 0 {
        let seals = rustix::fs::SealFlags::from_bits_retain(seals.cast_unsigned());
        rustix::fs::fcntl_add_seals(fd, seals)?;
    }
    Ok(())
}

/// The first `size` bytes, or fewer if there are not so many.
fn read_all(fd: &OwnedFd, size: u64) -> SysResult<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| Errno::EFBIG)?];
    let mut done = 0;
    while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(fd, rest, done as u64)? {
            0 => break,
            count => done = done.saturating_add(count),
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

fn write_all(fd: impl AsFd, mut data: &[u8], mut at: u64) -> SysResult<()> {
    while !data.is_empty() {
        let count = rustix::io::pwrite(fd.as_fd(), data, at)?;
        if count == 0 {
            return Err(Errno::ENOSPC.into());
        }
        data = data.get(count..).unwrap_or_default();
        at = at.saturating_add(count as u64);
    }
    Ok(())
}
