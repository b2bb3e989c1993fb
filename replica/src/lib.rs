//! A small state that a handful of nodes hold together, while nodes come and go: a lock table, a
//! configuration, a map. Paxos on a versioned state, sans-IO and without std.
//!
//! A group of members holds an application's [`State`]. Any member proposes updates; they are applied
//! at all members in one order, each once. Reads see all that was applied before them. The members
//! change by a chain of [`Configuration`]s, each decided by the one before.
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | no two members apply different updates at one version; a state of version v holds the updates of the versions up to v, and nothing else | node ids are unique, and a node that restarts has a new incarnation; [`State::apply`] is deterministic; a host that stores facts stores them [before the effects behind them](selvedge_core::durable), and restores no memory without which a life began; one that drops a replica and goes on in the same life keeps its [mark](Replica::mark) |
//! | an update is applied at most once, however often it is sent, proposed again, or relayed by several members | its proposer numbers its proposals without a gap ([`Command::Propose`] and [`Command::ProposeAll`] do) |
//! | the updates of one proposer are applied in its order | the same |
//! | a read sees all that was applied at any member before it was asked, in any configuration | without [`Lease`], none; with it, clocks run apart by [`Lease::drift`] at most, and go on while a host sleeps |
//! | nothing is decided by two configurations; a next one acts only when a quorum of it has installed the state, and no member of the former one gives the state up before | |
//! | what was applied survives | of each configuration a quorum keeps its memory: it stores facts, or it does not restart before it was named anew. A quorum in which a witness stands needs the member with the state that accepted with it |
//! | a member that restarts without its memory has no vote until a configuration names it in its new life; it asks for that, and the leader does it | the leader hears of it |
//! | a member that was cut off, and comes back, deposes no leader | the others were not told that the leader failed |
//! | what is proposed and read is answered: `Applied`, `Readable`, or an event that says why not | messages get through now and then; a quorum is up, and its members hear of the failure of their leader ([`Delta::Failed`](selvedge_core::Delta)), or wait for it in vain; a node that lost its memory, or missed a change of members, hears from a node that knows of the present ones, or is told by membership that such a node is here |
//! | a group that does not answer says so: [`Event::Unavailable`] | something was asked of this member |
//! | a leader that fails is replaced one round trip after its failure is told | it is told to the most preferred member that is here, and to a quorum |
//! | an update costs at most 2(n - 1) messages among n members; what is committed is told with the next one, or after [`Config::commit_delay`] | it is proposed at the leader, and nothing is lost |
//! | a group that is asked nothing sends nothing | no fault for a while; the members that are not reported as failed answer, can hold the state ([`Config::state_limit`]), and one of them can lead. Else the leader sends to the others every [`Config::resend`], and members of the previous configuration send to the present ones, and to the other nodes that are here, every 64th |
//! | no answer causes the question that it answers to be sent again: timers, commands and messages of other nodes bound the number of messages a second | |
//! | memory is bounded; no frame is longer than [`Configuration::frame_budget`]; nothing panics | the state is bounded; a state that is sent whole is held a second time meanwhile |
//!
//! What is *not* promised:
//!
//! - That a proposal was not applied when its proposer hears nothing, or [`Event::Forgotten`], or
//!   [`Event::Abandoned`]. Propose what can be told from the state.
//! - That an update that waits for a quorum is undone. It is tried on until it is applied.
//! - That [`Replica::state`] is up to date, without a [`Command::Read`].
//! - That a group goes on when no quorum of its configuration is left, or when all members that hold
//!   the state are gone: a witness holds none.
//! - Agreement, or an answer, where peers lie. Memory and frames stay bounded, and nothing panics.
//!
//! # Why it is safe
//!
//! It is Sequence Paxos (H. Kroll, P. Carbone and S. Haridi, "Leader-based Sequence Paxos", 2020), with what is committed
//! folded into the state. A member promises a ballot, and then accepts under no lower one; both are
//! facts. A leader has the promises of a quorum, and adopts what the one with the highest (ballot,
//! version) among them holds. Any quorum that accepted an entry shares a member with that one, so
//! what may be committed is adopted, and is accepted again under the leader's own ballot. A member
//! takes a ballot over with the whole of what its leader adopted, in one message: the entries on their
//! way fit into a frame. So "(ballot, version)" says all. What is committed is final, and is given and
//! taken whatever ballots say. The entry that names the next configuration is the last one of its own:
//! its quorum has sealed it, so the log of every later leader of that configuration ends with it. Such
//! a leader answers no read, for the next configurations may have decided more.
//!
//! All entries that are accepted under one ballot are part of one sequence: the entries that its leader
//! adopted, and those that it appended since. A leader changes no entry of it. So two members that
//! accepted under one ballot hold the same entries as far as both tails reach, and an `Accept` names the entries before its own by their
//! number alone. This rests on one rule: a leader that learns a committed entry that it did not propose, or
//! receives a state, which does not show its entries, is deposed before it sends anything else. Its log
//! is no longer that sequence, and a follower that compared lengths would take the two for one. The
//! ballot of the entry before would be a second name, with which the follower could refuse such an
//! `Accept`; under this rule no leader sends one. An `Accepted` may count too much: a member that
//! learned entries of a higher ballot acknowledges a lower one by the length of its log. That does no
//! harm. Where a higher ballot has decided, a member of every quorum promised that ballot and had not
//! acknowledged the lower one at this version, and never will: so the lower ballot decides nothing there.
//!
//! `replica/proof` in the repository states this as an invariant, and an SMT solver proves for any
//! number of members that each step within one configuration keeps it. The checks and random histories
//! of this crate look at it after each step.
//!
//! # Where a member stands
//!
//! ```text
//!                 Propose, Read, Failed, Stand: the most preferred at once, others later
//!  ┌──────────┐ ─────────────────────────────────────────────> ┌───────────┐ ──┐ overdue
//!  │ follower │                                                 │ candidate │   │
//!  └──────────┘ <───────────────────────────────────────────── └───────────┘ <─┘
//!       ^         a leader is there, or promised another           │ promises of a quorum,
//!       │                                                          v and what it holds
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
//! // Node 3 is asked. It finds a leader first.
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
//! // The leader, node 1, has applied it. It tells the others with what comes next, or after a while.
//! assert_eq!(applied, [(0, 7)]);
//! assert_eq!(nodes[0].machine().leader().unwrap().0, members[0].id);
//! assert_eq!(nodes[0].machine().state(), Some(&Counter(7)));
//! # Ok::<(), selvedge_replica::Reject>(())
//! ```
//!
//! # How a group begins
//!
//! All members begin with one first configuration, which names life 0 of each. That is the life in
//! which counting begins, and it comes before all others: a configuration can name any other life of
//! the node behind it, also where numbers wrap.
//!
//! - Where lives are counted from 0 and stored, members begin with [`Replica::new`].
//! - Where lives come from a clock, no node knows those of the others before it hears of them. Members
//!   begin with [`Replica::founder`], which votes under the name of life 0 in whichever life it is. A
//!   node founds a group once: a later life without that memory is a newcomer. No life from a clock
//!   is 0 ([`Incarnation::from_clock`](selvedge_core::Incarnation::from_clock)).
//! - Any other node begins as a [newcomer](Replica::newcomer), and is a member when a configuration
//!   names it ([`Command::Configure`]).
//!
//! # In which life a node is named
//!
//! A configuration may name a node in any life from the one in which its memory began to the present
//! one, so a leader names the life that membership tells. The node votes there: its memory holds all
//! that it did under that name. Named in a former life it has no vote, and asks to be named anew. Named
//! in a later one than its own it has no vote, and asks for nothing: another process of it was meant,
//! or one that is to come.
//!
//! A node that is no member any more, and gave the state up, may drop the replica. It keeps its
//! [`mark`](Replica::mark), the number of the last configuration that it knew, and begins again with
//! [`Replica::newcomer_behind`]. Without the mark it could be taught an old configuration that names
//! it in its present life, and vote there a second time. A node that was restored since its memory began
//! uses [`Replica::newcomer_since`] with the life of [`voter`](Replica::voter): a group that names it
//! in a former life, while it is down or cut off, may need its vote to go on.
//!
//! A node that stores facts of many groups may be named in one before it has anything of that group to
//! store. With [`Replica::newcomer_since`] its later lives, which have all that was stored, answer to
//! that name.
//!
//! # With and without storage
//!
//! A host that stores each [`Event::Fact`] before it carries out the effects behind it
//! ([`Barrier`](selvedge_core::durable::Barrier) does the waiting) gives a member its memory back:
//! [`Replica::restore`] from what was [stored](Replica::stored) last, then
//! [`fold`](selvedge_core::durable::Durable::fold) for each fact since. A host that stores nothing
//! begins each life, which has to be later than the one before, with [`Replica::new`] and the first
//! configuration, or as a newcomer: the group names it anew.
//!
//! # Cost
//!
//! | what | costs |
//! |---|---|
//! | an update | 2(n - 1) messages, one round trip to a quorum from the leader; O(n^2) comparisons of numbers at the leader |
//! | updates that are [proposed together](Command::ProposeAll) | as one, as many as fit into a frame |
//! | a leader | 2(n - 1) messages for promises, and as many for the first acknowledgement |
//! | a read | a round of 2(n - 1) messages, shared by all reads that wait; none with a lease that is held |
//! | entries on their way at once | as many as fit into one frame |
//!
//! In steady state the step for an update allocates nothing, where the update and the state allocate
//! nothing themselves.
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `arbitrary` | arbitrary values for fuzzing |
//! | `check` | the promises as properties of the model checker, and the published rules that break them |
//! | `std` | std in `selvedge-core` |
//!
//! `serde` is no feature here: a state that is sent whole is encoded by the crate.

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
pub use configuration::{Configuration, ConfigurationError, Lease, QuorumRule, Voter};
pub use counters::Counters;
pub use entry::{Entries, Entry, Proposal};
pub use event::{Command, Event, Misbehaviour, Reject, Timer};
pub use fact::{Damage, Fact, Snapshot, Stored};
pub use message::{Body, KIND, Message, SnapshotId, Wants};
#[cfg(feature = "check")]
pub use published::Published;
pub use replica::Replica;
pub use state::State;

/// How many updates and configurations were decided up to a state.
pub type Version = u64;

/// What orders leaders: a number, and the node that took it. Each configuration begins anew at 0.
pub type Ballot = Stamp<NodeId>;
