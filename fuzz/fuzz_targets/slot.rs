//! The page that the guest shares with the sentry.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| platform::trap::fuzz_slot(data));
