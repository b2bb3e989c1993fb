//! Runs [`selvedge_fuzz::home_file_yaml`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::home_file_yaml(data));
