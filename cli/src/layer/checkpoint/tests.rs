//! Runs that end in every way leave a directory that the next one puts right.

use super::*;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> (Place, OwnedFd) {
        let path = std::env::temp_dir().join(format!("lazaret-checkpoint.{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let dir = OwnedFd::from(File::open(&path).unwrap());
        (Place(path), dir)
    }

    fn names(&self) -> usize {
        fs::read_dir(&self.0).unwrap().count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes an archive with one file to the checkpoint's file of this number.
fn write(checkpoint: &Checkpoint, number: usize, file: &str, text: &str) {
    let mut to = File::from(checkpoint.files[number].try_clone().unwrap());
    to.set_len(0).unwrap();
    std::io::Seek::rewind(&mut to).unwrap();
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_uid(rustix::process::getuid().as_raw().into());
    header.set_gid(rustix::process::getgid().as_raw().into());
    header.set_entry_type(tar::EntryType::Regular);
    tar.append_data(&mut header, file, text.as_bytes()).unwrap();
    to.write_all(&tar.into_inner().unwrap()).unwrap();
}

#[test]
fn a_killed_run_is_taken_by_the_next() {
    let (place, dir) = Place::new("killed");
    let run = Checkpoint::new(&dir).unwrap();
    write(&run, 0, "a", "first");
    assert!(run.take(0));
    write(&run, 1, "a", "second");
    assert!(run.take(1));
    // This one was not finished.
    write(&run, 0, "a", "third");
    // It is there: others let it be.
    assert!(recover(&dir).unwrap().is_empty());
    assert!(!place.0.join("a").exists());
    drop(run);
    assert_eq!(recover(&dir).unwrap().len(), 1);
    assert_eq!(fs::read_to_string(place.0.join("a")).unwrap(), "second");
    assert_eq!(place.names(), 1);
    assert!(recover(&dir).unwrap().is_empty());
}

#[test]
fn nothing_is_taken_of_a_run_without_a_checkpoint() {
    let (place, dir) = Place::new("early");
    let run = Checkpoint::new(&dir).unwrap();
    write(&run, 0, "a", "first");
    drop(run);
    assert!(recover(&dir).unwrap().is_empty());
    assert_eq!(place.names(), 0);
}

#[test]
fn an_end_leaves_no_names() {
    let (place, dir) = Place::new("end");
    let run = Checkpoint::new(&dir).unwrap();
    write(&run, 0, "a", "first");
    assert!(run.take(0) && !run.take(2));
    assert!(run.apply().unwrap().is_empty());
    run.remove();
    assert_eq!(place.names(), 1);
}

#[test]
fn an_archive_that_is_cut_stays_for_who_looks_after_it() {
    let (place, dir) = Place::new("cut");
    let run = Checkpoint::new(&dir).unwrap();
    write(&run, 0, "a", &"text".repeat(1000));
    run.files[0].try_clone().map(File::from).unwrap().set_len(1500).unwrap();
    assert!(run.take(0));
    drop(run);
    assert!(recover(&dir).unwrap()[0].contains("cannot be applied"));
    assert!(place.names() > 0);
}
