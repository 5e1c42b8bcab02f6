//! The host's files, seen and changed from both sides: what inotify tells of changes outside, what lists of access let in.

mod support;

use libtest_mimic::{Arguments, Failed};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use support::{
    Beside, Check, Ctx, LIMIT, ORDINARY, Output, Place, Scratch, Who, command, contexts, expect, fail, run,
};

const TREE: &str = "mkdir d ty; echo old >old; echo g >gone; echo p >perm; echo x >d/x; echo 1 >d/keep; mv ty tz; echo ty >ty";

fn native(c: &Ctx, script: &str) -> Output {
    run(&mut command(Place::Native, c.who, &[], &["/bin/sh", "-c", script]), LIMIT, b"")
}

/// Waits for changes with inotify, makes some itself, and prints what it was told, for each watch.
const WATCHER: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
os.chdir(sys.argv[1])
fd = libc.inotify_init1(0)
MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
names = [".", "d", "old", "d/x"]
seen = {libc.inotify_add_watch(fd, n.encode(), MASK): [n] for n in names}
cookies = {}
def own():
    f = os.open("mine", os.O_CREAT | os.O_RDWR, 0o600)
    os.write(f, b"1"); os.pread(f, 1, 0); os.write(f, b"2"); os.fchmod(f, 0o640); os.ftruncate(f, 1)
    os.close(f); os.rename("mine", "d/mine"); os.mkdir("sub"); os.rmdir("sub"); os.link("d/mine", "more")
    os.utime("more"); os.unlink("d/mine"); os.truncate("more", 0); os.symlink("x", "link"); os.unlink("more")
    os.close(os.open("old", os.O_RDWR | os.O_APPEND)); os.close(os.open("old", os.O_RDONLY))
own()
os.mkdir("ready")
end = False
while not end:
    data = os.read(fd, 65536)
    while data:
        wd, mask, cookie, length = struct.unpack("iIII", data[:16])
        name = data[16:16 + length].rstrip(b"\0").decode()
        data = data[16 + length:]
        if name == "again":
            if mask & 0x100:
                own()
                os.mkdir("done")
            continue
        end |= name == "end" and mask & 8 != 0
        if name == "out2" and mask & 0x80:
            assert os.path.exists("out2")
        if name == "gone" and mask & 0x200:
            assert not os.path.exists("gone")
        cookie = cookies.setdefault(cookie, len(cookies)) if cookie else "-"
        seen[wd].append("%x/%s/%s" % (mask, name, cookie))
for wd in sorted(seen):
    print(" ".join(seen[wd]))
"#;

/// What a host process changes below a mount that passes through is told to watches inside, beside the guest's own changes, as it
/// would be natively.
fn told_of_changes_outside(c: &Ctx) -> Result<(), Failed> {
    let told = |place: Place| -> Result<String, Failed> {
        let s = Scratch::new(c);
        let t = s.path("t");
        expect(&native(c, &format!("mkdir {t} && cd {t} && {TREE}")), 0, "")?;
        let program = ["python3", "-c", WATCHER, &t];
        let child = Beside::start(&mut command(place, c.who, &["--write", &t], &program));
        let at = |name: &str| format!("{t}/{name}");
        let there = |name: &str| Path::new(&at(name)).exists();
        let ready = support::until(LIMIT, || there("ready"));
        (|| {
            fs::write(at("out"), "1")?;
            fs::rename(at("out"), at("out2"))?;
            fs::write(at("out2"), "")?;
            fs::write(at("d/x"), "more")?;
            fs::remove_file(at("link"))?;
            fs::write(at("again"), "")?;
            if !support::until(LIMIT, || there("done")) {
                return Err(std::io::ErrorKind::TimedOut.into());
            }
            fs::remove_file(at("perm"))?;
            fs::rename(at("d/x"), at("y"))?;
            fs::set_permissions(at("old"), PermissionsExt::from_mode(0o600))?;
            fs::create_dir(at("made"))?;
            fs::rename(at("made"), at("made2"))?;
            fs::remove_dir(at("made2"))?;
            fs::remove_file(at("old"))?;
            fs::remove_file(at("gone"))?;
            fs::remove_dir_all(at("d"))?;
            fs::hard_link(at("y"), at("linked"))?;
            fs::rename(at("ty"), at("y"))?;
            fs::write(at("end"), "")
        })()?;
        let o = child.finish(LIMIT);
        if ready && o.code() == Some(0) { Ok(o.out()) } else { Err(fail("events", &o)) }
    };
    let (want, got) = (told(Place::Native)?, told(Place::Inside(c.platform))?);
    if got == want { Ok(()) } else { Err(format!("\n{want}natively, inside\n{got}").into()) }
}

/// Watches directories, says so by a name in the first, and prints what it is told until a name in the first says the end, for each
/// watch. Names that begin with `do` have it run what follows.
const LISTENER: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
fd = libc.inotify_init1(0)
MASK = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200
dirs = sys.argv[1:]
def listen(at):
    return libc.inotify_add_watch(fd, at.encode(), MASK)
def write(name, text):
    with open(name, "w") as f:
        f.write(text)
for at in dirs:
    write(at + "/first", "x")
seen = {listen(at): [] for at in dirs}
os.mkdir(dirs[0] + "/ready")
end = False
while not end:
    data = os.read(fd, 65536)
    while data:
        wd, mask, cookie, length = struct.unpack("iIII", data[:16])
        name = data[16:16 + length].rstrip(b"\0").decode()
        data = data[16 + length:]
        if name.startswith("do"):
            if mask & 0x100:
                exec(name[2:])
            continue
        end |= name == "end" and mask & 0x100 != 0
        event = "%x/%s" % (mask, name)
        # The kernel makes one of two that are alike, unless the first was read.
        if seen[wd][-1:] != [event]:
            seen[wd].append(event)
for wd in sorted(seen):
    print(" ".join(seen[wd]))
"#;

/// What the listener is told of what `change` does to the directory, natively or inside.
fn heard(
    c: &Ctx,
    place: Place,
    (options, dirs): (&[&str], &[&str]),
    change: impl Fn(&dyn Fn(&str) -> String) -> std::io::Result<()>,
) -> Result<String, Failed> {
    let s = Scratch::new(c);
    let t = s.path("t");
    expect(&native(c, &format!("mkdir {t}")), 0, "")?;
    let at = |text: &str| text.replace('@', &t);
    let native = matches!(place, Place::Native);
    let dirs: Vec<String> = dirs.iter().map(|dir| if native { t.clone() } else { at(dir) }).collect();
    let dirs: Vec<&str> = dirs.iter().map(String::as_str).take(if native { 1 } else { usize::MAX }).collect();
    let options: Vec<String> = options.iter().map(|option| at(option)).collect();
    let options: Vec<&str> = if native { Vec::new() } else { options.iter().map(String::as_str).collect() };
    let program = [&["python3", "-c", LISTENER][..], &dirs].concat();
    let child = Beside::start(&mut command(place, c.who, &options, &program));
    let ready = support::until(LIMIT, || Path::new(&format!("{t}/ready")).exists());
    let done = change(&|name: &str| format!("{t}/{name}"));
    let end = fs::create_dir(format!("{t}/end"));
    let o = child.finish(LIMIT);
    done.and(end)?;
    if ready && o.code() == Some(0) { Ok(o.out()) } else { Err(fail("events", &o)) }
}

/// What `change` makes a listener hear inside is what it makes one hear natively.
fn same_heard(
    c: &Ctx,
    change: impl Fn(&dyn Fn(&str) -> String) -> std::io::Result<()>,
) -> Result<String, Failed> {
    let with = (&["--write", "@"][..], &["@"][..]);
    let want = heard(c, Place::Native, with, &change)?;
    let got = heard(c, Place::Inside(c.platform), with, &change)?;
    if got == want { Ok(got) } else { Err(format!("\n{want}natively, inside\n{got}").into()) }
}

/// More changes than are read at once, or by one system call.
fn many_changes(c: &Ctx) -> Result<(), Failed> {
    let told = same_heard(c, |at| {
        (0..5000).try_for_each(|i| fs::create_dir(at(&format!("made{i}"))))?;
        (0..5000).try_for_each(|i| fs::rename(at(&format!("made{i}")), at(&format!("moved{i}"))))
    })?;
    if told.contains("made4999") && told.contains("moved4999") {
        Ok(())
    } else {
        Err("some are missing".into())
    }
}

/// Files that are written outside while they are moved, by others and by the guest; and what the guest does itself leaves nothing
/// that is taken for a later change outside.
fn written_while_moved(c: &Ctx) -> Result<(), Failed> {
    same_heard(c, |at| {
        let wait = |name: &str| {
            if support::until(LIMIT, || Path::new(&at(name)).exists()) {
                Ok(())
            } else {
                Err(std::io::Error::from(std::io::ErrorKind::TimedOut))
            }
        };
        let open = fs::File::create(at("a"))?;
        fs::rename(at("a"), at("b"))?;
        drop(open);
        let open = fs::File::create(at("c"))?;
        fs::create_dir(at("doos.rename(dirs[0] + chr(47) + 'c', dirs[0] + chr(47) + 'd')"))?;
        wait("d")?;
        drop(open);
        // The guest's own, and the same from outside.
        for own in ["write(dirs[0] + chr(47) + 'e', 'x')", "os.chmod(dirs[0] + chr(47) + 'e', 0o600)"] {
            fs::create_dir(at(&format!("do{own}; os.mkdir(dirs[0] + chr(47) + 'did{}')", own.len())))?;
            wait(&format!("did{}", own.len()))?;
            fs::write(at("e"), "y")?;
            fs::set_permissions(at("e"), PermissionsExt::from_mode(0o640))?;
        }
        // A watch that is set after a change hears nothing of it.
        fs::create_dir(at("f"))?;
        fs::write(at("f/g"), "1")?;
        fs::create_dir(at(
            "doseen[listen(dirs[0] + chr(47) + 'f')] = []; os.mkdir(dirs[0] + chr(47) + 'set')",
        ))?;
        wait("set")?;
        fs::write(at("f/g"), "2")
    })
    .map(|_| ())
}

/// One directory of the host, mounted twice: a change outside is told by both, the guest's own by the one that it was made through
/// and, as somebody else's, by the other.
fn mounted_twice(c: &Ctx) -> Result<(), Failed> {
    let change = |at: &dyn Fn(&str) -> String| {
        fs::write(at("out"), "1")?;
        fs::rename(at("out"), at("out2"))
    };
    let want = heard(c, Place::Native, (&[], &["@"]), change)?;
    let twice = (&["--write", "@:/one", "--write", "@:/two"][..], &["/one", "/two"][..]);
    let got = heard(c, Place::Inside(c.platform), twice, change)?;
    let told = |line: &str| line.split(' ').filter(|e| e.contains("/out")).collect::<Vec<_>>().join(" ");
    let want = told(want.trim_end());
    let got: Vec<String> = got.lines().map(told).collect();
    if got == [want.clone(), want] { Ok(()) } else { Err(format!("{got:?}").into()) }
}

/// Nothing is told of names that the policy hides, there or not, by whatever name.
fn hidden_names(c: &Ctx) -> Result<(), Failed> {
    let change = |at: &dyn Fn(&str) -> String| {
        fs::write(at("secret"), "1")?;
        fs::write(at("secret"), "2")?;
        fs::set_permissions(at("secret"), PermissionsExt::from_mode(0o600))?;
        fs::rename(at("secret"), at("seen"))?;
        fs::rename(at("seen"), at("secret"))?;
        fs::remove_file(at("secret"))
    };
    let with = (&["--write", "@", "--hide", "@/secret"][..], &["@"][..]);
    let got = heard(c, Place::Inside(c.platform), with, change)?;
    if got.contains("secret") || !got.contains("80/seen 40/seen") {
        return Err(got.into());
    }
    Ok(())
}

/// Files of root's with lists: what each gives to a user, or takes. Made by root on the host.
const LISTS: &str = r#"
import os, struct, sys
os.chdir(sys.argv[1])
user = int(sys.argv[2])
def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, perm, id) for tag, perm, id in entries)
NONE = 0xffffffff
def make(name, owner, named, group, mask, other, dir=False, tag=2):
    if dir:
        os.mkdir(name); open(name + "/in", "w").write(name)
    else:
        open(name, "w").write(name)
    os.chmod(name, 0o755 if dir else 0o644)
    entries = [(1, owner, NONE), (4, group, NONE), (0x10, mask, NONE), (0x20, other, NONE)]
    if named is not None:
        entries.append((tag, named, user))
    os.setxattr(name, "system.posix_acl_access", acl(*sorted(entries)))
make("gives", 6, 6, 0, 6, 0)
make("reads", 6, 4, 0, 6, 0)
make("takes", 6, 0, 4, 6, 6)
make("masked", 6, 7, 0, 4, 2)
make("closed", 6, 7, 0, 0, 4)
make("runs", 7, 5, 0, 7, 0)
make("group", 6, 6, 0, 6, 0, tag=8)
make("nogroup", 6, 0, 0, 6, 6, tag=8)
make("nobody", 6, None, 6, 6, 4)
make("dir", 7, 5, 0, 5, 0, True)
make("shut", 7, 0, 5, 5, 5, True)
make("list", 7, 4, 0, 5, 0, True)
make("way", 7, 1, 0, 5, 0, True)
make("put", 7, 7, 0, 7, 0, True)
open("plain", "w").write("plain")
os.chmod("plain", 0o640)
os.setxattr("plain", "user.x", b"1")
"#;
/// What a user can do with them.
const TRY: &str = r#"for f in gives reads takes masked closed runs group nogroup nobody plain dir shut list way put; do
    printf '%s:' $f; for t in r w x; do [ -$t $f ] && printf $t; done
    cat $f/in $f >/dev/null 2>&1; cat $f/in 2>/dev/null; ls $f >/dev/null 2>&1 && printf ' ls'
    (: <$f) 2>/dev/null && printf ' read'; [ -d $f ] || { (: >>$f) 2>/dev/null && printf ' write'; }
    [ -d $f ] && (: >$f/new) 2>/dev/null && printf ' new' && rm $f/new; cd $f 2>/dev/null && printf ' cd' && cd ..; echo
    done"#;

/// Lists of access of the host's files let in those whom they let in natively, and no others: over the host's files and where they
/// pass through, of the caller and of other users inside.
fn lists_of_the_host(c: &Ctx) -> Result<(), Failed> {
    if !support::is_root() {
        return Ok(());
    }
    let s = Scratch::new(c);
    let t = s.path("t");
    fs::create_dir(&t)?;
    fs::set_permissions(&t, PermissionsExt::from_mode(0o755))?;
    let (root, user) = (Ctx { platform: c.platform, who: Who::Caller }, ORDINARY.to_string());
    let make = ["python3", "-c", LISTS, &t, &user];
    expect(&run(&mut command(Place::Native, root.who, &[], &make), LIMIT, b""), 0, "")?;
    let set = format!("--reuid={user} --regid={user} --clear-groups");
    let script = match c.who {
        Who::Caller => format!("cd {t}; exec setpriv {set} sh -c {}", quoted(TRY)),
        Who::Ordinary => format!("cd {t}; {TRY}"),
    };
    let argv = ["/bin/sh", "-c", &script];
    let want = run(&mut command(Place::Native, c.who, &[], &argv), LIMIT, b"");
    if !want.out().contains("gives:rw ls read write") {
        return Err(fail("a file system with lists", &want));
    }
    for options in [&[][..], &["--write", &t], &["--read-only", &t]] {
        let mut want = want.out();
        let got = run(&mut command(Place::Inside(c.platform), c.who, options, &argv), LIMIT, b"").out();
        if options.first() == Some(&"--read-only") {
            want = want.replace(" write", "").replace(" new", "");
            for (with, without) in [("rwx", "rx"), ("rw", "r"), (":w", ":")] {
                want = want.replace(with, without);
            }
        }
        if got != want {
            return Err(format!("{options:?}: {got}natively\n{want}").into());
        }
    }
    Ok(())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Files without a name where changes pass through, and a directory that can be read but not searched.
const NAMELESS: &str = r#"
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[1])
for more in [0, os.O_EXCL]:
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR | more, 0o644)
    os.write(fd, b"text")
    name = "named%d" % more
    # AT_FDCWD, AT_SYMLINK_FOLLOW.
    if libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, name.encode(), 0x400) == 0:
        print(os.fstat(fd).st_nlink, os.path.getsize(name))
    else:
        print(errno.errorcode[ctypes.get_errno()])
os.mkdir("d"); open("d/f", "w").close(); os.chmod("d", 0o444)
print(os.listdir("d"))
os.chmod("d", 0o755)
"#;

fn files_without_a_name(c: &Ctx) -> Result<(), Failed> {
    let look = |place: Place| {
        let s = Scratch::new(c);
        let t = s.path("t");
        native(c, &format!("mkdir {t}"));
        run(&mut command(place, c.who, &["--write", &t], &["python3", "-c", NAMELESS, &t]), LIMIT, b"")
    };
    let want = look(Place::Native);
    expect(&want, 0, "1 4\nENOENT\n['f']\n")?;
    expect(&look(Place::Inside(c.platform)), 0, &want.out())
}

/// Makes names in a directory that has a default list (acl(5)), and prints what each got.
const HEIRS: &str = r#"
import os, sys
os.chdir(sys.argv[1])
for umask in [0o22, 0o77, 0]:
    os.umask(umask)
    at = "u%o" % umask
    os.mkdir(at); os.mkdir(at + "/dir", 0o700); os.mkfifo(at + "/fifo"); os.symlink("x", at + "/link")
    os.close(os.open(at + "/file", os.O_CREAT | os.O_RDWR, 0o640))
    os.close(os.open("top%o" % umask, os.O_CREAT | os.O_RDWR))
    fd = os.open(at, os.O_TMPFILE | os.O_RDWR, 0o666)
    print(oct(os.fstat(fd).st_mode), sorted(os.listxattr(fd)))
    os.close(fd)
os.mkdir("old/new"); open("old/file", "w").close(); open("plain/file", "w").close()
for at, dirs, names in sorted(os.walk(".")):
    for name in sorted(dirs + names):
        path = os.path.join(at, name)
        lists = {x: os.getxattr(path, x, follow_symlinks=False).hex() for x in sorted(os.listxattr(path, follow_symlinks=False)) if "acl" in x}
        print(path, oct(os.lstat(path).st_mode), lists)
"#;
/// Gives a directory, and one in it, a default list; another has none.
const LISTED: &str = r#"
import os, struct, sys
os.chdir(sys.argv[1])
NONE = 0xffffffff
def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
os.mkdir("old"); os.mkdir("plain")
os.setxattr(".", "system.posix_acl_default", acl((1, 7, NONE), (2, 7, os.geteuid()), (4, 5, NONE), (0x10, 7, NONE), (0x20, 4, NONE)))
os.setxattr("old", "system.posix_acl_default", acl((1, 6, NONE), (4, 6, NONE), (0x20, 0, NONE)))
"#;

/// New names below the host's directories get the rights that default lists there say, and no umask counts then.
fn heirs_of_lists(c: &Ctx) -> Result<(), Failed> {
    let made = |place: Place, writes: bool| -> Result<String, Failed> {
        let s = Scratch::new(c);
        let t = s.path("t");
        native(c, &format!("mkdir {t}"));
        expect(
            &run(&mut command(Place::Native, c.who, &[], &["python3", "-c", LISTED, &t]), LIMIT, b""),
            0,
            "",
        )?;
        let options = if writes { vec!["--write", &t] } else { Vec::new() };
        let o = run(&mut command(place, c.who, &options, &["python3", "-c", HEIRS, &t]), LIMIT, b"");
        if o.code() == Some(0) { Ok(o.out()) } else { Err(fail("names below lists", &o)) }
    };
    let want = made(Place::Native, false)?;
    for writes in [false, true] {
        let got = made(Place::Inside(c.platform), writes)?;
        if got != want {
            return Err(format!("writes: {writes}\n{got}natively\n{want}").into());
        }
    }
    Ok(())
}

const CHECKS: &[(&str, Check)] = &[
    ("heirs_of_lists", heirs_of_lists),
    ("files_without_a_name", files_without_a_name),
    ("told_of_changes_outside", told_of_changes_outside),
    ("many_changes", many_changes),
    ("written_while_moved", written_while_moved),
    ("mounted_twice", mounted_twice),
    ("hidden_names", hidden_names),
    ("lists_of_the_host", lists_of_the_host),
];

fn main() {
    let mut args = Arguments::from_args();
    // A child that another check starts has the files that are open here until it executes its program: they would be closed late.
    args.test_threads = Some(1);
    let mut trials = Vec::new();
    for c in contexts() {
        for (name, check) in CHECKS {
            trials.push(c.trial("outside", name, *check));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
