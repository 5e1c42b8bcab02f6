//! uid_map, gid_map, projid_map, setgroups (user_namespaces(7)).

use crate::fail::SysResult;
use crate::task::Task;
use crate::task::creds::{Creds, cap};
use crate::task::userns::{Extent, Ids, UserNs};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use syscall_table::errno::Errno;

/// The most lines of a map.
const LINES: usize = 340;

/// A map of `ns` as `asker` sees it: ids of the asker's namespace, or of the parent when it is the asker's own.
pub(super) fn show(asker: &Task, ns: &Arc<UserNs>, ids: Ids) -> Vec<u8> {
    let own = asker.creds().ns.clone();
    let seen = match &ns.parent {
        Some(parent) if own == *ns => parent.clone(),
        _ => own,
    };
    let map = if ids == Ids::Users { &ns.users } else { &ns.groups };
    let mut out = String::new();
    for extent in map.get().into_iter().flatten() {
        let lower = seen.from_kernel(ids, extent.lower).unwrap_or(u32::MAX);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:>10} {lower:>10} {:>10}", extent.first, extent.count);
    }
    out.into_bytes()
}

fn invalid<T>() -> SysResult<T> {
    Err(Errno::EINVAL.into())
}

/// The lines as they are written: ids inside, ids of the parent, count.
fn parse(data: &[u8]) -> SysResult<Vec<Extent>> {
    let text = std::str::from_utf8(data).map_err(|_| Errno::EINVAL)?;
    let mut map: Vec<Extent> = Vec::new();
    for line in text.split('\n').filter(|line| !line.trim().is_empty()) {
        let numbers: Result<Vec<u32>, _> = line.split_ascii_whitespace().map(str::parse).collect();
        let Ok(&[first, lower, count]) = numbers.as_deref() else { return invalid() };
        if first == u32::MAX || lower == u32::MAX {
            return invalid();
        }
        let ends = (first.checked_add(count), lower.checked_add(count));
        let (Some(end), Some(lower_end)) = ends else { return invalid() };
        let overlaps = |e: &Extent| {
            first < e.first.saturating_add(e.count) && e.first < end
                || lower < e.lower.saturating_add(e.count) && e.lower < lower_end
        };
        if count == 0 || map.iter().any(overlaps) || map.len() >= LINES {
            return invalid();
        }
        map.push(Extent { first, lower, count });
    }
    if map.is_empty() { invalid() } else { Ok(map) }
}

/// Whether somebody may give `ns` this map (`new_idmap_permitted`).
fn permitted(task: &Task, opener: &Creds, ns: &UserNs, parent: &UserNs, ids: Ids, map: &[Extent]) -> bool {
    let creds = task.creds();
    // Who maps the parent's root could make files with capabilities that count there.
    let root = ids == Ids::Users && map.iter().any(|e| e.lower == 0);
    if root && !(if *opener.ns == *ns { ns.setfcap } else { opener.capable_in(parent, cap::SETFCAP) }) {
        return false;
    }
    if let [Extent { lower, count: 1, .. }] = map
        && ns.owner == creds.euid
    {
        let id = parent.to_kernel(ids, *lower);
        let own = match ids {
            Ids::Users => id == Some(creds.euid),
            Ids::Groups => !ns.setgroups.load(Relaxed) && id == Some(creds.egid),
        };
        if own {
            return true;
        }
    }
    let need = if ids == Ids::Users { cap::SETUID } else { cap::SETGID };
    creds.capable_in(parent, need) && opener.capable_in(parent, need)
}

/// A map is written, once.
///
/// # Errors
/// EPERM, EINVAL.
pub(super) fn write(task: &Task, opener: &Creds, ns: &UserNs, ids: Ids, data: &[u8]) -> SysResult<()> {
    let Some(parent) = &ns.parent else { return Err(Errno::EPERM.into()) };
    if *opener.ns != *ns && opener.ns != *parent {
        return Err(Errno::EPERM.into());
    }
    if data.len() >= 4096 {
        return invalid();
    }
    let map = if ids == Ids::Users { &ns.users } else { &ns.groups };
    if map.get().is_some() || !opener.capable_in(ns, cap::SYS_ADMIN) {
        return Err(Errno::EPERM.into());
    }
    let mut wanted = parse(data)?;
    if !permitted(task, opener, ns, parent, ids, &wanted) {
        return Err(Errno::EPERM.into());
    }
    for extent in &mut wanted {
        let last = extent.lower.saturating_add(extent.count.saturating_sub(1));
        let (first, last) = (parent.to_kernel(ids, extent.lower), parent.to_kernel(ids, last));
        let (Some(first), Some(last)) = (first, last) else { return Err(Errno::EPERM.into()) };
        // In one piece below, too.
        if last.checked_sub(first) != Some(extent.count.saturating_sub(1)) {
            return Err(Errno::EPERM.into());
        }
        extent.lower = first;
    }
    map.set(wanted).map_err(|_| Errno::EPERM)?;
    // Their ids have names now.
    let tasks: Vec<Arc<Task>> = task.kernel.tree.lock().tasks.values().cloned().collect();
    tasks.iter().filter(|other| *other.creds().ns == *ns).for_each(|other| other.tell_own());
    Ok(())
}

/// `allow` or `deny`, before the groups are mapped.
///
/// # Errors
/// EPERM, EINVAL.
pub(super) fn write_setgroups(ns: &UserNs, data: &[u8]) -> SysResult<()> {
    let allow = match data.trim_ascii_end() {
        b"allow" => true,
        b"deny" => false,
        _ => return invalid(),
    };
    let allowed = ns.setgroups.load(Relaxed);
    if allow && !allowed || !allow && ns.groups.get().is_some() {
        return Err(Errno::EPERM.into());
    }
    ns.setgroups.store(allow, Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(parse(b"0 1000 1\n"), Ok(vec![Extent { first: 0, lower: 1000, count: 1 }]));
        assert_eq!(parse(b" 0  5 10\n20 100 3").map(|m| m.len()), Ok(2));
        for bad in [&b""[..], b"0 1000\n", b"0 0 0\n", b"x 0 1\n", b"0 0 10\n5 50 1\n", b"4294967295 0 1\n"] {
            assert_eq!(parse(bad), Err(Errno::EINVAL.into()));
        }
    }
}
