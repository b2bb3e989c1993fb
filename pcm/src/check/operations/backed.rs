//! Whether enough followers of a unit returned what it answered.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::Member;

use crate::{Answer, Assignment, Returned};

/// The followers that run a task at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    pub(super) term: u16,
    electors: Vec<Member>,
}

impl List {
    pub(super) fn of(assignment: &Assignment) -> Self {
        Self {
            term: assignment.term,
            electors: assignment.electors.to_vec(),
        }
    }

    pub(super) fn orchestrator(&self) -> Option<Member> {
        self.electors.first().copied()
    }
}

/// Whether an answer of a term follows from what followers returned, under one of the lists that the
/// term had: an orchestrator may not have heard yet that one of its followers is gone.
pub(super) fn is_backed(
    answer: &Answer,
    term: u16,
    lists: &[List],
    returned: &[(Member, Returned)],
) -> bool {
    let mut of_term = lists.iter().filter(|it| it.term == term);
    match answer {
        Answer::Value(value) => {
            of_term.any(|it| wins(it, &Returned::Value(value.clone()), returned))
        }
        Answer::Failed => of_term.any(|it| wins(it, &Returned::Failed, returned)),
        Answer::NoMajority => of_term.any(|it| nothing_wins(it, returned)),
        Answer::Unanswered | Answer::Cancelled => false,
    }
}

/// Whether more than half of a list returned a value, or half with the orchestrator.
fn wins(list: &List, value: &Returned, returned: &[(Member, Returned)]) -> bool {
    let has = |it: &Member| {
        returned
            .iter()
            .any(|said| said.0 == *it && said.1 == *value)
    };
    let votes = list.electors.iter().filter(|it| has(it)).count();
    let is_own = list.orchestrator().is_some_and(|it| has(&it));
    let all = list.electors.len();
    2 * votes > all || 2 * votes == all && is_own
}

/// Whether no value can win. Where a follower has said two things, of which one may have counted, it
/// may be so.
fn nothing_wins(list: &List, returned: &[(Member, Returned)]) -> bool {
    let of = |it: &Member| returned.iter().filter(move |said| said.0 == *it).count();
    let all = list.electors.len();
    let has_voted = list.electors.iter().filter(|it| of(it) > 0).count();
    if list.electors.iter().any(|it| of(it) > 1) {
        return true;
    }
    let values: BTreeSet<&Returned> = returned.iter().map(|it| &it.1).collect();
    // Half of the votes, with the orchestrator's, would be enough.
    2 * has_voted >= all && !values.into_iter().any(|it| wins(list, it, returned))
}
