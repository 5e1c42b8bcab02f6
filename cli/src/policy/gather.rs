//! The policy options of a command line, in their order.

use super::{Base, Origin, Policy, Rule, Word, file};
use clap::ArgMatches;
use std::ffi::OsString;
use std::path::Path;

/// Options that are rules. `policy` brings those of a file.
const WORDS: [&str; 6] = ["root", "read_only", "write", "hide", "tmpfs", "policy"];
/// The policy file of `lazaret policy explain FILE`.
const FILE: &str = "file";

/// Everything that was given with [`crate::options::PolicyOptions`].
///
/// # Errors
/// One line that names the option, or file and line.
pub fn gather(matches: &ArgMatches) -> Result<Policy, String> {
    let mut given: Vec<(usize, &str, OsString)> = Vec::new();
    for id in WORDS {
        let (Some(places), Some(values)) = (matches.indices_of(id), matches.get_raw(id)) else { continue };
        given.extend(places.zip(values).map(|(place, value)| (place, id, value.to_owned())));
    }
    given.sort_by_key(|(place, ..)| *place);
    let mut policy = Policy::default();
    let dir = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let base = Base { dir: &dir, home: None };
    if let Ok(Some(path)) = matches.try_get_one::<std::path::PathBuf>(FILE) {
        file::read(path, &mut policy)?;
    }
    for (_, id, value) in given {
        let option = id.replace('_', "-");
        let text = value.into_string().map_err(|v| format!("--{option} {}: not UTF-8", v.display()))?;
        let word = match id {
            "policy" => {
                file::read(Path::new(&text), &mut policy)?;
                continue;
            }
            "root" => base.absolute(&text).map(Word::Root),
            "read_only" => base.pair(&text).map(Word::ReadOnly),
            "write" => base.pair(&text).map(Word::Write),
            "hide" => base.absolute(&text).map(Word::Hide),
            _ => base.tmpfs(&text),
        };
        let word = word.map_err(|what| format!("--{option}: {what}"))?;
        policy.rules.push(Rule { word, origin: Origin::Option });
    }
    if let Some(dir) = matches.get_one::<std::path::PathBuf>("upper") {
        let text = dir.to_str().ok_or_else(|| format!("--upper {}: not UTF-8", dir.display()))?;
        policy.upper = Some(base.absolute(text)?);
    }
    if let Some(size) = matches.get_one::<u64>("upper_size") {
        policy.upper_size = Some(*size);
    }
    Ok(policy)
}
