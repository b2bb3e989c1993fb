//! Groups and devices, and their possible next actions.

mod anew;
mod editions;
mod possible;
mod steps;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::convert::Infallible;

use selvedge_core::{Context, Input, Machine, Member, NodeId, Span, Untracked};
use selvedge_groups::GroupId;
use selvedge_routine::State;

use super::Rule;
use super::ideal::Group;
use super::letter::{Body, Letter, To};
use super::setup::{Network, Setup, Who};
use crate::devices::{self, DeviceLeader, Devices, Limits, Ticket};
use crate::routines::{RoutineLeader, RoutineState, RoutineTimer, Stage};
use crate::{Claim, Due, Outcome, Request, TriggerId};

/// Groups of routines have numbers from here on; clusters have numbers from 0.
const ROUTINES: u64 = 100;

/// The application that triggers.
const APPLICATION: Member = Member::new(u64::MAX, 0);

/// The members of the group of the first routine, as clocks that report.
const CLOCKS: [NodeId; 3] = [
    NodeId(1 << 32),
    NodeId((1 << 32) + 1),
    NodeId((1 << 32) + 2),
];

/// The true state of a device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Thing {
    pub(super) value: Option<State>,
    /// The commands that it received and has not done, and the seat that gave each.
    notified: BTreeSet<(Ticket, State, usize)>,
}

/// Violations that were seen, and the last decided steps.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Watch {
    /// A device was given a command of a routine that did not execute.
    pub(super) strays: bool,
    /// A step was decided again, or left out.
    pub(super) repeats: bool,
    /// The definition of the first routine changed within a run, or went back.
    pub(super) redefined: bool,
    /// The generation of the site that the first routine follows.
    newest: u32,
    /// Of the first routine: its run, and the generation of the definition.
    defined: Option<(u64, u32)>,
    /// For each routine: the run and the step of the command that was decided last, and the
    /// command's number.
    steps: Vec<Option<(u64, u64, u64)>>,
}

/// Groups, devices, and the messages on their way between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) setup: Untracked<Setup>,
    pub(super) routines: Vec<Group<RoutineLeader>>,
    pub(super) clusters: Vec<Group<DeviceLeader>>,
    pub(super) letters: BTreeSet<Letter>,
    pub(super) things: Vec<Thing>,
    /// The number of leaders that may be replaced, and of letters that may be lost.
    takeovers: u8,
    drops: u8,
    /// The device that will change.
    changes: Option<u64>,
    /// The generations of the sites at the nodes that may lead the first routine.
    adopted: [u32; 2],
    /// The occurrence that each clock shows: at first 0, which starts nothing.
    pub(super) clocks: [u64; CLOCKS.len()],
    /// True if a cluster's group has begun anew.
    pub(super) has_begun_anew: bool,
    pub(super) watch: Watch,
    /// The last action.
    pub(super) last: Untracked<Option<(Action, Option<Letter>)>>,
}

/// The possible next actions. Letters and commands are named by their place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Arrives { letter: usize, seat: usize },
    Lost(usize),
    Applies(Who),
    TakesOver { who: Who, keeps_pending: bool },
    Routine(usize, usize, RoutineTimer),
    Cluster(usize, usize, devices::Timer),
    Does(usize, usize),
    Changes(u64),
    Reports(u64),
    Clock(usize),
    Adopts,
    BeginsAnew(usize),
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let of_devices = of_devices(&setup);
        let rules = of_routines(&setup);
        let clusters = if setup.one_cluster { 1 } else { setup.devices };
        let cluster = |number| {
            let devices = (0..setup.devices).filter(|it| setup.one_cluster || *it == number);
            let state = Devices::new(devices.map(NodeId), Limits::new());
            Group::new(state.published(&of_devices))
        };
        let routine = |(number, plan): (usize, &super::Plan)| {
            let state = RoutineState::new(plan.definition(number, setup.locking)).ok()?;
            Some(Group::new(state.published(&rules)))
        };
        Self {
            routines: (setup.routines.iter().enumerate())
                .filter_map(routine)
                .collect(),
            clusters: (0..clusters).map(cluster).collect(),
            letters: BTreeSet::new(),
            things: (0..setup.devices).map(|_| Thing::default()).collect(),
            takeovers: setup.takeovers,
            drops: match setup.network {
                Network::Remembers => 0,
                Network::Loses(drops) => drops,
            },
            changes: setup.changes,
            adopted: [0; 2],
            has_begun_anew: false,
            clocks: [0; CLOCKS.len()],
            watch: Watch {
                steps: setup.routines.iter().map(|_| None).collect(),
                ..Watch::default()
            },
            setup: Untracked(setup),
            last: Untracked::default(),
        }
    }

    pub(super) fn begin(&mut self, cx: &mut Context<'_, Self>) {
        for number in 0..self.clusters.len() {
            self.sits(Who::Cluster(number), false);
        }
        for number in 0..self.routines.len() {
            self.sits(Who::Routine(number), false);
        }
        for (number, plan) in self.setup.routines.iter().enumerate() {
            for nth in 0..plan.triggers {
                let request = Request::Trigger(TriggerId(nth.into()));
                self.letters.insert(Letter {
                    to: To::Group(routine_group(number)),
                    body: Body::Asks {
                        from: APPLICATION,
                        request,
                    },
                });
            }
        }
        if self.occurrences() > 0 {
            (0..CLOCKS.len()).for_each(|it| self.report_due(it));
        }
        self.settle();
        self.arm(cx);
    }

    /// A clock reports its occurrence.
    fn report_due(&mut self, clock: usize) {
        let (Some(&id), Some(&occurrence)) = (CLOCKS.get(clock), self.clocks.get(clock)) else {
            return;
        };
        let due = Due {
            since: 0,
            trigger: 0,
            occurrence,
            is_late: false,
        };
        self.letters.insert(Letter {
            to: To::Group(routine_group(0)),
            body: Body::Asks {
                from: Member::new(id.0, 0),
                request: Request::Due(due),
            },
        });
    }

    fn occurrences(&self) -> u64 {
        let first = self.setup.routines.first();
        first.map_or(0, |it| it.occurrences)
    }

    /// Returns true if a clock may show the next occurrence. Right clocks differ by less than an
    /// interval, in which a group decides.
    fn may_go_on(&self, clock: usize) -> bool {
        let shown = self.clocks.get(clock).copied().unwrap_or_default();
        let is_wrong = self.setup.wrong_clock && clock + 1 == CLOCKS.len();
        let decided = self.routines.first().and_then(|it| it.state.occurrence(0));
        match is_wrong {
            true => shown <= self.occurrences(),
            false => shown < self.occurrences() && decided >= Some(shown),
        }
    }

    /// The latest occurrence that has come by a right clock.
    pub(super) fn come(&self) -> u64 {
        let right = self.clocks.len() - usize::from(self.setup.wrong_clock);
        self.clocks.iter().take(right).copied().max().unwrap_or(0)
    }

    /// Returns true if all requests are done, and no device is held.
    pub(super) fn is_over(&self) -> bool {
        let setup = &self.setup;
        let has_run = |(group, plan): (&Group<RoutineLeader>, &super::Plan)| {
            let is_triggered = (0..plan.triggers).all(|it| group.state.has(TriggerId(it.into())));
            let is_changed = plan.clause.is_none() || group.state.instance() > 0;
            let is_past = plan.occurrences == 0
                || group.state.occurrence(0) >= Some(plan.occurrences)
                    && group.state.instance() >= plan.occurrences;
            is_triggered && is_past && is_changed && *group.state.stage() == Stage::NotTriggered
        };
        let all = self.routines.iter().zip(setup.routines).all(has_run);
        all && self.is_defined()
            && (0..setup.devices).map(NodeId).all(|device| {
                let cluster = self.cluster_of(device).and_then(|it| self.clusters.get(it));
                cluster.is_some_and(|it| {
                    it.state.holder(device).is_none() && it.state.queue(device).next().is_none()
                })
            })
    }

    /// The claim that holds a device, by the decision of its group.
    pub(super) fn holder(&self, device: NodeId) -> Option<Claim> {
        let cluster = self.cluster_of(device)?;
        self.clusters.get(cluster)?.state.holder(device)
    }

    /// Returns false for a device that no claim can get, as its group has begun anew.
    pub(super) fn is_open(&self, device: NodeId) -> bool {
        let cluster = self.cluster_of(device).and_then(|it| self.clusters.get(it));
        cluster.is_some_and(|it| it.state.is_open(device))
    }

    /// The claim under which a routine executes.
    pub(super) fn executes(&self, number: usize) -> Option<Claim> {
        let state = &self.routines.get(number)?.state;
        let is_executing = matches!(state.stage(), Stage::Executing { .. });
        state.claim(routine_group(number)).filter(|_| is_executing)
    }

    fn cluster_of(&self, device: NodeId) -> Option<usize> {
        let number = if self.setup.one_cluster { 0 } else { device.0 };
        usize::try_from(number).ok()
    }

    fn arm(&self, cx: &mut Context<'_, Self>) {
        if !self.actions().is_empty() {
            cx.arm((), Span::ZERO);
        }
    }

    /// For traces.
    fn note(&mut self, action: Action) {
        let letter = match action {
            Action::Arrives { letter, .. } | Action::Lost(letter) => {
                self.letters.iter().nth(letter)
            }
            Action::Applies(_)
            | Action::TakesOver { .. }
            | Action::Routine(..)
            | Action::Cluster(..)
            | Action::Does(..)
            | Action::Changes(_)
            | Action::Reports(_)
            | Action::Clock(_)
            | Action::Adopts
            | Action::BeginsAnew(_) => None,
        };
        self.last = Untracked(Some((action, letter.cloned())));
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Arrives { letter, seat } => {
                let Some(letter) = self.letters.iter().nth(letter).cloned() else {
                    return;
                };
                if self.setup.network != Network::Remembers && !letter.is_trigger() {
                    self.letters.remove(&letter);
                }
                self.arrives(letter, seat);
            }
            Action::Lost(letter) => {
                if let Some(letter) = self.letters.iter().nth(letter).cloned() {
                    self.letters.remove(&letter);
                }
                self.drops -= 1;
            }
            Action::Applies(who) => self.applies(who),
            Action::TakesOver { who, keeps_pending } => {
                self.takeovers -= 1;
                self.sits(who, keeps_pending);
            }
            Action::Routine(number, seat, timer) => {
                if timer == RoutineTimer::Backoff {
                    self.retire(number);
                }
                self.with_routine(number, seat, |group| group.tick(seat, timer));
            }
            Action::Cluster(number, seat, timer) => {
                self.with_cluster(number, seat, |group| group.tick(seat, timer));
                if timer == devices::Timer::Ping {
                    self.follows(number, seat);
                }
            }
            Action::Does(number, at) => {
                let Some(thing) = self.things.get_mut(number) else {
                    return;
                };
                let Some(notified) = thing.notified.iter().nth(at).cloned() else {
                    return;
                };
                thing.notified.remove(&notified);
                let (ticket, value, seat) = notified;
                thing.value = Some(value);
                let cluster = self.cluster_of(ticket.device).unwrap_or_default();
                self.with_cluster(cluster, seat, |group| {
                    group.step(seat, |leader, _, out| {
                        leader.acted(ticket, Outcome::Done, out)
                    })
                });
            }
            Action::Changes(device) => {
                self.changes = None;
                let thing = usize::try_from(device)
                    .ok()
                    .and_then(|it| self.things.get_mut(it));
                if let Some(thing) = thing {
                    thing.value = Some(State::from(7));
                }
            }
            Action::Adopts => self.adopts(),
            Action::BeginsAnew(number) => {
                self.takeovers -= 1;
                self.begins_anew(number);
            }
            Action::Clock(clock) => {
                if let Some(shown) = self.clocks.get_mut(clock) {
                    *shown += 1;
                }
                self.report_due(clock);
            }
            Action::Reports(device) => {
                let thing = usize::try_from(device)
                    .ok()
                    .and_then(|it| self.things.get(it));
                let value = thing.and_then(|it| it.value.clone());
                let cluster = self.cluster_of(NodeId(device)).unwrap_or_default();
                let seat = self.clusters.get(cluster).map_or(0, |it| it.present);
                self.with_cluster(cluster, seat, |group| {
                    group.step(seat, |leader, state, out| {
                        let taken = leader.reported(state, NodeId(device), value, out);
                        debug_assert!(taken.is_ok(), "the device is the cluster's");
                    })
                });
            }
        }
        self.settle();
        self.watch_definition();
        self.forget();
    }

    /// The application triggers until it learns that the routine's group has decided, and so do clocks;
    /// their earlier reports may still come where messages come late.
    fn forget(&mut self) {
        let routines = &self.routines;
        let remembers = self.setup.network == Network::Remembers;
        let decided = routines.first().and_then(|it| it.state.occurrence(0));
        (self.letters)
            .retain(|it| remembers || it.due().is_none_or(|it| decided < Some(it.occurrence)));
        self.letters.retain(|it| match (it.trigger(), it.to) {
            (Some(id), To::Group(group)) => match who(group) {
                Who::Routine(number) => routines.get(number).is_none_or(|it| !it.state.has(id)),
                Who::Cluster(_) => true,
            },
            _ => true,
        });
    }

    /// Without delays, each proposal is decided at once.
    fn settle(&mut self) {
        if self.setup.delays {
            return;
        }
        let groups = (0..self.routines.len()).map(Who::Routine);
        let groups = groups.chain((0..self.clusters.len()).map(Who::Cluster));
        for who in groups.collect::<Vec<_>>() {
            while self.is_pending(who) {
                self.applies(who);
            }
        }
    }

    fn is_pending(&self, who: Who) -> bool {
        match who {
            Who::Routine(number) => {
                let group = self.routines.get(number);
                group.is_some_and(|it| !it.pending.is_empty())
            }
            Who::Cluster(number) => {
                let group = self.clusters.get(number);
                group.is_some_and(|it| !it.pending.is_empty())
            }
        }
    }
}

impl Machine for World {
    type Message = Infallible;
    type Timer = ();
    type Command = ();
    type Event = ();
    type Reject = Infallible;

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), Infallible> {
        match input {
            Input::Message { message, .. } => match message {},
            Input::Membership(_) | Input::Command(()) => {}
            Input::Tick(()) => {
                let actions = self.actions();
                let chosen = cx.below(actions.len() as u64);
                let chosen = usize::try_from(chosen).unwrap_or_default();
                if let Some(&action) = actions.get(chosen) {
                    self.note(action);
                    self.perform(action);
                }
                self.arm(cx);
            }
        }
        Ok(())
    }
}

fn of_devices(setup: &Setup) -> Vec<devices::Published> {
    let rules = setup.rules.iter();
    rules
        .filter_map(|it| match *it {
            Rule::Device(rule) => Some(rule),
            Rule::Routine(_) => None,
        })
        .collect()
}

fn of_routines(setup: &Setup) -> Vec<crate::routines::Published> {
    let rules = setup.rules.iter();
    rules
        .filter_map(|it| match *it {
            Rule::Routine(rule) => Some(rule),
            Rule::Device(_) => None,
        })
        .collect()
}

const fn routine_group(number: usize) -> GroupId {
    GroupId(ROUTINES + number as u64)
}

fn who(group: GroupId) -> Who {
    let number = |it| usize::try_from(it).unwrap_or(usize::MAX);
    match group.0.checked_sub(ROUTINES) {
        Some(routine) => Who::Routine(number(routine)),
        None => Who::Cluster(number(group.0)),
    }
}

const fn member(group: GroupId, seat: usize) -> Member {
    Member::new(group.0 * 2 + seat as u64, 0)
}
