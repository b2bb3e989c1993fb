//! Groups and devices, and all that can happen to them next.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::convert::Infallible;

use selvedge_core::{Context, Input, Machine, Member, NodeId, Span, Untracked};
use selvedge_routine::State;

use super::ideal::Group;
use super::letter::{Body, Letter, To};
use super::setup::{Network, Rule, Setup, Who};
use crate::devices::{self, DeviceLeader, Devices, Limits, Ticket};
use crate::routines::{RoutineConfig, RoutineLeader, RoutineState, RoutineTimer, Stage};
use crate::wish::{Wish, Wishes};
use crate::{Claim, GroupId, Outcome, Request, TriggerId};

/// Groups of routines have numbers from here on; those of clusters from 0.
const ROUTINES: u64 = 100;

/// The application that triggers.
const APPLICATION: Member = Member::new(u64::MAX, 0);

/// A device as it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Thing {
    pub(super) value: Option<State>,
    /// What it was told and has not done, and the seat that told it.
    told: BTreeSet<(Ticket, State, usize)>,
}

/// What was seen of the runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Watch {
    /// A device was given a command of a routine that did not execute.
    pub(super) strays: bool,
    /// A step was decided again, or one was left out.
    pub(super) repeats: bool,
    /// For each routine: the run and the step whose command was decided last, and under which number.
    steps: Vec<Option<(u64, u64, u64)>>,
}

/// Groups, devices, and what is on its way between them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) setup: Untracked<Setup>,
    pub(super) routines: Vec<Group<RoutineLeader>>,
    pub(super) clusters: Vec<Group<DeviceLeader>>,
    pub(super) letters: BTreeSet<Letter>,
    pub(super) things: Vec<Thing>,
    /// How many leaders may be replaced, and how many letters lost.
    takeovers: u8,
    drops: u8,
    /// The device that is to change.
    changes: Option<u64>,
    pub(super) watch: Watch,
    /// What happened last.
    pub(super) last: Untracked<Option<(Action, Option<Letter>)>>,
}

/// What can happen next. Letters and commands stand by their place.
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
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let rules = setup.rules.iter();
        let of_devices: Vec<_> = rules
            .filter_map(|it| match *it {
                Rule::Device(rule) => Some(rule),
                Rule::Routine(_) => None,
            })
            .collect();
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
        self.settle();
        self.arm(cx);
    }

    /// Whether all that was asked for is done, and nothing is held.
    pub(super) fn is_over(&self) -> bool {
        let setup = &self.setup;
        let has_run = |(group, plan): (&Group<RoutineLeader>, &super::Plan)| {
            let is_triggered = (0..plan.triggers).all(|it| group.state.has(TriggerId(it.into())));
            let is_changed = plan.clause.is_none() || group.state.instance() > 0;
            is_triggered && is_changed && *group.state.stage() == Stage::NotTriggered
        };
        let all = self.routines.iter().zip(setup.routines).all(has_run);
        all && (0..setup.devices).map(NodeId).all(|device| {
            let cluster = self.cluster_of(device).and_then(|it| self.clusters.get(it));
            cluster.is_some_and(|it| {
                it.state.holder(device).is_none() && it.state.queue(device).next().is_none()
            })
        })
    }

    /// Who holds a device, as its group has decided.
    pub(super) fn holder(&self, device: NodeId) -> Option<Claim> {
        let cluster = self.cluster_of(device)?;
        self.clusters.get(cluster)?.state.holder(device)
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

    fn actions(&self) -> Vec<Action> {
        let mut all = Vec::new();
        for (at, letter) in self.letters.iter().enumerate() {
            let seats = (0..2).filter(|seat| self.is_for(letter.to, *seat));
            all.extend(seats.map(|seat| Action::Arrives { letter: at, seat }));
            if self.drops > 0 && !letter.is_trigger() {
                all.push(Action::Lost(at));
            }
        }
        let groups = (0..self.routines.len()).map(Who::Routine);
        for who in groups.chain((0..self.clusters.len()).map(Who::Cluster)) {
            self.group_actions(who, &mut all);
        }
        for (number, thing) in self.things.iter().enumerate() {
            all.extend((0..thing.told.len()).map(|at| Action::Does(number, at)));
        }
        all.extend(self.changes.map(Action::Changes));
        all.extend(self.reports());
        all
    }

    fn group_actions(&self, who: Who, all: &mut Vec<Action>) {
        let (pending, present) = match who {
            Who::Routine(number) => {
                let Some(group) = self.routines.get(number) else {
                    return;
                };
                for (seat, node) in group.seats.iter().enumerate() {
                    let timers = node.iter().flat_map(|it| it.timers.iter().copied());
                    let may = timers.filter(|it| self.may_tick(number, *it));
                    all.extend(may.map(|timer| Action::Routine(number, seat, timer)));
                }
                (group.pending.len(), group.present)
            }
            Who::Cluster(number) => {
                let Some(group) = self.clusters.get(number) else {
                    return;
                };
                for (seat, node) in group.seats.iter().enumerate() {
                    let timers = node.iter().flat_map(|it| it.timers.iter().copied());
                    let may = timers.filter(|it| self.may_tick_in_cluster(*it));
                    all.extend(may.map(|timer| Action::Cluster(number, seat, timer)));
                }
                (group.pending.len(), group.present)
            }
        };
        if pending > 0 {
            all.push(Action::Applies(who));
        }
        if self.takeovers > 0 && present == 0 && self.setup.may_change.contains(&who) {
            all.push(Action::TakesOver {
                who,
                keeps_pending: true,
            });
            if pending > 0 {
                all.push(Action::TakesOver {
                    who,
                    keeps_pending: false,
                });
            }
        }
    }

    /// Timeouts are longer than any delivery.
    fn may_resend(&self) -> bool {
        let is_quiet = |setup: &Setup| match setup.network {
            Network::Remembers => false,
            Network::Loses(_) => self.letters.iter().all(Letter::is_trigger),
        };
        is_quiet(&self.setup) && self.is_settled()
    }

    /// Whether all that was proposed is decided, and hosts have done all that they were told.
    fn is_settled(&self) -> bool {
        let decided = self.routines.iter().all(|it| it.pending.is_empty())
            && self.clusters.iter().all(|it| it.pending.is_empty());
        decided && self.things.iter().all(|it| it.told.is_empty())
    }

    fn may_tick_in_cluster(&self, timer: devices::Timer) -> bool {
        match timer {
            devices::Timer::Resend => self.may_resend(),
            devices::Timer::Act(_) => self.takeovers < self.setup.takeovers && self.is_settled(),
            devices::Timer::Ping | devices::Timer::Unanswered => false,
        }
    }

    fn may_tick(&self, number: usize, timer: RoutineTimer) -> bool {
        match timer {
            RoutineTimer::Resend => self.may_resend(),
            RoutineTimer::Hold => true,
            RoutineTimer::Command => self.setup.timeouts,
            RoutineTimer::Backoff => self.may_try(number),
        }
    }

    /// Two routines may hold each other up for ever, so from some try on they take turns: one that waits
    /// for the other one's end, and the other one for its being out of the way.
    fn may_try(&self, number: usize) -> bool {
        let Some(group) = self.routines.get(number) else {
            return false;
        };
        let attempt = match *group.state.stage() {
            Stage::AcquiringLocks { attempt } => attempt,
            Stage::NotTriggered | Stage::Executing { .. } | Stage::ReleasingLocks { .. } => {
                return true;
            }
        };
        if attempt < self.setup.attempts || self.holds_any(number) {
            return true;
        }
        (0..self.routines.len())
            .filter(|it| *it != number)
            .all(|other| {
                let is_idle = self.is_done(other);
                let is_late = number < other && !self.has_any(other) && self.waits(other);
                is_idle || is_late
            })
    }

    /// By a late try former leaders of clusters know that they are that: they could say that a device is
    /// held for ever.
    fn retire(&mut self, number: usize) {
        if !self.waits(number) {
            return;
        }
        for cluster in &mut self.clusters {
            if cluster.present > 0
                && let Some(former) = cluster.seats.first_mut()
            {
                *former = None;
            }
        }
    }

    fn holds_any(&self, number: usize) -> bool {
        let devices = (0..self.setup.devices).map(NodeId);
        let claim = self
            .routines
            .get(number)
            .and_then(|it| it.state.claim(routine_group(number)));
        claim.is_some_and(|claim| {
            devices
                .map(|it| self.holder(it))
                .any(|it| it == Some(claim))
        })
    }

    /// Whether a device is held by some try of this routine.
    fn has_any(&self, number: usize) -> bool {
        let mut devices = (0..self.setup.devices).map(NodeId);
        devices.any(|it| {
            let holder = self.holder(it);
            holder.is_some_and(|it| it.routine == routine_group(number))
        })
    }

    fn waits(&self, number: usize) -> bool {
        let group = self.routines.get(number);
        group.is_some_and(|it| match *it.state.stage() {
            Stage::AcquiringLocks { attempt } => attempt >= self.setup.attempts,
            Stage::NotTriggered | Stage::Executing { .. } | Stage::ReleasingLocks { .. } => false,
        })
    }

    fn is_done(&self, number: usize) -> bool {
        let all = self
            .routines
            .get(number)
            .zip(self.setup.routines.get(number));
        all.is_some_and(|(group, plan)| {
            let is_triggered = (0..plan.triggers).all(|it| group.state.has(TriggerId(it.into())));
            is_triggered && *group.state.stage() == Stage::NotTriggered
        })
    }

    /// Devices that are in another state than their groups know; the ones that are told something
    /// report when they have done it.
    fn reports(&self) -> Vec<Action> {
        let is_news = |device: &u64| {
            let thing = usize::try_from(*device)
                .ok()
                .and_then(|it| self.things.get(it));
            let cluster = self.cluster_of(NodeId(*device));
            let group = cluster.and_then(|it| self.clusters.get(it));
            let known = group.and_then(|it| it.state.status(NodeId(*device)));
            let value = thing.and_then(|it| it.value.as_ref());
            value.is_some() && known.is_some_and(|it| it.value.as_ref() != value)
        };
        let watched = self.setup.changes.iter().copied();
        watched.filter(is_news).map(Action::Reports).collect()
    }

    /// Whether a letter may arrive at the node in this seat of its group.
    fn is_for(&self, to: To, seat: usize) -> bool {
        let group = match to {
            To::Group(group) => group,
            To::Node(node) if node.id.0 % 2 == seat as u64 => GroupId(node.id.0 / 2),
            To::Node(_) => return false,
        };
        match who(group) {
            Who::Routine(number) => {
                let group = self.routines.get(number);
                group.is_some_and(|it| it.is_seated(seat))
            }
            Who::Cluster(number) => {
                let group = self.clusters.get(number);
                group.is_some_and(|it| it.is_seated(seat))
            }
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
            | Action::Reports(_) => None,
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
            }
            Action::Does(number, at) => {
                let Some(thing) = self.things.get_mut(number) else {
                    return;
                };
                let Some(told) = thing.told.iter().nth(at).cloned() else {
                    return;
                };
                thing.told.remove(&told);
                let (ticket, value, seat) = told;
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
        self.forget();
    }

    /// The application triggers until it is told that the routine's group has decided.
    fn forget(&mut self) {
        let routines = &self.routines;
        self.letters.retain(|it| match (it.trigger(), it.to) {
            (Some(id), To::Group(group)) => match who(group) {
                Who::Routine(number) => routines.get(number).is_none_or(|it| !it.state.has(id)),
                Who::Cluster(_) => true,
            },
            _ => true,
        });
    }

    /// Without delays, what is proposed is decided at once.
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

    fn applies(&mut self, who: Who) {
        match who {
            Who::Routine(number) => {
                let seat = self.routines.get(number).map_or(0, |it| it.present);
                self.with_routine(number, seat, Group::apply);
            }
            Who::Cluster(number) => {
                let seat = self.clusters.get(number).map_or(0, |it| it.present);
                self.with_cluster(number, seat, Group::apply);
            }
        }
    }

    fn sits(&mut self, who: Who, keeps_pending: bool) {
        match who {
            Who::Routine(number) => {
                let Some(group) = self.routines.get(number) else {
                    return;
                };
                let seat = usize::from(group.seats.first().is_some_and(Option::is_some));
                let cluster_of = |device| self.cluster_of(device);
                let leader = RoutineLeader::new(
                    RoutineConfig::new(),
                    routine_group(number),
                    &group.state,
                    |device| Some(GroupId(cluster_of(device)? as u64)),
                );
                let group_of = routine_group(number);
                let is_watching = |device: &NodeId| {
                    let cluster = cluster_of(*device).and_then(|it| self.clusters.get(it));
                    cluster.is_some_and(|it| it.state.watchers(*device).any(|it| it == group_of))
                };
                let is_first =
                    seat == 0 || !group.state.definition().watches().iter().all(is_watching);
                let leader = leader.published(&of_routines(&self.setup), is_first);
                self.with_routine(number, seat, |group| group.sit(leader, keeps_pending));
            }
            Who::Cluster(number) => {
                let Some(group) = self.clusters.get(number) else {
                    return;
                };
                let seat = usize::from(group.seats.first().is_some_and(Option::is_some));
                let me = member(GroupId(number as u64), seat);
                let config = devices::Config::new();
                // What was lost is told again at each tick, so that ticks are not counted.
                let config = config.with_resend_most(config.resend);
                let leader = DeviceLeader::new(me, config, &group.state);
                self.with_cluster(number, seat, |group| group.sit(leader, keeps_pending));
            }
        }
    }

    fn arrives(&mut self, letter: Letter, seat: usize) {
        let group = match letter.to {
            To::Group(group) => group,
            To::Node(node) => GroupId(node.id.0 / 2),
        };
        match (who(group), letter.body) {
            (Who::Routine(number), Body::Asks { from, request }) => {
                self.with_routine(number, seat, |group| {
                    group.step(seat, |leader, state, out| {
                        leader.on_asked(state, from, &request, out);
                    })
                });
            }
            (Who::Routine(number), Body::Answers { group: of, answer }) => {
                self.with_routine(number, seat, |group| {
                    group.step(seat, |leader, state, out| {
                        leader.on_told(state, of, &answer, out);
                    })
                });
            }
            (Who::Cluster(number), Body::Asks { from, request }) => {
                self.with_cluster(number, seat, |group| {
                    group.step(seat, |leader, state, out| {
                        leader.on_asked(state, from, request, out);
                    })
                });
            }
            (Who::Cluster(_), Body::Answers { .. }) => {
                debug_assert!(false, "clusters ask nobody");
            }
        }
    }

    fn with_routine(
        &mut self,
        number: usize,
        seat: usize,
        call: impl FnOnce(
            &mut Group<RoutineLeader>,
        ) -> Wishes<
            crate::routines::Update,
            RoutineTimer,
            crate::routines::RoutineEvent,
        >,
    ) {
        let Some(group) = self.routines.get_mut(number) else {
            return;
        };
        let wishes = call(group);
        let own = routine_group(number);
        for wish in wishes {
            self.send(own, seat, wish);
        }
    }

    fn with_cluster(
        &mut self,
        number: usize,
        seat: usize,
        call: impl FnOnce(
            &mut Group<DeviceLeader>,
        ) -> Wishes<devices::Update, devices::Timer, devices::Event>,
    ) {
        let Some(group) = self.clusters.get_mut(number) else {
            return;
        };
        let wishes = call(group);
        // What the present leader reads it was told at once, and what a former one reads never.
        for node in group.seats.iter_mut().flatten() {
            node.leader.forget_questions();
        }
        for wish in wishes {
            if let Wish::Event(devices::Event::Act { ticket, value }) = wish {
                self.given(number, seat, ticket, value);
            } else {
                self.send(GroupId(number as u64), seat, wish);
            }
        }
    }

    /// A device is told to do something.
    fn given(&mut self, cluster: usize, seat: usize, ticket: Ticket, value: State) {
        let act = self
            .clusters
            .get(cluster)
            .and_then(|it| it.state.act(ticket.device));
        if let Some(act) = act {
            let (claim, step, number) = (act.claim, u64::from(act.step), act.number);
            self.judge(claim, step, number);
        }
        let thing = usize::try_from(ticket.device.0).ok();
        if let Some(thing) = thing.and_then(|it| self.things.get_mut(it)) {
            thing.told.insert((ticket, value, seat));
        }
    }

    fn judge(&mut self, claim: Claim, step: u64, number: u64) {
        let Who::Routine(routine) = who(claim.routine) else {
            return;
        };
        let step = step % crate::routines::STEPS_MAX as u64;
        let executing = self.executes(routine);
        // Under published rules some of it is 0.
        let is_executing = executing.is_some_and(|it| {
            let is_instance = claim.instance == 0 || claim.instance == it.instance;
            is_instance && (claim.attempt == 0 || claim.attempt == it.attempt)
        });
        self.watch.strays |= !is_executing && !self.setup.timeouts;
        let Some(instance) = executing.map(|it| it.instance) else {
            return;
        };
        if let Some(last) = self.watch.steps.get_mut(routine) {
            // The same decision may be carried out again.
            let is_next = match *last {
                Some((run, at, by)) if run == instance => {
                    step == at + 1 || step == at && number == by
                }
                _ => step == 0,
            };
            self.watch.repeats |= !is_next;
            *last = Some((instance, step, number));
        }
    }

    fn send<U, T, E>(&mut self, own: GroupId, seat: usize, wish: Wish<U, T, E>) {
        let from = member(own, seat);
        let letter = match wish {
            Wish::Ask { group, request } => Letter {
                to: To::Group(group),
                body: Body::Asks { from, request },
            },
            Wish::Tell { to, answer } if to == APPLICATION => {
                // The application that triggers hears it.
                debug_assert!(matches!(answer, crate::Answer::Triggered(_)));
                return;
            }
            Wish::Tell { to, answer } => Letter {
                to: To::Node(to),
                body: Body::Answers { group: own, answer },
            },
            Wish::Inform { group, answer } => Letter {
                to: To::Group(group),
                body: Body::Answers { group: own, answer },
            },
            Wish::Propose(_)
            | Wish::Read(_)
            | Wish::Arm { .. }
            | Wish::ArmAbout { .. }
            | Wish::Disarm(_)
            | Wish::Event(_) => return,
        };
        self.letters.insert(letter);
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
