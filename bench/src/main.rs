//! The speed table: every row measured natively, in lazaret and in the peers that are installed, in one run.
//!
//! The program is its own worker: the driver starts itself in each place with the name of a row, the worker
//! measures that row in its own process and prints one line of JSON. See docs/bench.md for how to read it.

mod fixture;
mod idle;
mod places;
mod rows;
mod show;
mod worker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use bench::{child, host};
use clap::Parser;

use places::Place;
use rows::{Kind, ROWS, Row};
use show::{Cell, Line, Machine, Run};

/// Measures lazaret against native and against the peers that are installed.
#[derive(Parser)]
struct Options {
    /// Write the figures to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Only rows whose name contains one of these words, separated by commas.
    #[arg(long, default_value = "")]
    rows: String,
    /// Only these places, separated by commas; native always takes part.
    #[arg(long, default_value = "")]
    places: String,
    /// Fewer and shorter repetitions.
    #[arg(long)]
    quick: bool,
    /// The lazaret to measure, instead of the one built beside this program.
    #[arg(long)]
    lazaret: Option<PathBuf>,
    /// Measure this platform in a column of its own; may be repeated. Without it, ptrace has one.
    #[arg(long, value_parser = ["trap", "ptrace"])]
    platform: Vec<String>,
    /// Print the names of the rows.
    #[arg(long)]
    list: bool,
}

/// How long and how often.
struct Effort {
    budget: Duration,
    repetitions: usize,
    limit: Duration,
    idle: Duration,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, first, row, rest @ ..] = arguments.as_slice()
        && first == "worker"
    {
        let fixture = rest.first().map_or("/", String::as_str);
        let budget = rest.get(1).and_then(|ms| ms.parse().ok()).unwrap_or(200);
        worker::run(row, Path::new(fixture), Duration::from_millis(budget));
        return ExitCode::SUCCESS;
    }
    match drive(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn drive(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    if options.list {
        ROWS.iter().for_each(|row| println!("{:<14} {}: {}", row.id, row.group, row.label));
        return Ok(());
    }
    let effort = if options.quick {
        Effort {
            budget: Duration::from_millis(60),
            repetitions: 3,
            limit: Duration::from_secs(15),
            idle: Duration::from_secs(2),
        }
    } else {
        Effort {
            budget: Duration::from_millis(120),
            repetitions: 5,
            limit: Duration::from_secs(30),
            idle: Duration::from_secs(10),
        }
    };
    let exe = std::env::current_exe()?;
    let fixture = fixture::Fixture::make()?;
    let platforms =
        if options.platform.is_empty() { vec!["ptrace".to_owned()] } else { options.platform.clone() };
    let mut places = places::all(options.lazaret.as_deref(), &platforms);
    let words =
        |list: &str| list.split(',').map(str::to_owned).filter(|word| !word.is_empty()).collect::<Vec<_>>();
    let (wanted, filter) = (words(&options.places), words(&options.rows));
    places.retain(|place| {
        place.name == "native" || wanted.is_empty() || wanted.iter().any(|name| name == place.name)
    });
    for place in places.iter_mut().filter(|place| place.missing.is_none()) {
        place.missing = probe(place, &exe).err();
    }
    let mut run = Run {
        schema: "lazaret-bench/1",
        machine: machine(options.quick),
        unmeasured: BTreeMap::new(),
        rows: Vec::new(),
    };
    for place in &places {
        if let Some(reason) = &place.missing {
            run.unmeasured.insert(place.name, reason.clone());
        }
    }
    println!(
        "Linux {}, {} processors, uid {}, load {}; medians of {} repetitions, each place in turn",
        run.machine.kernel,
        run.machine.processors,
        run.machine.effective_uid,
        run.machine.load,
        effort.repetitions
    );
    println!("{}", show::heading(&places));
    let mut group = "";
    let mut idles = BTreeMap::new();
    for row in ROWS.iter().filter(|row| filter.is_empty() || filter.iter().any(|word| row.id.contains(word)))
    {
        if row.group != group {
            group = row.group;
            println!("-- {group}");
        }
        let cells = match row.kind {
            Kind::Idle => idle_cells(row, &places, &exe, &effort, &mut idles),
            _ => time_cells(row, &places, &exe, fixture.path(), &effort),
        };
        let line = Line {
            id: row.id,
            label: row.label,
            group: row.group,
            unit: row.unit,
            goal: row.goal,
            pass: show::passes(row.goal, &cells),
            places: cells,
        };
        println!("{}", show::line(row, &line, &places));
        run.rows.push(line);
    }
    footer(&run);
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_string_pretty(&run)? + "\n")?;
    }
    Ok(())
}

/// Why some cells are empty, and how many goals are reached.
fn footer(run: &Run) {
    println!();
    for (place, reason) in &run.unmeasured {
        println!("{place} is not measured: {reason}");
    }
    for line in &run.rows {
        for (place, cell) in &line.places {
            if let Some(reason) = &cell.missing {
                println!("- {}, {place}: {reason}", line.id);
            }
        }
    }
    let judged: Vec<bool> = run.rows.iter().filter_map(|line| line.pass).collect();
    if !judged.is_empty() {
        println!("goals reached: {} of {}", judged.iter().filter(|pass| **pass).count(), judged.len());
    }
}

fn probe(place: &Place, exe: &Path) -> Result<(), String> {
    let ended = child::run(place.command(exe).args(["worker", "probe"]), Duration::from_secs(15));
    match (ended.failure, sample(&ended.output)) {
        (None, Ok(_)) => Ok(()),
        (Some(failure), _) | (None, Err(failure)) => Err(format!("it does not run the worker: {failure}")),
    }
}

/// One repetition in each place after the other, so that a disturbance of the machine meets all of them.
fn time_cells(
    row: &Row,
    places: &[Place],
    exe: &Path,
    fixture: &Path,
    effort: &Effort,
) -> BTreeMap<&'static str, Cell> {
    let mut taken: BTreeMap<&'static str, (Vec<f64>, f64)> = BTreeMap::new();
    let mut missing = BTreeMap::new();
    for _ in 0..effort.repetitions {
        for place in places.iter().filter(|place| place.missing.is_none()) {
            if missing.contains_key(place.name) {
                continue;
            }
            match once(row, place, exe, fixture, effort) {
                Ok((ns, min)) => {
                    let entry = taken.entry(place.name).or_insert((Vec::new(), f64::INFINITY));
                    entry.0.push(ns);
                    entry.1 = entry.1.min(min);
                }
                Err(reason) => drop(missing.insert(place.name, reason)),
            }
        }
    }
    let mut cells = BTreeMap::new();
    for (name, (mut values, min)) in taken {
        values.sort_by(f64::total_cmp);
        let value = values.get(values.len() / 2).copied();
        cells.insert(name, Cell { value, min: Some(min), ..Cell::default() });
    }
    for (name, reason) in missing {
        // One failure among repetitions makes the figure untrustworthy.
        cells.insert(name, Cell { missing: Some(reason), ..Cell::default() });
    }
    let native = cells.get("native").and_then(|cell| cell.value);
    for cell in cells.values_mut() {
        cell.ratio =
            cell.value.zip(native).filter(|(_, native)| *native > 0.0).map(|(value, native)| value / native);
    }
    cells
}

fn once(row: &Row, place: &Place, exe: &Path, fixture: &Path, effort: &Effort) -> Result<(f64, f64), String> {
    if row.kind == Kind::Start {
        let mut command = place.command(Path::new("/bin/true"));
        let mut taken = Vec::new();
        for _ in 0..4 {
            let ended = child::run(&mut command, effort.limit);
            if let Some(failure) = ended.failure {
                return Err(failure);
            }
            taken.push(ended.taken.as_nanos() as f64);
        }
        taken.sort_by(f64::total_cmp);
        return Ok((f64::midpoint(taken[1], taken[2]), taken[0]));
    }
    let budget = effort.budget.as_millis().to_string();
    let mut command = place.command(exe);
    command.args(["worker", row.id]).arg(fixture).arg(budget);
    let ended = child::run(&mut command, effort.limit);
    match (ended.failure, sample(&ended.output)) {
        (Some(failure), _) => Err(failure),
        (None, figures) => figures,
    }
}

fn sample(output: &str) -> Result<(f64, f64), String> {
    let line = output.lines().rev().find(|line| line.starts_with('{')).ok_or("the worker says nothing")?;
    let sample: worker::Sample = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match (sample.ns, sample.min, sample.error) {
        (Some(ns), Some(min), None) => Ok((ns, min)),
        (_, _, error) => Err(error.unwrap_or_else(|| "no figure".to_owned())),
    }
}

type Idles = BTreeMap<&'static str, Result<idle::Idle, String>>;

/// All rows about an idle sandbox come from one sandbox in each place.
fn idle_cells(
    row: &Row,
    places: &[Place],
    exe: &Path,
    effort: &Effort,
    idles: &mut Idles,
) -> BTreeMap<&'static str, Cell> {
    for place in places.iter().filter(|place| place.missing.is_none()) {
        idles.entry(place.name).or_insert_with(|| idle::measure(place, exe, effort.idle));
    }
    let program = match idles.get("native") {
        Some(Ok(native)) => native.pss,
        _ => None,
    };
    idles
        .iter()
        .map(|(name, idle)| {
            let cell = match idle {
                Err(reason) => Cell { missing: Some(reason.clone()), ..Cell::default() },
                Ok(idle) => idle_cell(row, idle, program),
            };
            (*name, cell)
        })
        .collect()
}

fn idle_cell(row: &Row, idle: &idle::Idle, program: Option<u64>) -> Cell {
    let value = match row.id {
        "pss" => idle.pss.zip(program).map(|(all, program)| all as f64 - program as f64),
        "rss" => Some(idle.rss as f64),
        _ => Some(idle.cpu),
    };
    let missing = value.is_none().then(|| "its processes may not be looked into".to_owned());
    let detail = (row.id == "rss").then(|| idle.processes.join(" "));
    Cell { value, min: value, ratio: None, missing, detail }
}

fn machine(quick: bool) -> Machine {
    let text = |file| std::fs::read_to_string(file).unwrap_or_default().trim().to_owned();
    Machine {
        kernel: text("/proc/sys/kernel/osrelease"),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        effective_uid: host::euid(),
        unix_time: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs()),
        load: text("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        quick,
    }
}
