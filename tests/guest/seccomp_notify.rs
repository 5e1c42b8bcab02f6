//! SECCOMP_RET_USER_NOTIF (seccomp_unotify(2)): somebody else answers a filter's calls.

use guest_tests::filter::{ALLOW, ERRNO, NR, add, jump, load, no_new_privs, on, ret, set};
use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::thread;

cases![
    values, goes_on, descriptor, one_listener, second_after_close, closed_listener, closed_while_waiting, recv_errors, send_errors, id_valid, set_flags,
    other_requests, readiness, hangup, hangup_of_killed, interrupted, interrupted_before_read, waits_killably, killed_while_waiting, addfd, addfd_number, addfd_send,
    addfd_errors, addfd_limit, with_tsync, order_of_reading, recv_interrupted, supervisor_process, precedence_of_listener, many_at_once
];

const USER_NOTIF: u32 = 0x7fc0_0000;
const NEW_LISTENER: u64 = 8;
const WAIT_KILLABLE_RECV: u64 = 32;

const RECV: u32 = 0xc050_2100;
const SEND: u32 = 0xc018_2101;
const ID_VALID: u32 = 0x4008_2102;
const ADDFD: u32 = 0x4018_2103;
const SET_FLAGS: u32 = 0x4008_2104;

/// struct seccomp_notif.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug, PartialEq)]
struct Notif {
    id: u64,
    pid: u32,
    flags: u32,
    nr: i32,
    arch: u32,
    ip: u64,
    args: [u64; 6],
}

/// struct seccomp_notif_resp.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Resp {
    id: u64,
    val: i64,
    error: i32,
    flags: u32,
}

/// struct seccomp_notif_addfd.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct AddFd {
    id: u64,
    flags: u32,
    srcfd: u32,
    newfd: u32,
    newfd_flags: u32,
}

#[track_caller]
fn listen(flags: u64, nr: i64) -> i32 {
    no_new_privs();
    ok(set(NEW_LISTENER | flags, &on(nr, USER_NOTIF))) as i32
}

fn recv(fd: i32) -> (i64, Notif) {
    let mut notif = Notif::default();
    let r = sys!(SYS_ioctl, fd, RECV, &mut notif);
    (r, notif)
}

#[track_caller]
fn next(fd: i32) -> Notif {
    let (r, notif) = recv(fd);
    eq(r, 0);
    notif
}

fn send(fd: i32, resp: Resp) -> i64 {
    sys!(SYS_ioctl, fd, SEND, &resp)
}

#[track_caller]
fn answer(fd: i32, id: u64, val: i64) {
    eq(send(fd, Resp { id, val, ..Resp::default() }), 0);
}

fn valid(fd: i32, id: u64) -> i64 {
    sys!(SYS_ioctl, fd, ID_VALID, &id)
}

fn poll(fd: i32, events: i16, ms: i32) -> i16 {
    let mut p = pollfd { fd, events, revents: 0 };
    ok(sys!(SYS_poll, &mut p, 1, ms));
    p.revents
}

fn ready(fd: i32, ms: i32) -> i16 {
    poll(fd, POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM, ms)
}

#[track_caller]
fn hangs_up(fd: i32) {
    eq(poll(fd, 0, -1), POLLHUP);
}

/// A thread that makes the call and tells what it gave.
fn caller(nr: i64, args: [u64; 3]) -> thread::JoinHandle<i64> {
    thread::spawn(move || sys!(nr, args[0], args[1], args[2]))
}

fn values() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        for (val, error, wanted) in [(0, 0, 0), (77, 0, 77), (-5, 0, -5), (9, -7, -7), (0, 12, 12), (i64::MAX, 0, i64::MAX)] {
            let call = caller(SYS_getpgid, [1, u64::MAX, 3]);
            let n = next(fd);
            eq((n.flags, n.nr, n.arch), (0, SYS_getpgid as i32, 0xc000_003e));
            eq(&n.args[..3], [1, u64::MAX, 3]);
            check(n.pid != sys!(SYS_gettid) as u32 && n.ip != 0, "the thread and where it is");
            eq(valid(fd, n.id), 0);
            eq(send(fd, Resp { id: n.id, val, error, flags: 0 }), 0);
            eq(call.join().unwrap(), wanted);
            err(valid(fd, n.id), ENOENT);
            err(send(fd, Resp { id: n.id, ..Resp::default() }), ENOENT);
        }
    });
}

fn goes_on() {
    in_child(|| {
        let mine = sys!(SYS_getpgid, 0);
        let fd = listen(0, SYS_getpgid);
        let call = caller(SYS_getpgid, [0; 3]);
        let id = next(fd).id;
        eq(send(fd, Resp { id, flags: 1, ..Resp::default() }), 0);
        eq(call.join().unwrap(), mine);
    });
}

fn descriptor() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        eq(sys!(SYS_fcntl, fd, F_GETFD), i64::from(FD_CLOEXEC));
        eq(sys!(SYS_fcntl, fd, F_GETFL) & !i64::from(O_LARGEFILE), i64::from(O_RDWR));
        let name = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        eq(name.to_str(), Some("anon_inode:seccomp notify"));
        err(sys!(SYS_read, fd, &mut [0u8; 80], 80), EINVAL);
        err(sys!(SYS_write, fd, &[0u8; 80], 80), EINVAL);
        err(sys!(SYS_lseek, fd, 0, SEEK_SET), ESPIPE);
        err(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, fd, 0), ENODEV);
    });
}

fn one_listener() {
    in_child(|| {
        let _fd = listen(0, SYS_getpgid);
        let free = ok(sys!(SYS_dup, 0));
        shut([free as i32]);
        err(set(NEW_LISTENER, &on(SYS_getppid, USER_NOTIF)), EBUSY);
        exits(child(|| i32::from(set(NEW_LISTENER, &[ret(ALLOW)]) != -i64::from(EBUSY))), 0);
        // The failed ones left no descriptor.
        eq(sys!(SYS_dup, 0), free);
    });
}

fn second_after_close() {
    in_child(|| {
        let first = listen(0, SYS_getpgid);
        shut([first]);
        err(sys!(SYS_getpgid, 0), ENOSYS);
        let second = listen(0, SYS_getppid);
        let call = caller(SYS_getppid, [0; 3]);
        answer(second, next(second).id, 5);
        eq(call.join().unwrap(), 5);
        err(sys!(SYS_getpgid, 0), ENOSYS);
    });
}

fn closed_listener() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        let copy = ok(sys!(SYS_dup, fd)) as i32;
        shut([fd]);
        let call = caller(SYS_getpgid, [0; 3]);
        answer(copy, next(copy).id, 1);
        eq(call.join().unwrap(), 1);
        shut([copy]);
        err(sys!(SYS_getpgid, 0), ENOSYS);
    });
}

fn closed_while_waiting() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        let (unread, read) = (caller(SYS_getpgid, [0; 3]), caller(SYS_getpgid, [0; 3]));
        next(fd);
        sleep_ms(50);
        shut([fd]);
        eq(unread.join().unwrap(), -i64::from(ENOSYS));
        eq(read.join().unwrap(), -i64::from(ENOSYS));
    });
}

fn recv_errors() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        let call = caller(SYS_getpgid, [0; 3]);
        eq(ready(fd, -1) & POLLIN, POLLIN);
        for dirty in [Notif { id: 1, ..Notif::default() }, Notif { flags: 1, ..Notif::default() }, Notif { ip: 1, ..Notif::default() }] {
            err(sys!(SYS_ioctl, fd, RECV, &dirty), EINVAL);
        }
        err(sys!(SYS_ioctl, fd, RECV, bad()), EFAULT);
        err(sys!(SYS_ioctl, fd, RECV, 0), EFAULT);
        let guarded = Guarded::new();
        err(sys!(SYS_ioctl, fd, RECV, guarded.tail(40)), EFAULT);
        // Memory that can be read and not written: the notification stays for the next.
        let page = ok(sys!(SYS_mmap, 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        err(sys!(SYS_ioctl, fd, RECV, page), EFAULT);
        answer(fd, next(fd).id, 3);
        eq(call.join().unwrap(), 3);
    });
}

fn send_errors() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        let call = caller(SYS_getpgid, [0; 3]);
        err(sys!(SYS_ioctl, fd, SEND, bad()), EFAULT);
        err(send(fd, Resp { id: 1, ..Resp::default() }), ENOENT);
        let id = next(fd).id;
        for (val, error, flags) in [(0, 0, 2), (1, 0, 1), (0, 1, 1), (0, 0, 3), (0, 0, 1 << 31)] {
            err(send(fd, Resp { id, val, error, flags }), EINVAL);
        }
        err(send(fd, Resp { id: id + 1, ..Resp::default() }), ENOENT);
        answer(fd, id, 3);
        eq(call.join().unwrap(), 3);
    });
}

fn id_valid() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        err(valid(fd, 0), ENOENT);
        err(sys!(SYS_ioctl, fd, ID_VALID, bad()), EFAULT);
        let call = caller(SYS_getpgid, [0; 3]);
        let id = next(fd).id;
        eq(valid(fd, id), 0);
        // As the request was numbered first.
        eq(sys!(SYS_ioctl, fd, 0x8008_2102u32, &id), 0);
        err(valid(fd, id + 1), ENOENT);
        answer(fd, id, 3);
        call.join().unwrap();
        err(valid(fd, id), ENOENT);
    });
}

fn set_flags() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        eq(sys!(SYS_ioctl, fd, SET_FLAGS, 1), 0);
        eq(sys!(SYS_ioctl, fd, SET_FLAGS, 0), 0);
        err(sys!(SYS_ioctl, fd, SET_FLAGS, 2), EINVAL);
        err(sys!(SYS_ioctl, fd, SET_FLAGS, 1u64 << 40), EINVAL);
    });
}

fn other_requests() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        for request in [0u32, 0xc050_2105, 0xc051_2100, 0x2100, TCGETS as u32, FIONREAD as u32] {
            err(sys!(SYS_ioctl, fd, request, bad()), EINVAL);
        }
    });
}

fn readiness() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        eq(ready(fd, 0), 0);
        let epoll = ok(sys!(SYS_epoll_create1, 0)) as i32;
        let mut event = epoll_event { events: EPOLLIN as u32, u64: 7 };
        eq(sys!(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, &event), 0);
        let call = caller(SYS_getpgid, [0; 3]);
        eq(sys!(SYS_epoll_wait, epoll, &mut event, 1, -1), 1);
        eq(ready(fd, 0) & (POLLIN | POLLOUT), POLLIN);
        let id = next(fd).id;
        eq(ready(fd, 0) & (POLLIN | POLLOUT), POLLOUT);
        let second = caller(SYS_getpgid, [0; 3]);
        while ready(fd, 0) & POLLIN == 0 {
            sleep_ms(1);
        }
        eq(ready(fd, 0) & (POLLIN | POLLOUT), POLLIN | POLLOUT);
        answer(fd, id, 3);
        answer(fd, next(fd).id, 3);
        call.join().unwrap();
        second.join().unwrap();
        eq(ready(fd, 0), 0);
    });
}

/// Sends a descriptor of the calling process to another: here by its number in a child that shares the table.
fn shared_child(f: impl FnOnce() -> i32) -> i32 {
    let pid = ok(sys!(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0)) as i32;
    if pid == 0 {
        let code = f();
        child::exit_now(code);
    }
    pid
}

static SHARED: AtomicI32 = AtomicI32::new(-1);

/// A child with a filter whose listener this process has.
#[track_caller]
fn supervised(flags: u64, nr: i64, f: impl FnOnce() -> i32) -> (i32, i32) {
    let p = pipe_pair();
    let pid = shared_child(|| {
        let fd = listen(flags, nr);
        sys!(SYS_write, p[1], &fd, 4);
        f()
    });
    let mut fd = 0i32;
    eq(sys!(SYS_read, p[0], &mut fd, 4), 4);
    shut(p);
    SHARED.store(fd, SeqCst);
    (pid, fd)
}

/// The last task with the filter ends.
fn hangup() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_getpgid, || sys!(SYS_getpgid, 0) as i32);
        answer(fd, next(fd).id, 5);
        hangs_up(fd);
        err(recv(fd).0, ENOENT);
        exits(pid, 5);
        eq(ready(fd, 0) & (POLLHUP | POLLIN | POLLOUT), POLLHUP);
    });
}

fn hangup_of_killed() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_getpgid, || sys!(SYS_getpgid, 0) as i32);
        let id = next(fd).id;
        eq(valid(fd, id), 0);
        ok(sys!(SYS_kill, pid, SIGKILL));
        hangs_up(fd);
        err(valid(fd, id), ENOENT);
        err(send(fd, Resp { id, ..Resp::default() }), ENOENT);
        killed_by(pid, SIGKILL);
    });
}

/// A handler ends the call, or it is made again and asked about anew.
fn interrupted() {
    for restart in [0, SA_RESTART] {
        in_child(|| {
            let _on = sig::on(SIGUSR1, restart);
            let fd = listen(0, SYS_getpgid);
            let call = caller(SYS_getpgid, [0; 3]);
            let n = next(fd);
            ok(sys!(SYS_tgkill, sys!(SYS_getpid), n.pid, SIGUSR1));
            if restart == 0 {
                eq(call.join().unwrap(), -i64::from(EINTR));
            } else {
                let again = next(fd);
                check(again.id != n.id && again.pid == n.pid && again.nr == n.nr, "another notification");
                answer(fd, again.id, 8);
                eq(call.join().unwrap(), 8);
            }
            err(valid(fd, n.id), ENOENT);
            err(send(fd, Resp { id: n.id, ..Resp::default() }), ENOENT);
            eq(sig::hits(), 1);
        });
    }
}

/// The read finds that the call it was woken for is gone.
fn interrupted_before_read() {
    in_child(|| {
        static TID: AtomicI32 = AtomicI32::new(0);
        let _on = sig::on(SIGUSR1, 0);
        let fd = listen(0, SYS_getpgid);
        let call = thread::spawn(|| {
            TID.store(sys!(SYS_gettid) as i32, SeqCst);
            sys!(SYS_getpgid, 0)
        });
        eq(ready(fd, -1) & POLLIN, POLLIN);
        ok(sys!(SYS_tgkill, sys!(SYS_getpid), TID.load(SeqCst), SIGUSR1));
        eq(call.join().unwrap(), -i64::from(EINTR));
        eq(ready(fd, 0), 0);
        err(recv(fd).0, ENOENT);
    });
}

/// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV: once read, only a fatal signal ends the wait.
fn waits_killably() {
    in_child(|| {
        let _on = sig::on(SIGUSR1, 0);
        let fd = listen(WAIT_KILLABLE_RECV, SYS_getpgid);
        let call = caller(SYS_getpgid, [0; 3]);
        let n = next(fd);
        ok(sys!(SYS_tgkill, sys!(SYS_getpid), n.pid, SIGUSR1));
        sleep_ms(60);
        eq((valid(fd, n.id), sig::hits()), (0, 0));
        answer(fd, n.id, 4);
        eq(call.join().unwrap(), 4);
        eq(sig::hits(), 1);
    });
    in_child(|| {
        let (pid, fd) = supervised(WAIT_KILLABLE_RECV, SYS_getpgid, || sys!(SYS_getpgid, 0) as i32);
        next(fd);
        ok(sys!(SYS_kill, pid, SIGTERM));
        killed_by(pid, SIGTERM);
    });
}

fn killed_while_waiting() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_getpgid, || sys!(SYS_getpgid, 0) as i32);
        eq(ready(fd, -1) & POLLIN, POLLIN);
        ok(sys!(SYS_kill, pid, SIGTERM));
        killed_by(pid, SIGTERM);
        hangs_up(fd);
        err(recv(fd).0, ENOENT);
    });
}

fn addfd() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_openat, || {
            // Its own table, so that the descriptor is seen to come.
            ok(sys!(SYS_unshare, CLONE_FILES));
            let fd = sys!(SYS_openat, AT_FDCWD, c"/nowhere", 0);
            let mut byte = [0u8];
            let flags = sys!(SYS_fcntl, fd, F_GETFD);
            i32::from(sys!(SYS_read, fd, &mut byte, 1) != 1 || byte != *b"q" || flags != i64::from(FD_CLOEXEC))
        });
        let n = next(fd);
        let p = pipe_pair();
        eq(sys!(SYS_write, p[1], b"q", 1), 1);
        let new = sys!(SYS_ioctl, fd, ADDFD, &AddFd { id: n.id, srcfd: p[0] as u32, newfd_flags: O_CLOEXEC as u32, ..AddFd::default() });
        check(new >= 0, "a number in the other's table");
        answer(fd, n.id, new);
        exits(pid, 0);
    });
}

fn addfd_number() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_openat, || {
            ok(sys!(SYS_unshare, CLONE_FILES));
            let fd = sys!(SYS_openat, AT_FDCWD, c"/nowhere", 0);
            i32::from(fd != 200 || sys!(SYS_fcntl, 200, F_GETFD) != 0)
        });
        let n = next(fd);
        let request = AddFd { id: n.id, srcfd: 0, flags: 1, newfd: 200, newfd_flags: 0 };
        for _ in 0..2 {
            eq(sys!(SYS_ioctl, fd, ADDFD, &request), 200);
        }
        answer(fd, n.id, 200);
        exits(pid, 0);
    });
}

/// SECCOMP_ADDFD_FLAG_SEND: the descriptor is the answer.
fn addfd_send() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_openat, || {
            ok(sys!(SYS_unshare, CLONE_FILES));
            let fd = sys!(SYS_openat, AT_FDCWD, c"/nowhere", 0);
            i32::from(fd < 0 || sys!(SYS_fcntl, fd, F_GETFD) != 0)
        });
        let n = next(fd);
        let new = ok(sys!(SYS_ioctl, fd, ADDFD, &AddFd { id: n.id, srcfd: 0, flags: 2, ..AddFd::default() }));
        check(new > 0, "a number");
        exits(pid, 0);
        err(send(fd, Resp { id: n.id, ..Resp::default() }), ENOENT);
    });
}

fn addfd_errors() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        let call = caller(SYS_getpgid, [0; 3]);
        eq(ready(fd, -1) & POLLIN, POLLIN);
        let add = |request: AddFd| sys!(SYS_ioctl, fd, ADDFD, &request);
        let plain = AddFd { id: 1, ..AddFd::default() };
        err(add(plain), ENOENT);
        err(add(AddFd { srcfd: 999, ..plain }), EBADF);
        err(add(AddFd { srcfd: 999, flags: 4, ..plain }), EINVAL);
        err(add(AddFd { srcfd: 999, newfd_flags: 1, ..plain }), EINVAL);
        err(add(AddFd { srcfd: 999, newfd: 5, ..plain }), EINVAL);
        err(sys!(SYS_ioctl, fd, ADDFD, bad()), EFAULT);
        // Longer and shorter structs.
        let size = |size: u32| ADDFD & !0x3fff_0000 | size << 16;
        let mut long = [0u64; 512];
        long[0] = 1;
        err(sys!(SYS_ioctl, fd, size(16), &long), EINVAL);
        err(sys!(SYS_ioctl, fd, size(4096), &long), EINVAL);
        err(sys!(SYS_ioctl, fd, size(32), &long), ENOENT);
        err(sys!(SYS_ioctl, fd, size(32) & 0x3fff_ffff, &long), ENOENT);
        long[3] = 1;
        err(sys!(SYS_ioctl, fd, size(32), &long), E2BIG);
        let id = next(fd).id;
        answer(fd, id, 3);
        call.join().unwrap();
        err(add(AddFd { id, ..AddFd::default() }), ENOENT);
    });
}

/// Before it was read nobody may do anything to it; the other's limit counts.
fn addfd_limit() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_openat, || {
            ok(sys!(SYS_unshare, CLONE_FILES));
            ok(sys!(SYS_setrlimit, RLIMIT_NOFILE, &[3u64, 3]));
            sys!(SYS_openat, AT_FDCWD, c"/nowhere", 0) as i32
        });
        let n = next(fd);
        let add = |request: AddFd| sys!(SYS_ioctl, fd, ADDFD, &request);
        err(add(AddFd { id: n.id, ..AddFd::default() }), EMFILE);
        err(add(AddFd { id: n.id, flags: 1, newfd: 3, ..AddFd::default() }), EBADF);
        err(add(AddFd { id: n.id, flags: 1, newfd: u32::MAX, ..AddFd::default() }), EBADF);
        err(add(AddFd { id: n.id, flags: 2, ..AddFd::default() }), EMFILE);
        eq(valid(fd, n.id), 0);
        answer(fd, n.id, 9);
        exits(pid, 9);
    });
}

fn with_tsync() {
    in_child(|| {
        let (tx, rx) = std::sync::mpsc::channel::<()>();
        let other = thread::spawn(move || {
            let _ = rx.recv();
            sys!(SYS_getpgid, 0)
        });
        no_new_privs();
        // TSYNC | TSYNC_ESRCH | NEW_LISTENER
        let fd = ok(set(1 | 16 | NEW_LISTENER, &on(SYS_getpgid, USER_NOTIF))) as i32;
        check(fd > 2, "a descriptor");
        tx.send(()).unwrap();
        answer(fd, next(fd).id, 6);
        eq(other.join().unwrap(), 6);
    });
}

fn order_of_reading() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        let mut calls = Vec::new();
        for i in 0..6 {
            calls.push(blocked(move || sys!(SYS_getpgid, i, 0, 0)));
        }
        let read: Vec<Notif> = (0..6).map(|_| next(fd)).collect();
        eq(read.iter().map(|n| n.args[0]).collect::<Vec<_>>(), (0..6).collect::<Vec<u64>>());
        check(read.windows(2).all(|w| w[1].id == w[0].id.wrapping_add(1)), "ids count up");
        for n in read.iter().rev() {
            answer(fd, n.id, n.args[0] as i64 + 40);
        }
        eq(calls.into_iter().map(|c| c.join().unwrap()).collect::<Vec<_>>(), (40..46).collect::<Vec<i64>>());
    });
}

fn recv_interrupted() {
    for restart in [0, SA_RESTART] {
        in_child(|| {
            let _on = sig::on(SIGUSR1, restart);
            let fd = listen(0, SYS_getpgid);
            let signal = sig::later(SIGUSR1, 60);
            let call = (restart != 0).then(|| {
                thread::spawn(|| {
                    until("the signal came", || sig::hits() == 1);
                    sys!(SYS_getpgid, 0)
                })
            });
            let (r, n) = recv(fd);
            eq(sig::hits(), 1);
            match call {
                None => eq(r, -i64::from(EINTR)),
                Some(call) => {
                    eq(r, 0);
                    answer(fd, n.id, 2);
                    eq(call.join().unwrap(), 2);
                }
            }
            signal.join().unwrap();
        });
    }
}

/// The caller's memory is read and changed by the process that answers, as container managers do.
fn supervisor_process() {
    in_child(|| {
        let (pid, fd) = supervised(0, SYS_uname, || {
            let mut name = *b"question";
            let r = sys!(SYS_uname, &mut name);
            i32::from(r != 8 || name != *b"answered")
        });
        let n = next(fd);
        eq(n.pid as i32, pid);
        let mut text = [0u8; 8];
        let remote = [n.args[0] as usize, 8];
        eq(sys!(SYS_process_vm_readv, pid, &[text.as_mut_ptr() as usize, 8], 1, &remote, 1, 0), 8);
        eq(&text, b"question");
        eq(sys!(SYS_process_vm_writev, pid, &[b"answered".as_ptr() as usize, 8], 1, &remote, 1, 0), 8);
        eq(valid(fd, n.id), 0);
        answer(fd, n.id, 8);
        exits(pid, 0);
    });
}

/// An errno of another filter comes first, and nobody is asked.
fn precedence_of_listener() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        add(&on(SYS_getpgid, ERRNO | 4));
        eq(sys!(SYS_getpgid, 0), -4);
        eq(ready(fd, 0), 0);
        add(&[load(NR), jump(BPF_JEQ | BPF_K, SYS_getppid as u32, 0, 1), ret(USER_NOTIF), ret(ALLOW)]);
        // The filter that said so has no listener, though an older one has.
        err(sys!(SYS_getppid), ENOSYS);
    });
}

fn many_at_once() {
    in_child(|| {
        let fd = listen(0, SYS_getpgid);
        let calls: Vec<_> = (0..40u64).map(|i| thread::spawn(move || (0..20).all(|j| sys!(SYS_getpgid, i, j) == (i * 100 + j) as i64))).collect();
        for _ in 0..800 {
            let n = next(fd);
            answer(fd, n.id, (n.args[0] * 100 + n.args[1]) as i64);
        }
        check(calls.into_iter().all(|c| c.join().unwrap()), "every call has its own answer");
    });
}
