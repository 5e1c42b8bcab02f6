//! Whole programs, started again and again from inside.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Measured, Place, batches, servers};

/// Measures the row if it is a program's.
pub fn measure(row: &str, place: &Place<'_>) -> Measured {
    let fixture = place.fixture;
    match row {
        "python" => repeat(place, || quiet(program("python3")?.args(["-c", "pass"]))),
        "sqlite" => {
            let file = scratch("sqlite");
            let script = fixture.join("fill.sql");
            repeat(place, || {
                let mut command = program("sqlite3")?;
                command
                    .arg(&file)
                    .stdin(std::fs::File::open(&script)?)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                let result = succeed(&mut command);
                std::fs::remove_file(&file)?;
                result
            })
        }
        "git" => repeat(place, || {
            let mut command = program("git")?;
            quiet(
                command.args(["-c", "safe.directory=*", "-C"]).arg(fixture.join("repository")).arg("status"),
            )
        }),
        "tar" => {
            let file = scratch("tar");
            let result = repeat(place, || {
                quiet(program("tar")?.arg("cf").arg(&file).arg("-C").arg(fixture).arg("many"))
            });
            let _ = std::fs::remove_file(&file);
            result
        }
        "gcc" => {
            let file = scratch("gcc");
            let result = repeat(place, || {
                quiet(program("gcc")?.arg("-O1").arg(fixture.join("hello.c")).arg("-o").arg(&file))
            });
            let _ = std::fs::remove_file(&file);
            result
        }
        "redis" => redis(place),
        "nginx" => servers::nginx(place),
        "memcached" => servers::memcached(place),
        _ => Err(io::Error::other("no such row")),
    }
}

/// A name of this worker's own in the place for temporary files.
pub fn scratch(what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("lazaret-bench-{what}.{}", std::process::id()))
}

pub fn repeat(place: &Place<'_>, mut run: impl FnMut() -> io::Result<()>) -> Measured {
    batches(place.budget, |count| (0..count).try_for_each(|_| run()))
}

/// The program itself, before any wrapper script that a search path may put in front of it.
pub fn program(name: &str) -> io::Result<Command> {
    find(name).map(Command::new).ok_or_else(|| io::Error::other(format!("{name} is not installed")))
}

fn find(name: &str) -> Option<PathBuf> {
    ["/usr/bin", "/bin", "/usr/sbin", "/usr/local/bin"]
        .iter()
        .map(|dir| Path::new(dir).join(name))
        .find(|path| path.exists())
}

fn quiet(command: &mut Command) -> io::Result<()> {
    succeed(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    let name = command.get_program().display().to_string();
    Err(io::Error::other(format!("{name}: {status}")))
}

/// 20,000 requests, half SET and half GET, from eight clients over a unix socket.
fn redis(place: &Place<'_>) -> Measured {
    let socket = scratch("redis");
    let mut server = program("redis-server")?;
    server.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"]).arg(&socket);
    let mut server = Stop(server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    let start = Instant::now();
    while !socket.exists() {
        if start.elapsed() > Duration::from_secs(5) || server.0.try_wait()?.is_some() {
            return Err(io::Error::other("redis-server does not start"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let result = repeat(place, || {
        let mut client = program("redis-benchmark")?;
        quiet(client.arg("-s").arg(&socket).args(["-t", "set,get", "-n", "10000", "-c", "8", "-q"]))
    });
    drop(server);
    let _ = std::fs::remove_file(&socket);
    result
}

/// A child that does not outlive its row.
pub struct Stop(pub Child);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
