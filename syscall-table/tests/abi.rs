//! Narrowing of registers, sizes and layouts of structs, and the table's own rules.

use std::mem::{offset_of, size_of};
use syscall_table::abi::*;
use syscall_table::args::*;
use syscall_table::{Arg, ArgKind, Errno, Level, SYSCALLS, by_name, by_number, sub};
use zerocopy::IntoBytes;

#[test]
fn registers_narrow_as_the_kernel_narrows_them() {
    assert_eq!(Fd::from_raw(0xdead_beef_0000_0003), Fd(3));
    assert_eq!(Fd::from_raw(0xffff_ffff), Fd(-1));
    assert_eq!(Fd::from_raw(u64::MAX), Fd(-1));
    assert_eq!(DirFd::from_raw(0xffff_ff9c), DirFd(AT_FDCWD));
    assert_eq!(i32::from_raw(0x1_0000_0000), 0);
    assert_eq!(u32::from_raw(u64::MAX), u32::MAX);
    assert_eq!(i64::from_raw(u64::MAX), -1);
    assert_eq!(usize::from_raw(1 << 40), 1 << 40);
    assert_eq!(Mode::from_raw(0xffff_0000_0001_01a4), Mode(0o644));
    assert_eq!(OpenFlags::from_raw(0x1_0000_0001), OpenFlags(O_WRONLY));
    assert_eq!(CloneFlags::from_raw(CLONE_INTO_CGROUP), CloneFlags(CLONE_INTO_CGROUP));
    assert_eq!(Addr::from_raw(u64::MAX).addr(), u64::MAX);
    assert_eq!(Uid::from_raw(u64::MAX), Uid(u32::MAX));
    assert!(Out::<Stat>::from_raw(0).is_null());
    assert_eq!(<Out<Stat> as Arg>::KIND, ArgKind::Out { size: 144 });
    assert_eq!(<InSlice<Iovec> as Arg>::KIND, ArgKind::InSlice { size: 16 });
}

#[test]
fn sizes_are_linux_x86_64() {
    // Measured with sizeof against the kernel's and the C library's headers.
    let sizes = [
        (size_of::<Stat>(), 144),
        (size_of::<Statx>(), 256),
        (size_of::<Siginfo>(), 128),
        (size_of::<EpollEvent>(), 12),
        (size_of::<Sigaction>(), 32),
        (size_of::<Stack>(), 24),
        (size_of::<Sigcontext>(), 256),
        (size_of::<Rusage>(), 144),
        (size_of::<Utsname>(), 390),
        (size_of::<Sysinfo>(), 112),
        (size_of::<Statfs>(), 120),
        (size_of::<Msghdr>(), 56),
        (size_of::<Mmsghdr>(), 64),
        (size_of::<Cmsghdr>(), 16),
        (size_of::<SockaddrUn>(), 110),
        (size_of::<Termios>(), 36),
        (size_of::<Termios2>(), 44),
        (size_of::<Flock>(), 32),
        (size_of::<CloneArgs>(), 88),
        (size_of::<Timex>(), 208),
        (size_of::<Sigevent>(), 64),
        (size_of::<SignalfdSiginfo>(), 128),
        (size_of::<UserRegs>(), 216),
        (size_of::<Rseq>(), 32),
    ];
    for (at, (ours, linux)) in sizes.iter().enumerate() {
        assert_eq!(ours, linux, "entry {at}");
    }
    assert_eq!(offset_of!(Stat, st_size), 48);
    assert_eq!(offset_of!(Stat, st_mtime), 88);
    assert_eq!(offset_of!(Statx, stx_mtime), 112);
    assert_eq!(offset_of!(Statx, stx_mnt_id), 144);
    assert_eq!(offset_of!(Ucontext, uc_mcontext), 40);
    assert_eq!(offset_of!(Ucontext, uc_sigmask), 296);
    assert_eq!(offset_of!(RtSigframe, info), 312);
    assert_eq!(offset_of!(Sigcontext, ip), 128);
    assert_eq!(offset_of!(Sigcontext, fpstate), 184);
    assert_eq!(offset_of!(Timex, tai), 160);
    assert_eq!(offset_of!(Sysinfo, mem_unit), 104);
    assert_eq!(offset_of!(SignalfdSiginfo, ssi_addr), 72);
}

#[test]
fn siginfo_fields_lie_where_linux_has_them() {
    let child = Siginfo::child(CLD_EXITED, 7, 1000, 3, 11, 12);
    assert_eq!((child.si_pid(), child.si_uid(), child.si_status(), child.si_times()), (7, 1000, 3, (11, 12)));
    let bytes = child.as_bytes();
    assert_eq!(bytes[16..28], [7i32.to_le_bytes(), 1000i32.to_le_bytes(), 3i32.to_le_bytes()].concat());
    assert_eq!(bytes[32..40], 11u64.to_le_bytes());
    let fault = Siginfo::fault(SIGSEGV, SEGV_MAPERR, 0x1234_5678_9abc);
    assert_eq!(fault.as_bytes()[16..24], 0x1234_5678_9abcu64.to_le_bytes());
    let timer = Siginfo::timer(SIGALRM, 5, 2, 9);
    assert_eq!((timer.si_timer(), timer.si_value(), timer.si_code), ((5, 2), 9, SI_TIMER));
    assert_eq!(Siginfo::queue(34, SI_QUEUE, 1, 2, u64::MAX).si_value(), u64::MAX);
    assert_eq!(Siginfo::poll(SIGIO, POLL_IN, 65, 4).si_band_fd(), (65, 4));
}

#[test]
fn wait_states() {
    assert_eq!(WaitStatus::exited(0x1ff).exit_status(), Some(0xff));
    assert_eq!(WaitStatus::exited(1).term_signal(), None);
    assert_eq!(WaitStatus::signaled(9, false).term_signal(), Some(9));
    assert_eq!(WaitStatus::signaled(11, true).raw, 0x8b);
    assert_eq!(WaitStatus::stopped(19).stop_signal(), Some(19));
    assert_eq!(WaitStatus::stopped(19).term_signal(), None);
    assert_eq!(WaitStatus::continued().stop_signal(), None);
    assert!(WaitStatus::continued().is_continued());
}

#[test]
fn device_numbers() {
    assert_eq!((major(makedev(136, 7)), minor(makedev(136, 7))), (136, 7));
    assert_eq!(makedev(1, 3), 0x103);
    let large = makedev(0xf_ffff, 0xfff_ffff);
    assert_eq!((major(large), minor(large)), (0xf_ffff, 0xfff_ffff));
}

#[test]
fn errors() {
    assert_eq!(format!("{:?}", Errno::ENOENT), "ENOENT");
    assert_eq!(format!("{:?}", Errno::from_raw(999)), "Errno(999)");
    assert_eq!(Errno::EHWPOISON.raw(), 133);
    assert_eq!(Errno::EAGAIN.to_result(), -11);
    assert_eq!(Errno::from_result(-4095).map(Errno::raw), Some(4095));
    assert_eq!(Errno::from_result(-4096), None);
    assert_eq!(Errno::from_result(0), None);
    assert!(Errno::ERESTART_RESTARTBLOCK.is_restart());
    assert_eq!(Errno::from_name("EPERM"), Some(Errno::EPERM));
}

#[test]
fn rows_are_found() {
    assert_eq!(by_number(0).map(|row| row.name), Some("read"));
    assert_eq!(by_number(469).map(|row| row.name), Some("file_setattr"));
    for absent in [337, 400, 423, 470, 512, u32::MAX] {
        assert!(by_number(absent).is_none(), "{absent}");
    }
    for row in SYSCALLS {
        assert_eq!(by_number(row.number), Some(row));
        assert_eq!(by_name(row.name), Some(row), "two rows with one name");
    }
    let numbers = SYSCALLS.iter().map(|row| row.number);
    assert!(numbers.eq((0..=336).chain(424..=469)), "a number without a row");
    assert!(SYSCALLS.iter().all(|row| row.args.len() <= 6));
    assert!(!SYSCALLS.iter().any(|row| row.level.handler().is_some_and(|path| !path.contains("::"))));
    let refused = SYSCALLS.iter().filter(|row| matches!(row.level, Level::Refused(_)));
    assert!(refused.into_iter().all(|row| !row.note.is_empty()));
}

#[test]
fn a_buffer_is_followed_by_its_length() {
    for row in SYSCALLS {
        for (at, arg) in row.args.iter().enumerate() {
            let next = row.args.get(at + 1).map(|next| next.kind);
            match arg.kind {
                ArgKind::InBuf
                | ArgKind::OutBuf
                | ArgKind::InSlice { .. }
                | ArgKind::OutSlice { .. }
                | ArgKind::InOutSlice { .. } => {
                    assert!(matches!(next, Some(ArgKind::Int { .. })), "{}: {}", row.name, arg.name);
                }
                ArgKind::OutVar => {
                    assert_eq!(next, Some(ArgKind::InOut { size: 4 }), "{}: {}", row.name, arg.name);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn sub_tables_name_real_calls_and_no_entry_twice() {
    for table in sub::TABLES {
        let file_system = ["proc", "sysfs", "dev"].contains(&table.call);
        assert!(file_system || by_name(table.call).is_some(), "{}", table.call);
        for (at, row) in table.rows.iter().enumerate() {
            assert!(table.rows[..at].iter().all(|other| other.name != row.name), "{} twice", row.name);
        }
    }
    assert_eq!(sub::ioctl::TTY_IOCTL.by_value(0x5401).map(|row| row.name), Some("TCGETS"));
}
