//! Medley-F: every node knows the members of its mesh, and finds failures by pinging nearby
//! members.
//!
//! Each node keeps a list of all members. Once a period it pings one of them, near ones more often
//! than far ones (weight 1/r^m). It asks relays when no answer comes, suspects a member that stays
//! silent, and piggybacks news on its messages. A node that is seldom pinged reports that itself
//! (active feedback), and other nodes notice it (passive feedback). The protocol comes from the
//! thesis "Churn-tolerant leader election on weakly-consistent membership" (J. Wang, 2023),
//! chapters 3 and 4, on top of SWIM. Where the thesis gives no rule, or its rule does not hold,
//! `docs/errata.md` states the rule used here.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | a crashed member is removed by every live member | no message can reach the crashed member; messages of each live member arrive infinitely often |
//! | this holds where more members crash at once than [`Config::tombstone_limit`]: a node that forgot a crashed member early asks each unlisted member that others name, and passes it on once it has answered | the same; a node does that for [`Config::tombstone_periods`] after it last forgot one early |
//! | each live member pings every other one, or receives a message from it, once in N times `every` periods | [`Selection::BoundedMix`], no change of members meanwhile |
//! | a live member that can communicate is never stuck as suspect or failed: it learns of that and refutes it | messages arrive in both directions infinitely often |
//! | a refuted suspicion never acts, and every suspicion ends, however it was learned | timers tick (the driver's work) |
//! | a member that left stays left until it comes back in a new incarnation | its tombstone outlives the news about it: no more than [`Config::tombstone_limit`] leave within [`Config::tombstone_periods`], and the live members leave room for them in [`Config::member_limit`]; the number of failures does not matter |
//! | a live node finds room on the list, however many have died | fewer than [`Config::member_limit`] are live |
//! | the dead are forgotten [`Config::tombstone_periods`] after their end, however often other nodes report them | nodes agree on that setting, and their periods last about as long; half as long again where a node learns of the end that late |
//! | incarnations and revisions never go back | fewer than 2^31 of them between two contacts, and the node has not forgotten the member meanwhile: its tombstone has neither ended nor given way |
//! | a restarted node is never taken for its former life | the node starts under an incarnation that it never had; a number that is too low is noticed; an equal one only while some node remembers the former life, and is asked to let the restarted node in or knows a higher revision of it |
//! | every list ends with the metadata that a live member set last, even if the member restarts under a number that it had | lists are compared ([`Config::sync_after`] is not 0), and messages arrive in both directions infinitely often |
//! | parts that were cut off from each other, and nodes that lost every other node, find the mesh again | a seed or a remembered dead member is reachable; [`Config::reconnect_every`] is not 0 |
//! | no frame is longer than [`Config::frame_budget`] | |
//! | memory is bounded, whatever peers send; no input causes a panic | about 80 bytes for each of [`Config::member_limit`] members, 12 more where the host sets distances or they are measured, and metadata |
//! | handling a message takes O(log N) and the number of records that are piggybacked; the first record about a member moves up to 16 bytes for each other one on the list | |
//! | one lie of a member about others changes at most [`Config::hearsay_limit`] entries of one list in a period; beyond that it can only bring back members that were suspected or failed, for as long as a suspicion lasts | the member cannot send in another's name; see [below](#lying-members) |
//!
//! Medley-F does *not* promise that a member that is declared failed has stopped (a slow network
//! looks the same), nor that two nodes' lists are equal at any moment. Protocols above must stay
//! safe under both; they learn of changes as [`Delta`](selvedge_core::Delta)s.
//!
//! # The life of a member on another's list
//!
//! ```text
//!              probe failed            asked again, still silent       time is over
//!   ┌───────┐ ───────────────> ┌─────────┐ ───────────────> ┌─────────┐ ─────────> ┌────────┐
//!   │ alive │                  │ doubted │                  │ suspect │            │ failed │
//!   └───────┘ <─────────────── └─────────┘                  └─────────┘            └────────┘
//!       ^    any sign of life (only this node knows)             │  sent to all          │
//!       └────────────────────────────────────────────────────────┴───────────────────────┘
//!                       its own message, with a higher revision
//!
//!   from anywhere:  good-bye ──> left;   a newer incarnation ──> that life is over for certain
//! ```
//!
//! A member's *incarnation* is one life. It changes only when the node restarts and forgets, or has
//! to give way to a life that another node remembers. Within a life only the member itself raises
//! its *revision*, to refute or to change its metadata. So a false suspicion does not change the
//! member's identity.
//!
//! # Lying members
//!
//! Records are not signed, so a member can send false records about others. A record of a member
//! about itself is believed; its records about others are believed only within bounds. L is
//! [`Config::hearsay_limit`], by default 8, and counts for each sender, receiver and period; a
//! receiver believes 16 senders a period.
//!
//! | lie | effect |
//! |---|---|
//! | that members have left | two are believed (half of L each). Each of these members goes on in another life as soon as it learns of the lie, once a period |
//! | that members are in a later life | refused where the member is listed as live: the member is asked. A lie to the member itself moves it to another life, once a period and by 2^30 numbers at most; by more than 2^20 only when the last such move has had the time of a suspicion to reach all nodes, so that all can follow |
//! | a life, or a revision, that is 2^31 ahead, so that neither is later | the member gives way to it as to a later one, as soon as it learns of it |
//! | a revision more than 2^20 ahead | refused by all but the member itself, which goes on in another life |
//! | members that do not exist | L are believed, found silent, and forgotten like the dead. They fill the list up to [`Config::member_limit`], L in a period, and give way to live members as soon as they are found silent |
//! | another member's metadata | L are believed, until the member learns of it and goes on in another life with its own metadata |
//! | that members are suspected, or failed | L are believed, until the members refute |
//! | that failed members have left | L are believed; each of these members that lives goes on in another life as soon as it learns of the lie |
//! | that suspected or failed members live | believed, until they are found silent; a live member that is reported with wrong metadata goes on in another life. If this lie were counted, halves of a mesh of 200 that took each other for failed would find together in 20 periods, and not in 6 |
//! | that it is near or far itself, where distances are measured: it acknowledges pings before they arrive, or late | near: it weighs as much as a member within the unit, which is (r/unit)^m times as much as an honest one at the round trip r. It draws one of k + 1 of the probes by weight of a node that has k members within the unit, nearly all where there is none, and there it receives that node's UNLUCKY reports in place of the nearest member. The turns of [`Selection::BoundedMix`] depend on no weight: each node still probes each member within N times `every` periods. Passive feedback does not either, and is all that is left under the other selections. Far: it is probed in turn, within the same bound. No node's distance changes but its own |
//! | to another protocol, that it has to wait for a node | that node is inquired about ([`Command::Inquire`]) and listed in doubt, L in a period, until it is found silent |
//! | requests for the list | answered to members that are on it; any node may ask a node for its own record, and to be let in |
//!
//! Refusals are counted in [`Counters::hearsay_refused`] and [`Counters::readers_refused`]. Lists
//! agree again when the lies end. The bounds cost time where many changes are true: 150 nodes that
//! join through one seed in the same second are on all lists after some 20 periods, not 10.
//!
//! A node that joins believes the list of the member that lets it in. A sender that can use the
//! name of another member (every holder of the key of a sealed mesh can) can make any claim as that
//! member: that it left, or has another address. Signed records are future work.
//!
//! # Two nodes, by hand
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Driver, Effect, Input, Member, NodeId, Time};
//! use selvedge_membership::{Command, Config, Membership};
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let mut alice = Driver::new(Membership::new(Member::new(1, 0), Config::default())?);
//! let mut bob = Driver::new(Membership::new(Member::new(2, 0), Config::default())?);
//!
//! // Alice begins a mesh; Bob asks her to let him in.
//! let begin = Input::Command(Command::Join { seeds: vec![] });
//! alice.step(Time::ZERO, &mut rng, begin, |_| ())?;
//! let mut wire = Vec::new();
//! let join = Input::Command(Command::Join { seeds: vec![NodeId(1)] });
//! bob.step(Time::ZERO, &mut rng, join, |effect| wire.push((bob_to_alice(), effect)))?;
//!
//! // Carry messages until the wire is empty.
//! while let Some(((from, to_alice), effect)) = wire.pop() {
//!     let Effect::Send { message, .. } = effect else { continue };
//!     let input = Input::Message { from, message };
//!     if to_alice {
//!         alice.step(Time::ZERO, &mut rng, input, |effect| wire.push((alice_to_bob(), effect)))?;
//!     } else {
//!         bob.step(Time::ZERO, &mut rng, input, |effect| wire.push((bob_to_alice(), effect)))?;
//!     }
//! }
//! assert_eq!((alice.machine().live(), bob.machine().live()), (2, 2));
//!
//! # fn bob_to_alice() -> (Member, bool) { (Member::new(2, 0), true) }
//! # fn alice_to_bob() -> (Member, bool) { (Member::new(1, 0), false) }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The smallest host
//!
//! A host has three duties: carry out effects, tick when the deadline has come, pass on messages.
//! Over UDP that is one loop (`examples/smallest.rs` of this crate, to copy from; the feature
//! `serde` is on):
//!
//! ```no_run
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../examples/smallest.rs")]
//! ```
//!
//! # Features
//!
//! `serde` for messages, settings and counters (hosts need it for the wire); `std`; `arbitrary`;
//! `check` for the promises as properties of the model checker, and for the published rules that
//! break them.

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

mod agreement;
mod allowances;
mod bootstrap;
#[cfg(all(feature = "check", not(test)))]
pub mod check;
mod command;
mod config;
mod counters;
mod digest;
mod event;
mod feedback;
mod gossip;
mod hearsay;
mod inquiry;
mod join;
mod list;
mod machine;
mod merge;
mod message;
mod metadata;
mod own_life;
mod presence;
mod probe;
mod probing;
mod published;
mod refutation;
mod round_robin;
mod round_trip;
mod self_monitor;
mod send;
mod state;
mod suspicion;
mod sync;
mod target;
mod view;

pub use config::{
    ActiveFeedback, Config, ConfigError, PassiveFeedback, Selection, SuspicionLength,
};
pub use counters::Counters;
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use message::{
    Age, Body, Broadcast, Broadcasts, Claim, Digest, KIND, Key, Message, Metadata, Record, Records,
};
pub use presence::Phase;
#[cfg(feature = "check")]
pub use published::Published;
pub use state::Membership;
pub use view::{MemberView, Status};

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
