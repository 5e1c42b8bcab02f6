//! The user's own terminal, passed through: job control inside and outside, keys, sizes, full-screen programs. Each
//! session runs natively first, typed at a pseudo-terminal, then inside.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Child;
use std::time::Instant;
use support::{
    LIMIT, ORDINARY, Place, Who, all_end, bins, command, expectations, family, listed, present, until, weigh,
};

/// What is done when something is seen.
#[derive(Clone, Copy)]
enum Do {
    /// Types this.
    Type(&'static str),
    /// Makes the terminal so many rows and columns large.
    Size(u16, u16),
}

use Do::{Size, Type};

/// A session: name, program that must be there, where the command stands, and what is typed when what is seen.
struct Session {
    name: &'static str,
    needs: &'static str,
    run: Run,
    steps: &'static [(&'static str, Do)],
    /// The exit status; 128 and the signal's number for a program that a signal killed.
    status: i32,
}

enum Run {
    /// This command has the terminal.
    Alone(&'static [&'static str]),
    /// An interactive shell outside has it; `CMD` in what is typed stands for this command.
    InShell(&'static str),
}

use Run::{Alone, InShell};

const BASH: &[&str] = &["/bin/bash", "--norc", "--noprofile", "-i"];

// What is interrupted reads: a shell that has just forked has its signals no longer, and its child not yet.

/// $JOB: a program that says when it is in the foreground of its terminal, in the background, and in the
/// foreground again. It makes no process: dash does so by vfork(2), and a child that is stopped before it executes
/// its program keeps its parent from being stopped.
const JOB: &str = "front() { read _ _ _ _ own _ _ front _ </proc/$$/stat; [ $own = $front ]; }; \
    echo in front; while front; do :; done; \
    echo in back; until front; do :; done; echo again; read end";

const SESSIONS: &[Session] = &[
    Session {
        name: "jobs_inside",
        needs: "bash",
        run: Alone(BASH),
        steps: &[
            ("$ ", Type("sh -c \"$JOB\"\n")),
            ("in front\n", Type("\x1a")),
            ("Stopped", Type("bg\n")),
            ("in back\n", Type("jobs\n")),
            ("Running", Type("fg\n")),
            ("again\n", Type("\x03")),
            ("$ ", Type("echo st $?\n")),
            ("st 130\n", Type("cat &\n")),
            // The shell tells of a stop and of an end when it is next asked.
            ("[1]", Type("until jobs | grep -q Stop; do sleep 0.01; done\n")),
            ("Stopped", Type("kill %1; while kill -0 $! 2>/dev/null; do :; done\n")),
            ("Terminated", Type("exit 4\n")),
        ],
        status: 4,
    },
    Session {
        name: "killed_job_is_told",
        needs: "bash",
        run: Alone(BASH),
        steps: &[
            ("$ ", Type("sleep 50 & kill $!; wait $!; echo st $?\n")),
            ("st 143", Type("sh -c 'kill -9 $$'\n")),
            ("Killed", Type("exit 3\n")),
        ],
        status: 3,
    },
    Session {
        name: "stopped_from_outside",
        needs: "bash",
        run: InShell("sh -c 'echo up; read a; echo got $a; read b'"),
        steps: &[
            ("$ ", Type("CMD\n")),
            ("up\n", Type("\x1a")),
            ("Stopped", Type("jobs\n")),
            ("Stopped", Type("echo no\"\"w; fg\n")),
            // What it answers shows that it has the terminal again.
            ("now\n", Type("x\n")),
            ("got x", Type("\x03")),
            ("$ ", Type("echo st $?\n")),
            ("st 130", Type("exit 5\n")),
        ],
        status: 5,
    },
    Session {
        name: "background_read_outside",
        needs: "bash",
        run: InShell("cat"),
        steps: &[
            ("$ ", Type("CMD &\n")),
            // The shell tells of the stop at once or when it is next asked.
            ("[1]", Type("until jobs | grep -q Stop; do sleep 0.01; done; echo the\"\"re\n")),
            ("there\n", Type("jobs\n")),
            ("Stopped", Type("echo no\"\"w; fg\n")),
            ("now\n", Type("hello\n")),
            // Its echo may come before what fg says.
            ("hello\n", Type("")),
            ("hello\n", Type("\x04")),
            ("$ ", Type("exit 6\n")),
        ],
        status: 6,
    },
    Session {
        name: "foreground_again_without_a_stop",
        needs: "bash",
        run: InShell("sh -c 'sleep 1; echo ready; cat'"),
        steps: &[
            ("$ ", Type("CMD &\n")),
            ("[1]", Type("fg\n")),
            ("ready\n", Type("hello\n")),
            // Its echo may come before what fg says.
            ("hello\n", Type("")),
            ("hello\n", Type("\x04")),
            ("$ ", Type("exit 7\n")),
        ],
        status: 7,
    },
    Session {
        name: "stays_one",
        needs: "stty",
        run: Alone(&["/bin/sh", "-c", "test -t 0 && test -t 1 && echo tty; stty size; exit 6"]),
        steps: &[("tty\n33 99\n", Type(""))],
        status: 6,
    },
    Session {
        name: "interrupt_caught",
        needs: "sh",
        run: Alone(&[
            "/bin/sh",
            "-c",
            "trap 'echo caught; exit 9' INT; echo go; while :; do sleep 0.05; done",
        ]),
        steps: &[("go\n", Type("\x03")), ("caught\n", Type(""))],
        status: 9,
    },
    Session {
        name: "interrupt",
        needs: "sh",
        run: Alone(&["/bin/sh", "-c", "echo go; read end"]),
        steps: &[("go\n", Type("\x03"))],
        status: 130,
    },
    Session {
        name: "quit",
        needs: "sh",
        run: Alone(&["/bin/sh", "-c", "echo go; sleep 100"]),
        steps: &[("go\n", Type("\x1c"))],
        status: 131,
    },
    Session {
        name: "end_of_file",
        needs: "cat",
        run: Alone(&["/bin/cat"]),
        steps: &[("", Type("one\n")), ("one\none\n", Type("\x04"))],
        status: 0,
    },
    Session {
        name: "size",
        needs: "perl",
        run: Alone(&[
            "/usr/bin/perl",
            "-e",
            "$| = 1; $SIG{WINCH} = sub { system('stty size'); exit 9 }; system('stty size'); sleep 20",
        ]),
        steps: &[("33 99\n", Size(40, 120)), ("40 120\n", Type(""))],
        status: 9,
    },
    Session {
        name: "name",
        needs: "tty",
        run: Alone(&[
            "/bin/sh",
            "-c",
            "t=$(tty) && test -c \"$t\" && test \"$(readlink /proc/self/fd/0)\" = \"$t\" && echo same > \"$t\" && echo too > /dev/tty",
        ]),
        steps: &[("same\n", Type("")), ("too\n", Type(""))],
        status: 0,
    },
    Session {
        name: "raw_mode",
        needs: "bash",
        run: Alone(&[
            "/bin/bash",
            "-c",
            "read -rsn1 -p 'key? ' k; echo; echo \"got <$k>\"; stty -a | grep -c ' icanon'",
        ]),
        steps: &[("key? ", Type("x")), ("got <x>\n1\n", Type(""))],
        status: 0,
    },
    Session {
        name: "vim",
        needs: "vim",
        run: Alone(&[
            "/bin/sh",
            "-c",
            "d=$(mktemp -d); vim -n -u NONE -i NONE -N $d/f; cat $d/f; rm -r $d; exit 8",
        ]),
        steps: &[
            ("[New]", Type("ihello from vim\x1b")),
            ("hello from vim", Type(":wq\r")),
            ("hello from vim\n", Type("")),
        ],
        status: 8,
    },
    Session {
        name: "less",
        needs: "less",
        run: Alone(&["/bin/sh", "-c", "seq 500 | less; echo done"]),
        steps: &[("\n20\n", Type("G")), ("500", Type("q")), ("done\n", Type(""))],
        status: 0,
    },
    Session {
        name: "htop",
        needs: "htop",
        run: Alone(&["/usr/bin/htop"]),
        steps: &[("F10", Type("q"))],
        status: 0,
    },
    Session {
        name: "suspended_editor",
        needs: "vim",
        run: Alone(BASH),
        steps: &[
            ("$ ", Type("vim -n -u NONE -i NONE -N /tmp/none-such\n")),
            ("[New]", Type("\x1a")),
            ("Stopped", Type("fg\n")),
            ("~", Type(":q\r")),
            ("$ ", Type("exit 2\n")),
        ],
        status: 2,
    },
];

/// What came back, and the exit status; None: it did not end in time or not all was seen.
struct Outcome {
    got: String,
    status: Option<i32>,
    /// The step that waits.
    waits: Option<&'static str>,
}

fn quoted(argv: &[String]) -> String {
    argv.iter().map(|a| format!("'{}'", a.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

/// A new terminal of 33x99. Sessions run beside each other: none of their programs may keep the terminal of
/// another.
fn pair() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    let size = libc::winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 };
    let made = |fd: i32| match fd {
        -1 => Err(std::io::Error::last_os_error()),
        // SAFETY: it is new, and nobody else's.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    };
    // SAFETY: there is no memory to misuse.
    let master = made(unsafe { libc::posix_openpt(flags) })?;
    let fd = master.as_raw_fd();
    // SAFETY: the calls take a descriptor, numbers and a size that is there.
    let slave = unsafe {
        libc::unlockpt(fd);
        libc::ioctl(fd, libc::TIOCSWINSZ, &size);
        libc::ioctl(fd, libc::TIOCGPTPEER, flags)
    };
    Ok((master, made(slave)?))
}

/// Starts a session's command on a new terminal of 33x99.
fn start(session: &Session, place: Place, who: Who) -> Result<(Child, std::fs::File, String), Failed> {
    let (master, slave) = pair()?;
    if who == Who::Ordinary {
        // SAFETY: takes no pointers.
        unsafe { libc::fchown(slave.as_raw_fd(), ORDINARY, ORDINARY) };
    }
    let (mut cmd, typed) = match &session.run {
        Alone(argv) => (command(place, who, &[], argv), String::new()),
        InShell(text) => {
            let inner = command(place, who, &[], &["/bin/sh", "-c", &format!("exec {text}")]);
            let argv: Vec<String> = std::iter::once(inner.get_program())
                .chain(inner.get_args())
                .map(|a| a.to_string_lossy().into_owned())
                .collect();
            (command(Place::Native, who, &[], BASH), quoted(&argv))
        }
    };
    cmd.env("TERM", "xterm").env("PS1", "$ ").env("HISTFILE", "/dev/null").env("JOB", JOB);
    cmd.stdin(slave.try_clone()?).stdout(slave.try_clone()?).stderr(slave);
    unsafe {
        cmd.pre_exec(|| {
            libc::setsid();
            libc::ioctl(0, libc::TIOCSCTTY, 0);
            Ok(())
        });
    }
    let child = cmd.spawn()?;
    // Its own copies of the slave must go: the master shall see the end.
    drop(cmd);
    Ok((child, std::fs::File::from(master), typed))
}

fn play(session: &Session, place: Place, who: Who) -> Result<Outcome, Failed> {
    let (mut child, mut master, cmd) = start(session, place, who)?;
    let deadline = Instant::now() + LIMIT;
    let mut got = String::new();
    let (mut seen, mut steps) = (0, session.steps.iter());
    let mut step = steps.next();
    let ended = loop {
        if let Some((wait, act)) = step
            && let Some(at) = got[seen..].find(wait)
        {
            seen += at + wait.len();
            match act {
                Type(text) => master.write_all(text.replace("CMD", &cmd).as_bytes())?,
                Size(rows, cols) => {
                    let size = libc::winsize { ws_row: *rows, ws_col: *cols, ws_xpixel: 0, ws_ypixel: 0 };
                    unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &size) };
                }
            }
            step = steps.next();
            continue;
        }
        let mut p = libc::pollfd { fd: master.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut bytes = [0u8; 4096];
        if unsafe { libc::poll(&mut p, 1, 100) } == 1 {
            match master.read(&mut bytes) {
                Ok(n) if n > 0 => got += &String::from_utf8_lossy(&bytes[..n]).replace('\r', ""),
                _ => break true,
            }
        }
        if Instant::now() > deadline {
            break false;
        }
    };
    if !ended {
        let _ = child.kill();
    }
    let status = child.wait()?;
    let status = status.code().or(status.signal().map(|s| 128 + s)).filter(|_| ended);
    Ok(Outcome { got, status, waits: step.map(|(wait, _)| *wait) })
}

fn judge(session: &Session, place: Place, who: Who) -> Result<(), Failed> {
    let outcome = play(session, place, who)?;
    if outcome.status == Some(session.status) && outcome.waits.is_none() {
        return Ok(());
    }
    let tail: String = outcome.got.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
    Err(format!("status {:?}, waits for {:?}; got ...{tail:?}", outcome.status, outcome.waits).into())
}

/// The terminal goes away: the program hears of it, and nothing stays.
fn hangup(place: Place, who: Who) -> Result<(), Failed> {
    let session = Session {
        name: "hangup",
        needs: "sh",
        run: Alone(&["/bin/sh", "-c", "echo up; while :; do sleep 1; done"]),
        steps: &[],
        status: 129,
    };
    let (mut child, mut master, _) = start(&session, place, who)?;
    let mut got = Vec::new();
    while !got.ends_with(b"up\r\n") {
        let mut byte = [0u8];
        if master.read(&mut byte)? == 0 {
            break;
        }
        got.push(byte[0]);
    }
    let all = family(child.id());
    drop(master);
    let mut status = None;
    let ended = until(LIMIT, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    if !ended {
        let _ = child.kill();
        let _ = child.wait();
        return Err("goes on without its terminal".into());
    }
    let code = status.and_then(|s| s.code().or(s.signal().map(|s| 128 + s)));
    if code != Some(129) {
        return Err(format!("status {code:?}").into());
    }
    all_end(&all)
}

fn main() {
    let args = Arguments::from_args();
    let mut places = vec![(Place::Native, Who::Caller)];
    for platform in support::PLATFORMS {
        match support::unusable(platform) {
            Some(why) => eprintln!("terminal: not run on {platform}: {why}"),
            None => {
                places.push((Place::Inside(platform), Who::Caller));
                if support::is_root() {
                    places.push((Place::Inside(platform), Who::Ordinary));
                }
            }
        }
    }
    let _ = bins();
    let mut trials = Vec::new();
    for (place, who) in places {
        let suffix = if who == Who::Ordinary { "-user" } else { "" };
        let mut add = |name: &'static str, needs: &str, f: Box<dyn FnOnce() -> Result<(), Failed> + Send>| {
            let trial = Trial::test(format!("{}{suffix}/{name}", place.name()), move || {
                let text = f().map_err(|f| f.message().unwrap_or("no reason").to_string());
                if place == Place::Native {
                    return text.map_err(Failed::from);
                }
                weigh(listed(&expectations(), "terminal", name, place.name()), text).map_err(Failed::from)
            });
            trials.push(trial.with_ignored_flag(!present(needs)));
        };
        for session in SESSIONS {
            add(session.name, session.needs, Box::new(move || judge(session, place, who)));
        }
        add("hangup", "sh", Box::new(move || hangup(place, who)));
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
