//! A minimal kernel for tests: one sink per task, each a closure, and guest code as position-independent bytes.
#![allow(dead_code)]

use platform::ptrace::PtracePlatform;
use platform::trap::{TrapConfig, TrapPlatform};
use platform::{Event, NewTask, Platform, Port, Regs, TaskControl, TaskSink, Verdict};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

pub const CODE: u64 = 0x40_0000;
pub const STACK_TOP: u64 = 0x80_0000;
pub const DATA: u64 = 0x60_0000;

pub type Handler = dyn Fn(&Sink, Event, &mut dyn Port) -> Verdict + Send + Sync;

/// What a test hears of its tasks.
#[derive(Debug, PartialEq, Eq, Clone)]
pub enum Note {
    Exit(u64),
    Gone(i32),
    Say(String),
    Value(i64),
}

pub struct Sink {
    pub handler: Arc<Handler>,
    pub notes: Mutex<Sender<Note>>,
    pub control: OnceLock<Arc<dyn TaskControl>>,
    pub name: String,
}

impl Sink {
    pub fn note(&self, note: Note) {
        let _ = self.notes.lock().unwrap().send(note);
    }

    pub fn child(&self, name: &str) -> Arc<Sink> {
        Arc::new(Sink {
            handler: self.handler.clone(),
            notes: Mutex::new(self.notes.lock().unwrap().clone()),
            control: OnceLock::new(),
            name: name.to_owned(),
        })
    }

    pub fn control(&self) -> &Arc<dyn TaskControl> {
        self.control.wait()
    }
}

pub fn begin(sink: &Arc<Sink>, task: NewTask) -> NewTask {
    let _ = sink.control.set(task.control.clone());
    task.control.start();
    task
}

impl TaskSink for Sink {
    fn event(&self, event: Event, port: &mut dyn Port) -> Verdict {
        (self.handler)(self, event, port)
    }

    fn gone(&self, signal: i32) {
        self.note(Note::Gone(signal));
    }
}

pub fn platform() -> Arc<dyn Platform> {
    let namespaces = std::env::var_os("LAZARET_TEST_NO_NAMESPACES").is_none();
    let config = TrapConfig {
        namespaces,
        empty_dir: Some("/mnt".into()),
        patience: Some(Duration::from_secs(4)),
        ..TrapConfig::default()
    };
    match crate::PLATFORM {
        "ptrace" => PtracePlatform::new(&config).expect("ptrace platform"),
        _ => TrapPlatform::new(&config).expect("trap platform"),
    }
}

/// Maps code, data and stack, and points the registers at the code.
pub fn load(port: &mut dyn Port, code: &[u8]) {
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let len = (code.len() as u64).next_multiple_of(4096);
    port.mmap(CODE, len, 7, anonymous, None).expect("code");
    port.mmap(DATA, 0x10000, 3, anonymous, None).expect("data");
    port.mmap(STACK_TOP - 0x10000, 0x10000, 3, anonymous, None).expect("stack");
    port.write_mem(CODE, code).expect("copy code");
    port.mprotect(CODE, len, 5).expect("protect code");
    let mut regs = port.regs().expect("regs");
    regs.rip = CODE;
    regs.rsp = STACK_TOP;
    regs.eflags = 0x202;
    port.set_regs(&regs).expect("set regs");
}

/// Starts a first task whose code is `code`; all its events but Started go to `handler`.
pub fn run(
    platform: &Arc<dyn Platform>,
    code: &'static [u8],
    handler: impl Fn(&Sink, Event, &mut dyn Port) -> Verdict + Send + Sync + 'static,
) -> (Arc<Sink>, NewTask, Receiver<Note>) {
    let (send, notes) = channel();
    let sink = Arc::new(Sink {
        handler: Arc::new(move |sink: &Sink, event, port: &mut dyn Port| {
            if matches!(event, Event::Started) && sink.name == "first" {
                load(port, code);
                return Verdict::Resume;
            }
            handler(sink, event, port)
        }),
        notes: Mutex::new(send),
        control: OnceLock::new(),
        name: "first".into(),
    });
    let task = platform.first_task(sink.clone()).expect("first task");
    let task = begin(&sink, task);
    (sink, task, notes)
}

/// As [`run`]; calls come with a full port.
pub fn run_full(
    platform: &Arc<dyn Platform>,
    code: &'static [u8],
    handler: impl Fn(&Sink, Event, &mut dyn Port) -> Verdict + Send + Sync + 'static,
) -> (Arc<Sink>, NewTask, Receiver<Note>) {
    let asked = Mutex::new(HashMap::new());
    run(platform, code, move |sink, event, port| {
        let key = std::ptr::from_ref(sink) as usize;
        let event = match event {
            Event::Syscall(call) if !port.full() => {
                asked.lock().unwrap().insert(key, call);
                sink.control().kick();
                return Verdict::Park;
            }
            Event::Again => asked.lock().unwrap().remove(&key).map_or(Event::Again, Event::Syscall),
            event => event,
        };
        handler(sink, event, port)
    })
}

pub fn next(notes: &Receiver<Note>) -> Note {
    notes.recv_timeout(Duration::from_secs(20)).expect("a note in time")
}

pub fn after(regs: &Regs, value: u64) -> Regs {
    Regs { rax: value, ..*regs }
}

/// Bytes between two labels of global assembly.
#[macro_export]
macro_rules! guest {
    ($name:ident, $($line:literal),* $(,)?) => {
        std::arch::global_asm!(
                ".pushsection .rodata.guest, \"a\"",
                concat!(".globl guest_", stringify!($name)),
                concat!("guest_", stringify!($name), ":"),
                $($line,)*
                concat!(".globl guest_end_", stringify!($name)),
                concat!("guest_end_", stringify!($name), ":"),
                ".popsection",
            );
        fn $name() -> &'static [u8] {
            unsafe extern "C" {
                #[link_name = concat!("guest_", stringify!($name))]
                static START: u8;
                #[link_name = concat!("guest_end_", stringify!($name))]
                static END: u8;
            }
            // SAFETY: both labels are in one section, in this order.
            unsafe {
                let (start, end) = (&raw const START, &raw const END);
                std::slice::from_raw_parts(start, end.offset_from(start) as usize)
            }
        }
    };
}
