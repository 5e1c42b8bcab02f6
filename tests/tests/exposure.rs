//! Redundant rules: what the filters of sentry and gofer admit and a broad load never needs is listed here with its
//! reason, or goes.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;
use support::{Place, Who, bins, clean_up, command, run};

const LIMIT: Duration = Duration::from_secs(120);

/// Calls that have a rule although the load does not make them.
const RARE: &[(&str, &str, &str)] = &[
    ("sentry", "clock_getres", "the vDSO answers, where there is one"),
    ("sentry", "getcpu", "the vDSO answers, where there is one"),
    ("sentry", "clock_nanosleep", "a worker's pause when the host has no memory for it"),
    ("sentry", "sched_setaffinity", "a lane of another processor, when the own one is busy"),
    ("sentry", "sched_yield", "a lock that is waited for"),
    ("sentry", "preadv2", "a pipe or socket as standard input"),
    ("sentry", "pwritev2", "a pipe or socket as standard output"),
    ("sentry", "recvfrom", "a socket as standard input; a signal from the launcher"),
    ("sentry", "lseek", "a file as a standard stream, and holes"),
    ("sentry", "fstatfs", "a file as a standard stream"),
    ("sentry", "eventfd2", "the reaper's end"),
    ("sentry", "tgkill", "a task that runs when a signal comes"),
    ("sentry", "rt_sigaction", "the platform of the load decides whether a thread starts first"),
    ("sentry", "waitid", "which process ends before the report is chance"),
    ("sentry", "exit", "a thread's end"),
    ("sentry", "mremap", "a large vector that grows"),
    ("sentry", "madvise", "the end of a thread"),
    ("sentry", "fallocate", "holes"),
    ("gofer", "exit", "a thread's end"),
    ("gofer", "mremap", "a large vector that grows"),
    ("gofer", "madvise", "the end of a thread"),
    ("gofer", "sched_yield", "a lock that is waited for"),
    ("gofer", "getrandom", "a hash table"),
    ("gofer", "inotify_init1", "inotify on a pass-through mount"),
    ("gofer", "inotify_add_watch", "inotify on a pass-through mount"),
    ("gofer", "inotify_rm_watch", "inotify on a pass-through mount"),
    ("gofer", "fsync", "a directory on a pass-through mount"),
    ("gofer", "fdatasync", "a directory on a pass-through mount"),
    ("gofer", "syncfs", "syncfs on a pass-through mount"),
    ("gofer", "renameat", "which of the two calls is the host library's choice"),
    ("gofer", "renameat2", "which of the two calls is the host library's choice"),
    ("gofer", "getxattr", "extended attributes"),
    ("gofer", "listxattr", "extended attributes"),
    ("gofer", "setxattr", "extended attributes"),
    ("gofer", "removexattr", "extended attributes"),
    ("gofer", "lseek", "a listing that is continued elsewhere"),
    ("gofer", "setfsuid", "root's pass-through mounts"),
    ("gofer", "setfsgid", "root's pass-through mounts"),
];

/// What a process makes when it ends, after the report, or only after a signal or a stop.
const ANY: &[&str] = &["exit_group", "rt_sigreturn", "restart_syscall"];

const LOAD: &str = r#"
ls -lR /usr/share/doc | tail -1; id; df /; cat /proc/self/status /proc/meminfo /proc/uptime /etc/os-release
d=$(mktemp -d -p "$1"); cd "$d"; seq 1 100000 | sort -rn >a; cp a b; mv b c; ln -s a l; ln a h; mkdir e; rmdir e; mkfifo p
chmod 600 a; chown 0 a; touch -d yesterday a; truncate -s 10 c; dd if=a of=g conv=fsync bs=64k; dd if=a of=g conv=fdatasync
sync g .; readlink l; rm h; flock g true; head -c 10 /dev/urandom
(sleep 0.1; echo x) & wait; timeout 0.1 sleep 5
python3 -c '
import threading, mmap, tempfile, os, time, resource
t = [threading.Thread(target=time.sleep, args=(0.05,)) for i in range(8)]
[x.start() for x in t]; [x.join() for x in t]
f = tempfile.TemporaryFile(dir="/tmp"); f.write(b"x" * 100000); f.flush()
m = mmap.mmap(f.fileno(), 100000); m[0:2] = b"ab"; m.flush(); m.close(); os.fsync(f.fileno())
resource.getrusage(0); os.times()'
rm -r "$d"
"#;

fn redundant() -> Result<(), Failed> {
    let dir = bins().guest.with_file_name("exposure");
    std::fs::create_dir_all(dir.join("files"))?;
    let report: String = dir.join("report.json").display().to_string();
    let files: String = dir.join("files").display().to_string();
    let mut used = BTreeSet::new();
    for platform in ["trap", "ptrace"] {
        for place in ["/tmp", files.as_str()] {
            let options = ["--host-calls", "--report", report.as_str(), "--write", files.as_str()];
            let argv = ["/bin/sh", "-c", LOAD, "load", place];
            let o = run(&mut command(Place::Inside(platform), Who::Caller, &options, &argv), LIMIT, b"");
            if o.code() != Some(0) {
                return Err(Failed::from(o.brief()));
            }
            let written: serde_json::Value = serde_json::from_slice(&std::fs::read(&report)?)?;
            for process in ["sentry", "gofer"] {
                let calls = written["host_calls"][process].as_object().ok_or("no host calls")?;
                used.extend(calls.keys().map(|call| (process, call.clone())));
            }
        }
    }
    let lazaret = bins().lazaret.as_ref().ok_or("no lazaret")?;
    let page = Command::new(lazaret).args(["exposure", "--format", "json"]).output()?.stdout;
    let page: serde_json::Value = serde_json::from_slice(&page)?;
    let mut unused = Vec::new();
    for process in ["sentry", "gofer"] {
        for rule in page[process].as_array().ok_or("no rules")? {
            let call = rule["call"].as_str().unwrap_or_default();
            let never = rule["arguments"].as_str().is_some_and(|text| text.contains("never made"));
            let rare = RARE.iter().any(|(p, c, _)| (*p, *c) == (process, call)) || ANY.contains(&call);
            if !never && !rare && !used.contains(&(process, call.to_owned())) {
                unused.push(format!("{process}: {call}"));
            }
        }
    }
    if unused.is_empty() { Ok(()) } else { Err(format!("rules that nothing needs: {unused:?}").into()) }
}

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let trials = vec![Trial::test("redundant_rules", redundant)];
    let conclusion = libtest_mimic::run(&arguments, trials);
    clean_up();
    conclusion.exit();
}
