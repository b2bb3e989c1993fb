//! The c that elections rest on: the configured c, or what was measured last; and how all nodes
//! hear of it.

use alloc::vec::Vec;

use selvedge_core::{BoundedQueue, Context, Member, Ratio};

use crate::config::{MILLION, millionths};
use crate::estimate::Misses;
use crate::message::Message;
use crate::sampling::Sample;
use crate::{Attribute, Ballot, Celect, Estimation, Event, Source, Timer};

/// What is known of c. Everything is empty where estimation is off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tolerance {
    known: Option<Known>,
    /// The latest bounds; the largest is used.
    recent: BoundedQueue<u16>,
    /// The ballot by which the latest bound was told, and its number.
    told: Option<(Ballot, u32)>,
    /// What initiators reported to us.
    reports: Vec<Report>,
    /// Reports up to this ballot gave an estimate.
    reported: Option<Ballot>,
    pub(crate) sample: Option<Sample>,
    /// The number of the latest sample.
    pub(crate) samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Known {
    c: u16,
    miss: Option<Ratio>,
    source: Source,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Report {
    ballot: Ballot,
    answers: u16,
    missing: u16,
}

impl Tolerance {
    pub(crate) fn new(estimation: Option<Estimation>) -> Self {
        let window = estimation.map_or(0, |it| it.window);
        Self {
            known: None,
            recent: BoundedQueue::new(window.into()),
            told: None,
            reports: Vec::new(),
            reported: None,
            sample: None,
            samples: 0,
        }
    }
}

/// What a leader tells of c.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) source: Source,
    pub(crate) upper: u16,
    pub(crate) miss: Ratio,
}

impl<A: Attribute> Celect<A> {
    /// What an election that begins now rests on: c, and how often the real c is larger. Without
    /// the latter c is [`Config::c`](crate::Config::c), or was cut short.
    #[must_use]
    pub fn tolerates(&self) -> (u16, Option<Ratio>) {
        let (Some(known), Some(estimation)) = (self.tolerance.known, self.config.estimation) else {
            return (self.config.c, None);
        };
        // A node that is alone can ask no other, whatever the floor: it may elect itself where c
        // says so.
        let is_alone = self.peers.by_rank().len() < 2;
        let floor = if is_alone {
            estimation.floor.min(self.config.c)
        } else {
            estimation.floor
        };
        // Some of the nodes that were there when c was measured may be gone.
        let c = known.c.min(self.most()).max(floor);
        (c, known.miss.filter(|_| c >= known.c))
    }

    /// No more others can be asked than there are, and f of them may be dead.
    fn most(&self) -> u16 {
        let others = self.peers.by_rank().len().saturating_sub(1);
        let others = u16::try_from(others).unwrap_or(u16::MAX);
        others.saturating_sub(self.config.f)
    }

    /// Rests on another bound from now on.
    pub(crate) fn rest_on(&mut self, bound: Bound, cx: &mut Context<'_, Self>) {
        let Some(estimation) = self.config.estimation else {
            return;
        };
        let before = self.tolerates();
        self.tolerance.recent.push_over(bound.upper);
        let upper = self.tolerance.recent.iter().copied().max();
        let upper = upper.unwrap_or(bound.upper);
        let c = upper
            .saturating_add(estimation.margin)
            .min(estimation.ceiling)
            .min(self.most())
            .max(estimation.floor);
        self.tolerance.known = Some(Known {
            c,
            // The miss is the same on all nodes, as it is told. The largest number says that the
            // bound may be more.
            miss: (c >= upper && upper < u16::MAX)
                .then_some(Ratio::new(millionths(bound.miss), MILLION)),
            source: bound.source,
        });
        cx.arm(Timer::Stale, estimation.valid);
        self.tell_tolerance(before, cx);
    }

    /// Whether what elections rest on was measured, and is in force.
    pub(crate) const fn knows_churn(&self) -> bool {
        self.tolerance.known.is_some()
    }

    /// What was known is too old.
    pub(crate) fn forget_churn(&mut self, cx: &mut Context<'_, Self>) {
        let before = self.tolerates();
        self.tolerance.known = None;
        self.tolerance.recent.retain(|_| false);
        cx.disarm(Timer::Stale);
        self.tell_tolerance(before, cx);
    }

    /// Forgets what feedback said: it was about the leader that was lost.
    pub(crate) fn forget_leader(&mut self, cx: &mut Context<'_, Self>) {
        self.tolerance.reports.clear();
        if let Some(known) = self.tolerance.known
            && known.source == Source::Feedback
        {
            self.forget_churn(cx);
        }
    }

    fn tell_tolerance(&self, before: (u16, Option<Ratio>), cx: &mut Context<'_, Self>) {
        let now = self.tolerates();
        if now != before {
            let (c, miss) = now;
            cx.event(Event::Tolerates { c, miss });
        }
    }

    /// We lead, and tell the nodes of `to` what c is.
    pub(crate) fn tell_churn(
        &mut self,
        bound: Bound,
        to: impl IntoIterator<Item = Member>,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(ballot) = self.leads() else {
            return;
        };
        let number = match self.tolerance.told {
            Some((told, number)) if told == ballot => number.saturating_add(1),
            Some(_) | None => 1,
        };
        self.tolerance.told = Some((ballot, number));
        for member in to {
            if member.id != self.me.id {
                let Bound {
                    source,
                    upper,
                    miss,
                } = bound;
                let message = Message::Estimate {
                    ballot,
                    number,
                    source,
                    upper,
                    miss: millionths(miss),
                };
                cx.send(member, message);
            }
        }
    }

    /// The leader says what c is.
    pub(crate) fn churn_told(
        &mut self,
        (ballot, number): (Ballot, u32),
        bound: Bound,
        cx: &mut Context<'_, Self>,
    ) {
        if self.config.estimation.is_none() {
            return;
        }
        let is_old = self.tolerance.told >= Some((ballot, number));
        // A bound from any node but our leader cannot be verified.
        let follows = self.leader().is_some_and(|(_, by)| by == ballot);
        if is_old || !follows {
            self.counters.stale += 1;
            return;
        }
        self.tolerance.told = Some((ballot, number));
        self.rest_on(bound, cx);
    }

    /// Our run is over: reports to the node that it appointed.
    pub(crate) fn report(
        &mut self,
        leader: Member,
        (ballot, answers, missing): (Ballot, u16, u16),
        cx: &mut Context<'_, Self>,
    ) {
        let is_wanted = |it: Estimation| it.source == Source::Feedback;
        if !self.config.estimation.is_some_and(is_wanted)
            || self.config.protocol.prefers()
            || answers == 0
        {
            return;
        }
        if leader == self.me {
            self.reported(ballot, answers, missing, cx);
        } else {
            cx.send(
                leader,
                Message::Feedback {
                    ballot,
                    answers,
                    missing,
                },
            );
        }
    }

    /// An initiator says how its run went. Each run counts once. O(1) until the pool is full.
    pub(crate) fn reported(
        &mut self,
        ballot: Ballot,
        answers: u16,
        missing: u16,
        cx: &mut Context<'_, Self>,
    ) {
        let Some(estimation) = self.config.estimation else {
            return;
        };
        let tolerance = &mut self.tolerance;
        let same = |it: &Report| it.ballot == ballot;
        let leads = self
            .leader
            .is_some_and(|it| it.member == self.me && !it.lost);
        if !leads
            || estimation.source != Source::Feedback
            || tolerance.reported >= Some(ballot)
            || tolerance.reports.iter().any(same)
        {
            self.counters.stale += 1;
            return;
        }
        tolerance.reports.push(Report {
            ballot,
            answers,
            missing,
        });
        if tolerance.reports.len() < usize::from(estimation.pool) {
            return;
        }
        let last = tolerance.reports.iter().map(|it| it.ballot).max();
        tolerance.reported = tolerance.reported.max(last);
        let mut misses = Misses::new();
        for report in tolerance.reports.drain(..) {
            misses.add(report.answers, report.missing);
        }
        // An initiator's own list is not among the lists that it draws from, and may lack us too.
        let others = u32::try_from(self.peers.iter().count()).unwrap_or(u32::MAX);
        let upper = misses.largest_churn(others, estimation.miss);
        let bound = Bound {
            source: Source::Feedback,
            upper: u16::try_from(upper.saturating_add(1)).unwrap_or(u16::MAX),
            miss: estimation.miss,
        };
        self.rest_on(bound, cx);
        let all: Vec<Member> = self.peers.iter().collect();
        self.tell_churn(bound, all, cx);
    }
}
