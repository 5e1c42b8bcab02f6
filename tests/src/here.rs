//! Where the program runs.

/// Whether this is the inside: what the host's processor or kernel lacks is no excuse there.
pub fn inside() -> bool {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|release| release.contains("lazaret"))
}
