//! network_namespaces(7), ipc_namespaces(7): what is one's own in them, `lo` as it begins and as it is set up; multicast
//! (ip(7), ipv6(7)) and broadcast on it.

use guest_tests::space::alone;
use guest_tests::*;
use libc::*;

cases![
    lo_is_down, lo_by_ioctl, lo_by_netlink, addresses, rights, own_ports, own_abstract_names, shared_paths, setns_by_file, sockets_stay,
    files_of_proc, clone_flag, many, low_ports, ipc_keys, ipc_ids, ipc_undo, ipc_queues, ipc_setns, group_send, group_options,
    group_limits, group_drop, group_6, broadcast
];

const LO: [u8; 4] = [127, 0, 0, 1];

fn v4(ip: [u8; 4], port: u16) -> [u8; 16] {
    let mut a = [0u8; 16];
    a[0] = AF_INET as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[4..8].copy_from_slice(&ip);
    a
}

fn v6(ip: [u8; 16], port: u16) -> [u8; 28] {
    let mut a = [0u8; 28];
    a[0] = AF_INET6 as u8;
    a[2..4].copy_from_slice(&port.to_be_bytes());
    a[8..24].copy_from_slice(&ip);
    a
}

const LO6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

fn tcp() -> i32 {
    ok(sys!(SYS_socket, AF_INET, SOCK_STREAM, 0)) as i32
}

fn udp() -> i32 {
    ok(sys!(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) as i32
}

fn bind(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_bind, fd, a, a.len())
}

fn connect(fd: i32, a: &[u8]) -> i64 {
    sys!(SYS_connect, fd, a, a.len())
}

fn send_to(fd: i32, d: &[u8], a: &[u8]) -> i64 {
    sys!(SYS_sendto, fd, d, d.len(), 0, a, a.len())
}

fn set(fd: i32, level: i32, name: i32, value: &[u8]) -> i64 {
    sys!(SYS_setsockopt, fd, level, name, value, value.len())
}

fn request(fd: i32, which: u64, at: u16) -> (i64, u16) {
    let mut r = [0u8; 40];
    r[..2].copy_from_slice(b"lo");
    r[16..18].copy_from_slice(&at.to_ne_bytes());
    let n = sys!(SYS_ioctl, fd, which, &mut r);
    (n, u16::from_ne_bytes([r[16], r[17]]))
}

fn up() {
    let s = udp();
    ok(request(s, SIOCSIFFLAGS, IFF_UP as u16).0);
    shut([s]);
}

/// In a network namespace of a child's own.
fn inside(f: impl FnOnce()) {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWNET));
        f();
    });
}

fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn lo_is_down() {
    inside(|| {
        let s = tcp();
        eq(request(s, SIOCGIFFLAGS, 0), (0, IFF_LOOPBACK as u16));
        err(request(s, SIOCGIFADDR, 0).0, EADDRNOTAVAIL);
        err(connect(s, &v4(LO, 9)), ENETUNREACH);
        err(send_to(udp(), b"x", &v4(LO, 9)), ENETUNREACH);
        ok(bind(tcp(), &v4([0; 4], 0)));
        let six = ok(sys!(SYS_socket, AF_INET6, SOCK_STREAM, 0)) as i32;
        err(bind(six, &v6(LO6, 0)), EADDRNOTAVAIL);
        err(connect(six, &v6(LO6, 9)), EADDRNOTAVAIL);
        eq(text("/proc/net/if_inet6"), String::new());
        let mut conf = [400u64, [0u8; 400].as_mut_ptr() as u64];
        ok(sys!(SYS_ioctl, s, SIOCGIFCONF, &mut conf));
        eq(conf[0] as u32, 0);
    });
}

fn lo_by_ioctl() {
    inside(|| {
        let s = tcp();
        ok(request(s, SIOCSIFFLAGS, IFF_UP as u16).0);
        let flags = (IFF_LOOPBACK | IFF_UP | IFF_RUNNING) as u16;
        eq(request(s, SIOCGIFFLAGS, 0), (0, flags));
        ok(request(s, SIOCGIFADDR, 0).0);
        check(text("/proc/net/if_inet6").contains("00000000000000000000000000000001 01 80 10 80       lo"), "::1");
        err(connect(s, &v4(LO, 9)), ECONNREFUSED);
        err(connect(tcp(), &v4([192, 0, 2, 1], 9)), ENETUNREACH);
        let six = ok(sys!(SYS_socket, AF_INET6, SOCK_STREAM, 0)) as i32;
        ok(bind(six, &v6(LO6, 0)));
        ok(request(s, SIOCSIFFLAGS, 0).0);
        eq(request(s, SIOCGIFFLAGS, 0), (0, IFF_LOOPBACK as u16));
        eq(text("/proc/net/if_inet6"), String::new());
        // The address of IPv4 stays.
        ok(request(s, SIOCGIFADDR, 0).0);
    });
}

/// Sends one request of rtnetlink(7) and gives the errno of the answer.
fn ask(kind: u16, flags: u16, body: &[u8]) -> i32 {
    let fd = ok(sys!(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) as i32;
    let mut m = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
    m.extend(kind.to_ne_bytes());
    m.extend((flags | 5).to_ne_bytes());
    m.extend([0; 8]);
    m.extend(body);
    eq(sys!(SYS_sendto, fd, &m[..], m.len(), 0, 0, 0), m.len() as i64);
    let mut b = [0u8; 1024];
    check(ok(sys!(SYS_recvfrom, fd, &mut b, 1024, 0, 0, 0)) >= 36, "an answer");
    eq(u16::from_ne_bytes([b[4], b[5]]), 2);
    shut([fd]);
    -i32::from_ne_bytes(b[16..20].try_into().unwrap())
}

/// `struct ifaddrmsg` with an address of IPv4.
fn address(ip: [u8; 4], prefix: u8, index: u32) -> Vec<u8> {
    let mut b = vec![AF_INET as u8, prefix, 0, 0];
    b.extend(index.to_ne_bytes());
    for kind in [2u8, 1] {
        b.extend([8, 0, kind, 0]);
        b.extend(ip);
    }
    b
}

fn link(index: u32, flags: u32, mask: u32) -> Vec<u8> {
    [[0u8; 4], index.to_ne_bytes(), flags.to_ne_bytes(), mask.to_ne_bytes()].concat()
}

fn lo_by_netlink() {
    inside(|| {
        const EXCL_CREATE: u16 = 0x600;
        // What a program that makes a sandbox sends.
        eq(ask(20, EXCL_CREATE, &address(LO, 8, 1)), 0);
        eq(ask(16, 0, &link(1, 1, 1)), 0);
        err(connect(tcp(), &v4(LO, 9)), ECONNREFUSED);
        eq(ask(20, EXCL_CREATE, &address(LO, 8, 1)), EEXIST);
        eq(ask(16, 0, &link(99, 1, 1)), ENODEV);
        eq(ask(20, EXCL_CREATE, &address(LO, 8, 99)), ENODEV);
        eq(ask(20, EXCL_CREATE, &address(LO, 40, 1)), EINVAL);
        eq(ask(17, 0, &link(1, 0, 0)), EOPNOTSUPP);
        // What connects once it is down again depends on what the host remembers of the way.
        eq(ask(16, 0, &link(1, 0, 1)), 0);
    });
}

fn addresses() {
    inside(|| {
        up();
        err(bind(tcp(), &v4([10, 1, 2, 3], 0)), EADDRNOTAVAIL);
        eq(ask(20, 0x600, &address([10, 1, 2, 3], 24, 1)), 0);
        ok(bind(tcp(), &v4([10, 1, 2, 3], 0)));
        // On a loopback interface the whole network is local.
        ok(bind(tcp(), &v4([10, 1, 2, 77], 0)));
        err(bind(tcp(), &v4([10, 1, 3, 1], 0)), EADDRNOTAVAIL);
        let (a, b) = (udp(), udp());
        ok(bind(a, &v4([10, 1, 2, 3], 7000)));
        ok(send_to(b, b"hello", &v4([10, 1, 2, 3], 7000)));
        let mut buf = [0u8; 16];
        eq(sys!(SYS_recvfrom, a, &mut buf, 16, 0, 0, 0), 5);
        eq(ask(21, 0, &address([10, 1, 2, 3], 24, 1)), 0);
        eq(ask(21, 0, &address([10, 1, 2, 3], 24, 1)), EADDRNOTAVAIL);
        err(bind(tcp(), &v4([10, 1, 2, 3], 0)), EADDRNOTAVAIL);
    });
}

fn rights() {
    inside(|| {
        let s = udp();
        let pid = child(|| {
            // One of a user namespace of its own has no rights in this network.
            ok(sys!(SYS_unshare, CLONE_NEWUSER));
            err(request(s, SIOCSIFFLAGS, IFF_UP as u16).0, EPERM);
            eq(ask(16, 0, &link(1, 1, 1)), EPERM);
            ok(sys!(SYS_unshare, CLONE_NEWNET));
            let own = udp();
            ok(request(own, SIOCSIFFLAGS, IFF_UP as u16).0);
            // A socket stays in its network.
            eq(request(s, SIOCGIFFLAGS, 0), (0, IFF_LOOPBACK as u16));
            0
        });
        exits(pid, 0);
    });
    in_child(|| {
        if space::is_root() {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        }
        err(sys!(SYS_unshare, CLONE_NEWNET), EPERM);
        err(sys!(SYS_unshare, CLONE_NEWIPC), EPERM);
    });
}

fn own_ports() {
    inside(|| {
        up();
        let l = tcp();
        ok(bind(l, &v4(LO, 7777)));
        ok(sys!(SYS_listen, l, 1));
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWNET));
            up();
            err(connect(tcp(), &v4(LO, 7777)), ECONNREFUSED);
            let mine = tcp();
            ok(bind(mine, &v4(LO, 7777)));
            ok(sys!(SYS_listen, mine, 1));
            ok(connect(tcp(), &v4(LO, 7777)));
            check(sys!(SYS_accept4, mine, 0, 0, SOCK_NONBLOCK) > 0, "it came here");
            0
        });
        exits(pid, 0);
        let mut p = pollfd { fd: l, events: POLLIN, revents: 0 };
        eq(sys!(SYS_poll, &mut p, 1, 0), 0);
    });
}

fn abstract_name(name: &[u8]) -> Vec<u8> {
    [&[AF_UNIX as u8, 0, 0], name].concat()
}

fn own_abstract_names() {
    let name = abstract_name(format!("own-{}", std::process::id()).as_bytes());
    alone(|| {
        let l = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
        ok(bind(l, &name));
        ok(sys!(SYS_listen, l, 1));
        ok(sys!(SYS_unshare, CLONE_NEWNET));
        let c = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
        err(connect(c, &name), ECONNREFUSED);
        let mine = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
        ok(bind(mine, &name));
    });
}

fn shared_paths() {
    let t = Tmp::new();
    let path = [&[AF_UNIX as u8, 0], format!("{}/s", t.dir()).as_bytes(), &[0]].concat();
    alone(|| {
        let l = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
        ok(bind(l, &path));
        ok(sys!(SYS_listen, l, 1));
        ok(sys!(SYS_unshare, CLONE_NEWNET));
        let c = ok(sys!(SYS_socket, AF_UNIX, SOCK_STREAM, 0)) as i32;
        check(!text("/proc/net/unix").contains(t.dir()), "listed where it was made");
        ok(connect(c, &path));
    });
}

fn setns_by_file() {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWNET));
        let first = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
        let number = stat_fd(first).st_ino;
        up();
        ok(sys!(SYS_unshare, CLONE_NEWNET));
        let second = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
        check(stat_fd(second).st_ino != number, "a number of its own");
        err(connect(tcp(), &v4(LO, 9)), ENETUNREACH);
        err(sys!(SYS_setns, first, CLONE_NEWIPC), EINVAL);
        ok(sys!(SYS_setns, first, CLONE_NEWNET));
        err(connect(tcp(), &v4(LO, 9)), ECONNREFUSED);
        eq(ok(sys!(SYS_ioctl, first, 0xb703, 0)), i64::from(CLONE_NEWNET));
        shut([first as i32, second as i32]);
    });
}

fn sockets_stay() {
    inside(|| {
        up();
        let (l, p) = (tcp(), pipe_pair());
        ok(bind(l, &v4(LO, 7001)));
        ok(sys!(SYS_listen, l, 1));
        // It stays in the first network, and connects when the other has left.
        let pid = child(|| {
            let mut byte = [0u8; 1];
            eq(sys!(SYS_read, p[0], &mut byte, 1), 1);
            let c = tcp();
            ok(connect(c, &v4(LO, 7001)));
            eq(sys!(SYS_write, c, b"y", 1), 1);
            0
        });
        ok(sys!(SYS_unshare, CLONE_NEWNET));
        err(connect(tcp(), &v4(LO, 7001)), ENETUNREACH);
        eq(sys!(SYS_write, p[1], b"x", 1), 1);
        // The listener goes on, for those who are in its network.
        let s = ok(sys!(SYS_accept, l, 0, 0)) as i32;
        let mut byte = [0u8; 1];
        eq((sys!(SYS_read, s, &mut byte, 1), byte), (1, *b"y"));
        exits(pid, 0);
        shut([l, s, p[0], p[1]]);
    });
}

fn files_of_proc() {
    inside(|| {
        up();
        let l = tcp();
        ok(bind(l, &v4(LO, 7002)));
        ok(sys!(SYS_listen, l, 1));
        let shown = |path: &str| text(path).contains("0100007F:1B5A 00000000:0000 0A");
        check(shown("/proc/net/tcp") && shown("/proc/self/net/tcp"), "its own");
        let (p, q) = (pipe_pair(), pipe_pair());
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWNET));
            check(!shown("/proc/net/tcp"), "not the other's");
            sys!(SYS_write, p[1], b"x", 1);
            let mut byte = [0u8; 1];
            sys!(SYS_read, q[0], &mut byte, 1);
            0
        });
        let mut byte = [0u8; 1];
        eq(sys!(SYS_read, p[0], &mut byte, 1), 1);
        check(!shown(&format!("/proc/{pid}/net/tcp")), "the child's");
        sys!(SYS_write, q[1], b"x", 1);
        exits(pid, 0);
    });
}

fn clone_flag() {
    alone(|| {
        let pid = ok(sys!(SYS_clone, CLONE_NEWNET | CLONE_NEWIPC | SIGCHLD, 0, 0, 0, 0));
        if pid == 0 {
            let fresh = connect(tcp(), &v4(LO, 9)) == -i64::from(ENETUNREACH);
            guest_tests::child::exit_now(if fresh { 0 } else { 1 });
        }
        exits(pid as i32, 0);
        err(sys!(SYS_clone, CLONE_NEWIPC as i64 | i64::from(CLONE_SYSVSEM) | i64::from(SIGCHLD), 0, 0, 0, 0), EINVAL);
    });
}

fn many() {
    alone(|| {
        // Left behind one after the other.
        for _ in 0..20 {
            ok(sys!(SYS_unshare, CLONE_NEWNET | CLONE_NEWIPC));
            up();
            ok(bind(tcp(), &v4(LO, 7003)));
        }
    });
}

fn low_ports() {
    let port = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").ok();
    if port.is_none_or(|p| p.trim() != "1024") {
        skip("low ports are everybody's");
    }
    in_child(|| {
        if space::is_root() {
            ok(sys!(SYS_setresuid, 1000, 1000, 1000));
        }
        err(bind(tcp(), &v4(LO, 81)), EACCES);
        err(bind(udp(), &v4(LO, 81)), EACCES);
        err(bind(tcp(), &v4(LO, 1023)), EACCES);
    });
    inside(|| eq(bind(tcp(), &v4([0; 4], 81)), 0));
}

fn in_ipc(f: impl FnOnce()) {
    alone(|| {
        ok(sys!(SYS_unshare, CLONE_NEWIPC));
        f();
    });
}

fn ipc_keys() {
    in_ipc(|| {
        let key = 0x51ab;
        let id = ok(sys!(SYS_semget, key, 1, IPC_CREAT | 0o600));
        let shm = ok(sys!(SYS_shmget, key, 4096, IPC_CREAT | 0o600));
        let msg = ok(sys!(SYS_msgget, key, IPC_CREAT | 0o600));
        eq((id, shm, msg), (0, 0, 0));
        check(text("/proc/sysvipc/sem").lines().count() == 2, "one");
        let pid = child(|| {
            ok(sys!(SYS_unshare, CLONE_NEWIPC));
            err(sys!(SYS_semget, key, 1, 0), ENOENT);
            err(sys!(SYS_shmget, key, 1, 0), ENOENT);
            err(sys!(SYS_msgget, key, 0), ENOENT);
            eq(text("/proc/sysvipc/sem").lines().count(), 1);
            eq(ok(sys!(SYS_msgget, key, IPC_CREAT | 0o600)), 0);
            0
        });
        exits(pid, 0);
        ok(sys!(SYS_msgget, key, 0));
    });
}

fn ipc_ids() {
    in_ipc(|| {
        let shm = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096, 0o600));
        let at = ok(sys!(SYS_shmat, shm, 0, 0));
        ok(sys!(SYS_unshare, CLONE_NEWIPC));
        err(sys!(SYS_shmat, shm, 0, 0), EINVAL);
        // What is mapped stays.
        unsafe { std::ptr::write_volatile(at as *mut u8, 7) };
        ok(sys!(SYS_shmdt, at));
    });
}

#[repr(C)]
struct Op(u16, i16, i16);

fn ipc_undo() {
    in_ipc(|| {
        let sem = ok(sys!(SYS_semget, IPC_PRIVATE, 1, 0o600));
        let ns = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/ipc", O_RDONLY));
        let pid = child(|| {
            ok(sys!(SYS_semop, sem, &Op(0, 5, SEM_UNDO as i16), 1));
            eq(sys!(SYS_semctl, sem, 0, GETVAL), 5);
            // Leaving the namespace undoes.
            ok(sys!(SYS_unshare, CLONE_NEWIPC));
            ok(sys!(SYS_setns, ns, CLONE_NEWIPC));
            eq(sys!(SYS_semctl, sem, 0, GETVAL), 0);
            0
        });
        exits(pid, 0);
    });
}

fn ipc_queues() {
    in_ipc(|| {
        let q = ok(sys!(SYS_mq_open, c"own", O_CREAT | O_RDWR, 0o600, 0)) as i32;
        ok(sys!(SYS_mq_timedsend, q, b"x", 1, 0, 0));
        ok(sys!(SYS_unshare, CLONE_NEWIPC));
        err(sys!(SYS_mq_open, c"own", O_RDWR, 0, 0), ENOENT);
        // The open one is still that.
        let mut b = [0u8; 8192];
        eq(sys!(SYS_mq_timedreceive, q, &mut b[..], 8192, 0, 0), 1);
        err(sys!(SYS_mq_unlink, c"own"), ENOENT);
    });
}

fn ipc_setns() {
    in_ipc(|| {
        let id = ok(sys!(SYS_msgget, 0x51ac, IPC_CREAT | 0o600));
        let ns = ok(sys!(SYS_openat, AT_FDCWD, c"/proc/self/ns/ipc", O_RDONLY));
        ok(sys!(SYS_unshare, CLONE_NEWIPC));
        err(sys!(SYS_msgget, 0x51ac, 0), ENOENT);
        ok(sys!(SYS_setns, ns, 0));
        eq(ok(sys!(SYS_msgget, 0x51ac, 0)), id);
    });
}

const GROUP: [u8; 4] = [224, 1, 2, 3];

fn bound(ip: [u8; 4], port: u16) -> i32 {
    let s = udp();
    ok(set(s, SOL_SOCKET, SO_REUSEADDR, &1i32.to_ne_bytes()));
    ok(bind(s, &v4(ip, port)));
    s
}

fn got(s: i32) -> Option<u8> {
    let mut b = [0u8; 8];
    (sys!(SYS_recvfrom, s, &mut b, 8, 0, 0, 0) == 1).then_some(b[0])
}

fn join(s: i32, group: [u8; 4]) -> i64 {
    set(s, SOL_IP, IP_ADD_MEMBERSHIP, &[group, LO].concat())
}

fn group_send() {
    inside(|| {
        up();
        let (any, other, exact, lo) = (bound([0; 4], 5000), bound([0; 4], 5000), bound(GROUP, 5000), bound(LO, 5000));
        let s = udp();
        err(send_to(s, b"a", &v4(GROUP, 5000)), ENETUNREACH);
        ok(set(s, SOL_IP, IP_MULTICAST_IF, &LO));
        ok(send_to(s, b"b", &v4(GROUP, 5000)));
        // Nobody is in it.
        eq([any, other, exact, lo].map(got), [None; 4]);
        ok(join(any, GROUP));
        ok(send_to(s, b"c", &v4(GROUP, 5000)));
        // Others hear it as well, until they say that they do not want to.
        eq([any, other, exact, lo].map(got), [Some(b'c'), Some(b'c'), Some(b'c'), None]);
        ok(set(other, SOL_IP, 49, &0i32.to_ne_bytes()));
        ok(send_to(s, b"d", &v4(GROUP, 5000)));
        eq([any, other, exact, lo].map(got), [Some(b'd'), None, Some(b'd'), None]);
        // From a socket that is bound to the interface's address, too, and by connect.
        let from = bound(LO, 0);
        ok(send_to(from, b"e", &v4(GROUP, 5000)));
        eq([any, exact].map(got), [Some(b'e'); 2]);
        ok(connect(from, &v4(GROUP, 5000)));
        eq(sys!(SYS_write, from, b"f", 1), 1);
        let (mut name, mut n) = ([0u8; 16], 16u32);
        let mut b = [0u8; 4];
        eq(sys!(SYS_recvfrom, any, &mut b, 4, 0, &mut name, &mut n), 1);
        eq(&name[4..8], LO);
        check(text("/proc/net/igmp").contains("030201E0     1 0:00000000"), "listed");
        // The time to live is the group's.
        ok(set(exact, SOL_IP, IP_RECVTTL, &1i32.to_ne_bytes()));
        got(exact);
        ok(send_to(s, b"g", &v4(GROUP, 5000)));
        let mut control = [0u8; 64];
        let mut byte = [0u8; 4];
        let iov = iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 4 };
        // SAFETY: plain data, for which zeroes are a value.
        let mut m: msghdr = unsafe { std::mem::zeroed() };
        (m.msg_iov, m.msg_iovlen) = ((&raw const iov).cast_mut(), 1);
        (m.msg_control, m.msg_controllen) = (control.as_mut_ptr().cast(), 64);
        eq(sys!(SYS_recvmsg, exact, &mut m, 0), 1);
        eq(i32::from_ne_bytes(control[16..20].try_into().unwrap()), 1);
    });
}

fn group_options() {
    inside(|| {
        up();
        let s = udp();
        err(set(s, SOL_IP, IP_ADD_MEMBERSHIP, &[GROUP, [0; 4]].concat()), ENODEV);
        err(set(s, SOL_IP, IP_ADD_MEMBERSHIP, &[GROUP, [10, 9, 9, 9]].concat()), ENODEV);
        err(set(s, SOL_IP, IP_ADD_MEMBERSHIP, &[[1, 2, 3, 4], LO].concat()), EINVAL);
        err(set(s, SOL_IP, IP_ADD_MEMBERSHIP, &GROUP), EINVAL);
        let by_index = |i: i32| [&GROUP[..], &[0; 4], &i.to_ne_bytes()].concat();
        err(set(s, SOL_IP, IP_ADD_MEMBERSHIP, &by_index(9)), ENODEV);
        ok(set(s, SOL_IP, IP_ADD_MEMBERSHIP, &by_index(1)));
        err(join(s, GROUP), EADDRINUSE);
        err(set(tcp(), SOL_IP, IP_ADD_MEMBERSHIP, &by_index(1)), EPROTO);
        let (mut b, mut n) = ([9u8; 12], 12u32);
        err(sys!(SYS_getsockopt, s, SOL_IP, IP_ADD_MEMBERSHIP, &mut b, &mut n), ENOPROTOOPT);
        err(set(s, SOL_IP, IP_MULTICAST_IF, &[10, 9, 9, 9]), EADDRNOTAVAIL);
        err(set(s, SOL_IP, IP_MULTICAST_IF, &[0; 2]), EINVAL);
        err(set(tcp(), SOL_IP, IP_MULTICAST_IF, &LO), EINVAL);
        ok(set(s, SOL_IP, IP_MULTICAST_IF, &LO));
        let mut n = 12u32;
        ok(sys!(SYS_getsockopt, s, SOL_IP, IP_MULTICAST_IF, &mut b, &mut n));
        eq((n, &b[..4]), (4, &LO[..]));
        ok(set(s, SOL_IP, IP_MULTICAST_IF, &[0; 4]));
        ok(set(s, SOL_IP, IP_MULTICAST_LOOP, &[0]));
        err(set(s, SOL_IP, IP_MULTICAST_TTL, &256i32.to_ne_bytes()), EINVAL);
        // group_req(2).
        let mut req = vec![0u8; 136];
        req[0] = 1;
        req[8..24].copy_from_slice(&v4([224, 5, 5, 5], 0));
        ok(set(s, SOL_IP, 42, &req));
        err(set(s, SOL_IP, 42, &req), EADDRINUSE);
        ok(set(s, SOL_IP, 45, &req));
        err(set(s, SOL_IP, 42, &req[..20]), EINVAL);
    });
}

fn group_limits() {
    inside(|| {
        up();
        let s = udp();
        for i in 0..20 {
            ok(join(s, [224, 1, 3, i]));
        }
        err(join(s, [224, 1, 3, 20]), ENOBUFS);
    });
}

fn group_drop() {
    inside(|| {
        up();
        let (r, s) = (bound([0; 4], 5001), udp());
        ok(set(s, SOL_IP, IP_MULTICAST_IF, &LO));
        ok(join(r, GROUP));
        err(set(r, SOL_IP, IP_DROP_MEMBERSHIP, &[GROUP, [0; 4]].concat()), ENODEV);
        ok(set(r, SOL_IP, IP_DROP_MEMBERSHIP, &[GROUP, LO].concat()));
        err(set(r, SOL_IP, IP_DROP_MEMBERSHIP, &[GROUP, LO].concat()), EADDRNOTAVAIL);
        ok(send_to(s, b"a", &v4(GROUP, 5001)));
        eq(got(r), None);
        // A closed one is in none.
        let gone = udp();
        ok(join(gone, GROUP));
        ok(send_to(s, b"b", &v4(GROUP, 5001)));
        eq(got(r), Some(b'b'));
        shut([gone]);
        ok(send_to(s, b"c", &v4(GROUP, 5001)));
        eq(got(r), None);
        // All machines are in this one.
        ok(send_to(s, b"d", &v4([224, 0, 0, 1], 5001)));
        eq(got(r), Some(b'd'));
    });
}

fn group_6() {
    inside(|| {
        up();
        let s = ok(sys!(SYS_socket, AF_INET6, SOCK_DGRAM, 0)) as i32;
        let mut group = [0u8; 20];
        (group[0], group[1], group[15]) = (0xff, 2, 0x77);
        let with = |g: [u8; 20], i: u8| {
            let mut g = g;
            g[16] = i;
            g
        };
        err(set(s, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &with(group, 0)), ENODEV);
        err(set(s, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &with(group, 9)), ENODEV);
        ok(set(s, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &with(group, 1)));
        err(set(s, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &with(group, 1)), EADDRINUSE);
        err(set(s, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &[0xfd; 20]), EINVAL);
        err(set(s, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &[0; 3]), EINVAL);
        check(text("/proc/net/igmp6").contains("ff020000000000000000000000000077"), "listed");
        ok(set(s, SOL_IPV6, IPV6_DROP_MEMBERSHIP, &with(group, 1)));
        err(set(s, SOL_IPV6, IPV6_DROP_MEMBERSHIP, &with(group, 1)), EADDRNOTAVAIL);
        ok(set(s, SOL_IPV6, IPV6_MULTICAST_IF, &1i32.to_ne_bytes()));
        err(set(s, SOL_IPV6, IPV6_MULTICAST_IF, &9i32.to_ne_bytes()), ENODEV);
        // A loopback interface has no route for them.
        let to = v6(group[..16].try_into().unwrap(), 6000);
        err(send_to(s, b"x", &to), ENETUNREACH);
    });
}

fn broadcast() {
    inside(|| {
        up();
        let (any, lo) = (bound([0; 4], 5002), bound(LO, 5002));
        let s = udp();
        let all = v4([127, 255, 255, 255], 5002);
        err(send_to(s, b"a", &all), EACCES);
        err(connect(s, &all), EACCES);
        err(connect(tcp(), &all), ENETUNREACH);
        ok(set(s, SOL_SOCKET, SO_BROADCAST, &1i32.to_ne_bytes()));
        ok(send_to(s, b"b", &all));
        eq([any, lo].map(got), [Some(b'b'), None]);
        err(send_to(s, b"c", &v4([255; 4], 5002)), ENETUNREACH);
        ok(connect(s, &all));
    });
}
