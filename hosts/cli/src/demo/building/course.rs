//! The history of the building: the commands that reached its devices, and the events of its nodes.

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
    /// The time of the arrival.
    pub at: Time,
    /// The device.
    pub device: NodeId,
    /// The command's number, which a repetition keeps.
    pub number: u64,
    /// The routine that sent it.
    pub routine: Which,
    /// The position of the command in the routine.
    pub step: usize,
    /// True if the device did it. A device ignores repetitions and earlier commands.
    pub is_done: bool,
}

/// The time in which a node led a group or was its member, according to its own events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tenure {
    /// The group.
    pub group: GroupId,
    /// The node.
    pub node: NodeId,
    /// The beginning.
    pub from: Time,
    /// The end; `None` if it goes on.
    pub until: Option<Time>,
}

impl Tenure {
    /// Returns true if it was under way at this time.
    #[must_use]
    pub fn covers(&self, time: Time) -> bool {
        self.from <= time && self.until.is_none_or(|until| time < until)
    }
}

/// A lamp and its routine, which were added while the building ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// The time of the request.
    pub from: Time,
    /// The time when each node took the site with the lamp.
    pub taken: BTreeMap<NodeId, Time>,
}

/// A run of a routine, as leaders reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The time of a leader's first report.
    pub began: Option<Time>,
    /// The time when its steps ended, and the result.
    pub ended: Option<(Time, End)>,
}

/// A power domain that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Darkness {
    /// Its nodes.
    pub nodes: [NodeId; 2],
    /// The groups that they led.
    pub led: BTreeSet<GroupId>,
    /// The time of the failure.
    pub from: Time,
    /// The time when all others knew that both nodes had failed.
    pub known: Option<Time>,
    /// The time when its nodes restarted.
    pub until: Option<Time>,
    /// The time when all nodes listed all again.
    pub back: Option<Time>,
}

/// A power failure of the whole building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blackout {
    /// The time of the failure.
    pub from: Time,
    /// The time when all nodes listed all again.
    pub back: Option<Time>,
}

/// A node that is spared, as its battery runs low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Low {
    /// The node.
    pub node: NodeId,
    /// The time when it asked.
    pub from: Time,
    /// The time when it was in no group.
    pub out: Option<Time>,
}

/// The whole history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Course {
    /// Commands that reached the devices, in the order of arrival.
    pub arrivals: Vec<Arrival>,
    /// The longest time between a leader's command and its arrival at the device.
    pub latest: Span,
    /// The runs, by their numbers.
    pub runs: BTreeMap<Which, BTreeMap<u64, Run>>,
    /// The number of decided requests for a run of each routine that is triggered by hand.
    pub asked: BTreeMap<Which, u64>,
    /// The leaders of groups over time.
    pub leads: Vec<Tenure>,
    /// The members of groups over time.
    pub memberships: Vec<Tenure>,
    /// The time of each change of a group's members.
    pub moves: BTreeMap<(GroupId, u64), Time>,
    /// The lamp that was added.
    pub addition: Option<Addition>,
    /// The domain that failed.
    pub dark: Option<Darkness>,
    /// The power failure of all nodes.
    pub blackout: Option<Blackout>,
    /// The node with a low battery.
    pub low: Option<Low>,
    /// The times when epochs began, by the system's clock.
    pub epochs: Vec<Time>,
    /// The number of runs of each routine that the map counts.
    pub counted: Option<BTreeMap<Which, u64>>,
    /// The entries that the map reported as stored; true for each that it had at the end.
    pub entries: BTreeMap<&'static str, bool>,
    /// The time when all nodes were up, and routines began to run.
    pub opened: Option<Time>,
    /// The time after which no more runs were requested.
    pub closed: Option<Time>,
    /// The end.
    pub end: Time,
    /// The number of events lost between the nodes and this history.
    pub missed: u64,
}

impl Course {
    /// Adds an event of a node.
    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "other events, also later ones, are not about this"
    )]
    pub fn note(&mut self, seen: &Observed) {
        let (at, node) = (seen.at, seen.node);
        let event = match &seen.event {
            NodeEvent::Groups(event) => event,
            NodeEvent::Site { .. } => {
                // The lamp is the only change.
                let addition = self.addition.as_mut();
                addition.map(|it| it.taken.entry(node).or_insert(at));
                return;
            }
            _ => return,
        };
        match event {
            Event::Leading { group } => begins(&mut self.leads, (*group, node), at),
            Event::Deposed { group } => stops(&mut self.leads, node, Some(*group), at),
            Event::Groups(groups::Event::Entered(group)) => {
                begins(&mut self.memberships, (*group, node), at);
            }
            Event::Groups(groups::Event::Left(group)) => self.leaves(node, Some(*group), at),
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

    /// Ends the leads and memberships of a node that fails.
    pub fn goes_down(&mut self, node: NodeId, at: Time) {
        self.leaves(node, None, at);
    }

    /// The present leader of each group: the latest node that reported to lead, unless it has
    /// reported the end.
    #[must_use]
    pub fn leaders(&self) -> BTreeMap<GroupId, NodeId> {
        let current = self.leads.iter().filter(|it| it.until.is_none());
        current.map(|it| (it.group, it.node)).collect()
    }

    /// The number of groups of which a node was a member at this time, by its own events. The registry
    /// does not count: it needs all nodes but one.
    #[must_use]
    pub fn groups_of(&self, node: NodeId, time: Time) -> usize {
        let own = self.memberships.iter().filter(|it| it.node == node);
        let own = own.filter(|it| it.group != GroupId::REGISTRY);
        own.filter(|it| it.covers(time)).count()
    }

    /// Returns true if a node was without power at this time.
    #[must_use]
    pub fn is_dark(&self, node: NodeId, time: Time) -> bool {
        let domain = self.dark.as_ref().is_some_and(|it| {
            it.nodes.contains(&node) && (it.from..it.until.unwrap_or(self.end)).contains(&time)
        });
        domain || self.blackout.is_some_and(|it| it.from == time)
    }

    /// The number of runs of a routine that were triggered: they are numbered from 1.
    #[must_use]
    pub fn triggered(&self, routine: Which) -> u64 {
        let runs = self.runs.get(&routine);
        let last = runs.and_then(|it| it.last_key_value());
        last.map_or(0, |it| *it.0)
    }

    /// The number of runs that ended. A run without a report of its end (its leader was killed just
    /// then) ended if another run began after it.
    #[must_use]
    pub fn ended(&self, routine: Which) -> u64 {
        let runs = self.runs.get(&routine);
        let last = runs.and_then(|it| it.last_key_value());
        last.map_or(0, |(number, run)| number - u64::from(run.ended.is_none()))
    }

    /// The times at which runs of a routine ended, in order, as leaders reported them.
    #[must_use]
    pub fn ends(&self, routine: Which) -> Vec<Time> {
        let runs = self.runs.get(&routine).into_iter().flatten();
        let mut ends: Vec<Time> = runs.filter_map(|it| Some(it.1.ended?.0)).collect();
        ends.sort_unstable();
        ends
    }

    /// The number of runs of a routine that were requested by hand.
    #[must_use]
    pub fn wished(&self, routine: Which) -> u64 {
        self.asked.get(&routine).copied().unwrap_or_default()
    }

    /// The number of runs of a routine that began before a time, by their numbers.
    #[must_use]
    pub fn begun_before(&self, routine: Which, time: Time) -> u64 {
        let runs = self.runs.get(&routine).into_iter().flatten();
        let begun = runs.filter(|it| it.1.began.is_some_and(|at| at < time));
        begun.map(|it| *it.0).max().unwrap_or_default()
    }

    /// The times of epochs that began while runs were requested.
    pub fn epochs_under_way(&self) -> impl Iterator<Item = Time> + '_ {
        let opened = self.opened.unwrap_or(self.end);
        let closed = self.closed.unwrap_or(self.end);
        let all = self.epochs.iter().copied();
        all.filter(move |at| (opened..closed).contains(at))
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "other events, also later ones, are not about this"
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

    fn leaves(&mut self, node: NodeId, group: Option<GroupId>, at: Time) {
        stops(&mut self.leads, node, group, at);
        stops(&mut self.memberships, node, group, at);
    }
}

fn begins(tenures: &mut Vec<Tenure>, (group, node): (GroupId, NodeId), from: Time) {
    stops(tenures, node, Some(group), from);
    let until = None;
    tenures.push(Tenure {
        group,
        node,
        from,
        until,
    });
}

/// Ends the tenures of a node in one group, or in all.
fn stops(tenures: &mut [Tenure], node: NodeId, group: Option<GroupId>, at: Time) {
    let own = |it: &&mut Tenure| {
        it.node == node && it.until.is_none() && group.is_none_or(|group| group == it.group)
    };
    tenures.iter_mut().filter(own).for_each(|it| {
        it.until = Some(at);
    });
}
