//! What stands between a program and the host: nothing, or a sandbox's command.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench::child::{self, Ended};

/// A sandbox's command, up to the program that it is to run.
pub struct Under(Vec<OsString>);

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
        Ok(Self(words))
    }

    /// Any other command.
    pub fn words(words: &str) -> Result<Self, String> {
        let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
        if words.is_empty() { Err("--under needs a command".to_owned()) } else { Ok(Self(words)) }
    }

    /// The command line as the report shows it.
    pub fn shown(&self) -> String {
        let words: Vec<_> = self.0.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Runs a program natively and then inside, both from the directory for temporary files.
    pub fn both<S: AsRef<OsStr>>(&self, program: &[S], limit: Duration) -> (Ended, Ended) {
        let native: Vec<&OsStr> = program.iter().map(AsRef::as_ref).collect();
        let inside: Vec<&OsStr> =
            self.0.iter().map(OsString::as_os_str).chain(native.iter().copied()).collect();
        (start(&native, limit), start(&inside, limit))
    }
}

fn start(words: &[&OsStr], limit: Duration) -> Ended {
    let (program, arguments) =
        words.split_first().map_or((OsStr::new(""), &[][..]), |(first, rest)| (*first, rest));
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/tmp").env_remove("TMPDIR").env("LC_ALL", "C.UTF-8");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    child::run(&mut command, limit)
}
