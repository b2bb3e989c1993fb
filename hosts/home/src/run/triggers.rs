//! Routines that the triggers of the home start.

use selvedge_core::{Choose, Driver, Effect, Input, Time};
use selvedge_routine::State;
use selvedge_routine::file::NamedRoutine;
use selvedge_routine::trigger::{self, Day, Dispatcher, TimeOfDay, TriggerId, Weekday};
use selvedge_safehome::Reject;

use super::{Stage, Watch};

impl<C: Choose, W: Watch> Stage<'_, C, W> {
    pub(super) fn triggers(&mut self, dispatcher: &mut Driver<Dispatcher<State>>) {
        let Some(clock) = self.plan.clock else {
            return;
        };
        let home = &self.plan.home;
        // A dispatcher counts them in this order.
        let mut number = 0;
        let states = home.initial.iter();
        let states = states.map(|(&device, state)| trigger::Command::Observed {
            device,
            state: Some(state.clone()),
        });
        let routines = home.routines.iter().map(|it| trigger::Command::AddRoutine {
            name: it.name.clone(),
            routine: it.routine.clone(),
        });
        let triggers = home.triggers.iter().flat_map(|it| {
            number += 1;
            let added = trigger::Command::AddTrigger {
                name: it.name.clone(),
                trigger: it.trigger.clone(),
            };
            let cools = trigger::Command::SetCoolDown {
                trigger: TriggerId(number),
                span: it.cool_down,
            };
            [added, cools]
        });
        let clock = [
            trigger::Command::SetClock(clock),
            trigger::Command::SetToday(virtual_day()),
        ];
        for command in states.chain(routines).chain(triggers).chain(clock) {
            let notified =
                dispatcher.step(self.now, &mut self.choices, Input::Command(command), |_| {});
            if let Err(reject) = notified {
                self.watch.say(self.now, &reject.to_string());
            }
        }
    }

    /// Passes changes until now to the dispatcher; its clauses may depend on them.
    pub(super) fn tell_changes(
        &mut self,
        dispatcher: &mut Driver<Dispatcher<State>>,
        end: Time,
    ) -> Result<(), Reject> {
        while let Some((device, state)) = self.observed.pop_front() {
            if self.plan.clock.is_none() || self.now > end {
                continue;
            }
            let state = Some(state);
            let command = trigger::Command::Observed { device, state };
            let mut effects = Vec::new();
            let input = Input::Command(command);
            let notified = dispatcher.step_into(self.now, &mut self.choices, input, &mut effects);
            if let Err(reject) = notified {
                self.watch.say(self.now, &reject.to_string());
            }
            self.submit_all(effects)?;
        }
        Ok(())
    }

    pub(super) fn submit_all(
        &mut self,
        effects: Vec<Effect<Dispatcher<State>>>,
    ) -> Result<(), Reject> {
        for effect in effects {
            if let Effect::Event(trigger::Event::Submit { name, routine, .. }) = effect {
                let mut all = self.plan.home.routines.iter();
                let known = all.find(|it| it.name == name);
                let terms = known.map(NamedRoutine::terms).unwrap_or_default();
                self.submit(name, routine, terms)?;
            }
        }
        Ok(())
    }
}

/// The first day of a virtual home: a Monday, on which the sun rises at 6 and sets at 18, as on the
/// days after it.
fn virtual_day() -> Day {
    let hour = |it: u32| TimeOfDay::from_seconds(it * 3_600);
    Day {
        weekday: Weekday::Monday,
        sunrise: hour(6),
        sunset: hour(18),
    }
}
