//! Tasks that come at a steady rate, and their answers.

use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

use selvedge_core::Span;
use selvedge_faas::client::{Client, Notified};
use selvedge_pcm::Answer;

use super::times::Times;
use crate::command::{Failure, gcd};

/// The number of tasks and their times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    /// The token of the first task; each task has another.
    pub(super) first: u64,
    pub(super) count: u64,
    /// The time between two tasks. They are submitted then, whether earlier ones are answered or
    /// not.
    pub(super) every: Duration,
    /// The time to wait after the last task.
    pub(super) patience: Duration,
}

/// The answers to the tasks.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    /// The times of right answers, from when the task was due.
    pub(super) times: Times,
    /// The number of wrong answers.
    pub(super) wrong: usize,
    /// The number of tasks that the gateways refused.
    pub(super) refused: usize,
    /// The number of tasks without an answer.
    pub(super) missing: usize,
    /// The largest delay of a submission: this process was too slow.
    pub(super) late: Duration,
}

impl Answers {
    pub(super) const fn is_right(&self) -> bool {
        self.wrong == 0 && self.refused == 0 && self.missing == 0 && self.times.len() > 0
    }
}

impl Stream {
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub(super) fn run(self, client: &Client) -> Result<Answers, Failure> {
        let (begun, mut open) = (Instant::now(), BTreeMap::new());
        let (mut took, mut answers, mut next) = (Vec::new(), Answers::default(), 0);
        let at = |nth: u64| {
            self.every
                .saturating_mul(u32::try_from(nth).unwrap_or(u32::MAX))
        };
        let end = at(self.count) + self.patience;
        while next < self.count || !open.is_empty() {
            let now = begun.elapsed();
            if now > end {
                break;
            }
            if next < self.count && at(next) <= now {
                let token = self.first + next;
                client.submit(token, gcd::function(token)?);
                open.insert(token, at(next));
                answers.late = answers.late.max(now.saturating_sub(at(next)));
                next += 1;
                continue;
            }
            let until = if next < self.count { at(next) } else { end };
            let wait = Span::micros(until.saturating_sub(now).as_micros() as u64);
            let Some(notified) = client.wait(wait) else {
                continue;
            };
            let now = begun.elapsed();
            match notified {
                Notified::Answered { token, answer, .. } => {
                    let submitted = open.remove(&token);
                    match is_right(token, &answer) {
                        true => took.extend(submitted.map(|it| now.saturating_sub(it))),
                        false => answers.wrong += 1,
                    }
                }
                Notified::Refused { token, .. } | Notified::Rejected { token, .. } => {
                    open.remove(&token);
                    answers.refused += 1;
                }
                Notified::Kept { .. } | Notified::NotKept { .. } => {}
            }
        }
        answers.missing = open.len() + (self.count - next) as usize;
        answers.times = Times::of(took);
        Ok(answers)
    }
}

fn is_right(token: u64, answer: &Answer) -> bool {
    matches!(answer, Answer::Value(value) if value[..] == *gcd::right(token).as_bytes())
}
