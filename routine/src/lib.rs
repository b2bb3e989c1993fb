//! The language of routines: the commands of a home, and their times.
//!
//! A [`Routine`] is a list of commands to devices: close the window, then switch on the heating. A
//! command may have a condition on the states of devices ([`Clause`]), and a rule for its failure
//! ([`Priority`]). A [trigger](trigger::Trigger) starts a routine at a time of day, after an
//! interval, or when a clause about the states of devices becomes true. Module `file` reads and
//! writes all of it as JSON or YAML, in the form of "Home, SafeHome: Smart Home Reliability with
//! Visibility and Atomicity" by S. B. Ahsan and others (EuroSys 2021), with more keys.
//!
//! This crate runs no command and knows no protocol. A protocol, such as SafeHome's hub
//! (`selvedge-safehome`), takes the routines and has promises of its own about their commands.
//!
//! # Promises
//!
//! | promise | assumption |
//! |---|---|
//! | a trigger submits its routine at each of its events: a time of day once a day, an interval each time that it has passed, a clause each time that it becomes true | the host ticks, and reports states and the local clock; the clock is [corrected](trigger::CORRECTION) by a minute at most, else see module [`trigger`] |
//! | a clause submits nothing while its answer depends on an unknown state | |
//! | a home that is read, written and read again is equal; states are exact | feature `json` |
//! | a file that contradicts itself, has an unknown key or does nothing is refused, with the place, the fault and the remedy | feature `json` |
//! | the condition of a block has the same answer for all its commands | a protocol that lets no other routine change the devices in a routine's conditions, as SafeHome's hub does |
//! | memory is bounded; no input causes a panic | [`trigger::Config`]; reading takes memory in proportion to the file, and to its expanded form, which has a limit |
//!
//! This crate does *not* promise:
//!
//! - That a submitted routine runs: that is a promise of the protocol.
//! - Triggers while the host is away: see [after a restart](trigger#after-a-restart).
//!
//! # A routine and its triggers
//!
//! A host adds routines and triggers to a [`Dispatcher`](trigger::Dispatcher), from a file
//! (`file::Home`) or made by itself. It reports the states of devices and the local clock to the
//! dispatcher, and passes submitted routines to its protocol.
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_core::{Driver, Effect, Input, NodeId, Time};
//! use selvedge_routine::trigger::{Command, Config, Dispatcher, Event, TimeOfDay, Trigger};
//! use selvedge_routine::{Clause, Comparison, Condition, Routine, State, Step};
//!
//! let [window, heating] = [NodeId(1), NodeId(2)];
//! let steps = vec![Step::new(window, "closed".into()), Step::new(heating, 21.into())];
//! let cold = Clause::Is(Condition {
//!     device: heating,
//!     comparison: Comparison::Less,
//!     value: State::from(18),
//! });
//! let time = |text| TimeOfDay::parse(text).unwrap();
//!
//! let name = || "warm up".to_string();
//! let commands = [
//!     Command::AddRoutine { name: name(), routine: Routine { steps } },
//!     Command::AddTrigger { name: name(), trigger: Trigger::When(cold) },
//!     Command::AddTrigger { name: name(), trigger: Trigger::At(time("06:30")) },
//!     Command::SetClock(time("06:00")),
//!     Command::Observed { device: heating, state: Some(19.into()) },
//!     Command::Observed { device: heating, state: Some(17.into()) },
//! ];
//!
//! // A dispatcher draws nothing; a protocol beside it may.
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let mut dispatcher = Driver::new(Dispatcher::new(Config::default())?);
//! let mut submitted = Vec::new();
//! let mut on_effect = |effect| {
//!     if let Effect::Event(Event::Submit { name, routine, .. }) = effect {
//!         // SafeHome's hub takes it by `Command::Submit(routine)`.
//!         submitted.push((name, routine));
//!     }
//! };
//! for command in commands {
//!     dispatcher.step(Time::ZERO, &mut rng, Input::Command(command), &mut on_effect)?;
//! }
//! // The host waits until then, unless it has a report before.
//! let due = dispatcher.deadline().ok_or("half past six does not come")?;
//! assert_eq!(due, Time(30 * 60 * 1_000_000));
//! dispatcher.expire(due, &mut rng, &mut on_effect);
//! assert_eq!(submitted.len(), 2, "it became cold, and it is half past six");
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Features
//!
//! `serde` for routines, triggers and states; `json` for routine files (module `file`); `yaml` for
//! the same in YAML, and for scripts of Home Assistant; `sun` for sunrise and sunset (module `sun`),
//! without std; `std`; `arbitrary`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod catalogue;
mod clause;
#[cfg(feature = "json")]
pub mod file;
mod location;
mod routine;
mod state;
#[cfg(feature = "sun")]
pub mod sun;
mod terms;
pub mod trigger;

pub use catalogue::{Catalogue, Taken};
pub use clause::Clause;
pub use location::Location;
pub use routine::{Comparison, Condition, LONGEST_LATENESS, Priority, Routine, Step};
pub use state::{Number, State, Value};
pub use terms::{LONGEST_KEY, Mode, Series, Terms, Urgency};

/// The example of the README runs with the tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
