//! Any machine, checked in every order of events.
//!
//! A [`Model`] is a list of machines, the commands of their applications, the faults that may occur
//! ([`Bounds`]), and the properties that must hold. The check visits every reachable state: every
//! order in which messages arrive, timers fire and commands are issued, every fault within the
//! bounds, and every outcome of every choice that a machine makes.
//!
//! The check runs the production machine itself. Nothing is sampled, and no timing is assumed: an
//! armed timer may fire at once.
//!
//! # Check a machine of your own
//!
//! Three nodes pass a token round. The node that has it may work.
//!
//! ```
//! use selvedge_core::{Context, Input, Machine, Member, Span};
//! use selvedge_sim::check::{Bounds, Model};
//!
//! #[derive(Clone, Debug, PartialEq, Eq, Hash)]
//! struct Ring { me: Member, next: Member, working: bool }
//!
//! impl Machine for Ring {
//!     type Message = &'static str;
//!     type Timer = ();
//!     type Command = ();
//!     type Event = ();
//!     type Reject = &'static str;
//!     fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Self::Reject> {
//!         match input {
//!             Input::Message { .. } => { self.working = true; cx.arm((), Span::millis(100)); }
//!             Input::Tick(()) => { self.working = false; cx.send(self.next, "token"); }
//!             Input::Command(()) | Input::Membership(_) => return Err("it has nothing to ask"),
//!         }
//!         Ok(())
//!     }
//! }
//!
//! // The check, from here on.
//! let ring = |id: u64| Ring {
//!     me: Member::new(id, 0),
//!     next: Member::new((id + 1) % 3, 0),
//!     working: false,
//! };
//! let working = |ring: &&Ring| ring.working;
//! let model = Model::new((0..3).map(ring).collect(), |ring| ring.me)
//!     // At the beginning, node 0 gives itself the token.
//!     .start(|node, _life, ring, cx| {
//!         if node == 0 { cx.send(ring.me, "token"); }
//!         Ok(())
//!     })
//!     .always("one works at a time", move |state| state.machines().filter(working).count() <= 1)
//!     .progress("node 2 gets to work", |state| state.node(2).is_some_and(|node| node.machine().working))
//!     .never_rejects("nothing unexpected arrives");
//!
//! // The token is on its way to one of three, or one of three has it; and once, at first, it is
//! // on its way from node 0 to itself.
//! assert_eq!(model.verify()?, 7);
//!
//! // On a network that may deliver a message twice, the property breaks, as this trace shows:
//! let model = model.show(|ring| if ring.working { "works".into() } else { "idles".into() });
//! let found = model.bounds(Bounds { duplicates: 1, ..Bounds::default() }).verify().unwrap_err();
//! assert_eq!(found.to_string(), "\
//! one works at a time (3 nodes, duplicates 1) breaks after 4 steps
//!   0. start
//!        n0#0 = idles
//!        n1#0 = idles
//!        n2#0 = idles
//!   1. \"token\" from n0#0 to n0 arrives, and a copy stays on its way
//!        n0#0 = works, armed [()]
//!   2. timer () fires at n0#0
//!        -> sends \"token\" to n1#0
//!        n0#0 = idles
//!   3. \"token\" from n0#0 to n0 arrives
//!        n0#0 = works, armed [()]
//!   4. \"token\" from n0#0 to n1 arrives
//!        n1#0 = works, armed [()]
//!      here it breaks");
//! # Ok::<(), selvedge_sim::check::Surprise>(())
//! ```
//!
//! # Meaning of a pass
//!
//! | a property | meaning | how the check shows it |
//! |---|---|---|
//! | [`always`](Model::always) | it is true in every reachable state | visits all of them |
//! | [`sometimes`](Model::sometimes) | it is true in some reachable state | finds such a state |
//! | [`progress`](Model::progress) | from every state a goal stays within reach, without the help of a fault | searches backwards from the goals |
//! | [`never_rejects`](Model::never_rejects) | no message, tick or delta is refused | takes every step |
//!
//! A machine that panics breaks [`NO_PANIC`], in any model: the trace shows the steps that lead to
//! the panic, its place and its text.
//!
//! Only a complete run can pass, and a pass assumes the condition on `Hash` below. A run that met a
//! limit or a boundary, or a machine that breaks the contract, is [`Outcome::Truncated`] with the
//! reason, and so is a property that was left open because another one broke. Counts of unique
//! states are exact and the same on every machine, so a scenario states its count, and a check that
//! suddenly explores less fails.
//!
//! # Limits of the model
//!
//! - The network delivers in any order. It loses and doubles only within [`Bounds`].
//! - Time is not modelled: `now` is always zero, and a timer that is armed may fire at any moment,
//!   before any other. [`Bounds::early_ticks`] makes timeouts longer than deliveries; without it
//!   a machine that sends on each tick has no end of states.
//! - Nothing is stored, and [`Model::restart`] decides the state that a restarted machine
//!   keeps of its previous life; or facts are stored ([`Model::durable`]), and a crash loses the facts that are
//!   not stored yet, with every effect behind them.
//! - A letter goes to a node id, in any life of that node, and carries the name under which its
//!   sender sent it. Letters to a node that can never come back are removed.
//! - A refused message, tick or delta is used up; a refused command waits.
//! - A state is identified by a 128-bit hash of its `Hash` output. Two states that differ only
//!   where `Hash` does not look are one state, and the second is never visited. So a pass assumes
//!   that no field that decides a machine's behaviour is in
//!   [`Untracked`](selvedge_core::Untracked), or left out by a `Hash` that is not derived.
//! - Numbers that grow for ever (sequence numbers, incarnations) make states without end, so bound
//!   the ticks, commands and faults that make them grow.
//!
//! One thread visits some 100,000 to 250,000 states a second, with about 60 bytes for each and more
//! for those on the frontier; see [`Limits`].

mod action;
mod bounds;
mod durable;
mod erratum;
mod explore;
mod fingerprint;
mod list;
mod model;
mod notify;
mod odometer;
mod progress;
mod property;
mod report;
mod run;
mod scenario;
mod state;
#[cfg(feature = "stateright")]
mod stateright;
mod step;
mod successors;
mod trace;

#[cfg(feature = "stateright")]
pub use self::stateright::{
    COMPLETE, Disagreement, ExploreError, Reached, Stateright, Step, Verdict, explore,
};
pub use action::Action;
pub use bounds::{Bounds, Limits};
pub use erratum::{Erratum, Trial, breaks, holds};
pub use list::{Flaw, verify_ours, verify_published};
pub use model::Model;
pub use odometer::{Asked, Choice, Odometer};
pub use property::Observer;
pub use report::{Expected, Incomplete, NO_PANIC, Outcome, Report, Rules, Surprise};
pub use scenario::{Scenario, Threaded};
pub use state::{Letter, Node, State};

pub use trace::{Trace, TraceStep};
