//! A mesh with one group, which begins with the site: nodes of which all but the last one found the
//! group, one more than a group has members. 1 leads it at first if there is a past.

use ::core::slice;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_replica::Replica;

use super::setup::{self, CommandOf, Kind, Mesh, Site, Watches, World, unusable};
use super::watch::Watch;
use super::{Inner, Journal};
use crate::{Command, GroupId, Node, Place, Plan, Selection};

pub(super) type Setup = setup::Setup<OneGroup>;

#[derive(Clone, Copy, Debug)]
pub(super) struct OneGroup;

/// An application's command, in a form that constants can have. Nodes stand by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// An epoch in which these are the members, the preferred leader first.
    Epoch(&'static [u64]),
    /// An update of the group; each one of a setup differs.
    Propose(u8),
    /// A question to the group's leader.
    Question(u8),
}

/// An event that must happen in some run, so that a scenario in which nothing happens does not
/// pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// This number of updates are applied.
    Applied(usize),
    /// This number of leaders have led.
    Leaders(usize),
    /// This configuration counts somewhere.
    Configured(u64),
    /// A question has reached a leader.
    Asked,
    /// A node has given its part up, here or before.
    Left,
    /// This node votes, and not with its first memory.
    InAgain(u64),
}

impl Kind for OneGroup {
    type State = Journal;
    type Ask = Ask;
    type Sight = Sight;
    type Watch = Watch;

    const SAFETY: &'static str = "a version applies one update everywhere";
    const GOAL: &'static str = "the latest members have a leader, and what was proposed is decided";

    fn site(nodes: u64) -> Site<Journal> {
        let all = (1..=nodes).map(|id| Node::new(id, Place::default()));
        let failures = u8::try_from(nodes / 2 - 1).unwrap_or(u8::MAX);
        let Ok(plan) = Plan::new(Selection::new().with_failures(failures), all) else {
            unusable()
        };
        let founders: Vec<NodeId> = (1..nodes).map(NodeId).collect();
        let is_founded = |group: &GroupId| plan.founders::<Journal>(group, *group) == founders;
        let Some(group) = (1..10_000).map(GroupId).find(is_founded) else {
            unusable()
        };
        (plan, group, vec![group])
    }

    fn command(world: &World<Self>, ask: Ask) -> CommandOf<Self> {
        let group = *world.site;
        match ask {
            Ask::Epoch(members) => Command::SetEpoch(epoch_of(world, members)),
            Ask::Propose(update) => Command::Propose { group, update },
            Ask::Question(payload) => Command::Ask { group, payload },
        }
    }

    fn is_safe(mesh: &Mesh<Self>, _groups: &[GroupId]) -> bool {
        !mesh.observer().differs
    }

    /// Returns true if a node leads the latest configuration, no node waits for a decision, and a
    /// leader has received any question that was asked.
    fn is_done(setup: &Setup, mesh: &Mesh<Self>, groups: &[GroupId]) -> bool {
        let is_asked = setup.asks.iter().any(|it| matches!(it.1, Ask::Question(_)));
        groups.iter().all(|group| {
            let parts = || mesh.machines().filter_map(|it| it.replica(*group));
            let latest = parts().map(|it| it.configuration().number).max();
            let leads =
                |it: &Replica<Journal>| it.leads() && Some(it.configuration().number) == latest;
            parts().any(leads) && parts().all(|it| it.waiting() == 0)
        }) && (!is_asked || mesh.observer().is_asked)
    }

    fn name(sight: Sight) -> &'static str {
        match sight {
            Sight::Applied(_) => "updates are applied",
            Sight::Leaders(_) => "another node leads",
            Sight::Configured(_) => "the next link counts",
            Sight::Asked => "a question reaches the leader",
            Sight::Left => "a node gives its part up",
            Sight::InAgain(_) => "a node is in the group again",
        }
    }

    fn is_seen(mesh: &Mesh<Self>, groups: &[GroupId], sight: Sight) -> bool {
        let watch = mesh.observer();
        match sight {
            Sight::Applied(count) => watch.applied.len() >= count,
            Sight::Leaders(count) => watch.led.len() >= count,
            Sight::Configured(number) => watch.numbers.iter().any(|it| *it >= number),
            Sight::Asked => watch.is_asked,
            Sight::Left => watch.has_left,
            Sight::InAgain(node) => mesh.machines().any(|it: &Inner| {
                let is_in = |it: &Replica<Journal>| it.votes() && it.mark() > 1;
                let parts = || groups.iter().filter_map(|group| it.replica(*group));
                it.me().id.0 == node && parts().any(is_in)
            }),
        }
    }
}

impl Watches<Journal> for Watch {
    fn of(ids: Vec<u64>) -> Self {
        Self::of(ids)
    }

    fn without(self, down: &[u64]) -> Self {
        self.without(down)
    }

    fn of_groups(&self) -> &[Watch] {
        slice::from_ref(self)
    }
}

/// An epoch, but the first, in which all nodes would choose these.
fn epoch_of(world: &World<OneGroup>, members: &[u64]) -> u64 {
    let is_it = |epoch: &u64| {
        let nodes = world.plan.nodes().iter().copied();
        let groups = world.groups.iter().copied();
        let chosen = world
            .plan
            .choose::<Journal>(&world.site, *epoch, nodes, groups);
        let members = members.iter().map(|it| NodeId(*it));
        let chosen = chosen.into_iter().next();
        chosen.is_some_and(|it| it.1.is_ok_and(|it| it.into_iter().eq(members)))
    };
    match (2..10_000).find(is_it) {
        Some(epoch) => epoch,
        None => unusable(),
    }
}
