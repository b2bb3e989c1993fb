//! Many replicated states in one machine, each held by a group of its own: founded from a plan,
//! moved from epoch to epoch, mended after failures, and found from any node.
//!
//! | promise | under which assumption |
//! |---|---|
//! | each group decides one history, whatever lists, clocks and hashes say | those of [`selvedge_replica`]; [`Begin::First`] is said once in a generation of the plan |
//! | groups of two plans never mix | their digests differ (32 bits) |
//! | a group gets a leader, and a question from any node reaches it, where it is asked again | a quorum of it is here; messages get through now and then; lists become alike, and have nodes that fail no longer; a founder, or a node that both lists name, knows the group |
//! | a group whose members fail one after another goes on | fewer than a quorum fail, or begin again, before the next ones have the state |
//! | a link names nodes in lives that just said that they are here, while a quorum of the group answers | |
//! | a member that slept or was cut off gives up what is over | an epoch begins, where it believes to lead; a founder, or a former member that it knows, remembers where the group is |
//! | memory grows with the groups that a node is in, and by a configuration of each group that it was in | the state is bounded |
//!
//! # Which nodes may say what
//!
//! A plan names each node that has a part in groups, also one that only asks: any of them may be chosen
//! for any group. So a message from another node is [refused](Misbehaviour::Unplanned) as a whole: it
//! would be remembered as a member's. Of the nodes of the plan
//!
//! - any may ask. A node that does not lead answers where the group is;
//! - any may tell. That it leads is not asked for: it may have led when it was asked, and what a group
//!   decides is told by many of its leaders;
//! - any may say where a group is, with a number that a configuration can have and with members that
//!   the plan names; the rest is refused and [counted](Counters::refused). What it says counts until a
//!   later configuration is told of, until an epoch begins, or until a few questions went unanswered.
//!   Then any other word takes its place. So a node that is wrong, or lies, costs messages and a while.
//!
//! What is *not* promised:
//!
//! - That the members are those that the lists say now: a leader chooses from its own list, and when an
//!   epoch begins or members fail.
//! - Answers: a question may be lost, and so may its answer. Ask again; make questions that may be
//!   asked twice.

mod change;
#[cfg(feature = "check")]
pub mod check;
mod config;
mod counters;
mod durable;
mod event;
mod found;
mod hints;
mod inquiry;
mod machine;
mod message;
mod part;
mod plan;
mod published;
mod route;
mod seek;
mod state;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use counters::Counters;
pub use event::{Begin, Command, Damage, Event, Fact, Misbehaviour, Reject, Timer};
pub(crate) use message::encoded_len;
pub use message::{Item, KIND, Message};
pub use plan::{Plan, PlanError};
#[cfg(feature = "check")]
pub use published::Published;
pub use state::{Begins, Carried, Groups};
