//! In steady state a step allocates nothing.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../../core/tests/counting/mod.rs"]
mod counting;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use counting::allocations;
use selvedge_core::{Context, Driver, Effect, Input, Machine, Member, NodeId, Outbox, Span, Time};
use selvedge_membership::{Command, Config, Membership, Message, Timer};

/// A runner of one machine. In debug builds a `Driver` keeps a copy of the machine to check that a
/// refusal changes nothing, so there the machine runs without a driver.
trait Host {
    fn new(machine: Membership) -> Self;
    fn machine(&self) -> &Membership;
    fn deadline(&self) -> Option<Time>;
    fn step(
        &mut self,
        now: Time,
        rng: &mut ChaCha8Rng,
        input: Input<Membership>,
        carry_out: &mut dyn FnMut(Effect<Membership>),
    );
    fn expire(
        &mut self,
        now: Time,
        rng: &mut ChaCha8Rng,
        carry_out: &mut dyn FnMut(Effect<Membership>),
    );
}

impl Host for Driver<Membership> {
    fn new(machine: Membership) -> Self {
        Self::new(machine)
    }

    fn machine(&self) -> &Membership {
        self.machine()
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline()
    }

    fn step(
        &mut self,
        now: Time,
        rng: &mut ChaCha8Rng,
        input: Input<Membership>,
        carry_out: &mut dyn FnMut(Effect<Membership>),
    ) {
        self.step(now, rng, input, carry_out).unwrap();
    }

    fn expire(
        &mut self,
        now: Time,
        rng: &mut ChaCha8Rng,
        carry_out: &mut dyn FnMut(Effect<Membership>),
    ) {
        self.expire(now, rng, carry_out);
    }
}

struct ByHand {
    machine: Membership,
    outbox: Outbox<Membership>,
    timers: Vec<(Timer, Time)>,
}

impl Host for ByHand {
    fn new(machine: Membership) -> Self {
        let timers = Vec::with_capacity(100);
        Self {
            machine,
            outbox: Outbox::new(),
            timers,
        }
    }

    fn machine(&self) -> &Membership {
        &self.machine
    }

    fn deadline(&self) -> Option<Time> {
        self.timers.iter().map(|&(_, at)| at).min()
    }

    fn step(
        &mut self,
        now: Time,
        rng: &mut ChaCha8Rng,
        input: Input<Membership>,
        carry_out: &mut dyn FnMut(Effect<Membership>),
    ) {
        let mut cx = Context::new(now, rng, &mut self.outbox);
        self.machine.handle(input, &mut cx).unwrap();
        for (timer, after) in self.outbox.drain_timers() {
            self.timers.retain(|&(armed, _)| armed != timer);
            self.timers.extend(after.map(|after| (timer, now + after)));
        }
        self.outbox.drain_effects().for_each(carry_out);
    }

    fn expire(
        &mut self,
        now: Time,
        rng: &mut ChaCha8Rng,
        carry_out: &mut dyn FnMut(Effect<Membership>),
    ) {
        while let Some(due) = self.timers.iter().position(|&(_, at)| at <= now) {
            let (timer, _) = self.timers.swap_remove(due);
            self.step(now, rng, Input::Tick(timer), carry_out);
        }
    }
}

/// A mesh of 49 nodes whose messages take no time, half of which measure distances. The wire has enough capacity not to allocate
/// itself.
struct Mesh<H> {
    now: Time,
    nodes: Vec<H>,
    wire: Vec<(Member, NodeId, Message)>,
    rng: ChaCha8Rng,
    steps: u64,
}

impl<H: Host> Mesh<H> {
    fn new() -> Self {
        let node = |id| {
            let unit = (id % 2 == 0).then_some(Config::ROUND_TRIP_UNIT);
            let config = Config::default().with_round_trip_unit(unit);
            let machine = Membership::new(Member::new(id, 1), config).unwrap();
            H::new(machine)
        };
        Self {
            now: Time::ZERO,
            nodes: (0..49).map(node).collect(),
            wire: Vec::with_capacity(4_096),
            rng: ChaCha8Rng::seed_from_u64(49),
            steps: 0,
        }
    }

    fn join(&mut self, node: usize) {
        let seeds = if node == 0 { vec![] } else { vec![NodeId(0)] };
        let me = self.nodes[node].machine().me();
        let (wire, rng) = (&mut self.wire, &mut self.rng);
        let input = Input::Command(Command::Join { seeds });
        self.nodes[node].step(self.now, rng, input, &mut |effect| post(wire, me, effect));
        self.settle();
    }

    fn settle(&mut self) {
        while let Some((from, to, message)) = self.wire.pop() {
            self.steps += 1;
            let node = &mut self.nodes[to.0 as usize];
            let me = node.machine().me();
            let (wire, rng) = (&mut self.wire, &mut self.rng);
            let input = Input::Message { from, message };
            node.step(self.now, rng, input, &mut |effect| post(wire, me, effect));
        }
    }

    fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let due = self.nodes.iter().enumerate();
            let next = due
                .filter_map(|(node, driver)| Some((driver.deadline()?, node)))
                .min();
            let Some((at, node)) = next.filter(|&(at, _)| at <= end) else {
                break;
            };
            self.now = at;
            let me = self.nodes[node].machine().me();
            let (wire, rng) = (&mut self.wire, &mut self.rng);
            self.nodes[node].expire(at, rng, &mut |effect| post(wire, me, effect));
            self.settle();
        }
        self.now = end;
    }
}

fn post(wire: &mut Vec<(Member, NodeId, Message)>, me: Member, effect: Effect<Membership>) {
    if let Effect::Send { to, message } = effect {
        wire.push((me, to.id, message));
    }
}

fn ten_thousand_messages_allocate_nothing<H: Host>() {
    let mut mesh = Mesh::<H>::new();
    for node in 0..49 {
        mesh.join(node);
    }
    mesh.run_for(Span::secs(120));
    assert!(mesh.nodes.iter().all(|node| node.machine().live() == 49));
    let before = mesh.steps;
    assert_eq!(allocations(|| mesh.run_for(Span::secs(120))), 0);
    let messages = mesh.steps - before;
    assert!(messages > 10_000, "only {messages} messages");
}

#[test]
fn the_machine_allocates_nothing() {
    ten_thousand_messages_allocate_nothing::<ByHand>();
}

#[test]
#[cfg(not(debug_assertions))]
fn the_driver_allocates_nothing() {
    ten_thousand_messages_allocate_nothing::<Driver<Membership>>();
}

/// Shows that the tests above can fail.
#[test]
fn the_counter_counts() {
    let mut mesh = Mesh::<Driver<Membership>>::new();
    assert!(allocations(|| (0..49).for_each(|node| mesh.join(node))) > 49);
}
