//! The past of a scenario: nodes that run in one order.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_core as core;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_sim::Bytes;
use selvedge_sim::check::Observer as _;

use super::one::Ask;
use super::setup::{FIRST, Kind, Machine, Watches as _, World, first_inputs};
use crate::Start;

/// The longest past: it ends earlier when no step is left.
const WHILE: Span = Span::secs(5);

/// A step of the past of a scenario, which has one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before<A = Ask> {
    /// A command at a node (by id).
    Asked(u64, A),
    /// A membership delta at a node (by id).
    Notified(u64, Delta),
    /// From now on these nodes receive and send nothing, and none of their timers ticks. Messages
    /// in flight arrive when the scenario begins.
    Cut(&'static [u64]),
    /// A node (by id) begins again without its memory.
    Again(u64),
    /// In each of this number of rounds, timers that are due expire, messages in flight arrive, and new messages are in flight.
    Rounds(u8),
    /// Time passes until a timer of a node (by id) is due, and expires.
    Due(u64),
    /// Messages in flight to a node (by id) are lost.
    Lost(u64),
    /// Goes on until no step is left, or a while has passed.
    Rest,
}

/// Nodes that run in one order.
pub(super) struct Past<K: Kind> {
    pub(super) drivers: Vec<Driver<Machine<K>>>,
    pub(super) letters: VecDeque<Letter<K>>,
    now: Time,
    cut: &'static [u64],
    pub(super) watch: K::Watch,
}

type Letter<K> = (Member, NodeId, <Machine<K> as core::Machine>::Message);

impl<K: Kind> Past<K> {
    pub(super) fn new(world: &World<K>) -> Self {
        let machines = (1..=world.nodes()).map(|id| world.machine(id, FIRST, Start::Fresh));
        let drivers: Vec<_> = machines.map(Driver::new).collect();
        let mut past = Self {
            watch: K::Watch::of((1..=world.nodes()).collect()),
            drivers,
            letters: VecDeque::new(),
            now: Time::ZERO,
            cut: &[],
        };
        for id in 1..=world.nodes() {
            for input in first_inputs(Member::new(id, FIRST), world.nodes()) {
                past.step(NodeId(id), Some(input));
            }
        }
        past
    }

    pub(super) fn take(&mut self, world: &World<K>, it: Before<K::Ask>) {
        match it {
            Before::Asked(id, ask) => {
                let command = K::command(world, ask);
                self.step(NodeId(id), Some(Input::Command(command)));
            }
            Before::Notified(id, delta) => self.step(NodeId(id), Some(Input::Membership(delta))),
            Before::Again(id) => {
                let place = self
                    .drivers
                    .iter_mut()
                    .find(|it| it.machine().me().id.0 == id);
                if let Some(driver) = place {
                    *driver = Driver::new(world.machine(id, FIRST + 1, Start::Restarted));
                    for input in first_inputs(Member::new(id, FIRST + 1), world.nodes()) {
                        self.step(NodeId(id), Some(input));
                    }
                }
            }
            Before::Cut(ids) => self.cut = ids,
            Before::Rounds(count) => {
                for _ in 0..count {
                    self.expire();
                    for _ in 0..self.letters.len() {
                        self.arrive();
                    }
                }
            }
            Before::Due(id) => self.next_timer(NodeId(id)),
            Before::Lost(id) => self.letters.retain(|it| it.1 != NodeId(id)),
            Before::Rest => self.rest(),
        }
    }

    fn rest(&mut self) {
        let until = self.now + WHILE;
        loop {
            while !self.letters.is_empty() {
                self.arrive();
            }
            let here = self
                .drivers
                .iter()
                .map(|it| (it.machine().me().id, it.deadline()));
            let here = here.filter(|it| !self.is_cut(it.0));
            let next = here.filter_map(|(id, at)| Some((at?, id))).min();
            let Some((at, id)) = next.filter(|it| it.0 <= until) else {
                self.now = until;
                return;
            };
            self.now = at;
            self.step(id, None);
        }
    }

    fn next_timer(&mut self, id: NodeId) {
        let place = self.drivers.iter().find(|it| it.machine().me().id == id);
        let due = place.and_then(Driver::deadline);
        self.now = self.now.max(due.unwrap_or_default());
        self.step(id, None);
    }

    /// Expires the timers that are due now.
    fn expire(&mut self) {
        let due = |it: &&Driver<Machine<K>>| it.deadline().is_some_and(|at| at <= self.now);
        let due = self.drivers.iter().filter(due);
        let ids: Vec<NodeId> = due.map(|it| it.machine().me().id).collect();
        for id in ids {
            self.step(id, None);
        }
    }

    /// The message that was sent first.
    fn arrive(&mut self) {
        if let Some((from, to, message)) = self.letters.pop_front()
            && !self.is_cut(from.id)
            && !self.is_cut(to)
        {
            self.step(to, Some(Input::Message { from, message }));
        }
    }

    fn is_cut(&self, id: NodeId) -> bool {
        self.cut.contains(&id.0)
    }

    /// A node takes an input, or its timers that are due.
    fn step(&mut self, id: NodeId, input: Option<Input<Machine<K>>>) {
        let Some(at) = self
            .drivers
            .iter()
            .position(|it| it.machine().me().id == id)
        else {
            return;
        };
        let Some(driver) = self.drivers.get_mut(at) else {
            return;
        };
        let from = driver.machine().me();
        let (letters, watch) = (&mut self.letters, &mut self.watch);
        let mut bytes = Bytes::new(&[]);
        let carry_out = |effect: Effect<Machine<K>>| match effect {
            Effect::Send { to, message } => letters.push_back((from, to.id, message)),
            Effect::Event(event) => watch.event(at, &event),
            Effect::Multicast { .. } => {}
        };
        match input {
            Some(input) => {
                let step = driver.step(self.now, &mut bytes, input, carry_out);
                debug_assert!(
                    step.is_ok(),
                    "what happened before refuses nothing: {step:?}"
                );
            }
            None => {
                driver.expire(self.now, &mut bytes, carry_out);
            }
        }
    }
}
