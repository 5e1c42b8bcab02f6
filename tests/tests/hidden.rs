//! /proc and /sys inside tell nothing of the host: no processes, no boot, no devices, no addresses of its kernel.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;
use support::{Place, Who, command, run};

const LIMIT: Duration = Duration::from_secs(60);
/// Every readable file with its name, and where every link leads. Memory is not text, nor is the table of pages, which has no end.
const EVERYTHING: &str = "find /proc /sys ! -name mem ! -name pagemap ! -type l ! -type d -print -exec cat {} ';' 2>/dev/null; \
                          find /proc /sys -type l -printf '%p -> %l\\n' 2>/dev/null; true";

fn host(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// What only the host's own /proc says, and what it is.
fn secrets(marker: &str) -> Vec<(&'static str, String)> {
    let stat = host("/proc/stat");
    let boot = stat.lines().find(|line| line.starts_with("btime")).unwrap_or_default().to_owned();
    let release = host("/proc/sys/kernel/osrelease");
    let mut all = vec![
        ("a process of the host", marker.to_owned()),
        ("the boot's number", host("/proc/sys/kernel/random/boot_id")),
        ("the time of boot", boot),
        ("the kernel's command line", host("/proc/cmdline")),
        ("the kernel's version", host("/proc/version")),
        ("the kernel's release", release),
        ("the machine", host("/sys/class/dmi/id/product_uuid")),
    ];
    // Devices, and directories of the host that overlays are made of.
    for line in host("/proc/self/mountinfo").lines() {
        let source = line.rsplit(' ').nth(1).unwrap_or_default();
        if source.starts_with("/dev/") {
            all.push(("a device", source.to_owned()));
        }
    }
    for line in host("/proc/net/dev").lines().skip(2) {
        let name = line.split(':').next().unwrap_or_default().trim();
        if name != "lo" && !name.is_empty() {
            all.push(("a network interface", format!("{name}:")));
        }
    }
    for entry in std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        let address = host(entry.path().join("address").to_str().unwrap_or_default());
        if !address.trim_matches(['0', ':']).is_empty() {
            all.push(("a network address", address));
        }
    }
    all.retain(|(_, secret)| secret.len() > 3);
    all
}

fn nothing_of_the_host(platform: &'static str, who: Who) -> Result<(), Failed> {
    let marker = format!("of-the-host-{}", std::process::id());
    let mut process = Command::new("/bin/sleep");
    // The same user as inside: rights alone would not hide it.
    if who == Who::Ordinary {
        process.uid(support::ORDINARY).gid(support::ORDINARY);
    }
    let mut other = process.arg0(&marker).arg("100").spawn()?;
    let told =
        run(&mut command(Place::Inside(platform), who, &[], &["/bin/sh", "-c", EVERYTHING]), LIMIT, b"");
    let (_, _) = (other.kill(), other.wait());
    let text = told.out();
    if told.code() != Some(0) || !text.contains("/proc/self/status") && !text.contains("/status\n") {
        return Err(format!("nothing was read: {}", told.brief()).into());
    }
    let mut bad: Vec<String> = Vec::new();
    for (what, secret) in secrets(&marker) {
        let mut lines = text.lines();
        if let Some(line) = lines.find(|line| line.contains(secret.as_str())) {
            bad.push(format!("{what}: {line:?}"));
        }
    }
    // No path of it, and no process but those inside: init, the shell, find and what it runs.
    let mut pids: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("/proc/")?.split('/').next())
        .filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        .collect();
    pids.sort_unstable();
    pids.dedup();
    if pids.len() > 5 {
        bad.push(format!("processes {pids:?}"));
    }
    if bad.is_empty() { Ok(()) } else { Err(bad.join("\n").into()) }
}

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for platform in support::PLATFORMS {
        if let Some(why) = support::unusable(platform) {
            eprintln!("hidden: not run on {platform}: {why}");
            continue;
        }
        for who in [Who::Caller, Who::Ordinary] {
            if who == Who::Ordinary && !support::is_root() {
                continue;
            }
            let suffix = if who == Who::Ordinary { "-user" } else { "" };
            trials.push(Trial::test(format!("{platform}{suffix}/nothing_of_the_host"), move || {
                nothing_of_the_host(platform, who)
            }));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
