//! Terminal settings: what a new pseudo-terminal has, the forms that the requests take, speeds, locked parts.

use syscall_table::abi::ioctl::*;

/// Speeds in bits per second by their number in CBAUD; those past B38400 have CBAUDEX set.
const SPEEDS: [u32; 31] = [
    0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19200, 38400, 57600, 115_200,
    230_400, 460_800, 500_000, 576_000, 921_600, 1_000_000, 1_152_000, 1_500_000, 2_000_000, 2_500_000,
    3_000_000, 3_500_000, 4_000_000,
];

/// Settings of a new terminal.
pub(super) fn initial() -> Termios2 {
    let mut c_cc = [0; NCCS];
    let set = [
        (VINTR, 0x03),
        (VQUIT, 0x1c),
        (VERASE, 0x7f),
        (VKILL, 0x15),
        (VEOF, 0x04),
        (VMIN, 1),
        (VSTART, 0x11),
        (VSTOP, 0x13),
        (VSUSP, 0x1a),
        (VREPRINT, 0x12),
        (VDISCARD, 0x0f),
        (VWERASE, 0x17),
        (VLNEXT, 0x16),
    ];
    for (place, value) in set {
        if let Some(slot) = c_cc.get_mut(place) {
            *slot = value;
        }
    }
    Termios2 {
        c_iflag: ICRNL | IXON,
        c_oflag: OPOST | ONLCR,
        c_cflag: B38400 | CS8 | CREAD,
        c_lflag: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
        c_line: 0,
        c_cc,
        c_ispeed: 38400,
        c_ospeed: 38400,
    }
}

fn speed(cbaud: u32, other: u32) -> u32 {
    if cbaud == BOTHER {
        return other;
    }
    let index = if cbaud & CBAUDEX != 0 { (cbaud & !CBAUDEX).saturating_add(15) } else { cbaud };
    usize::try_from(index).ok().and_then(|i| SPEEDS.get(i)).copied().unwrap_or(0)
}

/// The settings with `c_ispeed` and `c_ospeed` as `c_cflag` says.
fn with_speeds(mut new: Termios2) -> Termios2 {
    new.c_ospeed = speed(new.c_cflag & CBAUD, new.c_ospeed);
    let input = (new.c_cflag >> IBSHIFT) & CBAUD;
    new.c_ispeed = if input == 0 { new.c_ospeed } else { speed(input, new.c_ispeed) };
    new
}

/// What TCGETS reads.
pub(super) fn to_termios(t: &Termios2) -> Termios {
    Termios {
        c_iflag: t.c_iflag,
        c_oflag: t.c_oflag,
        c_cflag: t.c_cflag,
        c_lflag: t.c_lflag,
        c_line: t.c_line,
        c_cc: t.c_cc,
    }
}

/// What TCSETS means over the old settings.
pub(super) fn from_termios(old: &Termios2, new: &Termios) -> Termios2 {
    with_speeds(Termios2 {
        c_iflag: new.c_iflag,
        c_oflag: new.c_oflag,
        c_cflag: new.c_cflag,
        c_lflag: new.c_lflag,
        c_line: new.c_line,
        c_cc: new.c_cc,
        ..*old
    })
}

/// What TCSETS2 means.
pub(super) fn from_termios2(new: &Termios2) -> Termios2 {
    with_speeds(*new)
}

/// What TCGETA reads: the low halves of the flags.
pub(super) fn to_termio(t: &Termios2) -> Termio {
    let low = |flags: u32| (flags & 0xffff) as u16;
    let mut c_cc = [0; 8];
    for (to, from) in c_cc.iter_mut().zip(t.c_cc) {
        *to = from;
    }
    Termio {
        c_iflag: low(t.c_iflag),
        c_oflag: low(t.c_oflag),
        c_cflag: low(t.c_cflag),
        c_lflag: low(t.c_lflag),
        c_line: t.c_line,
        c_cc,
        __pad: 0,
    }
}

/// What TCSETA means over the old settings.
pub(super) fn from_termio(old: &Termios2, new: &Termio) -> Termios2 {
    let low = |flags: u32, new: u16| flags & 0xffff_0000 | u32::from(new);
    let mut c_cc = old.c_cc;
    for (to, from) in c_cc.iter_mut().zip(new.c_cc) {
        *to = from;
    }
    with_speeds(Termios2 {
        c_iflag: low(old.c_iflag, new.c_iflag),
        c_oflag: low(old.c_oflag, new.c_oflag),
        c_cflag: low(old.c_cflag, new.c_cflag),
        c_lflag: low(old.c_lflag, new.c_lflag),
        c_line: new.c_line,
        c_cc,
        ..*old
    })
}

/// `new` where `locked` (TIOCSLCKTRMIOS) has no bit, `old` where it has one.
pub(super) fn keep_locked(old: &Termios2, new: &Termios2, locked: &Termios2) -> Termios2 {
    let mix = |old: u32, new: u32, locked: u32| new & !locked | old & locked;
    let mut c_cc = new.c_cc;
    for ((to, old), locked) in c_cc.iter_mut().zip(old.c_cc).zip(locked.c_cc) {
        if locked != 0 {
            *to = old;
        }
    }
    Termios2 {
        c_iflag: mix(old.c_iflag, new.c_iflag, locked.c_iflag),
        c_oflag: mix(old.c_oflag, new.c_oflag, locked.c_oflag),
        c_cflag: mix(old.c_cflag, new.c_cflag, locked.c_cflag),
        c_lflag: mix(old.c_lflag, new.c_lflag, locked.c_lflag),
        c_line: if locked.c_line != 0 { old.c_line } else { new.c_line },
        c_cc,
        c_ispeed: new.c_ispeed,
        c_ospeed: new.c_ospeed,
    }
}

/// A pseudo-terminal has 8 bits without parity, whatever is asked for.
pub(super) fn of_pty(mut new: Termios2) -> Termios2 {
    new.c_cflag = new.c_cflag & !(CSIZE | PARENB) | CS8 | CREAD;
    new
}
