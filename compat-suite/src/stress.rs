//! stress-ng's stressors with verification and a fixed count of operations: the exit status must be the same.

use std::error::Error;
use std::time::Duration;

use bench::child::Ended;
use serde::Deserialize;

use crate::report::{Expectation, Report};
use crate::under::Under;

const SUITE: &str = "stress-ng";

#[derive(Deserialize)]
struct File {
    /// Operations of a stressor that `ops` does not name.
    default_ops: u64,
    stressors: Vec<String>,
    #[serde(default)]
    ops: std::collections::BTreeMap<String, u64>,
    #[serde(default)]
    args: std::collections::BTreeMap<String, Vec<String>>,
    #[serde(default)]
    expect: Vec<Expectation>,
}

/// Runs the suite.
pub fn run(under: &Under, wanted: &dyn Fn(&str) -> bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let file: File = toml::from_str(include_str!("../suites/stress-ng.toml"))?;
    for name in file.stressors.iter().filter(|name| wanted(name)) {
        let ops = file.ops.get(name).copied().unwrap_or(file.default_ops).to_string();
        let (stressor, count) = (format!("--{name}"), format!("--{name}-ops"));
        let mut program = vec!["/usr/bin/stress-ng", &stressor, "1", &count, &ops];
        program.extend(file.args.get(name).into_iter().flatten().map(String::as_str));
        program.extend(["--verify", "--timeout", "30", "--oomable"]);
        let (native, inside) = under.both(&program, Duration::from_secs(60));
        report.note(SUITE, name, (outcome(&native), outcome(&inside)), &file.expect);
        if report.part(SUITE, name, native.taken, inside.taken) {
            under.save(name, &native, &inside);
        }
    }
    report.retire(SUITE, &file.expect);
    Ok(())
}

fn outcome(ended: &Ended) -> String {
    ended.failure.clone().unwrap_or_else(|| "exit status: 0".to_owned())
}
