//! Nodes of raft-rs.

use raft::StateRole;

use super::{Replicates, Sum, Update};
use crate::network::{Out, Time};
use crate::raft::Raft;

impl Replicates for Raft {
    fn leads(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    fn stand(&mut self, _now: Time, out: &mut Out<()>) {
        // A leader that is asked to lead refuses.
        let _taken = self.node.campaign();
        self.carry_out(out);
    }

    /// It would begin an election by itself after some time without heartbeats.
    fn lose(&mut self, now: Time, _leader: usize, is_first: bool, out: &mut Out<()>) {
        if is_first {
            self.stand(now, out);
        }
    }

    fn propose(&mut self, _now: Time, updates: &[Update], out: &mut Out<()>) {
        for update in updates {
            let proposed = self.node.propose(Vec::new(), update.to_vec());
            proposed.expect("it leads");
        }
        self.carry_out(out);
    }

    fn state(&self) -> &Sum {
        &self.state
    }
}
