//! An ideal group, and the two nodes that may lead it.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use selvedge_replica::State;

use crate::devices::{DeviceLeader, Devices};
use crate::effect::{Effect, Effects};
use crate::routines::{RoutineLeader, RoutineState};

type Update<L> = <<L as Leads>::State as State>::Update;
type Outcome<L> = <<L as Leads>::State as State>::Outcome;
type Out<L> = Effects<Update<L>, <L as Leads>::Timer, <L as Leads>::Event>;

/// The leader of a group of some kind.
pub(super) trait Leads: Clone + Eq + Hash + Debug {
    type State: State;
    type Timer: Copy + Ord + Hash + Debug;
    type Event: Clone + Debug;

    fn leads(&mut self, state: &Self::State, out: &mut Out<Self>);
    fn applied(&mut self, state: &Self::State, outcome: &Outcome<Self>, out: &mut Out<Self>);
    fn readable(&mut self, state: &Self::State, read: u64, out: &mut Out<Self>);
    fn tick(&mut self, state: &Self::State, timer: Self::Timer, out: &mut Out<Self>);
}

impl Leads for RoutineLeader {
    type State = RoutineState;
    type Timer = crate::routines::RoutineTimer;
    type Event = crate::routines::RoutineEvent;

    fn leads(&mut self, state: &RoutineState, out: &mut Out<Self>) {
        self.on_leads(state, out);
    }

    fn applied(&mut self, state: &RoutineState, outcome: &Outcome<Self>, out: &mut Out<Self>) {
        self.on_applied(state, outcome, out);
    }

    fn readable(&mut self, state: &RoutineState, read: u64, out: &mut Out<Self>) {
        self.on_readable(state, read, out);
    }

    fn tick(&mut self, state: &RoutineState, timer: Self::Timer, out: &mut Out<Self>) {
        self.on_tick(state, timer, out);
    }
}

impl Leads for DeviceLeader {
    type State = Devices;
    type Timer = crate::devices::Timer;
    type Event = crate::devices::Event;

    fn leads(&mut self, state: &Devices, out: &mut Out<Self>) {
        self.on_leads(state, out);
    }

    fn applied(&mut self, state: &Devices, outcome: &Outcome<Self>, out: &mut Out<Self>) {
        self.on_applied(state, outcome, out);
    }

    fn readable(&mut self, state: &Devices, read: u64, out: &mut Out<Self>) {
        self.on_readable(state, read, out);
    }

    fn tick(&mut self, state: &Devices, timer: Self::Timer, out: &mut Out<Self>) {
        self.on_tick(state, timer, out);
    }
}

/// A node that leads a group, or that led it and has not learned that its lead has ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seat<L: Leads> {
    pub(super) leader: L,
    /// The state at the moment when another node began to lead. Nothing is applied here any more,
    /// and proposals from here do not count.
    pub(super) former: Option<L::State>,
    pub(super) timers: BTreeSet<L::Timer>,
}

/// A group as a register. At first the node in its first seat leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Group<L: Leads> {
    pub(super) state: L::State,
    /// Updates that are proposed, and not applied yet.
    pub(super) pending: VecDeque<Update<L>>,
    pub(super) seats: [Option<Seat<L>>; 2],
    pub(super) present: usize,
}

impl<L: Leads> Group<L> {
    pub(super) const fn new(state: L::State) -> Self {
        Self {
            state,
            pending: VecDeque::new(),
            seats: [None, None],
            present: 0,
        }
    }

    /// The next node begins to lead. Proposals of the node before may still be applied.
    pub(super) fn sit(&mut self, leader: L, keeps_pending: bool) -> Out<L> {
        let state = self.state.clone();
        if let Some(former) = self.seats.get_mut(self.present).and_then(Option::as_mut) {
            former.former = Some(state);
            self.present += 1;
        }
        if !keeps_pending {
            self.pending.clear();
        }
        let seat = Seat {
            leader,
            former: None,
            timers: BTreeSet::new(),
        };
        if let Some(place) = self.seats.get_mut(self.present) {
            *place = Some(seat);
        }
        let present = self.present;
        self.step(present, L::leads)
    }

    /// A node does something. The rest of its effects is returned.
    pub(super) fn step(
        &mut self,
        seat: usize,
        call: impl FnOnce(&mut L, &L::State, &mut Out<L>),
    ) -> Out<L> {
        let mut effects = Vec::new();
        let is_present = seat == self.present;
        let Some(node) = self.seats.get_mut(seat).and_then(Option::as_mut) else {
            return effects;
        };
        let Seat { leader, former, .. } = node;
        call(leader, former.as_ref().unwrap_or(&self.state), &mut effects);
        let mut left = Vec::new();
        // Results of reads are delivered behind the other effects; that may lead to more.
        let mut at = 0;
        while let Some(effect) = effects.get(at).cloned() {
            at += 1;
            match effect {
                Effect::Propose(update) => {
                    if is_present && !self.pending.contains(&update) {
                        self.pending.push_back(update);
                    }
                }
                Effect::Read(read) if is_present => {
                    node.leader.readable(&self.state, read, &mut effects);
                }
                Effect::Read(_) => {}
                Effect::Arm { timer, .. } | Effect::ArmAbout { timer, .. } => {
                    node.timers.insert(timer);
                }
                Effect::Disarm(timer) => {
                    node.timers.remove(&timer);
                }
                Effect::Ask { .. }
                | Effect::Inform { .. }
                | Effect::Answer { .. }
                | Effect::Event(_) => {
                    left.push(effect);
                }
            }
        }
        left
    }

    pub(super) fn tick(&mut self, seat: usize, timer: L::Timer) -> Out<L> {
        if let Some(node) = self.seats.get_mut(seat).and_then(Option::as_mut) {
            node.timers.remove(&timer);
        }
        self.step(seat, |leader, state, out| leader.tick(state, timer, out))
    }

    /// The next update is applied, and the present leader learns of it.
    pub(super) fn apply(&mut self) -> Out<L> {
        let Some(update) = self.pending.pop_front() else {
            return Vec::new();
        };
        let outcome = self.state.apply(&update);
        let present = self.present;
        self.step(present, |leader, state, out| {
            leader.applied(state, &outcome, out);
        })
    }

    /// Returns true if the node in this seat believes to lead.
    pub(super) fn is_seated(&self, seat: usize) -> bool {
        self.seats.get(seat).is_some_and(Option::is_some)
    }
}
