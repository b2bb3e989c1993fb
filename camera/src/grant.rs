//! Others' requests: which nodes get our OK, which wait for it, and when a request is over.

use alloc::vec::Vec;

use selvedge_core::roster::Standing;
use selvedge_core::{BoundedMap, Context, Member};

use crate::machine::{Camera, Grant, Released, Stage};
use crate::message::{OK_MAX_LEN, Rivals};
use crate::{Message, Request, Rival, Timer, Token};

/// What a wish to enter gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: it is over.
    Over,
    /// It has our OK already.
    Granted,
    /// Our OK.
    Grant,
    /// It has to wait for us.
    Wait,
}

impl Camera {
    /// A node wants to enter.
    pub(crate) fn asked(
        &mut self,
        from: Member,
        request: Request,
        after: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        let verdict = self.judge(from, request, cx);
        if verdict == Verdict::Over {
            self.counters.0.stale += 1;
            return;
        }
        if self.rules.request_lists() && !self.peers.is_failed(from) {
            self.note(|it| it.peers.set(from, Standing::Listed));
        }
        if let Some(tree) = self.trees.get_mut(&from) {
            tree.direct = true;
        }
        match verdict {
            Verdict::Over => {}
            // Our OK was lost, or was only the beginning.
            Verdict::Granted => self.say_again(from, after, cx),
            Verdict::Grant => self.grant(from, request, None, cx),
            Verdict::Wait => {
                let number = request.number;
                let before = self.deferred.get(&from).map(|old| old.number);
                if before == Some(number) {
                    cx.send(from, Message::Wait { number });
                }
                self.defer(from, request);
            }
        }
    }

    /// What a wish to enter gets from us, whichever way it came here.
    pub(crate) fn judge(
        &mut self,
        from: Member,
        request: Request,
        cx: &mut Context<'_, Self>,
    ) -> Verdict {
        self.seen = self.seen.max(request.number);
        self.used(from, request.last, cx);
        let number = request.number;
        let released = self.released.get(&from).map_or(0, |it| it.number);
        let granted = self.grants.get(&from).map(|grant| grant.number);
        if released >= number || granted > Some(number) {
            return Verdict::Over;
        }
        if self
            .trees
            .get(&from)
            .is_some_and(|it| it.id.number < number)
        {
            self.trees.remove(&from);
        }
        let rival = Rival {
            member: from,
            up_to: request.up_to,
        };
        self.mind(rival, cx);
        if granted == Some(number) {
            return Verdict::Granted;
        }
        let holder = from;
        let token = Token { number, by: holder };
        let defer = match &self.stage {
            Stage::Idle => false,
            Stage::Waiting(waiting) => token > waiting.token,
            Stage::Inside(_) => true,
        };
        if !defer {
            return Verdict::Grant;
        }
        let deferred = self.deferred.get(&from).map(|old| old.number);
        if deferred > Some(number) {
            return Verdict::Over;
        }
        Verdict::Wait
    }

    /// Makes a node wait for our OK.
    pub(crate) fn defer(&mut self, from: Member, request: Request) {
        // A node has one request at a time: its former request is over.
        self.grants.remove(&from);
        let number = |old: &Request| old.number;
        if self.deferred.get(&from).map(number) < Some(request.number) {
            self.note(|it| it.deferred.insert(from, request).map(drop));
        }
    }

    /// Says OK. `known`: what to say of other nodes, if not what we know.
    fn grant(
        &mut self,
        to: Member,
        request: Request,
        known: Option<&BoundedMap<Member, Grant>>,
        cx: &mut Context<'_, Self>,
    ) {
        let number = request.number;
        let tree = self.trees.get(&to).filter(|it| it.id.number == number);
        let (in_tree, direct) = (tree.is_some(), tree.is_none_or(|it| it.direct));
        if in_tree && !direct && self.rules.late_caching() {
            self.deferred.remove(&to);
        } else if !self.remember(to, request, cx) {
            // Without remembering the OK we must not say it. The node will ask again.
            return;
        }
        if direct {
            self.send_ok(to, number, None, known, cx);
        }
        if in_tree && let Some(tree) = self.trees.get_mut(&to) {
            tree.agreed = true;
            self.advance(to, cx);
        }
    }

    /// Remembers that a node has our OK. False if there is no room.
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
        if !self.note(|it| it.grants.insert(to, grant).map(drop)) {
            return false;
        }
        self.deferred.remove(&to);
        if self.kept.remove(&to).is_some() {
            self.ask_anew(to, cx);
        }
        if self.grants.len() == 1 && self.config.refresh.0 > 0 {
            cx.arm(Timer::Refresh, self.config.refresh);
        }
        true
    }

    /// Lets nodes go first that waited for us and whose token is in `which`, lowest token first.
    /// Each is told of those before it.
    pub(crate) fn grant_deferred(
        &mut self,
        which: impl Fn(Token) -> bool,
        cx: &mut Context<'_, Self>,
    ) {
        let mut waiting: Vec<(Token, Request)> = self
            .deferred
            .iter()
            .map(|(&holder, &request)| {
                let number = request.number;
                (Token { number, by: holder }, request)
            })
            .filter(|(token, _)| which(*token))
            .collect();
        waiting.sort_unstable_by_key(|(token, _)| *token);
        let snapshot = self.rules.snapshot_in_exit().then(|| self.grants.clone());
        for (token, request) in waiting {
            self.grant(token.by, request, snapshot.as_ref(), cx);
        }
    }

    /// Says again an OK that was lost, in twice as many copies as before.
    fn say_again(&mut self, to: Member, after: Option<Member>, cx: &mut Context<'_, Self>) {
        let Some(grant) = self.grants.get(&to).copied() else {
            return;
        };
        let copies = match after {
            None => self.config.more_copies(grant.copies),
            Some(_) => grant.copies,
        };
        if copies != grant.copies {
            // The entry is there already, so there is room.
            self.note(|it| it.grants.insert(to, Grant { copies, ..grant }).map(drop));
        }
        for _ in 0..copies.max(1) {
            self.send_ok(to, grant.number, after, None, cx);
        }
    }

    /// One part of what we know of others, as much as fits a frame.
    fn send_ok(
        &self,
        to: Member,
        number: u64,
        after: Option<Member>,
        known: Option<&BoundedMap<Member, Grant>>,
        cx: &mut Context<'_, Self>,
    ) {
        let mut room = self.config.list_room(OK_MAX_LEN);
        let grants = known.unwrap_or(&self.grants).iter();
        let others = grants.filter(|(member, _)| **member != to && Some(**member) > after);
        let all = others.map(|(&member, &Grant { up_to, .. })| Rival { member, up_to });
        let (rivals, next): (Rivals, _) = room.fill(all, Rival::encoded_len);
        let (more, floor) = (next.is_some(), self.floor);
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

    /// A node says that some of its requests are over.
    pub(crate) fn released(
        &mut self,
        from: Member,
        released: Released,
        last: u64,
        cx: &mut Context<'_, Self>,
    ) {
        self.used(from, last, cx);
        let is_over = |number: u64| number <= released.number;
        let by_id = self.rules.release_by_id();
        let grant = self.grants.get(&from).copied();
        if grant.is_some_and(|grant| is_over(grant.number) || by_id) {
            self.grants.remove(&from);
        }
        if self
            .deferred
            .get(&from)
            .is_some_and(|it| is_over(it.number))
        {
            self.deferred.remove(&from);
        }
        let before = self.released.get(&from).copied().unwrap_or_default();
        let known = Released {
            number: before.number.max(released.number),
            over: before.over.max(released.over),
        };
        if known != before {
            self.note(|it| it.released.insert(from, known).map(drop));
        }
        self.fell(from, released, last, cx);
        if self.grants.is_empty() {
            cx.disarm(Timer::Refresh);
        }
        self.on_out(from, released.over, cx);
    }

    /// Whether the request of this rival is one of those that are over.
    pub(crate) fn is_past(&self, rival: Rival) -> bool {
        let released = self.released.get(&rival.member);
        released.is_some_and(|it| rival.up_to <= it.over) && !self.rules.release_is_no_end()
    }

    /// A node entered with this number.
    pub(crate) fn used(&mut self, holder: Member, number: u64, cx: &mut Context<'_, Self>) {
        if number > 0 {
            self.fence(Token { number, by: holder }, cx);
        }
    }

    /// Some OKs were never released. Says them again: where the request is over, a RELEASE comes
    /// back.
    pub(crate) fn refresh(&mut self, cx: &mut Context<'_, Self>) {
        for (&member, grant) in self.grants.iter() {
            self.send_ok(member, grant.number, None, None, cx);
            self.tell_if_passed(member, cx);
        }
        if !self.grants.is_empty() {
            cx.arm(Timer::Refresh, self.config.refresh);
        }
    }
}
