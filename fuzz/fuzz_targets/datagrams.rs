//! Runs [`selvedge_fuzz::datagrams`] under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_fuzz::datagrams(data));
