//! Nodes of selvedge-membership.

use selvedge_core::{Delta, Input, Member};
use selvedge_membership::{Command, Config, Event, KIND, Membership};

use crate::host::{Host, Hosted, member};
use crate::network::Network;

impl Hosted for Membership {
    const KIND: u8 = KIND;

    fn me(&self) -> Member {
        self.me()
    }

    fn failed(event: &Event) -> Option<Member> {
        match event {
            Event::Changed(Delta::Failed(member)) => Some(*member),
            _ => None,
        }
    }
}

/// A mesh in which each node knows all others.
pub(crate) fn settled(nodes: usize, seed: u64) -> Network<Host<Membership>> {
    let mut network = Network::new(seed, 0);
    // Few copies of updates while all join, lists that fit a frame, and unlimited hearsay: joining
    // is not measured.
    let joining = Config::default()
        .with_retransmit_factor(1)
        .with_frame_budget(u16::MAX)
        .with_hearsay_limit(0);
    for node in 0..nodes {
        let machine = Membership::new(member(node), joining.clone());
        let machine = machine.expect("settings that work");
        network.add(Host::new(node, seed, machine));
        let seeds = (node > 0).then(|| member(node / 2).id);
        let seeds = seeds.into_iter().collect();
        network.with(node, |peer, now, out| {
            peer.step(now, Input::Command(Command::Join { seeds }), out);
        });
        network.run_until(network.now + 110_000);
    }
    while network
        .peers
        .iter()
        .any(|peer| peer.machine().live() != nodes)
    {
        network.run_for(1);
    }
    for node in 0..nodes {
        network.with(node, |peer, now, out| {
            let config = Box::new(Config::default());
            peer.step(now, Input::Command(Command::SetConfig(config)), out);
        });
    }
    network
}
