//! Calls as text, in the manner of strace(1): `openat(AT_FDCWD, "/etc/passwd", O_RDONLY|O_CLOEXEC) = 3`.

mod special;
mod structs;
mod symbols;
mod text;

use crate::{ArgInfo, ArgKind, Errno, Row};
use special::Shown;
use structs::Around;

/// Reads guest memory: address and length to exactly that many bytes, `None` if any of them cannot be read.
pub type Reader<'a> = &'a dyn Fn(u64, usize) -> Option<Vec<u8>>;

/// One call being shown.
struct Call<'a> {
    row: &'a Row,
    args: &'a [u64; 6],
    read: Reader<'a>,
    result: Option<i64>,
}

/// The call as one line without newline. `result` is the value of rax, or `None` while the call has not returned:
/// then what it will write is shown as an address, and the line ends with the closing bracket.
pub fn format_call(row: &Row, args: &[u64; 6], read: Reader<'_>, result: Option<i64>) -> String {
    let call = Call { row, args, read, result };
    let mut parts = Vec::with_capacity(6);
    for (at, arg) in row.args.iter().enumerate() {
        match special::argument(&call, at) {
            Shown::As(text) => parts.push(text),
            Shown::Generic => parts.push(call.generic(at, arg)),
            Shown::End => break,
        }
    }
    let head = format!("{}({})", row.name, parts.join(", "));
    match result {
        None => head,
        Some(value) => format!("{head} = {}", call.show_result(value)),
    }
}

/// A call with a number that Linux does not have.
pub fn format_unknown(number: u32, args: &[u64; 6], result: Option<i64>) -> String {
    let args: Vec<String> = args.iter().map(|arg| format!("{arg:#x}")).collect();
    let head = format!("syscall_{number:#x}({})", args.join(", "));
    match result {
        None => head,
        Some(value) => format!("{head} = {}", show_error(value).unwrap_or_else(|| value.to_string())),
    }
}

/// A signal that arrives: `SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, ...}`, from the bytes of its siginfo.
pub fn format_signal(info: &crate::abi::Siginfo) -> String {
    let around = Around { read: &|_, _| None, after: true, known: 0 };
    let body = structs::show("Siginfo", info.bytes(), &around).unwrap_or_default();
    format!("{} {body}", symbols::signal(info.si_signo))
}

/// A signal's name (`SIGTERM`, `SIGRT_1`), or its number.
pub fn signal_name(number: i32) -> String {
    symbols::signal(number)
}

/// An error result, or `None`.
fn show_error(value: i64) -> Option<String> {
    let errno = Errno::from_result(value)?;
    Some(match errno.is_restart() {
        true => format!("? {} ({})", errno.name(), errno.message()),
        false if errno.name() == "E???" => format!("-1 (errno {})", errno.raw()),
        false => format!("-1 {} ({})", errno.name(), errno.message()),
    })
}

impl Call<'_> {
    fn arg(&self, at: usize) -> u64 {
        self.args.get(at).copied().unwrap_or(0)
    }

    /// The call has returned, and no error.
    fn succeeded(&self) -> bool {
        self.result.is_some_and(|value| Errno::from_result(value).is_none())
    }

    fn bytes(&self, at: usize, len: usize) -> Option<Vec<u8>> {
        match self.arg(at) {
            0 => None,
            addr => (self.read)(addr, len),
        }
    }

    fn int_at(&self, addr: u64) -> Option<i32> {
        if addr == 0 { None } else { text::int(self.read, addr) }
    }

    fn hex(&self, at: usize) -> String {
        text::pointer(self.arg(at))
    }

    /// A struct at this address.
    fn one(&self, type_name: &str, addr: u64, size: usize) -> String {
        if addr == 0 {
            return "NULL".to_owned();
        }
        let around = Around { read: self.read, after: self.result.is_some(), known: self.known(type_name) };
        (self.read)(addr, size)
            .and_then(|bytes| structs::show(type_name, &bytes, &around))
            .unwrap_or_else(|| text::pointer(addr))
    }

    /// How many bytes of data an iovec array or message holds: all of them on the way in; on the way out none
    /// before the call, then as many as it returned.
    fn known(&self, type_name: &str) -> u64 {
        let receives = matches!(
            self.row.name,
            "readv" | "preadv" | "preadv2" | "recvmsg" | "recvmmsg" | "process_vm_readv"
        );
        let addresses_only = matches!(self.row.name, "process_madvise" | "vmsplice");
        match (receives, self.result) {
            _ if addresses_only => 0,
            (false, _) => u64::MAX,
            (true, Some(value)) if value > 0 && type_name != "Mmsghdr" => value as u64,
            (true, _) => 0,
        }
    }

    /// A register as a number of its width.
    fn number(&self, at: usize, bits: u8, signed: bool) -> String {
        let raw = self.arg(at);
        match (bits, signed) {
            (32, true) => (raw as i32).to_string(),
            (32, false) => (raw as u32).to_string(),
            (_, true) => (raw as i64).to_string(),
            (_, false) => raw.to_string(),
        }
    }

    /// The length that the argument behind `at` gives.
    fn length_after(&self, at: usize) -> u64 {
        match self.row.args.get(at + 1).map(|arg| arg.kind) {
            Some(ArgKind::Int { bits: 32, signed: true }) => (self.arg(at + 1) as i32).max(0) as u64,
            Some(ArgKind::Int { bits: 32, signed: false }) => self.arg(at + 1) as u32 as u64,
            _ => self.arg(at + 1),
        }
    }

    /// An argument by its type alone.
    fn generic(&self, at: usize, arg: &ArgInfo) -> String {
        let raw = self.arg(at);
        match arg.kind {
            ArgKind::Int { .. } if matches!(arg.name, "offset" | "addr") && arg.type_name == "u64" => {
                format!("{raw:#x}")
            }
            ArgKind::Int { bits, signed } => self.number(at, bits, signed),
            ArgKind::Flags { .. } => {
                symbols::by_type(arg.type_name, raw).unwrap_or_else(|| format!("{raw:#x}"))
            }
            ArgKind::Fd | ArgKind::Pid => (raw as i32).to_string(),
            ArgKind::DirFd => match raw as i32 {
                crate::abi::AT_FDCWD => "AT_FDCWD".to_owned(),
                fd => fd.to_string(),
            },
            ArgKind::Signal => symbols::signal(raw as i32),
            ArgKind::Mode => format!("{:#05o}", raw as u16).replacen("0o", "0", 1),
            ArgKind::Id => match raw as u32 {
                u32::MAX => "-1".to_owned(),
                id => id.to_string(),
            },
            ArgKind::Addr => self.hex(at),
            ArgKind::Path => text::path(self.read, raw),
            ArgKind::CStr => text::string(self.read, raw),
            ArgKind::CStrArray if arg.name == "envp" => text::string_count(self.read, raw),
            ArgKind::CStrArray => text::strings(self.read, raw),
            ArgKind::InBuf if arg.type_name == "InSockaddr" => self.sockaddr(at, self.length_after(at)),
            ArgKind::InBuf => text::buffer(self.read, raw, self.length_after(at)),
            ArgKind::OutBuf => match self.result {
                Some(value) if self.succeeded() => {
                    text::buffer(self.read, raw, (value as u64).min(self.length_after(at)))
                }
                _ => self.hex(at),
            },
            ArgKind::OutVar => match self.int_at(self.arg(at + 1)) {
                Some(len) if self.succeeded() && arg.type_name == "OutSockaddr" => {
                    self.sockaddr(at, len.max(0) as u64)
                }
                Some(len) if self.succeeded() => text::buffer(self.read, raw, len.max(0) as u64),
                _ => self.hex(at),
            },
            ArgKind::In { size } | ArgKind::InOut { size } => self.one(inner(arg.type_name), raw, size),
            ArgKind::Out { size } if self.succeeded() => self.one(inner(arg.type_name), raw, size),
            ArgKind::Out { .. } => self.hex(at),
            ArgKind::InSlice { size } | ArgKind::InOutSlice { size } => {
                self.array(inner(arg.type_name), at, size, self.length_after(at))
            }
            ArgKind::OutSlice { size } => match self.result {
                Some(value) if self.succeeded() => {
                    self.array(inner(arg.type_name), at, size, (value as u64).min(self.length_after(at)))
                }
                _ => self.hex(at),
            },
        }
    }

    fn sockaddr(&self, at: usize, len: u64) -> String {
        self.bytes(at, len.min(128) as usize)
            .and_then(|bytes| structs::sockaddr(&bytes))
            .unwrap_or_else(|| self.hex(at))
    }

    fn array(&self, type_name: &str, at: usize, size: usize, count: u64) -> String {
        let addr = self.arg(at);
        if addr == 0 {
            return "NULL".to_owned();
        }
        let around = Around { read: self.read, after: self.result.is_some(), known: self.known(type_name) };
        structs::show_array(type_name, size, addr, count, &around).unwrap_or_else(|| self.hex(at))
    }

    fn show_result(&self, value: i64) -> String {
        if matches!(self.row.name, "exit" | "exit_group") {
            return "?".to_owned();
        }
        if let Some(error) = show_error(value) {
            return error;
        }
        if matches!(self.row.name, "mmap" | "mremap" | "brk" | "shmat") {
            return format!("{value:#x}");
        }
        match special::result_note(self, value) {
            Some(note) => format!("{value} ({note})"),
            None => value.to_string(),
        }
    }
}

/// `Timespec` of `In<Timespec>`.
fn inner(type_name: &str) -> &str {
    let from = type_name.find('<').map_or(0, |at| at + 1);
    type_name.get(from..).unwrap_or(type_name).trim_end_matches('>')
}

#[cfg(test)]
mod tests;
