//! Nodes of selvedge-celect.

use selvedge_celect::{Celect, Command, Config, KIND, Lowest};
use selvedge_core::{Delta, Input, Member, Sha256Sortition};

use super::Elects;
use crate::host::{Host, Hosted, member, place};
use crate::network::{Network, Out, Time};

impl Hosted for Celect {
    const KIND: u8 = KIND;

    fn me(&self) -> Member {
        self.me()
    }
}

impl Elects for Host<Celect> {
    fn leader(&self) -> Option<usize> {
        let (leader, _) = self.machine().leader()?;
        Some(place(leader.id))
    }

    fn begin(&mut self, now: Time, out: &mut Out<Time>) {
        self.step(now, Input::Command(Command::Elect), out);
    }

    fn lose(&mut self, now: Time, leader: usize, out: &mut Out<Time>) {
        let failed = Delta::Failed(member(leader));
        self.step(now, Input::Membership(failed), out);
    }
}

/// A mesh without a leader, in which each node knows all others.
pub(super) fn mesh(
    (nodes, loss, seed): (usize, u64, u64),
    config: Config,
) -> Network<Host<Celect>> {
    let mut network = Network::new(seed, loss);
    for node in 0..nodes {
        // A label for each trial, so that the lowest node is not the same in all trials.
        let by_hash = Lowest::new(Sha256Sortition, &seed.to_be_bytes());
        let machine = Celect::new(member(node), config, by_hash).expect("settings that work");
        network.add(Host::new(node, seed, machine));
        network.with(node, |peer, now, out| {
            for other in (0..nodes).filter(|&other| other != node) {
                let joined = Delta::Joined(member(other));
                peer.step(now, Input::Membership(joined), out);
            }
        });
    }
    network
}
