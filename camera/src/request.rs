//! This node's own request: the nodes that it asks, and their answers.

use selvedge_core::roster::Standing;
use selvedge_core::{Context, Member};

use crate::state::{Camera, Stage};
use crate::waiting::{Answer, Asked, Waiting};
use crate::{Event, Message, Rival, Timer, Token};

/// The largest number of missing answers with which a node counts as among the next to enter.
const FEW: usize = 4;

/// An OK without its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permit {
    pub(crate) life: u32,
    pub(crate) number: u64,
    pub(crate) after: Option<Member>,
    pub(crate) more: bool,
    pub(crate) floor: Token,
}

impl Camera {
    /// Issues a request, or uses permissions that were kept.
    pub(crate) fn request(&mut self, cx: &mut Context<'_, Self>) {
        let number = self.issued.next(self.tokens.floor().number);
        if self.config.keep && self.issued.is_kept_for(number) {
            self.issued.go_on(number);
        } else {
            self.kept.retain(|_, ()| false);
            self.issued.begin(number, self.config.slack);
        }
        let up_to = self.issued.kept_to();
        let holder = self.me;
        // All nodes on the list, and all nodes that may be inside as far as we know.
        let limit = (self.config.peer_limit as usize).saturating_mul(2);
        let waiting = Waiting::new(Token { number, by: holder }, up_to, limit);
        self.stage = Stage::Waiting(waiting);
        let is_slow = self.is_too_few(self.peers.listed_len());
        if !is_slow {
            let listed: alloc::vec::Vec<Member> = self.peers.listed().collect();
            for member in listed {
                self.ask(member, None, cx);
            }
        }
        if !self.rules.own_oks_are_not_asked() {
            let grants = self.granted.grants();
            let granted: alloc::vec::Vec<(Member, u64)> = grants
                .iter()
                .map(|(&member, grant)| (member, grant.up_to))
                .collect();
            for (member, up_to) in granted {
                self.note_rival(Rival { member, up_to }, cx);
            }
        }
        cx.arm(Timer::Resend, self.config.resend);
        if is_slow {
            self.go_slow(cx);
        }
    }

    /// Asks one node, unless its permission was kept.
    pub(crate) fn ask(&mut self, member: Member, rival: Option<u64>, cx: &mut Context<'_, Self>) {
        let kept = self.kept.contains(&member);
        let Stage::Waiting(waiting) = &mut self.stage else {
            debug_assert!(false, "only a request that waits is sent");
            return;
        };
        let answer = if kept {
            Answer::Ok
        } else {
            Answer::Awaited { after: None }
        };
        let received = false;
        let asked = Asked {
            answer,
            rival,
            received,
            copies: 0,
        };
        if waiting.set(member, asked).is_err() {
            // We cannot wait for that node, so we cannot enter: give up rather than be wrong.
            self.refuse_for_room(cx);
            return;
        }
        if !kept {
            self.send_request(member, None, cx);
        }
    }

    pub(crate) fn send_request(
        &self,
        to: Member,
        after: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        let Stage::Waiting(waiting) = &self.stage else {
            debug_assert!(false, "only a request that waits is sent");
            return;
        };
        let request = waiting.request(self.issued.last());
        cx.send(to, Message::Request { request, after });
    }

    /// Adds a rival, a node that may be inside, or wants to enter: its OK is needed, and no suspicion
    /// replaces it.
    pub(crate) fn note_rival(&mut self, rival: Rival, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &mut self.stage else {
            // Only a request that waits has rivals.
            return;
        };
        let member = rival.member;
        let before = waiting.get(member);
        let up_to = before.and_then(|it| it.rival).max(Some(rival.up_to));
        let is_settled = |it: Asked| it.answer.is_settled(rival.up_to);
        let is_news = before.is_none_or(|it| it.rival.is_none() && !is_settled(it));
        if self.rules.ask_who_is_not_listed() {
            if let Some(asked) = before {
                let asked = Asked {
                    rival: up_to,
                    ..asked
                };
                let _is_there = waiting.set(member, asked).is_ok();
            }
            if !self.peers.is_listed(member) {
                self.note(|it| it.peers.set(member, Standing::Listed));
                self.ask(member, up_to, cx);
            }
            return;
        }
        let after = before.and_then(|it| match it.answer {
            Answer::Optional { after } => Some(after),
            Answer::Abstained { over } if over < rival.up_to => Some(None),
            Answer::Awaited { .. } | Answer::Ok | Answer::Abstained { .. } => None,
        });
        match before {
            None => self.ask(member, up_to, cx),
            Some(Asked { answer, .. }) => {
                let answer = after.map_or(answer, |after| Answer::Awaited { after });
                let asked = Asked {
                    answer,
                    rival: up_to,
                    received: before.is_some_and(|it| it.received),
                    copies: before.map_or(0, |it| it.copies),
                };
                let _is_there = waiting.set(member, asked).is_ok();
            }
        }
        if !self.is_waiting() {
            return;
        }
        if is_news {
            cx.event(Event::Waiting(member));
        }
        if is_news || after.is_some() {
            self.recheck_failed(member, cx);
        }
        // A node that was passed over is asked when it is back on the list. Otherwise two nodes that
        // take each other for failed would make each other ask without pause.
        if let Some(after) = after
            && let Stage::Waiting(waiting) = &self.stage
            && waiting.get(member).is_some_and(Asked::is_awaited)
        {
            self.send_request(member, after, cx);
        }
    }

    /// Asks a node again that now has our OK, and so may enter before us: its earlier OK does not
    /// count.
    pub(crate) fn ask_anew(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &mut self.stage else {
            // The OK was kept for later requests.
            return;
        };
        if let Some(asked) = waiting.get(member)
            && asked.answer == Answer::Ok
        {
            let answer = Answer::Awaited { after: None };
            let received = false;
            let asked = Asked {
                answer,
                received,
                ..asked
            };
            let _is_there = waiting.set(member, asked).is_ok();
            self.send_request(member, None, cx);
            // That node is a rival, and stays awaited.
            self.recheck_failed(member, cx);
        }
    }

    /// Handles an OK.
    pub(crate) fn on_ok(
        &mut self,
        from: Member,
        permit: Permit,
        rivals: &[Rival],
        cx: &mut Context<'_, Self>,
    ) {
        if permit.life != self.me.incarnation.0 && !self.rules.one_life() {
            self.counters.0.stale += 1;
            // The sender does not know that the life that asked has ended. No request of this life is
            // over.
            cx.send(from, self.end_of(0));
            return;
        }
        let current = match &self.stage {
            Stage::Idle => None,
            Stage::Waiting(waiting) => Some(waiting.token.number),
            Stage::Inside(inside) => Some(inside.number),
        };
        if current != Some(permit.number) && !self.rules.ok_for_any_request() {
            self.counters.0.stale += 1;
            // The sender does not know that this request is over. While permissions are kept none
            // is over: two nodes may keep one from the same third node, and each has to know of the
            // other.
            if permit.number <= self.issued.latest() && self.kept.is_empty() {
                cx.send(from, self.end_of(permit.number));
            }
            return;
        }
        let Stage::Waiting(waiting) = &mut self.stage else {
            // This node is inside already.
            return;
        };
        let Some(asked) = waiting.get(from) else {
            // It was not asked, or is over.
            return;
        };
        let after = match asked.answer {
            Answer::Awaited { after } | Answer::Optional { after } => after,
            Answer::Ok | Answer::Abstained { .. } => return,
        };
        if after != permit.after {
            return;
        }
        if !self.has_room_for_all(rivals) {
            // One of them may be inside, and cannot be awaited.
            self.refuse_for_room(cx);
            return;
        }
        let Stage::Waiting(waiting) = &mut self.stage else {
            debug_assert!(false, "a look at the room ends no request");
            return;
        };
        waiting.raise(permit.floor);
        // The answer is complete only when all nodes that it names are awaited.
        for &rival in rivals {
            self.on_rival(rival, cx);
        }
        let Stage::Waiting(waiting) = &mut self.stage else {
            // There was no room for a rival.
            return;
        };
        let Some(asked) = waiting.get(from) else {
            // It named a later life of its own node.
            return;
        };
        let last = rivals.last().map(|rival| rival.member);
        let answer = match (permit.more, asked.answer) {
            (false, _) => Answer::Ok,
            (true, Answer::Optional { .. }) => Answer::Optional { after: last },
            (true, Answer::Awaited { .. } | Answer::Ok | Answer::Abstained { .. }) => {
                Answer::Awaited { after: last }
            }
        };
        let _is_there = waiting.set(from, Asked { answer, ..asked }).is_ok();
        if permit.more {
            self.send_request(from, last, cx);
        }
    }

    /// Returns true if a part of a node's list is here, and not all of it.
    #[cfg(feature = "check")]
    pub(crate) fn has_part(&self) -> bool {
        let Stage::Waiting(waiting) = &self.stage else {
            return false;
        };
        let is_part = |asked: Asked| matches!(asked.answer, Answer::Awaited { after: Some(_) });
        waiting.iter().any(|(_, asked)| is_part(asked))
    }

    /// Handles a rival that another node named in its OK.
    pub(crate) fn on_rival(&mut self, rival: Rival, cx: &mut Context<'_, Self>) {
        let member = rival.member;
        if member.id == self.me.id {
            return;
        }
        if self.is_past(rival) {
            // The node that names the rival did not know that yet.
            return;
        }
        if self.peers.is_over(member) {
            // It may have been inside before.
            if let Stage::Waiting(waiting) = &mut self.stage {
                waiting.raise(Token {
                    number: rival.up_to,
                    by: member,
                });
            }
            return;
        }
        if !self.make_room_for(member) {
            // It may be inside, and cannot be remembered.
            self.refuse_for_room(cx);
            return;
        }
        if !self.was_passed(rival) {
            self.note_rival(rival, cx);
        }
        // Only now: its former life is forgotten then.
        self.meet(member, cx);
    }

    /// Handles a WAIT: a node has our request, and we have to wait.
    pub(crate) fn on_wait(&mut self, from: Member, number: u64) {
        if let Stage::Waiting(waiting) = &mut self.stage
            && waiting.token.number == number
            && let Some(asked) = waiting.get(from)
        {
            let asked = Asked {
                received: true,
                copies: 0,
                ..asked
            };
            let _is_there = waiting.set(from, asked).is_ok();
        }
    }

    /// Handles overdue answers: asks again the nodes that have not answered, and less often the nodes
    /// that answered WAIT, because their OK may have been lost.
    pub(crate) fn ask_again(&mut self, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &mut self.stage else {
            // A stray tick: nothing waits.
            return;
        };
        waiting.again += 1;
        let asks_all =
            self.config.resend.0.saturating_mul(waiting.again) >= self.config.resend_limit.0;
        if asks_all {
            waiting.again = 0;
        }
        cx.arm(Timer::Resend, self.config.resend);
        let Stage::Waiting(waiting) = &self.stage else {
            debug_assert!(false, "the request waited just now");
            return;
        };
        let rivals_only = self.config.eager && self.is_quorum(waiting.oks());
        let awaited = if rivals_only {
            waiting.awaited_rivals()
        } else {
            waiting.awaited()
        };
        // We are among the next to enter: if our OK was lost, every node waits.
        let asks_all = asks_all || awaited <= FEW;
        let is_due = |(_, asked): &(Member, Asked)| {
            asked.is_awaited()
                && (asks_all || !asked.received)
                && (asked.rival.is_some() || !rivals_only)
        };
        let due: alloc::vec::Vec<(Member, Asked)> = waiting.iter().filter(is_due).collect();
        for (member, asked) in due {
            let Answer::Awaited { after } = asked.answer else {
                debug_assert!(false, "only an awaited answer is due");
                continue;
            };
            let copies = self.config.more_copies(asked.copies);
            if copies != asked.copies
                && let Stage::Waiting(waiting) = &mut self.stage
            {
                let _is_there = waiting.set(member, Asked { copies, ..asked }).is_ok();
            }
            for _ in 0..copies.max(1) {
                self.send_request(member, after, cx);
            }
        }
    }
}
