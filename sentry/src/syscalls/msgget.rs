//! msgget(2), msgsnd(2), msgrcv(2), msgctl(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::sysv::msg::{MSGMAX, MSGMNB, MSGMNI, Message, Queue, Wanted};
use crate::ipc::sysv::{Object, READ, WRITE};
use crate::task::creds::cap;
use crate::wait::Ready;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;

/// Kept while a call waits: the queue that it found, and what it sends.
#[derive(Default)]
struct Waiting {
    queue: Option<Arc<Queue>>,
    message: Option<Message>,
}

/// msgget(2)
pub fn msgget(cx: &mut Cx, key: i32, msgflg: IpcFlags) -> SysResult {
    let table = &cx.task.ipc().sysv.msg;
    let id = table.get(
        (key, msgflg.bits()),
        &cx.task.creds(),
        MSGMNI,
        |_| Ok(()),
        |perm, _| Ok(Queue::new(perm)),
    )?;
    Ok(u64::from(id.cast_unsigned()))
}

fn find(cx: &mut Cx, msqid: i32, wanted: u32) -> SysResult<Arc<Queue>> {
    let queue = cx.task.ipc().sysv.msg.find(msqid)?;
    if !queue.perm().may(&cx.task.creds(), wanted) {
        return Err(Errno::EACCES.into());
    }
    Ok(queue)
}

/// msgsnd(2)
pub fn msgsnd(cx: &mut Cx, msqid: i32, msgp: Addr, msgsz: usize, msgflg: IpcFlags) -> SysResult {
    if cx.state::<Waiting>().queue.is_none() {
        let kind: i64 = cx.read_value(msgp.addr())?;
        if msgsz > MSGMAX || msqid < 0 || kind < 1 {
            return Err(Errno::EINVAL.into());
        }
        let mut text = vec![0u8; msgsz];
        cx.copy_in(msgp.addr().wrapping_add(8), &mut text)?;
        let queue = find(cx, msqid, WRITE)?;
        *cx.state::<Waiting>() = Waiting { queue: Some(queue), message: Some(Message { kind, text }) };
    }
    let waiting = cx.state::<Waiting>();
    let (Some(queue), Some(message)) = (waiting.queue.clone(), waiting.message.take()) else {
        return Err(Errno::EINVAL.into());
    };
    cx.wait_on(queue.queue(), Ready::IN);
    if queue.send(&message, &cx.task.process.name, &cx.task.ipc().sysv.usage.bytes)? {
        return Ok(0);
    }
    if msgflg.has(IPC_NOWAIT) {
        return Err(Errno::EAGAIN.into());
    }
    cx.state::<Waiting>().message = Some(message);
    cx.block(Restart::NoHand)
}

/// msgrcv(2)
pub fn msgrcv(cx: &mut Cx, msqid: i32, msgp: Addr, msgsz: usize, msgtyp: i64, msgflg: IpcFlags) -> SysResult {
    let copy = msgflg.has(MSG_COPY);
    if msqid < 0
        || isize::try_from(msgsz).is_err()
        || copy && (msgflg.has(MSG_EXCEPT) || !msgflg.has(IPC_NOWAIT))
    {
        return Err(Errno::EINVAL.into());
    }
    let wanted = match msgtyp {
        at if copy => Wanted::Copy(at),
        0 => Wanted::Any,
        kind if kind < 0 => Wanted::UpTo(kind.checked_neg().unwrap_or(i64::MAX)),
        kind if msgflg.has(MSG_EXCEPT) => Wanted::Except(kind),
        kind => Wanted::Type(kind),
    };
    if cx.state::<Waiting>().queue.is_none() {
        let queue = find(cx, msqid, READ)?;
        cx.state::<Waiting>().queue = Some(queue);
    }
    let queue = cx.state::<Waiting>().queue.clone().ok_or(Errno::EINVAL)?;
    cx.wait_on(queue.queue(), Ready::IN);
    let bytes = &cx.task.ipc().sysv.usage.bytes;
    match queue.receive(wanted, msgsz, msgflg.has(MSG_NOERROR), &cx.task.process.name, bytes)? {
        Some(message) => {
            let text = message.text.get(..message.text.len().min(msgsz)).unwrap_or_default();
            cx.write_value(msgp.addr(), &message.kind)?;
            cx.copy_out(msgp.addr().wrapping_add(8), text)?;
            Ok(text.len() as u64)
        }
        None if msgflg.has(IPC_NOWAIT) => Err(Errno::ENOMSG.into()),
        None => cx.block(Restart::NoHand),
    }
}

/// msgctl(2)
pub fn msgctl(cx: &mut Cx, msqid: i32, op: IpcCmd, buf: Addr) -> SysResult {
    if op.bits() < 0 || msqid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let ipc = &cx.task.ipc().sysv;
    let creds = cx.task.creds();
    match op.bits() {
        cmd @ (IPC_INFO | MSG_INFO) => {
            let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
            let mut info = Msginfo {
                // What Linux still tells of things it has not had for long.
                msgpool: 512_000,
                msgmap: 16384,
                msgmax: number(MSGMAX),
                msgmnb: MSGMNB as i32,
                msgmni: number(MSGMNI),
                msgssz: 16,
                msgtql: 16384,
                msgseg: 0xffff,
                ..zerocopy::FromZeros::new_zeroed()
            };
            if cmd == MSG_INFO {
                let held: Vec<(usize, u64)> = ipc.msg.all().iter().map(|(_, q)| q.lock().held()).collect();
                info.msgpool = number(held.len());
                info.msgmap = number(held.iter().map(|(count, _)| count).sum());
                info.msgtql = number(held.iter().map(|(_, bytes)| *bytes as usize).sum());
            }
            cx.write_value(buf.addr(), &info)?;
            Ok(ipc.msg.highest())
        }
        cmd @ (IPC_STAT | MSG_STAT | MSG_STAT_ANY) => {
            let (id, queue) =
                if cmd == IPC_STAT { (msqid, ipc.msg.find(msqid)?) } else { ipc.msg.at(msqid)? };
            if cmd != MSG_STAT_ANY && !queue.perm().may(&creds, READ) {
                return Err(Errno::EACCES.into());
            }
            let stat = queue.lock().stat(id, &creds.ns, &cx.task.process.pidns);
            cx.write_value(buf.addr(), &stat)?;
            Ok(if cmd == IPC_STAT { 0 } else { u64::from(id.cast_unsigned()) })
        }
        IPC_SET => {
            let new: Msqid = cx.read_value(buf.addr())?;
            let queue = ipc.msg.find(msqid)?;
            queue.perm().check_owner(&creds)?;
            if new.msg_qbytes > MSGMNB && !creds.capable(cap::SYS_RESOURCE) {
                return Err(Errno::EPERM.into());
            }
            let perm = crate::ipc::sysv::owner_from(&cx.task.creds().ns, new.msg_perm)?;
            queue.lock().set(&perm, new.msg_qbytes);
            queue.wake();
            Ok(0)
        }
        IPC_RMID => {
            let queue = ipc.msg.find(msqid)?;
            queue.perm().check_owner(&creds)?;
            ipc.msg.remove(msqid);
            ipc.usage.bytes.give(queue.remove());
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}
