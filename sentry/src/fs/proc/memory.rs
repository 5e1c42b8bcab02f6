//! Files of /proc about memory, in the host's form: what the sandbox has and uses, and zeros for what is the host's own affair.

use crate::task::Task;
use std::fmt::Write;

/// Lines of meminfo, in their order.
const MEMINFO: &[&str] = &[
    "MemTotal",
    "MemFree",
    "MemAvailable",
    "Buffers",
    "Cached",
    "SwapCached",
    "Active",
    "Inactive",
    "Active(anon)",
    "Inactive(anon)",
    "Active(file)",
    "Inactive(file)",
    "Unevictable",
    "Mlocked",
    "SwapTotal",
    "SwapFree",
    "Zswap",
    "Zswapped",
    "Dirty",
    "Writeback",
    "AnonPages",
    "Mapped",
    "Shmem",
    "KReclaimable",
    "Slab",
    "SReclaimable",
    "SUnreclaim",
    "KernelStack",
    "PageTables",
    "SecPageTables",
    "NFS_Unstable",
    "Bounce",
    "WritebackTmp",
    "CommitLimit",
    "Committed_AS",
    "VmallocTotal",
    "VmallocUsed",
    "VmallocChunk",
    "Percpu",
    "AnonHugePages",
    "ShmemHugePages",
    "ShmemPmdMapped",
    "FileHugePages",
    "FilePmdMapped",
    "HugePages_Total",
    "HugePages_Free",
    "HugePages_Rsvd",
    "HugePages_Surp",
    "Hugepagesize",
    "Hugetlb",
    "DirectMap4k",
    "DirectMap2M",
    "DirectMap1G",
];
/// Lines of a node's meminfo after its sizes, in their order.
const NODE: &str = "SwapCached Active Inactive Active(anon) Inactive(anon) Active(file) Inactive(file) Unevictable Mlocked Dirty \
     Writeback FilePages Mapped AnonPages Shmem KernelStack PageTables SecPageTables NFS_Unstable Bounce WritebackTmp KReclaimable Slab \
     SReclaimable SUnreclaim AnonHugePages ShmemHugePages ShmemPmdMapped FileHugePages FilePmdMapped HugePages_Total HugePages_Free \
     HugePages_Surp";
/// Names of vmstat, in their order (Linux 6.18).
const VMSTAT: &str = "nr_free_pages nr_free_pages_blocks nr_zone_inactive_anon nr_zone_active_anon nr_zone_inactive_file \
     nr_zone_active_file nr_zone_unevictable nr_zone_write_pending nr_mlock nr_zspages nr_free_cma numa_hit numa_miss \
     numa_foreign numa_interleave numa_local numa_other nr_inactive_anon nr_active_anon nr_inactive_file \
     nr_active_file nr_unevictable nr_slab_reclaimable nr_slab_unreclaimable nr_isolated_anon nr_isolated_file \
     workingset_nodes workingset_refault_anon workingset_refault_file workingset_activate_anon \
     workingset_activate_file workingset_restore_anon workingset_restore_file workingset_nodereclaim nr_anon_pages \
     nr_mapped nr_file_pages nr_dirty nr_writeback nr_shmem nr_shmem_hugepages nr_shmem_pmdmapped nr_file_hugepages \
     nr_file_pmdmapped nr_anon_transparent_hugepages nr_vmscan_write nr_vmscan_immediate_reclaim nr_dirtied \
     nr_written nr_throttled_written nr_kernel_misc_reclaimable nr_foll_pin_acquired nr_foll_pin_released \
     nr_kernel_stack nr_page_table_pages nr_sec_page_table_pages nr_iommu_pages nr_swapcached pgpromote_success \
     pgpromote_candidate pgpromote_candidate_nrl pgdemote_kswapd pgdemote_direct pgdemote_khugepaged \
     pgdemote_proactive nr_hugetlb nr_balloon_pages nr_kernel_file_pages nr_dirty_threshold \
     nr_dirty_background_threshold nr_memmap_pages nr_memmap_boot_pages pgpgin pgpgout pswpin pswpout pgalloc_dma \
     pgalloc_dma32 pgalloc_normal pgalloc_movable pgalloc_device allocstall_dma allocstall_dma32 allocstall_normal \
     allocstall_movable allocstall_device pgskip_dma pgskip_dma32 pgskip_normal pgskip_movable pgskip_device pgfree \
     pgactivate pgdeactivate pglazyfree pgfault pgmajfault pglazyfreed pgrefill pgreuse pgsteal_kswapd pgsteal_direct \
     pgsteal_khugepaged pgsteal_proactive pgscan_kswapd pgscan_direct pgscan_khugepaged pgscan_proactive \
     pgscan_direct_throttle pgscan_anon pgscan_file pgsteal_anon pgsteal_file zone_reclaim_success \
     zone_reclaim_failed pginodesteal slabs_scanned kswapd_inodesteal kswapd_low_wmark_hit_quickly \
     kswapd_high_wmark_hit_quickly pageoutrun pgrotated drop_pagecache drop_slab oom_kill numa_pte_updates \
     numa_huge_pte_updates numa_hint_faults numa_hint_faults_local numa_pages_migrated pgmigrate_success \
     pgmigrate_fail thp_migration_success thp_migration_fail thp_migration_split compact_migrate_scanned \
     compact_free_scanned compact_isolated compact_stall compact_fail compact_success compact_daemon_wake \
     compact_daemon_migrate_scanned compact_daemon_free_scanned htlb_buddy_alloc_success htlb_buddy_alloc_fail \
     unevictable_pgs_culled unevictable_pgs_scanned unevictable_pgs_rescued unevictable_pgs_mlocked \
     unevictable_pgs_munlocked unevictable_pgs_cleared unevictable_pgs_stranded thp_fault_alloc thp_fault_fallback \
     thp_fault_fallback_charge thp_collapse_alloc thp_collapse_alloc_failed thp_file_alloc thp_file_fallback \
     thp_file_fallback_charge thp_file_mapped thp_split_page thp_split_page_failed thp_deferred_split_page \
     thp_underused_split_page thp_split_pmd thp_scan_exceed_none_pte thp_scan_exceed_swap_pte \
     thp_scan_exceed_share_pte thp_split_pud thp_zero_page_alloc thp_zero_page_alloc_failed thp_swpout \
     thp_swpout_fallback balloon_inflate balloon_deflate balloon_migrate swap_ra swap_ra_hit swpin_zero swpout_zero \
     ksm_swpin_copy cow_ksm zswpin zswpout zswpwb direct_map_level2_splits direct_map_level3_splits \
     direct_map_level2_collapses direct_map_level3_collapses nr_unstable";
/// Bytes of a page.
const PAGE: u64 = 4096;
/// Larger blocks of free pages have this order.
const ORDERS: u32 = 11;

/// KiB of the sandbox's memory: all, free, and what could be had.
struct Sizes {
    total: u64,
    free: u64,
    buffers: u64,
}

fn sizes() -> Sizes {
    let (total, free) = crate::memory::total_and_free();
    let buffers = match crate::memory::limit() {
        // Other buffers are the host's.
        Some(_) => 0,
        None => {
            let info = rustix::system::sysinfo();
            (info.bufferram as u64).saturating_mul(info.mem_unit.max(1).into()) / 1024
        }
    };
    Sizes { total: total / 1024, free: free / 1024, buffers }
}

pub(super) fn meminfo() -> Vec<u8> {
    let Sizes { total, free, buffers } = sizes();
    let mut out = String::new();
    for name in MEMINFO {
        let value = match *name {
            "MemTotal" | "CommitLimit" | "DirectMap4k" => total,
            "MemFree" => free,
            "MemAvailable" => free.saturating_add(buffers),
            "Buffers" => buffers,
            "VmallocTotal" => 34_359_738_367,
            "Hugepagesize" => 2048,
            _ => 0,
        };
        let unit = if name.starts_with("HugePages_") { "" } else { " kB" };
        let _ = writeln!(out, "{:<16}{value:>8}{unit}", format!("{name}:"));
    }
    out.into_bytes()
}

/// /sys/devices/system/node/node0/meminfo.
pub(crate) fn node() -> Vec<u8> {
    let Sizes { total, free, .. } = sizes();
    let mut out = String::new();
    let _ = writeln!(out, "Node 0 MemTotal:       {total:>8} kB");
    let _ = writeln!(out, "Node 0 MemFree:        {free:>8} kB");
    let _ = writeln!(out, "Node 0 MemUsed:        {:>8} kB", total.saturating_sub(free));
    for name in NODE.split(' ') {
        let unit = if name.starts_with("HugePages_") { "" } else { " kB" };
        let _ = writeln!(out, "Node 0 {:<15}{:>8}{unit}", format!("{name}:"), 0);
    }
    out.into_bytes()
}

pub(super) fn vmstat(task: &Task) -> Vec<u8> {
    let pages = sizes().free.saturating_mul(1024) / PAGE;
    let (mut minor, mut major) = (0u64, 0u64);
    for process in task.kernel.tree.processes() {
        let usage = process.usage.lock();
        minor = minor.saturating_add(usage.children.minor_faults);
        major = major.saturating_add(usage.children.major_faults);
    }
    let mut out = String::new();
    for name in VMSTAT.split(' ') {
        let value = match name {
            "nr_free_pages" => pages,
            "pgfault" => minor.saturating_add(major),
            "pgmajfault" => major,
            _ => 0,
        };
        let _ = writeln!(out, "{name} {value}");
    }
    out.into_bytes()
}

/// Free pages by the sizes of their blocks: all of them in the largest.
pub(super) fn buddyinfo() -> Vec<u8> {
    let blocks = sizes().free.saturating_mul(1024) / (PAGE << (ORDERS - 1));
    let zeros = "      0 ".repeat((ORDERS - 1) as usize);
    format!("Node 0, zone   Normal {}{blocks:>6} \n", zeros.replace("      0 ", "     0 ")).into_bytes()
}

pub(super) fn zoneinfo(cpus: usize) -> Vec<u8> {
    let Sizes { total, free, .. } = sizes();
    let (total, free) = (total.saturating_mul(1024) / PAGE, free.saturating_mul(1024) / PAGE);
    let mut out = format!(
        "Node 0, zone   Normal\n  per-node stats\n      nr_inactive_anon 0\n      nr_active_anon 0\n      nr_inactive_file 0\n      \
         nr_active_file 0\n  pages free     {free}\n        boost    0\n        min      0\n        low      0\n        high     0\n        \
         promo    0\n        spanned  {total}\n        present  {total}\n        managed  {total}\n        cma      0\n        \
         protection: (0, 0, 0, 0, 0)\n      nr_free_pages {free}\n  pagesets\n"
    );
    for cpu in 0..cpus {
        let _ = write!(
            out,
            "    cpu: {cpu}\n              count:    0\n              high:     0\n              batch:    1\n              high_min: 0\n              \
             high_max: 0\n  vm stats threshold: 0\n"
        );
    }
    out.push_str("  node_unreclaimable:  0\n  start_pfn:           0\n");
    out.into_bytes()
}

/// No slabs: the sandbox's kernel has none of its own.
pub(super) const SLABINFO: &str = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs> <objsize> <objperslab> \
    <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>\n";
