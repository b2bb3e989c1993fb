//! The events that a trial has met.

/// The number of times that each event was met.
#[derive(Default, Debug)]
pub(super) struct Tally {
    pub(super) committed: usize,
    pub(super) aborted: usize,
    pub(super) sets: usize,
    pub(super) asks: usize,
    pub(super) ghosts: usize,
    pub(super) kills: usize,
    pub(super) refused: usize,
    pub(super) exact: usize,
    pub(super) conditions: usize,
    pub(super) previews: usize,
    pub(super) at_once: usize,
    pub(super) given_up: usize,
    pub(super) cut_short: usize,
}

impl Tally {
    /// A trial in which nothing good happens finds nothing. The limits are about half of the numbers of the
    /// usual seeds.
    pub(super) fn is_enough(&self) {
        for (what, found, least) in [
            ("committed", self.committed, 1_000),
            ("aborted", self.aborted, 1_000),
            ("sets", self.sets, 2_500),
            ("asks", self.asks, 700),
            ("ghosts", self.ghosts, 30),
            ("kills", self.kills, 1_000),
            ("refused", self.refused, 1_000),
            ("exact", self.exact, 400),
            ("conditions", self.conditions, 200),
            ("previews", self.previews, 1_500),
            ("at_once", self.at_once, 400),
            ("given_up", self.given_up, 300),
            ("cut_short", self.cut_short, 1),
        ] {
            assert!(found >= least, "{what}: {found} of {least}, {self:?}");
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.sets += other.sets;
        self.asks += other.asks;
        self.ghosts += other.ghosts;
        self.kills += other.kills;
        self.refused += other.refused;
        self.exact += other.exact;
        self.conditions += other.conditions;
        self.previews += other.previews;
        self.at_once += other.at_once;
        self.given_up += other.given_up;
        self.cut_short += other.cut_short;
    }
}
