//! The effects of a declared failure, and the nodes that were passed over.

use selvedge_core::{Context, Member};

use crate::granted::Grant;
use crate::state::{Camera, Stage};
use crate::waiting::{Answer, Asked};
use crate::{Event, Message, Rival, Timer, Token};

impl Camera {
    /// Handles the declared failure of a member, which may be true.
    pub(crate) fn on_failed(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        self.on_lost(member, cx);
        if self.rules.failure_forgets() {
            self.granted.take_back(member);
        }
        if self.rules.failure_forgets_deferred() {
            self.granted.stop_deferring(member);
        }
        self.recheck_failed(member, cx);
    }

    /// Stops waiting for a member that was declared failed. If it may be inside, its takeover time
    /// begins instead. Membership reports it once, so this is checked again wherever a node begins to
    /// await a member.
    pub(crate) fn recheck_failed(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let ends_wait = self.rules.failure_ends_wait();
        let is_failed = self.peers.is_failed(member);
        let Stage::Waiting(waiting) = &mut self.stage else {
            return;
        };
        let Some(asked) = waiting.get(member) else {
            return;
        };
        let Answer::Awaited { after } = asked.answer else {
            return;
        };
        if !is_failed {
            return;
        }
        if let (Some(number), false) = (asked.rival, ends_wait) {
            let Some(takeover) = self.config.takeover else {
                return;
            };
            let holder = member;
            // Only a higher token means that it was passed over. If the token is equal to the highest
            // that it may have, then it entered with it, as its FENCE reported, and may be inside.
            if self.tokens.used() <= (Token { number, by: holder }) {
                cx.arm(Timer::Takeover(member), takeover);
                return;
            }
            // A node has waited that long already, and has passed it over.
        }
        let answer = Answer::Optional { after };
        let _is_there = waiting.set(member, Asked { answer, ..asked }).is_ok();
    }

    /// Handles the end of a member's takeover time: we no longer wait for it.
    pub(crate) fn pass_over(&mut self, member: Member) {
        let is_failed = self.peers.is_failed(member);
        let Stage::Waiting(waiting) = &mut self.stage else {
            // A stray tick: the request is over.
            return;
        };
        if let Some(asked) = waiting.get(member)
            && let Answer::Awaited { after } = asked.answer
            && is_failed
        {
            let answer = Answer::Optional { after };
            let _is_there = waiting.set(member, Asked { answer, ..asked }).is_ok();
            waiting.raise(Token {
                number: asked.rival.unwrap_or_default(),
                by: member,
            });
        }
    }

    /// Handles a member that is on the list, perhaps again.
    pub(crate) fn on_returned(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(notified) = self.peers.get_mut(member) {
            notified.passed = false;
        }
        self.send_fence_if_passed(member, cx);
        if self.tokens.floor().number > 0 {
            // Later a newcomer may be the only node left that knows the highest token.
            let token = self.tokens.floor();
            cx.send(member, Message::Floor { token });
        }
        match &mut self.stage {
            Stage::Idle => {}
            Stage::Waiting(waiting) => {
                if let Some(asked) = waiting.get(member)
                    && asked.rival.is_some()
                    && let Answer::Optional { after } = asked.answer
                {
                    let answer = Answer::Awaited { after };
                    let _is_there = waiting.set(member, Asked { answer, ..asked }).is_ok();
                    self.send_request(member, after, cx);
                }
            }
            Stage::Inside(inside) => {
                // It may not know that we are inside.
                if self.config.takeover.is_some() && self.granted.grant(member).is_some() {
                    let token = inside.token;
                    cx.send(member, Message::Fence { token });
                }
            }
        }
        cx.disarm(Timer::Takeover(member));
    }

    /// Stops waiting for a life that has ended.
    pub(crate) fn stop_awaiting(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        cx.disarm(Timer::Takeover(member));
        let Stage::Waiting(waiting) = &mut self.stage else {
            // Nothing is awaited.
            return;
        };
        let Some(asked) = waiting.get(member) else {
            // It was not asked.
            return;
        };
        if let Some(number) = asked.rival {
            let holder = member;
            waiting.raise(Token { number, by: holder });
        }
        // Its answer still counts: every other node to which it gave an OK knows of us.
        if asked.answer != Answer::Ok {
            waiting.remove(member);
        }
    }

    /// Handles the end of a node's requests that might have had a token up to `over`. If we waited
    /// for one of these, that node need not answer any more; if it is on the list, it is awaited
    /// like any other node there.
    pub(crate) fn on_out(&mut self, member: Member, over: u64, cx: &mut Context<'_, Self>) {
        if self.rules.release_is_no_end() {
            return;
        }
        let is_watched = self.peers.is_listed(member) || self.peers.is_failed(member);
        let Stage::Waiting(waiting) = &mut self.stage else {
            // Nothing is awaited.
            return;
        };
        let Some(asked) = waiting.get(member) else {
            // It was not asked.
            return;
        };
        let is_settled = !matches!(
            asked.answer,
            Answer::Awaited { .. } | Answer::Optional { .. }
        );
        if is_settled || asked.rival.is_none_or(|up_to| up_to > over) {
            return;
        }
        // On the slow path only rivals are asked.
        if waiting.slow || !is_watched {
            // It stays among the nodes that were asked: a node that this request has met is not
            // forgotten before the request ends.
            let (answer, rival) = (Answer::Abstained { over }, None);
            let settled = Asked {
                answer,
                rival,
                ..asked
            };
            let _is_there = waiting.set(member, settled).is_ok();
        } else {
            let rival = None;
            let _is_there = waiting.set(member, Asked { rival, ..asked }).is_ok();
            self.recheck_failed(member, cx);
        }
        cx.disarm(Timer::Takeover(member));
    }

    /// Handles a message from which it follows that a node entered past us.
    pub(crate) fn fence(&mut self, token: Token, cx: &mut Context<'_, Self>) {
        if let Stage::Inside(inside) = &mut self.stage
            && token > inside.token
            && token.by != self.me
            && !inside.fenced
        {
            inside.fenced = true;
            cx.event(Event::Fenced(token));
        }
        self.note_used(token);
    }

    /// Takes note that a node, perhaps this one, entered with this token.
    pub(crate) fn note_used(&mut self, token: Token) {
        let has_takeover = self.config.takeover.is_some();
        self.tokens.note_used(token, has_takeover);
    }

    /// Sends a FENCE to a node that has our OK and was passed over: a token was used that is higher
    /// than any that it may have. The FENCE of the node that passed it over may be lost, and
    /// that node may have failed, so every node that knows the token sends one.
    pub(crate) fn send_fence_if_passed(&self, member: Member, cx: &mut Context<'_, Self>) {
        let (token, holder) = (self.tokens.used(), member);
        let is_passed = |grant: &Grant| {
            let number = grant.up_to;
            token > Token { number, by: holder }
        };
        if token.by != member && self.granted.grant(member).as_ref().is_some_and(is_passed) {
            cx.send(member, Message::Fence { token });
        }
    }

    /// Returns true if we no longer wait for this rival: it was passed over with this number or a
    /// higher one.
    pub(crate) fn was_passed(&self, rival: Rival) -> bool {
        let Stage::Waiting(waiting) = &self.stage else {
            return false;
        };
        waiting.get(rival.member).is_some_and(|asked| {
            let is_optional = matches!(asked.answer, Answer::Optional { .. });
            is_optional && asked.rival >= Some(rival.up_to)
        })
    }
}
