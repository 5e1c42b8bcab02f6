//! What nobody inside gets to see: the default rules, and the matcher that the server asks at every step.
//!
//! A hidden path is refused three times over: by its path below the mount's root (this matcher, which also covers
//! what is created later), by its inode (the same directory bound or linked elsewhere), and by an empty file or
//! directory of mode 0 mounted over it in the gofer's own mount namespace (`confine`), so that a mistake in the
//! server still finds nothing.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::config::{GoferConfig, HideRule};

/// Default rules below each home directory: the rule's name and paths relative to the home.
const IN_HOMES: &[(&str, &[&str])] = &[
    ("ssh", &[".ssh", ".putty", ".config/putty"]),
    (
        "gpg",
        &[
            ".gnupg",
            ".local/share/keyrings",
            ".password-store",
            ".local/share/password-store",
            ".config/sops",
        ],
    ),
    (
        "cloud",
        &[
            ".aws",
            ".azure",
            ".config/gcloud",
            ".boto",
            ".s3cfg",
            ".config/rclone",
            ".oci",
            ".config/doctl",
            ".config/hcloud",
            ".config/flyctl",
            ".fly",
            ".config/heroku",
            ".terraform.d/credentials.tfrc.json",
            ".config/openstack",
            ".vault-token",
            ".config/op",
        ],
    ),
    ("container", &[".docker", ".config/containers/auth.json", ".config/helm"]),
    ("kube", &[".kube", ".minikube", ".config/k9s"]),
    (
        "netrc",
        &[
            ".netrc",
            "_netrc",
            ".authinfo",
            ".authinfo.gpg",
            ".git-credentials",
            ".config/git/credentials",
            ".config/gh",
            ".config/glab-cli",
            ".pgpass",
            ".my.cnf",
            ".pypirc",
            ".cargo/credentials",
            ".cargo/credentials.toml",
            ".gem/credentials",
        ],
    ),
    (
        "browser-profile",
        &[
            ".mozilla",
            ".config/google-chrome",
            ".config/google-chrome-beta",
            ".config/chromium",
            ".config/BraveSoftware",
            ".config/microsoft-edge",
            ".config/vivaldi",
            ".config/opera",
            ".thunderbird",
            ".librewolf",
            ".cache/mozilla",
            ".cache/google-chrome",
            ".cache/chromium",
            "snap/firefox",
            "snap/chromium",
            ".var/app/org.mozilla.firefox",
            ".var/app/com.google.Chrome",
        ],
    ),
    (
        "shell-history",
        &[
            ".bash_history",
            ".zsh_history",
            ".zhistory",
            ".zsh_sessions",
            ".histfile",
            ".sh_history",
            ".ash_history",
            ".ksh_history",
            ".local/share/fish/fish_history",
            ".python_history",
            ".node_repl_history",
            ".sqlite_history",
            ".psql_history",
            ".mysql_history",
            ".rediscli_history",
            ".irb_history",
            ".lesshst",
            ".viminfo",
        ],
    ),
];

/// Default rules elsewhere.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ssh", "/etc/ssh/ssh_host_rsa_key"),
    ("ssh", "/etc/ssh/ssh_host_ecdsa_key"),
    ("ssh", "/etc/ssh/ssh_host_ed25519_key"),
    ("gpg", "/run/user/*/gnupg"),
    ("gpg", "/run/user/*/keyring"),
    ("kube", "/etc/kubernetes"),
    ("kube", "/run/secrets"),
    ("kube", "/var/run/secrets"),
    ("kube", "/var/lib/kubelet"),
    ("container", "/var/lib/docker"),
    ("container", "/var/lib/containerd"),
    ("container", "/run/containers"),
    (KERNEL_RULE, "/proc"),
    (KERNEL_RULE, "/sys"),
    (KERNEL_RULE, "/dev"),
];

/// The rule that hides file systems which show the kernel's own state, wherever they are mounted.
pub const KERNEL_RULE: &str = "kernel-files";

/// Types (`f_type`, statfs(2) and linux/magic.h) of file systems that hold the kernel's state rather than files.
const KERNEL_TYPES: &[u64] = &[
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x6265_6570, // configfs
    0xde5e_81e4, // efivarfs
    0x6165_676c, // pstore
    0x0000_1cd1, // devpts
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
    0x1980_0202, // mqueue
    0x0765_5821, // resctrl
];

/// Whether a file system of this type is hidden wherever it is mounted.
pub(crate) fn is_kernel_type(kind: u64) -> bool {
    KERNEL_TYPES.contains(&kind)
}

/// The rules that hold unless they are asked away.
pub fn default_rules() -> Vec<HideRule> {
    let in_homes =
        IN_HOMES.iter().flat_map(|(rule, paths)| paths.iter().map(|path| hide(rule, format!("~/{path}"))));
    in_homes.chain(ELSEWHERE.iter().map(|(rule, path)| hide(rule, (*path).to_string()))).collect()
}

/// The homes that `~` stands for: `/root`, every directory of `/home`, and each home in the text of
/// `/etc/passwd` that is given, up to a thousand.
pub fn default_homes(passwd: &str) -> Vec<String> {
    let mut homes: BTreeSet<&str> = ["/root", "/home/*"].into();
    homes.extend(passwd.lines().filter_map(home_of).take(1000));
    homes.into_iter().map(str::to_string).collect()
}

fn hide(rule: &str, path: String) -> HideRule {
    HideRule { rule: rule.to_string(), path }
}

/// The home of a passwd(5) line, when it is a directory that only its user has: not `/`, no system directory.
fn home_of(line: &str) -> Option<&str> {
    const SYSTEM: &[&str] =
        &["/bin", "/sbin", "/usr", "/dev", "/proc", "/sys", "/run", "/etc", "/nonexistent"];
    let home = line.split(':').nth(5)?.trim_end_matches('/');
    let below_home = home.strip_prefix("/home/").is_some_and(|rest| !rest.contains('/'));
    let system =
        SYSTEM.iter().any(|dir| home == *dir || home.strip_prefix(dir).is_some_and(|r| r.starts_with('/')));
    (home.starts_with('/') && home.len() > 1 && !below_home && !system && home != "/root").then_some(home)
}

/// Where a node stands among the hidden paths: the places of the matcher that its path reached. Empty for
/// nearly all nodes.
pub(crate) type Position = Vec<u32>;

/// The rule that hides something: an index of [`Policy`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RuleId(u32);

/// All rules as one tree of components; the rules of `~` are a tree of their own that each home's place leads to.
#[derive(Default)]
pub(crate) struct Policy {
    rules: Vec<String>,
    places: Vec<Place>,
    inodes: HashMap<(u64, u64), RuleId>,
}

#[derive(Default)]
struct Place {
    children: HashMap<Vec<u8>, u32>,
    any: Option<u32>,
    rule: Option<RuleId>,
    is_home: bool,
}

/// The place of `/`.
const ROOT: u32 = 0;
/// The place that every home also is.
const HOME: u32 = 1;

impl Policy {
    /// The matcher of a configuration's rules. Paths that are neither absolute nor below `~`, and such with `..`,
    /// match nothing.
    pub(crate) fn new(config: &GoferConfig) -> Self {
        let mut policy = Self { places: vec![Place::default(), Place::default()], ..Self::default() };
        policy.rule_id(KERNEL_RULE);
        for home in &config.homes {
            let place = policy.place(ROOT, home.as_bytes());
            if let (true, Some(place)) = (home.starts_with('/'), policy.places.get_mut(place as usize)) {
                place.is_home = true;
            }
        }
        for rule in &config.hide {
            policy.hide_path(&rule.rule, rule.path.as_bytes());
        }
        policy
    }

    /// Hides one more path.
    pub(crate) fn hide_path(&mut self, rule: &str, path: &[u8]) {
        let (start, path) = match path {
            [b'~', b'/', rest @ ..] => (HOME, rest),
            [b'/', rest @ ..] => (ROOT, rest),
            _ => return,
        };
        if components(path).next().is_none() || components(path).any(|part| part == b"..") {
            return;
        }
        let (place, id) = (self.place(start, path), self.rule_id(rule));
        if let Some(place) = self.places.get_mut(place as usize) {
            place.rule.get_or_insert(id);
        }
    }

    /// The place of a path, made if there is none.
    fn place(&mut self, start: u32, path: &[u8]) -> u32 {
        let mut at = start;
        for part in components(path) {
            let fresh = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
            let Some(place) = self.places.get_mut(at as usize) else { return at };
            at = match part {
                b"*" => *place.any.get_or_insert(fresh),
                name => *place.children.entry(name.to_vec()).or_insert(fresh),
            };
            if at == fresh {
                self.places.push(Place::default());
            }
        }
        at
    }

    /// Hides an inode whatever its path.
    pub(crate) fn hide_inode(&mut self, rule: &str, dev: u64, ino: u64) {
        let id = self.rule_id(rule);
        self.inodes.entry((dev, ino)).or_insert(id);
    }

    /// The rule of [`KERNEL_RULE`], which every policy has first.
    pub(crate) fn kernel_rule(&self) -> RuleId {
        RuleId(0)
    }

    /// A rule's name.
    pub(crate) fn name(&self, rule: RuleId) -> &str {
        self.rules.get(rule.0 as usize).map_or("hidden", String::as_str)
    }

    /// Where a mount of `src` starts, or the rule that hides `src` itself.
    pub(crate) fn start(&self, src: &[u8]) -> Result<Position, RuleId> {
        components(src).try_fold(self.root(), |at, name| self.step(&at, name))
    }

    /// The position of `/`.
    pub(crate) fn root(&self) -> Position {
        vec![ROOT]
    }

    /// The names that lead on from this position; `None` when any name does.
    pub(crate) fn names(&self, at: &[u32]) -> Option<HashSet<&[u8]>> {
        let mut names = HashSet::new();
        for place in at.iter().filter_map(|place| self.places.get(*place as usize)) {
            if place.any.is_some() {
                return None;
            }
            names.extend(place.children.keys().map(Vec::as_slice));
        }
        Some(names)
    }

    /// From a directory's position to that of a name in it, or the rule that hides it.
    pub(crate) fn step(&self, at: &[u32], name: &[u8]) -> Result<Position, RuleId> {
        let mut next = Position::new();
        for place in at.iter().filter_map(|place| self.places.get(*place as usize)) {
            next.extend(place.children.get(name));
            next.extend(place.any);
        }
        if next.iter().any(|place| self.places.get(*place as usize).is_some_and(|place| place.is_home)) {
            next.push(HOME);
        }
        match next.iter().find_map(|place| self.places.get(*place as usize)?.rule) {
            Some(rule) => Err(rule),
            None => Ok(next),
        }
    }

    /// A rule that hides something below this position.
    pub(crate) fn below(&self, at: &[u32]) -> Option<RuleId> {
        let mut left: Vec<u32> = at.to_vec();
        while let Some(place) = left.pop().and_then(|place| self.places.get(place as usize)) {
            if place.rule.is_some() {
                return place.rule;
            }
            left.extend(place.children.values());
            left.extend(place.any);
            left.extend(place.is_home.then_some(HOME));
        }
        None
    }

    /// The rule that hides an inode.
    pub(crate) fn inode(&self, dev: u64, ino: u64) -> Option<RuleId> {
        self.inodes.get(&(dev, ino)).copied()
    }

    fn rule_id(&mut self, rule: &str) -> RuleId {
        let known = self.rules.iter().position(|name| name == rule);
        let index = known.unwrap_or_else(|| {
            self.rules.push(rule.to_string());
            self.rules.len() - 1
        });
        RuleId(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// The components of a path, without empty ones and `.`.
pub(crate) fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(passwd: &str) -> Policy {
        Policy::new(&GoferConfig { mounts: Vec::new(), hide: default_rules(), homes: default_homes(passwd) })
    }

    fn walk(policy: &Policy, path: &str) -> Result<Position, String> {
        policy.start(path.as_bytes()).map_err(|rule| policy.name(rule).to_string())
    }

    #[test]
    fn defaults_hide_secrets_of_every_home() {
        let policy = defaults("u:x:1:1::/srv/u:/bin/sh\ndaemon:x:1:1::/usr/sbin:/bin/false\n");
        for (path, rule) in [
            ("/root/.ssh", "ssh"),
            ("/home/ann/.ssh/id_rsa", "ssh"),
            ("/home/ann/.config/gcloud", "cloud"),
            ("/srv/u/.bash_history", "shell-history"),
            ("/proc/1/environ", KERNEL_RULE),
        ] {
            assert_eq!(walk(&policy, path), Err(rule.to_string()), "{path}");
        }
        for path in
            ["/root", "/home/ann/.config/other", "/usr/sbin/.ssh", "/home/.ssh", "/etc/ssh/ssh_config"]
        {
            assert!(walk(&policy, path).is_ok(), "{path}");
        }
        assert!(walk(&policy, "/etc/hosts").unwrap().is_empty());
    }

    #[test]
    fn a_directory_above_a_hidden_path_is_known_as_such() {
        let policy = defaults("");
        let at = policy.start(b"/home/ann/.config").unwrap();
        assert!(policy.below(&at).is_some());
        assert!(policy.below(&policy.start(b"/home/ann/src").unwrap()).is_none());
    }
}
