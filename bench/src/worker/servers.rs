//! Servers under load: the time of one request.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::programs::{Stop, program, repeat, scratch};
use super::{Measured, Place, figure};

/// A port that nobody has just now.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Waits until somebody listens.
fn connected(port: u16, server: &mut Stop) -> io::Result<TcpStream> {
    let start = Instant::now();
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => return Ok(stream),
            Err(error) if start.elapsed() > Duration::from_secs(5) || server.0.try_wait()?.is_some() => {
                return Err(error);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn configuration(dir: &Path, port: u16) -> String {
    let d = dir.display();
    let kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let kept: String = kept.iter().map(|kind| format!("{kind}_temp_path {d}/{kind}; ")).collect();
    format!(
        "daemon off; pid {d}/pid; error_log {d}/errors; worker_processes 1; events {{ worker_connections 256; }}\n\
         http {{ access_log off; {kept}server {{ listen 127.0.0.1:{port}; root {d}/html; }} }}\n"
    )
}

/// One file of 1 KiB, asked for over twenty connections that stay open: wrk counts for a second at a time.
pub fn nginx(place: &Place<'_>) -> Measured {
    let dir = scratch("nginx");
    let port = free_port()?;
    std::fs::create_dir_all(dir.join("html"))?;
    std::fs::write(dir.join("html/index.html"), vec![b'h'; 1024])?;
    std::fs::write(dir.join("conf"), configuration(&dir, port))?;
    let mut server = program("nginx")?;
    server.arg("-p").arg(&dir).arg("-c").arg(dir.join("conf"));
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut server = Stop(server);
    let result = under_wrk(place, port, &mut server);
    // Its worker goes when the master does so in order.
    let _ = program("kill").and_then(|mut kill| kill.arg(server.0.id().to_string()).status());
    let _ = server.0.wait();
    drop(server);
    let _ = std::fs::remove_dir_all(&dir);
    result
}

fn under_wrk(place: &Place<'_>, port: u16, server: &mut Stop) -> Measured {
    connected(port, server)?;
    let whole = Instant::now();
    let mut figures = Vec::new();
    while figures.len() < 3 || whole.elapsed() < place.budget {
        let out = program("wrk")?
            .args(["-t1", "-c20", "-d1s", &format!("http://127.0.0.1:{port}/")])
            .stderr(Stdio::null())
            .output()?;
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let rate =
            text.lines().find_map(|line| line.strip_prefix("Requests/sec:")?.trim().parse::<f64>().ok());
        let failed = text.contains("Socket errors") || text.contains("Non-2xx");
        match rate {
            Some(rate) if rate > 0.0 && !failed => figures.push(1e9 / rate),
            _ => return Err(io::Error::other("wrk had errors")),
        }
    }
    Ok(figure(figures))
}

/// One client that sets a value and reads it back.
pub fn memcached(place: &Place<'_>) -> Measured {
    let port = free_port()?;
    let mut server = program("memcached")?;
    // It does not run as root; other users do not change theirs.
    server.args(["-U", "0", "-l", "127.0.0.1", "-t", "1", "-u", "nobody", "-p", &port.to_string()]);
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut server = Stop(server);
    let mut to = connected(port, &mut server)?;
    to.set_nodelay(true)?;
    let mut from = BufReader::new(to.try_clone()?);
    let mut line = String::new();
    let mut expect = |from: &mut BufReader<TcpStream>, wanted: &str| {
        line.clear();
        from.read_line(&mut line)?;
        if line.trim_end() == wanted { Ok(()) } else { Err(io::Error::other(format!("answered {line:?}"))) }
    };
    repeat(place, || {
        to.write_all(b"set key 0 0 5\r\nvalue\r\n")?;
        expect(&mut from, "STORED")?;
        to.write_all(b"get key\r\n")?;
        expect(&mut from, "VALUE key 0 5")?;
        expect(&mut from, "value")?;
        expect(&mut from, "END")
    })
}
