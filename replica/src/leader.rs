//! Phase 2 of Paxos: the leader sends the entries that it appends, and commits them when a quorum
//! holds them.

use alloc::vec::Vec;

use selvedge_core::wire::List;
use selvedge_core::{Context, Member, NodeId};

use crate::acceptor::Committed;
use crate::configuration::VERSION_MAX;
use crate::encoding::encoded_len;
use crate::lead::Leadership;
use crate::message::Body;
use crate::replica::{Replica, Role};
use crate::{Ballot, Entries, Entry, Event, Fact, Proposal, State, Timer, Version};

impl<S: State> Replica<S> {
    /// The bytes that the entries of a frame may take.
    pub(crate) fn entry_room(&self) -> usize {
        self.acceptor.group().entry_room()
    }

    /// Handles other nodes' proposals.
    pub(crate) fn on_propose(
        &mut self,
        from: Member,
        proposals: List<Proposal<S::Update>, 1>,
        cx: &mut Context<'_, Self>,
    ) {
        if !self.leads() {
            if self.has_leader() {
                return self.refuse(from, Ballot::default(), cx);
            }
            return self.find_leader(cx);
        }
        self.append_all(proposals, cx);
    }

    /// Enters all waiting proposals of this leader itself.
    pub(crate) fn enter_own(&mut self, cx: &mut Context<'_, Self>) {
        if self.leads() && !self.work.proposals.is_empty() {
            let own: Vec<Proposal<S::Update>> = self.work.proposals.iter().cloned().collect();
            self.append_all(own, cx);
        }
        let reads: Vec<u64> = self.work.reads.iter().map(|it| it.number).collect();
        for number in reads {
            self.on_read(self.me, number, cx);
        }
    }

    /// Appends the new proposals, and sends them in one message to each member.
    pub(crate) fn append_all(
        &mut self,
        proposals: impl IntoIterator<Item = Proposal<S::Update>>,
        cx: &mut Context<'_, Self>,
    ) {
        let limit = usize::try_from(self.config.pending).unwrap_or(usize::MAX);
        for proposal in proposals {
            if !self.is_next(&proposal) || self.check_len(&proposal).is_err() {
                continue; // It is in flight, was applied, came before its predecessor, or never fits.
            }
            let Role::Leader(leadership) = &mut self.role else {
                return;
            };
            if leadership.backlog.len() >= limit {
                self.counters.no_room += 1;
                break;
            }
            leadership.backlog.push_back(proposal);
        }
        self.append_backlog(cx);
    }

    /// Returns true if the leader has not seen this proposal, and has seen the one before it.
    fn is_next(&self, proposal: &Proposal<S::Update>) -> bool {
        let Role::Leader(leadership) = &self.role else {
            return false;
        };
        let Proposal {
            by,
            number,
            first,
            since,
            ..
        } = *proposal;
        let follows =
            |last: u64| last.checked_add(1) == Some(number) || number == first && number > last;
        let sessions = self.acceptor.sessions();
        let queued = leadership.backlog.iter().rev().find(|it| it.by == by);
        let on_its_way = || {
            self.acceptor.tail().rev().find_map(|entry| match entry {
                Entry::Update(other) if other.by == by => Some(other.number),
                Entry::Update(_) | Entry::Configure(_) | Entry::Elided => None,
            })
        };
        let last = queued.map(|it| it.number).or_else(on_its_way);
        match last.or_else(|| sessions.last(by)) {
            Some(last) => follows(last),
            // A proposer that was forgotten learns that from the commits: an entry for each of its
            // attempts would outrun the members that fetch the state.
            None => number == first && !sessions.rules_out(by, since),
        }
    }

    /// Appends waiting proposals, as far as there is room, and sends them.
    pub(crate) fn append_backlog(&mut self, cx: &mut Context<'_, Self>) {
        let mut appended = Entries::new();
        let after = self.acceptor.end();
        let number = self.configuration().number;
        while let Role::Leader(leadership) = &mut self.role
            && !self.acceptor.is_sealed()
            && self.acceptor.end() < VERSION_MAX
        {
            let entry = if let Some(next) = &leadership.change {
                let mut next = next.clone();
                next.number = number + 1;
                Entry::Configure(next.into())
            } else if let Some(proposal) = leadership.backlog.front() {
                Entry::Update(proposal.clone())
            } else {
                break;
            };
            let ballot = leadership.ballot;
            let (end, committed) = (self.acceptor.end(), self.acceptor.committed());
            self.acceptor
                .accept(ballot, (end, committed), [entry.clone()]);
            if self.acceptor.end() == end {
                break; // It has no place yet among the entries in flight.
            }
            if entry.seals() {
                leadership.change = None;
            } else {
                leadership.backlog.pop_front();
            }
            appended.push(entry);
        }
        if appended.is_empty() {
            return;
        }
        // This member's own acceptance need not be stored before others receive the entry. But a
        // witness does not know what it accepted, so a member with the state has to store it first.
        self.send_accepts_to(false, cx);
        let Role::Leader(leadership) = &self.role else {
            return;
        };
        let fact = Fact::Accepted {
            ballot: leadership.ballot,
            after,
            committed: self.acceptor.committed(),
            commit: self.acceptor.committed(),
            entries: appended,
        };
        Self::emit_fact(fact, cx);
        self.send_accepts_to(true, cx);
        self.arm_resend(cx);
        self.advance(self.acceptor.end(), cx);
    }

    /// Sends to each member the entries that it was not sent.
    pub(crate) fn send_accepts(&mut self, cx: &mut Context<'_, Self>) {
        self.send_accepts_to(false, cx);
        self.send_accepts_to(true, cx);
        self.arm_resend(cx);
    }

    /// Sends to each witness, or to each other member, the entries that it was not sent.
    fn send_accepts_to(&mut self, witnesses: bool, cx: &mut Context<'_, Self>) {
        let Role::Leader(leadership) = &self.role else {
            return;
        };
        for at in 0..leadership.followers.len() {
            let Role::Leader(leadership) = &self.role else {
                return;
            };
            let follower = leadership.followers.get(at);
            if follower.is_some_and(|it| it.is_witness == witnesses) {
                self.send_accept(at, cx);
            }
        }
    }

    /// Sends to one member the entries that it was not sent: as many as fit where it has accepted
    /// under this ballot, and else all that are not committed, which always fit.
    fn send_accept(&mut self, at: usize, cx: &mut Context<'_, Self>) {
        let room = self.entry_room();
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        let Leadership { ballot, round, .. } = *leadership;
        let on_their_way = self.acceptor.len_on_its_way();
        let committed = self.acceptor.committed();
        let Some(follower) = leadership.followers.get_mut(at) else {
            return;
        };
        if self.peers.has_ended(follower.member.id) {
            return;
        }
        let from = match follower.matched {
            Some(_) => follower.sent,
            None => committed,
        };
        let (after, behind) = match self.acceptor.entries(from) {
            Some(entries) => (from, Some(entries)),
            None => (committed, self.acceptor.entries(committed)),
        };
        let behind = behind.into_iter().flatten();
        let entry = |it: &Entry<S::Update>| match follower.is_witness {
            true => it.elided(),
            false => it.clone(),
        };
        // The entries in flight fit, and so does each entry: that was checked when it was appended.
        let fits = after >= committed && on_their_way <= room;
        let is_measured = !fits && self.acceptor.end() > after + 1;
        let mut left = room;
        let mut entries = Entries::new();
        for it in behind {
            let len = if is_measured { encoded_len(it) } else { 0 };
            if len > left && !entries.is_empty() {
                // The adopted entries are accepted as a whole; they fit by the comment above.
                debug_assert!(follower.matched.is_some(), "entries in flight fit");
                break;
            }
            left = left.saturating_sub(len);
            entries.push(entry(it));
        }
        follower.sent = after + entries.len() as Version;
        follower.notified = committed;
        let to = follower.member;
        let body = Body::Accept {
            ballot,
            after,
            commit: committed,
            round,
            entries,
        };
        self.send(to, body, cx);
    }

    /// Handles an acknowledgement.
    pub(crate) fn on_accepted(
        &mut self,
        from: Member,
        ballot: Ballot,
        (end, committed, round): (Version, Version, u64),
        cx: &mut Context<'_, Self>,
    ) {
        let last = self.acceptor.end();
        let Role::Leader(leadership) = &mut self.role else {
            self.counters.stale += 1;
            return;
        };
        // It accepted all adopted entries, in one message.
        let is_within = (leadership.start..=last).contains(&end);
        if leadership.ballot != ballot || !is_within || round > leadership.round {
            self.counters.stale += 1;
            return;
        }
        let Some(at) = leadership
            .followers
            .iter()
            .position(|it| it.member.id == from.id)
        else {
            self.counters.stale += 1;
            return;
        };
        let Some(follower) = leadership.followers.get_mut(at) else {
            return;
        };
        follower.matched = follower.matched.max(Some(end));
        follower.committed = follower.committed.max(committed);
        follower.sent = follower.sent.max(end);
        follower.round = follower.round.max(round);
        let lacks = follower.sent < last;
        let follows = |id| id == self.me.id || leadership.matches(id, leadership.start);
        // Not before: a leader that others outbid meanwhile would stand again too soon.
        if *self.ballots > 0 && self.acceptor.group().is_quorum(follows) {
            self.ballots.0 = 0;
        }
        // Before reads are answered: if this ends the configuration, this node may drop the state, and
        // its reads are answered in the next configuration.
        self.advance(end, cx);
        self.on_round(cx);
        if lacks && self.leads() {
            self.send_accept(at, cx);
        }
        self.settle_resend(cx);
    }

    /// Commits the entries that a quorum holds, now that a member holds the leader's entries up to
    /// `end`. Later entries are held by the same members as before, which were no quorum.
    pub(crate) fn advance(&mut self, end: Version, cx: &mut Context<'_, Self>) {
        let Role::Leader(leadership) = &self.role else {
            return;
        };
        let committed = self.acceptor.committed();
        let group = self.acceptor.group();
        let holds = |version: Version| {
            let is_for = |id: NodeId| id == self.me.id || leadership.matches(id, version);
            group.is_quorum(is_for)
        };
        // The highest first: mostly a quorum holds all entries that the member has, or none.
        let mut version = end;
        while version > committed && !holds(version) {
            let matched = leadership.followers.iter().filter_map(|it| it.matched);
            let lower = matched.filter(|&it| it < version).max();
            version = lower.unwrap_or_default();
        }
        if version <= committed {
            return;
        }
        self.commit(version, cx);
        if !self.leads() {
            return; // The configuration ended.
        }
        self.settle_commit(cx);
        self.append_backlog(cx);
    }

    /// Commits the entries that a quorum holds: applies them, and notifies the application.
    pub(crate) fn commit(&mut self, version: Version, cx: &mut Context<'_, Self>) {
        let version = version.min(self.acceptor.end());
        if version <= self.acceptor.committed() {
            return;
        }
        self.ballots.0 = 0;
        if self.acceptor.is_sealed() && version == self.acceptor.end() {
            // Ballots begin at 0 again behind it, so its commit must not be forgotten.
            Self::emit_fact(Fact::Committed(version), cx);
        }
        let number = self.configuration().number;
        for next in self.acceptor.committed() + 1..=version {
            let mut committed = None;
            self.acceptor.commit(next, |it| committed = Some(it));
            if let Some(committed) = committed {
                self.on_committed(committed, cx);
            }
        }
        if self.configuration().number != number {
            self.on_configured(cx);
        }
        self.answer_reads(cx);
    }

    /// Reports the outcome of an entry to the application.
    pub(crate) fn on_committed(&mut self, it: Committed<S>, cx: &mut Context<'_, Self>) {
        match it {
            Committed::Applied {
                by,
                number,
                version,
                outcome,
            } => {
                if self.work.finish(by, number) {
                    self.note_progress(cx);
                }
                cx.event(Event::Applied {
                    version,
                    by,
                    number,
                    outcome,
                });
            }
            Committed::Forgotten { by, number } => self.on_forgotten(by, number, cx),
            Committed::Configured => {
                let number = self.configuration().number;
                let version = self.acceptor.committed();
                cx.event(Event::Configured { number, version });
            }
        }
    }

    /// Handles a proposer that the group has forgotten. Proposals from before it begins again are
    /// lost, in any order of arrival.
    fn on_forgotten(&mut self, by: Member, number: u64, cx: &mut Context<'_, Self>) {
        let is_it = |it: &&Proposal<S::Update>| it.by == by && it.number == number;
        let Some(first) = self.work.proposals.iter().find(is_it).map(|it| it.first) else {
            return; // Another member proposed it.
        };
        self.work.proposals.retain(|it| {
            let is_lost = it.by == by && it.first == first;
            if is_lost {
                let number = it.number;
                cx.event(Event::Forgotten { by, number });
            }
            !is_lost
        });
        if by == self.me {
            self.work.forget_row(first);
        }
        self.note_progress(cx);
    }

    /// Arranges for the report of a commit, with the next message to each member, or after a while.
    fn settle_commit(&mut self, cx: &mut Context<'_, Self>) {
        let committed = self.acceptor.committed();
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        let lacks = leadership
            .followers
            .iter()
            .any(|it| it.notified < committed);
        if lacks && !leadership.reports_commit {
            leadership.reports_commit = true;
            cx.arm(Timer::Commit, self.config.commit_delay);
        }
    }

    pub(crate) fn on_commit_tick(&mut self, cx: &mut Context<'_, Self>) {
        let committed = self.acceptor.committed();
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        leadership.reports_commit = false;
        for at in 0..leadership.followers.len() {
            let Role::Leader(leadership) = &self.role else {
                return;
            };
            let follower = leadership.followers.get(at);
            if follower.is_some_and(|it| it.notified < committed) {
                self.send_accept(at, cx);
            }
        }
        self.arm_resend(cx);
    }

    /// Returns true if this member has not acknowledged every entry that it was sent.
    fn lacks(&self, at: usize) -> bool {
        let Role::Leader(leadership) = &self.role else {
            return false;
        };
        let Some(follower) = leadership.followers.get(at) else {
            return false;
        };
        let waits_for_round = leadership.waits_for_round() && follower.round < leadership.round;
        let lacks = follower.matched != Some(self.acceptor.end())
            || follower.committed < follower.notified
            || waits_for_round;
        lacks && !self.peers.has_ended(follower.member.id)
    }

    /// Returns true if any member has not acknowledged every entry that it was sent.
    fn any_lacks(&self) -> bool {
        match &self.role {
            Role::Leader(leadership) => (0..leadership.followers.len()).any(|at| self.lacks(at)),
            Role::Follower | Role::Candidate(_) => false,
        }
    }

    pub(crate) fn arm_resend(&mut self, cx: &mut Context<'_, Self>) {
        if matches!(&self.role, Role::Leader(it) if !it.resends)
            && self.any_lacks()
            && let Role::Leader(leadership) = &mut self.role
        {
            leadership.resends = true;
            cx.arm(Timer::Resend, self.config.resend);
        }
    }

    fn settle_resend(&mut self, cx: &mut Context<'_, Self>) {
        if matches!(&self.role, Role::Leader(it) if it.resends)
            && !self.any_lacks()
            && let Role::Leader(leadership) = &mut self.role
        {
            leadership.resends = false;
            cx.disarm(Timer::Resend);
        }
    }

    pub(crate) fn on_resend_tick(&mut self, cx: &mut Context<'_, Self>) {
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        leadership.resends = false;
        for at in 0..leadership.followers.len() {
            if !self.lacks(at) {
                continue;
            }
            if let Role::Leader(leadership) = &mut self.role
                && let Some(follower) = leadership.followers.get_mut(at)
            {
                follower.sent = follower.matched.unwrap_or_default();
            }
            self.send_accept(at, cx);
        }
        self.arm_resend(cx);
    }

    /// Sends again the entries that a member lacks, which is back or began a new life.
    pub(crate) fn on_follower_here(
        &mut self,
        id: NodeId,
        is_new: bool,
        cx: &mut Context<'_, Self>,
    ) {
        let Role::Leader(leadership) = &mut self.role else {
            return;
        };
        let Some(at) = leadership
            .followers
            .iter()
            .position(|it| it.member.id == id)
        else {
            return;
        };
        if let Some(follower) = leadership.followers.get_mut(at) {
            if is_new {
                follower.matched = None;
                follower.committed = 0;
                follower.round = 0;
            }
            follower.sent = follower.matched.unwrap_or_default();
        }
        self.send_accept(at, cx);
        self.arm_resend(cx);
    }
}
