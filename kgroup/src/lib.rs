//! K-groups: for each device and each routine of an edge mesh a few nodes that look after it, chosen
//! by all nodes alike without a message. The selection of "CoMesh: Fully-Decentralized Control for
//! Sense-Trigger-Actuate Routines in Edge Meshes", sections 3.1 and 3.6.
//!
//! This crate chooses, so far, and has the words in which groups will speak. What a group agrees on is the business of a replicated state
//! (`selvedge-replica`), for which a choice is a proposal: nodes whose lists differ choose
//! differently.
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | two nodes choose the same group for a target, in the same order, bit for bit | their lists of nodes, places, settings, hash and epoch are equal; the order of the lists does not matter |
//! | a group has 2f + 1 different members | enough nodes are known; else [`Unplaceable`] says so |
//! | a node that joins or leaves changes, with [`Policy::Uniform`], only the groups that it enters or was in, and one member of each | |
//! | with [`Policy::Uniform`] each node is in as many groups as any other, on average over targets and epochs | the hash is one |
//! | two nodes part the same devices into the same clusters | their lists and counts are equal |
//! | nothing panics, for all places and ids | |
//!
//! What is *not* promised:
//!
//! - That nodes with different lists agree.
//! - That near members are near: where few nodes are similar to the target's place, others fill up.
//! - Anything against a node that chooses its id: it can choose one of a low rank. Use a keyed
//!   [`Sortition`](selvedge_core::Sortition).
//!
//! # Why two nodes agree
//!
//! All numbers are integers: places, the slopes of the hash functions (sums of uniform numbers that
//! a hash draws, in 1/1024), floors of divisions, squares of distances. Ties are broken by rank, and
//! then by id. No node's past plays a part: the paper appends to a node's place where it was active in
//! the last epoch, and a node that missed one epoch then chooses other groups for ever (erratum
//! G10).
//!
//! # A group
//!
//! ```
//! use selvedge_core::Sha256Sortition;
//! use selvedge_kgroup::{Chooser, Selection, Locality, Node, Place, Policy, Target, GroupId};
//!
//! // A floor of 10 by 10 metres, in centimetres.
//! let nodes = (0..100).map(|at| Node::new(at as u64, Place([at / 10 * 100, at % 10 * 100, 0])));
//! let config = Selection::new().with_policy(Policy::Near(Locality::for_spacing(100)));
//! let chooser = Chooser::new(config, &Sha256Sortition, 7, nodes)?;
//!
//! let lamp = Target { id: GroupId(1), place: Some(Place([420, 310, 0])), neighbours: &[] };
//! let members = chooser.choose(lamp)?;
//! assert_eq!(members.len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! | what | costs |
//! |---|---|
//! | an epoch of n nodes | n hashes, and O(n log n) for each table |
//! | a group | 1 hash and O(n) comparisons of numbers |
//!
//! # Features
//!
//! | feature | what it adds |
//! |---|---|
//! | `arbitrary` | arbitrary values for fuzzing |
//! | `check` | the promises as properties of the model checker, and the published rules that break them |
//! | `sha256` (default) | ranks by SHA-256; without it bring a [`Sortition`](selvedge_core::Sortition) |
//! | `std` | std in `selvedge-core` |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(feature = "std", doctest))]
extern crate std;

mod choose;
mod cluster;
mod config;
pub mod devices;
mod draw;
mod event;
pub mod groups;
mod held;
mod leading;
mod locality;
mod machine;
mod parcel;
mod place;
pub mod routines;
mod selection;
mod site;
pub mod store;
mod wish;

pub use choose::{Chooser, GroupId, Node, Target, Unplaceable};
pub use cluster::{Cluster, clusters};
pub use config::{Config, ConfigError};
pub use event::{Command, Event, Reject, Timer};
pub use held::{Decided, Held, Update};
pub use leading::{LeaderEvent, LeaderTimer};
pub use machine::Kgroup;
pub use parcel::{Answer, Claim, Delivery, Outcome, Parcel, Patience, Request, Status, TriggerId};
pub use place::Place;
pub use selection::{Leader, Locality, Policy, Selection};
pub use site::{Site, SiteError};
