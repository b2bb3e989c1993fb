//! A hub for one home: routines over real devices.
//!
//! [`selvedge_safehome`] decides the order of commands at each device and undoes runs that fail; its page
//! states its promises. This crate runs it with a clock, a disk and devices.
//!
//! | part | purpose |
//! |---|---|
//! | [`mod@file`] | reads the file of a home: devices and how they are reached, routines, triggers |
//! | [`device`] | the drivers: they carry out orders at a device and report outcomes and states |
//! | [`house`] | combines the hub, the triggers and the records of runs, without I/O |
//! | [`store`] | keeps the durable state in an embedded database |
//! | [`mod@mqtt`] | takes requests from a broker and publishes to it: runs, their outcomes, states, discovery |
//! | [`http`] | a page for a browser, a JSON API and events |
//! | [`event_loop`] | the event loop: takes requests, stores the changes, then sends orders and answers |
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | the promises of `selvedge-safehome` about routines and the serial order that explains the end state | its assumptions; the [lateness](device::Device::lateness) of each device is true |
//! | no order to a device and no answer depends on a change that is not on the disk | the disk keeps data that it has reported as stored |
//! | after a stop at any moment, also by `kill -9`, each run that was answered is still known, and ends once | the same |
//! | a folder that is damaged, of a later version or of another program is reported and left unchanged | |

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

pub mod device;
pub mod event_loop;
pub mod file;
pub mod fuzz;
pub mod house;
pub mod http;
pub mod mqtt;
pub mod store;
