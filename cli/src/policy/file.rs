//! Policy files: the words of the command line in TOML.

use super::{Base, Origin, Policy, Rule, Word, size_of};
use serde::Deserialize;
use std::path::Path;
use toml::Spanned;

/// A value with its place in the file.
type Values = Vec<Spanned<String>>;

/// A file's words. Unknown ones are an error that lists these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Words {
    root: Option<Spanned<String>>,
    #[serde(default)]
    read_only: Values,
    #[serde(default)]
    write: Values,
    #[serde(default)]
    hide: Values,
    #[serde(default)]
    tmpfs: Values,
    upper: Option<Spanned<String>>,
    upper_size: Option<Spanned<String>>,
}

/// Adds the file's rules to the policy, in the order in which they stand in the file.
///
/// # Errors
/// One line: file, line, what is wrong, and for an unknown word what is allowed.
pub(super) fn read(path: &Path, policy: &mut Policy) -> Result<(), String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{name}: {}", super::reason(&e)))?;
    parse(&name, path.parent().unwrap_or(Path::new("")), &text, policy)
}

fn parse(name: &str, dir: &Path, text: &str, policy: &mut Policy) -> Result<(), String> {
    let line = |at: usize| text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    let words: Words = toml::from_str(text).map_err(|error| {
        let message = error.message().replace('\n', " ");
        format!("{name}:{}: {message}", error.span().map_or(1, |span| line(span.start)))
    })?;
    let dir = std::path::absolute(if dir.as_os_str().is_empty() { Path::new(".") } else { dir })
        .map_err(|e| format!("{name}: {e}"))?;
    let home = std::env::var("HOME").ok();
    let base = Base { dir: &dir, home: home.as_deref() };
    type Read<'a> = &'a dyn Fn(&str) -> Result<Word, String>;
    let lists: [(&Values, Read<'_>); 5] = [
        (&words.root.into_iter().collect(), &|text| base.absolute(text).map(Word::Root)),
        (&words.read_only, &|text| base.pair(text).map(Word::ReadOnly)),
        (&words.write, &|text| base.pair(text).map(Word::Write)),
        (&words.hide, &|text| base.absolute(text).map(Word::Hide)),
        (&words.tmpfs, &|text| base.tmpfs(text)),
    ];
    let mut rules = Vec::new();
    for (values, read) in lists {
        for value in values {
            let (at, line) = (value.span().start, line(value.span().start));
            let word = read(value.get_ref()).map_err(|what| format!("{name}:{line}: {what}"))?;
            rules.push((at, Rule { word, origin: Origin::Line(name.to_owned(), line) }));
        }
    }
    rules.sort_by_key(|(at, _)| *at);
    policy.rules.extend(rules.into_iter().map(|(_, rule)| rule));
    if let Some(value) = &words.upper {
        let dir = base
            .absolute(value.get_ref())
            .map_err(|what| format!("{name}:{}: {what}", line(value.span().start)))?;
        policy.upper = Some(dir);
    }
    if let Some(value) = &words.upper_size {
        let size = size_of(value.get_ref())
            .map_err(|what| format!("{name}:{}: {what}", line(value.span().start)))?;
        policy.upper_size = Some(size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Result<Vec<String>, String> {
        let mut policy = Policy::default();
        parse("p.toml", Path::new("/etc"), text, &mut policy)?;
        Ok(policy.rules.iter().map(Rule::to_string).collect())
    }

    #[test]
    fn rules_keep_the_order_of_the_file() {
        let text = "write = [\"/tmp\"]\n\nhide = [\n  \"ssl\",\n]\nread-only = [\"/usr:/x\"]\n";
        let want = ["p.toml:1: write /tmp", "p.toml:4: hide /etc/ssl", "p.toml:6: read-only /usr:/x"];
        assert_eq!(rules(text).unwrap(), want);
    }

    #[test]
    fn errors_are_one_line_with_the_place_and_what_is_allowed() {
        let unknown = rules("hide = []\nreadonly = [\"/usr\"]\n").unwrap_err();
        assert!(unknown.starts_with("p.toml:2: unknown field `readonly`"), "{unknown}");
        for word in ["root", "read-only", "write", "hide", "tmpfs", "upper", "upper-size"] {
            assert!(unknown.contains(&format!("`{word}`")), "{unknown}");
        }
        for (text, start) in [
            ("hide = \"/x\"\n", "p.toml:1: "),
            ("\nwrite = [\"/no/such\"]", "p.toml:2: /no/such: No such file"),
            ("\n\ntmpfs = [\"/x:size=lots\"]", "p.toml:3: size lots: "),
            ("root = [", "p.toml:1: "),
        ] {
            let error = rules(text).unwrap_err();
            assert!(error.starts_with(start) && !error.contains('\n'), "{error}");
        }
    }
}
