//! Compilers, language runtimes and databases: the same output and status as natively, on both platforms, as the caller
//! and as an ordinary user. The programs are in `tests/programs/`.

mod support;

use libtest_mimic::Arguments;
use std::time::Duration;
use support::{contexts, present, same};

/// The ptrace platform takes its time.
const LIMIT: Duration = Duration::from_secs(180);
/// With LAZARET_LONG set, trees have as many files as real ones.
const LONG: Duration = Duration::from_secs(1800);

/// Name, program that must be there, shell text.
const SAME: &[(&str, &str, &str)] = &[
    ("make_50_files", "make", include_str!("../programs/make.sh")),
    ("node", "node", include_str!("../programs/node.sh")),
    ("java", "javac", include_str!("../programs/java.sh")),
    ("go", "go", include_str!("../programs/go.sh")),
    ("postgres_single", "psql", include_str!("../programs/postgres_single.sh")),
    ("postgres_server", "psql", include_str!("../programs/postgres_server.sh")),
    ("git_trees", "git", include_str!("../programs/git_trees.sh")),
    ("trees", "rsync", include_str!("../programs/trees.sh")),
    ("packages", "apt-get", include_str!("../programs/packages.sh")),
    ("pip", "pip3", include_str!("../programs/pip.sh")),
    ("npm", "npm", include_str!("../programs/npm.sh")),
    ("sqlite_wal", "sqlite3", include_str!("../programs/sqlite_wal.sh")),
    ("debug", "gdb", include_str!("../programs/debug.sh")),
    ("shells", "ksh", include_str!("../programs/shells.sh")),
    ("interpreters", "ruby", include_str!("../programs/interpreters.sh")),
    ("cargo", "/usr/bin/cargo", include_str!("../programs/cargo.sh")),
];

/// The files of `git_trees` and `trees` in their long form.
const FILES: &[(&str, u32)] = &[("git_trees", 20_000), ("trees", 50_000)];

fn main() {
    let args = Arguments::from_args();
    let long = std::env::var_os("LAZARET_LONG").is_some();
    let mut trials = Vec::new();
    for c in contexts() {
        for (name, program, text) in SAME {
            let files = FILES.iter().find(|(of, _)| long && of == name);
            let trial = c.trial("programs", name, move |c| match files {
                Some((_, files)) => same(c, &format!("export N={files}\n{text}"), LONG),
                None => same(c, text, LIMIT),
            });
            trials.push(trial.with_ignored_flag(!present(program)));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
