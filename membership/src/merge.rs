//! Merging records into the list.

use selvedge_core::{Context, Delta, Member, serial_newer};

use crate::list::Standing;
use crate::message::{Age, Claim, Metadata, Record, Records};
use crate::suspicion::end_of;
use crate::{Event, Membership, Selection, Timer};

/// The way in which a record arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Piggybacked on a message.
    Update,
    /// In a comparison of lists, so it may be old.
    Page,
    /// In the list that a joiner fetches: old, and news to this node alone.
    Fetched,
}

/// A member on the list, as it was before a record about it.
#[derive(Clone, Copy, Debug)]
struct Listed {
    slot: usize,
    member: Member,
    standing: Standing,
    revision: u32,
}

impl Membership {
    /// Takes in the records of a sender: the ones about us first, because they may give us another
    /// name, which makes every frame longer that is sent afterwards.
    pub(crate) fn merge_all(
        &mut self,
        from: Member,
        records: Records,
        source: Source,
        cx: &mut Context<'_, Self>,
    ) {
        let own_id = self.own.id();
        for record in records.iter().filter(|it| it.member.id == own_id) {
            self.on_own_record(record, cx);
        }
        for record in records {
            if record.member.id != own_id {
                self.merge(from, record, source, cx);
            }
        }
    }

    /// Takes in a sender's record about another member than us.
    pub(crate) fn merge(
        &mut self,
        from: Member,
        record: Record,
        source: Source,
        cx: &mut Context<'_, Self>,
    ) {
        let member = record.member;
        let Some((slot, entry)) = self.list.get(member.id) else {
            self.enlist(from, record, source, cx);
            return;
        };
        let known = Listed {
            slot,
            member: entry.member(),
            standing: entry.standing(),
            revision: entry.revision(),
        };
        if member.supersedes(known.member) {
            if self.may_supersede(from, member, known.standing, source, cx) {
                self.supersede(slot, known.member, known.standing, record, cx);
            }
            return;
        }
        // A former life, or a life that is over for certain.
        if member != known.member || known.standing == Standing::Left {
            return;
        }
        // Only its own answer counts: reports of other nodes may be as old as the first one.
        let is_unmet = known.standing == Standing::Unmet && from != member;
        if is_unmet && !is_end(&record.claim) {
            return;
        }
        if self.may_claim(from, &record, slot, source) {
            self.merge_claim(known, record, source, cx);
        }
    }

    /// Takes in a claim about a life that the list has, from a sender that is believed.
    fn merge_claim(
        &mut self,
        known: Listed,
        record: Record,
        source: Source,
        cx: &mut Context<'_, Self>,
    ) {
        let Listed { slot, standing, .. } = known;
        let is_newer = serial_newer(record.revision, known.revision);
        let is_equal = record.revision == known.revision;
        if is_equal {
            self.compare_metadata(slot, known.member, &record.claim, cx);
        }
        let is_trusted = matches!(
            standing,
            Standing::Alive | Standing::Doubted | Standing::Hearsay
        );
        match record.claim {
            Claim::Left(age) => {
                // Final in any revision, and no reason to forget a later revision.
                let latest = if is_newer {
                    record.revision
                } else {
                    known.revision
                };
                self.declare(slot, Standing::Left, latest, age, cx);
            }
            Claim::Alive(_) | Claim::Suspect(_)
                if standing == Standing::Failed && self.rules.failure_is_final() => {}
            Claim::Alive(metadata) if is_newer => {
                self.revive(slot, standing, record.revision, metadata, cx);
            }
            Claim::Suspect(_) if is_newer || (is_equal && is_trusted) => {
                self.merge_suspicion(known, &record, cx);
            }
            Claim::Failed(_, age) if is_newer || (is_equal && standing.is_live()) => {
                let is_hearsay = matches!(standing, Standing::Alive | Standing::Doubted);
                if source != Source::Update && is_hearsay {
                    self.verify_failure(known, &record, cx);
                } else {
                    self.merge_failure(known, &record, age, cx);
                }
            }
            Claim::Alive(_) | Claim::Suspect(_) | Claim::Failed(..) => {}
        }
    }

    /// Takes in that a member is suspected on another list, in our revision or a newer one.
    fn merge_suspicion(&mut self, known: Listed, record: &Record, cx: &mut Context<'_, Self>) {
        let Listed { slot, member, .. } = known;
        if known.standing == Standing::Failed {
            self.report_return(slot, member, cx);
        }
        if serial_newer(record.revision, known.revision) {
            self.renew_metadata(slot, member, &record.claim, cx);
        }
        let periods = self.suspicion_periods();
        self.enter_suspicion(slot, member, record.revision, periods, cx);
        if self.rules.no_timer_for_news() {
            cx.disarm(Timer::Suspicion(member.id));
        }
    }

    /// Takes in that a member is failed on another list, in our revision or a newer one.
    fn merge_failure(
        &mut self,
        known: Listed,
        record: &Record,
        age: Age,
        cx: &mut Context<'_, Self>,
    ) {
        let Listed { slot, member, .. } = known;
        if serial_newer(record.revision, known.revision) {
            self.renew_metadata(slot, member, &record.claim, cx);
        }
        if known.standing == Standing::Failed {
            self.list
                .set_standing(slot, Standing::Failed, record.revision, self.period);
            self.announce(member.id);
        } else {
            self.declare(slot, Standing::Failed, record.revision, age, cx);
        }
    }

    /// Asks a member that lives on our list and is failed on another one. That other list may be
    /// the one that is out of date.
    fn verify_failure(&mut self, known: Listed, record: &Record, cx: &mut Context<'_, Self>) {
        let Listed { slot, member, .. } = known;
        let is_newer = serial_newer(record.revision, known.revision);
        // If its answer reaches only a relay, we announce that it is alive: only in a revision
        // whose metadata we have.
        let latest = if is_newer && record.claim.stated_metadata().is_some() {
            self.renew_metadata(slot, member, &record.claim, cx);
            record.revision
        } else {
            known.revision
        };
        self.list
            .set_standing(slot, Standing::Hearsay, latest, self.period);
        self.verify(member, cx);
    }

    /// Takes in a member's claim that it lives, or has changed its metadata.
    fn revive(
        &mut self,
        slot: usize,
        standing: Standing,
        revision: u32,
        metadata: Metadata,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(member) = self.list.entry(slot).map(crate::list::Entry::member) else {
            debug_assert!(false, "no member has slot {slot}");
            return;
        };
        if standing.is_timed() && !self.rules.refuted_timer_acts() {
            cx.disarm(Timer::Suspicion(member.id));
        }
        self.list
            .set_standing(slot, Standing::Alive, revision, self.period);
        self.announce(member.id);
        if matches!(standing, Standing::Suspect | Standing::Failed) {
            self.report_return(slot, member, cx);
        }
        self.replace_metadata(slot, member, metadata, cx);
    }

    /// Reports that a member is alive after all. An application that never learned of it gets
    /// Joined.
    fn report_return(&mut self, slot: usize, member: Member, cx: &mut Context<'_, Self>) {
        let entry = self.list.entry(slot);
        let was_reported = entry.is_some_and(crate::list::Entry::is_reported);
        self.list.note(slot, |entry| entry.set_reported());
        Self::emit(
            cx,
            if was_reported {
                Delta::Refuted(member)
            } else {
                Delta::Joined(member)
            },
        );
    }

    /// Takes in a later life of a node that the list has.
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
        self.cancel_probe_of(known.id, cx);
        let Record {
            member,
            revision,
            claim,
        } = record;
        let (claimed, metadata, age) = split(claim);
        self.list
            .supersede(slot, member.incarnation, revision, metadata, self.period);
        if standing != Standing::Left {
            Self::emit(cx, Delta::Confirmed(known));
        }
        self.announce(member.id);
        self.settle_newcomer(slot, (member, revision), (claimed, age), cx);
    }

    /// Enters a node that is not on the list.
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
        // It would be forgotten at once.
        if !claimed.is_live() && forgotten_after > 0 && age.0 >= forgotten_after {
            return;
        }
        if !self.may_introduce(from, member, source) {
            return;
        }
        let is_rumour = self.forgot.is_some()
            && claimed.is_live()
            && from != member
            && source != Source::Fetched;
        // If it lives, it refutes that.
        if is_rumour && claimed == Standing::Suspect {
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
        self.list
            .note(slot, |entry| entry.set_neighbour(is_neighbour));
        if matches!(self.config.selection, Selection::BoundedMix { .. }) {
            self.round_robin.enter(member.id, cx);
        }
        if source != Source::Fetched && !is_rumour {
            self.announce(member.id);
        }
        self.settle_newcomer(slot, (member, revision), (claimed, age), cx);
        if is_rumour {
            self.list
                .set_standing(slot, Standing::Unmet, revision, self.period);
            self.verify(member, cx);
        }
    }

    /// Returns true if there is room for one more. The failed give way to members that left, and
    /// all the dead to live members.
    fn make_room(&mut self, newcomer: Standing) -> bool {
        let dead = self.list.tombstones();
        let limit = usize::from(self.config.tombstone_limit);
        if !self.list.is_full() && (newcomer.is_live() || dead.len() < limit) {
            return true;
        }
        let gives_way = match newcomer {
            Standing::Failed => false,
            Standing::Left => dead.failed_len() > 0,
            Standing::Alive
            | Standing::Doubted
            | Standing::Hearsay
            | Standing::Unmet
            | Standing::Suspect => true,
        };
        // A node that is leaving is among the dead of its own list, and needs no newcomer.
        gives_way && self.presence.is_joined() && self.displace_tombstone()
    }

    /// Gives a life that was just entered as alive the standing that the claim states. The end of a
    /// life that was never here is reported as well: other protocols may have met it.
    fn settle_newcomer(
        &mut self,
        slot: usize,
        (member, revision): (Member, u32),
        (claimed, age): (Standing, Age),
        cx: &mut Context<'_, Self>,
    ) {
        if claimed.is_live() {
            self.list.note(slot, |entry| entry.set_reported());
            Self::emit(cx, Delta::Joined(member));
        } else {
            let ended = self.ended(age);
            self.list.set_standing(slot, claimed, revision, ended);
            Self::emit(cx, end_of(member, claimed));
        }
        // Also for the dead: the host may need it to reach them, if they are alive.
        let metadata = self.list.metadata(slot);
        if metadata.is_some_and(|metadata| !metadata.0.is_empty()) {
            cx.event(Event::MetadataChanged(member));
        }
        if claimed == Standing::Suspect {
            let periods = self.suspicion_periods();
            self.enter_suspicion(slot, member, revision, periods, cx);
        }
    }
}

/// Returns true if the claim ends a member's life.
const fn is_end(claim: &Claim) -> bool {
    matches!(claim, Claim::Failed(..) | Claim::Left(_))
}

fn split(claim: Claim) -> (Standing, Metadata, Age) {
    match claim {
        Claim::Alive(metadata) => (Standing::Alive, metadata, Age::default()),
        Claim::Suspect(metadata) => (Standing::Suspect, metadata, Age::default()),
        Claim::Failed(metadata, age) => (Standing::Failed, metadata, age),
        Claim::Left(age) => (Standing::Left, Metadata::default(), age),
    }
}
