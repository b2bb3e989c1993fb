//! Inquiries about lives that another protocol has met, and that this node's list does not have, or
//! not as ended.

use selvedge_core::{Context, Delta, Member};

use crate::digest::key;
use crate::list::{Entry, Standing};
use crate::merge::Source;
use crate::message::{Age, Body, Claim, Message, Metadata, Record};
use crate::{Membership, Reject, Timer};

impl Membership {
    /// Finds out whether a life has ended. A life that the list does not have is entered in doubt,
    /// as after a probe without an answer: it answers, or is declared failed. Another member is
    /// asked as well, so that a missed good-bye is found. Nothing is done for a life that is listed
    /// as live, left, or over. At most [`hearsay_limit`](crate::Config::hearsay_limit) inquiries a
    /// period; further ones are counted as hearsay. O(log N).
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
            // Reconnecting probes the dead anyway.
            Some(_) => {}
        }
        let key = key(member.id);
        let (first, last) = (key, key);
        self.draw_relays((1, 0), Some(member.id), cx, |_, other, cx| {
            cx.send(other, Message::bare(Body::Pull { first, last }));
        });
        Ok(())
    }

    /// Confirms that a life is over, by decision of an operator. Other nodes learn that it left,
    /// which is as final. For a life that the list does not have, [`Delta::Left`] or
    /// [`Delta::Confirmed`] is emitted as well, because another protocol may have met it; the life
    /// is remembered where there is room for one more that left. Nothing is done where the list has
    /// a later life, from which all nodes learn that this one is over. O(log N), and
    /// O([`tombstone_limit`](crate::Config::tombstone_limit)) where a tombstone has to give way.
    ///
    /// # Errors
    /// [`Reject::OwnMember`], [`Reject::NotJoined`] where the list does not have this life;
    /// [`Reject::UnknownMember`] where it has a life that is neither earlier nor later.
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
            // The other nodes learn from the later life that this one is over.
            Some((_, known, _)) if known.supersedes(member) => {}
            Some((slot, known, standing)) if member.supersedes(known) => {
                self.supersede(slot, known, standing, ended(member), cx);
            }
            Some(_) => return Err(Reject::UnknownMember(member.id)),
            None => {
                self.enlist(self.own.member(), ended(member), Source::Fetched, cx);
                if self.list.find(member.id).is_some() {
                    self.announce(member.id);
                } else {
                    Self::emit(cx, Delta::Confirmed(member));
                }
            }
        }
        Ok(())
    }

    /// Ends a life that the list has.
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

    /// Asks a life that was entered because of a rumour. No other node learns of that before the
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

/// The record of a life that is over for certain.
fn ended(member: Member) -> Record {
    Record {
        member,
        revision: 0,
        claim: Claim::Left(Age::default()),
    }
}
