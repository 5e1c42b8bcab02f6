//! Arguments in memory that another thread changes during the call: what was checked is what is used.

use guest_tests::*;
use libc::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

cases![vectors, message_headers];

/// Runs `call` again and again while a word changes between two values; each result must be one of `wanted`.
fn while_it_changes(name: &str, word: &AtomicU64, values: [u64; 2], wanted: &[i64], mut call: impl FnMut() -> i64) {
    let end = AtomicBool::new(false);
    let mut other = None;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !end.load(Relaxed) {
                values.iter().for_each(|value| word.store(*value, Relaxed));
            }
        });
        let limit = now_ms() + 200;
        while other.is_none() && now_ms() < limit {
            other = Some(call()).filter(|result| !wanted.contains(result));
        }
        end.store(true, Relaxed);
    });
    check(other.is_none(), &format!("{name}: {other:?} is none of {wanted:?}"));
}

/// A length that is right and one that is negative.
fn vectors() {
    let null = ok(sys!(SYS_open, c"/dev/null", O_WRONLY)) as i32;
    let zero = ok(sys!(SYS_open, c"/dev/zero", O_RDONLY)) as i32;
    let mut byte = 0u8;
    let at = &raw mut byte as u64;
    let iov = [AtomicU64::new(at), AtomicU64::new(1)];
    let calls: [(&str, i64, i32); 4] = [
        ("writev", SYS_writev, null),
        ("readv", SYS_readv, zero),
        ("pwritev", SYS_pwritev, null),
        ("preadv", SYS_preadv, zero),
    ];
    for (name, nr, fd) in calls {
        while_it_changes(name, &iov[1], [1, u64::MAX], &[1, -i64::from(EINVAL)], || {
            sys!(nr, fd, iov.as_ptr(), 1, 0, 0)
        });
    }
    let pid = unsafe { getpid() };
    let own = [at, 1];
    while_it_changes("process_vm_readv", &iov[1], [1, u64::MAX], &[1, -i64::from(EINVAL)], || {
        sys!(SYS_process_vm_readv, pid, own.as_ptr(), 1, iov.as_ptr(), 1, 0)
    });
    shut([null, zero]);
}

/// A count of vectors that is right and one that is too large.
fn message_headers() {
    let mut pair = [0i32; 2];
    ok(sys!(SYS_socketpair, AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, &mut pair));
    let byte = 7u8;
    let iov = [&raw const byte as u64, 1];
    // struct msghdr: name, its length, vectors, their count, control, its length, flags.
    let header = [0, 0, iov.as_ptr() as u64, 1, 0, 0, 0].map(AtomicU64::new);
    while_it_changes("sendmsg", &header[3], [1, 1025], &[1, -i64::from(EMSGSIZE)], || {
        let sent = sys!(SYS_sendmsg, pair[0], header.as_ptr(), 0);
        let mut got = 0u8;
        sys!(SYS_read, pair[1], &mut got, 1);
        sent
    });
    shut(pair);
}
