//! Runs [`selvedge_fuzz::group_facts`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::group_facts(data));
