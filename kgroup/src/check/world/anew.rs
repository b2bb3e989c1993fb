//! A cluster whose group begins anew, while messages of its former leader are on their way.

use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;

use super::{World, of_devices, routine_group};
use crate::Delivery;
use crate::check::setup::Who;
use crate::devices::machine::Out;
use crate::devices::{DeviceLeader, Devices, Limits, Listed};
use crate::message::Answer;

impl World {
    /// The group has lost its memory.
    pub(super) fn begins_anew(&mut self, number: usize) {
        let rules = of_devices(&self.setup);
        let Some(group) = self.clusters.get_mut(number) else {
            return;
        };
        let anew = Devices::begun_again(Limits::new(), 1, 0).published(&rules);
        group.state = anew;
        self.has_begun_anew = true;
        self.sits(Who::Cluster(number), false);
        // Its answers are on their way. It gives none any more, so that the search ends.
        let group = self.clusters.get_mut(number);
        if let Some(seat) = group.and_then(|it| it.seats.first_mut()) {
            *seat = None;
        }
        self.follows(number, 1);
    }

    /// Returns true if a cluster may begin anew.
    pub(super) fn may_begin_anew(&self, number: usize) -> bool {
        let is_first = self.clusters.get(number).is_some_and(|it| it.present == 0);
        self.setup.begins_anew && self.takeovers > 0 && is_first
    }

    /// A routine answers the leader of a cluster that has begun anew.
    pub(super) fn progresses(&mut self, number: usize, seat: usize, of: GroupId, answer: &Answer) {
        self.at_site(number, seat, |leader, state, site, out| {
            leader.on_progress(state, (of, answer), site, out);
        });
        self.follows(number, seat);
    }

    /// The leader of a cluster compares its state with the site.
    pub(super) fn follows(&mut self, number: usize, seat: usize) {
        if !self.has_begun_anew {
            return;
        }
        let cluster = GroupId(number as u64);
        self.at_site(number, seat, |leader, state, site, out| {
            leader.sync(state, site, out);
            leader.ask_routines(state, (cluster, site), None, out);
        });
    }

    fn at_site(
        &mut self,
        number: usize,
        seat: usize,
        call: impl FnOnce(&mut DeviceLeader, &Devices, &Listed<'_>, &mut Out),
    ) {
        let all = (0..self.setup.devices).map(NodeId);
        let devices: Vec<NodeId> = all
            .filter(|it| self.cluster_of(*it) == Some(number))
            .collect();
        let routines: Vec<(GroupId, Vec<NodeId>)> = (self.routines.iter().enumerate())
            .map(|(number, it)| (routine_group(number), it.state.definition().devices()))
            .collect();
        let names = |routine: GroupId, device: NodeId| {
            let mut all = routines.iter();
            all.any(|it| it.0 == routine && it.1.contains(&device))
        };
        let routines_of = |device| {
            let all = routines.iter().map(|it| it.0);
            all.filter(|it| names(*it, device)).collect()
        };
        let site = Listed {
            generation: 0,
            devices: &devices,
            has_routine: &|_| true,
            routines_of: &routines_of,
            names: &names,
        };
        self.with_cluster(number, seat, |group| {
            group.step(seat, |leader, state, out| call(leader, state, &site, out))
        });
    }

    /// Returns true if a command may be given again, under another number: its group has begun anew.
    pub(super) fn may_repeat(&self, routine: usize) -> bool {
        let plan = self.setup.routines.get(routine);
        let is_allowed = plan.is_some_and(|it| it.delivery == Delivery::AtLeastOnce);
        self.has_begun_anew && is_allowed
    }

    /// Returns true if a cluster has a device that no claim can get yet.
    pub(super) fn is_closed(&self, number: usize) -> bool {
        let group = self.clusters.get(number);
        group.is_some_and(|it| it.state.ids().any(|device| !it.state.is_open(device)))
    }
}
