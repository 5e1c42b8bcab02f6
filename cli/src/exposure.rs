//! `lazaret exposure`: which host calls each process of a sandbox can make, from the constants that build the filters.

use crate::options::{ExposureFormat, ExposureOptions};
use confine::rules::Rule;
use serde_json::json;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::ExitCode;

/// The filter of one kind of process.
struct Table {
    /// Its key in JSON.
    key: &'static str,
    title: &'static str,
    rules: Vec<Rule>,
}

impl Table {
    /// How many rules and calls.
    fn counts(&self) -> String {
        let calls = self.rules.iter().map(|rule| rule.nr).collect::<BTreeSet<_>>().len();
        format!("{} rules for {calls} calls", self.rules.len())
    }
}

fn tables() -> [Table; 5] {
    let table = |key, title, rules| Table { key, title, rules };
    [
        table("guest", "guest, trap platform", platform::guestfilter::rules().to_vec()),
        table("guest_ptrace", "guest, ptrace platform", platform::guestfilter::ptrace_rules()),
        table("sentry", "sentry", platform::sentryfilter::exposure()),
        table("gofer", "gofer", gofer::exposure()),
        table("meter", "meter (with `--memory` alone)", crate::meter::filter::exposure()),
    ]
}

pub fn run(options: &ExposureOptions) -> ExitCode {
    let text = match options.format {
        ExposureFormat::Table => table(&tables()),
        ExposureFormat::Md => markdown(&tables()),
        ExposureFormat::Json => json_text(&tables()),
    };
    // A reader that is gone needs no line.
    let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    ExitCode::SUCCESS
}

fn table(all: &[Table]) -> String {
    let mut out = String::new();
    for table in all {
        let _ = writeln!(out, "{}: {}", table.title, table.counts());
        for rule in &table.rules {
            let _ = writeln!(out, "  {:<18} {:<44} {}", rule.call, rule.arguments(), rule.reason);
        }
        out.push('\n');
    }
    out
}

fn markdown(all: &[Table]) -> String {
    let mut out = "# Exposure\n\nGenerated from the constants that build the filters, as `lazaret exposure --format md` \
                   prints it: the host calls that each process of a sandbox can make. Everything else ends the sentry, \
                   the gofer or the meter; in a guest it raises SIGSYS, by which the sentry gets it.\n\n| process | filter |\n|---|---|\n"
        .to_owned();
    for table in all {
        let _ = writeln!(out, "| {} | {} |", table.title, table.counts());
    }
    for table in all {
        let _ = write!(
            out,
            "\n## {}: {}\n\n| call | arguments | why |\n|---|---|---|\n",
            table.title,
            table.counts()
        );
        for rule in &table.rules {
            let cell = |text: &str| text.replace('|', "\\|");
            let _ = writeln!(out, "| {} | {} | {} |", rule.call, cell(&rule.arguments()), cell(rule.reason));
        }
    }
    out
}

fn json_text(all: &[Table]) -> String {
    let rules = |table: &Table| -> Vec<_> {
        let rules = table.rules.iter();
        rules.map(|r| json!({"call": r.call, "arguments": r.arguments(), "reason": r.reason})).collect()
    };
    let map: serde_json::Map<_, _> =
        all.iter().map(|table| (table.key.to_owned(), json!(rules(table)))).collect();
    format!("{:#}\n", serde_json::Value::Object(map))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_current() {
        let page = include_str!("../../docs/exposure.md");
        assert!(page == super::markdown(&super::tables()), "docs/exposure.md is stale: run make docs");
    }
}
