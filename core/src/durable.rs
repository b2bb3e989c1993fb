//! What must survive a crash: facts, and the order in which a host stores them and carries out
//! what depends on them.
//!
//! A *fact* is an event that the host stores before it carries out any effect that comes after it.
//! So a machine that promises something emits the fact first and sends the promise behind it, in
//! the same step, and waits for nothing: no token travels, and nothing that waits is in its state.
//! A machine that is made anew and folds the stored facts of its former lives ([`Durable::fold`])
//! keeps every promise of which a peer can have heard.
//!
//! | promise of a [`Barrier`] | under which assumption |
//! |---|---|
//! | an effect is let out when all facts before it are stored, and not earlier | the host calls [`Barrier::stored`] for what is safe on its storage |
//! | effects are let out in the order in which the machine asked for them, none is lost or doubled | the process does not stop |
//! | an effect with no unstored fact before it is let out at once, without allocation | |
//! | after a crash the machine has all facts whose later effects were seen | storage keeps a prefix of what it was handed |
//! | at most `limit` effects wait, and those of one call of [`Driver::step`](crate::Driver::step) or [`Driver::expire`](crate::Driver::expire) | the host asks [`Barrier::ready`] before each call |
//!
//! What a host reads from the machine itself may rest on facts that are not stored yet. An answer
//! to a command goes through the barrier as the effects do, or waits until the mark of the last
//! fact ([`Barrier::last`]) [is stored](Barrier::is_stored).
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
//!         cx.event(self.last); // the fact, and behind it
//!         cx.send(asker, self.last); // what depends on it
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
//! // Two ask. Nothing is sent: one write to storage stands before both answers.
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
//! // It stops, and begins again from what is stored: 1 and 2 are not given out again.
//! let mut counter = Counter::default();
//! for fact in &log {
//!     counter.fold(fact)?;
//! }
//! assert_eq!(counter.last, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The rule is that of write-ahead logging: Mohan et al., "ARIES", ACM TODS 17(1), 1992.

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
/// Whatever an effect promises, the facts before it say. Facts may come as late as that: state that
/// no effect depends on need not survive.
pub trait Durable: Machine {
    /// What is stored.
    type Fact: Clone + Eq + Hash + Debug;
    /// Why a stored fact was not taken; [`Infallible`](core::convert::Infallible) for a machine
    /// that takes all.
    type Damage: Debug;

    /// The fact in an event, if it has one. An event that is a fact is carried out as any other,
    /// behind its own storing.
    fn fact(event: &Self::Event) -> Option<&Self::Fact>;

    /// Takes in a fact that a former life stored. The machine is made as in its first life, or is
    /// restored as its page describes if it knows its own life. It keeps the promises of its former lives
    /// if it takes in all facts in order before its first input.
    ///
    /// # Errors
    /// When the fact does not follow from those before it. The machine is of no use then.
    fn fold(&mut self, fact: &Self::Fact) -> Result<(), Self::Damage>;
}

/// Storage is behind: do not call the driver now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "{waiting} effects wait for storage, the limit is {limit}: store facts before the next step, or raise the limit"
)]
pub struct Behind {
    /// How many wait.
    pub waiting: usize,
    /// How many may.
    pub limit: usize,
}

/// A place in the order of facts: all facts up to it. Of one [`Barrier`] alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark(u64);

/// Effects that wait for the facts before them, for a host whose storage takes time.
///
/// `T` is what waits: the [`Effect`]s of a machine ([`take`](Self::take)), or whatever else a host
/// does, answers to commands for instance ([`push`](Self::push), [`push_fact`](Self::push_fact)).
///
/// A host
/// 1. asks [`ready`](Self::ready) before each call of [`Driver::step`](crate::Driver::step) and
///    [`Driver::expire`](crate::Driver::expire), and makes none while storage is behind;
/// 2. gives every effect to the barrier, which hands back what need not wait;
/// 3. when its storage is free, hands it all facts that are new
///    ([`write_facts`](Self::write_facts)) in one write, and calls [`stored`](Self::stored) with
///    the mark when they are safe.
///
/// Several writes may be on their way at a time if storage completes them in order. Each item is
/// touched a constant number of times.
#[derive(Clone, Debug)]
pub struct Barrier<T> {
    /// Empty, or a fact that is not stored comes first.
    waiting: VecDeque<Item<T>>,
    limit: usize,
    /// How many of those at the front storage was handed, or need none.
    handed: usize,
    /// Facts so far, how many of them storage was ever handed, and how many are stored.
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
    /// Nothing waits; [`ready`](Self::ready) refuses while more than `limit` effects do. With a
    /// limit of 0 each call waits until the facts of the one before are stored.
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

    /// Whether the driver may be called. The effects of a call are never refused, however many they
    /// are (an `expire` may tick many timers), so this is asked before each `step` and each
    /// `expire`.
    ///
    /// # Errors
    /// [`Behind`] when more than the limit wait.
    pub fn ready(&self) -> Result<(), Behind> {
        let (waiting, limit) = (self.waiting.len(), self.limit);
        if waiting > limit {
            return Err(Behind { waiting, limit });
        }
        Ok(())
    }

    /// Something that may depend on the facts before it: goes out at once if all are stored.
    pub fn push(&mut self, what: T, mut out: impl FnMut(T)) {
        if self.waiting.is_empty() {
            out(what);
            return;
        }
        let is_fact = false;
        self.waiting.push_back(Item { what, is_fact });
    }

    /// A fact, or what carries it. It goes out when it is stored.
    pub fn push_fact(&mut self, what: T) {
        let is_fact = true;
        self.waiting.push_back(Item { what, is_fact });
        self.pushed += 1;
    }

    /// Hands `store` every fact that it was not handed yet, in order. Returns the mark for
    /// [`stored`](Self::stored); `None` if there was none.
    ///
    /// Takes time in proportion to what is new.
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

    /// All facts up to `mark` are safe: lets out what waited for them, in order. A mark that is
    /// older than another one changes nothing. A fact that no [`write`](Self::write) handed out is
    /// not stored, whatever the mark says: after [`last`](Self::last), such facts wait on.
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

    /// What storage was handed and did not store is lost: the next [`write`](Self::write) hands it
    /// all out again. A host whose storage may have kept a part of it writes it in a new place, or
    /// lets the later of two equal facts count.
    ///
    /// Storage that cannot tell what it kept is not to be asked again. Then the host stops:
    /// whatever waits here has not happened, as in a crash.
    pub const fn failed(&mut self) {
        self.handed = 0;
        // A mark of that write, reported late, lets nothing out.
        self.written = self.stored;
    }

    /// The mark of the last fact so far.
    #[must_use]
    pub const fn last(&self) -> Mark {
        Mark(self.pushed)
    }

    /// Whether all facts up to `mark` are stored.
    #[must_use]
    pub const fn is_stored(&self, mark: Mark) -> bool {
        mark.0 <= self.stored
    }

    /// How many wait, facts included.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many facts are not stored.
    #[must_use]
    pub const fn unstored(&self) -> u64 {
        self.pushed - self.stored
    }
}

impl<M: Durable> Barrier<Effect<M>> {
    /// Takes an effect of a step: `out` gets it at once if no fact before it waits, and it is none.
    pub fn take(&mut self, effect: Effect<M>, out: impl FnMut(Effect<M>)) {
        if fact(&effect).is_some() {
            self.push_fact(effect);
        } else {
            self.push(effect, out);
        }
    }

    /// Hands `store` every fact that it was not handed yet, in order: as [`write`](Self::write).
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
