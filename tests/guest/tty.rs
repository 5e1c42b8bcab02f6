//! termios(3), ioctl_tty(2): the line discipline of a terminal, and the requests that change it.

use crate::pty::{change, get, pair, put, quiet, raw, reads, settings, wait_input};
use guest_tests::*;
use libc::*;

cases![
    defaults, canonical_line, one_line_a_read, part_of_a_line, erase_and_kill, word_erase, erase_tab, erase_control, erase_utf8, kill_without_echoke,
    echoprt, echoe_off, echoctl, echo_off, echonl, reprint, literal_next, end_of_file, end_of_file_in_line, eof_after_full_read, extra_ends, long_line,
    raw_min, raw_min_more, raw_time, raw_min_time, raw_nonblocking, mode_switch, cr_and_nl, igncr, istrip, iuclc, parmrk, ixon, ixany, ixon_off_starts,
    onlcr, ocrnl, onocr, onlret, tabs, olcuc, opost_off, signal_chars_flush, noflsh, isig_off, output_stopped, tcflow, tcflow_sends, tcflush_input,
    tcflush_errors, fionread, outq, set_and_flush, get2_set2, speeds, termio, locked_settings, forced_settings, soft_carrier, breaks, refused, sti,
    extproc, settings_by_master, disabled_chars
];

fn cc(fd: i32, place: usize, c: u8) {
    change(fd, |t| t.c_cc[place] = c);
}

fn off(fd: i32, l: u32) {
    change(fd, |t| t.c_lflag &= !l);
}

/// Types `keys`; `echo` is what comes back, `line` what is read then.
#[track_caller]
fn types(m: i32, s: i32, keys: &[u8], echo: &[u8], line: &[u8]) {
    put(m, keys);
    reads(m, echo);
    if !line.is_empty() {
        check(wait_input(s), "a line");
        eq(String::from_utf8_lossy(&get(s, 4096)), String::from_utf8_lossy(line));
    }
}

fn end(m: i32, s: i32) {
    quiet(m);
    shut([m, s]);
}

fn defaults() {
    let (m, s, _) = pair();
    let t = settings(s);
    eq(t.c_iflag, ICRNL | IXON);
    eq(t.c_oflag, OPOST | ONLCR);
    eq(t.c_cflag, B38400 | CS8 | CREAD);
    eq(t.c_lflag, ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN);
    eq(&t.c_cc[..17], b"\x03\x1c\x7f\x15\x04\0\x01\0\x11\x13\x1a\0\x12\x0f\x17\x16\0");
    eq(t.c_line, 0);
    end(m, s);
}

fn canonical_line() {
    let (m, s, _) = pair();
    types(m, s, b"one\r", b"one\r\n", b"one\n");
    put(m, b"un");
    reads(m, b"un");
    quiet(s);
    types(m, s, b"done\n", b"done\r\n", b"undone\n");
    end(m, s);
}

fn one_line_a_read() {
    let (m, s, _) = pair();
    types(m, s, b"a\nbc\nd", b"a\r\nbc\r\nd", b"a\n");
    eq(get(s, 100), b"bc\n");
    quiet(s);
    end(m, s);
}

fn part_of_a_line() {
    let (m, s, _) = pair();
    put(m, b"abcdef\n");
    check(wait_input(s), "a line");
    eq(get(s, 2), b"ab");
    eq(get(s, 4), b"cdef");
    eq(get(s, 4), b"\n");
    reads(m, b"abcdef\r\n");
    end(m, s);
}

fn erase_and_kill() {
    let (m, s, _) = pair();
    types(m, s, b"ab\x7f\x7f\x7fc\n", b"ab\x08 \x08\x08 \x08c\r\n", b"c\n");
    types(m, s, b"abc\x15d\n", b"abc\x08 \x08\x08 \x08\x08 \x08d\r\n", b"d\n");
    cc(s, VERASE, b'#');
    types(m, s, b"ab#c\x7f\n", b"ab\x08 \x08c^?\r\n", b"ac\x7f\n");
    end(m, s);
}

fn word_erase() {
    let (m, s, _) = pair();
    types(m, s, b"two w_1, \x17x\n", b"two w_1, \x08 \x08\x08 \x08\x08 \x08\x08 \x08\x08 \x08x\r\n", b"two x\n");
    off(s, IEXTEN);
    types(m, s, b"w\x17\n", b"w^W\r\n", b"w\x17\n");
    end(m, s);
}

fn erase_tab() {
    let (m, s, _) = pair();
    types(m, s, b"ab\t\x7fc\n", b"ab\t\x08\x08\x08\x08\x08\x08c\r\n", b"abc\n");
    // Where the line begins counts: here behind a prompt of three columns.
    put(s, b"$ >");
    reads(m, b"$ >");
    types(m, s, b"a\t\x7f\n", b"a\t\x08\x08\x08\x08\r\n", b"a\n");
    types(m, s, b"\x01\t\t\x7f\x7f\n", b"^A\t\t\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\x08\r\n", b"\x01\n");
    end(m, s);
}

fn erase_control() {
    let (m, s, _) = pair();
    types(m, s, b"\x01\x7fx\n", b"^A\x08 \x08\x08 \x08x\r\n", b"x\n");
    off(s, ECHOCTL);
    types(m, s, b"\x01\x7fx\n", b"\x01x\r\n", b"x\n");
    end(m, s);
}

fn erase_utf8() {
    let (m, s, _) = pair();
    change(s, |t| t.c_iflag |= IUTF8);
    types(m, s, "aä€\x7f\x7f\n".as_bytes(), "aä€\x08 \x08\x08 \x08\r\n".as_bytes(), b"a\n");
    change(s, |t| t.c_iflag &= !IUTF8);
    types(m, s, "ä\x7f\n".as_bytes(), b"\xc3\xa4\x08 \x08\r\n", b"\xc3\n");
    end(m, s);
}

fn kill_without_echoke() {
    let (m, s, _) = pair();
    off(s, ECHOKE);
    types(m, s, b"abc\x15d\n", b"abc^U\r\nd\r\n", b"d\n");
    off(s, ECHOK);
    types(m, s, b"abc\x15d\n", b"abc^Ud\r\n", b"d\n");
    off(s, ECHO);
    types(m, s, b"abc\x15d\n", b"", b"d\n");
    end(m, s);
}

fn echoprt() {
    let (m, s, _) = pair();
    change(s, |t| t.c_lflag |= ECHOPRT);
    types(m, s, b"abc\x7f\x7fd\n", b"abc\\cb/d\r\n", b"ad\n");
    types(m, s, b"ab\x15x\n", b"ab\\ba/x\r\n", b"x\n");
    end(m, s);
}

fn echoe_off() {
    let (m, s, _) = pair();
    off(s, ECHOE);
    types(m, s, b"ab\x7fc\n", b"ab^?c\r\n", b"ac\n");
    end(m, s);
}

fn echoctl() {
    let (m, s, _) = pair();
    types(m, s, b"\x01\x1b[A\t\xe4\n", b"^A^[[A\t\xe4\r\n", b"\x01\x1b[A\t\xe4\n");
    off(s, ECHOCTL);
    types(m, s, b"\x01\x1b\n", b"\x01\x1b\r\n", b"\x01\x1b\n");
    end(m, s);
}

fn echo_off() {
    let (m, s, _) = pair();
    off(s, ECHO);
    types(m, s, b"secret\n", b"", b"secret\n");
    end(m, s);
}

fn echonl() {
    let (m, s, _) = pair();
    change(s, |t| t.c_lflag = t.c_lflag & !ECHO | ECHONL);
    types(m, s, b"secret\n", b"\r\n", b"secret\n");
    end(m, s);
}

fn reprint() {
    let (m, s, _) = pair();
    types(m, s, b"ab\x12c\n", b"ab^R\r\nabc\r\n", b"abc\n");
    end(m, s);
}

fn literal_next() {
    let (m, s, _) = pair();
    types(m, s, b"a\x16\x03\x16\x7f\x16\n\n", b"a^\x08^C^\x08^?^\x08^J\r\n", b"a\x03\x7f\n\n");
    end(m, s);
}

fn end_of_file() {
    let (m, s, _) = pair();
    put(m, b"\x04");
    check(wait_input(s), "the end");
    eq(get(s, 10), b"");
    types(m, s, b"on\n", b"on\r\n", b"on\n");
    end(m, s);
}

fn end_of_file_in_line() {
    let (m, s, _) = pair();
    types(m, s, b"ab\x04cd\n", b"abcd\r\n", b"ab");
    eq(get(s, 10), b"cd\n");
    end(m, s);
}

fn eof_after_full_read() {
    let (m, s, _) = pair();
    put(m, b"abc\x04x\n");
    check(wait_input(s), "a line");
    // The end of file just behind is eaten.
    eq(get(s, 3), b"abc");
    eq(get(s, 3), b"x\n");
    reads(m, b"abcx\r\n");
    end(m, s);
}

fn extra_ends() {
    let (m, s, _) = pair();
    cc(s, VEOL, b'!');
    cc(s, VEOL2, b'@');
    types(m, s, b"a!b@c\n", b"a!b@c\r\n", b"a!");
    eq(get(s, 10), b"b@");
    eq(get(s, 10), b"c\n");
    off(s, IEXTEN);
    types(m, s, b"b@c!", b"b@c!", b"b@c!");
    end(m, s);
}

fn long_line() {
    let (m, s, _) = pair();
    off(s, ECHO);
    put(m, &[b'x'; 5000]);
    quiet(s);
    put(m, b"\x7fyz\n");
    check(wait_input(s), "a line");
    let line = get(s, 10_000);
    eq(line.len(), 4096);
    // Of what does not fit the last is kept, until something else comes.
    eq(&line[4090..], b"xxxxy\n");
    end(m, s);
}

fn raw_min() {
    let (m, s, _) = pair();
    raw(s);
    put(m, b"\x03a\n\r");
    check(wait_input(s), "input");
    eq(get(s, 10), b"\x03a\n\r");
    end(m, s);
}

fn raw_min_more() {
    let (m, s, _) = pair();
    raw(s);
    cc(s, VMIN, 3);
    put(m, b"ab");
    quiet(s);
    let pid = child(|| i32::from(get(s, 10) == b"abcd"));
    sleep_ms(30);
    put(m, b"cd");
    exits(pid, 1);
    // A smaller buffer is filled.
    put(m, b"xy");
    sleep_ms(20);
    eq(get(s, 2), b"xy");
    end(m, s);
}

fn raw_time() {
    let (m, s, _) = pair();
    raw(s);
    cc(s, VMIN, 0);
    eq(get(s, 5), b"");
    cc(s, VTIME, 2);
    let t = now_ms();
    eq(get(s, 5), b"");
    took(t, 180);
    put(m, b"q");
    eq(get(s, 5), b"q");
    end(m, s);
}

fn raw_min_time() {
    let (m, s, _) = pair();
    raw(s);
    cc(s, VMIN, 5);
    cc(s, VTIME, 1);
    put(m, b"ab");
    until_unread(s, 2);
    let t = now_ms();
    // The time runs from the first character on.
    eq(get(s, 10), b"ab");
    took(t, 80);
    end(m, s);
}

fn raw_nonblocking() {
    let (m, s, _) = pair();
    raw(s);
    ok(sys!(SYS_fcntl, s, F_SETFL, O_RDWR | O_NONBLOCK));
    err(sys!(SYS_read, s, &mut [0u8; 4], 4), EAGAIN);
    cc(s, VMIN, 3);
    put(m, b"a");
    until_unread(s, 1);
    eq(get(s, 4), b"a");
    cc(s, VMIN, 0);
    eq(get(s, 4), b"");
    cc(s, VTIME, 5);
    err(sys!(SYS_read, s, &mut [0u8; 4], 4), EAGAIN);
    end(m, s);
}

fn mode_switch() {
    let (m, s, _) = pair();
    off(s, ECHO);
    put(m, b"ab\ncd");
    check(wait_input(s), "a line");
    off(s, ICANON);
    eq(get(s, 10), b"ab\ncd");
    put(m, b"ef");
    until_unread(s, 2);
    // What is there becomes a line.
    change(s, |t| t.c_lflag |= ICANON);
    eq(get(s, 10), b"ef");
    end(m, s);
}

fn cr_and_nl() {
    let (m, s, _) = pair();
    change(s, |t| t.c_iflag = INLCR);
    types(m, s, b"a\nb\rc\x04", b"a^Mb^Mc", b"a\rb\rc");
    change(s, |t| t.c_iflag = 0);
    types(m, s, b"a\rb\n", b"a^Mb\r\n", b"a\rb\n");
    end(m, s);
}

fn igncr() {
    let (m, s, _) = pair();
    change(s, |t| t.c_iflag = IGNCR | ICRNL);
    types(m, s, b"a\rb\n", b"ab\r\n", b"ab\n");
    end(m, s);
}

fn istrip() {
    let (m, s, _) = pair();
    change(s, |t| t.c_iflag |= ISTRIP);
    types(m, s, b"\xe1\x8a", b"a\r\n", b"a\n");
    end(m, s);
}

fn iuclc() {
    let (m, s, _) = pair();
    change(s, |t| t.c_iflag |= IUCLC);
    types(m, s, b"aBC\n", b"abc\r\n", b"abc\n");
    off(s, IEXTEN);
    types(m, s, b"aBC\n", b"aBC\r\n", b"aBC\n");
    end(m, s);
}

fn parmrk() {
    let (m, s, _) = pair();
    change(s, |t| t.c_iflag |= PARMRK);
    types(m, s, b"a\xffb\n", b"a\xffb\r\n", b"a\xff\xffb\n");
    end(m, s);
}

/// The character that stops output has arrived.
fn until_stopped(s: i32) {
    until("output is stopped", || ready(s, POLLOUT) == 0);
}

fn ixon() {
    let (m, s, _) = pair();
    put(m, b"\x13");
    until_stopped(s);
    ok(sys!(SYS_fcntl, s, F_SETFL, O_RDWR | O_NONBLOCK));
    err(sys!(SYS_write, s, b"x", 1), EAGAIN);
    put(m, b"echo\n");
    quiet(m);
    put(m, b"\x11");
    reads(m, b"echo\r\n");
    put(s, b"x");
    reads(m, b"x");
    eq(get(s, 10), b"echo\n");
    change(s, |t| t.c_iflag &= !IXON);
    types(m, s, b"\x13\n", b"^S\r\n", b"\x13\n");
    end(m, s);
}

fn ixany() {
    let (m, s, _) = pair();
    change(s, |t| t.c_iflag |= IXANY);
    put(m, b"\x13");
    until_stopped(s);
    types(m, s, b"a\n", b"a\r\n", b"a\n");
    end(m, s);
}

fn ixon_off_starts() {
    let (m, s, _) = pair();
    put(m, b"\x13");
    put(m, b"w\n");
    quiet(m);
    change(s, |t| t.c_iflag &= !IXON);
    reads(m, b"w\r\n");
    end(m, s);
}

#[track_caller]
fn prints(o: u32, text: &[u8], want: &[u8]) {
    let (m, s, _) = pair();
    change(s, |t| t.c_oflag = o);
    put(s, text);
    reads(m, want);
    end(m, s);
}

fn onlcr() {
    prints(OPOST | ONLCR, b"a\n\nb", b"a\r\n\r\nb");
    prints(OPOST, b"a\nb", b"a\nb");
}

fn ocrnl() {
    prints(OPOST | OCRNL, b"a\rb", b"a\nb");
    prints(OPOST | OCRNL | ONLCR, b"a\rb", b"a\nb");
}

fn onocr() {
    prints(OPOST | ONOCR, b"\ra\r\rb", b"a\rb");
}

fn onlret() {
    // The column after a newline shows in the next tab.
    prints(OPOST | ONLRET | XTABS, b"ab\n\tx", b"ab\n        x");
    prints(OPOST | XTABS, b"ab\n\tx", b"ab\n      x");
}

fn tabs() {
    prints(OPOST | XTABS, b"\ta\t\x08\tb\r\t", b"        a       \x08 b\r        ");
    prints(OPOST, b"\ta", b"\ta");
    prints(OPOST | XTABS, "ä\t|".as_bytes(), "ä      |".as_bytes());
}

fn olcuc() {
    prints(OPOST | OLCUC, b"aZ1", b"AZ1");
}

fn opost_off() {
    prints(ONLCR | OLCUC, b"a\n\t", b"a\n\t");
}

fn signal_chars_flush() {
    let (m, s, _) = pair();
    put(m, b"ab\nlost");
    reads(m, b"ab\r\nlost");
    put(m, b"\x03");
    reads(m, b"^C");
    quiet(s);
    // What came in together with the signal has not been echoed yet.
    types(m, s, b"ab\x1cx\n", b"^\\x\r\n", b"x\n");
    end(m, s);
}

fn noflsh() {
    let (m, s, _) = pair();
    change(s, |t| t.c_lflag |= NOFLSH);
    types(m, s, b"a\x03b\n", b"a^Cb\r\n", b"ab\n");
    end(m, s);
}

fn isig_off() {
    let (m, s, _) = pair();
    off(s, ISIG);
    types(m, s, b"\x03\x1a\n", b"^C^Z\r\n", b"\x03\x1a\n");
    end(m, s);
}

fn output_stopped() {
    let (m, s, _) = pair();
    put(m, b"\x13");
    until_stopped(s);
    let pid = child(|| i32::from(sys!(SYS_write, s, b"late", 4) == 4));
    quiet(m);
    // A signal character lets output go on.
    put(m, b"\x03");
    reads(m, b"^C");
    reads(m, b"late");
    exits(pid, 1);
    end(m, s);
}

fn tcflow() {
    let (m, s, _) = pair();
    ok(sys!(SYS_ioctl, s, TCXONC, TCOOFF));
    ok(sys!(SYS_fcntl, s, F_SETFL, O_RDWR | O_NONBLOCK));
    err(sys!(SYS_write, s, b"x", 1), EAGAIN);
    // Not undone by the character.
    put(m, b"\x11");
    sleep_ms(20);
    err(sys!(SYS_write, s, b"x", 1), EAGAIN);
    ok(sys!(SYS_ioctl, s, TCXONC, TCOON));
    put(s, b"x");
    reads(m, b"x");
    err(sys!(SYS_ioctl, s, TCXONC, 9), EINVAL);
    end(m, s);
}

fn tcflow_sends() {
    let (m, s, _) = pair();
    ok(sys!(SYS_ioctl, s, TCXONC, TCIOFF));
    ok(sys!(SYS_ioctl, s, TCXONC, TCION));
    reads(m, b"\x13\x11");
    end(m, s);
}

fn tcflush_input() {
    let (m, s, _) = pair();
    types(m, s, b"one\ntwo", b"one\r\ntwo", b"");
    ok(sys!(SYS_ioctl, s, TCFLSH, TCIFLUSH));
    quiet(s);
    types(m, s, b"\n", b"\r\n", b"\n");
    put(s, b"kept");
    until_unread(m, 4);
    ok(sys!(SYS_ioctl, s, TCFLSH, TCOFLUSH));
    // It has arrived already.
    reads(m, b"kept");
    put(s, b"gone");
    until_unread(m, 4);
    ok(sys!(SYS_ioctl, m, TCFLSH, TCIFLUSH));
    end(m, s);
}

fn tcflush_errors() {
    let (m, s, _) = pair();
    err(sys!(SYS_ioctl, s, TCFLSH, 3), EINVAL);
    err(sys!(SYS_ioctl, s, TCFLSH, -1), EINVAL);
    ok(sys!(SYS_ioctl, s, TCFLSH, TCIOFLUSH));
    end(m, s);
}

fn fionread() {
    let (m, s, _) = pair();
    let count = |fd| {
        let mut n = -1i32;
        ok(sys!(SYS_ioctl, fd, FIONREAD, &mut n));
        n
    };
    put(m, b"abc");
    until_unread(m, 3);
    eq((count(s), count(m)), (0, 3));
    put(m, b"\nde\x04\n");
    // Ends of file do not count.
    until_unread(s, 7);
    eq(count(s), 7);
    off(s, ICANON);
    eq(count(s), 8);
    err(sys!(SYS_ioctl, s, FIONREAD, bad()), EFAULT);
    shut([m, s]);
}

fn outq() {
    let (m, s, _) = pair();
    put(s, b"abc");
    let mut n = -1i32;
    ok(sys!(SYS_ioctl, s, TIOCOUTQ, &mut n));
    eq(n, 0);
    shut([m, s]);
}

fn set_and_flush() {
    let (m, s, _) = pair();
    types(m, s, b"old\n", b"old\r\n", b"");
    let t = settings(s);
    eq(unsafe { tcsetattr(s, TCSADRAIN, &t) }, 0);
    check(wait_input(s), "still there");
    eq(unsafe { tcsetattr(s, TCSAFLUSH, &t) }, 0);
    quiet(s);
    err(sys!(SYS_ioctl, s, TCSETS, bad()), EFAULT);
    err(sys!(SYS_ioctl, s, TCGETS, bad()), EFAULT);
    end(m, s);
}

fn get2_set2() {
    let (m, s, _) = pair();
    let mut t: termios2 = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_ioctl, s, TCGETS2, &mut t as *mut termios2));
    eq((t.c_ispeed, t.c_ospeed, t.c_lflag & ICANON), (38400, 38400, ICANON));
    t.c_cflag = t.c_cflag & !CBAUD | BOTHER;
    (t.c_ispeed, t.c_ospeed) = (1234, 1234);
    t.c_lflag &= !ECHO;
    ok(sys!(SYS_ioctl, s, TCSETS2, &t as *const termios2));
    let mut u: termios2 = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_ioctl, m, TCGETS2, &mut u as *mut termios2));
    eq((u.c_ispeed, u.c_ospeed, u.c_lflag & ECHO), (1234, 1234, 0));
    ok(sys!(SYS_ioctl, s, TCSETSW2, &t as *const termios2));
    ok(sys!(SYS_ioctl, s, TCSETSF2, &t as *const termios2));
    shut([m, s]);
}

fn speeds() {
    let (m, s, _) = pair();
    for (bits, speed) in [(B9600, 9600), (B115200, 115_200), (B50, 50), (B4000000, 4_000_000), (B0, 0)] {
        change(s, |t| t.c_cflag = t.c_cflag & !CBAUD | bits);
        let mut t: termios2 = unsafe { std::mem::zeroed() };
        ok(sys!(SYS_ioctl, s, TCGETS2, &mut t as *mut termios2));
        eq((t.c_ispeed, t.c_ospeed), (speed, speed));
    }
    shut([m, s]);
}

fn termio() {
    let (m, s, _) = pair();
    let mut b = [0xaau8; 24];
    ok(sys!(SYS_ioctl, s, 0x5405, &mut b));
    eq(&b[..8], [0x00, 0x05, 0x05, 0x00, 0xbf, 0x00, 0x3b, 0x8a]);
    eq(&b[8..17], b"\0\x03\x1c\x7f\x15\x04\0\x01\0");
    eq(&b[18..], [0xaa; 6]);
    // Without ECHO (bit 3 of c_lflag).
    b[6] &= !8;
    b[11] = b'#';
    ok(sys!(SYS_ioctl, s, 0x5406, &b));
    let t = settings(s);
    eq((t.c_lflag & ECHO, t.c_lflag & ECHOCTL, t.c_cc[VERASE], t.c_cc[VWERASE]), (0, ECHOCTL, b'#', 0x17));
    ok(sys!(SYS_ioctl, s, 0x5407, &b));
    ok(sys!(SYS_ioctl, s, 0x5408, &b));
    err(sys!(SYS_ioctl, s, 0x5405, bad()), EFAULT);
    shut([m, s]);
}

fn locked_settings() {
    let (m, s, _) = pair();
    let mut t: termios = unsafe { std::mem::zeroed() };
    ok(sys!(SYS_ioctl, s, 0x5456, &mut t as *mut termios));
    eq((t.c_iflag, t.c_lflag), (0, 0));
    t.c_lflag = ECHO;
    t.c_cc[VINTR] = 1;
    let r = sys!(SYS_ioctl, s, 0x5457, &t as *const termios);
    if sys!(SYS_geteuid) != 0 {
        err(r, EPERM);
        shut([m, s]);
        return;
    }
    ok(r);
    change(s, |t| {
        t.c_lflag &= !(ECHO | ISIG);
        t.c_cc[VINTR] = 9;
    });
    let t = settings(s);
    eq((t.c_lflag & (ECHO | ISIG), t.c_cc[VINTR]), (ECHO, 3));
    shut([m, s]);
}

fn forced_settings() {
    let (m, s, _) = pair();
    change(s, |t| t.c_cflag = B9600 | CS5 | PARENB | HUPCL | CLOCAL);
    eq(settings(s).c_cflag, B9600 | CS8 | CREAD | HUPCL | CLOCAL);
    shut([m, s]);
}

fn soft_carrier() {
    let (m, s, _) = pair();
    let mut n = 9i32;
    ok(sys!(SYS_ioctl, s, 0x5419, &mut n));
    eq(n, 0);
    ok(sys!(SYS_ioctl, s, 0x541a, &1i32));
    ok(sys!(SYS_ioctl, s, 0x5419, &mut n));
    eq((n, settings(s).c_cflag & CLOCAL), (1, CLOCAL));
    shut([m, s]);
}

fn breaks() {
    let (m, s, _) = pair();
    for (request, arg) in [(0x5409u64, 0), (0x5409, 1), (0x5425, 0), (0x5427, 0), (0x5428, 0)] {
        ok(sys!(SYS_ioctl, s, request, arg));
    }
    eq(unsafe { tcdrain(s) }, 0);
    end(m, s);
}

fn refused() {
    let (m, s, _) = pair();
    let mut x = [0u8; 64];
    // termiox, modem lines, serial parameters, interrupt counts, nothing at all.
    for request in [0x5432u64, 0x5433, 0x5434, 0x5435, 0x5415, 0x5416, 0x5417, 0x5418, 0x541e, 0x541f, 0x545c, 0x545d, 0x5499, 0xdead_beef] {
        for fd in [m, s] {
            err(sys!(SYS_ioctl, fd, request, &mut x), ENOTTY);
        }
    }
    err(sys!(SYS_ioctl, m, TIOCCONS), EINVAL);
    if sys!(SYS_geteuid) != 0 {
        err(sys!(SYS_ioctl, s, TIOCCONS), EPERM);
        err(sys!(SYS_ioctl, s, 0x5437), EPERM);
    }
    shut([m, s]);
}

fn sti() {
    let (m, s, _) = pair();
    let r = sys!(SYS_ioctl, s, TIOCSTI, b"s");
    if sys!(SYS_geteuid) != 0 {
        // EPERM where the old rule (the own controlling terminal only) is in force.
        errs(r, &[EIO, EPERM]);
    } else {
        ok(r);
        ok(sys!(SYS_ioctl, s, TIOCSTI, b"\n"));
        check(wait_input(s), "a line");
        eq(get(s, 9), b"s\n");
        reads(m, b"s\r\n");
    }
    shut([m, s]);
}

fn extproc() {
    let (m, s, _) = pair();
    change(s, |t| t.c_lflag |= EXTPROC);
    put(m, b"a\x7f\x03");
    check(wait_input(s), "input");
    eq(get(s, 10), b"a\x7f\x03");
    end(m, s);
}

fn settings_by_master() {
    let (m, s, _) = pair();
    off(m, ECHO);
    eq(settings(s).c_lflag & ECHO, 0);
    types(m, s, b"x\n", b"", b"x\n");
    ok(sys!(SYS_ioctl, m, TCXONC, TCOOFF));
    ok(sys!(SYS_fcntl, m, F_SETFL, O_RDWR | O_NONBLOCK));
    err(sys!(SYS_write, m, b"x", 1), EAGAIN);
    ok(sys!(SYS_ioctl, m, TCXONC, TCOON));
    put(m, b"y\n");
    check(wait_input(s), "a line");
    eq(get(s, 9), b"y\n");
    end(m, s);
}

fn disabled_chars() {
    let (m, s, _) = pair();
    for place in [VINTR, VERASE, VEOF, VKILL] {
        cc(s, place, 0);
    }
    types(m, s, b"\x03\x7f\x04\0\x15\n", b"^C^?^D^@^U\r\n", b"\x03\x7f\x04\0\x15\n");
    end(m, s);
}
