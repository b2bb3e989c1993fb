//! Requests of other nodes: the decision to give our OK or to defer it, and the ends of requests.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use selvedge_core::roster::Standing;
use selvedge_core::{Context, Member};

use crate::granted::{Grant, Grants, Released};
use crate::message::{OK_MAX_LEN, Rivals};
use crate::state::{Camera, Stage};
use crate::{Message, Request, Rival, Timer, Token};

/// The answer to a request to enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// None: the request is over.
    Over,
    /// The same OK again: the request has it already.
    Granted,
    /// An OK.
    Grant,
    /// None yet: the request has to wait for ours.
    Wait,
}

impl Camera {
    /// Handles a node's request to enter.
    pub(crate) fn on_request(
        &mut self,
        from: Member,
        request: Request,
        after: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        // The sender does not go on the list: only membership takes a node off, so only membership puts one
        // on. Until its request is over it is awaited as a rival.
        let verdict = self.learn_wish(from, request, cx);
        if verdict == Verdict::Over {
            self.counters.0.stale += 1;
            return;
        }
        if self.rules.request_lists() && !self.peers.is_failed(from) {
            self.note(|it| it.peers.set(from, Standing::Listed));
        }
        if let Some(tree) = self.forest.get_mut(from) {
            tree.direct = true;
        }
        match verdict {
            Verdict::Over => {}
            // Our OK was lost, or was only the beginning.
            Verdict::Granted => self.say_again(from, after, cx),
            Verdict::Grant => self.grant(from, request, None, cx),
            Verdict::Wait => {
                let number = request.number;
                let before = self.granted.deferred_number(from);
                if before == Some(number) {
                    cx.send(from, Message::Wait { number });
                }
                self.defer(from, request);
            }
        }
    }

    /// Takes note of a request to enter, of either path, and returns the answer to it.
    pub(crate) fn learn_wish(
        &mut self,
        from: Member,
        request: Request,
        cx: &mut Context<'_, Self>,
    ) -> Verdict {
        let number = request.number;
        self.issued.receive(number);
        self.on_used(from, request.last, cx);
        if self.is_outdated(from, number) {
            return Verdict::Over;
        }
        let tree = self.forest.get(from);
        if tree.is_some_and(|it| it.id.number < number) {
            self.forest.remove(from);
        }
        let rival = Rival {
            member: from,
            up_to: request.up_to,
        };
        self.note_rival(rival, cx);
        self.verdict(from, number)
    }

    /// Returns true if this request of a node is over: the node reported it, or a later request of it
    /// has our OK.
    fn is_outdated(&self, from: Member, number: u64) -> bool {
        let granted = self.granted.grant(from).map(|grant| grant.number);
        self.granted.released(from).number >= number || granted > Some(number)
    }

    /// The answer to the request with this number.
    fn verdict(&self, from: Member, number: u64) -> Verdict {
        if self.is_outdated(from, number) {
            return Verdict::Over;
        }
        let granted = self.granted.grant(from).map(|grant| grant.number);
        if granted == Some(number) {
            return Verdict::Granted;
        }
        let token = Token { number, by: from };
        let goes_first = match &self.stage {
            Stage::Idle => true,
            Stage::Waiting(waiting) => token < waiting.token,
            Stage::Inside(_) => false,
        };
        if goes_first {
            Verdict::Grant
        } else if self.granted.deferred_number(from) > Some(number) {
            Verdict::Over
        } else {
            Verdict::Wait
        }
    }

    /// Makes a node wait for our OK.
    pub(crate) fn defer(&mut self, from: Member, request: Request) {
        self.note(|it| it.granted.defer(from, request));
    }

    /// Gives an OK. `known`: the list of other nodes to send, if not our own list.
    fn grant(
        &mut self,
        to: Member,
        request: Request,
        known: Option<&Grants>,
        cx: &mut Context<'_, Self>,
    ) {
        let number = request.number;
        let tree = self.forest.get(to).filter(|it| it.id.number == number);
        let (in_tree, direct) = (tree.is_some(), tree.is_none_or(|it| it.direct));
        if in_tree && !direct && self.rules.late_caching() {
            self.granted.stop_deferring(to);
        } else if !self.remember(to, request, cx) {
            // An OK that is not remembered must not be sent. The node will ask again.
            return;
        }
        if direct {
            self.send_ok(to, number, None, known, cx);
        }
        if in_tree && let Some(tree) = self.forest.get_mut(to) {
            tree.agreed = true;
            self.advance(to, cx);
        }
    }

    /// Remembers that a node has our OK. Returns false for lack of room.
    pub(crate) fn remember(
        &mut self,
        to: Member,
        request: Request,
        cx: &mut Context<'_, Self>,
    ) -> bool {
        let grant = Grant {
            number: request.number,
            up_to: request.up_to,
            copies: self.config.more_copies(0),
        };
        if !self.note(|it| it.granted.give(to, grant)) {
            return false;
        }
        if self.kept.remove(&to).is_some() {
            self.ask_anew(to, cx);
        }
        if self.granted.grants().len() == 1 && self.config.refresh.0 > 0 {
            cx.arm(Timer::Refresh, self.config.refresh);
        }
        true
    }

    /// Gives an OK to the deferred requests that `which` selects by their tokens, lowest token first.
    /// Each OK names the nodes that got an OK before.
    pub(crate) fn grant_deferred(
        &mut self,
        which: impl Fn(Token) -> bool,
        cx: &mut Context<'_, Self>,
    ) {
        // A heap: a sort takes 1.5 KB of flash more.
        let deferred = self.granted.deferred().iter();
        let tokens = deferred.map(|(&by, &Request { number, .. })| Token { number, by });
        let mut waiting: BinaryHeap<Reverse<Token>> =
            tokens.filter(|it| which(*it)).map(Reverse).collect();
        let snapshot = self
            .rules
            .snapshot_in_exit()
            .then(|| self.granted.grants().clone());
        while let Some(Reverse(token)) = waiting.pop() {
            let Some(&request) = self.granted.deferred().get(&token.by) else {
                debug_assert!(false, "an OK to one node ends no other node's wait");
                continue;
            };
            self.grant(token.by, request, snapshot.as_ref(), cx);
        }
    }

    /// Sends an OK that was lost again, in twice as many copies as before.
    fn say_again(&mut self, to: Member, after: Option<Member>, cx: &mut Context<'_, Self>) {
        let Some(grant) = self.granted.grant(to) else {
            debug_assert!(false, "only an OK that was given is said again");
            return;
        };
        let copies = match after {
            None => self.config.more_copies(grant.copies),
            Some(_) => grant.copies,
        };
        if copies != grant.copies {
            // The entry is there already, so there is room.
            self.note(|it| it.granted.give(to, Grant { copies, ..grant }));
        }
        for _ in 0..copies.max(1) {
            self.send_ok(to, grant.number, after, None, cx);
        }
    }

    /// One part of our list of rivals, as much as fits a frame.
    fn send_ok(
        &self,
        to: Member,
        number: u64,
        after: Option<Member>,
        known: Option<&Grants>,
        cx: &mut Context<'_, Self>,
    ) {
        let mut room = self.config.list_room(OK_MAX_LEN);
        let grants = known.unwrap_or(self.granted.grants()).iter();
        let others = grants.filter(|(member, _)| **member != to && Some(**member) > after);
        let all = others.map(|(&member, &Grant { up_to, .. })| Rival { member, up_to });
        let (rivals, next): (Rivals, _) = room.fill(all, Rival::encoded_len);
        let (more, floor) = (next.is_some(), self.tokens.floor());
        cx.send(
            to,
            Message::Ok {
                life: to.incarnation.0,
                number,
                after,
                rivals,
                more,
                floor,
            },
        );
    }

    /// Handles a node's report that some of its requests are over.
    pub(crate) fn on_release(
        &mut self,
        from: Member,
        released: Released,
        last: u64,
        cx: &mut Context<'_, Self>,
    ) {
        self.on_used(from, last, cx);
        if self.rules.release_by_id() {
            self.granted.take_back(from);
        }
        self.note(|it| it.granted.release(from, released));
        self.prune(from, released, last, cx);
        if self.granted.grants().is_empty() {
            cx.disarm(Timer::Refresh);
        }
        self.on_out(from, released.over, cx);
    }

    /// Returns true if the request of this rival is over.
    pub(crate) fn is_past(&self, rival: Rival) -> bool {
        self.granted.is_over(rival) && !self.rules.release_is_no_end()
    }

    /// Takes note that a node entered with this number.
    pub(crate) fn on_used(&mut self, holder: Member, number: u64, cx: &mut Context<'_, Self>) {
        if number > 0 {
            self.fence(Token { number, by: holder }, cx);
        }
    }

    /// Sends the OKs that were not released again: if a request is over, a RELEASE is the answer.
    pub(crate) fn refresh(&mut self, cx: &mut Context<'_, Self>) {
        for (&member, grant) in self.granted.grants().iter() {
            self.send_ok(member, grant.number, None, None, cx);
            self.send_fence_if_passed(member, cx);
        }
        if !self.granted.grants().is_empty() {
            cx.arm(Timer::Refresh, self.config.refresh);
        }
    }
}
