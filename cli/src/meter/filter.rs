//! The meter's host calls: one table from which the filter is built and `lazaret exposure` prints. Whoever takes the meter
//! over by what the sentry tells it can read what the user may read, and change nothing; what is read goes nowhere but to the
//! sentry. Anything that is not here kills it, which ends the sandbox.

use confine::bpf::Insn;
use confine::calls;
use confine::rules::Cond::{Given, Is, OneOf, Within};
use confine::rules::{Filter, Names, Otherwise, Rule};

const READING: Names =
    &[(libc::O_CLOEXEC as u32, "O_CLOEXEC"), (0x1_0000, "O_DIRECTORY"), (0x800, "O_NONBLOCK")];

const RULES: &[Rule] = &[
    Rule::new(
        "openat",
        libc::SYS_openat,
        &[Within(2, READING)],
        "reads what the guests' host processes use, in /proc",
    ),
    Rule::new("read", libc::SYS_read, &[], "reads it"),
    Rule::new("pread64", libc::SYS_pread64, &[], "reads it anew"),
    Rule::new("getdents64", libc::SYS_getdents64, &[], "lists the sentry's threads"),
    Rule::new("statx", libc::SYS_statx, &[], "asks how large a file is before it is read"),
    Rule::new("fstat", libc::SYS_fstat, &[], "asks how large a file is before it is read"),
    Rule::new("newfstatat", libc::SYS_newfstatat, &[], "the same, where the host library has it so"),
    Rule::new("lseek", libc::SYS_lseek, &[], "asks where a file is read"),
    Rule::new("recvfrom", libc::SYS_recvfrom, &[Given(0, 0, "the sentry's socket")], "hears the sentry"),
    Rule::new(
        "sendto",
        libc::SYS_sendto,
        &[Given(0, 0, "the sentry's socket"), Is(4, 0)],
        "tells the sentry; no address can be given",
    ),
    Rule::new("poll", libc::SYS_poll, &[], "waits for the sentry, and for the time to look"),
    Rule::new("ppoll", libc::SYS_ppoll, &[], "waits for the sentry, and for the time to look"),
    Rule::new(
        "kill",
        libc::SYS_kill,
        &[Given(0, 1, "the sentry"), OneOf(1, &[(9, "SIGKILL")])],
        "ends a sandbox whose sentry kills nobody",
    ),
    Rule::new(
        "clock_gettime",
        libc::SYS_clock_gettime,
        &[],
        "reads clocks, and what a process has used of its",
    ),
];

fn rules() -> Vec<Rule> {
    [RULES, calls::OWN].concat()
}

/// The host calls that the meter can make once it looks.
pub fn exposure() -> Vec<Rule> {
    rules()
}

/// The filter as the kernel takes it: the descriptor of the sentry's socket, and the sentry's pid.
pub(super) fn assemble(socket: u32, sentry: u32) -> Vec<Insn> {
    let mut rules = rules();
    rules.extend(calls::DEBUG);
    let filter = Filter { rules: &rules, inside: None, refused: Otherwise::Kill, unknown: Otherwise::Kill };
    filter.assemble(&[socket, sentry])
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
    use std::os::fd::AsRawFd;

    /// How a child with the filter ends: the signal, or the status of what it did.
    fn attack(f: fn(&std::os::fd::OwnedFd)) -> (Option<i32>, Option<i32>) {
        let (own, other) = rustix::net::socketpair(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::SEQPACKET,
            rustix::net::SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let pid = match confine::enter::helper(&[own.as_raw_fd()], c"meter-test").unwrap() {
            Some(pid) => pid,
            None => {
                super::super::used();
                rustix::thread::set_no_new_privs(true).unwrap();
                confine::host::filter_all_threads(&assemble(own.as_raw_fd() as u32, 1)).unwrap();
                f(&own);
                confine::host::exit_now(7)
            }
        };
        drop(other);
        let (_, status) = waitpid(Pid::from_raw(pid), WaitOptions::empty()).unwrap().unwrap();
        (status.terminating_signal(), status.exit_status())
    }

    #[test]
    fn what_it_does_is_allowed() {
        let (signal, status) = attack(|socket| {
            let mut text = String::new();
            let file = std::fs::File::open("/proc/self/status").unwrap();
            std::io::Read::read_to_string(&mut &file, &mut text).unwrap();
            std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
            std::fs::read_dir("/proc/self/task").unwrap().for_each(drop);
            let _ = rustix::net::send(socket, b"x", rustix::net::SendFlags::NOSIGNAL);
            let _ = rustix::net::recv(socket, &mut [0u8; 8][..], rustix::net::RecvFlags::DONTWAIT);
            platform::cpu_sum(1);
            super::super::used();
        });
        assert_eq!((signal, status), (None, Some(7)));
    }

    #[test]
    fn nothing_else_is() {
        let attacks: [fn(&std::os::fd::OwnedFd); 9] = [
            |_| drop(std::fs::write("/tmp/lazaret-meter-attack", "x")),
            |_| drop(std::fs::File::options().append(true).open("/proc/self/comm")),
            |_| drop(std::fs::remove_file("/tmp/lazaret-meter-attack")),
            |_| drop(std::process::Command::new("/bin/true").spawn()),
            |_| drop(std::net::UdpSocket::bind("127.0.0.1:0")),
            |_| _ = kill_process(Pid::from_raw(999_999).unwrap(), Signal::KILL),
            |_| _ = kill_process(Pid::INIT, Signal::TERM),
            |_| drop(std::thread::spawn(|| ())),
            |_| _ = rustix::io::write(std::io::stderr(), b"hello"),
        ];
        for (i, f) in attacks.into_iter().enumerate() {
            assert_eq!(attack(f), (Some(libc::SIGSYS), None), "attack {i}");
        }
    }
}
