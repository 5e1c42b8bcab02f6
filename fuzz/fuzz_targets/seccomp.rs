//! Filters of system calls, as the guest gives them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sentry::seccomp::bpf::fuzz_run(data));
