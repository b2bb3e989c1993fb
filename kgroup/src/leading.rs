//! The leaders of the groups that a node leads, behind one face.

use alloc::vec::Vec;
use core::mem;

use selvedge_core::{Member, NodeId};

use crate::config::Config;
use crate::devices::{self, DeviceLeader, Ticket};
use crate::held::{Decided, Held, Update};
use crate::routines::{RoutineEvent, RoutineLeader, RoutineTimer};
use crate::store::{StoreLeader, StoreTimer};
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

pub(crate) type Out = Wishes<Update, LeaderTimer, LeaderEvent>;

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
                let mut wishes = Wishes::new();
                on_devices(leader, state, occasion, &mut wishes)?;
                let map = |it: Wish<_, _, _>| {
                    it.map(Update::Devices, LeaderTimer::Devices, LeaderEvent::Devices)
                };
                out.extend(wishes.into_iter().map(map));
            }
            (Self::Routine(leader), Held::Routine(state)) => {
                let mut wishes = Wishes::new();
                match occasion {
                    Occasion::Leads => leader.on_leads(state, &mut wishes),
                    Occasion::Applied(Decided::Routine(decided)) => {
                        leader.on_applied(state, decided, &mut wishes);
                    }
                    Occasion::Asked(from, request) => {
                        leader.on_asked(state, from, &request, &mut wishes);
                    }
                    Occasion::Told(group, answer) => {
                        leader.on_told(state, group, answer, &mut wishes);
                    }
                    Occasion::Tick(LeaderTimer::Routine(timer)) => {
                        leader.on_tick(state, timer, &mut wishes);
                    }
                    Occasion::Applied(_)
                    | Occasion::Readable(_)
                    | Occasion::Tick(_)
                    | Occasion::Reported(..)
                    | Occasion::Acted(..) => {} // Meant for a leader of another kind.
                }
                let map = |it: Wish<_, _, _>| {
                    it.map(Update::Routine, LeaderTimer::Routine, LeaderEvent::Routine)
                };
                out.extend(wishes.into_iter().map(map));
            }
            (Self::Map(leader), Held::Map(state)) => {
                let mut wishes = Wishes::new();
                match occasion {
                    Occasion::Applied(Decided::Map(decided)) => {
                        leader.on_applied(state, decided, &mut wishes);
                    }
                    Occasion::Asked(from, Request::Store(request)) => {
                        leader.on_asked(state, from, request, &mut wishes);
                    }
                    Occasion::Readable(read) => leader.on_readable(state, read, &mut wishes),
                    Occasion::Tick(LeaderTimer::Map(timer)) => {
                        leader.on_tick(state, timer, &mut wishes);
                    }
                    Occasion::Leads
                    | Occasion::Applied(_)
                    | Occasion::Asked(..)
                    | Occasion::Told(..)
                    | Occasion::Tick(_)
                    | Occasion::Reported(..)
                    | Occasion::Acted(..) => {} // Meant for a leader of another kind.
                }
                let map =
                    |it: Wish<_, _, _>| it.map(Update::Map, LeaderTimer::Map, |it| match it {});
                out.extend(wishes.into_iter().map(map));
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
