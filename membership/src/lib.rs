//! Medley-F: the members of a mesh, known to every node, found out by pinging nearby members.
//!
//! Each node keeps a list of all members. Once a period it pings one of them, near ones more often
//! than far ones (weight 1/r^m). It asks relays when the answer does not come, suspects a member
//! that stays silent, and piggybacks news on its messages. Nodes that are seldom pinged are noticed
//! by themselves (active feedback) and by others (passive feedback). The protocol is that of the
//! thesis "Churn-tolerant leader election on weakly-consistent membership" (J. Wang, 2023),
//! chapters 3 and 4, on top of SWIM. Where the thesis is silent or its rule does not hold up,
//! `docs/errata.md` states the rule used here.
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | a crashed member is removed by every live member | no message can reach the crashed member; each live member gets messages through now and then |
//! | so it is where more crash at once than [`Config::tombstone_limit`]: a node that forgot one early asks each unlisted member that others name, and passes it on once it has answered | the same; a node does that for [`Config::tombstone_periods`] after it last forgot one early |
//! | each live member pings, or hears from, every other one once in N times `every` periods | [`Selection::BoundedMix`], no change of members meanwhile |
//! | a live member that can talk is never stuck as suspect or failed: it hears of that and refutes it | messages get through in both directions now and then |
//! | a refuted suspicion never acts, and every suspicion ends, however it was learned | timers tick (the driver's work) |
//! | a member that left stays left until it comes back in a new incarnation | its tombstone outlives the news about it: no more than [`Config::tombstone_limit`] leave within [`Config::tombstone_periods`], and the living leave room for them in [`Config::member_limit`]; how many fail does not matter |
//! | a live node finds room on the list, however many have died | fewer than [`Config::member_limit`] are live |
//! | the dead are forgotten [`Config::tombstone_periods`] after their end, however often others tell of them | nodes agree on that setting, and their periods last about as long; half as long again where a node learns of the end that late |
//! | incarnations and revisions never go back | fewer than 2^31 of them between two contacts, and the node has not forgotten the member meanwhile: its tombstone has neither ended nor given way |
//! | a restarted node is never taken for its former life | the node starts under an incarnation that it never had; a number that is too low is noticed; an equal one only while some node remembers the former life, and is asked to let the restarted node in or knows a higher revision of it |
//! | every list ends with the metadata that a live member set last, also if the member restarts under a number that it had | lists are compared ([`Config::sync_after`] is not 0), and messages get through in both directions now and then |
//! | parts that were cut off from each other, and nodes that lost every other node, find back | a seed or a remembered dead member is reachable; [`Config::reconnect_every`] is not 0 |
//! | no frame is longer than [`Config::frame_budget`] | |
//! | memory is bounded, whatever peers send; nothing panics | about 80 bytes for each of [`Config::member_limit`] members, and metadata |
//! | handling a message takes O(log N) and the number of records that are piggybacked; the first record about a member moves up to 16 bytes for each other one on the list | |
//! | one lie of a member about others changes at most [`Config::hearsay_limit`] entries of one list in a period; beyond that it can only bring back members that were suspected or failed, for as long as a suspicion lasts | the member cannot send in another's name; see [below](#what-a-member-that-lies-can-do) |
//!
//! What is *not* promised: a member that is declared failed may be alive (the network decides), and
//! two nodes' lists may differ at any moment. Protocols above must stay safe under both; they learn
//! of changes as [`Delta`](selvedge_core::Delta)s.
//!
//! # The life of a member on another's list
//!
//! ```text
//!              probe failed            asked again, still silent       time is over
//!   ┌───────┐ ───────────────> ┌─────────┐ ───────────────> ┌─────────┐ ─────────> ┌────────┐
//!   │ alive │                  │ doubted │                  │ suspect │            │ failed │
//!   └───────┘ <─────────────── └─────────┘                  └─────────┘            └────────┘
//!       ^      any sign of life   (only we know)                 │  told to all         │
//!       └────────────────────────────────────────────────────────┴───────────────────────┘
//!                          its own word, with a higher revision
//!
//!   from anywhere:  good-bye ──> left;   a newer incarnation ──> that life is over for certain
//! ```
//!
//! A member's *incarnation* is one life. It changes only when the node restarts and forgets, or
//! must give way to a life that another node remembers. Within a life only the member itself raises
//! its *revision*, to refute or to change its metadata. So a false suspicion does not change the
//! member's identity.
//!
//! # What a member that lies can do
//!
//! Records are not signed, so a member can say anything of others. What a member says of itself is
//! believed; what it says of others is believed only within bounds. L is [`Config::hearsay_limit`],
//! by default 8, and counts for each sender, receiver and period; a receiver believes 16 senders a
//! period.
//!
//! | lie | what becomes of it |
//! |---|---|
//! | that members have left | two are believed (half of L each). Each of these members goes on in another life as soon as it hears of the lie, once a period |
//! | that members are in a later life | refused where the member is listed as live: the member is asked. A lie told to the member itself moves it to another life, once a period and by 2^30 numbers at most; by more than 2^20 only when the last such move has had the time of a suspicion to reach all, so that all can follow |
//! | a life, or a revision, that is 2^31 ahead, so that neither is later | the member gives way to it as to a later one, as soon as it hears of it |
//! | a revision more than 2^20 ahead | refused by all but the member itself, which goes on in another life |
//! | members that do not exist | L are believed, found silent, and forgotten like the dead. They fill the list up to [`Config::member_limit`], L in a period, and give way to live members as soon as they are found silent |
//! | another's metadata | L are believed, until the member hears of it and goes on in another life with its own metadata |
//! | that members are suspected, or failed | L are believed, until the members refute |
//! | that failed members have left | L are believed; each of these members that lives goes on in another life as soon as it hears of the lie |
//! | that suspected or failed members live | believed, until they are found silent; a live member that is told with wrong metadata goes on in another life. If this lie were counted, halves of a mesh of 200 that took each other for failed would find together in 20 periods, and not in 6 |
//! | to another protocol, that a node is to be waited for | that node is asked after ([`Command::Inquire`]) and listed in doubt, L in a period, until it is found silent |
//! | requests for the list | answered to members that are on it; any node may ask a node for its own record, and to be let in |
//!
//! What is refused is counted in [`Counters::hearsay_refused`] and [`Counters::readers_refused`].
//! Lists agree again when the lies end. The bounds cost time where many changes are true: 150 nodes
//! that join through one seed in the same second are on all lists after some 20 periods, not 10.
//!
//! A node that joins believes the list of the member that lets it in. A sender that can use
//! another's name (every holder of the key of a sealed mesh can) makes that other say anything:
//! that it left, or lives at another address. Signed records are to come.
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
//! A host has three duties: carry out effects, tick when the deadline has come, feed in what
//! arrives. Over UDP that is one loop (`examples/smallest.rs` of this crate, to copy from; the
//! feature `serde` is on):
//!
//! ```no_run
#![doc = include_str!("../examples/smallest.rs")]
//! ```
//!
//! # Features
//!
//! `serde` for messages, settings and counters (hosts need it for the wire); `std`; `arbitrary`;
//! `check` for the promises as properties of the model checker and the published rules that break
//! them.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod agreement;
mod allowances;
mod bootstrap;
#[cfg(feature = "check")]
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
