//! What ioctl(2) asks of a pseudo-terminal (ioctl_tty(2)); [`super::job`] has the requests about sessions.

use super::line::NEAR;
use super::pty::Pty;
use super::termios;
use crate::cx::Cx;
use crate::fail::{Fail, SysResult};
use crate::task::creds::cap;
use std::sync::Arc;
use syscall_table::abi::getrlimit::RLIMIT_NOFILE;
use syscall_table::abi::ioctl::*;
use syscall_table::abi::open::O_CLOEXEC;
use syscall_table::abi::sigaction::{SIGINT, SIGQUIT, SIGTSTP, SIGTTOU, SIGWINCH};
use syscall_table::errno::Errno;

fn write_int(cx: &mut Cx, arg: u64, value: usize) -> SysResult {
    cx.write_value(arg, &i32::try_from(value).unwrap_or(i32::MAX))?;
    Ok(0)
}

/// Requests that only a master takes; None for another.
pub(super) fn of_master(cx: &mut Cx, pty: &Arc<Pty>, request: u32, arg: u64) -> Option<SysResult> {
    Some(match request {
        TIOCGPTN => cx.write_value(arg, &pty.number).map(|()| 0),
        TIOCSPTLCK => cx.read_value::<i32>(arg).map(|on| {
            pty.state().locked = on != 0;
            0
        }),
        TIOCGPTLCK => {
            let locked = pty.state().locked;
            write_int(cx, arg, usize::from(locked))
        }
        TIOCPKT => cx.read_value::<i32>(arg).map(|on| {
            let line = &mut pty.state().line;
            if on != 0 && !line.packet {
                line.status = 0;
            }
            line.packet = on != 0;
            0
        }),
        TIOCGPKT => {
            let on = pty.state().line.packet;
            write_int(cx, arg, usize::from(on))
        }
        TIOCSIG => match i32::try_from(arg).unwrap_or(0) {
            signal @ (SIGINT | SIGQUIT | SIGTSTP) => {
                pty.job.signal(cx.kernel(), signal);
                Ok(0)
            }
            _ => Err(Errno::EINVAL.into()),
        },
        TIOCGPTPEER => peer(cx, pty, arg),
        _ => return None,
    })
}

/// Opens the slave by its master, whatever the caller sees of /dev/pts.
fn peer(cx: &mut Cx, pty: &Arc<Pty>, arg: u64) -> SysResult {
    // The argument is an int; its upper half is not looked at.
    let flags = i32::from_ne_bytes(((arg & 0xffff_ffff) as u32).to_ne_bytes());
    let task = cx.task;
    let place = cx.kernel().ptys.place(pty.number).ok_or(Errno::EIO)?;
    let file = cx.kernel().vfs.open_place(task, place, flags, true)?;
    let limit = task.process.limit(RLIMIT_NOFILE);
    let fd = task.files().install(file, flags & O_CLOEXEC != 0, 0, limit)?;
    Ok(u64::from(fd.unsigned_abs()))
}

/// Requests of any terminal. `master`: asked through the master, which for settings means the slave's.
pub(super) fn of_terminal(cx: &mut Cx, pty: &Arc<Pty>, master: bool, request: u32, arg: u64) -> SysResult {
    match request {
        TCGETS | TCGETS2 | TCGETA | TIOCGLCKTRMIOS | TIOCGSOFTCAR => get_settings(cx, pty, request, arg),
        TCSETS | TCSETSW | TCSETSF | TCSETS2 | TCSETSW2 | TCSETSF2 | TCSETA | TCSETAW | TCSETAF => {
            set_settings(cx, pty, request, arg)
        }
        TIOCSLCKTRMIOS => lock_settings(cx, pty, arg),
        TIOCSSOFTCAR => {
            let on: i32 = cx.read_value(arg)?;
            change(cx, pty, |line| {
                let mut new = line.termios;
                new.c_cflag = if on != 0 { new.c_cflag | CLOCAL } else { new.c_cflag & !CLOCAL };
                line.set(new);
            })
        }
        TIOCGWINSZ => {
            let size = pty.state().winsize;
            cx.write_value(arg, &size)?;
            Ok(0)
        }
        TIOCSWINSZ => {
            let size: Winsize = cx.read_value(arg)?;
            let old = std::mem::replace(&mut pty.state().winsize, size);
            if old != size {
                pty.job.signal(cx.kernel(), SIGWINCH);
            }
            Ok(0)
        }
        FIONREAD => {
            let count = {
                let state = pty.state();
                if master { state.line.out.len().min(NEAR) } else { state.line.count() }
            };
            write_int(cx, arg, count)
        }
        // What was written has arrived.
        TIOCOUTQ => write_int(cx, arg, 0),
        TIOCEXCL | TIOCNXCL => {
            let mut state = pty.state();
            let flag = if master { &mut state.master_exclusive } else { &mut state.exclusive };
            *flag = request == TIOCEXCL;
            Ok(0)
        }
        TIOCGEXCL => {
            let on = {
                let state = pty.state();
                if master { state.master_exclusive } else { state.exclusive }
            };
            write_int(cx, arg, usize::from(on))
        }
        TIOCGDEV => {
            let device = super::Terminal::device(&**pty);
            cx.write_value(arg, &u32::try_from(device).unwrap_or(0))?;
            Ok(0)
        }
        TIOCGETD => write_int(cx, arg, 0),
        TIOCSETD => {
            check(cx, pty, master)?;
            let discipline: i32 = cx.read_value(arg)?;
            if discipline == 0 { Ok(0) } else { Err(Fail::gap(Errno::EINVAL, "line disciplines but N_TTY")) }
        }
        // Breaks do not reach a pseudo-terminal, and output arrives at once.
        TCSBRK | TCSBRKP | TIOCSBRK | TIOCCBRK => check(cx, pty, master).map(|()| 0),
        TCFLSH => flush(cx, pty, master, arg),
        TCXONC => flow(cx, pty, master, arg),
        TIOCSTI => simulate(cx, pty, master, arg),
        TIOCVHANGUP => {
            if !cx.task.creds().capable(cap::SYS_ADMIN) {
                return Err(Errno::EPERM.into());
            }
            if master {
                return Err(Fail::gap(Errno::EINVAL, "TIOCVHANGUP on a master"));
            }
            pty.hang_up(cx.kernel());
            Ok(0)
        }
        TIOCGPTPEER => Err(Errno::EIO.into()),
        TIOCCONS if master => Err(Errno::EINVAL.into()),
        TIOCCONS if !cx.task.creds().capable(cap::SYS_ADMIN) => Err(Errno::EPERM.into()),
        TIOCCONS => Err(Fail::gap(Errno::EPERM, "TIOCCONS")),
        _ => Err(Errno::ENOTTY.into()),
    }
}

/// A background process may not change its terminal. A master is nobody's controlling terminal.
fn check(cx: &Cx, pty: &Pty, master: bool) -> SysResult<()> {
    if master { Ok(()) } else { pty.job.check(cx, SIGTTOU) }
}

fn get_settings(cx: &mut Cx, pty: &Pty, request: u32, arg: u64) -> SysResult {
    let (now, locked) = {
        let state = pty.state();
        (state.line.termios, state.line.locked)
    };
    match request {
        TCGETS => cx.write_value(arg, &termios::to_termios(&now))?,
        TCGETS2 => cx.write_value(arg, &now)?,
        // The structure's last byte is padding and stays as it is.
        TCGETA => {
            let termio = termios::to_termio(&now);
            cx.copy_out(arg, zerocopy::IntoBytes::as_bytes(&termio).get(..17).unwrap_or_default())?;
        }
        TIOCGLCKTRMIOS => cx.write_value(arg, &termios::to_termios(&locked))?,
        _ => cx.write_value(arg, &i32::from(now.c_cflag & CLOCAL != 0))?,
    }
    Ok(0)
}

/// Changes the line discipline's state, and what follows from that.
fn change(cx: &mut Cx, pty: &Pty, f: impl FnOnce(&mut super::line::Line)) -> SysResult {
    let effects = {
        let mut state = pty.state();
        f(&mut state.line);
        state.pump();
        state.line.take_effects()
    };
    pty.act(cx.kernel(), effects);
    Ok(0)
}

fn set_settings(cx: &mut Cx, pty: &Pty, request: u32, arg: u64) -> SysResult {
    pty.job.check(cx, SIGTTOU)?;
    let old = pty.state().line.termios;
    let new = match request {
        TCSETS | TCSETSW | TCSETSF => termios::from_termios(&old, &cx.read_value(arg)?),
        TCSETS2 | TCSETSW2 | TCSETSF2 => termios::from_termios2(&cx.read_value(arg)?),
        _ => {
            let mut bytes = [0; 18];
            cx.copy_in(arg, bytes.get_mut(..17).unwrap_or_default())?;
            termios::from_termio(&old, &zerocopy::transmute!(bytes))
        }
    };
    let flushes = matches!(request, TCSETSF | TCSETSF2 | TCSETAF);
    change(cx, pty, |line| {
        if flushes {
            line.flush_input();
        }
        line.set(new);
    })
}

fn lock_settings(cx: &mut Cx, pty: &Pty, arg: u64) -> SysResult {
    if !cx.task.creds().capable(cap::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let new: Termios = cx.read_value(arg)?;
    let mut state = pty.state();
    let locked = &mut state.line.locked;
    (locked.c_iflag, locked.c_oflag) = (new.c_iflag, new.c_oflag);
    (locked.c_cflag, locked.c_lflag) = (new.c_cflag, new.c_lflag);
    (locked.c_line, locked.c_cc) = (new.c_line, new.c_cc);
    Ok(0)
}

fn flush(cx: &mut Cx, pty: &Pty, master: bool, arg: u64) -> SysResult {
    check(cx, pty, master)?;
    if arg > TCIOFLUSH {
        return Err(Errno::EINVAL.into());
    }
    let (input, output) = (arg != TCOFLUSH, arg != TCIFLUSH);
    let effects = {
        let mut state = pty.state();
        match master {
            false => {
                if input {
                    state.flush_input();
                }
                if output {
                    state.line.flush_output();
                }
            }
            true => {
                if input {
                    state.line.out.clear();
                    state.line.effects.near = true;
                }
                if output {
                    state.incoming.clear();
                    state.line.effects.far = true;
                }
            }
        }
        state.line.take_effects()
    };
    pty.act(cx.kernel(), effects);
    Ok(0)
}

fn flow(cx: &mut Cx, pty: &Pty, master: bool, arg: u64) -> SysResult {
    check(cx, pty, master)?;
    let effects = {
        let mut state = pty.state();
        let sent = match arg {
            TCOOFF if master => {
                state.master_stopped = true;
                None
            }
            TCOON if master => {
                state.master_stopped = false;
                state.line.effects.far = true;
                None
            }
            TCOOFF => {
                state.line.stop_by_call();
                None
            }
            TCOON => {
                state.line.start_by_call();
                None
            }
            // A master's own control characters are those of new terminals.
            TCIOFF if master => Some(0x13),
            TCION if master => Some(0x11),
            TCIOFF => state.line.cc(VSTOP),
            TCION => state.line.cc(VSTART),
            _ => return Err(Errno::EINVAL.into()),
        };
        if let Some(byte) = sent {
            if master {
                state.accept(&[byte]);
            } else {
                state.line.send(byte);
            }
        }
        state.line.take_effects()
    };
    pty.act(cx.kernel(), effects);
    Ok(0)
}

/// TIOCSTI: a character as if it had been typed. Linux without CONFIG_LEGACY_TIOCSTI: for CAP_SYS_ADMIN alone.
fn simulate(cx: &mut Cx, pty: &Pty, master: bool, arg: u64) -> SysResult {
    if !cx.task.creds().capable(cap::SYS_ADMIN) {
        return Err(Errno::EIO.into());
    }
    let byte: u8 = cx.read_value(arg)?;
    if master {
        return change(cx, pty, |line| line.send(byte));
    }
    change(cx, pty, |line| {
        line.receive(&[byte]);
    })
}

/// vhangup(2): the caller's terminal hangs up.
///
/// # Errors
/// A gap when it is the one that the sandbox was started on.
pub(crate) fn hang_up_own(cx: &Cx) -> SysResult {
    let tty = cx.task.process.ctty.lock().clone();
    let Some(tty) = tty else { return Ok(0) };
    let any: Arc<dyn std::any::Any + Send + Sync> = tty;
    let Ok(pty) = any.downcast::<Pty>() else {
        return Err(Fail::gap(Errno::EPERM, "the terminal that the sandbox was started on"));
    };
    pty.hang_up(cx.kernel());
    Ok(0)
}
