//! A node that sleeps most of the time, and runs functions while it is awake (PCM, Figure 2, section 4.4).
//!
//! # The host's duties
//!
//! | event | the host |
//! |---|---|
//! | [`PhaseChanged`](Event::PhaseChanged) | powers down while the follower sleeps; its clock and its timers go on, and messages and commands that arrive meanwhile wait |
//! | [`Fetch`](Event::Fetch) | gets the messages in the follower's mailbox, at this gateway, and hands them over; gives [`Unreachable`](Command::Unreachable) if it cannot, and [`Emptied`](Command::Emptied) if the mailbox has lost its messages |
//! | [`Load`](Event::Load) | gets a library, from any place, and gives [`Loaded`](Command::Loaded) or [`Missing`](Command::Missing) |
//! | [`Run`](Event::Run), [`Stop`](Event::Stop) | runs a function, with its libraries, and gives the [result](Command::Returned) |
//!
//! A message for another follower goes to the gateway that this follower is at, which puts it into the
//! receiver's mailbox.
//!
//! # State
//!
//! No state survives a restart: a later life attaches itself again, and takes part in none of the tasks of
//! the former life. Within a life the memory holds [`Config::jobs`] jobs, each with a function of up to
//! [`Config::code`] bytes or a result of up to [`Config::result`] bytes. An orchestrator's job also has the
//! votes of its unit. Longer functions and results are not kept: such a function fails at once, and such a
//! vote is not counted.
//!
//! # Memory
//!
//! In bytes, on a host with pointers of 64 bits, and in units of five. On a microcontroller pointers and
//! lengths take half.
//!
//! | jobs, code, result | machine | all jobs | with all votes | at most |
//! |---|---|---|---|---|
//! | 8, 1,024, 256 (the defaults) | 256 | 10,304 | 22,784 | 23,392 |
//! | 1, 256, 32 | 256 | 1,072 | 1,512 | 2,056 |
//! | 2, 256, 32 | 256 | 1,408 | 2,288 | 2,832 |
//! | 4, 256, 32 | 256 | 2,080 | 3,840 | 4,384 |
//!
//! - *All jobs* wait, each with its function: 184 bytes, 16 for each follower of the unit, and the code.
//! - *With all votes* the follower is the orchestrator of each job, and the others have voted before it
//!   could run it: 56 bytes more for each follower of the unit, and five results, the verdict among them.
//! - *At most* is that, with one message that arrives and one message that is sent.
//!
//! So a follower with small limits fits into a microcontroller with 32 KB of RAM beside much else; with the
//! defaults it takes most of it. The host needs memory besides: buffers of the radio, timers, libraries,
//! and the running function, with up to [`Config::memory`].

mod config;
mod counters;
mod cycle;
mod event;
mod job;
mod machine;
mod state;
mod work;

pub use config::Config;
pub use counters::Counters;
pub use event::{Command, Event, Misbehaviour, Phase, Reject, Timer};
pub use state::Follower;
