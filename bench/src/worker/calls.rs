//! Small calls, one after the other.

use std::ffi::{CString, OsStr};
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Measured, Place, batches};
use bench::host;

/// One operation of a row.
pub type Call = Box<dyn FnMut() -> io::Result<()>>;

/// Measures the row if it is a small call.
pub fn measure(row: &str, place: &Place<'_>) -> Option<Measured> {
    let mut call = match make(row, place.fixture)? {
        Ok(call) => call,
        Err(error) => return Some(Err(error)),
    };
    Some(batches(place.budget, |count| (0..count).try_for_each(|_| call())))
}

/// Sets up the operation of a row.
pub fn make(row: &str, fixture: &Path) -> Option<io::Result<Call>> {
    Some(match row {
        "getpid" => Ok(Box::new(|| {
            black_box(host::getpid());
            Ok(())
        })),
        "fstat" => with_file(fixture, |fd| host::fstat(fd).map(drop)),
        "lseek" => with_file(fixture, |fd| host::lseek(fd, 0, libc::SEEK_CUR).map(drop)),
        "read" => with_file(fixture, |fd| {
            if host::read(fd, &mut [0; 1])? == 0 {
                host::lseek(fd, 0, libc::SEEK_SET)?;
            }
            Ok(())
        }),
        "pread" => {
            let mut buffer = [0; 4096];
            with_file(fixture, move |fd| host::pread(fd, black_box(&mut buffer), 8192).map(drop))
        }
        "stat" => {
            path(&fixture.join("data")).map(|path| -> Call { Box::new(move || host::stat(&path).map(drop)) })
        }
        "open" => path(&fixture.join("data")).map(|path| -> Call {
            Box::new(move || host::open(&path, libc::O_RDONLY | libc::O_CLOEXEC).map(drop))
        }),
        "pwrite" => pwrite(),
        "create" => create(),
        "getdents" => {
            let directory = fixture.join("many");
            Ok(Box::new(move || {
                std::fs::read_dir(&directory).map(|entries| {
                    black_box(entries.count());
                })
            }))
        }
        _ => return None,
    })
}

fn with_file(
    fixture: &Path,
    mut operation: impl FnMut(std::os::fd::BorrowedFd<'_>) -> io::Result<()> + 'static,
) -> io::Result<Call> {
    let file = host::open(&path(&fixture.join("data"))?, libc::O_RDONLY | libc::O_CLOEXEC)?;
    Ok(Box::new(move || operation(file.as_fd())))
}

fn pwrite() -> io::Result<Call> {
    let name = path(&super::programs::scratch("pwrite"))?;
    let file = host::open(&name, libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC)?;
    host::unlink(&name)?;
    let buffer = [7; 4096];
    Ok(Box::new(move || host::pwrite(file.as_fd(), &buffer, 8192).map(drop)))
}

fn create() -> io::Result<Call> {
    let name = path(&super::programs::scratch("create"))?;
    Ok(Box::new(move || {
        drop(host::open(&name, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC)?);
        host::unlink(&name)
    }))
}

pub fn path(path: &Path) -> io::Result<CString> {
    CString::new(OsStr::as_bytes(path.as_os_str())).map_err(io::Error::other)
}
