//! The worker: measures one row in its own process, wherever that runs, and prints one line of JSON.

mod calls;
mod exchange;
mod handoff;
mod memory;
mod process;
mod programs;
mod servers;

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// What a worker says about its row.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sample {
    /// The median over batches, nanoseconds for one operation.
    pub ns: Option<f64>,
    /// The fastest batch, nanoseconds for one operation.
    pub min: Option<f64>,
    /// Why there is no figure.
    pub error: Option<String>,
}

/// Median and minimum of the batches, nanoseconds for one operation.
pub struct Figure {
    pub ns: f64,
    pub min: f64,
}

/// Where a row finds what it needs and how long it may measure.
pub struct Place<'a> {
    /// Files that the driver made on the host.
    pub fixture: &'a Path,
    pub budget: Duration,
}

type Measured = io::Result<Figure>;

/// Measures `row` and prints the sample.
pub fn run(row: &str, fixture: &Path, budget: Duration) {
    if row == "idle" {
        return idle();
    }
    let sample = match measure(row, &Place { fixture, budget }) {
        Ok(figure) => Sample { ns: Some(figure.ns), min: Some(figure.min), error: None },
        Err(error) => Sample { ns: None, min: None, error: Some(error.to_string()) },
    };
    if let Ok(line) = serde_json::to_string(&sample) {
        println!("{line}");
    }
}

fn measure(row: &str, place: &Place<'_>) -> Measured {
    if row == "probe" {
        return Ok(Figure { ns: 0.0, min: 0.0 });
    }
    if let Some(call) = row.strip_prefix("cold-") {
        return handoff::cold(call, place);
    }
    if let Some(arrangement) = row.strip_prefix("handoff-") {
        return handoff::measure(arrangement, place);
    }
    if let Some(result) = calls::measure(row, place) {
        return result;
    }
    match row {
        "pipe" => exchange::pipe(place),
        "unix" => exchange::unix(place),
        "tcp" => exchange::tcp(place),
        "futex" => exchange::futex(place),
        "fault" => memory::fault(place),
        "mmap" => memory::map(place),
        "memcpy" => memory::copy(place),
        "thread" => process::thread(place),
        "fork" => process::fork(place),
        "exec" => process::exec(place),
        program => programs::measure(program, place),
    }
}

/// Runs batches until the budget is spent; `batch` makes that many operations.
fn batches(budget: Duration, mut batch: impl FnMut(u64) -> io::Result<()>) -> Measured {
    timed(budget, |count| {
        let start = Instant::now();
        batch(count)?;
        Ok(start.elapsed())
    })
}

/// As `batches`, for work that must leave some of its time out.
fn timed(budget: Duration, mut batch: impl FnMut(u64) -> io::Result<Duration>) -> Measured {
    // Short batches: those that another program of the machine disturbs are outliers, the median holds.
    let enough = Duration::from_millis(1);
    let mut count = 1;
    let whole = Instant::now();
    let mut taken = batch(count)?;
    while taken < enough && count < 1 << 24 {
        count *= 2;
        taken = batch(count)?;
    }
    let mut figures = vec![per_one(taken, count)];
    while whole.elapsed() < budget || figures.len() < 5 {
        figures.push(per_one(batch(count)?, count));
    }
    Ok(figure(figures))
}

fn per_one(taken: Duration, count: u64) -> f64 {
    taken.as_nanos() as f64 / count as f64
}

/// Median and minimum.
fn figure(mut figures: Vec<f64>) -> Figure {
    figures.sort_by(f64::total_cmp);
    let ns = figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN);
    Figure { ns, min: figures.first().copied().unwrap_or(f64::NAN) }
}

/// Says that it runs and waits for the end of its input: the program of a sandbox that has nothing to do.
fn idle() {
    println!("ready");
    let _ = io::stdout().flush();
    let _ = io::stdin().read(&mut [0; 1]);
}
