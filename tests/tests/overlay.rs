//! What a layer below is changed into: the guest's verb `overlay` on trees that somebody else made before.
//!
//! Natively they are on a plain file system, and for root below the host's overlayfs; inside they are the host's files, or
//! those that an earlier run with `--upper` left. The host's trees stay as they were.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::Command;
use support::{Check, Ctx, LIMIT, Output, Place, Scratch, Who, bins, command, contexts, fail, is_root, run};

/// Everything of a tree: names, kinds, modes, links, sizes, times, contents.
const LOOK: &str = "find . -printf '%p %y %m %u %g %n %s %T@ %i %l\\n' | sort; find . -type f | sort | xargs cat | sha256sum";
/// What is known to differ, and why.
const OVERLAYFS: &[(&str, &str)] = &[
    (
        "overlay_mapped",
        "overlayfs says so itself: a shared mapping made before goes on showing the file below",
    ),
    ("overlay_statx", "overlayfs counts no links of directories"),
    ("overlay_whiteout_flag", "overlayfs refuses it"),
    ("overlay_deep", "overlayfs counts no links of directories"),
    ("overlay_gone_dir", "overlayfs counts no links of directories"),
    ("overlay_unlink_open", "what is open of the file below keeps its link count"),
];
const EARLIER: &[(&str, &str)] = &[("overlay_set_user_id", "such bits are not given to files of DIR")];

fn guest() -> &'static str {
    bins().guest.to_str().expect("a path in UTF-8")
}

/// Every case passed but those.
fn judge(o: &Output, but: &[(&str, &str)]) -> Result<(), Failed> {
    let (out, mut bad) = (o.out(), Vec::new());
    for line in out.lines().filter(|line| line.starts_with("FAIL ")) {
        let name = line.trim_start_matches("FAIL ").split(':').next().unwrap_or_default();
        if !but.iter().any(|(known, _)| *known == name) {
            bad.push(line);
        }
    }
    if bad.is_empty() && out.lines().filter(|line| line.starts_with("ok ")).count() > 20 {
        Ok(())
    } else {
        Err(fail(&bad.join("; "), o))
    }
}

fn trees(place: Place, who: Who, options: &[&str], at: &str) -> Result<(), Failed> {
    let script = format!("mkdir {at} && exec {} overlay_trees {at}", guest());
    let o = run(&mut command(place, who, options, &["/bin/sh", "-c", &script]), LIMIT, b"");
    if o.code() == Some(0) { Ok(()) } else { Err(fail("trees", &o)) }
}

fn look(at: &str) -> String {
    run(
        &mut command(Place::Native, Who::Caller, &[], &["/bin/sh", "-c", &format!("cd {at}; {LOOK}")]),
        LIMIT,
        b"",
    )
    .out()
}

fn native(who: Who) -> Result<(), Failed> {
    let c = Ctx { platform: "trap", who };
    let s = Scratch::new(&c);
    trees(Place::Native, who, &[], &s.path("t"))?;
    let mut program = command(Place::Native, who, &[], &[guest(), "overlay"]);
    judge(&run(program.env("GUEST_TREES", s.path("t")), LIMIT, b""), &[])
}

fn overlayfs() -> Result<(), Failed> {
    let c = Ctx { platform: "trap", who: Who::Caller };
    let s = Scratch::new(&c);
    trees(Place::Native, c.who, &[], &s.path("t"))?;
    // All layers are on one tmpfs: overlayfs takes that, whatever the scratch directory is on, and numbers of inodes stay only within one
    // file system.
    let script = format!(
        "cd {}; mkdir x m && mount -t tmpfs none x && mkdir x/u x/w && cp -a t x/t && \
         mount -t overlay -o lowerdir=x/t,upperdir=x/u,workdir=x/w,redirect_dir=on,index=on none m || exit 99; exec {} overlay",
        s.path(""),
        guest()
    );
    let mut program = Command::new("unshare");
    let program = program.args(["-m", "sh", "-c", &script]).env("GUEST_TREES", s.path("m"));
    judge(&run(program, LIMIT, b""), OVERLAYFS)
}

fn over_the_host(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    trees(Place::Native, c.who, &[], &s.path("t"))?;
    let before = look(&s.path("t"));
    let mut program = command(Place::Inside(c.platform), c.who, &[], &[guest(), "overlay"]);
    judge(&run(program.env("GUEST_TREES", s.path("t")), LIMIT, b""), &[])?;
    if look(&s.path("t")) == before { Ok(()) } else { Err("the host's files changed".into()) }
}

fn over_an_earlier_run(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let (upper, inside) = (s.path("u"), Place::Inside(c.platform));
    let script = format!("mkdir {upper}");
    run(&mut command(Place::Native, c.who, &[], &["/bin/sh", "-c", &script]), LIMIT, b"");
    trees(inside, c.who, &["--upper", &upper], &s.path("t"))?;
    let mut program = command(inside, c.who, &["--upper", &upper], &[guest(), "overlay"]);
    judge(&run(program.env("GUEST_TREES", s.path("t")), LIMIT, b""), EARLIER)
}

fn main() {
    let args = Arguments::from_args();
    let mut trials = vec![Trial::test("native/plain", || native(Who::Caller))];
    if is_root() {
        trials.push(Trial::test("native-user/plain", || native(Who::Ordinary)));
        trials.push(Trial::test("native/overlayfs", overlayfs));
    }
    let checks: [(&str, Check); 2] =
        [("over_the_host", over_the_host), ("over_an_earlier_run", over_an_earlier_run)];
    for c in contexts() {
        for (name, check) in checks {
            trials.push(c.trial("overlay", name, check));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
