//! What the test programs share: where the binaries are, how to run one inside and as whom, with a time limit.
#![allow(dead_code)] // each test program uses a part

use libtest_mimic::{Failed, Trial};
use serde::Deserialize;
use std::io::Read;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The ordinary user that tests run as when they are started by root.
pub const ORDINARY: u32 = 65534;

/// Who runs a test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Who {
    /// The user who started the tests.
    Caller,
    /// [`ORDINARY`], when the caller is root.
    Ordinary,
}

/// Where a test runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Native,
    Inside(&'static str),
}

impl Place {
    pub fn name(self) -> &'static str {
        match self {
            Place::Native => "native",
            Place::Inside(p) => p,
        }
    }
}

pub const PLATFORMS: [&str; 2] = ["trap", "ptrace"];

pub fn is_root() -> bool {
    unsafe { libc::geteuid() == 0 }
}

/// Copies of the binaries that any user can run, in a directory that goes at the end of the run.
pub struct Binaries {
    dir: PathBuf,
    pub guest: PathBuf,
    pub lazaret: Option<PathBuf>,
}

/// The binaries. `lazaret` is $LAZARET_BIN, or the one beside the guest program; without it only the native
/// tests run.
pub fn bins() -> &'static Binaries {
    static B: OnceLock<Binaries> = OnceLock::new();
    B.get_or_init(|| {
        let guest = PathBuf::from(env!("CARGO_BIN_EXE_guest"));
        let lazaret = match std::env::var_os("LAZARET_BIN") {
            Some(p) => Some(PathBuf::from(p)),
            None => Some(guest.with_file_name("lazaret")).filter(|p| p.exists()),
        };
        let dir = std::env::temp_dir().join(format!("lazaret-tests.{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory for the binaries");
        let copy = |from: &Path, name: &str| {
            let to = dir.join(name);
            std::fs::copy(from, &to).unwrap_or_else(|e| panic!("copy {}: {e}", from.display()));
            to
        };
        let g = copy(&guest, "guest");
        let l = lazaret.map(|p| copy(&p, "lazaret"));
        Binaries { dir, guest: g, lazaret: l }
    })
}

/// Removes what [`bins`] made.
pub fn clean_up() {
    let _ = std::fs::remove_dir_all(&bins().dir);
}

/// Whether `lazaret do` is there and runs something at all on `platform`: the reason if not.
pub fn unusable(platform: &'static str) -> Option<String> {
    let b = bins();
    if b.lazaret.is_none() {
        return Some("no lazaret binary (set LAZARET_BIN or build it)".into());
    }
    let mut c = command(Place::Inside(platform), Who::Caller, &[], &["/bin/true"]);
    let out = run(&mut c, LIMIT, b"");
    (out.code() != Some(0)).then(|| format!("`do --platform {platform} /bin/true` gives {}", out.brief()))
}

/// argv as `who`, natively or inside with `options`.
pub fn command(place: Place, who: Who, options: &[&str], argv: &[&str]) -> Command {
    let mut c = match place {
        Place::Native => {
            let mut c = Command::new(argv[0]);
            c.args(&argv[1..]);
            c
        }
        Place::Inside(platform) => {
            let mut c = Command::new(bins().lazaret.as_ref().expect("a lazaret binary"));
            c.args(["do", "--platform", platform]).args(options).arg("--").args(argv);
            c
        }
    };
    // The same environment wherever the tests run. Without SHELL, programs take the shell of the user from passwd, and
    // that of nobody refuses.
    let home = std::env::var_os("HOME").unwrap_or_else(|| "/".into());
    c.env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"LAZARET_")));
    c.env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm");
    c.current_dir("/");
    if who == Who::Ordinary {
        c.env("HOME", "/nonexistent").env("USER", "nobody").env("LOGNAME", "nobody");
        c.uid(ORDINARY).gid(ORDINARY);
    } else {
        c.env("HOME", home);
    }
    c
}

/// How a command ended.
pub struct Output {
    /// None: it was killed at the time limit.
    pub status: Option<ExitStatus>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub took: Duration,
}

impl Output {
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|s| s.code())
    }
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
    /// The end in one line.
    pub fn brief(&self) -> String {
        let end = match self.status {
            None => format!("no end within {:.0?}", self.took),
            Some(s) => match (s.code(), s.signal()) {
                (Some(c), _) => format!("exit {c}"),
                (_, s) => format!("signal {}", s.unwrap_or(0)),
            },
        };
        let tail: String = self.err().lines().rev().take(3).collect::<Vec<_>>().join(" | ");
        if tail.is_empty() { end } else { format!("{end}; stderr ends: {tail}") }
    }
}

/// When a program last said something.
type Heard = Arc<Mutex<Instant>>;

fn drain(from: Option<impl Read + Send + 'static>, heard: &Heard) -> std::thread::JoinHandle<Vec<u8>> {
    let heard = heard.clone();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let mut bytes = [0u8; 65536];
        let Some(mut from) = from else { return all };
        loop {
            match from.read(&mut bytes) {
                Ok(0) => return all,
                Ok(n) => all.extend_from_slice(&bytes[..n]),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return all,
            }
            *heard.lock().expect("a time") = Instant::now();
        }
    })
}

/// Starts `c` in a process group of its own with all three streams piped.
pub fn start(c: &mut Command) -> Child {
    c.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    c.process_group(0);
    c.spawn().unwrap_or_else(|e| panic!("{c:?}: {e}"))
}

/// A program that runs beside a test, and ends with it at the latest.
pub struct Beside(Option<Child>);

impl Beside {
    pub fn start(c: &mut Command) -> Beside {
        Beside(Some(start(c)))
    }
    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("not finished yet")
    }
    pub fn finish(mut self, limit: Duration) -> Output {
        finish(self.0.take().expect("not finished yet"), limit)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs `c` with `input`, and kills its process group at the time limit.
pub fn run(c: &mut Command, limit: Duration, input: &[u8]) -> Output {
    let mut child = start(c);
    let mut stdin = child.stdin.take();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || {
        if let Some(s) = stdin.as_mut() {
            let _ = std::io::Write::write_all(s, &input);
        }
    });
    let out = finish(child, limit);
    let _ = feeder.join();
    out
}

/// Waits for a child of [`start`].
pub fn finish(child: Child, limit: Duration) -> Output {
    let begin = Instant::now();
    ends(child, |_| begin.elapsed() > limit)
}

/// Runs `c`, and kills its process group when it says nothing for so long.
pub fn run_while_it_speaks(c: &mut Command, limit: Duration) -> Output {
    let mut child = start(c);
    drop(child.stdin.take());
    ends(child, |heard| heard.elapsed() > limit)
}

/// Waits for a child's end, or until it is `late`, which is told when the child last said something.
fn ends(mut child: Child, late: impl Fn(Instant) -> bool) -> Output {
    let begin = Instant::now();
    let heard = Arc::new(Mutex::new(begin));
    let (o, e) = (drain(child.stdout.take(), &heard), drain(child.stderr.take(), &heard));
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait().expect("wait") {
            Some(s) => break Some(s),
            None if late(*heard.lock().expect("a time")) => {
                unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    let took = begin.elapsed();
    Output { status, stdout: o.join().unwrap_or_default(), stderr: e.join().unwrap_or_default(), took }
}

/// Pids whose name begins with "lazaret" below a session or group that `launcher` began, or whose parent chain
/// leads to it; used to see that nothing stays behind.
pub fn family(launcher: u32) -> Vec<u32> {
    let mut all = Vec::new();
    for e in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = e.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else { continue };
        let Ok(s) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((_, rest)) = s.rsplit_once(") ") else { continue };
        let f: Vec<&str> = rest.split(' ').collect();
        let num = |i: usize| f.get(i).and_then(|x| x.parse::<u32>().ok()).unwrap_or(0);
        if f.first() != Some(&"Z") {
            all.push((pid, num(1)));
        }
    }
    let mut found = vec![launcher];
    loop {
        let more: Vec<u32> =
            all.iter().filter(|(p, pp)| found.contains(pp) && !found.contains(p)).map(|(p, _)| *p).collect();
        if more.is_empty() {
            break;
        }
        found.extend(more);
    }
    found.retain(|p| all.iter().any(|(q, _)| q == p));
    found
}

/// The sentry that `launcher` made.
pub fn sentry_of(launcher: u32) -> Result<u32, Failed> {
    let named = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "lazaret-sentry\n")
    };
    family(launcher).into_iter().find(named).ok_or("no sentry".into())
}

/// Sends `signal` to a process, and returns when it has taken it: equal ones that are pending are one.
pub fn signal_taken(pid: u32, signal: i32) -> Result<(), Failed> {
    // SAFETY: kill(2) has no memory to misuse.
    unsafe { libc::kill(pid as i32, signal) };
    let pending = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let masks = status.lines().filter_map(|l| l.strip_prefix("SigPnd:").or(l.strip_prefix("ShdPnd:")));
        let mut masks = masks.map(|mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0));
        masks.any(|mask| mask & 1 << (signal - 1) != 0)
    };
    if until(LIMIT, || !pending()) { Ok(()) } else { Err(format!("signal {signal} is not taken").into()) }
}

/// The members of `pids` that are alive.
pub fn alive(pids: &[u32]) -> Vec<u32> {
    pids.iter()
        .copied()
        .filter(|p| {
            std::fs::read_to_string(format!("/proc/{p}/stat"))
                .is_ok_and(|s| !s.rsplit_once(") ").is_some_and(|(_, r)| r.starts_with('Z')))
        })
        .collect()
}

/// Waits up to `limit` for `cond`.
pub fn until(limit: Duration, mut cond: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if cond() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    cond()
}

/// A known failure.
#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    pub verb: String,
    pub case: String,
    /// Why it fails, for the reader.
    pub reason: String,
    /// Only on this platform; on all without it.
    pub platform: Option<String>,
    /// The outcome varies: neither pass nor failure is an error.
    #[serde(default)]
    pub flaky: bool,
}

#[derive(Deserialize)]
struct Expectations {
    #[serde(default)]
    fail: Vec<Expected>,
}

pub fn expectations() -> Vec<Expected> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/expect.toml");
    let text = std::fs::read_to_string(path).expect("expect.toml");
    let e: Expectations = toml::from_str(&text).unwrap_or_else(|e| panic!("expect.toml: {e}"));
    for x in &e.fail {
        assert!(!x.reason.trim().is_empty(), "expect.toml: {}/{} has no reason", x.verb, x.case);
    }
    e.fail
}

/// Judges an outcome by what is listed for it: `Err` if a case fails unlisted or passes listed.
pub fn weigh(listed: Option<&Expected>, outcome: Result<(), String>) -> Result<(), String> {
    match (outcome, listed) {
        (Err(why), None) => Err(why),
        (Ok(()), Some(e)) if !e.flaky => Err(format!("passes, but expect.toml lists it: {}", e.reason)),
        _ => Ok(()),
    }
}

/// The entry for `case` of `verb` on `platform`, if there is one.
pub fn listed<'a>(all: &'a [Expected], verb: &str, case: &str, platform: &str) -> Option<&'a Expected> {
    all.iter()
        .find(|e| e.verb == verb && e.case == case && e.platform.as_deref().is_none_or(|p| p == platform))
}

/// A check of a whole command.
pub type Check = fn(&Ctx) -> Result<(), Failed>;

/// Where and as whom a check runs.
#[derive(Clone, Copy)]
pub struct Ctx {
    pub platform: &'static str,
    pub who: Who,
}

/// How long a command may take.
pub const LIMIT: Duration = Duration::from_secs(60);

impl Ctx {
    pub fn inside(&self, options: &[&str], argv: &[&str]) -> Output {
        run(&mut command(Place::Inside(self.platform), self.who, options, argv), LIMIT, b"")
    }
    pub fn sh(&self, options: &[&str], script: &str) -> Output {
        self.inside(options, &["/bin/sh", "-c", script])
    }

    /// A test of this place, judged in the light of expect.toml, where its program is the verb `verb`.
    pub fn trial(
        self,
        verb: &'static str,
        name: &str,
        check: impl FnOnce(&Ctx) -> Result<(), Failed> + Send + 'static,
    ) -> Trial {
        let suffix = if self.who == Who::Ordinary { "-user" } else { "" };
        let case = name.to_owned();
        Trial::test(format!("{}{suffix}/{name}", self.platform), move || {
            let text = check(&self).map_err(|f| f.message().unwrap_or("no reason").to_owned());
            weigh(listed(&expectations(), verb, &case, self.platform), text).map_err(Failed::from)
        })
    }
}

/// Both platforms as far as they work here, as the caller and, when that is root, as an ordinary user.
pub fn contexts() -> Vec<Ctx> {
    let mut all = Vec::new();
    for platform in PLATFORMS {
        if let Some(why) = unusable(platform) {
            eprintln!("not run on {platform}: {why}");
            continue;
        }
        all.push(Ctx { platform, who: Who::Caller });
        if is_root() {
            all.push(Ctx { platform, who: Who::Ordinary });
        }
    }
    all
}

/// `/bin/sh -c`
pub fn shell(text: &str) -> [&str; 3] {
    ["/bin/sh", "-c", text]
}

/// Whether a program is installed.
pub fn present(program: &str) -> bool {
    ["/usr/local/bin", "/usr/bin", "/bin"].iter().any(|d| Path::new(d).join(program).exists())
}

/// Says what was expected of an output.
pub fn fail(what: &str, o: &Output) -> Failed {
    format!("{what}: {}; stdout {:?}", o.brief(), o.out().chars().take(300).collect::<String>()).into()
}

/// This exit status and this standard output.
pub fn expect(o: &Output, code: i32, out: &str) -> Result<(), Failed> {
    if o.code() == Some(code) && o.out() == out {
        Ok(())
    } else {
        Err(fail(&format!("wanted exit {code} and {out:?}"), o))
    }
}

/// Reads the line `ready` from a child.
pub fn wait_ready(child: &mut Child) -> Result<(), Failed> {
    let fd = child.stdout.as_mut().ok_or("no stdout")?;
    let mut got = Vec::new();
    let begin = Instant::now();
    while !got.ends_with(b"ready\n") {
        let mut p =
            libc::pollfd { fd: std::os::fd::AsRawFd::as_raw_fd(fd), events: libc::POLLIN, revents: 0 };
        let mut b = [0u8; 1];
        // SAFETY: one structure, which outlives the call.
        if begin.elapsed() > LIMIT || (unsafe { libc::poll(&mut p, 1, 1000) } == 1 && fd.read(&mut b)? == 0) {
            unsafe { libc::kill(-(child.id() as i32), libc::SIGKILL) };
            let _ = child.wait();
            return Err(format!("never ready: {:?}", String::from_utf8_lossy(&got)).into());
        }
        if p.revents & libc::POLLIN != 0 {
            got.push(b[0]);
        }
    }
    Ok(())
}

fn first_difference(a: &str, b: &str) -> String {
    let (mut x, mut y) = (a.lines(), b.lines());
    for n in 1.. {
        match (x.next(), y.next()) {
            (None, None) => break,
            (l, r) if l == r => {}
            (l, r) => return format!("line {n}: native {l:?}, inside {r:?}"),
        }
    }
    "only in line ends".into()
}

/// Shell text ends alike and prints the same natively and inside.
pub fn same(c: &Ctx, text: &str, limit: Duration) -> Result<(), Failed> {
    let native = run(&mut command(Place::Native, c.who, &[], &shell(text)), limit, b"");
    let inside = run(&mut command(Place::Inside(c.platform), c.who, &[], &shell(text)), limit, b"");
    let mut bad = String::new();
    if native.code().is_none() || native.code() != inside.code() {
        bad += &format!("  native {}, inside {}\n", native.brief(), inside.brief());
    }
    if native.stdout != inside.stdout {
        bad += &format!("  stdout differs, {}\n", first_difference(&native.out(), &inside.out()));
    }
    // A failing program is followed by lines about gaps, which are lazaret's own.
    let own = |e: &str| {
        e.lines().filter(|l| !l.starts_with("lazaret:")).map(|l| format!("{l}\n")).collect::<String>()
    };
    if native.err() != own(&inside.err()) {
        bad += &format!("  stderr differs, {}\n", first_difference(&native.err(), &inside.err()));
    }
    if bad.is_empty() { Ok(()) } else { Err(bad.into()) }
}

/// All of these processes end.
pub fn all_end(all: &[u32]) -> Result<(), Failed> {
    if until(LIMIT, || alive(all).is_empty()) {
        return Ok(());
    }
    let left = alive(all);
    // SAFETY: kill(2) has no memory to misuse.
    left.iter().for_each(|p| unsafe {
        libc::kill(*p as i32, libc::SIGKILL);
    });
    Err(format!("{} processes stay", left.len()).into())
}

/// Resident memory in KiB, descriptors, threads.
pub fn holdings(pid: u32) -> [u64; 3] {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |key: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(key)).unwrap_or_default();
        line.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0)
    };
    let fds = std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    [field("VmRSS:"), fds as u64, field("Threads:")]
}

/// What it holds once that stays the same, or after ten seconds: it may have threads to end and tasks to reap yet.
pub fn settled(pid: u32) -> [u64; 3] {
    let mut last = holdings(pid);
    for _ in 0..33 {
        std::thread::sleep(Duration::from_millis(300));
        let now = holdings(pid);
        if now == last {
            break;
        }
        last = now;
    }
    last
}

/// What a process holds does not grow: neither memory nor descriptors nor threads. What is leaked is more after
/// every round. What is kept for reuse is so in the first ones, more and more slowly: how many threads and heaps
/// there are, and when each has been at its largest, is chance. So `round` is done until one has left no more than
/// the one before, of each kind; as often as the first of `rounds` says at least, as the last says at most. What
/// it held after each.
pub fn steady(
    pid: u32,
    rounds: std::ops::RangeInclusive<usize>,
    mut round: impl FnMut() -> Result<(), Failed>,
) -> Result<Vec<[u64; 3]>, Failed> {
    let mut looks = vec![settled(pid)];
    let mut grows = [true; 3];
    while looks.len() <= *rounds.start() || grows.contains(&true) {
        if looks.len() > *rounds.end() {
            return Err(format!("KiB, descriptors, threads are more after each round: {looks:?}").into());
        }
        round()?;
        let (now, before) = (settled(pid), looks[looks.len() - 1]);
        for (grows, (now, before)) in grows.iter_mut().zip(now.iter().zip(before)) {
            *grows &= *now > before;
        }
        looks.push(now);
    }
    Ok(looks)
}

/// A host directory the test's user may write to; gone when dropped.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(c: &Ctx) -> Self {
        use std::sync::atomic::{AtomicU32, Ordering};
        static N: AtomicU32 = AtomicU32::new(0);
        let p = std::env::temp_dir().join(format!(
            "lazaret-cmd.{}.{}",
            std::process::id(),
            N.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir(&p).expect("scratch directory");
        if c.who == Who::Ordinary {
            std::os::unix::fs::chown(&p, Some(ORDINARY), Some(ORDINARY)).expect("chown");
        }
        Scratch(p)
    }
    pub fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
