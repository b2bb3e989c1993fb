//! The server of a host's page: it limits which clients may read, how many at a time, and for how long.
//!
//! | promise | under which assumption |
//! |---|---|
//! | without a token, a page is at loopback addresses alone, and another name that leads there is refused | browsers send the name that they asked for |
//! | with a token, a client that does not know it receives a refusal and nothing else | the network is private, or TLS is in front |
//! | a page of another site changes nothing here | browsers send the origin of a page |
//! | at most 64 connections at a time; others wait | |
//! | the server closes a connection when a request takes 10 s to arrive, when its client reads none of the waiting bytes for 10 s, and when no byte is read or written for 30 s | |
//! | at most 16 clients listen to [`Events`]; others are refused | |
//!
//! A page is one text that loads nothing else: its policy lets a browser run only code with its nonce, and
//! connect only to the site that it came from.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

pub mod accept;
#[cfg(feature = "page")]
mod events;
#[cfg(feature = "page")]
pub mod fuzz;
#[cfg(feature = "page")]
mod guard;
#[cfg(feature = "page")]
mod page;
#[cfg(feature = "page")]
mod patience;
#[cfg(feature = "page")]
mod serve;

#[cfg(feature = "page")]
pub use self::events::{Events, Json, LISTENERS};
#[cfg(feature = "page")]
pub use self::guard::{Access, Refused, Role, Token, TokenError};
#[cfg(feature = "page")]
pub use self::page::{NoChance, Page};
#[cfg(feature = "page")]
pub use self::serve::{IDLE, Server, ServerError, converse, converse_as, guarded, guarded_with};
