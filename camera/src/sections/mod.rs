//! Many sections in one mesh, each with a name.
//!
//! A [`Camera`](crate::Camera) is one node's part in one section. [`Sections`] is its part in all
//! of them: it has a camera for each section that was opened here, and for each that others use. In
//! a section that only others use, it takes part as every node must (it says OK, and remembers to
//! which nodes, and the highest token), and cannot enter. Each message and each timer carries the
//! name of its section.
//!
//! # What is promised
//!
//! | promise | under which assumption |
//! |---|---|
//! | what [`Camera`](crate::Camera) promises, in each section by itself | the same; for "a node that waits gets in": no section was refused for want of room |
//! | sections are independent: what happens in one changes nothing in another, except that numbers may leap when [`Config::passive_limit`] is reached | |
//! | every node takes part in every section, whether it opened that section or not, and soon after the first message about it | a message gets through now and then |
//! | a command for a section that is not open is refused by name, and nothing changes | |
//! | tokens rise from entry to entry in each section, also when a node dropped the section in between | as for [`Camera`](crate::Camera) |
//! | memory is bounded, whatever peers send; nothing panics | [`Config`] |
//! | handling a message takes O(log s) with s sections, and what the camera takes; making a section O(members) | the first message about a section that finds no room takes O(s) |
//!
//! # What is remembered, and what may be forgotten
//!
//! A peer can name sections as it likes, and no node may use memory for ever for that. But:
//!
//! - An OK must not be forgotten while its request may be open: two quorums share a node that knows
//!   of both, and a node that forgot the first would let the second pass.
//! - The highest token must not be forgotten, or tokens would fall.
//! - The number of an own request must not come twice in one life, or a late OK to the first
//!   request would count for the second.
//!
//! So a section is dropped only if it is not open here and no node has this node's OK in it or
//! waits for one, and only to make room for another section. It leaves three numbers, kept for
//! *all* sections that were dropped: the highest token, the highest number of a request of this
//! node, and the highest number of a token that such a request might have had: all these requests
//! are over. A section that is made later, under whatever name, begins with these numbers. Where a
//! section is dropped and comes back, its numbers leap up to those of others; they never fall. One
//! thing is given up: a node that joins is told the highest token of each section that this node
//! has, and not of those that were dropped. So it is not among the nodes that know that token until
//! some node uses that section again.
//!
//! Where nothing can be dropped, a request in a section that is new here is not answered, and is
//! counted ([`Counters::passive_refused`]). Its sender asks again, and waits. So `passive_limit`
//! should be at least the number of sections in the mesh that are in use at the same time.
//!
//! # Two sections at once
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_camera::sections::{Command, Config, Name, Sections};
//! use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let members = [Member::new(1, 0), Member::new(2, 0)];
//! let mut nodes = members.map(|me| Driver::new(Sections::new(me, Config::new(2)).unwrap()));
//! let (door, lift): (Name, Name) = ("door".parse()?, "lift".parse()?);
//! let mut wire = Vec::new();
//! for (at, section) in [(0, door), (1, lift)] {
//!     let joined = Input::Membership(Delta::Joined(members[1 - at]));
//!     nodes[at].step(Time::ZERO, &mut rng, joined, |_| ())?;
//!     // Each opens the one that it wants to enter, and takes part in the other one all the same.
//!     let open = Command::Open { name: section, config: None };
//!     for command in [open, Command::Enter(section)] {
//!         nodes[at].step(Time::ZERO, &mut rng, Input::Command(command), |it| wire.push((at, it)))?;
//!     }
//! }
//! while let Some((sender, effect)) = wire.pop() {
//!     if let Effect::Send { message, .. } = effect {
//!         let (from, to) = (members[sender], 1 - sender);
//!         let input = Input::Message { from, message };
//!         nodes[to].step(Time::ZERO, &mut rng, input, |it| wire.push((to, it)))?;
//!     }
//! }
//! let token = |at: usize, name| nodes[at].machine().get(name).and_then(|it| it.token());
//! assert!(token(0, door).is_some() && token(1, lift).is_some());
//! assert!(token(1, door).is_none() && token(0, lift).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod event;
mod machine;
mod message;
mod name;
mod remains;

pub use config::{Config, ConfigError};
pub use event::{Command, Counters, Event, Reject, Timer};
pub use machine::Sections;
pub use message::{KIND, Message};
pub use name::{Name, NameError};
