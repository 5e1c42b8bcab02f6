//! What a sandbox costs while its program does nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::places::Place;
use bench::{child, tree};

/// The figures of one idle sandbox.
pub struct Idle {
    /// All of the tree, proportional bytes; None where a process may not be looked into.
    pub pss: Option<u64>,
    /// The sandbox's own processes, resident bytes.
    pub rss: u64,
    /// The processes of `rss`.
    pub processes: Vec<String>,
    /// Parts of a thousand of one processor.
    pub cpu: f64,
}

/// Starts a sandbox with an idle program and looks at it for `span`.
pub fn measure(place: &Place, exe: &Path, span: Duration) -> Result<Idle, String> {
    let mut command = place.command(exe);
    command.args(["worker", "idle"]).stdin(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let output = child.stdout.take();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        if let Some(output) = output {
            let _ = BufReader::new(output).read_line(&mut line);
        }
        let _ = tell.send(line);
        std::thread::park_timeout(Duration::from_secs(60));
    });
    let ready = told.recv_timeout(Duration::from_secs(20)).is_ok_and(|line| line.trim() == "ready");
    let result = if ready { Ok(look(child.id() as i32, span)) } else { Err("does not start".to_owned()) };
    child::kill(&child);
    let _ = child.wait();
    result
}

fn look(root: i32, span: Duration) -> Idle {
    std::thread::sleep(Duration::from_millis(500));
    let tree = tree::descendants(root);
    let pss = tree.iter().map(|pid| tree::pss(*pid)).sum();
    let own: Vec<i32> = tree.iter().copied().filter(|pid| !is_program(&tree::name(*pid))).collect();
    let rss = own.iter().map(|pid| tree::rss(*pid)).sum();
    let processes = own.iter().map(|pid| tree::name(*pid)).collect();
    let run = || tree.iter().map(|pid| tree::cpu(*pid)).sum::<u64>();
    let (before, start) = (run(), Instant::now());
    std::thread::sleep(span);
    let used = run().saturating_sub(before);
    Idle { pss, rss, processes, cpu: used as f64 * 1000.0 / start.elapsed().as_nanos() as f64 }
}

/// Whether the process is the program inside and not the sandbox around it.
fn is_program(name: &str) -> bool {
    name == "bench" || name == "lazaret-guest"
}
