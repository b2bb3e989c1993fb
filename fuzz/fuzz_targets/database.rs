//! Runs [`selvedge_fuzz::database`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::database(data));
