//! Nodes of raft-rs. Their log holds nothing but the entries with which leaders begin.

use super::Elects;
use crate::network::{Network, Out, Time};
use crate::raft::{Raft, Variant};

impl Elects for Raft {
    fn leader(&self) -> Option<usize> {
        self.leader()
    }

    /// Elections begin by themselves.
    fn begin(&mut self, _now: Time, _out: &mut Out<()>) {}

    fn lose(&mut self, _now: Time, _leader: usize, _out: &mut Out<()>) {}
}

/// A cluster without a leader.
pub(super) fn cluster((nodes, loss, seed): (usize, u64, u64), pre_vote: bool) -> Network<Raft> {
    let variant = Variant {
        pre_vote,
        ..Variant::default()
    };
    crate::raft::cluster((nodes, loss, seed), variant)
}
