use super::{Reader, format_call, inner, structs, symbols};
use crate::abi::*;
use crate::{ArgKind, Errno, SYSCALLS, by_name};
use zerocopy::IntoBytes;

/// Guest memory of a test: pieces at addresses.
struct Memory(Vec<(u64, Vec<u8>)>);

impl Memory {
    fn read(&self, addr: u64, len: usize) -> Option<Vec<u8>> {
        let (base, bytes) = self.0.iter().find(|(base, bytes)| {
            addr >= *base && addr < *base + bytes.len().next_multiple_of(4096) as u64
        })?;
        let at = (addr - base) as usize;
        // A piece fills the rest of its pages with zeros, as a mapping does.
        let mut bytes = bytes.clone();
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.get(at..at + len).map(<[u8]>::to_vec)
    }
}

fn show(name: &str, args: &[u64], memory: &Memory, result: Option<i64>) -> String {
    let mut six = [0; 6];
    six[..args.len()].copy_from_slice(args);
    let reader: Reader<'_> = &|addr, len| memory.read(addr, len);
    format_call(by_name(name).unwrap(), &six, reader, result)
}

fn memory(pieces: &[(u64, &[u8])]) -> Memory {
    Memory(pieces.iter().map(|(addr, bytes)| (*addr, bytes.to_vec())).collect())
}

const FDCWD: u64 = -100i32 as u32 as u64;

#[test]
fn every_type_of_the_table_has_a_form() {
    let around = structs::Around { read: &|_, _| None, after: true, known: 0 };
    for row in SYSCALLS {
        for arg in row.args {
            match arg.kind {
                ArgKind::Flags { .. } => {
                    assert!(symbols::by_type(arg.type_name, 1).is_some(), "{}: {}", row.name, arg.type_name);
                }
                ArgKind::In { size }
                | ArgKind::Out { size }
                | ArgKind::InOut { size }
                | ArgKind::InSlice { size }
                | ArgKind::OutSlice { size }
                | ArgKind::InOutSlice { size } => {
                    let shown = structs::show(inner(arg.type_name), &vec![0; size], &around);
                    assert!(shown.is_some(), "{}: {}", row.name, arg.type_name);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn paths_and_flags() {
    let m = memory(&[(0x1000, b"/etc/passwd\0")]);
    let args = [FDCWD, 0x1000, (O_RDONLY | O_CLOEXEC) as u64, 0o644];
    assert_eq!(
        show("openat", &args, &m, Some(3)),
        r#"openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3"#
    );
    assert_eq!(
        show("openat", &args, &m, Some(-2)),
        r#"openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)"#
    );
    let args = [0x1000, (O_WRONLY | O_CREAT | O_TRUNC | O_SYNC) as u64, 0o644];
    assert_eq!(
        show("open", &args, &m, None),
        r#"open("/etc/passwd", O_WRONLY|O_CREAT|O_TRUNC|O_SYNC, 0644)"#
    );
    assert_eq!(
        show("unlinkat", &[FDCWD, 0x1000, 0x200], &m, Some(0)),
        r#"unlinkat(AT_FDCWD, "/etc/passwd", AT_REMOVEDIR) = 0"#
    );
    assert_eq!(show("chdir", &[0], &m, Some(-14)), "chdir(NULL) = -1 EFAULT (Bad address)");
    assert_eq!(show("chdir", &[0xdead000], &m, None), "chdir(0xdead000)");
    assert_eq!(show("access", &[0x1000, 4], &m, Some(0)), r#"access("/etc/passwd", R_OK) = 0"#);
}

#[test]
fn a_string_at_the_end_of_memory_is_read_up_to_it() {
    let mut page = vec![b'x'; 4096];
    page[4093..].copy_from_slice(b"/a\0");
    let m = memory(&[(0x1000, &page)]);
    assert_eq!(show("rmdir", &[0x1ffd], &m, Some(0)), r#"rmdir("/a") = 0"#);
    assert_eq!(show("mq_unlink", &[0x1fa0], &m, None), format!("mq_unlink(\"{}\"...)", "x".repeat(64)));
}

#[test]
fn buffers_are_shown_when_known() {
    let m = memory(&[(0x1000, b"a\"b\n\x001\xff")]);
    assert_eq!(show("read", &[3, 0x1000, 4096], &m, None), "read(3, 0x1000, 4096)");
    assert_eq!(show("read", &[3, 0x1000, 4096], &m, Some(7)), r#"read(3, "a\"b\n\0001\377", 4096) = 7"#);
    assert_eq!(
        show("read", &[3, 0x1000, 4096], &m, Some(-11)),
        "read(3, 0x1000, 4096) = -1 EAGAIN (Resource temporarily unavailable)"
    );
    assert_eq!(show("write", &[1, 0x1000, 1], &m, None), r#"write(1, "a", 1)"#);
    let long = memory(&[(0x1000, &[b'y'; 100])]);
    assert_eq!(
        show("write", &[1, 0x1000, 100], &long, Some(100)),
        format!("write(1, \"{}\"..., 100) = 100", "y".repeat(64))
    );
}

#[test]
fn structs() {
    let st = Stat { st_mode: S_IFREG | 0o644, st_size: 5, ..Default::default() };
    let m = memory(&[(0x1000, st.as_bytes())]);
    assert_eq!(
        show("fstat", &[3, 0x1000], &m, Some(0)),
        "fstat(3, {st_mode=S_IFREG|0644, st_size=5, ...}) = 0"
    );
    assert_eq!(
        show("fstat", &[3, 0x1000], &m, Some(-9)),
        "fstat(3, 0x1000) = -1 EBADF (Bad file descriptor)"
    );

    let t = Timespec { tv_sec: 1, tv_nsec: 5 };
    let m = memory(&[(0x1000, t.as_bytes())]);
    assert_eq!(show("nanosleep", &[0x1000, 0], &m, Some(0)), "nanosleep({tv_sec=1, tv_nsec=5}, NULL) = 0");
    assert_eq!(
        show("futex", &[0x2000, 128, 7, 0x1000], &m, Some(-512)),
        "futex(0x2000, FUTEX_WAIT|FUTEX_PRIVATE_FLAG, 7, {tv_sec=1, tv_nsec=5}) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)"
    );
    assert_eq!(
        show("futex", &[0x2000, 129, 1], &m, Some(1)),
        "futex(0x2000, FUTEX_WAKE|FUTEX_PRIVATE_FLAG, 1) = 1"
    );

    let m = memory(&[(0x1000, WaitStatus::signaled(SIGSEGV, true).as_bytes())]);
    assert_eq!(
        show("wait4", &[-1i64 as u64, 0x1000, 1, 0], &m, Some(7)),
        "wait4(-1, [{WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV && WCOREDUMP(s)}], WNOHANG, NULL) = 7"
    );

    let action = Sigaction {
        sa_handler: 1,
        sa_flags: SA_RESTART | SA_RESTORER,
        sa_restorer: 0x55,
        sa_mask: Sigset { sig: 3 },
    };
    let m = memory(&[(0x1000, action.as_bytes())]);
    assert_eq!(
        show("rt_sigaction", &[13, 0x1000, 0, 8], &m, Some(0)),
        "rt_sigaction(SIGPIPE, {sa_handler=SIG_IGN, sa_mask=[HUP INT], sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x55}, NULL, 8) = 0"
    );
    let m = memory(&[(0x1000, u64::MAX).as_pieces()]);
    assert_eq!(
        show("rt_sigprocmask", &[0, 0x1000, 0, 8], &m, Some(0)),
        "rt_sigprocmask(SIG_BLOCK, ~[], NULL, 8) = 0"
    );
}

trait Pieces {
    fn as_pieces(&self) -> (u64, &[u8]);
}
impl Pieces for (u64, u64) {
    fn as_pieces(&self) -> (u64, &[u8]) {
        (self.0, self.1.as_bytes())
    }
}

#[test]
fn sockets_and_vectors() {
    let mut bytes = vec![1, 0];
    bytes.extend(b"/run/x\0");
    let inet = SockaddrIn { sin_family: 2, sin_port: [0, 80], sin_addr: [127, 0, 0, 1], sin_zero: [0; 8] };
    let m = memory(&[(0x1000, &bytes), (0x2000, inet.as_bytes())]);
    assert_eq!(
        show("connect", &[3, 0x1000, 9], &m, Some(0)),
        r#"connect(3, {sa_family=AF_UNIX, sun_path="/run/x"}, 9) = 0"#
    );
    assert_eq!(
        show("bind", &[3, 0x2000, 16], &m, Some(0)),
        r#"bind(3, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")}, 16) = 0"#
    );
    assert_eq!(
        show("socket", &[1, (SOCK_STREAM | SOCK_CLOEXEC) as u64, 0], &m, Some(3)),
        "socket(AF_UNIX, SOCK_STREAM|SOCK_CLOEXEC, 0) = 3"
    );
    assert_eq!(show("socket", &[2, 1, 6], &m, Some(3)), "socket(AF_INET, SOCK_STREAM, IPPROTO_TCP) = 3");
    let iov = [Iovec { iov_base: 0x1000, iov_len: 4 }, Iovec { iov_base: 0x2000, iov_len: 8 }];
    let m = memory(&[(0x1000, b"abcd"), (0x2000, b"efghijkl"), (0x3000, iov.as_bytes())]);
    assert_eq!(
        show("readv", &[3, 0x3000, 2], &m, Some(6)),
        r#"readv(3, [{iov_base="abcd", iov_len=4}, {iov_base="ef", iov_len=8}], 2) = 6"#
    );
    let polls = [Pollfd { fd: 5, events: POLLIN, revents: POLLIN | POLLHUP }];
    let m = memory(&[(0x1000, polls.as_bytes())]);
    assert_eq!(
        show("poll", &[0x1000, 1, -1i32 as u32 as u64], &m, Some(1)),
        "poll([{fd=5, events=POLLIN, revents=POLLIN|POLLHUP}], 1, -1) = 1"
    );
    assert_eq!(
        show("poll", &[0x1000, 1, 10], &m, Some(0)),
        "poll([{fd=5, events=POLLIN, revents=POLLIN|POLLHUP}], 1, 10) = 0 (Timeout)"
    );
}

#[test]
fn memory_and_processes() {
    let m = memory(&[(0x1000, b"ls\0"), (0x2000, &[0x1000u64, 0x1000, 0].map(u64::to_le_bytes).concat())]);
    assert_eq!(
        show("execve", &[0x1000, 0x2000, 0x2000], &m, None),
        r#"execve("ls", ["ls", "ls"], 0x2000 /* 2 vars */)"#
    );
    assert_eq!(
        show("mmap", &[0, 8192, 3, 0x22, u64::MAX, 0], &m, Some(0x7f00_0000_0000)),
        "mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0x0) = 0x7f0000000000"
    );
    assert_eq!(
        show("clone", &[CLONE_VM | CLONE_VFORK | SIGCHLD as u64, 0x10], &m, Some(7)),
        "clone(CLONE_VM|CLONE_VFORK|SIGCHLD, 0x10, NULL, NULL, 0) = 7"
    );
    assert_eq!(show("exit_group", &[0], &m, Some(0)), "exit_group(0) = ?");
    assert_eq!(show("kill", &[5, 35], &m, Some(0)), "kill(5, SIGRT_3) = 0");
    assert_eq!(show("getpid", &[], &m, Some(2)), "getpid() = 2");
    assert_eq!(
        show("fcntl", &[3, 3], &m, Some(0x8802)),
        "fcntl(3, F_GETFL) = 34818 (flags O_RDWR|O_NONBLOCK|O_LARGEFILE)"
    );
    assert_eq!(show("fcntl", &[3, 2, 1], &m, Some(0)), "fcntl(3, F_SETFD, FD_CLOEXEC) = 0");
    assert_eq!(
        show("ioctl", &[1, TCGETS as u64, 0x1000], &m, Some(-25)),
        "ioctl(1, TCGETS, 0x1000) = -1 ENOTTY (Inappropriate ioctl for device)"
    );
    assert_eq!(
        show("ioctl", &[1, 0xc0de_1234, 0], &m, None),
        "ioctl(1, _IOC(_IOC_READ|_IOC_WRITE, 0x12, 0x34, 0xde), NULL)"
    );
    assert_eq!(show("prctl", &[15, 0x1000], &m, Some(0)), r#"prctl(PR_SET_NAME, "ls") = 0"#);
    assert_eq!(show("fchmod", &[3, 0o4755], &m, Some(0)), "fchmod(3, 04755) = 0");
    assert_eq!(show("chown", &[0x1000, u64::MAX, 0], &m, Some(0)), r#"chown("ls", -1, 0) = 0"#);
}

#[test]
fn hostile_values_do_not_panic() {
    let m = memory(&[(0x1000, &[0xff; 4096])]);
    for row in SYSCALLS {
        for value in [0, 1, 0x1000, 0x1fff, u64::MAX, 1 << 63, 0x7fff_ffff, 0xffff_ffff] {
            for result in [None, Some(0), Some(i64::MAX), Some(i64::MIN), Some(-1), Some(4096)] {
                show(row.name, &[value; 6], &m, result);
                show(row.name, &[0x1000, value, 0x1000, value, 0x1000, value], &m, result);
                show(row.name, &[value, 0x1000, value, 0x1000, value, 0x1000], &m, result);
            }
        }
    }
    assert_eq!(Errno::from_result(-4096), None);
}
