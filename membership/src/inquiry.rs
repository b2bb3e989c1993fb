//! Lives that another protocol has met, and of which this node's list says nothing, or not the end.

use selvedge_core::{Context, Delta, Member};

use crate::digest::key;
use crate::list::{Entry, Standing};
use crate::merge::Source;
use crate::message::{Age, Body, Claim, Message, Metadata, Record};
use crate::{Membership, Reject, Timer};

impl Membership {
    /// Finds out what became of a life. One that the list does not have is put there in doubt, as
    /// after a probe that found no answer: it answers, or is declared failed. What another member
    /// knows is asked for as well, so a good-bye that was missed is heard of. Nothing is done for a
    /// life that is listed as live, left, or over. At most
    /// [`hearsay_limit`](crate::Config::hearsay_limit) a period; what is beyond is counted as
    /// hearsay. O(log N).
    ///
    /// # Errors
    /// [`Reject::NotJoined`], [`Reject::OwnMember`].
    pub(crate) fn inquire(
        &mut self,
        member: Member,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if !self.presence.is_joined() {
            return Err(Reject::NotJoined);
        }
        if member.id == self.own.id() {
            return Err(Reject::OwnMember(member.id));
        }
        let known = self.list.get(member.id);
        let known = known.map(|(slot, entry)| (slot, entry.member(), entry.standing()));
        let is_open = known.is_none_or(|(_, known, standing)| {
            member.supersedes(known) || known == member && standing == Standing::Failed
        });
        if !is_open || !self.may_inquire() {
            return Ok(());
        }
        let record = Record {
            member,
            revision: 0,
            claim: Claim::Alive(Metadata::default()),
        };
        match known {
            None => {
                self.enlist(self.own.member(), record, Source::Fetched, cx);
                self.verify_newcomer(member, cx);
            }
            Some((_, known, standing)) if known != member && standing.is_live() => {
                self.pull_record_of(member, cx);
            }
            Some((slot, known, standing)) if known != member => {
                self.supersede(slot, known, standing, record, cx);
                self.verify_newcomer(member, cx);
            }
            // The dead are asked now and then as it is.
            Some(_) => {}
        }
        let key = key(member.id);
        let (first, last) = (key, key);
        self.draw_relays(1, Some(member.id), cx, |_, other, cx| {
            cx.send(other, Message::bare(Body::Pull { first, last }));
        });
        Ok(())
    }

    /// An operator's word that a life is over. Others hear that it left, which is as final. Of one
    /// that the list does not have [`Delta::Left`] or [`Delta::Confirmed`] is told as well, for
    /// another protocol may have met it; it is remembered where there is room for one more that
    /// left. Nothing is done where the list has a later one, by which all hear that it is over.
    /// O(log N), and O([`tombstone_limit`](crate::Config::tombstone_limit)) where one has to give
    /// way.
    ///
    /// # Errors
    /// [`Reject::OwnMember`], [`Reject::NotJoined`] where the list does not have this life;
    /// [`Reject::UnknownMember`] where it has one that is neither earlier nor later.
    pub(crate) fn confirm(
        &mut self,
        member: Member,
        cx: &mut Context<'_, Self>,
    ) -> Result<(), Reject> {
        if member.id == self.own.id() {
            return Err(Reject::OwnMember(member.id));
        }
        let known = self.list.get(member.id);
        let known = known.map(|(slot, entry)| (slot, entry.member(), entry.standing()));
        match known {
            Some((slot, known, standing)) if known == member => {
                if standing != Standing::Left {
                    self.confirm_listed(slot, member, cx);
                }
            }
            _ if !self.presence.is_joined() => return Err(Reject::NotJoined),
            // That it is over was told with the later one.
            Some((_, known, _)) if known.supersedes(member) => {}
            Some((slot, known, standing)) if member.supersedes(known) => {
                self.supersede(slot, known, standing, gone(member), cx);
            }
            Some(_) => return Err(Reject::UnknownMember(member.id)),
            None => {
                self.enlist(self.own.member(), gone(member), Source::Fetched, cx);
                if self.list.find(member.id).is_some() {
                    self.announce(member.id);
                } else {
                    Self::emit(cx, Delta::Confirmed(member));
                }
            }
        }
        Ok(())
    }

    /// A life that the list has is over.
    fn confirm_listed(&mut self, slot: usize, member: Member, cx: &mut Context<'_, Self>) {
        let Some(entry) = self.list.entry(slot) else {
            debug_assert!(false, "no member has slot {slot}");
            return;
        };
        let revision = entry.revision();
        if entry.standing().is_timed() {
            cx.disarm(Timer::Suspicion(member.id));
        }
        self.list
            .set_standing(slot, Standing::Left, revision, self.period);
        self.announce(member.id);
        self.cancel_probe_of(member.id, cx);
        Self::emit(cx, Delta::Confirmed(member));
    }

    /// Asks a life that was put on the list for a rumour. No other node hears of that before the
    /// life has been silent for a period.
    fn verify_newcomer(&mut self, member: Member, cx: &mut Context<'_, Self>) {
        let slot = self.list.find(member.id);
        let is_there = |slot: &usize| self.list.entry(*slot).map(Entry::member) == Some(member);
        // There may have been no room.
        if let Some(slot) = slot.filter(is_there) {
            self.list
                .set_standing(slot, Standing::Doubted, 0, self.period);
            self.pull_record_of(member, cx);
            self.verify(member, cx);
        }
    }
}

/// What is said of a life that is over for certain.
fn gone(member: Member) -> Record {
    Record {
        member,
        revision: 0,
        claim: Claim::Left(Age::default()),
    }
}
