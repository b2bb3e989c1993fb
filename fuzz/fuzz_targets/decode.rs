//! Runs [`selvedge_fuzz::decode`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::decode(data));
