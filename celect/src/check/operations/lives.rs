//! How nodes die and come back, and what membership says of them.

use alloc::string::String;

use selvedge_core::{Delta, Incarnation, Input, Member};
use selvedge_sim::Bytes;

use super::{Mesh, Seat};

impl Mesh {
    /// Anything that membership may say of a node; only of those that are gone that it is sure.
    pub(super) fn delta(&self, bytes: &mut Bytes<'_>) -> Delta {
        let about = bytes.pick(self.seats.len() + self.gone.len());
        let byte = bytes.take();
        let Some(seat) = self.seats.get(about) else {
            let gone = self.gone.get(about - self.seats.len());
            let gone = gone.copied().unwrap_or_default();
            return match byte & 7 {
                0 => Delta::Suspected(gone),
                1 => Delta::Joined(gone),
                2 => Delta::Left(gone),
                3 => Delta::Confirmed(gone),
                _ => Delta::Failed(gone),
            };
        };
        let (first, now) = (seat.first.incarnation, seat.me.incarnation);
        let lives = now.0.wrapping_sub(first.0).saturating_add(1);
        // Mostly the present one.
        let back = match byte >> 5 {
            0 => u32::from(byte >> 3).checked_rem(lives).unwrap_or_default(),
            1 => lives.saturating_sub(1).min(1),
            _ => 0,
        };
        let incarnation = Incarnation(now.0.wrapping_sub(back));
        let member = Member {
            incarnation,
            ..seat.me
        };
        let is_over = back > 0 || seat.driver.is_none();
        match byte & 7 {
            0 | 1 if is_over => Delta::Confirmed(member),
            2 if is_over => Delta::Left(member),
            0 => Delta::Suspected(member),
            1 | 3 => Delta::Refuted(member),
            2 | 4 => Delta::Joined(member),
            _ => Delta::Failed(member),
        }
    }

    pub(super) fn learn(
        &mut self,
        seat: usize,
        delta: Delta,
        bytes: &mut Bytes<'_>,
    ) -> Result<(), String> {
        let is_up = |it: &Seat| it.driver.is_some() && it.me == delta.member();
        let is_false = matches!(delta, Delta::Failed(_)) && self.seats.iter().any(is_up);
        self.summary.false_failures += u64::from(is_false);
        self.step(seat, Input::Membership(delta), bytes)
    }

    pub(super) fn crash(&mut self, at: usize) {
        self.count(at);
        if let Some(seat) = self.seats.get_mut(at)
            && let Some(driver) = seat.driver.take()
        {
            let machine = driver.machine();
            self.summary.leaders_died += u64::from(machine.leads().is_some());
            self.summary.initiators_died += u64::from(machine.is_electing());
            self.oracle.dies(seat.me);
        }
    }

    /// Adds up what a node counted in the life that it is in.
    pub(super) fn count(&mut self, at: usize) {
        let driver = self.seats.get(at).and_then(|seat| seat.driver.as_ref());
        if let Some(counters) = driver.map(|it| it.machine().counters()) {
            self.summary.no_room += counters.no_room;
            self.summary.rounds += counters.rounds;
        }
    }

    /// Dies now and then; comes back without memory.
    pub(super) fn fall(&mut self, at: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        let is_up = self.seats.get(at).is_some_and(|it| it.driver.is_some());
        if is_up && byte & 12 != 0 {
            return Ok(());
        }
        self.crash(at);
        if is_up && byte & 16 != 0 || self.settings.is_forgetting_fatal() {
            return Ok(());
        }
        let Some(before) = self.seats.get(at).map(|seat| seat.me) else {
            return Ok(());
        };
        let incarnation = before.incarnation.next();
        let is_renamed = self.settings.is_renamed && byte & 32 == 0;
        let me = if is_renamed {
            let id = self.settings.next_id(self.gone.len());
            self.gone.push(before);
            Member { id, incarnation }
        } else {
            Member {
                incarnation,
                ..before
            }
        };
        let driver = Some(self.new_driver(at, me));
        if let Some(seat) = self.seats.get_mut(at) {
            seat.driver = driver;
            seat.me = me;
            if is_renamed {
                seat.first = me;
            }
        }
        self.summary.restarts += 1;
        self.summary.renamed += u64::from(is_renamed);
        self.look();
        // It may know no other node, and none of it.
        if byte & 1 == 0 {
            self.introduce(at, bytes, |_| true)?;
        }
        if byte & 2 == 0 {
            self.announce(at, bytes)?;
        }
        Ok(())
    }

    /// Tells all of a node that is up, or that it is dead for certain.
    pub(super) fn announce(&mut self, at: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let Some(delta) = self.seats.get(at).map(|seat| match seat.driver {
            Some(_) => Delta::Joined(seat.me),
            None => Delta::Confirmed(seat.me),
        }) else {
            return Ok(());
        };
        for other in (0..self.seats.len()).filter(|&other| other != at) {
            self.step(other, Input::Membership(delta), bytes)?;
        }
        Ok(())
    }
}
