//! Nodes of selvedge-replica.

use selvedge_core::{Delta, Input, Member};
use selvedge_replica::{Command, Config, Configuration, KIND, Replica};

use super::{Replicates, Sum, Update};
use crate::host::{Host, Hosted, member};
use crate::network::{Network, Out, Time};

impl Hosted for Replica<Sum> {
    const KIND: u8 = KIND;

    fn me(&self) -> Member {
        self.me()
    }
}

impl Replicates for Host<Replica<Sum>> {
    fn leads(&self) -> bool {
        self.machine().leads()
    }

    fn stand(&mut self, now: Time, out: &mut Out<Time>) {
        self.step(now, Input::Command(Command::Campaign), out);
    }

    fn lose(&mut self, now: Time, leader: usize, _is_first: bool, out: &mut Out<Time>) {
        let failed = Delta::Failed(member(leader));
        self.step(now, Input::Membership(failed), out);
    }

    fn propose(&mut self, now: Time, updates: &[Update], out: &mut Out<Time>) {
        let command = match updates {
            [update] => Command::Propose(*update),
            _ => Command::ProposeAll(updates.to_vec()),
        };
        self.step(now, Input::Command(command), out);
    }

    fn state(&self) -> &Sum {
        self.machine().state().expect("all members hold the state")
    }
}

/// A group without a leader.
pub(super) fn group(nodes: usize, seed: u64) -> Network<Host<Replica<Sum>>> {
    let mut network = Network::new(seed, 0);
    let first = Configuration::of((0..nodes).map(member));
    for node in 0..nodes {
        let machine = Replica::new(member(node), Config::new(), first.clone(), Sum::default());
        network.add(Host::new(node, seed, machine.expect("settings that work")));
    }
    network
}
