//! Devices, and their connection to hosts: each device records its commands, and their times.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Member, NodeId};
use selvedge_kgroup::devices::Ticket;
use selvedge_kgroup::{Outcome, Site};
use selvedge_routine::State;

use selvedge_sim::histories::{History, Real, What};

use crate::world::{Own, World};

/// The longest time for which a command may act late, from the configuration of the site's nodes.
pub(crate) const ACT_TIMEOUT: Real = 3_000_000;

/// A host carries no command out later: its clock may be fast.
const LATEST: Real = ACT_TIMEOUT * 9 / 10;

#[derive(Default)]
pub(crate) struct Device {
    pub(crate) is_up: bool,
    pub(crate) value: Option<State>,
}

#[derive(Default)]
pub(crate) struct Devices {
    pub(crate) all: BTreeMap<NodeId, Device>,
    /// Nodes that do not reach a device.
    pub(crate) unreachable: BTreeSet<(u64, NodeId)>,
    /// In percent: commands that are not done, answers that are late, come twice, or do not come.
    pub(crate) fails: u64,
    pub(crate) late: u64,
    pub(crate) twice: u64,
    pub(crate) silent: u64,
    /// Hosts that take their time.
    pub(crate) slow: u64,
}

impl Devices {
    pub(crate) fn of(site: &Site) -> Self {
        let ids = site.clusters().flat_map(|it| it.1.devices.clone());
        Self {
            all: ids.map(|it| (it, up())).collect(),
            ..Self::default()
        }
    }

    /// A device is there, whether a site has it or not.
    pub(crate) fn install(&mut self, id: NodeId) {
        self.all.entry(id).or_insert_with(up);
    }

    pub(crate) fn are_well(&mut self) {
        self.unreachable.clear();
        (self.fails, self.late, self.twice, self.silent, self.slow) = (0, 0, 0, 0, 0);
        for it in self.all.values_mut() {
            it.is_up = true;
        }
    }
}

fn up() -> Device {
    Device {
        is_up: true,
        value: Some("0".into()),
    }
}

impl World {
    fn reaches(&self, node: u64, device: NodeId) -> bool {
        !self.devices.unreachable.contains(&(node, device)) && self.devices.all[&device].is_up
    }

    fn answer_time(&mut self) -> Real {
        let late = self.percent(self.devices.late);
        let most = if late { 1_500_000 } else { 60_000 };
        1_000 + self.below(most)
    }

    /// A host pings a device.
    pub(crate) fn ping(&mut self, me: Member, device: NodeId) {
        if !self.reaches(me.id.0, device) {
            return;
        }
        let value = self.devices.all[&device].value.clone();
        let value = if self.percent(5) { None } else { value };
        for _ in 0..1 + u64::from(self.percent(self.devices.twice)) {
            let after = self.answer_time();
            let what = Own::Reports(me, device, value.clone());
            self.after(after, What::Own(what));
        }
    }

    /// A device changes its state, and reports it to a node or two.
    pub(crate) fn turn(&mut self, device: NodeId, value: State) {
        self.say(|| format!("{device:?} is {value}"));
        self.devices.all.get_mut(&device).unwrap().value = Some(value.clone());
        for _ in 0..self.below(3) {
            let to = self.a_node();
            if self.reaches(to, device)
                && let Some(me) = self.me(to)
            {
                let after = self.answer_time();
                let value = Some(value.clone());
                self.after(after, What::Own(Own::Reports(me, device, value)));
            }
        }
    }

    /// A host is given a command.
    pub(crate) fn act(&mut self, me: Member, reported: Real, ticket: Ticket, value: State) {
        self.runs.given(me, ticket, &value);
        let slow = self.percent(self.devices.slow);
        let slow = if slow { LATEST } else { 100_000 };
        let when = self.now + self.below(slow);
        if when - reported > LATEST {
            return;
        }
        if self.devices.unreachable.contains(&(me.id.0, ticket.device)) {
            if self.percent(50) {
                self.runs.failed.insert(ticket);
                let what = Own::Answers(me, ticket, Outcome::Failed);
                self.at(when, What::Own(what));
            }
            return;
        }
        let what = Own::Arrives {
            by: me,
            ticket,
            value,
        };
        self.at(when, What::Own(what));
    }

    /// A command reaches its device.
    pub(crate) fn arrives(&mut self, by: Member, ticket: Ticket, value: State) {
        let fails = self.percent(self.devices.fails);
        let device = self.devices.all.get_mut(&ticket.device).unwrap();
        let did = device.is_up && !fails;
        if did {
            device.value = Some(value.clone());
        }
        let is_up = device.is_up;
        self.say(|| format!("{ticket:?} arrives, {value}: {did}"));
        self.is_not_held_by_another(ticket);
        self.runs.arrives(ticket, did);
        if !is_up || self.percent(self.devices.silent) {
            return;
        }
        let outcome = if did { Outcome::Done } else { Outcome::Failed };
        if !did {
            self.runs.failed.insert(ticket);
        }
        for _ in 0..1 + u64::from(self.percent(self.devices.twice)) {
            let after = self.answer_time();
            let what = Own::Answers(by, ticket, outcome);
            self.after(after, What::Own(what));
        }
    }
}
