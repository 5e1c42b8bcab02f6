//! Replacing the program (execve(2)).

use super::elf::{self, Image, PF_R, PF_W, PF_X, PHENT, page_down, page_up};
use super::privilege::{self, Gain};
use super::timens::Offsets;
use super::{Task, exit};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::mm::Mm;
use crate::ptrace::stop;
use crate::signal::{NO_STACK, send};
use crate::vfs::file::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use syscall_table::abi::getauxval::*;
use syscall_table::abi::getrlimit::RLIMIT_STACK;
use syscall_table::abi::mmap::*;
use syscall_table::abi::open::{AT_EMPTY_PATH, AT_FDCWD, AT_SYMLINK_NOFOLLOW};
use syscall_table::abi::prctl::ADDR_NO_RANDOMIZE;
use syscall_table::abi::ptrace::*;
use syscall_table::abi::sigaction::{SI_USER, SIGSEGV, SIGTRAP};
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// A program to be loaded.
pub struct Program {
    /// Its path as the caller gave it.
    pub path: Vec<u8>,
    /// Arguments.
    pub argv: Vec<Vec<u8>>,
    /// Environment.
    pub envp: Vec<Vec<u8>>,
    /// Its path is by a descriptor that the execve closes: an interpreter would not find it.
    pub closes: bool,
}

/// Longest argument or environment string, its NUL included (MAX_ARG_STRLEN).
pub(crate) const ARG_LEN_MAX: usize = 131_072;
/// Most bytes of arguments and environment whatever the stack limit is.
const ARGS_MAX: u64 = 6 << 20;
/// Interpreters of interpreters: Linux allows four.
const SCRIPT_DEPTH: usize = 5;
/// Bytes of a file that are looked at for `#!`.
const SCRIPT_HEAD: usize = 256;
/// Largest stack limit that a program with more rights than its caller starts with.
const SECURE_STACK: u64 = 8 << 20;
/// Where position-independent programs go: two thirds up, plus some randomness.
const PIE_BASE: u64 = 0x5555_5555_4000;
const PAGE: u64 = 4096;

/// Everything that can fail without harm was done: the files are open and understood.
struct Prepared {
    file: Arc<File>,
    image: Image,
    interp: Option<(Arc<File>, Image)>,
    argv: Vec<Vec<u8>>,
    envp: Vec<Vec<u8>>,
    /// AT_EXECFN.
    execfn: Vec<u8>,
    gain: Gain,
}

/// execve(2) and execveat(2): on success the registers are those of the new program.
pub(crate) fn execve(cx: &mut Cx, file: Arc<File>, program: Program) -> SysResult {
    // Nothing irreversible without the port.
    cx.port()?;
    let task = cx.task.clone();
    // Who has become somebody with too many tasks already gets no further.
    if task.nproc_exceeded.load(Ordering::Relaxed) && super::clone::has_too_many(&task) {
        return Err(Errno::EAGAIN.into());
    }
    task.nproc_exceeded.store(false, Ordering::Relaxed);
    let prepared = prepare(cx, file, program)?;
    let old_tid = task.tid();
    if !claim(&task) {
        return Err(Fail::Exit);
    }
    let gain = &prepared.gain;
    let trusted = !gain.secure && gain.dumpable == 1 && gain.creds == *task.creds();
    detach(&task, gain)?;
    task.kernel.report.count_own(&task);
    let old = task.mm();
    let used = super::usage::until_move(cx);
    let space = match cx.port()?.replace_space(trusted) {
        Ok(space) => space,
        Err(_) => return Err(die(&task)),
    };
    let moved = !Arc::ptr_eq(&space, &old.space);
    let mm = Mm::new(space);
    mm.inherit_mdwe(&old);
    let last = {
        let mut tree = task.kernel.tree.lock();
        tree.mm_get(&mm);
        tree.mm_put(&old)
    };
    *task.mm.lock() = mm;
    task.join_time();
    if last && moved {
        super::usage::leave_space(&task.kernel, &task.process, &*old.space);
        crate::memory::ended(old.space.host_pid());
        old.space.kill();
    }
    drop(old);
    if moved {
        super::usage::moved(&task, used);
        super::sched::place(&task);
    }
    exit::release_vfork(&task);
    match load(cx, prepared) {
        Ok(()) => {
            show(cx, old_tid);
            Err(Fail::Resume)
        }
        // The old program is gone: there is nobody to return the error to.
        Err(_) => Err(die(&task)),
    }
}

/// Tells a tracer: by an event, or as of old by a signal.
fn show(cx: &mut Cx, old_tid: i32) {
    let task = cx.task.clone();
    if !task.tracing.is_traced() {
        return;
    }
    let told =
        stop::ask(&task, cx.call, PTRACE_O_TRACEEXEC, PTRACE_EVENT_EXEC, task.tracer_sees(old_tid) as u64);
    if !told && !task.tracing.is_seized() {
        send::to_task(&task, send::own_info(&task, SIGTRAP, SI_USER));
    }
}

/// Loads the sandbox's first program into its task's empty space.
pub(crate) fn first(cx: &mut Cx, program: Program) -> SysResult<()> {
    let file = open_program(cx, &program.path)?;
    let prepared = prepare(cx, file, program)?;
    become_new(cx.task, &prepared.gain);
    load(cx, prepared)
}

/// Opens a program by path from the working directory.
fn open_program(cx: &mut Cx, path: &[u8]) -> SysResult<Arc<File>> {
    open_at(cx, AT_FDCWD, path, 0)
}

/// Opens a program for execution; `flags`: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW.
pub(crate) fn open_at(cx: &mut Cx, dirfd: i32, path: &[u8], flags: i32) -> SysResult<Arc<File>> {
    let task = cx.task.clone();
    let vfs = &task.kernel.vfs;
    if path.is_empty() && flags & AT_EMPTY_PATH != 0 {
        let file = task.files().get_any(dirfd)?;
        return match &file.path {
            // Opened anew: the descriptor may be O_PATH, or not for reading.
            Some(place) => vfs.open_exec_at(&task, place.clone()),
            None => Ok(file),
        };
    }
    vfs.open_exec(&task, dirfd, path, flags & AT_SYMLINK_NOFOLLOW != 0)
}

/// Behind the point of no return: as a fault that nothing can handle (`bprm_execve` in Linux's fs/exec.c).
fn die(task: &Arc<Task>) -> Fail {
    exit::group(&task.kernel, &task.process, WaitStatus::signaled(SIGSEGV, false), None);
    Fail::Exit
}

fn read_exact(file: &File, offset: u64, buf: &mut [u8]) -> SysResult<()> {
    let mut done = 0;
    while done < buf.len() {
        let Some(rest) = buf.get_mut(done..) else { break };
        let count = file.ops.read_at(rest, offset.saturating_add(done as u64))?;
        if count == 0 {
            return Err(Errno::ENOEXEC.into());
        }
        done = done.saturating_add(count);
    }
    Ok(())
}

/// The first page of a program, which has most of what is looked at.
struct Head {
    page: Vec<u8>,
}

impl Head {
    fn read(file: &File) -> SysResult<Head> {
        let mut page = vec![0; PAGE as usize];
        let count = file.ops.read_at(&mut page, 0)?;
        page.truncate(count);
        Ok(Head { page })
    }

    fn bytes(&self) -> &[u8] {
        &self.page
    }

    /// Reads from the page, or from the file what is not there.
    fn get(&self, file: &File, offset: u64, buf: &mut [u8]) -> SysResult<()> {
        let from = usize::try_from(offset).ok();
        match from.and_then(|from| self.page.get(from..from.checked_add(buf.len())?)) {
            Some(bytes) => {
                buf.copy_from_slice(bytes);
                Ok(())
            }
            None => read_exact(file, offset, buf),
        }
    }
}

/// Splits `#!interpreter argument` as Linux's fs/binfmt_script.c does: of the first 256 bytes, with zeros behind a shorter
/// file. None: there is no interpreter, or its name does not end there.
fn script(head: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let blank = |b: &u8| matches!(b, b' ' | b'\t');
    let mut buf = [0u8; SCRIPT_HEAD];
    let count = head.len().min(SCRIPT_HEAD);
    buf.get_mut(..count)?.copy_from_slice(head.get(..count)?);
    let rest = buf.strip_prefix(b"#!")?;
    let text_end =
        rest.iter().position(|b| matches!(b, b'\n' | 0)).filter(|at| rest.get(*at) == Some(&b'\n'));
    let line = match text_end {
        Some(end) => rest.get(..end)?,
        None => {
            // The last byte is never the name's.
            let line = rest.get(..rest.len().checked_sub(1)?)?;
            let name = line.get(line.iter().position(|b| !blank(b))?..)?;
            // A name that goes on behind the buffer would be another one.
            rest.get(rest.len().checked_sub(name.len())?.checked_sub(1)?..)?
                .iter()
                .find(|b| blank(b) || **b == 0)?;
            line
        }
    };
    let from = line.iter().position(|b| !blank(b))?;
    let upto = line.iter().rposition(|b| !blank(b))?.checked_add(1)?;
    let line = line.get(from..upto)?;
    let end = line.iter().position(|b| blank(b) || *b == 0).unwrap_or(line.len());
    let (path, rest) = line.split_at(end);
    if path.is_empty() {
        return None;
    }
    let argument = match rest.first() {
        Some(b' ' | b'\t') => {
            let rest = rest.get(rest.iter().position(|b| !blank(b))?..)?;
            rest.split(|b| *b == 0).next().map(<[u8]>::to_vec)
        }
        _ => None,
    };
    Some((path.to_vec(), argument))
}

fn prepare(cx: &mut Cx, file: Arc<File>, program: Program) -> SysResult<Prepared> {
    let Program { path, mut argv, envp, closes } = program;
    let mut file = file;
    let mut name = path.clone();
    if argv.is_empty() {
        // Linux 5.18: a program always has an argv[0].
        argv.push(Vec::new());
    }
    for _ in 0..=SCRIPT_DEPTH {
        let head = Head::read(&file)?;
        if !head.bytes().starts_with(b"#!") {
            let image = elf::parse(&mut |offset, buf| head.get(&file, offset, buf))?;
            let interp = match &image.interp {
                None => None,
                Some(interp) => {
                    let interp = open_program(cx, interp)?;
                    // An interpreter that is no ELF file: ELIBBAD.
                    let head = Head::read(&interp)?;
                    let image = elf::parse(&mut |offset, buf| head.get(&interp, offset, buf));
                    let image = image.map_err(|f| match f {
                        Fail::Error(Errno::ENOEXEC) => Fail::Error(Errno::ELIBBAD),
                        other => other,
                    })?;
                    Some((interp, image))
                }
            };
            check_size(cx, &argv, &envp)?;
            let gain = privilege::after_exec(cx.task, &file)?;
            return Ok(Prepared { file, image, interp, argv, envp, execfn: path, gain });
        }
        let (interp, argument) = script(head.bytes()).ok_or(Errno::ENOEXEC)?;
        if closes {
            return Err(Errno::ENOENT.into());
        }
        argv.remove(0);
        argv.insert(0, name);
        if let Some(argument) = argument {
            argv.insert(0, argument);
        }
        argv.insert(0, interp.clone());
        file = open_program(cx, &interp)?;
        name = interp;
    }
    Err(Errno::ELOOP.into())
}

fn check_size(cx: &Cx, argv: &[Vec<u8>], envp: &[Vec<u8>]) -> SysResult<()> {
    let bytes: u64 = argv.iter().chain(envp).map(|s| s.len() as u64 + 1 + 8).sum();
    let limit = (cx.task.process.limit(RLIMIT_STACK) / 4).clamp(131_072, ARGS_MAX);
    if bytes > limit { Err(Errno::E2BIG.into()) } else { Ok(()) }
}

/// The point of no return: the other tasks of the group end. False when the group is ending itself.
fn claim(task: &Arc<Task>) -> bool {
    let process = &task.process;
    if process.is_exiting() {
        return false;
    }
    for other in process.threads() {
        if !Arc::ptr_eq(&other, task) {
            exit::replace(&task.kernel, &other);
        }
    }
    // The one that calls execve becomes the leader, whatever it was.
    let mut tree = task.kernel.tree.lock();
    let tid = task.tid();
    if tid != process.pid {
        tree.tasks.remove(&tid);
        task.tid.store(process.pid, Ordering::Relaxed);
        tree.tasks.insert(process.pid, task.clone());
        tree.strike(tid);
        let children = tree.nodes.get(&process.pid).map(|node| node.children.clone()).unwrap_or_default();
        for child in children {
            if let Some(child) = tree.nodes.get_mut(&child).filter(|node| node.creator == tid) {
                child.creator = process.pid;
            }
        }
    }
    !process.is_exiting()
}

/// What execve leaves of the task besides memory (execve(2)).
fn detach(task: &Arc<Task>, gain: &Gain) -> SysResult<()> {
    let process = &task.process;
    exit::leave_memory(task, false);
    task.set_robust_list(0);
    task.dispatch.clear();
    let sighand = process.sighand().after_exec();
    *process.sighand.lock() = Arc::new(sighand);
    task.set_altstack(NO_STACK);
    become_new(task, gain);
    let files = task.files();
    // Shared with another process (CLONE_FILES): execve unshares.
    let own = if Arc::strong_count(&files) > 2 { Arc::new(files.duplicate()) } else { files };
    let closed = own.take_cloexec();
    let replaced = std::mem::replace(&mut *task.files.lock(), own);
    drop(replaced);
    drop(closed);
    process.timers.exec();
    process.execed.store(true, Ordering::Relaxed);
    Ok(())
}

/// Credentials, and what a program that gained some must not inherit.
fn become_new(task: &Task, gain: &Gain) {
    let process = &task.process;
    if gain.creds != *task.creds() {
        *task.creds.lock() = Arc::new(gain.creds.clone());
    }
    process.dumpable.store(gain.dumpable, Ordering::Relaxed);
    process.personality.fetch_and(!gain.clears, Ordering::Relaxed);
    if gain.secure || gain.differs {
        task.pdeath_signal.store(0, Ordering::Relaxed);
    }
    if gain.secure {
        let mut limits = process.limits.lock();
        let mut stack = limits.get(RLIMIT_STACK);
        stack.rlim_cur = stack.rlim_cur.min(SECURE_STACK);
        limits.set(RLIMIT_STACK, stack);
    }
}

fn fixed(task: &Task) -> bool {
    task.process.personality.load(Ordering::Relaxed) & ADDR_NO_RANDOMIZE != 0
}

/// A random multiple of a page below 2^bits pages, or none.
fn random_pages(task: &Task, bits: u32) -> u64 {
    if fixed(task) {
        return 0;
    }
    (u64::from_le_bytes(crate::random::bytes()) & ((1u64 << bits) - 1)) * PAGE
}

/// A stack has room for this much whatever its limit is: arguments, and a beginning.
const LEAST_STACK: u64 = 384 << 10;

/// Maps program, interpreter and stack, and sets the registers to the entry point.
fn load(cx: &mut Cx, program: Prepared) -> SysResult<()> {
    let task = cx.task.clone();
    let mm = task.mm();
    let range = task.kernel.platform.address_range();

    // The stack first, at the top: everything else goes below.
    let wanted = task.process.limit(RLIMIT_STACK).clamp(LEAST_STACK, 1 << 30);
    let stack_top = range.end.saturating_sub(PAGE * 16).saturating_sub(random_pages(&task, 18));
    let stack_size = page_up(wanted);
    let stack_base = page_down(stack_top.saturating_sub(stack_size));
    let mut prot = PROT_READ | PROT_WRITE;
    if program.image.exec_stack {
        prot |= PROT_EXEC;
    }
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_GROWSDOWN;
    mm.set_room(&task.process);
    mm.set_stack(stack_base, stack_top, !fixed(&task));
    // Whatever the limit of the address space says of the part that is mapped ahead.
    mm.set_stack_used(0);
    // One hand-over for all mappings, if the platform can do that.
    cx.memory_port(true)?;
    mm.map_fixed(cx.port()?, stack_base, stack_top.saturating_sub(stack_base), prot, flags, None)?;
    let mut tails = Vec::new();

    let bias = place(&task, &mm, &program.image, program.interp.is_some())?;
    map_image(cx, &mm, &program.file, &program.image, bias, &mut tails)?;
    mm.set_brk(page_up(program.image.end.wrapping_add(bias)).saturating_add(random_pages(&task, 13)));
    let mut entry = program.image.entry.wrapping_add(bias);
    let mut base = 0;
    if let Some((file, image)) = &program.interp {
        base = place(&task, &mm, image, false)?;
        map_image(cx, &mm, file, image, base, &mut tails)?;
        entry = image.entry.wrapping_add(base);
        // Only the program itself stays busy.
        drop(file.running.lock().take());
    }

    cx.port()?.flush()?;
    for (at, len) in tails {
        let zeros = [0u8; PAGE as usize];
        cx.copy_out(at, zeros.get(..len).unwrap_or_default())?;
    }

    let auxv = auxv(cx, &program, bias, base);
    let sp = push_stack(cx, &program, &auxv, stack_top)?;
    mm.set_stack_used(stack_top.saturating_sub(sp));
    // end_data - start_data of Linux's loader.
    let last = program.image.segments.iter().max_by_key(|segment| segment.vaddr);
    mm.set_program_data(last.map_or(0, |segment| segment.filesz));
    let ends =
        |s: &elf::Segment| (s.vaddr.wrapping_add(bias), s.vaddr.wrapping_add(s.filesz).wrapping_add(bias));
    // As Linux's loader: code from the lowest to the highest executable segment, data in the last one.
    let all = || program.image.segments.iter();
    let code_start = all().map(|s| ends(s).0).min().unwrap_or(0);
    let code_end = all().filter(|s| s.flags & PF_X != 0).map(|s| ends(s).1).max().unwrap_or(0);
    mm.set_image((code_start, code_end), last.map_or((0, 0), ends));

    let mut regs =
        platform::Regs { rip: entry, rsp: sp, eflags: 0x202, cs: 0x33, ss: 0x2b, ..Default::default() };
    regs.orig_rax = u64::MAX;
    cx.port()?.set_regs(&regs)?;
    name(&task, program);
    task.tell_own();
    Ok(())
}

fn name(task: &Task, program: Prepared) {
    let base = program.execfn.rsplit(|b| *b == b'/').next().unwrap_or_default();
    *task.comm.lock() = base.get(..15).unwrap_or(base).to_vec();
    let process = &task.process;
    let place = program.file.path.as_ref().map(|p| p.display(task.fs().root().as_ref()));
    *process.exe.lock() = place.unwrap_or(program.execfn);
    *process.argv.lock() = program.argv;
    *process.envp.lock() = program.envp;
    let old = process.exe_file.lock().replace(program.file);
    drop(old);
}

/// Where an image goes: what is to be added to its addresses.
fn place(task: &Task, mm: &Mm, image: &Image, low: bool) -> SysResult<u64> {
    if !image.relocatable {
        return Ok(0);
    }
    let size = image.end.saturating_sub(image.start);
    let at = if low {
        // Programs with an interpreter go low, far from the interpreter and with room for the break.
        (PIE_BASE + random_pages(task, 28)) & !(image.align - 1)
    } else {
        let at = mm.choose(size.checked_add(image.align).ok_or(Errno::ENOMEM)?)?;
        at.checked_add(image.align - 1).ok_or(Errno::ENOMEM)? & !(image.align - 1)
    };
    Ok(at.wrapping_sub(image.start))
}

/// Maps an image; `tails` gets the ranges, each within a page, that are to be zeroed afterwards.
fn map_image(
    cx: &mut Cx,
    mm: &Mm,
    file: &Arc<File>,
    image: &Image,
    bias: u64,
    tails: &mut Vec<(u64, usize)>,
) -> SysResult<()> {
    let range = cx.kernel().platform.address_range();
    for segment in &image.segments {
        let start = segment.vaddr.wrapping_add(bias);
        let end = start.checked_add(segment.memsz).ok_or(Errno::ENOMEM)?;
        if start < range.start || page_up(end) > range.end {
            return Err(Errno::ENOMEM.into());
        }
        let mut prot = 0;
        for (flag, bit) in [(PF_R, PROT_READ), (PF_W, PROT_WRITE), (PF_X, PROT_EXEC)] {
            if segment.flags & flag != 0 {
                prot |= bit;
            }
        }
        let file_end = start.saturating_add(segment.filesz);
        if segment.filesz > 0 {
            let at = page_down(start);
            let len = page_up(file_end).saturating_sub(at);
            let offset = page_down(segment.offset);
            mm.map_fixed(cx.port()?, at, len, prot, MAP_PRIVATE, Some((file, offset)))?;
        }
        if segment.memsz > segment.filesz {
            let zeroed = if segment.filesz > 0 { page_up(file_end) } else { page_down(start) };
            let tail = zeroed.saturating_sub(file_end);
            if segment.filesz > 0 && prot & PROT_WRITE != 0 && tail > 0 {
                tails.push((file_end, tail as usize));
            }
            if page_up(end) > zeroed {
                let len = page_up(end).saturating_sub(zeroed);
                mm.map_fixed(cx.port()?, zeroed, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, None)?;
            }
        }
    }
    Ok(())
}

/// The auxiliary vector but for what points into the stack.
fn auxv(cx: &mut Cx, program: &Prepared, bias: u64, base: u64) -> Vec<(u64, u64)> {
    let creds = cx.task.creds();
    let (hwcap, hwcap2) = rustix::param::linux_hwcap();
    let phdr = if program.image.phdr == 0 { 0 } else { program.image.phdr.wrapping_add(bias) };
    let mut auxv = Vec::with_capacity(24);
    // The host's vDSO knows the host's clocks alone.
    let own_clocks = cx.task.clock_offsets() != Offsets::default();
    if let Some(vdso) = cx.task.space().vdso().filter(|_| !own_clocks) {
        auxv.push((AT_SYSINFO_EHDR, vdso));
    }
    auxv.extend([
        (AT_MINSIGSTKSZ, rustix::param::linux_minsigstksz() as u64),
        (AT_HWCAP, hwcap as u64),
        (AT_PAGESZ, PAGE),
        (AT_CLKTCK, 100),
        (AT_PHDR, phdr),
        (AT_PHENT, PHENT),
        (AT_PHNUM, program.image.phnum),
        (AT_BASE, base),
        (AUXV_FLAGS, 0),
        (AT_ENTRY, program.image.entry.wrapping_add(bias)),
        (AT_UID, u64::from(creds.uid)),
        (AT_EUID, u64::from(creds.euid)),
        (AT_GID, u64::from(creds.gid)),
        (AT_EGID, u64::from(creds.egid)),
        (AT_SECURE, u64::from(program.gain.secure)),
        (AT_HWCAP2, hwcap2 as u64),
    ]);
    auxv
}

/// Builds argc, argv, envp, the auxiliary vector and what they point to below `top`; returns the stack pointer.
fn push_stack(cx: &mut Cx, program: &Prepared, auxv: &[(u64, u64)], top: u64) -> SysResult<u64> {
    // Strings, from low to high: random bytes, platform, argv, envp, execfn, eight zero bytes.
    let mut strings: Vec<u8> = Vec::new();
    let mut offsets = Vec::with_capacity(program.argv.len() + program.envp.len());
    strings.extend(crate::random::bytes::<16>());
    let platform_at = strings.len();
    strings.extend(b"x86_64\0");
    let args_at = strings.len();
    for string in program.argv.iter().chain(&program.envp) {
        offsets.push(strings.len() as u64);
        strings.extend(string);
        strings.push(0);
    }
    let execfn_at = strings.len();
    strings.extend(&program.execfn);
    strings.extend([0u8; 9]);
    let base = top.checked_sub(strings.len() as u64).ok_or(Errno::E2BIG)? & !15;
    let at = |offset: usize| base.saturating_add(offset as u64);
    let env_at = offsets.get(program.argv.len()).map_or(execfn_at, |o| *o as usize);
    let mut words: Vec<u64> = vec![program.argv.len() as u64];
    for (index, offset) in offsets.iter().enumerate() {
        if index == program.argv.len() {
            words.push(0);
        }
        words.push(base.saturating_add(*offset));
    }
    if program.envp.is_empty() {
        words.push(0);
    }
    words.push(0);
    let auxv_at = words.len();
    let tail = [(AT_RANDOM, base), (AT_EXECFN, at(execfn_at)), (AT_PLATFORM, at(platform_at)), (AT_NULL, 0)];
    for (key, value) in auxv.iter().chain(&tail) {
        words.extend([*key, *value]);
    }
    let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let sp = base.checked_sub(bytes.len() as u64).ok_or(Errno::E2BIG)? & !15;
    cx.task.mm().set_args(sp, at(args_at), at(env_at), at(execfn_at));
    *cx.task.process.auxv.lock() = bytes.get(auxv_at * 8..).unwrap_or_default().to_vec();
    bytes.resize(base.saturating_sub(sp) as usize, 0);
    bytes.extend(strings);
    cx.copy_out(sp, &bytes)?;
    Ok(sp)
}
