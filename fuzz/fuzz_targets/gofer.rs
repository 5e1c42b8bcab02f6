//! The gofer's messages: what decodes must decode to the same after encoding.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gofer::fuzz_decode(data));
