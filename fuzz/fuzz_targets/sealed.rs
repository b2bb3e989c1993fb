//! Runs [`selvedge_fuzz::sealed`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::sealed(data));
