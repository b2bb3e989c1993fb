//! Many sections in one mesh, each with a name.
//!
//! A [`Camera`](crate::Camera) is one node's part in one section. [`Sections`] is its part in all
//! sections: it has a camera for each section that was opened here or that others use. In
//! a section that only others use, it takes part as every node must (it gives OKs, and remembers
//! their receivers and the highest token), and cannot enter. Each message and each timer carries the
//! name of its section.
//!
//! # Promises
//!
//! | promise | assumptions |
//! |---|---|
//! | the promises of [`Camera`](crate::Camera), in each section by itself | the same; for "a node that waits enters": no section was refused for lack of room |
//! | sections are independent: an event in one section changes nothing in another, except that numbers may leap when [`Config::passive_limit`] is reached | |
//! | every node takes part in every section, even if it did not open that section, and soon after the first message about it | messages arrive infinitely often |
//! | a command for a section that is not open is refused by name, and nothing changes | |
//! | tokens rise from entry to entry in each section, also when a node dropped the section in between | as for [`Camera`](crate::Camera) |
//! | memory is bounded for any input from peers; nothing panics | [`Config`] |
//! | handling a message takes O(log s) with s sections, plus the camera's own time; the first message about a section, or its opening, takes O(members + s) | |
//!
//! # Dropped sections
//!
//! A peer can make up names of sections, and must not use up a node's memory in this way. But:
//!
//! - An OK must not be forgotten while its request may be open: two quorums share a node that knows
//!   both requests, and a node that forgot the first would let the second enter.
//! - The highest token must not be forgotten, or tokens would fall.
//! - A node must not use a request number twice in one life, or a late OK to the first request
//!   would count for the second.
//!
//! So a section is dropped only if it is not open here and no node has this node's OK in it or
//! waits for one, and only to make room for another section. It leaves three numbers, kept for
//! *all* sections that were dropped: the highest token, the highest number of a request of this
//! node, and the highest number of a token that such a request might have had: all these requests
//! are over. A section that is made later, under any name, begins with these numbers. If a section
//! is dropped and made again, its numbers leap up to those of other sections; they never fall. One
//! thing is lost: this node sends a node that joins the highest token of each section that it has,
//! and none for dropped sections. So the newcomer may not know that token until some node uses that
//! section again.
//!
//! If nothing can be dropped, a request in a section that is new here is not answered, and is
//! counted ([`Counters::passive_refused`]). Its sender asks again, and waits. So `passive_limit`
//! should be at least the number of sections in the mesh that are in use at the same time.
//!
//! # Example: two sections at once
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
//!     // Each opens the section that it wants to enter, and takes part in the other without opening it.
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
