//! Sessions, controlling terminals, foreground and background (credentials(7), tcsetpgrp(3), ioctl_tty(2)).

use crate::pty::{change, pair, put, reads, slave};
use guest_tests::check::last_failure;
use guest_tests::sig::{handle, mask, set};
use guest_tests::*;
use libc::*;

cases![
    open_makes_it_ours, open_with_noctty, open_for_writing_only, not_a_leader, set_and_drop, steal, dev_tty, dev_tty_without, setsid_drops_it,
    fork_inherits_it, group_and_session, group_errors, group_by_master, interrupt_goes_to_foreground, suspend_and_continue, winch_goes_to_foreground,
    background_read_stops, background_read_ignored, background_read_orphan, background_write, background_write_tostop, background_settings,
    background_settings_blocked, set_group_from_background, leader_exit_hangs_up, leader_exit_frees_tty, notty_by_leader, notty_by_member,
    master_close_signals, hung_up_leader_exit, vhangup_call, proc_stat_fields, stopped_orphans
];

/// Runs `f` in a new session that has the slave of a new pair, opened by the leader.
fn session(f: impl FnOnce(i32, i32, i32)) {
    in_child(|| {
        let (m, s, n) = pair();
        ok(sys!(SYS_setsid));
        let t = ok(slave(n, O_RDWR)) as i32;
        shut([s]);
        f(m, t, n);
    });
}

fn tpgid(fd: i32) -> i32 {
    let mut g = -1i32;
    ok(sys!(SYS_ioctl, fd, TIOCGPGRP, &mut g));
    g
}

fn sid_of(fd: i32) -> i64 {
    let mut g = -1i32;
    let r = sys!(SYS_ioctl, fd, TIOCGSID, &mut g);
    if r < 0 { r } else { i64::from(g) }
}

/// A child in a group of its own. It says `r` on `fd` when it is there.
fn own_group(f: impl FnOnce() -> i32) -> i32 {
    let p = pipe_pair();
    let pid = child(|| {
        ok(sys!(SYS_setpgid, 0, 0));
        sys!(SYS_write, p[1], b"r", 1);
        let code = f();
        if code == 101 {
            sys!(SYS_write, 2, last_failure().as_bytes(), last_failure().len());
        }
        code
    });
    let mut b = [0u8; 1];
    eq(sys!(SYS_read, p[0], &mut b, 1), 1);
    shut(p);
    pid
}

#[track_caller]
fn stops(pid: i32, sig: i32) {
    let mut status = 0;
    eq(ok(sys!(SYS_wait4, pid, &mut status, WUNTRACED, 0)), i64::from(pid));
    check(WIFSTOPPED(status), "stopped");
    eq(WSTOPSIG(status), sig);
}

fn kill_off(pid: i32) {
    sys!(SYS_kill, pid, SIGKILL);
    reap(pid);
}

fn open_makes_it_ours() {
    session(|m, t, _| {
        let me = sys!(SYS_getpid);
        eq(sid_of(t), me);
        eq(i64::from(tpgid(t)), me);
        eq(sid_of(m), me);
    });
}

fn open_with_noctty() {
    in_child(|| {
        let (m, s, n) = pair();
        ok(sys!(SYS_setsid));
        let t = ok(slave(n, O_RDWR | O_NOCTTY)) as i32;
        eq(sid_of(t), -i64::from(ENOTTY));
        eq(sid_of(m), -i64::from(ENOTTY));
        err(sys!(SYS_ioctl, t, TIOCGPGRP, &mut 0i32), ENOTTY);
        let mut g = -1;
        ok(sys!(SYS_ioctl, m, TIOCGPGRP, &mut g));
        eq(g, 0);
        shut([m, s, t]);
    });
}

fn open_for_writing_only() {
    in_child(|| {
        let (_m, _s, n) = pair();
        ok(sys!(SYS_setsid));
        let t = ok(slave(n, O_WRONLY)) as i32;
        eq(sid_of(t), -i64::from(ENOTTY));
        let r = sys!(SYS_ioctl, t, TIOCSCTTY, 0);
        if sys!(SYS_geteuid) == 0 { ok(r) } else { eq(r, -i64::from(EPERM)); 0 };
    });
}

fn not_a_leader() {
    in_child(|| {
        let (_m, s, n) = pair();
        ok(sys!(SYS_setsid));
        let pid = child(|| {
            let t = ok(slave(n, O_RDWR)) as i32;
            eq(sid_of(t), -i64::from(ENOTTY));
            err(sys!(SYS_ioctl, s, TIOCSCTTY, 0), EPERM);
            0
        });
        exits(pid, 0);
    });
}

fn set_and_drop() {
    in_child(|| {
        let (_m, s, _) = pair();
        ok(sys!(SYS_setsid));
        ok(sys!(SYS_ioctl, s, TIOCSCTTY, 0));
        eq(sid_of(s), sys!(SYS_getpid));
        // Once more is no error; another one is.
        ok(sys!(SYS_ioctl, s, TIOCSCTTY, 0));
        let (_m2, s2, _) = pair();
        err(sys!(SYS_ioctl, s2, TIOCSCTTY, 0), EPERM);
        err(sys!(SYS_ioctl, s2, TIOCNOTTY), ENOTTY);
        handle(SIGHUP, SIG_IGN, 0);
        ok(sys!(SYS_ioctl, s, TIOCNOTTY));
        err(sys!(SYS_ioctl, s, TIOCNOTTY), ENOTTY);
        eq(sid_of(s), -i64::from(ENOTTY));
        ok(sys!(SYS_ioctl, s2, TIOCSCTTY, 0));
    });
}

fn steal() {
    session(|m, t, _| {
        let pid = child(|| {
            ok(sys!(SYS_setsid));
            err(sys!(SYS_ioctl, t, TIOCSCTTY, 0), EPERM);
            let r = sys!(SYS_ioctl, t, TIOCSCTTY, 1);
            if sys!(SYS_geteuid) != 0 {
                err(r, EPERM);
                return 0;
            }
            ok(r);
            eq(sid_of(m), sys!(SYS_getpid));
            handle(SIGHUP, SIG_IGN, 0);
            1
        });
        let code = WEXITSTATUS(reap(pid));
        eq(code, i32::from(sys!(SYS_geteuid) == 0));
        if code == 1 {
            eq(sid_of(t), -i64::from(ENOTTY));
        }
    });
}

fn dev_tty() {
    session(|m, t, _| {
        let d = ok(sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0)) as i32;
        eq(stat_fd(d).st_rdev, makedev(5, 0));
        eq(sid_of(d), sys!(SYS_getpid));
        put(d, b"hello");
        reads(m, b"hello");
        // It counts as one more of the slave's.
        shut([t]);
        put(m, b"l\n");
        reads(d, b"l\n");
        eq(std::fs::read_link(format!("/proc/self/fd/{d}")).unwrap().to_str(), Some("/dev/tty"));
    });
}

fn dev_tty_without() {
    in_child(|| {
        ok(sys!(SYS_setsid));
        err(sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0), ENXIO);
    });
}

fn setsid_drops_it() {
    session(|_, t, _| {
        let pid = child(|| {
            ok(sys!(SYS_setsid));
            err(sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0), ENXIO);
            eq(sid_of(t), -i64::from(ENOTTY));
            0
        });
        exits(pid, 0);
        check(sid_of(t) > 0, "the leader keeps it");
    });
}

fn fork_inherits_it() {
    session(|_, t, _| {
        let sid = sid_of(t);
        exits(child(|| i32::from(sid_of(t) == sid)), 1);
    });
}

fn group_and_session() {
    session(|_, t, _| {
        let pid = own_group(forever);
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &pid));
        eq(tpgid(t), pid);
        eq(unsafe { tcgetpgrp(t) }, pid);
        kill_off(pid);
        // The group stays, empty as it is.
        eq(tpgid(t), pid);
        let me = sys!(SYS_getpid) as i32;
        handle(SIGTTOU, SIG_IGN, 0);
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &me));
    });
}

fn group_errors() {
    session(|m, t, _| {
        err(sys!(SYS_ioctl, t, TIOCSPGRP, &-1i32), EINVAL);
        err(sys!(SYS_ioctl, t, TIOCSPGRP, &4_000_000i32), ESRCH);
        err(sys!(SYS_ioctl, t, TIOCSPGRP, bad()), EFAULT);
        err(sys!(SYS_ioctl, t, TIOCGPGRP, bad()), EFAULT);
        let other = child(|| {
            ok(sys!(SYS_setsid));
            forever()
        });
        until("a session of its own", || sys!(SYS_getsid, other) == i64::from(other));
        err(sys!(SYS_ioctl, t, TIOCSPGRP, &other), EPERM);
        kill_off(other);
        // Not the caller's terminal.
        let (_m2, s2, _) = pair();
        let me = sys!(SYS_getpid) as i32;
        err(sys!(SYS_ioctl, s2, TIOCSPGRP, &me), ENOTTY);
        err(sys!(SYS_ioctl, s2, TIOCGPGRP, &mut 0i32), ENOTTY);
        err(sys!(SYS_ioctl, s2, TIOCGSID, &mut 0i32), ENOTTY);
        let _ = m;
    });
}

fn group_by_master() {
    session(|m, _, _| {
        let me = sys!(SYS_getpid) as i32;
        eq(tpgid(m), me);
        ok(sys!(SYS_ioctl, m, TIOCSPGRP, &me));
        let pid = child(|| {
            ok(sys!(SYS_setsid));
            // Reading is free to whoever holds the master, setting is not.
            eq(tpgid(m), me);
            err(sys!(SYS_ioctl, m, TIOCSPGRP, &me), ENOTTY);
            0
        });
        exits(pid, 0);
    });
}

fn interrupt_goes_to_foreground() {
    session(|m, t, _| {
        let fore = own_group(forever);
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &fore));
        put(m, b"\x03");
        killed_by(fore, SIGINT);
        reads(m, b"^C");
        let fore = own_group(forever);
        handle(SIGTTOU, SIG_IGN, 0);
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &fore));
        put(m, b"\x1c");
        let s = reap(fore);
        eq((WIFSIGNALED(s), WTERMSIG(s)), (true, SIGQUIT));
        // TIOCSIG
        let fore = own_group(forever);
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &fore));
        ok(sys!(SYS_ioctl, m, 0x4004_5436u64, SIGINT));
        killed_by(fore, SIGINT);
    });
}

fn suspend_and_continue() {
    session(|m, t, _| {
        let fore = own_group(|| {
            while i64::from(tpgid(t)) != sys!(SYS_getpid) {
                sleep_ms(5);
            }
            let mut b = [0u8; 8];
            i32::from(sys!(SYS_read, t, &mut b, 8) == 2)
        });
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &fore));
        sleep_ms(30);
        put(m, b"\x1a");
        stops(fore, SIGTSTP);
        reads(m, b"^Z");
        ok(sys!(SYS_kill, fore, SIGCONT));
        put(m, b"x\n");
        exits(fore, 1);
    });
}

fn winch_goes_to_foreground() {
    session(|m, t, _| {
        handle(SIGWINCH, sig::count as *const () as usize, 0);
        ok(sys!(SYS_ioctl, m, TIOCSWINSZ, &[24u16, 80, 0, 0]));
        eq(sig::hits(), 1);
        // No change, no signal.
        ok(sys!(SYS_ioctl, m, TIOCSWINSZ, &[24u16, 80, 0, 0]));
        ok(sys!(SYS_ioctl, t, TIOCSWINSZ, &[25u16, 80, 0, 0]));
        eq(sig::hits(), 2);
    });
}

fn background_read_stops() {
    session(|m, t, _| {
        let back = own_group(|| {
            let mut b = [0u8; 8];
            i32::from(sys!(SYS_read, t, &mut b, 8) == 2)
        });
        stops(back, SIGTTIN);
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &back));
        ok(sys!(SYS_kill, -back, SIGCONT));
        put(m, b"x\n");
        exits(back, 1);
    });
}

fn background_read_ignored() {
    session(|_, t, _| {
        let back = own_group(|| {
            handle(SIGTTIN, SIG_IGN, 0);
            err(sys!(SYS_read, t, &mut [0u8; 1], 1), EIO);
            handle(SIGTTIN, SIG_DFL, 0);
            mask(SIG_BLOCK, set(&[SIGTTIN]));
            err(sys!(SYS_read, t, &mut [0u8; 1], 1), EIO);
            err(sys!(SYS_read, t, &mut [0u8; 1], 0), EIO);
            0
        });
        exits(back, 0);
    });
}

fn background_read_orphan() {
    session(|_, t, _| {
        let p = pipe_pair();
        let middle = child(|| {
            child(|| {
                ok(sys!(SYS_setpgid, 0, 0));
                while sys!(SYS_getppid) as i32 != 1 && sys!(SYS_getppid) == sys!(SYS_getppid) && !orphan() {
                    sleep_ms(5);
                }
                let r = sys!(SYS_read, t, &mut [0u8; 1], 1);
                sys!(SYS_write, p[1], &r.to_ne_bytes(), 8);
                0
            });
            0
        });
        exits(middle, 0);
        let mut b = [0u8; 8];
        eq(sys!(SYS_read, p[0], &mut b, 8), 8);
        eq(i64::from_ne_bytes(b), -i64::from(EIO));
    });
}

/// Whether the parent is of another session: the group is an orphan then.
fn orphan() -> bool {
    sys!(SYS_getsid, sys!(SYS_getppid)) != sys!(SYS_getsid, 0)
}

fn background_write() {
    session(|m, t, _| {
        exits(own_group(|| i32::from(sys!(SYS_write, t, b"b", 1) == 1)), 1);
        reads(m, b"b");
    });
}

fn background_write_tostop() {
    session(|m, t, _| {
        change(t, |t| t.c_lflag |= TOSTOP);
        let back = own_group(|| i32::from(sys!(SYS_write, t, b"b", 1) == 1));
        stops(back, SIGTTOU);
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &back));
        ok(sys!(SYS_kill, back, SIGCONT));
        exits(back, 1);
        reads(m, b"b");
    });
}

fn background_settings() {
    session(|_, t, _| {
        for request in [TCSETS, TCSETSW, TCSETSF] {
            let back = own_group(|| {
                let mut x = [0u8; 64];
                ok(sys!(SYS_ioctl, t, TCGETS, &mut x));
                sys!(SYS_ioctl, t, request, &x) as i32
            });
            stops(back, SIGTTOU);
            kill_off(back);
        }
        for (request, arg) in [(TCFLSH, 0u64), (TCXONC, 1), (TCSBRK, 1), (TIOCSETD, 0)] {
            let back = own_group(|| sys!(SYS_ioctl, t, request, arg) as i32);
            stops(back, SIGTTOU);
            kill_off(back);
        }
        // The size is for everybody.
        exits(own_group(|| sys!(SYS_ioctl, t, TIOCSWINSZ, &[9u16; 4]) as i32), 0);
    });
}

fn background_settings_blocked() {
    session(|_, t, _| {
        let back = own_group(|| {
            mask(SIG_BLOCK, set(&[SIGTTOU]));
            change(t, |t| t.c_lflag &= !ECHO);
            0
        });
        exits(back, 0);
        eq(crate::pty::settings(t).c_lflag & ECHO, 0);
    });
}

fn set_group_from_background() {
    session(|_, t, _| {
        let back = own_group(|| {
            let me = sys!(SYS_getpid) as i32;
            sys!(SYS_ioctl, t, TIOCSPGRP, &me) as i32
        });
        stops(back, SIGTTOU);
        kill_off(back);
        let back = own_group(|| {
            mask(SIG_BLOCK, set(&[SIGTTOU]));
            let me = sys!(SYS_getpid) as i32;
            ok(sys!(SYS_ioctl, t, TIOCSPGRP, &me));
            eq(tpgid(t), me);
            0
        });
        exits(back, 0);
    });
}

/// A session whose leader runs `f` and ends; what a member of its foreground group sees is the result.
fn leader_exit(foreground: bool) -> i32 {
    let (m, s, n) = pair();
    let p = pipe_pair();
    let leader = child(|| {
        ok(sys!(SYS_setsid));
        let t = ok(slave(n, O_RDWR)) as i32;
        let member = own_group(|| {
            handle(SIGHUP, sig::count as *const () as usize, 0);
            sys!(SYS_write, p[1], b"r", 1);
            if foreground {
                until("the signal", || sig::hits() > 0);
            } else {
                sleep_ms(400);
            }
            until("the terminal is gone", || sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0) < 0);
            let none = sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0) == -i64::from(ENXIO);
            sys!(SYS_write, p[1], &[sig::hits() as u8, u8::from(none)], 2);
            0
        });
        if foreground {
            ok(sys!(SYS_ioctl, t, TIOCSPGRP, &member));
        }
        let mut b = [0u8; 1];
        sys!(SYS_read, p[0], &mut b, 1);
        0
    });
    exits(leader, 0);
    let mut b = [0u8; 2];
    eq(sys!(SYS_read, p[0], &mut b, 2), 2);
    eq(b[1], 1);
    // Free for another session.
    eq(sid_of(m), -i64::from(ENOTTY));
    shut([m, s, p[0], p[1]]);
    i32::from(b[0])
}

fn leader_exit_hangs_up() {
    eq(leader_exit(true), 1);
    // A running background group is not told.
    eq(leader_exit(false), 0);
}

fn leader_exit_frees_tty() {
    in_child(|| {
        let (m, s, n) = pair();
        for _ in 0..3 {
            let pid = child(|| {
                ok(sys!(SYS_setsid));
                let t = ok(slave(n, O_RDWR)) as i32;
                i32::from(sid_of(t) == sys!(SYS_getpid))
            });
            exits(pid, 1);
        }
        put(s, b"alive");
        reads(m, b"alive");
    });
}

fn notty_by_leader() {
    session(|_, t, _| {
        handle(SIGHUP, sig::count as *const () as usize, 0);
        let (ready, gone) = (pipe_pair(), pipe_pair());
        let pid = child(|| {
            handle(SIGHUP, SIG_IGN, 0);
            sys!(SYS_write, ready[1], b"r", 1);
            sys!(SYS_read, gone[0], &mut [0u8], 1);
            i32::from(sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0) == -i64::from(ENXIO))
        });
        eq(sys!(SYS_read, ready[0], &mut [0u8], 1), 1);
        ok(sys!(SYS_ioctl, t, TIOCNOTTY));
        eq(sig::hits(), 1);
        eq(sys!(SYS_write, gone[1], b"g", 1), 1);
        exits(pid, 1);
    });
}

fn notty_by_member() {
    session(|_, t, _| {
        let pid = child(|| {
            ok(sys!(SYS_ioctl, t, TIOCNOTTY));
            i32::from(sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0) == -i64::from(ENXIO))
        });
        exits(pid, 1);
        check(sid_of(t) > 0, "the leader keeps it");
    });
}

fn master_close_signals() {
    let (m, s, n) = pair();
    let p = pipe_pair();
    let leader = child(|| {
        shut([m, s]);
        ok(sys!(SYS_setsid));
        let t = ok(slave(n, O_RDWR)) as i32;
        handle(SIGHUP, sig::count as *const () as usize, 0);
        sys!(SYS_write, p[1], b"r", 1);
        until("the signal", || sig::hits() > 0);
        let none = sys!(SYS_openat, AT_FDCWD, c"/dev/tty", O_RDWR, 0) == -i64::from(ENXIO);
        i32::from(sig::hits() == 1 && none && sys!(SYS_read, t, &mut [0u8; 1], 1) == 0)
    });
    let mut b = [0u8; 1];
    eq(sys!(SYS_read, p[0], &mut b, 1), 1);
    shut([m]);
    exits(leader, 1);
    shut([s, p[0], p[1]]);
}

fn hung_up_leader_exit() {
    // The foreground group hears of it when the leader ends.
    let (m, s, n) = pair();
    let p = pipe_pair();
    let leader = child(|| {
        shut([m, s]);
        ok(sys!(SYS_setsid));
        let t = ok(slave(n, O_RDWR)) as i32;
        handle(SIGHUP, SIG_IGN, 0);
        let member = own_group(|| {
            shut([t]);
            handle(SIGHUP, sig::count as *const () as usize, 0);
            until("the signal", || sig::hits() > 0);
            sys!(SYS_write, p[1], &[b'0' + sig::hits() as u8], 1);
            0
        });
        ok(sys!(SYS_ioctl, t, TIOCSPGRP, &member));
        sys!(SYS_write, p[1], b"r", 1);
        let mut f = pollfd { fd: t, events: 0, revents: 0 };
        sys!(SYS_poll, &mut f, 1, -1);
        sleep_ms(50);
        sys!(SYS_write, p[1], b"e", 1);
        0
    });
    let mut b = [0u8; 1];
    eq(sys!(SYS_read, p[0], &mut b, 1), 1);
    shut([m]);
    exits(leader, 0);
    eq(sys!(SYS_read, p[0], &mut b, 1), 1);
    eq(b[0], b'e');
    eq(sys!(SYS_read, p[0], &mut b, 1), 1);
    eq(b[0], b'1');
    shut([s, p[0], p[1]]);
}

fn vhangup_call() {
    session(|m, t, _| {
        handle(SIGHUP, sig::count as *const () as usize, 0);
        let r = sys!(SYS_vhangup);
        if sys!(SYS_geteuid) != 0 {
            err(r, EPERM);
            return;
        }
        ok(r);
        eq(sig::hits(), 1);
        eq(sys!(SYS_read, t, &mut [0u8; 1], 1), 0);
        err(sys!(SYS_write, t, b"x", 1), EIO);
        // The pair lives on for who opens it anew.
        let mut n = 0;
        ok(sys!(SYS_ioctl, m, TIOCGPTN, &mut n));
        let again = ok(slave(n, O_RDWR)) as i32;
        put(again, b"new");
        reads(m, b"new");
        eq(sid_of(again), sys!(SYS_getpid));
    });
}

fn proc_stat_fields() {
    session(|_, t, n| {
        let field = |i: usize| {
            let s = std::fs::read_to_string("/proc/self/stat").unwrap();
            s.rsplit_once(") ").unwrap().1.split(' ').nth(i - 3).unwrap().parse::<i64>().unwrap()
        };
        eq(field(7), 136 << 8 | i64::from(n));
        eq(field(8), i64::from(tpgid(t)));
        handle(SIGHUP, SIG_IGN, 0);
        ok(sys!(SYS_ioctl, t, TIOCNOTTY));
        eq((field(7), field(8)), (0, -1));
    });
}

fn stopped_orphans() {
    // A stopped member of a group that becomes an orphan is hung up and continued.
    in_child(|| {
        ok(sys!(SYS_setsid));
        let p = pipe_pair();
        let middle = child(|| {
            let stopped = own_group(|| {
                handle(SIGHUP, sig::count as *const () as usize, 0);
                sys!(SYS_kill, sys!(SYS_getpid), SIGSTOP);
                sys!(SYS_write, p[1], &[sig::hits() as u8], 1);
                0
            });
            stops(stopped, SIGSTOP);
            0
        });
        exits(middle, 0);
        let mut b = [9u8];
        eq(sys!(SYS_read, p[0], &mut b, 1), 1);
        eq(b[0], 1);
    });
}
