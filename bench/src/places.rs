//! The places where a worker runs: the host itself, lazaret, and the peers that are installed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One place.
pub struct Place {
    pub name: &'static str,
    /// What goes before the program; empty on the host itself.
    prefix: Vec<OsString>,
    /// Why it is not measured.
    pub missing: Option<String>,
}

impl Place {
    /// The command that runs `program` here, with no input and no error output.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = match self.prefix.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        // A sandbox's place for temporary files is its own: an outer name for it may not exist there.
        command.env_remove("TMPDIR");
        command
    }
}

/// All places: native first, then lazaret, then the peers.
pub fn all(lazaret: Option<&Path>, platforms: &[String]) -> Vec<Place> {
    let mut places = vec![place("native", None, &[]), lazaret_place("lazaret", lazaret, None)];
    for platform in platforms {
        match platform.as_str() {
            "trap" => places.push(lazaret_place("laz-trap", lazaret, Some("trap"))),
            _ => places.push(lazaret_place("laz-ptrace", lazaret, Some("ptrace"))),
        }
    }
    places.push(peer("bwrap", &["--die-with-parent", "--dev-bind", "/", "/", "--"]));
    places.push(peer("proot", &[]));
    places.push(peer("runsc", &["--platform=ptrace", "--rootless", "--network=none", "do"]));
    places
}

fn lazaret_place(name: &'static str, given: Option<&Path>, platform: Option<&str>) -> Place {
    let beside = std::env::current_exe().ok().map(|exe| exe.with_file_name("lazaret"));
    let found = given.map(Path::to_path_buf).or(beside).filter(|path| path.exists());
    let mut arguments = vec!["do"];
    if let Some(platform) = platform {
        arguments.extend(["--platform", platform]);
    }
    arguments.push("--");
    let mut place = place(name, found, &arguments);
    if place.prefix.is_empty() {
        place.missing = Some("not built: cargo build --release".to_owned());
    }
    place
}

fn peer(name: &'static str, arguments: &[&str]) -> Place {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search).map(|dir| dir.join(name)).find(|path| path.is_file());
    let mut place = place(name, found, arguments);
    if place.prefix.is_empty() {
        place.missing = Some("not installed".to_owned());
    }
    place
}

fn place(name: &'static str, program: Option<PathBuf>, arguments: &[&str]) -> Place {
    let mut prefix = Vec::new();
    if let Some(program) = program {
        prefix.push(program.into_os_string());
        prefix.extend(arguments.iter().map(OsString::from));
    }
    Place { name, prefix, missing: None }
}
