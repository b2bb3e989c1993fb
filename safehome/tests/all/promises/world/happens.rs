//! The events of a home: routines, faults, manual changes, and in the end none of them.

use core::num::NonZeroU16;

use selvedge_core::{NodeId, Span};
use selvedge_safehome::{
    Clause, Command, Comparison, Condition, Mode, Outcome, Priority, Routine, RoutineId, Step,
    Terms, Urgency, Wait, WaitCause,
};

use super::{Notified, Stop, World};
use crate::promises::oracle::Record;
use crate::promises::things::{Open, Report};

/// The most steps without faults until the end.
const ROUNDS: usize = 2_000;

impl World {
    pub(crate) fn happens(&mut self) {
        let nth = self.below(self.things.len() as u64) as usize;
        let now = self.now;
        match self.below(60) {
            0..4 => self.submits(),
            4..9 => {
                let again = self.below(6) == 0;
                self.things[nth].does(now, again);
            }
            9..15 => self.reports(nth),
            15 => self.things[nth].refuses(),
            16 => {
                self.things[nth].sent.pop();
            }
            17 => self.things[nth].loses_outcomes(),
            18 => self.gives_up(nth),
            19 | 20 => self.presses(nth),
            21 => {
                let state = self.things[nth].state;
                if self.things[nth].reports.len() < 6 {
                    self.things[nth].reports.push_back(Report::State(state));
                }
            }
            22 | 23 => self.flips(nth),
            24 => self.cancels(),
            25 if self.stops => self.restarts(),
            26 if self.stops => {
                let among = self.below(4) as usize;
                let stop = [Stop::BeforeStoring, Stop::Among(among)];
                self.stop = Some(stop[self.below(2) as usize]);
            }
            27 => {
                let is_known = self.below(2) == 0;
                self.answers(nth, is_known);
            }
            28 => self.sleeps(),
            29..57 => {
                self.flows();
            }
            _ => {
                let span = [1, 20, 100, 400, 3_000, 10_000][self.below(6) as usize];
                self.passes(self.now + Span::millis(span));
            }
        }
    }

    /// Nothing goes wrong for a moment. Returns whether anything was done.
    fn flows(&mut self) -> bool {
        let mut is_busy = false;
        for nth in 0..self.things.len() {
            is_busy |= self.things[nth].does(self.now, false);
            is_busy |= self.things[nth].open.is_some_and(|it| it.is_asked);
            self.answers(nth, true);
            while !self.things[nth].reports.is_empty() {
                is_busy = true;
                self.reports(nth);
            }
        }
        is_busy
    }

    fn submits(&mut self) {
        let asks = self.below(3) == 0;
        let steps = (0..1 + self.below(4)).map(|_| self.step(asks)).collect();
        let terms = self.terms();
        self.submit(Routine { steps }, terms);
    }

    fn terms(&mut self) -> Terms {
        if !self.has_terms {
            return Terms::default();
        }
        let urgency = Urgency(self.below(6).saturating_sub(3) as u8);
        let limit = NonZeroU16::MIN.saturating_add(self.below(2) as u16);
        let mode = match self.below(8) {
            0 => Mode::Parallel,
            1 => Mode::Single,
            2 | 3 => Mode::Restart,
            4 | 5 => Mode::Queued { limit },
            _ => return Terms::urgent(urgency),
        };
        let key = ["hall", "water"][self.below(2) as usize];
        Terms::of(key, mode).with_urgency(urgency)
    }

    fn submit(&mut self, routine: Routine<u8>, terms: Terms) {
        let id = RoutineId(self.oracle.records.len() as u64 + 1);
        let record = Record::new(routine.clone(), terms.clone());
        let (preview, now) = (
            self.hub
                .machine()
                .preview(self.now, routine.clone(), terms.clone()),
            self.now,
        );
        let restarts = self.counts.restarts;
        let command = if terms == Terms::default() {
            Command::Submit(routine)
        } else {
            Command::SubmitAs { routine, terms }
        };
        let new = record.clone();
        let notified = self.notify(command, |it| {
            let found = it.oracle.submitted(id, new);
            it.judge(found);
        });
        match (notified, preview) {
            (Notified::Refused(why), preview) => {
                self.counts.refused += 1;
                self.judge(self.oracle.refused(&record, why));
                if preview.err() != Some(why) {
                    self.broken("it was to be taken");
                }
            }
            (Notified::Taken, Ok(preview)) => {
                let waits = self.hub.machine().wait(id);
                let is_own = |it: &Wait| matches!(it.cause, WaitCause::Outcome | WaitCause::Hold);
                let is_so = waits.filter(|it| !is_own(it)) == preview.wait;
                // Another hub waits since another time.
                if self.counts.restarts == restarts && now == self.now && !is_so {
                    self.broken(&format!("{preview:?} was foreseen"));
                }
            }
            (Notified::Taken, Err(_)) => self.broken("it was to be refused"),
            (Notified::Lost, _) => {}
        }
    }

    fn step(&mut self, asks: bool) -> Step<u8> {
        let many = self.things.len() as u64;
        let mut step = Step::new(NodeId(self.below(many)), self.below(4) as u8);
        if self.below(4) == 0 {
            step.priority = Priority::BestEffort;
        }
        if self.below(4) == 0 {
            step.hold = Span::millis([50, 2_000, 20_000][self.below(3) as usize]);
            step.preemptible = self.has_terms && self.below(2) == 0;
        }
        if self.below(8) == 0 {
            step.timeout = Some(Span::millis([100, 30_000][self.below(2) as usize]));
        }
        if self.below(6) == 0 {
            step.undo = Some(4);
        }
        if asks && self.below(3) == 0 {
            let mut ask = || {
                Clause::Is(Condition {
                    device: NodeId(self.below(many)),
                    comparison: [Comparison::Equal, Comparison::Less][self.below(2) as usize],
                    value: self.below(4) as u8,
                })
            };
            let (first, second) = (ask(), ask());
            step.condition = Some(match self.below(4) {
                0 => Clause::All(vec![first, second]),
                1 => Clause::Any(vec![Clause::Not(Box::new(first)), second]),
                _ => first,
            });
        }
        step
    }

    /// Changes a device by hand, perhaps to the state of a command in flight.
    fn presses(&mut self, nth: usize) {
        let (state, is_its) = (self.below(4) as u8, self.below(2) == 0);
        let is_urgent = self.has_terms && self.below(2) == 0;
        let hand = is_urgent.then(|| Urgency(self.below(3) as u8));
        let thing = &mut self.things[nth];
        let sent = thing.sent.first().filter(|_| is_its);
        let state = sent.map_or(state, |it| it.value);
        if thing.state != state {
            thing.state = state;
            let report = match hand {
                Some(urgency) => Report::Hand(state, urgency),
                None => Report::State(state),
            };
            thing.reports.push_back(report);
            if is_its {
                thing.refuses();
            }
        }
    }

    fn flips(&mut self, nth: usize) {
        let is_up = !self.things[nth].is_up;
        self.things[nth].is_up = is_up;
        self.learns(nth);
    }

    fn cancels(&mut self) {
        let open = self.oracle.records.iter();
        let open = open.filter(|it| !it.1.is_finished());
        let open: Vec<RoutineId> = open.map(|it| *it.0).collect();
        if open.is_empty() {
            return;
        }
        let id = open[self.below(open.len() as u64) as usize];
        self.notify(Command::Cancel(id), |it| {
            it.oracle.records.get_mut(&id).unwrap().is_cancelled = true;
        });
    }

    fn gives_up(&mut self, nth: usize) {
        let is_received = |it: &Open| !it.is_old || it.is_asked;
        if let Some(open) = self.things[nth].open.filter(is_received) {
            self.says_all(nth, open.token);
            let is_open = |it: Open| it.token == open.token && is_received(&it);
            if self.things[nth].open.is_some_and(is_open) {
                self.lands(nth, open.token, Outcome::Unknown);
            }
        }
    }

    fn answers(&mut self, nth: usize, is_known: bool) {
        let Some(open) = self.things[nth].open.filter(|it| it.is_asked) else {
            return;
        };
        // By then the command is over.
        self.things[nth].sent.retain(|it| it.token != open.token);
        self.says_all(nth, open.token);
        let thing = &self.things[nth];
        let is_its = |it: Open| it.token == open.token && it.is_asked;
        if !thing.open.is_some_and(is_its) {
            return;
        }
        let (device, token, state) = (thing.id, open.token, thing.state);
        if !is_known {
            self.lands(nth, token, Outcome::Unknown);
            return;
        }
        let answer = Command::Answered {
            device,
            token,
            state,
        };
        let notified = self.notify(answer, |it| {
            if state == open.value {
                it.resolves(nth, Outcome::Done);
            } else {
                it.counts.not_found += 1;
                it.things[nth].open = None;
            }
        });
        if matches!(notified, Notified::Refused(_)) {
            self.broken("an answer is refused");
        }
    }

    /// Lets the host sleep for a while; then it receives all reports.
    fn sleeps(&mut self) {
        self.now = self.now + Span::millis([50, 1_000, 600_000][self.below(3) as usize]);
        for thing in &mut self.things {
            thing.expire(self.now);
        }
        for nth in 0..self.things.len() {
            while !self.things[nth].reports.is_empty() {
                self.reports(nth);
            }
        }
        self.passes(self.now);
    }

    /// Lets devices obey and answer from now on, and the host run. Everything ends in bounded time,
    /// and the order explains the end.
    pub(crate) fn faults_end(&mut self) {
        (self.stops, self.stop) = (false, None);
        self.rests();
        for nth in 0..self.things.len() {
            self.things[nth].is_up = true;
            self.learns(nth);
        }
        self.rests();
        let all = self.things.iter().map(|it| Step::new(it.id, it.state ^ 1));
        let (steps, before) = (all.collect(), self.counts.committed);
        self.submit(Routine { steps }, Terms::default());
        self.rests();
        if self.counts.committed != before + 1 {
            self.broken("a routine is not committed though nothing is wrong");
        }
    }

    fn rests(&mut self) {
        let end = self.now + self.bound();
        for _ in 0..ROUNDS {
            if self.flows() {
                continue;
            }
            let Some(due) = self.hub.deadline() else {
                break;
            };
            self.passes(due);
        }
        let is_open = self.oracle.records.values().any(|it| !it.is_finished());
        if is_open || self.now > end || !self.hub.machine().is_quiet() {
            self.broken("it does not come to rest in time");
        }
        if self.things.iter().any(|it| it.is_up && it.is_begun) {
            self.broken("nobody heard what came of restoring a device");
        }
        self.judge(self.oracle.explains(&self.beginning, &self.things));
    }

    /// The time in which all work ends: the commands of unfinished routines in turn, and the rollback of
    /// each device.
    fn bound(&self) -> Span {
        let lateness = self
            .things
            .iter()
            .map(|it| it.lateness)
            .max()
            .unwrap_or_default();
        let open = self.oracle.records.values().filter(|it| !it.is_finished());
        let steps = open.flat_map(|it| &it.routine.steps);
        let span = |it: &Step<u8>| {
            let timeout = it.timeout.unwrap_or(self.config.timeout);
            2 * (timeout.0 + lateness.0) + 3 * it.hold.0
        };
        let tries = u64::from(self.config.undo_attempts);
        let tries = tries * (self.config.undo_retry.0 + self.config.timeout.0 + lateness.0);
        let devices = self.things.len() as u64 * 2 * (tries + lateness.0);
        Span(self.config.patience.0 + steps.map(span).sum::<u64>() + devices)
    }
}
