//! Sense, trigger and actuate without a hub: a few nodes look after each device, each routine and
//! each map of the application, and others take over when they fail. "CoMesh: Fully-Decentralized
//! Control for Sense-Trigger-Actuate Routines in Edge Meshes", sans-IO and without std.
//!
//! A [`Site`] lists the nodes and devices with their places, and the routines. Each cluster of near
//! devices, each routine and each map has a *k-group*: 2f + 1 nodes that hold its state together.
//! One of them leads: it pings devices (but not those that [sleep](Site::with_wake_interval)), watches clauses, gets locks, gives commands. The groups
//! themselves, which move from epoch to epoch, and the maps are those of [`selvedge_groups`].
//! [`Kgroup`] is the part of one node in all of it.
//!
//! # Promises
//!
//! | promise | under which assumption |
//! |---|---|
//! | no two routines that share a device execute at once, and no device gets a command of a routine that does not hold it (theorem 3) | those of [`selvedge_replica`]: ids are unique, a node that restarts has a new incarnation, of each group a quorum keeps its memory; a host carries no command out later than [`devices::Config::act_timeout`], which is alike on all nodes, and no message of a command is under way for longer |
//! | routines with sequential locks never wait for each other in a circle (theorem 4), and each run of theirs that was triggered ends (theorem 5) | a quorum of each group is here, and messages get through infinitely often; membership reports a leader that fails; an epoch is longer than a message is under way, and [`change_delay`](selvedge_groups::Config::change_delay) than an election and a few decisions; devices have room for the routines that name them ([`devices::Limits`]), frames for decisions ([`Site::with_frame_budget`]), and nodes for their groups ([`groups::Config::groups`](selvedge_groups::Config::groups)) |
//! | a new leader goes on from exactly the state that the group decided (lemmas 1 and 2): after another epoch, under another leader, and after all members have restarted one after another | the same |
//! | a clause that becomes true triggers, whichever node leads (erratum G8) | it stays true until it is observed |
//! | an occurrence of a [trigger of time](routines::Definition::with_trigger) starts its routine once: at most once for any leaders and any clocks; not before it has come by a right clock; and if no quorum was there, late or not at all | see [`routines`]: of 2f + 1 members at most f have a wrong clock or are away, and right clocks differ by less than [`lateness`](routines::Definition::lateness) |
//! | a command reaches its device at least once, or at most once, as its delivery requires (erratum G7) | see [`Delivery`] |
//! | groups go on where f of 2f + 1 members fail, or all nodes lose power at once; maps | see [`selvedge_groups`] and its [`store`](selvedge_groups::store) |
//! | a node that runs low asks to be spared ([`Command::SetSpared`]): from the next epoch on it is in no group | enough other nodes are here; see [`selvedge_groups`] |
//! | buildings that began with different sites refuse each other | the digests differ (32 bits) |
//! | nodes, devices, routines and maps are added, moved and removed while the building runs: in each generation one site is decided, all nodes take it, and the groups of clusters and routines follow by decisions of their own | a quorum of the [registry](selvedge_groups::registry) is present |
//! | a run that is in progress ends under the definition with which it began; what a removed routine holds is released, and its commands reach no device after that | each cluster's leader takes the site |
//! | a cluster or a routine whose memory is lost begins anew by itself, and theorem 3 holds meanwhile: a run keeps its devices, and goes on when its clusters have begun | nodes of the site lost their memory, and all of them but f are here; a quorum of the registry is. A device waits until all its routines have answered, and twice [`act_timeout`](devices::Config::act_timeout) |
//! | memory grows with the groups that a node is in, and by a configuration for each that it was in; nothing panics | devices, routines and maps have limits |
//!
//! Not promised:
//!
//! - That a routine is undone when a step fails: its report lists the outcome of each step.
//! - Exactly-once commands to devices that remember nothing: see [`devices`].
//! - Progress where a limit is too low. Routines that find a device's queue or marks full try
//!   again, and [`devices::Event::Full`] names them; a routine that finds no room to watch a device
//!   receives the status when it asks, and no later change.
//! - Progress of routines with [optimistic](routines::Locking::Optimistic) locks that meet again
//!   and again: they back off, by chance.
//! - The promises that [groups](selvedge_groups) do not make. A routine that has begun anew may run a
//!   second time for an occurrence or a trigger from before, and its run from before is not reported. A map
//!   begins anew by [`Command::BeginAnew`] alone, empty. A cluster or a routine that begins anew by
//!   that command, and not [by itself](selvedge_groups#groups-that-begin-anew), keeps theorem 3 only if its
//!   former members have stopped.
//! - That a site changes where the registry has no quorum.
//! - Protection against nodes that lie, except that memory and frames stay bounded.
//!
//! # Why it is safe
//!
//! Each group decides [one history](selvedge_groups), whichever node believes to lead. So a lock is
//! a decision of the cluster's group, and "executing" is a decision of the routine's group after
//! all its clusters have answered "granted". Messages between groups may be lost, doubled and late:
//! each request names a claim (routine, instance, attempt), and a device remembers the highest
//! claim of each routine that was released, so a late request never holds a device. A command is
//! decided by the cluster's group before its leader gives it to the device, and only for the claim
//! that holds the device; its end is decided, or its time is over, before the device passes on. If
//! the leader changes meanwhile, the device is held for as long as the host of a former leader may
//! act. The group decides how much of that time has passed, so that runs end however short epochs
//! are. See [`devices`].
//!
//! # A building
//!
//! Five nodes, two devices; when the window opens, the heating goes off.
//!
//! ```
//! use std::sync::Arc;
//!
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
//! use selvedge_groups::{Start, Node, Place, Selection};
//! use selvedge_kgroup::routines::Definition;
//! use selvedge_kgroup::{Command, Config, Event, Kgroup, LeaderEvent, Outcome, Site, devices};
//! use selvedge_routine::{Comparison, Condition, Routine, State, Step, trigger::Clause};
//!
//! // The site is equal on all nodes; places are in centimetres.
//! let at = |x| Place([x * 100, 0, 0]);
//! let [window, heating] = [NodeId(101), NodeId(102)];
//! let steps = vec![Step::new(heating, "off".into())];
//! let is_open = Clause::Is(Condition {
//!     device: window,
//!     comparison: Comparison::Equal,
//!     value: "open".into(),
//! });
//! let site = Site::new(
//!     Selection::new().with_failures(1),
//!     (1..=5).map(|id| Node::new(id, at(id as i32))),
//!     [(window, at(1)), (heating, at(4))],
//!     1, // devices a cluster
//! )?
//! .with_routine(Definition::new(Routine { steps }).with_clause(is_open))?;
//! let site = Arc::new(site);
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let members = [1, 2, 3, 4, 5].map(|id| Member::new(id, 0));
//! let mut nodes = Vec::new();
//! for me in members {
//!     let node = Kgroup::new(me, Config::new(), Arc::clone(&site), Start::Fresh)?;
//!     nodes.push(Driver::new(node));
//! }
//! // Membership reports the other nodes, and the host's clock starts the epoch.
//! let mut inputs: Vec<(usize, Input<Kgroup>)> = Vec::new();
//! for node in 0..5 {
//!     inputs.push((node, Input::Command(Command::SetEpoch(1))));
//!     let others = members.iter().filter(|it| **it != members[node]);
//!     inputs.extend(others.map(|it| (node, Input::Membership(Delta::Joined(*it)))));
//! }
//! let mut states = [(window, State::from("open")), (heating, "on".into())];
//!
//! for tenth in 0..100 {
//!     let now = Time::ZERO + Span::millis(100) * tenth;
//!     let mut effects = Vec::new();
//!     for (node, driver) in nodes.iter_mut().enumerate() {
//!         driver.expire(now, &mut rng, |effect| effects.push((node, effect)));
//!     }
//!     while !(inputs.is_empty() && effects.is_empty()) {
//!         for (node, input) in inputs.drain(..) {
//!             let take = |effect| effects.push((node, effect));
//!             nodes[node].step(now, &mut rng, input, take)?;
//!         }
//!         for (node, effect) in effects.drain(..) {
//!             match effect {
//!                 Effect::Send { to, message } => {
//!                     let to = members.iter().position(|it| it.id == to.id).unwrap();
//!                     inputs.push((to, Input::Message { from: members[node], message }));
//!                 }
//!                 Effect::Event(Event::Leader { event: LeaderEvent::Devices(event), .. }) => {
//!                     let answer = match event {
//!                         devices::Event::Ping { device } => {
//!                             let state = states.iter().find(|it| it.0 == device);
//!                             let value = state.map(|it| it.1.clone());
//!                             Command::Reported { device, value }
//!                         }
//!                         devices::Event::Act { ticket, value } => {
//!                             let state = states.iter_mut().find(|it| it.0 == ticket.device);
//!                             state.unwrap().1 = value;
//!                             Command::Acted { ticket, outcome: Outcome::Done }
//!                         }
//!                         _ => continue,
//!                     };
//!                     inputs.push((node, Input::Command(answer)));
//!                 }
//!                 _ => {} // Other events of leaders.
//!             }
//!         }
//!     }
//! }
//! assert_eq!(states[1], (heating, "off".into()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The host's part
//!
//! | when | it |
//! |---|---|
//! | it stores facts, and starts | passes [`Start::Fresh`](selvedge_groups::Start::Fresh) in each life, with an incarnation of its own, and [folds](selvedge_core::durable::Durable::fold) all facts before the first input; see below. Then [`Command::SetEpoch`] |
//! | it stores no facts, and starts | passes [`Start::Fresh`](selvedge_groups::Start::Fresh) once in a building; else [`Start::Restarted`](selvedge_groups::Start::Restarted), as also after a loss of its facts. Then [`Command::SetEpoch`] |
//! | an epoch begins by its clock (the paper: each minute) | [`Command::SetEpoch`] with the epoch's number |
//! | [`Event::Site`] reports another site | talks to the devices of that: pings and commands name only those |
//! | it begins, its clock or its zone is set, or a local day has begun | [`Command::SetClock`], if the site has triggers of time: before it lets timers that are due expire, for summer time may have ended. The host's rules decide about zones |
//! | a leader emits [`devices::Event::Ping`] or [`Act`](devices::Event::Act) | asks the device, and reports its answer: [`Command::Reported`], [`Command::Acted`] |
//! | a device that [sleeps](devices#devices-that-sleep) wakes and reports | [`Command::Reported`], at each node that receives it: the leader takes it, the others refuse it. [`devices::Event::Act`] follows at once if a command waits, and never otherwise; [`devices::Event::Ping`] never does |
//! | membership reports a node | passes it on |
//!
//! A host that stores lets effects out behind the facts before them, through a
//! [`Barrier`](selvedge_core::durable::Barrier):
//! [`groups::Event::Fact`](selvedge_groups::Event::Fact), which
//! [`Durable::fact`](selvedge_core::durable::Durable::fact) finds. Then a node that begins again
//! has its memory and votes at once, and groups go on when all nodes lose power together: maps keep
//! their entries, runs end, a command that is given at most once is not given again. The host
//! repeats the requests to other nodes from before the restart: changes of maps, watches, and runs,
//! these under their old names. Facts of one group are independent of those of another group, and
//! [`Groups::stored`](selvedge_groups::Groups::stored) returns a few facts that replace all earlier
//! ones. They belong to one site; others refuse them.
//!
//! # Sites that change
//!
//! A [`Site`] is a value, and an edit of it another value. A building begins with the site of generation
//! 0, alike on all nodes. [`Command::ChangeSite`] has the building take another one, at any node; what
//! both have in common keeps its group and its state. Make it from the present site: a site of an
//! earlier generation is refused, since it would undo the changes since. A node may also begin with a site of a later
//! [generation](Site::with_generation): it takes the site of the others first, and proposes its own if
//! that is later. So a rolling restart of all nodes with a later site is one change. A node that is new
//! waits until the others have a site that names it.
//!
//! Where both have one generation and differ, or a setting differs that cannot change while groups
//! run, [`Event::OtherSite`] reports it, and the node goes on with the site of the others.
//!
//! # Cost
//!
//! | item | cost |
//! |---|---|
//! | groups, and their decisions | see [`selvedge_groups`] |
//! | a lock, a release, a command, a status to a routine | a message and its answer, and a decision of the cluster's group |
//! | a trigger, the beginning and the end of a run, a step | a decision of the routine's group |
//! | an occurrence of a trigger of time | a message of each member of the routine's group and its answer, and a decision; a message and its answer more for each trigger where a member enters, or its clock is set back |
//! | a quiet device | a ping a period, and no message between nodes |
//! | a device that sleeps | no ping; 6 decisions of the cluster's group for each wake interval of 10 minutes, and one more for each doubling; a message and its answer each [`resend`](routines::RoutineConfig::resend) while a command waits for it |
//!
//! # Features
//!
//! | feature | contents |
//! |---|---|
//! | `arbitrary` | arbitrary values for fuzzing |
//! | `check` | the promises as properties of the model checker, and the published rules that break them |
//! | `std` | std in `selvedge-core` |

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "check"),
    allow(
        unreachable_pub,
        reason = "the leaders of groups are public for tests alone"
    )
)]

extern crate alloc;
#[cfg(any(feature = "std", doctest))]
extern crate std;

mod change;
#[cfg(feature = "check")]
pub mod check;
mod clock;
mod config;
pub mod devices;
mod effect;
mod event;
mod leading;
mod machine;
mod message;
#[cfg(feature = "check")]
mod published;
pub mod routines;
mod site;
mod state;

pub use config::{Config, ConfigError};
pub use event::{Command, Event, Reject, Timer};
pub use leading::{LeaderEvent, LeaderTimer};
pub use machine::Kgroup;
pub use message::{
    Answer, Claim, Delivery, Due, Message, Outcome, Patience, Payload, Progress, Request, Status,
    TriggerId,
};
#[cfg(feature = "check")]
pub use published::Rule;
pub use routines::WallClock;
pub use site::Site;
pub use state::{Decided, GroupState, Update};

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
