//! The measured round trip of one member.

use selvedge_core::Span;

/// The round trips to a member, as this node's probes measure them: 12 bytes. All zero where
/// nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct RoundTrip {
    /// The smoothed round trip in microseconds; 0 before the first one.
    smoothed: u32,
    /// The round trip by which the member is weighed; 0 before the first one.
    weighed: u32,
    /// True if the host has set the distance.
    is_set: bool,
    /// True if the next acknowledgement may answer another ping than the open probe's.
    is_ambiguous: bool,
}

impl RoundTrip {
    /// Takes a measured round trip in. Returns the one by which the member has to be weighed from
    /// now on, in microseconds, if that is another one: those up to `unit` are alike, and so are
    /// longer ones that differ by a quarter at most. `None` where the host has set the distance.
    pub(crate) fn take(&mut self, sample: Span, unit: Span) -> Option<u32> {
        let (sample, unit) = (Self::micros(sample), Self::micros(unit));
        // Down at once, and up by an eighth of the difference and a quarter of the whole at most.
        // Delays only add to a round trip, so the lowest is the truest. And a member that is taken
        // for far is measured seldom: no single late answer may have that effect.
        self.smoothed = match self.smoothed {
            0 => sample,
            known => {
                let most = known.max(unit) / 4;
                let up = sample.saturating_sub(known).div_ceil(8).min(most.max(1));
                known.min(sample).saturating_add(up)
            }
        };
        if self.is_set {
            return None;
        }
        let (new, old) = (self.smoothed.max(unit), self.weighed);
        if old > 0 && new.abs_diff(old) <= old / 4 {
            return None;
        }
        self.weighed = new;
        Some(new)
    }

    /// Weighs the member by its smoothed round trip under another unit, however little that
    /// changes; both in microseconds. `None` where nothing was measured, or the host has set the
    /// distance.
    pub(crate) fn weigh_anew(&mut self, unit: u32) -> Option<u32> {
        if self.smoothed == 0 || self.is_set {
            return None;
        }
        self.weighed = self.smoothed.max(unit);
        Some(self.weighed)
    }

    /// Notes that the host has set the distance, which holds from now on.
    pub(crate) const fn set(&mut self) {
        (self.is_set, self.weighed) = (true, 0);
    }

    /// Notes that the next acknowledgement may answer another ping than the open probe's.
    pub(crate) const fn set_ambiguous(&mut self) {
        self.is_ambiguous = true;
    }

    /// Takes an acknowledgement. Returns true if it answers the open probe, if there is one.
    pub(crate) const fn take_ack(&mut self) -> bool {
        let is_certain = !self.is_ambiguous;
        self.is_ambiguous = false;
        is_certain
    }

    /// The smoothed round trip.
    pub(crate) fn smoothed(self) -> Option<Span> {
        (self.smoothed > 0).then_some(Span(self.smoothed.into()))
    }

    /// The round trip by which the member is weighed, in microseconds.
    pub(crate) fn weighed(self) -> Option<u32> {
        (self.weighed > 0).then_some(self.weighed)
    }

    /// At least 1, because 0 is no measurement.
    pub(crate) fn micros(span: Span) -> u32 {
        u32::try_from(span.0).unwrap_or(u32::MAX).max(1)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const UNIT: Span = Span::millis(5);

    fn weighed(samples: &[u64]) -> Vec<Option<u32>> {
        let mut round_trip = RoundTrip::default();
        let spans = samples.iter();
        let spans = spans.map(|&it| round_trip.take(Span::millis(it), UNIT));
        spans.map(|it| it.map(|it| it / 1_000)).collect()
    }

    #[test]
    fn it_falls_at_once_and_rises_by_an_eighth() {
        let mut round_trip = RoundTrip::default();
        assert_eq!(round_trip.smoothed(), None);
        for (sample, smoothed) in [(80, 80), (160, 90), (40, 40), (40, 40), (48, 41)] {
            round_trip.take(Span::millis(sample), UNIT);
            assert_eq!(round_trip.smoothed(), Some(Span::millis(smoothed)));
        }
        // The last step is not lost in rounding.
        for _ in 0..200 {
            round_trip.take(Span::millis(48), UNIT);
        }
        assert_eq!(round_trip.smoothed(), Some(Span::millis(48)));
        round_trip.take(Span(u64::MAX), UNIT);
        assert_eq!(round_trip.smoothed(), Some(Span::millis(60)));
        round_trip.take(Span::ZERO, UNIT);
        assert_eq!(round_trip.smoothed(), Some(Span(1)));
        // A quarter of next to nothing is a quarter of the unit.
        round_trip.take(Span(u64::MAX), UNIT);
        assert_eq!(round_trip.smoothed(), Some(Span(1_251)));
    }

    #[test]
    fn a_quarter_is_no_other_distance() {
        assert_eq!(weighed(&[80, 100, 60]), [Some(80), None, None]);
        assert_eq!(weighed(&[80, 59]), [Some(80), Some(59)]);
        assert_eq!(weighed(&[80, 5_000]), [Some(80), None], "one late answer");
        assert_eq!(weighed(&[80, 5_000, 90]), [Some(80), None, None]);
        assert_eq!(weighed(&[80, 5_000, 5_000]), [Some(80), None, Some(125)]);
    }

    #[test]
    fn up_to_the_unit_all_are_alike() {
        assert_eq!(weighed(&[1, 5, 3, 1]), [Some(5), None, None, None]);
        assert_eq!(weighed(&[9, 2, 1]), [Some(9), Some(5), None]);
    }

    #[test]
    fn the_host_s_distance_holds() {
        let mut round_trip = RoundTrip::default();
        round_trip.set();
        assert_eq!(round_trip.take(Span::millis(80), UNIT), None);
        assert_eq!(round_trip.weighed(), None);
        assert_eq!(round_trip.smoothed(), Some(Span::millis(80)));
    }
}
