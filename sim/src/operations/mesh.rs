//! The machines, the clock, and the messages in flight.

use selvedge_core::{Choose, Delta, Driver, Effect, Input, Machine, Member, NodeId, Span, Time};

use super::story::{Line, Story};
use super::{Letter, Operation, Seat, Step, Watch};
use crate::panics::caught;

/// A few nodes, a clock, and the messages between them.
#[derive(Debug)]
pub struct Mesh<M: Machine> {
    now: Time,
    seats: Vec<Seat<M>>,
    in_flight: Vec<Letter<M>>,
    /// The largest number of messages in flight; beyond it, the oldest ones are lost.
    capacity: usize,
    /// Reused from step to step.
    effects: Vec<Effect<M>>,
    /// Empty. Swapped with `in_flight`, so that neither allocates again.
    arriving: Vec<Letter<M>>,
    played: Vec<Operation<M>>,
    story: Story<M>,
    delivered: u64,
    refused: u64,
}

impl<M: Machine> Mesh<M> {
    /// A mesh without nodes. When more than `capacity` messages are in flight, the oldest are lost.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self {
            now: Time::ZERO,
            seats: Vec::new(),
            in_flight: Vec::new(),
            capacity,
            effects: Vec::new(),
            arriving: Vec::new(),
            played: Vec::new(),
            story: Story::new(),
            delivered: 0,
            refused: 0,
        }
    }

    /// Adds a node in its first life. Returns its seat.
    pub fn add(&mut self, me: Member, machine: M) -> usize {
        self.seats.push(Seat::new(me, machine));
        self.seats.len() - 1
    }

    /// All nodes.
    #[must_use]
    pub fn seats(&self) -> &[Seat<M>] {
        &self.seats
    }

    /// The node at this seat.
    #[must_use]
    pub fn seat(&self, at: usize) -> Option<&Seat<M>> {
        self.seats.get(at)
    }

    /// The machine of a node that is up.
    #[must_use]
    pub fn machine(&self, at: usize) -> Option<&M> {
        self.seats.get(at)?.machine()
    }

    /// The seat of the node with this id.
    #[must_use]
    pub fn position(&self, id: NodeId) -> Option<usize> {
        self.seats.iter().position(|seat| seat.me.id == id)
    }

    /// The time since the run began. Clocks of nodes began later: see [`Seat::now`].
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// The messages in flight, oldest first.
    #[must_use]
    pub fn in_flight(&self) -> &[Letter<M>] {
        &self.in_flight
    }

    /// All operations up to now, with the seats and messages that they hit.
    #[must_use]
    pub fn played(&self) -> &[Operation<M>] {
        &self.played
    }

    /// The last operations in words.
    pub(super) fn story(&self) -> Vec<String> {
        self.story.describe(&self.played)
    }

    /// The number of messages that arrived.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The number of inputs that were refused.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Carries out one operation. Machines choose by `choices`.
    ///
    /// # Errors
    /// The broken promise, in words, or the panic of a machine or of the watch. After a panic the
    /// mesh can be used for its story alone.
    pub fn play<C: Choose>(
        &mut self,
        operation: Operation<M>,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        let operation = operation.within(self.seats.len(), self.in_flight.len());
        self.played.push(operation.clone());
        self.story.begin();
        if self.seats.is_empty() {
            return Ok(());
        }
        caught(|| self.carry_out(operation, choices, watch))?
    }

    fn carry_out<C: Choose>(
        &mut self,
        operation: Operation<M>,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        match operation {
            Operation::Deliver(at) => self.deliver(at, false, choices, watch),
            Operation::Duplicate(at) => self.deliver(at, true, choices, watch),
            Operation::DeliverAll => self.deliver_all(choices, watch),
            Operation::Lose(at) => {
                if self.in_flight.get(at).is_some_and(|it| watch.may_lose(it)) {
                    let lost = self.in_flight.remove(at);
                    self.story.note(|| Line::Lost(lost));
                }
                Ok(())
            }
            Operation::Cut(seat) => {
                let cut = self.wrapped(seat).1;
                self.in_flight.retain(|letter| {
                    let is_cut = letter.to == cut.id || letter.from.id == cut.id;
                    let is_lost = is_cut && watch.may_lose(letter);
                    if is_lost {
                        self.story.note(|| Line::Lost(letter.clone()));
                    }
                    !is_lost
                });
                Ok(())
            }
            Operation::Wait(span) => self.wait(span, choices, watch),
            Operation::Command(seat, command) => {
                self.step(seat, Input::Command(command), choices, watch)
            }
            Operation::Learn(seat, delta) => self.learn(seat, delta, choices, watch),
            Operation::Suspect(seat, about) => {
                let delta = Delta::Suspected(self.wrapped(about).1);
                self.learn_of_another(seat, about, delta, choices, watch)
            }
            Operation::Refute(seat, about) => {
                let delta = Delta::Refuted(self.wrapped(about).1);
                self.learn_of_another(seat, about, delta, choices, watch)
            }
            Operation::Fail(seat, about) => {
                let delta = Delta::Failed(self.wrapped(about).1);
                self.learn_of_another(seat, about, delta, choices, watch)
            }
            Operation::Introduce(seat) => self.introduce(seat, choices, watch),
            Operation::Announce(seat) => self.announce(seat, choices, watch),
            Operation::Forge(seat, from, message) => {
                let message = *message;
                self.step(seat, Input::Message { from, message }, choices, watch)
            }
            Operation::Crash(seat) => {
                self.crash(self.wrapped(seat).0, watch);
                Ok(())
            }
            Operation::Restart(seat) => {
                self.restart(self.wrapped(seat).0, watch);
                Ok(())
            }
            Operation::Pause(seat) => {
                self.pause(seat, true);
                Ok(())
            }
            Operation::Resume(seat) => {
                self.pause(seat, false);
                // Timers that expired during the pause tick now.
                self.wait(Span::ZERO, choices, watch)
            }
        }
    }

    /// The seat that the number selects, and the life in it.
    fn wrapped(&self, seat: usize) -> (usize, Member) {
        let at = seat.checked_rem(self.seats.len()).unwrap_or_default();
        let me = self.seats.get(at).map_or(Member::default(), |seat| seat.me);
        (at, me)
    }

    fn pause(&mut self, seat: usize, is_paused: bool) {
        let (at, _) = self.wrapped(seat);
        if let Some(seat) = self.seats.get_mut(at) {
            seat.is_paused = is_paused && seat.is_up();
        }
    }

    /// Returns true if a message to this node is in flight.
    fn waits(&self, to: NodeId) -> bool {
        let seat = self.seats.iter().find(|seat| seat.me.id == to);
        seat.is_some_and(|seat| seat.is_paused)
    }

    fn deliver<C: Choose>(
        &mut self,
        at: usize,
        again: bool,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        let waits = self.in_flight.get(at).is_none_or(|it| self.waits(it.to));
        if waits {
            return Ok(());
        }
        let letter = if again {
            self.in_flight.get(at).cloned()
        } else {
            Some(self.in_flight.remove(at))
        };
        letter.map_or(Ok(()), |letter| {
            self.hand_over(letter, again, choices, watch)
        })
    }

    /// Delivers the messages now in flight, in order.
    fn deliver_all<C: Choose>(
        &mut self,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        let mut arriving = core::mem::take(&mut self.arriving);
        core::mem::swap(&mut self.in_flight, &mut arriving);
        for letter in arriving.drain(..) {
            if self.waits(letter.to) {
                self.in_flight.push(letter);
            } else {
                self.hand_over(letter, false, choices, watch)?;
            }
        }
        self.arriving = arriving;
        Ok(())
    }

    fn hand_over<C: Choose>(
        &mut self,
        letter: Letter<M>,
        again: bool,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        self.story.note(|| match again {
            true => Line::Copied(letter.clone()),
            false => Line::Arrives(letter.clone()),
        });
        let Letter {
            from, to, message, ..
        } = letter;
        let Some(seat) = self.position(to) else {
            return Ok(());
        };
        self.delivered += 1;
        self.step(seat, Input::Message { from, message }, choices, watch)
    }

    fn wait<C: Choose>(
        &mut self,
        span: Span,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        self.now = self.now + span;
        for seat in &mut self.seats {
            seat.now = seat.now + span;
        }
        for at in 0..self.seats.len() {
            let is_due = |seat: &Seat<M>| {
                let deadline = seat.driver.as_ref().and_then(Driver::deadline);
                !seat.is_paused && deadline.is_some_and(|deadline| deadline <= seat.now)
            };
            // Where no timer is due, nothing happens and no promise needs a check.
            if self.seats.get(at).is_some_and(is_due) {
                self.call(at, watch, |driver, now, effects| {
                    driver.expire_into(now, choices, effects);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    fn learn<C: Choose>(
        &mut self,
        seat: usize,
        delta: Delta,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        self.step(seat, Input::Membership(delta), choices, watch)
    }

    /// Passes a delta to a node, unless it is about the node itself.
    fn learn_of_another<C: Choose>(
        &mut self,
        seat: usize,
        about: usize,
        delta: Delta,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        let (seat, about) = (self.wrapped(seat).0, self.wrapped(about).0);
        if seat == about || !watch.may_know(seat, about) {
            return Ok(());
        }
        self.learn(seat, delta, choices, watch)
    }

    fn introduce<C: Choose>(
        &mut self,
        seat: usize,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        let (seat, _) = self.wrapped(seat);
        for other in (0..self.seats.len()).filter(|&other| other != seat) {
            let there = self.seats.get(other).filter(|there| there.is_up());
            if let Some(member) = there.map(|there| there.me)
                && watch.may_know(seat, other)
            {
                self.learn(seat, Delta::Joined(member), choices, watch)?;
            }
        }
        Ok(())
    }

    fn announce<C: Choose>(
        &mut self,
        seat: usize,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        let (seat, me) = self.wrapped(seat);
        let is_up = self.seats.get(seat).is_some_and(Seat::is_up);
        let delta = if is_up {
            Delta::Joined(me)
        } else {
            watch.over(me)
        };
        for other in (0..self.seats.len()).filter(|&other| other != seat) {
            // The end of a life is announced to all: a node may have met it before it was a member.
            if !is_up || watch.may_know(other, seat) {
                self.learn(other, delta, choices, watch)?;
            }
        }
        Ok(())
    }

    fn crash(&mut self, at: usize, watch: &mut impl Watch<M>) {
        let Some(seat) = self.seats.get_mut(at) else {
            return;
        };
        seat.is_paused = false;
        if let Some(driver) = seat.driver.take() {
            watch.crashed(at, seat.me, driver.machine());
        }
    }

    fn restart(&mut self, at: usize, watch: &mut impl Watch<M>) {
        self.crash(at, watch);
        let Some(seat) = self.seats.get_mut(at) else {
            return;
        };
        let Some((me, machine)) = watch.restart(at, seat.me) else {
            return;
        };
        if me.id != seat.me.id {
            seat.first = me;
        }
        seat.me = me;
        seat.now = Time::ZERO;
        seat.driver = Some(Driver::new(machine));
        watch.restarted(at, &self.seats);
    }

    fn step<C: Choose>(
        &mut self,
        seat: usize,
        input: Input<M>,
        choices: &mut C,
        watch: &mut impl Watch<M>,
    ) -> Result<(), String> {
        let (seat, _) = self.wrapped(seat);
        if self.seats.get(seat).is_none_or(|seat| seat.is_paused) {
            return Ok(());
        }
        let mut changed = None;
        self.call(seat, watch, |driver, now, effects| {
            // In debug builds the driver compares by itself.
            let before = (!cfg!(debug_assertions)).then(|| driver.machine().clone());
            let taken = driver.step_into(now, choices, input, effects);
            if let Err(reject) = &taken
                && (before.is_some_and(|it| it != *driver.machine()) || !effects.is_empty())
            {
                changed = Some(format!("a refusal changed something: {reject:?}"));
            }
            taken
        })?;
        changed.map_or(Ok(()), Err)
    }

    /// Lets a node that is up handle an input, and checks the promises after the step.
    fn call(
        &mut self,
        at: usize,
        watch: &mut impl Watch<M>,
        act: impl FnOnce(&mut Driver<M>, Time, &mut Vec<Effect<M>>) -> Result<(), M::Reject>,
    ) -> Result<(), String> {
        let Some(seat) = self.seats.get_mut(at) else {
            return Ok(());
        };
        let Some(driver) = &mut seat.driver else {
            return Ok(());
        };
        watch.before(at, driver);
        let refusal = act(driver, seat.now, &mut self.effects).err();
        self.refused += u64::from(refusal.is_some());
        if driver.refused_ticks() > 0 {
            return Err("a tick was refused".to_owned());
        }
        seat.me = watch.member(seat.me, driver.machine());
        let Some((driver, me, now)) = self
            .seats
            .get(at)
            .and_then(|it| Some((it.driver()?, it.me, it.now)))
        else {
            return Ok(());
        };
        // Before the promises are held against the step, so that the story of a break has them.
        for effect in &self.effects {
            self.story.note(|| match effect {
                Effect::Event(event) => Line::Reported(me, event.clone()),
                Effect::Send { to, message } => Line::Sent(me, Some(to.id), message.clone()),
                Effect::Multicast { message } => Line::Sent(me, None, message.clone()),
            });
        }
        watch.after(&Step {
            at,
            me,
            now,
            seats: &self.seats,
            driver,
            effects: &self.effects,
            refusal: refusal.as_ref(),
        })?;
        self.post(me, watch)
    }

    /// Puts the messages of a step into flight.
    fn post(&mut self, from: Member, watch: &impl Watch<M>) -> Result<(), String> {
        for effect in self.effects.drain(..) {
            let (to, message) = match effect {
                Effect::Event(_) => continue,
                Effect::Send { to, message } => (Some(to.id), message),
                Effect::Multicast { message } => (None, message),
            };
            if to == Some(from.id) {
                return Err(format!("a message to itself: {message:?}"));
            }
            let letter = |to, message| Letter {
                from,
                to,
                message,
                is_multicast: false,
            };
            match to {
                Some(to) => self.in_flight.push(letter(to, message)),
                None => {
                    let others = self.seats.iter().map(|seat| seat.me.id);
                    let others = others.filter(|&id| id != from.id);
                    self.in_flight.extend(others.map(|to| Letter {
                        is_multicast: true,
                        ..letter(to, message.clone())
                    }));
                }
            }
        }
        let surplus = self.in_flight.len().saturating_sub(self.capacity);
        self.lose_oldest(surplus, watch);
        Ok(())
    }

    fn lose_oldest(&mut self, mut surplus: usize, watch: &impl Watch<M>) {
        if surplus == 0 {
            return;
        }
        // Mostly the first messages may be lost: then the rest moves only once.
        let oldest = self.in_flight.iter().take(surplus);
        let lost = oldest.take_while(|it| watch.may_lose(it)).count();
        self.in_flight.drain(..lost);
        surplus -= lost;
        if surplus > 0 {
            self.in_flight.retain(|letter| {
                let is_lost = surplus > 0 && watch.may_lose(letter);
                surplus -= usize::from(is_lost);
                !is_lost
            });
        }
    }
}
