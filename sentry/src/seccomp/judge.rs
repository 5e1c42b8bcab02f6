//! What a task's filters say of a system call.

use super::{Filter, notify};
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::ptrace::stop;
use crate::signal::fault;
use crate::task::exit;
use platform::Abi;
use syscall_table::abi::ptrace::{PTRACE_EVENT_SECCOMP, PTRACE_O_SUSPEND_SECCOMP, PTRACE_O_TRACESECCOMP};
use syscall_table::abi::seccomp::*;
use syscall_table::abi::sigaction::{SIGKILL, SIGSYS, SYS_SECCOMP, Siginfo};
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// SECCOMP_RET_ACTION_FULL and SECCOMP_RET_DATA.
const ACTION: u32 = 0xffff_0000;
const DATA: u32 = 0xffff;
const MAX_ERRNO: u32 = 4095;
/// In the number of a call of the x32 kind.
pub(super) const X32_BIT: u32 = 0x4000_0000;

/// read, write, exit, rt_sigreturn.
const STRICT: [u32; 4] = [0, 1, 60, 15];
/// The same of i386.
const STRICT_I386: [u32; 4] = [3, 4, 1, 119];

/// Asked before the handler in the first attempts of a call that began with filters: None lets it run, a value is the call's
/// result. Like a handler it may be run again.
///
/// # Errors
/// As a handler: Block while somebody else is asked, Traced while the tracer is, Exit when the task was killed, Resume when
/// a signal was forced on it.
pub(crate) fn judge(cx: &mut Cx) -> SysResult<Option<u64>> {
    if notify::is_waiting(cx) {
        return notify::wait(cx);
    }
    super::dispatch::look(cx)?;
    if cx.task.tracing.wants(PTRACE_O_SUSPEND_SECCOMP) {
        return Ok(None);
    }
    if cx.task.seccomp.mode() == SECCOMP_MODE_STRICT {
        let known = if cx.call.abi == Abi::I386 { &STRICT_I386 } else { &STRICT };
        if cx.call.abi != Abi::X32 && known.contains(&cx.call.nr) {
            return Ok(None);
        }
        exit::single(cx.task, WaitStatus::signaled(SIGKILL, false));
        return Err(Fail::Exit);
    }
    let Some(filter) = cx.task.seccomp.newest() else { return Ok(None) };
    if cx.call.abi == Abi::X86_64 && has(&filter.allows, cx.call.nr) {
        return Ok(None);
    }
    let data = data(cx, &filter)?;
    let (value, by) = verdict(&filter, &data);
    act(cx, value, by, &data)
}

fn has(calls: &super::bpf::Calls, nr: u32) -> bool {
    calls.get(nr as usize / 64).is_some_and(|word| word >> (nr % 64) & 1 != 0)
}

/// What filters are shown of a call.
fn data(cx: &mut Cx, filter: &Filter) -> SysResult<SeccompData> {
    let foreign = cx.call.abi == Abi::I386;
    let mut data = SeccompData {
        nr: cx.call.nr as i32,
        arch: if foreign { AUDIT_ARCH_I386 } else { AUDIT_ARCH_X86_64 },
        instruction_pointer: 0,
        args: cx.call.args,
    };
    if cx.call.abi == Abi::X32 {
        data.nr = (cx.call.nr | X32_BIT) as i32;
    }
    // Nobody sees it otherwise, and registers may have to be fetched.
    if filter.reads_ip || foreign || filter.listener().is_some() {
        let regs = cx.port()?.regs()?;
        data.instruction_pointer = regs.rip;
        if foreign {
            let low = |value: u64| value & 0xffff_ffff;
            data.args = [regs.rbx, regs.rcx, regs.rdx, regs.rsi, regs.rdi, regs.rbp].map(low);
        }
    }
    Ok(data)
}

/// Runs all filters: the value of the strictest action, of the newest filter that said it, and that filter unless all
/// allowed the call.
fn verdict<'a>(filter: &'a Filter, data: &SeccompData) -> (u32, Option<&'a Filter>) {
    // As a signed number: SECCOMP_RET_KILL_PROCESS is the least.
    let order = |value: u32| (value & ACTION) as i32;
    let mut least = (SECCOMP_RET_ALLOW, None);
    for filter in filter.path_of() {
        let value = filter.program.run(data);
        if order(value) < order(least.0) {
            least = (value, Some(filter));
        }
    }
    least
}

fn act(cx: &mut Cx, value: u32, by: Option<&Filter>, data: &SeccompData) -> SysResult<Option<u64>> {
    let task = cx.task.clone();
    match value & ACTION {
        // There is no log of the system's to write to.
        SECCOMP_RET_ALLOW | SECCOMP_RET_LOG => Ok(None),
        SECCOMP_RET_TRACE => traced(cx, value & DATA),
        SECCOMP_RET_USER_NOTIF => match by.and_then(|f| Some((f.own_listener.as_ref()?, f.killable))) {
            Some((notifier, killable)) => notify::ask(cx, notifier, killable, data),
            None => Ok(Some(failure(Errno::ENOSYS.raw().unsigned_abs()))),
        },
        SECCOMP_RET_ERRNO => Ok(Some(failure((value & DATA).min(MAX_ERRNO)))),
        SECCOMP_RET_TRAP => {
            let port = cx.port()?;
            let mut regs = port.regs()?;
            // As if the call had not been made: its number is in rax.
            regs.rax = u64::from(data.nr as u32);
            port.set_regs(&regs)?;
            let info = Siginfo::sys(SYS_SECCOMP, regs.rip, data.nr, data.arch);
            fault::force(&task, Siginfo { si_errno: (value & DATA) as i32, ..info });
            Err(Fail::Resume)
        }
        SECCOMP_RET_KILL_THREAD if task.process.thread_count() > 1 => {
            exit::single(&task, WaitStatus::signaled(SIGSYS, false));
            Err(Fail::Exit)
        }
        // SECCOMP_RET_KILL_PROCESS, and whatever is no action.
        _ => {
            let port = cx.port()?;
            let mut regs = port.regs()?;
            regs.rax = u64::from(data.nr as u32);
            port.set_regs(&regs)?;
            match fault::kill(&task, Siginfo::sys(SYS_SECCOMP, regs.rip, data.nr, data.arch))? {}
        }
    }
}

fn failure(errno: u32) -> u64 {
    i64::from(errno).wrapping_neg() as u64
}

/// The tracer has seen the call: what it made of it is judged again, and passes where it would be asked once more.
#[derive(Default)]
struct Shown(bool);

/// SECCOMP_RET_TRACE: the tracer is told of the number `data`. Without one that wants to know the call is not made.
fn traced(cx: &mut Cx, data: u32) -> SysResult<Option<u64>> {
    if cx.state::<Shown>().0 {
        return Ok(None);
    }
    let task = cx.task.clone();
    if !stop::ask(&task, cx.call, PTRACE_O_TRACESECCOMP, PTRACE_EVENT_SECCOMP, u64::from(data)) {
        return Ok(Some(failure(Errno::ENOSYS.raw().unsigned_abs())));
    }
    cx.state::<Shown>().0 = true;
    Err(Fail::Traced)
}
