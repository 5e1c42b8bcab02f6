// Compiled twice: as `lazaret_shim::layout` into the sentry and as `layout` into the shim itself.
//! Where the shim lies in a guest address space, and the shared area of a guest process.
//!
//! Every guest address space ends below [`REGION_START`]. What lies above belongs to the platform:
//!
//! ```text
//! REGION_START  CODE   r-x  text, constants, the doorbell filter         (file mapping of the shim's ELF)
//!               GATES  r-x  where rewritten call sites jump to           (the same)
//!               CTL    rw-  one head page, one slot per task             (shared memfd, one per process)
//!               STACK  rw-  one alternate signal stack per task          (private)
//!               WINDOW r--  files that gates read from by themselves     (shared file mappings)
//! REGION_END    vvar, vdso                                               (the host's)
//! ```
//!
//! The guest can write every byte of CTL and STACK. Nothing in them is trusted by the sentry.

use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

/// First address of the platform's own range; guest mappings end here.
pub const REGION_START: u64 = 0x7fff_c000_0000;
/// One past the range that the shim occupies; above it lie the host's vvar and vdso.
pub const REGION_END: u64 = 0x7fff_f000_0000;
/// One past the highest user address.
pub const TASK_END: u64 = 0x7fff_ffff_f000;

/// The shim's text and constants.
pub const CODE: u64 = REGION_START;
/// Size reserved for [`CODE`]; a `syscall` instruction in here is the shim's.
pub const CODE_SIZE: u64 = 0x10_0000;
/// Address of the `sock_fprog` of the doorbell filter (first thing in the shim's constants).
pub const BELL_PROG: u64 = CODE;

/// Where rewritten call sites jump to. Outside [`CODE`]: a `syscall` instruction in here raises SIGSYS.
pub const GATES: u64 = REGION_START + 0x20_0000;
/// Bytes of one gate.
pub const GATE_SIZE: u64 = 32;
/// Call sites of one process that can be rewritten.
pub const SITES: u64 = 240;
/// Where in a gate its trapping `syscall` instruction lies.
pub const GATE_TRAP: u64 = 16;
/// Gates of sites of the form `mov eax, NR; syscall`; behind them those of the form `syscall; cmp rax, IMM`.
pub const GATES_B: u64 = GATES + GATE_SIZE * SITES;
/// Behind them those of the form `mov eax, NR; lea rsi, [rip + ...]; syscall`.
pub const GATES_C: u64 = GATES_B + GATE_SIZE * SITES;
/// Where calls of the second form go on: the comparison, and the jump behind it.
pub const TAILS: u64 = GATES_C + GATE_SIZE * SITES;
/// One past the gates and tails; a trapping `syscall` for calls that are to be reported anew lies here.
pub const RUNG: u64 = TAILS + GATE_SIZE * SITES;

/// The shared area.
pub const CTL: u64 = REGION_START + 0x100_0000;
/// Bytes of one slot of the shared area: one page of control words, the rest data that travels with calls.
pub const SLOT_SIZE: u64 = 0x8000;
/// Slots in a shared area. Slot 0 is the head (forker), the others belong to tasks.
pub const SLOTS: u32 = 2048;
/// Size of the shared area.
pub const CTL_SIZE: u64 = SLOT_SIZE * SLOTS as u64;
/// Offset of the data area in a slot.
pub const DATA_OFFSET: u64 = 0x1000;
/// Most bytes of extended state that fit into a slot's data.
pub const KEPT_XSTATE_MAX: u64 = SLOT_SIZE - DATA_OFFSET;
/// Offset in slot 0 of the table of rewritten sites: [`SITES`] of [`Site`]. The first lie in the head's page.
pub const TABLE_OFFSET: u64 = 0x800;
/// Offset in slot 0 of the base filter, in the zygote's shared area.
pub const FILTER_OFFSET: u64 = 0x2800;
/// Call numbers that gates know.
pub const KINDS: u64 = 512;
/// Offset in slot 0 of one byte for each of them: the form in which data travels with a call, 0 if none does.
pub const FORMS_OFFSET: u64 = 0x400;
/// Offset in slot 0 of one byte for each of them: the size of what an argument that travels points to.
pub const UNITS_OFFSET: u64 = FORMS_OFFSET + KINDS;
/// A gate hands the call over without a signal.
pub const KIND_OF_LIGHT: u8 = 0;
/// A gate raises SIGSYS: the call needs all registers.
pub const KIND_OF_FULL: u8 = 1;
/// A gate answers with `own[kind - 2]` if there are answers.
pub const KIND_OF_OWN: u8 = 2;
/// A gate carries out rt_sigprocmask on [`Slot::mask`], if that is lent.
pub const KIND_OF_MASK: u8 = 9;
/// A gate keeps what set_robust_list gives in [`Slot::robust`], if there are answers.
pub const KIND_OF_ROBUST: u8 = 10;
/// Bit of a form: the call is handed over together with what the argument with the number in the lower three bits points to.
pub const FORM_OF_DATA: u8 = 0x80;
/// Further bit of such a form: the argument that follows is a count of units.
pub const DATA_COUNTED: u8 = 8;
/// Further bit: only if the argument before is one of [`LOCK_COMMANDS`].
pub const DATA_OF_LOCK: u8 = 0x20;
/// Commands of fcntl(2) with a struct flock: F_GETLK, F_SETLK, F_SETLKW, and those of open file descriptions.
pub const LOCK_COMMANDS: u64 = 0b111 << 5 | 0b111 << 36;
/// Further bit: only if the argument behind says that futex(2) is to wait. A gate reads the word in one step; the signal handler
/// leaves it to the sentry.
pub const DATA_OF_WAIT: u8 = 0x40;
/// FUTEX_WAIT_BITSET; FUTEX_WAIT is 0.
pub const FUTEX_WAIT_BITSET: u32 = 9;
/// Further bit: it is a string, which travels in whole aligned words up to the one with its end.
pub const DATA_STRING: u8 = 0x10;

/// Where in a slot the bytes lie that travel with a request; their number is in [`Slot::req_kind`] above [`KIND_BITS`].
pub const IN_OFFSET: u64 = DATA_OFFSET;
/// Most of them: what tar writes at once.
pub const IN_MAX: u64 = 0x2800;
/// Most of a string.
pub const STRING_MAX: u64 = 256;
/// Bits of [`Slot::req_kind`] that name the kind.
pub const KIND_BITS: u32 = 16;
/// Where in a slot the pieces lie that are written to guest memory with an answer [`REPLY_DATA`]: each an address and a length,
/// one word each, and its bytes, filled up to whole words. Behind the last one comes a length of 0.
pub const OUT_OFFSET: u64 = 0x3800;
/// Most bytes of all pieces, with addresses and lengths: 16 KiB and some small ones.
pub const OUT_MAX: u64 = 0x4800;

/// A gate drops memory (MADV_DONTNEED) by the host call itself, if there are answers and [`Head::ask_advice`] is 0.
pub const KIND_OF_ADVICE: u8 = 11;
/// A gate says what rt_sigaction would of a signal whose action is the default, if there are answers: its answer has
/// bit n-1 set for each such signal n.
pub const KIND_OF_ACTION: u8 = 12;
/// The handler of the signal, to which a gate leaves it, keeps what sigaltstack gives in [`Slot::alt`], if there are
/// answers and [`Slot::alt_valid`].
pub const KIND_OF_ALTSTACK: u8 = 13;
/// A gate hands the call over without a signal if it maps private memory without a file; a file's descriptor comes with a full
/// port only.
pub const KIND_OF_MAP: u8 = 15;
/// A gate copies what pread is to read from [`WINDOW`], if the descriptor is one of [`Slot::lent`] and there are answers.
pub const KIND_OF_PREAD: u8 = 14;
/// Answers in a slot; those of rt_sigprocmask, set_robust_list, madvise, sigaltstack and pread are only counted.
pub const OWN: usize = 13;
/// The bit of [`Slot::mask`] that says that the gates may change it: that of SIGKILL, which no mask has.
pub const LENT: u64 = 1 << 8;

/// Calls with answers in a slot, in their order: getpid, gettid, getuid, geteuid, getgid, getegid, rseq, rt_sigprocmask,
/// set_robust_list, madvise, rt_sigaction, sigaltstack, pread64.
pub const OWN_CALLS: [u32; OWN] = [39, 186, 102, 107, 104, 108, 334, 14, 273, 28, 13, 131, 17];
/// Whether a call needs what only the answer to a doorbell brings: a descriptor, another thread or a program. Its handler rings
/// at once, and the poller leaves it alone. `flags`: its fourth argument.
pub const fn rings(nr: u32, flags: u64) -> bool {
    const ANONYMOUS: u64 = 0x20;
    match nr {
        9 => flags & ANONYMOUS == 0,
        56..=59 | 322 | 435 => true,
        _ => false,
    }
}

/// Calls that need all registers or host calls.
const FULL: [u32; 17] = [15, 25, 30, 56, 57, 58, 59, 60, 67, 149, 151, 158, 231, 322, 329, 435, 453];

/// What a gate does with each of the first [`KINDS`] call numbers.
pub const fn kinds() -> [u8; KINDS as usize] {
    let mut kinds = [KIND_OF_LIGHT; KINDS as usize];
    let mut i = 0;
    while i < FULL.len() {
        kinds[FULL[i] as usize] = KIND_OF_FULL;
        i += 1;
    }
    kinds[9] = KIND_OF_MAP;
    i = 0;
    while i < OWN {
        kinds[OWN_CALLS[i] as usize] = KIND_OF_OWN + i as u8;
        i += 1;
    }
    kinds
}

/// Alternate stacks, indexed as the slots; the forker's ordinary stack is number 0.
pub const STACK: u64 = REGION_START + 0x1000_0000;
/// Bytes of one alternate stack.
pub const STACK_SIZE: u64 = 0x1_0000;
/// Bytes of all alternate stacks.
pub const STACKS_SIZE: u64 = STACK_SIZE * SLOTS as u64;
/// Where in its stack a new task keeps the extended state that it starts with.
pub const START_XSTATE: u64 = 0x1000;
/// Most bytes of extended state that are copied to [`START_XSTATE`].
pub const START_XSTATE_MAX: u64 = 0x8000;

/// Places for files that gates read from; a place is used for one file as long as its process runs one program.
pub const PLACES: u64 = 4;
/// Bytes of a place; what a file has beyond them is the sentry's.
pub const PLACE_SIZE: u64 = 0x400_0000;
/// The first place.
pub const WINDOW: u64 = STACK + STACKS_SIZE;
/// Bytes of all places.
pub const WINDOW_SIZE: u64 = PLACE_SIZE * PLACES;

/// The address of a place.
pub const fn place(index: u64) -> u64 {
    WINDOW + PLACE_SIZE * index
}

/// The address of [`START_XSTATE`] in a slot's stack.
pub const fn start_xstate(slot: u32) -> u64 {
    STACK + STACK_SIZE * slot as u64 + START_XSTATE
}

/// The address of a slot's data.
pub const fn data(slot: u32) -> u64 {
    CTL + SLOT_SIZE * slot as u64 + DATA_OFFSET
}

/// The system call number that a task's own filter turns into a user notification. No kernel has it: without
/// a listener it is ENOSYS.
pub const DOORBELL: u32 = 4000;
/// The host signal that takes a task out of guest code (SIGURG).
pub const INTERRUPT: i32 = 23;

/// Flags of the clone that makes a task's thread: VM | FS | FILES | SIGHAND | THREAD | SYSVSEM.
pub const CLONE_THREAD_FLAGS: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000 | 0x4_0000;
/// Flags of the clone that makes a process: PARENT | PIDFD.
pub const CLONE_FORK_FLAGS: u64 = 0x8000 | 0x1000;
/// The flag of the clone that makes a process of the ptrace platform.
pub const CLONE_PARENT: u64 = 0x8000;
/// Flags of the one permitted form of seccomp(SECCOMP_SET_MODE_FILTER): NEW_LISTENER | WAIT_KILLABLE_RECV.
pub const BELL_FLAGS: u64 = 8 | 32;

/// Descriptor that a fresh zygote finds its shared area on.
pub const CTL_FD: u64 = 3;

/// [`Slot::req_kind`] above this is not a signal number but one of the `KIND_` values.
pub const KIND_STARTED: u32 = 0x100;
/// The results of a batch of host calls.
pub const KIND_RESULTS: u32 = 0x101;
/// The sentry asked for the doorbell.
pub const KIND_RUNG: u32 = 0x102;
/// A system call that came through a gate: number and arguments, no registers.
pub const KIND_LIGHT: u32 = 0x103;
/// A call of a batch that came with [`CALLS_FIRST`] failed; its error is in [`Slot::req_code`].
pub const KIND_FAILED: u32 = 0x104;

/// Put the value in rax and go on.
pub const REPLY_RETURN: u32 = 1;
/// Go on; registers come from [`Slot::rsp_mctx`].
pub const REPLY_REGS: u32 = 2;
/// Go on with everything as it is in the frame.
pub const REPLY_RESUME: u32 = 3;
/// Run the batch in [`Slot::calls`].
pub const REPLY_CALLS: u32 = 4;
/// Ring the doorbell, even if the poller watches.
pub const REPLY_RING: u32 = 5;
/// End the thread.
pub const REPLY_EXIT: u32 = 6;
/// Make a new doorbell: the last one's listener is closed.
pub const REPLY_BELL: u32 = 8;
/// As [`REPLY_RETURN`], once the pieces at [`OUT_OFFSET`] are in guest memory; the value is EFAULT if they cannot be.
pub const REPLY_DATA: u32 = 7;
/// With any other reply: run the batch first, and go on with the reply only if no call of it but close fails.
pub const CALLS_FIRST: u32 = 0x100;

/// Words of the machine context that travel: r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags,
/// segment selectors, err, trapno, oldmask, cr2, fpstate pointer (`struct sigcontext`, asm/sigcontext.h).
pub const MCTX_WORDS: usize = 24;
/// Not a host call: the shim writes five bytes, the lower ones of the second argument, at the first, in one step if they lie in
/// an aligned word of eight. Left out once something of the batch has failed, or if the third argument has the bit
/// [`POKE_IF`] and its lower five bytes are not what is there.
pub const POKE: u64 = 4001;
/// See [`POKE`].
pub const POKE_IF: u64 = 1 << 63;
/// Not a host call: the shim makes a range writable (start, length), rewrites call sites in it if they look as their entries in the
/// table say (the first one, how many; the fourth and fifth argument), and gives the range its protection back (the third).
pub const PATCH: u64 = 4004;
/// Not a host call: the shim writes four bytes, the second argument, at the first, if it can.
pub const STORE: u64 = 4002;
/// Not a host call: the shim makes the process's forker, which has the doorbell of the task that makes it and rings it once.
pub const FORKER: u64 = 4003;
/// Host calls in one batch.
pub const BATCH: usize = 32;

/// One host call of a batch.
#[repr(C)]
pub struct Call {
    /// Number, then the six arguments.
    pub words: [AtomicU64; 7],
}

/// The answer is a matter of moments: spin.
pub const POLLED: u32 = 1;
/// The call blocks, most often not for long: let others have the processor.
pub const PARKED: u32 = 2;
/// Of [`Slot::blocks_second`]: whatever the argument is.
pub const ANY: u32 = u32::MAX;

/// Control words of one task. Written by its shim, except the `rsp_` lines, `calls` and `start_` words.
#[repr(C, align(64))]
pub struct Slot {
    /// Answers the request with the same number.
    pub rsp_seq: AtomicU32,
    /// One of the `REPLY_` values.
    pub rsp_kind: AtomicU32,
    /// Value for rax.
    pub rsp_value: AtomicU64,
    /// Somebody watches `req_seq` ([`POLLED`], [`PARKED`]): wait for the answer before ringing.
    pub polling: AtomicU32,
    /// Calls in the batch.
    pub rsp_calls: AtomicU32,
    /// Descriptor + 1 to close before carrying out the reply; 0: none. The shim sets it back to 0.
    pub rsp_close: AtomicU32,
    /// Bit 0: set FS base, bit 1: set GS base.
    pub rsp_bases: AtomicU32,
    /// New FS base.
    pub rsp_fs: AtomicU64,
    /// New GS base.
    pub rsp_gs: AtomicU64,
    /// A call that most often blocks: its number + 1 (0: none), its second argument unless [`ANY`], and its first one. Who makes it
    /// lets others have the processor at once, as if it were [`PARKED`] already.
    pub blocks_nr: AtomicU32,
    /// See there.
    pub blocks_second: AtomicU32,
    /// See there.
    pub blocks_first: AtomicU64,

    /// Number of the request.
    pub req_seq: AtomicU32,
    /// Host signal number or `KIND_`, and above [`KIND_BITS`] how many bytes at [`IN_OFFSET`] travel with it.
    pub req_kind: AtomicU32,
    /// System call number.
    pub req_nr: AtomicU64,
    /// Its arguments.
    pub req_args: [AtomicU64; 6],

    /// si_code.
    pub req_code: AtomicU32,
    /// si_arch of a SIGSYS.
    pub req_arch: AtomicU32,
    /// si_addr.
    pub req_addr: AtomicU64,
    /// FS base at the event.
    pub req_fs: AtomicU64,
    /// GS base at the event.
    pub req_gs: AtomicU64,
    /// Registers at the event.
    pub req_mctx: [AtomicU64; MCTX_WORDS],

    /// Registers to go on with.
    pub rsp_mctx: [AtomicU64; MCTX_WORDS],
    /// The batch.
    pub calls: [Call; BATCH],
    /// Its results, as the host returned them.
    pub results: [AtomicI64; BATCH],

    /// The thread's listener + 1, or its error with bit 31 set; 0: it has no doorbell yet. Or [`ENDS`] or [`GONE`]. A futex.
    pub listener: AtomicU32,
    /// Bytes of extended state to copy to the task's stack before it reports, from `start_xstate`.
    pub start_xstate_len: AtomicU32,
    /// Where it lies.
    pub start_xstate: AtomicU64,

    /// The last request whose batch of host calls was run without a failure. A futex.
    pub done: AtomicU32,
    /// Somebody waits for [`Slot::done`] to change.
    pub done_wait: AtomicU32,

    /// The call under way came through this gate: index times [`GATE_SIZE`].
    pub light_site: AtomicU32,
    /// Its request.
    pub light_seq: AtomicU32,
    /// Its flags, as `lahf; seto al` has them.
    pub light_flags: AtomicU64,
    /// Not 0: `own` holds answers.
    pub own_valid: AtomicU32,
    /// Not 0: `robust` is what set_robust_list gave last.
    pub robust_given: AtomicU32,
    /// The head of the list.
    pub robust: AtomicU64,
    /// Not 0: the head of a list that was empty when the task called exit or exit_group.
    pub robust_idle: AtomicU64,
    /// What `alt` is to be next.
    pub alt_next: [AtomicU64; 2],
    /// Not 0: `alt` is the alternate stack.
    pub alt_valid: AtomicU32,
    /// Not 0: the task has changed it.
    pub alt_given: AtomicU32,
    /// Where the alternate stack begins, and how long it is; no flags. 0: there is none.
    pub alt: [AtomicU64; 2],
    /// Blocked signals, while [`LENT`] is set.
    pub mask: AtomicU64,
    /// Answers that gates give by themselves.
    pub own: [AtomicU64; OWN],
    /// How often they did.
    pub own_count: [AtomicU64; OWN],
    /// Where the frame of the last signal is (`struct ucontext`), of a task that is in its handler.
    pub frame: AtomicU64,
    /// Bytes of extended state at the start of the slot's data, of a task that makes another one; 0: none.
    pub kept_xstate: AtomicU32,
    /// Where in a batch a gate is.
    pub step: AtomicU32,
    /// The time stamp counter, its lower half, when a gate let others have the processor for the first time in a call.
    pub waits_since: AtomicU32,
    /// What the host thread had used (`struct rusage`) when its task began on it, if another had it before; else 0.
    pub used_before: [AtomicU64; USAGE],
    /// The call site of this request has trapped so often before without being reported.
    pub unseen: AtomicU32,
    /// Descriptors that the gates may read from.
    pub lent: [Lent; LENDABLE],
    /// Sites whose calls the handler answered, by some bits of their address: the address and, in the low 16 bits, how often.
    pub answered: [AtomicU64; ANSWERED],
}

/// Words of a `struct rusage`.
pub const USAGE: usize = 18;
/// Of [`Slot::listener`]: a task without a doorbell calls exit or exit_group, and waits for [`Slot::rsp_seq`].
pub const ENDS: u32 = 0x7fff_ffff;
/// Of [`Slot::listener`]: the process is dead. Written by the sentry.
pub const GONE: u32 = 0x7fff_fffe;

/// Entries of [`Slot::lent`].
pub const LENDABLE: usize = 4;

/// A descriptor of a regular file whose bytes are mapped.
#[repr(C)]
pub struct Lent {
    /// The descriptor + 1; 0: none.
    pub fd: AtomicU32,
    pad: AtomicU32,
    /// Where its first byte is.
    pub at: AtomicU64,
    /// How many bytes of it are mapped, at most up to its end.
    pub len: AtomicU64,
}

/// Entries of [`Slot::answered`].
pub const ANSWERED: usize = 32;

/// A rewritten call site.
#[repr(C)]
pub struct Site {
    /// First and third form: the call's number. Second: the address behind the `syscall` instruction, 0 once the code is gone.
    pub key: AtomicU64,
    /// Where the call returns to: behind the `syscall` instruction, or the site's tail.
    pub ret: AtomicU64,
    /// Second form: what rax is compared with. Third: what rsi is to be. First: 0.
    pub compared: AtomicU64,
    /// Second form: the address behind the comparison.
    pub after: AtomicU64,
}

/// Make a thread for the task slot `cmd_slot`.
pub const CMD_THREAD: u32 = 1;
/// Make a process whose shared area is the descriptor `cmd_fd`; its thread is a forker, too.
pub const CMD_FORK: u32 = 2;
/// The same, but its thread is the task of the slot `cmd_slot`. One without a frame reports itself, not the forker, as soon as it
/// has a doorbell. One with a frame has none: it waits for the answer to its first request, and makes a doorbell when it needs one.
pub const CMD_TASK: u32 = 3;

/// No child was made.
pub const NO_FD: u32 = u32::MAX;

/// Control words of a process: what its forker does. Lies where slot 0 would.
#[repr(C, align(64))]
pub struct Head {
    /// Number of the command; a futex.
    pub cmd_seq: AtomicU32,
    /// One of the `CMD_` values.
    pub cmd_kind: AtomicU32,
    /// Slot for the new thread.
    pub cmd_slot: AtomicU32,
    /// Descriptor of the child's shared area.
    pub cmd_fd: AtomicU32,
    /// Descriptor + 1 to close first; 0: none.
    pub cmd_close: AtomicU32,
    /// Where the child of [`CMD_TASK`] goes on from: the frame of the task whose copy it is (`struct ucontext`); 0: nowhere yet.
    pub cmd_frame: AtomicU64,
    pad0: [AtomicU64; 4],

    /// Number of the command answered; a futex.
    pub res_seq: AtomicU32,
    pad1: AtomicU32,
    /// Negative error or the result (CMD_TASK without a frame: the listener in the child).
    pub res_value: AtomicI64,
    /// Descriptor of the last child's process, as the host wrote it, or [`NO_FD`].
    pub res_pidfd: AtomicU32,
    pad2: AtomicU32,

    /// What the zygote keeps when it empties its address space: this many bytes before its vDSO (vvar) ...
    pub vdso_before: AtomicU64,
    /// ... and this many from the vDSO's start.
    pub vdso_size: AtomicU64,
    /// Where the zygote found its vDSO; written by it before it makes its first thread.
    pub vdso: AtomicU64,
    /// Instructions of the base filter, which lie at [`FILTER_OFFSET`].
    pub filter_len: AtomicU32,
    /// Entries of the table of sites in use.
    pub sites: AtomicU32,
    /// Not 0: the sentry wants to hear of each site once.
    pub learns: AtomicU32,
    /// Not 0: the sentry wants to hear of advice on memory, some of which may be locked.
    pub ask_advice: AtomicU32,
}
