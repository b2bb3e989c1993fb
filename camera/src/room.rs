//! The handling of nodes that cannot be remembered for lack of room.

use selvedge_core::{Context, Member};

use crate::state::{Camera, Stage};
use crate::waiting::{Answer, Asked};
use crate::{Message, Request, Rival, Token};

/// The answer of a node that had no room to remember an OK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abstention {
    pub(crate) life: u32,
    pub(crate) number: u64,
    pub(crate) over: u64,
    pub(crate) floor: Token,
}

impl Camera {
    /// Makes sure that a node can be remembered. If the limit is reached, this forgets a node of
    /// which nothing is open here: a node that has ended, or else a node that is not on the list.
    /// Returns false if no node can be forgotten.
    ///
    /// Late messages of the forgotten node are then taken for new, as from an unknown node. That may
    /// cost waiting until its end is reported again, and breaks no promise.
    pub(crate) fn make_room_for(&mut self, member: Member) -> bool {
        let is_needed = |it: Member| {
            let is_asked = match &self.stage {
                Stage::Waiting(waiting) => waiting.get(it).is_some(),
                Stage::Idle | Stage::Inside(_) => false,
            };
            is_asked
                || self.granted.has_open(it)
                || self.kept.contains(&it)
                || self.forest.contains(it)
        };
        match self.peers.make_room_for(member, is_needed) {
            Ok(None) => true,
            Ok(Some(former)) => {
                self.granted.forget_released(former);
                true
            }
            Err(_) => {
                self.counters.0.no_room += 1;
                false
            }
        }
    }

    /// Answers a request of a node that cannot be remembered. A node that has our OK must be
    /// remembered, so this node gets none; but it need not wait for us after our own requests are
    /// over.
    ///
    /// The answer covers all our requests up to now, by the highest token that they might have had.
    /// A later request has a higher one. So an answer that arrives late, when we want to enter
    /// again, is known to be late, and nothing need be remembered here.
    pub(crate) fn abstain(&mut self, from: Member, request: Request, cx: &mut Context<'_, Self>) {
        let Request { number, last, .. } = request;
        self.issued.receive(number);
        self.on_used(from, last, cx);
        let theirs = Token { number, by: from };
        let has_to_wait = match &self.stage {
            Stage::Idle => false,
            Stage::Waiting(waiting) => theirs > waiting.token,
            Stage::Inside(_) => true,
        };
        if has_to_wait {
            cx.send(from, Message::Wait { number });
            return;
        }
        if self.is_waiting() {
            // That node goes first, and we could not wait for it.
            self.refuse_for_room(cx);
        }
        self.end_kept(cx);
        let (life, over, floor) = (from.incarnation.0, self.issued.over(), self.tokens.floor());
        cx.send(
            from,
            Message::Abstain {
                life,
                number,
                over,
                floor,
            },
        );
    }

    /// Handles the answer of a node that has no room to remember an OK. We do not wait for that node,
    /// unless it may have asked to enter since.
    pub(crate) fn on_abstain(&mut self, from: Member, abstention: Abstention) {
        let Abstention {
            life,
            number,
            over,
            floor,
        } = abstention;
        let Stage::Waiting(waiting) = &mut self.stage else {
            // The request is over.
            return;
        };
        if life != self.me.incarnation.0 || number != waiting.token.number {
            self.counters.0.stale += 1;
            return;
        }
        let Some(asked) = waiting.get(from) else {
            // It was not asked, or is over.
            return;
        };
        let is_late = asked.rival > Some(over) && !self.rules.late_abstentions();
        if asked.answer == Answer::Ok || is_late {
            return;
        }
        waiting.raise(floor);
        let answer = Answer::Abstained { over };
        let _is_there = waiting.set(from, Asked { answer, ..asked }).is_ok();
    }

    /// Returns true if a node had no room to give its OK to the request that waits.
    #[cfg(feature = "check")]
    pub(crate) fn has_abstention(&self) -> bool {
        let Stage::Waiting(waiting) = &self.stage else {
            return false;
        };
        waiting
            .iter()
            .any(|(_, asked)| matches!(asked.answer, Answer::Abstained { .. }))
    }

    /// Returns true if this node can wait for all of these. A node that is awaited already, or has
    /// ended, takes no room.
    pub(crate) fn has_room_for_all(&self, rivals: &[Rival]) -> bool {
        let Stage::Waiting(waiting) = &self.stage else {
            return true;
        };
        let is_new = |rival: &&Rival| {
            let member = rival.member;
            let is_over = self.peers.is_over(member) || self.is_past(**rival);
            member.id != self.me.id && waiting.get(member).is_none() && !is_over
        };
        rivals.iter().filter(is_new).count() <= waiting.room()
    }
}
