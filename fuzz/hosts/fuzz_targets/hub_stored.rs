//! See `selvedge_hub::fuzz::stored`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    selvedge_hub::fuzz::stored(bytes);
});
