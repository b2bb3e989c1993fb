//! See `selvedge_hub::fuzz::plug`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| selvedge_hub::fuzz::plug(bytes));
