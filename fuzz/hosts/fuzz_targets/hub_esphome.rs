//! See `selvedge_hub::fuzz::esphome`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    selvedge_hub::fuzz::esphome(bytes);
});
