//! What stands between a program and the host: nothing, or a sandbox's command.

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bench::child::{self, Ended};

/// A directory with a copy of the command that others may run.
struct Copy(PathBuf);

impl Copy {
    fn of(program: &Path) -> std::io::Result<Self> {
        let dir = PathBuf::from(format!("/tmp/compat-suite-{}", std::process::id()));
        std::fs::create_dir(&dir)?;
        let copy = Copy(dir);
        let file = copy.0.join("lazaret");
        std::fs::copy(program, &file)?;
        for path in [&copy.0, &file] {
            std::fs::set_permissions(path, Permissions::from_mode(0o755))?;
        }
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A sandbox's command, up to the program that it is to run, and who runs it.
pub struct Under {
    words: Vec<OsString>,
    /// Becomes the user, or gives up what tests may not do to the host.
    who: Vec<OsString>,
    /// As root: the native side's own host name.
    native: Vec<OsString>,
    home: Option<OsString>,
    keep: Option<PathBuf>,
    copy: Option<Copy>,
}

impl Under {
    /// `lazaret do`, as built beside this program unless `given` says where.
    pub fn lazaret(given: Option<&Path>, platform: Option<&str>) -> Result<Self, String> {
        let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("lazaret"));
        let program = given.map(Path::to_path_buf).or(beside).filter(|path| path.exists());
        let program = program.ok_or("no lazaret to run under: cargo build --release")?;
        let mut words = vec![program.into_os_string(), "do".into()];
        if let Some(platform) = platform {
            words.extend(["--platform".into(), platform.into()]);
        }
        words.push("--".into());
        Ok(Self::new(words))
    }

    fn new(words: Vec<OsString>) -> Self {
        let root = rustix::process::geteuid().is_root();
        let list = |words: &[&str]| words.iter().map(OsString::from).collect();
        Self {
            words,
            who: if root { list(&["setpriv", "--bounding-set=-sys_time", "--"]) } else { Vec::new() },
            native: if root { list(&["unshare", "--uts", "--"]) } else { Vec::new() },
            home: None,
            keep: None,
            copy: None,
        }
    }

    /// Both sides run as this user from now on, the sandbox's command from a place where others may read it.
    pub fn become_user(&mut self, user: &str) -> Result<(), Box<dyn Error>> {
        let passwd = std::fs::read_to_string("/etc/passwd")?;
        let mut lines = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let fields =
            lines.find(|fields| fields.first() == Some(&user)).ok_or("--user: nobody has this name")?;
        let [_, _, uid, gid, _, home, ..] = fields[..] else {
            return Err("/etc/passwd: a short line".into());
        };
        self.who = [
            "setpriv".into(),
            format!("--reuid={uid}"),
            format!("--regid={gid}"),
            "--init-groups".into(),
            "--".into(),
        ]
        .map(|word: String| word.into())
        .to_vec();
        self.native = Vec::new();
        self.home = Some(home.into());
        if let Some(program) = self.words.first_mut().filter(|program| program.as_bytes().contains(&b'/')) {
            let copy = Copy::of(Path::new(program))?;
            *program = copy.0.join("lazaret").into_os_string();
            self.copy = Some(copy);
        }
        Ok(())
    }

    /// Output of what differs goes to this directory.
    pub fn keep(&mut self, dir: &Path) {
        self.keep = Some(dir.to_path_buf());
    }

    /// Keeps the output of both sides, if that is wanted.
    pub fn save(&self, name: &str, native: &Ended, inside: &Ended) {
        let Some(dir) = &self.keep else { return };
        for (side, ended) in [("native", native), ("inside", inside)] {
            let file = dir.join(format!("{name}.{side}"));
            if let Err(error) = std::fs::write(&file, &ended.output) {
                eprintln!("compat-suite: {}: {error}", file.display());
            }
        }
    }

    /// Any other command.
    pub fn words(words: &str) -> Result<Self, String> {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        if words.is_empty() { Err("--under needs a command".to_owned()) } else { Ok(Self::new(words)) }
    }

    /// The command line as the report shows it.
    pub fn shown(&self) -> String {
        let words: Vec<_> = self.who.iter().chain(&self.words).map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Runs a program natively and then inside, both from the directory for temporary files.
    pub fn both<S: AsRef<OsStr>>(&self, program: &[S], limit: Duration) -> (Ended, Ended) {
        let program = || program.iter().map(AsRef::as_ref);
        let native: Vec<&OsStr> =
            self.who.iter().chain(&self.native).map(OsString::as_os_str).chain(program()).collect();
        let inside: Vec<&OsStr> =
            self.who.iter().chain(&self.words).map(OsString::as_os_str).chain(program()).collect();
        (self.start(&native, limit), self.start(&inside, limit))
    }

    fn start(&self, words: &[&OsStr], limit: Duration) -> Ended {
        let (program, arguments) =
            words.split_first().map_or((OsStr::new(""), &[][..]), |(first, rest)| (*first, rest));
        // Both streams into one pipe, in the order of writing.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(program).args(arguments);
        command.current_dir("/tmp").env_remove("TMPDIR").env("LC_ALL", "C.UTF-8");
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        child::run(&mut command, limit)
    }
}
