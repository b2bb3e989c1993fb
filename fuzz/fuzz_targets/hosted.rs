//! Runs [`selvedge_fuzz::hosted`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::hosted(data));
