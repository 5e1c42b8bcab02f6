//! Threads and processes that begin and end.

use std::io;

use super::{Measured, Place, batches};
use bench::host;

/// A thread made and joined.
pub fn thread(place: &Place<'_>) -> Measured {
    batches(place.budget, |count| {
        for _ in 0..count {
            std::thread::Builder::new().spawn(|| ())?.join().map_err(|_| io::Error::other("panic"))?;
        }
        Ok(())
    })
}

/// A child forked that leaves at once, waited for.
pub fn fork(place: &Place<'_>) -> Measured {
    children(place, || 0)
}

/// A child forked that runs /bin/true, waited for.
pub fn exec(place: &Place<'_>) -> Measured {
    children(place, || host::exec(c"/bin/true"))
}

fn children(place: &Place<'_>, child: impl Fn() -> i32) -> Measured {
    batches(place.budget, |count| {
        for _ in 0..count {
            let status = host::waitpid(host::fork(&child)?)?;
            if status != 0 {
                return Err(io::Error::other(format!("the child's status is {status:#x}")));
            }
        }
        Ok(())
    })
}
