//! Clients (PCM, section 4.4).

use alloc::collections::BTreeSet;

use selvedge_core::wire::{HEADER_LEN, MEMBER_MAX_LEN, varint_len};
use selvedge_core::{Context, Member};
use selvedge_replica::Reject as Refused;

use super::machine::Gateway;
use crate::{Function, Message, Outcome, Refusal, Tables, TaskId, Update};

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
        if self.is_too_long(&function) {
            return cx.send(client, refused(task, Refusal::TooLong));
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
        let Some(tables) = self.tables().filter(|_| !self.is_unavailable) else {
            return cx.send(client, Message::Elsewhere);
        };
        let known = tables.known(&update);
        if !self.has_room_for(task) {
            self.counters.0.no_room += 1;
            return cx.send(client, refused(task, Refusal::Full));
        }
        self.asked.insert(task, client);
        match known {
            Some(Outcome::Done(_)) => self.answer(task, cx),
            Some(Outcome::Forgotten(_)) => self.refuse(task, Refusal::Forgotten, cx),
            Some(_) => {
                let (life, number) = (client.incarnation.0, task.number);
                cx.send(client, Message::Taken { life, number });
            }
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

    /// Whether one more client may wait. Where too many do, those whose task is not open wait no longer:
    /// their request was lost on its way to the tables, and they ask again if they are still there.
    fn has_room_for(&mut self, task: TaskId) -> bool {
        let most = self.config.clients.into();
        if self.asked.len() >= most && !self.asked.contains_key(&task) {
            let open = self.tables().into_iter().flat_map(Tables::open);
            let open: BTreeSet<TaskId> = open.map(|it| it.0).collect();
            self.asked.retain(|it, _| open.contains(it));
        }
        self.asked.len() < most || self.asked.contains_key(&task)
    }
}

/// What a client is told whose task is not run.
pub(super) const fn refused(task: TaskId, why: Refusal) -> Message {
    Message::Refused {
        life: task.client.incarnation.0,
        number: task.number,
        why,
    }
}
