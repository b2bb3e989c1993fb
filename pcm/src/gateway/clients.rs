//! Clients (PCM, section 4.4).

use selvedge_core::{Context, Member};
use selvedge_replica::Reject as Refused;

use super::machine::Gateway;
use crate::{Function, Message, Outcome, Refusal, TaskId, Update};

impl Gateway {
    /// A client wants a task done; perhaps it has said so before, here or at another gateway.
    pub(super) fn on_submit(
        &mut self,
        client: Member,
        number: u64,
        function: Function,
        cx: &mut Context<'_, Self>,
    ) {
        let task = TaskId { client, number };
        self.ask(task, Update::Submit { task, function }, cx);
    }

    /// A client does not want a task done any more.
    pub(super) fn on_cancel(&mut self, client: Member, number: u64, cx: &mut Context<'_, Self>) {
        let task = TaskId { client, number };
        self.ask(task, Update::Cancel(task), cx);
    }

    fn ask(&mut self, task: TaskId, update: Update, cx: &mut Context<'_, Self>) {
        let client = task.client;
        let Some(tables) = self.tables().filter(|_| !self.is_cut_off()) else {
            return cx.send(client, Message::Elsewhere);
        };
        let known = tables.known(&update);
        let is_full = self.asked.len() >= self.config.clients.into();
        let has_room = !is_full || self.asked.contains_key(&task);
        let is_over = matches!(known, Some(Outcome::Done(_) | Outcome::Forgotten(_)));
        if !has_room && known.is_none() && matches!(update, Update::Submit { .. }) {
            self.counters.0.no_room += 1;
            let why = Refusal::Full;
            return cx.send(client, Message::Refused { task, why });
        }
        // A task that is open is not refused. Its client asks again where there is no room.
        if has_room || is_over {
            self.asked.insert(task, client);
        }
        match known {
            Some(Outcome::Done(_)) => self.answer(task, cx),
            Some(Outcome::Forgotten(_)) => self.refuse(task, Refusal::Forgotten, cx),
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
}
