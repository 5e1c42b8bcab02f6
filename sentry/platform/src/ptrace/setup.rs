//! Brings up the zygote and the waker.

use super::PtraceConfig;
use super::fds::Fds;
use super::host::{self, Mode, Stop};
use super::task::Remote;
use super::template;
use super::tracer::Tracer;
use super::waits::{Waits, count};
use crate::loss::Loss;
use crate::trap::boot;
use crate::{Regs, guestfilter, hostcalls};
use lazaret_shim::layout;
use rustix::thread::CapabilitySet;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Where the filter's program lies while it is installed.
const SCRATCH: u64 = 0x1_0000;
const SCRATCH_LEN: u64 = 0x4000;
/// A page in every guest process where the host puts what an injected call tells.
pub const ANSWERS: u64 = layout::CTL;
/// NEW_LISTENER | WAIT_KILLABLE_RECV
const LISTENER_FLAGS: u64 = 8 | 32;
const AT_SYSINFO_EHDR: u64 = 33;

/// A call that must succeed.
fn must(
    waits: &mut Waits,
    tid: i32,
    base: &Regs,
    what: &str,
    nr: u64,
    args: [u64; 6],
) -> Result<u64, String> {
    match waits.inject(tid, base, nr, args) {
        Ok((value, _)) if value >= 0 => Ok(value as u64),
        Ok((value, _)) => {
            Err(format!("{what} in the zygote: {}", std::io::Error::from_raw_os_error(-value as i32)))
        }
        Err(signal) => Err(format!("the zygote died of signal {signal} ({what})")),
    }
}

/// The vDSO from the auxiliary vector above a fresh program's stack pointer.
fn find_vdso(pid: i32, rsp: u64) -> Option<u64> {
    let mut bytes = vec![0; 2048.min(layout::TASK_END.checked_sub(rsp)? as usize)];
    let got = hostcalls::vm_read(pid, rsp, &mut bytes);
    bytes.truncate(got);
    let words: Vec<u64> = bytes.chunks_exact(8).map(|b| b.try_into().map_or(0, u64::from_le_bytes)).collect();
    // argc, argv, 0, envp, 0, then pairs.
    let mut rest = words.get(1..)?.iter();
    rest.by_ref().find(|word| **word == 0)?;
    rest.by_ref().find(|word| **word == 0)?;
    while let (Some(key), Some(value)) = (rest.next(), rest.next()) {
        match *key {
            AT_SYSINFO_EHDR => return Some(*value),
            0 => return None,
            _ => {}
        }
    }
    None
}

/// pause(2).
const PAUSE_CALL: u64 = 34;

/// Starts everything; the caller becomes the tracer.
pub fn start(config: &PtraceConfig, remote: Arc<Remote>) -> Result<Tracer, String> {
    let (before, size) = config.vdso.unwrap_or_else(boot::vdso_extent);
    let booted = boot::boot(config, &template::elf(), None)?;
    // This thread handles guests' calls: it keeps no right that making the namespaces took. The guests' user
    // namespace is a child of the caller's, and its owner may trace what is in it.
    confine::capabilities::keep_only(CapabilitySet::empty())
        .map_err(|e| format!("dropping the tracer's capabilities: {e}"))?;
    let zygote = booted.zygote_pid;
    let mut waits = Waits::default();
    host::seize(zygote).map_err(|e| format!("ptrace of the zygote: {e}"))?;
    host::interrupt(zygote).map_err(|e| format!("ptrace of the zygote: {e}"))?;
    match host::wait(zygote, true) {
        Ok(Some((_, Stop::Dead(_)))) | Err(_) => return Err("the zygote did not come up".to_owned()),
        Ok(_) => {}
    }
    host::clear_mask(zygote).map_err(|e| format!("signal mask of the zygote: {e}"))?;
    let base = host::regs(zygote).map_err(|e| format!("registers of the zygote: {e}"))?;

    // The filter's program goes below the platform's region before the stack goes.
    let vdso = find_vdso(zygote, base.rsp).filter(|at| size != 0 && at - before > layout::REGION_END);
    must(&mut waits, zygote, &base, "mmap", 9, [SCRATCH, SCRATCH_LEN, 3, 0x32, u64::MAX, 0])?;
    let first = layout::CODE + template::CODE_LEN;
    let gaps = match vdso {
        Some(at) => [first..at - before, at + size..layout::TASK_END],
        None => [first..layout::TASK_END, 0..0],
    };
    for gap in gaps {
        if !gap.is_empty() {
            must(&mut waits, zygote, &base, "munmap", 11, [gap.start, gap.end - gap.start, 0, 0, 0, 0])?;
        }
    }
    let below = layout::CODE - (SCRATCH + SCRATCH_LEN);
    must(&mut waits, zygote, &base, "munmap", 11, [SCRATCH + SCRATCH_LEN, below, 0, 0, 0, 0])?;

    must(&mut waits, zygote, &base, "mmap", 9, [ANSWERS, 0x1000, 3, 0x32, u64::MAX, 0])?;

    let filter = guestfilter::assemble_ptrace();
    let mut program = vec![filter.len() as u64, SCRATCH + 16];
    program.extend(filter.iter().map(|insn| {
        u64::from(insn.code) | u64::from(insn.jt) << 16 | u64::from(insn.jf) << 24 | u64::from(insn.k) << 32
    }));
    let bytes: Vec<u8> = program.iter().flat_map(|word| word.to_le_bytes()).collect();
    if bytes.len() as u64 > SCRATCH_LEN || hostcalls::vm_write(zygote, SCRATCH, &bytes) != bytes.len() {
        return Err("the zygote's memory cannot be written".to_owned());
    }
    let number = must(&mut waits, zygote, &base, "seccomp", 317, [1, LISTENER_FLAGS, SCRATCH, 0, 0, 0])?;
    let listener =
        hostcalls::pidfd_getfd(booted.zygote.as_fd(), number as u32).map_err(|e| format!("listener: {e}"))?;
    must(&mut waits, zygote, &base, "close", 3, [number, 0, 0, 0, 0, 0])?;
    must(&mut waits, zygote, &base, "munmap", 11, [SCRATCH, SCRATCH_LEN, 0, 0, 0, 0])?;
    let fds = Fds::serve(listener).map_err(|e| format!("thread: {e}"))?;

    let waker = waits
        .clone(zygote, &base, layout::CLONE_PARENT)
        .map_err(|_| "the waker did not come up".to_owned())?;
    count(PAUSE_CALL);
    host::set_regs(waker, &Regs { rip: template::PAUSE, ..base })
        .and_then(|()| host::resume(waker, Mode::Native))
        .map_err(|e| format!("the waker: {e}"))?;
    remote.open(host::gettid(), waker);
    Ok(Tracer {
        remote,
        fds,
        zygote: (zygote, base),
        waker,
        waits,
        loss: Loss::new(config.on_loss, booted.init_pid),
        vdso: vdso.unwrap_or(0),
        tasks: HashMap::new(),
        init: booted.init,
        processes: HashMap::new(),
    })
}
