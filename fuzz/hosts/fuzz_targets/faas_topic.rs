//! See `selvedge_faas::fuzz::topic`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| selvedge_faas::fuzz::topic(bytes));
