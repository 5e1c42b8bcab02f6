//! Python's own tests, as Debian's libpython3.11-testsuite has them: each test must end the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

use bench::child::Ended;
use serde::Deserialize;

use crate::report::{Expectation, Report};
use crate::under::Under;

const SUITE: &str = "python";
const PYTHON: &str = "/usr/bin/python3.11";

/// Runs `python -m test` with results that also go, one line of JSON each, to a copy of standard output. A
/// module that hangs or dies thus still shows the tests before.
const DRIVER: &str = include_str!("driver.py");

#[derive(Deserialize)]
struct File {
    /// Names, with options of regrtest behind them.
    modules: Vec<String>,
    /// Seconds for one module.
    limit: u64,
    /// Tests that neither side runs, as patterns of test ids.
    #[serde(default)]
    leave_out: Vec<Expectation>,
    #[serde(default)]
    expect: Vec<Expectation>,
}

#[derive(Deserialize)]
struct Line {
    test: String,
    result: String,
}

/// Runs the suite.
pub fn run(under: &Under, wanted: &dyn Fn(&str) -> bool, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let file: File = toml::from_str(include_str!("../suites/python.toml"))?;
    if !Path::new("/usr/lib/python3.11/test/test_os.py").exists() {
        return Err("libpython3.11-testsuite is not installed".into());
    }
    for line in file.modules.iter().filter(|line| wanted(line)) {
        let mut words = line.split_whitespace();
        let module = words.next().unwrap_or_default();
        let limit = Duration::from_secs(file.limit);
        let mut program = vec![PYTHON, "-c", DRIVER, module];
        program.extend(words);
        for left_out in &file.leave_out {
            program.extend(["-i", &left_out.name]);
        }
        let (native, inside) = under.both(&program, limit);
        let (outer, inner) = (results(&native), results(&inside));
        report.note(SUITE, module, (end(&native), end(&inside)), &file.expect);
        let tests: BTreeSet<&String> = outer.keys().chain(inner.keys()).collect();
        for test in tests {
            let of = |side: &BTreeMap<_, _>| side.get(test).cloned().unwrap_or_else(|| "not run".to_owned());
            report.note(SUITE, test, (of(&outer), of(&inner)), &file.expect);
        }
        if report.part(SUITE, module, native.taken, inside.taken) {
            under.save(module, &native, &inside);
        }
    }
    report.retire(SUITE, &file.expect);
    Ok(())
}

fn end(ended: &Ended) -> String {
    ended.failure.clone().unwrap_or_else(|| "exit status: 0".to_owned())
}

/// The results by test; of several for one test (subtests, teardown) the worst counts.
fn results(ended: &Ended) -> BTreeMap<String, String> {
    let mut results = BTreeMap::new();
    let lines = ended.output.lines().filter_map(|line| line.split_once("@@lazaret@@ "));
    for line in lines.filter_map(|(_, json)| serde_json::from_str::<Line>(json).ok()) {
        let worst = results.entry(line.test).or_insert_with(|| line.result.clone());
        if rank(&line.result) > rank(worst) {
            *worst = line.result;
        }
    }
    results
}

fn rank(result: &str) -> u8 {
    match result {
        "skipped" => 0,
        "ok" => 1,
        "expected failure" => 2,
        _ => 3,
    }
}
