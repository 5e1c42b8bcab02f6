//! The table as data.

use crate::Errno;
use crate::args::*;

/// How far a system call is supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Everything the man page says; the handler's path below the sentry's `syscalls` module.
    Full(&'static str),
    /// The note says what is missing; the handler's path.
    Partial(&'static str),
    /// Answered with ENOSYS and recorded as a gap.
    Missing,
    /// Answered with this errno and recorded as a gap; the note says why.
    Refused(Errno),
}

impl Level {
    /// `full`, `partial`, `missing` or `refused`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Full(_) => "full",
            Level::Partial(_) => "partial",
            Level::Missing => "missing",
            Level::Refused(_) => "refused",
        }
    }

    /// The handler's path, if there is one.
    pub const fn handler(self) -> Option<&'static str> {
        match self {
            Level::Full(path) | Level::Partial(path) => Some(path),
            Level::Missing | Level::Refused(_) => None,
        }
    }
}

/// One argument of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArgInfo {
    /// Name, after the man page.
    pub name: &'static str,
    /// Name of its type in [`crate::args`].
    pub type_name: &'static str,
    /// What it is.
    pub kind: ArgKind,
}

/// One system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Number.
    pub number: u32,
    /// Name.
    pub name: &'static str,
    /// Arguments, at most six.
    pub args: &'static [ArgInfo],
    /// Support.
    pub level: Level,
    /// What is missing, or why it is refused.
    pub note: &'static str,
}

/// Number of bytes that are no spaces.
const fn squeezed_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b' ' {
            count += 1;
        }
        at += 1;
    }
    count
}

/// The bytes that are no spaces.
const fn squeezed<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut out = [0; N];
    let (mut at, mut to) = (0, 0);
    while at < bytes.len() {
        if bytes[at] != b' ' {
            out[to] = bytes[at];
            to += 1;
        }
        at += 1;
    }
    out
}

/// A type as the table writes it; `stringify!` puts spaces around the angle brackets.
macro_rules! type_name {
    ($ty:ty) => {{
        const TEXT: &str = stringify!($ty);
        const BYTES: [u8; squeezed_len(TEXT)] = squeezed(TEXT);
        match core::str::from_utf8(&BYTES) {
            Ok(name) => name,
            Err(_) => TEXT,
        }
    }};
}

macro_rules! level {
    (Full($($path:tt)+)) => { Level::Full(stringify!($($path)+)) };
    (Partial($($path:tt)+)) => { Level::Partial(stringify!($($path)+)) };
    (Missing) => { Level::Missing };
    (Refused($errno:ident)) => { Level::Refused(Errno::$errno) };
}

macro_rules! rows {
    ($([$number:literal, $name:ident, ($($arg:ident : $ty:ty),*), $level:ident $(($($target:tt)*))?, $note:literal],)*) => {
        /// Every system call, by ascending number.
        pub static SYSCALLS: &[Row] = &[$(Row {
            number: $number,
            name: stringify!($name),
            args: &[$(ArgInfo { name: stringify!($arg), type_name: type_name!($ty), kind: <$ty as Arg>::KIND }),*],
            level: level!($level $(($($target)*))?),
            note: $note,
        }),*];
    };
}

for_each_syscall!(rows);

const LAST: usize = match SYSCALLS.last() {
    Some(row) => row.number as usize,
    None => 0,
};

/// Index into [`SYSCALLS`] by number; `u16::MAX` where Linux has no call. Building it checks the rows: ascending
/// numbers (so no number twice), at most six arguments, a note where the level needs one.
static INDEX: [u16; LAST + 1] = {
    let mut index = [u16::MAX; LAST + 1];
    let mut i = 0;
    while i < SYSCALLS.len() {
        let row = &SYSCALLS[i];
        assert!(i == 0 || SYSCALLS[i - 1].number < row.number, "row out of order, or a number twice");
        assert!(row.args.len() <= 6, "more than six arguments");
        assert!(
            matches!(row.level, Level::Full(_) | Level::Missing) || !row.note.is_empty(),
            "a partial or refused call needs a note"
        );
        index[row.number as usize] = i as u16;
        i += 1;
    }
    index
};

/// The row of a number.
pub fn by_number(number: u32) -> Option<&'static Row> {
    SYSCALLS.get(*INDEX.get(number as usize)? as usize)
}

/// The row of a name.
pub fn by_name(name: &str) -> Option<&'static Row> {
    SYSCALLS.iter().find(|row| row.name == name)
}

/// How far one entry of a [`SubTable`] is supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubLevel {
    /// As Linux has it.
    Full,
    /// The note says what is missing.
    Partial,
    /// A gap: answered as Linux answers what it does not know (EINVAL, ENOTTY, ENOPROTOOPT, ENOENT).
    Missing,
    /// A gap: answered with this errno; the note says why.
    Refused(Errno),
}

impl SubLevel {
    /// `full`, `partial`, `missing` or `refused`.
    pub const fn name(self) -> &'static str {
        match self {
            SubLevel::Full => "full",
            SubLevel::Partial => "partial",
            SubLevel::Missing => "missing",
            SubLevel::Refused(_) => "refused",
        }
    }
}

/// One flag, command, option or path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubRow {
    /// The constant's name, or the path.
    pub name: &'static str,
    /// Its value (0 for a path).
    pub value: u64,
    /// Support.
    pub level: SubLevel,
    /// What is missing, or why it is refused.
    pub note: &'static str,
}

/// What is supported of one argument of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubTable {
    /// What the rows are: `flags`, `requests`.
    pub title: &'static str,
    /// The call, or the file system.
    pub call: &'static str,
    /// The rows.
    pub rows: &'static [SubRow],
}

impl SubTable {
    /// The row with this value.
    pub fn by_value(&self, value: u64) -> Option<&'static SubRow> {
        self.rows.iter().find(|row| row.value == value)
    }

    /// Panics if two rows have one value, or a partial or refused row no note. Evaluated at compile time.
    pub(crate) const fn check(&self) {
        let mut i = 0;
        while i < self.rows.len() {
            let row = &self.rows[i];
            assert!(
                matches!(row.level, SubLevel::Full | SubLevel::Missing) || !row.note.is_empty(),
                "a partial or refused entry needs a note"
            );
            let mut j = 0;
            while j < i {
                assert!(self.rows[j].value != row.value, "two rows with one value");
                j += 1;
            }
            i += 1;
        }
    }
}
