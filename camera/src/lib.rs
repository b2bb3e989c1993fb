//! Camera: mutual exclusion, one node at a time in a critical section, in a mesh that nodes join
//! and leave.
//!
//! A node that wants to enter sends a request to every node that it knows, and enters when they
//! have answered with OK. An OK lists the nodes to which its sender gave an OK before. So two nodes
//! that do not know each other are introduced by a node that both know (the algorithm of Ricart and
//! Agrawala, extended in the thesis "Camera: Churn-tolerant mutual exclusion for the edge" by A.
//! Khinvasara, 2023). The thesis' algorithm breaks under false suspicions, restarts and changing
//! lists. The rules here do not, and each entry also has a fencing token. `docs/errata.md` lists
//! the differences and the reasons.
//!
//! # Promises
//!
//! | promise | assumptions |
//! |---|---|
//! | at most one node is inside | [`Config::takeover`] is `None`; at most [`Config::max_lives`] lives of nodes are present, in all, from the beginning of a request to its end; with [`Config::keep`] a request ends when none of its permissions is kept any more ([`Camera::kept`]), however long this node was outside; `Left` and `Confirmed` are true |
//! | tokens rise strictly from entry to entry, also past a crashed holder | the same; from the beginning of one entry's request to the next entry, few enough nodes restart that any two majorities share a life. (Every node sends a newcomer the highest token at once; that message may be lost) |
//! | with a takeover: a node that enters past another has a higher token than the other; the node that was passed over may be inside, or enter later, with the lower token, and is notified as soon as it can be reached | as for tokens |
//! | a node that waits enters, or is refused with a reason | messages arrive infinitely often; holders exit; a holder that dies is confirmed dead, or is passed over after [`Config::takeover`], and the host reports this to the nodes that wait and to the nodes that gave the holder their OK; with a takeover a false failure is taken back in the end; where a node that asked to enter has ended and its RELEASE did not reach this node, the host reports that end to this node: for each member in [`Camera::waits_for`] and [`Camera::granted`] that membership lists as ended or failed, the host reports this again, and it inquires about each that membership lists neither as live nor as ended |
//! | `Suspected` and `Failed` may be wrong, in any order, at any time, and break none of this | |
//! | an uncontended entry sends 2 messages for each other member, and takes one round trip | no loss; all nodes that have entered before are known |
//! | with [`Config::keep`] a node that enters again and again sends nothing | no other node wants to enter; its host gives back the permissions that are kept ([`Command::GiveBack`]) before more lives than [`Config::max_lives`] have been present |
//! | with [`Config::eager`] a node does not wait for the slower half of the answers | they are not answers of rivals |
//! | memory is bounded for any input from peers; nothing panics | [`Config::peer_limit`] |
//! | a node that cannot remember all others holds up no other: it gives no OK if it has no room, and its request is refused if it would have to wait for a node that it cannot remember | the others' messages get through |
//! | handling a message takes O(log N), plus the length of the list in an OK; on the slow path a node may ask all neighbours, and sorts the lists that it sends; adding a new node when `peer_limit` is reached takes O(N) | |
//!
//! *Not* promised: that a node which was wrongly passed over stops in time. The node is notified
//! ([`Event::Fenced`]), and a resource that refuses lower tokens than it has seen is safe.
//!
//! # Two paths
//!
//! The fast path asks every node on the list. If the list holds no more than half of
//! [`Config::max_lives`], at the beginning or because it got shorter meanwhile, the request takes the
//! slow path (section 4.4). The request goes from neighbour to neighbour through the whole mesh.
//! The OKs return along the tree that this makes: each node sends its OK together with the OKs of
//! all nodes below it. That costs two to four messages for each pair of neighbours, and a round
//! trip through one level more than the tree has. Inner nodes may die while it runs.
//! [`Config::slow_path`] switches it off.
//!
//! # States of a node
//!
//! ```text
//!            Enter: REQUEST to all            OK of all awaited, and of a quorum
//!   ┌──────┐ ───────────────────> ┌─────────┐ ───────────────────> ┌────────┐
//!   │ idle │                      │ waiting │                      │ inside │
//!   └──────┘ <─────────────────── └─────────┘                      └────────┘
//!      ^       Cancel, or too few                                       │
//!      └──────────────────────── Exit: RELEASE to all, OK to waiters ───┘
//! ```
//!
//! # Example: two nodes
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_camera::{Camera, Command, Config, Event};
//! use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let members = [Member::new(1, 0), Member::new(2, 0)];
//! let mut nodes = members.map(|me| Driver::new(Camera::new(me, Config::new(2)).unwrap()));
//! for (node, other) in nodes.iter_mut().zip([members[1], members[0]]) {
//!     node.step(Time::ZERO, &mut rng, Input::Membership(Delta::Joined(other)), |_| ())?;
//! }
//!
//! // Node 1 asks, node 2 answers with OK, node 1 is inside.
//! let mut wire = Vec::new();
//! nodes[0].step(Time::ZERO, &mut rng, Input::Command(Command::Enter), |it| wire.push((0, it)))?;
//! let mut entered = None;
//! while let Some((sender, effect)) = wire.pop() {
//!     match effect {
//!         Effect::Send { message, .. } => {
//!             let input = Input::Message { from: members[sender], message };
//!             let to = 1 - sender;
//!             nodes[to].step(Time::ZERO, &mut rng, input, |it| wire.push((to, it)))?;
//!         }
//!         Effect::Event(Event::Entered(token)) => entered = Some(token),
//!         Effect::Event(_) | Effect::Multicast { .. } => {}
//!     }
//! }
//! assert_eq!(entered, nodes[0].machine().token());
//! assert_eq!(entered.unwrap().number, 1);
//! # Ok::<(), selvedge_camera::Reject>(())
//! ```
//!
//! # Many sections
//!
//! A [`Camera`] is one node's part in one section. [`sections`] has many named sections in one
//! machine.
//!
//! # Features
//!
//! `estimate` for the module of that name, off by default because most programs know their nodes and
//! have the bound as a setting (`selvedge node --count` counts them); `serde` for messages, settings and counters (hosts need it for
//! the wire); `std` enables core's feature of that name; `arbitrary`; `check` for the promises as
//! properties of the model checker, and for the published rules that break them.
//!
//! Many threads and tasks of one process queue for the section at core's gate
//! ([`selvedge_core::shared`], feature `std`).

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

#[cfg(all(feature = "check", not(test)))]
pub mod check;
mod config;
mod counters;
mod entry;
#[cfg(feature = "estimate")]
pub mod estimate;
mod event;
mod failure;
mod forest;
mod grant;
mod granted;
mod issued;
mod machine;
mod message;
mod published;
mod repair;
mod request;
mod room;
pub mod sections;
mod slow;
mod sound;
mod state;
mod token;
mod tree;
mod waiting;

pub use config::{Config, ConfigError};
pub use counters::Counters;
pub use event::{Command, Event, Misbehaviour, Refusal, Reject, Timer};
pub use message::{Branch, Branches, KIND, Message, Request, Rival, Rivals, TreeId};
#[cfg(feature = "check")]
pub use published::Published;
pub use state::Camera;
pub use token::Token;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
