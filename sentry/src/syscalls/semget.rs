//! semget(2), semop(2), semtimedop(2), semctl(2)

use crate::args::*;
use crate::cx::Cx;
use crate::fail::{Restart, SysResult};
use crate::ipc::sysv::sem::{SEMMNI, SEMMNS, SEMMSL, SEMOPM, SEMVMX, Set, State, Waiting};
use crate::ipc::sysv::{Object, READ, WRITE, owner_from};
use crate::sync::Guard;
use crate::time;
use crate::wait::Ready;
use std::sync::Arc;
use syscall_table::abi::*;
use syscall_table::errno::Errno;
use zerocopy::FromBytes;

/// semget(2)
pub fn semget(cx: &mut Cx, key: i32, nsems: i32, semflg: IpcFlags) -> SysResult {
    let count = usize::try_from(nsems).ok().filter(|n| *n <= SEMMSL).ok_or(Errno::EINVAL)?;
    let ipc = &cx.task.ipc().sysv;
    let big_enough = |set: &Set| {
        if set.lock_peer().sems.len() < count { Err(Errno::EINVAL.into()) } else { Ok(()) }
    };
    let id = ipc.sem.get((key, semflg.bits()), &cx.task.creds(), SEMMNI, big_enough, |perm, _| {
        if count == 0 {
            return Err(Errno::EINVAL.into());
        }
        if !ipc.usage.sems.take(count, SEMMNS) {
            return Err(Errno::ENOSPC.into());
        }
        Ok(Set::new(perm, count))
    })?;
    Ok(u64::from(id.cast_unsigned()))
}

/// semop(2)
pub fn semop(cx: &mut Cx, semid: i32, sops: InSlice<Sembuf>, nsops: u32) -> SysResult {
    semtimedop(cx, semid, sops, nsops, In::new(0))
}

/// semtimedop(2)
pub fn semtimedop(
    cx: &mut Cx,
    semid: i32,
    sops: InSlice<Sembuf>,
    nsops: u32,
    timeout: In<Timespec>,
) -> SysResult {
    if cx.state::<Waiting>().set.is_none() {
        let (set, ops) = begin(cx, semid, sops, nsops, timeout)?;
        let waiting = cx.state::<Waiting>();
        (waiting.set, waiting.ops) = (Some(set), ops);
    }
    let waiting = cx.state::<Waiting>();
    let (set, ops) = (waiting.set.clone().ok_or(Errno::EINVAL)?, std::mem::take(&mut waiting.ops));
    cx.wait_on(set.queue(), Ready::IN);
    let done = set.operate(cx.task, semid, &ops);
    let blocked = match done {
        Ok(Ok(())) => return Ok(0),
        Ok(Err(blocked)) => blocked,
        Err(fail) => return Err(fail),
    };
    let no_wait = ops.get(blocked.operation).is_some_and(|op| i32::from(op.sem_flg) & IPC_NOWAIT != 0);
    let deadline = cx.deadline(|| None);
    if no_wait || deadline.is_some_and(|d| time::now() >= d) {
        return Err(Errno::EAGAIN.into());
    }
    let waiting = cx.state::<Waiting>();
    waiting.ops = ops;
    waiting.count(Some(blocked));
    cx.block_until(deadline, Restart::Never)
}

/// Checks and reads the arguments, and finds the set.
fn begin(
    cx: &mut Cx,
    semid: i32,
    sops: InSlice<Sembuf>,
    nsops: u32,
    timeout: In<Timespec>,
) -> SysResult<(Arc<Set>, Vec<Sembuf>)> {
    let until = match timeout.is_null() {
        true => None,
        false => {
            let spec: Timespec = cx.read_value(timeout.addr())?;
            Some(time::now().saturating_add(time::from_timespec(&spec)?))
        }
    };
    cx.deadline(|| until);
    if nsops < 1 || semid < 0 {
        return Err(Errno::EINVAL.into());
    }
    if nsops > SEMOPM {
        return Err(Errno::E2BIG.into());
    }
    let mut bytes = vec![0u8; nsops as usize * size_of::<Sembuf>()];
    cx.copy_in(sops.addr(), &mut bytes)?;
    let read = |b: &[u8]| Sembuf::read_from_bytes(b).map_err(|_| Errno::EFAULT);
    let ops: Vec<Sembuf> = bytes.chunks_exact(size_of::<Sembuf>()).map(read).collect::<Result<_, _>>()?;
    let set = cx.task.ipc().sysv.sem.find(semid)?;
    let creds = cx.task.creds();
    let state = set.lock();
    if ops.iter().any(|op| usize::from(op.sem_num) >= state.sems.len()) {
        return Err(Errno::EFBIG.into());
    }
    let wanted = if ops.iter().any(|op| op.sem_op != 0) { WRITE } else { READ };
    if !state.perm.may(&creds, wanted) {
        return Err(Errno::EACCES.into());
    }
    drop(state);
    Ok((set, ops))
}

fn semaphore(semnum: i32, state: &State) -> SysResult<usize> {
    let at = usize::try_from(semnum).ok().filter(|at| *at < state.sems.len());
    at.ok_or(Errno::EINVAL.into())
}

fn permitted<'a>(cx: &Cx, set: &'a Set, wanted: u32) -> SysResult<Guard<'a, State>> {
    let creds = cx.task.creds();
    let state = set.lock();
    if !state.perm.may(&creds, wanted) {
        return Err(Errno::EACCES.into());
    }
    Ok(state)
}

/// semctl(2)
pub fn semctl(cx: &mut Cx, semid: i32, semnum: i32, op: IpcCmd, arg: u64) -> SysResult {
    if semid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let ipc = &cx.task.ipc().sysv;
    match op.bits() {
        cmd @ (IPC_INFO | SEM_INFO) => {
            let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
            let info = Seminfo {
                semmap: number(SEMMNS),
                semmni: number(SEMMNI),
                semmns: number(SEMMNS),
                semmnu: number(SEMMNS),
                semmsl: number(SEMMSL),
                semopm: SEMOPM as i32,
                semume: SEMOPM as i32,
                semusz: if cmd == SEM_INFO { number(ipc.sem.all().len()) } else { 20 },
                semvmx: SEMVMX,
                semaem: if cmd == SEM_INFO { number(ipc.usage.sems.get()) } else { SEMVMX },
            };
            cx.write_value(arg, &info)?;
            Ok(ipc.sem.highest())
        }
        cmd @ (IPC_STAT | SEM_STAT | SEM_STAT_ANY) => {
            let (id, set) =
                if cmd == IPC_STAT { (semid, ipc.sem.find(semid)?) } else { ipc.sem.at(semid)? };
            let ns = cx.task.creds().ns.clone();
            let state = if cmd == SEM_STAT_ANY { set.lock() } else { permitted(cx, &set, READ)? };
            let stat = Semid {
                sem_perm: state.perm.abi(id, &ns),
                sem_otime: state.otime,
                sem_ctime: state.ctime,
                sem_nsems: state.sems.len() as u64,
                ..zerocopy::FromZeros::new_zeroed()
            };
            drop(state);
            cx.write_value(arg, &stat)?;
            Ok(if cmd == IPC_STAT { 0 } else { u64::from(id.cast_unsigned()) })
        }
        cmd @ (GETVAL | GETPID | GETNCNT | GETZCNT) => {
            let set = ipc.sem.find(semid)?;
            let state = permitted(cx, &set, READ)?;
            let sem = state.sems.get(semaphore(semnum, &state)?).cloned().unwrap_or_default();
            Ok(match cmd {
                GETVAL => sem.value.into(),
                GETPID => u64::from(sem.by.in_ns(&cx.task.process.pidns).cast_unsigned()),
                GETNCNT => sem.rising.into(),
                _ => sem.zero.into(),
            })
        }
        GETALL => {
            let set = ipc.sem.find(semid)?;
            let state = permitted(cx, &set, READ)?;
            let values: Vec<u8> = state.sems.iter().flat_map(|sem| sem.value.to_ne_bytes()).collect();
            drop(state);
            cx.copy_out(arg, &values).map(|()| 0)
        }
        SETALL => {
            let set = ipc.sem.find(semid)?;
            let state = permitted(cx, &set, WRITE)?;
            let mut bytes = vec![0u8; state.sems.len() * 2];
            drop(state);
            cx.copy_in(arg, &mut bytes)?;
            let values: Vec<u16> =
                bytes.chunks_exact(2).map(|b| u16::read_from_bytes(b).unwrap_or_default()).collect();
            if values.iter().any(|value| i32::from(*value) > SEMVMX) {
                return Err(Errno::ERANGE.into());
            }
            let mut state = set.lock();
            for (sem, value) in state.sems.iter_mut().zip(values) {
                (sem.value, sem.by) = (value, cx.task.process.name.clone());
            }
            changed(&set, state, None, cx);
            Ok(0)
        }
        SETVAL => {
            let value = u16::try_from(arg as i32).ok().filter(|v| i32::from(*v) <= SEMVMX);
            let value = value.ok_or(Errno::ERANGE)?;
            let set = ipc.sem.find(semid)?;
            let creds = cx.task.creds();
            let mut state = set.lock();
            let at = semaphore(semnum, &state)?;
            if !state.perm.may(&creds, WRITE) {
                return Err(Errno::EACCES.into());
            }
            if let Some(sem) = state.sems.get_mut(at) {
                (sem.value, sem.by) = (value, cx.task.process.name.clone());
            }
            changed(&set, state, u16::try_from(at).ok(), cx);
            Ok(0)
        }
        IPC_SET => {
            let new: Semid = cx.read_value(arg)?;
            let set = ipc.sem.find(semid)?;
            set.perm().check_owner(&cx.task.creds())?;
            set.set_perm(&owner_from(&cx.task.creds().ns, new.sem_perm)?);
            Ok(0)
        }
        IPC_RMID => {
            let set = ipc.sem.find(semid)?;
            set.perm().check_owner(&cx.task.creds())?;
            ipc.sem.remove(semid);
            let (sems, undos) = set.remove();
            ipc.usage.sems.give(sems);
            ipc.usage.undos.give(undos);
            Ok(0)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

/// SETVAL, SETALL have changed values.
fn changed(set: &Set, mut state: Guard<'_, State>, num: Option<u16>, cx: &Cx) {
    state.touch();
    Set::forget_undo(&mut state, num, &cx.task.ipc().sysv.usage.undos);
    drop(state);
    set.wake();
}
