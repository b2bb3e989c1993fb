//! Clients (PCM, section 4.4).

use selvedge_core::wire::{HEADER_LEN, MEMBER_MAX_LEN, varint_len};
use selvedge_core::{Context, Member};
use selvedge_replica::Reject as Refused;

use super::Gateway;
use crate::{Function, Message, Outcome, Refusal, TaskId, Update};

impl Gateway {
    /// A client submits a task; it may have done so before, here or at another gateway.
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

    /// A client does not want a task done any more.
    pub(super) fn on_cancel(&mut self, client: Member, number: u64, cx: &mut Context<'_, Self>) {
        let task = TaskId { client, number };
        self.ask(task, Update::Cancel(task), cx);
    }

    fn ask(&mut self, task: TaskId, update: Update, cx: &mut Context<'_, Self>) {
        let client = task.client;
        let Some(tables) = self.available() else {
            return cx.send(client, Message::Elsewhere);
        };
        // Whether there is room, the manager knows: here the task may be open already, and the end of
        // another one not be known yet.
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
        // A task that is open is not refused. Its client asks again where there is no room.
        if has_room || is_over {
            self.asked.insert(task);
        }
        match known {
            Some(Outcome::Done(_)) => self.answer(task, cx),
            Some(Outcome::Forgotten(_)) => self.refuse(task, Refusal::Forgotten, cx),
            Some(Outcome::Full(_)) => {} // What was proposed before says which.
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

    /// Whether a request to a unit has no room for a function, whichever unit runs it: what gateways send
    /// each other has more, for it names no followers.
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
