//! A small state that a handful of nodes replicate while nodes come and go: a lock table, a
//! configuration, a map. Paxos on a versioned state, sans-IO and without std.
//!
//! A group of members holds an application's [`State`]. Any member proposes updates; they are
//! applied at all members in one order, each once. A read sees every update that was applied before
//! it. The members change by a chain of [`Configuration`]s, each decided by the one before.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | no two members apply different updates at one version; a state of version v holds the updates of the versions up to v, and nothing else | node ids are unique, and a node that restarts has a new incarnation; [`State::apply`] is deterministic; a host that stores facts stores them [before the effects behind them](selvedge_core::durable), and never restores a memory after the node began a life without it; a host that drops a replica and goes on in the same life keeps its [mark](Replica::mark) |
//! | an update is applied at most once, however often it is sent, proposed again, or relayed by several members | its proposer numbers its proposals without a gap ([`Command::Propose`] and [`Command::ProposeAll`] do) |
//! | the updates of one proposer are applied in its order | the same |
//! | a read sees every update that was applied at any member before the read was asked, in any configuration | without [`Lease`], none; with it, clocks run apart by [`Lease::drift`] at most, and go on while a host sleeps |
//! | nothing is decided by two configurations; a next one acts only when a quorum of it has installed the state, and no member of the former one gives the state up before | |
//! | applied updates survive | a quorum of each configuration keeps its memory: its members store facts, or do not restart before a configuration has named them again. A quorum with a witness needs the member that holds the state and accepted with it |
//! | a member that restarts without its memory has no vote until a configuration names it in its new life; it asks for that, and the leader proposes such a configuration | the member's request reaches the leader |
//! | a member that was cut off, and comes back, deposes no leader | the other members have no report that the leader failed |
//! | each proposal and read is answered: `Applied`, `Readable`, or an event with the reason why not | messages get through infinitely often; a quorum is up, and its members learn that their leader failed ([`Delta::Failed`](selvedge_core::Delta)), or wait for it in vain; a node that lost its memory, or missed a change of members, receives a message from a node that knows the present members, or membership reports such a node to it |
//! | a group that does not answer is reported: [`Event::Unavailable`] | a proposal or a read of this member waits |
//! | a leader that fails is replaced one round trip after its failure is reported | membership reports it to the most preferred member that is present, and to a quorum |
//! | members that outbid each other wait longer each time, until one is elected: among five, with the default settings, within 20 s where each message takes 800 ms, and 70 s where it takes 2 s | an election, which is three messages and two writes one after another, takes less than 64 times [`Config::resend`] |
//! | an update costs at most 2(n - 1) messages among n members; the leader reports its commit with the next update, or after [`Config::commit_delay`] | it is proposed at the leader, and no message is lost |
//! | a group without proposals and reads sends nothing | no fault for a while; the members that are not reported as failed answer, can hold the state ([`Config::state_limit`]), and one of them can lead. Else the leader sends to the others every [`Config::resend`], and members of the previous configuration send to the present ones, and to the other nodes that are present, every 64th |
//! | no answer causes the question that it answers to be sent again: timers, commands and messages of other nodes bound the number of messages a second | |
//! | memory is bounded; no frame is longer than [`Configuration::frame_budget`]; nothing panics | the state is bounded; a state that is sent whole is held a second time meanwhile |
//!
//! The crate does *not* promise:
//!
//! - That a proposal was not applied when its proposer gets no answer, or [`Event::Forgotten`], or
//!   [`Event::Abandoned`]. Propose updates whose effect can be read from the state.
//! - That an update that waits for a quorum is undone. The members try until it is applied.
//! - That [`Replica::state`] is up to date, without a [`Command::Read`].
//! - That a group goes on when no quorum of its configuration is left, or when all members that
//!   hold the state have failed: a witness holds no state.
//! - Agreement, or an answer, where peers lie. Memory and frames stay bounded, and nothing panics.
//!
//! # Why it is safe
//!
//! The protocol is Sequence Paxos (H. Kroll, P. Carbone and S. Haridi, "Leader-based Sequence
//! Paxos", 2020), with committed entries folded into the state. A member promises a ballot, and
//! then accepts under no lower one; both are facts. A leader has the promises of a quorum, and
//! adopts the entries of the member with the highest (ballot, version) among them. Any quorum that
//! accepted an entry shares a member with that quorum, so the leader adopts every entry that may be
//! committed, and the members accept it again under the leader's own ballot. A member takes a
//! ballot over with all entries that its leader adopted, in one message: the entries in flight fit
//! into a frame. So "(ballot, version)" identifies the log. Committed entries are final, and are
//! sent and taken under any ballot. The entry that names the next configuration is the last one of
//! its own: its quorum has sealed it, so the log of every later leader of that configuration ends
//! with it. Such a leader answers no read, for the next configurations may have decided more.
//!
//! All entries that are accepted under one ballot are part of one sequence: the entries that its
//! leader adopted, and the entries that it appended since. A leader changes no entry of it. So two
//! members that accepted under one ballot hold the same entries as far as both tails reach, and an
//! `Accept` names the entries before its own by their number alone. This rests on one rule: a
//! leader that learns a committed entry that it did not propose, or receives a state, which does
//! not show its entries, is deposed before it sends anything else. Its log is no longer that
//! sequence, and a follower that compared lengths would take the two for the same. The ballot of
//! the entry before would be a second name, with which the follower could refuse such an `Accept`;
//! under this rule no leader sends one. An `Accepted` may count too much: a member that learned
//! entries of a higher ballot acknowledges a lower one by the length of its log. That does no harm.
//! Where a higher ballot has decided, a member of every quorum promised that ballot and had not
//! acknowledged the lower one at this version, and never will: so the lower ballot decides nothing
//! there.
//!
//! `replica/proof` in the repository states this as an invariant, and an SMT solver proves for any
//! number of members that each step within one configuration keeps it. The checks and random
//! histories of this crate test it after each step.
//!
//! # Roles of a member
//!
//! ```text
//!                 Propose, Read, Failed, Stand: the most preferred at once, others later
//!  ┌──────────┐ ─────────────────────────────────────────────> ┌───────────┐ ──┐ overdue
//!  │ follower │                                                 │ candidate │   │
//!  └──────────┘ <───────────────────────────────────────────── └───────────┘ <─┘
//!       ^         a leader is present, or promised another         │ promises of a quorum,
//!       │                                                          v and its entries
//!       │                 higher ballot, next configuration    ┌────────┐
//!       └───────────────────────────────────────────────────── │ leader │
//!                                                               └────────┘
//! ```
//!
//! # Three members, by hand
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Driver, Effect, Input, Member, Time};
//! use selvedge_replica::{Command, Config, Configuration, Event, Replica, State};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
//! struct Counter(u64);
//!
//! impl State for Counter {
//!     type Update = u64;
//!     type Outcome = u64;
//!     fn apply(&mut self, add: &u64) -> u64 {
//!         self.0 = self.0.saturating_add(*add);
//!         self.0
//!     }
//! }
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let members = [1, 2, 3].map(|id| Member::new(id, 0));
//! let first = Configuration::of(members);
//! let mut nodes = members.map(|me| {
//!     let node = Replica::new(me, Config::new(), first.clone(), Counter::default());
//!     Driver::new(node.unwrap())
//! });
//!
//! // Node 3 proposes. It finds a leader first.
//! let (mut wire, mut applied) = (Vec::new(), Vec::new());
//! let propose = Input::Command(Command::Propose(7));
//! nodes[2].step(Time::ZERO, &mut rng, propose, |it| wire.push((2, it)))?;
//! while let Some((sender, effect)) = wire.pop() {
//!     match effect {
//!         Effect::Send { to, message } => {
//!             let to = members.iter().position(|&it| it == to).unwrap();
//!             let input = Input::Message { from: members[sender], message };
//!             nodes[to].step(Time::ZERO, &mut rng, input, |it| wire.push((to, it)))?;
//!         }
//!         Effect::Event(Event::Applied { outcome, .. }) => applied.push((sender, outcome)),
//!         _ => {}
//!     }
//! }
//! // The leader, node 1, has applied it. It reports the commit with its next message, or after a while.
//! assert_eq!(applied, [(0, 7)]);
//! assert_eq!(nodes[0].machine().leader().unwrap().0, members[0].id);
//! assert_eq!(nodes[0].machine().state(), Some(&Counter(7)));
//! # Ok::<(), selvedge_replica::Reject>(())
//! ```
//!
//! # How a group begins
//!
//! All members begin with one first configuration, which names life 0 of each. That is the life in
//! which counting begins, and it comes before all others: a configuration can name any other life
//! of the node behind it, also where numbers wrap.
//!
//! | this node | constructor |
//! |---|---|
//! | founds the group; lives are counted from 0 and stored | [`Replica::new`] |
//! | founds the group; lives come from a clock, so no node knows the lives of the others before it receives a message from them | [`Replica::founder`]: it votes under the name of life 0 in any life. A node founds a group once; no life from a clock is 0 ([`Incarnation::from_clock`](selvedge_core::Incarnation::from_clock)) |
//! | begins a later life, with all facts that the lives before it stored | [`Replica::restore`], then [`fold`](selvedge_core::durable::Durable::fold) |
//! | joins a group that runs, or begins a later life without its memory | [`Replica::newcomer`]: it is a member when a configuration names it ([`Command::Configure`]). A later life may also begin with [`Replica::new`] and the first configuration: that names another life, so it gives no vote |
//! | goes on in the same life, and dropped the memory of this group | [`Replica::newcomer_behind`] its [mark](Replica::mark) |
//! | has a store that many groups share, and may be named here in a former life | [`Replica::newcomer_since`] that life |
//!
//! # The life in which a node is named
//!
//! A configuration may name a node in any life from the one in which its memory began to the
//! present one, so a leader names the life that membership reports. The node votes there: its
//! memory holds every promise and acceptance under that name. Named in a former life it has no
//! vote, and asks to be named again. Named in a later life than its own it has no vote, and asks
//! for nothing: the configuration meant another process of the node, present or future.
//!
//! A node that is no longer a member, and gave the state up, may drop the replica. It keeps its
//! [`mark`](Replica::mark), the number of the last configuration that it knew, and begins again
//! with [`Replica::newcomer_behind`]. Without the mark it could learn an old configuration that
//! names it in its present life, and vote there a second time. A node that was restored since its
//! memory began uses [`Replica::newcomer_since`] with the life of [`voter`](Replica::voter): a
//! group that names it in a former life, while it is down or cut off, may need its vote to go on.
//!
//! A node that stores facts of many groups may be named in one of them before it has a fact of that
//! group to store. With [`Replica::newcomer_since`] its later lives, which have every stored fact,
//! vote under that name.
//!
//! # With and without storage
//!
//! A host that stores each [`Event::Fact`] before it carries out the effects behind it
//! ([`Barrier`](selvedge_core::durable::Barrier) does the waiting) gives a member its memory back:
//! [`Replica::restore`] from the last [stored](Replica::stored) memory, then
//! [`fold`](selvedge_core::durable::Durable::fold) for each fact since. A host that stores nothing
//! begins each life, which must be later than the one before, with [`Replica::new`] and the first
//! configuration, or as a newcomer: the group names it in its new life.
//!
//! # Cost
//!
//! | action | cost |
//! |---|---|
//! | an update | 2(n - 1) messages, one round trip to a quorum from the leader; O(n^2) comparisons of numbers at the leader |
//! | updates that are [proposed together](Command::ProposeAll) | the cost of one update, for as many as fit into a frame |
//! | a leader | 2(n - 1) messages for promises, and as many for the first acknowledgement |
//! | a read | a round of 2(n - 1) messages, shared by all reads that wait; none with a lease that is held |
//! | entries in flight at once | as many as fit into one frame |
//!
//! In steady state the step for an update allocates nothing, where the update and the state allocate
//! nothing themselves.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `arbitrary` | arbitrary values for fuzzing |
//! | `check` | the promises as properties of the model checker, and the published rules that break them |
//! | `std` | std in `selvedge-core` |
//!
//! `serde` is no optional feature: the crate encodes a state that is sent whole.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod acceptor;
mod candidacy;
mod catch_up;
mod change;
#[cfg(feature = "check")]
pub mod check;
mod config;
mod configuration;
mod counters;
mod durable;
mod election;
mod encoding;
mod entry;
mod event;
mod fact;
mod follower;
mod group;
mod lead;
mod leader;
mod lease;
mod machine;
mod message;
mod origin;
mod pages;
mod peers;
mod propose;
mod published;
mod read;
mod replica;
mod sessions;
mod state;
mod tail;
mod work;

use selvedge_core::{NodeId, Stamp};

pub use config::Config;
pub use configuration::{ConfigError, Configuration, Lease, QuorumRule, Voter};
pub use counters::Counters;
pub use entry::{Entries, Entry, Proposal};
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use fact::{Damage, Fact, Snapshot, Stored};
pub use message::{Body, KIND, Message, SnapshotId, Wants};
#[cfg(feature = "check")]
pub use published::Published;
pub use replica::Replica;
pub use state::State;

/// The number of updates and configurations that were decided up to a state.
pub type Version = u64;

/// The order of leaders: a number, and the node that took it. Each configuration begins at 0 again.
pub type Ballot = Stamp<NodeId>;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
