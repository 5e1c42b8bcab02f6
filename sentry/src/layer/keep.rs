//! Checkpoints: the upper layer is written down while programs run, so that what they did outlives this process.
//!
//! There are two files. One is written while the other holds the checkpoint before; who owns them (the launcher) is told which
//! one is whole, makes it the one that counts, and says so. Nothing changes while one is written. The pause before the next
//! is [`SHARE`] times as long as writing took.

use super::{export, upper};
use crate::fs::memfs::{Kept, Woken};
use crate::kernel::Kernel;
use parking_lot::{Condvar, Mutex};
use std::fs::File;
use std::io::Seek;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Changes that nobody asks to last are written down so often.
const PERIOD: Duration = Duration::from_secs(10);
/// Those that somebody does (fsync(2), sync(2)) not more often than this.
const LEAST: Duration = Duration::from_millis(200);
/// Writing takes no more of the time than one part in so many.
const SHARE: u32 = 20;

/// Tells that the file of this number is a whole checkpoint.
type Tell = Box<dyn Fn(u8) + Send + Sync>;

/// Writes checkpoints.
pub struct Keeper {
    kept: Arc<Kept>,
    kernel: Arc<Kernel>,
    files: [File; 2],
    tell: Tell,
    /// Held while a checkpoint is made, which the end may want while another is on its way.
    writing: Mutex<()>,
    turn: Mutex<Turn>,
    answered: Condvar,
}

#[derive(Default)]
struct Turn {
    /// The file to write next.
    next: u8,
    /// What became of the last one: whether it counts.
    answer: Option<bool>,
}

impl Keeper {
    /// Begins. None if there is no upper layer.
    ///
    /// # Errors
    /// One line.
    pub fn start(kernel: &Arc<Kernel>, files: [File; 2], tell: Tell) -> Result<Option<Arc<Keeper>>, String> {
        let Some(root) = upper(&kernel.vfs).map_err(|e| format!("the upper layer: {e:?}"))? else {
            return Ok(None);
        };
        let keeper = Arc::new(Keeper {
            kept: root.keep(),
            kernel: kernel.clone(),
            files,
            tell,
            writing: Mutex::default(),
            turn: Mutex::default(),
            answered: Condvar::new(),
        });
        let thread = std::thread::Builder::new().name("keeper".into()).stack_size(512 * 1024);
        let mine = keeper.clone();
        thread.spawn(move || mine.serve()).map_err(|e| format!("starting a thread: {e}"))?;
        Ok(Some(keeper))
    }

    fn serve(&self) {
        let mut at = Instant::now() + PERIOD;
        loop {
            let woken = self.kept.wait(at);
            if woken == Woken::Ending {
                return;
            }
            at = Instant::now() + PERIOD;
            if !self.kept.take_changed() {
                continue;
            }
            let begun = Instant::now();
            // No room for it, most likely: the next try is as good.
            if self.write().is_err() {
                self.kept.put_back();
            }
            if self.kept.pause(begun.elapsed().saturating_mul(SHARE).max(LEAST)) {
                return;
            }
        }
    }

    /// What became of the checkpoint that was told of last: whether it counts.
    pub fn answer(&self, counts: bool) {
        self.turn.lock().answer = Some(counts);
        self.answered.notify_all();
    }

    /// The last checkpoint, when no program runs any more. What was left out, a line each.
    ///
    /// # Errors
    /// One line.
    pub fn last(&self) -> Result<Vec<String>, String> {
        self.kept.end();
        self.write()
    }

    fn write(&self) -> Result<Vec<String>, String> {
        let _writing = self.writing.lock();
        let number = self.turn.lock().next;
        let mut file = self.files.get(usize::from(number)).ok_or("no file")?;
        let left_out = {
            let _still = self.kept.still();
            file.set_len(0).and_then(|()| file.rewind()).map_err(|e| e.to_string())?;
            export(&self.kernel.vfs, file)?
        };
        let mut turn = self.turn.lock();
        turn.answer = None;
        (self.tell)(number);
        // Without the launcher this process ends.
        while turn.answer.is_none() {
            self.answered.wait(&mut turn);
        }
        if turn.answer == Some(true) {
            turn.next ^= 1;
            Ok(left_out)
        } else {
            Err("the checkpoint was not taken".to_owned())
        }
    }
}
