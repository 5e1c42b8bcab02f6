//! What the leak tests do with sockets.

use guest_tests::*;
use libc::*;

fn lo(port: u16) -> [u8; 16] {
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&[127, 0, 0, 1]);
    a
}

fn listener() -> (i32, [u8; 16]) {
    let l = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_bind, l, &lo(0), 16));
    ok(sys!(SYS_listen, l, 4096));
    let mut a = [0u8; 16];
    ok(sys!(SYS_getsockname, l, &mut a, &mut 16u32));
    (l, a)
}

/// Two connected ends.
fn connected(l: i32, a: &[u8; 16]) -> [i32; 2] {
    let c = ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32;
    ok(sys!(SYS_connect, c, a, 16));
    [c, ok(sys!(SYS_accept, l, 0, 0)) as i32]
}

pub fn pair(kind: i32) -> [i32; 2] {
    let mut p = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, kind, 0, &mut p));
    p
}

/// Sends a byte with one control message of SOL_SOCKET.
pub fn send_control(to: i32, kind: i32, payload: &[u8]) -> i64 {
    let mut control = vec![0u8; 16 + payload.len().next_multiple_of(8)];
    control[..8].copy_from_slice(&(16 + payload.len()).to_ne_bytes());
    control[8..12].copy_from_slice(&SOL_SOCKET.to_ne_bytes());
    control[12..16].copy_from_slice(&kind.to_ne_bytes());
    control[16..16 + payload.len()].copy_from_slice(payload);
    let iov = iovec { iov_base: b"x".as_ptr().cast_mut().cast(), iov_len: 1 };
    // SAFETY: plain data, for which zeroes are a value.
    let mut m: msghdr = unsafe { std::mem::zeroed() };
    (m.msg_iov, m.msg_iovlen) = ((&raw const iov).cast_mut(), 1);
    (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), control.len());
    sys!(SYS_sendmsg, to, &m, MSG_DONTWAIT | MSG_NOSIGNAL)
}

/// Sends a descriptor.
pub fn send_fd(to: i32, fd: i32) -> i64 {
    send_control(to, SCM_RIGHTS, &fd.to_ne_bytes())
}

fn raise_limit() {
    let mut limit = [0u64; 2];
    ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &mut limit));
    limit[0] = limit[1];
    ok(sys!(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, 0));
}

/// `connect N`: connections with a few bytes each way; `message N`: datagrams with names of their own; `cycle N`: sockets
/// that only hold each other, with a pipe and 64 KiB in them; `alone N`: network and IPC namespaces left behind; `hold N`:
/// connections that stay, until `free 0`. False: it is none of them.
pub fn churn(what: &str, count: usize, held: &mut Vec<i32>) -> bool {
    match what {
        "connect" => {
            let (l, a) = listener();
            for _ in 0..count {
                let ends = connected(l, &a);
                let mut b = [0u8; 64];
                for (from, to) in [(0, 1), (1, 0)] {
                    eq(sys!(SYS_write, ends[from], &b, 64), 64);
                    eq(sys!(SYS_read, ends[to], &mut b, 64), 64);
                }
                shut(ends);
            }
            shut([l]);
        }
        "message" => {
            for n in 0..count {
                let name = [&[AF_UNIX as u8, 0, 0], format!("message-{n}").as_bytes()].concat();
                let (r, s) = (
                    ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32,
                    ok(sys!(SYS_socket, AF_UNIX, SOCK_DGRAM, 0)) as i32,
                );
                ok(sys!(SYS_bind, r, &name[..], name.len()));
                // A name that is chosen.
                ok(sys!(SYS_bind, s, &[AF_UNIX as u8, 0], 2));
                eq(sys!(SYS_sendto, s, b"x", 1, 0, &name[..], name.len()), 1);
                let u = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
                ok(sys!(SYS_bind, u, &lo(0), 16));
                shut([r, s, u]);
            }
        }
        // What nobody lets go.
        "keep" => {
            for _ in 0..count {
                let fd = ok(sys!(SYS_memfd_create, c"kept", 0)) as i32;
                eq(sys!(SYS_write, fd, &[1u8; 4096], 4096), 4096);
            }
        }
        "cycle" => {
            for _ in 0..count {
                let (p, r) = (pair(SOCK_STREAM), pipe_pair());
                eq(sys!(SYS_write, r[1], &vec![7u8; 65536][..], 65536), 65536);
                for fd in [p[0], r[0], r[1]] {
                    eq(send_fd(p[0], fd), 1);
                }
                eq(send_fd(p[1], p[1]), 1);
                shut([p[0], p[1], r[0], r[1]]);
            }
        }
        "alone" => {
            in_child(|| {
                for _ in 0..count {
                    if sys!(SYS_geteuid) != 0 {
                        space::become_root();
                    }
                    ok(sys!(SYS_unshare, CLONE_NEWNET | CLONE_NEWIPC));
                    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 65536, 0o600));
                    let at = ok(sys!(SYS_shmat, id, 0, 0));
                    ok(sys!(SYS_shmdt, at));
                    let s = ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM, 0)) as i32;
                    ok(sys!(SYS_bind, s, &[AF_INET as u8, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 16));
                    shut([s]);
                }
            });
        }
        "hold" => {
            // In processes of their own: one may have 20,000 descriptors.
            let ready = pipe_pair();
            for first in (0..count).step_by(2500) {
                let pid = child(|| {
                    raise_limit();
                    let (l, a) = listener();
                    let _held: Vec<_> = (first..count.min(first + 2500)).map(|_| connected(l, &a)).collect();
                    sys!(SYS_write, ready[1], b"x", 1);
                    sys!(SYS_pause);
                    0
                });
                eq(sys!(SYS_read, ready[0], &mut [0u8; 1], 1), 1);
                held.push(-pid);
            }
            shut(ready);
        }
        "free" => {
            for fd in held.drain(..) {
                if fd < 0 {
                    ok(sys!(SYS_kill, -fd, SIGKILL));
                    reap(-fd);
                } else {
                    shut([fd]);
                }
            }
        }
        _ => return false,
    }
    true
}
