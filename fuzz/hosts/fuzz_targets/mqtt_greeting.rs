//! See `selvedge_mqtt::fuzz::greeting`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    selvedge_mqtt::fuzz::greeting(bytes);
});
