//! `lazaret policy explain`: what a plan lets a program read, write and reach.

use super::plan::{Kind, Mounted, Plan};
use super::{Origin, Rule};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Why each default rule is there, by its name.
const REASONS: &[(&str, &str)] = &[
    ("ssh", "private keys and what they open"),
    ("gpg", "keys and keyrings, password stores"),
    ("cloud", "tokens and keys of cloud providers"),
    ("container", "credentials of registries, what other containers have"),
    ("kube", "credentials of clusters"),
    ("netrc", "passwords and tokens of network programs and package registries"),
    ("browser-profile", "cookies, saved passwords, mail"),
    ("shell-history", "commands often hold secrets"),
    (gofer::hidden::KERNEL_RULE, "the host kernel's own; the sandbox has its own /proc, /sys and /dev"),
];

/// The plan in words, line by line.
pub fn text(plan: &Plan) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    line("mounts, in order:".to_owned());
    let width = plan.mounts.iter().map(|m| m.dst.len()).max().unwrap_or(0).clamp(10, 40);
    for mount in &plan.mounts {
        line(format!("  {:width$}  {}  [{}]", mount.dst, shows(plan, mount), mount.rule));
    }
    line("of the kernel inside, nothing of the host's:\n  /proc /sys /dev".to_owned());
    line("written to the host:".to_owned());
    let written = written(plan);
    if written.is_empty() {
        line("  nothing".to_owned());
    }
    for (place, host) in written {
        line(if place == host { format!("  {host}") } else { format!("  {host}, as {place}") });
    }
    if !plan.hidden.is_empty() {
        line("hidden by rules given:".to_owned());
        for hidden in &plan.hidden {
            let host = match &hidden.host {
                Some(host) if *host != hidden.path => format!(" ({host} of the host)"),
                Some(_) => String::new(),
                None => " (nothing of the host's)".to_owned(),
            };
            line(format!("  {}{host}  [{}]", hidden.path, hidden.rule));
        }
    }
    line(
        "hidden by default, in every home (~) or at the path given; `--read-only PATH` or `--write PATH`"
            .to_owned(),
    );
    line("with such a path, or one in it, shows it:".to_owned());
    for (rule, paths) in defaults() {
        line(format!("  {rule}: {}", why(&rule)));
        let mut row = String::new();
        for path in paths {
            if row.len() + path.len() > 100 {
                line(format!("   {row}"));
                row.clear();
            }
            row.push(' ');
            row.push_str(&path);
        }
        line(format!("   {row}"));
    }
    line("network: none; loopback and unix sockets among programs inside".to_owned());
    out
}

/// The same for programs.
pub fn json(plan: &Plan) -> Value {
    let mounts = plan.mounts.iter().map(|mount| {
        let (source, access) = match &mount.kind {
            Kind::Host { src, writable: true } => (json!(src), "write"),
            Kind::Host { src, .. } if mount.dst == "/" && plan.layered() => (json!(src), "layered"),
            Kind::Host { src, .. } => (json!(src), "read-only"),
            Kind::Memory(_) => (Value::Null, "tmpfs"),
        };
        let size = if let Kind::Memory(size) = mount.kind { size } else { None };
        json!({ "path": mount.dst, "source": source, "access": access, "size": size, "rule": rule(&mount.rule) })
    });
    let hidden =
        plan.hidden.iter().map(|h| json!({ "path": h.path, "host_path": h.host, "rule": rule(&h.rule) }));
    let defaults = defaults()
        .into_iter()
        .map(|(name, paths)| json!({ "rule": name, "why": why(&name), "paths": paths }));
    let upper = match &plan.upper {
        _ if !plan.layered() => Value::Null,
        dir => json!({ "size": plan.upper_size, "directory": dir }),
    };
    json!({
        "mounts": mounts.collect::<Vec<_>>(),
        "upper": upper,
        "hidden": hidden.collect::<Vec<_>>(),
        "hidden_by_default": defaults.collect::<Vec<_>>(),
        "network": "none",
    })
}

fn rule(rule: &Rule) -> Value {
    if rule.origin == Origin::Default { Value::Null } else { json!(rule.to_string()) }
}

fn shows(plan: &Plan, mount: &Mounted) -> String {
    match &mount.kind {
        Kind::Host { src, writable: true } => format!("{src} of the host, read and written"),
        Kind::Host { src, .. } if mount.dst == "/" && plan.layered() => {
            let upper = match &plan.upper_size {
                None => "up to half of the machine's".to_owned(),
                Some(size) => format!("up to {size} bytes"),
            };
            let keeps = plan.upper.as_ref().map(|dir| format!("; {dir} has earlier ones and keeps these"));
            format!("{src} of the host, read; changes go into memory, {upper}{}", keeps.unwrap_or_default())
        }
        Kind::Host { src, .. } => format!("{src} of the host, read-only"),
        Kind::Memory(Some(size)) => format!("tmpfs of {size} bytes"),
        Kind::Memory(None) => "tmpfs".to_owned(),
    }
}

/// Places inside and paths of the host that are changed.
fn written(plan: &Plan) -> Vec<(&str, &str)> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for mount in &plan.mounts {
        if let Kind::Host { src, writable: true } = &mount.kind {
            all.push((&mount.dst, src));
        }
    }
    if let (true, Some(dir)) = (plan.layered(), &plan.upper) {
        all.push(("the upper layer", dir));
    }
    all
}

fn defaults() -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in gofer::hidden::default_rules() {
        all.entry(rule.rule).or_default().push(rule.path);
    }
    all
}

fn why(rule: &str) -> &'static str {
    REASONS.iter().find(|(name, _)| *name == rule).map_or("", |(_, why)| why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_rule_has_a_reason() {
        assert!(defaults().keys().all(|rule| !why(rule).is_empty()));
    }
}
