//! What a call adds to a guest that computes for a gap between calls.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::{Figure, Measured, Place, calls, figure};
use bench::host;

/// The gap at which a call counts as cold: no polling thread stays up that long.
const COLD_GAP: Duration = Duration::from_micros(60);

/// A small call with cold gaps.
pub fn cold(call: &str, place: &Place<'_>) -> Measured {
    added(call, COLD_GAP, place)
}

/// The arrangement `GUESTS-GAP`: that many processes at once, a gap in microseconds.
pub fn measure(arrangement: &str, place: &Place<'_>) -> Measured {
    let parsed = arrangement.split_once('-').and_then(|(guests, gap)| Some((guests, gap.parse().ok()?)));
    match parsed {
        Some(("1", gap)) => added("lseek", Duration::from_micros(gap), place),
        Some(("2", gap)) => both(Duration::from_micros(gap), place),
        _ => Err(io::Error::other("no such arrangement")),
    }
}

fn added(call: &str, gap: Duration, place: &Place<'_>) -> Measured {
    let mut call = calls::make(call, place.fixture).ok_or_else(|| io::Error::other("no such call"))??;
    let count = (250_000 / (gap.as_nanos() as u64 + 1_000)).max(4);
    let mut without = Vec::new();
    let mut with = Vec::new();
    let whole = Instant::now();
    while whole.elapsed() < place.budget || with.len() < 5 {
        without.push(lap(count, gap, || Ok(()))?);
        with.push(lap(count, gap, &mut call)?);
    }
    let (with, without) = (figure(with), figure(without));
    Ok(Figure { ns: (with.ns - without.ns).max(0.0), min: (with.min - without.min).max(0.0) })
}

fn lap(count: u64, gap: Duration, mut call: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    for _ in 0..count {
        if !gap.is_zero() {
            let begin = Instant::now();
            while begin.elapsed() < gap {
                std::hint::spin_loop();
            }
        }
        call()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / count as f64)
}

/// Two processes do the same at once; the mean of both.
fn both(gap: Duration, place: &Place<'_>) -> Measured {
    let (read, write) = host::pipe()?;
    let pid = host::fork(|| match added("lseek", gap, place) {
        Ok(figure) => {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&figure.ns.to_ne_bytes());
            bytes[8..].copy_from_slice(&figure.min.to_ne_bytes());
            i32::from(host::write(write.as_fd(), &bytes).is_err())
        }
        Err(_) => 1,
    })?;
    let mine = added("lseek", gap, place);
    if host::waitpid(pid)? != 0 {
        return Err(io::Error::other("the second guest failed"));
    }
    let mine = mine?;
    let (mut ns, mut min) = ([0; 8], [0; 8]);
    host::read(read.as_fd(), &mut ns)?;
    host::read(read.as_fd(), &mut min)?;
    Ok(Figure {
        ns: f64::midpoint(mine.ns, f64::from_ne_bytes(ns)),
        min: f64::midpoint(mine.min, f64::from_ne_bytes(min)),
    })
}
