//! Our own request: whom it asks, what it hears, and when it may enter.

use selvedge_core::{Context, Member};

use crate::machine::{Camera, Grant, Inside, Stage};
use crate::waiting::{Answer, Asked, Waiting};
use crate::{Event, Message, Refusal, Rival, Timer, Token};

/// Who waits for no more than so many is among the next.
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
        let heard_of = self.seen.max(self.floor.number).max(self.last);
        let number = heard_of.max(self.issued).saturating_add(1);
        if !self.config.keep || number > self.kept_to {
            self.kept.retain(|_, ()| false);
            self.kept_to = number.saturating_add(self.config.slack.into());
        }
        self.issued = number;
        let up_to = self.kept_to;
        let holder = self.me;
        // Everyone on the list, and everyone who may be inside for all we know.
        let limit = (self.config.peer_limit as usize).saturating_mul(2);
        let waiting = Waiting::new(Token { number, holder }, up_to, limit);
        self.stage = Stage::Waiting(waiting);
        let is_slow = self.is_too_few(self.peers.listed());
        if !is_slow {
            let listed: alloc::vec::Vec<Member> = self.peers.iter().collect();
            for member in listed {
                self.ask(member, None, cx);
            }
        }
        if !self.rules.own_oks_are_not_asked() {
            let granted: alloc::vec::Vec<(Member, u64)> = self
                .grants
                .iter()
                .map(|(&member, grant)| (member, grant.up_to))
                .collect();
            for (member, up_to) in granted {
                self.mind(Rival { member, up_to }, cx);
            }
        }
        cx.arm(Timer::Resend, self.config.resend);
        if is_slow {
            self.go_slow(cx);
        } else {
            self.try_enter(cx);
        }
    }

    /// Asks one node, unless its permission was kept.
    fn ask(&mut self, member: Member, rival: Option<u64>, cx: &mut Context<'_, Self>) {
        let kept = self.kept.contains(&member);
        let Stage::Waiting(waiting) = &mut self.stage else {
            return;
        };
        let answer = if kept {
            Answer::Ok
        } else {
            Answer::Awaited { after: None }
        };
        let heard = false;
        let asked = Asked {
            answer,
            rival,
            heard,
            copies: 0,
        };
        if waiting.set(member, asked).is_err() {
            // It cannot be waited for, so we cannot enter: give up rather than be wrong.
            self.refuse_for_room(cx);
            return;
        }
        if !kept {
            self.send_request(member, None, cx);
        }
    }

    fn send_request(&self, to: Member, after: Option<Member>, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &self.stage else {
            return;
        };
        let request = waiting.request(self.last);
        cx.send(to, Message::Request { request, after });
    }

    /// Somebody else may be inside, or wants to enter: its OK is needed, and no suspicion replaces
    /// it.
    pub(crate) fn mind(&mut self, rival: Rival, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &mut self.stage else {
            return;
        };
        let member = rival.member;
        let before = waiting.get(member);
        let up_to = before.and_then(|it| it.rival).max(Some(rival.up_to));
        let is_news = before.is_none_or(|it| it.rival.is_none() && it.answer != Answer::Ok);
        if self.rules.ask_who_is_not_listed() {
            if let Some(asked) = before {
                let asked = Asked {
                    rival: up_to,
                    ..asked
                };
                let _is_there = waiting.set(member, asked).is_ok();
            }
            if !self.peers.is_listed(member) {
                self.note(|it| it.peers.list(member));
                self.ask(member, up_to, cx);
            }
            return;
        }
        match before {
            None => self.ask(member, up_to, cx),
            Some(Asked { answer, .. }) => {
                let after = match answer {
                    Answer::Optional { after } => Some(after),
                    Answer::Awaited { .. } | Answer::Ok => None,
                };
                let answer = after.map_or(answer, |after| Answer::Awaited { after });
                let asked = Asked {
                    answer,
                    rival: up_to,
                    heard: before.is_some_and(|it| it.heard),
                    copies: before.map_or(0, |it| it.copies),
                };
                let _is_there = waiting.set(member, asked).is_ok();
                if let Some(after) = after {
                    self.send_request(member, after, cx);
                }
            }
        }
        if !self.is_waiting() {
            return;
        }
        if is_news {
            cx.event(Event::Waiting(member));
        }
        let was_optional = |it: Asked| matches!(it.answer, Answer::Optional { .. });
        if is_news || before.is_some_and(was_optional) {
            self.doubt(member, cx);
        }
    }

    /// Who has our OK now may enter before us: an OK of theirs from before does not count.
    pub(crate) fn ask_anew(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &mut self.stage else {
            return;
        };
        if let Some(asked) = waiting.get(member)
            && asked.answer == Answer::Ok
        {
            let answer = Answer::Awaited { after: None };
            let heard = false;
            let asked = Asked {
                answer,
                heard,
                ..asked
            };
            let _is_there = waiting.set(member, asked).is_ok();
            self.send_request(member, None, cx);
            // It is a rival, and stays awaited.
            self.doubt(member, cx);
        }
    }

    /// An OK came.
    pub(crate) fn allowed(
        &mut self,
        from: Member,
        permit: Permit,
        rivals: &[Rival],
        cx: &mut Context<'_, Self>,
    ) {
        if permit.life != self.me.incarnation.0 && !self.rules.one_life() {
            self.counters.0.stale += 1;
            // It does not know that the life which asked is over. Of ours nothing is.
            let (number, last) = (0, self.last);
            cx.send(from, Message::Release { number, last });
            return;
        }
        let current = match &self.stage {
            Stage::Idle => None,
            Stage::Waiting(waiting) => Some(waiting.token.number),
            Stage::Inside(inside) => Some(inside.number),
        };
        if current != Some(permit.number) && !self.rules.ok_for_any_request() {
            self.counters.0.stale += 1;
            // It does not know that this request is over.
            if permit.number <= self.issued && !self.kept.contains(&from) {
                let (number, last) = (permit.number, self.last);
                cx.send(from, Message::Release { number, last });
            }
            return;
        }
        let Stage::Waiting(waiting) = &mut self.stage else {
            return;
        };
        let Some(asked) = waiting.get(from) else {
            return;
        };
        let after = match asked.answer {
            Answer::Awaited { after } | Answer::Optional { after } => after,
            Answer::Ok => return,
        };
        if after != permit.after {
            return;
        }
        if waiting.room() < rivals.len() {
            // Not taken, so it comes again, and meanwhile some may have been released.
            self.counters.0.no_room += 1;
            return;
        }
        let token = waiting.token;
        waiting.raise(permit.floor);
        // It is complete when all whom it names are awaited, and not before.
        for &rival in rivals {
            self.heard_of(rival, cx);
        }
        let Stage::Waiting(waiting) = &mut self.stage else {
            return;
        };
        let Some(asked) = waiting.get(from).filter(|_| waiting.token == token) else {
            return;
        };
        let last = rivals.last().map(|rival| rival.member);
        let answer = match (permit.more, asked.answer) {
            (false, _) => Answer::Ok,
            (true, Answer::Optional { .. }) => Answer::Optional { after: last },
            (true, Answer::Awaited { .. } | Answer::Ok) => Answer::Awaited { after: last },
        };
        let _is_there = waiting.set(from, Asked { answer, ..asked }).is_ok();
        if permit.more {
            self.send_request(from, last, cx);
        }
        self.try_enter(cx);
    }

    /// Somebody gave this rival its OK.
    pub(crate) fn heard_of(&mut self, rival: Rival, cx: &mut Context<'_, Self>) {
        let member = rival.member;
        if member.id == self.me.id {
            return;
        }
        if self.peers.is_over(member) {
            // It may have been inside before.
            if let Stage::Waiting(waiting) = &mut self.stage {
                waiting.raise(Token {
                    number: rival.up_to,
                    holder: member,
                });
            }
            return;
        }
        if !self.peers.has_room_for(member) {
            // It may be inside, and cannot be awaited.
            self.refuse_for_room(cx);
            return;
        }
        if !self.was_passed(rival) {
            self.mind(rival, cx);
        }
        // Only now: its former life is forgotten then, and may be the last one that is awaited.
        self.meet(member, cx);
    }

    /// Whether we no longer wait for this rival, as it was when its time was over.
    fn was_passed(&self, rival: Rival) -> bool {
        let Stage::Waiting(waiting) = &self.stage else {
            return false;
        };
        waiting.get(rival.member).is_some_and(|asked| {
            let is_optional = matches!(asked.answer, Answer::Optional { .. });
            is_optional && asked.rival >= Some(rival.up_to)
        })
    }

    /// Enters if everything is there; issues the request again when its number is too low.
    pub(crate) fn try_enter(&mut self, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &self.stage else {
            return;
        };
        let (oks, below) = if waiting.slow {
            match self.trees.get(&self.me).filter(|tree| tree.is_whole()) {
                Some(tree) => (tree.oks() as usize, tree.floor),
                None => return,
            }
        } else if self.is_too_few(waiting.reachable()) && self.peers.listed() > 0 {
            self.go_slow(cx);
            return;
        } else if !self.is_quorum(waiting.reachable()) {
            let oks = waiting.oks();
            self.refuse(oks, cx);
            return;
        } else {
            (waiting.oks(), Token::default())
        };
        if waiting.slow && !self.is_quorum(oks) {
            self.refuse(oks, cx);
            return;
        }
        let awaited = if self.config.eager {
            waiting.awaited_rivals()
        } else {
            waiting.awaited()
        };
        if awaited > 0 || !self.is_quorum(oks) {
            return;
        }
        let Token { number, holder } = waiting.token;
        let floor = self.floor.max(waiting.floor).max(below);
        let token = if floor < waiting.token || self.rules.number_is_token() {
            waiting.token
        } else {
            let number = floor.number.saturating_add(1);
            Token { number, holder }
        };
        if token.number > waiting.up_to {
            self.issue_again(floor, cx);
            return;
        }
        let inside = Inside {
            token,
            number,
            fenced: false,
        };
        let passed: alloc::vec::Vec<Member> = waiting
            .iter()
            .filter(|(_, asked)| {
                asked.rival.is_some() && matches!(asked.answer, Answer::Optional { .. })
            })
            .map(|(member, _)| member)
            .collect();
        if self.config.keep && !waiting.slow {
            self.keep_permissions();
        }
        self.stage = Stage::Inside(inside);
        self.last = token.number;
        self.seen = self.seen.max(token.number);
        cx.disarm(Timer::Resend);
        for member in passed {
            cx.event(Event::PassedOver(member));
            cx.send(member, Message::Fence { token });
        }
        cx.event(Event::Entered(token));
    }

    /// Ends the request, for too few have said OK.
    fn refuse(&mut self, oks: usize, cx: &mut Context<'_, Self>) {
        let known = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (answered, upper) = (known(oks.saturating_add(1)), known(self.upper()));
        self.end_with(Refusal::TooFew { answered, upper }, cx);
    }

    /// Ends the request, for whom it has to wait for cannot be remembered.
    fn refuse_for_room(&mut self, cx: &mut Context<'_, Self>) {
        self.counters.0.no_room += 1;
        let limit = self.config.peer_limit;
        self.end_with(Refusal::NoRoom { limit }, cx);
    }

    fn end_with(&mut self, refusal: Refusal, cx: &mut Context<'_, Self>) {
        if let Stage::Waiting(waiting) = &self.stage {
            let number = waiting.token.number;
            self.withdraw(number, cx);
            cx.event(Event::Refused(refusal));
        }
    }

    /// Whether the OKs of so many others are enough.
    fn is_quorum(&self, others: usize) -> bool {
        self.rules.no_quorum() || others.saturating_add(1).saturating_mul(2) > self.upper()
    }

    /// Whether the fast path cannot succeed when so many others can be asked.
    fn is_too_few(&self, others: usize) -> bool {
        let is_few = if self.rules.no_quorum() {
            self.peers.listed().saturating_mul(2) <= self.upper()
        } else {
            !self.is_quorum(others)
        };
        is_few && self.config.slow_path
    }

    /// The bound, or the list if that is longer.
    fn upper(&self) -> usize {
        (self.config.upper as usize).max(self.peers.listed() + 1)
    }

    fn keep_permissions(&mut self) {
        let Stage::Waiting(waiting) = &self.stage else {
            return;
        };
        for (member, asked) in waiting.iter() {
            if asked.answer == Answer::Ok && self.kept.insert(member, ()).is_err() {
                self.counters.0.no_room += 1;
            }
        }
    }

    /// Somebody has used a higher token than this request may have: it gets a higher number. The
    /// new request replaces the old one wherever it comes.
    fn issue_again(&mut self, floor: Token, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(old) = &self.stage else {
            return;
        };
        self.counters.0.issued_again += 1;
        let is_over = |(member, _): &(Member, Asked)| self.peers.is_over(*member);
        let asked: alloc::vec::Vec<(Member, Asked)> =
            old.iter().filter(|it| !is_over(it)).collect();
        let highest = self.seen.max(floor.number).max(self.issued);
        let number = highest.saturating_add(1);
        let up_to = number.saturating_add(self.config.slack.into());
        let holder = self.me;
        let token = Token { number, holder };
        let limit = (self.config.peer_limit as usize).saturating_mul(2);
        let mut waiting = Waiting::new(token, up_to, limit);
        waiting.raise(floor);
        let is_slow = old.slow;
        waiting.slow = is_slow;
        self.issued = number;
        self.kept_to = up_to;
        self.kept.retain(|_, ()| false);
        self.stage = Stage::Waiting(waiting);
        for (member, asked) in asked {
            // Those that need not answer are asked as well: nobody may be left with the old one.
            let optional = matches!(asked.answer, Answer::Optional { .. });
            self.ask(member, asked.rival, cx);
            if optional && let Stage::Waiting(waiting) = &mut self.stage {
                let answer = Answer::Optional { after: None };
                // It may not have come there.
                let _is_there = waiting.set(member, Asked { answer, ..asked }).is_ok();
            } else {
                self.doubt(member, cx);
            }
        }
        cx.arm(Timer::Resend, self.config.resend);
        if !self.rules.reissue_keeps_deferred() {
            self.grant_deferred(|theirs| theirs < token, cx);
        }
        if is_slow {
            self.plant(1, cx);
        } else {
            self.try_enter(cx);
        }
    }

    /// The request is over without an entry.
    pub(crate) fn withdraw(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        self.release(number, cx);
        self.stage = Stage::Idle;
        self.kept.retain(|_, ()| false);
        cx.disarm(Timer::Resend);
        self.grant_deferred(|_| true, cx);
    }

    /// Says to all that our requests up to this number are over.
    pub(crate) fn release(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        let last = self.last;
        let message = Message::Release { number, last };
        if self.config.multicast {
            cx.multicast(message);
        } else {
            for member in self.peers.iter() {
                cx.send(member, message.clone());
            }
        }
        self.fell(self.me, number, last, cx);
    }

    /// It has our request, and we have to wait.
    pub(crate) fn is_heard(&mut self, from: Member, number: u64) {
        if let Stage::Waiting(waiting) = &mut self.stage
            && waiting.token.number == number
            && let Some(asked) = waiting.get(from)
        {
            let asked = Asked {
                heard: true,
                copies: 0,
                ..asked
            };
            let _is_there = waiting.set(from, asked).is_ok();
        }
    }

    /// Answers are overdue: asks again who has not been heard of, and now and then who said that
    /// we have to wait, for its OK may have been lost.
    pub(crate) fn ask_again(&mut self, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &mut self.stage else {
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
            return;
        };
        let rivals_only = self.config.eager && self.is_quorum(waiting.oks());
        let awaited = if rivals_only {
            waiting.awaited_rivals()
        } else {
            waiting.awaited()
        };
        // We are among the next: an OK that was lost holds up everyone.
        let asks_all = asks_all || awaited <= FEW;
        let is_due = |(_, asked): &(Member, Asked)| {
            matches!(asked.answer, Answer::Awaited { .. })
                && (asks_all || !asked.heard)
                && (asked.rival.is_some() || !rivals_only)
        };
        let due: alloc::vec::Vec<(Member, Asked)> = waiting.iter().filter(is_due).collect();
        for (member, asked) in due {
            let Answer::Awaited { after } = asked.answer else {
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

    /// A member was declared failed: perhaps it is.
    pub(crate) fn has_failed(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        self.lost(member, cx);
        if self.rules.failure_forgets() {
            self.grants.remove(&member);
        }
        if self.rules.failure_forgets_deferred() {
            self.deferred.remove(&member);
        }
        if self.doubt(member, cx) {
            self.try_enter(cx);
        }
    }

    /// Who was declared failed is not awaited, unless it may be inside: then its time begins.
    /// Membership says it once, so this is asked again wherever somebody is awaited anew. Returns
    /// whether it is awaited no longer.
    fn doubt(&mut self, member: Member, cx: &mut Context<'_, Self>) -> bool {
        let ends_wait = self.rules.failure_ends_wait();
        let is_failed = self.peers.is_failed(member);
        let Stage::Waiting(waiting) = &mut self.stage else {
            return false;
        };
        let Some(asked) = waiting.get(member) else {
            return false;
        };
        let Answer::Awaited { after } = asked.answer else {
            return false;
        };
        if !is_failed {
            return false;
        }
        if let (Some(number), false) = (asked.rival, ends_wait) {
            let Some(takeover) = self.config.takeover else {
                return false;
            };
            let holder = member;
            if self.used < (Token { number, holder }) {
                cx.arm(Timer::Takeover(member), takeover);
                return false;
            }
            // Somebody has waited that long already, and has passed it over.
        }
        let answer = Answer::Optional { after };
        waiting.set(member, Asked { answer, ..asked }).is_ok()
    }

    /// Its time is over: we no longer wait for it.
    pub(crate) fn pass_over(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let is_failed = self.peers.is_failed(member);
        let Stage::Waiting(waiting) = &mut self.stage else {
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
                holder: member,
            });
            self.try_enter(cx);
        }
    }

    /// A member is on the list, perhaps again.
    pub(crate) fn is_back(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        self.tell_if_passed(member, cx);
        if self.floor.number > 0 {
            // What a newcomer does not know it cannot pass on when all others are gone.
            let token = self.floor;
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
                if self.config.takeover.is_some() && self.grants.contains(&member) {
                    let token = inside.token;
                    cx.send(member, Message::Fence { token });
                }
            }
        }
        cx.disarm(Timer::Takeover(member));
    }

    /// Nothing is awaited from a life that is over.
    pub(crate) fn no_longer_awaited(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        cx.disarm(Timer::Takeover(member));
        let Stage::Waiting(waiting) = &mut self.stage else {
            return;
        };
        let Some(asked) = waiting.get(member) else {
            return;
        };
        if let Some(number) = asked.rival {
            let holder = member;
            waiting.raise(Token { number, holder });
        }
        // What it said counts on: whoever else it said OK to knows of us.
        if asked.answer != Answer::Ok {
            waiting.remove(member);
            self.try_enter(cx);
        }
    }

    /// Somebody says that it entered past us, or this follows from what it says.
    pub(crate) fn fence(&mut self, token: Token, cx: &mut Context<'_, Self>) {
        if let Stage::Inside(inside) = &mut self.stage
            && token > inside.token
            && token.holder != self.me
            && !inside.fenced
        {
            inside.fenced = true;
            cx.event(Event::Fenced(token));
        }
        self.was_used(token);
    }

    /// Somebody, perhaps we, entered with this token.
    pub(crate) fn was_used(&mut self, token: Token) {
        self.floor = self.floor.max(token);
        if self.config.takeover.is_some() {
            self.used = self.used.max(token);
        }
    }

    /// A node that has our OK was passed over if a token was used that is higher than any it may
    /// have. Who passed it over may have told it in vain and be gone, so whoever knows tells it.
    pub(crate) fn tell_if_passed(&self, member: Member, cx: &mut Context<'_, Self>) {
        let (token, holder) = (self.used, member);
        let is_passed = |grant: &Grant| {
            let number = grant.up_to;
            token > Token { number, holder }
        };
        if token.holder != member && self.grants.get(&member).is_some_and(is_passed) {
            cx.send(member, Message::Fence { token });
        }
    }
}
