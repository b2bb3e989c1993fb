//! The decision whether our request enters, is issued again, or ends.

use core::mem;

use selvedge_core::quorum::Quorum;
use selvedge_core::{Context, Member};

use crate::granted::Released;
use crate::state::{Camera, Inside, Stage};
use crate::waiting::{Answer, Asked, Waiting};
use crate::{Event, Message, Refusal, Timer, Token};

/// The outcome of a request that waits.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// No change: it waits on, or no request waits.
    Open,
    /// It goes on through the whole mesh.
    Slow,
    /// It needs a higher number: above that of this token.
    TooLow(Token),
    /// The OKs of this many other nodes are too few.
    TooFew(usize),
    /// It enters with this token.
    Enters(Token),
}

impl Camera {
    /// Examines the waiting request, and continues it. This is the one place
    /// where a request enters. It runs after each input, because almost each input can change the
    /// outcome: answers, rivals, lists and bounds.
    pub(crate) fn look(&mut self, cx: &mut Context<'_, Self>) {
        // The quorum makes an entry safe. Two requests always share a node that gave both its OK in one
        // life; it names the first requester to the second, and the second waits for the first's own OK.
        // Membership decides only which nodes are asked first, and which silent nodes need not answer.
        // The slow path collects the same OKs in another way, and the same rule counts them.
        loop {
            match self.outcome() {
                Outcome::Open => return,
                // A request goes slow once, and its next number is above all known numbers. So the
                // loop runs three times at most.
                Outcome::Slow => self.go_slow(cx),
                Outcome::TooLow(floor) => self.issue_again(floor, cx),
                Outcome::TooFew(oks) => self.refuse(oks, cx),
                Outcome::Enters(token) => self.go_inside(token, cx),
            }
        }
    }

    fn outcome(&self) -> Outcome {
        let Stage::Waiting(waiting) = &self.stage else {
            return Outcome::Open;
        };
        let (oks, below) = if waiting.slow {
            match self.forest.get(self.me).filter(|tree| tree.is_whole()) {
                Some(tree) => (tree.oks() as usize, tree.floor),
                None => return Outcome::Open,
            }
        } else if self.is_too_few(waiting.reachable()) && self.peers.listed_len() > 0 {
            return Outcome::Slow;
        } else if !self.is_quorum(waiting.reachable()) {
            return Outcome::TooFew(waiting.oks());
        } else {
            (waiting.oks(), Token::default())
        };
        if waiting.slow && !self.is_quorum(oks) {
            return Outcome::TooFew(oks);
        }
        let awaited = if self.config.eager {
            waiting.awaited_rivals()
        } else {
            waiting.awaited()
        };
        if awaited > 0 || !self.is_quorum(oks) {
            return Outcome::Open;
        }
        let floor = self.tokens.floor().max(waiting.floor).max(below);
        let token = if floor < waiting.token || self.rules.number_is_token() {
            waiting.token
        } else {
            let (number, holder) = (floor.number.saturating_add(1), waiting.token.by);
            Token { number, by: holder }
        };
        if token.number > waiting.up_to {
            return Outcome::TooLow(floor);
        }
        Outcome::Enters(token)
    }

    fn go_inside(&mut self, token: Token, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(waiting) = &self.stage else {
            debug_assert!(false, "only a request that waits enters");
            return;
        };
        let inside = Inside {
            token,
            number: waiting.token.number,
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
        self.issued.enter(token.number);
        cx.disarm(Timer::Resend);
        for member in passed {
            let notified = self.peers.get_mut(member);
            if notified.is_none_or(|notified| !mem::replace(&mut notified.passed, true)) {
                cx.event(Event::PassedOver(member));
            }
            cx.send(member, Message::Fence { token });
        }
        cx.event(Event::Entered(token));
    }

    /// Ends the request, because it has too few OKs.
    fn refuse(&mut self, oks: usize, cx: &mut Context<'_, Self>) {
        let known = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let (answered, max_lives) = (known(oks.saturating_add(1)), known(self.max_lives()));
        self.end_with(
            Refusal::TooFew {
                answered,
                max_lives,
            },
            cx,
        );
    }

    /// Ends the request, because a node that it has to wait for cannot be remembered.
    pub(crate) fn refuse_for_room(&mut self, cx: &mut Context<'_, Self>) {
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

    /// Returns true if the OKs of this many other nodes are enough.
    pub(crate) fn is_quorum(&self, others: usize) -> bool {
        let oks = others.saturating_add(1);
        self.rules.no_quorum() || Quorum::Majority.is_reached(oks, self.max_lives())
    }

    /// Returns true if the fast path cannot succeed with the answers of this many other nodes.
    pub(crate) fn is_too_few(&self, others: usize) -> bool {
        let is_few = if self.rules.no_quorum() {
            self.peers.listed_len().saturating_mul(2) <= self.max_lives()
        } else {
            !self.is_quorum(others)
        };
        is_few && self.config.slow_path
    }

    /// The bound, or the list if that is longer.
    fn max_lives(&self) -> usize {
        (self.config.max_lives as usize).max(self.peers.listed_len() + 1)
    }

    fn keep_permissions(&mut self) {
        let Stage::Waiting(waiting) = &self.stage else {
            debug_assert!(false, "only a request that waits has permissions");
            return;
        };
        for (member, asked) in waiting.iter() {
            // The OK of a life that has ended counts for this entry, and for no later one.
            let is_good = asked.answer == Answer::Ok && !self.peers.is_over(member);
            if is_good && self.kept.insert(member, ()).is_err() {
                self.counters.0.no_room += 1;
            }
        }
    }

    /// Issues the request again with a higher number, because a node has used a higher token than
    /// this request may have. At each receiver the new request replaces the old one.
    fn issue_again(&mut self, floor: Token, cx: &mut Context<'_, Self>) {
        let Stage::Waiting(old) = &self.stage else {
            debug_assert!(false, "only a request that waits is issued again");
            return;
        };
        self.counters.0.issued_again += 1;
        let is_over = |(member, _): &(Member, Asked)| self.peers.is_over(*member);
        let asked: alloc::vec::Vec<(Member, Asked)> =
            old.iter().filter(|it| !is_over(it)).collect();
        let number = self.issued.next(floor.number);
        let holder = self.me;
        let token = Token { number, by: holder };
        let limit = (self.config.peer_limit as usize).saturating_mul(2);
        self.issued.begin(number, self.config.slack);
        let mut waiting = Waiting::new(token, self.issued.kept_to(), limit);
        waiting.raise(floor);
        let is_slow = old.slow;
        waiting.slow = is_slow;
        self.kept.retain(|_, ()| false);
        self.stage = Stage::Waiting(waiting);
        for (member, asked) in asked {
            // Nodes that need not answer are asked as well: no node may be left with the old
            // request.
            let optional = matches!(asked.answer, Answer::Optional { .. });
            self.ask(member, asked.rival, cx);
            if optional && let Stage::Waiting(waiting) = &mut self.stage {
                let answer = Answer::Optional { after: None };
                // The request may not have reached that node.
                let _is_there = waiting.set(member, Asked { answer, ..asked }).is_ok();
            } else {
                self.recheck_failed(member, cx);
            }
        }
        cx.arm(Timer::Resend, self.config.resend);
        if !self.rules.reissue_keeps_deferred() {
            self.grant_deferred(|theirs| theirs < token, cx);
        }
        if is_slow {
            self.start_tree(1, cx);
        }
    }

    /// Ends the request without an entry.
    pub(crate) fn withdraw(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        self.release(number, cx);
        self.stage = Stage::Idle;
        self.kept.retain(|_, ()| false);
        cx.disarm(Timer::Resend);
        self.grant_deferred(|_| true, cx);
    }

    /// Reports to all that our requests up to `number`, which is the latest, are over.
    pub(crate) fn release(&mut self, number: u64, cx: &mut Context<'_, Self>) {
        self.issued.end_all();
        let message = self.end_of(number);
        if self.config.multicast {
            cx.multicast(message);
        } else {
            for member in self.peers.listed() {
                cx.send(member, message.clone());
            }
        }
        let over = self.issued.over();
        self.prune(self.me, Released { number, over }, self.issued.last(), cx);
    }

    /// The RELEASE of our requests up to this number.
    pub(crate) const fn end_of(&self, number: u64) -> Message {
        // `over` is a token and not a request: an OK under way names us as a rival by the highest token that
        // our request may have. A memory of the OK at its receiver would help only the nodes that it asked,
        // and would fail with kept permissions, which go on under one token.
        let (last, over) = (self.issued.last(), self.issued.over());
        Message::Release { number, last, over }
    }
}
