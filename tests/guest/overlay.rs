//! Files of a layer below, changed: copying up, whiteouts, opaque directories, renames, links.
//!
//! `guest overlay_trees DIR` makes the trees; with `$GUEST_TREES` the cases find theirs there, made before by somebody else (so
//! inside they are the host's files beneath the upper layer), without it they make their own.

use guest_tests::space::is_root;
use guest_tests::*;
use libc::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

cases![
    overlay_chmod, overlay_chown, overlay_write, overlay_open_before, overlay_truncate, overlay_large_file, overlay_times, overlay_unlink,
    overlay_unlink_open, overlay_remade_as_other, overlay_rmdir, overlay_opaque, overlay_rename_file, overlay_rename_dir,
    overlay_rename_dir_over, overlay_rename_flags, overlay_exchange, overlay_whiteout_flag, overlay_links, overlay_link_names,
    overlay_mapped, overlay_mapped_private, overlay_tmpfile, overlay_xattr, overlay_xattr_removed, overlay_statx, overlay_symlink,
    overlay_fifo, overlay_readdir, overlay_gone_dir, overlay_set_user_id, overlay_deep, overlay_sync
];

/// Larger than what is kept as bytes.
const LARGE: usize = 2 << 20;

fn byte(at: usize) -> u8 {
    (at % 251) as u8
}

fn make(dir: &Path) {
    let put = |name: &str, text: &[u8]| fs::write(dir.join(name), text).expect("write");
    fs::create_dir_all(dir.join("d/sub")).expect("mkdir");
    fs::create_dir_all(dir.join("d/empty")).expect("mkdir");
    fs::create_dir_all(dir.join("x")).expect("mkdir");
    for (name, text) in [("f", "lower\n"), ("g", "other\n"), ("d/a", "a"), ("d/b", "b"), ("d/sub/deep", "deep"), ("x/keep", "k")] {
        put(name, text.as_bytes());
    }
    put("large", &(0..LARGE).map(byte).collect::<Vec<_>>());
    put("h1", b"linked");
    fs::hard_link(dir.join("h1"), dir.join("h2")).expect("link");
    std::os::unix::fs::symlink("f", dir.join("l")).expect("symlink");
    put("su", b"#!/bin/true\n");
    fs::set_permissions(dir.join("su"), fs::Permissions::from_mode(0o4755)).expect("chmod");
    ok(sys!(SYS_mknod, cstr(dir.join("ff").to_str().expect("a name")), S_IFIFO | 0o644, 0));
    let f = cstr(dir.join("f").to_str().expect("a name"));
    for (name, value) in [(c"user.a", b"1"), (c"user.b", b"2")] {
        // A file system without such makes the cases that need them skip.
        sys!(SYS_setxattr, f, name, value, 1, 0);
    }
}

/// Makes a tree for each case.
pub fn trees(args: &[String]) -> i32 {
    for case in CASES {
        make(&Path::new(&args[0]).join(case.name));
    }
    0
}

struct Tree {
    at: PathBuf,
    _own: Option<Tmp>,
}

impl Tree {
    fn new(case: &str) -> Tree {
        if let Some(trees) = std::env::var_os("GUEST_TREES") {
            return Tree { at: Path::new(&trees).join(case), _own: None };
        }
        let own = Tmp::new();
        let at = Path::new(own.dir()).join("tree");
        make(&at);
        Tree { at, _own: Some(own) }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.at.join(name)
    }

    fn c(&self, name: &str) -> &'static std::ffi::CStr {
        cstr(self.at(name).to_str().expect("a name"))
    }

    #[track_caller]
    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.at(name)).expect("read")).into_owned()
    }

    #[track_caller]
    fn stat(&self, name: &str) -> fs::Metadata {
        fs::symlink_metadata(self.at(name)).expect("stat")
    }

    fn ino(&self, name: &str) -> (u64, u64) {
        let stat = self.stat(name);
        (stat.dev(), stat.ino())
    }

    #[track_caller]
    fn gone(&self, name: &str) {
        err(sys!(SYS_faccessat2, AT_FDCWD, self.c(name), F_OK, AT_SYMLINK_NOFOLLOW), ENOENT);
    }

    /// Names of a directory, each once, with their inode numbers as stat(2) has them.
    #[track_caller]
    fn names(&self, dir: &str) -> Vec<String> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(self.at(dir)).expect("readdir") {
            let entry = entry.expect("entry");
            let name = entry.file_name().into_string().expect("a name");
            let stat = self.stat(&format!("{dir}/{name}"));
            eq(entry.ino(), stat.ino());
            eq(entry.file_type().expect("type"), stat.file_type());
            check(names.insert(name.clone(), ()).is_none(), &format!("{name} once"));
        }
        names.into_keys().collect()
    }

    fn rename(&self, from: &str, to: &str, flags: u32) -> i64 {
        sys!(SYS_renameat2, AT_FDCWD, self.c(from), AT_FDCWD, self.c(to), flags)
    }

    fn attr(&self, name: &str, attr: &std::ffi::CStr) -> Result<String, i64> {
        let mut value = [0u8; 64];
        match sys!(SYS_lgetxattr, self.c(name), attr, &mut value, value.len()) {
            n if n < 0 => Err(-n),
            n => Ok(String::from_utf8_lossy(&value[..n as usize]).into_owned()),
        }
    }

    fn attrs(&self, name: &str) -> Vec<String> {
        let mut list = [0u8; 1024];
        let n = ok(sys!(SYS_llistxattr, self.c(name), &mut list, list.len())) as usize;
        let mut names: Vec<String> = list[..n]
            .split(|b| *b == 0)
            .filter(|n| n.starts_with(b"user."))
            .map(|n| String::from_utf8_lossy(n).into_owned())
            .collect();
        names.sort();
        names
    }
}

fn overlay_chmod() {
    let t = Tree::new("overlay_chmod");
    let (before, dir) = (t.stat("large"), t.stat("d"));
    ok(sys!(SYS_chmod, t.c("large"), 0o600));
    let after = t.stat("large");
    eq((after.dev(), after.ino(), after.mode()), (before.dev(), before.ino(), S_IFREG | 0o600));
    eq((after.size(), after.mtime(), after.mtime_nsec()), (before.size(), before.mtime(), before.mtime_nsec()));
    check((after.ctime(), after.ctime_nsec()) > (before.ctime(), before.ctime_nsec()), "a later change");
    eq(fs::read(t.at("large")).expect("read").iter().enumerate().filter(|(i, b)| byte(*i) != **b).count(), 0);
    ok(sys!(SYS_chmod, t.c("d"), 0o700));
    eq((t.stat("d").ino(), t.stat("d").mode(), t.stat("d").mtime()), (dir.ino(), S_IFDIR | 0o700, dir.mtime()));
    eq(t.names("d"), ["a", "b", "empty", "sub"]);
}

fn overlay_chown() {
    let t = Tree::new("overlay_chown");
    let before = t.stat("f");
    ok(sys!(SYS_lchown, t.c("f"), before.uid(), before.gid()));
    eq((t.ino("f"), t.text("f").as_str()), ((before.dev(), before.ino()), "lower\n"));
    if is_root() {
        ok(sys!(SYS_lchown, t.c("l"), 12, 34));
        eq((t.stat("l").uid(), t.stat("l").gid(), t.stat("f").uid()), (12, 34, before.uid()));
        ok(sys!(SYS_chown, t.c("su"), 12, 34));
        eq(t.stat("su").mode() & 0o7777, 0o755);
    }
}

fn overlay_write() {
    let t = Tree::new("overlay_write");
    let before = t.stat("f");
    let mut file = fs::File::options().append(true).open(t.at("f")).expect("open");
    eq(file.metadata().expect("stat").ino(), before.ino());
    file.write_all(b"more\n").expect("write");
    let after = t.stat("f");
    eq((after.dev(), after.ino(), after.size(), after.mode()), (before.dev(), before.ino(), 11, before.mode()));
    eq(t.text("f"), "lower\nmore\n");
    check(after.mtime() >= before.mtime() && after.ctime() >= before.ctime(), "later");
    eq(t.text("l"), "lower\nmore\n");
}

fn overlay_open_before() {
    let t = Tree::new("overlay_open_before");
    let mut early = fs::File::open(t.at("f")).expect("open");
    let mut other = fs::File::options().write(true).open(t.at("f")).expect("open");
    other.write_all(b"UPPER").expect("write");
    let mut text = String::new();
    early.read_to_string(&mut text).expect("read");
    eq(text, "UPPER\n");
    eq(early.metadata().expect("stat").ino(), other.metadata().expect("stat").ino());
    other.set_len(0).expect("truncate");
    early.rewind().expect("seek");
    eq(early.read(&mut [0; 4]).expect("read"), 0);
    // A description made for reading stays one.
    err(sys!(SYS_write, early.as_raw_fd(), b"x", 1), EBADF);
}

fn overlay_truncate() {
    let t = Tree::new("overlay_truncate");
    let (f, g) = (t.ino("f"), t.ino("g"));
    ok(sys!(SYS_truncate, t.c("f"), 3));
    eq((t.text("f").as_str(), t.ino("f")), ("low", f));
    ok(sys!(SYS_truncate, t.c("f"), 5));
    eq(t.text("f"), "low\0\0");
    fs::File::options().write(true).truncate(true).open(t.at("g")).expect("open");
    eq((t.text("g").as_str(), t.ino("g")), ("", g));
    let file = fs::File::options().write(true).open(t.at("d/a")).expect("open");
    ok(sys!(SYS_fallocate, file.as_raw_fd(), 0, 0, 10));
    eq(t.text("d/a"), "a\0\0\0\0\0\0\0\0\0");
}

fn overlay_large_file() {
    let t = Tree::new("overlay_large_file");
    let file = fs::File::options().read(true).write(true).open(t.at("large")).expect("open");
    eq(sys!(SYS_pwrite64, file.as_raw_fd(), b"#", 1, 1_000_000), 1);
    let all = fs::read(t.at("large")).expect("read");
    let odd: Vec<usize> = (0..LARGE).filter(|i| all[*i] != byte(*i)).collect();
    eq((all.len(), odd), (LARGE, vec![1_000_000]));
    ok(sys!(SYS_ftruncate, file.as_raw_fd(), 100));
    ok(sys!(SYS_ftruncate, file.as_raw_fd(), 1000));
    let all = fs::read(t.at("large")).expect("read");
    eq((all.len(), all[99], all[100]), (1000, byte(99), 0));
}

fn overlay_times() {
    let t = Tree::new("overlay_times");
    let ino = t.ino("f");
    let times = [timespec { tv_sec: 1, tv_nsec: 2 }, timespec { tv_sec: 3, tv_nsec: 4 }];
    ok(sys!(SYS_utimensat, AT_FDCWD, t.c("f"), &times, 0));
    let s = t.stat("f");
    eq((s.atime(), s.atime_nsec(), s.mtime(), s.mtime_nsec()), (1, 2, 3, 4));
    eq((t.ino("f"), t.text("f").as_str()), (ino, "lower\n"));
    ok(sys!(SYS_utimensat, AT_FDCWD, t.c("l"), &times, AT_SYMLINK_NOFOLLOW));
    eq((t.stat("l").mtime(), fs::read_link(t.at("l")).expect("link")), (3, PathBuf::from("f")));
}

fn overlay_unlink() {
    let t = Tree::new("overlay_unlink");
    ok(sys!(SYS_unlink, t.c("f")));
    t.gone("f");
    err(sys!(SYS_open, t.c("l"), O_RDONLY), ENOENT);
    err(sys!(SYS_unlink, t.c("f")), ENOENT);
    check(!t.names(".").contains(&"f".to_owned()), "no name in the list");
    let file = fs::File::options().write(true).create_new(true).mode(0o640).open(t.at("f")).expect("create");
    eq((t.text("f").as_str(), t.attrs("f")), ("", vec![]));
    eq(file.metadata().expect("stat").nlink(), 1);
    ok(sys!(SYS_unlink, t.c("f")));
    t.gone("f");
    check(t.names(".").contains(&"g".to_owned()), "others stay");
}

fn overlay_unlink_open() {
    let t = Tree::new("overlay_unlink_open");
    let mut read = fs::File::open(t.at("f")).expect("open");
    let both = fs::File::options().read(true).write(true).open(t.at("g")).expect("open");
    ok(sys!(SYS_unlink, t.c("f")));
    ok(sys!(SYS_unlink, t.c("g")));
    eq((read.metadata().expect("stat").nlink(), both.metadata().expect("stat").nlink()), (0, 0));
    let mut text = String::new();
    read.read_to_string(&mut text).expect("read");
    eq(text, "lower\n");
    eq(sys!(SYS_pwrite64, both.as_raw_fd(), b"OTH", 3, 0), 3);
    let mut b = [0u8; 16];
    eq(sys!(SYS_pread64, both.as_raw_fd(), &mut b, 16, 0), 6);
    eq(&b[..6], b"OTHer\n");
    ok(sys!(SYS_fchmod, read.as_raw_fd(), 0o600));
    eq(read.metadata().expect("stat").mode(), S_IFREG | 0o600);
    t.gone("f");
    fs::write(t.at("g"), "new").expect("write");
    eq(sys!(SYS_pread64, both.as_raw_fd(), &mut b, 16, 0), 6);
    // A name cannot be given back to what lost its last one.
    let path = cstr(format!("/proc/self/fd/{}", both.as_raw_fd()));
    err(sys!(SYS_linkat, AT_FDCWD, path, AT_FDCWD, t.c("back"), AT_SYMLINK_FOLLOW), ENOENT);
}

fn overlay_remade_as_other() {
    let t = Tree::new("overlay_remade_as_other");
    ok(sys!(SYS_unlink, t.c("f")));
    ok(sys!(SYS_mkdir, t.c("f"), 0o755));
    eq(t.names("f"), Vec::<String>::new());
    fs::write(t.at("f/in"), "in").expect("write");
    err(sys!(SYS_rmdir, t.c("f")), ENOTEMPTY);
    err(sys!(SYS_unlink, t.c("f")), EISDIR);
    ok(sys!(SYS_unlink, t.c("f/in")));
    ok(sys!(SYS_rmdir, t.c("f")));
    t.gone("f");
    ok(sys!(SYS_symlink, c"g", t.c("f")));
    eq(t.text("f"), "other\n");
    fs::remove_dir_all(t.at("d")).expect("remove");
    fs::write(t.at("d"), "file").expect("write");
    eq(t.text("d"), "file");
    err(sys!(SYS_open, t.c("d/a"), O_RDONLY), ENOTDIR);
}

fn overlay_rmdir() {
    let t = Tree::new("overlay_rmdir");
    err(sys!(SYS_rmdir, t.c("d")), ENOTEMPTY);
    ok(sys!(SYS_rmdir, t.c("d/empty")));
    for name in ["d/a", "d/b", "d/sub/deep"] {
        ok(sys!(SYS_unlink, t.c(name)));
        err(sys!(SYS_rmdir, t.c("d")), ENOTEMPTY);
    }
    ok(sys!(SYS_rmdir, t.c("d/sub")));
    eq(t.names("d"), Vec::<String>::new());
    fs::write(t.at("d/new"), "").expect("write");
    err(sys!(SYS_rmdir, t.c("d")), ENOTEMPTY);
    ok(sys!(SYS_unlink, t.c("d/new")));
    ok(sys!(SYS_rmdir, t.c("d")));
    t.gone("d");
    err(sys!(SYS_rmdir, t.c("d")), ENOENT);
}

fn overlay_opaque() {
    let t = Tree::new("overlay_opaque");
    fs::remove_dir_all(t.at("d")).expect("remove");
    ok(sys!(SYS_mkdir, t.c("d"), 0o750));
    eq((t.names("d"), t.stat("d").mode()), (vec![], S_IFDIR | 0o750));
    t.gone("d/a");
    t.gone("d/sub");
    fs::write(t.at("d/a"), "mine").expect("write");
    ok(sys!(SYS_mkdir, t.c("d/sub"), 0o755));
    eq((t.names("d"), t.names("d/sub"), t.text("d/a").as_str()), (vec!["a".into(), "sub".into()], vec![], "mine"));
    t.gone("d/sub/deep");
    fs::remove_dir_all(t.at("d")).expect("remove");
    t.gone("d");
    ok(sys!(SYS_mkdir, t.c("d"), 0o755));
    eq(t.names("d"), Vec::<String>::new());
}

fn overlay_rename_file() {
    let t = Tree::new("overlay_rename_file");
    let (f, g) = (t.ino("f"), t.ino("g"));
    eq(t.rename("f", "new", 0), 0);
    t.gone("f");
    eq((t.ino("new"), t.text("new").as_str()), (f, "lower\n"));
    eq(t.rename("new", "g", 0), 0);
    eq((t.ino("g"), t.text("g").as_str()), (f, "lower\n"));
    check(f != g, "two files");
    eq(t.rename("g", "x/keep", 0), 0);
    eq((t.text("x/keep").as_str(), t.names("x")), ("lower\n", vec!["keep".to_owned()]));
    err(t.rename("x/keep", "d", 0), EISDIR);
    err(t.rename("d", "x/keep", 0), ENOTDIR);
    err(t.rename("f", "back", 0), ENOENT);
    eq(t.rename("x/keep", "f", 0), 0);
    eq((t.ino("f"), t.names("x")), (f, vec![]));
    ok(sys!(SYS_rmdir, t.c("x")));
}

fn overlay_rename_dir() {
    let t = Tree::new("overlay_rename_dir");
    let (d, a, deep) = (t.ino("d"), t.ino("d/a"), t.ino("d/sub/deep"));
    fs::write(t.at("d/new"), "new").expect("write");
    ok(sys!(SYS_unlink, t.c("d/b")));
    let held = fs::File::open(t.at("d/sub")).expect("open");
    eq(t.rename("d", "e", 0), 0);
    t.gone("d");
    eq((t.ino("e"), t.ino("e/a"), t.ino("e/sub/deep")), (d, a, deep));
    eq(t.names("e"), ["a", "empty", "new", "sub"]);
    eq((t.text("e/sub/deep").as_str(), t.text("e/new").as_str()), ("deep", "new"));
    ok(sys!(SYS_mkdir, t.c("d"), 0o755));
    eq(t.names("d"), Vec::<String>::new());
    eq(t.rename("e", "x/e", 0), 0);
    fs::write(t.at("x/e/sub/deep"), "changed").expect("write");
    eq((t.text("x/e/sub/deep").as_str(), t.ino("x/e/sub/deep")), ("changed", deep));
    let fd = ok(sys!(SYS_openat, held.as_raw_fd(), c"../a", O_RDONLY)) as i32;
    eq(stat_fd(fd).st_ino, a.1);
    shut([fd]);
    // Below itself it cannot go.
    err(t.rename("x", "x/e/sub/x", 0), EINVAL);
    err(t.rename("x/e", "x/e/e", 0), EINVAL);
}

fn overlay_rename_dir_over() {
    let t = Tree::new("overlay_rename_dir_over");
    let sub = t.ino("d/sub");
    err(t.rename("d/sub", "x", 0), ENOTEMPTY);
    eq(t.rename("d/sub", "d/empty", 0), 0);
    eq((t.ino("d/empty"), t.names("d")), (sub, vec!["a".into(), "b".into(), "empty".into()]));
    eq(t.names("d/empty"), ["deep"]);
    // One whose names are all gone is empty.
    ok(sys!(SYS_unlink, t.c("x/keep")));
    eq(t.rename("d/empty", "x", 0), 0);
    eq((t.ino("x"), t.names("x"), t.text("x/deep").as_str()), (sub, vec!["deep".to_owned()], "deep"));
    ok(sys!(SYS_mkdir, t.c("m"), 0o755));
    eq(t.rename("m", "n", 0), 0);
    err(t.rename("n", "x", 0), ENOTEMPTY);
}

fn overlay_rename_flags() {
    let t = Tree::new("overlay_rename_flags");
    err(t.rename("f", "g", RENAME_NOREPLACE), EEXIST);
    err(t.rename("d", "x", RENAME_NOREPLACE), EEXIST);
    err(t.rename("f", "f", RENAME_NOREPLACE), EEXIST);
    err(t.rename("none", "g", RENAME_NOREPLACE), ENOENT);
    err(t.rename("f", "new", RENAME_EXCHANGE), ENOENT);
    err(t.rename("f", "g", RENAME_EXCHANGE | RENAME_NOREPLACE), EINVAL);
    err(t.rename("f", "g", RENAME_EXCHANGE | RENAME_WHITEOUT), EINVAL);
    err(t.rename("f", "g", 8), EINVAL);
    eq((t.text("f").as_str(), t.text("g").as_str()), ("lower\n", "other\n"));
    eq(t.rename("f", "new", RENAME_NOREPLACE), 0);
    eq(t.text("new"), "lower\n");
    ok(sys!(SYS_unlink, t.c("g")));
    eq(t.rename("new", "g", RENAME_NOREPLACE), 0);
    eq(t.text("g"), "lower\n");
}

fn overlay_exchange() {
    let t = Tree::new("overlay_exchange");
    let (f, g, d, a, x) = (t.ino("f"), t.ino("g"), t.ino("d"), t.ino("d/a"), t.ino("x"));
    eq(t.rename("f", "g", RENAME_EXCHANGE), 0);
    eq((t.ino("f"), t.ino("g"), t.text("f").as_str(), t.text("g").as_str()), (g, f, "other\n", "lower\n"));
    eq(t.rename("d", "x", RENAME_EXCHANGE), 0);
    eq((t.ino("x"), t.ino("d"), t.ino("x/a"), t.names("d")), (d, x, a, vec!["keep".to_owned()]));
    eq(t.rename("x", "f", RENAME_EXCHANGE), 0);
    eq((t.ino("f"), t.text("x").as_str(), t.names("f")), (d, "other\n", vec!["a".into(), "b".into(), "empty".into(), "sub".into()]));
    eq(t.rename("f/a", "f/sub", RENAME_EXCHANGE), 0);
    eq((t.text("f/sub").as_str(), t.text("f/a/deep").as_str()), ("a", "deep"));
    err(t.rename("f", "f/a", RENAME_EXCHANGE), EINVAL);
    eq(t.rename("l", "ff", RENAME_EXCHANGE), 0);
    check(t.stat("l").file_type().is_fifo() && t.stat("ff").file_type().is_symlink(), "exchanged");
}

fn overlay_whiteout_flag() {
    let t = Tree::new("overlay_whiteout_flag");
    let r = t.rename("f", "new", RENAME_WHITEOUT);
    if r == -i64::from(EINVAL) || r == -i64::from(EPERM) {
        eq(t.text("f"), "lower\n");
        skip("the file system or the user may not");
    }
    ok(r);
    eq((t.text("new").as_str(), t.stat("f").mode() & S_IFMT, t.stat("f").rdev()), ("lower\n", S_IFCHR, 0));
}

/// All names of a file show one file, whichever it is changed by.
fn overlay_links() {
    let t = Tree::new("overlay_links");
    let ino = t.ino("h1");
    eq((t.ino("h2"), t.stat("h1").nlink()), (ino, 2));
    ok(sys!(SYS_chmod, t.c("h1"), 0o600));
    eq((t.stat("h2").mode(), t.stat("h1").nlink(), t.stat("h2").nlink()), (S_IFREG | 0o600, 2, 2));
    fs::write(t.at("h2"), "changed").expect("write");
    eq((t.text("h1").as_str(), t.ino("h1"), t.ino("h2")), ("changed", ino, ino));
    ok(sys!(SYS_link, t.c("h2"), t.c("x/h3")));
    eq((t.ino("x/h3"), t.stat("h1").nlink()), (ino, 3));
    ok(sys!(SYS_unlink, t.c("h1")));
    eq((t.stat("h2").nlink(), t.text("h2").as_str(), t.text("x/h3").as_str()), (2, "changed", "changed"));
    eq(t.rename("h2", "x/h3", 0), 0);
    // The same file: nothing is done.
    eq((t.ino("h2"), t.ino("x/h3")), (ino, ino));
    ok(sys!(SYS_unlink, t.c("h2")));
    eq((t.stat("x/h3").nlink(), t.text("x/h3").as_str()), (1, "changed"));
}

fn overlay_link_names() {
    let t = Tree::new("overlay_link_names");
    let ino = t.ino("f");
    ok(sys!(SYS_link, t.c("f"), t.c("x/f2")));
    eq((t.ino("x/f2"), t.stat("f").nlink(), t.stat("x/f2").nlink()), (ino, 2, 2));
    fs::File::options().append(true).open(t.at("x/f2")).expect("open").write_all(b"+").expect("write");
    eq(t.text("f"), "lower\n+");
    ok(sys!(SYS_unlink, t.c("f")));
    eq(t.stat("x/f2").nlink(), 1);
    ok(sys!(SYS_link, t.c("x/f2"), t.c("f")));
    eq((t.ino("f"), t.stat("f").nlink()), (ino, 2));
    err(sys!(SYS_link, t.c("f"), t.c("g")), EEXIST);
    err(sys!(SYS_link, t.c("d"), t.c("d2")), EPERM);
    ok(sys!(SYS_linkat, AT_FDCWD, t.c("l"), AT_FDCWD, t.c("l2"), 0));
    eq((t.ino("l2"), fs::read_link(t.at("l2")).expect("link")), (t.ino("l"), PathBuf::from("f")));
}

fn mapping(file: &fs::File, prot: i32, flags: i32) -> *mut u8 {
    ok(sys!(SYS_mmap, 0, 4096, prot, flags, file.as_raw_fd(), 0)) as *mut u8
}

/// A mapping made before the first change shows what is written later.
fn overlay_mapped() {
    let t = Tree::new("overlay_mapped");
    let early = fs::File::open(t.at("f")).expect("open");
    let map = mapping(&early, PROT_READ, MAP_SHARED);
    eq(unsafe { map.read_volatile() }, b'l');
    let both = fs::File::options().read(true).write(true).open(t.at("f")).expect("open");
    eq(sys!(SYS_pwrite64, both.as_raw_fd(), b"L", 1, 0), 1);
    eq(unsafe { map.read_volatile() }, b'L');
    let shared = mapping(&both, PROT_READ | PROT_WRITE, MAP_SHARED);
    unsafe { shared.add(1).write_volatile(b'O') };
    eq((unsafe { map.add(1).read_volatile() }, t.text("f").as_str()), (b'O', "LOwer\n"));
    // The name can go, what is mapped stays.
    ok(sys!(SYS_unlink, t.c("f")));
    drop((early, both));
    eq(unsafe { map.add(2).read_volatile() }, b'w');
    ok(sys!(SYS_munmap, map, 4096));
    ok(sys!(SYS_munmap, shared, 4096));
    // Cut by an open while it is mapped and still the lower's.
    let early = fs::File::open(t.at("g")).expect("open");
    let map = mapping(&early, PROT_READ, MAP_SHARED);
    eq(unsafe { map.read_volatile() }, b'o');
    let mut cut = fs::File::options().write(true).truncate(true).open(t.at("g")).expect("open");
    eq(t.stat("g").size(), 0);
    cut.write_all(b"new").expect("write");
    let seen = [0, 1, 2, 3].map(|at| unsafe { map.add(at).read_volatile() });
    eq((&seen, t.text("g").as_str()), (b"new\0", "new"));
    ok(sys!(SYS_munmap, map, 4096));
    eq(t.text("g"), "new");
}

fn overlay_mapped_private() {
    let t = Tree::new("overlay_mapped_private");
    let file = fs::File::open(t.at("g")).expect("open");
    let map = mapping(&file, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    unsafe { map.write_volatile(b'O') };
    let other = fs::File::options().write(true).open(t.at("g")).expect("open");
    eq(sys!(SYS_pwrite64, other.as_raw_fd(), b"upper\n", 6, 0), 6);
    eq((unsafe { map.read_volatile() }, t.text("g").as_str()), (b'O', "upper\n"));
    ok(sys!(SYS_munmap, map, 4096));
}

fn overlay_tmpfile() {
    let t = Tree::new("overlay_tmpfile");
    let fd = sys!(SYS_open, t.c("d"), O_TMPFILE | O_RDWR, 0o640);
    if fd == -i64::from(EOPNOTSUPP) {
        skip("no such files");
    }
    let fd = ok(fd) as i32;
    eq(stat_fd(fd).st_nlink, 0);
    eq(sys!(SYS_write, fd, b"tmp", 3), 3);
    let path = cstr(format!("/proc/self/fd/{fd}"));
    err(sys!(SYS_linkat, AT_FDCWD, path, AT_FDCWD, t.c("d/a"), AT_SYMLINK_FOLLOW), EEXIST);
    ok(sys!(SYS_unlink, t.c("d/a")));
    ok(sys!(SYS_linkat, AT_FDCWD, path, AT_FDCWD, t.c("d/a"), AT_SYMLINK_FOLLOW));
    eq((t.text("d/a").as_str(), t.stat("d/a").nlink(), t.stat("d/a").mode() & 0o7777), ("tmp", 1, 0o640));
    eq(t.names("d"), ["a", "b", "empty", "sub"]);
    shut([fd]);
}

fn overlay_xattr() {
    let t = Tree::new("overlay_xattr");
    if t.attr("f", c"user.a").is_err() {
        skip("a file system without extended attributes");
    }
    eq((t.attr("f", c"user.a"), t.attrs("f")), (Ok("1".into()), vec!["user.a".into(), "user.b".into()]));
    let set = |name: &std::ffi::CStr, value: &[u8], flags| sys!(SYS_setxattr, t.c("f"), name, value, value.len(), flags);
    err(set(c"user.a", b"x", XATTR_CREATE), EEXIST);
    err(set(c"user.c", b"x", XATTR_REPLACE), ENODATA);
    let ino = t.ino("f");
    ok(set(c"user.a", b"one", XATTR_REPLACE));
    ok(set(c"user.c", b"three", XATTR_CREATE));
    eq((t.attr("f", c"user.a"), t.attr("f", c"user.b"), t.ino("f")), (Ok("one".into()), Ok("2".into()), ino));
    eq(t.attrs("f"), ["user.a", "user.b", "user.c"]);
    ok(sys!(SYS_chmod, t.c("f"), 0o600));
    fs::File::options().append(true).open(t.at("f")).expect("open").write_all(b"+").expect("write");
    eq(t.rename("f", "x/f", 0), 0);
    eq((t.attr("x/f", c"user.a"), t.attr("x/f", c"user.b")), (Ok("one".into()), Ok("2".into())));
    let size = sys!(SYS_listxattr, t.c("x/f"), 0, 0);
    check(size >= 21, "the names' length");
    err(sys!(SYS_listxattr, t.c("x/f"), &mut [0u8; 4], 4), ERANGE);
}

fn overlay_xattr_removed() {
    let t = Tree::new("overlay_xattr_removed");
    if t.attr("f", c"user.a").is_err() {
        skip("a file system without extended attributes");
    }
    ok(sys!(SYS_removexattr, t.c("f"), c"user.a"));
    err(sys!(SYS_removexattr, t.c("f"), c"user.a"), ENODATA);
    eq((t.attr("f", c"user.a"), t.attrs("f")), (Err(ENODATA.into()), vec!["user.b".into()]));
    fs::File::options().append(true).open(t.at("f")).expect("open").write_all(b"+").expect("write");
    eq((t.attr("f", c"user.a"), t.attrs("f")), (Err(ENODATA.into()), vec!["user.b".into()]));
    eq(sys!(SYS_setxattr, t.c("f"), c"user.a", b"n", 1, XATTR_CREATE), 0);
    eq(t.attr("f", c"user.a"), Ok("n".into()));
}

fn sx(t: &Tree, name: &str, mask: u32) -> statx {
    let mut s: statx = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_statx, AT_FDCWD, t.c(name), AT_SYMLINK_NOFOLLOW, mask, &mut s));
    s
}

fn overlay_statx() {
    let t = Tree::new("overlay_statx");
    let all = STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID;
    let what = |s: &statx| (s.stx_ino, s.stx_dev_major, s.stx_dev_minor, s.stx_mnt_id, s.stx_nlink, s.stx_btime.tv_sec, s.stx_btime.tv_nsec);
    for name in ["f", "large", "d", "l", "ff"] {
        let before = sx(&t, name, all);
        ok(sys!(SYS_utimensat, AT_FDCWD, t.c(name), 0, AT_SYMLINK_NOFOLLOW));
        let after = sx(&t, name, all);
        eq(what(&after), what(&before));
        eq((after.stx_mask & all, after.stx_size), (before.stx_mask & all, before.stx_size));
        check(after.stx_ctime.tv_sec >= before.stx_ctime.tv_sec, "later");
        eq(sx(&t, name, STATX_INO | STATX_TYPE).stx_ino, before.stx_ino);
    }
    let before = sx(&t, "f", all);
    fs::write(t.at("f"), "longer than it was").expect("write");
    let after = sx(&t, "f", all);
    eq((what(&after), after.stx_size), (what(&before), 18));
}

fn overlay_symlink() {
    let t = Tree::new("overlay_symlink");
    let ino = t.ino("l");
    eq(t.rename("l", "x/l", 0), 0);
    eq((t.ino("x/l"), fs::read_link(t.at("x/l")).expect("link")), (ino, PathBuf::from("f")));
    err(sys!(SYS_open, t.c("x/l"), O_RDONLY), ENOENT);
    eq(t.rename("x/l", "l", 0), 0);
    eq(t.text("l"), "lower\n");
    ok(sys!(SYS_unlink, t.c("l")));
    ok(sys!(SYS_symlink, c"g", t.c("l")));
    eq(t.text("l"), "other\n");
    eq(t.stat("l").size(), 1);
}

fn overlay_fifo() {
    let t = Tree::new("overlay_fifo");
    let ino = t.ino("ff");
    let read = ok(sys!(SYS_open, t.c("ff"), O_RDONLY | O_NONBLOCK)) as i32;
    ok(sys!(SYS_chmod, t.c("ff"), 0o600));
    let write = ok(sys!(SYS_open, t.c("ff"), O_WRONLY | O_NONBLOCK)) as i32;
    eq(sys!(SYS_write, write, b"through", 7), 7);
    let mut b = [0u8; 16];
    eq(sys!(SYS_read, read, &mut b, 16), 7);
    eq((stat_fd(read).st_ino, stat_fd(write).st_mode, t.ino("ff").1), (ino.1, S_IFIFO | 0o600, ino.1));
    shut([read, write]);
}

fn overlay_readdir() {
    let t = Tree::new("overlay_readdir");
    eq(t.names("."), ["d", "f", "ff", "g", "h1", "h2", "l", "large", "su", "x"]);
    let dir = fs::File::open(t.at(".")).expect("open");
    ok(sys!(SYS_unlink, t.c("f")));
    fs::write(t.at("new"), "").expect("write");
    eq(t.rename("g", "a", 0), 0);
    ok(sys!(SYS_mkdir, t.c("f"), 0o755));
    eq(t.names("."), ["a", "d", "f", "ff", "h1", "h2", "l", "large", "new", "su", "x"]);
    drop(dir);
    let parents = fs::metadata(t.at("d/..")).expect("stat").ino();
    eq(parents, fs::metadata(&t.at).expect("stat").ino());
}

fn overlay_gone_dir() {
    let t = Tree::new("overlay_gone_dir");
    let held = fs::File::open(t.at("d/sub")).expect("open");
    fs::remove_dir_all(t.at("d")).expect("remove");
    ok(sys!(SYS_mkdir, t.c("d"), 0o755));
    ok(sys!(SYS_mkdir, t.c("d/sub"), 0o755));
    fs::write(t.at("d/sub/deep"), "another").expect("write");
    eq(held.metadata().expect("stat").nlink(), 0);
    err(sys!(SYS_openat, held.as_raw_fd(), c"deep", O_RDONLY), ENOENT);
    err(sys!(SYS_openat, held.as_raw_fd(), c"new", O_CREAT | O_WRONLY, 0o644), ENOENT);
    err(sys!(SYS_mkdirat, held.as_raw_fd(), c"new", 0o755), ENOENT);
    let mut b = [0u8; 1024];
    err(sys!(SYS_getdents64, held.as_raw_fd(), &mut b, 1024), ENOENT);
}

fn overlay_set_user_id() {
    let t = Tree::new("overlay_set_user_id");
    eq(t.stat("su").mode() & 0o7777, 0o4755);
    ok(sys!(SYS_utimensat, AT_FDCWD, t.c("su"), 0, 0));
    eq(t.stat("su").mode() & 0o7777, 0o4755);
    fs::File::options().append(true).open(t.at("su")).expect("open").write_all(b"#").expect("write");
    eq(t.stat("su").mode() & 0o7777, if is_root() { 0o4755 } else { 0o755 });
    ok(sys!(SYS_chmod, t.c("su"), 0o4711));
    eq(t.rename("su", "x/su", 0), 0);
    eq(t.stat("x/su").mode() & 0o7777, 0o4711);
}

/// Changes far below show at each level, and what was looked at before is the same after.
fn overlay_deep() {
    let t = Tree::new("overlay_deep");
    let inos = ["", "d", "d/sub"].map(|name| t.ino(name));
    let held = fs::File::open(t.at("d")).expect("open");
    fs::write(t.at("d/sub/more"), "more").expect("write");
    eq(["", "d", "d/sub"].map(|name| t.ino(name)), inos);
    eq(t.names("d/sub"), ["deep", "more"]);
    let fd = ok(sys!(SYS_openat, held.as_raw_fd(), c"sub/more", O_RDWR)) as i32;
    eq(sys!(SYS_write, fd, b"MORE", 4), 4);
    shut([fd]);
    eq(t.text("d/sub/more"), "MORE");
    ok(sys!(SYS_mkdir, t.c("d/sub/n1"), 0o755));
    ok(sys!(SYS_mkdir, t.c("d/sub/n1/n2"), 0o755));
    eq(t.rename("d/sub/deep", "d/sub/n1/n2/deep", 0), 0);
    eq((t.text("d/sub/n1/n2/deep").as_str(), t.names("d/sub")), ("deep", vec!["more".to_owned(), "n1".into()]));
    eq((t.stat("d/sub/n1").nlink(), t.stat("d/sub/n1/n2").nlink()), (3, 2));
}

fn overlay_sync() {
    let t = Tree::new("overlay_sync");
    let file = fs::File::options().read(true).write(true).open(t.at("f")).expect("open");
    eq(sys!(SYS_write, file.as_raw_fd(), b"x", 1), 1);
    for fd in [&file, &fs::File::open(t.at("d")).expect("open"), &fs::File::open(t.at("large")).expect("open")] {
        ok(sys!(SYS_fsync, fd.as_raw_fd()));
        ok(sys!(SYS_fdatasync, fd.as_raw_fd()));
        ok(sys!(SYS_syncfs, fd.as_raw_fd()));
    }
    let map = mapping(&file, PROT_READ | PROT_WRITE, MAP_SHARED);
    unsafe { map.write_volatile(b'y') };
    ok(sys!(SYS_msync, map, 4096, MS_SYNC));
    ok(sys!(SYS_munmap, map, 4096));
    ok(sys!(SYS_sync));
    eq(t.text("f"), "yower\n");
}
