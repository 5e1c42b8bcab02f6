//! /proc/1: the virtual init, which is part of the sentry and has neither memory nor descriptors.

use super::super::super::pseudo::{Fixed, ino};
use super::super::{FS, text};
use crate::vfs::inode::Inode;
use std::sync::Arc;

const STATUS: &str = "Name:\tinit\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t1\nNgid:\t0\nPid:\t1\nPPid:\t0\n\
                      TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t \nNStgid:\t1\n\
                      NSpid:\t1\nNSpgid:\t1\nNSsid:\t1\nKthread:\t0\nThreads:\t1\nSigQ:\t0/0\n\
                      SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n\
                      SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\nCapInh:\t0000000000000000\n\
                      CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n\
                      CapAmb:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n";

fn stat() -> String {
    let mut out = String::from("1 (init) S 0 1 1 0 -1 4194560");
    // minflt to exit_code: 20 is its priority, 1 its number of threads.
    for field in 10..=52 {
        out.push_str(match field {
            18 => " 20",
            20 => " 1",
            38 => " 17",
            _ => " 0",
        });
    }
    out.push('\n');
    out
}

/// The directory.
pub(super) fn directory() -> Arc<dyn Inode> {
    let file = |name: &'static [u8], mode, content: String| -> (&'static [u8], Arc<dyn Inode>) {
        let make = move |_: &crate::task::Task| Ok(content.clone().into_bytes());
        (name, text(ino(&[b"init", name]), mode, (0, 0), make))
    };
    let names = |tasks: Option<Arc<dyn Inode>>| {
        let mut names = vec![
            file(b"stat", 0o444, stat()),
            file(b"status", 0o444, STATUS.into()),
            file(b"statm", 0o444, "0 0 0 0 0 0 0\n".into()),
            file(b"cmdline", 0o444, String::new()),
            file(b"environ", 0o400, String::new()),
            file(b"comm", 0o444, "init\n".into()),
            file(b"cgroup", 0o444, "0::/\n".into()),
            file(b"maps", 0o444, String::new()),
            file(b"oom_score_adj", 0o444, "0\n".into()),
            file(b"oom_score", 0o444, "0\n".into()),
            file(b"wchan", 0o444, "0".into()),
        ];
        if let Some(tasks) = tasks {
            names.push((b"task", tasks));
        }
        names
    };
    let thread: Arc<dyn Inode> =
        Arc::new(Fixed { fs: FS, ino: ino(&[b"init", b"thread"]), names: names(None) });
    let tasks = Arc::new(Fixed { fs: FS, ino: ino(&[b"init", b"task"]), names: vec![(b"1", thread)] });
    Arc::new(Fixed { fs: FS, ino: ino(&[b"init"]), names: names(Some(tasks)) })
}
