//! How a host speaks MQTT: a link to a broker, a broker inside of the process, names and passwords, TLS.
//!
//! | part | what it is |
//! |---|---|
//! | [`link`] | a connection to a broker, on a thread of its own, that comes up again |
//! | [`access`] | where a broker is, and with which name, password and certificates it is gone to |
//! | `broker` | a broker inside of the process (feature `broker`) |
//! | [`users`] | who may come to that one: a file |
//! | `tls` | certificates (feature `tls`: rustls with ring, which has a few files in C) |
//!
//! Nothing is said late: a link begins with an empty queue each time that it comes up.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

pub mod access;
#[cfg(feature = "broker")]
pub mod broker;
#[cfg(feature = "broker")]
mod front;
pub mod fuzz;
pub mod link;
#[cfg(all(feature = "broker", target_os = "linux"))]
mod nodelay;
#[cfg(feature = "tls")]
pub mod tls;
pub mod users;
