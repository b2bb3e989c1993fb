//! Quorums: Raft's, and Pirogue's with its dynamic-linear voting.

/// The servers that decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Voters {
    /// The voters, the first of them the distinguished one.
    pub(super) base: Vec<usize>,
    /// The server that votes, and runs nothing.
    pub(super) witness: Option<usize>,
    pub(super) is_dynamic: bool,
}

impl Voters {
    /// Raft's: more than half of all.
    pub(crate) fn all(count: usize) -> Self {
        Self {
            base: (0..count).collect(),
            witness: None,
            is_dynamic: false,
        }
    }

    /// Pirogue's: a number of servers and a witness; more than half of the present ones, or half
    /// with the distinguished one (dynamic-linear voting).
    pub(crate) fn with_witness(servers: usize) -> Self {
        Self {
            base: (0..=servers).collect(),
            witness: Some(servers),
            is_dynamic: true,
        }
    }

    /// Returns true if these are enough.
    pub(crate) fn suffice(&self, has: impl Fn(usize) -> bool) -> bool {
        let votes = self.base.iter().filter(|it| has(**it)).count();
        let is_half = 2 * votes == self.base.len();
        let breaks_tie = self.is_dynamic && self.base.first().is_some_and(|it| has(*it));
        2 * votes > self.base.len() || is_half && breaks_tie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_half_suffice_and_half_with_the_first_where_voting_is_dynamic() {
        let raft = Voters::all(4);
        assert!(raft.suffice(|it| it < 3) && !raft.suffice(|it| it < 2));
        let mut pirogue = Voters::with_witness(4);
        assert!(pirogue.suffice(|it| it > 1) && !pirogue.suffice(|it| it < 2));
        pirogue.base = vec![0, 1, 2, 3];
        assert!(pirogue.suffice(|it| it < 2) && !pirogue.suffice(|it| it > 1));
    }
}
