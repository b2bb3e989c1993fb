//! Triggers of time.
//!
//! An *occurrence* of a trigger has a number that each clock computes alike: the local day for a time of day
//! and for the sun, the count of intervals since 1970 by UTC for an interval. The group decides "occurrence n
//! of trigger i has come", as a high-water mark for each trigger: so no occurrence starts the routine twice,
//! whichever nodes believe to lead and whatever their clocks show.
//!
//! A leader's own clock decides nothing: one clock that is years ahead would move the mark there for good.
//! Each member of the group reports the latest occurrence that has come by its own clock ([`Due`]) when that
//! changes, and again until it is decided. The leader takes the report that a quorum of the voters has reached:
//! of 2f + 1 reports, sorted from the most advanced one, number f + 1. That is never ahead of all right clocks
//! if at most f are wrong, and not behind all right clocks if at most f are wrong, slow or away.
//!
//! Of two occurrences that have come only the later one counts, and it starts the routine unless it is later
//! than [`Definition::lateness`] by then. Earlier ones are left out, and reported as a number. The first
//! decision about a trigger starts nothing: occurrences before it are from before the group's time.

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Span};
use selvedge_routine::State;
use selvedge_routine::trigger::{Days, SunEvent, TimeOfDay, Trigger, Weekday};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::machine::{Out, RoutineLeader};
use super::{Decided, Definition, RoutineEvent, RoutineState, Update};
use crate::effect::Effect;
use crate::{Answer, Due};

/// The time that a host's clock shows.
///
/// Days of the week and dates follow from it. Intervals count by UTC; times of day and the sun by the
/// local clock, whose zone and summer time only the host knows. All hosts of a site show the same zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WallClock {
    /// The time since 1970-01-01 00:00 UTC.
    pub utc: Span,
    /// The seconds by which the local clock is ahead of UTC: negative west of Greenwich.
    pub ahead: i32,
    /// The time at which the sun rises today, by the local clock; `None` if it does not, or if that
    /// is not known.
    pub sunrise: Option<TimeOfDay>,
    /// The time at which the sun sets today, by the local clock; `None` if it does not, or if that is
    /// not known.
    pub sunset: Option<TimeOfDay>,
}

const DAY: u64 = TimeOfDay::DAY as u64 * 1_000_000;
const WEEK: u64 = 7;

impl WallClock {
    /// This clock, a span later.
    #[must_use]
    pub fn after(self, span: Span) -> Self {
        let utc = self.utc + span;
        Self { utc, ..self }
    }

    /// The local time, in microseconds since 1970-01-01 00:00.
    fn local(&self) -> u64 {
        let ahead = i64::from(self.ahead).saturating_mul(1_000_000);
        self.utc.0.saturating_add_signed(ahead)
    }

    const fn sun(&self, event: SunEvent) -> Option<TimeOfDay> {
        match event {
            SunEvent::Rise => self.sunrise,
            SunEvent::Set => self.sunset,
        }
    }
}

/// The weekday of a day that is counted from 1970-01-01, a Thursday.
fn weekday(day: u64) -> Weekday {
    Weekday::Thursday.after(day)
}

/// The latest occurrence of a trigger that has come by a clock: its number and its time. The times are
/// microseconds by the clock that the trigger follows.
struct Latest {
    number: u64,
    since: Span,
}

fn latest(trigger: &Trigger<State>, clock: &WallClock) -> Option<Latest> {
    if let Trigger::Every(interval) = trigger {
        let number = clock.utc.0.checked_div(interval.0)?;
        let since = Span(clock.utc.0.checked_rem(interval.0)?);
        return Some(Latest { number, since });
    }
    let (days, at) = daily(trigger, clock)?;
    let local = clock.local();
    let mut past = (0..=WEEK).filter_map(|back| (local / DAY).checked_sub(back));
    past.find_map(|number| {
        let since = Span(local.checked_sub(number.checked_mul(DAY)?.checked_add(at)?)?);
        let is_its_day = days.has(weekday(number));
        is_its_day.then_some(Latest { number, since })
    })
}

/// The time until the next occurrence.
fn until_next(trigger: &Trigger<State>, clock: &WallClock) -> Option<Span> {
    if let Trigger::Every(interval) = trigger {
        let since = clock.utc.0.checked_rem(interval.0)?;
        return Some(Span(interval.0 - since));
    }
    let (days, at) = daily(trigger, clock)?;
    let local = clock.local();
    let mut coming = (0..=WEEK).map(|more| (local / DAY).saturating_add(more));
    coming.find_map(|day| {
        let left = day
            .saturating_mul(DAY)
            .saturating_add(at)
            .checked_sub(local)?;
        (left > 0 && days.has(weekday(day))).then_some(Span(left))
    })
}

fn daily(trigger: &Trigger<State>, clock: &WallClock) -> Option<(Days, u64)> {
    let at = trigger.time_of_day(|event| clock.sun(event))?;
    Some((trigger.days()?, at.0))
}

impl Definition {
    /// The latest occurrence of a trigger that has come by a clock.
    fn due(&self, trigger: u16, clock: &WallClock) -> Option<Due> {
        let latest = latest(self.triggers.get(usize::from(trigger))?, clock)?;
        Some(Due {
            since: 0,
            trigger,
            occurrence: latest.number,
            is_late: latest.since > self.lateness,
        })
    }

    /// The time after which [`due`](Self::due) is another one.
    pub(crate) fn until_due_changes(&self, trigger: u16, clock: &WallClock) -> Option<Span> {
        let listed = self.triggers.get(usize::from(trigger))?;
        let next = until_next(listed, clock);
        let late = latest(listed, clock).filter(|it| it.since <= self.lateness);
        let late = late.map(|it| self.lateness - it.since + Span(1));
        next.into_iter().chain(late).min()
    }

    /// The number of occurrences of a trigger after one and before another one. For the sun, days on which
    /// it does not rise or set count as well.
    pub(super) fn between(&self, trigger: u16, after: u64, before: u64) -> u64 {
        let many = before.saturating_sub(after).saturating_sub(1);
        let listed = self.triggers.get(usize::from(trigger));
        let Some(days) = listed.and_then(Trigger::days) else {
            return many;
        };
        let rest = many % WEEK;
        let is_its_day = |more: &u64| days.has(weekday(after.saturating_add(*more)));
        let in_rest = (1..=rest).filter(is_its_day).count() as u64;
        many / WEEK * days.iter().count() as u64 + in_rest
    }

    /// The numbers of its triggers of time.
    pub(crate) fn timed(&self) -> impl Iterator<Item = u16> {
        0..u16::try_from(self.triggers.len()).unwrap_or(u16::MAX)
    }
}

impl RoutineState {
    /// The last decided occurrence of a trigger of time, by its place in
    /// [`Definition::triggers`]; `None` before the group first decided on its time.
    #[must_use]
    pub fn occurrence(&self, trigger: u16) -> Option<u64> {
        self.marks.get(usize::from(trigger)).copied().flatten()
    }

    /// The latest occurrence of a trigger that has come by a clock.
    pub(crate) fn due(&self, trigger: u16, clock: &WallClock) -> Option<Due> {
        let since = self.since();
        let due = self.definition().due(trigger, clock)?;
        Some(Due { since, ..due })
    }

    /// Returns true if this occurrence is later than the last decided one.
    pub(super) fn has_not_come(&self, due: Due) -> bool {
        let mark = self.marks.get(usize::from(due.trigger));
        // Another definition counts its occurrences in another way.
        due.since == self.since && mark.is_some_and(|mark| *mark < Some(due.occurrence))
    }

    /// The group decides that an occurrence has come.
    pub(super) fn on_due(&mut self, due: Due) -> Decided {
        let mark = self.marks.get_mut(usize::from(due.trigger));
        let before = mark.and_then(|it| it.replace(due.occurrence));
        let left_out = before.map_or(0, |before| {
            let definition = self.definition();
            let between = definition.between(due.trigger, before, due.occurrence);
            between.saturating_add(due.is_late.into())
        });
        let starts = before.is_some() && !due.is_late;
        Decided::Due {
            due,
            taken: starts.then(|| self.start()),
            left_out,
        }
    }
}

impl RoutineLeader {
    /// A node reports an occurrence that has come by its clock.
    pub fn on_due(
        &mut self,
        state: &RoutineState,
        from: Member,
        due: Due,
        voters: &[NodeId],
        out: &mut Out,
    ) {
        let answer = Answer::Counted(due);
        out.push(Effect::Answer { to: from, answer });
        if !voters.contains(&from.id) {
            return;
        }
        // The last report counts, not the greatest one: a clock may be set right.
        if !state.is_due(&Update::Due(due)) {
            self.clocks.remove(&(due.trigger, from.id));
            return;
        }
        let before = self.clocks.insert((due.trigger, from.id), due);
        let is_before = before.is_none_or(|it| it >= due);
        if self.rules.each_leader_starts() && is_before && state.occurrence(due.trigger).is_some() {
            return; // It has come before this node led.
        }
        self.clocks.retain(|it, _| voters.contains(&it.1));
        let reports = self.clocks.values().filter(|it| it.trigger == due.trigger);
        let mut reports: Vec<Due> = reports.copied().collect();
        reports.sort_unstable_by(|one, other| other.cmp(one));
        let by_one = self.rules.one_clock() || self.rules.each_leader_starts();
        let quorum = if by_one { 0 } else { voters.len() / 2 };
        let Some(&agreed) = reports.get(quorum) else {
            return;
        };
        let update = Update::Due(agreed);
        // Time has passed since another one was proposed.
        (self.proposed).retain(|it| {
            *it == update || !matches!(it, Update::Due(it) if it.trigger == agreed.trigger)
        });
        self.propose(state, update, out);
        self.arm(out);
    }

    pub(super) fn on_due_decided(&mut self, due: Due, left_out: u64, out: &mut Out) {
        let Due {
            trigger,
            occurrence,
            ..
        } = due;
        let keeps = self.rules.each_leader_starts();
        self.clocks
            .retain(|_, it| keeps || it.trigger != trigger || it.occurrence > occurrence);
        if left_out > 0 {
            out.push(Effect::Event(RoutineEvent::LeftOut {
                trigger,
                occurrence,
                count: left_out,
            }));
        }
    }
}

/// A trigger of time in bytes. A clause has another way ([`super::clause`]): here one that is nested deep
/// would exhaust the stack.
#[derive(Serialize, Deserialize)]
enum Timed {
    At(TimeOfDay),
    On {
        days: Days,
        at: TimeOfDay,
    },
    Sun {
        days: Days,
        event: SunEvent,
        offset_ms: i32,
    },
    Every(Span),
}

pub(super) fn serialize<S: Serializer>(
    triggers: &[Trigger<State>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let timed = |it: &Trigger<State>| match *it {
        Trigger::At(at) => Some(Timed::At(at)),
        Trigger::On { days, at } => Some(Timed::On { days, at }),
        Trigger::Sun {
            days,
            event,
            offset_ms,
        } => Some(Timed::Sun {
            days,
            event,
            offset_ms,
        }),
        Trigger::Every(interval) => Some(Timed::Every(interval)),
        // A definition that was checked has none.
        Trigger::When(_) | Trigger::Manual => None,
    };
    let all: Vec<Timed> = triggers.iter().filter_map(timed).collect();
    all.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Trigger<State>>, D::Error> {
    let all = Vec::<Timed>::deserialize(deserializer)?;
    let trigger = |it| match it {
        Timed::At(at) => Trigger::At(at),
        Timed::On { days, at } => Trigger::On { days, at },
        Timed::Sun {
            days,
            event,
            offset_ms,
        } => Trigger::Sun {
            days,
            event,
            offset_ms,
        },
        Timed::Every(interval) => Trigger::Every(interval),
    };
    Ok(all.into_iter().map(trigger).collect())
}
