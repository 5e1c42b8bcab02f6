//! The launcher while the program runs: passes signals on, watches sentry and gofer, waits for the end.
//!
//! | a signal | goes to |
//! |---|---|
//! | a key of the terminal, its new size, its end (the kernel sent it) | the foreground process group inside |
//! | SIGTSTP, SIGCONT | the same |
//! | any other of a process's (`kill`, `timeout`) | the first program |
//!
//! Two things end the sandbox although the program does not: the third SIGTERM or SIGINT that a process sends within
//! [`INSISTS`], and a sentry that does not speak within [`PATIENCE`]. It is asked by every signal that would end most
//! programs. As it can hang right after it has answered, it is asked again from then on, at growing intervals: whoever
//! sends one signal and waits sees an end.

use crate::control::Message;
use crate::layer::{Outputs, Taker};
use confine::host::{self, Arrived};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, waitpid};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Signals that go to the program.
pub const FORWARDED: &[i32] = &[
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Three SIGTERM or SIGINT within this time end the sandbox.
const INSISTS: Duration = Duration::from_secs(10);
/// How long the sentry may take to hear of a signal.
const PATIENCE: Duration = Duration::from_secs(5);
/// When the sentry is asked after its first answer; each time after that twice as late.
const ASKS_AGAIN: Duration = Duration::from_secs(1);
/// How long killed processes may take to end before the launcher ends without them: one may hang in a file system.
/// Their parent-death signal is SIGKILL too.
const ENDING: Duration = Duration::from_secs(5);

/// More than the gofer's line is long: who writes more, without an end, is no gofer.
const LONGEST_LINE: usize = 16 * 1024;

/// How a process ends that has said why on standard error.
const SAID: &str = "failed";

/// What the launcher watches.
pub struct Run {
    pub control: OwnedFd,
    pub signals: OwnedFd,
    /// Brings the gofer's line, once.
    pub ready: Option<io::PipeReader>,
    /// The controlling terminal, if the program has it.
    pub tty: Option<OwnedFd>,
    gofer_line: Vec<u8>,
    sentry: Option<Child>,
    gofer: Option<Child>,
    /// Asks what guests' host processes have.
    pub sizes: Option<OwnedFd>,
    /// Who counts host calls.
    pub counter: Option<confine::count::Counter>,
    /// Who meters memory. When it is gone, the sentry ends.
    pub meter: Option<Child>,
    /// What is done with the upper layer.
    pub outputs: Outputs,
    /// Takes checkpoints of it.
    pub taker: Option<Taker>,
    /// Whether the sentry has written what was asked for of it.
    written: bool,
    /// Whether the sentry still speaks; None until a signal asks for that.
    speaks: Option<Speaks>,
    /// When processes sent SIGTERM or SIGINT.
    insisted: VecDeque<Instant>,
}

/// What is known of the sentry's being there.
enum Speaks {
    /// It must have answered by then.
    By(Instant, Duration),
    /// It has answered, and is asked again then. How long it was left alone.
    Since(Instant, Duration),
}

impl Speaks {
    /// When to look again.
    fn at(&self) -> Instant {
        match self {
            Speaks::By(at, _) | Speaks::Since(at, _) => *at,
        }
    }
}

/// A child of the launcher.
pub struct Child {
    pid: Pid,
    fd: OwnedFd,
}

impl Child {
    /// # Errors
    /// One line that says what the host said.
    pub fn new(pid: i32) -> Result<Child, String> {
        let pid = Pid::from_raw(pid).ok_or("a process without a number")?;
        let fd = pidfd_open(pid, PidfdFlags::empty()).map_err(|e| format!("watching a process: {e}"))?;
        Ok(Child { pid, fd })
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Kills it and waits for its end.
    pub fn end(self) {
        let _ = rustix::process::pidfd_send_signal(&self.fd, Signal::KILL);
        self.wait();
        let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
    }

    /// Waits for its end.
    fn wait(&self) {
        let patience = Timespec { tv_sec: ENDING.as_secs() as i64, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&patience));
    }

    /// How it ended; None while it runs.
    fn ended(&self) -> Option<String> {
        let (_, status) = waitpid(Some(self.pid), WaitOptions::NOHANG).ok().flatten()?;
        Some(match (status.terminating_signal(), status.exit_status()) {
            (Some(signal), _) => format!("was killed by signal {signal}"),
            (_, Some(0)) => String::new(),
            (_, Some(code)) if code == i32::from(crate::FAILURE) => SAID.to_owned(),
            (_, code) => format!("ended with status {}", code.unwrap_or_default()),
        })
    }
}

/// A line of lazaret's own on standard error, which may be gone.
pub fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

impl Run {
    pub fn new(
        control: OwnedFd,
        signals: OwnedFd,
        ready: io::PipeReader,
        tty: Option<OwnedFd>,
        sentry: Child,
        gofer: Child,
    ) -> Run {
        Run {
            control,
            signals,
            ready: Some(ready),
            tty,
            gofer_line: Vec::new(),
            sentry: Some(sentry),
            gofer: Some(gofer),
            counter: None,
            meter: None,
            sizes: None,
            outputs: Outputs::default(),
            taker: None,
            written: false,
            speaks: None,
            insisted: VecDeque::new(),
        }
    }

    /// Until the program's end: its status.
    ///
    /// # Errors
    /// One line that says what of lazaret failed.
    pub fn watch(&mut self) -> Result<u8, String> {
        let result = self.until_all_ended();
        if let Some(counter) = self.counter.take() {
            counter.end();
        }
        if let Some(taker) = self.taker.take() {
            taker.finish();
        }
        // Last: nothing of the sandbox is there any more.
        let mut failed = None;
        for commit in &mut self.outputs.commits {
            match commit.apply(self.written) {
                Ok(lines) => lines.iter().for_each(|line| say(&format!("lazaret: {line}\n"))),
                Err(text) => failed = failed.or(Some(text)),
            }
        }
        if result.is_err() && !self.written {
            self.outputs.lost().iter().for_each(|line| say(&format!("lazaret: {line}\n")));
        }
        let code = result?;
        failed.map_or(Ok(code), Err)
    }

    fn until_all_ended(&mut self) -> Result<u8, String> {
        let result = self.turns();
        // The sentry is the init of everything inside.
        if let Some(sentry) = self.sentry.take() {
            sentry.end();
        }
        if let Some(meter) = self.meter.take() {
            meter.end();
        }
        let Some(gofer) = self.gofer.take() else { return result };
        if matches!(result, Err(_) | Ok(0)) {
            // It has answered all that was asked.
            gofer.end();
            return result;
        }
        // It ends well when its sockets close. Killed, it is the cause of what the program ended with.
        gofer.wait();
        match gofer.ended() {
            None => gofer.end(),
            Some(how) if !how.is_empty() => return Err(format!("the gofer {how}")),
            Some(_) => {}
        }
        result
    }

    fn turns(&mut self) -> Result<u8, String> {
        loop {
            let [control, signal, ready, gofer, sizes] = self.wait()?;
            if sizes
                && let (Some(socket), Some(sentry)) = (&self.sizes, &self.sentry)
                && !crate::sizes::answer(socket, sentry.pid())
            {
                self.sizes = None;
            }
            if ready {
                self.gofer_speaks()?;
            }
            if signal {
                while let Some(arrived) = host::next_signal(self.signals.as_fd()) {
                    self.pass_on(arrived)?;
                }
            }
            if gofer {
                self.gofer_ended()?;
            }
            if control && let Some(status) = self.sentry_speaks()? {
                return Ok(status);
            }
            // What has arrived is read first: this process may have been stopped meanwhile.
            if !control {
                self.look_after_sentry()?;
            }
        }
    }

    /// Which of control, signals, ready, gofer and sizes have something.
    fn wait(&self) -> Result<[bool; 5], String> {
        let fds = [
            Some(self.control.as_fd()),
            Some(self.signals.as_fd()),
            self.ready.as_ref().map(AsFd::as_fd),
            self.gofer.as_ref().map(|gofer| gofer.fd.as_fd()),
            self.sizes.as_ref().map(AsFd::as_fd),
        ];
        let mut polled: Vec<_> =
            fds.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let timeout = self.speaks.as_ref().map(|speaks| {
            let left = speaks.at().saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("waiting: {error}")),
        }
        let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
        Ok(fds.map(|fd| fd.is_some() && ready.next().unwrap_or(false)))
    }

    fn pass_on(&mut self, arrived: Arrived) -> Result<(), String> {
        if arrived.signal == libc::SIGCONT {
            self.tell_foreground();
        }
        if !arrived.from_kernel && matches!(arrived.signal, libc::SIGTERM | libc::SIGINT) {
            let now = Instant::now();
            self.insisted.push_back(now);
            self.insisted.retain(|at| now.duration_since(*at) < INSISTS);
            if self.insisted.len() == 3 && self.outputs.wanted() {
                // What it has done is still wanted: its end only, at first.
                Message::End.send(&self.control);
                self.expect_answer(ASKS_AGAIN);
                return Ok(());
            }
            if self.insisted.len() >= 3 {
                return Err("ended by the third signal to end".to_owned());
            }
        }
        Message::Signal(arrived).send(&self.control);
        if matches!(arrived.signal, libc::SIGTERM | libc::SIGINT | libc::SIGHUP | libc::SIGQUIT) {
            self.expect_answer(ASKS_AGAIN);
        }
        Ok(())
    }

    /// An answer is due, unless one is already; after it the sentry is left alone for so long.
    fn expect_answer(&mut self, pause: Duration) {
        if !matches!(self.speaks, Some(Speaks::By(..))) {
            self.speaks = Some(Speaks::By(Instant::now() + PATIENCE, pause));
        }
    }

    fn look_after_sentry(&mut self) -> Result<(), String> {
        match self.speaks {
            Some(Speaks::By(at, _)) if at <= Instant::now() => {
                Err("the sentry does not take a signal: ended".to_owned())
            }
            Some(Speaks::Since(at, pause)) if at <= Instant::now() => {
                Message::Ask.send(&self.control);
                self.expect_answer(pause.saturating_mul(2));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn tell_foreground(&self) {
        if let Some(tty) = &self.tty {
            let foreground = crate::stdio::in_foreground(tty.as_fd());
            Message::Foreground(foreground).send(&self.control);
        }
    }

    fn gofer_speaks(&mut self) -> Result<(), String> {
        let mut buffer = [0; 512];
        let got = self.ready.as_mut().map_or(Ok(0), |ready| ready.read(&mut buffer)).unwrap_or(0);
        self.gofer_line.extend_from_slice(buffer.get(..got).unwrap_or_default());
        if got > 0 && !self.gofer_line.ends_with(b"\n") && self.gofer_line.len() < LONGEST_LINE {
            return Ok(());
        }
        self.ready = None;
        let line = String::from_utf8_lossy(&self.gofer_line).trim_end().to_owned();
        match line.split_once(' ') {
            Some(("ok", _)) => Ok(()),
            Some(("error", text)) => Err(text.to_owned()),
            _ => Err("the gofer did not start".to_owned()),
        }
    }

    /// The gofer is gone. That it ended well means that the sentry ended before it, which the control socket tells.
    fn gofer_ended(&mut self) -> Result<(), String> {
        let how = self.gofer.take().and_then(|gofer| gofer.ended()).unwrap_or_default();
        if how.is_empty() { Ok(()) } else { Err(format!("the gofer {how}")) }
    }

    fn sentry_speaks(&mut self) -> Result<Option<u8>, String> {
        let Some(message) = Message::receive(&self.control) else { return Err(self.end_of_sentry()) };
        match message {
            Message::Lines(lines) => say(&lines),
            Message::Heard => {
                if let Some(Speaks::By(_, pause)) = self.speaks {
                    self.speaks = Some(Speaks::Since(Instant::now() + pause, pause));
                }
            }
            Message::Terminal => self.tell_foreground(),
            // As the shell expects of a job; it goes on by SIGCONT, which goes to the program.
            Message::Stopped(signal) => host::stop_by(signal),
            Message::Failed(code, text) => {
                // A gofer that did not start is the cause of what the sentry says about it.
                if self.ready.is_some() {
                    self.gofer_speaks()?;
                }
                say(&format!("lazaret: {text}\n"));
                return Ok(Some(code));
            }
            Message::Written => self.written = true,
            Message::Kept(number) => {
                if let Some(taker) = &self.taker {
                    taker.take(number);
                }
            }
            Message::Exited(code) => return Ok(Some(code)),
            Message::Killed(signal) => return Ok(Some(128u8.wrapping_add(signal as u8))),
            Message::Signal(_)
            | Message::Foreground(_)
            | Message::Ask
            | Message::End
            | Message::Counts(_) => {}
        }
        Ok(None)
    }

    /// The sentry is gone without a last word.
    fn end_of_sentry(&mut self) -> String {
        let Some(sentry) = self.sentry.take() else { return "the sentry did not start".to_owned() };
        sentry.wait();
        match sentry.ended() {
            // It said why.
            Some(how) if how == SAID => String::new(),
            Some(how) if how.is_empty() => "the sentry ended".to_owned(),
            Some(how) => format!("the sentry {how}"),
            None => {
                self.sentry = Some(sentry);
                "the sentry does not speak any more".to_owned()
            }
        }
    }
}
