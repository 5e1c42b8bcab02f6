//! Calls that a program wants to make itself (PR_SET_SYSCALL_USER_DISPATCH): those from outside a range of code, while a byte
//! of its memory says so, are answered by SIGSYS. Wine and other emulators of kernels use it.

use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::signal::fault;
use crate::sync::{Level, Lock};
use platform::Abi;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use syscall_table::abi::prctl::*;
use syscall_table::abi::seccomp::{AUDIT_ARCH_I386, AUDIT_ARCH_X86_64};
use syscall_table::abi::sigaction::{SIGSEGV, SIGSYS, SYS_USER_DISPATCH, Siginfo};
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// One past the highest user address.
const TASK_SIZE: u64 = 0x7fff_ffff_f000;

/// struct ptrace_sud_config.
#[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Config {
    /// PR_SYS_DISPATCH_*.
    pub mode: u64,
    /// Address of the byte, 0: none.
    pub selector: u64,
    /// Code whose calls pass.
    pub offset: u64,
    /// Its length.
    pub len: u64,
}

/// Of a task.
pub struct Dispatch {
    on: AtomicBool,
    config: Lock<Config>,
}

impl Default for Dispatch {
    fn default() -> Self {
        Dispatch { on: AtomicBool::new(false), config: Lock::new(Level::Field, Config::default()) }
    }
}

impl Dispatch {
    /// Whether calls are looked at.
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed)
    }

    /// As it was set; the range is the one whose calls pass.
    pub fn get(&self) -> Config {
        *self.config.lock()
    }

    /// Sets it, for PR_SYS_DISPATCH_INCLUSIVE_ON with the range turned inside out.
    ///
    /// # Errors
    /// EINVAL, EFAULT.
    pub fn set(&self, mut config: Config) -> SysResult<()> {
        let end = config.offset.wrapping_add(config.len);
        let bad = match config.mode {
            PR_SYS_DISPATCH_OFF => config.offset != 0 || config.len != 0 || config.selector != 0,
            PR_SYS_DISPATCH_EXCLUSIVE_ON => config.offset != 0 && end <= config.offset,
            PR_SYS_DISPATCH_INCLUSIVE_ON => config.len == 0 || end <= config.offset,
            _ => true,
        };
        if bad {
            return Err(Errno::EINVAL.into());
        }
        if config.selector >= TASK_SIZE {
            return Err(Errno::EFAULT.into());
        }
        if config.mode == PR_SYS_DISPATCH_INCLUSIVE_ON {
            config.offset = end;
            config.len = config.len.wrapping_neg();
        }
        *self.config.lock() = config;
        self.on.store(config.mode != PR_SYS_DISPATCH_OFF, Relaxed);
        Ok(())
    }

    /// What execve leaves of it.
    pub fn clear(&self) {
        *self.config.lock() = Config::default();
        self.on.store(false, Relaxed);
    }
}

/// Asked before a task's filters.
///
/// # Errors
/// NeedPort; Resume when the call has become a signal; Exit when the byte has another value than those known.
pub(super) fn look(cx: &mut Cx) -> SysResult<()> {
    if !cx.task.dispatch.is_on() {
        return Ok(());
    }
    let config = cx.task.dispatch.get();
    let mut regs = cx.port()?.regs()?;
    if regs.rip.wrapping_sub(config.offset) < config.len {
        return Ok(());
    }
    let task = cx.task.clone();
    if config.selector != 0 {
        match cx.read_value::<u8>(config.selector) {
            Ok(SYSCALL_DISPATCH_FILTER_ALLOW) => return Ok(()),
            Ok(SYSCALL_DISPATCH_FILTER_BLOCK) => {}
            other => {
                let signal = if other.is_ok() { SIGSYS } else { SIGSEGV };
                match fault::kill(&task, Siginfo::kernel(signal))? {}
            }
        }
    }
    let (number, arch) = match cx.call.abi {
        Abi::X86_64 => (cx.call.nr, AUDIT_ARCH_X86_64),
        Abi::X32 => (cx.call.nr | super::judge::X32_BIT, AUDIT_ARCH_X86_64),
        Abi::I386 => (cx.call.nr, AUDIT_ARCH_I386),
    };
    // As if the call had not been made: its number is in rax.
    regs.rax = u64::from(number);
    cx.port()?.set_regs(&regs)?;
    fault::force(&task, Siginfo::sys(SYS_USER_DISPATCH, regs.rip, number as i32, arch));
    Err(Fail::Resume)
}
