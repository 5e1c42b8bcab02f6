//! `lazaret check`: what this host offers, one line each.

use std::fs;
use std::io::Write;
use std::process::ExitCode;

pub fn run() -> ExitCode {
    let mut missing = false;
    for (what, result) in [
        ("Linux 6.13 or newer", release()),
        ("user namespaces", namespaces()),
        ("seccomp filters", seccomp()),
        ("FSGSBASE", flag("fsgsbase")),
    ] {
        match result {
            Ok(text) => say(&format!("ok       {what}: {text}\n")),
            Err(text) => {
                missing = true;
                say(&format!("missing  {what}: {text}\n"));
            }
        }
    }
    ExitCode::from(if missing { crate::FAILURE } else { 0 })
}

/// A line on standard output. A reader that is gone needs none.
fn say(line: &str) {
    let _ = std::io::stdout().write_all(line.as_bytes());
}

fn release() -> Result<String, String> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (6, 13) { Ok(release) } else { Err(release) }
}

fn namespaces() -> Result<String, String> {
    let limit = fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    if limit.trim() == "0" {
        return Err("set sysctl user.max_user_namespaces above 0".to_owned());
    }
    match confine::enter::try_namespaces() {
        Ok(()) => Ok("can be made".to_owned()),
        Err(error) => Err(format!("{error}{}", confine::enter::hint(&error))),
    }
}

fn seccomp() -> Result<String, String> {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").map_err(|e| e.to_string())?;
    for action in ["trap", "user_notif", "errno", "kill_process"] {
        if !actions.split_whitespace().any(|word| word == action) {
            return Err(format!("no action {action}"));
        }
    }
    Ok(actions.trim().to_owned())
}

fn flag(name: &str) -> Result<String, String> {
    let info = fs::read_to_string("/proc/cpuinfo").map_err(|e| e.to_string())?;
    let has = info
        .lines()
        .find(|line| line.starts_with("flags"))
        .is_some_and(|line| line.split_whitespace().any(|f| f == name));
    if has { Ok("there".to_owned()) } else { Err("the processor or kernel does not have it".to_owned()) }
}
