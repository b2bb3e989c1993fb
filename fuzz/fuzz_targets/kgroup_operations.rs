//! Runs [`selvedge_fuzz::kgroup_operations`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::kgroup_operations(data));
