//! A dispatcher made from the table, as the sentry makes its own: levels apart, typed arguments, a handler whose
//! signature differs from its row does not compile. A private three-row table stands for the rows that the real
//! one has at the moment; the real one goes through the same macro.

use syscall_table::args::*;
use syscall_table::{Arg, Errno, for_each_syscall};

type Args = [u64; 6];

mod syscalls {
    pub mod read {
        use syscall_table::Errno;
        use syscall_table::args::*;

        pub fn read(_cx: &mut (), fd: Fd, _buf: OutBuf, count: usize) -> Result<i64, Errno> {
            if fd.raw() < 0 { Err(Errno::EBADF) } else { Ok(count as i64) }
        }
    }
}

/// One argument expression for each position, as many as the row has.
macro_rules! call {
    ($cx:ident, $args:ident, $module:ident :: $function:ident, $($ty:ty),*) => {{
        let mut registers = $args.iter().copied();
        let _ = &mut registers;
        crate::syscalls::$module::$function($cx, $(<$ty as Arg>::from_raw(registers.next().unwrap_or(0))),*)
    }};
}

macro_rules! arm {
    ($cx:ident $args:ident ($($ty:ty),*) Full($($path:tt)+)) => { call!($cx, $args, $($path)+, $($ty),*) };
    ($cx:ident $args:ident ($($ty:ty),*) Partial($($path:tt)+)) => { call!($cx, $args, $($path)+, $($ty),*) };
    ($cx:ident $args:ident ($($ty:ty),*) Missing) => { Err(Errno::ENOSYS) };
    ($cx:ident $args:ident ($($ty:ty),*) Refused($errno:ident)) => { Err(Errno::$errno) };
}

macro_rules! dispatch {
    ($([$nr:literal, $name:ident, ($($arg:ident : $ty:ty),*), $level:ident $(($($target:tt)*))?, $note:literal],)*) => {
        fn dispatch(cx: &mut (), nr: u32, args: &Args) -> Result<i64, Errno> {
            match nr {
                $($nr => arm!(cx args ($($ty),*) $level $(($($target)*))?),)*
                _ => Err(Errno::ENOSYS),
            }
        }
    };
}

dispatch! {
    [0, read, (fd: Fd, buf: OutBuf, count: usize), Full(read::read), ""],
    [22, pipe, (pipefd: Out<FdPair>), Missing, ""],
    [163, acct, (filename: Path), Refused(EPERM), "no process accounting"],
}

macro_rules! signatures {
    ($([$nr:literal, $name:ident, ($($arg:ident : $ty:ty),*), $level:ident $(($($target:tt)*))?, $note:literal],)*) => {
        fn signature(nr: u32) -> Option<&'static [&'static str]> {
            match nr {
                $($nr => Some(&[$(stringify!($arg)),*]),)*
                _ => None,
            }
        }
    };
}

for_each_syscall!(signatures);

#[test]
fn levels_dispatch() {
    let cx = &mut ();
    assert_eq!(dispatch(cx, 0, &[0xffff_ffff_0000_0003, 0, 7, 0, 0, 0]), Ok(7));
    assert_eq!(dispatch(cx, 0, &[0x0000_0000_ffff_ffff, 0, 7, 0, 0, 0]), Err(Errno::EBADF));
    assert_eq!(dispatch(cx, 22, &[0; 6]), Err(Errno::ENOSYS));
    assert_eq!(dispatch(cx, 163, &[0; 6]), Err(Errno::EPERM));
}

#[test]
fn the_table_goes_through_a_callback() {
    assert_eq!(signature(257), Some(["dirfd", "path", "flags", "mode"].as_slice()));
    assert_eq!(signature(337), None);
    assert_eq!(signature(469).map(|args| args.len()), Some(5));
}
