//! A node of foca.

use core::num::NonZeroU32;
use core::time::Duration;

use chacha20::ChaCha8Rng;
use foca::{
    Config, Foca, Identity, Member, NoCustomBroadcast, Notification, PostcardCodec, Runtime, Timer,
};
use rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::network::{Network, Out, Peer, Time};

/// Four bytes: the node, and in the upper bits the number of times that it had to take a new
/// identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Id(u32);

impl Id {
    fn node(self) -> usize {
        (self.0 & 0xFF_FFFF) as usize
    }
}

impl Identity for Id {
    type Addr = u32;

    fn renew(&self) -> Option<Self> {
        Some(Self(self.0.wrapping_add(1 << 24)))
    }

    fn addr(&self) -> u32 {
        self.0 & 0xFF_FFFF
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.0 > adversary.0
    }
}

/// Settings of foca.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// Probes only, as in SWIM.
    Pure,
    /// Its preset for local networks, which also gossips five times a period.
    Lan,
}

pub(crate) struct Theirs(Foca<Id, PostcardCodec, ChaCha8Rng, NoCustomBroadcast>);

struct Outside<'a> {
    now: Time,
    out: &'a mut Out<Timer<Id>>,
}

impl Runtime<Id> for Outside<'_> {
    fn notify(&mut self, notification: Notification<'_, Id>) {
        if let Notification::MemberDown(id) = notification {
            self.out.failed.push(id.node());
        }
    }

    fn send_to(&mut self, to: Id, data: &[u8]) {
        self.out.sends.push((to.node(), data.to_vec()));
    }

    fn submit_after(&mut self, event: Timer<Id>, after: Duration) {
        let at = self.now + after.as_micros() as Time;
        self.out.timers.push((at, event));
    }
}

impl Peer for Theirs {
    type Timer = Timer<Id>;

    fn receive(&mut self, now: Time, datagram: &[u8], out: &mut Out<Timer<Id>>) {
        // Refused input is dropped, as a host does.
        let _taken = self.0.handle_data(datagram, Outside { now, out });
    }

    fn tick(&mut self, now: Time, timer: Timer<Id>, out: &mut Out<Timer<Id>>) {
        let _taken = self.0.handle_timer(timer, Outside { now, out });
    }
}

/// A cluster in which each node knows all others.
pub(crate) fn settled(nodes: usize, seed: u64, mode: Mode) -> Network<Theirs> {
    let size = NonZeroU32::new(nodes as u32).expect("some nodes");
    let lan = Config::new_lan(size);
    let config = match mode {
        Mode::Lan => lan,
        Mode::Pure => Config {
            periodic_gossip: None,
            periodic_announce: None,
            periodic_announce_to_down_members: None,
            ..lan
        },
    };
    let mut network = Network::new(seed, 0);
    for node in 0..nodes {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(node as u64);
        let foca = Foca::new(Id(node as u32), config.clone(), rng, PostcardCodec);
        network.add(Theirs(foca));
    }
    for node in 0..nodes {
        // Spread over a period, so that probes do not come in step.
        network.run_until(node as Time * 1_000_000 / nodes as Time);
        network.with(node, |peer, now, out| {
            let all = (0..nodes as u32).filter(|&other| other != node as u32);
            let all = all.map(|other| Member::alive(Id(other)));
            let applied = peer.0.apply_many(all, false, Outside { now, out });
            applied.expect("a fresh list");
        });
    }
    network
}
