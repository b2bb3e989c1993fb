//! Runs [`selvedge_fuzz::home_assistant`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::home_assistant(data));
