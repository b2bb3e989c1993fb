//! Camera: one at a time in a critical section, in a mesh whose members come and go.
//!
//! Whoever wants to enter asks all whom it knows and enters when they have said OK. Whoever says OK
//! names those to whom it said OK before: so two nodes that do not know each other are introduced
//! by a common friend (the algorithm of Ricart and Agrawala, extended in the thesis "Camera:
//! Churn-tolerant mutual exclusion for the edge" by A. Khinvasara, 2023). The thesis' algorithm
//! breaks under false suspicions, restarts and changing lists; the rules here do not, and each
//! entry has a fencing token besides. What differs and why is said in `docs/errata.md`.
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | at most one node is inside | [`Config::takeover`] is `None`; at most [`Config::upper`] lives of nodes are present, in all, from the beginning of a request to its end; with [`Config::keep`] that is when no permission is kept any more ([`Camera::kept`]), however long this node was out; `Left` and `Confirmed` are true |
//! | tokens rise strictly from entry to entry, also past a crashed holder | the same; from the beginning of one entry's request to the next entry not so many nodes restart that no two majorities share a life. (A newcomer is told the highest token at once, by all; that message may be lost) |
//! | with a takeover: whoever enters past another has a higher token than it; who was passed over may be inside, or enter later, with the lower one, and is told as soon as it can be reached | as for tokens |
//! | whoever waits gets in, or is told why not | messages get through now and then; holders exit; a holder that dies is confirmed dead, or is passed over after [`Config::takeover`], which who waits has to be told, and who gave it its OK; with a takeover a false failure is taken back in the end; where a node that asked to enter is gone and its RELEASE did not reach this node, its end is told: of those in [`Camera::waits_for`] and [`Camera::granted`] that membership has as over or failed the host tells that again, and asks it after those that it has neither as live nor as over |
//! | `Suspected` and `Failed` may be wrong, in any order, at any time, and break none of this | |
//! | an uncontended entry sends 2 messages for each other member, and takes one round trip | no loss; all that have entered before are known |
//! | with [`Config::keep`] a node that enters again and again sends nothing | nobody else wants to enter; its host gives back what is kept ([`Command::GiveBack`]) before more lives than [`Config::upper`] have been present |
//! | with [`Config::eager`] the slower half of the answers is not waited for | they are not rivals' |
//! | memory is bounded, whatever peers send; nothing panics | [`Config::peer_limit`] |
//! | a node that cannot remember all others holds up nobody: it gives no OK where it has no room, and is refused where it would have to wait for whom it cannot remember | the others' messages get through |
//! | handling a message takes O(log N), and the list that an OK brings; on the slow path it may ask all neighbours, and sorts what it tells; who is new where `peer_limit` is reached takes O(N) | |
//!
//! What is *not* promised: that a node which was wrongly passed over stops in time. It is told
//! ([`Event::Fenced`]), and a resource that refuses lower tokens than it has seen is safe.
//!
//! # Two paths
//!
//! The fast path asks everyone on the list. Where those are not more than half of
//! [`Config::upper`], at the beginning or because the list got shorter meanwhile, the request takes
//! the slow path (section 4.4): it goes from neighbour to neighbour through the whole mesh, and the
//! OKs come back along the tree that this makes, each node's with those of all below it. That costs
//! two to four messages for each pair of neighbours, and a round trip through as many levels as the
//! tree has, and one more.
//! Inner nodes may die while it runs. [`Config::slow_path`] switches it off.
//!
//! # Where a node stands
//!
//! ```text
//!            Enter: REQUEST to all            OK of all who must, and of a quorum
//!   ┌──────┐ ───────────────────> ┌─────────┐ ───────────────────> ┌────────┐
//!   │ idle │                      │ waiting │                      │ inside │
//!   └──────┘ <─────────────────── └─────────┘                      └────────┘
//!      ^       Cancel, or too few                                       │
//!      └──────────────────────── Exit: RELEASE to all, OK to who waits ─┘
//! ```
//!
//! # Two nodes, by hand
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
//! // Node 1 asks, node 2 says OK, node 1 is inside.
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
//! A [`Camera`] is one section. [`sections`] has many of them in one machine, each with a name.
//!
//! # Features
//!
//! `serde` for messages, settings and counters (hosts need it for the wire); `std` for [`gate`],
//! through which many threads and tasks queue for the section; `arbitrary`; `check` for the
//! promises as properties of the model checker and the published rules that break them.

#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "std"),
    allow(rustdoc::broken_intra_doc_links, reason = "gate needs std")
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "check")]
pub mod check;
mod config;
mod counters;
mod entry;
pub mod estimate;
mod event;
mod failure;
#[cfg(feature = "std")]
pub mod gate;
mod grant;
mod machine;
mod message;
mod peers;
mod published;
mod repair;
mod request;
mod room;
pub mod sections;
mod slow;
mod sound;
mod token;
mod tree;
mod waiting;

pub use config::{Config, ConfigError};
pub use counters::Counters;
pub use event::{Command, Event, Misbehaviour, Refusal, Reject, Timer};
pub use machine::Camera;
pub use message::{Branch, Branches, KIND, Message, Request, Rival, Rivals, TreeId};
#[cfg(feature = "check")]
pub use published::Published;
pub use token::Token;
