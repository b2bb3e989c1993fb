//! Functions on nodes that mostly sleep, agreed on at two levels. "An Energy-efficient FaaS Edge
//! Computing platform over IoT Nodes: Focus on Consensus Algorithm" (PCM), sans-IO and without std.
//!
//! [Gateways](gateway) are always on. They share replicated [`Tables`]: the followers, their units, the
//! open tasks and the answers. [Followers](follower) sleep most of the time. The followers of a unit,
//! about five, run a function; the unit's orchestrator counts the votes on the result. A [client]
//! receives the answer that the gateways have decided. [`node`] has all three as one machine, for a
//! simulator.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | each task has one answer, whichever gateway sends it, and under any leader | those of [`selvedge_replica`]: ids are unique, a node that restarts has a new incarnation, of the gateways a quorum keeps its memory |
//! | a client receives an answer only when it is decided | the same |
//! | a task is decided once, however often and wherever its client asks for it | the tables remember the client ([`Limits::clients`]) and its answer, or that it is over |
//! | a unit's answer is the result of more than half of its followers, or of half with the orchestrator; or it states that the followers that it had then return no such value | fewer than half of the followers that the unit has left lie, and its orchestrator does not (erratum Q5) |
//! | only the present attempt, under its present orchestrator, ends a task (errata Q4, Q7) | |
//! | a client receives an answer together with [its voters](Voters): enough of the followers that had the task and had not failed then; each of them voted for it | the orchestrator does not lie, or [gateways count](Limits::counts_votes) |
//! | each task ends | a quorum of gateways is up, messages get through infinitely often, also between the gateways of that quorum both ways, and followers wake; no two gateways stand for manager at one moment again and again |
//! | the failure of a gateway is detected, and a failed resource manager replaced | gateways send heartbeats: each [`timeout`](gateway::Config::timeout) is above twice the longest [`heartbeat`](gateway::Config::heartbeat) of any; or a membership service reports it |
//! | all gateways form the same units; a follower has one seat | |
//! | a late message about a follower does not bring it back (erratum Q3) | it left not longer ago than [`Limits::tombstones`] others |
//! | a follower repeats its result until its orchestrator has it (erratum Q6) | [`follower::Config::repeats`] |
//! | the resource manager is where followers are reached over the fewest links, but for a review | gateways report their distances from each other |
//! | a message of a peer that follows the rules never counts as [misbehaviour](gateway::Misbehaviour), however late it arrives | ids are unique, and a node that restarts has a new incarnation |
//! | no message causes an endless chain of messages: only timers repeat a message | |
//! | memory is bounded, nothing panics | |
//!
//! *Not* promised:
//!
//! - That a function runs in one unit at a time (erratum Q4): a unit that does not answer in time may
//!   still run it while another unit has it. Functions have no state. One answer counts.
//! - That a follower runs a function once: a follower that holds few tasks ([`follower::Config::jobs`])
//!   forgets the tasks that it ran, and runs a task again that is delivered twice. One vote counts.
//! - A right answer of an orchestrator that lies, nor of later tasks with the same function while that
//!   answer is kept ([`Limits::cache`]). It has to name enough of the followers that have the task as
//!   voters; nothing but its message shows that they voted so. In a unit that has shrunk to two followers or one, the
//!   vote of the orchestrator alone decides, also where gateways count: it is half with the orchestrator.
//! - That a task with [`Answer::Unanswered`] was not run.
//!
//! # Why it is safe
//!
//! The tables are one [replicated state](selvedge_replica): its ballot is the paper's era, its version
//! the paper's index, so no two gateways have different tables with one label. An answer is an update
//! that names the attempt and the orchestrator. The first answer that is applied ends the task, and all
//! later ones change nothing. A gateway answers a client when it has applied that update. A vote is
//! counted for the attempt that it names, once for each follower that the request named; a verdict is sent
//! when the votes that are missing cannot change it, so it does not depend on the order in which they came.
//!
//! # A gateway, three followers, a client
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Driver, Effect, Input, Member, NodeId, Time};
//! use selvedge_pcm::client::{self, Client};
//! use selvedge_pcm::follower::{self, Follower};
//! use selvedge_pcm::gateway::{self, Gateway};
//! use selvedge_pcm::{Answer, DutyCycle, Function, Limits, Returned};
//! use selvedge_replica::Configuration;
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let gateways = [NodeId(1)];
//! let hub = Member::new(1, 0);
//! let first = Configuration::of([hub]);
//! let gateway = Gateway::new(hub, gateway::Config::new(), first, Limits::new())?;
//! let mut gateway = Driver::new(gateway);
//! let sensors = [11, 12, 13].map(|id| Member::new(id, 0));
//! let mut followers = sensors.map(|me| {
//!     let config = follower::Config::new(DutyCycle::always());
//!     Driver::new(Follower::new(me, config, gateways).unwrap())
//! });
//! let app = Member::new(21, 0);
//! let mut client = Driver::new(Client::new(app, client::Config::new(), gateways)?);
//!
//! // Messages in flight, effects of followers, and answers.
//! let (mut wire, mut notified, mut answers) = (Vec::new(), Vec::new(), Vec::new());
//! gateway.step(Time::ZERO, &mut rng, Input::Command(gateway::Command::Start), drop)?;
//! for (at, follower) in followers.iter_mut().enumerate() {
//!     let start = Input::Command(follower::Command::Start);
//!     follower.step(Time::ZERO, &mut rng, start, |it| notified.push((at, it)))?;
//! }
//! for second in 0..9 {
//!     let now = Time(second * 1_000_000);
//!     gateway.expire(now, &mut rng, |it| wire.push((hub, it)));
//!     for (at, follower) in followers.iter_mut().enumerate() {
//!         follower.expire(now, &mut rng, |it| notified.push((at, it)));
//!     }
//!     if second == 5 {
//!         let square = Input::Command(client::Command::Submit(Function::new(b"7 * 7")));
//!         client.step(now, &mut rng, square, |it| {
//!             if let Effect::Send { message, .. } = it {
//!                 wire.push((app, Effect::Send { to: hub, message }));
//!             }
//!         })?;
//!     }
//!     while !wire.is_empty() || !notified.is_empty() {
//!         for (at, effect) in core::mem::take(&mut notified) {
//!             match effect {
//!                 Effect::Send { to, message } => wire.push((sensors[at], Effect::Send { to, message })),
//!                 // The host has run the function at once.
//!                 Effect::Event(follower::Event::Run { task, .. }) => {
//!                     let returned = Returned::Value(b"49".iter().copied().collect());
//!                     let returned = follower::Command::Returned { task, returned };
//!                     followers[at].step(now, &mut rng, Input::Command(returned), |it| notified.push((at, it)))?;
//!                 }
//!                 _ => {}
//!             }
//!         }
//!         for (from, effect) in core::mem::take(&mut wire) {
//!             let Effect::Send { to, message } = effect else { continue };
//!             let at = sensors.iter().position(|it| it.id == to.id);
//!             if to.id == hub.id {
//!                 let input = Input::Message { from, message };
//!                 gateway.step(now, &mut rng, input, |it| wire.push((hub, it)))?;
//!             } else if let Some(at) = at {
//!                 let input = Input::Message { from, message };
//!                 followers[at].step(now, &mut rng, input, |it| notified.push((at, it)))?;
//!             } else {
//!                 let input = Input::Message { from, message };
//!                 client.step(now, &mut rng, input, |it| {
//!                     if let Effect::Event(client::Event::Answered { answer, .. }) = it {
//!                         answers.push(answer);
//!                     }
//!                 })?;
//!             }
//!         }
//!     }
//! }
//! assert_eq!(answers, [Answer::Value(b"49".iter().copied().collect())]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! | event | cost |
//! |---|---|
//! | a task | two updates of the replica; at the followers' gateways two messages for each follower of the unit, a vote and its acknowledgement for each but one, and a verdict |
//! | a follower that arrives or leaves | an update, O(log n) for n followers, and bytes that do not grow with n |
//! | forming the units again | an update of a few bytes; O(n) at each gateway |
//! | a keep-alive without news, or beyond the limit of followers | O(log n), and nothing between gateways |
//!
//! In bytes of frames between three gateways, for a function of 18 bytes and a result of 4. Most are ids:
//! all of one byte, only those of gateways, or all of ten (EUI-64).
//!
//! | event | all of one | gateways' of one | all of ten |
//! |---|---|---|---|
//! | a task, its unit at the resource manager | 304 | 394 | 718 |
//! | a task, its unit at all gateways in turn | 376 | 574 | 898 |
//! | messages of followers and the client besides | 511 | 1,204 | 1,303 |
//! | a follower that arrives or leaves, at the resource manager | 132 | 150 | 330 |
//! | a quiet second | 22 | 22 | 58 |
//!
//! If a gateway's host is a `selvedge_core::Driver`, it also moves eight bytes for each follower that is
//! behind the arriving or leaving one in the order of timers. The page of [`follower`] has the memory of a
//! follower.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `arbitrary` | arbitrary values for fuzzing |
//! | `check` | the promises as properties of the model checker, and the published rules that break them |
//! | `std` | std in `selvedge-core` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(
        dead_code,
        reason = "unit tests are built without the scenarios of `check`, which take long"
    )
)]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

#[cfg(all(feature = "check", not(test)))]
pub mod check;
pub mod client;
mod clustering;
mod duty;

pub mod follower;
mod followers;
pub mod gateway;
mod gateway_list;
mod limits;
mod message;
pub mod node;
mod poll;
mod published;
mod tables;
mod task;
mod tasks;
mod topology;
mod units;

pub use clustering::Class;
pub use duty::DutyCycle;
pub use followers::Attachment;
pub use limits::Limits;
pub use message::{KIND, Message, Refusal, Run};
#[cfg(feature = "check")]
pub use published::Published;
pub use tables::{Outcome, Tables, Update};
pub use task::{
    Answer, Assignment, Bytes, Digest, Failure, Function, Libraries, Library, Returned, TaskId,
    Voters,
};
pub use tasks::Open;
pub use topology::Hops;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
