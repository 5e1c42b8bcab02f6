//! The guest test program: `guest VERB` runs the cases of a verb one after the other, `guest VERB CASE...` the
//! named ones, `guest VERB --from CASE` the rest beginning there, `guest VERB --list` names them, `guest
//! --list` names the verbs. One line for each case: `ok NAME`, `FAIL NAME: why` or `skip NAME: why`; the exit
//! status is 1 after any failure, 2 for wrong arguments.

use guest_tests::check::{Skip, keep_failures, last_failure};
use guest_tests::{Case, sys};
use libc::{SIG_IGN, SIGKILL, SIGPIPE, SIGSTOP, SYS_rt_sigaction};

use std::panic::catch_unwind;

macro_rules! verbs {
    ($($verb:ident)*) => {
        $(mod $verb;)*
        const VERBS: &[(&str, &[Case])] = &[$((stringify!($verb), $verb::CASES)),*];
    };
}

mod sockets;

verbs! {
    answers areas mapsites filesites
    attr buffers clone close dnotify dup epoll exec fault fcntl fdops fileops files futex getdents ids inet init inotify job lent loopback lseek
    memlimit mmap names netlink netns open peer pipe pointers prctl pread process procfs pty queues read rlimit setid sigfault
    sigframe signal sites socket sockopt splice stat threads time timers tty wait
    write
    xattr
    futex_pi
    futex_waitv
    memory
    sysv
    mqueue
    aio
    once
    ptrace
    ptrace_events
    seccomp
    seccomp_tasks
    seccomp_verifier
    seccomp_notify
    seccomp_trace
    prctl_memory
    dispatch
    coredump
    mount
    propagation
    pivot
    newmount
    namespaces pidns pidnames timens restart
    pidinfo
    ptrace_watch
    resident
    attack
    sched
    overlay
    acl
    sysfiles
    transfers
    handover
    urgent
    backlog
    nothing
    families
    fastopen
}

/// Programs that other cases start by exec: they get their arguments as they are.
type Helper = fn(&[String]) -> i32;

const HELPERS: &[(&str, Helper)] = &[
    ("io_uring_three_times", io_uring_three_times),
    ("fill", fill::run),
    ("hostile", hostile::run),
    ("bomb", hostile::bomb),
    ("look", hostile::look),
    ("credentials", setid::show),
    ("attacked", attack::wait),
    ("on_stack", memlimit::on_stack),
    ("churn", threads::churn),
    ("reads", lent::reads),
    ("overlay_trees", overlay::trees),
    ("clocks", timens::clocks),
    ("after_exec", timers::after_exec),
    ("own_clock", timers::own_clock),
];

mod fill;
mod hostile;
mod tracee;

/// Says what io_uring_setup answers, three times.
fn io_uring_three_times(_: &[String]) -> i32 {
    let one =
        || guest_tests::check::errname(-guest_tests::sys!(libc::SYS_io_uring_setup, 1, &mut [0u64; 15]));
    say(&[one(), one(), one()].join(" "));
    0
}

fn say(line: &str) {
    let line = format!("{line}\n");
    guest_tests::sys!(libc::SYS_write, 1, line.as_bytes(), line.len());
}

fn run(case: &Case) -> bool {
    match catch_unwind(case.run) {
        Ok(()) => say(&format!("ok {}", case.name)),
        Err(e) => match e.downcast_ref::<Skip>() {
            Some(Skip(why)) => say(&format!("skip {}: {why}", case.name)),
            None => {
                say(&format!("FAIL {}: {}", case.name, last_failure().replace('\n', " ")));
                return false;
            }
        },
    }
    true
}

/// What whoever started the tests ignores (a shell's background job, an interpreter) is no part of them.
fn heed_signals() {
    for signal in (1..=64).filter(|signal| ![SIGKILL, SIGSTOP, SIGPIPE].contains(signal)) {
        let mut now = [0u64; 4];
        sys!(SYS_rt_sigaction, signal, 0, &mut now, 8);
        if now[0] == SIG_IGN as u64 {
            sys!(SYS_rt_sigaction, signal, &[0u64; 4], 0, 8);
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some((_, f)) = args.first().and_then(|a| HELPERS.iter().find(|(n, _)| n == a)) {
        std::process::exit(f(&args[1..]));
    }
    keep_failures();
    heed_signals();
    let verb = match args.first().map(String::as_str) {
        Some("--list") | None => {
            VERBS.iter().for_each(|(v, _)| say(v));
            return;
        }
        Some(v) => v,
    };
    let Some((_, cases)) = VERBS.iter().find(|(v, _)| *v == verb) else {
        eprintln!("guest: no verb {verb}");
        std::process::exit(2);
    };
    let names: Vec<&str> = args[1..].iter().map(String::as_str).collect();
    let known = |n: &&str| cases.iter().any(|c| *c.name == **n);
    let chosen: Vec<&Case> = match names[..] {
        [] => cases.iter().collect(),
        ["--list"] => {
            cases.iter().for_each(|c| say(c.name));
            return;
        }
        ["--from", n] if known(&n) => cases.iter().skip_while(|c| c.name != n).collect(),
        _ if names.iter().all(known) => cases.iter().filter(|c| names.contains(&c.name)).collect(),
        _ => {
            eprintln!("guest {verb}: no such case among {names:?}");
            std::process::exit(2);
        }
    };
    let failed = chosen.into_iter().filter(|c| !run(c)).count();
    std::process::exit(i32::from(failed > 0));
}
