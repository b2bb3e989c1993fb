//! Gateways, followers and clients as processes: the page in a browser, access, lost storage, and
//! processes with a closed standard error.
//!
//! `SELVEDGE_CHROMIUM` names the program of a Chromium that is not in the path; if
//! `SELVEDGE_CHROMIUM_REQUIRED` is set, a missing one is a failure. With `SELVEDGE_FAAS_PICTURES`
//! pictures of the page are written into that directory, in light and dark, wide and narrow.

#![cfg(feature = "broker")]
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    clippy::unwrap_used,
    reason = "a test of processes, which take time, and fails where it cannot start them"
)]

#[cfg(feature = "tls")]
mod access;
#[cfg(feature = "page")]
mod browser;
mod flags;
mod forgot;
mod hostile;
#[cfg(feature = "page")]
mod page;
mod received;
#[path = "../support/mod.rs"]
mod support;
mod unanswered;
mod unbegun;
