//! Programs that read /proc, /sys and /dev about the system, beside what they say natively; and that none of it is the host's own.

mod support;

use libtest_mimic::{Arguments, Failed};
use std::fs;
use std::process::Command;
use support::{
    Beside, Check, Ctx, LIMIT, Place, Scratch, Who, command, contexts, expect, fail, present, run,
};

/// A program, and what of its output is the same on every machine: an awk program that makes it of all of it.
const READERS: &[(&str, &str)] = &[
    ("free -m", "{print NR, $1, NR == 1 ? NF : \"\"}"),
    ("vmstat", "NR < 3 {print} NR == 3 {print NF}"),
    ("vmstat -s", "{$1 = \"\"; sub(/^ */, \"\"); print}"),
    ("uptime", "{print ($0 ~ /up .*load average: [0-9.]+, [0-9.]+, [0-9.]+$/)}"),
    ("nproc", "{print}"),
    ("getconf _NPROCESSORS_ONLN", "{print}"),
    ("getconf _PHYS_PAGES", "{print ($1 > 1000)}"),
    ("df -P /", "NR == 1 {print} NR == 2 {print NF, $6}"),
    ("df -i /", "NR == 1 {print} NR == 2 {print NF, $6}"),
    ("findmnt -n -o TARGET /proc", "{print}"),
    ("findmnt -n -o FSTYPE /sys", "{print}"),
    (
        "lscpu",
        "/^(Architecture|CPU op-mode|Byte Order|CPU\\(s\\):|On-line|Vendor ID|Model name|CPU family|L1d|L2|L3)/ {print}",
    ),
    ("lscpu -p=CPU", "/^[0-9]/ {print}"),
    ("lscpu -C=NAME,ONE-SIZE,WAYS", "{print}"),
    ("ps -o pid,ppid,comm -p $$", "NR == 1 {print}"),
    ("ps aux", "NR == 1 {print}"),
    ("ps -eLf", "NR == 1 {print}"),
    ("top -bn1", "/^(Tasks|%Cpu|MiB Mem|MiB Swap| *PID)/ {sub(/:.*/, \"\"); print $1}"),
    ("pmap $$", "END {print ($1 == \"total\")}"),
    ("lsof -p $$", "NR == 1 {print $1, $2, $NF}"),
    ("ip -o link show lo", "{print $2, $3}"),
    ("sysctl -n kernel.ostype vm.swappiness net.core.somaxconn", "NR != 2 {print}"),
    ("cat /proc/interrupts", "NR == 1 {print}"),
    ("lsns -n -o TYPE -p $$", "{print}"),
    ("prlimit -o RESOURCE", "{print}"),
    ("lsipc -o RESOURCE", "{print}"),
    ("taskset -p $$", "{print NF}"),
    (
        "ls -d /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx /dev/fd /dev/stdin",
        "{print}",
    ),
    ("head -c 4 /dev/zero | od -An -tx1", "{print}"),
    ("id -un", "{print}"),
    ("locale -a | head -1", "{print}"),
];

fn readers(c: &Ctx) -> Result<(), Failed> {
    let mut bad = Vec::new();
    let all: Vec<_> = READERS.iter().filter(|(line, _)| present_reader(line)).collect();
    // One shell runs them all: what they say is told apart by a line.
    let script: String =
        all.iter().map(|(line, _)| format!("echo '=== {line}'; {line} 2>/dev/null; ")).collect();
    let outputs = [Place::Native, Place::Inside(c.platform)].map(|place| {
        let o = run(&mut command(place, c.who, &[], &["/bin/sh", "-c", &script]), LIMIT, b"");
        o.out()
    });
    for (line, awk) in all {
        let forms: Vec<String> = outputs.iter().map(|out| form(section(out, line), awk)).collect();
        if forms[0] != forms[1] {
            bad.push(format!("{line}: natively {:?}, inside {:?}", forms[0], forms[1]));
        }
    }
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n").into()) }
}

fn present_reader(line: &str) -> bool {
    let program = line.split(' ').next().unwrap_or_default();
    present(program)
        || ["/usr/sbin", "/sbin"].iter().any(|dir| fs::exists(format!("{dir}/{program}")).unwrap_or(false))
}

/// What came after a program's line.
fn section<'a>(all: &'a str, line: &str) -> &'a str {
    let rest = all.split_once(&format!("=== {line}\n")).map_or("", |(_, rest)| rest);
    rest.split_once("=== ").map_or(rest, |(own, _)| own)
}

fn form(text: &str, awk: &str) -> String {
    let mut program = Command::new("awk");
    // How wide a column is goes by what is in it.
    run(program.arg(awk), LIMIT, text.as_bytes())
        .out()
        .split(' ')
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// The memory and processors that language runtimes find are the sandbox's.
fn runtimes(c: &Ctx) -> Result<(), Failed> {
    let python = "import os;print(os.cpu_count(), len(os.sched_getaffinity(0)), os.sysconf('SC_PHYS_PAGES')*4096 <= (256<<20))";
    // Those that it may run on: what a quota of the host leaves of them is nothing that a program is told.
    let cpus = run(&mut Command::new("nproc"), LIMIT, b"").out().trim().to_owned();
    let want = format!("{cpus} {cpus} True\n");
    expect(&c.inside(&["--memory", "256M"], &["/usr/bin/python3", "-c", python]), 0, &want)?;
    if present("node") {
        let script = "const os=require('os');console.log(os.cpus().length, os.totalmem() <= 256<<20, os.loadavg().length, os.uptime() > 0)";
        let o = c.inside(&["--memory", "256M"], &["node", "-e", script]);
        // A version whose start takes more than that is no matter here.
        if o.code() == Some(0) {
            expect(&o, 0, &format!("{cpus} true 3 true\n"))?;
        }
    }
    Ok(())
}

/// Nothing of the host: its name, its processes, its boot, the machine's identity, addresses of its kernel or network.
fn nothing_of_the_host(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let (secret, read) =
        ("lazaret-secret-argument-7153", |path: &str| fs::read_to_string(path).unwrap_or_default());
    let mut beside = Command::new("/bin/sh");
    let beside = Beside::start(beside.args(["-c", "exec sleep 60", secret]).env("LAZARET_SECRET", secret));
    let mut marks = vec![secret.to_owned()];
    marks.push(read("/proc/sys/kernel/random/boot_id").trim().to_owned());
    marks.push(read("/proc/sys/kernel/hostname").trim().to_owned());
    marks.push(read("/proc/cmdline").trim().to_owned());
    let stat = read("/proc/stat");
    marks.extend(stat.lines().find_map(|line| line.strip_prefix("btime ")).map(str::to_owned));
    for interface in fs::read_dir("/sys/class/net")?.flatten() {
        marks.push(read(&format!("{}/address", interface.path().display())).trim().to_owned());
        marks.push(format!("\n{}:", interface.file_name().display()));
    }
    for line in read("/proc/modules").lines().chain(read("/proc/kallsyms").lines().take(50)) {
        marks.extend(line.split_whitespace().next().map(str::to_owned));
    }
    marks.retain(|mark| {
        mark.len() > 5 && !mark.chars().all(|ch| matches!(ch, '0' | ':')) && !mark.contains("lo:")
    });
    // All text of these file systems, but the memory and the environment of the reader itself.
    let script = "find /proc /sys /dev -type f ! -name mem ! -name environ ! -name kmsg ! -name pagemap -print0 2>/dev/null | \
                  xargs -0 head -qc 200000 2>/dev/null; ls -lR /dev /sys 2>/dev/null";
    let o = c.inside(&["--clear-env"], &["/bin/sh", "-c", script]);
    let text = String::from_utf8_lossy(&o.stdout).into_owned();
    drop(beside);
    if text.len() < 10_000 {
        return Err(fail("the files' text", &o));
    }
    let found: Vec<_> = marks.iter().filter(|mark| text.contains(*mark)).collect();
    drop(s);
    if found.is_empty() { Ok(()) } else { Err(format!("of the host: {found:?}").into()) }
}

/// What was opened and is not there is named.
fn missing_paths_are_gaps(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    if c.who == Who::Ordinary {
        std::os::unix::fs::chown(s.path(""), Some(65534), Some(65534))?;
    }
    let report = s.path("report.json");
    let script = "for f in /proc/none /proc/self/none /proc/sys/vm/none /sys/class/none /sys/devices/system/cpu/cpu0/none; do cat $f; done";
    let o = c.sh(&["--report", &report], script);
    let report: serde_json::Value = serde_json::from_str(&fs::read_to_string(&report)?)?;
    let gaps = report["gaps"].to_string();
    for path in [
        "/proc/none",
        "/proc/self/none",
        "/proc/sys/vm/none",
        "/sys/class/none",
        "/sys/devices/system/cpu/cpu0/none",
    ] {
        if !gaps.contains(&format!("path {path}\"")) {
            return Err(fail(&format!("{path} in {gaps}"), &o));
        }
    }
    Ok(())
}

const CHECKS: &[(&str, Check)] = &[
    ("readers", readers),
    ("runtimes", runtimes),
    ("nothing_of_the_host", nothing_of_the_host),
    ("missing_paths_are_gaps", missing_paths_are_gaps),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        for (name, check) in CHECKS {
            trials.push(c.trial("system", name, *check));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
