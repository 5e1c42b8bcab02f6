//! Strings and buffers of guest memory.

use super::Reader;

/// Most bytes of a string or buffer that are shown.
pub(super) const SHOWN: usize = 64;
/// Longest path that is shown in full.
const PATH_SHOWN: usize = 4096;
/// Most elements of an array that are shown.
pub(super) const ELEMENTS: usize = 16;

/// Bytes in quotes with C escapes, as strace has them.
pub(super) fn quote(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x0b => out.push_str("\\v"),
            0x0c => out.push_str("\\f"),
            0x20..=0x7e => out.push(byte as char),
            _ => {
                // Shortest octal form; three digits where a digit follows, which would be read as part of it.
                let digit_follows = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
                out.push_str(&if digit_follows { format!("\\{byte:03o}") } else { format!("\\{byte:o}") });
            }
        }
    }
    out.push('"');
    out
}

/// An address: `NULL` or hexadecimal.
pub(super) fn pointer(addr: u64) -> String {
    if addr == 0 { "NULL".to_owned() } else { format!("{addr:#x}") }
}

/// A NUL-terminated string of at most `most` bytes and whether it ended. Read piece by piece, none across the end
/// of a page, since what follows the string may not be mapped.
fn terminated(read: Reader<'_>, addr: u64, most: usize) -> Option<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    while bytes.len() < most {
        let at = addr.checked_add(bytes.len() as u64)?;
        let to_page_end = 4096 - (at % 4096) as usize;
        let wanted = to_page_end.min(most - bytes.len()).min(256);
        let Some(piece) = read(at, wanted) else {
            return if bytes.is_empty() { None } else { Some((bytes, false)) };
        };
        if let Some(end) = piece.iter().position(|&byte| byte == 0) {
            bytes.extend(piece.iter().take(end));
            return Some((bytes, true));
        }
        if piece.is_empty() {
            return Some((bytes, false));
        }
        bytes.extend(piece);
    }
    Some((bytes, false))
}

fn string_up_to(read: Reader<'_>, addr: u64, shown: usize) -> String {
    if addr == 0 {
        return "NULL".to_owned();
    }
    match terminated(read, addr, shown + 1) {
        None => pointer(addr),
        Some((bytes, true)) => quote(&bytes),
        Some((bytes, false)) => quote(bytes.get(..shown).unwrap_or(&bytes)) + "...",
    }
}

/// A C string, cut at [`SHOWN`] bytes.
pub(super) fn string(read: Reader<'_>, addr: u64) -> String {
    string_up_to(read, addr, SHOWN)
}

/// A path, in full.
pub(super) fn path(read: Reader<'_>, addr: u64) -> String {
    string_up_to(read, addr, PATH_SHOWN)
}

/// `len` bytes at `addr`, cut at [`SHOWN`].
pub(super) fn buffer(read: Reader<'_>, addr: u64, len: u64) -> String {
    if addr == 0 {
        return "NULL".to_owned();
    }
    let shown = len.min(SHOWN as u64) as usize;
    if shown == 0 {
        return "\"\"".to_owned();
    }
    match read(addr, shown) {
        None => pointer(addr),
        Some(bytes) => quote(&bytes) + if len > SHOWN as u64 { "..." } else { "" },
    }
}

/// A little-endian u64 of guest memory.
pub(super) fn word(read: Reader<'_>, addr: u64) -> Option<u64> {
    Some(u64::from_le_bytes(read(addr, 8)?.try_into().ok()?))
}

/// A little-endian i32 of guest memory.
pub(super) fn int(read: Reader<'_>, addr: u64) -> Option<i32> {
    Some(i32::from_le_bytes(read(addr, 4)?.try_into().ok()?))
}

/// A NULL-terminated array of strings: all of it as `["a", "b"]`.
pub(super) fn strings(read: Reader<'_>, addr: u64) -> String {
    if addr == 0 {
        return "NULL".to_owned();
    }
    let mut parts = Vec::new();
    for at in 0..=ELEMENTS * 2 {
        match word(read, addr.wrapping_add(8 * at as u64)) {
            None if at == 0 => return pointer(addr),
            None => break,
            Some(0) => return format!("[{}]", parts.join(", ")),
            Some(item) => parts.push(string(read, item)),
        }
    }
    format!("[{}, ...]", parts.join(", "))
}

/// A NULL-terminated array of strings: only how many.
pub(super) fn string_count(read: Reader<'_>, addr: u64) -> String {
    if addr == 0 {
        return "NULL".to_owned();
    }
    let mut count = 0u64;
    while count < 10_000 {
        match word(read, addr.wrapping_add(8 * count)) {
            Some(0) => break,
            Some(_) => count += 1,
            None => return pointer(addr),
        }
    }
    format!("{addr:#x} /* {count} vars */")
}
