//! Handling of the devices' reports.

use selvedge_core::{Delta, Input, Member, NodeId};
use selvedge_routine::State;
use selvedge_safehome::{Command, Outcome};

use super::{House, Moment, Moved};
use crate::device::Report;

impl House {
    pub(super) fn on_report(&mut self, device: NodeId, report: Report, moment: Moment) -> Moved {
        let member = Member::new(device.0, 0);
        if matches!(report, Report::Up | Report::Observed(_)) {
            self.troubles.remove(&device);
        }
        match report {
            Report::Outcome { token, outcome } => {
                let command = Command::Acted {
                    device,
                    token,
                    outcome,
                };
                let is_awaited = self.hub().in_flight(device) == Some(token);
                match self.command(command, moment) {
                    // The hub has given up the command, and reports that; or a question about it has no
                    // answer.
                    Err(_) if outcome == Outcome::Unknown => return Ok(()),
                    notified => notified?,
                }
                match outcome {
                    Outcome::Done => self.counts.done += 1,
                    Outcome::Refused => self.counts.refused += 1,
                    // The hub counts a command that is overdue; this is then the result of a question about
                    // it.
                    Outcome::Unknown => self.counts.unknown += u64::from(is_awaited),
                }
                Ok(())
            }
            Report::Answered { token, state } => {
                let command = Command::Answered {
                    device,
                    token,
                    state,
                };
                self.command(command, moment)
            }
            // A state that is known already makes no step, because a step is stored.
            Report::Observed(state) if self.is_no_news(device, &state) => Ok(()),
            Report::Observed(state) => self.command(Command::Observed { device, state }, moment),
            Report::Up => self.step(Input::Membership(Delta::Joined(member)), moment),
            Report::Down => self.step(Input::Membership(Delta::Failed(member)), moment),
            Report::Trouble(why) => {
                self.troubles.insert(device, why);
                self.has_news = true;
                Ok(())
            }
        }
    }

    /// Returns true if the hub knows this already. While a command is on its way, each state may show its
    /// outcome.
    fn is_no_news(&self, device: NodeId, state: &State) -> bool {
        let hub = self.hub();
        hub.in_flight(device).is_none() && hub.state(device) == Some(state)
    }
}
