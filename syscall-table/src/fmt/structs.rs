//! ABI structs, as strace shows them.

use super::Reader;
use super::symbols::{clone, code, code_or_number, flags, open, signal};
use super::text::{ELEMENTS, buffer, pointer, quote};
use crate::abi::*;
use zerocopy::FromBytes;

fn parse<T: FromBytes>(bytes: &[u8]) -> Option<T> {
    T::read_from_prefix(bytes).ok().map(|(value, _)| value)
}

/// A C string in a fixed field.
fn field_string(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    quote(bytes.get(..end).unwrap_or(bytes))
}

fn timespec(t: &Timespec) -> String {
    match t.tv_nsec {
        UTIME_NOW => "UTIME_NOW".to_owned(),
        UTIME_OMIT => "UTIME_OMIT".to_owned(),
        nsec => format!("{{tv_sec={}, tv_nsec={nsec}}}", t.tv_sec),
    }
}

fn timeval(t: &Timeval) -> String {
    format!("{{tv_sec={}, tv_usec={}}}", t.tv_sec, t.tv_usec)
}

/// File type and permissions: `S_IFREG|0644`.
pub(super) fn mode(mode: u32) -> String {
    let kind = mode & S_IFMT;
    match code(kind as u64, FILE_TYPES) {
        Some(name) => format!("{name}|{:04o}", mode & !S_IFMT),
        None => format!("{mode:03o}"),
    }
}

fn is_device(mode: u32) -> bool {
    matches!(mode & S_IFMT, S_IFCHR | S_IFBLK)
}

/// A signal set: `[HUP INT]`, or what it lacks (`~[KILL]`) when most signals are in it.
pub(super) fn sigset(set: u64) -> String {
    let (prefix, shown) = if set.count_ones() > 32 { ("~", !set) } else { ("", set) };
    let names: Vec<String> = (1..=NSIG)
        .filter(|&number| Sigset { sig: shown }.has(number))
        .map(|number| signal(number).trim_start_matches("SIG").to_owned())
        .collect();
    format!("{prefix}[{}]", names.join(" "))
}

fn handler(addr: u64) -> String {
    code(addr, SIG_HANDLERS).map_or_else(|| format!("{addr:#x}"), str::to_owned)
}

fn si_code(info: &Siginfo) -> String {
    let value = info.si_code as u32 as u64;
    let own = match info.si_signo {
        SIGILL => code(value, ILL_CODES),
        SIGFPE => code(value, FPE_CODES),
        SIGSEGV => code(value, SEGV_CODES),
        SIGBUS => code(value, BUS_CODES),
        SIGTRAP => code(value, TRAP_CODES),
        SIGCHLD => code(value, CLD_CODES),
        SIGIO => code(value, POLL_CODES),
        SIGSYS => code(value, SYS_CODES),
        _ => None,
    };
    code(value, SI_CODES).or(own).map_or_else(|| info.si_code.to_string(), str::to_owned)
}

fn siginfo(info: &Siginfo) -> String {
    let head = format!("{{si_signo={}, si_code={}", signal(info.si_signo), si_code(info));
    let kernel = info.si_code > 0 && info.si_code != SI_KERNEL;
    let tail = match info.si_signo {
        SIGCHLD if kernel => {
            let status = match info.si_code {
                CLD_EXITED => info.si_status().to_string(),
                _ => signal(info.si_status()),
            };
            let (utime, stime) = info.si_times();
            format!(
                ", si_pid={}, si_uid={}, si_status={status}, si_utime={utime}, si_stime={stime}",
                info.si_pid(),
                info.si_uid()
            )
        }
        SIGILL | SIGFPE | SIGSEGV | SIGBUS | SIGTRAP if kernel => {
            format!(", si_addr={}", pointer(info.si_addr()))
        }
        _ => match info.si_code {
            SI_USER | SI_TKILL => format!(", si_pid={}, si_uid={}", info.si_pid(), info.si_uid()),
            SI_QUEUE | SI_MESGQ => {
                format!(
                    ", si_pid={}, si_uid={}, si_value={:#x}",
                    info.si_pid(),
                    info.si_uid(),
                    info.si_value()
                )
            }
            SI_TIMER => {
                let (id, overrun) = info.si_timer();
                format!(", si_timerid={id}, si_overrun={overrun}, si_value={:#x}", info.si_value())
            }
            _ => String::new(),
        },
    };
    head + &tail + "}"
}

/// The status of wait4(2), in the words of its macros.
pub(super) fn wait_status(status: WaitStatus) -> String {
    if status.is_continued() {
        "WIFCONTINUED(s)".to_owned()
    } else if let Some(stop) = status.stop_signal() {
        let event = stop >> 8;
        let text = format!("WIFSTOPPED(s) && WSTOPSIG(s) == {}", signal(stop & 0xff));
        if event == 0 { text } else { format!("{text} | {event:#x} << 8") }
    } else if let Some(number) = status.term_signal() {
        let core = if status.raw & 0x80 != 0 { " && WCOREDUMP(s)" } else { "" };
        format!("WIFSIGNALED(s) && WTERMSIG(s) == {}{core}", signal(number))
    } else {
        format!("WIFEXITED(s) && WEXITSTATUS(s) == {}", status.raw >> 8 & 0xff)
    }
}

/// A socket address.
pub(super) fn sockaddr(bytes: &[u8]) -> Option<String> {
    let family = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
    let name = code_or_number(family as u64, ADDRESS_FAMILIES);
    Some(match family as i32 {
        AF_UNIX => {
            let path = bytes.get(2..).unwrap_or(&[]);
            match path.first() {
                None => "{sa_family=AF_UNIX}".to_owned(),
                Some(0) => {
                    format!("{{sa_family=AF_UNIX, sun_path=@{}}}", quote(path.get(1..).unwrap_or(&[])))
                }
                Some(_) => format!("{{sa_family=AF_UNIX, sun_path={}}}", field_string(path)),
            }
        }
        AF_INET if bytes.len() >= 8 => {
            let address: SockaddrIn = parse_padded(bytes)?;
            let [a, b, c, d] = address.sin_addr;
            format!(
                "{{sa_family=AF_INET, sin_port=htons({}), sin_addr=inet_addr(\"{a}.{b}.{c}.{d}\")}}",
                u16::from_be_bytes(address.sin_port)
            )
        }
        AF_INET6 if bytes.len() >= 24 => {
            let address: SockaddrIn6 = parse_padded(bytes)?;
            format!(
                "{{sa_family=AF_INET6, sin6_port=htons({}), sin6_addr=\"{}\", sin6_scope_id={}}}",
                u16::from_be_bytes(address.sin6_port),
                std::net::Ipv6Addr::from(address.sin6_addr),
                address.sin6_scope_id
            )
        }
        AF_NETLINK if bytes.len() >= 12 => {
            let address: SockaddrNl = parse(bytes)?;
            format!(
                "{{sa_family=AF_NETLINK, nl_pid={}, nl_groups={:08x}}}",
                address.nl_pid, address.nl_groups
            )
        }
        _ => format!("{{sa_family={name}, sa_data={}}}", quote(bytes.get(2..).unwrap_or(&[]))),
    })
}

/// A struct of which the last bytes may be absent: they count as zero.
fn parse_padded<T: FromBytes>(bytes: &[u8]) -> Option<T> {
    let mut full = bytes.to_vec();
    full.resize(bytes.len().max(size_of::<T>()), 0);
    parse(&full)
}

fn pollfd(p: &Pollfd, after: bool) -> String {
    let revents = match (after, p.revents) {
        (false, _) | (true, 0) => String::new(),
        (true, revents) => format!(", revents={}", flags(revents as u64, POLL_EVENTS)),
    };
    format!("{{fd={}, events={}{revents}}}", p.fd, flags(p.events as u64, POLL_EVENTS))
}

fn epoll_event(e: &EpollEvent) -> String {
    let (events, data) = (e.events, e.data);
    format!("{{events={}, data={data:#x}}}", flags(events as u64, EPOLL_EVENTS))
}

/// One iovec; `left` is what of the data is known (a read call's result), and is counted down.
fn iovec(v: &Iovec, read: Reader<'_>, left: &mut u64) -> String {
    let len = v.iov_len.min(*left);
    *left -= len;
    format!("{{iov_base={}, iov_len={}}}", buffer(read, v.iov_base, len), v.iov_len)
}

/// An iovec array of which at most `known` bytes are shown.
pub(super) fn iovecs(read: Reader<'_>, addr: u64, count: u64, known: u64) -> Option<String> {
    let mut left = known;
    array::<Iovec>(read, addr, count, |v| iovec(v, read, &mut left))
}

/// An array, its first elements.
fn array<T: FromBytes>(
    read: Reader<'_>,
    addr: u64,
    count: u64,
    mut show: impl FnMut(&T) -> String,
) -> Option<String> {
    let shown = count.min(ELEMENTS as u64) as usize;
    if shown == 0 {
        return Some("[]".to_owned());
    }
    let bytes = read(addr, shown * size_of::<T>())?;
    let mut parts = Vec::new();
    for chunk in bytes.chunks_exact(size_of::<T>()) {
        parts.push(show(&parse(chunk)?));
    }
    if count > shown as u64 {
        parts.push("...".to_owned());
    }
    Some(format!("[{}]", parts.join(", ")))
}

/// A message header with what it points to; `known` bytes of the data.
fn msghdr(m: &Msghdr, read: Reader<'_>, known: u64, after: bool) -> String {
    let name = match (m.msg_name, m.msg_namelen) {
        (0, _) => "NULL".to_owned(),
        (addr, len @ 1..=128) => {
            read(addr, len as usize).and_then(|bytes| sockaddr(&bytes)).unwrap_or_else(|| pointer(addr))
        }
        (addr, _) => pointer(addr),
    };
    let iov = iovecs(read, m.msg_iov, m.msg_iovlen, known).unwrap_or_else(|| pointer(m.msg_iov));
    let flags = if after {
        format!(", msg_flags={}", flags(m.msg_flags as u32 as u64, MSG_FLAGS))
    } else {
        String::new()
    };
    format!(
        "{{msg_name={name}, msg_namelen={}, msg_iov={iov}, msg_iovlen={}, msg_control={}, msg_controllen={}{flags}}}",
        m.msg_namelen,
        m.msg_iovlen,
        control(m, read).unwrap_or_else(|| pointer(m.msg_control)),
        m.msg_controllen
    )
}

/// Control messages: descriptors and credentials by value, the rest by level and type.
fn control(m: &Msghdr, read: Reader<'_>) -> Option<String> {
    if m.msg_control == 0 || m.msg_controllen < 16 {
        return None;
    }
    let bytes = read(m.msg_control, m.msg_controllen.min(1024) as usize)?;
    let mut parts = Vec::new();
    let mut at = 0usize;
    while let Some(header) = bytes.get(at..).and_then(parse::<Cmsghdr>) {
        let len = usize::try_from(header.cmsg_len).ok()?;
        let Some(data) = at.checked_add(len).and_then(|end| bytes.get(at + 16..end)) else { break };
        parts.push(match (header.cmsg_level, header.cmsg_type) {
            (SOL_SOCKET, SCM_RIGHTS) => {
                let fds: Vec<String> =
                    data.chunks_exact(4).filter_map(parse::<i32>).map(|fd| fd.to_string()).collect();
                format!("{{cmsg_type=SCM_RIGHTS, cmsg_data=[{}]}}", fds.join(", "))
            }
            (level, kind) => format!(
                "{{cmsg_level={}, cmsg_type={kind:#x}, cmsg_len={len}}}",
                code_or_number(level as u32 as u64, SOCKOPT_LEVELS)
            ),
        });
        at += len.max(16).next_multiple_of(8);
    }
    Some(format!("[{}]", parts.join(", ")))
}

fn limit(value: u64) -> String {
    match value {
        RLIM_INFINITY => "RLIM64_INFINITY".to_owned(),
        value if value % 1024 == 0 && value > 0 => format!("{}*1024", value / 1024),
        value => value.to_string(),
    }
}

/// Terminal settings, in brief.
pub(super) fn termios(t: &Termios) -> String {
    format!(
        "{{c_iflag={}, c_oflag={}, c_cflag={:#x}, c_lflag={}, ...}}",
        flags(t.c_iflag as u64, C_IFLAG),
        flags(t.c_oflag as u64, C_OFLAG),
        t.c_cflag,
        flags(t.c_lflag as u64, C_LFLAG)
    )
}

/// struct open_how.
pub(super) fn open_how(bytes: &[u8]) -> Option<String> {
    let how: OpenHow = parse(bytes)?;
    Some(format!(
        "{{flags={}, mode={:#o}, resolve={}}}",
        open(how.flags),
        how.mode,
        flags(how.resolve, RESOLVE_FLAGS)
    ))
}

/// struct clone_args.
pub(super) fn clone_args(bytes: &[u8]) -> Option<String> {
    let args: CloneArgs = parse_padded(bytes)?;
    Some(format!(
        "{{flags={}, child_tid={}, parent_tid={}, exit_signal={}, stack={}, stack_size={:#x}, tls={}}}",
        clone(args.flags, false),
        pointer(args.child_tid),
        pointer(args.parent_tid),
        signal(args.exit_signal as i32),
        pointer(args.stack),
        args.stack_size,
        pointer(args.tls)
    ))
}

/// What a struct is shown with.
pub(super) struct Around<'a> {
    /// Reads guest memory.
    pub read: Reader<'a>,
    /// The call has returned.
    pub after: bool,
    /// Bytes of data that a message or iovec array is known to hold.
    pub known: u64,
}

/// A struct from its bytes, by the name of its type. `None`: too short, or a type without a form of its own.
pub(super) fn show(type_name: &str, bytes: &[u8], around: &Around<'_>) -> Option<String> {
    Some(match type_name {
        "i32" => format!("[{}]", parse::<i32>(bytes)?),
        "u32" => format!("[{}]", parse::<u32>(bytes)?),
        "i64" => format!("[{}]", parse::<i64>(bytes)?),
        "u64" => format!("[{:#x}]", parse::<u64>(bytes)?),
        "FdPair" => {
            let [first, second] = parse::<FdPair>(bytes)?.fds;
            format!("[{first}, {second}]")
        }
        "Timespec" => timespec(&parse(bytes)?),
        "Timeval" => timeval(&parse(bytes)?),
        "TimespecPair" => {
            let pair: TimespecPair = parse(bytes)?;
            format!("[{}, {}]", timespec(&pair.atime), timespec(&pair.mtime))
        }
        "TimevalPair" => {
            let pair: TimevalPair = parse(bytes)?;
            format!("[{}, {}]", timeval(&pair.atime), timeval(&pair.mtime))
        }
        "Timezone" => {
            let zone: Timezone = parse(bytes)?;
            format!("{{tz_minuteswest={}, tz_dsttime={}}}", zone.tz_minuteswest, zone.tz_dsttime)
        }
        "Utimbuf" => {
            let times: Utimbuf = parse(bytes)?;
            format!("{{actime={}, modtime={}}}", times.actime, times.modtime)
        }
        "Itimerval" => {
            let timer: Itimerval = parse(bytes)?;
            format!("{{it_interval={}, it_value={}}}", timeval(&timer.it_interval), timeval(&timer.it_value))
        }
        "Itimerspec" => {
            let timer: Itimerspec = parse(bytes)?;
            format!(
                "{{it_interval={}, it_value={}}}",
                timespec(&timer.it_interval),
                timespec(&timer.it_value)
            )
        }
        "Sigevent" => {
            let event: Sigevent = parse(bytes)?;
            format!(
                "{{sigev_value={:#x}, sigev_signo={}, sigev_notify={}}}",
                event.sigev_value,
                signal(event.sigev_signo),
                code_or_number(event.sigev_notify as u32 as u64, SIGEV)
            )
        }
        "Stat" => {
            let st: Stat = parse(bytes)?;
            let size = if is_device(st.st_mode) {
                format!("st_rdev=makedev({:#x}, {:#x})", major(st.st_rdev), minor(st.st_rdev))
            } else {
                format!("st_size={}", st.st_size)
            };
            format!("{{st_mode={}, {size}, ...}}", mode(st.st_mode))
        }
        "Statx" => {
            let st: Statx = parse(bytes)?;
            format!(
                "{{stx_mask={}, stx_mode={}, stx_size={}, ...}}",
                flags(st.stx_mask as u64, STATX_MASK),
                mode(st.stx_mode as u32),
                st.stx_size
            )
        }
        "Statfs" => {
            let fs: Statfs = parse(bytes)?;
            format!(
                "{{f_type={}, f_bsize={}, f_blocks={}, f_bfree={}, ...}}",
                code_or_number(fs.f_type as u64, FS_MAGIC),
                fs.f_bsize,
                fs.f_blocks,
                fs.f_bfree
            )
        }
        "Ustat" => format!("{{f_tfree={}, ...}}", parse::<Ustat>(bytes)?.f_tfree),
        "Pollfd" => pollfd(&parse(bytes)?, around.after),
        "EpollEvent" => epoll_event(&parse(bytes)?),
        "Iovec" => iovec(&parse(bytes)?, around.read, &mut around.known.clone()),
        "Msghdr" => msghdr(&parse(bytes)?, around.read, around.known, around.after),
        "Mmsghdr" => {
            let m: Mmsghdr = parse(bytes)?;
            let known = if around.after { m.msg_len as u64 } else { around.known };
            format!(
                "{{msg_hdr={}, msg_len={}}}",
                msghdr(&m.msg_hdr, around.read, known, around.after),
                m.msg_len
            )
        }
        "Sigset" => sigset(parse::<Sigset>(bytes)?.sig),
        "SigsetArg" => {
            let arg: SigsetArg = parse(bytes)?;
            let set = if arg.ss == 0 { None } else { super::text::word(around.read, arg.ss) };
            format!("{{sigmask={}, sigsetsize={}}}", set.map_or_else(|| pointer(arg.ss), sigset), arg.ss_len)
        }
        "Sigaction" => {
            let action: Sigaction = parse(bytes)?;
            format!(
                "{{sa_handler={}, sa_mask={}, sa_flags={}, sa_restorer={}}}",
                handler(action.sa_handler),
                sigset(action.sa_mask.sig),
                flags(action.sa_flags, SA_FLAGS),
                pointer(action.sa_restorer)
            )
        }
        "Siginfo" => siginfo(&parse(bytes)?),
        "Stack" => {
            let stack: Stack = parse(bytes)?;
            format!(
                "{{ss_sp={}, ss_flags={}, ss_size={}}}",
                pointer(stack.ss_sp),
                flags(stack.ss_flags as u32 as u64, SS_FLAGS),
                stack.ss_size
            )
        }
        "WaitStatus" => format!("[{{{}}}]", wait_status(parse(bytes)?)),
        "Rlimit" => {
            let limits: Rlimit = parse(bytes)?;
            format!("{{rlim_cur={}, rlim_max={}}}", limit(limits.rlim_cur), limit(limits.rlim_max))
        }
        "Rusage" => {
            let usage: Rusage = parse(bytes)?;
            format!("{{ru_utime={}, ru_stime={}, ...}}", timeval(&usage.ru_utime), timeval(&usage.ru_stime))
        }
        "Utsname" => {
            let name: Utsname = parse(bytes)?;
            format!(
                "{{sysname={}, nodename={}, ...}}",
                field_string(&name.sysname),
                field_string(&name.nodename)
            )
        }
        "Sysinfo" => {
            let info: Sysinfo = parse(bytes)?;
            format!("{{uptime={}, totalram={}, freeram={}, ...}}", info.uptime, info.totalram, info.freeram)
        }
        "Tms" => {
            let t: Tms = parse(bytes)?;
            format!(
                "{{tms_utime={}, tms_stime={}, tms_cutime={}, tms_cstime={}}}",
                t.tms_utime, t.tms_stime, t.tms_cutime, t.tms_cstime
            )
        }
        "Timex" => {
            let t: Timex = parse(bytes)?;
            format!(
                "{{modes={:#x}, offset={}, freq={}, status={:#x}, ...}}",
                t.modes, t.offset, t.freq, t.status
            )
        }
        "SchedParam" => format!("[{}]", parse::<SchedParam>(bytes)?.sched_priority),
        "CapHeader" => {
            let header: CapHeader = parse(bytes)?;
            format!("{{version={:#x}, pid={}}}", header.version, header.pid)
        }
        "Sembuf" => {
            let op: Sembuf = parse(bytes)?;
            format!("{{sem_num={}, sem_op={}, sem_flg={:#x}}}", op.sem_num, op.sem_op, op.sem_flg)
        }
        "MqAttr" => {
            let attr: MqAttr = parse(bytes)?;
            format!(
                "{{mq_flags={:#x}, mq_maxmsg={}, mq_msgsize={}, ...}}",
                attr.mq_flags, attr.mq_maxmsg, attr.mq_msgsize
            )
        }
        "FutexWaitv" => {
            let waiter: FutexWaitv = parse(bytes)?;
            format!(
                "{{val={:#x}, uaddr={}, flags={}}}",
                waiter.val,
                pointer(waiter.uaddr),
                flags(waiter.flags as u64, FUTEX2_FLAGS)
            )
        }
        "CachestatRange" => {
            let range: CachestatRange = parse(bytes)?;
            format!("{{off={}, len={}}}", range.off, range.len)
        }
        "Cachestat" => format!("{{nr_cache={}, ...}}", parse::<Cachestat>(bytes)?.nr_cache),
        "IoUringParams" => format!("{{flags={:#x}, ...}}", parse::<IoUringParams>(bytes)?.flags),
        "Winsize" => {
            let size: Winsize = parse(bytes)?;
            format!(
                "{{ws_row={}, ws_col={}, ws_xpixel={}, ws_ypixel={}}}",
                size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel
            )
        }
        "Termios" => termios(&parse(bytes)?),
        "Flock" => {
            let lock: Flock = parse(bytes)?;
            format!(
                "{{l_type={}, l_whence={}, l_start={}, l_len={}, l_pid={}}}",
                code_or_number(lock.l_type as u16 as u64, LOCK_TYPES),
                code_or_number(lock.l_whence as u16 as u64, SEEK),
                lock.l_start,
                lock.l_len,
                lock.l_pid
            )
        }
        _ => return None,
    })
}

/// An array of structs by the name of their type.
pub(super) fn show_array(
    type_name: &str,
    size: usize,
    addr: u64,
    count: u64,
    around: &Around<'_>,
) -> Option<String> {
    if type_name == "Iovec" {
        return iovecs(around.read, addr, count, around.known);
    }
    let shown = count.min(ELEMENTS as u64) as usize;
    if shown == 0 {
        return Some("[]".to_owned());
    }
    let bytes = (around.read)(addr, shown.checked_mul(size)?)?;
    let mut parts = Vec::new();
    for chunk in bytes.chunks_exact(size.max(1)) {
        parts.push(show(type_name, chunk, around)?);
    }
    if count > shown as u64 {
        parts.push("...".to_owned());
    }
    Some(format!("[{}]", parts.join(", ")))
}
