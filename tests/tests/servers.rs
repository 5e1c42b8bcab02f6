//! Servers with their clients, all in one sandbox: the same output and status as natively, on both platforms, as the
//! caller and as an ordinary user. The programs are in `tests/programs/`.

mod support;

use libtest_mimic::Arguments;
use std::time::Duration;
use support::{Who, contexts, present, same};

/// The ptrace platform takes its time.
const LIMIT: Duration = Duration::from_secs(180);

/// Name, program that must be there, shell text.
const SAME: &[(&str, &str, &str)] = &[
    ("redis", "redis-benchmark", include_str!("../programs/redis.sh")),
    ("nginx", "wrk", include_str!("../programs/nginx.sh")),
    ("memcached", "memcached", include_str!("../programs/memcached.sh")),
    ("pgbench", "psql", include_str!("../programs/pgbench.sh")),
    ("node_http", "node", include_str!("../programs/node_http.sh")),
    ("asyncio_echo", "python3", include_str!("../programs/asyncio_echo.sh")),
    ("java_echo", "javac", include_str!("../programs/java_echo.sh")),
    ("go_http", "go", include_str!("../programs/go_http.sh")),
];

/// The same for root alone: whoever logs in has to have a shell.
const ROOTS: &[(&str, &str, &str)] = &[("sshd", "ssh-keygen", include_str!("../programs/sshd.sh"))];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        let roots = if c.who == Who::Caller && support::is_root() { ROOTS } else { &[] };
        for (name, program, text) in SAME.iter().chain(roots) {
            let trial = c.trial("servers", name, move |c| same(c, text, LIMIT));
            trials.push(trial.with_ignored_flag(!present(program)));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
