//! See `selvedge_mqtt::fuzz::packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    selvedge_mqtt::fuzz::packets(bytes);
});
