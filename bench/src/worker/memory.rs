//! Memory: faults, maps and copies.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{Measured, Place, batches, timed};
use bench::host::Pages;

/// The first write to a page of fresh anonymous memory.
pub fn fault(place: &Place<'_>) -> Measured {
    const PAGES: u64 = 1024;
    let mut figure = timed(place.budget, |count| {
        let mut taken = Duration::ZERO;
        for _ in 0..count {
            let mut pages = Pages::map(PAGES as usize * 4096)?;
            pages.small();
            let start = Instant::now();
            pages.touch();
            taken += start.elapsed();
        }
        Ok(taken)
    })?;
    figure.ns /= PAGES as f64;
    figure.min /= PAGES as f64;
    Ok(figure)
}

/// mmap and munmap of 64 KiB that nobody touches.
pub fn map(place: &Place<'_>) -> Measured {
    batches(place.budget, |count| {
        for _ in 0..count {
            drop(Pages::map(64 << 10)?);
        }
        Ok(())
    })
}

/// A copy of 1 MiB.
pub fn copy(place: &Place<'_>) -> Measured {
    let from = vec![1_u8; 1 << 20];
    let mut to = vec![0_u8; 1 << 20];
    batches(place.budget, |count| {
        for _ in 0..count {
            black_box(&mut to).copy_from_slice(black_box(&from));
        }
        Ok(())
    })
}
