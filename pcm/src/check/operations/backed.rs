//! Checks that enough followers of a unit returned the unit's answer.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use selvedge_core::{Member, NodeId};

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

/// Returns true if an answer of a term follows from the followers' results, under one of the lists that
/// the term had: an orchestrator may not know yet that one of its followers has left.
pub(super) fn is_backed(
    answer: &Answer,
    term: u16,
    lists: &[List],
    returned: &[(Member, Returned)],
) -> bool {
    let mut of_term = lists.iter().filter(|it| it.term == term);
    match said_by(answer) {
        Some(reported) => of_term.any(|it| wins(it, &reported, returned)),
        None if *answer == Answer::NoMajority => of_term.any(|it| nothing_wins(it, returned)),
        None => false,
    }
}

/// The result that an answer's voters returned; `None` if no votes made the answer.
fn said_by(answer: &Answer) -> Option<Returned> {
    match answer {
        Answer::Value(value) => Some(Returned::Value(value.clone())),
        Answer::Failed(why) => Some(Returned::Failed(*why)),
        Answer::NoMajority | Answer::Unanswered | Answer::Cancelled => None,
    }
}

/// Returns true if the named voters are enough of a list, each once, or no voter is named where no votes
/// made the answer. If `returned` is given, each of them must have returned the answer.
pub(super) fn have_voted(
    answer: &Answer,
    voters: &[NodeId],
    list: &List,
    returned: Option<&[(Member, Returned)]>,
) -> bool {
    let Some(reported) = said_by(answer) else {
        return voters.is_empty();
    };
    let electors = || list.electors.iter().filter(|it| voters.contains(&it.id));
    let has = |it: &Member| returned.is_none_or(|all| all.contains(&(*it, reported.clone())));
    let (votes, all) = (electors().count(), list.electors.len());
    let is_own = list
        .orchestrator()
        .is_some_and(|it| voters.contains(&it.id));
    votes == voters.len() && electors().all(has) && (2 * votes > all || 2 * votes == all && is_own)
}

/// Returns true if more than half of a list returned a value, or half with the orchestrator.
fn wins(list: &List, value: &Returned, returned: &[(Member, Returned)]) -> bool {
    let has = |it: &Member| {
        returned
            .iter()
            .any(|reported| reported.0 == *it && reported.1 == *value)
    };
    let votes = list.electors.iter().filter(|it| has(it)).count();
    let is_own = list.orchestrator().is_some_and(|it| has(&it));
    let all = list.electors.len();
    2 * votes > all || 2 * votes == all && is_own
}

/// Returns true if possibly no value can win. That is so if a follower has sent two results, because
/// either of them may have counted.
fn nothing_wins(list: &List, returned: &[(Member, Returned)]) -> bool {
    let of = |it: &Member| {
        returned
            .iter()
            .filter(move |reported| reported.0 == *it)
            .count()
    };
    let all = list.electors.len();
    let has_voted = list.electors.iter().filter(|it| of(it) > 0).count();
    if list.electors.iter().any(|it| of(it) > 1) {
        return true;
    }
    let values: BTreeSet<&Returned> = returned.iter().map(|it| &it.1).collect();
    // Half of the votes, with the orchestrator's, would be enough.
    2 * has_voted >= all && !values.into_iter().any(|it| wins(list, it, returned))
}
