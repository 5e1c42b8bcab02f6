//! Random bytes for layouts and programs, asked of the host in larger pieces.

use std::cell::RefCell;

const PIECE: usize = 256;

thread_local! {
    static LEFT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Fresh random bytes. Should the host have none they are zero, which is a valid layout too.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    const { assert!(N <= PIECE) };
    LEFT.with_borrow_mut(|left| {
        if left.len() < N {
            let mut piece = [0; PIECE];
            let _ = rustix::rand::getrandom(&mut piece, rustix::rand::GetRandomFlags::empty());
            *left = piece.to_vec();
        }
        let taken = left.split_off(left.len().saturating_sub(N));
        taken.first_chunk().copied().unwrap_or([0; N])
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn differ() {
        let all: Vec<[u8; 16]> = (0..100).map(|_| super::bytes()).collect();
        assert!(all.iter().enumerate().all(|(i, one)| !all[..i].contains(one)));
    }
}
