//! External events of a home: routines are submitted and cancelled, devices fail, the hub restarts.

use selvedge_core::{Context, Delta, Input, Member, Nested, Span};

use super::device::is_over;
use super::{Happening, Home, Tick};
use crate::{Command, Hub, Reject, Routine, RoutineId};

impl Home {
    /// Makes this event possible from now on.
    pub(super) fn expect(&self, nth: usize, cx: &mut Context<'_, Self>) {
        let is_ready = match self.happenings.get(nth) {
            Some(Happening::Cancel(which)) => {
                self.submitted.get(*which).is_some_and(Option::is_some)
            }
            Some(_) => true,
            None => false,
        };
        if is_ready {
            cx.arm(Tick::Happens(nth), Span::secs(1));
        }
    }

    pub(super) fn happens(&mut self, nth: usize, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let happenings = self.happenings;
        match happenings.get(nth) {
            Some(&(Happening::Submit(steps) | Happening::Run(steps, _))) => {
                let steps = steps.iter().map(|it| it.step()).collect();
                let next = RoutineId(self.hub().last.0 + 1);
                if let Some(submitted) = self.submitted.get_mut(nth) {
                    *submitted = Some(next);
                }
                let routine = Routine { steps };
                let command = match happenings.get(nth) {
                    Some(Happening::Run(_, on)) => {
                        let terms = on.terms();
                        Command::SubmitAs { routine, terms }
                    }
                    _ => Command::Submit(routine),
                };
                let notified = self.notify(Input::Command(command), cx);
                if let Err(Reject::Unfinished { .. } | Reject::QueueFull { .. }) = notified {
                    if let Some(submitted) = self.submitted.get_mut(nth) {
                        *submitted = None;
                    }
                    self.finished += 1;
                } else {
                    notified?;
                }
                if !self.in_order {
                    for (other, it) in happenings.iter().enumerate() {
                        if *it == Happening::Cancel(nth) {
                            self.expect(other, cx);
                        }
                    }
                }
            }
            Some(&Happening::Cancel(which)) => {
                if let Some(Some(routine)) = self.submitted.get(which) {
                    let is_open = self.hub().unfinished().any(|it| it.0 == *routine);
                    if is_open {
                        let cancel = Command::Cancel(*routine);
                        self.notify(Input::Command(cancel), cx)?;
                    }
                }
            }
            Some(&(Happening::Fails(id) | Happening::Restarts(id))) => {
                if let Some(thing) = self.thing(id) {
                    thing.is_down = true;
                }
                is_over(id, cx);
                if let Some(Happening::Restarts(_)) = happenings.get(nth) {
                    cx.arm(Tick::IsBack(id), Span::secs(1));
                }
                self.notify(Input::Membership(Delta::Failed(Member::new(id, 0))), cx)?;
            }
            Some(Happening::Resumes) => self.resumes(cx)?,
            None => {}
        }
        if self.in_order {
            self.expect(nth + 1, cx);
        }
        Ok(())
    }

    /// Restores the hub from its saved state, without timers.
    pub(super) fn resumes(&mut self, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        for timer in self.hub().timers() {
            cx.disarm(Tick::Hub(timer));
        }
        let (config, rules) = (*self.hub().config(), self.hub().rules);
        match Hub::restored(config, rules, self.hub().save()) {
            Ok(hub) => self.hub = Nested::new(hub),
            // No property is about this; `clash` breaks one in its place.
            Err(_) => self.clash = true,
        }
        self.notify(Input::Command(Command::Resume), cx)
    }
}
