//! Executables, as the loader reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sentry::task::elf::fuzz_parse(data));
