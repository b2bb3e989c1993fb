//! What handles keep in the machine: sessions, and watches of prefixes.

use std::sync::Arc;

use selvedge_core::{Span, Time};
use selvedge_groups::GroupId;
use selvedge_groups::store::{Operation, StoreCommand};
use selvedge_kgroup as kgroup;

use super::Task;
use crate::keeper::Errand;
use crate::kept::{Name, Owner, Step};
use crate::service::{Question, Reject};

/// The time for which a node that leaves waits for the ends of its sessions. Where it is too short the
/// group's leader ends them when the node has left, or after their time to live.
const PATIENCE: Span = Span::secs(2);

impl Task {
    /// Gives the machine the errands of handles. It tries those that the machine refuses again with the next input.
    pub(super) async fn keep_sessions(&mut self) {
        let errands = self.kept.errands();
        if errands.is_empty() {
            return;
        }
        for errand in errands {
            match errand {
                // A machine that refuses it has no such watch.
                Errand::Unwatch(map, ticket) => {
                    let _taken = self
                        .command_map(map, StoreCommand::UnwatchPrefix { ticket })
                        .is_ok();
                }
                Errand::Session(name, step) => self.keep_session(name, step),
            }
        }
        self.carry_out(None).await;
    }

    fn keep_session(&mut self, name: Name, step: Step) {
        let (map, session) = name;
        match step {
            Step::Keep => {
                if self
                    .command_map(map, StoreCommand::KeepAlive(session))
                    .is_ok()
                {
                    self.kept.done(name, Some(Step::Kept));
                }
            }
            Step::Stop => {
                if self
                    .command_map(map, StoreCommand::StopKeepAlive(session))
                    .is_ok()
                {
                    self.kept.done(name, None);
                }
            }
            Step::End => {
                let question = Question::Change(Operation::EndSession(session));
                let (change, command) = self.pending.request(map, question);
                let stops = self.command_map(map, StoreCommand::StopKeepAlive(session));
                let ends = self.command(selvedge::Command::Groups(command));
                if stops.is_ok() && ends.is_ok() {
                    self.kept.done(name, Some(Step::Ends(change)));
                }
            }
            Step::Kept | Step::Ends(_) => {} // It waits for an event.
        }
    }

    /// An owner of a session that goes on.
    pub(super) fn resume(&mut self, name: Name) -> Result<Arc<Owner>, Reject> {
        if let Some(other) = self.sites.refusal(self.driver.machine()) {
            return Err(Reject::OtherSite(other));
        }
        if self.is_leaving() {
            return Err(Reject::Leaving);
        }
        let (map, session) = name;
        self.command_map(map, StoreCommand::KeepAlive(session))?;
        Ok(self.kept.0.own(name, Step::Kept, false))
    }

    /// Ends all sessions, since the node leaves.
    pub(super) fn end_sessions(&mut self) {
        self.kept.end_all();
    }

    /// Returns true if the node leaves later, because sessions have not ended.
    pub(super) fn waits_for_sessions(&mut self) -> bool {
        let now = self.clock.now();
        // Sessions that were to begin may have begun.
        self.kept.end_all();
        let end = *self.progress.patience.get_or_insert(now + PATIENCE);
        !self.kept.is_empty() && now < end
    }

    /// The next time at which a session may have ended, or the node leaves without the ends of all.
    pub(super) fn next_lapse(&self) -> Option<Time> {
        let now = self.clock.now();
        let lapse = self.kept.next_lapse().into_iter();
        let patience = self.progress.patience.filter(|it| now < *it);
        lapse.chain(patience).min()
    }

    /// Reports sessions that may have ended.
    pub(super) fn lapse(&self) {
        self.kept.lapse(self.clock.now());
    }

    fn command_map(&mut self, map: GroupId, command: StoreCommand) -> Result<(), selvedge::Reject> {
        let command = kgroup::Command::Map { map, command };
        self.command(selvedge::Command::Groups(command))
    }
}
