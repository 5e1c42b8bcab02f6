//! From the configuration to what a server starts with.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Dir, Mode, OFlags, fstat, open, openat, readlinkat};

use crate::config::{GoferConfig, Mount};
use crate::hidden::{Policy, Position};
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
fn find_hidden(policy: &Policy, self_fds: &SelfFds) -> Vec<Found> {
    let mut found = Vec::new();
    let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let mut left: Vec<(OwnedFd, Position)> = root.into_iter().map(|root| (root, policy.root())).collect();
    // Down the tree of rules, not rule by rule: most homes have little of what the rules name.
    while let Some((dir, at)) = left.pop() {
        for name in names(policy, &at, &dir) {
            if found.len() + left.len() >= MAX_FOUND {
                return found;
            }
            let Ok(place) = openat(&dir, name.as_slice(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            else {
                continue;
            };
            match policy.step(&at, &name) {
                Ok(next) => left.push((place, next)),
                Err(rule) => found.extend(find(policy.name(rule), place, self_fds)),
            }
        }
    }
    found
}

fn find(rule: &str, place: OwnedFd, self_fds: &SelfFds) -> Option<Found> {
    let stat = fstat(&place).ok()?;
    let canonical = self_fds.target(&place)?;
    let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    Some(Found { rule: rule.to_string(), place, is_dir, dev: stat.st_dev, ino: stat.st_ino, canonical })
}

/// The names of a directory that rules know: by listing it when that is less than asking for each.
fn names(policy: &Policy, at: &[u32], dir: &OwnedFd) -> Vec<Vec<u8>> {
    let known = policy.names(at);
    match &known {
        Some(names) if names.len() <= 6 => names.iter().map(|name| name.to_vec()).collect(),
        _ => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let listing =
                openat(dir, c".", flags, Mode::empty()).and_then(Dir::new).into_iter().flatten().flatten();
            let names = listing.take(MAX_FOUND).map(|entry| entry.file_name().to_bytes().to_vec());
            let here = |name: &Vec<u8>| known.as_ref().is_none_or(|known| known.contains(name.as_slice()));
            names.filter(|name| !matches!(name.as_slice(), b"." | b"..") && here(name)).collect()
        }
    }
}

/// The matcher of the rules, with the inodes and real paths of all that exists now; and that.
pub(crate) fn policy(config: &GoferConfig, self_fds: &SelfFds) -> (Policy, Vec<Found>) {
    let mut policy = Policy::new(config);
    let found = find_hidden(&policy, self_fds);
    for Found { rule, dev, ino, canonical, .. } in &found {
        policy.hide_inode(rule, *dev, *ino);
        policy.hide_path(rule, canonical);
    }
    (policy, found)
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
    let (policy, _) = policy(config, &self_fds);
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
