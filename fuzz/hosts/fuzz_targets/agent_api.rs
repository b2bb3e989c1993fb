//! See `selvedge_hosts_fuzz::agent_api`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    selvedge_hosts_fuzz::agent_api(bytes);
});
