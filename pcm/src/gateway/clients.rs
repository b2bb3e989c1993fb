//! Clients (PCM, section 4.4).

use selvedge_core::wire::{HEADER_LEN, MEMBER_MAX_LEN, varint_len};
use selvedge_core::{Context, Member};
use selvedge_replica::Reject as Refused;

use super::Gateway;
use crate::{Function, Message, Outcome, Refusal, TaskId, Update};

impl Gateway {
    /// Handles the submission of a task. The client may have sent it before, here or to another gateway.
    pub(super) fn on_submit(
        &mut self,
        client: Member,
        number: u64,
        function: Function,
        cx: &mut Context<'_, Self>,
    ) {
        let task = TaskId { client, number };
        if self.is_too_long(&function) {
            let why = Refusal::TooLong;
            return cx.send(client, Message::Refused { task, why });
        }
        self.ask(task, Update::Submit { task, function }, cx);
    }

    /// Handles a client's request to cancel a task.
    pub(super) fn on_cancel(&mut self, client: Member, number: u64, cx: &mut Context<'_, Self>) {
        let task = TaskId { client, number };
        self.ask(task, Update::Cancel(task), cx);
    }

    fn ask(&mut self, task: TaskId, update: Update, cx: &mut Context<'_, Self>) {
        let client = task.client;
        let Some(tables) = self.available() else {
            return cx.send(client, Message::Elsewhere);
        };
        // Only the manager knows if there is room: this gateway may not have applied yet that the task is
        // open, or that another one has ended.
        let is_behind = |it: &Outcome| matches!(it, Outcome::Full(_)) && !self.manages();
        let known = tables.known(&update).filter(|it| !is_behind(it));
        let waits = self.asked.contains(&task);
        let has_room = waits || self.asked.len() < self.config.clients.into();
        let is_over = matches!(known, Some(Outcome::Done(_) | Outcome::Forgotten(_)));
        let is_refused = match (&known, &update) {
            (None, Update::Submit { .. }) => !has_room,
            // A task that was proposed before may find room.
            (Some(Outcome::Full(_)), _) => !waits,
            _ => false,
        };
        if is_refused {
            self.counters.0.no_room += 1;
            let why = Refusal::Full;
            return cx.send(client, Message::Refused { task, why });
        }
        // An open task is not refused. A client that finds no room to wait here asks again.
        if has_room || is_over {
            self.asked.insert(task);
        }
        match known {
            Some(Outcome::Done(_)) => self.answer(task, cx),
            Some(Outcome::Forgotten(_)) => self.refuse(task, Refusal::Forgotten, cx),
            Some(Outcome::Full(_)) => {} // An earlier proposal decides whether the task found room.
            Some(_) => cx.send(client, Message::Taken { task }),
            None => match self.propose(update, cx) {
                Ok(()) => {}
                Err(Refused::TooLong { .. }) => self.refuse(task, Refusal::TooLong, cx),
                Err(_) => {
                    self.asked.remove(&task);
                    cx.send(client, Message::Elsewhere);
                }
            },
        }
    }

    /// Returns true if a function does not fit into a request to a unit, in any unit. Messages between
    /// gateways have more room for it, because they name no followers.
    fn is_too_long(&self, function: &Function) -> bool {
        let Some(tables) = self.tables() else {
            return false;
        };
        let electors = usize::from(tables.limits().unit) + 2;
        // Sender, client and followers; kind, numbers and lengths.
        let around = HEADER_LEN + (2 + electors) * MEMBER_MAX_LEN + 32;
        let libraries: usize = function.libraries.iter().map(|it| varint_len(it.0)).sum();
        let budget = self.replica.machine().configuration().frame_budget;
        around + libraries + function.code.len() > budget.into()
    }
}
