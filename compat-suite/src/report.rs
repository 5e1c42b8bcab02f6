//! Results, their verdicts and the summary.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::under::Under;

/// A difference that is known, with the reason for it.
#[derive(Clone, Debug, Deserialize)]
pub struct Expectation {
    /// The name of the case; a `*` at the end stands for any rest.
    pub name: String,
    pub reason: String,
}

/// What comparing a case came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Same,
    /// It differs and no expectation says so.
    Differs,
    /// It differs as expected.
    Expected,
}

/// One case.
#[derive(Debug, Serialize)]
pub struct Case {
    pub suite: &'static str,
    pub name: String,
    pub native: String,
    pub inside: String,
    pub verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: native {}, inside {}", self.name, self.native, self.inside)
    }
}

/// What belongs together in a suite: a module, a stressor, a line.
#[derive(Debug, Serialize)]
pub struct Part {
    pub suite: &'static str,
    pub name: String,
    pub native_seconds: f64,
    pub inside_seconds: f64,
    same: usize,
    differs: usize,
    expected: usize,
}

/// All cases of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    under: String,
    parts: Vec<Part>,
    cases: Vec<Case>,
    /// How many cases belong to the parts so far.
    #[serde(skip)]
    parted: usize,
    /// Expectations whose cases ran and were all the same: to be removed.
    stale: Vec<String>,
}

impl Report {
    pub fn new(under: &Under) -> Self {
        Self {
            schema: "lazaret-compat/2",
            under: under.shown(),
            parts: Vec::new(),
            cases: Vec::new(),
            parted: 0,
            stale: Vec::new(),
        }
    }

    /// Judges a case and notes it.
    pub fn note(
        &mut self,
        suite: &'static str,
        name: &str,
        outcome: (String, String),
        known: &[Expectation],
    ) -> Verdict {
        let (native, inside) = outcome;
        let expectation = known.iter().find(|expectation| matches(&expectation.name, name));
        let (verdict, reason) = match expectation {
            _ if native == inside => (Verdict::Same, None),
            Some(expectation) => (Verdict::Expected, Some(expectation.reason.clone())),
            None => (Verdict::Differs, None),
        };
        self.cases.push(Case { suite, name: name.to_owned(), native, inside, verdict, reason });
        verdict
    }

    /// Makes a part of the cases noted since the last one, and prints its line. Whether any of them differs.
    pub fn part(&mut self, suite: &'static str, name: &str, native: Duration, inside: Duration) -> bool {
        let cases = self.cases.get(self.parted..).unwrap_or_default();
        let count = |verdict| cases.iter().filter(|case| case.verdict == verdict).count();
        let part = Part {
            suite,
            name: name.to_owned(),
            native_seconds: native.as_secs_f64(),
            inside_seconds: inside.as_secs_f64(),
            same: count(Verdict::Same),
            differs: count(Verdict::Differs),
            expected: count(Verdict::Expected),
        };
        println!(
            "{suite} {name}: {} the same, {} differ, {} as expected; {:.1} s natively, {:.1} s inside",
            part.same, part.differs, part.expected, part.native_seconds, part.inside_seconds
        );
        for case in cases.iter().filter(|case| case.verdict == Verdict::Differs) {
            println!("    {case}");
        }
        self.parted = self.cases.len();
        let differs = part.differs != 0;
        self.parts.push(part);
        differs
    }

    /// Looks for expectations that no longer hold, among the cases of a suite that ran. What is skipped on both sides (an
    /// ordinary user lacks what it needs) says nothing.
    pub fn retire(&mut self, suite: &'static str, known: &[Expectation]) {
        for expectation in known {
            let mut cases = self
                .cases
                .iter()
                .filter(|case| case.suite == suite && matches(&expectation.name, &case.name))
                .filter(|case| case.native != "skipped")
                .peekable();
            if cases.peek().is_some() && cases.all(|case| case.verdict == Verdict::Same) {
                self.stale.push(format!("{suite}: {}", expectation.name));
            }
        }
    }

    /// Whether nothing is unexpected.
    pub fn good(&self) -> bool {
        self.stale.is_empty() && self.cases.iter().all(|case| case.verdict != Verdict::Differs)
    }

    /// Prints what differs and the counts by suite.
    pub fn summary(&self) {
        let mut suites: Vec<&str> = self.cases.iter().map(|case| case.suite).collect();
        suites.dedup();
        println!();
        for case in self.cases.iter().filter(|case| case.verdict == Verdict::Differs) {
            println!("differs: {} {case}", case.suite);
        }
        for stale in &self.stale {
            println!("expected to differ, but the same: {stale}");
        }
        println!("{:<12} {:>8} {:>8} {:>9}", "suite", "same", "differs", "expected");
        for suite in suites {
            let count = |verdict| {
                self.cases.iter().filter(|case| case.suite == suite && case.verdict == verdict).count()
            };
            let (same, differs) = (count(Verdict::Same), count(Verdict::Differs));
            println!("{suite:<12} {same:>8} {differs:>8} {:>9}", count(Verdict::Expected));
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Vec<Expectation> {
        vec![Expectation { name: name.to_owned(), reason: "why".to_owned() }]
    }

    fn outcome(native: &str, inside: &str) -> (String, String) {
        (native.to_owned(), inside.to_owned())
    }

    #[test]
    fn differences_are_expected_or_not() {
        let mut report = Report::new(&Under::words("env").expect("a command"));
        assert_eq!(report.note("s", "a.b", outcome("ok", "ok"), &[]), Verdict::Same);
        assert_eq!(report.note("s", "a.c", outcome("ok", "fail"), &known("a.*")), Verdict::Expected);
        assert!(report.good());
        assert_eq!(report.note("s", "b", outcome("ok", "fail"), &known("a.*")), Verdict::Differs);
        assert!(!report.good());
    }

    #[test]
    fn an_expectation_that_no_longer_holds_is_named() {
        let mut report = Report::new(&Under::words("env").expect("a command"));
        let known = known("a");
        report.note("s", "a", outcome("skipped", "skipped"), &known);
        report.retire("s", &known);
        assert!(report.good());
        report.note("s", "a", outcome("ok", "ok"), &known);
        report.retire("s", &known);
        assert!(!report.good());
    }
}
