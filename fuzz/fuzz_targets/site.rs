//! Runs [`selvedge_fuzz::site`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::site(data));
