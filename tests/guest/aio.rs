//! io_setup(2), io_submit(2), io_getevents(2), io_cancel(2), io_destroy(2).

use guest_tests::*;
use libc::*;

cases![
    write_and_read, vectors, sync, eventfd_told, wait_timeout, poll_waits, poll_cancelled, setup_errors, submit_errors, events_errors,
    full_context, destroyed, not_in_child, pgetevents
];

type Iocb = [u64; 8];
type Event = [i64; 4];

const PREAD: u64 = 0;
const PWRITE: u64 = 1;

fn setup(room: u32) -> u64 {
    let mut id = 0u64;
    eq(sys!(SYS_io_setup, room, &mut id), 0);
    id
}

fn iocb(op: u64, fd: i32, buf: usize, len: u64, offset: u64, data: u64) -> Iocb {
    [data, 0, op | u64::from(fd as u32) << 32, buf as u64, len, offset, 0, 0]
}

fn submit(id: u64, all: &[&Iocb]) -> i64 {
    sys!(SYS_io_submit, id, all.len(), all)
}

fn events(id: u64, least: i64, most: usize) -> Vec<Event> {
    let mut e = vec![[0i64; 4]; most];
    let n = ok(sys!(SYS_io_getevents, id, least, most, e.as_mut_slice(), 0));
    e.truncate(n as usize);
    e
}

fn destroy(id: u64) {
    eq(sys!(SYS_io_destroy, id), 0);
}

fn write_and_read() {
    let t = Tmp::new();
    let fd = t.open("f", O_RDWR | O_CREAT) as i32;
    let id = setup(8);
    let text = *b"0123456789";
    let (a, b) = (
        iocb(PWRITE, fd, text.as_ptr() as usize, 10, 0, 11),
        iocb(PWRITE, fd, text.as_ptr() as usize, 4, 10, 12),
    );
    eq(submit(id, &[&a, &b]), 2);
    let e = events(id, 2, 8);
    eq(e.len(), 2);
    eq(e[0], [11, (&raw const a) as i64, 10, 0]);
    eq(e[1], [12, (&raw const b) as i64, 4, 0]);
    let mut buf = [0u8; 8];
    let r = iocb(PREAD, fd, buf.as_mut_ptr() as usize, 8, 8, 13);
    eq(submit(id, &[&r]), 1);
    eq(events(id, 1, 1)[0][2], 6);
    eq(&buf[..6], b"890123");
    // The position is not used.
    eq(sys!(SYS_lseek, fd, 0, SEEK_CUR), 0);
    let r = iocb(PREAD, fd, bad() as usize, 8, 0, 1);
    eq(submit(id, &[&r]), 1);
    eq(events(id, 1, 1)[0][2], -i64::from(EFAULT));
    destroy(id);
    shut([fd]);
}

fn vectors() {
    let t = Tmp::new();
    let fd = t.open("f", O_RDWR | O_CREAT) as i32;
    let id = setup(4);
    let (a, b) = (*b"abc", *b"de");
    let iov = [a.as_ptr() as usize, 3, b.as_ptr() as usize, 2];
    let w = iocb(8, fd, iov.as_ptr() as usize, 2, 1, 5);
    eq(submit(id, &[&w]), 1);
    eq(events(id, 1, 1)[0][2], 5);
    let (mut c, mut d) = ([0u8; 2], [0u8; 9]);
    let iov = [c.as_mut_ptr() as usize, 2, d.as_mut_ptr() as usize, 9];
    let r = iocb(7, fd, iov.as_ptr() as usize, 2, 0, 6);
    eq(submit(id, &[&r]), 1);
    eq(events(id, 1, 1)[0][2], 6);
    eq((&c, &d[..4]), (b"\0a", &b"bcde"[..]));
    destroy(id);
    shut([fd]);
}

fn sync() {
    let t = Tmp::new();
    let fd = t.open("f", O_RDWR | O_CREAT) as i32;
    let id = setup(4);
    for op in [2, 3] {
        eq(submit(id, &[&iocb(op, fd, 0, 0, 0, 7)]), 1);
        let e = events(id, 1, 1);
        eq((e[0][0], e[0][2]), (7, 0));
    }
    err(submit(id, &[&iocb(2, fd, 1, 0, 0, 7)]), EINVAL);
    destroy(id);
    shut([fd]);
}

fn eventfd_told() {
    let t = Tmp::new();
    let fd = t.open("f", O_RDWR | O_CREAT) as i32;
    let e = ok(sys!(SYS_eventfd2, 0, 0)) as i32;
    let id = setup(4);
    let mut w = iocb(PWRITE, fd, b"x".as_ptr() as usize, 1, 0, 1);
    w[7] = 1 | u64::from(e as u32) << 32;
    eq(submit(id, &[&w, &w]), 2);
    let mut n = 0u64;
    eq(sys!(SYS_read, e, &mut n, 8), 8);
    check(n >= 1, "it was counted");
    eq(events(id, 2, 2).len(), 2);
    w[7] = 1 | u64::from(fd as u32) << 32;
    err(submit(id, &[&w]), EINVAL);
    w[7] = 1 | 999 << 32;
    err(submit(id, &[&w]), EBADF);
    destroy(id);
    shut([fd, e]);
}

fn wait_timeout() {
    let id = setup(4);
    let begin = now_ms();
    let mut e = [[0i64; 4]; 1];
    eq(sys!(SYS_io_getevents, id, 1, 1, &mut e, &[0i64, 30_000_000]), 0);
    took(begin, 25);
    eq(sys!(SYS_io_getevents, id, 0, 1, &mut e, 0), 0);
    let _on = sig::on(SIGUSR1, 0);
    let h = sig::later(SIGUSR1, 30);
    err(sys!(SYS_io_getevents, id, 1, 1, &mut e, 0), EINTR);
    h.join().unwrap();
    destroy(id);
}

fn poll_waits() {
    let p = pipe_pair();
    let id = setup(4);
    eq(submit(id, &[&iocb(5, p[0], POLLIN as usize, 0, 0, 9)]), 1);
    eq(events(id, 0, 1).len(), 0);
    let h = std::thread::spawn(move || {
        sleep_ms(30);
        sys!(SYS_write, p[1], b"x", 1)
    });
    let e = events(id, 1, 1);
    h.join().unwrap();
    eq((e[0][0], e[0][2] & i64::from(POLLIN)), (9, i64::from(POLLIN)));
    // Ready at once.
    eq(submit(id, &[&iocb(5, p[0], POLLIN as usize, 0, 0, 10)]), 1);
    eq(events(id, 1, 1)[0][0], 10);
    destroy(id);
    shut(p);
}

fn poll_cancelled() {
    let p = pipe_pair();
    let id = setup(4);
    let c = iocb(5, p[0], POLLIN as usize, 0, 0, 9);
    eq(submit(id, &[&c]), 1);
    err(sys!(SYS_io_cancel, id, &c, &mut [0i64; 4]), EINPROGRESS);
    eq(&events(id, 1, 1)[0][..3], [9, (&raw const c) as i64, 0]);
    err(sys!(SYS_io_cancel, id, &c, &mut [0i64; 4]), EINVAL);
    err(sys!(SYS_io_cancel, id, bad(), 0), EFAULT);
    err(sys!(SYS_io_cancel, 0x1000, &c, 0), EINVAL);
    // Still waiting when the context goes.
    eq(submit(id, &[&c]), 1);
    destroy(id);
    shut(p);
}

fn setup_errors() {
    let mut id = 1u64;
    err(sys!(SYS_io_setup, 1, &mut id), EINVAL);
    id = 0;
    err(sys!(SYS_io_setup, 0, &mut id), EINVAL);
    err(sys!(SYS_io_setup, 1, bad()), EFAULT);
    err(sys!(SYS_io_setup, 10_000_000, &mut id), EINVAL);
    err(sys!(SYS_io_setup, 5_000_000, &mut id), EINVAL);
    err(sys!(SYS_io_setup, 1_000_000, &mut id), EAGAIN);
    err(sys!(SYS_io_destroy, 0), EINVAL);
    err(sys!(SYS_io_destroy, 0x1000), EINVAL);
}

fn submit_errors() {
    let t = Tmp::new();
    let fd = t.open("f", O_RDWR | O_CREAT) as i32;
    let id = setup(4);
    let good = iocb(PWRITE, fd, b"x".as_ptr() as usize, 1, 0, 1);
    err(submit(0x1000, &[&good]), EINVAL);
    eq(sys!(SYS_io_submit, id, 0, bad()), 0);
    err(sys!(SYS_io_submit, id, -1, bad()), EINVAL);
    err(sys!(SYS_io_submit, id, 1, bad()), EFAULT);
    err(sys!(SYS_io_submit, id, 1, &[bad()]), EFAULT);
    err(submit(id, &[&iocb(99, fd, 0, 0, 0, 0)]), EINVAL);
    err(submit(id, &[&iocb(PWRITE, 999, 0, 0, 0, 0)]), EBADF);
    let ro = ok(sys!(SYS_open, t.path("f"), O_RDONLY)) as i32;
    err(submit(id, &[&iocb(PWRITE, ro, b"x".as_ptr() as usize, 1, 0, 0)]), EBADF);
    let mut odd = good;
    odd[6] = 1;
    err(submit(id, &[&odd]), EINVAL);
    // What comes before the bad one is done.
    eq(submit(id, &[&good, &odd, &good]), 1);
    eq(events(id, 1, 4).len(), 1);
    destroy(id);
    shut([fd, ro]);
}

fn events_errors() {
    let id = setup(4);
    let mut e = [[0i64; 4]; 2];
    err(sys!(SYS_io_getevents, 0x1000, 0, 1, &mut e, 0), EINVAL);
    err(sys!(SYS_io_getevents, id, 2, 1, &mut e, 0), EINVAL);
    err(sys!(SYS_io_getevents, id, -1, 1, &mut e, 0), EINVAL);
    err(sys!(SYS_io_getevents, id, 0, -1, &mut e, 0), EINVAL);
    err(sys!(SYS_io_getevents, id, 1, 1, &mut e, bad()), EFAULT);
    destroy(id);
}

fn full_context() {
    let p = pipe_pair();
    let id = setup(1);
    let c = iocb(5, p[0], POLLIN as usize, 0, 0, 9);
    let mut n = 0;
    // Linux gives more room than asked for, but not without end.
    while n < 10_000 && submit(id, &[&c]) == 1 {
        n += 1;
    }
    check(n >= 1, "one fits");
    if n < 10_000 {
        err(submit(id, &[&c]), EAGAIN);
    }
    destroy(id);
    shut(p);
}

fn destroyed() {
    let id = setup(4);
    destroy(id);
    err(sys!(SYS_io_destroy, id), EINVAL);
    err(submit(id, &[]), EINVAL);
}

fn not_in_child() {
    let id = setup(4);
    exits(child(|| (sys!(SYS_io_destroy, id) == -i64::from(EINVAL)).into()), 1);
    destroy(id);
}

fn pgetevents() {
    let id = setup(4);
    let mut e = [[0i64; 4]; 1];
    let all = !0u64;
    let mask = [(&raw const all) as u64, 8];
    eq(sys!(333, id, 1, 1, &mut e, &[0i64, 1_000_000], &mask), 0);
    err(sys!(333, id, 1, 1, &mut e, &[0i64, 1_000_000], &[mask[0], 4]), EINVAL);
    destroy(id);
}
