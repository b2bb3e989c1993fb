//! A node of a mesh as one machine: membership, and beside it the sections of Camera, the
//! estimator, elections and k-groups, which learn from membership which members are present.
//!
//! ```text
//!                     ┌───────────────────────────── Node ─┐
//!  Command, Message ->│ Membership --Delta--> Sections     │-> Event, Send
//!                     │      |                   ^         │
//!                     │      +--Delta--> Estimator         │
//!                     │      |             upper bound     │
//!                     │      +--Delta--> Celect            │
//!                     │      +--Delta--> Kgroup            │
//!                     └────────────────────────────────────┘
//! ```
//!
//! | promise | assumption |
//! |---|---|
//! | sections, estimator, elections and k-groups receive every delta, in order, and before them the members that are on the list already | |
//! | membership inquires about each node that a section waits for, or gave its OK, if membership has it neither as live nor as over ([`Inquire`](selvedge_membership::Command::Inquire)); the sections receive again the ends that it has of such nodes | one inquiry at a time, each [`resend`](selvedge_camera::Config::resend) while a section waits, and each [`refresh`](selvedge_camera::Config::refresh) |
//! | a section that keeps permissions ([`keep`](selvedge_camera::Config::keep)) gives them back [`Exclusion::keep_for`] after the first exit, when no entry is under way, or as soon as the one under way ends; and before it is closed | the host's clock goes on |
//! | these machines belong to one life: when membership takes a later one they begin again ([`Event::Present`]), and sections that were held are lost | |
//! | in k-groups the first life starts as its [`Coordination`] states, and a later one [restarted](selvedge_groups::Start::Restarted), in the epoch of the latest command, and spared if that was asked for | feature `kgroup` |
//! | in k-groups a later life keeps the promises of the former ones, and votes at once | the host stores facts ([`Builder::restored_groups`]) |
//! | a node does not say good-bye while it waits for a section or is inside, and does not enter afterwards | the good-bye is the command [`Leave`](selvedge_membership::Command::Leave) in [`Command::Membership`] |
//! | estimates raise the bound of all sections and never lower it | feature `estimate`, [`Counting`] on all nodes |
//! | a node that knows no leader gets one without a command: see [`Election::patience`] | it is not zero |
//! | each part of a mesh that was cut in two gets a leader, and one of the two leads all when they meet | the same; few elections |
//! | frames of each protocol are as without the others, under their own kinds | |
//!
//! Each machine keeps the promises of its own crate, because it gets its inputs as that crate asks:
//! membership's deltas, in order, from the first to the last of one life, and no input of another
//! life. A machine sees neither the machines beside it nor their frames, so checks of one machine
//! alone hold here.
//!
//! A first program, step by step: [`guide::tutorial`]. The book is in the repository, too, in `docs`.
//!
//! # One dependency
//!
//! The crates of the parts are here under plain names: [`core`], [`membership`],
//! [`lock`], [`election`], and with the feature `kgroup` [`groups`] and [`kgroup`]. A program needs no
//! other dependency for them.
//!
//! # Features
//!
//! | feature | addition |
//! |---|---|
//! | `estimate` | the bound of sections can follow an estimate of the number of nodes ([`Exclusion::with_counting`]), and elections can take c from measurements. Off by default, because it takes flash; the program `selvedge` has it |
//! | `kgroup` | routines without a hub, and maps: [`Coordination`], as another part of the node. It takes flash |
//! | `std` | std in the other crates |
//!
//! # Two nodes, their frames, and an election
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge::{Command, Election, Node, decode, encode};
//! use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
//! use selvedge_membership as membership;
//!
//! const BUDGET: usize = 1_400;
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(7);
//! let mut nodes = Vec::new();
//! let mut network = Vec::new();
//! for id in [1, 2] {
//!     let (me, config) = (Member::new(id, 0), membership::Config::default());
//!     let election = Election::paced(config.period, 1, 0);
//!     let mut node = Driver::new(Node::builder(me).membership(config).election(election).build()?);
//!     let seeds = vec![NodeId(1)];
//!     let join = Command::Membership(membership::Command::Join { seeds });
//!     let mut effects = Vec::new();
//!     node.step_into(Time::ZERO, &mut rng, Input::Command(join), &mut effects)?;
//!     nodes.push(node);
//!     network.push(effects);
//! }
//! // A minute, in steps of a tenth of a second.
//! for tenth in 0..600 {
//!     let now = Time::ZERO + Span::millis(100) * tenth;
//!     for place in [0, 1] {
//!         let mut effects = core::mem::take(&mut network[place]);
//!         nodes[place].expire_into(now, &mut rng, &mut effects);
//!         let from = nodes[place].machine().membership().me();
//!         for effect in effects {
//!             let Effect::Send { message, .. } = effect else {
//!                 continue;
//!             };
//!             let mut frame = Vec::new();
//!             encode(from, &message, BUDGET, &mut frame)?;
//!             let envelope = decode(message.kind(), &frame, BUDGET)?;
//!             let (from, message) = (envelope.from, envelope.message);
//!             let (other, answers) = (1 - place, &mut network[1 - place]);
//!             let input = Input::Message { from, message };
//!             // The host counts refusals.
//!             let _taken = nodes[other].step_into(now, &mut rng, input, answers).is_ok();
//!         }
//!     }
//! }
//! let leaders = nodes.iter().map(|node| node.machine().leader().map(|(leader, _)| leader));
//! let leaders: Vec<_> = leaders.collect();
//! assert!(leaders[0].is_some() && leaders[0] == leaders[1]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod builder;
mod config;
#[cfg(feature = "kgroup")]
mod coordination;
#[cfg(feature = "estimate")]
mod counting;
mod event;
pub mod frame;
#[cfg(all(doc, not(doctest)))]
pub mod guide;
mod inquiry;
mod keeping;
mod machine;
mod message;
mod present;

pub use builder::Builder;
#[cfg(feature = "estimate")]
pub use config::Counting;
pub use config::{ConfigError, Election, Exclusion};
#[cfg(feature = "kgroup")]
pub use coordination::{Coordination, Fact};
pub use event::{Command, Event, Reject, Timer};
pub use frame::FrameError;
pub use machine::Node;
pub use message::{Message, decode, encode};

/// The locks: Camera.
pub use selvedge_camera as lock;
/// The elections.
pub use selvedge_celect as election;
/// The contract between machines and hosts, and the parts that protocols share.
pub use selvedge_core as core;
/// Replicated states on nodes of a mesh, and named maps.
#[cfg(feature = "kgroup")]
pub use selvedge_groups as groups;
/// Devices and routines without a hub: CoMesh.
#[cfg(feature = "kgroup")]
pub use selvedge_kgroup as kgroup;
/// The member list: Medley-F.
pub use selvedge_membership as membership;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
