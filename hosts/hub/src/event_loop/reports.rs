//! A buffer of a device's reports, until the event loop takes them.
//!
//! A device may send more reports than a disk keeps up with. So the event loop's queue has at most one mark of
//! each device, and the reports wait beside it, within [`ROOM`]. The answers to commands all wait, each in
//! its place: a device has one order at a time.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use selvedge_core::NodeId;
use selvedge_routine::State;

use super::Request;
use crate::device::Report;

/// The number of unsolicited reports that may wait, for one device. Beyond that, a state replaces the last
/// one.
pub const ROOM: usize = 16;

/// The reports of a device that the event loop has not taken.
#[derive(Debug, Default)]
pub struct Reports(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    all: VecDeque<Report>,
    /// The number of unsolicited reports.
    unasked: usize,
    /// True if the event loop's queue has a mark of the device.
    is_marked: bool,
}

/// A function that passes reports of a device to the event loop.
pub fn reporter(device: NodeId, to: Sender<Request>) -> impl Fn(Report) + Send + 'static {
    let reports = Arc::<Reports>::default();
    move |report| {
        if reports.put(report) {
            // A event loop that has stopped receives nothing, and the process ends.
            drop(to.send(Request::Reports(device, Arc::clone(&reports))));
        }
    }
}

impl Reports {
    /// Takes all waiting reports, in their order.
    pub(super) fn take(&self) -> VecDeque<Report> {
        let mut waiting = self.lock();
        core::mem::take(&mut *waiting).all
    }

    /// Adds a report. Returns true if a mark is needed.
    fn put(&self, report: Report) -> bool {
        let mut waiting = self.lock();
        waiting.push(report);
        !core::mem::replace(&mut waiting.is_marked, true)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn is_answer(report: &Report) -> bool {
    matches!(report, Report::Outcome { .. } | Report::Answered { .. })
}

impl Waiting {
    fn push(&mut self, report: Report) {
        if is_answer(&report) {
            return self.all.push_back(report);
        }
        if let (Some(Report::Observed(last)), Report::Observed(state)) =
            (self.all.back_mut(), &report)
            && (last == state || self.unasked >= ROOM)
        {
            last.clone_from(state);
            return;
        }
        self.all.push_back(report);
        self.unasked += 1;
        if self.unasked > ROOM {
            self.condense();
        }
    }

    /// Condenses the reports since the last answer, so that the house still ends in the same state and learns
    /// that the device was down.
    fn condense(&mut self) {
        let after = self.all.iter().rposition(is_answer).map_or(0, |it| it + 1);
        let mut since = Since::default();
        for report in self.all.drain(after..) {
            self.unasked = self.unasked.saturating_sub(1);
            since.take(report);
        }
        for report in since.reports() {
            self.unasked += 1;
            self.all.push_back(report);
        }
    }
}

/// A summary of the reports since an answer.
#[derive(Default)]
struct Since {
    /// A report that it was up before it went down: it ends an earlier trouble.
    was_there: Option<Report>,
    was_down: bool,
    is_up: bool,
    trouble: Option<String>,
    state: Option<State>,
}

impl Since {
    fn take(&mut self, report: Report) {
        match report {
            Report::Down => {
                let up = self.is_up.then_some(Report::Up);
                let sign = up.or_else(|| self.state.take().map(Report::Observed));
                *self = Self {
                    was_there: sign.or_else(|| self.was_there.take()),
                    was_down: true,
                    trouble: self.trouble.take(),
                    ..Self::default()
                };
            }
            Report::Up => (self.is_up, self.trouble) = (true, None),
            Report::Observed(state) => (self.state, self.trouble) = (Some(state), None),
            Report::Trouble(why) => self.trouble = Some(why),
            Report::Outcome { .. } | Report::Answered { .. } => {}
        }
    }

    fn reports(self) -> impl Iterator<Item = Report> {
        let there = self.was_there;
        let down = self.was_down.then_some(Report::Down);
        let up = self.is_up.then_some(Report::Up);
        let state = self.state.map(Report::Observed);
        let trouble = self.trouble.map(Report::Trouble);
        let ended = there.into_iter().chain(down);
        ended.chain(up).chain(state).chain(trouble)
    }
}

#[cfg(test)]
mod tests {
    use core::fmt::Write as _;
    use std::sync::mpsc::channel;

    use chacha20::ChaCha12Rng;
    use chacha20::rand_core::{Rng as _, SeedableRng as _};
    use selvedge_safehome::Outcome;

    use super::*;

    fn taken(request: Request) -> Vec<Report> {
        let Request::Reports(_, reports) = request else {
            panic!("{request:?}");
        };
        reports.take().into()
    }

    fn answer(token: u64) -> Report {
        let outcome = Outcome::Done;
        Report::Outcome { token, outcome }
    }

    #[test]
    fn a_flood_of_states_is_one_mark_and_little_else_and_ends_in_the_last_one() {
        let (to, requests) = channel();
        let notify = reporter(NodeId(1), to);
        for nth in 0..100_000 {
            notify(Report::Observed(nth.into()));
            if nth % 50_000 == 7 {
                notify(answer(nth as u64));
            }
        }
        let mut marks: Vec<_> = requests.try_iter().collect();
        assert_eq!(marks.len(), 1);
        let all = taken(marks.remove(0));
        assert!(all.len() <= ROOM + 4, "{}", all.len());
        assert_eq!(all.last(), Some(&Report::Observed(99_999.into())));
        let answers: Vec<_> = all.iter().filter(|it| is_answer(it)).collect();
        assert_eq!(answers, [&answer(7), &answer(50_007)]);
        // A state that was reported before an answer is not passed on after it.
        assert_eq!(all[7], Report::Observed(7.into()));
        assert_eq!(all[8], answer(7));
        notify(Report::Up);
        assert_eq!(requests.try_iter().count(), 1, "it is marked again");
    }

    #[test]
    fn states_are_told_one_by_one_while_there_is_room_and_then_the_last_one_is_replaced() {
        let (to, requests) = channel();
        let notify = reporter(NodeId(1), to);
        let seen = |nth: usize| Report::Observed((nth as i32).into());
        for nth in 0..ROOM {
            notify(seen(nth));
            // A repetition.
            notify(seen(nth));
        }
        let mut notified: Vec<_> = (0..ROOM).map(seen).collect();
        assert_eq!(taken(requests.recv().unwrap()), notified);
        for nth in 0..2 * ROOM {
            notify(seen(nth));
        }
        notified[ROOM - 1] = seen(2 * ROOM - 1);
        assert_eq!(taken(requests.recv().unwrap()), notified);
    }

    #[test]
    fn a_device_that_comes_and_goes_without_pause_was_gone_and_ends_as_it_is() {
        let (to, requests) = channel();
        let notify = reporter(NodeId(1), to);
        for nth in 0..10_000 {
            notify(Report::Up);
            notify(Report::Observed(nth.into()));
            notify(Report::Down);
        }
        notify(Report::Up);
        let all = taken(requests.recv().unwrap());
        assert!(all.len() <= ROOM, "{all:?}");
        assert_eq!(all[all.len() - 2..], [Report::Down, Report::Up]);
    }

    /// The knowledge of a house after each answer.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Seen {
        answer: Option<Report>,
        /// True if the device was down meanwhile.
        had_ended: bool,
        is_up: bool,
        /// The state since it came up.
        state: Option<State>,
        /// The reason why it does not answer.
        trouble: Option<String>,
    }

    fn seen(reports: &[Report]) -> Vec<Seen> {
        let mut all = Vec::new();
        let mut now = Seen::default();
        for it in reports {
            match it {
                Report::Up => (now.is_up, now.trouble) = (true, None),
                Report::Down => (now.had_ended, now.is_up, now.state) = (true, false, None),
                Report::Observed(it) => (now.state, now.trouble) = (Some(it.clone()), None),
                Report::Trouble(why) => now.trouble = Some(why.clone()),
                Report::Outcome { .. } | Report::Answered { .. } => {
                    all.push(now.clone());
                    (now.answer, now.had_ended) = (Some(it.clone()), false);
                }
            }
        }
        all.push(now);
        all
    }

    #[test]
    fn whatever_is_said_is_bounded_and_the_house_ends_the_same() {
        for seed in 0..300 {
            let mut rng = ChaCha12Rng::seed_from_u64(seed);
            let (to, requests) = channel();
            let notify = reporter(NodeId(1), to);
            let (mut reported, mut notified, mut answers) = (Vec::new(), Vec::new(), 0);
            let mut trace = String::new();
            for nth in 0..400 {
                let report = match rng.next_u32() % 40 {
                    0 if answers < 3 => {
                        answers += 1;
                        answer(nth)
                    }
                    1..10 => Report::Up,
                    10..15 => Report::Down,
                    it @ 15..20 => Report::Trouble(format!("trouble {it}")),
                    // A device that is down sends no state.
                    other => {
                        reported.push(Report::Up);
                        notify(Report::Up);
                        Report::Observed(((other % 5) as i32).into())
                    }
                };
                writeln!(trace, "{report:?}").unwrap();
                reported.push(report.clone());
                notify(report);
                if rng.next_u32() % 60 == 0 {
                    let new: Vec<_> = requests.try_iter().flat_map(taken).collect();
                    assert!(new.len() <= ROOM + 4 * 4, "seed {seed}: {}", new.len());
                    notified.extend(new);
                    answers = 0;
                }
            }
            notified.extend(requests.try_iter().flat_map(taken));
            assert_eq!(seen(&reported), seen(&notified), "seed {seed}: {trace}");
        }
    }
}
