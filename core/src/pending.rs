//! Requests that wait for an answer.

// One question, and not the set of nodes around it, because these sets differ: an election counts nodes
// that have answered as votes, a lease has several renewals open and repeats none, and Camera counts copies
// for each node.

/// A question that waits for its answer, with the number of times it was asked again.
///
/// `T` identifies the question, so that an answer to it differs from an answer to an earlier
/// question: a ballot, the place where the next part of a list begins, the number of a renewal. The
/// protocol knows which nodes it asked and when an answer is overdue: it arms one timer for all its
/// questions, and calls [`again`](Self::again) when that ticks.
///
/// ```
/// use selvedge_core::Pending;
///
/// let mut part = Pending::new(0_u64);
/// // No answer came. The question is asked once more, and then given up.
/// assert!(part.again(1));
/// assert!(!part.again(1));
/// // The first part arrives after all, and the next one is asked for.
/// assert!(part.is_answered_by(&0));
/// part.ask(700);
/// assert!(!part.is_answered_by(&0), "it came twice");
/// assert!(part.again(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pending<T> {
    question: T,
    repeats: u8,
}

impl<T> Pending<T> {
    /// A question that is asked for the first time.
    #[must_use]
    pub const fn new(question: T) -> Self {
        Self {
            question,
            repeats: 0,
        }
    }

    /// Asks another question in place of this one, for the first time.
    pub fn ask(&mut self, question: T) {
        *self = Self::new(question);
    }

    /// Counts an overdue question. Returns true if it must be asked again: `limit` times at most.
    pub const fn again(&mut self, limit: u8) -> bool {
        let may = self.repeats < limit;
        if may {
            self.repeats += 1;
        }
        may
    }

    /// Notes a sign of life: the question may be asked again as often as at first.
    pub const fn renew(&mut self) {
        self.repeats = 0;
    }

    /// The question.
    #[must_use]
    pub const fn question(&self) -> &T {
        &self.question
    }
}

impl<T: PartialEq> Pending<T> {
    /// Returns true if an answer to `question` answers this question, and not an earlier one.
    #[must_use]
    pub fn is_answered_by(&self, question: &T) -> bool {
        self.question == *question
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_as_often_as_it_may_be_and_a_sign_of_life_renews_it() {
        for limit in [0, 1, 3, u8::MAX] {
            let mut pending = Pending::new(());
            for round in 0..2 {
                for nth in 0..limit {
                    assert!(pending.again(limit), "round {round}, {nth} of {limit}");
                }
                assert!(!pending.again(limit));
                assert!(!pending.again(limit), "it stays given up");
                pending.renew();
            }
            assert_eq!(pending, Pending::new(()));
        }
    }

    #[test]
    fn an_answer_to_an_earlier_question_is_told_from_one_to_this() {
        for repeats in 0..3 {
            let mut pending = Pending::new(0_u8);
            for question in 1..5 {
                for _ in 0..repeats {
                    assert!(pending.again(repeats));
                }
                pending.ask(question);
                assert_eq!(pending, Pending::new(question), "asked for the first time");
                assert_eq!(*pending.question(), question);
                for other in 0..6 {
                    assert_eq!(pending.is_answered_by(&other), other == question);
                }
            }
        }
    }
}
