//! Many replicated states on one node, each held by a small group of nodes. Groups are founded from
//! a plan that all nodes share, move from epoch to epoch, replace members after failures, and are
//! found from any node. Named maps are built on them. Sans-IO and without std.
//!
//! A [`Plan`] has the nodes and the settings by which groups are chosen from them. A state
//! implements [`Begins`], which names the groups and the first state of each. [`Groups`] is the
//! part of one node in all of them. A state can have a [registry](registry::Registry) beside its other
//! groups: then the site changes while they run, and groups begin among nodes that are here. Where
//! places are known, most members of a group are near one of
//! its devices, drawn for each epoch ([`Policy`]), and a node of more [`Weight`] is in more groups. A
//! node that runs low asks to be spared ([`Command::SetSpared`]).
//! "CoMesh: Fully-Decentralized Control for Sense-Trigger-Actuate Routines in Edge Meshes" calls
//! such a group a k-group; its devices and routines are `selvedge-kgroup`.
//!
//! # Promises
//!
//! | promise | under which assumption |
//! |---|---|
//! | each group decides one history, with any lists, clocks and hashes | the assumptions of [`selvedge_replica`]; a node begins with [`Start::Fresh`] once; [`Command::BeginAnew`] is given for lost groups alone |
//! | groups of two plans never mix | their digests differ (32 bits) |
//! | two nodes with equal lists choose the same members for a group, without a message | see [`Chooser`] |
//! | a group gets a leader, and a question from any node reaches it, if it is asked again | a quorum of it is present; messages get through infinitely often, and an election takes less than 64 times [`resend`](selvedge_replica::Config::resend); lists become alike, and no longer have nodes that fail; a founder, or a node that both lists name, knows the group |
//! | a group whose members fail one after another goes on | fewer than a quorum fail, or begin again, before the next ones have the state |
//! | a power domain with at most f nodes that goes dark stops no group | its members are notified |
//! | a link names nodes in lives that have just answered, while a quorum of the group answers | |
//! | a member that slept or was cut off gives up a configuration that has ended | three epochs begin; a founder, or a former member that it knows, remembers where the group is |
//! | a node that asked to be spared is chosen as one of weight 0 in the changes of members from the next epoch on, until it takes its share again or begins another life | its report with the epoch, or an earlier one, reaches the leaders |
//! | all nodes may lose power at once, and groups go on from their stored states | hosts store facts |
//! | a map's changes are decided in one order, each once, and any node can watch an entry | see [`store`] |
//! | one site is decided in each generation; each node takes it once, and none takes an earlier one again | the state has a registry |
//! | all nodes take a site that was decided, and groups that are new in it begin | a quorum of the registry is present; messages get through infinitely often |
//! | a group that is new in a site, or begins with its first question, begins among nodes that are here; a founder that loses its memory founds it no second time | the state has a registry, of which a quorum is present |
//! | members that the site has no more are replaced | a quorum of their group is present |
//! | a group that may begin anew by itself ([`Begins::begins_anew`]) does so when its memory is lost, and its former beginning decides nothing more | all nodes of the site but f are here, and a quorum of the registry; one of them knows the last members, and too few of these have their memory, or the site has changed and none remembers any; nodes that the site has no more are off |
//! | a group that begins anew shares no decision with its former beginning | fewer than 64 beginnings, each with fewer than 2^22 changes of members |
//! | memory grows with the groups that a node is in, and by a configuration of each group that it was in or a number of each that began anew; nothing panics | the states are bounded |
//!
//! # Accepted messages
//!
//! A plan names each node that has a part in groups, also a node that only asks: any of them may be
//! chosen for any group. So a message from another node is [refused](Misbehaviour::Unplanned) as a
//! whole: its sender would be remembered as a member. Any node may ask for the site, and a site of a
//! later generation is taken from any node of the building. Of the nodes of the plan
//!
//! - any may ask. A node that does not lead answers with the place of the group;
//! - any may answer. It need not lead: it may have led when it received the question, and many leaders of a
//!   group report the same decision;
//! - any may ask the registry's leader for a group, and propose a site; any may send the
//!   registry's decision about the beginning of a group, which is believed, and the question for its
//!   end: a node that lies can end a group;
//! - any may send the place of a group, with a number that a configuration can have and with
//!   members that the plan names; other places are refused and [counted](Counters::refused). A
//!   place is used until a later configuration is known, until an epoch begins, or until a few
//!   questions went unanswered. Then any other place replaces it. So a node that is wrong, or lies,
//!   costs messages and some time. The latest members stay known beside it, for a group that is lost: a node
//!   that lies about them can have a group ended, or keep it from beginning anew.
//!
//! The crate does *not* promise:
//!
//! - Members by the present lists: a leader chooses from its own list, and when an epoch begins or members
//!   fail.
//! - Answers: a question may be lost, and so may its answer. Ask again; make questions that may be
//!   asked twice.
//! - That a group goes on when more than f of its members lose their memory at once; hosts that
//!   store facts lose none. A node that a link names counts as a member from then on. The leader
//!   names a node in the life in which it has just answered; if it begins again without its memory
//!   before it has the state, it is one of the f until it is named again. So is a node that was not here when
//!   the registry began a group: up to f founders may be, each in the life that the registry's leader knows, or in
//!   life 0 if it knows none. A group that is lost
//!   begins again with its first state, [by itself](#groups-that-begin-anew) or by
//!   [`Command::BeginAnew`]; without a registry, all groups begin anew under a plan with another
//!   digest ([`Plan::with`]).
//! - Changes of the site, first questions to maps, and groups that begin anew, while no quorum of
//!   the registry is present; more than 4,096 groups that the registry begins.
//! - That a group begins whose founders failed, or had no room, before they could begin it: have it
//!   begin anew.
//! - Progress where a limit is too low: a node without room for a group is passed over
//!   ([`Config::groups`]), and an update that is longer than a [frame](Plan::with_frame_budget) is never decided.
//! - Anything against nodes that lie, but that memory and frames stay bounded.
//!
//! # Why it is safe
//!
//! Each group is a [replicated state](selvedge_replica): it decides each version once, whichever
//! node believes to lead, and its members change by a link that the former ones decide. Hashes and
//! lists, and the nodes that are spared, give only a proposal for the next link. The first members, the founders, follow from the
//! plan alone, and a node founds a group once: it stores its facts, or begins with
//! [`Start::Restarted`]. The founders of a group that begins later follow from a decision of the
//! registry alone. A node that left a group keeps the number of the last configuration that it
//! knew, so it never takes a former one in which it could vote a second time.
//!
//! # Sites that change
//!
//! The registry is one group more, of up to 15 members, for a state with
//! [`Begins::HAS_REGISTRY`]. Its state is a [`Registry`](registry::Registry): the encoded site of
//! the present generation, and the first members of each group that generation 0 does not found.
//! It begins when it is first needed, or one of its founders has lost its memory and reaches another one that still may found it.
//!
//! [`Command::ChangeSite`] sends a site to it part by part, since a site is longer than a frame, and
//! commits it as a whole, if no other one was decided meanwhile. Each message names the generation of
//! its sender's site; a node that receives a later one asks the sender for its site, part by part. So
//! a node that was away takes the site when it meets any node that has it. A node whose program
//! has a site of a later generation founds nothing, and takes the site of the others first.
//!
//! A group that is new in a site begins when the registry has decided its first members: nodes that
//! are here, each named in the life in which the registry knows it. So a founder that restarts without its memory has no
//! vote in the group, and a question that finds no group has it begin once. Groups that are not in
//! the site any more end where the site arrives.
//!
//! The selection and the frame budget stay in all generations, and the id of a removed group is not
//! used again.
//!
//! # Groups that begin anew
//!
//! A group that has lost its memory begins anew by a decision of the registry. The configurations of
//! its next beginning have higher numbers than all former ones. Members of the former beginning leave it
//! with the first message of the next one, or with the registry's decision. [`Event::BegunAnew`] reports
//! that the group's former state is lost.
//!
//! With [`Command::BeginAnew`] an operator takes the decision, who knows that the former members have
//! stopped. By itself a group begins anew only when that is certain, for a state that can be found out again
//! ([`Begins::begins_anew`]). A node without a quorum of a group reports that to the registry's
//! leader as an epoch begins, and so does a founder that has had no news of the group for two epochs. The leader
//! asks all nodes of the site, 16 groups at once. If all but f answer, and too few of the latest known members have
//! their memory, or none is known, in three rounds, it asks the nodes to promise that they take no further part in that
//! beginning. There is no way back from the first promise. When all but f have promised, it asks again: if
//! the same lives answer, all promises held at one time. Each configuration has 2f + 1 voters, so f nodes
//! without the promise are no quorum of any, whatever links were decided, and no quorum can name a later life of
//! a node that has lost its promise.
//!
//! More than f nodes that are away may be a quorum elsewhere: the group waits for them, until they
//! are back or a change of the site removes them.
//!
//! # A group of three
//!
//! Four nodes, and one group that holds the highest number so far. A node that is not a member asks
//! its leader. A question may arrive twice; here that changes nothing.
//!
//! ```
//! use std::sync::Arc;
//!
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Delta, Driver, Effect, Input, Member, Span, Time};
//! use selvedge_groups::{
//!     Start, Begins, Command, Config, Event, GroupId, Groups, Node, Plan, Selection,
//! };
//! use selvedge_replica::State;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
//! struct Highest(u64);
//!
//! impl State for Highest {
//!     type Update = u64;
//!     type Outcome = u64;
//!     fn apply(&mut self, number: &u64) -> u64 {
//!         self.0 = self.0.max(*number);
//!         self.0
//!     }
//! }
//!
//! const GROUP: GroupId = GroupId(0);
//!
//! impl Begins for Highest {
//!     type Site = ();
//!     fn groups((): &()) -> Vec<GroupId> {
//!         vec![GROUP]
//!     }
//!     fn begin((): &(), group: GroupId) -> Option<Self> {
//!         (group == GROUP).then_some(Self(0))
//!     }
//! }
//!
//! let members = [1, 2, 3, 4].map(|id| Member::new(id, 0));
//! let all = members.map(|it| Node::without_place(it.id));
//! let plan = Arc::new(Plan::new(Selection::new().with_failures(1), all)?);
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let mut nodes = Vec::new();
//! // A question is a number, too, and so is its answer.
//! let mut inputs: Vec<(usize, Input<Groups<Highest, u64>>)> = Vec::new();
//! for (at, me) in members.into_iter().enumerate() {
//!     let groups = Groups::new(me, Config::new(), Arc::clone(&plan), Arc::new(()), Start::Fresh)?;
//!     nodes.push(Driver::new(groups));
//!     inputs.push((at, Input::Command(Command::SetEpoch(1))));
//!     let others = members.into_iter().filter(|it| *it != me);
//!     inputs.extend(others.map(|it| (at, Input::Membership(Delta::Joined(it)))));
//! }
//! let asker = nodes.iter().position(|it| it.machine().groups().next().is_none()).unwrap();
//! let mut answers = Vec::new();
//!
//! for tenth in 0..50 {
//!     let now = Time::ZERO + Span::millis(100) * tenth;
//!     if tenth == 20 {
//!         inputs.push((asker, Input::Command(Command::Ask { group: GROUP, payload: 7 })));
//!     }
//!     let mut effects = Vec::new();
//!     for (at, node) in nodes.iter_mut().enumerate() {
//!         node.expire(now, &mut rng, |effect| effects.push((at, effect)));
//!     }
//!     while !(inputs.is_empty() && effects.is_empty()) {
//!         for (at, input) in inputs.drain(..) {
//!             nodes[at].step(now, &mut rng, input, |effect| effects.push((at, effect)))?;
//!         }
//!         for (at, effect) in effects.drain(..) {
//!             match effect {
//!                 Effect::Send { to, message } => {
//!                     let to = members.iter().position(|it| it.id == to.id).unwrap();
//!                     inputs.push((to, Input::Message { from: members[at], message }));
//!                 }
//!                 // The leader proposes the number of the question, and answers.
//!                 Effect::Event(Event::Asked { group, from, payload }) => {
//!                     let update = Command::Propose { group, update: payload };
//!                     let answer = Command::Answer { to: from, group, payload };
//!                     inputs.extend([update, answer].map(|it| (at, Input::Command(it))));
//!                 }
//!                 Effect::Event(Event::Answered { payload, .. }) => answers.push((at, payload)),
//!                 _ => {} // Events of replicas, and facts to store.
//!             }
//!         }
//!     }
//! }
//! assert!(answers.contains(&(asker, 7)));
//! let leader = nodes.iter().find(|it| it.machine().leads(GROUP)).unwrap();
//! assert_eq!(leader.machine().state(GROUP), Some(&Highest(7)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Storage
//!
//! A host that stores carries out effects after it has stored the facts before them, through a
//! [`Barrier`](selvedge_core::durable::Barrier): [`Event::Fact`], which
//! [`Durable::fact`](selvedge_core::durable::Durable::fact) finds. In its next life, with an
//! incarnation of its own, the node begins with [`Start::Fresh`] again (with [`Start::Restarted`] if the life in
//! which it began to store did) and
//! [folds](selvedge_core::durable::Durable::fold) all facts before the first input. Facts of
//! different groups are independent, and [`Groups::stored`] has few facts that stand for all so
//! far. They belong to the plan of generation 0; nodes with another one refuse them.
//!
//! # Cost
//!
//! | action | cost |
//! |---|---|
//! | choosing members: an epoch of n nodes | n hashes, and O(n log n) for each table |
//! | a group more | 1 hash and O(n) comparisons of numbers |
//! | a decision of a group | 2(k - 1) messages among k members |
//! | a question to a leader that is known | a message; else one to each node that may know it |
//! | a node asks to be spared, or takes its share again, among n nodes | n - 1 messages of at most 7 bytes and a frame around them; in each later epoch of its life as many, also in the frames of other messages. While it is spared, a round in each group that it is still in, in each epoch |
//! | a change of a site of b bytes, among n nodes | a decision of the registry for each frame of b, and b bytes to each node |
//! | a group that begins with its first question | a question to each founder and its answer, and a decision of the registry, before its own first one |
//! | a group that has lost its memory and begins anew by itself | 5 messages to each node of the site and 5 answers, a decision of the registry, and a message with it to each node |
//! | a member whose leader sent nothing for an epoch | a question to the leader, up to two rounds among the members, and the answer |
//! | a group that is reported as lost, in each epoch | 6 reports by each node that finds it so, and for each of them up to 3 messages to each node of the site, with their answers; a question without an answer is repeated up to 7 times |
//! | a founder of the registry that lost its memory, while it knows no registry, in generation 0 of the site | a question of 3 bytes and a frame around it to each other founder that is here, in each epoch, and to one that joins: up to 14; and their answers |
//! | a group that has lost f members, where no other node is present | a round among its members in each quarter of [`patience`](Config::patience) |
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
#[cfg(any(feature = "std", doctest))]
extern crate std;

mod adopt;
mod born;
mod change;
#[cfg(all(feature = "check", not(test)))]
pub mod check;
mod choose;
mod cluster;
mod config;
mod counters;
mod draw;
mod durable;
mod ending;
mod event;
mod find_group;
mod find_leader;
mod found;
mod founders;
mod group;
mod inquiry;
mod leader_hints;
mod locality;
mod machine;
mod message;
mod part;
mod place;
mod plan;
mod propose;
mod published;
mod receive;
mod registrar;
pub mod registry;
mod route;
mod selection;
mod spared;
mod state;
pub mod store;
mod weight;

pub use choose::{Chooser, Node, Target, Unplaceable};
pub use cluster::{Cluster, clusters};
pub use config::Config;
pub use counters::Counters;
pub use event::{Command, Damage, Event, Fact, Misbehaviour, Reject, Start, Timer};
pub use group::GroupId;
pub use message::{Item, KIND, Message};
pub use place::Place;
pub use plan::{ConfigError, Plan};
pub use propose::SiteError;
#[cfg(feature = "check")]
pub use published::Published;
pub use selection::{Leader, Locality, Policy, Selection};
pub use state::{Begins, Carried, Groups};
pub use weight::Weight;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
