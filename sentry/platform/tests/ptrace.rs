//! The ptrace platform.

#[macro_use]
mod guest;
mod cases;

const PLATFORM: &str = "ptrace";

/// The filter stands behind the emulation of all calls: nothing in its table goes beyond what the tracer injects.
#[test]
fn the_filter_is_narrow() {
    let calls: Vec<_> = platform::guestfilter::ptrace_rules().iter().map(|rule| rule.call).collect();
    let injected = [
        "doorbell",
        "pause",
        "mmap",
        "munmap",
        "mprotect",
        "mremap",
        "madvise",
        "membarrier",
        "mincore",
        "close",
        "getrusage",
        "exit",
        "clone",
    ];
    assert!(calls.iter().all(|call| injected.contains(call)), "{calls:?}");
    assert!(injected.iter().all(|call| calls.contains(call)), "{calls:?}");
    assert_eq!(calls.iter().filter(|call| **call == "clone").count(), 2);
    assert!(platform::guestfilter::assemble_ptrace().len() < 512);
}
