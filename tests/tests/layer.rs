//! What becomes of changes: --diff, --export, --commit, --upper; and files that pass through, seen from both sides.

mod support;

use libtest_mimic::{Arguments, Failed};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Beside, Check, Ctx, LIMIT, Place, Scratch, Who, command, contexts, expect, fail, run};

/// Changes of every kind to what [`tree`] makes.
const CHANGES: &str = "echo x >new; echo y >>old; rm gone; mkdir nd; echo z >nd/f; mv d moved; rm -rf opq; mkdir opq; \
    echo k >opq/k; chmod 700 perm; ln new hard; ln -s /etc/passwd sym; mkfifo ff; rm ty; mkdir ty; ln -s x//y ty/l; \
    touch -d @1000000000.123456789 dated; printf %200000d 7 >big; echo m >moved/in/made; mv swap1 t; mv swap2 swap1; mv t swap2";
/// What is there: names, kinds, modes, sizes, links, contents.
const LOOK: &str = "find . -printf '%p %y %m %s %n %l\\n' | grep -v ' d ' | sort; find . -type d | sort; find . -type f | sort | xargs cat | sha256sum; stat -c %y dated";
const WANT: &str = "A big D d A dated A ff D gone A hard A moved A moved/a A moved/in A moved/in/b A moved/in/made A nd A nd/f \
    A new M old A opq/k D opq/q M perm M swap1 M swap2 A sym M ty A ty/l";

fn tree(c: &Ctx, s: &Scratch) -> Result<String, Failed> {
    let script = format!(
        "cd {}; mkdir -p t/d/in t/opq u && cd t && echo old >old; echo g >gone; echo 1 >d/a; echo 2 >d/in/b; echo q >opq/q; \
         echo p >perm; echo ty >ty; echo 1 >swap1; echo 22 >swap2",
        s.path("")
    );
    expect(&run(&mut command(Place::Native, c.who, &[], &["/bin/sh", "-c", &script]), LIMIT, b""), 0, "")?;
    Ok(s.path("t"))
}

fn native(c: &Ctx, script: &str) -> String {
    run(&mut command(Place::Native, c.who, &[], &["/bin/sh", "-c", script]), LIMIT, b"").out()
}

/// What the changes make of a tree natively.
fn wanted(c: &Ctx) -> Result<String, Failed> {
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    Ok(native(c, &format!("cd {t}; {CHANGES}; {LOOK}")))
}

fn diff_lists_changes(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let (t, report) = (tree(c, &s)?, s.path("report.json"));
    let o = c.sh(&["--diff", "--report", &report], &format!("cd {t}; {CHANGES}; exit 3"));
    let listed: Vec<String> = o.err().lines().map(|line| line.replace(&format!("{t}/"), "")).collect();
    if o.code() != Some(3) || listed.join(" ") != WANT {
        return Err(fail(&format!("{WANT}, not {}", listed.join(" ")), &o));
    }
    let report: Value = serde_json::from_str(&fs::read_to_string(&report)?)?;
    let json: Vec<String> = report["changes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|change| {
            format!("{} {}", change["kind"], change["path"]).replace('"', "").replace(&format!("{t}/"), "")
        })
        .collect();
    if json == listed { Ok(()) } else { Err(format!("the report has {json:?}").into()) }
}

fn names_stay_on_their_lines(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let o = c.sh(&["--diff"], &format!("cd {}; : >\"$(printf 'a\\nA forged\\033[31m')\"", s.path("")));
    let want = format!("A {}\n", s.path("a\\nA forged\\x1b[31m"));
    if o.err() == want { Ok(()) } else { Err(fail(&want, &o)) }
}

/// GNU tar reads the archive; deletions have the names of OCI layers.
fn export_is_a_layer(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let (t, layer) = (tree(c, &s)?, s.path("layer.tar"));
    let o = c.sh(&["--export", &layer], &format!("cd {t}; {CHANGES}; kill -9 $$"));
    if o.code() != Some(137) {
        return Err(fail("the program's end", &o));
    }
    let names = native(c, &format!("tar tf {layer}"));
    for name in ["gone", "d"] {
        if !names.lines().any(|line| line.ends_with(&format!("/t/.wh.{name}"))) {
            return Err(format!("{name} is not deleted in {names}").into());
        }
    }
    if !names.contains("/t/opq/.wh..wh..opq\n")
        || names.lines().any(|n| n.starts_with('/') || n.contains("..//"))
    {
        return Err(names.into());
    }
    let script = format!(
        "cd {}; tar xf {layer}; cd .{t}; cat moved/in/b big | wc -c; stat -c '%h %Y' new dated; ls | wc -l",
        s.path("u")
    );
    let o = native(c, &script);
    if o == "200002\n2 ".to_owned() + o.split("2 ").nth(1).unwrap_or("") && o.contains("1 1000000000\n") {
        Ok(())
    } else {
        Err(format!("unpacked: {o}").into())
    }
}

/// The same tree as if the program had run there.
fn commit_gives_the_same_tree(c: &Ctx) -> Result<(), Failed> {
    let want = wanted(c)?;
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let o = c.sh(
        &["--commit", &format!("{t}:{t}")],
        &format!("cd {t}; {CHANGES}; echo no >/tmp/lazaret-not-committed"),
    );
    expect(&o, 0, "")?;
    let got = native(c, &format!("cd {t}; {LOOK}"));
    if got != want {
        return Err(format!("wanted {want}, got {got}").into());
    }
    if Path::new("/tmp/lazaret-not-committed").exists() { Err("more was committed".into()) } else { Ok(()) }
}

/// Each name of a file that had several has what became of the file, but for those that the program never found (a4).
fn names_of_one_file(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let (t, layer) = (tree(c, &s)?, s.path("layer.tar"));
    let make = "for n in 1 2 3 4 5; do echo $n >a$n; ln a$n b$n; ln a$n c$n; done";
    native(c, &format!("cd {t}; {make}"));
    let script = "cat b1 b2 b3 b4 c3 c4; echo x >>a1; rm a1; echo x >>a2; rm a2; cat c2; \
        exec 3>>a3; rm a3; echo x >&3; echo x >>b4; mv b4 d4; echo x >>d4; exec 4>>a5; cat b5; rm a5; echo x >&4";
    let options = ["--commit", &format!("{t}:{t}"), "--export", &layer];
    expect(&c.sh(&options, &format!("cd {t}; {script} ")), 0, "1\n2\n3\n4\n3\n4\n2\nx\n5\n")?;
    let want = "1xb1 2xb2 2xc2 3xb3 3xc3 4a4 4xxc4 4xxd4 5xb5";
    let look = "for f in b1 b2 c2 b3 c3 a4 c4 d4 b5; do printf '%s%s ' $(tr -d '\n' <$f) $f; done; ls a1 a2 a3 a5 b4 2>/dev/null";
    // What nobody found is not in the archive.
    for (at, want) in [(t.clone(), want.to_owned()), (s.path("u") + &t, want.replace("4a4", "a4"))] {
        let got = native(c, &format!("cd {}; tar xf {layer}; cd {at}; {look}", s.path("u")));
        if got.trim() != want {
            return Err(format!("{got} in {at}, not {want}").into());
        }
    }
    Ok(())
}

/// Three runs see what the ones before them did, and the host's files stay as they are.
fn upper_is_kept(c: &Ctx) -> Result<(), Failed> {
    let want = wanted(c)?;
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let before = native(c, &format!("cd {t}; touch dated; {LOOK}"));
    let upper = s.path("u");
    let options = ["--upper", upper.as_str()];
    expect(&c.sh(&options, &format!("cd {t}; rm dated; {CHANGES}; kill -9 $$")), 137, "")?;
    let o = c.sh(
        &options,
        &format!("cd {t}; {LOOK}; rm old; rm -r moved; mkdir moved; echo 3 >d; mkdir gone; ls -A gone opq"),
    );
    if !o.out().starts_with(&want) || !o.out().ends_with("gone:\n\nopq:\nk\n") {
        return Err(fail(&want, &o));
    }
    expect(
        &c.sh(&options, &format!("cd {t}; cat d old 2>&1; ls -A moved gone")),
        1,
        "3\ncat: old: No such file or directory\ngone:\n\nmoved:\n",
    )
    .or_else(|_| {
        let o = c.sh(&options, &format!("cd {t}; cat d; ls -A moved gone; [ -e old ] || echo none"));
        expect(&o, 0, "3\ngone:\n\nmoved:\nnone\n")
    })?;
    if native(c, &format!("cd {t}; {LOOK}")) != before {
        return Err("the host's files changed".into());
    }
    kernel_agrees(c, &s, &t)
}

/// The host's overlayfs shows the same of the directory, where it can be asked.
fn kernel_agrees(c: &Ctx, s: &Scratch, t: &str) -> Result<(), Failed> {
    if !support::is_root() || c.who == Who::Ordinary {
        return Ok(());
    }
    let script = format!(
        "mkdir {0}/m && mount -t overlay -o lowerdir={1}{2}:{2},userxattr none {0}/m && cd {0}/m && cat d && \
         ls -A moved gone opq && [ ! -e old ] && ls",
        s.path(""),
        s.path("u"),
        t
    );
    let o = run(Command::new("unshare").args(["-m", "sh", "-c", &script]), LIMIT, b"");
    let inside =
        c.sh(&["--upper", &s.path("u")], &format!("cd {t}; cat d; ls -A moved gone opq; [ ! -e old ] && ls"));
    if !o.out().is_empty() && o.out() == inside.out() {
        Ok(())
    } else {
        Err(fail(&format!("as overlayfs: {}", inside.out()), &o))
    }
}

/// The third SIGINT ends a program that does not want to, and what it did is there.
fn interrupted(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let script =
        format!("trap '' INT; cd {t}; echo x >new; echo ready >{}/t/through; exec sleep 60", s.path(""));
    let options = ["--export", &s.path("l.tar"), "--write", &s.path("t")];
    // The layer is of /: what passes through is none of it.
    let script = script + &format!("; cd {}", s.path(""));
    let script = script.replace("echo x >new", &format!("echo x >{}", s.path("inside")));
    let mut child =
        Beside::start(&mut command(Place::Inside(c.platform), c.who, &options, &["/bin/sh", "-c", &script]));
    let ready = support::until(LIMIT, || Path::new(&s.path("t/through")).exists());
    for _ in 0..3 {
        support::signal_taken(child.child().id(), libc::SIGINT)?;
    }
    let o = child.finish(LIMIT);
    let names = native(c, &format!("tar tf {}", s.path("l.tar")));
    if ready && o.code() == Some(137) && names.contains("/inside\n") && !names.contains("through") {
        Ok(())
    } else {
        Err(fail(&format!("137 and a layer, not {names:?}"), &o))
    }
}

/// A signal to lazaret ends the program, and what it did is there; nothing is there by halves when lazaret is killed, and it
/// says so if it can.
fn lazaret_is_killed(c: &Ctx) -> Result<(), Failed> {
    let ends =
        [(libc::SIGTERM, true, Some(143)), (libc::SIGKILL, false, Some(125)), (libc::SIGKILL, true, None)];
    for (signal, launcher, end) in ends {
        let s = Scratch::new(c);
        let (t, layer) = (tree(c, &s)?, s.path("l.tar"));
        let before = native(c, &format!("cd {t}; {LOOK}; ls -A"));
        let options =
            ["--diff", "--export", &layer, "--commit", &format!("{t}:{t}"), "--write", &s.path("u")];
        let script = format!("echo x >{t}/new; echo ready >{}; exec sleep 60", s.path("u/ready"));
        let argv = ["/bin/sh", "-c", &script];
        let child = Beside::start(&mut command(Place::Inside(c.platform), c.who, &options, &argv));
        if !support::until(LIMIT, || Path::new(&s.path("u/ready")).exists()) {
            return Err("it did not start".into());
        }
        let mut child = child;
        let pid = child.child().id();
        let dies = if launcher { pid } else { support::sentry_of(pid)? };
        unsafe { libc::kill(dies as i32, signal) };
        let o = child.finish(LIMIT);
        let (names, after) =
            (native(c, &format!("tar tf {layer}")), native(c, &format!("cd {t}; {LOOK}; ls -A")));
        let kept = signal == libc::SIGTERM;
        let told = match (kept, launcher) {
            (true, _) => o.err() == format!("A {t}/new\n"),
            (false, true) => true,
            _ => ["--export: nothing was written", "nothing was changed"]
                .iter()
                .all(|line| o.err().contains(line)),
        };
        if o.code() != end || !told || kept != names.contains("/t/new\n") || kept != (after != before) {
            return Err(fail(&format!("signal {signal}: {names} {after}"), &o));
        }
        if !kept && fs::metadata(&layer)?.len() != 0 {
            return Err("half a layer".into());
        }
    }
    Ok(())
}

/// Takes commands and answers each: `HOW take|try|drop`; `wait` answers when it has it.
const LOCKER: &str = r#"
import fcntl, struct, sys
files = {how: open(sys.argv[1], "r+b") for how in ("flock", "posix", "ofd")}
OFD_SETLK, OFD_SETLKW = 37, 38
def ofd(f, op, kind): fcntl.fcntl(f, op, struct.pack("hhqqi4x", kind, 0, 10, 20, 0))
def act(how, what):
    f, wait = files[how], what == "wait"
    if how == "flock": fcntl.flock(f, fcntl.LOCK_UN if what == "drop" else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    elif how == "posix": fcntl.lockf(f, fcntl.LOCK_UN if what == "drop" else fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 20, 10)
    else: ofd(f, OFD_SETLKW if wait else OFD_SETLK, fcntl.F_UNLCK if what == "drop" else fcntl.F_WRLCK)
for line in sys.stdin:
    how, what = line.split()
    try: act(how, what)
    except OSError: print("busy", flush=True)
    else: print("done", flush=True)
"#;

/// Somebody who locks on command.
struct Locker {
    name: String,
    child: Beside,
    stdin: std::process::ChildStdin,
    stdout: std::io::BufReader<std::process::ChildStdout>,
}

impl Locker {
    fn new(c: &Ctx, place: Place, dir: &str, file: &str) -> Result<Locker, Failed> {
        let argv = ["/usr/bin/python3", "-c", LOCKER, file];
        let mut child = Beside::start(&mut command(place, c.who, &["--write", dir], &argv));
        let stdin = child.child().stdin.take().ok_or("no input")?;
        let stdout = std::io::BufReader::new(child.child().stdout.take().ok_or("no output")?);
        Ok(Locker { name: place.name().to_owned(), child, stdin, stdout })
    }

    fn say(&mut self, how: &str, what: &str) -> Result<(), Failed> {
        Ok(std::io::Write::write_all(&mut self.stdin, format!("{how} {what}\n").as_bytes())?)
    }

    fn hears(&mut self, want: &str, what: &str) -> Result<(), Failed> {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut self.stdout, &mut line)?;
        if line.trim_end() == want { Ok(()) } else { Err(format!("{what}: {want}, not {line:?}").into()) }
    }

    fn does(&mut self, how: &str, act: &str, want: &str, what: &str) -> Result<(), Failed> {
        self.say(how, act)?;
        self.hears(want, what)
    }
}

/// Locks of two sandboxes, and of a sandbox and the host, meet: all three kinds, held on one side and tried on the other.
fn locks_meet(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    let (file, dir) = (s.path("t/old"), s.path("t"));
    let inside = Place::Inside(c.platform);
    let places = [Place::Native, Place::Native, inside, inside];
    let mut all = places.iter().map(|at| Locker::new(c, *at, &dir, &file)).collect::<Result<Vec<_>, _>>()?;
    // By their places: natively alone, inside alone, and across both ways.
    for (holder, other) in [(0, 1), (2, 3), (2, 0), (0, 2)] {
        for (held, tried) in
            [("flock", "flock"), ("posix", "posix"), ("ofd", "ofd"), ("ofd", "posix"), ("posix", "ofd")]
        {
            let what = format!("{held} {} then {tried} {}", all[holder].name, all[other].name);
            all[holder].does(held, "take", "done", &what)?;
            all[other].does(tried, "try", "busy", &what)?;
            all[other].say(tried, "wait")?;
            std::thread::sleep(Duration::from_millis(50));
            all[holder].does(held, "drop", "done", &what)?;
            all[other].hears("done", &what)?;
            // What was waited for is held.
            all[holder].does(held, "try", "busy", &what)?;
            all[other].does(tried, "drop", "done", &what)?;
        }
    }
    for Locker { child, stdin, .. } in all {
        drop(stdin);
        let o = child.finish(LIMIT);
        if o.code() != Some(0) {
            return Err(fail("a good end", &o));
        }
    }
    Ok(())
}

/// Names that checkpoints of --upper have there.
fn checkpoints(upper: &str) -> Vec<String> {
    let names = fs::read_dir(upper).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(".wh..lazaret-")).collect()
}

/// What was synced outlives every kind of death of lazaret, the launcher's and its sentry's; nothing is left beside it.
fn kept_when_killed(c: &Ctx) -> Result<(), Failed> {
    let want = wanted(c)?;
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let upper = s.path("u");
    let options = ["--upper", upper.as_str()];
    // One file alone, by itself.
    let fsync = "python3 -c 'import os; f = os.open(\"later\", os.O_RDWR); os.write(f, b\"x\"); os.fsync(f)'";
    for (launcher, sync) in [(true, "sync"), (false, "sync"), (false, fsync)] {
        let script = format!(
            "cd {t}; ls -A / | grep wh; rm -f dated; {CHANGES}; sync; echo ready; cp old newer; exec sleep 60"
        );
        let script = if launcher {
            script
        } else {
            format!("cd {t}; echo second >later; {sync}; echo ready; exec sleep 60")
        };
        let begun = Instant::now();
        let mut child = Beside::start(&mut command(
            Place::Inside(c.platform),
            c.who,
            &options,
            &["/bin/sh", "-c", &script],
        ));
        let counts = || checkpoints(&upper).iter().any(|name| name.ends_with(".counts"));
        support::wait_ready(child.child())?;
        let ready = begun.elapsed();
        // One that nobody asked for comes after ten seconds.
        let there = support::until(LIMIT, counts);
        let asked_for = begun.elapsed() < Duration::from_millis(9500) || ready > Duration::from_secs(3);
        if !there || !asked_for {
            return Err(format!("no checkpoint: {}", child.finish(Duration::from_secs(1)).brief()).into());
        }
        let pid = child.child().id();
        let dies = if launcher { pid } else { support::sentry_of(pid)? };
        unsafe { libc::kill(dies as i32, libc::SIGKILL) };
        let o = child.finish(LIMIT);
        let end = if launcher { None } else { Some(125) };
        if o.code() != end && !(launcher && o.code() == Some(137)) {
            return Err(fail("the end", &o));
        }
        let o =
            c.sh(&options, &format!("cd {t}; rm -f later newer; {LOOK}; ls -A {upper} / | grep lazaret-"));
        if !o.out().starts_with(&want) || o.err().contains("cannot") {
            return Err(fail(&want, &o));
        }
        if !checkpoints(&upper).is_empty() {
            return Err(format!("left: {:?}", checkpoints(&upper)).into());
        }
    }
    Ok(())
}

/// Two runs with one directory: neither takes the other's checkpoints for those of a dead one.
fn runs_beside_each_other(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let upper = s.path("u");
    let options = ["--upper", upper.as_str()];
    let script = format!("cd {t}; echo one >one; sync; read line; echo more >>one");
    let argv = ["/bin/sh", "-c", &script];
    let mut child = Beside::start(&mut command(Place::Inside(c.platform), c.who, &options, &argv));
    let counts = || checkpoints(&upper).iter().any(|name| name.ends_with(".counts"));
    if !support::until(LIMIT, counts) {
        return Err(fail("a checkpoint", &child.finish(Duration::from_secs(1))));
    }
    expect(&c.sh(&options, &format!("cd {t}; ls one 2>/dev/null; echo two >two")), 0, "")?;
    if !counts() {
        return Err("the other's checkpoint is gone".into());
    }
    drop(child.child().stdin.take());
    expect(&child.finish(LIMIT), 0, "")?;
    expect(&c.sh(&options, &format!("cd {t}; cat one two")), 0, "one\nmore\ntwo\n")
}

/// What one side does the other sees at its next look, without any notice.
fn both_sides_see(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    tree(c, &s)?;
    let t = s.path("t");
    let script = format!(
        "cd {t}; cat old; ls >/dev/null; touch in1; while [ ! -e out1 ]; do :; done; cat out1 old; rm gone; mv swap1 swap3; \
         while [ -e perm ]; do :; done; stat -c %s grown; touch in2"
    );
    let argv = ["/bin/sh", "-c", &script];
    let child = Beside::start(&mut command(Place::Inside(c.platform), c.who, &["--write", &t], &argv));
    let there = |name: &str| Path::new(&s.path(&format!("t/{name}"))).exists();
    let mut seen = support::until(LIMIT, || there("in1"));
    fs::write(s.path("t/old"), "changed outside\n")?;
    fs::write(s.path("t/new1"), "atomically\n")?;
    fs::rename(s.path("t/new1"), s.path("t/out1"))?;
    seen &= support::until(LIMIT, || !there("gone") && there("swap3") && !there("swap1"));
    fs::write(s.path("t/grown"), "12345")?;
    fs::remove_file(s.path("t/perm"))?;
    seen &= support::until(LIMIT, || there("in2"));
    let o = child.finish(LIMIT);
    if !seen {
        return Err(fail("each other's changes", &o));
    }
    expect(&o, 0, "old\natomically\nchanged outside\n5\n")
}

/// A full disk is the program's ENOSPC, and a file cut while it is mapped its SIGBUS; neither is anybody else's.
fn full_disk_and_cut_file(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let cut = format!(
        "exec python3 -c 'import mmap,os,signal\nf=open(\"{t}/big\",\"w+b\");f.truncate(8192);m=mmap.mmap(f.fileno(),8192)\n\
         p=os.fork()\nif p==0:\n  os.truncate(\"{t}/big\",0);m[5000];os._exit(0)\nprint(os.waitstatus_to_exitcode(os.waitpid(p,0)[1]))'"
    );
    expect(&run(&mut command(Place::Native, c.who, &[], &["/bin/sh", "-c", &cut]), LIMIT, b""), 0, "-7\n")?;
    expect(&c.sh(&["--write", &t], &cut), 0, "-7\n")?;
    if !support::is_root() {
        return Ok(());
    }
    let full = format!(
        "dd if=/dev/zero of={t}/f bs=64K count=20 2>/dev/null; echo $?; stat -c %s {t}/f; echo x >{t}/g 2>/dev/null; cat {t}/g | wc -c; rm {t}/f; echo x >{t}/g; cat {t}/g"
    );
    let lazaret = support::bins().lazaret.as_ref().ok_or("no lazaret")?;
    let mut outs = Vec::new();
    for inside in [false, true] {
        let runs = match inside {
            false => full.clone(),
            true => format!(
                "{} do --platform {} --write {t} -- /bin/sh -c '{full}'",
                lazaret.display(),
                c.platform
            ),
        };
        let script = format!("mount -t tmpfs -o size=1M,mode=1777 none {t} && {runs}");
        outs.push(run(Command::new("unshare").args(["-m", "sh", "-c", &script]), LIMIT, b""));
    }
    if outs[0].out() == outs[1].out() && outs[0].out().starts_with("1\n1048576\n") {
        Ok(())
    } else {
        Err(fail(&format!("as natively: {:?}", outs[0].out()), &outs[1]))
    }
}

/// Root may write to a file and keep its set-user-ID bit; nobody else may. Natively first.
fn set_ids_of_written_files(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let script = format!(
        "cd {t}; cp /bin/true su; chmod 4755 su; stat -c %a su; echo x >>su; stat -c %a su; chmod 6755 su; echo x >>su; stat -c %a su; \
         chmod 4711 su; chown \"$(id -u)\" su; stat -c '%a %u' su"
    );
    let want = native(c, &script);
    expect(&c.sh(&["--write", &t], &script), 0, &want)?;
    let mode = |path: &str| fs::metadata(path).map(|m| std::os::unix::fs::MetadataExt::mode(&m) & 0o7777);
    if mode(&s.path("t/su"))? & 0o4000 == 0 || want.contains("4711") {
        Ok(())
    } else {
        Err("set-ID on the host".into())
    }
}

/// FIFOs and sockets of the host are names: what is inside meets inside, and opening hangs nobody in the gofer.
fn fifos_and_sockets(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let script = format!(
        "cd {t}; mkfifo p; (echo through >p &) ; cat p; python3 -c 'import socket,os\n\
         a=socket.socket(socket.AF_UNIX);a.bind(\"sock\");a.listen();b=socket.socket(socket.AF_UNIX);b.connect(\"sock\");x,_=a.accept();b.send(b\"s\");print(x.recv(9))'; \
         stat -c %F p sock; rm p sock; ls p sock 2>/dev/null; echo done"
    );
    let want = "through\nb's'\nfifo\nsocket\ndone\n";
    expect(&run(&mut command(Place::Native, c.who, &[], &["/bin/sh", "-c", &script]), LIMIT, b""), 0, want)?;
    expect(&c.sh(&["--write", &t], &script), 0, want)
}

/// Memory of all processes of a sandbox, in KiB.
fn resident(launcher: u32) -> u64 {
    let of = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default().to_owned();
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0)
    };
    support::family(launcher).iter().map(of).sum()
}

/// Names that come and go leave nothing behind, in memory, on a tmpfs and passed through. $LAZARET_NAMES: how many.
fn names_come_and_go(c: &Ctx) -> Result<(), Failed> {
    let many = std::env::var("LAZARET_NAMES").ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(30_000);
    let s = Scratch::new(c);
    let t = tree(c, &s)?;
    let program = "import os,sys\nfor line in sys.stdin:\n  a,b=map(int,line.split())\n  for i in range(a,b):\n    d=sys.argv[1+i%3]\n    n=f'{d}/name-{i}'\n    \
                   os.close(os.open(n,os.O_CREAT|os.O_WRONLY)); os.stat(n); os.rename(n,n+'x'); os.unlink(n+'x')\n    \
                   try: os.stat(f'{d}/absent-{i}')\n    except OSError: pass\n  print('done',flush=True)";
    let upper = s.path("inside");
    let program = format!("import os\nos.mkdir('{upper}')\n{program}");
    let argv = ["/usr/bin/python3", "-c", &program, &upper, "/dev/shm", &t];
    let mut child = Beside::start(&mut command(Place::Inside(c.platform), c.who, &["--write", &t], &argv));
    let mut out = std::io::BufReader::new(child.child().stdout.take().ok_or("no output")?);
    let mut stdin = child.child().stdin.take().ok_or("no input")?;
    let mut sizes = Vec::new();
    // Caches fill up first.
    for (from, to) in [(0, many), (many, many * 2), (many * 2, many * 3)] {
        std::io::Write::write_all(&mut stdin, format!("{from} {to}\n").as_bytes())?;
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line)?;
        if line != "done\n" {
            return Err(fail("names", &child.finish(LIMIT)));
        }
        sizes.push(resident(child.child().id()));
    }
    drop(stdin);
    expect(&child.finish(LIMIT), 0, "")?;
    let grown = sizes[2].saturating_sub(sizes[0].max(sizes[1]));
    if grown < 4096 { Ok(()) } else { Err(format!("KiB after each third: {sizes:?}").into()) }
}

const CHECKS: &[(&str, Check)] = &[
    ("diff_lists_changes", diff_lists_changes),
    ("names_stay_on_their_lines", names_stay_on_their_lines),
    ("export_is_a_layer", export_is_a_layer),
    ("commit_gives_the_same_tree", commit_gives_the_same_tree),
    ("names_of_one_file", names_of_one_file),
    ("upper_is_kept", upper_is_kept),
    ("interrupted", interrupted),
    ("lazaret_is_killed", lazaret_is_killed),
    ("kept_when_killed", kept_when_killed),
    ("runs_beside_each_other", runs_beside_each_other),
    ("locks_meet", locks_meet),
    ("both_sides_see", both_sides_see),
    ("full_disk_and_cut_file", full_disk_and_cut_file),
    ("set_ids_of_written_files", set_ids_of_written_files),
    ("fifos_and_sockets", fifos_and_sockets),
    ("names_come_and_go", names_come_and_go),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        for (name, check) in CHECKS {
            trials.push(c.trial("layer", name, *check));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
