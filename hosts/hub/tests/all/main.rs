//! Tests of the hub's host.

#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "tests may panic, and watch the program from outside"
)]

mod attend;
mod board;
mod broker;
#[path = "../../../faas/tests/processes/browser.rs"]
mod browser;
mod discovered;
mod esphome;
mod event_loop;
mod file;
mod firmware;
mod flood;
mod fuzz;
#[path = "../../examples/shared/home_assistant.rs"]
mod home_assistant;
mod hostile;
mod house;
#[path = "../../examples/shared/http.rs"]
mod http;
mod kasa;
mod matter;
mod mqtt;
mod packets;
mod page;
mod parts;
mod plug;
mod process;
mod program;
mod soak;
mod store;
mod support;
mod topics;
mod trouble;
