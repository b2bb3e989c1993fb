//! What happened in the building: what its devices saw, and what its nodes told.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{NodeId, Span, Time};
use selvedge_groups as groups;
use selvedge_groups::GroupId;
use selvedge_kgroup::routines::{End, RoutineEvent};
use selvedge_kgroup::{Event, LeaderEvent};
use selvedge_replica as replica;

use super::site::Which;
use selvedge_udp::{NodeEvent, Observed};

/// A command that reached a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// The device.
    pub device: NodeId,
    /// Its number, which it keeps when it comes again.
    pub number: u64,
    /// Of which routine.
    pub routine: Which,
    /// Which command of the routine.
    pub step: usize,
    /// Whether the device did it. It passes over what it had, and what is earlier than that.
    pub is_done: bool,
}

/// The time in which a node led a group, by its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The group.
    pub group: GroupId,
    /// The node.
    pub node: NodeId,
    /// From when.
    pub from: Time,
    /// Until when; still, where there is none.
    pub until: Option<Time>,
}

/// One run of a routine, as leaders told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// When a leader first told of it.
    pub began: Option<Time>,
    /// When its steps were over, and how.
    pub ended: Option<(Time, End)>,
}

/// A power domain that went dark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Darkness {
    /// Its nodes.
    pub nodes: [NodeId; 2],
    /// The groups that they led.
    pub led: BTreeSet<GroupId>,
    /// When it went dark.
    pub from: Time,
    /// When all others knew that both nodes had failed.
    pub known: Option<Time>,
    /// When its nodes began again, with nothing that they knew.
    pub until: Option<Time>,
    /// When all nodes saw all again.
    pub back: Option<Time>,
}

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// What reached the devices, in its order.
    pub arrivals: Vec<Arrival>,
    /// The longest time between a leader's command and its arrival at the device.
    pub latest: Span,
    /// The runs, by their numbers.
    pub runs: BTreeMap<Which, BTreeMap<u64, Run>>,
    /// How many wishes for a run were decided, of those that are triggered by hand.
    pub asked: BTreeMap<Which, u64>,
    /// Which node led which group when.
    pub leads: Vec<Lead>,
    /// When the members of which group changed, once for each change.
    pub moves: BTreeMap<(GroupId, u64), Time>,
    /// The domain that went dark.
    pub dark: Option<Darkness>,
    /// When epochs began, by the system's clock.
    pub epochs: Vec<Time>,
    /// The runs of each routine that the map counts.
    pub counted: Option<BTreeMap<Which, u64>>,
    /// When all nodes were there, and routines began to run.
    pub opened: Option<Time>,
    /// When no more runs were wished for.
    pub closed: Option<Time>,
    /// The end.
    pub end: Time,
    /// How many events were lost between the nodes and this history.
    pub missed: u64,
}

impl Course {
    /// Takes note of what a node tells.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "other events, also later ones, say nothing about this"
    )]
    pub fn note(&mut self, seen: &Observed) {
        let (at, node) = (seen.at, seen.node);
        let NodeEvent::Groups(event) = &seen.event else {
            return;
        };
        match event {
            Event::Leads { group } => {
                self.stops(node, Some(*group), at);
                self.leads.push(Lead {
                    group: *group,
                    node,
                    from: at,
                    until: None,
                });
            }
            Event::Deposed { group } | Event::Groups(groups::Event::Left(group)) => {
                self.stops(node, Some(*group), at);
            }
            Event::Groups(groups::Event::Replica {
                group,
                event: replica::Event::Configured { number, .. },
            }) => {
                self.moves.entry((*group, *number)).or_insert(at);
            }
            Event::Leader {
                group,
                event: LeaderEvent::Routine(event),
            } => self.on_routine(*group, at, event),
            _ => {}
        }
    }

    /// A node goes down.
    pub fn goes_down(&mut self, node: NodeId, at: Time) {
        self.stops(node, None, at);
    }

    /// The node that leads each group now: the latest that said so, if it has not taken it back.
    #[must_use]
    pub fn leaders(&self) -> BTreeMap<GroupId, NodeId> {
        let current = self.leads.iter().filter(|it| it.until.is_none());
        current.map(|it| (it.group, it.node)).collect()
    }

    /// How many runs of a routine were triggered: they are numbered from 1.
    #[must_use]
    pub fn triggered(&self, routine: Which) -> u64 {
        let runs = self.runs.get(&routine);
        let last = runs.and_then(|it| it.last_key_value());
        last.map_or(0, |it| *it.0)
    }

    /// How many of them ended. One whose end no leader told (it was killed just then) ended if another
    /// one began after it.
    #[must_use]
    pub fn ended(&self, routine: Which) -> u64 {
        let runs = self.runs.get(&routine);
        let last = runs.and_then(|it| it.last_key_value());
        last.map_or(0, |(number, run)| number - u64::from(run.ended.is_none()))
    }

    /// When runs of a routine ended, in the order of time, as far as leaders told it.
    #[must_use]
    pub fn ends(&self, routine: Which) -> Vec<Time> {
        let runs = self.runs.get(&routine).into_iter().flatten();
        let mut ends: Vec<Time> = runs.filter_map(|it| Some(it.1.ended?.0)).collect();
        ends.sort_unstable();
        ends
    }

    /// How many runs of a routine were wished for by hand.
    #[must_use]
    pub fn wished(&self, routine: Which) -> u64 {
        self.asked.get(&routine).copied().unwrap_or_default()
    }

    /// When epochs began while runs were wished for.
    pub fn epochs_under_way(&self) -> impl Iterator<Item = Time> + '_ {
        let opened = self.opened.unwrap_or(self.end);
        let closed = self.closed.unwrap_or(self.end);
        let all = self.epochs.iter().copied();
        all.filter(move |at| (opened..closed).contains(at))
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "other events, also later ones, say nothing about this"
    )]
    fn on_routine(&mut self, group: GroupId, at: Time, event: &RoutineEvent) {
        let Some(routine) = Which::of(group) else {
            return;
        };
        let (number, end) = match event {
            RoutineEvent::Triggered { instance } | RoutineEvent::Executes { instance } => {
                (*instance, None)
            }
            RoutineEvent::Reports(report) => (report.instance, Some(report.end)),
            _ => return,
        };
        let run = self.runs.entry(routine).or_default().entry(number);
        let run = run.or_default();
        run.began = run.began.or(Some(at));
        run.ended = run.ended.or(end.map(|end| (at, end)));
    }

    fn stops(&mut self, node: NodeId, group: Option<GroupId>, at: Time) {
        let own = |it: &&mut Lead| {
            it.node == node && it.until.is_none() && group.is_none_or(|group| group == it.group)
        };
        self.leads.iter_mut().filter(own).for_each(|it| {
            it.until = Some(at);
        });
    }
}
