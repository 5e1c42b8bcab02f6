//! What the launcher tells the gofer at its start.

use serde::{Deserialize, Serialize};

/// Everything a gofer serves. The launcher passes it on as it likes; it is plain serde data.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct GoferConfig {
    /// The mounts, in the order that [`crate::Client::attach`] counts them.
    pub mounts: Vec<Mount>,
    /// What is hidden in every mount: [`crate::hidden::default_rules`] and those of `--hide`.
    pub hide: Vec<HideRule>,
    /// What `~` in a rule stands for: [`crate::hidden::default_homes`]. A component `*` stands for any one name.
    #[serde(default)]
    pub homes: Vec<String>,
}

/// A part of the host's files.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mount {
    /// Absolute host path of a directory or regular file; symbolic links in it are followed once, at the start.
    pub src: String,
    /// Where the guest sees it. The gofer only repeats it in messages.
    pub dst: String,
    /// Whether changes pass through to the host.
    pub writable: bool,
}

/// A path that nobody inside gets to see.
///
/// A mount whose source is such a path, or lies in one, was asked for by name and is served.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HideRule {
    /// The name that denials carry, such as `ssh`.
    pub rule: String,
    /// Absolute host path, or one below every home, such as `~/.ssh`; a component `*` stands for any one name.
    pub path: String,
}
