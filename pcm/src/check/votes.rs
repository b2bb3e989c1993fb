//! The result of counting votes, without a network (erratum Q5).

use alloc::vec::Vec;

use selvedge_core::Member;

use super::party::one;
use crate::poll::Poll;
use crate::published::Rules;
use crate::{Answer, Published, Returned};

/// The result of votes at an orchestrator that counts them correctly. Electors have ids from 1, and the
/// first is the orchestrator. Each vote is an elector and the value that it returned, in order of arrival.
#[must_use]
pub fn verdict(electors: u64, votes: &[(u64, u8)], rules: &[Published]) -> Option<Answer> {
    let electors: Vec<Member> = (1..=electors).map(|id| Member::new(id, 0)).collect();
    let orchestrator = *electors.first()?;
    let rules = Rules::published(rules);
    let mut poll = Poll::default();
    let mut reported = None;
    for &(by, value) in votes {
        poll.cast(&electors, Member::new(by, 0), Returned::Value(one(value)));
        let now = match rules.first_half() {
            true => poll.first_half(&electors, orchestrator),
            false => poll.verdict(&electors, orchestrator),
        };
        // An answer that was sent is not taken back.
        reported = reported.or(now);
    }
    reported
}
