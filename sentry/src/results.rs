//! Results of a call that is tried again without a port: small ones travel with its answer, as those of a call that did not block.

use crate::run::Call;
use crate::task::Task;
use platform::Abi;

/// Most pieces and bytes.
const PIECES: usize = 4;
const BYTES: usize = 16 * 1024;

/// What is to be written to the task's memory when the call ends.
#[derive(Default)]
pub(crate) struct Results {
    pieces: Vec<(u64, Vec<u8>)>,
    bytes: usize,
    able: bool,
}

impl Results {
    /// None yet, of a parked call.
    pub(crate) fn new(task: &Task, call: &Call) -> Results {
        let able = call.abi == Abi::X86_64 && task.control().takes_results(call.nr);
        Results { able, ..Results::default() }
    }

    /// Takes a write; false if it must be made at once, behind what was taken before.
    pub(crate) fn put(&mut self, task: &Task, addr: u64, data: &[u8]) -> bool {
        let room = self.pieces.len() < PIECES && data.len() <= BYTES.saturating_sub(self.bytes);
        let takes = self.able && room && task.may_wait(addr, data.len());
        if takes {
            self.bytes = self.bytes.saturating_add(data.len());
            self.pieces.push((addr, data.to_vec()));
        }
        takes
    }

    /// What was taken: addresses and bytes.
    pub(crate) fn pieces(&self) -> &[(u64, Vec<u8>)] {
        &self.pieces
    }

    /// Writes what was taken. What cannot be written any more is no loss: its memory has gone since it was looked at.
    pub(crate) fn write(&mut self, task: &Task) {
        for (addr, data) in self.pieces.drain(..) {
            let _ = task.space().write(addr, &data);
        }
        self.bytes = 0;
    }
}
