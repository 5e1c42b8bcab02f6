//! Archives as an attacker would write them.

use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// A directory `dir` to apply to, and `secret` and `target` beside it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("lazaret-apply.{name}.{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("dir/sub")).unwrap();
        fs::create_dir_all(path.join("target")).unwrap();
        fs::write(path.join("target/kept"), "kept").unwrap();
        fs::write(path.join("secret"), "secret").unwrap();
        fs::write(path.join("dir/old"), "old").unwrap();
        Place(path)
    }

    fn apply(&self, inside: &str, archive: Vec<u8>) -> Result<Vec<String>, String> {
        self.apply_as(Form::Plain, inside, archive)
    }

    fn apply_as(&self, form: Form, inside: &str, archive: Vec<u8>) -> Result<Vec<String>, String> {
        let dir = OwnedFd::from(File::open(self.0.join("dir")).unwrap());
        let mut file =
            File::from(rustix::fs::memfd_create(c"test", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        std::io::Write::write_all(&mut file, &archive).unwrap();
        Applied::new(&dir, inside.as_bytes(), form).all(&mut file)
    }

    /// Everything outside of `dir` is as it was.
    fn outside_is_unchanged(&self) {
        assert_eq!(fs::read_to_string(self.0.join("secret")).unwrap(), "secret");
        assert_eq!(fs::metadata(self.0.join("secret")).unwrap().nlink(), 1);
        assert_eq!(fs::read_to_string(self.0.join("target/kept")).unwrap(), "kept");
        assert_eq!(fs::read_dir(self.0.join("target")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(&self.0).unwrap().count(), 3);
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join("dir").join(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An archive of raw entries: kind, path, link target, contents.
fn archive(entries: &[(EntryType, &str, &str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, path, target, contents) in entries {
        let mut header = tar::Header::new_gnu();
        let field = &mut header.as_mut_bytes()[..100];
        field[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o4755);
        header.set_uid(rustix::process::getuid().as_raw().into());
        header.set_gid(rustix::process::getgid().as_raw().into());
        header.set_mtime(1_000_000_000);
        header.set_size(contents.len() as u64);
        header.set_link_name_literal(target).unwrap();
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(contents.as_bytes());
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

use EntryType::{Char, Directory as Dir, Fifo, Link, Regular as Reg, Symlink};

/// Kind, name, target of a link, contents.
type Entry = (EntryType, &'static str, &'static str, &'static str);

#[test]
fn nothing_leads_outside() {
    let attacks: &[(&str, &[Entry])] = &[
        ("dots", &[(Reg, "../secret", "", "x")]),
        ("dots within", &[(Reg, "sub/../../secret", "", "x")]),
        ("an absolute path", &[(Reg, "/tmp/lazaret-no-such", "", "x")]),
        ("a file below a link", &[(Symlink, "l", "../target", ""), (Reg, "l/kept", "", "x")]),
        ("a directory below a link", &[(Symlink, "l", "../target", ""), (Dir, "l/made/", "", "")]),
        (
            "a file through an absolute link",
            &[(Symlink, "l", "/tmp", ""), (Reg, "l/lazaret-no-such", "", "x")],
        ),
        ("a link there before", &[(Reg, "there/kept", "", "x")]),
        ("removal below a link", &[(Reg, "there/.wh.kept", "", "")]),
        ("emptying a link's target", &[(Reg, "there/.wh..wh..opq", "", "")]),
        ("removal of the directory above", &[(Reg, ".wh...", "", "")]),
        ("a hard link to the outside", &[(Link, "h", "../secret", "")]),
        ("an absolute hard link", &[(Link, "h", "/etc/passwd", "")]),
        ("a hard link through a link", &[(Symlink, "l", "..", ""), (Link, "h", "l/secret", "")]),
        (
            "a hard link to a link",
            &[(Symlink, "l", "../secret", ""), (Link, "h", "l", ""), (Reg, "h/x", "", "x")],
        ),
    ];
    for (what, entries) in attacks {
        let place = Place::new("outside");
        symlink("../target", place.at("there")).unwrap();
        assert!(place.apply("", archive(entries)).is_err(), "{what}");
        place.outside_is_unchanged();
        assert!(!Path::new("/tmp/lazaret-no-such").exists(), "{what}");
    }
}

#[test]
fn names_are_replaced_and_never_written_through() {
    let place = Place::new("through");
    symlink("../secret", place.at("link")).unwrap();
    fs::hard_link(place.0.join("secret"), place.at("hard")).unwrap();
    let entries =
        [(Reg, "link", "", "new"), (Reg, "hard", "", "new"), (Dir, "old/", "", ""), (Reg, "old/f", "", "f")];
    place.apply("", archive(&entries)).unwrap();
    place.outside_is_unchanged();
    assert_eq!(fs::read_to_string(place.at("link")).unwrap(), "new");
    assert!(fs::symlink_metadata(place.at("link")).unwrap().is_file());
    assert_eq!(fs::read_to_string(place.at("old/f")).unwrap(), "f");
}

#[test]
fn kinds_modes_and_times() {
    let place = Place::new("kinds");
    let entries = [
        (Dir, "d/", "", ""),
        (Reg, "d/f", "", "text"),
        (Link, "d/g", "d/f", ""),
        (Symlink, "d/l", "no/such//x/", ""),
        (Fifo, "d/p", "", ""),
        (Char, "d/c", "", ""),
    ];
    let left_out = place.apply("", archive(&entries)).unwrap();
    assert_eq!(left_out.len(), 2, "{left_out:?}");
    let f = fs::metadata(place.at("d/f")).unwrap();
    assert_eq!((f.permissions().mode() & 0o7777, f.nlink(), f.mtime()), (0o755, 2, 1_000_000_000));
    assert_eq!(fs::read_link(place.at("d/l")).unwrap().as_os_str(), "no/such//x/");
    assert_eq!(fs::metadata(place.at("d")).unwrap().mtime(), 1_000_000_000);
    assert!(!place.at("d/c").exists() && place.at("d/p").exists());
}

#[test]
fn deletions_and_opaque_directories() {
    let place = Place::new("gone");
    fs::create_dir_all(place.at("sub/a/b")).unwrap();
    symlink("../../target", place.at("sub/a/out")).unwrap();
    let entries = [(Reg, ".wh.old", "", ""), (Reg, "sub/.wh..wh..opq", "", ""), (Reg, "sub/new", "", "n")];
    place.apply("", archive(&entries)).unwrap();
    place.outside_is_unchanged();
    assert!(!place.at("old").exists());
    assert_eq!(fs::read_dir(place.at("sub")).unwrap().count(), 1);
}

/// What a run writes down in the directory is out of a layer's reach.
#[test]
fn checkpoints_are_out_of_reach() {
    const NAME: &str = ".wh..lazaret-1.2.0";
    let attacks: &[(&str, &[Entry])] = &[
        ("a file below it", &[(Reg, ".wh..lazaret-1/f", "", "x")]),
        ("a directory below it, deeper", &[(Dir, "sub/.wh..lazaret-1/d/", "", "")]),
        ("its removal", &[(Reg, ".wh..wh..lazaret-1.2.0", "", "")]),
        ("another name of it", &[(Link, "h", ".wh..lazaret-1.2.0", "")]),
        ("a root of which nothing shows", &[(Reg, ".wh..wh..opq", "", "")]),
        ("the same, by a longer path", &[(Reg, "./.wh..wh..opq", "", "")]),
    ];
    for (what, entries) in attacks {
        let place = Place::new("reach");
        fs::write(place.at(NAME), "written down").unwrap();
        assert!(place.apply_as(Form::Overlay, "", archive(entries)).is_err(), "{what}");
        let there = fs::metadata(place.at(NAME)).unwrap();
        assert_eq!((there.nlink(), there.len()), (1, 12), "{what}");
        assert_eq!(fs::read_dir(place.at("")).unwrap().count(), 3, "{what}");
        assert_eq!(fs::read_dir(place.at("sub")).unwrap().count(), 0, "{what}");
    }
    // A directory's own may be emptied, and so may all that a plain one has.
    let place = Place::new("reach");
    place.apply("", archive(&[(Reg, ".wh..wh..opq", "", ""), (Reg, ".wh..lazaret-x", "", "")])).unwrap();
    assert_eq!(fs::read_dir(place.at("")).unwrap().count(), 0);
}

/// Lists that a directory gives to what is made in it are not those of a layer.
#[test]
fn lists_are_not_inherited() {
    let place = Place::new("lists");
    let entry = |tag: u16, rights: u16, id: u32| {
        [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let none = u32::MAX;
    let entries = [
        entry(1, 7, none),
        entry(2, 7, rustix::process::getuid().as_raw()),
        entry(4, 5, none),
        entry(0x10, 7, none),
        entry(0x20, 0, none),
    ];
    let list = [&2u32.to_le_bytes()[..], &entries.concat()].concat();
    let sub = File::open(place.at("sub")).unwrap();
    fsetxattr(&sub, ACLS[1], &list, XattrFlags::empty()).expect("a file system with lists");
    // A directory that the archive does not name keeps its own.
    place.apply("", archive(&[(Dir, "sub/d/", "", ""), (Reg, "sub/f", "", "f")])).unwrap();
    for name in ["sub/d", "sub/f"] {
        let file = File::open(place.at(name)).unwrap();
        for list in ACLS {
            assert_eq!(fgetxattr(&file, list, &mut [0; 0]), Err(Errno::NODATA), "{name} {list}");
        }
    }
    assert!(fgetxattr(&sub, ACLS[1], &mut [0; 0]).is_ok());
}

#[test]
fn a_part_is_applied_alone() {
    let place = Place::new("part");
    let entries = [(Reg, "home/x/f", "", "f"), (Reg, "home/xy", "", "no"), (Reg, "tmp/t", "", "no")];
    place.apply("home/x", archive(&entries)).unwrap();
    assert_eq!(fs::read_to_string(place.at("f")).unwrap(), "f");
    assert_eq!(fs::read_dir(place.at("")).unwrap().count(), 3);
}

#[test]
fn broken_archives_are_errors() {
    let place = Place::new("broken");
    let whole = archive(&[(Reg, "f", "", "some contents")]);
    assert!(place.apply("", whole[..520].to_vec()).is_err());
    assert!(place.apply("", vec![b'x'; 2048]).is_err());
    assert_eq!(fs::read_dir(place.at("")).unwrap().count(), 2);
}
