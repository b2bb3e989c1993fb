//! See `selvedge_faas::fuzz::stored`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    selvedge_faas::fuzz::stored(bytes);
});
