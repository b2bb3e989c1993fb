//! A quiet building allocates nothing: pings, answers that are no news, and their effects.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../../core/tests/counting/mod.rs"]
mod counting;

extern crate alloc;

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Delta, Effect, Input, Machine, Member, NodeId};
use selvedge_groups as groups;
use selvedge_groups::{Node, Place, Selection, Start};
use selvedge_kgroup::{
    Command, Config, Event, Kgroup, LeaderEvent, LeaderTimer, Site, Timer, devices,
};

use counting::{ByHand, Host, allocations};

type Message = <Kgroup as Machine>::Message;

/// Nodes: the first node that stands leads each group.
struct Building {
    nodes: Vec<ByHand<Kgroup>>,
    rng: ChaCha8Rng,
    wire: VecDeque<(usize, Member, Message)>,
    pings: Vec<(usize, NodeId)>,
}

impl Building {
    fn new(nodes: u64, devices: u64) -> Self {
        let place = |at: u64| Place([i32::try_from(at).unwrap(), 0, 0]);
        let smart = (0..nodes).map(|at| Node::new(at, place(at)));
        let simple = (0..devices).map(|at| (NodeId(1_000 + at), place(at)));
        let selection = Selection::new().with_failures(1);
        let site = Arc::new(Site::new(selection, smart, simple, 4).unwrap());
        let config = Config::new();
        let node = |id| {
            let me = Member::new(id, 0);
            let node = Kgroup::new(me, config, Arc::clone(&site), Start::Fresh);
            ByHand::new(node.unwrap())
        };
        let mut building = Self {
            nodes: (0..nodes).map(node).collect(),
            rng: ChaCha8Rng::seed_from_u64(1),
            wire: VecDeque::with_capacity(4_096),
            pings: Vec::with_capacity(4_096),
        };
        for at in 0..building.nodes.len() {
            building.step(at, Input::Command(Command::SetEpoch(1)));
            for id in (0..nodes).filter(|id| *id != at as u64) {
                let delta = Delta::Joined(Member::new(id, 0));
                building.step(at, Input::Membership(delta));
            }
        }
        // Each member of a group stands; the first one leads.
        let groups: Vec<_> = site.groups().collect();
        for group in groups {
            for at in 0..building.nodes.len() {
                let stand = Timer::Groups(groups::Timer::Lead(group));
                building.step(at, Input::Tick(stand));
                building.carry();
            }
        }
        building
    }

    fn step(&mut self, at: usize, input: Input<Kgroup>) -> u64 {
        let Self {
            nodes,
            rng,
            wire,
            pings,
        } = self;
        let me = nodes[at].machine().me();
        allocations(|| {
            nodes[at].step(rng, input, &mut |effect| match effect {
                Effect::Send { to, message } => wire.push_back((to.id.0 as usize, me, message)),
                Effect::Event(Event::Leader {
                    event: LeaderEvent::Devices(devices::Event::Ping { device }),
                    ..
                }) => pings.push((at, device)),
                Effect::Multicast { .. } | Effect::Event(_) => {}
            });
        })
    }

    fn carry(&mut self) {
        while let Some((to, from, message)) = self.wire.pop_front() {
            self.step(to, Input::Message { from, message });
        }
    }

    /// All leaders of clusters ping, all devices answer "on". Returns the number of allocations in
    /// steps, and the number of answers.
    fn ping(&mut self) -> (u64, usize) {
        let mut allocated = 0;
        for at in 0..self.nodes.len() {
            let led: Vec<_> = self.nodes[at].machine().leads().collect();
            for group in led {
                let tick = |timer| Input::Tick(Timer::Leader(group, LeaderTimer::Devices(timer)));
                allocated += self.step(at, tick(devices::Timer::Ping));
            }
        }
        let pings = core::mem::take(&mut self.pings);
        for (at, device) in &pings {
            let value = Some("on".into());
            let device = *device;
            allocated += self.step(*at, Input::Command(Command::Reported { device, value }));
        }
        for at in 0..self.nodes.len() {
            let led: Vec<_> = self.nodes[at].machine().leads().collect();
            for group in led {
                let timer = devices::Timer::Unanswered;
                let tick = Timer::Leader(group, LeaderTimer::Devices(timer));
                allocated += self.step(at, Input::Tick(tick));
            }
        }
        let answers = pings.len();
        self.pings = pings;
        self.pings.clear();
        self.carry();
        (allocated, answers)
    }
}

#[test]
fn a_quiet_device_costs_no_allocation() {
    for (nodes, devices) in [(3, 4), (10, 40), (100, 40)] {
        let mut building = Building::new(nodes, devices);
        building.ping();
        building.ping();
        let (allocated, answers) = building.ping();
        assert_eq!(answers, devices as usize, "{nodes} nodes");
        assert_eq!(allocated, 0, "{nodes} nodes, {devices} devices");
        assert!(building.wire.is_empty());
    }
}
