//! The contract of the Selvedge crates: protocols as pure state machines, and how a host runs
//! them.
//!
//! A [`Machine`] does no I/O. A host passes it messages, ticks, membership changes and commands
//! ([`Input`]) and carries out the resulting effects ([`Effect`]). The [`Driver`] keeps the
//! machine's timers and buffers, so that a host has three duties only: step, expire, carry out.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | the same inputs, times and choices give the same effects, byte for byte, on every platform | the machine keeps the rules below |
//! | a refused input changes nothing and has no effect | the machine keeps the rules below; debug builds of [`Driver`] check this one, in the first 16 steps and in each seventh one |
//! | no timer is lost, doubled or early; time never steps back | the host calls [`Driver::expire`] when [`Driver::deadline`] has come |
//! | effects are handed to the host in order, and none is lost | the host's closure does not panic |
//! | a step allocates nothing in steady state | the machine does not; no more timers are armed than at one moment before |
//!
//! # Rules for machines
//!
//! - No clock, no random generator, no I/O: time and random choices come from the [`Context`].
//! - No absolute time in the state: arm a timer instead. A value that is not part of the state is
//!   [`Untracked`].
//! - A choice is made among its outcomes ([`Context::below`], [`Context::chance`],
//!   [`Context::weighted`]), never from random bits: so a checker can explore every outcome.
//! - Check first, change later: an `Err` must leave everything as it was.
//! - Every collection that a peer can grow has a limit ([`BoundedMap`], [`BoundedQueue`]) and a
//!   counter of refused entries.
//! - Data that must survive a crash is a fact ([`durable`]): an event that the machine emits before
//!   the effects that depend on it. The host stores the fact before it carries out these effects;
//!   the machine waits for nothing.
//!
//! # A machine, and a host for it
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Span, Time};
//!
//! /// Greets a peer every second and counts the greetings it got.
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Greeter {
//!     peer: Member,
//!     received: u8,
//! }
//!
//! impl Machine for Greeter {
//!     type Message = &'static str;
//!     type Timer = ();
//!     type Command = ();
//!     type Event = u8;
//!     type Reject = &'static str;
//!
//!     fn handle(
//!         &mut self,
//!         input: Input<Self>,
//!         cx: &mut Context<'_, Self>,
//!     ) -> Result<(), Self::Reject> {
//!         match input {
//!             Input::Message { from, .. } if from != self.peer => return Err("a stranger"),
//!             Input::Message { .. } => {
//!                 self.received = self.received.saturating_add(1);
//!                 cx.event(self.received);
//!             }
//!             Input::Command(()) | Input::Tick(()) => {
//!                 cx.send(self.peer, "good day");
//!                 cx.arm((), Span::secs(1));
//!             }
//!             Input::Membership(_) => {}
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(7);
//! let mut driver = Driver::new(Greeter { peer: Member::new(2, 0), received: 0 });
//! let mut sent = Vec::new();
//!
//! driver.step_into(Time::ZERO, &mut rng, Input::Command(()), &mut sent)?;
//! assert_eq!(driver.deadline(), Some(Time::ZERO + Span::secs(1)));
//! driver.expire_into(Time::ZERO + Span::secs(1), &mut rng, &mut sent);
//! assert_eq!(sent.len(), 2);
//! assert!(matches!(sent[0], Effect::Send { to, .. } if to == Member::new(2, 0)));
//!
//! let stranger = Input::Message { from: Member::new(3, 0), message: "hello" };
//! assert_eq!(driver.step(Time::ZERO, &mut rng, stranger, |_| ()), Err("a stranger"));
//! # Ok::<(), &'static str>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod bounded;
mod choose;
mod context;
mod driver;
pub mod durable;
mod fencing;
mod machine;
mod member;
mod nested;
mod pending;
mod published;
pub mod quorum;
pub mod roster;
pub mod settings;
#[cfg(feature = "std")]
pub mod shared;
mod sortition;
pub mod stamp;
mod time;
mod timers;
mod untracked;
mod weight_tree;
pub mod wire;

pub use bounded::{BoundedMap, BoundedQueue, Full};
pub use choose::{Choose, Ratio, Weights};
pub use context::{Context, Outbox};
pub use driver::Driver;
pub use fencing::{FencingToken, ParseTokenError};
pub use machine::{Effect, Input, Machine};
pub use member::{Delta, Incarnation, Member, NodeId, serial_newer};
pub use nested::Nested;
pub use pending::Pending;
pub use sortition::{Rank, Sha256Sortition, SipSortition, Sortition};
pub use stamp::Stamp;
pub use time::{Span, Time};
pub use untracked::Untracked;
pub use weight_tree::WeightTree;

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
