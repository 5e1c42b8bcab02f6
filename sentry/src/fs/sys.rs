//! /sys: what programs ask for the number of processors, and little more.

use super::pseudo::{Fixed, Generated, Super, ino};
use crate::fail::SysResult;
use crate::vfs::Vfs;
use crate::vfs::dentry::Dentry;
use crate::vfs::inode::Inode;
use crate::vfs::mount::NewMount;
use std::sync::Arc;
use syscall_table::abi::SYSFS_MAGIC;
use syscall_table::abi::stat::makedev;

const FS: Super = Super { dev: makedev(0, 22), magic: SYSFS_MAGIC };

type Names = Vec<(&'static [u8], Arc<dyn Inode>)>;

fn dir(name: &'static [u8], names: Names) -> (&'static [u8], Arc<dyn Inode>) {
    (name, Arc::new(Fixed { fs: FS, ino: ino(&[b"sys", name]), names }))
}

fn text(name: &'static [u8], text: String) -> (&'static [u8], Arc<dyn Inode>) {
    let make = Box::new(move |_: &crate::task::Task| Ok(text.clone().into_bytes()));
    (
        name,
        Arc::new(Generated {
            fs: FS,
            ino: ino(&[b"sysfile", name]),
            mode: 0o444,
            owner: (0, 0),
            make,
            take: None,
        }),
    )
}

fn generated(name: &'static [u8], make: fn() -> Vec<u8>) -> (&'static [u8], Arc<dyn Inode>) {
    let make = Box::new(move |_: &crate::task::Task| Ok(make()));
    let (mode, owner) = (0o444, (0, 0));
    (name, Arc::new(Generated { fs: FS, ino: ino(&[b"sysfile", name]), mode, owner, make, take: None }))
}

/// Names of processors. The rest of a larger machine is only counted.
const CPU_NAMES: [&[u8]; 64] = [
    b"cpu0", b"cpu1", b"cpu2", b"cpu3", b"cpu4", b"cpu5", b"cpu6", b"cpu7", b"cpu8", b"cpu9", b"cpu10",
    b"cpu11", b"cpu12", b"cpu13", b"cpu14", b"cpu15", b"cpu16", b"cpu17", b"cpu18", b"cpu19", b"cpu20",
    b"cpu21", b"cpu22", b"cpu23", b"cpu24", b"cpu25", b"cpu26", b"cpu27", b"cpu28", b"cpu29", b"cpu30",
    b"cpu31", b"cpu32", b"cpu33", b"cpu34", b"cpu35", b"cpu36", b"cpu37", b"cpu38", b"cpu39", b"cpu40",
    b"cpu41", b"cpu42", b"cpu43", b"cpu44", b"cpu45", b"cpu46", b"cpu47", b"cpu48", b"cpu49", b"cpu50",
    b"cpu51", b"cpu52", b"cpu53", b"cpu54", b"cpu55", b"cpu56", b"cpu57", b"cpu58", b"cpu59", b"cpu60",
    b"cpu61", b"cpu62", b"cpu63",
];

/// Names of caches.
const INDEXES: [&[u8]; 8] =
    [b"index0", b"index1", b"index2", b"index3", b"index4", b"index5", b"index6", b"index7"];

/// One processor: a core of its own in the one package.
fn processor(n: usize, cpus: usize) -> (&'static [u8], Arc<dyn Inode>) {
    let (own, all) = (1u64 << (n & 63), u64::MAX >> (64 - cpus.clamp(1, 64)));
    let (one, every) =
        (format!("{n}\n"), if cpus > 1 { format!("0-{}\n", cpus - 1) } else { "0\n".to_owned() });
    let mut names = vec![
        text(b"core_id", one.clone()),
        text(b"physical_package_id", "0\n".to_owned()),
        text(b"die_id", "0\n".to_owned()),
        text(b"cluster_id", one.clone()),
    ];
    for name in [&b"thread_siblings"[..], b"core_cpus", b"cluster_cpus"] {
        names.push(text(name, format!("{own:x}\n")));
    }
    for name in [&b"thread_siblings_list"[..], b"core_cpus_list", b"cluster_cpus_list"] {
        names.push(text(name, one.clone()));
    }
    for name in [&b"core_siblings"[..], b"package_cpus", b"die_cpus"] {
        names.push(text(name, format!("{all:x}\n")));
    }
    for name in [&b"core_siblings_list"[..], b"package_cpus_list", b"die_cpus_list"] {
        names.push(text(name, every.clone()));
    }
    let caches = INDEXES.iter().zip(super::proc::caches()).map(|(name, cache)| {
        let size =
            cache.line.saturating_mul(cache.partitions).saturating_mul(cache.ways).saturating_mul(cache.sets);
        // The last level is the package's, the others a core's.
        let (list, map) = if cache.level > 2 { (&every, all) } else { (&one, own) };
        let parts = vec![
            text(b"level", format!("{}\n", cache.level)),
            text(b"type", format!("{}\n", cache.kind)),
            text(b"size", format!("{}K\n", size / 1024)),
            text(b"coherency_line_size", format!("{}\n", cache.line)),
            text(b"number_of_sets", format!("{}\n", cache.sets)),
            text(b"ways_of_associativity", format!("{}\n", cache.ways)),
            text(b"physical_line_partition", format!("{}\n", cache.partitions)),
            text(b"id", if cache.level > 2 { "0\n".to_owned() } else { one.clone() }),
            text(b"shared_cpu_list", list.clone()),
            text(b"shared_cpu_map", format!("{map:x}\n")),
        ];
        dir(name, parts)
    });
    let caches = caches.collect();
    let mut parts = vec![dir(b"cache", caches), dir(b"topology", names), dir(b"node0", Vec::new())];
    if n > 0 {
        parts.push(text(b"online", "1\n".to_owned()));
    }
    dir(CPU_NAMES.get(n).copied().unwrap_or(b"cpu0"), parts)
}

/// Mounts /sys.
pub(super) fn mount(vfs: &Vfs, cpus: usize) -> SysResult<()> {
    let range = if cpus > 1 { format!("0-{}\n", cpus.saturating_sub(1)) } else { "0\n".to_owned() };
    let mut cpu: Names = (0..cpus.min(CPU_NAMES.len())).map(|n| processor(n, cpus)).collect();
    cpu.extend([
        text(b"kernel_max", "8191\n".to_owned()),
        text(b"online", range.clone()),
        text(b"possible", range.clone()),
        text(b"present", range.clone()),
        text(b"offline", "\n".to_owned()),
        text(b"isolated", "\n".to_owned()),
        dir(b"smt", vec![text(b"active", "0\n".to_owned()), text(b"control", "notsupported\n".to_owned())]),
    ]);
    let all = u64::MAX >> (64 - cpus.clamp(1, 64));
    let node0 = vec![
        text(b"cpulist", range),
        text(b"cpumap", format!("{all:x}\n")),
        text(b"distance", "10\n".to_owned()),
        generated(b"meminfo", super::proc::memory::node),
        text(
            b"numastat",
            "numa_hit 0\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 0\nother_node 0\n"
                .to_owned(),
        ),
    ];
    let node = vec![
        text(b"online", "0\n".to_owned()),
        text(b"possible", "0\n".to_owned()),
        text(b"has_cpu", "0\n".to_owned()),
        text(b"has_memory", "0\n".to_owned()),
        text(b"has_normal_memory", "0\n".to_owned()),
        dir(b"node0", node0),
    ];
    let transparent = vec![
        text(b"enabled", "always [madvise] never\n".to_owned()),
        text(b"defrag", "always defer defer+madvise [madvise] never\n".to_owned()),
        text(b"shmem_enabled", "always within_size advise [never] deny force\n".to_owned()),
        text(b"use_zero_page", "1\n".to_owned()),
        text(b"hpage_pmd_size", "2097152\n".to_owned()),
    ];
    let root = vec![
        dir(b"block", Vec::new()),
        dir(b"bus", Vec::new()),
        dir(
            b"class",
            [&b"net"[..], b"block", b"tty", b"mem", b"misc", b"power_supply", b"thermal", b"hwmon"]
                .into_iter()
                .map(|name| dir(name, Vec::new()))
                .collect(),
        ),
        dir(b"dev", vec![dir(b"block", Vec::new()), dir(b"char", Vec::new())]),
        dir(
            b"devices",
            vec![dir(b"system", vec![dir(b"cpu", cpu), dir(b"node", node)]), dir(b"virtual", Vec::new())],
        ),
        dir(b"firmware", Vec::new()),
        dir(b"fs", vec![dir(b"cgroup", Vec::new())]),
        dir(
            b"kernel",
            vec![
                dir(b"mm", vec![dir(b"transparent_hugepage", transparent), dir(b"hugepages", Vec::new())]),
                text(b"address_bits", "64\n".to_owned()),
                text(b"cpu_byteorder", "little\n".to_owned()),
                dir(b"security", Vec::new()),
            ],
        ),
        dir(b"module", Vec::new()),
        dir(b"power", Vec::new()),
    ];
    let (_, root) = dir(b"/", root);
    let at = super::set_up::place(vfs, b"/sys", true)?;
    vfs.mount(
        at,
        NewMount {
            root: Dentry::root(root),
            fstype: "sysfs",
            source: "sysfs".to_owned(),
            read_only: true,
            options: "nosuid,nodev,noexec,relatime",
        },
    );
    Ok(())
}
