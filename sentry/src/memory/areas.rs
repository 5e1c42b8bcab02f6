//! What the areas of a guest's host process have in memory, as /proc/PID/smaps of the host has it, and its page map. The
//! launcher reads both; the sentry has no /proc. See [`super::look`], whose socket it is.

/// Asks for areas.
pub const ASK_AREAS: u8 = b's';
/// Asks for words of the page map.
pub const ASK_PAGES: u8 = b'p';
/// A question: the number, the pid, what is asked, and the first page and how many.
pub const QUESTION: usize = 8 + 4 + 1 + 8 + 8;
/// Most words or rows in one packet.
pub const MOST_PAGES: usize = 512;
/// See [`MOST_PAGES`].
pub const MOST_ROWS: usize = 40;
/// Rows of one answer: more areas than this are not told of.
pub const ALL_ROWS: usize = 20_000;
/// Longest packet of an answer.
pub const PACKET: usize = 9 + ROW * MOST_ROWS;
const ROW: usize = 16 + 4 * FIELDS.len();

/// Lines of smaps that are told, in this order.
pub const FIELDS: [&str; 15] = [
    "Rss",
    "Pss",
    "Pss_Dirty",
    "Shared_Clean",
    "Shared_Dirty",
    "Private_Clean",
    "Private_Dirty",
    "Referenced",
    "Anonymous",
    "LazyFree",
    "AnonHugePages",
    "ShmemPmdMapped",
    "FilePmdMapped",
    "Swap",
    "SwapPss",
];

/// KiB, by [`FIELDS`].
pub type Sizes = [u64; FIELDS.len()];

/// One area of the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// What it has.
    pub sizes: Sizes,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// All areas of the process.
    Areas,
    /// The page map's words from a page on, at most [`MOST_PAGES`].
    Pages {
        /// Number of the first page.
        first: u64,
        /// How many.
        count: usize,
    },
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Asked {
    /// A question with this number about a process.
    pub fn encode(self, number: u64, pid: i32) -> Vec<u8> {
        let (what, first, count) = match self {
            Asked::Areas => (ASK_AREAS, 0, 0),
            Asked::Pages { first, count } => (ASK_PAGES, first, count as u64),
        };
        [&number.to_le_bytes()[..], &pid.to_le_bytes(), &[what], &first.to_le_bytes(), &count.to_le_bytes()]
            .concat()
    }

    /// The pid and what is asked.
    pub fn decode(bytes: &[u8; QUESTION]) -> Option<(i32, Asked)> {
        let pid = i32::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
        let count = usize::try_from(word(bytes, 21)?).ok()?;
        match *bytes.get(12)? {
            ASK_AREAS => Some((pid, Asked::Areas)),
            ASK_PAGES if count <= MOST_PAGES => Some((pid, Asked::Pages { first: word(bytes, 13)?, count })),
            _ => None,
        }
    }
}

/// A packet of an answer; `more` come.
pub fn packet(number: [u8; 8], more: bool, body: &[u8]) -> Vec<u8> {
    [&number[..], &[u8::from(more)], body].concat()
}

impl Row {
    /// Its bytes in a packet.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = [self.start.to_le_bytes(), self.end.to_le_bytes()].concat();
        for kib in self.sizes {
            bytes.extend_from_slice(&u32::try_from(kib).unwrap_or(u32::MAX).to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Row> {
        let mut sizes = Sizes::default();
        for (to, from) in sizes.iter_mut().zip(bytes.get(16..)?.chunks_exact(4)) {
            *to = u64::from(u32::from_le_bytes(*from.first_chunk()?));
        }
        Some(Row { start: word(bytes, 0)?, end: word(bytes, 8)?, sizes })
    }

    /// The rows of the body of a packet.
    pub fn all(body: &[u8]) -> impl Iterator<Item = Row> + '_ {
        body.chunks_exact(ROW).filter_map(Row::decode)
    }
}

/// What the rows have of a range: all of those that lie within, a part of those that reach beyond, since the host joins and
/// splits areas by its own rules.
pub fn within(rows: &[Row], start: u64, end: u64) -> Sizes {
    let mut sum = Sizes::default();
    let first = rows.partition_point(|row| row.end <= start);
    for row in rows.iter().skip(first).take_while(|row| row.start < end) {
        let whole = row.end.saturating_sub(row.start).max(1);
        let part = row.end.min(end).saturating_sub(row.start.max(start));
        for (to, kib) in sum.iter_mut().zip(row.sizes) {
            let share = u128::from(kib).saturating_mul(u128::from(part)) / u128::from(whole);
            *to = to.saturating_add(u64::try_from(share).unwrap_or(u64::MAX));
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_rows_come_back_as_they_went() {
        for asked in [Asked::Areas, Asked::Pages { first: 1 << 35, count: 7 }] {
            let bytes: [u8; QUESTION] = asked.encode(9, -3).try_into().unwrap();
            assert_eq!(Asked::decode(&bytes), Some((-3, asked)));
        }
        let many = Asked::Pages { first: 0, count: MOST_PAGES + 1 }.encode(9, 1).try_into().unwrap();
        assert_eq!(Asked::decode(&many), None);
        let row = Row { start: 4096, end: 1 << 46, sizes: std::array::from_fn(|i| i as u64) };
        assert_eq!(Row::all(&[row.encode(), row.encode()].concat()).collect::<Vec<_>>(), [row, row]);
    }

    #[test]
    fn a_range_has_its_part_of_the_rows() {
        let row = |start, end, kib| Row { start, end, sizes: [kib; FIELDS.len()] };
        let rows = [row(0, 100, 8), row(100, 200, 4), row(300, 400, 2)];
        assert_eq!(within(&rows, 0, 200)[0], 12);
        assert_eq!(within(&rows, 50, 100)[0], 4);
        assert_eq!(within(&rows, 200, 300)[0], 0);
        assert_eq!(within(&rows, 150, 1000)[0], 4);
    }
}
