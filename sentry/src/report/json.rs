//! The report as JSON (`docs/report.md`).

use super::{Found, ProcessEntry, Report};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use syscall_table::abi::wait::WaitStatus;
use syscall_table::errno::Errno;

/// What the report says of the run as a whole.
pub struct Outcome<'a> {
    /// Program and arguments as given.
    pub command: &'a [Vec<u8>],
    /// How the first program ended; None: it did not start.
    pub status: Option<WaitStatus>,
    /// The exit status of `lazaret do`.
    pub code: u8,
    /// Start to end.
    pub duration: Duration,
    /// `trap` or `ptrace`.
    pub platform: &'a str,
    /// Host calls by process, when asked.
    pub host_calls: Option<BTreeMap<String, BTreeMap<String, u64>>>,
    /// What changed in the upper layer, when asked.
    pub diff: Option<&'a crate::layer::Diff>,
}

/// Linux's name of a call.
pub(super) fn call_name(nr: u32) -> String {
    syscall_table::by_number(nr).map_or_else(|| format!("syscall_{nr}"), |row| row.name.to_owned())
}

fn exit(status: Option<WaitStatus>) -> Value {
    match status.map(|s| (s.exit_status(), s.term_signal())) {
        Some((Some(code), _)) => json!({ "code": code }),
        Some((_, Some(signal))) => json!({ "signal": signal }),
        _ => Value::Null,
    }
}

impl Report {
    /// The whole report.
    pub fn json(&self, run: &Outcome<'_>) -> String {
        let found = self.found.lock();
        let command: Vec<String> = run.command.iter().map(|arg| super::text(arg)).collect();
        let mut value = json!({
            "schema": "lazaret-report/1",
            "command": command,
            "exit": match run.status { Some(_) => exit(run.status), None => json!({ "not_started": run.code }) },
            "status": run.code,
            "duration_ms": u64::try_from(run.duration.as_millis()).unwrap_or(u64::MAX),
            "platform": run.platform,
            "processes": processes(&found),
            "syscalls": self.syscalls(),
            "denials": denials(&found),
            "gaps": gaps(&found),
            "oom_kills": oom_kills(&found),
            "dropped": found.dropped,
        });
        if let (Some(diff), Some(map)) = (&run.diff, value.as_object_mut()) {
            let change = |(kind, path): &(char, Vec<u8>)| json!({ "kind": kind, "path": super::text(path) });
            map.insert("changes".to_owned(), diff.paths.iter().map(change).collect());
            map.insert("changes_dropped".to_owned(), json!(diff.dropped));
        }
        if let (Some(calls), Some(map)) = (&run.host_calls, value.as_object_mut()) {
            map.insert("host_calls".to_owned(), json!(calls));
        }
        format!("{value:#}\n")
    }

    fn syscalls(&self) -> Value {
        let counts = self.counts.iter().flat_map(|counts| counts.iter().enumerate());
        let entries = counts.filter_map(|(nr, count)| {
            let calls = count.calls.load(Ordering::Relaxed);
            let name = call_name(u32::try_from(nr).unwrap_or(u32::MAX));
            (calls > 0)
                .then(|| (name, json!({ "count": calls, "errors": count.errors.load(Ordering::Relaxed) })))
        });
        Value::Object(entries.collect())
    }
}

fn gaps(found: &Found) -> Vec<Value> {
    let gap = |(key, count): (&super::GapKey, &u64)| {
        json!({
            "syscall": call_name(key.nr),
            "detail": key.detail,
            "program": key.program,
            "errno": format!("{:?}", Errno::from_raw(key.errno)),
            "count": count,
        })
    };
    found.gaps.iter().map(gap).collect()
}

fn denials(found: &Found) -> Vec<Value> {
    let denial = |(key, count): (&super::DenialKey, &u64)| {
        json!({
            "what": key.what,
            "path": key.path,
            "rule": key.rule,
            "allow_with": key.allow_with,
            "program": key.program,
            "count": count,
        })
    };
    found.denials.iter().map(denial).collect()
}

fn oom_kills(found: &Found) -> Vec<Value> {
    let kill = |kill: &super::OomKill| json!({ "pid": kill.pid, "program": kill.program, "resident": kill.resident, "limit": kill.limit });
    found.oom_kills.iter().map(kill).collect()
}

/// Processes as a tree. Depth is bounded: JSON readers refuse deep nesting, and deeper ones are listed at the top.
fn processes(found: &Found) -> Vec<Value> {
    let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (pid, entry) in &found.processes {
        children.entry(entry.ppid).or_default().push(*pid);
    }
    let mut deep = Vec::new();
    let mut out: Vec<Value> = found
        .processes
        .iter()
        .filter(|(_, entry)| !found.processes.contains_key(&entry.ppid))
        .map(|(pid, entry)| node(found, &children, *pid, entry, 0, &mut deep))
        .collect();
    while let Some(pid) = deep.pop() {
        if let Some(entry) = found.processes.get(&pid) {
            out.push(node(found, &children, pid, entry, 0, &mut deep));
        }
    }
    out
}

fn node(
    found: &Found,
    children: &BTreeMap<i32, Vec<i32>>,
    pid: i32,
    entry: &ProcessEntry,
    depth: usize,
    deep: &mut Vec<i32>,
) -> Value {
    let own = children.get(&pid).map(Vec::as_slice).unwrap_or_default();
    let below: Vec<Value> = if depth < 40 {
        own.iter()
            .filter_map(|child| Some((*child, found.processes.get(child)?)))
            .map(|(child, entry)| node(found, children, child, entry, depth + 1, deep))
            .collect()
    } else {
        deep.extend_from_slice(own);
        Vec::new()
    };
    json!({
        "pid": pid,
        "ppid": entry.ppid,
        "program": entry.program,
        "arguments": entry.arguments,
        "exit": exit(entry.exit),
        "children": below,
    })
}
