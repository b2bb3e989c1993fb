//! The leaders of the groups that a node leads, behind one face.

use alloc::vec::Vec;
use core::convert::Infallible;
use core::mem;

use selvedge_core::{Member, NodeId};

use crate::config::Config;
use crate::devices::{self, DeviceLeader, Ticket};
use crate::held::{Decided, Held, Update};
use crate::routines::{self, RoutineEvent, RoutineLeader, RoutineTimer};
use crate::store::{self, StoreLeader, StoreTimer};
use crate::wish::{Wish, Wishes};
use crate::{Answer, GroupId, Outcome, Request};

/// Tag of a timer of a group's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LeaderTimer {
    /// Of a cluster's.
    Devices(devices::Timer),
    /// Of a routine's.
    Routine(RoutineTimer),
    /// Of a map's.
    Map(StoreTimer),
}

/// What a leader tells the application of its node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaderEvent {
    /// A cluster's.
    Devices(devices::Event),
    /// A routine's.
    Routine(RoutineEvent),
}

/// The wishes of one call, of a leader of some kind: rooms that are used again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Out {
    devices: Wishes<devices::Update, devices::Timer, devices::Event>,
    routine: Wishes<routines::Update, RoutineTimer, RoutineEvent>,
    map: Wishes<store::Change, StoreTimer, Infallible>,
}

impl Out {
    /// Takes them out, in the words of the node.
    pub(crate) fn drain(
        &mut self,
    ) -> impl Iterator<Item = Wish<Update, LeaderTimer, LeaderEvent>> + '_ {
        let devices = self
            .devices
            .drain(..)
            .map(|it| it.map(Update::Devices, LeaderTimer::Devices, LeaderEvent::Devices));
        let routine = self
            .routine
            .drain(..)
            .map(|it| it.map(Update::Routine, LeaderTimer::Routine, LeaderEvent::Routine));
        let map = self
            .map
            .drain(..)
            .map(|it| it.map(Update::Map, LeaderTimer::Map, |it| match it {}));
        devices.chain(routine).chain(map)
    }
}

/// What happens to a leader.
#[derive(Debug)]
pub(crate) enum Occasion<'a> {
    Leads,
    Applied(&'a Decided),
    Asked(Member, Request),
    Told(GroupId, &'a Answer),
    Readable(u64),
    Tick(LeaderTimer),
    Reported(NodeId, Option<selvedge_routine::State>),
    Acted(Ticket, Outcome),
}

/// The leader of a group, in this node's memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Leading {
    Devices(DeviceLeader),
    Routine(RoutineLeader),
    Map(StoreLeader),
}

impl Leading {
    /// This node leads the group now.
    pub(crate) fn new(
        me: Member,
        config: &Config,
        group: GroupId,
        held: &Held,
        group_of: impl Fn(NodeId) -> Option<GroupId>,
    ) -> Self {
        match held {
            Held::Devices(it) => Self::Devices(DeviceLeader::new(me, config.devices, it)),
            Held::Routine(it) => {
                Self::Routine(RoutineLeader::new(config.routines, group, it, group_of))
            }
            Held::Map(_) => Self::Map(StoreLeader::new(config.maps.resend)),
        }
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
                let all = all.into_iter().chain(acts);
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
    /// The host reports what cannot be.
    pub(crate) fn on(
        &mut self,
        held: &Held,
        occasion: Occasion<'_>,
        out: &mut Out,
    ) -> Result<(), devices::Refused> {
        match (self, held) {
            (Self::Devices(leader), Held::Devices(state)) => {
                on_devices(leader, state, occasion, &mut out.devices)?;
            }
            (Self::Routine(leader), Held::Routine(state)) => {
                on_routine(leader, state, occasion, &mut out.routine);
            }
            (Self::Map(leader), Held::Map(state)) => on_map(leader, state, occasion, &mut out.map),
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
    occasion: Occasion<'_>,
    out: &mut Wishes<devices::Update, devices::Timer, devices::Event>,
) -> Result<(), devices::Refused> {
    match occasion {
        Occasion::Leads => leader.on_leads(state, out),
        Occasion::Applied(Decided::Devices(verdict)) => leader.on_applied(state, verdict, out),
        Occasion::Asked(from, request) => leader.on_asked(state, from, request, out),
        Occasion::Readable(read) => leader.on_readable(state, read, out),
        Occasion::Tick(LeaderTimer::Devices(timer)) => leader.on_tick(state, timer, out),
        Occasion::Reported(device, value) => leader.reported(state, device, value, out)?,
        Occasion::Acted(ticket, outcome) => leader.acted(ticket, outcome, out),
        Occasion::Applied(_) | Occasion::Told(..) | Occasion::Tick(_) => {} // Of another kind.
    }
    Ok(())
}

fn on_routine(
    leader: &mut RoutineLeader,
    state: &routines::RoutineState,
    occasion: Occasion<'_>,
    out: &mut Wishes<routines::Update, RoutineTimer, RoutineEvent>,
) {
    match occasion {
        Occasion::Leads => leader.on_leads(state, out),
        Occasion::Applied(Decided::Routine(decided)) => leader.on_applied(state, decided, out),
        Occasion::Asked(from, request) => leader.on_asked(state, from, &request, out),
        Occasion::Told(group, answer) => leader.on_told(state, group, answer, out),
        Occasion::Tick(LeaderTimer::Routine(timer)) => leader.on_tick(state, timer, out),
        Occasion::Applied(_)
        | Occasion::Readable(_)
        | Occasion::Tick(_)
        | Occasion::Reported(..)
        | Occasion::Acted(..) => {} // Of another kind.
    }
}

fn on_map(
    leader: &mut StoreLeader,
    state: &store::Store,
    occasion: Occasion<'_>,
    out: &mut Wishes<store::Change, StoreTimer, Infallible>,
) {
    match occasion {
        Occasion::Applied(Decided::Map(decided)) => leader.on_applied(state, decided, out),
        Occasion::Asked(from, Request::Store(request)) => {
            leader.on_asked(state, from, request, out);
        }
        Occasion::Readable(read) => leader.on_readable(state, read, out),
        Occasion::Tick(LeaderTimer::Map(timer)) => leader.on_tick(state, timer, out),
        Occasion::Leads
        | Occasion::Applied(_)
        | Occasion::Asked(..)
        | Occasion::Told(..)
        | Occasion::Tick(_)
        | Occasion::Reported(..)
        | Occasion::Acted(..) => {} // Of another kind.
    }
}
