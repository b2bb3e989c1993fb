//! Facts, which must survive a crash, and the order in which a host stores them and carries out the
//! effects that depend on them.
//!
//! A *fact* is an event that the host stores before it carries out any effect that comes after it.
//! So a machine that promises something emits the fact first and sends the promise behind it, in
//! the same step, and waits for nothing: no token travels, and no waiting effect is part of its
//! state. A new machine that folds the stored facts of its former lives ([`Durable::fold`]) keeps
//! every promise that a peer can have received.
//!
//! | promise of a [`Barrier`] | assumption |
//! |---|---|
//! | an effect is released when all facts before it are stored, and not earlier | the host calls [`Barrier::stored`] for facts that are safe on its storage |
//! | effects are released in the order in which the machine emitted them; none is lost or doubled | the process does not stop |
//! | an effect with no unstored fact before it is released at once, without allocation | |
//! | after a crash the machine has all facts of which a later effect was carried out | after a crash, storage holds a prefix of the facts that it was given |
//! | at most `limit` effects wait, and those of one call of [`Driver::step`](crate::Driver::step) or [`Driver::expire`](crate::Driver::expire) | the host asks [`Barrier::ready`] before each call |
//!
//! State that a host reads from the machine itself may depend on facts that are not stored yet. An
//! answer to a command goes through the barrier as the effects do, or waits until the mark of the
//! last fact ([`Barrier::last`]) [is stored](Barrier::is_stored).
//!
//! # A counter that must not forget, and a host with group commit
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use core::convert::Infallible;
//! use selvedge_core::durable::{Barrier, Durable};
//! use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, Time};
//!
//! /// Gives out numbers, each once.
//! #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
//! struct Counter { last: u32 }
//!
//! impl Machine for Counter {
//!     type Message = u32;
//!     type Timer = ();
//!     type Command = Member;
//!     type Event = u32;
//!     type Reject = ();
//!
//!     fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
//!         let Input::Command(asker) = input else { return Err(()) };
//!         self.last += 1;
//!         cx.event(self.last); // the fact first,
//!         cx.send(asker, self.last); // then the effect that depends on it
//!         Ok(())
//!     }
//! }
//!
//! impl Durable for Counter {
//!     type Fact = u32;
//!     type Damage = Infallible;
//!
//!     fn fact(event: &u32) -> Option<&u32> {
//!         Some(event)
//!     }
//!
//!     fn fold(&mut self, last: &u32) -> Result<(), Infallible> {
//!         self.last = *last;
//!         Ok(())
//!     }
//! }
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(7);
//! let mut driver = Driver::new(Counter::default());
//! let mut barrier = Barrier::new(100);
//! let (mut log, mut sent) = (Vec::new(), Vec::new());
//! let mut carry_out = |effect: Effect<Counter>| {
//!     if let Effect::Send { to, message } = effect {
//!         sent.push((to.id.0, message));
//!     }
//! };
//!
//! // Two members ask. Nothing is sent: one write to storage stands before both answers.
//! for asker in [Member::new(1, 0), Member::new(2, 0)] {
//!     barrier.ready()?;
//!     let input = Input::Command(asker);
//!     driver
//!         .step(Time::ZERO, &mut rng, input, |effect| barrier.take(effect, &mut carry_out))
//!         .map_err(|()| "refused")?;
//! }
//! let mark = barrier.write_facts(|fact| log.push(*fact)).ok_or("nothing to store")?;
//! barrier.stored(mark, &mut carry_out);
//! assert_eq!(sent, [(1, 1), (2, 2)]);
//!
//! // It stops, and begins again from the stored facts: 1 and 2 are not given out again.
//! let mut counter = Counter::default();
//! for fact in &log {
//!     counter.fold(fact)?;
//! }
//! assert_eq!(counter.last, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The rule is the one of write-ahead logging: Mohan et al., "ARIES", ACM TODS 17(1), 1992.

use alloc::collections::VecDeque;
use core::fmt::Debug;
use core::hash::Hash;

use thiserror::Error;

use crate::{Effect, Machine};

// The queue belongs to the host and not to the machine, because only the host knows how slow its storage
// is. A machine restarts from facts, and not from a stored copy of its state, so that a fact can be as
// small as a promise.

/// A machine that keeps promises over crashes. Some of its events are facts.
///
/// Everything that an effect promises is recorded in the facts before it. The machine may emit a
/// fact as late as that: state on which no effect depends need not survive.
pub trait Durable: Machine {
    /// The part of an event that the host stores.
    type Fact: Clone + Eq + Hash + Debug;
    /// The reason why a stored fact was refused; [`Infallible`](core::convert::Infallible) for a
    /// machine that accepts every fact.
    type Damage: Debug;

    /// The fact in an event, if it has one. The host carries out such an event as any other, once
    /// its fact is stored.
    fn fact(event: &Self::Event) -> Option<&Self::Fact>;

    /// Applies a fact that a former life stored. The machine is created as in its first life, or
    /// restored as its documentation describes if it knows its own life. It keeps the promises of
    /// its former lives if it applies all facts in order before its first input.
    ///
    /// # Errors
    /// When the fact does not follow from the facts before it. The machine is of no use then.
    fn fold(&mut self, fact: &Self::Fact) -> Result<(), Self::Damage>;
}

/// The error while too many effects wait for storage: do not call the driver now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "{waiting} effects wait for storage, the limit is {limit}: store facts before the next step, or raise the limit"
)]
pub struct Behind {
    /// The number of waiting effects.
    pub waiting: usize,
    /// The limit, in effects.
    pub limit: usize,
}

/// A position in the order of facts: all facts up to it. It is valid for one [`Barrier`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

/// A queue of effects that wait for the facts before them, for a host whose storage takes time.
///
/// `T` is the type of a waiting item: the [`Effect`]s of a machine ([`take`](Self::take)), or other
/// actions of a host, for instance answers to commands ([`push`](Self::push),
/// [`push_fact`](Self::push_fact)).
///
/// A host
/// 1. asks [`ready`](Self::ready) before each call of [`Driver::step`](crate::Driver::step) and
///    [`Driver::expire`](crate::Driver::expire), and makes none while storage is behind;
/// 2. gives every effect to the barrier, which returns the effects that need not wait;
/// 3. when its storage is free, passes it all new facts ([`write_facts`](Self::write_facts)) in one
///    write, and calls [`stored`](Self::stored) with the mark when they are safe.
///
/// Several writes may be in progress at a time if storage completes them in order. Each item is
/// touched a constant number of times.
#[derive(Clone, Debug)]
pub struct Barrier<T> {
    /// Empty, or a fact that is not stored comes first.
    waiting: VecDeque<Item<T>>,
    limit: usize,
    /// The number of items at the front that were passed to storage, or need no storing.
    handed: usize,
    /// Facts until now: pushed, ever passed to storage, and stored.
    pushed: u64,
    written: u64,
    stored: u64,
}

#[derive(Clone, Debug)]
struct Item<T> {
    what: T,
    is_fact: bool,
}

impl<T> Barrier<T> {
    /// An empty barrier; [`ready`](Self::ready) refuses while more than `limit` effects wait. With
    /// a limit of 0 each call waits until the facts of the call before are stored.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            limit,
            handed: 0,
            pushed: 0,
            written: 0,
            stored: 0,
        }
    }

    /// Checks that the driver may be called. The effects of a call are never refused, however many
    /// there are (an `expire` may tick many timers), so the host calls this before each `step` and
    /// each `expire`.
    ///
    /// # Errors
    /// [`Behind`] when more effects than the limit wait.
    pub fn ready(&self) -> Result<(), Behind> {
        let (waiting, limit) = (self.waiting.len(), self.limit);
        if waiting > limit {
            return Err(Behind { waiting, limit });
        }
        Ok(())
    }

    /// Adds an item that may depend on the facts before it. It is released at once if all are
    /// stored.
    pub fn push(&mut self, what: T, mut out: impl FnMut(T)) {
        if self.waiting.is_empty() {
            out(what);
            return;
        }
        let is_fact = false;
        self.waiting.push_back(Item { what, is_fact });
    }

    /// Adds a fact, or an item that carries one. It is released when it is stored.
    pub fn push_fact(&mut self, what: T) {
        let is_fact = true;
        self.waiting.push_back(Item { what, is_fact });
        self.pushed += 1;
    }

    /// Passes to `store` every fact that was not passed yet, in order. Returns the mark for
    /// [`stored`](Self::stored); `None` if there was no such fact.
    ///
    /// O(new facts).
    pub fn write(&mut self, mut store: impl FnMut(&T)) -> Option<Mark> {
        let mut some = false;
        for item in self.waiting.range(self.handed..) {
            if item.is_fact {
                store(&item.what);
                some = true;
            }
        }
        self.handed = self.waiting.len();
        self.written = self.pushed;
        some.then_some(Mark(self.pushed))
    }

    /// All facts up to `mark` are safe: releases the items that waited for them, in order. A mark
    /// that is older than another one changes nothing. A fact that no [`write`](Self::write) has
    /// passed on is not stored, whatever the mark: after [`last`](Self::last), such facts wait on.
    pub fn stored(&mut self, mark: Mark, mut out: impl FnMut(T)) {
        debug_assert!(mark.0 <= self.pushed, "a mark of another barrier");
        let safe = mark.0.min(self.written);
        while let Some(item) = self.waiting.pop_front() {
            if item.is_fact && self.stored >= safe {
                self.waiting.push_front(item);
                return;
            }
            self.stored += u64::from(item.is_fact);
            self.handed = self.handed.saturating_sub(1);
            out(item.what);
        }
    }

    /// Reports that storage lost everything that it was given and did not store: the next
    /// [`write`](Self::write) passes all of it again. A host whose storage may have kept a part of
    /// it writes it in a new place, or lets the later of two equal facts count.
    ///
    /// Storage that cannot report which part it kept must not be used again. Then the host stops:
    /// the items that wait here have not happened, as in a crash.
    pub const fn failed(&mut self) {
        self.handed = 0;
        // A mark of that write, reported late, lets nothing out.
        self.written = self.stored;
    }

    /// The mark of the last fact.
    #[must_use]
    pub const fn last(&self) -> Mark {
        Mark(self.pushed)
    }

    /// Returns true if all facts up to `mark` are stored.
    #[must_use]
    pub const fn is_stored(&self, mark: Mark) -> bool {
        mark.0 <= self.stored
    }

    /// The number of waiting items, facts included.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of facts that are not stored.
    #[must_use]
    pub const fn unstored(&self) -> u64 {
        self.pushed - self.stored
    }
}

impl<M: Durable> Barrier<Effect<M>> {
    /// Adds an effect of a step. It is released to `out` at once if it is no fact and no fact
    /// before it waits.
    pub fn take(&mut self, effect: Effect<M>, out: impl FnMut(Effect<M>)) {
        if fact(&effect).is_some() {
            self.push_fact(effect);
        } else {
            self.push(effect, out);
        }
    }

    /// Passes to `store` every fact that was not passed yet, in order, as [`write`](Self::write)
    /// does.
    pub fn write_facts(&mut self, mut store: impl FnMut(&M::Fact)) -> Option<Mark> {
        self.write(|effect| {
            if let Some(fact) = fact(effect) {
                store(fact);
            }
        })
    }
}

/// The fact in an effect.
fn fact<M: Durable>(effect: &Effect<M>) -> Option<&M::Fact> {
    match effect {
        Effect::Event(event) => M::fact(event),
        Effect::Send { .. } | Effect::Multicast { .. } => None,
    }
}
