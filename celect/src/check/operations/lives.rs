//! Deaths and returns of nodes, and the deltas of membership about them.

use alloc::string::String;

use selvedge_core::{Delta, Incarnation, Member};
use selvedge_sim::Bytes;
use selvedge_sim::operations::Operation;

use super::World;

impl World {
    /// Decodes any delta that membership may report of a node; a certain end only for a life that has
    /// ended.
    pub(super) fn delta(&self, bytes: &mut Bytes<'_>) -> Delta {
        let (seats, ended) = (self.mesh.seats(), &self.watch.ended);
        let about = bytes.pick(seats.len() + ended.len());
        let byte = bytes.take();
        let Some(seat) = seats.get(about) else {
            let ended = ended.get(about - seats.len());
            let ended = ended.copied().unwrap_or_default();
            return match byte & 7 {
                0 => Delta::Suspected(ended),
                1 => Delta::Joined(ended),
                2 => Delta::Left(ended),
                3 => Delta::Confirmed(ended),
                _ => Delta::Failed(ended),
            };
        };
        let (first, now) = (seat.first().incarnation, seat.me().incarnation);
        let lives = now.0.wrapping_sub(first.0).saturating_add(1);
        // Mostly the present life.
        let back = match byte >> 5 {
            0 => u32::from(byte >> 3).checked_rem(lives).unwrap_or_default(),
            1 => lives.saturating_sub(1).min(1),
            _ => 0,
        };
        let incarnation = Incarnation(now.0.wrapping_sub(back));
        let member = Member {
            incarnation,
            ..seat.me()
        };
        let is_over = back > 0 || !seat.is_up();
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
        let mut seats = self.mesh.seats().iter();
        let is_of_someone_up = seats.any(|it| it.is_up() && it.me() == delta.member());
        let is_false = is_of_someone_up && matches!(delta, Delta::Failed(_));
        self.watch.summary.false_failures += u64::from(is_false);
        self.play(Operation::Learn(seat, delta), bytes)
    }

    /// Decodes the crash or the return of a node, which comes back without memory.
    pub(super) fn fall(&mut self, at: usize, bytes: &mut Bytes<'_>) -> Result<(), String> {
        let byte = bytes.take();
        let is_up = self.is_up(at);
        if is_up && byte & 12 != 0 {
            return Ok(());
        }
        self.play(Operation::Crash(at), bytes)?;
        if is_up && byte & 16 != 0 || self.watch.settings.is_forgetting_fatal() {
            return Ok(());
        }
        self.watch.is_renamed = self.watch.settings.is_renamed && byte & 32 == 0;
        self.play(Operation::Restart(at), bytes)?;
        // It may know no other node, and no other may know it.
        if byte & 1 == 0 {
            self.play(Operation::Introduce(at), bytes)?;
        }
        if byte & 2 == 0 {
            self.play(Operation::Announce(at), bytes)?;
        }
        Ok(())
    }
}
