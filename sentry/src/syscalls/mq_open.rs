//! mq_open(2), mq_unlink(2), mq_timedsend(2), mq_timedreceive(2), mq_notify(2), mq_getsetattr(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::SysResult;
use crate::ipc::mqueue::{COOKIE, How, Maker, MqFile, PRIO_MAX, Queue};
use crate::task::creds::cap;
use crate::time;
use crate::vfs::attr::Attr;
use crate::vfs::file::File;
use crate::vfs::perm;
use std::sync::Arc;
use std::time::Duration;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Reads a queue's name: one component, the C library has taken the slash away.
fn name(cx: &mut Cx, name: CStr) -> SysResult<Vec<u8>> {
    let name = cx.read_path(name.addr())?;
    match name.as_slice() {
        b"" => Err(Errno::ENOENT.into()),
        b"." | b".." => Err(Errno::EACCES.into()),
        name if name.contains(&b'/') => Err(Errno::EACCES.into()),
        name if name.len() > 255 => Err(Errno::ENAMETOOLONG.into()),
        _ => Ok(name),
    }
}

/// mq_open(2)
pub fn mq_open(cx: &mut Cx, path: CStr, oflag: OpenFlags, mode: Mode, attr: In<MqAttr>) -> SysResult {
    let flags = oflag.bits();
    let wish = match attr.is_null() {
        true => None,
        false => {
            let attr: MqAttr = cx.read_value(attr.addr())?;
            Some((attr.mq_maxmsg, attr.mq_msgsize))
        }
    };
    let name = name(cx, path)?;
    let queues = cx.task.ipc().mqueues.clone();
    let creds = cx.task.creds();
    let queue = match queues.find(&name) {
        Some(_) if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL => return Err(Errno::EEXIST.into()),
        Some(queue) => {
            let wanted = match flags & O_ACCMODE {
                O_RDONLY => perm::READ,
                O_WRONLY => perm::WRITE,
                O_RDWR => perm::READ | perm::WRITE,
                _ => return Err(Errno::EINVAL.into()),
            };
            perm::check(&creds, &queue.attr(), wanted)?;
            queue
        }
        None if flags & O_CREAT == 0 => return Err(Errno::ENOENT.into()),
        None => {
            let umask = *cx.task.fs().umask.lock();
            let maker = Maker {
                uid: creds.fsuid,
                gid: creds.fsgid,
                limit: cx.task.process.limit(RLIMIT_MSGQUEUE),
                resource: creds.capable(cap::SYS_RESOURCE),
            };
            queues.create(&name, mode.raw() & !umask & 0o7777, wish, &maker)?
        }
    };
    let kept = flags & (O_ACCMODE | O_NONBLOCK);
    let file = File::new(Arc::new(MqFile { queue, name }), kept, None);
    let fd = crate::ipc::install_file(cx, file, true)?;
    Ok(u64::from(fd.cast_unsigned()))
}

/// mq_unlink(2)
pub fn mq_unlink(cx: &mut Cx, path: CStr) -> SysResult {
    let name = name(cx, path)?;
    let queues = &cx.task.ipc().mqueues;
    let queue = queues.find(&name).ok_or(Errno::ENOENT)?;
    let root = Attr { mode: S_IFDIR | 0o1777, ..Attr::default() };
    perm::check_delete(&cx.task.creds(), &root, &queue.attr())?;
    drop(queues.unlink(&name));
    Ok(0)
}

/// The open queue of a descriptor.
fn open(cx: &Cx, fd: Fd) -> SysResult<(Arc<File>, Arc<Queue>)> {
    let file = cx.task.files().get(fd.raw())?;
    let queue = file.downcast::<MqFile>().ok_or(Errno::EBADF)?.queue.clone();
    Ok((file, queue))
}

/// An absolute deadline of the real-time clock.
fn until(cx: &mut Cx, timeout: In<Timespec>) -> SysResult<Option<Duration>> {
    let until = match timeout.is_null() || cx.call.deadline.is_some() {
        true => None,
        false => {
            let spec: Timespec = cx.read_value(timeout.addr())?;
            Some(time::deadline(cx.task, time::from_timespec(&spec)?, true, time::Base::Real))
        }
    };
    Ok(cx.deadline(|| until))
}

/// mq_timedsend(2)
pub fn mq_timedsend(
    cx: &mut Cx,
    mqdes: Fd,
    msg_ptr: InBuf,
    msg_len: usize,
    msg_prio: u32,
    abs_timeout: In<Timespec>,
) -> SysResult {
    let until = until(cx, abs_timeout)?;
    if msg_prio >= PRIO_MAX {
        return Err(Errno::EINVAL.into());
    }
    let (file, queue) = open(cx, mqdes)?;
    if !file.writable() {
        return Err(Errno::EBADF.into());
    }
    if msg_len > queue.message_size() {
        return Err(Errno::EMSGSIZE.into());
    }
    let mut text = vec![0u8; msg_len];
    cx.copy_in(msg_ptr.addr(), &mut text)?;
    queue.send(cx, &file, &text, msg_prio, until).map(|()| 0)
}

/// mq_timedreceive(2)
pub fn mq_timedreceive(
    cx: &mut Cx,
    mqdes: Fd,
    msg_ptr: OutBuf,
    msg_len: usize,
    msg_prio: Out<u32>,
    abs_timeout: In<Timespec>,
) -> SysResult {
    let until = until(cx, abs_timeout)?;
    let (file, queue) = open(cx, mqdes)?;
    if !file.readable() {
        return Err(Errno::EBADF.into());
    }
    if msg_len < queue.message_size() {
        return Err(Errno::EMSGSIZE.into());
    }
    let (text, prio) = queue.receive(cx, &file, until)?;
    if !msg_prio.is_null() {
        cx.write_value(msg_prio.addr(), &prio)?;
    }
    cx.copy_out(msg_ptr.addr(), &text)?;
    Ok(text.len() as u64)
}

/// mq_notify(2)
pub fn mq_notify(cx: &mut Cx, mqdes: Fd, sevp: In<Sigevent>) -> SysResult {
    let event: Option<Sigevent> = match sevp.is_null() {
        true => None,
        false => Some(cx.read_value(sevp.addr())?),
    };
    let how = match &event {
        None => How::Silent,
        Some(event) => match event.sigev_notify {
            SIGEV_NONE => How::Silent,
            SIGEV_SIGNAL if event.sigev_signo == 0 => How::Silent,
            SIGEV_SIGNAL if (1..=NSIG).contains(&event.sigev_signo) => {
                How::Signal(event.sigev_signo, event.sigev_value)
            }
            SIGEV_THREAD => {
                let mut cookie = [0u8; COOKIE];
                cx.copy_in(event.sigev_value, &mut cookie)?;
                let (_, socket) = super::socket::get(cx, Fd(event.sigev_signo))?;
                if socket.family != AF_NETLINK {
                    return Err(Errno::EINVAL.into());
                }
                How::Socket(socket, cookie)
            }
            _ => return Err(Errno::EINVAL.into()),
        },
    };
    let (_, queue) = open(cx, mqdes)?;
    match event {
        None => queue.unregister(cx.task.files().id()),
        Some(_) => queue.register(cx.task, how)?,
    }
    Ok(0)
}

/// mq_getsetattr(2)
pub fn mq_getsetattr(cx: &mut Cx, mqdes: Fd, newattr: In<MqAttr>, oldattr: Out<MqAttr>) -> SysResult {
    let new: Option<MqAttr> = match newattr.is_null() {
        true => None,
        false => Some(cx.read_value(newattr.addr())?),
    };
    if new.is_some_and(|new| new.mq_flags & !i64::from(O_NONBLOCK) != 0) {
        return Err(Errno::EINVAL.into());
    }
    let (file, queue) = open(cx, mqdes)?;
    let mut old = queue.limits();
    old.mq_flags = i64::from(file.flags() & O_NONBLOCK);
    if let Some(new) = new {
        let flag = if new.mq_flags == 0 { 0 } else { O_NONBLOCK };
        file.set_flags(flag, O_NONBLOCK);
    }
    if !oldattr.is_null() {
        cx.write_value(oldattr.addr(), &old)?;
    }
    Ok(0)
}
