//! The confined gofer in its own process, as root and as an ordinary user.
//!
//! The test program starts itself again: as the gofer, and as an ordinary user's launcher. With `--measure` it prints
//! latencies and start-up times instead (build it with `--release`).

use std::fs;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use gofer::protocol::*;
use gofer::{Client, GoferConfig, GoferError, GoferFds, HideRule, Mount};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

const READ: OpenFlags = OpenFlags { read: true, write: false, append: false, truncate: false };
const BOTH: OpenFlags = OpenFlags { read: true, write: true, append: false, truncate: false };

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("gofer") => role_gofer(&arguments[1..]),
        Some("user") => all_tests(),
        Some("launcher") => role_launcher(),
        Some("--measure") => measure(),
        _ => {
            all_tests();
            if rustix::process::geteuid().is_root() {
                as_user(&["user"]);
            }
        }
    }
}

fn role_gofer(arguments: &[String]) -> ! {
    let numbers = |text: &str| -> Vec<i32> { text.split(',').flat_map(str::parse).collect() };
    let config: GoferConfig = serde_json::from_str(&arguments[0]).unwrap();
    let (lanes, rest) = (numbers(&arguments[1]), numbers(&arguments[2]));
    gofer::run(&config, GoferFds::inherited(&lanes, Some(rest[0]), rest[1]).unwrap())
}

/// Starts a gofer, tells its pid, and waits to be killed.
fn role_launcher() {
    let config = GoferConfig { mounts: vec![mount("/usr", true)], ..GoferConfig::default() };
    let gofer = start(&config, 2).unwrap();
    // A set-ids of a lane's thread must not lose the signal of the parent's death.
    let root = gofer.client().attach(0).unwrap().root.node;
    let new = NewInode { mode: 0o755, masked: 0, owner: Some((1234, 1234)) };
    let _ = gofer.client().mkdir(root, b"bin", new);
    println!("{}", gofer.pid);
    std::thread::sleep(Duration::from_secs(60));
}

/// A launcher that is killed takes its gofer with it.
fn dies_with_its_launcher() {
    let mut launcher = Command::new(std::env::current_exe().unwrap())
        .arg("launcher")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(launcher.stdout.take().unwrap()), &mut line)
        .unwrap();
    let pid: i32 = line.trim().parse().unwrap();
    let state = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    assert!(state().is_some_and(|state| state != 'Z'));
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    let deadline = Instant::now() + LIMIT;
    while state().is_some_and(|state| state != 'Z') {
        assert!(Instant::now() < deadline, "the gofer outlives its launcher");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// This program again, as uid and gid 54321, from a place that this user can execute.
fn as_user(arguments: &[&str]) {
    let program = std::env::temp_dir().join(format!("gofer-confined-{}", std::process::id()));
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let status = Command::new(&program).args(arguments).uid(54321).gid(54321).env("HOME", "/").status();
    fs::remove_file(&program).unwrap();
    assert!(status.unwrap().success());
}

/// How long a busy machine may take for what comes at once.
const LIMIT: Duration = Duration::from_secs(50);

/// Whether clients hand off.
static HAND_OFF: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

struct Gofer {
    client: Option<Client>,
    pid: i32,
}

impl Gofer {
    fn client(&self) -> &Client {
        self.client.as_ref().unwrap()
    }
}

impl Drop for Gofer {
    fn drop(&mut self) {
        self.client = None;
        assert!(wait_gone(self.pid), "the gofer ends with its sockets");
    }
}

/// Waits until a process is gone or a zombie of ours, which is reaped.
fn wait_gone(pid: i32) -> bool {
    let deadline = Instant::now() + LIMIT;
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    while Instant::now() < deadline {
        match rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG) {
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            _ => return true,
        }
    }
    false
}

fn pair() -> (OwnedFd, OwnedFd) {
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    fcntl_setfd(&theirs, FdFlags::empty()).unwrap();
    (ours, theirs)
}

fn start(config: &GoferConfig, lanes: usize) -> Result<Gofer, String> {
    let (ours, theirs): (Vec<_>, Vec<_>) = (0..lanes).map(|_| pair()).unzip();
    let (oracle, oracle_theirs) = pair();
    let (mut ready, ready_theirs) = std::io::pipe().unwrap();
    fcntl_setfd(&ready_theirs, FdFlags::empty()).unwrap();
    std::thread::spawn(move || gofer::serve_ids(oracle));
    let lanes: Vec<String> = theirs.iter().map(|fd| fd.as_raw_fd().to_string()).collect();
    let mut starter: Child = Command::new(std::env::current_exe().unwrap())
        .arg("gofer")
        .arg(serde_json::to_string(config).unwrap())
        .arg(lanes.join(","))
        .arg(format!("{},{}", oracle_theirs.as_raw_fd(), ready_theirs.as_raw_fd()))
        .spawn()
        .unwrap();
    drop((theirs, oracle_theirs, ready_theirs));
    let mut line = String::new();
    let mut byte = [0];
    while !line.ends_with('\n') && ready.read(&mut byte).unwrap() == 1 {
        line.push(char::from(byte[0]));
    }
    starter.wait().unwrap();
    match line.trim_end().strip_prefix("ok ") {
        Some(pid) => {
            let client = Client::new(ours);
            let hand_off = HAND_OFF.load(std::sync::atomic::Ordering::Relaxed);
            let client = if hand_off { client.with_hand_off() } else { client };
            Ok(Gofer { client: Some(client), pid: pid.parse().unwrap() })
        }
        None => Err(line),
    }
}

fn mount(src: &str, writable: bool) -> Mount {
    Mount { src: src.into(), dst: "/".into(), writable }
}

fn rules() -> Vec<HideRule> {
    gofer::hidden::default_rules()
}

fn homes() -> Vec<String> {
    gofer::hidden::default_homes(&fs::read_to_string("/etc/passwd").unwrap())
}

/// A place of this user's own.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        let name =
            format!("gofer-confined-dir-{}-{}", std::process::id(), rustix::process::geteuid().as_raw());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn all_tests() {
    let root = rustix::process::geteuid().is_root();
    let dir = Dir::new();
    fs::create_dir(dir.0.join("secret")).unwrap();
    fs::write(dir.0.join("secret/key"), "key").unwrap();
    let path = dir.0.to_str().unwrap();
    let mut hide = rules();
    hide.push(HideRule { rule: "test".into(), path: format!("{path}/secret") });
    let config = GoferConfig { mounts: vec![mount("/", false), mount(path, true)], hide, homes: homes() };
    let gofer = start(&config, 2).unwrap();
    let client = gofer.client();
    reads(client);
    hides(client, path);
    writes(client, root, path);
    looks(gofer.pid, root);
    drop(gofer);

    let read_only = GoferConfig { mounts: vec![mount("/usr", false)], hide: rules(), homes: homes() };
    let gofer = start(&read_only, 1).unwrap();
    reads_a_directory(gofer.client());
    drop(gofer);

    dies_with_its_launcher();

    let missing = GoferConfig { mounts: vec![mount("/no/such/dir", false)], ..GoferConfig::default() };
    let error = start(&missing, 1).err().unwrap();
    assert!(error.contains("/no/such/dir") && error.ends_with('\n'), "{error}");
    println!("confined: {}: ok", if root { "root" } else { "ordinary user" });
}

fn reads(client: &Client) {
    let root = client.attach(0).unwrap();
    assert!(!root.writable);
    let walk = client.walk(root.root.node, &[b"etc", b"passwd"], Some(READ)).unwrap();
    let mut text = String::new();
    fs::File::from(walk.file.unwrap().unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, fs::read_to_string("/etc/passwd").unwrap());
    let host = fs::metadata("/etc/passwd").unwrap();
    let attr = walk.steps[1].attr;
    assert_eq!(
        (attr.uid, attr.gid, attr.ino),
        (host.uid(), host.gid(), host.ino()),
        "owners are the real ones"
    );
    let again = client.open(walk.steps[1].node, READ).unwrap().1;
    assert_eq!((again.uid, again.gid), (host.uid(), host.gid()));
    let refused = client.open(walk.steps[1].node, BOTH).unwrap_err();
    assert_eq!(refused, GoferError::Errno(libc::EROFS));
}

fn reads_a_directory(client: &Client) {
    let root = client.attach(0).unwrap().root.node;
    let dir = client.walk(root, &[b"lib", b"x86_64-linux-gnu"], None).unwrap();
    let dir = dir.steps.last().unwrap().node;
    let mut cursor = Some(0);
    let mut count = 0;
    while let Some(at) = cursor {
        let page = client.read_dir(dir, at, true).unwrap();
        for entry in &page.entries {
            let name = std::str::from_utf8(&entry.name.0).unwrap();
            let host = fs::symlink_metadata(format!("/usr/lib/x86_64-linux-gnu/{name}")).unwrap();
            let attr = entry.attr.unwrap();
            assert_eq!((attr.uid, attr.gid, attr.size), (host.uid(), host.gid(), host.size()), "{name}");
            count += 1;
        }
        cursor = page.next;
    }
    assert!(count > 10);
}

fn hides(client: &Client, path: &str) {
    let denied = |rule: &str| GoferError::Denied { rule: rule.into() };
    let root = client.attach(0).unwrap().root.node;
    for name in [b"proc".as_slice(), b"sys", b"dev"] {
        assert_eq!(client.lookup(root, name).unwrap_err(), denied("kernel-files"));
    }
    let mut at = root;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        at = client.lookup(at, part.as_bytes()).unwrap().node;
    }
    assert_eq!(client.lookup(at, b"secret").unwrap_err(), denied("test"));
    let writable = client.attach(1).unwrap().root.node;
    assert_eq!(client.lookup(writable, b"secret").unwrap_err(), denied("test"));
    assert_eq!(
        client.mkdir(at, b"new", NewInode { mode: 0o755, masked: 0, owner: None }).unwrap_err(),
        GoferError::Errno(libc::EROFS)
    );
}

fn writes(client: &Client, root: bool, path: &str) {
    let dir = client.attach(1).unwrap();
    assert!(dir.writable);
    let dir = dir.root.node;
    let owner = if root { Some((1234, 2345)) } else { None };
    let new = NewInode { mode: 0o4751, masked: 0, owner };
    let (fd, step) = client.create(dir, b"file", new, BOTH).unwrap();
    std::io::Write::write_all(&mut fs::File::from(fd), b"content").unwrap();
    let host = fs::metadata(format!("{path}/file")).unwrap();
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    assert_eq!((host.uid(), host.gid()), owner.unwrap_or(me));
    // A write by an ordinary user takes the set-user-id bit away.
    assert_eq!((step.attr.mode & 0o7777, host.mode() & 0o777, host.len()), (0o4751, 0o751, 7));
    let set = |uid, gid| SetAttr { uid: Some(uid), gid: Some(gid), ..SetAttr::default() };
    let chown = client.setattr(step.node, set(7, 8)).map(|attr| (attr.uid, attr.gid));
    if root {
        assert_eq!(chown, Ok((7, 8)));
    } else {
        assert_eq!(chown, Err(GoferError::Errno(libc::EPERM)));
        client.setattr(step.node, set(me.0, me.1)).unwrap();
    }
    let all = SetAttr {
        mode: Some(0o600),
        size: Some(3),
        atime: Some(SetTime::Now),
        mtime: Some(SetTime::At(Time { sec: 5, nsec: 6 })),
        ..SetAttr::default()
    };
    let attr = client.setattr(step.node, all).unwrap();
    assert_eq!((attr.mode & 0o7777, attr.size, attr.mtime.sec), (0o600, 3, 5));
    // Everything that a filter could have forgotten.
    let new = NewInode { mode: 0o755, masked: 0, owner };
    let sub = client.mkdir(dir, b"sub", new).unwrap().node;
    client.mknod(sub, b"fifo", new, NodeKind::Fifo).unwrap();
    client.mknod(sub, b"regular", new, NodeKind::Regular).unwrap();
    client.symlink(sub, b"link", b"to", owner).unwrap();
    client.link(step.node, sub, b"hard").unwrap();
    client.rename((sub, b"hard"), (dir, b"hard"), RenameMode::Replace).unwrap();
    client.rename((sub, b"link"), (dir, b"link"), RenameMode::NoReplace).unwrap();
    match client.setxattr(step.node, b"user.x", b"y", XattrMode::Any) {
        Ok(()) => {
            assert_eq!(client.getxattr(step.node, b"user.x").unwrap(), b"y");
            assert!(!client.listxattr(step.node).unwrap().is_empty());
            client.removexattr(step.node, b"user.x").unwrap();
        }
        Err(error) => assert_eq!(error, GoferError::Errno(libc::EOPNOTSUPP)),
    }
    if let Ok((_, nameless)) = client.tmpfile(dir, new, BOTH) {
        client.link(nameless.node, dir, b"named").unwrap();
    }
    let (watch, _) = client.watch(dir, 0x100).unwrap();
    client.unwatch(watch).unwrap();
    client.fsync(step.node, false).unwrap();
    client.fsync(dir, true).unwrap();
    client.syncfs(dir).unwrap();
    client.statfs(dir).unwrap();
    let page = client.read_dir(sub, 0, true).unwrap();
    assert_eq!(page.entries.len(), 2);
    client.read_dir(sub, page.entries[0].next, true).unwrap();
    client.unlink(sub, b"fifo").unwrap();
    client.unlink(sub, b"regular").unwrap();
    client.rmdir(dir, b"sub").unwrap();
    client.forget(&[sub, step.node]).unwrap();
}

/// What the host sees of the process.
fn looks(pid: i32, root: bool) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once(':').unwrap().1.trim().to_string()
    };
    assert_eq!(field("Name"), "lazaret-gofer");
    assert_eq!((field("NoNewPrivs").as_str(), field("Seccomp").as_str()), ("1", "2"));
    let capabilities = u64::from_str_radix(&field("CapEff"), 16).unwrap();
    assert_eq!(capabilities, if root { 0b1101_1111 } else { 0 }, "{capabilities:b}");
    assert_eq!(
        (field("CapBnd").as_str(), field("CapInh").as_str()),
        ("0000000000000000", "0000000000000000")
    );
    assert_eq!(field("NSpid").split_whitespace().last(), Some("1"));
    for space in ["user", "mnt", "pid", "net", "ipc", "uts"] {
        let (theirs, ours) = (format!("/proc/{pid}/ns/{space}"), format!("/proc/self/ns/{space}"));
        if let Ok(theirs) = fs::read_link(theirs) {
            assert_ne!(theirs, fs::read_link(ours).unwrap(), "{space}");
        }
    }
    if root {
        // Its root holds nothing but the two covers.
        let mut names: Vec<_> = fs::read_dir(format!("/proc/{pid}/root/"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["d", "f"]);
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        for task in tasks {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            assert!(status.contains("Seccomp:\t2"), "every thread has the filter");
        }
    }
}

fn measure() {
    let config = GoferConfig { mounts: vec![mount("/", false)], hide: rules(), homes: homes() };
    let mut starts: Vec<Duration> = (0..30)
        .map(|_| {
            let begin = Instant::now();
            let gofer = start(&config, 2).unwrap();
            let took = begin.elapsed();
            drop(gofer);
            took
        })
        .collect();
    starts.sort();
    println!("start, exec to ready: median {:?}, least {:?}", starts[15], starts[0]);
    for hand_off in [false, true] {
        HAND_OFF.store(hand_off, std::sync::atomic::Ordering::Relaxed);
        println!("{}", if hand_off { "with hand-off" } else { "plain" });
        measure_calls(&config);
    }
}

fn measure_calls(config: &GoferConfig) {
    let lanes = std::thread::available_parallelism().map_or(1, Into::into);
    let gofer = start(config, lanes).unwrap();
    let client = gofer.client();
    let root = client.attach(0).unwrap().root.node;
    let etc = client.lookup(root, b"etc").unwrap().node;
    let time = |what: &str, call: &dyn Fn()| {
        for _ in 0..200 {
            call();
        }
        let begin = Instant::now();
        for _ in 0..5000 {
            call();
        }
        println!("{what}: {:.1} us", begin.elapsed().as_secs_f64() * 1e6 / 5000.0);
    };
    time("getattr", &|| drop(client.getattr(etc)));
    time("walk of one missing name", &|| drop(client.lookup(etc, b"none")));
    time("walk of one name, and forget", &|| {
        let node = client.lookup(etc, b"passwd").unwrap().node;
        client.forget(&[node]).unwrap();
    });
    time("walk of two names with open, and forget", &|| {
        let walk = client.walk(root, &[b"etc", b"passwd"], Some(READ)).unwrap();
        client.forget(&[walk.steps[0].node, walk.steps[1].node]).unwrap();
    });
    let mut nodes = Vec::with_capacity(5200);
    let mut many = || {
        let begin = Instant::now();
        nodes.extend((0..5000).map(|_| client.lookup(etc, b"passwd").unwrap().node));
        println!("walk of one name: {:.1} us", begin.elapsed().as_secs_f64() * 1e6 / 5000.0);
        let begin = Instant::now();
        for node in nodes.drain(..) {
            client.forget(&[node]).unwrap();
        }
        println!("forget of one node: {:.1} us", begin.elapsed().as_secs_f64() * 1e6 / 5000.0);
    };
    many();
    many();
    let begin = Instant::now();
    let walk = client.walk(root, &[b"usr", b"bin"], None).unwrap();
    let bin = walk.steps.last().unwrap().node;
    let (mut count, mut pages, mut cursor) = (0, 0, Some(0));
    while let Some(at) = cursor {
        let page = client.read_dir(bin, at, true).unwrap();
        count += page.entries.len();
        pages += 1;
        cursor = page.next;
    }
    let memory = fs::read_to_string(format!("/proc/{}/smaps_rollup", gofer.pid)).unwrap();
    let memory: Vec<&str> =
        memory.lines().filter(|line| line.starts_with("Rss") || line.starts_with("Pss:")).collect();
    println!("{}", memory.join(", "));
    println!("/usr/bin: {count} entries with attributes in {pages} pages, {:?}", begin.elapsed());
}
