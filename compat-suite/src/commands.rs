//! Lines for the shell whose output and exit status must be the same.

use std::error::Error;
use std::time::Duration;

use bench::child::Ended;
use serde::Deserialize;

use crate::report::{Expectation, Report};
use crate::under::Under;

const SUITE: &str = "commands";

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    command: Vec<Line>,
    #[serde(default)]
    expect: Vec<Expectation>,
}

#[derive(Deserialize)]
struct Line {
    name: String,
    run: String,
    /// A program without which the line is left out.
    needs: Option<String>,
}

/// Runs the suite.
pub fn run(under: &Under, wanted: &dyn Fn(&str) -> bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let file: File = toml::from_str(include_str!("../suites/commands.toml"))?;
    for line in file.command.iter().filter(|line| wanted(&line.name)) {
        if line.needs.as_ref().is_some_and(|program| !std::path::Path::new(program).exists()) {
            println!(
                "{SUITE} {}: left out, {} is not here",
                line.name,
                line.needs.as_deref().unwrap_or_default()
            );
            continue;
        }
        let script = format!("exec 2>&1; PATH=/usr/bin:/bin; {}", line.run);
        let (native, inside) = under.both(&["/bin/bash", "-c", &script], Duration::from_secs(180));
        report.note(SUITE, &line.name, (outcome(&native), outcome(&inside)), &file.expect);
        if report.part(SUITE, &line.name, native.taken, inside.taken) {
            under.save(&line.name, &native, &inside);
        }
    }
    report.retire(SUITE, &file.expect);
    Ok(())
}

fn outcome(ended: &Ended) -> String {
    let end = ended.failure.as_deref().unwrap_or("exit 0");
    let output: String = ended.output.chars().take(4000).collect();
    format!("{end}: {output:?} ({} bytes)", ended.output.len())
}
