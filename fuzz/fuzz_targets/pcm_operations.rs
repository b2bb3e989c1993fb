//! Runs [`selvedge_fuzz::pcm_operations`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::pcm_operations(data));
