//! From rules to mounts and hidden paths.

use super::place::{Shown, host_path, resolve};
use super::{Origin, Policy, Rule, Word, within};
use gofer::{GoferConfig, HideRule};

/// What a mount shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Host files; whether changes reach the host.
    Host { src: String, writable: bool },
    /// Files in memory of at most so many bytes of contents.
    Memory(Option<u64>),
}

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// Where it is inside, symbolic links followed.
    pub dst: String,
    pub kind: Kind,
    pub rule: Rule,
}

/// A hidden path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// As given: inside.
    pub path: String,
    /// Of the host, where it is one of its files.
    pub host: Option<String>,
    pub rule: Rule,
}

/// What a sandbox gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they are mounted; the first is `/`.
    pub mounts: Vec<Mounted>,
    /// Beside the default rules.
    pub hidden: Vec<Hidden>,
    /// The directory of the host that keeps changes of `/` from run to run.
    pub upper: Option<String>,
    /// Most bytes that changes take in memory; half of the machine's if not given.
    pub upper_size: Option<u64>,
}

impl Plan {
    /// The mounts of a policy.
    ///
    /// As with mount(2) a later mount covers what was below its place before. A hidden path is hidden in all that shows
    /// the same host files, unless a later rule names it, or something in it, as its source.
    ///
    /// # Errors
    /// One line.
    pub fn new(policy: &Policy) -> Result<Plan, String> {
        let host = |src: &str, writable| Kind::Host { src: src.to_owned(), writable };
        let root = Rule { word: Word::Root("/".to_owned()), origin: Origin::Default };
        let root = Mounted { dst: "/".to_owned(), kind: host("/", false), rule: root };
        let (upper, upper_size) = (policy.upper.clone(), policy.upper_size);
        let mut plan = Plan { mounts: vec![root], hidden: Vec::new(), upper, upper_size };
        for rule in &policy.rules {
            let (dst, kind) = match &rule.word {
                Word::Root(src) => {
                    let dir = std::fs::metadata(src).map_err(|e| format!("{rule}: {}", super::reason(&e)))?;
                    if !dir.is_dir() {
                        return Err(format!("{rule}: not a directory"));
                    }
                    ("/", host(src, false))
                }
                Word::ReadOnly(pair) => (pair.dst.as_str(), host(&pair.src, false)),
                Word::Write(pair) => (pair.dst.as_str(), host(&pair.src, true)),
                Word::Tmpfs(dst, size) => (dst.as_str(), Kind::Memory(*size)),
                Word::Hide(path) => {
                    plan.hide(path, rule);
                    continue;
                }
            };
            let dst = resolve(&plan.shown(), dst, false);
            if dst == "/" && matches!(kind, Kind::Memory(_)) {
                return Err(format!("{rule}: / cannot be a tmpfs"));
            }
            plan.mounts.retain(|mount| !within(&mount.dst, &dst));
            let mounted = Mounted { dst, kind, rule: rule.clone() };
            if mounted.dst == "/" { plan.mounts.insert(0, mounted) } else { plan.mounts.push(mounted) }
        }
        Ok(plan)
    }

    fn hide(&mut self, path: &str, rule: &Rule) {
        let place = resolve(&self.shown(), path, true);
        let host = host_path(&self.shown(), &place);
        self.mounts.retain(|mount| mount.dst == "/" || !within(&mount.dst, &place));
        self.hidden.push(Hidden { path: path.to_owned(), host, rule: rule.clone() });
    }

    fn shown(&self) -> Vec<Shown<'_>> {
        self.mounts
            .iter()
            .map(|mount| Shown {
                dst: &mount.dst,
                src: match &mount.kind {
                    Kind::Host { src, .. } => Some(src.as_str()),
                    Kind::Memory(_) => None,
                },
            })
            .collect()
    }

    /// Whether `/` has an upper layer: not if it is written through, or read-only by name.
    pub fn layered(&self) -> bool {
        matches!(self.mounts.first().map(|root| &root.rule.word), Some(Word::Root(_)))
    }

    /// The host directory that is `/`.
    pub fn root(&self) -> &str {
        match self.mounts.first().map(|root| &root.kind) {
            Some(Kind::Host { src, .. }) => src,
            _ => "/",
        }
    }

    /// The gofer's part. Its mounts are those of the host in their order here, then the upper layer's directory if there
    /// is one. `homes` are the host's.
    pub fn gofer(&self, homes: Vec<String>) -> GoferConfig {
        let mut hide: Vec<HideRule> = gofer::hidden::default_rules();
        for hidden in &self.hidden {
            if let Some(path) = &hidden.host {
                hide.push(HideRule { rule: hidden.rule.to_string(), path: path.clone() });
            }
        }
        let mount = |mount: &Mounted| match &mount.kind {
            Kind::Host { src, writable } => {
                Some(gofer::Mount { src: src.clone(), dst: mount.dst.clone(), writable: *writable })
            }
            Kind::Memory(_) => None,
        };
        let upper = self.upper.iter().filter(|_| self.layered());
        // Nobody inside sees it, and its changes are the launcher's to make.
        let upper = upper.map(|dir| gofer::Mount { src: dir.clone(), dst: String::new(), writable: false });
        GoferConfig { mounts: self.mounts.iter().filter_map(mount).chain(upper).collect(), hide, homes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pair;
    use super::*;

    fn plan(words: &[Word]) -> Plan {
        let rules = words.iter().map(|word| Rule { word: word.clone(), origin: Origin::Option }).collect();
        Plan::new(&Policy { rules, ..Policy::default() }).unwrap()
    }

    fn pair(src: &str, dst: &str) -> Pair {
        Pair { src: src.to_owned(), dst: dst.to_owned() }
    }

    fn places(plan: &Plan) -> Vec<&str> {
        plan.mounts.iter().map(|mount| mount.dst.as_str()).collect()
    }

    #[test]
    fn later_mounts_cover_earlier_ones_below_them() {
        let read = Word::ReadOnly(pair("/usr", "/m/a/b"));
        let write = Word::Write(pair("/tmp", "/m/a"));
        assert_eq!(places(&plan(&[read.clone(), write.clone()])), ["/", "/m/a"]);
        assert_eq!(places(&plan(&[write.clone(), read])), ["/", "/m/a", "/m/a/b"]);
        let over = plan(&[write, Word::Write(pair("/", "/"))]);
        assert_eq!(places(&over), ["/"]);
        assert!(!over.layered());
    }

    #[test]
    fn hiding_goes_by_order_and_by_what_is_shown_there() {
        let write = Word::Write(pair("/tmp", "/m/a"));
        let hidden = plan(&[write.clone(), Word::Hide("/m/a/x".to_owned())]);
        assert_eq!(hidden.hidden[0].host.as_deref(), Some("/tmp/x"));
        assert_eq!(places(&plan(&[write.clone(), Word::Hide("/m".to_owned())])), ["/"]);
        assert_eq!(places(&plan(&[Word::Hide("/m".to_owned()), write])), ["/", "/m/a"]);
        let memory = plan(&[Word::Tmpfs("/m".to_owned(), None), Word::Hide("/m/x".to_owned())]);
        assert_eq!(memory.hidden[0].host, None);
    }
}
