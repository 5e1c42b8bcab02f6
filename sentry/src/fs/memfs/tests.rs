//! Overlay over a tmpfs: what changes stay above, and names come and go as they should.

use super::content::Bytes;
use super::{FEW_MEMFDS, MemFs, Node};
use crate::fail::{Fail, SysResult};
use crate::vfs::inode::{Inode, NewKind, NewOwner, SetAttr};
use std::sync::Arc;
use syscall_table::errno::Errno;

const OWNER: NewOwner = NewOwner { mode: 0o644, masked: 0, uid: 0, gid: 0 };

fn put(dir: &Arc<dyn Inode>, name: &[u8], data: &[u8]) -> Arc<dyn Inode> {
    let file = dir.create(name, NewKind::File, OWNER).unwrap();
    let node = crate::vfs::inode::downcast::<Node>(&file).unwrap();
    node.content.lock().write(&node.fs, data, 0).unwrap();
    file
}

fn get(file: &Arc<dyn Inode>) -> Vec<u8> {
    let size = usize::try_from(file.attr().unwrap().size).unwrap();
    let mut data = vec![0; size];
    let fd = file.host_file(false).unwrap();
    let got = rustix::io::pread(&fd, &mut data, 0).unwrap();
    data.truncate(got);
    data
}

fn names(dir: &Arc<dyn Inode>) -> Vec<String> {
    let listed = dir.list().unwrap();
    let mut all: Vec<_> = listed.iter().map(|e| String::from_utf8_lossy(&e.name).into_owned()).collect();
    all.sort();
    all
}

fn absent<T>(result: SysResult<T>) -> bool {
    matches!(result, Err(Fail::Error(Errno::ENOENT)))
}

/// Lower: `a`, `b`, `d/x`.
fn overlay() -> (Arc<dyn Inode>, Arc<dyn Inode>) {
    let lower: Arc<dyn Inode> = MemFs::tmpfs(7, 1 << 20, OWNER);
    put(&lower, b"a", b"lower a");
    put(&lower, b"b", b"lower b");
    let dir = lower.create(b"d", NewKind::Dir, OWNER).unwrap();
    put(&dir, b"x", b"lower x");
    let upper: Arc<dyn Inode> = MemFs::overlay(lower.clone(), 1 << 20).unwrap();
    (lower, upper)
}

#[test]
fn copy_up_leaves_the_lower_and_the_number() {
    let (lower, upper) = overlay();
    let dir = upper.lookup_free(b"d").unwrap();
    let file = dir.lookup_free(b"x").unwrap();
    let ino = file.attr().unwrap().ino;
    file.truncate(5).unwrap();
    assert_eq!(get(&file), b"lower");
    file.set_attr(&SetAttr { mode: Some(0o600), ..SetAttr::default() }).unwrap();
    drop((file, dir));
    // The change lasts without anybody holding the nodes.
    let file = upper.lookup_free(b"d").unwrap().lookup_free(b"x").unwrap();
    assert_eq!((file.attr().unwrap().ino, file.attr().unwrap().mode & 0o777), (ino, 0o600));
    assert_eq!(get(&file), b"lower");
    assert_eq!(get(&lower.lookup_free(b"d").unwrap().lookup_free(b"x").unwrap()), b"lower x");
}

#[test]
fn removed_names_stay_removed_and_new_ones_are_empty() {
    let (lower, upper) = overlay();
    let a = upper.lookup_free(b"a").unwrap();
    upper.unlink(b"a", &a).unwrap();
    assert!(absent(upper.lookup_free(b"a")));
    assert_eq!(names(&upper), ["b", "d"]);
    let dir = upper.lookup_free(b"d").unwrap();
    assert_eq!(upper.rmdir(b"d", &dir), Err(Errno::ENOTEMPTY.into()));
    let x = dir.lookup_free(b"x").unwrap();
    dir.unlink(b"x", &x).unwrap();
    upper.rmdir(b"d", &dir).unwrap();
    // A directory made in its place does not show the lower's names.
    let dir = upper.create(b"d", NewKind::Dir, OWNER).unwrap();
    assert!(names(&dir).is_empty() && absent(dir.lookup_free(b"x")));
    upper.rmdir(b"d", &dir).unwrap();
    assert!(absent(upper.lookup_free(b"d")));
    assert_eq!(names(&lower), ["a", "b", "d"]);
}

#[test]
fn directories_move_with_what_is_below() {
    let (_, upper) = overlay();
    let dir = upper.lookup_free(b"d").unwrap();
    upper.rename(b"d", &dir, &upper, b"e", None, false).unwrap();
    assert!(absent(upper.lookup_free(b"d")));
    let x = upper.lookup_free(b"e").unwrap().lookup_free(b"x").unwrap();
    assert_eq!(get(&x), b"lower x");
    let b = upper.lookup_free(b"b").unwrap();
    upper.rename(b"b", &b, &upper.lookup_free(b"e").unwrap(), b"x", Some(&x), false).unwrap();
    assert_eq!(get(&upper.lookup_free(b"e").unwrap().lookup_free(b"x").unwrap()), b"lower b");
    assert_eq!(names(&upper), ["a", "e"]);
}

#[test]
fn room_is_counted_and_given_back() {
    let root: Arc<dyn Inode> = MemFs::tmpfs(8, 1000, OWNER);
    let file = put(&root, b"f", &[1; 900]);
    let node = crate::vfs::inode::downcast::<Node>(&file).unwrap();
    assert_eq!(node.content.lock().write(&node.fs, &[2; 200], 900), Err(Errno::ENOSPC.into()));
    // Overwriting costs nothing.
    assert_eq!(node.content.lock().write(&node.fs, &[2; 200], 100), Ok(200));
    root.unlink(b"f", &file).unwrap();
    drop((node, file));
    put(&root, b"g", &[3; 1000]);
}

#[test]
fn memfds_that_nobody_uses_are_given_up() {
    let root: Arc<dyn Inode> = MemFs::tmpfs(8, 1 << 20, OWNER);
    let used = put(&root, b"used", b"used");
    let held = used.host_file(false).unwrap();
    let files: Vec<_> = (0..3 * FEW_MEMFDS).map(|n| put(&root, n.to_string().as_bytes(), b"text")).collect();
    for file in &files {
        file.host_file(true).unwrap();
    }
    let is_memfd = |file: &Arc<dyn Inode>| {
        let node = crate::vfs::inode::downcast::<Node>(file).unwrap();
        matches!(node.content.lock().bytes, Bytes::Fd(..))
    };
    assert!(files.iter().filter(|file| is_memfd(file)).count() < FEW_MEMFDS);
    assert!(is_memfd(&used) && files.iter().all(|file| get(file) == b"text"));
    drop(held);
}
