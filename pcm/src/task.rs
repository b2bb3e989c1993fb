//! What is run, and what it returns.

use core::fmt;

use selvedge_core::Member;
use selvedge_core::wire::List;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bytes of the application.
pub type Bytes = List<u8, 24>;

/// Which task: the client that wants it, in one of its lives, and the client's number of it.
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

/// A function with what it is called with. Without state: it returns the same wherever it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub struct Function {
    /// Its script and its arguments, as the hosts of followers read them.
    pub code: Bytes,
    /// What it needs besides, in order.
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

    /// What names it, for equal functions return the same. O(length).
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

/// What a function returned at a follower.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Returned {
    /// A value.
    Value(Bytes),
    /// Nothing: it failed, or went beyond a limit of the follower.
    Failed,
}

/// What a task comes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "arbitrary", derive(arbitrary::Arbitrary))]
pub enum Answer {
    /// Enough followers of one unit returned this.
    Value(Bytes),
    /// The function failed at enough followers of one unit.
    Failed,
    /// All followers of its unit answered, and too few of them the same (erratum Q5).
    NoMajority,
    /// No unit answered in time, as often as it was given to one.
    Unanswered,
    /// The client did not want it any more.
    Cancelled,
}

impl From<Returned> for Answer {
    fn from(returned: Returned) -> Self {
        match returned {
            Returned::Value(value) => Self::Value(value),
            Returned::Failed => Self::Failed,
        }
    }
}

/// Which followers run a task.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Assignment {
    /// How often the task was given to a unit, this time included. Votes and answers name it
    /// (errata Q4 and Q7).
    pub attempt: u16,
    /// Counts the orchestrators of this attempt (erratum Q6).
    pub term: u16,
    /// The followers of its unit that got the task and are still here, the orchestrator first.
    pub electors: List<Member, 5>,
}

impl Assignment {
    /// The follower that collects the votes.
    #[must_use]
    pub fn orchestrator(&self) -> Option<Member> {
        self.electors.first().copied()
    }
}
