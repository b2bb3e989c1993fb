//! Suspicion and failure of others: how records become the list.

use selvedge_core::{Context, Delta, Member, NodeId, Span, serial_newer};

use crate::list::Standing;
use crate::message::{Age, Claim, Metadata, Record, Records};
use crate::{Event, Membership, Phase, Reject, Selection, Timer};

/// How a record reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Piggybacked on a message.
    News,
    /// In a comparison of lists, so it may be old.
    Page,
    /// In the list that a joiner fetches: old, and no news to anyone but us.
    Fetched,
}

impl Membership {
    /// Our probe of `target` found no answer.
    pub(crate) fn doubt(&mut self, target: Member, cx: &mut Context<'_, Self>) {
        let Some(slot) = self.list.find(target.id) else {
            return;
        };
        let Some(entry) = self.list.entry(slot) else {
            return;
        };
        if entry.member() != target || entry.standing != Standing::Alive {
            return;
        }
        let revision = entry.revision;
        let limit = self.config.health_limit;
        self.list.note(slot, |entry| {
            entry.missed = entry.missed.saturating_add(1).min(limit);
        });
        if self.config.publish_after <= 1 {
            self.suspect(slot, target, revision, self.suspicion_periods(), cx);
        } else {
            self.list
                .set_standing(slot, Standing::Doubted, revision, self.period);
            self.verify(target, cx);
        }
    }

    /// Asks a member itself, directly and through relays, and waits a period for the answer.
    pub(crate) fn verify(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        cx.arm(Timer::Suspicion(member.id), self.config.period);
        self.ping(member, cx);
        self.request_pings(member, cx);
    }

    /// From here on others know of the suspicion; the suspect is told first.
    fn suspect(
        &mut self,
        slot: usize,
        member: Member,
        revision: u32,
        periods: u16,
        cx: &mut Context<'_, Self>,
    ) {
        self.counters.suspicions += 1;
        self.enter_suspicion(slot, member, revision, periods, cx);
        self.ping(member, cx);
    }

    fn enter_suspicion(
        &mut self,
        slot: usize,
        member: Member,
        revision: u32,
        periods: u16,
        cx: &mut Context<'_, Self>,
    ) {
        self.list
            .set_standing(slot, Standing::Suspect, revision, self.period);
        let limit = self.config.health_limit;
        self.list.note(slot, |entry| {
            entry.suspicions = entry.suspicions.saturating_add(1).min(limit);
        });
        self.add_news(member.id);
        let time = Span(self.config.period.0.saturating_mul(periods.into()));
        cx.arm(Timer::Suspicion(member.id), time);
        Self::tell_delta(cx, Delta::Suspected(member));
    }

    /// A suspect's time is over.
    pub(crate) fn end_suspicion(
        &mut self,
        id: NodeId,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        let unexpected = Reject::UnexpectedTick(Timer::Suspicion(id));
        let slot = self.list.find(id).ok_or(unexpected)?;
        let entry = self.list.entry(slot).ok_or(unexpected)?;
        let (member, revision) = (entry.member(), entry.revision);
        match entry.standing {
            Standing::Doubted if self.suspicion_periods() > 1 => {
                let periods = self.suspicion_periods() - 1;
                self.suspect(slot, member, revision, periods, cx);
            }
            Standing::Alive if self.rules.refuted_timer_acts() => {
                self.declare(slot, Standing::Failed, revision, Age::default(), cx);
            }
            Standing::Doubted | Standing::Hearsay | Standing::Suspect => {
                self.counters.failures += 1;
                self.declare(slot, Standing::Failed, revision, Age::default(), cx);
            }
            Standing::Alive | Standing::Failed | Standing::Left => return Err(unexpected),
        }
        Ok(())
    }

    pub(crate) fn suspicion_periods(&self) -> u16 {
        self.config.suspicion.periods(self.list.live())
    }

    /// Ends a member's presence, so long ago. However long that is, a member that was live here until
    /// now is remembered for half the time at least: news of its life may still be on their way.
    fn declare(
        &mut self,
        slot: usize,
        standing: Standing,
        revision: u32,
        Age(age): Age,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(entry) = self.list.entry(slot) else {
            return;
        };
        let member = entry.member();
        if entry.standing.is_timed() {
            cx.disarm(Timer::Suspicion(member.id));
        }
        let ended = self.ended(Age(age.min(self.config.tombstone_periods / 2)));
        self.list.set_standing(slot, standing, revision, ended);
        self.add_news(member.id);
        self.drop_probe_of(member.id, cx);
        Self::tell_delta(cx, end_of(member, standing));
    }

    /// Takes in what someone says about members: about us first, for it may give us another name,
    /// which makes every frame longer that is sent afterwards.
    pub(crate) fn merge_all(
        &mut self,
        from: Member,
        records: Records,
        source: Source,
        cx: &mut Context<'_, Self>,
    ) {
        let our_id = self.me.id;
        let is_ours = |record: &&Record| record.member.id == our_id;
        for record in records.0.iter().filter(is_ours) {
            self.hear_about_self(record, cx);
        }
        for record in records.0 {
            if record.member.id != our_id {
                self.merge(from, record, source, cx);
            }
        }
    }

    /// Takes in what someone says about another member than us.
    pub(crate) fn merge(
        &mut self,
        from: Member,
        record: Record,
        source: Source,
        cx: &mut Context<'_, Self>,
    ) {
        let member = record.member;
        let Some(slot) = self.list.find(member.id) else {
            self.enlist(from, record, source, cx);
            return;
        };
        let Some(entry) = self.list.entry(slot) else {
            return;
        };
        let (known, standing, revision) = (entry.member(), entry.standing, entry.revision);
        if member.supersedes(known) {
            if self.may_supersede(from, member, standing, source, cx) {
                self.supersede(slot, known, standing, record, cx);
            }
            return;
        }
        if member != known || standing == Standing::Left {
            return;
        }
        if !self.may_tell(from, &record, slot, source) {
            return;
        }
        let is_newer = serial_newer(record.revision, revision);
        let is_equal = record.revision == revision;
        if is_equal {
            self.compare_metadata(slot, member, &record.claim, cx);
        }
        match record.claim {
            Claim::Left(age) => {
                // Final whatever its revision is, and no reason to forget a later one.
                let latest = if is_newer { record.revision } else { revision };
                self.declare(slot, Standing::Left, latest, age, cx);
            }
            Claim::Alive(_) | Claim::Suspect(_)
                if standing == Standing::Failed && self.rules.failure_is_final() => {}
            Claim::Alive(metadata) if is_newer => {
                self.revive(slot, standing, record.revision, metadata, cx);
            }
            Claim::Suspect(_)
                if is_newer
                    || (is_equal
                        && matches!(
                            standing,
                            Standing::Alive | Standing::Doubted | Standing::Hearsay
                        )) =>
            {
                if standing == Standing::Failed {
                    self.report_return(slot, member, cx);
                }
                if is_newer {
                    self.renew_metadata(slot, member, &record.claim, cx);
                }
                let periods = self.suspicion_periods();
                self.enter_suspicion(slot, member, record.revision, periods, cx);
                if self.rules.no_timer_for_news() {
                    cx.disarm(Timer::Suspicion(member.id));
                }
            }
            Claim::Failed(_, age) if is_newer || (is_equal && standing.is_live()) => {
                if source != Source::News && matches!(standing, Standing::Alive | Standing::Doubted)
                {
                    self.hear_of_failure(slot, member, &record, cx);
                    return;
                }
                if is_newer {
                    self.renew_metadata(slot, member, &record.claim, cx);
                }
                if standing == Standing::Failed {
                    self.list
                        .set_standing(slot, standing, record.revision, self.period);
                    self.add_news(member.id);
                } else {
                    self.declare(slot, Standing::Failed, record.revision, age, cx);
                }
            }
            Claim::Alive(_) | Claim::Suspect(_) | Claim::Failed(..) => {}
        }
    }

    /// Another list has a member as failed that lives on ours. That list may be the one that is
    /// behind: we ask the member itself.
    fn hear_of_failure(
        &mut self,
        slot: usize,
        member: Member,
        record: &Record,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(revision) = self.list.entry(slot).map(|entry| entry.revision) else {
            return;
        };
        let is_newer = serial_newer(record.revision, revision);
        // Should it answer a relay alone, we tell it as alive: only in a revision whose metadata we
        // have.
        let latest = if is_newer && record.claim.told().is_some() {
            self.renew_metadata(slot, member, &record.claim, cx);
            record.revision
        } else {
            revision
        };
        self.list
            .set_standing(slot, Standing::Hearsay, latest, self.period);
        self.verify(member, cx);
    }

    /// A member says that it lives, or has changed its metadata.
    fn revive(
        &mut self,
        slot: usize,
        standing: Standing,
        revision: u32,
        metadata: Metadata,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(member) = self.list.entry(slot).map(crate::list::Entry::member) else {
            return;
        };
        if standing.is_timed() && !self.rules.refuted_timer_acts() {
            cx.disarm(Timer::Suspicion(member.id));
        }
        self.list
            .set_standing(slot, Standing::Alive, revision, self.period);
        self.add_news(member.id);
        if matches!(standing, Standing::Suspect | Standing::Failed) {
            self.report_return(slot, member, cx);
        }
        self.replace_metadata(slot, member, metadata, cx);
    }

    /// A member is alive after all; news to an application that was never told of it.
    fn report_return(&mut self, slot: usize, member: Member, cx: &mut Context<'_, Self>) {
        let was_reported = self.list.entry(slot).is_some_and(|entry| entry.reported);
        self.list.note(slot, |entry| entry.reported = true);
        Self::tell_delta(
            cx,
            if was_reported {
                Delta::Refuted(member)
            } else {
                Delta::Joined(member)
            },
        );
    }

    /// A later life of a node that we know.
    pub(crate) fn supersede(
        &mut self,
        slot: usize,
        known: Member,
        standing: Standing,
        record: Record,
        cx: &mut Context<'_, Self>,
    ) {
        if standing.is_timed() {
            cx.disarm(Timer::Suspicion(known.id));
        }
        self.drop_probe_of(known.id, cx);
        let Record {
            member,
            revision,
            claim,
        } = record;
        let (claimed, metadata, age) = split(claim);
        self.list
            .supersede(slot, member.incarnation, revision, metadata, self.period);
        if standing != Standing::Left {
            Self::tell_delta(cx, Delta::Confirmed(known));
        }
        self.add_news(member.id);
        self.settle_newcomer(slot, (member, revision), (claimed, age), cx);
    }

    /// A node that is not on the list.
    pub(crate) fn enlist(
        &mut self,
        from: Member,
        record: Record,
        source: Source,
        cx: &mut Context<'_, Self>,
    ) {
        let Record {
            member,
            revision,
            claim,
        } = record;
        let (claimed, metadata, age) = split(claim);
        let forgotten_after = self.config.tombstone_periods;
        if !claimed.is_live() && forgotten_after > 0 && age.0 >= forgotten_after {
            return;
        }
        if !self.may_introduce(from, member, source) {
            return;
        }
        if !self.make_room(claimed) {
            self.counters.list_full += 1;
            return;
        }
        let weight = self.default_weight();
        let Ok(slot) = self
            .list
            .insert(member, revision, metadata, weight, self.period)
        else {
            debug_assert!(false, "room was made");
            return;
        };
        let is_neighbour = self.config.default_distance <= self.config.neighbour_distance;
        self.list.note(slot, |entry| entry.neighbour = is_neighbour);
        if matches!(self.config.selection, Selection::BoundedMix { .. }) {
            self.turn.enter(member.id, cx);
        }
        if source != Source::Fetched {
            self.add_news(member.id);
        }
        self.settle_newcomer(slot, (member, revision), (claimed, age), cx);
    }

    /// Whether there is room for one more. The failed give way to those that left, and all the dead
    /// to the living.
    fn make_room(&mut self, newcomer: Standing) -> bool {
        let dead = self.list.tombstones();
        let limit = usize::from(self.config.tombstone_limit);
        if !self.list.is_full() && (newcomer.is_live() || dead.len() < limit) {
            return true;
        }
        let gives_way = match newcomer {
            Standing::Failed => false,
            Standing::Left => dead.failed_len() > 0,
            Standing::Alive | Standing::Doubted | Standing::Hearsay | Standing::Suspect => true,
        };
        // A node that leaves is among the dead of its own list, and needs nobody new.
        gives_way && self.phase == Phase::Joined && self.displace_tombstone()
    }

    /// The period in which a member ended, if that is so long ago.
    fn ended(&self, Age(age): Age) -> u16 {
        self.period
            .wrapping_sub(age.min(self.config.tombstone_periods))
    }

    /// Gives a life that was just entered as alive the standing that is claimed for it. The end of
    /// one that was never here is told as well: other protocols may have met it.
    fn settle_newcomer(
        &mut self,
        slot: usize,
        (member, revision): (Member, u32),
        (claimed, age): (Standing, Age),
        cx: &mut Context<'_, Self>,
    ) {
        if claimed.is_live() {
            self.list.note(slot, |entry| entry.reported = true);
            Self::tell_delta(cx, Delta::Joined(member));
        } else {
            let ended = self.ended(age);
            self.list.set_standing(slot, claimed, revision, ended);
            Self::tell_delta(cx, end_of(member, claimed));
        }
        // Of the dead too: the host may need it to reach them, should they not be dead.
        if self
            .list
            .metadata(slot)
            .is_some_and(|metadata| !metadata.0.is_empty())
        {
            cx.event(Event::Metadata(member));
        }
        if claimed == Standing::Suspect {
            let periods = self.suspicion_periods();
            self.enter_suspicion(slot, member, revision, periods, cx);
        }
    }

    pub(crate) fn drop_probe_of(&mut self, id: NodeId, cx: &mut Context<'_, Self>) {
        if self
            .probe
            .as_ref()
            .is_some_and(|probe| probe.target.id == id)
        {
            self.probe = None;
            cx.disarm(Timer::Probe);
        }
    }

    pub(crate) fn add_news(&mut self, id: NodeId) {
        self.counters.news_dropped += u64::from(self.news.add(id));
    }
}

/// What is told of a member that is no longer here.
const fn end_of(member: Member, standing: Standing) -> Delta {
    match standing {
        Standing::Left => Delta::Left(member),
        Standing::Alive
        | Standing::Doubted
        | Standing::Hearsay
        | Standing::Suspect
        | Standing::Failed => Delta::Failed(member),
    }
}

fn split(claim: Claim) -> (Standing, Metadata, Age) {
    match claim {
        Claim::Alive(metadata) => (Standing::Alive, metadata, Age::default()),
        Claim::Suspect(metadata) => (Standing::Suspect, metadata, Age::default()),
        Claim::Failed(metadata, age) => (Standing::Failed, metadata, age),
        Claim::Left(age) => (Standing::Left, Metadata::default(), age),
    }
}
