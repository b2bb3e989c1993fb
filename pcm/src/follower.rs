//! A node that mostly sleeps, and runs functions while it does not (PCM, Figure 2, section 4.4).
//!
//! # What the host does
//!
//! | event | the host |
//! |---|---|
//! | [`Phase`](Event::Phase) | powers down while the follower sleeps; its clock and its timers go on, and what comes meanwhile, commands included, waits |
//! | [`Fetch`](Event::Fetch) | gets what lies in the follower's mailbox, at this gateway, and hands it over; says [`Unreachable`](Command::Unreachable) where it cannot |
//! | [`Load`](Event::Load) | gets a library, from wherever it is, and says [`Loaded`](Command::Loaded) or [`Missing`](Command::Missing) |
//! | [`Run`](Event::Run), [`Stop`](Event::Stop) | runs a function, with what it needs, and says what it [returned](Command::Returned) |
//!
//! A message for another follower goes to the gateway that this one is at, which puts it into the
//! other one's mailbox.
//!
//! # What is kept
//!
//! Nothing over a restart: a later life attaches itself anew, and takes part in none of the tasks of
//! the former one. In this life the memory is that of [`Config::jobs`] jobs, each with a function up to
//! [`Config::code`] bytes or a result up to [`Config::result`], and of an orchestrator's with the votes
//! of its unit.

mod config;
mod cycle;
mod event;
mod job;
mod machine;
mod work;

pub use config::Config;
pub use event::{Command, Counters, Event, Misbehaviour, Phase, Reject, Timer};
pub use machine::Follower;
