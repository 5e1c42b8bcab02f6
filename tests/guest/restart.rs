//! What a signal does to each call that waits (signal(7), "Interruption of system calls"): EINTR or restarted, by SA_RESTART,
//! after a stop, and what is left of timeouts.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

cases![
    streams,
    sockets,
    readiness,
    sleeps,
    futexes,
    children,
    ipc,
    locks,
    signals,
    descriptors,
    what_is_left,
    what_is_left_after_a_stop,
    bands_of_sigio,
    frames_keep_the_last_fault
];

/// How a call behaves.
#[derive(Clone, Copy, PartialEq, Debug)]
enum How {
    /// Restarted where the handler has SA_RESTART; goes on after a stop.
    Restarts,
    /// EINTR whatever the handler; goes on after a stop.
    Interrupted,
    /// EINTR whatever the handler, and after a stop.
    Stopped,
}
use How::*;

type Call<'a> = &'a dyn Fn() -> i64;

/// Makes the call in a child that waits in it, does `disturb` to that child, then ends the wait by a handler without SA_RESTART.
/// Whether the disturbance ended it.
fn ended_by(call: Call<'_>, flags: i32, disturb: &dyn Fn(i32)) -> bool {
    let pid = child(|| {
        let _first = sig::with(SIGUSR1, sig::count as *const () as usize, flags);
        let _last = sig::with(SIGUSR2, last as *const () as usize, 0);
        err(call(), EINTR);
        i32::from(LAST.load(SeqCst) == 0)
    });
    let asleep = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S') || rest.starts_with('Z'))
    };
    let settle = || {
        while !asleep() {
            sleep_ms(1);
        }
        // It may have slept on its way.
        sleep_ms(8);
        while !asleep() {
            sleep_ms(1);
        }
    };
    settle();
    disturb(pid);
    settle();
    sys!(SYS_kill, pid, SIGUSR2);
    let status = reap(pid);
    check(
        WIFEXITED(status) && WEXITSTATUS(status) < 2,
        &format!("the call ended with EINTR, not {status:#x}"),
    );
    WEXITSTATUS(status) == 1
}

static LAST: AtomicU32 = AtomicU32::new(0);

extern "C" fn last(_: i32) {
    LAST.store(1, SeqCst);
}

fn tell(pid: i32) {
    sys!(SYS_kill, pid, SIGUSR1);
}

fn stop(pid: i32) {
    sys!(SYS_kill, pid, SIGSTOP);
    let mut status = 0;
    sys!(SYS_wait4, pid, &mut status, WUNTRACED, 0);
    sys!(SYS_kill, pid, SIGCONT);
}

fn ignored(pid: i32) {
    sys!(SYS_kill, pid, SIGURG);
}

fn is(name: &str, how: How, call: Call<'_>) {
    let seen = (
        ended_by(call, 0, &tell),
        ended_by(call, SA_RESTART, &tell),
        ended_by(call, SA_RESTART, &stop),
        ended_by(call, 0, &ignored),
    );
    let want = (true, how != Restarts, how == Stopped, false);
    check(seen == want, &format!("{name}: {seen:?}, expected {want:?}"));
}

fn full_pipe() -> [i32; 2] {
    let p = pipe_pair();
    ok(sys!(SYS_fcntl, p[1], F_SETFL, O_NONBLOCK));
    while sys!(SYS_write, p[1], [0u8; 4096].as_ptr(), 4096) > 0 {}
    ok(sys!(SYS_fcntl, p[1], F_SETFL, 0));
    p
}

fn streams() {
    let (p, full) = (pipe_pair(), full_pipe());
    let mut buf = [0u8; 64];
    let at = buf.as_mut_ptr();
    is("read", Restarts, &|| sys!(SYS_read, p[0], at, 64));
    is("readv", Restarts, &|| sys!(SYS_readv, p[0], &[at as usize, 64], 1));
    is("write", Restarts, &|| sys!(SYS_write, full[1], at, 64));
    is("splice", Restarts, &|| sys!(SYS_splice, p[0], 0, full[1], 0, 10, 0));
    is("tee", Restarts, &|| sys!(SYS_tee, p[0], full[1], 10, 0));
    let t = Tmp::new();
    ok(sys!(SYS_mknodat, AT_FDCWD, t.path("fifo"), S_IFIFO | 0o600, 0));
    let fifo = t.path("fifo");
    is("open", Restarts, &|| sys!(SYS_openat, AT_FDCWD, fifo, O_RDONLY));
    shut(p.into_iter().chain(full));
}

fn sockets() {
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    let mut buf = [0u8; 64];
    let at = buf.as_mut_ptr();
    is("recvfrom", Restarts, &|| sys!(SYS_recvfrom, s[0], at, 64, 0, 0, 0));
    let iov = [at as usize, 64];
    let header = [0usize, 0, iov.as_ptr() as usize, 1, 0, 0, 0, 0];
    is("recvmsg", Restarts, &|| sys!(SYS_recvmsg, s[0], &header, 0));
    is("recvmmsg", Restarts, &|| sys!(SYS_recvmmsg, s[0], &header, 1, 0, 0));
    ok(sys!(SYS_setsockopt, s[0], SOL_SOCKET, SO_RCVTIMEO, &[20i64, 0], 16));
    is("recvfrom with SO_RCVTIMEO", Stopped, &|| sys!(SYS_recvfrom, s[0], at, 64, 0, 0, 0));
    let listener = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    let mut name = [0u8; 20];
    name[0] = AF_UNIX as u8;
    name[3..].copy_from_slice(format!("{:017}", sys!(SYS_getpid)).as_bytes());
    ok(sys!(SYS_bind, listener, &name, 20));
    ok(sys!(SYS_listen, listener, 0));
    is("accept", Restarts, &|| sys!(SYS_accept, listener, 0, 0));
    is("accept4", Restarts, &|| sys!(SYS_accept4, listener, 0, 0, 0));
    let fresh = || ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
    let waits = fresh();
    ok(sys!(SYS_connect, waits, &name, 20));
    let refused = fresh();
    is("connect", Restarts, &|| sys!(SYS_connect, refused, &name, 20));
    shut(s.into_iter().chain([listener, waits, refused]));
}

fn readiness() {
    let p = pipe_pair();
    let fds = [u64::from(p[0] as u32) | 1 << 32];
    let set = [1u64 << p[0], 0];
    is("poll", Interrupted, &|| sys!(SYS_poll, &mut fds.clone(), 1, 20_000));
    is("ppoll", Interrupted, &|| sys!(SYS_ppoll, &mut fds.clone(), 1, &mut [20i64, 0], 0, 8));
    is("select", Interrupted, &|| sys!(SYS_select, p[0] + 1, &mut set.clone(), 0, 0, &mut [20i64, 0]));
    is("pselect6", Interrupted, &|| sys!(SYS_pselect6, p[0] + 1, &mut set.clone(), 0, 0, &mut [20i64, 0], 0));
    let ep = ok(sys!(SYS_epoll_create1, 0)) as i32;
    let event = [0u8; 12];
    is("epoll_wait", Stopped, &|| sys!(SYS_epoll_wait, ep, &mut event.clone(), 1, 20_000));
    is("epoll_pwait", Stopped, &|| sys!(SYS_epoll_pwait, ep, &mut event.clone(), 1, -1, 0, 8));
    is("epoll_pwait2", Stopped, &|| sys!(SYS_epoll_pwait2, ep, &mut event.clone(), 1, &[20i64, 0], 0, 8));
    shut(p.into_iter().chain([ep]));
}

fn after(seconds: i64) -> [i64; 2] {
    let mut now = [0i64; 2];
    ok(sys!(SYS_clock_gettime, CLOCK_MONOTONIC, &mut now));
    [now[0] + seconds, now[1]]
}

fn sleeps() {
    is("nanosleep", Interrupted, &|| sys!(SYS_nanosleep, &[20i64, 0], &mut [0i64; 2]));
    is("clock_nanosleep", Interrupted, &|| sys!(SYS_clock_nanosleep, CLOCK_BOOTTIME, 0, &[20i64, 0], 0));
    let end = after(20);
    is("clock_nanosleep until", Interrupted, &|| {
        sys!(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &end, 0)
    });
    is("pause", Interrupted, &|| sys!(SYS_pause));
}

fn futexes() {
    const PRIVATE: i32 = FUTEX_PRIVATE_FLAG;
    let word = [0u32; 2];
    is("FUTEX_WAIT", Restarts, &|| sys!(SYS_futex, &word, FUTEX_WAIT | PRIVATE, 0, 0));
    is("FUTEX_WAIT for a time", Interrupted, &|| {
        sys!(SYS_futex, &word, FUTEX_WAIT | PRIVATE, 0, &[20i64, 0])
    });
    let end = after(20);
    is("FUTEX_WAIT_BITSET", Interrupted, &|| {
        sys!(SYS_futex, &word, FUTEX_WAIT_BITSET | PRIVATE, 0, &end, 0, -1)
    });
    // Those that take a point in time are simply made again.
    let waiters = [0u64, word.as_ptr() as u64, 2 | PRIVATE as u64];
    is("futex_waitv", Restarts, &|| sys!(449, &waiters, 1, 0, &end, CLOCK_MONOTONIC));
    is("futex_waitv without end", Restarts, &|| sys!(449, &waiters, 1, 0, 0, 0));
    is("futex_wait", Restarts, &|| sys!(455, &word, 0, u32::MAX, 2 | PRIVATE, &end, CLOCK_MONOTONIC));
}

fn children() {
    let with_child = |call: Call<'_>| {
        let pid = child(|| {
            loop {
                sys!(SYS_pause);
            }
        });
        let r = call();
        sys!(SYS_kill, pid, SIGKILL);
        r
    };
    is("wait4", Restarts, &|| with_child(&|| sys!(SYS_wait4, -1, 0, 0, 0)));
    is("waitid", Restarts, &|| with_child(&|| sys!(SYS_waitid, P_ALL, 0, 0, WEXITED, 0)));
}

fn ipc() {
    let sem = ok(sys!(SYS_semget, IPC_PRIVATE, 1, 0o600));
    let down = [0u16, -1i16 as u16, 0];
    is("semop", Stopped, &|| sys!(SYS_semop, sem, &down, 1));
    is("semtimedop", Stopped, &|| sys!(SYS_semtimedop, sem, &down, 1, &[20i64, 0]));
    ok(sys!(SYS_semctl, sem, 0, IPC_RMID, 0));
    let queue = ok(sys!(SYS_msgget, IPC_PRIVATE, 0o600));
    let mut message = [1u64; 1025];
    is("msgrcv", Interrupted, &|| sys!(SYS_msgrcv, queue, &mut [0u64; 4], 8, 0, 0));
    while sys!(SYS_msgsnd, queue, &mut message, 8000, IPC_NOWAIT) == 0 {}
    is("msgsnd", Interrupted, &|| sys!(SYS_msgsnd, queue, &message, 8000, 0));
    ok(sys!(SYS_msgctl, queue, IPC_RMID, 0));
    let name = cstr(format!("restart{}", sys!(SYS_getpid)));
    let mq =
        ok(sys!(SYS_mq_open, name, O_RDWR | O_CREAT, 0o600, &[0i64, 1, 16, 0, 0, 0, 0, 0])) as i32;
    ok(sys!(SYS_mq_unlink, name));
    is("mq_timedreceive", Restarts, &|| sys!(SYS_mq_timedreceive, mq, &mut [0u8; 16], 16, 0, 0));
    ok(sys!(SYS_mq_timedsend, mq, b"x", 1, 0, 0));
    is("mq_timedsend", Restarts, &|| sys!(SYS_mq_timedsend, mq, b"x", 1, 0, 0));
    shut([mq]);
}

fn locks() {
    let t = Tmp::new();
    let open = || ok(sys!(SYS_openat, AT_FDCWD, t.path("f"), O_RDWR | O_CREAT, 0o600)) as i32;
    // l_type, l_whence, l_start, l_len, l_pid
    let lock = |start: u64| [F_WRLCK as u64, start, 10, 0];
    let (own, other) = (open(), open());
    ok(sys!(SYS_flock, own, LOCK_EX));
    is("flock", Restarts, &|| sys!(SYS_flock, other, LOCK_EX));
    ok(sys!(SYS_fcntl, own, F_SETLK, &lock(0)));
    is("F_SETLKW", Restarts, &|| sys!(SYS_fcntl, other, F_SETLKW, &lock(0)));
    ok(sys!(SYS_fcntl, own, F_OFD_SETLK, &lock(20)));
    is("F_OFD_SETLKW", Restarts, &|| sys!(SYS_fcntl, other, F_OFD_SETLKW, &lock(20)));
    shut([own, other]);
}

fn signals() {
    let (none, other) = (0u64, sig::set(&[SIGWINCH]));
    is("rt_sigsuspend", Interrupted, &|| sys!(SYS_rt_sigsuspend, &none, 8));
    is("rt_sigtimedwait", Stopped, &|| sys!(SYS_rt_sigtimedwait, &other, 0, &[20i64, 0], 8));
    is("rt_sigtimedwait without end", Stopped, &|| sys!(SYS_rt_sigtimedwait, &other, 0, 0, 8));
}

fn descriptors() {
    let event = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    is("eventfd", Restarts, &|| sys!(SYS_read, event, &mut [0u64], 8));
    let timer = ok(sys!(SYS_timerfd_create, CLOCK_MONOTONIC, 0)) as i32;
    is("timerfd", Restarts, &|| sys!(SYS_read, timer, &mut [0u64], 8));
    let signal = ok(sys!(SYS_signalfd4, -1, &sig::set(&[SIGWINCH]), 8, 0)) as i32;
    is("signalfd", Restarts, &|| sys!(SYS_read, signal, &mut [0u8; 128], 128));
    let inotify = ok(sys!(SYS_inotify_init1, 0)) as i32;
    is("inotify", Restarts, &|| sys!(SYS_read, inotify, &mut [0u8; 4096], 4096));
    shut([event, timer, signal, inotify]);
    let aio = || {
        let mut context = [0u64];
        ok(sys!(SYS_io_setup, 4, &mut context));
        sys!(SYS_io_getevents, std::hint::black_box(&context)[0], 1, 1, &mut [0u64; 4], &[20i64, 0])
    };
    is("io_getevents", Stopped, &aio);
}

fn near(left: &[i64; 2], unit: i64) {
    let ms = left[0] * 1000 + left[1] / (unit / 1000);
    check((40_000..=99_990).contains(&ms), &format!("{ms} ms of 100 s are left"));
}

/// select(2), ppoll(2) and their like say what is left when a signal ends them.
fn what_is_left() {
    let _on = sig::on(SIGUSR1, 0);
    let p = pipe_pair();
    let (mut poll, mut select, mut pselect) = ([100i64, 0], [100i64, 0], [100i64, 0]);
    let fds = [u64::from(p[0] as u32) | 1 << 32];
    let set = [1u64 << p[0], 0];
    let soon = || sig::later(SIGUSR1, 30);
    let waiter = soon();
    err(sys!(SYS_ppoll, &mut fds.clone(), 1, &mut poll, 0, 8), EINTR);
    waiter.join().expect("joined");
    near(&poll, 1_000_000_000);
    let waiter = soon();
    err(sys!(SYS_select, p[0] + 1, &mut set.clone(), 0, 0, &mut select), EINTR);
    waiter.join().expect("joined");
    near(&select, 1_000_000);
    let waiter = soon();
    err(sys!(SYS_pselect6, p[0] + 1, &mut set.clone(), 0, 0, &mut pselect, 0), EINTR);
    waiter.join().expect("joined");
    near(&pselect, 1_000_000_000);
    shut(p);
}

/// A stop does not make them begin anew.
fn what_is_left_after_a_stop() {
    let p = pipe_pair();
    let pid = child(|| {
        let fds = [u64::from(p[0] as u32) | 1 << 32];
        i32::from(sys!(SYS_ppoll, &mut fds.clone(), 1, &mut [1i64, 500_000_000], 0, 8) != 0)
    });
    until_child_asleep(pid.into());
    sleep_ms(1000);
    let (stopped, mut status) = (now_ms(), 0);
    sys!(SYS_kill, pid, SIGSTOP);
    sys!(SYS_wait4, pid, &mut status, WUNTRACED, 0);
    if WIFSTOPPED(status) {
        sys!(SYS_kill, pid, SIGCONT);
        exits(pid, 0);
        check(now_ms() - stopped < 1500, "it does not begin anew");
    } else {
        // The stop came too late.
        eq(status, 0);
    }
    shut(p);
}

static BAND: [std::sync::atomic::AtomicI64; 2] = [const { std::sync::atomic::AtomicI64::new(-1) }; 2];

extern "C" fn band(_: i32, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's; si_band lies behind the three integers and padding.
    let (code, band) = unsafe { ((*info).si_code, info.cast::<i64>().add(2).read()) };
    BAND[0].store(code.into(), SeqCst);
    BAND[1].store(band, SeqCst);
}

/// si_band goes by the reason, not by what is ready.
fn bands_of_sigio() {
    let _on = sig::with(SIGRTMIN(), band as *const () as usize, SA_SIGINFO | SA_RESTART);
    let watch = |fd: i32| {
        ok(sys!(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK));
        ok(sys!(SYS_fcntl, fd, F_SETOWN, sys!(SYS_getpid)));
        ok(sys!(SYS_fcntl, fd, 10 /* F_SETSIG */, SIGRTMIN()));
    };
    let told = |what: &str, code: i64, band: i64| {
        until(what, || (BAND[0].load(SeqCst), BAND[1].load(SeqCst)) == (code, band));
        BAND.iter().for_each(|part| part.store(-1, SeqCst));
    };
    let p = pipe_pair();
    watch(p[0]);
    eq(sys!(SYS_write, p[1], b"x", 1), 1);
    told("something to read", 1, 0x41);
    shut([p[1]]);
    told("nobody writes", 1, 0x41);
    shut([p[0]]);
    let full = full_pipe();
    watch(full[1]);
    let mut buf = vec![0u8; 65536];
    eq(sys!(SYS_read, full[0], buf.as_mut_ptr(), 65536), 65536);
    told("room", 2, 0x304);
    shut([full[0]]);
    told("nobody reads", 2, 0x304);
    shut([full[1]]);
    let mut s = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, &mut s));
    watch(s[0]);
    eq(sys!(SYS_write, s[1], b"x", 1), 1);
    told("something to receive", 1, 0x41);
    ok(sys!(SYS_shutdown, s[1], SHUT_WR));
    told("half closed", 1, 0x41);
    shut([s[1]]);
    told("closed", 6, 0x18);
    shut([s[0]]);
}

static FRAME: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];
static ADDRESS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

extern "C" fn frame(_: i32, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel's.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    FRAME[0].store(registers[REG_TRAPNO as usize] as u32, SeqCst);
    FRAME[1].store(registers[REG_ERR as usize] as u32, SeqCst);
    ADDRESS.store(registers[REG_CR2 as usize] as usize, SeqCst);
    if registers[REG_TRAPNO as usize] == 6
        || registers[REG_TRAPNO as usize] == 14 && FRAME[0].load(SeqCst) == 14
    {
        // Over the instruction, which has two bytes.
        let code = registers[REG_RIP as usize] as *const u8;
        // SAFETY: it was just executed.
        let known = unsafe { code.cast::<u16>().read_unaligned() };
        if matches!(known.to_le_bytes(), [0x0f, 0x0b] | [0x88, 0x00]) {
            registers[REG_RIP as usize] += 2;
        }
    }
}

/// A frame says of which exception the last one was; cr2 is that of the last page fault.
fn frames_keep_the_last_fault() {
    let handlers = [SIGSEGV, SIGILL, SIGUSR1].map(|s| sig::with(s, frame as *const () as usize, SA_SIGINFO));
    let seen = || (FRAME[0].load(SeqCst), FRAME[1].load(SeqCst), ADDRESS.load(SeqCst));
    // SAFETY: the handler steps over both.
    unsafe { std::arch::asm!("mov byte ptr [rax], al", in("rax") 0x1238) };
    eq(seen(), (14, 6, 0x1238));
    // SAFETY: as above.
    unsafe { std::arch::asm!("ud2") };
    eq(seen(), (6, 0, 0x1238));
    drop(handlers);
}
