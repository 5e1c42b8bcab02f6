//! Files that the rows work on, made on the host and seen from every place.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A directory that goes away with this value.
pub struct Fixture(PathBuf);

impl Fixture {
    /// Makes the files beside the bench's program, which every place can see, or among temporary files.
    pub fn make() -> io::Result<Self> {
        let name = format!("bench-fixture.{}", std::process::id());
        let beside = std::env::current_exe()?.with_file_name(&name);
        let root = match fs::create_dir(&beside) {
            Ok(()) => beside,
            Err(_) => {
                let other = std::env::temp_dir().join(&name);
                fs::create_dir(&other)?;
                other
            }
        };
        let fixture = Self(root);
        fixture.fill()?;
        Ok(fixture)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn fill(&self) -> io::Result<()> {
        let root = &self.0;
        fs::write(root.join("data"), vec![b'd'; 1 << 20])?;
        fs::write(
            root.join("hello.c"),
            "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n",
        )?;
        fs::write(root.join("fill.sql"), sql())?;
        fs::create_dir(root.join("many"))?;
        for number in 0..1000 {
            fs::write(root.join("many").join(format!("file-{number:04}")), vec![b'm'; 4096])?;
        }
        self.repository()
    }

    /// A repository of 500 files; without git its row says so.
    fn repository(&self) -> io::Result<()> {
        let repository = self.0.join("repository");
        for directory in 0..10 {
            let directory = repository.join(format!("d{directory}"));
            fs::create_dir_all(&directory)?;
            for number in 0..50 {
                fs::write(directory.join(format!("f{number}")), format!("{number}\n").repeat(100))?;
            }
        }
        for arguments in
            [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "all"], &["status", "--porcelain"]]
        {
            let _ = Command::new("git")
                .arg("-C")
                .arg(&repository)
                .args(["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"])
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
        }
        Ok(())
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 2,000 rows in one transaction, twenty transactions of one row, and a query over all.
///
/// Without waiting for the disk: natively that would be most of the time, and a sandbox with files in memory has none.
fn sql() -> String {
    use std::fmt::Write as _;
    let mut text =
        String::from("pragma synchronous=off;\ncreate table t(a integer primary key, b text);\nbegin;\n");
    for number in 0..2000 {
        let _ = writeln!(text, "insert into t values({number}, 'row {number} of many');");
    }
    text.push_str("commit;\n");
    for number in 2000..2020 {
        let _ = writeln!(text, "insert into t values({number}, 'one of few');");
    }
    text.push_str("select count(*), sum(length(b)) from t where b like '%o%';\n");
    text
}
