//! The interface that a machine uses in one step.

use alloc::vec::{Drain, Vec};
use core::fmt;

use crate::{Choose, Effect, Machine, Member, Ratio, Span, Time, Weights};

/// The collected effects and timers of a step. The caller owns the outbox and reuses it, so that a
/// step allocates nothing once the outbox has grown.
pub struct Outbox<M: Machine> {
    effects: Vec<Effect<M>>,
    timers: Vec<(M::Timer, Option<Span>)>,
}

impl<M: Machine> Outbox<M> {
    /// An empty outbox.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            effects: Vec::new(),
            timers: Vec::new(),
        }
    }

    /// Frees most of the memory that an earlier, much larger step took, after a step with `used`
    /// effects. Steps of similar size keep theirs.
    pub(crate) fn give_back(&mut self, used: usize) {
        const KEPT: usize = 16;
        if self.effects.capacity() <= 2 * KEPT {
            return;
        }
        let keep = KEPT.max(used.saturating_mul(2));
        if self.effects.capacity() > keep.saturating_mul(2) {
            self.effects.shrink_to(keep);
        }
    }

    #[cfg(test)]
    pub(crate) const fn capacity(&self) -> usize {
        self.effects.capacity()
    }

    /// The effects, in the order of the calls.
    #[must_use]
    pub fn effects(&self) -> &[Effect<M>] {
        &self.effects
    }

    /// The timers, in the order in which they were armed (with the time from now) or disarmed
    /// (`None`). The last entry for a tag counts.
    #[must_use]
    pub fn timers(&self) -> &[(M::Timer, Option<Span>)] {
        &self.timers
    }

    /// Returns true if there are no effects and no timers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.effects.is_empty() && self.timers.is_empty()
    }

    /// Removes the effects and returns them.
    pub fn drain_effects(&mut self) -> Drain<'_, Effect<M>> {
        self.effects.drain(..)
    }

    /// Removes the timers and returns them.
    pub fn drain_timers(&mut self) -> Drain<'_, (M::Timer, Option<Span>)> {
        self.timers.drain(..)
    }

    pub(crate) fn clear_timers(&mut self) {
        self.timers.clear();
    }

    /// Clears the outbox and keeps its memory.
    pub fn clear(&mut self) {
        self.effects.clear();
        self.timers.clear();
    }
}

impl<M: Machine> Default for Outbox<M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<M: Machine> fmt::Debug for Outbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("effects", &self.effects)
            .field("timers", &self.timers)
            .finish()
    }
}

/// The time, the choices and the outbox of one step.
pub struct Context<'a, M: Machine> {
    now: Time,
    choices: &'a mut dyn Choose,
    outbox: &'a mut Outbox<M>,
}

impl<'a, M: Machine> Context<'a, M> {
    /// A context for one step. Hosts get theirs from a [`Driver`](crate::Driver).
    pub fn new(now: Time, choices: &'a mut dyn Choose, outbox: &'a mut Outbox<M>) -> Self {
        Self {
            now,
            choices,
            outbox,
        }
    }

    /// The time of this step.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// A choice: a number below `bound`, all equally likely; 0 when `bound` is 0 or 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.choices.below(bound)
    }

    /// A choice: returns true with this probability.
    pub fn chance(&mut self, ratio: Ratio) -> bool {
        self.choices.chance(ratio)
    }

    /// A choice among weighted outcomes; `None` when all weights are 0.
    pub fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        self.choices.weighted(weights)
    }

    /// Sends to one peer, best effort.
    pub fn send(&mut self, to: Member, message: M::Message) {
        self.outbox.effects.push(Effect::Send { to, message });
    }

    /// Sends to all nodes that the host can reach at once, best effort.
    pub fn multicast(&mut self, message: M::Message) {
        self.outbox.effects.push(Effect::Multicast { message });
    }

    /// Reports an event to the application. A fact that must survive a crash is reported before the
    /// effects that depend on it ([`durable`](crate::durable)).
    pub fn event(&mut self, event: M::Event) {
        self.outbox.effects.push(Effect::Event(event));
    }

    /// Arms `timer` to tick `after` this step; a timer that is armed already is moved.
    pub fn arm(&mut self, timer: M::Timer, after: Span) {
        self.outbox.timers.push((timer, Some(after)));
    }

    /// Disarms `timer`, if it is armed.
    pub fn disarm(&mut self, timer: M::Timer) {
        self.outbox.timers.push((timer, None));
    }

    /// A context of the same step for a machine inside this one, with an outbox of its own.
    /// [`Nested`](crate::Nested) does this where each effect of the inner machine is one of the outer.
    pub fn inner<'b, I: Machine>(&'b mut self, outbox: &'b mut Outbox<I>) -> Context<'b, I> {
        Context {
            now: self.now,
            choices: self.choices,
            outbox,
        }
    }
}

impl<M: Machine> fmt::Debug for Context<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .field("outbox", &self.outbox)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, Input};
    use rand_core::SeedableRng;

    /// A machine that emits as many events as its command asks for.
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    struct Notifier;

    impl Machine for Notifier {
        type Message = ();
        type Timer = u8;
        type Command = u16;
        type Event = u16;
        type Reject = ();

        fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
            if let Input::Command(times) = input {
                (0..times).for_each(|nth| cx.event(nth));
            }
            Ok(())
        }
    }

    #[test]
    fn a_rare_large_step_gives_its_memory_back_and_alike_ones_keep_theirs() {
        let mut outbox = Outbox::<Notifier>::new();
        let mut step = |times: u16| {
            outbox.effects.extend((0..times).map(Effect::Event));
            outbox.drain_effects().for_each(drop);
            outbox.give_back(times.into());
            outbox.effects.capacity()
        };
        assert!(step(1_000) >= 1_000);
        let kept = step(600);
        assert!(kept >= 1_000 && step(600) == kept && step(1_000) == kept);
        let small = step(3);
        assert!(small < 40 && step(3) == small);

        // The driver calls `give_back`.
        let mut driver = Driver::new(Notifier);
        let mut rng = chacha20::ChaCha8Rng::from_seed([0; 32]);
        for times in [1_000, 3] {
            let notified = driver.step(crate::Time(0), &mut rng, Input::Command(times), drop);
            assert_eq!(notified, Ok(()));
        }
        assert!(driver.outbox_capacity() < 40);
    }
}
