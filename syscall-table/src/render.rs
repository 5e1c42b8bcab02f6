//! The table as a document: for terminals, as Markdown, JSON or CSV.

use crate::sub::TABLES;
use crate::{Level, Row, SYSCALLS, SubLevel, SubTable};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Form of [`render`]'s output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Columns for a terminal.
    Table,
    /// Markdown, as in docs/syscalls.md.
    Md,
    /// One object: `counts`, `syscalls`, `tables`.
    Json,
    /// One line for each system call and entry, with a heading line.
    Csv,
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "table" => Ok(Format::Table),
            "md" => Ok(Format::Md),
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            _ => Err(format!("unknown format {text:?}: table, md, json or csv")),
        }
    }
}

/// The levels, from best to worst, as their names say.
const LEVELS: [&str; 4] = ["full", "partial", "missing", "refused"];

/// The tables of the system calls `filter` selects (all for `None`): a name, a number, or a part of a name. A call
/// named exactly brings its sub-tables along. Empty when nothing is selected.
pub fn render(format: Format, filter: Option<&str>) -> String {
    let rows: Vec<&Row> = SYSCALLS.iter().filter(|row| selected(row, filter)).collect();
    let tables: Vec<&SubTable> = TABLES
        .iter()
        .filter(|table| match filter {
            None => true,
            Some(filter) => {
                table.call == filter || rows.len() == 1 && rows.iter().any(|row| row.name == table.call)
            }
        })
        .collect();
    if rows.is_empty() && tables.is_empty() {
        return String::new();
    }
    match format {
        Format::Table => text(&rows, &tables, filter),
        Format::Md => markdown(&rows, &tables),
        Format::Json => json_text(&rows, &tables),
        Format::Csv => csv(&rows, &tables),
    }
}

fn selected(row: &Row, filter: Option<&str>) -> bool {
    match filter {
        None => true,
        Some(filter) => match crate::by_name(filter) {
            Some(exact) => exact.number == row.number,
            None => filter.parse() == Ok(row.number) || !filter.is_empty() && row.name.contains(filter),
        },
    }
}

/// `fd: Fd, buf: OutBuf, count: usize`.
fn arguments(row: &Row) -> String {
    let args: Vec<String> = row.args.iter().map(|arg| format!("{}: {}", arg.name, arg.type_name)).collect();
    args.join(", ")
}

/// `full`, or `refused (EPERM)`.
fn level(level: Level) -> String {
    match level {
        Level::Refused(errno) => format!("refused ({})", errno.name()),
        other => other.name().to_owned(),
    }
}

fn sub_level(level: SubLevel) -> String {
    match level {
        SubLevel::Refused(errno) => format!("refused ({})", errno.name()),
        other => other.name().to_owned(),
    }
}

/// How many of these names are of each level: `12 full, 3 partial, 1 missing, 0 refused`.
fn counts<'a>(levels: impl Iterator<Item = &'a str>) -> [usize; 4] {
    let mut counts = [0; 4];
    for name in levels {
        for (count, level) in counts.iter_mut().zip(LEVELS) {
            *count += usize::from(name == level);
        }
    }
    counts
}

fn counts_text(counts: [usize; 4]) -> String {
    let parts: Vec<String> =
        counts.iter().zip(LEVELS).map(|(count, level)| format!("{count} {level}")).collect();
    parts.join(", ")
}

fn row_counts(rows: &[&Row]) -> [usize; 4] {
    counts(rows.iter().map(|row| row.level.name()))
}

fn table_counts(table: &SubTable) -> [usize; 4] {
    counts(table.rows.iter().map(|row| row.level.name()))
}

/// The value as people write it: hexadecimal for words of flags and requests, nothing for a path.
fn value(table: &SubTable, value: u64) -> String {
    match table.call {
        "proc" | "sysfs" | "dev" => String::new(),
        "fcntl" | "madvise" | "futex" | "prctl" | "socket" | "getsockopt" => value.to_string(),
        _ => format!("{value:#x}"),
    }
}

fn text(rows: &[&Row], tables: &[&SubTable], filter: Option<&str>) -> String {
    let mut out = String::new();
    for row in rows {
        let _ = writeln!(out, "{:>3}  {:<24} {:<17} {}", row.number, row.name, level(row.level), row.note);
        if filter.is_some() && rows.len() == 1 {
            let _ = writeln!(out, "     {}({})", row.name, arguments(row));
        }
    }
    if !rows.is_empty() {
        let _ = writeln!(out, "{} system calls: {}", rows.len(), counts_text(row_counts(rows)));
    }
    for table in tables {
        let _ = writeln!(out, "\n{}: {}", table.call, table.title);
        if filter.is_some() {
            for row in table.rows {
                let _ = writeln!(
                    out,
                    "     {:<40} {:<12} {:<17} {}",
                    row.name,
                    value(table, row.value),
                    sub_level(row.level),
                    row.note
                );
            }
        }
        let _ = writeln!(out, "{} entries: {}", table.rows.len(), counts_text(table_counts(table)));
    }
    // A row without a note ends in spaces otherwise.
    out.lines().fold(String::new(), |all, line| all + line.trim_end() + "\n")
}

/// Text that would be read as markup or as the end of a cell, escaped.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "\\<")
}

fn markdown(rows: &[&Row], tables: &[&SubTable]) -> String {
    let mut out = String::from(
        "# System calls\n\n\
         Generated from `syscall-table` by `make docs`; a test compares this page with the table.\n\n\
         - **full**: everything the man page says.\n\
         - **partial**: the note says what is missing.\n\
         - **missing**: answered as Linux answers what it does not have (a system call: ENOSYS), and reported as a gap.\n\
         - **refused**: answered with the error in brackets and reported as a gap; the note says why.\n\n",
    );
    if !rows.is_empty() {
        let _ = writeln!(out, "{} system calls: {}.\n", rows.len(), counts_text(row_counts(rows)));
        out.push_str("| number | name | arguments | level | note |\n|---:|---|---|---|---|\n");
        for row in rows {
            let _ = writeln!(
                out,
                "| {} | `{}` | {} | {} | {} |",
                row.number,
                row.name,
                cell(&arguments(row)),
                level(row.level),
                cell(row.note)
            );
        }
    }
    for table in tables {
        let _ = writeln!(
            out,
            "\n## {}: {}\n\n{} entries: {}.\n",
            table.call,
            table.title,
            table.rows.len(),
            counts_text(table_counts(table))
        );
        out.push_str("| name | value | level | note |\n|---|---:|---|---|\n");
        for row in table.rows {
            let _ = writeln!(
                out,
                "| `{}` | {} | {} | {} |",
                row.name,
                value(table, row.value),
                sub_level(row.level),
                cell(row.note)
            );
        }
    }
    out
}

fn json_text(rows: &[&Row], tables: &[&SubTable]) -> String {
    fn counts_json(counts: [usize; 4]) -> Value {
        counts.iter().zip(LEVELS).map(|(count, level)| (level.to_owned(), json!(count))).collect()
    }
    let syscalls: Vec<Value> = rows
        .iter()
        .map(|row| {
            let errno = if let Level::Refused(errno) = row.level { Some(errno.name()) } else { None };
            json!({
                "number": row.number,
                "name": row.name,
                "args": row.args.iter().map(|arg| json!({"name": arg.name, "type": arg.type_name})).collect::<Vec<_>>(),
                "level": row.level.name(),
                "errno": errno,
                "handler": row.level.handler(),
                "note": row.note,
            })
        })
        .collect();
    let tables: Vec<Value> = tables
        .iter()
        .map(|table| {
            let entries: Vec<Value> = table
                .rows
                .iter()
                .map(|row| {
                    let errno =
                        if let SubLevel::Refused(errno) = row.level { Some(errno.name()) } else { None };
                    json!({
                        "name": row.name,
                        "value": row.value,
                        "level": row.level.name(),
                        "errno": errno,
                        "note": row.note,
                    })
                })
                .collect();
            json!({
                "call": table.call,
                "title": table.title,
                "counts": counts_json(table_counts(table)),
                "entries": entries,
            })
        })
        .collect();
    let all = json!({ "counts": counts_json(row_counts(rows)), "syscalls": syscalls, "tables": tables });
    format!("{all:#}\n")
}

/// A CSV field, in quotes where it must be (RFC 4180).
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn csv(rows: &[&Row], tables: &[&SubTable]) -> String {
    let mut out = String::from("table,number,name,arguments,level,note\n");
    for row in rows {
        let _ = writeln!(
            out,
            "syscall,{},{},{},{},{}",
            row.number,
            row.name,
            field(&arguments(row)),
            level(row.level),
            field(row.note)
        );
    }
    for table in tables {
        for row in table.rows {
            let _ = writeln!(
                out,
                "{},{},{},,{},{}",
                field(&format!("{} {}", table.call, table.title)),
                value(table, row.value),
                field(row.name),
                sub_level(row.level),
                field(row.note)
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Format, render};

    #[test]
    fn one_call_brings_its_sub_tables() {
        let text = render(Format::Table, Some("open"));
        assert!(text.starts_with("  2  open "), "{text}");
        assert!(text.contains("open(path: Path, flags: OpenFlags, mode: Mode)"), "{text}");
        assert!(text.contains("O_CLOEXEC"), "{text}");
        assert!(!text.contains("openat"), "{text}");
        assert!(text.lines().all(|line| line == line.trim_end()));
    }

    #[test]
    fn part_of_a_name_number_and_nothing() {
        assert_eq!(render(Format::Csv, Some("xattrat")).lines().count(), 5);
        assert!(render(Format::Csv, Some("257")).contains("\nsyscall,257,openat,\"dirfd: DirFd, path: Path"));
        assert_eq!(render(Format::Table, Some("no such call")), "");
        assert!(render(Format::Table, Some("proc")).contains("/proc/cpuinfo"));
    }

    #[test]
    fn json_is_json() {
        let text = render(Format::Json, None);
        let value: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
        assert_eq!(value["syscalls"].as_array().map(Vec::len), Some(crate::SYSCALLS.len()));
        let counted: u64 = ["full", "partial", "missing", "refused"]
            .iter()
            .filter_map(|l| value["counts"][l].as_u64())
            .sum();
        assert_eq!(counted, crate::SYSCALLS.len() as u64);
    }
}
