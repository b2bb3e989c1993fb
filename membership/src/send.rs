//! Sending: a body, with as many piggybacked updates and broadcasts as a frame holds.

use selvedge_core::wire::Room;
use selvedge_core::{Context, Delta, Member};

use crate::list::Standing;
use crate::message::{Age, Body, Claim, Message, Metadata, Record};
use crate::{Event, Membership};

impl Membership {
    pub(crate) fn emit(cx: &mut Context<'_, Self>, delta: Delta) {
        cx.event(Event::Changed(delta));
    }

    /// Sends `body` with as many updates piggybacked as the frame holds. A claim about the receiver
    /// comes first, so that it can refute.
    pub(crate) fn send(&mut self, to: Member, body: Body, cx: &mut Context<'_, Self>) {
        self.send_listed(self.list.find(to.id), to, body, cx);
    }

    /// Sends as [`send`](Self::send) does, to the member in `slot` of the list.
    pub(crate) fn send_listed(
        &mut self,
        slot: Option<usize>,
        to: Member,
        body: Body,
        cx: &mut Context<'_, Self>,
    ) {
        let mut message = Message::bare(body);
        let mut room = self.room(&message);
        if let Some(record) = slot.and_then(|slot| self.claim_to_refute(slot))
            && room.take(record.encoded_len())
        {
            message.records.push(record);
        }
        let copies = self.copies();
        let longest = self.config.metadata_limit.into();
        let (list, now) = (&self.list, self.tombstone_clock());
        let record_of = |id| list.record(list.find(id)?, now);
        let (updates, broadcasts) = (&mut self.updates, &mut self.broadcasting);
        let waiting = [updates.len(), broadcasts.len()];
        let first = waiting.map(|it| it.min(1));
        let others = waiting.map(|it| it.saturating_sub(1));
        for [of_updates, of_broadcasts] in [first, others] {
            updates.load(
                of_updates,
                &mut message,
                &mut room,
                copies,
                longest,
                record_of,
            );
            broadcasts.load(of_broadcasts, &mut message, &mut room, copies);
        }
        cx.send(to, message);
    }

    /// The claim about a member that the member has to receive, to refute it.
    fn claim_to_refute(&self, slot: usize) -> Option<Record> {
        match self.list.entry(slot)?.standing() {
            Standing::Alive | Standing::Doubted | Standing::Unmet => None,
            Standing::Hearsay => Some(Record {
                claim: Claim::Failed(Metadata::default(), Age::default()),
                ..self.list.record(slot, None)?
            }),
            Standing::Suspect | Standing::Failed | Standing::Left => {
                self.list.record(slot, self.tombstone_clock())
            }
        }
    }

    /// The room for piggybacked data on a message.
    pub(crate) fn room(&self, message: &Message) -> Room {
        // The length of each list may need one byte more than that of an empty list.
        let fixed = message.encoded_len() + 2;
        Room::from_sender(self.config.frame_budget, self.own.member(), fixed)
    }
}
