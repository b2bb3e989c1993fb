//! The inputs of the triggers, and the runs that they request.

use selvedge_core::{Effect, Input, NodeId};
use selvedge_routine::State;
use selvedge_routine::sun::Date;
use selvedge_routine::trigger::{self, Day};

use super::{Cause, House, Moment};

impl House {
    /// The weekday of this date, and its sunrise and sunset at this place.
    pub(super) fn day(&self, date: Date, ahead: i32) -> Option<Day> {
        match self.location {
            Some(location) => date.at(location, ahead),
            None => Some(Day {
                weekday: date.weekday()?,
                sunrise: None,
                sunset: None,
            }),
        }
    }

    /// Passes changed states to the triggers; clauses ask for them.
    pub(super) fn tell_triggers(&mut self, moment: Moment) {
        let hub = self.hub.machine().hub();
        let states = self.catalogue.iter().map(|it| (it.0, hub.state(it.0)));
        let is_new = |it: &(NodeId, Option<&State>)| {
            self.notified.get(&it.0).and_then(Option::as_ref) != it.1
        };
        let changed = states
            .filter(is_new)
            .map(|(id, state)| (id, state.cloned()));
        let changed: Vec<(NodeId, Option<State>)> = changed.collect();
        for (device, state) in changed {
            self.notified.insert(device, state.clone());
            self.trigger(trigger::Command::Observed { device, state }, moment);
        }
    }

    pub(super) fn trigger(&mut self, command: trigger::Command<State>, moment: Moment) {
        let mut events = Vec::new();
        let input = Input::Command(command);
        let effects = |Effect::Event(it)| events.push(it);
        let notified = self
            .dispatcher
            .step(moment.now, &mut self.rng, input, effects);
        if notified.is_err() {
            self.refuse();
        }
        self.on_triggers(events, moment);
    }

    pub(super) fn bank(
        &mut self,
        command: trigger::Command<State>,
        moment: Moment,
    ) -> Result<(), trigger::Reject> {
        self.dispatcher
            .step(moment.now, &mut self.rng, Input::Command(command), |_| {})
    }

    pub(super) fn on_triggers(&mut self, events: Vec<trigger::Event<State>>, moment: Moment) {
        for event in events {
            if let trigger::Event::Submit { name, routine, .. } = event
                && self.submit(name, Cause::Trigger, routine, moment).is_err()
            {
                self.refuse();
            }
        }
    }

    /// Counts a refused input that has no caller to answer.
    pub(super) const fn refuse(&mut self) {
        self.refused += 1;
        self.has_news = true;
    }
}
