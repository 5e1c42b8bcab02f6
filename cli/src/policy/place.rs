//! Where a path inside lies, before anything runs: symbolic links are followed as the program will see them.

use super::within;
use std::path::{Component, Path};

/// Links followed in one path, as Linux has it.
const LINKS: usize = 40;

/// What is mounted where: the place inside and the host's path, which files in memory have none of.
pub(super) struct Shown<'a> {
    pub(super) dst: &'a str,
    pub(super) src: Option<&'a str>,
}

/// The host's path of a path inside, if it is one of the host's. The last mount that holds it counts.
pub(super) fn host_path(mounts: &[Shown<'_>], path: &str) -> Option<String> {
    let mount =
        mounts.iter().filter(|m| within(path, m.dst)).max_by_key(|m| m.dst.trim_end_matches('/').len())?;
    let below = path.strip_prefix(mount.dst.trim_end_matches('/')).unwrap_or_default();
    let src = mount.src?.trim_end_matches('/');
    Some(if src.is_empty() && below.is_empty() { "/".to_owned() } else { format!("{src}{below}") })
}

/// A path inside without symbolic links, but for its last component if `keep_last`. What does not exist stays as it is.
pub(super) fn resolve(mounts: &[Shown<'_>], path: &str, keep_last: bool) -> String {
    let mut done = String::new();
    let mut left: Vec<String> = parts(Path::new(path));
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            done.truncate(done.rfind('/').unwrap_or(0));
            continue;
        }
        let next = format!("{done}/{part}");
        let target = match host_path(mounts, &next) {
            // A mount's root is what is mounted, whatever lies below.
            Some(host) if !(mounts.iter().any(|m| m.dst == next) || keep_last && left.is_empty()) => {
                std::fs::read_link(host).ok()
            }
            _ => None,
        };
        match target {
            Some(target) if links < LINKS => {
                links += 1;
                if target.is_absolute() {
                    done.clear();
                }
                left.extend(parts(&target));
            }
            _ => done = next,
        }
    }
    if done.is_empty() { "/".to_owned() } else { done }
}

/// Components, the last one first.
fn parts(path: &Path) -> Vec<String> {
    let name = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        Component::ParentDir => Some("..".to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_the_program_will_see_them_lead() {
        let dir = std::env::temp_dir().join(format!("lazaret-place.{}", std::process::id()));
        std::fs::create_dir_all(dir.join("run/deep")).unwrap();
        std::os::unix::fs::symlink("/run", dir.join("abs")).unwrap();
        std::os::unix::fs::symlink("../run/deep", dir.join("run/rel")).unwrap();
        std::os::unix::fs::symlink("loop", dir.join("loop")).unwrap();
        let src = dir.to_str().unwrap();
        let mounts = [Shown { dst: "/", src: Some(src) }, Shown { dst: "/run/mem", src: None }];
        let at = |path: &str| resolve(&mounts, path, false);
        assert_eq!(at("/abs/deep/new"), "/run/deep/new");
        assert_eq!(at("/run/rel/../x"), "/run/x");
        assert_eq!(at("/abs/../../.."), "/");
        assert_eq!(at("/loop/x"), "/loop/x");
        assert_eq!(resolve(&mounts, "/abs", true), "/abs");
        assert_eq!(host_path(&mounts, "/run/deep"), Some(format!("{src}/run/deep")));
        assert_eq!(host_path(&mounts, "/run/mem/x"), None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
