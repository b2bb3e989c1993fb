//! Others' requests: who gets our OK, who waits for it, and when it is over.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Context, Member};

use crate::machine::{Camera, Grant, Stage};
use crate::message::Rivals;
use crate::{Message, Request, Rival, Timer, Token};

impl Camera {
    /// Somebody wants to enter.
    pub(crate) fn asked(
        &mut self,
        from: Member,
        request: Request,
        after: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        self.seen = self.seen.max(request.number);
        self.used(from, request.last, cx);
        if self
            .released
            .get(&from)
            .is_some_and(|&up_to| up_to >= request.number)
        {
            self.counters.0.stale += 1;
            return;
        }
        let before = self.grants.get(&from).copied();
        let granted = before.map(|grant| grant.number);
        if granted.is_some_and(|number| number > request.number) {
            self.counters.0.stale += 1;
            return;
        }
        let up_to = request.up_to;
        self.mind(
            Rival {
                member: from,
                up_to,
            },
            cx,
        );
        self.note(|it| it.peers.list(from));
        if let Some(grant) = before
            && grant.number == request.number
        {
            // Our OK was lost, or was only the beginning.
            self.say_again(from, grant, after, cx);
            return;
        }
        let token = Token {
            number: request.number,
            holder: from,
        };
        let defer = match &self.stage {
            Stage::Idle => false,
            Stage::Waiting(waiting) => token > waiting.token,
            Stage::Inside(_) => true,
        };
        if !defer {
            self.grant(from, request, None, cx);
            return;
        }
        // A node has one request at a time: the former one is over.
        self.grants.remove(&from);
        match self.deferred.get(&from).map(|old| old.number) {
            Some(number) if number == request.number => cx.send(from, Message::Wait { number }),
            Some(number) if number > request.number => self.counters.0.stale += 1,
            Some(_) | None => {
                self.note(|it| it.deferred.insert(from, request).map(drop));
            }
        }
    }

    /// Says OK, and remembers that. `known`: what to say of others, if not what we know.
    fn grant(
        &mut self,
        to: Member,
        request: Request,
        known: Option<&BoundedMap<Member, Grant>>,
        cx: &mut Context<'_, Self>,
    ) {
        let grant = Grant {
            number: request.number,
            up_to: request.up_to,
            copies: self.config.more_copies(0),
        };
        if !self.note(|it| it.grants.insert(to, grant).map(drop)) {
            // Without remembering it we must not say it. It will ask again.
            return;
        }
        self.deferred.remove(&to);
        if self.kept.remove(&to).is_some() {
            self.ask_anew(to, cx);
        }
        if self.grants.len() == 1 && self.config.refresh.0 > 0 {
            cx.arm(Timer::Refresh, self.config.refresh);
        }
        self.send_ok(to, request.number, None, known, cx);
    }

    /// Lets those go first who waited for us and whose token is in `which`, lowest first. Each is
    /// told of those before it.
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
                (Token { number, holder }, request)
            })
            .filter(|(token, _)| which(*token))
            .collect();
        waiting.sort_unstable_by_key(|(token, _)| *token);
        let snapshot = self.rules.snapshot_in_exit().then(|| self.grants.clone());
        for (token, request) in waiting {
            self.grant(token.holder, request, snapshot.as_ref(), cx);
        }
    }

    /// An OK that was lost, in twice as many copies as before.
    fn say_again(
        &mut self,
        to: Member,
        grant: Grant,
        after: Option<Member>,
        cx: &mut Context<'_, Self>,
    ) {
        let copies = match after {
            None => self.config.more_copies(grant.copies),
            Some(_) => grant.copies,
        };
        if copies != grant.copies {
            // It is there, so there is room.
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
        let mut room = self.config.list_budget();
        let (mut rivals, mut more) = (Rivals::new(), false);
        for (&member, grant) in known.unwrap_or(&self.grants).iter() {
            if member == to || Some(member) <= after {
                continue;
            }
            let up_to = grant.up_to;
            let rival = Rival { member, up_to };
            let Some(left) = room.checked_sub(rival.encoded_len()) else {
                more = true;
                break;
            };
            room = left;
            rivals.push(rival);
        }
        let floor = self.floor;
        cx.send(
            to,
            Message::Ok {
                number,
                after,
                rivals,
                more,
                floor,
            },
        );
    }

    /// A node says that its requests up to this number are over.
    pub(crate) fn released(
        &mut self,
        from: Member,
        up_to: u64,
        last: u64,
        cx: &mut Context<'_, Self>,
    ) {
        self.used(from, last, cx);
        let is_over = |number: u64| number <= up_to;
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
        if up_to > before {
            self.note(|it| it.released.insert(from, up_to).map(drop));
        }
        if self.grants.is_empty() {
            cx.disarm(Timer::Refresh);
        }
    }

    /// A node entered with this number.
    fn used(&mut self, holder: Member, number: u64, cx: &mut Context<'_, Self>) {
        if number > 0 {
            self.fence(Token { number, holder }, cx);
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
