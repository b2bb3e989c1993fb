//! Many replicated states in one machine, each held by a group of its own: founded from a plan,
//! moved from epoch to epoch, mended after failures, and found from any node.
//!
//! | promise | under which assumption |
//! |---|---|
//! | each group decides one history, whatever lists, clocks and hashes say | those of [`selvedge_replica`]; [`Begin::First`] is said once in a generation of the plan |
//! | groups of two plans never mix | their digests differ (32 bits) |
//! | a group gets a leader, and a question from any node reaches it, where it is asked again | a quorum of it is here; messages get through now and then; lists become alike; a founder, or a node that both lists name, knows the group |
//! | a group whose members fail one after another goes on | fewer than a quorum fail, or begin again, before the next ones have the state |
//! | a link names nodes in lives that just said that they are here | |
//! | a member that slept or was cut off gives up what is over | an epoch begins, where it believes to lead; a founder, or a former member that it knows, remembers where the group is |
//! | memory grows with the groups that a node is in, and by a configuration of each group that it was in | the state is bounded |
//!
//! What is *not* promised:
//!
//! - That the members are those that the lists say now: a leader chooses from its own list, and when an
//!   epoch begins or members fail.
//! - Answers: a question may be lost, and so may its answer. Ask again; make questions that may be
//!   asked twice.

mod change;
mod config;
mod counters;
mod event;
mod found;
mod inquiry;
mod machine;
mod message;
mod part;
mod plan;
mod route;
mod seek;
mod state;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use counters::Counters;
pub use event::{Begin, Command, Event, Fact, Misbehaviour, Reject, Timer};
pub(crate) use message::encoded_len;
pub use message::{Item, KIND, Message};
pub use plan::{Plan, PlanError};
pub use state::{Begins, Carried, Groups};
