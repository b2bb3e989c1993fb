//! Functions, their results, and tasks.

use core::fmt;

use selvedge_core::wire::List;
use selvedge_core::{Member, NodeId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Bytes of the application.
pub type Bytes = List<u8, 24>;

/// The id of a task: the client that submitted it, in one of its lives, and the client's number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct TaskId {
    /// The client.
    pub client: Member,
    /// Counts the client's tasks in this life: from 1, one after another.
    pub number: u64,
}

/// A library that a function needs: the first 64 bits of its content's SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Library(pub u64);

/// The libraries that a follower keeps.
pub type Libraries = List<Library, 2>;

/// A function with its arguments. It has no state: it returns the same at any follower.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Function {
    /// Its script and its arguments, as the hosts of followers read them.
    pub code: Bytes,
    /// The libraries that it needs, in order.
    pub libraries: Libraries,
}

impl Function {
    /// A function that needs no library.
    #[must_use]
    pub fn new(code: &[u8]) -> Self {
        Self {
            code: code.iter().copied().collect(),
            libraries: List::new(),
        }
    }

    /// The digest that identifies it: functions with equal digests return the same. O(length).
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut hash = Sha256::new();
        // Libraries come first, with their number, so no code can imitate another function.
        hash.update((self.libraries.len() as u64).to_be_bytes());
        for library in self.libraries.iter() {
            hash.update(library.0.to_be_bytes());
        }
        hash.update(&*self.code);
        Digest(hash.finalize().into())
    }
}

/// A function's SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub [u8; 32]);

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .take(4)
            .try_for_each(|it| write!(f, "{it:02x}"))
    }
}

/// The result of a function at a follower.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Returned {
    /// A value.
    Value(Bytes),
    /// Nothing: it failed, or went beyond a limit of the follower. Votes with equal kinds are equal.
    Failed(Failure),
}

impl Returned {
    /// Returns true if this result is the answer.
    pub(crate) fn comes_to(&self, answer: &Answer) -> bool {
        match (self, answer) {
            (Self::Value(value), Answer::Value(reported)) => value == reported,
            (Self::Failed(why), Answer::Failed(reported)) => why == reported,
            _ => false,
        }
    }
}

/// The reason why a function returned nothing. Hosts with equal limits and settings agree on it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Error,
)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Failure {
    /// Its code is no call, calls a function that its libraries lack, or passes wrong arguments.
    #[error("it calls no function: call an existing one with the arguments that it takes")]
    NoFunction,
    /// A library that it needs cannot be loaded.
    #[error("a library that it needs is missing: load it where followers get libraries")]
    NoLibrary,
    /// Its code is longer than a follower keeps, or it needs more libraries.
    #[error(
        "its code is too long, or needs too many libraries: shorten it, or raise `code` and \
         `libraries` of followers"
    )]
    TooLong,
    /// It did something forbidden, or reported that it failed.
    #[error("it trapped: mend the function, or call it with other arguments")]
    Trapped,
    /// It took more time, or more steps, than it may.
    #[error(
        "it took too long: split its work, or raise `time` of followers, or their hosts' limit"
    )]
    Time,
    /// It asked for more memory than it may have.
    #[error("it asked for too much memory: take less, or raise `memory` of followers")]
    Memory,
    /// Its result is longer than a result may be.
    #[error(
        "its result is too long: return less, or raise `Limits::result` and `result` of followers"
    )]
    Result,
    /// The host could not run it, or has a defect. Others may return a value.
    #[error("the host could not run it: look at the logs of the hosts of its unit")]
    Host,
}

/// The followers that voted for an answer, each once, by id; empty if no votes made it. At most
/// [`Limits::UNIT_MOST`](crate::Limits::UNIT_MOST).
pub type Voters = List<NodeId, 5>;

/// The answer to a task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Answer {
    /// Enough followers of one unit returned this.
    Value(Bytes),
    /// The function failed in the same way at enough followers of one unit.
    Failed(Failure),
    /// No value can get enough votes of its unit any more (erratum Q5).
    NoMajority,
    /// No unit answered in time, in any attempt.
    Unanswered,
    /// The client cancelled it.
    Cancelled,
}

impl From<Returned> for Answer {
    fn from(returned: Returned) -> Self {
        match returned {
            Returned::Value(value) => Self::Value(value),
            Returned::Failed(why) => Self::Failed(why),
        }
    }
}

/// The followers that run a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Assignment {
    /// The number of times that the task was given to a unit, this time included. Votes and answers name it
    /// (errata Q4 and Q7).
    pub attempt: u16,
    /// Counts the orchestrators of this attempt (erratum Q6).
    pub term: u16,
    /// The followers of its unit that got the task and have not left it, the orchestrator first.
    pub electors: List<Member, 5>,
}

impl Assignment {
    /// The follower that collects the votes.
    #[must_use]
    pub fn orchestrator(&self) -> Option<Member> {
        self.electors.first().copied()
    }

    /// Returns true if these followers can have made this answer: enough of the electors, each once, by
    /// id; empty if no votes made it. O(m^2) for m electors.
    pub(crate) fn can_have_made(&self, answer: &Answer, voters: &[NodeId]) -> bool {
        match answer {
            Answer::NoMajority | Answer::Unanswered | Answer::Cancelled => voters.is_empty(),
            Answer::Value(_) | Answer::Failed(_) => {
                let orchestrator = self.orchestrator().map(|it| it.id);
                let with_own = orchestrator.is_some_and(|it| voters.contains(&it));
                let is_elector = |it: &NodeId| self.electors.iter().any(|other| other.id == *it);
                voters.len() <= self.electors.len()
                    && voters.is_sorted_by(|one, next| one < next)
                    && voters.iter().all(is_elector)
                    && wins(voters.len(), self.electors.len(), with_own)
            }
        }
    }
}

/// Returns true if `votes` of `all` electors decide: more than half, or half with the orchestrator.
pub(crate) const fn wins(votes: usize, all: usize, with_own: bool) -> bool {
    2 * votes > all || 2 * votes == all && with_own
}
