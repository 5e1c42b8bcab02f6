//! Compilers, language runtimes and databases: the same output and status as natively, on both platforms, as the caller
//! and as an ordinary user. The programs are in `tests/programs/`.

mod support;

use libtest_mimic::Arguments;
use std::time::Duration;
use support::{contexts, present, same};

/// The ptrace platform takes its time.
const LIMIT: Duration = Duration::from_secs(180);

/// Name, program that must be there, shell text.
const SAME: &[(&str, &str, &str)] = &[
    ("make_50_files", "make", include_str!("../programs/make.sh")),
    ("node", "node", include_str!("../programs/node.sh")),
    ("java", "javac", include_str!("../programs/java.sh")),
    ("go", "go", include_str!("../programs/go.sh")),
    ("postgres_single", "psql", include_str!("../programs/postgres_single.sh")),
    ("postgres_server", "psql", include_str!("../programs/postgres_server.sh")),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for c in contexts() {
        for (name, program, text) in SAME {
            let trial = c.trial("programs", name, move |c| same(c, text, LIMIT));
            trials.push(trial.with_ignored_flag(!present(program)));
        }
    }
    let end = libtest_mimic::run(&args, trials);
    support::clean_up();
    end.exit();
}
