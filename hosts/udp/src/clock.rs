//! Readings of the system's clock.

use core::fmt;
use std::time::UNIX_EPOCH;

use selvedge_core::{Incarnation, Span, Time};
use selvedge_kgroup::WallClock;
use tokio::time::sleep;

/// A system clock that shows an earlier time was never set.
const NEVER_SET: Span = Span::micros(selvedge_seal::CLOCK_IS_SET);

/// A life that this node did not have before, by the system's clock, as
/// [`Incarnation::from_clock`] derives it, and ready when its wait is over; a host sends nothing
/// until then.
///
/// A clock that was never set (it shows a time before 2026) begins at the same moment after each
/// boot, so the life is a random number then. A clock that was set back gives an earlier number:
/// members that remember a later one report it, and the node takes a number beyond that. Sealed
/// datagrams need a right clock, or a folder, too, see [`seal`](selvedge_seal).
///
/// # Errors
/// When the clock was never set and the system gives no random numbers.
pub async fn new_life() -> Result<Incarnation, getrandom::Error> {
    let since_1970 = UNIX_EPOCH.elapsed().map(Span::from).unwrap_or_default();
    let (life, wait) = life_at(since_1970)?;
    sleep(wait.into()).await;
    Ok(life)
}

/// The life that begins at this time of the system's clock, and the time to wait for it.
fn life_at(since_1970: Span) -> Result<(Incarnation, Span), getrandom::Error> {
    if since_1970 < NEVER_SET {
        return Ok((Incarnation(getrandom::u32()?), Span::ZERO));
    }
    Ok(Incarnation::from_clock(since_1970))
}

/// The source of the local time for triggers of time.
pub(crate) struct LocalClock {
    read: Box<dyn FnMut() -> Option<WallClock> + Send>,
    /// The last reading that the machine was given, and its time.
    given: Option<(Time, Option<WallClock>)>,
}

impl LocalClock {
    /// The time after which the machine is given the time again: the clock may be set.
    const LOOK: Span = Span::secs(60);

    pub(crate) fn new(read: impl FnMut() -> Option<WallClock> + Send + 'static) -> Self {
        Self {
            read: Box::new(read),
            given: None,
        }
    }

    /// The system's clock, in UTC, once it was set.
    pub(crate) fn utc() -> Self {
        Self::new(|| {
            let utc: Span = UNIX_EPOCH.elapsed().map(Span::from).unwrap_or_default();
            (utc >= NEVER_SET).then(|| WallClock {
                utc,
                ..WallClock::default()
            })
        })
    }

    /// The time that it shows, unless the machine was given it lately, and the zone and the sun are as
    /// they were then.
    pub(crate) fn news(&mut self, now: Time) -> Option<WallClock> {
        let shown = (self.read)();
        let kept = |it: WallClock| (it.ahead, it.sunrise, it.sunset);
        let is_known = self.given.is_some_and(|(at, before)| {
            now.since(at) < Self::LOOK && before.map(kept) == shown.map(kept)
        });
        if is_known {
            return None;
        }
        self.given = Some((now, shown));
        shown
    }
}

impl fmt::Debug for LocalClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalClock")
    }
}

/// The present epoch of this length by the system's clock, and the rest of it, a minute at most:
/// the clock may be set. With a length of zero, one epoch without end.
pub(crate) fn epoch(length: Span) -> (u64, Span) {
    const LOOK: Span = Span::secs(60);
    if length == Span::ZERO {
        return (0, LOOK);
    }
    let since_1970: Span = UNIX_EPOCH.elapsed().map(Span::from).unwrap_or_default();
    let left = Span(length.0 - since_1970.0 % length.0);
    (since_1970.0 / length.0, left.min(LOOK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_the_clock() -> Incarnation {
        Incarnation::from_clock(UNIX_EPOCH.elapsed().unwrap().into()).0
    }

    #[tokio::test(start_paused = true)]
    async fn a_life_has_the_number_of_its_time() {
        let before = by_the_clock();
        let life = new_life().await.unwrap();
        let after = by_the_clock();
        assert!(!before.newer_than(life), "{life:?} after {before:?}");
        assert!(!life.newer_than(after), "{life:?} before {after:?}");
    }

    /// A clock that was never set shows the same time after each boot.
    #[test]
    fn a_life_under_a_clock_that_was_never_set_is_random_and_not_waited_for() {
        for never_set in [Span::ZERO, NEVER_SET - Span::micros(1)] {
            let lives = [(); 4].map(|()| life_at(never_set).unwrap());
            assert!(lives.iter().all(|(_, wait)| *wait == Span::ZERO));
            assert!(lives.iter().any(|it| *it != lives[0]), "{lives:?}");
        }
        for set in [NEVER_SET, NEVER_SET + Span::micros(1)] {
            assert_eq!(life_at(set).unwrap(), Incarnation::from_clock(set));
        }
    }
}
