//! The dispatch of inputs.

use core::cmp::Ordering;

use selvedge_core::roster::OwnEnd;
use selvedge_core::wire::List;
use selvedge_core::{Context, Delta, Input, Machine, Member};

use crate::candidacy::Claim;
use crate::change::check_current;
use crate::configuration::VERSION_MAX;
use crate::encoding::encoded_len;
use crate::message::{Body, Message};
use crate::peers::{Learned, Received};
use crate::replica::Replica;
use crate::{Ballot, Command, Entry, Event, Misbehaviour, Reject, State, Timer, Version};

impl<S: State> Replica<S> {
    fn command(
        &mut self,
        command: Command<S::Update>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        match command {
            Command::Propose(update) => self.propose(List::from_iter([update]), cx),
            Command::ProposeAll(updates) => self.propose(updates.into_iter().collect(), cx),
            Command::Relay(proposal) => self.relay(proposal, cx),
            Command::Read(read) => self.read(read, cx),
            Command::Campaign if !self.can_lead() => Err(Reject::NoMember),
            Command::Campaign => {
                if !self.leads() {
                    self.stand(Ballot::default(), cx);
                }
                Ok(())
            }
            Command::TransferLeadership(to) => self.hand_over(to, cx),
            Command::Configure(next) => self.configure(next, cx),
        }
    }

    fn receive(
        &mut self,
        from: Member,
        message: Message<S::Update>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        self.judge(from, &message)?;
        if self.is_behind_mark(message.configuration) {
            self.counters.stale += 1;
            return Ok(());
        }
        if let Body::Page {
            snapshot,
            offset,
            bytes,
        } = &message.body
        {
            // Only the content of this message can turn out malformed as late as here.
            self.on_page(from, *snapshot, *offset, bytes, cx)?;
            return Ok(());
        }
        let present = self.acceptor.configuration();
        let is_member = |id| present.voter(id).is_some();
        match self.peers.receive(from, is_member) {
            Received::Former => {
                self.counters.stale += 1;
                return Ok(());
            }
            Received::Known => {}
            Received::New => self.on_here(from, true, cx),
        }
        let own = self.configuration().number;
        let Message {
            configuration,
            body,
        } = message;
        if body.is_final() {
            self.on_final(from, configuration, body, cx);
            return Ok(());
        }
        match configuration.cmp(&own) {
            Ordering::Less => self.on_former(from, &body, cx),
            Ordering::Equal => self.on_ballot(from, body, cx),
            Ordering::Greater => self.ask_for_missing(from, cx),
        }
        Ok(())
    }

    /// Handles a message about committed entries, of any configuration.
    fn on_final(
        &mut self,
        from: Member,
        configuration: u64,
        body: Body<S::Update>,
        cx: &mut Context<'_, Self>,
    ) {
        match body {
            Body::Missing { committed, wants } => {
                self.on_lacking(from, configuration, (committed, wants), cx);
            }
            Body::Learn { after, entries } => self.on_learn(from, after, entries, cx),
            Body::Fetch { snapshot, offset } => self.on_fetch(from, snapshot, offset, cx),
            Body::Current {
                configuration,
                is_active,
            } => self.on_current(from, &configuration, is_active, cx),
            Body::Page { .. }
            | Body::Prepare { .. }
            | Body::Promise { .. }
            | Body::Refuse { .. }
            | Body::Accept { .. }
            | Body::Accepted { .. }
            | Body::Propose { .. }
            | Body::Read { .. }
            | Body::ReadAt { .. }
            | Body::Stand { .. }
            | Body::Rejoin { .. } => {
                debug_assert!(false, "pages were handled, others have ballots")
            }
        }
    }

    /// Handles a message of a configuration that has ended. An answer needs no answer.
    fn on_former(&mut self, from: Member, body: &Body<S::Update>, cx: &mut Context<'_, Self>) {
        let is_answer = matches!(
            body,
            Body::Promise { .. }
                | Body::Accepted { .. }
                | Body::Refuse { .. }
                | Body::ReadAt { .. }
        );
        if is_answer {
            self.counters.stale += 1;
        } else {
            self.send_current(from, cx);
        }
    }

    /// Handles a message of this member's configuration.
    fn on_ballot(&mut self, from: Member, body: Body<S::Update>, cx: &mut Context<'_, Self>) {
        match body {
            Body::Prepare {
                ballot,
                committed: _,
                accepted,
                end,
                handed_over,
            } => self.on_prepare(from, ballot, Claim { accepted, end }, handed_over, cx),
            Body::Promise {
                ballot,
                committed,
                accepted,
                end,
                tail,
            } => self.on_promise(from, ballot, Claim { accepted, end }, committed, tail, cx),
            Body::Refuse {
                ballot,
                promised,
                leader,
            } => self.on_refuse(ballot, promised, leader, cx),
            Body::Accept {
                ballot,
                after,
                commit,
                round,
                entries,
            } => self.on_accept(from, ballot, (after, commit, round), entries, cx),
            Body::Accepted {
                ballot,
                end,
                committed,
                round,
            } => self.on_accepted(from, ballot, (end, committed, round), cx),
            Body::Propose { proposals } => self.on_propose(from, proposals, cx),
            Body::Read { number } => self.on_read(from, number, cx),
            Body::ReadAt { life, .. } if life != self.me.incarnation.0 => self.counters.stale += 1,
            Body::ReadAt {
                number, version, ..
            } => self.on_read_at(number, version, cx),
            Body::Stand { ballot } => self.on_stand(ballot, cx),
            Body::Rejoin { life } => self.on_rejoin(Member::new(from.id.0, life), cx),
            Body::Missing { .. }
            | Body::Learn { .. }
            | Body::Fetch { .. }
            | Body::Page { .. }
            | Body::Current { .. } => {
                debug_assert!(false, "these are of any configuration, and were handled");
            }
        }
    }

    /// Returns true if the sender is in a configuration that this node does not take, so has
    /// nothing for it.
    fn is_behind_mark(&self, number: u64) -> bool {
        let knows_none = self.configuration().number == 0;
        knows_none && number > 0 && !self.acceptor.origin().takes(number)
    }

    /// Checks that a correct peer may send this.
    fn judge(&self, from: Member, message: &Message<S::Update>) -> Result<(), Misbehaviour> {
        if from.id == self.me.id {
            return Err(Misbehaviour::OwnId(from));
        }
        if !message.is_within_range() {
            return Err(Misbehaviour::Number);
        }
        match &message.body {
            Body::Prepare { ballot, .. } | Body::Accept { ballot, .. } | Body::Stand { ballot }
                if ballot.by != from.id =>
            {
                Err(Misbehaviour::Ballot(ballot.by))
            }
            // It is not read: this node lacks the configuration that names its part.
            Body::Promise { .. } | Body::Accept { .. }
                if message.configuration != self.configuration().number =>
            {
                Ok(())
            }
            Body::Promise {
                committed,
                end,
                tail,
                ..
            } => {
                let is_whole = committed.checked_add(tail.len() as Version) == Some(*end);
                if !tail.is_empty() && !is_whole {
                    return Err(Misbehaviour::Entries);
                }
                self.judge_entries(*committed, tail)
            }
            Body::Accept { after, entries, .. } => self.judge_entries(*after, entries),
            // Entries that are not applied may be of any configuration.
            Body::Learn { after, entries } if !self.is_news(*after, entries) => Ok(()),
            Body::Learn { after, entries } => {
                // Accepted entries are measured where they are kept.
                let room = self.entry_room();
                if entries.iter().any(|it| encoded_len(it) > room) {
                    return Err(Misbehaviour::Entries);
                }
                self.judge_entries(*after, entries)
            }
            Body::Current { configuration, .. } => {
                check_current(configuration, message.configuration)
            }
            Body::Page {
                snapshot,
                offset,
                bytes,
            } => match u32::try_from(bytes.len())
                .ok()
                .and_then(|it| it.checked_add(*offset))
            {
                Some(end) if end <= snapshot.total => Ok(()),
                _ => Err(Misbehaviour::State),
            },
            Body::Prepare { .. }
            | Body::Refuse { .. }
            | Body::Accepted { .. }
            | Body::Missing { .. }
            | Body::Fetch { .. }
            | Body::Propose { .. }
            | Body::Read { .. }
            | Body::ReadAt { .. }
            | Body::Stand { .. }
            | Body::Rejoin { .. } => Ok(()),
        }
    }

    /// Returns true if entries begin at or before the end of the committed log, and end behind it.
    fn is_news(&self, after: Version, entries: &[Entry<S::Update>]) -> bool {
        let end = after.saturating_add(entries.len() as Version);
        let committed = self.acceptor.committed();
        after <= committed && end > committed && !self.acceptor.lacks_state()
    }

    fn judge_entries(
        &self,
        after: Version,
        entries: &[Entry<S::Update>],
    ) -> Result<(), Misbehaviour> {
        let end = after.checked_add(entries.len() as Version);
        if end.is_none_or(|it| it > VERSION_MAX) {
            return Err(Misbehaviour::Entries);
        }
        // A witness that lost its memory receives a witness's messages, until it is named again.
        let is_witness = || match self.acceptor.votes() {
            true => self.acceptor.is_witness(),
            false => (self.configuration().voter(self.me.id)).is_some_and(|it| it.is_witness),
        };
        let mut rest = entries.iter();
        while let Some(entry) = rest.next() {
            match entry {
                Entry::Update(_) => {}
                Entry::Elided if is_witness() => {}
                Entry::Configure(next) if rest.len() == 0 => {
                    let is_next = next.number == self.configuration().number + 1;
                    if !is_next || next.check().is_err() {
                        return Err(Misbehaviour::Configuration);
                    }
                }
                Entry::Elided | Entry::Configure(_) => return Err(Misbehaviour::Entries),
            }
        }
        Ok(())
    }

    fn learn(&mut self, delta: Delta, cx: &mut Context<'_, Self>) -> Result<(), Reject> {
        let member = delta.member();
        if member.id == self.me.id {
            return match delta {
                Delta::Left(_) | Delta::Confirmed(_) if member == self.me => {
                    Err(Reject::OwnEnd(OwnEnd(delta)))
                }
                Delta::Joined(_)
                | Delta::Suspected(_)
                | Delta::Refuted(_)
                | Delta::Failed(_)
                | Delta::Left(_)
                | Delta::Confirmed(_) => Ok(()),
            };
        }
        let present = self.acceptor.configuration();
        let is_member = |id| present.voter(id).is_some();
        match self.peers.learn(delta, is_member) {
            Learned::Ended => {
                if self.lead.is_some_and(|it| it.ballot.by == member.id) {
                    self.lose_leader(cx);
                }
                if self.deferred.is_some_and(|it| it.from.id == member.id) {
                    self.deferred = None;
                }
                self.hasten(cx);
            }
            Learned::Here { is_new } => self.on_here(member, is_new, cx),
            Learned::Nothing => {}
            Learned::Former => self.counters.old_lives += 1,
        }
        Ok(())
    }

    /// Handles a node that has arrived, or has begun a new life.
    fn on_here(&mut self, member: Member, is_new: bool, cx: &mut Context<'_, Self>) {
        if is_new && self.lead.is_some_and(|it| it.ballot.by == member.id) {
            self.lose_leader(cx);
        }
        self.on_follower_here(member.id, is_new, cx);
        self.on_candidate_here(cx);
    }

    fn on_tick(&mut self, timer: Timer, cx: &mut Context<'_, Self>) {
        self.received = 0;
        match timer {
            Timer::Resend => self.on_resend_tick(cx),
            Timer::Commit => self.on_commit_tick(cx),
            Timer::Campaign => self.on_stand_tick(cx),
            Timer::Pending => self.on_pending_tick(cx),
            Timer::Watch => self.on_watch_tick(cx),
            Timer::Fetch => self.on_fetch_tick(cx),
            Timer::Lease => self.on_lease_tick(),
            Timer::Tied => self.on_tied_tick(cx),
            Timer::Invite => self.on_invite_tick(cx),
        }
    }
}

impl<S: State> Machine for Replica<S> {
    type Message = Message<S::Update>;
    type Timer = Timer;
    type Command = Command<S::Update>;
    type Event = Event<S>;
    type Reject = Reject;

    fn handle(
        &mut self,
        input: Input<Self>,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Self::Reject> {
        match input {
            Input::Message { from, message } => self.receive(from, message, cx)?,
            Input::Membership(delta) => self.learn(delta, cx)?,
            Input::Command(command) => self.command(command, cx)?,
            Input::Tick(timer) => self.on_tick(timer, cx),
        }
        if self.is_restored {
            self.is_restored = false;
            self.begin_again(cx);
        }
        if self.work.is_unavailable && self.work.is_empty() {
            // In any way that it ended.
            self.note_progress(cx);
        }
        Ok(())
    }
}
