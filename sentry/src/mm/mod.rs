//! Address spaces: what is mapped where. The pages themselves are the host's business (see the platform).
//!
//! - [`area`]: one area; [`layout`]: all of them, and the choice of addresses.
//! - This file: changes of a space, each a host call through the task's port and the record of it.
//!
//! The host merges and splits its own areas by its own rules; the records only need to be right about what is mapped
//! where, with which rights, from what.

mod across;
pub mod area;
mod flight;
mod force;
pub mod layout;
pub(crate) mod limits;
mod lock;
mod refuse;
mod resident;
mod seal;
mod twice;

use crate::fail::SysResult;
use crate::ipc::sysv::shm::Attachment;
use crate::sync::{Guard, Level, Lock};
use crate::vfs::file::{File, Mapping};
use area::{Area, Backing};
use flight::Undo;
pub use layout::{Fills, Layout, Marks, PAGE, round_up};
use platform::{CallError, NewTask, Port, Space};
use rustix::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// vm.mmap_min_addr
const LOW: u64 = 0x1_0000;
/// One past the highest address that user memory may have (TASK_SIZE).
const USER_END: u64 = 0x7fff_ffff_f000;
/// vm.max_map_count
const MAX_AREAS: usize = 65530;

/// One guest address space.
pub struct Mm {
    /// Its host side.
    pub space: Arc<dyn Space>,
    /// Areas, break, accounting. Held across the host calls that change the space.
    pub layout: Lock<Layout>,
    /// Unique in the sandbox.
    pub id: u64,
    room: limits::Room,
    /// A task in it is or was traced: the platform leaves its code alone.
    pub(crate) watched: std::sync::atomic::AtomicBool,
    /// What code the platform had replaced before is put back.
    pub(crate) plain: std::sync::atomic::AtomicBool,
    /// PR_SET_MDWE.
    pub(crate) mdwe: std::sync::atomic::AtomicU32,
    /// What membarrier(2) registered.
    pub(crate) barriers: std::sync::atomic::AtomicI32,
    /// Contexts of io_setup(2).
    pub aio: crate::ipc::aio::Contexts,
}

/// What to map.
pub struct Request<'a> {
    /// The wish, or the order with MAP_FIXED.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// PROT_READ, PROT_WRITE, PROT_EXEC.
    pub prot: i32,
    /// MAP_ flags.
    pub flags: i32,
    /// What to map, None for anonymous memory.
    pub source: Option<Source<'a>>,
    /// `[heap]`, `[stack]` or empty.
    pub name: &'static str,
    /// The segment that `source` is of.
    pub attached: Option<Attachment>,
}

/// A host descriptor to map.
pub struct Source<'a> {
    /// The descriptor.
    pub fd: Arc<OwnedFd>,
    /// The guest's description.
    pub file: Option<&'a Arc<File>>,
    /// Offset in bytes.
    pub offset: u64,
}

/// What a futex word is known by in all spaces that share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// In private memory: space and address.
    Private(u64, u64),
    /// In shared memory: device, inode, offset.
    Shared(u64, u64, u64),
}

static NEXT_ID: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

fn random(below: u64) -> u64 {
    u64::from_ne_bytes(crate::random::bytes()) % below.max(1)
}

impl Mm {
    /// An empty space.
    pub fn new(space: Arc<dyn Space>) -> Arc<Mm> {
        let high = space.reserved().iter().map(|r| r.start).filter(|s| *s > 1 << 32).min();
        let high = high.unwrap_or(0x7fff_ffff_f000) & !(PAGE - 1);
        let layout = Layout { low: LOW, high, base: high, ..Layout::default() };
        Self::with(space, layout)
    }

    fn with(space: Arc<dyn Space>, layout: Layout) -> Arc<Mm> {
        let id = NEXT_ID.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let room = limits::Room::default();
        Arc::new(Mm {
            space,
            layout: Lock::new(Level::Mm, layout),
            id,
            room,
            watched: Default::default(),
            plain: Default::default(),
            barriers: Default::default(),
            mdwe: Default::default(),
            aio: Default::default(),
        })
    }

    /// An empty record for a task that has left this space.
    pub(crate) fn gone(of: &Arc<Mm>) -> Arc<Mm> {
        Mm::new(of.space.clone())
    }

    /// Copies the space: `host` makes the host's copy, and no mapping changes meanwhile.
    ///
    /// # Errors
    /// What `host` fails with.
    pub fn fork(
        &self,
        port: &mut dyn Port,
        host: impl FnOnce(&mut dyn Port) -> Result<NewTask, CallError>,
    ) -> SysResult<(Arc<Mm>, NewTask)> {
        let (current, ..) = self.quiet(port, |_| Ok((0, u64::MAX)))?;
        let new = host(port)?;
        let mut layout = current.clone();
        drop(current);
        layout.flights.clear();
        layout.lock_future = None;
        let (mut total, mut data) = (layout.total, layout.data);
        let mut sealed = false;
        layout.areas.retain(|start, area| {
            area.locked = None;
            sealed |= area.sealed && !area.dont_fork;
            if area.dont_fork {
                let len = area.end.saturating_sub(*start);
                total = total.saturating_sub(len);
                data = data.saturating_sub(if area.is_data() { len } else { 0 });
            }
            !area.dont_fork
        });
        layout.total = total;
        layout.data = data;
        let copy = Self::with(new.space.clone(), layout);
        copy.inherit_mdwe(self);
        if sealed {
            copy.space.ask_advice();
        }
        copy.barriers.store(self.barriers.load(Relaxed), Relaxed);
        Ok((copy, new))
    }

    /// Calls `f` with the protection of a range, which does not change meanwhile; not if it is not the private and
    /// read-only code of one area.
    pub(crate) fn code(&self, addr: u64, len: u64, f: &mut dyn FnMut(i32)) {
        let mut layout = self.layout.lock();
        self.land(&mut layout);
        let end = addr.saturating_add(len);
        if layout.flights.iter().any(|flight| flight.start < end && addr < flight.end) {
            // The records are ahead of what is there.
            return;
        }
        let Some((_, area)) = layout.find(addr) else { return };
        let whole = end <= area.end;
        let prot = area.prot;
        if whole && !area.shared && prot & PROT_EXEC != 0 && prot & PROT_WRITE == 0 {
            f(prot);
        }
    }

    /// Where the stack is; mappings go below it. The whole range is mapped at once, without reserving memory: it
    /// costs only what is touched. `anywhere`: the distance is random.
    pub fn set_stack(&self, start: u64, end: u64, anywhere: bool) {
        let mut layout = self.layout.lock();
        layout.stack = (start, end);
        // Room to grow when the limit is raised, and some more at random (mmap_base: at least 128 MiB).
        let gap = end.saturating_sub(start).max(128 << 20);
        layout.base = end.saturating_sub(gap).saturating_sub(1 << 20).saturating_sub(if anywhere {
            random(1 << 16) * PAGE
        } else {
            0
        });
    }

    /// Where the heap begins.
    pub fn set_brk(&self, start: u64) {
        let mut layout = self.layout.lock();
        layout.brk_start = start;
        layout.brk = start;
    }

    /// Where the stack's contents, arguments and environment lie: start of each, end.
    pub fn set_args(&self, stack: u64, args: u64, env: u64, end: u64) {
        let marks = &mut self.layout.lock().marks;
        marks[4] = stack;
        marks[7..].copy_from_slice(&[args, env, env, end]);
    }

    /// Where code and initialised data lie.
    pub fn set_image(&self, code: (u64, u64), data: (u64, u64)) {
        self.layout.lock().marks[..4].copy_from_slice(&[code.0, code.1, data.0, data.1]);
    }

    /// A free range below the stack, not mapped yet.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn choose(&self, len: u64) -> SysResult<u64> {
        let len = round_up(len).ok_or(Errno::ENOMEM)?;
        self.layout.lock().choose(0, len, false, false).ok_or(Errno::ENOMEM.into())
    }

    /// Maps at exactly this address, over what is there. `file`: with the offset in bytes.
    ///
    /// # Errors
    /// The file's or the host's.
    pub fn map_fixed(
        &self,
        port: &mut dyn Port,
        addr: u64,
        len: u64,
        prot: i32,
        flags: i32,
        file: Option<(&Arc<File>, u64)>,
    ) -> SysResult<()> {
        let name = if addr == self.layout.lock().stack.0 { "[stack]" } else { "" };
        let source = match file {
            None => None,
            // The loader may map what it may execute, readable or not.
            Some((file, offset)) => match file.ops.mmap(file, prot, flags)? {
                Mapping::Host(fd) => Some(Source { fd, file: Some(file), offset }),
                Mapping::Anonymous => None,
            },
        };
        self.map(port, &Request { addr, len, prot, flags: flags | MAP_FIXED, source, name, attached: None })
            .map(|_| ())
    }

    fn place(&self, layout: &Layout, request: &Request<'_>, len: u64) -> SysResult<u64> {
        let fixed = request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0;
        if !fixed {
            let anonymous = request.source.is_none();
            let below_2g = request.flags & MAP_32BIT != 0;
            return layout.choose(request.addr, len, below_2g, anonymous).ok_or(Errno::ENOMEM.into());
        }
        if request.addr & (PAGE - 1) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let end = request.addr.checked_add(len).ok_or(Errno::ENOMEM)?;
        if end > layout.high {
            return Err(Errno::ENOMEM.into());
        }
        if request.addr < layout.low {
            // As for a process without CAP_SYS_RAWIO (vm.mmap_min_addr).
            return Err(Errno::EPERM.into());
        }
        if request.flags & MAP_FIXED_NOREPLACE != 0 && layout.overlaps(request.addr, end) {
            return Err(Errno::EEXIST.into());
        }
        Ok(request.addr)
    }

    /// mmap(2) with arguments already checked against the file. Returns the address.
    ///
    /// # Errors
    /// EINVAL, ENOMEM, EEXIST, EPERM, and what the host answers.
    pub fn map(&self, port: &mut dyn Port, request: &Request<'_>) -> SysResult<u64> {
        if request.len == 0 {
            return Err(Errno::EINVAL.into());
        }
        self.may_execute(request.prot, true)?;
        let len = round_up(request.len).ok_or(Errno::ENOMEM)?;
        let shared = request.flags & MAP_TYPE != MAP_PRIVATE;
        let accounted = if shared { request.source.is_none() } else { request.prot & PROT_WRITE != 0 };
        if accounted && request.flags & MAP_NORESERVE == 0 && crate::memory::obviously_too_much(len) {
            return Err(Errno::ENOMEM.into());
        }
        let memfd = if shared && request.source.is_none() { Some(shared_memory(len)?) } else { None };
        let (mut layout, addr, _) = self.quiet(port, |layout| {
            if layout.count() >= MAX_AREAS {
                return Err(Errno::ENOMEM.into());
            }
            let addr = self.place(layout, request, len)?;
            Ok((addr, addr.saturating_add(len)))
        })?;
        layout.unsealed(addr, addr.saturating_add(len))?;
        let grows = request.flags & MAP_GROWSDOWN != 0 && !shared;
        let data = !shared && !grows && request.prot & PROT_WRITE != 0;
        self.may_map(&layout, addr, addr.saturating_add(len), data)?;
        let kind = if shared { MAP_SHARED } else { MAP_PRIVATE };
        let mut flags = kind | request.flags & (MAP_NORESERVE | MAP_POPULATE);
        // MAP_LOCKED does not undo MCL_ONFAULT.
        let locked = match layout.lock_future {
            None if request.flags & MAP_LOCKED != 0 => Some(Fills::Now),
            future => future,
        };
        if locked.is_some() {
            self.space.ask_advice();
        }
        if locked == Some(Fills::Now) {
            flags |= MAP_POPULATE;
        }
        // Linux maps what it cannot populate, too.
        if flags & MAP_POPULATE != 0 && !crate::memory::room_for(len) {
            flags &= !MAP_POPULATE;
        }
        let (fd, file, offset) = match (&request.source, memfd) {
            (Some(s), _) => (Some(s.fd.clone()), s.file.cloned(), s.offset),
            (None, Some(memfd)) => (Some(memfd), None, 0),
            (None, None) => {
                flags |= MAP_ANONYMOUS | request.flags & MAP_STACK;
                (None, None, 0)
            }
        };
        port.mmap(addr, len, request.prot, flags, fd.as_ref().map(|fd| (fd, offset)))?;
        let backing = match fd {
            None => Backing::Anonymous,
            Some(fd) => {
                let id = if shared { identity(&fd) } else { (0, 0) };
                Backing::Host { fd, file, offset, id }
            }
        };
        let end = addr + len;
        let old = layout.remove(addr, end);
        let (prot, name, attached) = (request.prot, request.name, request.attached.clone());
        let area = Area {
            end,
            prot,
            shared,
            dont_fork: false,
            dont_dump: false,
            locked,
            sealed: false,
            grows,
            backing,
            name,
            label: None,
            attached,
        };
        layout.insert(addr, area);
        Self::depart(&mut layout, port, addr, end, Undo::Unmap);
        drop(layout);
        drop(old);
        Ok(addr)
    }

    /// munmap(2).
    ///
    /// # Errors
    /// EINVAL, ENOMEM.
    pub fn unmap(&self, port: &mut dyn Port, addr: u64, len: u64) -> SysResult<()> {
        let range = |layout: &Layout| Ok((addr, self.range(layout, addr, len)?));
        let (mut layout, _, end) = self.quiet(port, range)?;
        if !layout.overlaps(addr, end) {
            return Ok(());
        }
        layout.unsealed(addr, end)?;
        port.munmap(addr, end - addr)?;
        let old = layout.remove(addr, end);
        Self::depart(&mut layout, port, addr, end, Undo::Keep);
        drop(layout);
        drop(old);
        Ok(())
    }

    /// Checks a page-aligned start and a length of at least a page; returns the end.
    fn range(&self, layout: &Layout, addr: u64, len: u64) -> SysResult<u64> {
        let len = round_up(len).ok_or(Errno::EINVAL)?;
        if addr & (PAGE - 1) != 0 || len == 0 {
            return Err(Errno::EINVAL.into());
        }
        match addr.checked_add(len) {
            Some(end) if end <= layout.high => Ok(end),
            _ => Err(Errno::EINVAL.into()),
        }
    }

    /// mprotect(2): the mapped beginning of the range is changed even if the rest is ENOMEM, as Linux does.
    ///
    /// # Errors
    /// EINVAL, ENOMEM, EACCES.
    pub fn protect(&self, port: &mut dyn Port, addr: u64, len: u64, prot: i32) -> SysResult<()> {
        let len = round_up(len).ok_or(Errno::ENOMEM)?;
        if addr & (PAGE - 1) != 0 {
            return Err(Errno::EINVAL.into());
        }
        let end = addr.checked_add(len).ok_or(Errno::ENOMEM)?;
        let (mut layout, ..) = self.quiet(port, |_| Ok((addr, end)))?;
        let mut start = addr;
        if prot & PROT_GROWSDOWN != 0 {
            match layout.find(addr) {
                Some((at, area)) if area.grows => start = at,
                _ => return Err(Errno::EINVAL.into()),
            }
        }
        let prot = prot & (PROT_READ | PROT_WRITE | PROT_EXEC);
        let upto = layout.run_end(start, end);
        self.may_execute(prot, layout.all_execute(start, upto))?;
        if prot & PROT_EXEC != 0 && layout.no_exec(start, upto) {
            return Err(Errno::EACCES.into());
        }
        if prot & PROT_WRITE != 0 && layout.read_only(start, upto) {
            return Err(Errno::EACCES.into());
        }
        if prot & PROT_WRITE != 0 {
            self.may_write(&layout, start, upto)?;
        }
        // What comes before a seal is changed, as Linux does.
        let sealed = layout.first_sealed(start, upto);
        let (mapped, upto) = (upto, sealed.unwrap_or(upto));
        if upto > start {
            port.mprotect(start, upto - start, prot)?;
            layout.change(start, upto, |area| area.prot = prot);
            Self::depart(&mut layout, port, start, upto, Undo::Keep);
        }
        match sealed {
            Some(_) => Err(Errno::EPERM.into()),
            None if mapped < end => Err(Errno::ENOMEM.into()),
            None => Ok(()),
        }
    }

    /// mremap(2). Returns the new address.
    ///
    /// # Errors
    /// EINVAL, EFAULT, ENOMEM.
    pub fn remap(
        &self,
        port: &mut dyn Port,
        old: u64,
        old_len: u64,
        new_len: u64,
        flags: u64,
        new_addr: u64,
    ) -> SysResult<u64> {
        let may_move = flags & MREMAP_MAYMOVE != 0;
        let fixed = flags & MREMAP_FIXED != 0;
        let keep = flags & MREMAP_DONTUNMAP != 0;
        let old_len = round_up(old_len).ok_or(Errno::EINVAL)?;
        let new_len = round_up(new_len).ok_or(Errno::EINVAL)?;
        let bad = old & (PAGE - 1) != 0
            || new_len == 0
            || old_len.max(new_len) > USER_END
            || (fixed || keep) && !may_move
            || keep && old_len != new_len
            || fixed && new_addr & (PAGE - 1) != 0;
        if bad {
            return Err(Errno::EINVAL.into());
        }
        // Rare enough to wait for everything.
        let (mut layout, ..) = self.quiet(port, |_| Ok((0, u64::MAX)))?;
        let old_end = old.checked_add(old_len).ok_or(Errno::EFAULT)?;
        let (start, area) = layout.find(old).ok_or(Errno::EFAULT)?;
        layout.unsealed(old, old_end.max(old.saturating_add(1)))?;
        if fixed {
            layout.unsealed(new_addr, new_addr.saturating_add(new_len))?;
        }
        if old_len == 0 {
            let area = area.clone();
            return self.map_twice(port, layout, (area, old - start), new_len, flags, new_addr);
        }
        let mut area = area.clone();
        if fixed {
            let new_end = new_addr.checked_add(new_len).ok_or(Errno::EINVAL)?;
            if new_end > layout.high || new_addr < layout.low || new_addr < old_end && old < new_end {
                return Err(Errno::EINVAL.into());
            }
            if old_end > area.end && old_len == new_len && !keep {
                return self.move_areas(port, layout, old, old_len, new_addr);
            }
        }
        let moved_end = if fixed && !keep { old.saturating_add(old_len.min(new_len)) } else { old_end };
        if moved_end > area.end && (new_len > old_len || fixed || keep) {
            return Err(Errno::EFAULT.into());
        }
        area.advance(old - start);
        if fixed {
            if new_len < old_len {
                port.munmap(old + new_len, old_len - new_len)?;
                let gone = layout.remove(old + new_len, old_end);
                let moved = self.move_area(port, layout, area, (old, new_len), (new_addr, new_len), keep);
                // No lock is held any more.
                drop(gone);
                return moved;
            }
            return self.move_area(port, layout, area, (old, old_len), (new_addr, new_len), keep);
        }
        if !keep && new_len <= old_len {
            if new_len < old_len {
                port.munmap(old + new_len, old_len - new_len)?;
                let gone = layout.remove(old + new_len, old_end);
                drop(layout);
                drop(gone);
            }
            return Ok(old);
        }
        let grown = old.checked_add(new_len).ok_or(Errno::ENOMEM)?;
        let more = if keep { new_len } else { new_len - old_len };
        self.may_grow(&layout, &area, more)?;
        if !keep && old_end == area.end && grown <= layout.high && !layout.overlaps(old_end, grown) {
            port.mremap(old, old_len, new_len, old, false)?;
            let mut tail = area;
            tail.advance(old_len);
            tail.end = grown;
            layout.insert(old_end, tail);
            return Ok(old);
        }
        if !may_move {
            return Err(Errno::ENOMEM.into());
        }
        let anonymous = matches!(area.backing, Backing::Anonymous);
        let to = layout.choose(new_addr, new_len, false, anonymous).ok_or(Errno::ENOMEM)?;
        self.move_area(port, layout, area, (old, old_len), (to, new_len), keep)
    }

    fn move_area(
        &self,
        port: &mut dyn Port,
        mut layout: Guard<'_, Layout>,
        mut area: Area,
        (old, old_len): (u64, u64),
        (to, new_len): (u64, u64),
        keep: bool,
    ) -> SysResult<u64> {
        // The host shrinks before it moves; it would also unmap the tail of the old range.
        port.mremap(old, old_len, new_len, to, keep)?;
        let mut gone = layout.remove(to, to + new_len);
        if !keep {
            gone.extend(layout.remove(old, old + old_len));
        }
        area.end = to + new_len;
        layout.insert(to, area);
        drop(layout);
        drop(gone);
        Ok(to)
    }

    /// brk(2): the new end, or the old one when it cannot be had.
    ///
    /// # Errors
    /// Only when the task's host side is gone.
    pub fn brk(&self, port: &mut dyn Port, wish: u64) -> SysResult<u64> {
        let range = |layout: &Layout| {
            let ends = (round_up(layout.brk).unwrap_or(layout.brk), round_up(wish).unwrap_or(wish));
            Ok((ends.0.min(ends.1), ends.0.max(ends.1)))
        };
        let (mut layout, ..) = self.quiet(port, range)?;
        let (start, now) = (layout.brk_start, layout.brk);
        if wish < start {
            return Ok(now);
        }
        let (Some(old_end), Some(new_end)) = (round_up(now), round_up(wish)) else { return Ok(now) };
        if new_end < old_end {
            if layout.unsealed(new_end, old_end).is_err() || port.munmap(new_end, old_end - new_end).is_err()
            {
                return Ok(now);
            }
            let gone = layout.remove(new_end, old_end);
            Self::depart(&mut layout, port, new_end, old_end, Undo::Keep);
            layout.brk = wish;
            drop(layout);
            drop(gone);
            return Ok(wish);
        }
        if new_end > old_end {
            if new_end > layout.high || layout.overlaps(old_end, new_end) {
                return Ok(now);
            }
            if !self.may_brk(&layout, wish, new_end - old_end) {
                return Ok(now);
            }
            // One such call fills memory faster than anybody could look.
            let fills = layout.lock_future == Some(Fills::Now) && crate::memory::room_for(new_end - old_end);
            let filled = if fills { MAP_POPULATE } else { 0 };
            let (prot, flags) = (PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | filled);
            if port.mmap(old_end, new_end - old_end, prot, flags, None).is_err() {
                return Ok(now);
            }
            let area = Area {
                end: new_end,
                prot,
                shared: false,
                dont_fork: false,
                dont_dump: false,
                locked: layout.lock_future,
                sealed: false,
                grows: false,
                backing: Backing::Anonymous,
                name: "[heap]",
                label: None,
                attached: None,
            };
            layout.insert(old_end, area);
            Self::depart(&mut layout, port, old_end, new_end, Undo::Brk(now));
        }
        layout.brk = wish;
        Ok(wish)
    }

    /// The identity of a futex word. `private`: the caller says that no other space shares it.
    pub fn key(&self, addr: u64, private: bool) -> Key {
        if !private
            && let Some((start, area)) = self.layout.lock().find(addr)
            && area.shared
            && let Backing::Host { offset, id, .. } = &area.backing
        {
            return Key::Shared(id.0, id.1, offset.saturating_add(addr - start));
        }
        Key::Private(self.id, addr)
    }

    /// As [`key`](Self::key) for a call: a shared word must be accessible. `write`: the call may change it.
    ///
    /// # Errors
    /// EINVAL when it is not aligned; EFAULT.
    pub fn futex_key(&self, addr: u64, private: bool, write: bool) -> SysResult<Key> {
        if addr & 3 != 0 {
            return Err(Errno::EINVAL.into());
        }
        if addr > USER_END - 4 {
            return Err(Errno::EFAULT.into());
        }
        if !private {
            let layout = self.layout.lock();
            let (_, area) = layout.find(addr).ok_or(Errno::EFAULT)?;
            // Linux falls back to a readable page of a file where it does not write: private memory would never change.
            let file = matches!(area.backing, Backing::Host { .. });
            let need = if write || !file { PROT_WRITE } else { PROT_READ | PROT_WRITE };
            if area.prot & need == 0 {
                return Err(Errno::EFAULT.into());
            }
        }
        Ok(self.key(addr, private))
    }

    /// Nobody uses the space any more: what its areas hold is given up now, not when the last trace of its tasks goes.
    pub(crate) fn abandon(&self) {
        let areas = std::mem::take(&mut self.layout.lock().areas);
        drop(areas);
        self.aio.clear();
    }

    /// All areas as they are now, for /proc.
    pub fn areas(&self) -> Vec<(u64, Area)> {
        self.layout.lock().iter().map(|(start, area)| (start, area.clone())).collect()
    }
}

/// What a file offers for mapping, its rights checked; None for /dev/zero, which is anonymous memory.
///
/// # Errors
/// EBADF, EACCES, ENODEV.
pub fn source(file: &Arc<File>, prot: i32, flags: i32, offset: u64) -> SysResult<Option<Source<'_>>> {
    if file.flags() & crate::vfs::file::o::O_PATH != 0 {
        return Err(Errno::EBADF.into());
    }
    let shared = flags & MAP_TYPE != MAP_PRIVATE;
    if !file.readable() || shared && prot & PROT_WRITE != 0 && !file.writable() {
        return Err(Errno::EACCES.into());
    }
    match file.ops.mmap(file, prot, flags)? {
        Mapping::Host(fd) => Ok(Some(Source { fd, file: Some(file), offset })),
        Mapping::Anonymous => Ok(None),
    }
}

fn shared_memory(len: u64) -> SysResult<Arc<OwnedFd>> {
    let fd = rustix::fs::memfd_create("shared", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&fd, len)?;
    let fd = Arc::new(fd);
    crate::memory::holds(&fd, &fd);
    Ok(fd)
}

fn identity(fd: &OwnedFd) -> (u64, u64) {
    match rustix::fs::fstat(fd) {
        Ok(stat) => (stat.st_dev, stat.st_ino),
        Err(_) => (0, 0),
    }
}
