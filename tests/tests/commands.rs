//! Whole commands: the same output and status inside as outside, and what `lazaret do` promises around them.
//!
//! `cargo test --test commands -- trap/` runs a part.

mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use std::path::Path;
use support::{
    Check, Ctx, LIMIT, Output, Place, Scratch, Who, bins, command, contexts, expect, fail, finish, present,
    run, same, shell, start,
};

/// Commands compared with their native run: name, program that must be there, shell text.
const SAME: &[(&str, &str, &str)] = &[
    ("echo", "sh", "/bin/echo hi"),
    ("ls_id_pwd", "sh", "ls -l /usr | wc -l; id; pwd; cat /etc/os-release"),
    (
        "background_jobs",
        "bash",
        "exec bash -c 'for i in 1 2 3; do (sleep 0.1; echo $i) & done | sort; wait; echo ok'",
    ),
    (
        "python",
        "python3",
        r#"exec python3 -c '
import subprocess, json, threading, hashlib
out = [subprocess.run(["sh", "-c", f"echo {i}; exit {i}"], capture_output=True) for i in range(5)]
print(json.dumps([[p.returncode, p.stdout.decode()] for p in out]))
r = [None] * 8
def f(i): r[i] = hashlib.sha256(b"x" * 100000 * i).hexdigest()
ts = [threading.Thread(target=f, args=(i,)) for i in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print(r)
p = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(len(p.communicate(b"y" * 1000000)[0]))
'"#,
    ),
    (
        "perl_fork_pipe",
        "perl",
        r#"exec perl -e '
pipe(R, W); for my $i (1..4) { if (!fork) { close R; print W "child $i\n"; exit $i } }
close W; print sort <R>; my @s; while ((my $p = wait) > 0) { push @s, $? >> 8 } print join(",", sort @s), "\n";'"#,
    ),
    (
        "busybox",
        "busybox",
        "busybox seq 3; busybox sh -c 'for i in a b; do echo $i; done | busybox wc -l'; busybox uname -s",
    ),
    ("find_sha", "find", "find /usr/share -type f | sort | sha256sum"),
    ("tar_sha", "tar", "tar cf - /usr/share/doc 2>/dev/null | sha256sum"),
    (
        "sort_million",
        "sort",
        "d=$(mktemp -d); seq 1000000 | awk '{print ($1 * 7919) % 1000003}' | sort -n -T $d -S 4M | sha256sum; rmdir $d",
    ),
    (
        "gcc_hello",
        "gcc",
        r#"d=$(mktemp -d); cd $d; printf '#include <stdio.h>\nint main(void){printf("hello %%d\\n",6*7);return 3;}\n' > h.c
gcc -O1 h.c -o a && ./a; echo $?; cd /; rm -r $d"#,
    ),
    (
        "make_project",
        "make",
        r#"d=$(mktemp -d); cd $d; for i in 1 2 3 4 5 6; do echo "int f$i(void){return $i;}" > f$i.c; done
printf 'int f1(void),f2(void),f3(void),f4(void),f5(void),f6(void);\n#include <stdio.h>\nint main(void){printf("%%d\\n",f1()+f2()+f3()+f4()+f5()+f6());return 0;}\n' > m.c
printf 'O=m.o f1.o f2.o f3.o f4.o f5.o f6.o\np: $(O)\n\t@cc -o p $(O)\n%%.o: %%.c\n\t@cc -c $<\n' > Makefile
make -s -j2 && ./p; ls | wc -l; cd /; rm -r $d"#,
    ),
    (
        "git",
        "git",
        r#"d=$(mktemp -d); cd $d; export HOME=$d GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
git init -q -b main r && cd r && echo one > a && git add a && git -c user.name=n -c user.email=e commit -qm first && echo two >> a && git diff --stat
git -c user.name=n -c user.email=e commit -qam second; git log --oneline; git status --short; cd /; rm -rf $d"#,
    ),
    (
        "sqlite",
        "sqlite3",
        r#"d=$(mktemp -d); sqlite3 $d/x.db "create table t(a integer primary key, b text); with recursive c(n) as (select 1 union all select n+1 from c where n<5000) insert into t select n, 'row'||n from c; create index i on t(b); select count(*), sum(a) from t; select * from t where b='row77'; pragma integrity_check;"; ls $d; rm -r $d"#,
    ),
    (
        "node",
        "node",
        r#"exec node -e '
const { Worker } = require("worker_threads");
setTimeout(() => console.log("timer 20"), 20); setTimeout(() => console.log("timer 60"), 60);
const w = new Worker("const {parentPort}=require(\"worker_threads\"); let s=0; for(let i=0;i<1e6;i++)s+=i; parentPort.postMessage(s)", {eval:true});
w.on("message", m => setTimeout(() => console.log("worker", m), 300));'"#,
    ),
    (
        "awk_sed_grep",
        "awk",
        "seq 1000 | awk '{s+=$1} END {print s}'; seq 10 | sed -n '3,5s/^/x/p'; grep -r root /etc/passwd /etc/group | sort",
    ),
    ("grep_recursive", "grep", "grep -rc the /usr/share/common-licenses 2>/dev/null | sort"),
    ("xz_threads", "xz", "seq 300000 | xz -T2 -1 -c | xz -dc | sha256sum"),
    ("file", "file", "file -b /bin/sh /etc/passwd /usr/share /dev/null; file -bi /etc/passwd"),
    // Its decompressors and formatters put filters on themselves.
    (
        "man",
        "man",
        "MANWIDTH=70 man -P cat true; MANWIDTH=70 man -P cat 7 no-such-page 2>&1; echo $?; man -w ls",
    ),
    (
        "seccomp_of_python",
        "python3",
        r#"exec python3 -c '
import ctypes, os, signal, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
def prog(nr, value):
    insns = [(0x20, 0, 0, 4), (0x15, 1, 0, 0xc000003e), (6, 0, 0, 0x80000000),
             (0x20, 0, 0, 0), (0x15, 0, 1, nr), (6, 0, 0, value), (6, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in insns))
    return ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(insns), ctypes.addressof(code))), code
def add(nr, value):
    p, keep = prog(nr, value)
    return libc.prctl(22, 2, p)
assert libc.prctl(38, 1, 0, 0, 0) == 0
print("mkdir", add(83, 0x50000 | 13))
try: os.mkdir("/tmp/never")
except OSError as e: print(e.strerror)
pid = os.fork()
if pid == 0:
    add(102, 0x80000000); os.getuid(); os._exit(0)
print(os.WTERMSIG(os.waitpid(pid, 0)[1]))
got = []
signal.signal(signal.SIGSYS, lambda s, f: got.append(s))
print("uname", add(63, 0x30000)); libc.uname(0); print(got)
t = threading.Thread(target=lambda: got.append(libc.mkdir(b"/tmp/never", 0))); t.start(); t.join(); print(got)
print([l.split() for l in open("/proc/self/status") if l.startswith("Seccomp")])
'"#,
    ),
    ("exit_status", "sh", "exit 42"),
    ("stderr_too", "sh", "echo out; echo err >&2; exit 3"),
    ("big_output", "sh", "seq 300000"),
    ("pipeline", "sh", "seq 100000 | head -n 3; yes | head -c 1000000 | wc -c"),
    ("here_document", "sh", "cat <<X\nhello $((6*7))\nX"),
    (
        "subshell_signals",
        "bash",
        "exec bash -c 'trap \"echo got\" USR1; kill -USR1 $$; (kill -TERM $BASHPID); echo $?; sleep 5 & kill $!; wait $!; echo $?'",
    ),
    (
        "dd_and_cmp",
        "dd",
        "d=$(mktemp -d); dd if=/dev/urandom of=$d/a bs=64k count=20 2>/dev/null; cp $d/a $d/b; cmp $d/a $d/b && stat -c %s $d/b; rm -r $d",
    ),
    (
        "links_and_modes",
        "sh",
        "d=$(mktemp -d); cd $d; umask 022; echo x > a; ln a b; ln -s a c; chmod 640 a; stat -c '%h %a %F' a b c; readlink c; mv a z; cat b; ls; cd /; rm -r $d",
    ),
    (
        "proc_reads",
        "sh",
        "tr '\\0' ' ' < /proc/self/cmdline; echo; grep -c . /proc/self/maps | grep -q . && echo maps; cat /proc/self/comm; ls -l /proc/self/fd/0 >/dev/null && echo fd",
    ),
    (
        "strace",
        "strace",
        r#"f=$(mktemp); strace -ff -o $f sh -c 'ls -d /etc; (exit 3); echo hi; kill -USR1 $$'; echo $?
sed -E 's/^[0-9]+ +//; s/0x[0-9a-f]+/P/g; s/\) *= .*//; s/(pid=)?[0-9]{1,} vars/N/; s/(pid|uid|utime|stime)=[0-9]+( \/\*.*\*\/)?/\1/g' $f.* |
  grep -E '^(execve\("/usr|exit_group|write|newfstatat\(3|--- SIGCHLD|--- SIGUSR1|\+\+\+)' | sort
strace -c -o $f sh -c 'kill -0 $$; exit 5'; echo $?; grep -cE ' (execve|kill|exit_group)$' $f
sleep 100 & p=$!; strace -o $f -p $p 2>/dev/null & s=$!; until grep -q 'TracerPid:.*[1-9]' /proc/$p/status; do :; done; { kill $p; wait $p; } 2>/dev/null; echo $?
wait $s; echo $?; tail -1 $f; rm $f $f.*"#,
    ),
    ("gdb", "gdb", GDB),
    (
        "dev_files",
        "sh",
        "head -c 4 /dev/zero | od -An -tx1; echo x > /dev/null; head -c 8 /dev/urandom | wc -c; echo e >&2",
    ),
];

/// gdb starts a program with threads, and attaches to one.
const GDB: &str = r##"d=$(mktemp -d); cd $d; cat > p.c <<'X'
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_barrier_t here, end;
static int total;
static void *work(void *arg) { pthread_barrier_wait(&here); pthread_barrier_wait(&end); return arg; }
int f(int n) {
    int local = n * 7;
    total += local;
    return local;
}
int main(int argc, char **argv) {
    pthread_t t[2];
    pthread_barrier_init(&here, 0, 3);
    pthread_barrier_init(&end, 0, 3);
    for (int i = 0; i < 2; i++) pthread_create(&t[i], 0, work, 0);
    pthread_barrier_wait(&here);
    int r = f(6);
    if (argc > 1) for (puts("up"), fflush(stdout);;) pause();
    pthread_barrier_wait(&end);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    printf("%d %d\n", r, total);
    return 0;
}
X
gcc -g -O0 -pthread p.c -o p
plain() { grep -E "$1" out | sed -E 's/0x[0-9a-f]+/P/g; s/(process|LWP) [0-9]+/N/'; }
gdb -nx -batch -ex 'set can-use-hw-watchpoints 0' -ex 'break f' -ex 'run >said' -ex next -ex next -ex 'print local' -ex bt \
  -ex 'info threads' -ex 'set var local = 5' -ex stepi -ex finish -ex 'call getppid() == getpid()' -ex 'watch r' \
  -ex 'tbreak pthread_join' -ex delete -ex 'break 20' -ex continue -ex 'print r' -ex continue ./p > out 2>&1; echo $?
cat said; plain '^(\$|#|Breakpoint|Thread . .* hit|\[Inf|Value)'; grep -cE '^[* ] [0-9] +Thread 0x' out
./p x > up & until grep -qs up up; do :; done
gdb -nx -batch -p $! -ex 'thread apply all bt 1' -ex 'print total' -ex 'print f(3)' -ex 'print total' -ex detach > out 2>&1
echo $?; plain '^(\$|Thread|\[Inf)'; { kill $!; wait $!; } 2>/dev/null; echo $?; cd /; rm -r $d"##;

fn report(s: &Scratch, o: &Output) -> Result<Value, Failed> {
    let text =
        std::fs::read_to_string(s.path("report.json")).map_err(|e| fail(&format!("no report: {e}"), o))?;
    Ok(serde_json::from_str(&text)?)
}

fn etc_write_stays_inside(c: &Ctx) -> Result<(), Failed> {
    if c.who == Who::Ordinary || !support::is_root() {
        return Ok(()); // only root writes there at all
    }
    let o = c.sh(&[], "echo new > /etc/lazaret-test && cat /etc/lazaret-test && echo 127.9.9.9 x >> /etc/hosts && grep -c 127.9.9.9 /etc/hosts");
    let leaked = Path::new("/etc/lazaret-test").exists()
        || std::fs::read_to_string("/etc/hosts")?.contains("127.9.9.9");
    if leaked {
        return Err("the host's /etc changed".into());
    }
    expect(&o, 0, "new\n1\n")
}

fn host_tmp_untouched(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    std::fs::write(s.path("keep"), "host")?;
    let o = c.sh(&["--cwd", &s.path("")], "cat keep; rm -f keep; echo in > new; cat new; ls");
    if std::fs::read_to_string(s.path("keep"))? != "host" || Path::new(&s.path("new")).exists() {
        return Err("a change inside reached the host".into());
    }
    expect(&o, 0, "hostin\nnew\n")
}

fn ssh_is_hidden(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let home = s.path("home");
    std::fs::create_dir_all(format!("{home}/.ssh"))?;
    std::fs::write(format!("{home}/.ssh/id_ed25519"), "secret-key")?;
    for p in [home.clone(), format!("{home}/.ssh"), format!("{home}/.ssh/id_ed25519")] {
        if c.who == Who::Ordinary {
            std::os::unix::fs::chown(p, Some(support::ORDINARY), Some(support::ORDINARY))?;
        }
    }
    let rep = s.path("report.json");
    let mut cmd = command(
        Place::Inside(c.platform),
        c.who,
        &["--report", &rep],
        &shell("cat $HOME/.ssh/id_ed25519; echo end"),
    );
    cmd.env("HOME", &home);
    let o = run(&mut cmd, LIMIT, b"");
    if o.out().contains("secret") || !o.out().ends_with("end\n") {
        return Err(fail("the key", &o));
    }
    let r = report(&s, &o)?;
    let hit = r["denials"].as_array().is_some_and(|d| {
        d.iter().any(|d| {
            d["path"].as_str().is_some_and(|p| p.contains(".ssh"))
                && d["rule"].as_str().is_some_and(|r| !r.is_empty())
        })
    });
    if hit { Ok(()) } else { Err(format!("no denial with path and rule: {}", r["denials"]).into()) }
}

/// Programs that try to reach somebody outside (addresses for documentation: RFC 5737, RFC 3849): each hears that the network
/// cannot be reached, and destination and program are recorded.
fn outside_is_denied(c: &Ctx) -> Result<(), Failed> {
    const TRIES: &[(&str, &str, &str)] = &[
        ("curl", "192.0.2.1:80", "curl -sm 20 http://192.0.2.1/"),
        ("ping", "198.51.100.7:", "ping -c1 -W9 198.51.100.7"),
        ("dig", "203.0.113.53:53", "dig +time=9 +tries=1 @203.0.113.53 example.org"),
        (
            "python3",
            "[2001:db8::1]:443",
            "python3 -c 'import socket; socket.create_connection((\"2001:db8::1\", 443), 20)'",
        ),
    ];
    for (program, to, text) in TRIES.iter().filter(|(program, ..)| present(program)) {
        let s = Scratch::new(c);
        let rep = s.path("report.json");
        let mut cmd = command(Place::Inside(c.platform), c.who, &["--report", &rep], &shell(text));
        let start = std::time::Instant::now();
        let o = run(&mut cmd, LIMIT, b"");
        let told = o.code() != Some(0) && start.elapsed().as_secs() < 8;
        let r = report(&s, &o)?;
        let hit = r["denials"].as_array().is_some_and(|d| {
            d.iter().any(|d| {
                let is = |key: &str, what: &str| d[key].as_str().is_some_and(|text| text.contains(what));
                is("path", to) && is("program", program) && is("rule", "network closed")
            })
        });
        if !(told && hit) {
            return Err(format!("{program}: {} {}", r["denials"], o.brief()).into());
        }
    }
    Ok(())
}

fn gap_is_counted(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let guest = bins().guest.to_str().expect("UTF-8").to_string();
    let o = c.inside(&["--report", &s.path("report.json")], &[&guest, "io_uring_three_times"]);
    expect(&o, 0, "ENOSYS ENOSYS ENOSYS\n")?;
    let r = report(&s, &o)?;
    let gaps: Vec<&Value> =
        r["gaps"].as_array().into_iter().flatten().filter(|g| g["syscall"] == "io_uring_setup").collect();
    match gaps[..] {
        [g] if g["count"] == 3 => Ok(()),
        _ => Err(format!("wanted one gap with count 3: {}", r["gaps"]).into()),
    }
}

fn killed_by_signal(c: &Ctx) -> Result<(), Failed> {
    for (name, n) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("USR1", 10)] {
        let o = c.sh(&[], &format!("kill -{name} $$; sleep 1"));
        if o.code() != Some(128 + n) {
            return Err(fail(&format!("{name} gives {}", 128 + n), &o));
        }
    }
    Ok(())
}

fn not_found_and_not_executable(c: &Ctx) -> Result<(), Failed> {
    for (argv, code) in
        [(["no-such-program-here"], 127), (["/no/such/file"], 127), (["/etc/passwd"], 126), (["/etc"], 126)]
    {
        let o = c.inside(&[], &argv);
        if o.code() != Some(code) || o.err().trim().is_empty() {
            return Err(fail(&format!("{argv:?} gives {code} and a line"), &o));
        }
    }
    Ok(())
}

fn own_failure_is_125(c: &Ctx) -> Result<(), Failed> {
    for options in [
        &["--root", "/no/such/root"][..],
        &["--cwd", "/no/such/dir"],
        &["--report", "/no/such/dir/report.json"],
    ] {
        let o = c.inside(options, &["/bin/true"]);
        if o.code() != Some(125) || o.err().lines().count() != 1 {
            return Err(fail(&format!("{options:?} gives 125 and one line"), &o));
        }
    }
    Ok(())
}

/// Shell text around a command `R`: the same outside as inside. Redirections are the shell's.
const REDIRECTED: &[(&str, &str)] = &[
    ("one_file", "$R sh -c 'echo a; echo b >&2; echo c' >f 2>&1; cat f"),
    ("appended", "echo 0 >f; $R sh -c 'echo a; echo b >&2; echo c' >>f 2>&1; cat f"),
    ("two_opens", "$R sh -c 'echo a; echo bb >&2; echo c' >f 2>f; od -c f"),
    ("read_write", "printf abcdef >f; $R sh -c 'head -c 2 >/dev/null; printf XY >&0' <>f; cat f"),
    ("position_after", "(head -c 5 >/dev/null; $R head -c 5; head -c 5) </etc/passwd"),
    ("written_by_both", "(echo a; $R echo b; echo c) >f; cat f"),
    ("opened_again", "$R sh -c 'echo a; : >/dev/stdout; echo b; echo x >>/dev/stdout' >f; od -c f"),
    ("stdin_again", "(read x; $R sh -c 'head -n 1 /dev/stdin; head -n 1') </etc/passwd"),
    ("stderr_again", "$R sh -c 'echo x >/dev/stderr' 2>&1 | cat"),
    (
        "closed",
        "$R sh -c 'cat; echo $?' <&- 2>/dev/null; $R sh -c 'echo hi || exit 7' >&- 2>/dev/null; echo $?",
    ),
    ("all_closed", "$R sh -c 'exit 3' <&- >&- 2>&-; echo $?"),
    (
        "names",
        "$R sh -c 'readlink /proc/self/fd/0; readlink /proc/self/fd/1 >&2; stat -L -c \"%F %s\" /dev/stdin' </etc/passwd >f 2>g; sed s,.*/,, f g",
    ),
    (
        "devices",
        "$R sh -c 'readlink /proc/self/fd/0; stat -L -c \"%F %t %T\" /dev/stdin' </dev/zero; $R sh -c 'echo x' >/dev/full 2>/dev/null; echo $?",
    ),
    ("no_terminal", "$R tty </dev/null; echo | $R tty; echo $?"),
    ("big_pipe", "$R head -c 10485760 /dev/zero | (sleep 1; sha256sum)"),
    (
        "whole_write",
        "$R python3 -c 'import os; os._exit(os.write(1, b\"x\" * 3000000) != 3000000)' | (sleep 0.3; wc -c)",
    ),
    ("reader_gone", "($R yes; echo $? >&2) 2>&1 >&3 3>&- | cat; ($R yes; echo $? >f) | head -n 1; cat f"),
    ("limits", "ulimit -n 345; ulimit -S -s 4096; ulimit -c 0; $R bash -c 'ulimit -a; ulimit -Ha'"),
    ("limited_files", "ulimit -S -f 8; $R sh -c 'head -c 9000 /dev/zero >g; echo $?; wc -c <g'; echo $?"),
    ("limited_memory", "ulimit -S -v 500000; $R python3 -c 'bytearray(10 ** 9)' 2>&1 | tail -n 1"),
    ("closed_by_program", "$R sh -c 'exec >&-; sleep 1; test -e f && exit 0; exit 9' | (cat; :)"),
];

fn redirected(c: &Ctx, text: &str) -> Result<(), Failed> {
    let lazaret = bins().lazaret.as_ref().and_then(|p| p.to_str()).unwrap_or_default();
    let script = format!("d=$(mktemp -d) && cd $d || exit 99; {text}; cd /; rm -r $d");
    let of = |prefix: &str| {
        let mut cmd = command(Place::Native, c.who, &[], &shell(&script));
        run(cmd.env("R", prefix), LIMIT, b"")
    };
    let native = of("");
    let inside = of(&format!("{lazaret} do --platform {} --", c.platform));
    if native.code() == inside.code() && native.out() == inside.out() {
        Ok(())
    } else {
        Err(format!(
            "native {} {:?}, inside {} {:?}",
            native.brief(),
            native.out(),
            inside.brief(),
            inside.out()
        )
        .into())
    }
}

/// A user namespace in which no other can be made stands for a host that forbids them.
fn forbidden_namespaces_are_named(c: &Ctx) -> Result<(), Failed> {
    let lazaret = bins().lazaret.as_ref().and_then(|p| p.to_str()).unwrap_or_default();
    let script = format!(
        "echo 0 >/proc/sys/user/max_user_namespaces && exec {lazaret} do --platform {} true",
        c.platform
    );
    let argv = ["/usr/bin/unshare", "-Ur", "/bin/sh", "-c", &script];
    let o = run(&mut command(Place::Native, c.who, &[], &argv), LIMIT, b"");
    let line = o.err();
    if o.code() == Some(125) && line.lines().count() == 1 && line.contains("user.max_user_namespaces") {
        Ok(())
    } else {
        Err(fail("exit 125 and a line that names the setting", &o))
    }
}

fn env_options(c: &Ctx) -> Result<(), Failed> {
    expect(&c.sh(&["--env", "A=1 2", "--env", "B="], "echo \"$A|$B|${LC_ALL}\""), 0, "1 2||C.UTF-8\n")?;
    let o = c.inside(&["--clear-env", "--env", "ONLY=x"], &["/usr/bin/env"]);
    expect(&o, 0, "ONLY=x\n")
}

fn cwd_option(c: &Ctx) -> Result<(), Failed> {
    expect(&c.sh(&["--cwd", "/usr/share"], "pwd"), 0, "/usr/share\n")?;
    expect(&c.sh(&[], "pwd"), 0, "/\n")
}

fn hide_option(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    std::fs::create_dir(s.path("d"))?;
    std::fs::write(s.path("d/f"), "hidden")?;
    let o = c.sh(&["--hide", &s.path("d")], &format!("cat {} 2>/dev/null || echo no", s.path("d/f")));
    expect(&o, 0, "no\n")
}

fn write_option(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let w = Scratch::new(c);
    let script =
        format!("echo through > {}; mkdir {}; echo kept > {}", w.path("f"), w.path("sub"), s.path("f"));
    let o = c.sh(&["--write", &w.path("")], &script);
    expect(&o, 0, "")?;
    if std::fs::read_to_string(w.path("f"))? != "through\n" || !Path::new(&w.path("sub")).is_dir() {
        return Err("the write did not reach the host".into());
    }
    if Path::new(&s.path("f")).exists() { Err("a write elsewhere reached the host".into()) } else { Ok(()) }
}

fn root_option(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    std::fs::create_dir(s.path("bin"))?;
    std::fs::copy("/bin/busybox", s.path("bin/busybox"))
        .or_else(|_| std::fs::copy("/usr/bin/busybox", s.path("bin/busybox")))?;
    let o = c.inside(&["--root", &s.path("")], &["/bin/busybox", "ls", "/bin"]);
    expect(&o, 0, "busybox\n")
}

fn trace_lines(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let f = s.path("trace");
    let o = c.inside(&["--trace", &f], &["/bin/echo", "traced"]);
    expect(&o, 0, "traced\n")?;
    let t = std::fs::read_to_string(&f).map_err(|e| fail(&format!("no trace: {e}"), &o))?;
    for part in ["write(1, \"traced\\n\", 7) = 7", "openat(AT_FDCWD", "exit_group(0)"] {
        if !t.contains(part) {
            return Err(format!("no {part:?} in {} lines of trace", t.lines().count()).into());
        }
    }
    let o = c.inside(&["--trace", "-"], &["/bin/true"]);
    if o.code() == Some(0) && (o.err() + &o.out()).contains("exit_group(0)") {
        Ok(())
    } else {
        Err(fail("trace to -", &o))
    }
}

fn stdin_pipe(c: &Ctx) -> Result<(), Failed> {
    let input = "line\n".repeat(100_000);
    let o = run(
        &mut command(Place::Inside(c.platform), c.who, &[], &["/usr/bin/wc", "-l"]),
        LIMIT,
        input.as_bytes(),
    );
    expect(&o, 0, "100000\n")
}

fn closed_stdout(c: &Ctx) -> Result<(), Failed> {
    // A reader that goes away ends the writer by SIGPIPE, through the sandbox.
    let mut child = start(&mut command(Place::Inside(c.platform), c.who, &[], &["/usr/bin/yes"]));
    drop(child.stdout.take());
    let o = finish(child, LIMIT);
    match o.code() {
        Some(141 | 1) => Ok(()),
        _ => Err(fail("yes ends", &o)),
    }
}

fn report_schema(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let o = c.sh(&["--report", &s.path("report.json")], "true; /bin/echo x; exit 5");
    expect(&o, 5, "x\n")?;
    let r = report(&s, &o)?;
    for key in
        ["schema", "command", "exit", "duration_ms", "platform", "processes", "syscalls", "denials", "gaps"]
    {
        if r.get(key).is_none() {
            return Err(format!("no {key} in the report").into());
        }
    }
    if r["platform"] != c.platform || !r["syscalls"]["write"]["count"].is_number() {
        return Err(format!("platform or syscalls: {} {}", r["platform"], r["syscalls"]["write"]).into());
    }
    // A tree: the shell and, below it, echo.
    let shell = &r["processes"][0];
    if shell["exit"]["code"] != 5 || shell["children"].as_array().map_or(0, Vec::len) != 1 {
        Err(format!("processes: {}", r["processes"]).into())
    } else {
        Ok(())
    }
}

fn host_calls(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    let path = s.path("report.json");
    let o = c.sh(&["--host-calls", "--report", &path], "/bin/echo x; kill -KILL $$");
    expect(&o, 137, "x\n")?;
    let r = report(&s, &o)?;
    let count = |process: &str, call: &str| r["host_calls"][process][call].as_u64().unwrap_or(0);
    let made = [
        ("launcher", "clone"),
        ("sentry", "recvmsg"),
        ("sentry", "process_vm_readv"),
        ("gofer", "openat2"),
        ("gofer", "recvmsg"),
        ("guest", "mmap"),
        ("guest", "clone"),
        ("guest", "close"),
    ];
    for (process, call) in made {
        if count(process, call) == 0 {
            return Err(format!("no {call} of {process}: {}", r["host_calls"][process]).into());
        }
    }
    // What the program asked for is the sentry's to answer: the host hears nothing of it.
    for call in ["write", "openat", "execve", "kill", "wait4", "exit_group", "read", "getpid", "vfork"] {
        // The guests' init opens and writes one setting of its namespace before any program runs.
        let set_up = u64::from(c.platform == "trap" && matches!(call, "openat" | "write"));
        if count("guest", call) != set_up {
            return Err(format!("{call} of a guest: {}", r["host_calls"]["guest"]).into());
        }
    }
    let o = c.sh(&["--report", &path], "true");
    expect(&o, 0, "")?;
    if report(&s, &o)?.get("host_calls").is_some() {
        Err("counted without being asked".into())
    } else {
        Ok(())
    }
}

/// Directories that are listed one after the other, and attributes of their files, cost no round trip each.
fn gofer_is_asked_for_trees(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    for i in 0..240 {
        let dir = s.path(&format!("dir-{:02}", i / 4));
        std::fs::create_dir_all(&dir)?;
        std::fs::write(format!("{dir}/file-{i}"), "x")?;
    }
    let marked = s.path("dir-07/file-29");
    let marked = std::ffi::CString::new(marked)?;
    // SAFETY: two strings, and a value of one byte.
    if unsafe { libc::setxattr(marked.as_ptr(), c"user.mark".as_ptr(), c"1".as_ptr().cast(), 1, 0) } != 0 {
        return Err(std::io::Error::last_os_error().into());
    }
    let path = s.path("report.json");
    let python =
        "import os; print([f for d, _, fs in os.walk(\".\") for f in fs if os.listxattr(d + \"/\" + f)])";
    let text = format!("cd {}; find . -name 'file-*' | wc -l; python3 -S -c '{python}'", s.path(""));
    let o = c.sh(&["--host-calls", "--report", &path], &text);
    expect(&o, 0, "240\n['file-29']\n")?;
    let r = report(&s, &o)?;
    let trips = r["host_calls"]["gofer"]["recvmsg"].as_u64().unwrap_or(0);
    // 60 directories, 240 files; a hundred are the programs' own, one for each directory is of attributes, and for an
    // ordinary user some ask for owners.
    if trips == 0 || trips > 320 { Err(format!("{trips} requests").into()) } else { Ok(()) }
}

/// Files that are read one after the other, and names that are looked for, cost no round trip each.
fn gofer_is_asked_for_many(c: &Ctx) -> Result<(), Failed> {
    let s = Scratch::new(c);
    for i in 0..200 {
        std::fs::write(s.path(&format!("file-{i:03}")), format!("{i}\n"))?;
    }
    let path = s.path("report.json");
    let text = format!(
        "cd {}; n=0; for f in file-*; do read x <$f; n=$((n+x)); done; echo $n; \
         for f in file-*; do [ -e no-$f ] && echo there; done; cat file-* | sort -n | tail -n 1",
        s.path("")
    );
    let o = c.sh(&["--host-calls", "--report", &path], &text);
    expect(&o, 0, "19900\n199\n")?;
    let r = report(&s, &o)?;
    let trips = r["host_calls"]["gofer"]["recvmsg"].as_u64().unwrap_or(0);
    // 200 files and 200 names that are not there; some 60 are the shell's and the programs' own.
    if trips == 0 || trips > 140 { Err(format!("{trips} requests").into()) } else { Ok(()) }
}

fn process_isolation(c: &Ctx) -> Result<(), Failed> {
    // The host's processes cannot be seen or signalled.
    let me = std::process::id();
    let o = c.sh(
        &[],
        &format!("kill -0 {me} 2>/dev/null && echo seen; [ -e /proc/{me}/status ] && echo proc; echo done"),
    );
    expect(&o, 0, "done\n")
}

const CHECKS: &[(&str, Check)] = &[
    ("etc_write_stays_inside", etc_write_stays_inside),
    ("host_tmp_untouched", host_tmp_untouched),
    ("ssh_is_hidden", ssh_is_hidden),
    ("outside_is_denied", outside_is_denied),
    ("gap_is_counted", gap_is_counted),
    ("killed_by_signal", killed_by_signal),
    ("not_found_and_not_executable", not_found_and_not_executable),
    ("own_failure_is_125", own_failure_is_125),
    ("forbidden_namespaces_are_named", forbidden_namespaces_are_named),
    ("env_options", env_options),
    ("cwd_option", cwd_option),
    ("hide_option", hide_option),
    ("write_option", write_option),
    ("root_option", root_option),
    ("trace_lines", trace_lines),
    ("stdin_pipe", stdin_pipe),
    ("closed_stdout", closed_stdout),
    ("report_schema", report_schema),
    ("host_calls", host_calls),
    ("gofer_is_asked_for_many", gofer_is_asked_for_many),
    ("gofer_is_asked_for_trees", gofer_is_asked_for_trees),
    ("process_isolation", process_isolation),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, program, text) in SAME {
        // Without a sandbox the native run is still checked to be worth comparing.
        let missing = !present(program);
        trials.push(
            Trial::test(format!("native/{name}"), move || {
                let o = run(&mut command(Place::Native, Who::Caller, &[], &shell(text)), LIMIT, b"");
                if o.status.is_some() && o.code() != Some(127) { Ok(()) } else { Err(fail("native run", &o)) }
            })
            .with_ignored_flag(missing),
        );
    }
    for c in contexts() {
        for (name, program, text) in SAME {
            trials.push(
                c.trial("commands", name, move |c| same(c, text, LIMIT)).with_ignored_flag(!present(program)),
            );
        }
        for (name, text) in REDIRECTED {
            trials.push(c.trial("commands", &format!("redirected_{name}"), move |c| redirected(c, text)));
        }
        for (name, check) in CHECKS {
            trials.push(c.trial("commands", name, *check));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
