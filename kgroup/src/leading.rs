//! The leaders of the groups that a node leads, behind one interface.

use alloc::vec::Vec;
use core::mem;

use selvedge_core::{Member, NodeId};
use selvedge_groups::{
    GroupId,
    store::{self, StoreLeader, StoreTimer},
};

use crate::config::Config;
use crate::devices::{self, Decision, DeviceLeader, Listed, Ticket};
use crate::effect::{Effect, Effects};
use crate::routines::{self, RoutineEvent, RoutineLeader, RoutineTimer};
use crate::site::Site;
use crate::state::{Decided, GroupState, Update};
use crate::{Answer, Due, Outcome, Request};

/// Tag of a timer of a group's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaderTimer {
    /// A timer of a cluster's leader.
    Devices(devices::Timer),
    /// A timer of a routine's leader.
    Routine(RoutineTimer),
    /// A timer of a map's leader.
    Map(StoreTimer),
}

/// An event of a leader for the application of its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaderEvent {
    /// An event of a cluster's leader.
    Devices(devices::Event),
    /// An event of a routine's leader.
    Routine(RoutineEvent),
}

/// The effects of one call, of a leader of some kind: buffers that are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out {
    devices: Effects<devices::Update, devices::Timer, devices::Event>,
    routine: Effects<routines::Update, RoutineTimer, RoutineEvent>,
    map: Vec<store::LeaderEffect>,
}

impl Out {
    /// Takes them out, as effects of the node.
    pub(crate) fn drain(
        &mut self,
    ) -> impl Iterator<Item = Effect<Update, LeaderTimer, LeaderEvent>> + '_ {
        let devices = self
            .devices
            .drain(..)
            .map(|it| it.map(Update::Devices, LeaderTimer::Devices, LeaderEvent::Devices));
        let routine = self
            .routine
            .drain(..)
            .map(|it| it.map(Update::Routine, LeaderTimer::Routine, LeaderEvent::Routine));
        let map = self.map.drain(..).map(Effect::from);
        devices.chain(routine).chain(map)
    }
}

/// An input of a leader.
#[derive(Debug)]
pub(crate) enum LeaderInput<'a> {
    Leads,
    Applied(&'a Decided),
    Asked(Member, Request),
    /// A clock of a node, and the voters of the group.
    Due(Member, Due, &'a [NodeId]),
    Notified(GroupId, &'a Answer),
    Readable(u64),
    Tick(LeaderTimer),
    Reported(NodeId, Option<selvedge_routine::State>),
    Acted(Ticket, Outcome),
    /// Follows the site of its node: at the beginning, and when that is another one.
    Site,
    /// A member has left.
    Left(Member),
}

/// The leader of a group, in this node's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Leading {
    Devices(DeviceLeader),
    Routine(RoutineLeader),
    Map(StoreLeader),
}

impl Leading {
    /// This node leads the group now. `None` for the registry.
    pub(crate) fn new(
        me: Member,
        config: &Config,
        group: GroupId,
        held: &GroupState,
        site: &Site,
    ) -> Option<Self> {
        Some(match held {
            GroupState::Devices(it) => Self::Devices(DeviceLeader::new(me, config.devices, it)),
            GroupState::Routine(it) => {
                let group_of = |device| site.cluster_of(device);
                let leader = RoutineLeader::new(config.routines, group, it, group_of);
                Self::Routine(leader.at(site.generation()))
            }
            GroupState::Map(_) => {
                let resend = config.maps.resend;
                Self::Map(StoreLeader::new(me, resend, site.frame_budget()))
            }
            // Its leader's tasks are those of the groups themselves.
            GroupState::Registry(_) => return None,
        })
    }

    /// The same, with numbers of reads from this one on.
    pub(crate) fn reading_from(mut self, last: u64) -> Self {
        match &mut self {
            Self::Devices(leader) => leader.last = last,
            Self::Routine(leader) => leader.last = last,
            Self::Map(leader) => *leader = leader.clone().reading_from(last),
        }
        self
    }

    /// All timers that it may have armed. The node may not hold the state any more.
    pub(crate) fn timers(&self) -> Vec<LeaderTimer> {
        match self {
            Self::Devices(leader) => {
                let acts = leader.devices().map(devices::Timer::Act);
                let all = [
                    devices::Timer::Ping,
                    devices::Timer::Unanswered,
                    devices::Timer::Resend,
                ];
                let wakes = leader.sleepers().map(devices::Timer::Wake);
                let all = all.into_iter().chain(acts).chain(wakes);
                all.map(LeaderTimer::Devices).collect()
            }
            Self::Routine(_) => {
                let all = [
                    RoutineTimer::Resend,
                    RoutineTimer::Backoff,
                    RoutineTimer::Command,
                    RoutineTimer::Hold,
                ];
                all.map(LeaderTimer::Routine).into()
            }
            Self::Map(_) => [LeaderTimer::Map(StoreTimer::Resend)].into(),
        }
    }

    /// # Errors
    /// The host's report cannot be true.
    pub(crate) fn on(
        &mut self,
        group: GroupId,
        held: &GroupState,
        site: &Site,
        input: LeaderInput<'_>,
        out: &mut Out,
    ) -> Result<(), devices::Reject> {
        match (self, held) {
            (Self::Devices(leader), GroupState::Devices(state)) => {
                on_devices(leader, state, (group, site), input, &mut out.devices)?;
            }
            (Self::Routine(leader), GroupState::Routine(state)) => {
                on_routine(leader, state, (group, site), input, &mut out.routine);
            }
            (Self::Map(leader), GroupState::Map(state)) => {
                on_map(leader, state, input, &mut out.map)
            }
            (this, _) => {
                debug_assert!(
                    false,
                    "{:?} leads what it did not begin with",
                    mem::discriminant(this)
                );
            }
        }
        Ok(())
    }
}

fn on_devices(
    leader: &mut DeviceLeader,
    state: &devices::Devices,
    (group, site): (GroupId, &Site),
    input: LeaderInput<'_>,
    out: &mut Effects<devices::Update, devices::Timer, devices::Event>,
) -> Result<(), devices::Reject> {
    let has_routine = |it| site.definition(it).is_some();
    let routines_of = |it| site.routines_of(it);
    let names = |routine, device| {
        let definition = site.definition(routine);
        definition.is_some_and(|it| it.devices().contains(&device))
    };
    let listed = || Listed {
        generation: site.generation(),
        devices: site.devices_of_cluster(group),
        has_routine: &has_routine,
        routines_of: &routines_of,
        names: &names,
    };
    match input {
        LeaderInput::Leads => {
            leader.follow_wake_intervals(state, site.wake_intervals(group), out);
            leader.on_leads(state, out);
        }
        LeaderInput::Site => {
            leader.follow_wake_intervals(state, site.wake_intervals(group), out);
            leader.sync(state, &listed(), out);
            leader.ask_routines(state, (group, &listed()), None, out);
        }
        LeaderInput::Applied(Decided::Devices(verdict)) => {
            leader.on_applied(state, verdict, out);
            let device = verdict.device;
            if verdict.decision.is_edit() {
                leader.sync(state, &listed(), out);
            }
            if verdict.decision == Decision::Entered {
                leader.ask_routines(state, (group, &listed()), Some(device), out);
            }
            if let Decision::Reclaimed(_) | Decision::Settled { .. } = verdict.decision {
                leader.open(state, device, &listed(), out);
            }
        }
        LeaderInput::Asked(from, request) => match request.routine() {
            Some(routine) if !has_routine(routine) => leader.refuse(from, &request, out),
            _ => leader.on_asked(state, from, request, out),
        },
        LeaderInput::Tick(LeaderTimer::Devices(timer)) => {
            leader.on_tick(state, timer, out);
            if timer == devices::Timer::Ping {
                leader.sync(state, &listed(), out);
                leader.ask_routines(state, (group, &listed()), None, out);
            }
        }
        LeaderInput::Readable(read) => leader.on_readable(state, read, out),
        LeaderInput::Reported(device, value) => leader.reported(state, device, value, out)?,
        LeaderInput::Acted(ticket, outcome) => leader.acted(ticket, outcome, out),
        LeaderInput::Notified(of, answer) => {
            leader.on_progress(state, (of, answer), &listed(), out);
            if let Answer::Progress { device, .. } = *answer {
                leader.open(state, device, &listed(), out);
            }
        }
        LeaderInput::Applied(_)
        | LeaderInput::Due(..)
        | LeaderInput::Tick(_)
        | LeaderInput::Left(_) => {} // For another kind.
    }
    Ok(())
}

fn on_routine(
    leader: &mut RoutineLeader,
    state: &routines::RoutineState,
    (group, site): (GroupId, &Site),
    input: LeaderInput<'_>,
    out: &mut Effects<routines::Update, RoutineTimer, RoutineEvent>,
) {
    let group_of = |device| site.cluster_of(device);
    match input {
        LeaderInput::Leads => leader.on_leads(state, out),
        LeaderInput::Site => {
            let is_later = leader.is_before(site.generation());
            leader.sync(state, site.generation(), site.definition(group), out);
            if is_later {
                leader.renew(state, group_of, out);
            }
        }
        LeaderInput::Applied(Decided::Routine(decided)) => {
            leader.on_applied(state, decided, out);
            if leader.is_outdated(state) {
                leader.renew(state, group_of, out);
            }
        }
        LeaderInput::Asked(from, request) => leader.on_asked(state, from, &request, out),
        LeaderInput::Due(from, due, voters) => leader.on_due(state, from, due, voters, out),
        LeaderInput::Notified(group, answer) => leader.on_answered(state, group, answer, out),
        LeaderInput::Tick(LeaderTimer::Routine(timer)) => leader.on_tick(state, timer, out),
        LeaderInput::Readable(read) => leader.on_readable(state, read, out),
        LeaderInput::Applied(_)
        | LeaderInput::Tick(_)
        | LeaderInput::Left(_)
        | LeaderInput::Reported(..)
        | LeaderInput::Acted(..) => {} // For another kind.
    }
}

fn on_map(
    leader: &mut StoreLeader,
    state: &store::Store,
    input: LeaderInput<'_>,
    out: &mut Vec<store::LeaderEffect>,
) {
    match input {
        LeaderInput::Applied(Decided::Map(decided)) => leader.on_applied(state, decided, out),
        LeaderInput::Asked(from, Request::Store(request)) => {
            leader.on_asked(state, from, request, out);
        }
        LeaderInput::Readable(read) => leader.on_readable(state, read, out),
        LeaderInput::Tick(LeaderTimer::Map(timer)) => leader.on_tick(state, timer, out),
        LeaderInput::Leads => leader.on_leads(state, out),
        LeaderInput::Left(member) => leader.on_left(member, out),
        LeaderInput::Site
        | LeaderInput::Applied(_)
        | LeaderInput::Asked(..)
        | LeaderInput::Due(..)
        | LeaderInput::Notified(..)
        | LeaderInput::Tick(_)
        | LeaderInput::Reported(..)
        | LeaderInput::Acted(..) => {} // For another kind.
    }
}
