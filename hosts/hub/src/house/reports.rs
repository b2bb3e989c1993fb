//! What devices report.

use selvedge_core::{Delta, Input, Member, NodeId};
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
                let command = Command::Outcome {
                    device,
                    token,
                    outcome,
                };
                self.command(command, moment)?;
                *match outcome {
                    Outcome::Done => &mut self.counts.done,
                    Outcome::Refused => &mut self.counts.refused,
                    Outcome::Unknown => &mut self.counts.unknown,
                } += 1;
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
            // What is known already is no step, which would be stored.
            Report::Observed(state) if self.hub().state(device) == Some(&state) => Ok(()),
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
}
