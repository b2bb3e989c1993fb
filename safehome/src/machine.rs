//! The dispatch of inputs.

use core::convert::Infallible;

use selvedge_core::{Context, Delta, Input, Machine, Member, NodeId, Span};

use crate::lineage::{Device, Owner};
use crate::run::Stage;
use crate::work::Task;
use crate::{
    AbortReason, Clause, Command, Event, Hub, Outcome, Reject, Routine, Terms, Timer, Value,
};

impl<V: Value> Hub<V> {
    /// Works until nothing can be done without an input.
    fn pump(&mut self, cx: &mut Context<'_, Self>) {
        while let Some(task) = self.work.next() {
            match task {
                Task::Device(device) => self.serve(device, cx),
                Task::Routine(routine) => self.advance(routine, cx),
                Task::Queue if self.waiting.is_empty() => {}
                Task::Queue => self.start_waiting(cx),
                Task::Held => self.let_in(cx),
            }
        }
    }

    fn command(&mut self, command: Command<V>, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        match command {
            Command::AddDevice { device, state } => {
                if self.devices.contains(&device) {
                    return Err(Reject::KnownDevice(device));
                }
                let limit = self.config.device_limit;
                let new = Device::new(state);
                let taken = self.devices.insert(device, new);
                taken.map_err(|_| Reject::TooManyDevices { limit })?;
            }
            Command::RemoveDevice(device) => self.remove(device, cx)?,
            Command::SetLateness { device, lateness } => self.set_lateness(device, lateness)?,
            Command::Submit(routine) => self.submit(routine, Terms::default(), cx)?,
            Command::SubmitAs { routine, terms } => self.submit(routine, terms, cx)?,
            Command::Cancel(routine) => {
                let stage = self.runs.get(&routine).map(|run| run.stage);
                match stage {
                    Some(Stage::Queued | Stage::Waiting | Stage::Placed | Stage::Running) => {
                        self.abort(routine, AbortReason::Cancelled, cx);
                    }
                    Some(Stage::Aborting(_)) => {}
                    Some(Stage::Committed) | None => {
                        return Err(Reject::UnknownRoutine(routine));
                    }
                }
            }
            Command::Acted {
                device,
                token,
                outcome,
            } => {
                let known = self.devices.get(&device);
                let is_late = known.is_some_and(|it| it.late.is_some());
                if !is_late || !self.on_late_outcome(device, token, outcome, cx) {
                    self.check_token(device, token)?;
                    self.on_outcome(device, outcome, cx);
                }
            }
            Command::Observed { device, state } => {
                if !self.devices.contains(&device) {
                    return Err(Reject::UnknownDevice(device));
                }
                self.on_observed(device, state, cx);
            }
            Command::ChangedByHand {
                device,
                state,
                urgency,
            } => self.on_hand(device, state, urgency, cx)?,
            Command::Answered {
                device,
                token,
                state,
            } => {
                self.check_token(device, token)?;
                self.on_answered(device, state, cx);
            }
            Command::Resume => self.resume(cx),
        }
        Ok(())
    }

    /// Checks that this command is in flight to this device.
    fn check_token(&self, device: NodeId, token: u64) -> Result<(), Reject> {
        let known = self.devices.get(&device);
        let known = known.ok_or(Reject::UnknownDevice(device))?;
        if known.flight.as_ref().is_none_or(|it| it.token != token) {
            return Err(Reject::UnknownToken { device, token });
        }
        Ok(())
    }

    fn remove(&mut self, id: NodeId, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let device = self.devices.get(&id).ok_or(Reject::UnknownDevice(id))?;
        let is_sent = device.flight.is_some() || device.late.is_some();
        let is_busy = is_sent || !device.lineage.is_empty();
        // A host that removes a device that is down declares that it does not come back.
        let is_due = !self.is_weak() && device.is_up && device.needs_rollback();
        if is_busy || is_due || self.runs.values().any(|run| run.devices.contains(&id)) {
            return Err(Reject::DeviceInUse(id));
        }
        if device.is_announced {
            cx.event(Event::GivenUp(id));
        }
        self.devices.remove(id);
        self.waiting.forget(id);
        cx.disarm(Timer::Retry(id));
        Ok(())
    }

    pub(crate) fn check_routine(&self, routine: &Routine<V>) -> Result<(), Reject> {
        let (found, limit) = (routine.steps.len(), self.config.step_limit);
        if found == 0 {
            return Err(Reject::Empty);
        }
        if found > limit.into() {
            return Err(Reject::TooLong { found, limit });
        }
        for (step, number) in routine.steps.iter().zip(0_u16..) {
            if step.timeout == Some(Span::ZERO) {
                return Err(Reject::NoTime(number));
            }
        }
        for (step, number) in routine.steps.iter().zip(0_u16..) {
            let found = step.condition.as_ref().map_or(0, Clause::size);
            if found > Clause::<V>::MOST {
                return Err(Reject::LongCondition { number, found });
            }
        }
        let is_unknown = |it: &NodeId| !self.devices.contains(it);
        for step in &routine.steps {
            let condition = step.condition.as_ref();
            if let Some(device) = condition.and_then(|it| it.devices().find(is_unknown)) {
                return Err(Reject::UnknownDevice(device));
            }
            if is_unknown(&step.device) {
                return Err(Reject::UnknownDevice(step.device));
            }
        }
        let limit = self.config.order_limit;
        if self.unordered() >= limit as usize {
            return Err(Reject::TooManyOrdered { limit });
        }
        Ok(())
    }

    fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let Member { id, incarnation } = delta.member();
        let Some(device) = self.devices.get_mut(&id) else {
            return Err(Reject::UnknownMember(delta));
        };
        let life = device.life;
        if life.is_some_and(|life| life.newer_than(incarnation)) {
            // The delta is about an earlier incarnation.
            return Ok(());
        }
        let is_new_life = life.is_some_and(|life| incarnation.newer_than(life));
        match delta {
            Delta::Suspected(_) => return Ok(()),
            Delta::Joined(_) | Delta::Refuted(_) => {
                device.life = Some(incarnation);
                let was_up = device.is_up;
                if was_up && is_new_life {
                    self.on_failed(id, cx);
                }
                if !was_up || is_new_life {
                    self.on_restarted(id, cx);
                }
            }
            Delta::Failed(_) | Delta::Left(_) | Delta::Confirmed(_) => {
                device.life = Some(incarnation);
                if device.is_up {
                    self.on_failed(id, cx);
                }
            }
        }
        Ok(())
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        match timer {
            Timer::Timeout(device) => {
                if self
                    .devices
                    .get(&device)
                    .is_some_and(|it| it.flight.is_some())
                {
                    self.counters.timeouts += 1;
                    self.on_outcome(device, Outcome::Unknown, cx);
                }
            }
            Timer::Hold(device) => self.on_hold_over(device, cx),
            Timer::Retry(device) => {
                if let Some(it) = self.devices.get_mut(&device) {
                    it.rests = false;
                    self.work.enqueue(Task::Device(device));
                }
            }
            Timer::Lease(device) => self.on_lease_over(device, cx),
            Timer::Patience(routine) => self.on_patience_over(routine),
            Timer::Late(device) => self.on_late_over(device, cx),
        }
    }

    /// Handles a report of a device's state: a manual change, or the effect of a command. Returns
    /// true if it has a place in the order now.
    pub(crate) fn on_observed(
        &mut self,
        device: NodeId,
        state: V,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        let is_weak = self.is_weak();
        let Some(it) = self.devices.get_mut(&device) else {
            debug_assert!(false, "the device is at the hub");
            return false;
        };
        if let Some(flight) = &mut it.flight {
            flight.is_reported = flight.value == state;
            if flight.is_reported {
                // The outcome decides about a routine's command. A rollback may have been done
                // though its outcome stays unknown: a manual change after that is known to be one.
                if flight.routine.is_none() {
                    it.actual = Some(state);
                }
                return false;
            }
        }
        let is_known = it.late.is_none() && it.actual.as_ref() == Some(&state);
        if is_known || it.late.as_ref().is_some_and(|it| it.value == state) {
            return false;
        }
        it.attempts = 0;
        it.is_stuck = false;
        if it.late.is_some() {
            // A late command may change the state at any moment.
            return false;
        }
        let is_pending = it.needs_rollback();
        it.actual = Some(state.clone());
        if is_weak {
            // A weak hub has no order.
            it.base = Some(state);
            return false;
        }
        let is_new = !is_pending && it.desired() != Some(&state);
        if is_new {
            it.happen(Owner::Hand, Some(state));
            self.work.unsettled.push(device);
            self.settle(cx);
        }
        self.work.enqueue(Task::Device(device));
        is_new
    }
}

impl<V: Value> Machine for Hub<V> {
    type Message = Infallible;
    type Timer = Timer;
    type Command = Command<V>;
    type Event = Event<V>;
    type Reject = Reject;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Message { message, .. } => match message {},
            Input::Membership(delta) => self.learn(delta, cx)?,
            Input::Command(command) => self.command(command, cx)?,
            Input::Tick(timer) => self.on_tick(timer, cx),
        }
        self.pump(cx);
        *self.number += 1;
        Ok(())
    }
}
