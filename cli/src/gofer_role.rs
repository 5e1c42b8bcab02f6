//! The process that becomes the gofer.

use crate::setup::{self, GoferSetup};
use std::os::fd::RawFd;
use std::process::ExitCode;

pub fn run(fd: RawFd) -> ExitCode {
    let started = setup::load::<GoferSetup>(fd).and_then(|setup| {
        let fds = gofer::GoferFds::inherited(&setup.lanes, setup.oracle, setup.ready)?;
        Ok((setup.config, fds))
    });
    match started {
        Ok((config, fds)) => gofer::run(config, fds),
        Err(error) => crate::failure(&format!("gofer: {error}")),
    }
}
