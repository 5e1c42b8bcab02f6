//! What a policy shows, hides and lets through: options, files, `lazaret policy explain`, denials.

mod support;

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::{Check, Ctx, LIMIT, Place, Scratch, Who, bins, contexts, expect, fail, run};

/// Four mounts whose order decides what is seen, for mount(8).
const MOUNTS: &str = "mount --bind a m && mount --bind b m/sub && mount --bind c m/sub/deep && mount --bind b m/sub && cat m/f m/sub/f; ls m/sub; cat m/sub/deep/f";

/// Gives all that was made to the one who runs the test.
fn hand_over(c: &Ctx, s: &Scratch) -> Result<(), Failed> {
    if c.who == Who::Ordinary {
        let owner = format!("{0}:{0}", support::ORDINARY);
        Command::new("chown").args(["-R", &owner, &s.path("")]).status()?;
    }
    Ok(())
}

fn tree(c: &Ctx, s: &Scratch) -> Result<(), Failed> {
    for dir in ["a/sub", "b/deep", "c", "m"] {
        fs::create_dir_all(s.path(dir))?;
    }
    for dir in ["a", "b", "c"] {
        fs::write(s.path(&format!("{dir}/f")), format!("{dir}\n"))?;
    }
    hand_over(c, s)
}

/// Later mounts cover earlier ones as they do with mount(8), which is asked first.
fn order_is_that_of_mount(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    let native = if support::is_root() && c.who == Who::Caller {
        let script = format!("cd {} && {MOUNTS}", s.path(""));
        let o = run(Command::new("unshare").args(["-m", "sh", "-c", &script]), LIMIT, b"");
        o.out()
    } else {
        "a\nb\ndeep\nf\n".to_owned()
    };
    let pair = |src: &str, dst: &str| format!("{}:{}", s.path(src), s.path(dst));
    let (one, two) = (pair("a", "m"), pair("b", "m/sub"));
    let (three, four) = (pair("c", "m/sub/deep"), pair("b", "m/sub"));
    let options = ["--write", &one, "--read-only", &two, "--read-only", &three, "--write", &four];
    let script = format!("cd {} && cat m/f m/sub/f; ls m/sub; cat m/sub/deep/f", s.path(""));
    let o = c.sh(&options, &script);
    if o.out() == native && native == "a\nb\ndeep\nf\n" {
        Ok(())
    } else {
        Err(fail(&format!("as mount does: {native:?}"), &o))
    }
}

fn denials(s: &Scratch) -> Result<Vec<Value>, Failed> {
    let report: Value = serde_json::from_str(&fs::read_to_string(s.path("report.json"))?)?;
    Ok(report["denials"].as_array().cloned().unwrap_or_default())
}

/// A refusal says what, where, by which line, and what would allow it; and that allows it.
fn denials_name_rule_and_remedy(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    let (policy, report) = (s.path("p.toml"), s.path("report.json"));
    fs::write(&policy, "# two rules\nread-only = [\"a\"]\nhide = [\n  \"b\",\n]\n")?;
    let script = format!("cd {}; echo x 2>&1 >a/new; rm -f a/f; chmod 600 a/f; cat b/f; true", s.path(""));
    let o = c.sh(&["--policy", &policy, "--report", &report], &script);
    let denied = denials(&s).map_err(|_| fail("a report", &o))?;
    let want = |what: &str, path: &str, line: u32, word: &str, allow: String| {
        let path = s.path(path);
        let rule = format!("{policy}:{line}: {word}");
        denied.iter().any(|d| {
            d["what"] == what
                && d["path"] == path.as_str()
                && d["rule"].as_str().is_some_and(|r| r.starts_with(&rule))
                && d["allow_with"] == allow.as_str()
        })
    };
    let write = || format!("--write {}", s.path("a"));
    let all = [
        want("create", "a/new", 2, "read-only", write()),
        want("remove", "a/f", 2, "read-only", write()),
        want("change mode", "a/f", 2, "read-only", write()),
        want("open", "b", 4, "hide", format!("--read-only {}", s.path("b"))),
    ];
    if all != [true; 4] {
        return Err(format!("{all:?}: {denied:#?}").into());
    }
    let remedies = ["--policy", &policy, "--write", &s.path("a"), "--read-only", &s.path("b")];
    let o = c.sh(&remedies, &format!("cd {} && echo x >a/new && cat b/f", s.path("")));
    expect(&o, 0, "b\n")
}

/// Every operation on what is read-only or hidden; each answers as it should (`ok` on a line says so) and is named in the report.
const OPERATIONS: &str = r#"
import ctypes, errno, os, socket, sys
L = ctypes.CDLL(None, use_errno=True)
def call(nr, *a):
    r = L.syscall(nr, *[x.encode() if isinstance(x, str) else x for x in a])
    if r < 0: raise OSError(ctypes.get_errno(), "")
AT, (ro, hid) = -100, sys.argv[1:3]
def refused(want, name, f, *a, **k):
    try: f(*a, **k)
    except OSError as e: got = errno.errorcode[e.errno]
    else: got = "nothing"
    if got != want: print(name, got)
for base, f, want in ((ro, ro + "/f", "EROFS"), (hid, hid + "/f", "EACCES")):
    new, cross = base + "/new", "EXDEV" if want == "EROFS" else want
    def t(name, f, *a, **k): refused(want, name, f, *a, **k)
    for name, flags in (("write", os.O_WRONLY), ("truncate", os.O_RDONLY | os.O_TRUNC), ("append", os.O_RDWR | os.O_APPEND)):
        t("open " + name, os.open, f, flags)
    t("open creat", os.open, new, os.O_WRONLY | os.O_CREAT)
    t("tmpfile", os.open, base, os.O_WRONLY | os.O_TMPFILE)
    t("creat", call, 85, new, 0o644); t("mkdir", os.mkdir, new); t("mkfifo", os.mkfifo, new); t("symlink", os.symlink, "x", new)
    t("bind", socket.socket(socket.AF_UNIX).bind, new)
    t("link", os.link, f, new); t("unlink", os.unlink, f); t("rmdir", os.rmdir, base + "/d"); t("rename", os.rename, f, new)
    t("exchange", call, 316, AT, f, AT, base + "/d", 2)
    t("chmod", os.chmod, f, 0o600); t("fchmodat2", call, 452, AT, f, 0o600, 0); t("chown", os.chown, f, -1, -1); t("lchown", os.lchown, f, -1, -1)
    t("utime", os.utime, f); t("truncate", os.truncate, f, 0)
    t("setxattr", os.setxattr, f, "user.x", b"1"); t("removexattr", os.removexattr, f, "user.x")
    t("access", call, 21, f, 2)
    refused(cross, "link out", os.link, f, "/tmp/lazaret-out"); refused(cross, "rename out", os.rename, f, "/tmp/lazaret-out")
    if want == "EROFS":
        fd = os.open(f, os.O_RDONLY)
        t("fchmod", os.fchmod, fd, 0o600); t("fchown", os.fchown, fd, -1, -1); t("futimens", os.utime, fd)
        t("fsetxattr", os.setxattr, fd, "user.x", b"1"); t("fremovexattr", os.removexattr, fd, "user.x")
        t("setflags", call, 16, fd, 0x40086602, (ctypes.c_int * 2)())
        refused("EBADF", "fallocate", call, 285, fd, 0, 0, 10); refused("EINVAL", "ftruncate", os.ftruncate, fd, 0)
    else:
        t("stat", os.stat, f); t("read", os.open, f, os.O_RDONLY); t("path", os.open, f, os.O_PATH); t("readdir", os.listdir, base)
        t("chdir", os.chdir, base); t("execve", os.execv, f, [f]); t("readlink", os.readlink, f); t("statfs", os.statvfs, f)
        t("getxattr", os.getxattr, f, "user.x"); t("connect", socket.socket(socket.AF_UNIX).connect, f)
        t("inotify", call, 254, L.inotify_init(), f, 0xfff)
        if os.geteuid() == 0: t("mount", call, 165, f, "/mnt", 0, 4096, 0); t("chroot", os.chroot, base)
if os.geteuid() == 0:
    refused("EINVAL", "umount", call, 166, ro, 2); refused("EINVAL", "move", call, 165, ro, "/mnt", 0, 8192, 0)
    refused("EROFS", "remount", call, 165, 0, ro, 0, 32, 0)
print("ok")
"#;

fn each_operation_is_named(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let (ro, hid, report) = (s.path("ro"), s.path("hid"), s.path("report.json"));
    for dir in [&ro, &hid] {
        fs::create_dir_all(format!("{dir}/d"))?;
        fs::write(format!("{dir}/f"), "text")?;
        std::os::unix::fs::symlink("f", format!("{dir}/l"))?;
        if c.who == Who::Ordinary {
            for name in ["", "/f", "/d"] {
                std::os::unix::fs::chown(format!("{dir}{name}"), Some(65534), Some(65534))?;
            }
        }
    }
    let options = ["--read-only", &ro, "--hide", &hid, "--report", &report];
    expect(&c.inside(&options, &["/usr/bin/python3", "-c", OPERATIONS, &ro, &hid]), 0, "ok\n")?;
    let denied = denials(&s)?;
    let of = |path: &str| -> Vec<String> {
        let all = denied
            .iter()
            .filter(|d| d["path"].as_str().is_some_and(|p| p == path || p.starts_with(&format!("{path}/"))));
        let mut all: Vec<String> = all.map(|d| d["what"].as_str().unwrap_or_default().to_owned()).collect();
        all.sort();
        all.dedup();
        all
    };
    let root = c.who == Who::Caller && support::is_root();
    let mut want = vec![
        "change attributes",
        "change mode",
        "change owner",
        "change times",
        "create",
        "link",
        "open for writing",
        "remove",
        "rename",
        "truncate",
    ];
    if root {
        want.extend(["change the mount", "move the mount", "unmount"]);
        want.sort_unstable();
    }
    if of(&ro) != want {
        return Err(format!("read-only: {:?}", of(&ro)).into());
    }
    let mut want = vec![
        "change attributes",
        "change mode",
        "change owner",
        "change times",
        "connect",
        "create",
        "enter",
        "execute",
        "link",
        "look at",
        "open",
        "remove",
        "rename",
        "truncate",
        "watch",
    ];
    if root {
        want.push("mount");
        want.sort_unstable();
    }
    if of(&hid) != want {
        return Err(format!("hidden: {:?}", of(&hid)).into());
    }
    let bad = denied.iter().find(|d| {
        let mounts = d["what"].as_str().is_some_and(|what| what.contains("mount"));
        !d["rule"].as_str().is_some_and(|r| r.starts_with("--")) || d["allow_with"] == "" && !mounts
    });
    bad.map_or(Ok(()), |d| Err(format!("{d}").into()))
}

fn tmpfs_and_upper_are_limited(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let dst = s.path("t");
    let script = format!(
        "df -k --output=size {dst} / | tr -s '\\n ' ' '; dd if=/dev/zero of={dst}/f bs=64K count=20 2>/dev/null; echo $?; \
         dd if=/dev/zero of={} bs=64K count=80 2>/dev/null; echo $?; stat -c %s {dst}/f; echo full >{dst}/g; ls {dst}",
        s.path("f")
    );
    let tmpfs = format!("{dst}:size=1M");
    let o = c.sh(&["--tmpfs", &tmpfs, "--upper-size", "4M"], &script);
    let out = o.out();
    if !out.contains("1024 4096") || !out.contains("1\n1\n1048576\n") {
        return Err(fail("1 MiB, 4 MiB, and two writes that fail", &o));
    }
    if fs::read_dir(&s.0)?.count() == 0 { Ok(()) } else { Err("something reached the host".into()) }
}

/// A file mounts as a directory does; beside it nothing can be made.
fn one_file(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    let f = s.path("a/f");
    let script = format!(
        "echo more >>{f}; cat {f}; echo x >{f}2; mv {f}2 {f} 2>/dev/null; echo $?; rm {f} 2>/dev/null; echo $?"
    );
    expect(&c.sh(&["--write", &f], &script), 0, "a\nmore\n1\n1\n")?;
    let there = fs::read_to_string(&f)? == "a\nmore\n" && !Path::new(&s.path("a/f2")).exists();
    if there { Ok(()) } else { Err("not what was written".into()) }
}

/// Mount points are made where the host has none, and the host does not see them.
fn mount_points_are_made(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    let deep = format!("{}:{}", s.path("c"), s.path("a/new/deep"));
    let other = format!("{}:/no/such/place", s.path("c"));
    let file = format!("{}:/no/such/file", s.path("b/f"));
    let options =
        ["--write", &s.path("a"), "--read-only", &deep, "--read-only", &other, "--read-only", &file];
    let script = format!("cat {}/f /no/such/place/f /no/such/file; cd /no/such && ls", s.path("a/new/deep"));
    expect(&c.sh(&options, &script), 0, "c\nc\nb\nfile\nplace\n")?;
    if Path::new(&s.path("a/new")).exists() { Err("the host sees the place".into()) } else { Ok(()) }
}

/// A destination by way of a symbolic link is where the program will see it.
fn links_in_destinations(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    std::os::unix::fs::symlink("m", s.path("link"))?;
    let option = format!("{}:{}", s.path("c"), s.path("link/x"));
    let script = format!("cat {} {}", s.path("m/x/f"), s.path("link/x/f"));
    expect(&c.sh(&["--read-only", &option], &script), 0, "c\nc\n")
}

fn written_root(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let w = s.path("through");
    let script = format!("echo 1 >{w}; readlink /proc/self/exe >/dev/null && [ -c /dev/null ] && echo ok");
    expect(&c.sh(&["--write", "/"], &script), 0, "ok\n")?;
    if Path::new(&w).exists() { Ok(()) } else { Err("the write did not reach the host".into()) }
}

/// A root as an image is made of: unpacked from a tar, with an own /etc, programs of the host under it.
fn image_root(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let root = s.path("image");
    for dir in ["bin", "etc", "tmp", "usr", "var/run"] {
        fs::create_dir_all(format!("{root}/{dir}"))?;
    }
    fs::write(format!("{root}/etc/os-release"), "ID=image\n")?;
    fs::copy("/bin/busybox", format!("{root}/bin/busybox"))
        .or_else(|_| fs::copy("/usr/bin/busybox", format!("{root}/bin/busybox")))?;
    std::os::unix::fs::symlink("busybox", format!("{root}/bin/sh"))?;
    hand_over(c, &s)?;
    let script = "cd /; /bin/busybox cat /etc/os-release; echo 1 >/etc/made; /bin/busybox ls /etc /proc/self/fd/0 /; \
                  /bin/busybox wc -c </host/bin/true >/dev/null && echo host";
    let options = ["--root", &root, "--read-only", "/usr:/host"];
    let o = c.inside(&options, &["/bin/sh", "-c", script]);
    let out = o.out();
    let all = out.starts_with("ID=image\n") && out.ends_with("host\n") && out.contains("made");
    if !all || Path::new(&format!("{root}/etc/made")).exists() || out.contains("home") {
        return Err(fail("the image alone, and /usr at /host", &o));
    }
    Ok(())
}

fn lazaret(arguments: &[&str]) -> support::Output {
    let lazaret = bins().lazaret.as_ref().expect("a lazaret binary");
    run(Command::new(lazaret).args(arguments).current_dir("/"), LIMIT, b"")
}

fn explain_says_all(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    let policy = s.path("p.toml");
    fs::write(&policy, "write = [\"a\"]\nhide = [\"b\"]\ntmpfs = [\"/t:size=1M\"]\nupper-size = \"8M\"\n")?;
    let o = lazaret(&["policy", "explain", &policy, "--read-only", "/usr:/u"]);
    let out = o.out();
    let parts = [
        format!("{} of the host, read and written  [{policy}:1: write", s.path("a")),
        format!("  {}  [{policy}:2: hide", s.path("b")),
        "tmpfs of 1048576 bytes".to_owned(),
        "into memory, up to 8388608 bytes".to_owned(),
        "/usr of the host, read-only  [--read-only /usr:/u]".to_owned(),
        "~/.ssh".to_owned(),
        "private keys".to_owned(),
        "network: none".to_owned(),
    ];
    if let Some(part) = parts.iter().find(|part| !out.contains(part.as_str())) {
        return Err(fail(&format!("{part:?}"), &o));
    }
    let o = lazaret(&["policy", "explain", "--format", "json", &policy]);
    let json: Value = serde_json::from_str(&o.out())?;
    if json["mounts"][1]["access"] == "write" && json["upper"]["size"] == 8 << 20 {
        Ok(())
    } else {
        Err(fail("JSON", &o))
    }
}

/// One line: file, line, what is allowed.
fn errors_are_one_line(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let policy = s.path("p.toml");
    fs::write(&policy, "hide = []\nwriet = [\"/x\"]\n")?;
    let native = |arguments: &[&str]| lazaret(arguments);
    for (arguments, parts) in [
        (vec!["do", "--policy", &policy, "--", "true"], vec![":2: ", "`writ", "`read-only`", "`upper-size`"]),
        (vec!["policy", "explain", &policy], vec![":2: ", "`read-only`"]),
        (vec!["do", "--write", "/no/such", "--", "true"], vec!["--write: /no/such: No such file"]),
        (vec!["do", "--tmpfs", "/x:size=many", "--", "true"], vec!["--tmpfs: size many"]),
        (vec!["do", "--policy", "/no/such", "--", "true"], vec!["/no/such: No such file"]),
        (vec!["do", "--wriet", "/tmp", "true"], vec!["unknown option --wriet"]),
    ] {
        let o = native(&arguments);
        let line = o.err();
        if o.code() != Some(125) || line.lines().count() != 1 || !parts.iter().all(|p| line.contains(p)) {
            return Err(fail(&format!("{arguments:?}: 125 and one line with {parts:?}"), &o));
        }
    }
    Ok(())
}

/// A file that is read often, and so by the task itself where that can be, is cut, grows and changes outside meanwhile.
fn read_often_and_changed_outside(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let dir = s.path("d");
    fs::create_dir(&dir)?;
    let file = s.path("d/f");
    hand_over(c, &s)?;
    let mut said = Vec::new();
    for place in [Place::Native, Place::Inside(c.platform)] {
        fs::write(&file, [b'a'; 20_000])?;
        let guest = bins().guest.to_str().ok_or("a path in UTF-8")?;
        let mut started = support::command(place, c.who, &["--read-only", &dir], &[guest, "reads", &file]);
        let mut child = started.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut to = child.stdin.take().ok_or("its standard input")?;
        let mut from = BufReader::new(child.stdout.take().ok_or("its standard output")?);
        let mut ask = |line: &str| -> Result<String, Failed> {
            writeln!(to, "{line}")?;
            let mut answer = String::new();
            from.read_line(&mut answer)?;
            Ok(answer)
        };
        let write =
            |at: u64, with: &[u8]| fs::OpenOptions::new().write(true).open(&file)?.write_all_at(with, at);
        let cut = |len: u64| fs::OpenOptions::new().write(true).open(&file)?.set_len(len);
        let mut answers = ask("0 4096")? + &ask("4000 200")? + &ask("19000 4096")?;
        // In the middle, at the end, behind the end.
        write(4096, b"bbbb")?;
        answers += &ask("4096 4")?;
        write(20_000, b"cccc")?;
        answers += &(ask("19990 14")? + &ask("19990 4096")?);
        for len in [19_995, 16_384, 16_380, 5000, 100, 0] {
            cut(len)?;
            answers += &(ask("0 4096")?
                + &ask("4096 4096")?
                + &ask("12288 4096")?
                + &ask("16380 10")?
                + &ask("19990 10")?);
        }
        // Zeroes that belong to it, and bytes after them.
        cut(12_000)?;
        answers += &(ask("0 4096")? + &ask("8000 4096")?);
        write(0, &[b'd'; 12_000])?;
        answers += &(ask("0 4096")? + &ask("8000 4096")?);
        fs::remove_file(&file)?;
        answers += &ask("0 4096")?;
        drop(to);
        expect(&support::finish(child, LIMIT), 0, "")?;
        said.push(answers);
    }
    if said[0] == said[1] && said[0].lines().count() == 41 {
        Ok(())
    } else {
        Err(format!("natively\n{}inside\n{}", said[0], said[1]).into())
    }
}

const CHECKS: &[(&str, Check)] = &[
    ("read_often_and_changed_outside", read_often_and_changed_outside),
    ("order_is_that_of_mount", order_is_that_of_mount),
    ("denials_name_rule_and_remedy", denials_name_rule_and_remedy),
    ("each_operation_is_named", each_operation_is_named),
    ("tmpfs_and_upper_are_limited", tmpfs_and_upper_are_limited),
    ("one_file", one_file),
    ("mount_points_are_made", mount_points_are_made),
    ("links_in_destinations", links_in_destinations),
    ("written_root", written_root),
    ("image_root", image_root),
    ("explain_says_all", explain_says_all),
    ("errors_are_one_line", errors_are_one_line),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        for (name, check) in CHECKS {
            trials.push(c.trial("policy", name, *check));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
