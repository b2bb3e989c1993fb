//! What a declared failure changes, and which nodes were passed over.

use selvedge_core::{Context, Member};

use crate::granted::Grant;
use crate::state::{Camera, Stage};
use crate::waiting::{Answer, Asked};
use crate::{Event, Message, Rival, Timer, Token};

impl Camera {
    /// A member was declared failed, which may be true.
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

    /// A member that was declared failed is not awaited, unless it may be inside: then its takeover
    /// time begins. Membership says it once, so this is checked again wherever a member is awaited
    /// anew.
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
            // Only a higher token passed this one over. With the very token that it may have it
            // entered, as its FENCE said, and may be inside.
            if self.tokens.used() <= (Token { number, by: holder }) {
                cx.arm(Timer::Takeover(member), takeover);
                return;
            }
            // A node has waited that long already, and has passed it over.
        }
        let answer = Answer::Optional { after };
        let _is_there = waiting.set(member, Asked { answer, ..asked }).is_ok();
    }

    /// The member's time is over: we no longer wait for it.
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

    /// A member is on the list, perhaps again.
    pub(crate) fn on_returned(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        if let Some(told) = self.peers.get_mut(member) {
            told.passed = false;
        }
        self.send_fence_if_passed(member, cx);
        if self.tokens.floor().number > 0 {
            // What a newcomer does not know it cannot pass on when all others are gone.
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
                // It may not have heard that we are inside.
                if self.config.takeover.is_some() && self.granted.grant(member).is_some() {
                    let token = inside.token;
                    cx.send(member, Message::Fence { token });
                }
            }
        }
        cx.disarm(Timer::Takeover(member));
    }

    /// Nothing is awaited from a life that is over.
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
        // What it said counts on: every other node that it said OK to knows of us.
        if asked.answer != Answer::Ok {
            waiting.remove(member);
        }
    }

    /// The requests of a node that might have had a token up to `over` are over. If we waited for
    /// one of these, nothing need come from that node any more; if the node is on the list, it is
    /// awaited like any other there.
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
            // It stays among the nodes that were asked: what this request met is not forgotten
            // before the request ends.
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

    /// A node says that it entered past us, or this follows from what it says.
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

    /// A node, perhaps this one, entered with this token.
    pub(crate) fn note_used(&mut self, token: Token) {
        let has_takeover = self.config.takeover.is_some();
        self.tokens.note_used(token, has_takeover);
    }

    /// A node that has our OK was passed over if a token was used that is higher than any it may
    /// have. The node that passed it over may have told it in vain and be gone, so every node that
    /// knows tells it.
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

    /// Whether we no longer wait for this rival, as it was when its time was over.
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
