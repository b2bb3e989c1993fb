//! A hub for one home: routines over real devices.
//!
//! [`selvedge_safehome`] decides which command goes to which device when, and undoes what fails; its page has
//! what it promises. This crate has it run: on a clock, a disk and devices.
//!
//! | part | what it does |
//! |---|---|
//! | [`mod@file`] | reads a home: devices and how they are reached, routines, triggers |
//! | [`device`] | stands between the hub and a device: orders in, reports out, and what counts as proof |
//! | [`house`] | puts the hub, the triggers and what became of runs together, without I/O |
//! | [`store`] | keeps what must not be forgotten in an embedded database |
//! | [`mod@mqtt`] | what the hub says and hears at a broker: runs that are asked for, what becomes of them, discovery |
//! | [`http`] | a page for a browser, a JSON API and events |
//! | [`keeper`] | the thread that takes what comes, stores what changed, and then does what is to be done |
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | what `selvedge-safehome` promises of routines and of the order that explains the end | its assumptions; a device's [lateness](device::Device::lateness) is true |
//! | nothing is sent to a device, and no answer is given, that rests on what is not on the disk | the disk does not lose what it says it has stored |
//! | after a stop at any moment, by `kill -9` too, each run that was answered is there, and ends once | the same |
//! | a folder that is damaged, of a later version or of another program is named and left as it is | |

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core,
    reason = "hosts have the standard library"
)]

pub mod device;
pub mod file;
pub mod fuzz;
pub mod house;
pub mod http;
pub mod keeper;
pub mod mqtt;
pub mod store;
