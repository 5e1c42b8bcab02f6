//! Several files opened, or directories listed, with one message.

use super::*;

#[test]
fn files_of_a_directory() {
    let dir = Dir::new("many");
    fs::write(dir.path("a"), "first").unwrap();
    fs::write(dir.path("b"), "second").unwrap();
    fs::create_dir(dir.path("sub")).unwrap();
    std::os::unix::fs::symlink("a", dir.path("link")).unwrap();
    let fifo = CString::new(dir.path("fifo").as_os_str().as_bytes()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let (client, root) = open_dir(&dir, false);
    let names: [&[u8]; 6] = [b"sub", b"b", b"none", b"a", b"link", b"fifo"];
    let got = client.open_many(root, &names).unwrap();
    let there: Vec<bool> = got.iter().map(Option::is_some).collect();
    assert_eq!(there, [false, true, false, true, false, false]);
    for (name, (fd, step)) in
        [("b", &got[1]), ("a", &got[3])].map(|(name, got)| (name, got.as_ref().unwrap()))
    {
        let ino = fs::metadata(dir.path(name)).unwrap().ino();
        assert_eq!((step.attr.ino, rustix::fs::fstat(fd).unwrap().st_ino), (ino, ino), "{name}");
        assert_eq!(client.getattr(step.node).unwrap().ino, ino);
        // For reading alone.
        assert_eq!(rustix::io::write(fd, b"x"), Err(rustix::io::Errno::BADF));
    }
    let mut got = got.into_iter().flatten();
    assert_eq!(read_all(got.next().unwrap().0), b"second");
    assert_eq!(read_all(got.next().unwrap().0), b"first");
}

#[test]
fn hostile_requests() {
    let dir = Dir::new("many-hostile");
    fs::create_dir_all(dir.path("home/.ssh")).unwrap();
    fs::write(dir.path("home/.ssh/key"), "secret").unwrap();
    fs::write(dir.path("home/key"), "also secret").unwrap();
    fs::write(dir.path("home/plain"), "plain").unwrap();
    std::os::unix::fs::symlink(".ssh", dir.path("home/way")).unwrap();
    let base = dir.0.to_str().unwrap();
    let rule = |path: &str| HideRule { rule: "hidden".into(), path: format!("{base}/{path}") };
    let hide = vec![rule("home/.ssh"), rule("home/key")];
    let client = serve(vec![mount(&dir.0, false)], hide, 8, false);
    let root = client.attach(0).unwrap().root.node;
    let home = client.lookup(root, b"home").unwrap().node;
    // A link of the host's to a hidden file is known by its inode.
    fs::hard_link(dir.path("home/key"), dir.path("home/other")).unwrap();
    let got = client.open_many(home, &[b"key", b"other", b"plain", b"way", b".ssh"]).unwrap();
    let there: Vec<bool> = got.iter().map(Option::is_some).collect();
    assert_eq!(there, [false, false, true, false, false]);

    for bad in [b"".as_slice(), b".", b"..", b"a/b", b"../home/key", b"a\0"] {
        assert_eq!(errno(client.open_many(home, &[b"plain", bad])), libc::EINVAL, "{bad:?}");
    }
    let many = vec![b"plain".as_slice(); MAX_OPEN + 1];
    assert_eq!(errno(client.open_many(home, &many)), libc::EINVAL);
    assert_eq!(errno(client.open_many(NodeId(999), &[b"plain"])), libc::ESTALE);
    let plain = got.into_iter().flatten().next().unwrap().1.node;
    assert_eq!(errno(client.open_many(plain, &[b"x"])), libc::ENOTDIR);
    // There is room for eight nodes: what has none has no descriptor either.
    let got = client.open_many(home, &[b"plain".as_slice(); 10]).unwrap();
    assert_eq!(got.iter().flatten().count(), 5);
    assert!(client.open_many(home, &[]).unwrap().is_empty());
}

#[test]
fn lists_of_directories() {
    let dir = Dir::new("lists");
    let secret = "home/.ssh";
    fs::create_dir_all(dir.path(secret)).unwrap();
    for (name, files) in [("home/few", 3), ("home/many", 400), ("home/more", 300), ("home/none", 0)] {
        fs::create_dir(dir.path(name)).unwrap();
        for file in 0..files {
            fs::write(dir.path(name).join(format!("file-{file}")), "x").unwrap();
        }
    }
    std::os::unix::fs::symlink("few", dir.path("home/way")).unwrap();
    let base = dir.0.to_str().unwrap();
    let hide = vec![HideRule { rule: "hidden".into(), path: format!("{base}/{secret}") }];
    let client = serve(vec![mount(&dir.0, false)], hide, 100, false);
    let home = client.lookup(client.attach(0).unwrap().root.node, b"home").unwrap().node;
    let names: [&[u8]; 7] = [b"few", b".ssh", b"way", b"nowhere", b"none", b"many", b"more"];
    let got = client.list_many(home, &names).unwrap();
    let sizes: Vec<_> = got.iter().map(|it| it.as_ref().map(|(_, page)| page.entries.len())).collect();
    // The last does not fit any more.
    assert_eq!(sizes[..5], [Some(3), None, None, None, Some(0)]);
    assert!(sizes[5].is_some_and(|size| size > 100) && sizes[6].is_none(), "{sizes:?}");
    let (step, page) = got.into_iter().next().flatten().unwrap();
    assert_eq!(step.attr.ino, fs::metadata(dir.path("home/few")).unwrap().ino());
    assert!(page.next.is_none() && page.entries.iter().all(|entry| entry.attr.unwrap().size == 1));
    // It goes on as any other list does.
    let (step, page) = client.list_many(home, &[b"many"]).unwrap().pop().flatten().unwrap();
    let rest = page.next.map_or(0, |next| client.read_dir(step.node, next, true).unwrap().entries.len());
    assert_eq!(page.entries.len() + rest, 400);
    assert_eq!(errno(client.list_many(home, &[b".."])), libc::EINVAL);
    assert_eq!(errno(client.list_many(home, &[b"few".as_slice(); MAX_OPEN + 1])), libc::EINVAL);
}

#[test]
fn which_have_attributes() {
    let dir = Dir::new("xattrs");
    for name in ["with", "without", "hidden"] {
        fs::write(dir.path(name), "").unwrap();
    }
    std::os::unix::fs::symlink("with", dir.path("link")).unwrap();
    fs::hard_link(dir.path("hidden"), dir.path("other")).unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(dir.path("with"), "user.x", b"1", flags).expect("a file system with attributes");
    let base = dir.0.to_str().unwrap();
    let hide = vec![HideRule { rule: "hidden".into(), path: format!("{base}/hidden") }];
    let client = serve(vec![mount(&dir.0, false)], hide, 100, false);
    let root = client.attach(0).unwrap().root.node;
    let names: [&[u8]; 6] = [b"without", b"with", b"hidden", b"nowhere", b"link", b"other"];
    // What cannot be told is asked for by itself; a link is not followed.
    assert_eq!(client.have_xattrs(root, &names).unwrap(), [false, true, true, true, false, true]);
    assert_eq!(errno(client.have_xattrs(root, &[b"a/b"])), libc::EINVAL);
    assert_eq!(errno(client.have_xattrs(root, &[b"with".as_slice(); MAX_NAMES + 1])), libc::EINVAL);
}
