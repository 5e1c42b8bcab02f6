//! Children with an end: whatever hangs is killed with all that descends from it.

use std::io::Read;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::{host, tree};

/// How a child ended.
pub struct Ended {
    pub output: String,
    pub taken: Duration,
    /// Why it counts as failed.
    pub failure: Option<String>,
}

/// Runs to the end, or to `limit`.
pub fn run(command: &mut Command, limit: Duration) -> Ended {
    let start = Instant::now();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return Ended { output: String::new(), taken: start.elapsed(), failure: Some(error.to_string()) };
        }
    };
    let (tell, told) = std::sync::mpsc::channel();
    let output = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut output) = output {
            let _ = output.read_to_end(&mut text);
        }
        let _ = tell.send(());
        String::from_utf8_lossy(&text).into_owned()
    });
    let hung = told.recv_timeout(limit).is_err();
    if hung {
        kill(&child);
    }
    let status = child.wait();
    let taken = start.elapsed();
    let output = reader.join().unwrap_or_default();
    let failure = match status {
        _ if hung => Some(format!("no end after {} s", limit.as_secs())),
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(error.to_string()),
    };
    Ended { output, taken, failure }
}

/// SIGKILL to the child and to all that descends from it.
pub fn kill(child: &Child) {
    for pid in tree::descendants(child.id() as i32).into_iter().rev() {
        host::kill(pid);
    }
}
