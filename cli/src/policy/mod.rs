//! What a program may reach: words of the command line and of policy files, in the order they were given.
//!
//! [`gather`] reads the options, [`file`] a policy file, [`plan`] makes mounts and hidden paths of them, and [`explain`]
//! prints a plan. docs/policy.md has the words.

pub mod explain;
mod file;
mod gather;
mod place;
pub mod plan;

pub use gather::gather;
pub use plan::{Kind, Plan};

use std::fmt;

/// Where a rule was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere.
    Default,
    /// On the command line.
    Option,
    /// In this line of this file.
    Line(String, usize),
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The host directory that is `/` inside.
    Root(String),
    /// Host files that can be read and not changed.
    ReadOnly(Pair),
    /// Host files whose changes reach the host.
    Write(Pair),
    /// A path that nobody inside gets to see.
    Hide(String),
    /// Files in memory of at most so many bytes.
    Tmpfs(String, Option<u64>),
}

/// Absolute paths: of the host, and inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub src: String,
    pub dst: String,
}

/// A word and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub word: Word,
    pub origin: Origin,
}

/// All that was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub rules: Vec<Rule>,
    /// The directory that keeps changes, the last one.
    pub upper: Option<String>,
    /// Most bytes that changes take in memory, the last one.
    pub upper_size: Option<u64>,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.src == self.dst {
            true => f.write_str(&self.src),
            false => write!(f, "{}:{}", self.src, self.dst),
        }
    }
}

impl Word {
    /// The word's name, as an option without its dashes and in files.
    fn name(&self) -> &'static str {
        match self {
            Word::Root(_) => "root",
            Word::ReadOnly(_) => "read-only",
            Word::Write(_) => "write",
            Word::Hide(_) => "hide",
            Word::Tmpfs(..) => "tmpfs",
        }
    }

    fn value(&self) -> String {
        match self {
            Word::Root(path) | Word::Hide(path) | Word::Tmpfs(path, None) => path.clone(),
            Word::ReadOnly(pair) | Word::Write(pair) => pair.to_string(),
            Word::Tmpfs(path, Some(size)) => format!("{path}:size={size}"),
        }
    }
}

/// `--read-only /srv/data`, or `p.toml:3: read-only /srv/data`: which line of which file, or which option.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Line(file, line) => write!(f, "{file}:{line}: ")?,
            Origin::Option => f.write_str("--")?,
            Origin::Default => f.write_str("default ")?,
        }
        write!(f, "{} {}", self.word.name(), self.word.value())
    }
}

/// What a value's paths are relative to, and what `~` is in files (a shell has replaced its own).
struct Base<'a> {
    dir: &'a std::path::Path,
    home: Option<&'a str>,
}

impl Base<'_> {
    fn absolute(&self, path: &str) -> Result<String, String> {
        let path = match (path.strip_prefix('~'), self.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
            _ => path.to_owned(),
        };
        if path.is_empty() {
            return Err("an empty path".to_owned());
        }
        let joined = std::path::absolute(self.dir.join(&path)).map_err(|e| format!("{path}: {e}"))?;
        joined.into_os_string().into_string().map_err(|text| format!("{}: not UTF-8", text.display()))
    }

    /// `SRC[:DST]`.
    fn pair(&self, text: &str) -> Result<Pair, String> {
        let (src, dst) = match text.rfind(":/") {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        let src = self.absolute(src)?;
        std::fs::metadata(&src).map_err(|e| format!("{src}: {}", reason(&e)))?;
        Ok(Pair { dst: dst.map_or_else(|| src.clone(), inside), src })
    }

    /// `DST[:size=N]`.
    fn tmpfs(&self, text: &str) -> Result<Word, String> {
        let (dst, size) = match text.rsplit_once(":size=") {
            Some((dst, size)) => (dst, Some(size_of(size)?)),
            None => (text, None),
        };
        if !dst.starts_with('/') {
            return Err(format!("{dst}: not an absolute path inside"));
        }
        Ok(Word::Tmpfs(inside(dst), size))
    }
}

/// A path inside, without empty components and `.`; `..` is taken back.
fn inside(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether a path is `dir` or lies in it. Both without a trailing `/`.
fn within(path: &str, dir: &str) -> bool {
    dir == "/" || path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Bytes: a number, with K, M, G or T for powers of 1,024.
///
/// # Errors
/// Anything else, and 0.
pub fn size_of(text: &str) -> Result<u64, String> {
    let wrong = || format!("size {text}: a number of bytes, or one with K, M, G or T");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "k" | "KiB" => 10,
        "M" | "m" | "MiB" => 20,
        "G" | "g" | "GiB" => 30,
        "T" | "t" | "TiB" => 40,
        _ => return Err(wrong()),
    };
    let number = digits.parse::<u64>().map_err(|_| wrong())?;
    number.checked_mul(1 << shift).filter(|size| *size > 0).ok_or_else(wrong)
}

/// The host's words for an error, without its number.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, size) in [("4096", 4096), ("1K", 1024), ("64M", 64 << 20), ("2G", 2 << 30)] {
            assert_eq!(size_of(text), Ok(size), "{text}");
        }
        for text in ["", "0", "M", "-1", "1X", "99999999999T", "1.5G"] {
            assert!(size_of(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pairs_split_where_the_inner_path_starts() {
        let base = Base { dir: std::path::Path::new("/"), home: Some("/etc") };
        let pair = |text| base.pair(text).map(|pair| (pair.src, pair.dst));
        let strings = |a: &str, b: &str| Ok((a.to_owned(), b.to_owned()));
        assert_eq!(pair("/usr"), strings("/usr", "/usr"));
        assert_eq!(pair("usr:/a/./b//../c/"), strings("/usr", "/a/c"));
        assert_eq!(pair("~:/x"), strings("/etc", "/x"));
        assert!(pair("/usr:rel").is_err());
        assert!(within("/a/b", "/a") && within("/a", "/a") && within("/a", "/") && !within("/ab", "/a"));
    }
}
