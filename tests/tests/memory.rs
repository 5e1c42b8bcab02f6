//! `lazaret do --memory`: programs that use memory without end are held, killed by name, and nothing else is harmed.
//!
//! Whether memory was held is looked at from outside, in /proc of all processes of the sandbox.

mod support;

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{read_dir, read_to_string};
use std::time::{Duration, Instant};
use support::{Ctx, Place, Who, bins, command, contexts, expect, fail, finish, present, start};

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 128;
/// MiB that are certainly held: programs want 768. How far the limit is passed depends on how busy the machine is: by a
/// few MiB mostly, by as much as is written in a tenth of a second at the worst.
const AT_MOST: u64 = LIMIT * 5;

fn modes() -> Vec<String> {
    let guest = bins().guest.to_str().expect("UTF-8");
    let o = support::run(
        &mut command(Place::Native, Who::Caller, &[], &[guest, "fill"]),
        Duration::from_secs(10),
        b"",
    );
    o.out().lines().map(String::from).collect()
}

fn kib(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|l| l.strip_prefix(name));
    line.and_then(|l| l.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Bytes that each process below `launcher` uses, by its number (private memory, each page once, and page tables), and
/// each memory file, by its inode.
type InUse = BTreeMap<(bool, u64), u64>;

fn in_use(launcher: u32) -> InUse {
    let mut all = InUse::new();
    let sentry = children(launcher).into_iter().find(|pid| {
        read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "lazaret-sentry")
    });
    let Some(sentry) = sentry else { return all };
    for pid in children(sentry).into_iter().chain([sentry]) {
        let rollup = read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        let status = read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        all.insert((false, pid.into()), (kib(&rollup, "Pss_Anon:") + kib(&status, "VmPTE:")) * 1024);
    }
    // Files that nobody has mapped are the sentry's descriptors.
    for fd in read_dir(format!("/proc/{sentry}/fd")).into_iter().flatten().flatten() {
        let path = fd.path();
        if std::fs::read_link(&path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:")) {
            use std::os::unix::fs::MetadataExt;
            if let Ok(stat) = std::fs::metadata(&path) {
                all.insert((true, stat.ino()), stat.blocks() * 512);
            }
        }
    }
    all
}

/// What was in use at once between two looks: a look takes time, in which one gives back what another then takes.
fn at_once(before: &InUse, after: &InUse) -> u64 {
    before.iter().filter_map(|(key, then)| Some(*then.min(after.get(key)?))).sum()
}

fn children(pid: u32) -> Vec<u32> {
    let mut all = Vec::new();
    for thread in read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let list = read_to_string(thread.path().join("children")).unwrap_or_default();
        all.extend(list.split_whitespace().filter_map(|n| n.parse::<u32>().ok()));
    }
    all
}

fn held(c: &Ctx, mode: &str) -> Result<(), Failed> {
    let guest = bins().guest.to_str().expect("UTF-8");
    let report = std::env::temp_dir().join(format!(
        "lazaret-memory-{}-{mode}-{}-{:?}",
        c.platform,
        std::process::id(),
        c.who == Who::Caller
    ));
    let limit = format!("{LIMIT}M");
    let report_at = report.to_str().expect("UTF-8");
    let options = ["--memory", &limit, "--report", report_at];
    let mut child = start(&mut command(Place::Inside(c.platform), c.who, &options, &[guest, "fill", mode]));
    let launcher = child.id();
    let (begun, mut most, mut before) = (Instant::now(), 0, InUse::new());
    while child.try_wait().expect("a child").is_none() && begun.elapsed() < Duration::from_secs(50) {
        let now = in_use(launcher);
        most = most.max(at_once(&before, &now));
        before = now;
        std::thread::sleep(Duration::from_millis(2));
    }
    let o = finish(child, Duration::from_secs(10));
    let text = o.out();
    let kills = std::fs::read(&report).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let _ = std::fs::remove_file(&report);
    let kills = kills.map_or(0, |report| report["oom_kills"].as_array().map_or(0, Vec::len));
    let what =
        |text: &str| Err(fail(&format!("{text}; at most {} MiB were in use, {kills} kills", most / MIB), &o));
    eprintln!("{} {mode}: at most {} MiB in use, {kills} kills, {:?}", c.platform, most / MIB, text);
    // What pipes hold is in nobody's memory: the largest process need not be the one that filled them.
    let named = o.code() == Some(137) && kills > 0 && o.err().contains("lazaret: out of memory: killed ");
    let held = most <= AT_MOST * MIB;
    if mode == "pipes" && named && held {
        return Ok(());
    }
    if o.code() != Some(0) || !text.ends_with("alive\n") {
        return what("the first program was harmed");
    }
    if text.contains("not made") {
        // No way to make one by hand on this platform: the attack fails earlier.
        return Ok(());
    }
    if text.contains("filled") && kills == 0 || !held {
        return what("memory was not held");
    }
    if kills > 0 && !o.err().contains("lazaret: out of memory: killed ") {
        return what("the victim was not named");
    }
    // What was made by hand may be found out and killed before it is large.
    if kills == 0 && !text.contains("refused") && mode != "by_hand" {
        return what("nobody was killed and nothing refused");
    }
    Ok(())
}

fn says_what_it_has(c: &Ctx) -> Result<(), Failed> {
    let o = c.sh(
        &["--memory", "512M"],
        "grep MemTotal /proc/meminfo; cat /proc/sys/vm/overcommit_memory; free -m | awk '/Mem/ {print $2}'",
    );
    expect(&o, 0, "MemTotal:         524288 kB\n0\n512\n")
}

fn refuses_what_is_obviously_too_much(c: &Ctx) -> Result<(), Failed> {
    let script = r#"
import mmap, os
def refused(f):
    try: f()
    except (OSError, MemoryError) as e: return getattr(e, "errno", "MemoryError")
print(refused(lambda: mmap.mmap(-1, 400 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)))
print(refused(lambda: mmap.mmap(-1, 400 << 20)))
print(refused(lambda: bytearray(400 << 20)))
m = mmap.mmap(-1, 400 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
m[0] = 1
mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
mmap.mmap(-1, 200 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
"#;
    let o = c.inside(&["--memory", "256M"], &["/usr/bin/python3", "-c", script]);
    expect(&o, 0, "12\n12\nMemoryError\n")
}

fn files_have_half(c: &Ctx) -> Result<(), Failed> {
    // Other locales have files that are mapped, and then in memory, too.
    let script = "export LC_ALL=C; cd /tmp; dd if=/dev/zero of=x bs=1M count=200 2>/dev/null; echo $?; stat -c %s x; rm x
dd if=/dev/zero of=y bs=1M count=100 2>/dev/null; echo $?; rm y; echo small > z; cat z";
    expect(&c.sh(&["--memory", "256M"], script), 0, "1\n134217728\n0\nsmall\n")
}

/// What is shared after a fork, or mapped by several, is there once.
fn shared_pages_count_once(c: &Ctx) -> Result<(), Failed> {
    let script = r#"
import mmap, os
private = bytearray(b"x" * (70 << 20))
shared = mmap.mmap(-1, 70 << 20)
for i in range(0, len(shared), 4096): shared[i] = 1
pids = []
ready, go = os.pipe(), os.pipe()
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        os.close(go[1])
        n = sum(private[i] for i in range(0, len(private), 4096)) + sum(shared[i] for i in range(0, len(shared), 4096))
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    pids.append(pid)
while len(pids) < 5: pass
n = 0
while n < 5: n += len(os.read(ready[0], 5))
import time
time.sleep(0.3)
os.close(go[1])
print([os.waitpid(pid, 0)[1] for pid in pids])
"#;
    let o = c.inside(&["--memory", "256M"], &["/usr/bin/python3", "-c", script]);
    expect(&o, 0, "[0, 0, 0, 0, 0]\n")
}

/// The larger one is killed, unless its score says otherwise.
fn the_score_decides(c: &Ctx) -> Result<(), Failed> {
    let script = r#"
import os
# Whoever reads it waits until the first one has closed it or ended.
wait, end = os.pipe()
def eater(size, adj, status, says):
    full = os.pipe()
    pid = os.fork()
    if pid:
        if says: os.read(full[0], 1)
        return pid
    os.close(end)
    open("/proc/self/oom_score_adj", "w").write(str(adj))
    keep = bytearray(size << 20)
    for at in range(0, len(keep), 4096): keep[at] = 1
    # With too much in use there is no memory for what a pipe holds either.
    if says: os.write(full[1], b"x")
    os.read(wait, 1)
    os._exit(status)
large, small = eater(80, 0, 3, True), eater(80, 900, 4, True)
third = eater(130, 0, 5, False)
names = {large: "large", small: "small", third: "third"}
pid, status = os.wait()
print(names[pid], status)
os.close(end)
print(sorted((names[pid], status) for pid, status in (os.wait(), os.wait())))
"#;
    let o = c.inside(&["--memory", "256M"], &["/usr/bin/python3", "-c", script]);
    expect(&o, 0, "small 9\n[('large', 768), ('third', 1280)]\n")
}

fn runtimes_follow(c: &Ctx) -> Result<(), Failed> {
    if present("java") {
        let script = "java -XX:+PrintFlagsFinal -version 2>/dev/null | awk '$2 == \"MaxHeapSize\" {print ($4 <= 536870912)}'";
        expect(&c.sh(&["--memory", "2G"], script), 0, "1\n")?;
    }
    if present("node") {
        let o = c.inside(&["--memory", "2G"], &["node", "-e", "console.log(require('os').totalmem())"]);
        expect(&o, 0, "2147483648\n")?;
    }
    Ok(())
}

const CHECKS: &[(&str, support::Check)] = &[
    ("says_what_it_has", says_what_it_has),
    ("refuses_what_is_obviously_too_much", refuses_what_is_obviously_too_much),
    ("files_have_half", files_have_half),
    ("shared_pages_count_once", shared_pages_count_once),
    ("the_score_decides", the_score_decides),
    ("runtimes_follow", runtimes_follow),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        for mode in modes() {
            trials.push(c.trial("fill", &mode.clone(), move |c| held(c, &mode)));
        }
        for (name, check) in CHECKS {
            trials.push(c.trial("memory", name, *check));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
