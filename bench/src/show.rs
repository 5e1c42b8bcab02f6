//! The table for people and the file for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::places::Place;
use crate::rows::{Goal, Row, Unit};

/// One figure of a place, or why there is none.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cell {
    /// The median over repetitions, in the row's unit.
    pub value: Option<f64>,
    /// The least value that was seen.
    pub min: Option<f64>,
    /// Times the native figure of the same run.
    pub ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// What the figure covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A row with its figures by place.
#[derive(Serialize)]
pub struct Line {
    pub id: &'static str,
    pub label: &'static str,
    pub group: &'static str,
    pub unit: Unit,
    pub goal: Goal,
    /// Whether lazaret reaches the goal.
    pub pass: Option<bool>,
    pub places: BTreeMap<&'static str, Cell>,
}

/// The whole run.
#[derive(Serialize)]
pub struct Run {
    pub schema: &'static str,
    pub machine: Machine,
    pub unmeasured: BTreeMap<&'static str, String>,
    pub rows: Vec<Line>,
}

/// Where and when it ran.
#[derive(Serialize)]
pub struct Machine {
    pub kernel: String,
    pub processors: usize,
    pub effective_uid: u32,
    pub unix_time: u64,
    pub load: String,
    pub quick: bool,
}

/// Whether lazaret's figure reaches the goal of its row.
pub fn passes(goal: Goal, places: &BTreeMap<&'static str, Cell>) -> Option<bool> {
    let own = places.get("lazaret")?;
    match goal {
        Goal::Native(most) => own.ratio.map(|ratio| ratio <= most),
        Goal::Bubblewrap(most) => {
            let peer = places.get("bwrap")?.value?;
            own.value.map(|value| value <= most * peer)
        }
        // An idle process may be looked at by the kernel's own work: a part in a thousand is none.
        Goal::Most(most) => own.value.map(|value| value <= most.max(1.0)),
        Goal::None => None,
    }
}

/// The line over all rows.
pub fn heading(places: &[Place]) -> String {
    let mut text = format!("{:<36} {:>9}", "", "native");
    for place in places.iter().filter(|place| place.name != "native" && place.missing.is_none()) {
        text += &format!(" {:>17}", place.name);
        if place.name == "lazaret" {
            text += &format!(" {:>9} {:<4}", "goal", "");
        }
    }
    text
}

/// One row: the native figure, then figure and ratio for each place.
pub fn line(row: &Row, line: &Line, places: &[Place]) -> String {
    let native = line.places.get("native").and_then(|cell| cell.value);
    let native = native.map_or_else(|| "-".to_owned(), |value| figure(value, row.unit));
    let mut text = format!("{:<36} {native:>9}", row.label);
    for place in places.iter().filter(|place| place.name != "native" && place.missing.is_none()) {
        let cell = line.places.get(place.name);
        let shown = cell.and_then(|cell| cell.value).map_or_else(
            || "-".to_owned(),
            |value| match cell.and_then(|cell| cell.ratio) {
                Some(ratio) => format!("{} {:>7}", figure(value, row.unit), times(ratio)),
                None => format!("{} {:7}", figure(value, row.unit), ""),
            },
        );
        text += &format!(" {shown:>17}");
        if place.name == "lazaret" {
            let mark = line.pass.map_or("", |pass| if pass { "ok" } else { "MISS" });
            text += &format!(" {:>9} {mark:<4}", goal(line.goal, row.unit));
        }
    }
    text.trim_end().to_owned()
}

fn goal(goal: Goal, unit: Unit) -> String {
    match goal {
        Goal::Native(most) => format!("<= {}", times(most)),
        Goal::Bubblewrap(_) => "<= bwrap".to_owned(),
        Goal::Most(most) => format!("<= {}", figure(most, unit)),
        Goal::None => String::new(),
    }
}

fn times(ratio: f64) -> String {
    if ratio < 9.95 { format!("{ratio:.2}x") } else { format!("{ratio:.0}x") }
}

fn figure(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{:.1}MiB", value / 1024.0 / 1024.0),
        Unit::CpuPerMille => format!("{:.2}%", value / 10.0),
        Unit::Ns if value < 999.5 => format!("{value:.0}ns"),
        Unit::Ns if value < 99_950.0 => format!("{:.2}us", value / 1e3),
        Unit::Ns if value < 999_500.0 => format!("{:.0}us", value / 1e3),
        Unit::Ns if value < 99_950_000.0 => format!("{:.2}ms", value / 1e6),
        Unit::Ns => format!("{:.0}ms", value / 1e6),
    }
}
