//! From the configuration to what a server starts with.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fstat, open, readlinkat};

use crate::config::{GoferConfig, HideRule, Mount};
use crate::hidden::{Policy, components};
use crate::server::{Export, SelfFds, Server, Setup};

/// Hidden things that exist at the start are at most so many; a rule's `*` expands no further.
const MAX_FOUND: usize = 16 * 1024;
/// Descriptors that are left for files, directory streams, sockets and the rest.
const SPARE_FDS: u64 = 256;
/// The most nodes, whatever the limit of descriptors.
const MAX_NODES: u64 = 256 * 1024;

/// A hidden path that exists.
pub(crate) struct Found {
    pub(crate) rule: String,
    /// Where it is, symbolic links followed.
    pub(crate) place: OwnedFd,
    pub(crate) is_dir: bool,
    dev: u64,
    ino: u64,
    canonical: Vec<u8>,
}

impl Found {
    /// Its path without symbolic links.
    pub(crate) fn canonical(&self) -> &[u8] {
        &self.canonical
    }
}

/// Everything hidden that exists now, in the current mount namespace.
pub(crate) fn find_hidden(rules: &[HideRule], self_fds: &SelfFds) -> Vec<Found> {
    let mut listings = HashMap::new();
    let paths =
        rules.iter().flat_map(|rule| expand(&rule.path, &mut listings).into_iter().map(move |p| (rule, p)));
    paths.take(MAX_FOUND).filter_map(|(rule, path)| find(&rule.rule, &path, self_fds)).collect()
}

fn find(rule: &str, path: &Path, self_fds: &SelfFds) -> Option<Found> {
    let place = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let stat = fstat(&place).ok()?;
    let canonical = self_fds.target(&place).unwrap_or_else(|| path.as_os_str().as_bytes().to_vec());
    let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    Some(Found { rule: rule.to_string(), place, is_dir, dev: stat.st_dev, ino: stat.st_ino, canonical })
}

/// The paths that a rule's path stands for, each `*` replaced by the names that are there.
fn expand(pattern: &str, listings: &mut HashMap<PathBuf, Vec<Vec<u8>>>) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::from("/")];
    for part in components(pattern.as_bytes()) {
        if part == b"*" {
            paths = paths
                .iter()
                .flat_map(|dir| list(dir, listings).into_iter().map(|name| dir.join(name)))
                .collect();
            paths.truncate(MAX_FOUND);
        } else {
            for path in &mut paths {
                path.push(OsStr::from_bytes(part));
            }
        }
    }
    paths
}

fn list(dir: &Path, listings: &mut HashMap<PathBuf, Vec<Vec<u8>>>) -> Vec<PathBuf> {
    let names = listings.entry(dir.to_path_buf()).or_insert_with(|| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.take(MAX_FOUND).map(|entry| entry.file_name().as_bytes().to_vec()).collect()
    });
    names.iter().map(|name| PathBuf::from(OsStr::from_bytes(name))).collect()
}

/// The matcher of the rules, with the inodes and real paths of what was found.
pub(crate) fn policy(rules: &[HideRule], found: &[Found]) -> Policy {
    let mut policy = Policy::new(rules);
    for Found { rule, dev, ino, canonical, .. } in found {
        policy.hide_inode(rule, *dev, *ino);
        policy.hide_path(rule, canonical);
    }
    policy
}

/// A mount's source, found in the host's mounts.
pub(crate) struct Source<'a> {
    mount: &'a Mount,
    pub(crate) place: OwnedFd,
    canonical: Vec<u8>,
    /// Hidden by a rule, and so asked for by name.
    pub(crate) exposed: bool,
}

impl<'a> Source<'a> {
    /// Opens a source, symbolic links followed.
    pub(crate) fn open(mount: &'a Mount, policy: &Policy, self_fds: &SelfFds) -> io::Result<Self> {
        let place = open(&mount.src, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let canonical = self_fds.target(&place).unwrap_or_else(|| mount.src.as_bytes().to_vec());
        let exposed = policy.start(mount.src.as_bytes()).is_err() || policy.start(&canonical).is_err();
        Ok(Self { mount, place, canonical, exposed })
    }

    /// The export of it, by a descriptor of its root.
    pub(crate) fn export(self, root: OwnedFd, policy: &Policy) -> Export {
        let position = policy.start(&self.canonical).unwrap_or_default();
        Export { root, writable: self.mount.writable, position, exposed: self.exposed }
    }
}

/// As many nodes as this process may have descriptors, after raising the soft limit.
pub(crate) fn node_limit() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        limit = getrlimit(Resource::Nofile);
    }
    let nodes = limit.current.unwrap_or(u64::MAX).saturating_sub(SPARE_FDS).clamp(16, MAX_NODES);
    usize::try_from(nodes).unwrap_or(16)
}

/// Serves a configuration in this process, **without any confinement**, until the lanes close: for tests of the
/// client's side. Hidden paths are hidden by the server alone.
///
/// # Errors
/// A mount's source that cannot be opened.
pub fn serve_unconfined(config: &GoferConfig, lanes: Vec<OwnedFd>) -> io::Result<()> {
    let server = unconfined(config, node_limit())?;
    std::thread::scope(|scope| {
        for lane in &lanes {
            scope.spawn(|| server.serve_lane(lane));
        }
    });
    Ok(())
}

/// A server in this process.
pub(crate) fn unconfined(config: &GoferConfig, max_nodes: usize) -> io::Result<Server> {
    let self_fds = SelfFds::new(open("/proc/self/fd", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?, false);
    let policy = policy(&config.hide, &find_hidden(&config.hide, &self_fds));
    let mut exports = Vec::with_capacity(config.mounts.len());
    for mount in &config.mounts {
        let source = Source::open(mount, &policy, &self_fds)?;
        let root = source.place.try_clone()?;
        exports.push(source.export(root, &policy));
    }
    Ok(Server::new(Setup { exports, policy, self_fds, ids: None, max_nodes }))
}

impl SelfFds {
    /// The path that the host gives for a descriptor.
    fn target(&self, fd: &OwnedFd) -> Option<Vec<u8>> {
        readlinkat(self.dir(), Self::name(fd), Vec::new()).ok().map(std::ffi::CString::into_bytes)
    }
}
