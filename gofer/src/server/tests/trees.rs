//! Trees as an adversary makes them: deep paths, odd names, directories that are replaced while they are used.

use super::*;

#[test]
fn a_path_of_4095_bytes_is_walked_name_by_name() {
    let dir = Dir::new("deep");
    let (client, root) = open_dir(&dir, true);
    // 4,095 bytes with the slashes between: 15 names of 255 and one that fills the rest, with newlines and other bytes in it.
    let long = [&b"\n\xff\x01 "[..], &[b'n'; 251]].concat();
    let last = vec![b'\n'; 4095 - 15 * 256];
    let mut names: Vec<&[u8]> = vec![&long; 15];
    names.push(&last);
    let mut at = root;
    for name in &names {
        at = client.mkdir(at, name, new(0o755)).unwrap().node;
    }
    client.create(at, b"f", new(0o644), BOTH).unwrap();
    let walk = client.walk(root, &names, None).unwrap();
    assert_eq!((walk.steps.len(), walk.end), (16, WalkEnd::Complete));
    let file = client.walk(walk.steps[15].node, &[b"f"], Some(READ)).unwrap();
    assert!(matches!(file.file, Some(Ok(_))));
    let page = client.read_dir(root, 0, true).unwrap();
    assert_eq!(page.entries[0].name.0, long);
    let longer = vec![b'n'; 256];
    assert_eq!(errno(client.mkdir(root, &longer, new(0o755))), libc::ENAMETOOLONG);
}

#[test]
fn a_directory_that_is_replaced_stays_the_one_it_was() {
    let dir = Dir::new("replaced");
    for path in ["export/a/in", "secret"] {
        fs::create_dir_all(dir.path(path)).unwrap();
    }
    fs::write(dir.path("export/a/in/f"), "mine").unwrap();
    fs::write(dir.path("secret/f"), "secret").unwrap();
    let client = serve(vec![mount(&dir.path("export"), true)], Vec::new(), 1000, false);
    let root = client.attach(0).unwrap().root.node;
    let a = client.lookup(root, b"a").unwrap().node;
    let inner = client.lookup(a, b"in").unwrap().node;
    // Moved out of the mount, with another, then a link to one, in its place.
    fs::rename(dir.path("export/a"), dir.path("moved")).unwrap();
    fs::rename(dir.path("secret"), dir.path("export/a")).unwrap();
    let (fd, _) = client.walk(inner, &[b"f"], Some(READ)).map(|w| (w.file.unwrap().unwrap(), ())).unwrap();
    assert_eq!(read_all(fd), b"mine");
    client.create(inner, b"new", new(0o644), BOTH).unwrap();
    assert!(dir.path("moved/in/new").exists() && !dir.path("export/a/new").exists());
    fs::rename(dir.path("export/a"), dir.path("secret")).unwrap();
    std::os::unix::fs::symlink("../secret", dir.path("export/a")).unwrap();
    let walk = client.walk(root, &[b"a", b"f"], Some(READ)).unwrap();
    assert_eq!(walk.end, WalkEnd::Stopped);
    assert!(walk.file.is_none());
    // Gone altogether: what is held stays, nothing can be made in it.
    fs::remove_dir_all(dir.path("moved")).unwrap();
    assert_eq!(errno(client.create(inner, b"late", new(0o644), BOTH)), libc::ENOENT);
    assert_eq!(errno(client.lookup(inner, b"f")), libc::ENOENT);
    assert!(client.read_dir(inner, 0, true).unwrap().entries.is_empty());
}

#[test]
fn a_full_disk_is_said() {
    // RLIMIT_FSIZE would end this process: a small tmpfs needs root and a mount namespace.
    let mounted = dir_on_small_disk();
    let Some(dir) = mounted else { return };
    let (client, root) = open_dir(&dir, true);
    let (fd, _) = client.create(root, b"f", new(0o644), BOTH).unwrap();
    let file = fs::File::from(fd);
    let written = file.write_all_at(&vec![1; 1 << 20], 0);
    assert_eq!(host_errno(written), libc::ENOSPC);
    assert_eq!(client.statfs(root).unwrap().bfree, 0);
    let long = vec![b't'; 4000];
    assert_eq!(errno(client.symlink(root, b"l", &long, None)), libc::ENOSPC);
    assert_eq!(errno(client.lookup(root, b"l")), libc::ENOENT);
    let _ = rustix::mount::unmount(&dir.0, rustix::mount::UnmountFlags::DETACH);
}

/// A tmpfs of 64 KiB, if this process may mount one.
fn dir_on_small_disk() -> Option<Dir> {
    let dir = Dir::new("full");
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("none", &dir.0, "tmpfs", flags, Some(c"size=64k")).ok().map(|()| dir)
}

/// A mount of 100,000 files, newlines and other bytes in their names: each is listed once and found by its name.
#[test]
fn a_mount_of_100000_files() {
    let dir = Dir::new("hundred-thousand");
    let name = |i: u32| match i % 4 {
        0 => format!("plain-{i}").into_bytes(),
        1 => format!("two\nlines-{i}\n").into_bytes(),
        2 => [b"\xff\xfe-".as_slice(), i.to_string().as_bytes()].concat(),
        _ => format!(" -rf {i} \t\x1b[31m").into_bytes(),
    };
    let path = |i| dir.path("").join(std::ffi::OsStr::from_bytes(&name(i)));
    const COUNT: u32 = 100_000;
    for i in 0..COUNT {
        // Names alone: links cost the host less than files.
        match i % 1000 {
            0 => drop(fs::write(path(i), i.to_string())),
            _ => drop(fs::hard_link(path(i - i % 1000), path(i))),
        }
    }
    let (client, root) = open_dir(&dir, false);
    let (entries, time) = listing(&client, root);
    let mut got: Vec<Vec<u8>> = entries.into_iter().map(|entry| entry.name.0).collect();
    let mut want: Vec<Vec<u8>> = (0..COUNT).map(name).collect();
    got.sort();
    want.sort();
    assert!(got == want, "{} names listed", got.len());
    for i in (0..COUNT).step_by(997) {
        let node = client.lookup(root, &name(i)).unwrap().node;
        let flags = OpenFlags { read: true, ..Default::default() };
        assert_eq!(read_all(client.open(node, flags).unwrap().0), (i - i % 1000).to_string().into_bytes());
        client.forget(&[node]).unwrap();
    }
    eprintln!("{COUNT} names in {time:?}");
}
