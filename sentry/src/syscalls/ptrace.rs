//! ptrace(2): who traces whom, and how a tracee goes on.

mod look;

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ptrace::links::{self, How};
use crate::ptrace::regs;
use crate::ptrace::{Resumed, State, Stop, Tracer, stop};
use crate::seccomp::dispatch;
use crate::signal::{bit, mask, send};
use crate::task::access::may_inspect;
use crate::task::creds::cap;
use crate::task::{Task, tree};
use look::{arch_prctl, call_info, filter, filter_flags, get, get_set, memory, pending, set_set};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use syscall_table::abi::ptrace::*;
use syscall_table::abi::sigaction::{NSIG, SIGKILL, Siginfo};
use syscall_table::errno::Errno;
use zerocopy::IntoBytes;

pub fn ptrace(cx: &mut Cx, op: PtraceRequest, pid: Pid, addr: Addr, data: u64) -> SysResult {
    let (op, pid, addr) = (op.bits(), pid.raw(), addr.addr());
    match op {
        PTRACE_TRACEME => traceme(cx),
        PTRACE_ATTACH => attach(cx, pid, How { seized: false, options: 0 }),
        PTRACE_SEIZE => seize(cx, pid, addr, data),
        PTRACE_KILL => kill(cx, pid),
        PTRACE_INTERRUPT => interrupt(cx, pid),
        _ => {
            let tracee = tracee(cx, pid)?;
            of_stopped(cx, &tracee, op, addr, data)
        }
    }
}

/// The caller is traced by its parent.
fn traceme(cx: &mut Cx) -> SysResult {
    let task = cx.task;
    let mut tree = cx.kernel().tree.lock();
    let node = tree.node(task.process.pid)?;
    let (parent, creator) = (node.parent, node.creator);
    let own = tree.tasks.get(&creator).filter(|t| t.process.pid == parent).cloned();
    let process = tree.nodes.get(&parent).map(|n| n.process.clone());
    let Some(tracer) = own.or_else(|| process.and_then(|p| p.any_thread())) else {
        drop(tree);
        return Err(Fail::gap(Errno::EPERM, "PTRACE_TRACEME of a child of init"));
    };
    let (rights, own) = (tracer.creds(), task.creds());
    // Its ids do not matter, and it may be undumpable (cap_ptrace_traceme in Linux).
    let may = own.permitted & !rights.permitted == 0 || rights.capable(cap::SYS_PTRACE);
    if !may || !links::attach(&mut tree, &tracer, task, How { seized: false, options: 0 }) {
        return Err(Errno::EPERM.into());
    }
    drop(tree);
    links::hush(task);
    Ok(0)
}

fn attach(cx: &mut Cx, pid: i32, how: How) -> SysResult {
    let found = {
        let tree = cx.kernel().tree.lock();
        let zombie = tree.nodes.contains_key(&pid);
        (tree.tasks.get(&pid).cloned(), zombie)
    };
    let task = match found {
        (Some(task), _) => task,
        (None, true) => return Err(Errno::EPERM.into()),
        (None, false) if pid == tree::INIT => return Err(Errno::EPERM.into()),
        (None, false) => return Err(Errno::ESRCH.into()),
    };
    if Arc::ptr_eq(&task.process, &cx.task.process) || !may_inspect(cx.task, &task) {
        return Err(Errno::EPERM.into());
    }
    if !links::attach(&mut cx.kernel().tree.lock(), cx.task, &task, how) {
        return Err(Errno::EPERM.into());
    }
    links::begin(&task, how.seized);
    Ok(0)
}

fn seize(cx: &mut Cx, pid: i32, addr: u64, options: u64) -> SysResult {
    let known = pid == tree::INIT || {
        let tree = cx.kernel().tree.lock();
        tree.tasks.contains_key(&pid) || tree.nodes.contains_key(&pid)
    };
    if !known {
        return Err(Errno::ESRCH.into());
    }
    if addr != 0 || !links::known(options) {
        return Err(Errno::EIO.into());
    }
    suspends(cx, options)?;
    attach(cx, pid, How { seized: true, options })
}

/// Whether the caller may set these options: only those without filters may take the filters of others away.
fn suspends(cx: &Cx, options: u64) -> SysResult<()> {
    let may = || {
        let task = cx.task;
        let own = task.tracing.wants(PTRACE_O_SUSPEND_SECCOMP);
        task.creds().capable(cap::SYS_ADMIN) && !task.seccomp.is_on() && !own
    };
    if options & PTRACE_O_SUSPEND_SECCOMP != 0 && !may() { Err(Errno::EPERM.into()) } else { Ok(()) }
}

/// A task that the caller traces, whatever it does.
fn own(cx: &Cx, pid: i32) -> SysResult<Arc<Task>> {
    let task = cx.kernel().tree.task(pid)?;
    if traces(cx, &task.tracing.lock()) { Ok(task) } else { Err(Errno::ESRCH.into()) }
}

fn traces(cx: &Cx, state: &State) -> bool {
    state.by.as_ref().is_some_and(|by| std::ptr::eq(by.task.as_ptr(), Arc::as_ptr(cx.task)))
}

/// A task that the caller traces and that is stopped.
fn tracee(cx: &Cx, pid: i32) -> SysResult<Arc<Task>> {
    let task = own(cx, pid)?;
    let stopped = task.tracing.lock().stop.as_ref().is_some_and(|stop| !stop.listening);
    if stopped { Ok(task) } else { Err(Errno::ESRCH.into()) }
}

/// Works on the stop of a tracee.
///
/// # Errors
/// ESRCH when it has been killed meanwhile; `f`'s.
fn with<T>(task: &Task, f: impl FnOnce(&mut Tracer, &mut Stop) -> SysResult<T>) -> SysResult<T> {
    let mut state = task.tracing.lock();
    let State { by: Some(by), stop: Some(stop), .. } = &mut *state else { return Err(Errno::ESRCH.into()) };
    f(by, stop)
}

fn kill(cx: &mut Cx, pid: i32) -> SysResult {
    match own(cx, pid) {
        Ok(task) => {
            send::to_process(cx.kernel(), &task.process, Siginfo::kernel(SIGKILL));
            Ok(0)
        }
        Err(fail) => {
            let tree = cx.kernel().tree.lock();
            // One that has ended needs no killing.
            let ended =
                tree.links.iter().any(|link| Arc::ptr_eq(&link.by, cx.task) && link.task.tid() == pid);
            if ended { Ok(0) } else { Err(fail) }
        }
    }
}

fn interrupt(cx: &mut Cx, pid: i32) -> SysResult {
    let task = own(cx, pid)?;
    if !task.tracing.is_seized() {
        return Err(Errno::EIO.into());
    }
    stop::again(&task);
    Ok(0)
}

fn of_stopped(cx: &mut Cx, task: &Arc<Task>, op: i64, addr: u64, data: u64) -> SysResult {
    match op {
        PTRACE_PEEKTEXT | PTRACE_PEEKDATA => {
            let word = memory(cx, task, addr, None)?;
            cx.copy_out(data, &word)?;
        }
        PTRACE_POKETEXT | PTRACE_POKEDATA => {
            memory(cx, task, addr, Some(data))?;
        }
        PTRACE_PEEKUSR => {
            let value = with(task, |by, stop| regs::peek(by, stop, addr))?;
            cx.write_value(data, &value)?;
        }
        PTRACE_POKEUSR => with(task, |by, stop| regs::poke(by, stop, addr, data))?,
        PTRACE_CONT
        | PTRACE_SYSCALL
        | PTRACE_SINGLESTEP
        | PTRACE_SINGLEBLOCK
        | PTRACE_SYSEMU
        | PTRACE_SYSEMU_SINGLESTEP => resume(cx, task, op, data)?,
        PTRACE_DETACH => {
            let signal = signal(data)?;
            links::detach(cx.kernel(), task, signal);
        }
        PTRACE_LISTEN => listen(task)?,
        PTRACE_GETREGS => get(cx, data, regs::REGS, with(task, |_, stop| Ok(stop.regs))?.as_bytes())?,
        PTRACE_SETREGS => {
            let mut bytes = [0; regs::REGS];
            cx.copy_in(data, &mut bytes)?;
            with(task, |_, stop| regs::set(stop, &bytes))?;
        }
        PTRACE_GETFPREGS => {
            let state = with(task, |_, stop| Ok(stop.xstate.regset()))?;
            get(cx, data, regs::FPREGS, &state)?;
        }
        PTRACE_SETFPREGS => {
            let mut bytes = [0; regs::FPREGS];
            cx.copy_in(data, &mut bytes)?;
            with(task, |_, stop| regs::set_fp(stop, &bytes))?;
        }
        PTRACE_GETREGSET => get_set(cx, task, addr, data)?,
        PTRACE_SETREGSET => set_set(cx, task, addr, data)?,
        PTRACE_SETOPTIONS | PTRACE_OLDSETOPTIONS => {
            if !links::known(data) {
                return Err(Errno::EINVAL.into());
            }
            suspends(cx, data)?;
            with(task, |by, _| {
                by.options = data;
                Ok(())
            })?;
        }
        PTRACE_GETEVENTMSG => {
            let message = with(task, |by, _| Ok(by.message))?;
            cx.write_value(data, &message)?;
        }
        PTRACE_GETSIGINFO => {
            let info = with(task, |_, stop| stop.info.ok_or(Errno::EINVAL.into()))?;
            cx.write_value(data, &info)?;
        }
        PTRACE_SETSIGINFO => {
            let new: Siginfo = cx.read_value(data)?;
            with(task, |_, stop| {
                *stop.info.as_mut().ok_or(Errno::EINVAL)? = new;
                Ok(())
            })?;
        }
        PTRACE_PEEKSIGINFO => return pending(cx, task, addr, data),
        PTRACE_GETSIGMASK | PTRACE_SETSIGMASK if addr != 8 => return Err(Errno::EINVAL.into()),
        PTRACE_GETSIGMASK => {
            let own = {
                let signals = task.signals.lock();
                signals.saved_mask.unwrap_or(signals.mask)
            };
            cx.write_value(data, &own)?;
        }
        PTRACE_SETSIGMASK => {
            let new: u64 = cx.read_value(data)?;
            task.signals.lock().saved_mask = None;
            mask::set(task, new);
        }
        PTRACE_SECCOMP_GET_FILTER => return filter(cx, task, addr, data),
        PTRACE_SECCOMP_GET_METADATA => return filter_flags(cx, task, addr, data),
        PTRACE_GET_SYSCALL_INFO => return call_info(cx, task, addr, data),
        // As a kernel without rseq(2), which this one is.
        PTRACE_GET_RSEQ_CONFIGURATION => return Err(Errno::EIO.into()),
        PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG => {
            if addr != size_of::<dispatch::Config>() as u64 {
                return Err(Errno::EINVAL.into());
            }
            let config = task.dispatch.get();
            cx.write_value(data, &config)?;
        }
        PTRACE_SET_SYSCALL_USER_DISPATCH_CONFIG => {
            if addr != size_of::<dispatch::Config>() as u64 {
                return Err(Errno::EINVAL.into());
            }
            let config: dispatch::Config = cx.read_value(data)?;
            task.dispatch.set(config)?;
        }
        PTRACE_ARCH_PRCTL => return arch_prctl(cx, task, data, addr),
        PTRACE_GET_THREAD_AREA | PTRACE_SET_THREAD_AREA | PTRACE_SET_SYSCALL_INFO => {
            let name = PTRACE_REQUESTS.iter().find(|(_, nr)| *nr == op).map_or("", |(name, _)| *name);
            return Err(Fail::gap(Errno::EIO, format!("ptrace {name}")));
        }
        _ => return Err(Errno::EIO.into()),
    }
    Ok(0)
}

fn signal(data: u64) -> SysResult<i32> {
    let signal = i32::try_from(data).map_err(|_| Errno::EIO)?;
    if signal == 0 || bit(signal) != 0 && signal <= NSIG { Ok(signal) } else { Err(Errno::EIO.into()) }
}

fn resume(cx: &mut Cx, task: &Arc<Task>, op: i64, data: u64) -> SysResult<()> {
    let signal = signal(data)?;
    let tracer = crate::ptrace::stop::names(cx.task, &task.process);
    {
        let mut state = task.tracing.lock();
        let State { by: Some(by), stop, resumed } = &mut *state else { return Err(Errno::ESRCH.into()) };
        let stop = stop.take().ok_or(Errno::ESRCH)?;
        by.syscalls = op == PTRACE_SYSCALL;
        by.emulate = matches!(op, PTRACE_SYSEMU | PTRACE_SYSEMU_SINGLESTEP);
        by.step = matches!(op, PTRACE_SINGLESTEP | PTRACE_SINGLEBLOCK | PTRACE_SYSEMU_SINGLESTEP);
        by.block = op == PTRACE_SINGLEBLOCK;
        *resumed = Some(Box::new(Resumed { stop: *stop, signal, tracer }));
    }
    task.control().kick();
    Ok(())
}

fn listen(task: &Arc<Task>) -> SysResult<()> {
    let notified = with(task, |by, stop| {
        if !by.seized || stop.code >> 8 != PTRACE_EVENT_STOP {
            return Err(Errno::EIO.into());
        }
        stop.listening = true;
        Ok(task.tracing.trap.load(SeqCst))
    })?;
    if notified {
        stop::again(task);
    }
    Ok(())
}
