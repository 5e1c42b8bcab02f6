//! Host calls on inherited standard streams that no safe wrapper offers. One operation each.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Requests that [`ioctl_get`] makes, with the bytes they write.
const GET: &[(u32, usize)] = &[
    (0x5401, 36),      // TCGETS
    (0x802c_542a, 44), // TCGETS2
    (0x5413, 8),       // TIOCGWINSZ
    (0x541b, 4),       // FIONREAD
    (0x5411, 4),       // TIOCOUTQ
];

/// Requests that [`ioctl_set`] makes, with the bytes they read.
const SET: &[(u32, usize)] = &[
    (0x5402, 36),      // TCSETS
    (0x5403, 36),      // TCSETSW
    (0x5404, 36),      // TCSETSF
    (0x402c_542b, 44), // TCSETS2
    (0x402c_542c, 44), // TCSETSW2
    (0x402c_542d, 44), // TCSETSF2
    (0x5414, 8),       // TIOCSWINSZ
];

/// Requests that [`ioctl_value`] makes: their argument is a number.
const VALUE: &[u32] = &[
    0x540a, // TCXONC
    0x540b, // TCFLSH
];

fn size_of_request(list: &[(u32, usize)], request: u32) -> Option<usize> {
    list.iter().find(|(known, _)| *known == request).map(|(_, size)| *size)
}

/// Bytes that a request which reads from the terminal gives; `None` for other requests.
pub fn get_size(request: u32) -> Option<usize> {
    size_of_request(GET, request)
}

/// Bytes that a request which sets something takes; `None` for other requests.
pub fn set_size(request: u32) -> Option<usize> {
    size_of_request(SET, request)
}

/// Whether the request's argument is a number.
pub fn takes_value(request: u32) -> bool {
    VALUE.contains(&request)
}

fn done(ret: i32) -> io::Result<()> {
    if ret < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// An ioctl that fills in a buffer.
///
/// # Errors
/// ENOTTY for a request that is not listed, else what the host says.
pub fn ioctl_get(fd: BorrowedFd<'_>, request: u32) -> io::Result<Vec<u8>> {
    let size = get_size(request).ok_or(io::Error::from_raw_os_error(libc::ENOTTY))?;
    let mut buffer = vec![0u8; size];
    // SAFETY: the kernel writes as many bytes as the list says, which the buffer has.
    done(unsafe { libc::ioctl(fd.as_raw_fd(), request.into(), buffer.as_mut_ptr()) })?;
    Ok(buffer)
}

/// An ioctl that reads a buffer.
///
/// # Errors
/// ENOTTY for a request that is not listed or data of another size, else what the host says.
pub fn ioctl_set(fd: BorrowedFd<'_>, request: u32, data: &[u8]) -> io::Result<()> {
    if set_size(request) != Some(data.len()) {
        return Err(io::Error::from_raw_os_error(libc::ENOTTY));
    }
    // SAFETY: the kernel reads as many bytes as the list says, which the data has.
    done(unsafe { libc::ioctl(fd.as_raw_fd(), request.into(), data.as_ptr()) })
}

/// An ioctl whose argument is a number.
///
/// # Errors
/// ENOTTY for a request that is not listed, else what the host says.
pub fn ioctl_value(fd: BorrowedFd<'_>, request: u32, value: u64) -> io::Result<()> {
    if !takes_value(request) {
        return Err(io::Error::from_raw_os_error(libc::ENOTTY));
    }
    // SAFETY: no pointers.
    done(unsafe { libc::ioctl(fd.as_raw_fd(), request.into(), value) })
}
