//! Programs on terminals that are made inside: the same output and status as natively, on both platforms, as the caller
//! and as an ordinary user.
//!
//! `cargo test --test interactive -- trap/` runs a part.

mod support;

use libtest_mimic::Arguments;
use std::time::Duration;
use support::{contexts, present, same};

const LIMIT: Duration = Duration::from_secs(120);

/// Name, program that must be there, shell text. Nothing printed may depend on pids or on time.
const SAME: &[(&str, &str, &str)] = &[
    (
        "script",
        "script",
        "exec script -qec 'ls /usr; stty -a; test -t 0 && test -t 1 && echo both; exit 4' /dev/null </dev/null",
    ),
    (
        "pty_spawn",
        "python3",
        r#"exec python3 -c '
import os, pty, sys
s = pty.spawn(["sh", "-c", "echo hi; stty size; tty | sed s/[0-9]*$//; exit 3"])
print(os.waitstatus_to_exitcode(s))' </dev/null"#,
    ),
    (
        "bash_job_control",
        "bash",
        r#"exec python3 -c '
import os, pty, re, select, signal, time
pid, fd = pty.fork()
if pid == 0:
    os.environ["PS1"] = "start> "
    os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
seen = b""
def until(what):
    global seen
    end = time.time() + 50
    while what not in seen:
        if not select.select([fd], [], [], max(0, end - time.time()))[0]:
            print("TIMEOUT", what, seen); os._exit(1)
        try: seen += os.read(fd, 4096)
        except OSError: break
    part, _, seen = seen.partition(what)
    print(re.sub("] [0-9]+", "] N", part.decode().replace("\r", "")), what.decode())
def say(line): os.write(fd, line.encode())
def before():
    while open(f"/proc/{os.tcgetpgrp(fd)}/comm").read() != "sleep\n": time.sleep(0.01)
until(b"start> ")
say("PS1=\"ready: \"; stty -echo; export LC_ALL=C\n"); until(b"ready: ")
until(b"ready: ")
say("sleep 100\n"); before(); say("\x1a"); until(b"Stopped"); until(b"ready: ")
say("jobs\n"); until(b"ready: ")
say("bg; jobs\n"); until(b"ready: ")
say("fg\n"); until(b"sleep 100"); before(); say("\x03"); until(b"ready: ")
say("echo status $?\n"); until(b"ready: ")
say("cat >/dev/null & until jobs | grep -q Stop; do sleep 0.01; done; jobs; kill -9 %1; while kill -0 $! 2>/dev/null; do :; done; echo gone\n"); until(b"gone")
say("exit 7\n")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))'"#,
    ),
    (
        "tmux_panes",
        "tmux",
        r#"d=$(mktemp -d); export TMUX_TMPDIR=$d HOME=$d
tmux -f /dev/null new-session -d -x 80 -y 24 "PS1='one> ' exec sh"
tmux split-window "PS1='two> ' exec sh"
until tmux capture-pane -p -t 0.0 | grep -q '^one>'; do sleep 0.05; done
until tmux capture-pane -p -t 0.1 | grep -q '^two>'; do sleep 0.05; done
tmux send-keys -t 0.0 'echo fi""rst $((6*7))' Enter
tmux send-keys -t 0.1 'stty size; cat; echo interrupted' Enter
until [ $(tmux capture-pane -p -t 0.0 | grep -c 'one>') = 2 ]; do sleep 0.05; done
until tmux capture-pane -p -t 0.1 | grep -q '^11 80'; do sleep 0.05; done
until tmux list-panes -F '#{pane_index} #{pane_current_command}' | grep -qx '1 cat'; do sleep 0.05; done
tmux send-keys -t 0.1 C-c
until [ $(tmux capture-pane -p -t 0.1 | grep -c 'two>') = 2 ]; do sleep 0.05; done
tmux resize-pane -t 0.0 -y 5
tmux send-keys -t 0.1 'until stty size | grep 18; do sleep 0.1; done' Enter
until [ $(tmux capture-pane -p -t 0.1 | grep -c 'two>') = 3 ]; do sleep 0.05; done
tmux capture-pane -p -t 0.0; tmux capture-pane -p -t 0.1
tmux list-panes -F '#{pane_index} #{pane_width} #{pane_height} #{pane_current_command}'
tmux kill-server; rm -rf $d"#,
    ),
    (
        "vim",
        "vim",
        r#"d=$(mktemp -d); cd $d; export HOME=$d TERM=vt100
(until [ -e .f.swp ]; do sleep 0.05; done; printf 'ihello from vim\033yyp:%%s/hello/bye/\r:wq\r'; while [ -e .f.swp ]; do sleep 0.05; done) | script -qc 'vim -u NONE -N f' /dev/null >/dev/null
cat f; cd /; rm -r $d"#,
    ),
    (
        "expect",
        "expect",
        r#"f=$(mktemp); cat >$f <<'X'
set timeout 50
log_user 0
spawn -noecho sh -c {read -p "name? " n; stty -echo; read -p "word? " w; stty echo; echo; echo "$n:$w"; exit 5}
expect "name? " { send "someone\r" }
expect -re {someone\r\nword\? } { send "secret\r" }
expect -re {([a-z]+:[a-z]+)\r\n} { send_user "got $expect_out(1,string)\n" }
expect eof
send_user "code [lindex [wait] 3]\n"
X
expect $f; rm $f"#,
    ),
    (
        "su",
        "su",
        "[ $(id -u) != 0 ] || script -qec \"su -s /bin/sh -c 'id -un; tty | tr -d 0-9; stty size' nobody\" /dev/null </dev/null",
    ),
    (
        "screen",
        "screen",
        r#"d=$(mktemp -d); export SCREENDIR=$d HOME=$d TERM=vt100; chmod 700 $d; cd $d
screen -c /dev/null -dmS t sh
until screen -ls | grep -q Detached; do sleep 0.1; done
screen -S t -p 0 -X stuff "$(printf 'stty size >f; test -t 1 && echo term >>f; echo end >>f\r')"
until grep -qs end f; do sleep 0.1; done
cat f; screen -S t -X quit; cd /; rm -rf $d"#,
    ),
    (
        "python_tests",
        "python3",
        r#"cd /tmp; export TERM=vt100
for t in test_pty test_ioctl test_openpty test_readline test_curses test_tty; do
    python3 -c "import test.$t" 2>/dev/null || continue
    echo "$t:"; python3 -m unittest -v test.$t 2>&1 </dev/null | grep -E ' \.\.\. (ok|FAIL|ERROR|skipped)' | sort
done"#,
    ),
    (
        "sessions",
        "setsid",
        r#"script -qec 'setsid sh -c "cat </dev/tty" 2>&1 | sed "s/.*: //"; ps -o tty= 2>/dev/null | sort -u | tr -d 0-9; tty | tr -d 0-9' /dev/null </dev/null"#,
    ),
    (
        "stty_modes",
        "stty",
        r#"script -qec 'stty rows 33 cols 101; stty size; stty raw -echo; stty -g; stty sane; stty -g; stty evenp 2>/dev/null; stty -g; stty speed' /dev/null </dev/null"#,
    ),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        for (name, program, text) in SAME {
            let trial = c.trial("interactive", name, move |c| same(c, text, LIMIT));
            trials.push(trial.with_ignored_flag(!present(program)));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
