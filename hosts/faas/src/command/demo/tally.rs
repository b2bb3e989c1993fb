//! The answers of each task.

use core::fmt::Write as _;
use core::time::Duration;
use std::collections::BTreeMap;

use selvedge_faas::client::Notified;
use selvedge_pcm::Answer;

use crate::command::gcd;

/// The answers of one task.
#[derive(Clone, Debug)]
struct Task {
    submitted: Duration,
    /// The number of times it was answered or refused.
    answers: u32,
    /// The first answer, and the time that it took.
    first: Option<(Notified, Duration)>,
}

/// The answers of all tasks.
#[derive(Debug, Default)]
pub(super) struct Tally {
    tasks: BTreeMap<u64, Task>,
    pub(super) kills: u32,
}

impl Tally {
    /// Adds the next task, which is submitted now.
    pub(super) fn submit(&mut self, now: Duration) -> u64 {
        let token = self.tasks.len() as u64 + 1;
        let task = Task {
            submitted: now,
            answers: 0,
            first: None,
        };
        self.tasks.insert(token, task);
        token
    }

    pub(super) fn receive(&mut self, notified: Notified, now: Duration) {
        let token = match &notified {
            Notified::Answered { token, .. }
            | Notified::Refused { token, .. }
            | Notified::Rejected { token, .. } => *token,
            Notified::Kept { .. } | Notified::NotKept { .. } => return,
        };
        if let Some(task) = self.tasks.get_mut(&token) {
            task.answers += 1;
            let took = now.saturating_sub(task.submitted);
            task.first.get_or_insert((notified, took));
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.tasks.values().filter(|it| it.answers == 0).count()
    }

    fn value(token: u64, task: &Task) -> &'static str {
        let Some((notified, _)) = &task.first else {
            return "no answer";
        };
        match notified {
            Notified::Answered { answer, .. } => match answer {
                Answer::Value(value) if value[..] == *gcd::right(token).as_bytes() => {
                    "the right value"
                }
                Answer::Value(_) => "a wrong value",
                Answer::Failed(_) => "failed",
                Answer::NoMajority => "no majority",
                Answer::Unanswered => "unanswered",
                Answer::Cancelled => "cancelled",
            },
            Notified::Refused { .. }
            | Notified::Rejected { .. }
            | Notified::Kept { .. }
            | Notified::NotKept { .. } => "refused",
        }
    }

    /// Returns true if each of at least one task had exactly one answer, the right one.
    pub(super) fn is_right(&self) -> bool {
        let is_right =
            |it: (&u64, &Task)| it.1.answers == 1 && Self::value(*it.0, it.1) == "the right value";
        !self.tasks.is_empty() && self.tasks.iter().all(is_right)
    }

    pub(super) fn table(&self) -> String {
        let mut rows: BTreeMap<(&str, u32), Vec<Duration>> = BTreeMap::new();
        for (token, task) in &self.tasks {
            let took = task.first.as_ref().map_or(Duration::ZERO, |it| it.1);
            let row = (Self::value(*token, task), task.answers);
            rows.entry(row).or_default().push(took);
        }
        let mut text = String::from(
            "\nanswer           answers  tasks  fastest   median    90 %  slowest (ms)\n",
        );
        for ((value, answers), mut took) in rows {
            took.sort_unstable();
            let at = |part: usize| {
                let at = (took.len() - 1) * part / 10;
                took.get(at).map_or(0, Duration::as_millis)
            };
            // Writing to a string does not fail.
            let _written = writeln!(
                text,
                "{value:<16} {answers:>7} {:>6} {:>8} {:>8} {:>7} {:>8}",
                took.len(),
                at(0),
                at(5),
                at(9),
                at(10),
            );
        }
        let verdict = match self.is_right() {
            true => "each task has exactly one answer, the right one",
            false => "NOT each task has exactly one right answer",
        };
        let (tasks, kills) = (self.tasks.len(), self.kills);
        let _written = writeln!(text, "{tasks} tasks, {kills} processes killed: {verdict}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(token: u64, value: &[u8]) -> Notified {
        Notified::Answered {
            token,
            answer: Answer::Value(value.iter().copied().collect()),
            voters: Vec::new(),
            unit: None,
        }
    }

    #[test]
    fn a_task_without_answer_or_with_two_or_with_a_wrong_one_is_seen() {
        let right = gcd::right(1).into_bytes();
        let mut tally = Tally::default();
        assert!(!tally.is_right(), "no task at all");
        assert_eq!(tally.submit(Duration::ZERO), 1);
        assert!(!tally.is_right());
        assert_eq!(tally.waiting(), 1);
        tally.receive(answer(1, &right), Duration::from_millis(7));
        assert!(tally.is_right());
        assert!(
            tally
                .table()
                .contains("the right value        1      1        7")
        );
        tally.receive(answer(1, &right), Duration::from_millis(8));
        assert!(!tally.is_right());
        let mut tally = Tally::default();
        tally.submit(Duration::ZERO);
        tally.receive(answer(1, b"wrong"), Duration::from_millis(7));
        assert!(!tally.is_right());
        assert!(tally.table().contains("NOT each task"));
    }
}
