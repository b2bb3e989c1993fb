//! Churn-tolerant leader election: one leader, the lowest live node, among nodes whose membership
//! lists differ.
//!
//! An initiator asks c + f + 1 nodes which nodes they know, where a live node may be missing from c
//! lists and f nodes may be dead. When c + 1 have answered, at least one of them has named the
//! lowest live node. The initiator appoints that node, and the new leader notifies all others
//! (chapter 5 of the thesis "Churn-tolerant leader election on weakly-consistent membership" by J. Wang,
//! 2023). The thesis' algorithms break where lists omit their owner, where the lowest node is dead,
//! where initiators crash or several begin at once, and where messages of two runs meet. The rules
//! here do not. `docs/errata.md` lists the differences and their reasons.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | of all leaders that a node learns of, the leader with the largest [`Ballot`] leads, in any order of arrival; no two appointments share a ballot | ids are unique; a node that restarts has a new incarnation |
//! | an election ends with the lowest live node as leader (theorem 1): [`Protocol::Base`], `Optimistic`, `Lean` | no live node is missing from more than [`Config::missing_from`] lists *at any moment of the run, all misses counted together*; lists are built from the host's deltas; a live node that is appointed answers within [`Config::attempts`] timeouts, a live node that the initiator believes failed within one; for `Optimistic` the initiator lives |
//! | an election ends (theorem 2), also when the initiator or the node that it appoints crashes | messages between live nodes arrive infinitely often; the crash of the initiator is reported ([`Delta::Failed`](selvedge_core::Delta)) to some node that it asked, or some node gave way to it; c + 1 nodes, the initiator included, are reached from list to list; lists name no more dead nodes than can be passed over ([`Config::exclude_limit`]); with [`Config::keep_leader`], a node without a majority that reaches followers of a leader which it believes failed reaches that leader, too, or they lose it |
//! | where the leader fails, leaves, or lets its lease run out, another one is elected | [`Config::reelect`]; membership reports that end to some node, or its lease there runs out; and once that node has received news of [`Config::peer_limit`] other nodes since, no LEADER of the former leader that was sent before arrives there any more |
//! | a leader that has a majority of the nodes that it knows, the failed ones included, keeps leading when nodes come back that were cut off and elected one of themselves, or elect meanwhile: the leader takes a larger ballot | [`Config::keep_leader`], `retries` and `patience` above 0; the others' leader has had no majority for [`Config::patience`], and a third of its lease; a node of the other side that elects had no majority at some moment of its run, or followed that leader; less loss than [`Config::attempts`] repair |
//! | all nodes that are reached from the leader, from list to list, learn of the leader | [`Config::retries`] above 0, and less loss than they repair; else the host's multicast is reliable |
//! | a node that joins later learns of the leader, too | the same; the leader lists it, or no more than c lists lack it |
//! | with a lease, a leader ends by its own clock before any node that acknowledged it last gives it up by its own clock, however late the host handles its inputs | see [Clocks](#clocks); c is above 0, or none of those nodes was falsely declared failed to the leader |
//! | `Suspected` and `Failed` may be wrong, and cost elections only, as long as they count in c | |
//! | an election without faults sends 2(c + f + 1) + 1 unicasts with `Base`, and 2(c + f) + 1 with `Lean`, before the leader announces itself | enough nodes are listed; `Optimistic` sends one more for each leader that it corrects |
//! | an election whose [`Event::Concluded`] has a `miss` uses a bound c that the true value, when it was measured, exceeds with probability at most `miss` | [`Config::estimation`]; the leader drew the nodes that it asked for lists; which nodes answer does not depend on lists; no live node is missing from more than half of them |
//! | a node that receives no estimate, or none for [`Estimation::valid`], or that restarts, elects with [`Config::missing_from`] | |
//! | a node that joins has a place on the list, however many nodes joined and ended before; where dead members that no node declared failed hold all places, it has one as soon as one of them is declared failed | no more than [`Config::peer_limit`] others live, and no more than twice as many are believed alive |
//! | memory is bounded, for any messages of correct peers; nothing panics | [`Config::peer_limit`]: twice as many nodes are remembered, and two more; while lists are asked for, 32 bytes more for each node, and [`Estimation::at_once`] lists |
//!
//! *Not* promised:
//!
//! - That a leader which is replaced stops in time. Give the ballot to every resource that the
//!   leader writes to, and let the resource refuse smaller ballots.
//! - That the lowest node leads while lists change faster than an election runs.
//! - With `Preferred` and `Hybrid`: that no unhealthy node leads. A node is passed over if one of
//!   the c + 1 nodes that answer suspects it among its [`Config::suspected`] worst. Where no candidate is
//!   left, x rises and y falls, and at y = 0 no node is passed over (erratum E9).
//! - That all nodes are listed where more than [`Config::peer_limit`] others live. A node that
//!   finds no place is missing from that list, and c has to bound that. It is notified of the leader
//!   once, and gets the next place that is free. [`Counters::no_room`] counts such nodes; no event
//!   reports them.
//! - Anything against peers that lie. A peer that invents a high epoch is believed.
//!
//! # States of a node
//!
//! ```text
//!                 Elect, or the leader is lost
//!  ┌───────────┐ ─────────────────────────────> ┌───────────┐ ──┐ RESPONSE, overdue,
//!  │ follows,  │                                │ initiator │   │ would-be leader dead
//!  │ or leads  │ <───────────────────────────── └───────────┘ <─┘
//!  └───────────┘   LEADER of its appointee,           │
//!     ^     ^      or of a larger ballot              │ QUERY of a larger ballot
//!     │     └──────────────────────────────── ┌───────v───┐
//!     │            LEADER                     │ gave way  │
//!     └─ APPOINT, LEADER                      └───────────┘ initiator failed: initiator again
//! ```
//!
//! # Three nodes, by hand
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_celect::{Celect, Command, Config, Lowest};
//! use selvedge_core::{Delta, Driver, Effect, Input, Member, Sha256Sortition, Time};
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let members = [1, 2, 3].map(|id| Member::new(id, 0));
//! let by_hash = Lowest::new(Sha256Sortition, b"gateway");
//! let mut nodes = members
//!     .map(|me| Driver::new(Celect::new(me, Config::new(1, 0), by_hash.clone()).unwrap()));
//! // Node 2 does not know node 3: one list of the c = 1 that may lack it.
//! for (node, other) in [(0, 1), (0, 2), (1, 0), (2, 0), (2, 1)] {
//!     let joined = Input::Membership(Delta::Joined(members[other]));
//!     nodes[node].step(Time::ZERO, &mut rng, joined, |_| ())?;
//! }
//!
//! let mut wire = Vec::new();
//! let elect = Input::Command(Command::Elect);
//! nodes[1].step(Time::ZERO, &mut rng, elect, |it| wire.push((1, it)))?;
//! while let Some((sender, effect)) = wire.pop() {
//!     let Effect::Send { to, message } = effect else { continue };
//!     let to = members.iter().position(|&it| it == to).unwrap();
//!     let input = Input::Message { from: members[sender], message };
//!     nodes[to].step(Time::ZERO, &mut rng, input, |it| wire.push((to, it)))?;
//! }
//! let (leader, ballot) = nodes[0].machine().leader().unwrap();
//! for node in &nodes {
//!     assert_eq!(node.machine().leader(), Some((leader, ballot)));
//! }
//! assert_eq!((ballot.epoch, ballot.initiator), (1, members[1]));
//! # Ok::<(), selvedge_celect::Reject>(())
//! ```
//!
//! # Clocks
//!
//! Timers measure lengths by each node's own clock; no moments are compared. With [`Config::lease`]
//! a leader ends by itself ([`Event::Ended`]) when fewer than c others acknowledge it. If c is 0
//! it needs one acknowledgement, or none if it knows no other node. Each renewal has an expiry that is
//! armed when the renewal is *sent* and takes the lease to be [`Config::drift`] shorter. Only a
//! later renewal that enough nodes have acknowledged takes its place. So the leader ends before
//! each *node that acknowledged* emits [`Event::LeaseExpired`]. `lease.rs` has the argument. Each
//! LEADER carries the leader's own lease: the followers' settings do not matter. With c =
//! 0 a leader that knows no other node leads on alone, as the last node of a mesh has to. It cannot
//! distinguish others that died from others that were falsely declared failed to it. A node that was falsely
//! declared failed, and follows the leader, gives it up while it leads. The lease assumes
//!
//! - that clock rates differ by no more than `drift`: the time of day does not matter;
//! - that a host's clock goes on while the host sleeps, is stopped, or has no processor. Then the
//!   lease is over when the host wakes, in any order of its timers and messages. A clock that stops
//!   meanwhile violates this: of Linux's clocks `CLOCK_BOOTTIME` goes on while the
//!   machine is suspended, and `CLOCK_MONOTONIC`, which is `std::time::Instant`, does not.
//!
//! A host that writes as the leader looks at [`Celect::leads_until`] right before each write. When
//! the host wakes from sleep, that moment lies in the past, also before a timer has ticked. Others
//! may have elected another leader long before: a lease bounds how long a leader that was cut off
//! believes that it leads, and is no lock.
//!
//! # Measuring c
//!
//! With [`Config::estimation`] (feature `estimate`) the leader periodically asks some nodes for
//! their lists, computes a bound on c, and sends it to all nodes. Elections then use that bound plus
//! a margin. [`estimate`] has the parts and their derivation. Estimation is off by default. Then a
//! node sends no messages of it, except its list to any node that asks, so nodes with and without
//! it can be mixed.
//!
//! # Limits
//!
//! - The closed loop is checked with up to three nodes and three ticks. Hand-written tests, random
//!   operations, and the simulator cover the rest.
//! - Suspicions do not age: one counts for as long as the suspected life lasts.
//! - Restarts are checked with up to two nodes, and the lease as a timer only. Random histories have
//!   both. That a leader ends before its followers give it up is a matter of time, which the model
//!   checker does not have: the evidence is the argument, and random histories of hosts that sleep.
//!
//! # Features
//!
//! | feature | contents |
//! |---|---|
//! | `estimate` | the estimation of c, with floats: [`estimate`], `Config::estimation`. Without it a node still gives its list to nodes that measure, and elects with [`Config::missing_from`]. Off by default, because floats take 18 KB of a device's flash; `selvedge node --measure-c` has it |
//! | `sha256` (on by default) | ranks by SHA-256, the default of [`Lowest`]; without it give [`SipSortition`](selvedge_core::SipSortition), or an [`Attribute`] of your own |
//! | `serde` | encoding of messages, settings and counters; hosts need it for the wire |
//! | `arbitrary` | arbitrary values for fuzzing |
//! | `check` | the promises as properties of the model checker, and the published rules that break them |
//! | `std` | std in `selvedge-core` |
//!
//! On a Cortex-M4F a device's program with elections alone takes 44 KB of flash, the encoding of
//! frames and the allocator included, and 62 KB with `estimate` (`verify/no_std/flash`), ranked by
//! SipHash.

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
#[cfg(feature = "std")]
extern crate std;

mod announce;
mod answer;
mod appoint;
mod attribute;
mod ballot;
#[cfg(all(feature = "check", not(test)))]
pub mod check;
mod config;
mod counters;
#[cfg(feature = "estimate")]
pub mod estimate;
mod event;
mod follow;
mod keep;
mod leadership;
mod learn;
mod lease;
mod lists;
mod machine;
#[cfg(feature = "estimate")]
mod measure;
mod message;
mod peers;
mod pool;
mod published;
mod query;
mod response;
mod run;
mod sorted;
mod state;
#[cfg(not(feature = "estimate"))]
mod unmeasured;
#[cfg(not(feature = "estimate"))]
use unmeasured as measure;

pub use attribute::{Attribute, Lowest};
pub use ballot::Ballot;
#[cfg(feature = "estimate")]
pub use config::Estimation;
pub use config::{Config, ConfigError, Protocol, Source};
pub use counters::Counters;
#[cfg(feature = "estimate")]
pub use event::NotMeasured;
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use message::{KIND, LeaderState, Members, Message};
#[cfg(feature = "check")]
pub use published::Published;
pub use state::Celect;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
