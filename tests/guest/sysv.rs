//! shmget(2), semget(2), msgget(2) and the calls on what they make.

use guest_tests::*;
use libc::*;

cases![
    shm_basic, shm_between, shm_read_only, shm_removed_lives_on, shm_keys, shm_errors, shm_at_addresses, shm_detach_pieces, shm_stat_and_set,
    shm_info, shm_permissions, sem_basic, sem_blocks, sem_zero_and_counts, sem_atomic, sem_timeout, sem_undo, sem_undo_killed, sem_removed,
    sem_signal, sem_errors, sem_values, sem_permissions, sem_undo_threads, msg_basic, msg_types, msg_blocks, msg_full, msg_errors, msg_copy,
    msg_removed, msg_stat_and_set, proc_files
];

const RMID: i32 = IPC_RMID;

/// A key that no process on the host has which runs the same at the same time.
fn key(n: i32) -> i32 {
    n << 24 | std::process::id() as i32
}

fn drop_shm(id: i64) {
    eq(sys!(SYS_shmctl, id, RMID, 0), 0);
}

fn put(p: i64, v: u8) {
    unsafe { (p as *mut u8).write_volatile(v) }
}

fn get(p: i64) -> u8 {
    unsafe { (p as *const u8).read_volatile() }
}

fn shmid_ds(id: i64) -> libc::shmid_ds {
    let mut d: libc::shmid_ds = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_shmctl, id, IPC_STAT, &mut d), 0);
    d
}

fn shm_basic() {
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 5000, IPC_CREAT | 0o600));
    let p = ok(sys!(SYS_shmat, id, 0, 0));
    eq(p & 4095, 0);
    eq((get(p), get(p + 8191)), (0, 0));
    put(p, 1);
    let q = ok(sys!(SYS_shmat, id, 0, 0));
    check(p != q, "another place");
    eq(get(q), 1);
    let d = shmid_ds(id);
    eq((d.shm_segsz, d.shm_nattch), (5000, 2));
    eq(i64::from(d.shm_cpid), sys!(SYS_getpid));
    eq(i64::from(d.shm_lpid), sys!(SYS_getpid));
    check(d.shm_atime != 0 && d.shm_ctime != 0, "times");
    eq(d.shm_perm.mode, 0o600);
    eq(sys!(SYS_shmdt, q), 0);
    eq(shmid_ds(id).shm_nattch, 1);
    check(shmid_ds(id).shm_dtime != 0, "a time");
    err(sys!(SYS_shmdt, q), EINVAL);
    eq(sys!(SYS_shmdt, p), 0);
    drop_shm(id);
    err(sys!(SYS_shmctl, id, IPC_STAT, bad()), EINVAL);
    err(sys!(SYS_shmat, id, 0, 0), EINVAL);
}

fn shm_between() {
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096, 0o600));
    let p = ok(sys!(SYS_shmat, id, 0, 0));
    // Inherited by fork, and counted.
    exits(
        child(|| {
            eq(shmid_ds(id).shm_nattch, 2);
            put(p, 7);
            let q = ok(sys!(SYS_shmat, id, 0, 0));
            put(q + 1, 8);
            0
        }),
        0,
    );
    eq((get(p), get(p + 1)), (7, 8));
    eq(shmid_ds(id).shm_nattch, 1);
    eq(sys!(SYS_shmdt, p), 0);
    drop_shm(id);
}

fn shm_read_only() {
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096, 0o600));
    let p = ok(sys!(SYS_shmat, id, 0, SHM_RDONLY));
    eq(get(p), 0);
    killed_by(
        child(|| {
            put(p, 1);
            0
        }),
        SIGSEGV,
    );
    err(sys!(SYS_mprotect, p, 4096, PROT_READ | PROT_WRITE), EACCES);
    eq(sys!(SYS_shmdt, p), 0);
    drop_shm(id);
}

fn shm_removed_lives_on() {
    let key = key(1);
    let id = ok(sys!(SYS_shmget, key, 4096, IPC_CREAT | IPC_EXCL | 0o600));
    let p = ok(sys!(SYS_shmat, id, 0, 0));
    put(p, 3);
    drop_shm(id);
    let d = shmid_ds(id);
    eq(d.shm_perm.mode & 0o1000, 0o1000);
    eq(d.shm_perm.__key, 0);
    // The key is free, the id still works.
    err(sys!(SYS_shmget, key, 4096, 0), ENOENT);
    let q = ok(sys!(SYS_shmat, id, 0, 0));
    eq(get(q), 3);
    eq(sys!(SYS_shmdt, q), 0);
    eq(sys!(SYS_shmdt, p), 0);
    err(sys!(SYS_shmat, id, 0, 0), EINVAL);
}

fn shm_keys() {
    let key = key(2);
    err(sys!(SYS_shmget, key, 4096, 0), ENOENT);
    let id = ok(sys!(SYS_shmget, key, 4096, IPC_CREAT | 0o600));
    eq(sys!(SYS_shmget, key, 4096, IPC_CREAT | 0o600), id);
    eq(sys!(SYS_shmget, key, 0, 0), id);
    err(sys!(SYS_shmget, key, 4096, IPC_CREAT | IPC_EXCL), EEXIST);
    err(sys!(SYS_shmget, key, 8192, 0), EINVAL);
    drop_shm(id);
    let new = ok(sys!(SYS_shmget, key, 4096, IPC_CREAT | 0o600));
    check(new != id, "ids are not used again at once");
    drop_shm(new);
}

fn shm_errors() {
    err(sys!(SYS_shmget, IPC_PRIVATE, 0, 0o600), EINVAL);
    err(sys!(SYS_shmget, IPC_PRIVATE, usize::MAX, 0o600), EINVAL);
    err(sys!(SYS_shmat, -1, 0, 0), EINVAL);
    err(sys!(SYS_shmctl, -1, IPC_STAT, 0), EINVAL);
    err(sys!(SYS_shmctl, 0x7fff_fff0, IPC_RMID, 0), EINVAL);
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096, 0o600));
    err(sys!(SYS_shmctl, id, 99, 0), EINVAL);
    err(sys!(SYS_shmctl, id, IPC_STAT, bad()), EFAULT);
    err(sys!(SYS_shmctl, id, IPC_SET, bad()), EFAULT);
    err(sys!(SYS_shmat, id, 1, 0), EINVAL);
    err(sys!(SYS_shmat, id, 0, SHM_REMAP), EINVAL);
    err(sys!(SYS_shmdt, 1), EINVAL);
    err(sys!(SYS_shmdt, 0x10_0000), EINVAL);
    drop_shm(id);
}

fn shm_at_addresses() {
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096, 0o600));
    let at = ok(sys!(SYS_mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    err(sys!(SYS_shmat, id, at, 0), EINVAL);
    eq(sys!(SYS_shmat, id, at, SHM_REMAP), at);
    eq(sys!(SYS_shmdt, at), 0);
    eq(sys!(SYS_shmat, id, at + 77, SHM_RND), at);
    err(sys!(SYS_shmat, id, at + 77, 0), EINVAL);
    eq(sys!(SYS_munmap, at, 8192), 0);
    eq(shmid_ds(id).shm_nattch, 0);
    drop_shm(id);
}

fn shm_detach_pieces() {
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 3 * 4096, 0o600));
    let p = ok(sys!(SYS_shmat, id, 0, 0));
    eq(sys!(SYS_munmap, p + 4096, 4096), 0);
    eq(shmid_ds(id).shm_nattch, 2);
    eq(sys!(SYS_shmdt, p), 0);
    eq(shmid_ds(id).shm_nattch, 0);
    drop_shm(id);
}

fn shm_stat_and_set() {
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096, 0o600));
    let mut d = shmid_ds(id);
    d.shm_perm.mode = 0o7640;
    eq(sys!(SYS_shmctl, id, IPC_SET, &d), 0);
    eq(shmid_ds(id).shm_perm.mode, 0o640);
    let mut found = false;
    let top = ok(sys!(SYS_shmctl, 0, 14, &mut [0u64; 16]));
    for index in 0..=top {
        found |= sys!(SYS_shmctl, index, 13, &mut [0u64; 16]) == id;
    }
    check(found, "SHM_STAT finds it");
    err(sys!(SYS_shmctl, 32000, 13, &mut [0u64; 16]), EINVAL);
    drop_shm(id);
}

fn shm_info() {
    let mut info = [0u64; 16];
    ok(sys!(SYS_shmctl, 0, IPC_INFO, &mut info));
    eq((info[0], info[1], info[2]), (18446744073692774399, 1, 4096));
    let id = ok(sys!(SYS_shmget, IPC_PRIVATE, 4096 * 4, 0o600));
    let mut use_ = [0u64; 16];
    ok(sys!(SYS_shmctl, 0, 14, &mut use_));
    check(use_[0] as u32 >= 1 && use_[1] >= 4, "counts it");
    drop_shm(id);
}

fn as_nobody(f: impl FnOnce()) {
    if sys!(SYS_geteuid) != 0 {
        skip("needs to be root");
    }
    in_child(|| {
        ok(sys!(SYS_setgroups, 0, 0));
        ok(sys!(SYS_setresgid, 1234, 1234, 1234));
        ok(sys!(SYS_setresuid, 1234, 1234, 1234));
        f();
    });
}

fn shm_permissions() {
    let key = key(3);
    let id = ok(sys!(SYS_shmget, key, 4096, IPC_CREAT | 0o604));
    as_nobody(|| {
        eq(sys!(SYS_shmget, key, 0, 0), id);
        err(sys!(SYS_shmget, key, 0, 0o600), EACCES);
        err(sys!(SYS_shmat, id, 0, 0), EACCES);
        let p = ok(sys!(SYS_shmat, id, 0, SHM_RDONLY));
        eq(get(p), 0);
        err(sys!(SYS_shmctl, id, RMID, 0), EPERM);
        err(sys!(SYS_shmctl, id, IPC_SET, &shmid_ds(id)), EPERM);
    });
    drop_shm(id);
}

/// (num, op, flags) packed as the kernel has them.
fn op(num: u16, op: i16, flags: i32) -> [i16; 3] {
    [num as i16, op, flags as i16]
}

fn sem(n: i32) -> i64 {
    ok(sys!(SYS_semget, IPC_PRIVATE, n, 0o600))
}

fn drop_sem(id: i64) {
    eq(sys!(SYS_semctl, id, 0, RMID, 0), 0);
}

fn val(id: i64, n: i32) -> i64 {
    sys!(SYS_semctl, id, n, GETVAL, 0)
}

fn do_ops(id: i64, ops: &[[i16; 3]]) -> i64 {
    sys!(SYS_semop, id, ops, ops.len())
}

fn sem_basic() {
    let id = sem(3);
    eq((val(id, 0), val(id, 2)), (0, 0));
    eq(sys!(SYS_semctl, id, 1, SETVAL, 5), 0);
    eq(do_ops(id, &[op(1, -2, 0), op(0, 4, 0)]), 0);
    eq((val(id, 0), val(id, 1)), (4, 3));
    eq(sys!(SYS_semctl, id, 1, GETPID, 0), sys!(SYS_getpid));
    err(do_ops(id, &[op(1, -4, IPC_NOWAIT)]), EAGAIN);
    err(do_ops(id, &[op(1, 0, IPC_NOWAIT)]), EAGAIN);
    eq(do_ops(id, &[op(2, 0, 0)]), 0);
    let mut d: semid_ds = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_semctl, id, 0, IPC_STAT, &mut d), 0);
    eq(d.sem_nsems, 3);
    check(d.sem_otime != 0 && d.sem_ctime != 0, "times");
    drop_sem(id);
    err(val(id, 0), EINVAL);
}

fn sem_blocks() {
    let id = sem(1);
    let pid = child(|| do_ops(id, &[op(0, -1, 0)]) as i32 + 4);
    until("it waits", || sys!(SYS_semctl, id, 0, GETNCNT, 0) == 1);
    eq(do_ops(id, &[op(0, 1, 0)]), 0);
    exits(pid, 4);
    eq((val(id, 0), sys!(SYS_semctl, id, 0, GETNCNT, 0)), (0, 0));
    drop_sem(id);
}

fn sem_zero_and_counts() {
    let id = sem(2);
    eq(do_ops(id, &[op(0, 2, 0)]), 0);
    let pid = child(|| do_ops(id, &[op(0, 0, 0), op(1, 1, 0)]) as i32 + 4);
    until("it waits", || sys!(SYS_semctl, id, 0, GETZCNT, 0) == 1);
    eq(do_ops(id, &[op(0, -1, 0)]), 0);
    sleep_ms(20);
    eq(val(id, 1), 0);
    eq(sys!(SYS_semctl, id, 0, SETVAL, 0), 0);
    exits(pid, 4);
    eq((val(id, 1), sys!(SYS_semctl, id, 0, GETZCNT, 0)), (1, 0));
    drop_sem(id);
}

fn sem_atomic() {
    let id = sem(2);
    eq(sys!(SYS_semctl, id, 0, SETVAL, 1), 0);
    // The first would go, the second does not: nothing is done.
    err(do_ops(id, &[op(0, -1, 0), op(1, -1, IPC_NOWAIT)]), EAGAIN);
    eq((val(id, 0), val(id, 1)), (1, 0));
    // One semaphore twice in one call.
    eq(do_ops(id, &[op(1, 3, 0), op(1, -2, 0), op(0, -1, 0), op(0, 0, 0)]), 0);
    eq((val(id, 0), val(id, 1)), (0, 1));
    drop_sem(id);
}

fn sem_timeout() {
    let id = sem(1);
    let begin = now_ms();
    err(sys!(SYS_semtimedop, id, &op(0, -1, 0), 1, &[0i64, 30_000_000]), EAGAIN);
    took(begin, 25);
    err(sys!(SYS_semtimedop, id, &op(0, -1, 0), 1, &[0i64, -1]), EINVAL);
    err(sys!(SYS_semtimedop, id, &op(0, -1, 0), 1, bad()), EFAULT);
    eq(sys!(SYS_semtimedop, id, &op(0, 1, 0), 1, &[0i64, 0]), 0);
    drop_sem(id);
}

const UNDO: i32 = 0x1000;

fn sem_undo() {
    let id = sem(2);
    eq(sys!(SYS_semctl, id, 0, SETVAL, 3), 0);
    exits(child(|| do_ops(id, &[op(0, -2, UNDO), op(1, 5, UNDO), op(1, 1, 0)]) as i32), 0);
    eq((val(id, 0), val(id, 1)), (3, 1));
    // SETVAL forgets what was to be undone.
    exits(
        child(|| {
            eq(do_ops(id, &[op(0, -2, UNDO)]), 0);
            sys!(SYS_semctl, id, 0, SETVAL, 9) as i32
        }),
        0,
    );
    eq(val(id, 0), 9);
    // Not below nothing.
    exits(
        child(|| {
            eq(do_ops(id, &[op(0, 2, UNDO)]), 0);
            do_ops(id, &[op(0, -10, 0)]) as i32
        }),
        0,
    );
    eq(val(id, 0), 0);
    drop_sem(id);
}

fn sem_undo_killed() {
    let id = sem(1);
    eq(sys!(SYS_semctl, id, 0, SETVAL, 1), 0);
    let pid = child(|| {
        eq(do_ops(id, &[op(0, -1, UNDO)]), 0);
        loop {
            sleep_ms(1000);
        }
    });
    while val(id, 0) == 1 {
        sleep_ms(1);
    }
    let waiter = child(|| do_ops(id, &[op(0, -1, 0)]) as i32 + 3);
    sleep_ms(20);
    ok(sys!(SYS_kill, pid, SIGKILL));
    killed_by(pid, SIGKILL);
    exits(waiter, 3);
    drop_sem(id);
}

fn sem_undo_threads() {
    let id = sem(1);
    exits(
        child(|| {
            // Threads made by the C library share what is to be undone: it outlives the thread.
            std::thread::spawn(move || eq(do_ops(id, &[op(0, 2, UNDO)]), 0)).join().unwrap();
            sleep_ms(10);
            val(id, 0) as i32
        }),
        2,
    );
    eq(val(id, 0), 0);
    drop_sem(id);
}

fn sem_removed() {
    let id = sem(1);
    let pid = child(|| (do_ops(id, &[op(0, -1, 0)]) == -i64::from(EIDRM)).into());
    until("it waits", || sys!(SYS_semctl, id, 0, GETNCNT, 0) == 1);
    drop_sem(id);
    exits(pid, 1);
}

fn sem_signal() {
    let id = sem(1);
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let h = sig::later(SIGUSR1, 30);
    err(do_ops(id, &[op(0, -1, 0)]), EINTR);
    h.join().unwrap();
    eq(sys!(SYS_semctl, id, 0, GETNCNT, 0), 0);
    drop_sem(id);
}

fn sem_errors() {
    err(sys!(SYS_semget, IPC_PRIVATE, 0, 0o600), EINVAL);
    err(sys!(SYS_semget, IPC_PRIVATE, -1, 0o600), EINVAL);
    err(sys!(SYS_semget, IPC_PRIVATE, 32001, 0o600), EINVAL);
    err(sys!(SYS_semget, key(4), 1, 0), ENOENT);
    let id = sem(2);
    err(sys!(SYS_semop, id, &op(0, 1, 0), 0), EINVAL);
    err(sys!(SYS_semop, -1, &op(0, 1, 0), 1), EINVAL);
    err(sys!(SYS_semop, id, bad(), 1), EFAULT);
    err(sys!(SYS_semop, id, bad(), 501), E2BIG);
    err(do_ops(id, &[op(2, 1, 0)]), EFBIG);
    err(do_ops(id, &[op(0, 32767, 0), op(0, 1, 0)]), ERANGE);
    eq(val(id, 0), 0);
    err(sys!(SYS_semctl, id, 2, GETVAL, 0), EINVAL);
    err(sys!(SYS_semctl, id, -1, GETVAL, 0), EINVAL);
    err(sys!(SYS_semctl, id, 0, SETVAL, 32768), ERANGE);
    err(sys!(SYS_semctl, id, 0, SETVAL, -1), ERANGE);
    err(sys!(SYS_semctl, id, 0, 99, 0), EINVAL);
    err(sys!(SYS_semctl, id, 0, IPC_STAT, bad()), EFAULT);
    err(sys!(SYS_semctl, id, 0, GETALL, bad()), EFAULT);
    err(sys!(SYS_semctl, 0x7fff_fff0, 0, GETVAL, 0), EINVAL);
    drop_sem(id);
    let key = key(5);
    let id = ok(sys!(SYS_semget, key, 2, IPC_CREAT | 0o600));
    err(sys!(SYS_semget, key, 3, 0), EINVAL);
    eq(sys!(SYS_semget, key, 0, 0), id);
    err(sys!(SYS_semget, key, 2, IPC_CREAT | IPC_EXCL), EEXIST);
    drop_sem(id);
}

fn sem_values() {
    let id = sem(3);
    eq(sys!(SYS_semctl, id, 0, SETALL, &[1u16, 2, 3]), 0);
    let mut v = [0u16; 3];
    eq(sys!(SYS_semctl, id, 0, GETALL, &mut v), 0);
    eq(v, [1, 2, 3]);
    err(sys!(SYS_semctl, id, 0, SETALL, &[1u16, 40000, 3]), ERANGE);
    let mut info = [0i32; 10];
    ok(sys!(SYS_semctl, 0, 0, IPC_INFO, &mut info));
    eq((info[1], info[4], info[5], info[8]), (32000, 32000, 500, 32767));
    let top = ok(sys!(SYS_semctl, 0, 0, 19, &mut info));
    check(info[7] >= 1 && info[9] >= 3, "counts sets and semaphores");
    let found = (0..=top).any(|i| sys!(SYS_semctl, i, 0, 18, &mut [0u64; 16]) == id);
    check(found, "SEM_STAT finds it");
    drop_sem(id);
}

fn sem_permissions() {
    let key = key(6);
    let id = ok(sys!(SYS_semget, key, 1, IPC_CREAT | 0o604));
    as_nobody(|| {
        err(sys!(SYS_semget, key, 1, 0o666), EACCES);
        eq(val(id, 0), 0);
        eq(do_ops(id, &[op(0, 0, 0)]), 0);
        err(do_ops(id, &[op(0, 1, 0)]), EACCES);
        err(sys!(SYS_semctl, id, 0, SETVAL, 1), EACCES);
        err(sys!(SYS_semctl, id, 0, RMID, 0), EPERM);
    });
    drop_sem(id);
}

fn queue() -> i64 {
    ok(sys!(SYS_msgget, IPC_PRIVATE, 0o600))
}

fn drop_queue(id: i64) {
    eq(sys!(SYS_msgctl, id, RMID, 0), 0);
}

fn send(id: i64, kind: i64, text: &[u8], flags: i32) -> i64 {
    let mut m = kind.to_ne_bytes().to_vec();
    m.extend(text);
    sys!(SYS_msgsnd, id, m.as_slice(), text.len(), flags)
}

/// Length or error, type, text.
fn recv(id: i64, room: usize, kind: i64, flags: i32) -> (i64, i64, Vec<u8>) {
    let mut m = vec![0u8; 8 + room];
    let r = sys!(SYS_msgrcv, id, m.as_mut_slice(), room, kind, flags);
    let k = i64::from_ne_bytes(m[..8].try_into().unwrap());
    (r, k, m[8..8 + r.max(0) as usize].to_vec())
}

fn msg_basic() {
    let id = queue();
    eq(send(id, 1, b"one", 0), 0);
    eq(send(id, 2, b"", 0), 0);
    eq(recv(id, 100, 0, 0), (3, 1, b"one".to_vec()));
    eq(recv(id, 100, 0, 0), (0, 2, vec![]));
    err(recv(id, 100, 0, IPC_NOWAIT).0, ENOMSG);
    drop_queue(id);
    err(send(id, 1, b"x", 0), EINVAL);
}

fn msg_types() {
    let id = queue();
    for k in [5, 3, 9, 3, 4] {
        eq(send(id, k, &[k as u8], 0), 0);
    }
    eq(recv(id, 8, 9, 0).1, 9);
    err(recv(id, 8, 9, IPC_NOWAIT).0, ENOMSG);
    eq(recv(id, 8, -4, 0).1, 3);
    eq(recv(id, 8, 5, 0x2000).1, 3);
    eq(recv(id, 8, 5, 0x2000).1, 4);
    err(recv(id, 8, 5, 0x2000 | IPC_NOWAIT).0, ENOMSG);
    err(recv(id, 8, -4, IPC_NOWAIT).0, ENOMSG);
    eq(recv(id, 8, i64::MIN, 0).1, 5);
    drop_queue(id);
}

fn msg_blocks() {
    let id = queue();
    let pid = child(|| {
        let (r, k, t) = recv(id, 10, 7, 0);
        (r == 2 && k == 7 && t == b"ab").into()
    });
    sleep_ms(30);
    eq(send(id, 6, b"no", 0), 0);
    sleep_ms(10);
    eq(send(id, 7, b"ab", 0), 0);
    exits(pid, 1);
    eq(recv(id, 10, 0, 0).1, 6);
    let _on = sig::on(SIGUSR1, SA_RESTART);
    let h = sig::later(SIGUSR1, 30);
    err(recv(id, 10, 0, 0).0, EINTR);
    h.join().unwrap();
    drop_queue(id);
}

fn msg_full() {
    let id = queue();
    let text = [1u8; 8192];
    eq(send(id, 1, &text, 0), 0);
    eq(send(id, 1, &text, 0), 0);
    err(send(id, 1, b"x", IPC_NOWAIT), EAGAIN);
    let pid = child(|| send(id, 2, b"late", 0) as i32 + 5);
    sleep_ms(40);
    eq(recv(id, 8192, 0, 0).0, 8192);
    exits(pid, 5);
    eq(recv(id, 8192, 2, 0).2, b"late");
    drop_queue(id);
}

fn msg_errors() {
    let id = queue();
    err(send(id, 0, b"x", 0), EINVAL);
    err(send(id, -1, b"x", 0), EINVAL);
    err(sys!(SYS_msgsnd, id, bad(), 4, 0), EFAULT);
    err(sys!(SYS_msgsnd, id, &[1u64, 0], 8193, 0), EINVAL);
    err(sys!(SYS_msgsnd, id, &[1u64, 0], -1, 0), EINVAL);
    err(sys!(SYS_msgsnd, -1, &[1u64, 0], 1, 0), EINVAL);
    err(sys!(SYS_msgrcv, -1, &mut [0u64; 2], 1, 0, IPC_NOWAIT), EINVAL);
    err(sys!(SYS_msgrcv, id, &mut [0u64; 2], -1, 0, IPC_NOWAIT), EINVAL);
    eq(send(id, 1, b"long text", 0), 0);
    err(recv(id, 4, 0, 0).0, E2BIG);
    eq(recv(id, 4, 0, 0o10000), (4, 1, b"long".to_vec()));
    eq(send(id, 1, b"lost", 0), 0);
    err(sys!(SYS_msgrcv, id, bad(), 8, 0, 0), EFAULT);
    err(recv(id, 8, 0, IPC_NOWAIT).0, ENOMSG);
    err(sys!(SYS_msgctl, id, 99, 0), EINVAL);
    err(sys!(SYS_msgctl, id, IPC_STAT, bad()), EFAULT);
    err(sys!(SYS_msgctl, -1, IPC_STAT, 0), EINVAL);
    err(sys!(SYS_msgget, key(7), 0), ENOENT);
    drop_queue(id);
}

fn msg_copy() {
    let id = queue();
    eq(send(id, 4, b"a", 0), 0);
    eq(send(id, 5, b"b", 0), 0);
    err(recv(id, 8, 0, 0o40000).0, EINVAL);
    err(recv(id, 8, 0, 0o40000 | 0x2000 | IPC_NOWAIT).0, EINVAL);
    let r = recv(id, 8, 1, 0o40000 | IPC_NOWAIT);
    if r.0 == -i64::from(ENOSYS) {
        drop_queue(id);
        skip("no MSG_COPY");
    }
    eq(r, (1, 5, b"b".to_vec()));
    err(recv(id, 8, 2, 0o40000 | IPC_NOWAIT).0, ENOMSG);
    eq(recv(id, 8, 0, 0).1, 4);
    eq(recv(id, 8, 0, 0).1, 5);
    drop_queue(id);
}

fn msg_removed() {
    let id = queue();
    let pid = child(|| (recv(id, 8, 0, 0).0 == -i64::from(EIDRM)).into());
    until_child_asleep(pid.into());
    drop_queue(id);
    exits(pid, 1);
}

fn msg_stat_and_set() {
    let id = queue();
    eq(send(id, 1, b"four", 0), 0);
    let mut d: msqid_ds = unsafe { std::mem::zeroed() };
    eq(sys!(SYS_msgctl, id, IPC_STAT, &mut d), 0);
    eq((d.msg_qnum, d.__msg_cbytes, d.msg_qbytes), (1, 4, 16384));
    eq(i64::from(d.msg_lspid), sys!(SYS_getpid));
    eq((d.msg_lrpid, d.msg_rtime), (0, 0));
    d.msg_qbytes = 4;
    d.msg_perm.mode = 0o640;
    eq(sys!(SYS_msgctl, id, IPC_SET, &d), 0);
    err(send(id, 1, b"x", IPC_NOWAIT), EAGAIN);
    eq(recv(id, 4, 0, 0).0, 4);
    eq(sys!(SYS_msgctl, id, IPC_STAT, &mut d), 0);
    eq((d.msg_perm.mode, d.msg_qbytes, d.msg_qnum), (0o640, 4, 0));
    let mut info = [0i32; 8];
    ok(sys!(SYS_msgctl, 0, IPC_INFO, &mut info));
    eq((info[2], info[3], info[4]), (8192, 16384, 32000));
    let top = ok(sys!(SYS_msgctl, 0, 12, &mut info));
    check(info[0] >= 1, "counts it");
    check((0..=top).any(|i| sys!(SYS_msgctl, i, 11, &mut [0u64; 16]) == id), "MSG_STAT finds it");
    drop_queue(id);
}

fn proc_files() {
    let key = key(8);
    let (a, b, c) = (
        ok(sys!(SYS_shmget, key, 12345, IPC_CREAT | 0o640)),
        ok(sys!(SYS_semget, key, 7, IPC_CREAT | 0o640)),
        ok(sys!(SYS_msgget, key, IPC_CREAT | 0o640)),
    );
    for (name, id, third) in [("shm", a, "12345"), ("sem", b, "7"), ("msg", c, "0")] {
        let text = std::fs::read_to_string(format!("/proc/sysvipc/{name}")).unwrap();
        let line = text.lines().find(|l| l.split_whitespace().next() == Some(&key.to_string()));
        let words: Vec<&str> = line.unwrap_or("").split_whitespace().collect();
        eq(words.get(1).copied(), Some(id.to_string().as_str()));
        eq(words.get(2).copied(), Some("640"));
        eq(words.get(3).copied(), Some(third));
        check(text.lines().next().unwrap().trim_start().starts_with("key"), "a head");
    }
    drop_shm(a);
    drop_sem(b);
    drop_queue(c);
}
