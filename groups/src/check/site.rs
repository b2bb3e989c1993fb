//! A mesh with a registry: sites that follow each other, and a map that begins by its decision.

mod scenarios;
mod watch;

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_replica::{Replica, State};
use selvedge_sim::check::Node;
use serde::{Deserialize, Serialize};

use super::property::{are_equal, none};
use super::setup::{self, CommandOf, Kind, Mesh, ModelOf, Watches as _, World, unusable};
use crate::registry::{Registration, Registry, instance};
use crate::{Begins, Command, GroupId, Groups, Plan, Selection};

pub(super) use scenarios::{deep, pairs, quick};
use watch::SiteWatch;

type Setup = setup::Setup<Land>;

/// The site: the number of its nodes at first, the one that it has no more, its groups, and anything
/// else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Land {
    generation: u32,
    nodes: u64,
    content: u8,
    former: Option<u64>,
    /// True if it has [`NEXT`] and no maps.
    has_next: bool,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// A site of this generation, with this content, is proposed.
    Change(u32, u8),
    /// A site of this generation, without this node, is proposed.
    Remove(u32, u64),
    /// A site of this generation, with another group in the place of the map, is proposed.
    Regroup(u32),
    /// A question to the map's leader.
    Question(u8),
    /// An update of the map; each one of a setup differs.
    Propose(u8),
    /// An update of the group that takes the map's place; each one of a setup differs.
    ProposeNext(u8),
    /// The map is to begin anew.
    BeginAnew,
    /// An epoch.
    Epoch(u64),
}

/// An event that must happen in some run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// All nodes have a site of this generation.
    Taken(u32),
    /// A proposed site is not decided, as another one is.
    Overtaken,
    /// The map has begun so often, and is led.
    Begun(u64),
    /// Questions of so many nodes have reached the map's leader.
    Asked(usize),
    /// This number of updates of the map are applied.
    Applied(usize),
    /// This number of updates of the group that takes the map's place are applied.
    AppliedNext(usize),
    /// This number of leaders of the registry have led.
    Registrars(usize),
    /// A node has a part in the map, and does not vote.
    Voteless,
}

/// The journal of updates of a map, or the registry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) enum Held {
    Journal(Vec<u8>),
    Registry(Registry),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) enum Change {
    Add(u8),
    Register(Registration),
}

impl State for Held {
    type Update = Change;
    /// The number of updates of a map.
    type Outcome = usize;

    fn apply(&mut self, update: &Change) -> usize {
        match (self, update) {
            (Self::Journal(journal), Change::Add(update)) => {
                journal.push(*update);
                journal.len()
            }
            (Self::Registry(registry), Change::Register(registration)) => {
                registry.apply(registration);
                0
            }
            (Self::Journal(_), Change::Register(_)) | (Self::Registry(_), Change::Add(_)) => 0,
        }
    }
}

impl Begins for Held {
    type Site = Land;
    const HAS_REGISTRY: bool = true;

    fn groups(land: &Land) -> Vec<GroupId> {
        land.has_next.then_some(NEXT).into_iter().collect()
    }

    fn begin(land: &Land, group: GroupId) -> Option<Self> {
        if group == GroupId::REGISTRY {
            return Some(Self::Registry(Registry::default()));
        }
        let is_journal = match land.has_next {
            true => group == NEXT,
            false => group.is_map(),
        };
        is_journal.then_some(Self::Journal(Vec::new()))
    }

    fn is_founding(_: &Land, _: GroupId) -> bool {
        false
    }

    fn registry(&self) -> Option<&Registry> {
        match self {
            Self::Registry(registry) => Some(registry),
            Self::Journal(_) => None,
        }
    }

    fn register(registration: Registration) -> Option<Change> {
        Some(Change::Register(registration))
    }

    fn encode(land: &Land) -> Vec<u8> {
        postcard::to_allocvec(land).unwrap_or_default()
    }

    fn decode(bytes: &[u8]) -> Option<(Land, Plan)> {
        let land: Land = postcard::from_bytes(bytes).ok()?;
        Some((land, land.plan()?))
    }
}

impl Land {
    fn propose(self) -> CommandOf<Self> {
        Command::ChangeSite {
            site: Held::encode(&self),
            generation: self.generation,
        }
    }

    fn plan(self) -> Option<Plan> {
        let nodes = (1..=self.nodes).filter(|id| Some(*id) != self.former);
        let nodes = nodes.map(|id| crate::Node::without_place(NodeId(id)));
        let plan = Plan::new(Selection::new().with_failures(1), nodes).ok()?;
        let plan = plan.with_generation(self.generation);
        Some(plan.with_former(self.former.map(NodeId)))
    }
}

/// The places of the map, the registry and [`NEXT`] among the groups.
const MAP: usize = 0;
const REGISTRY: usize = 1;
const OF_NEXT: usize = 2;

/// The group that takes the place of the map in some sites.
const NEXT: GroupId = GroupId(4);

impl Kind for Land {
    type State = Held;
    type Ask = Ask;
    type Sight = Sight;
    type Watch = SiteWatch;

    const SAFETY: &'static str = "a generation has one site, a version of a group one update and one state, and a node no part in groups that its site does not have";
    const GOAL: &'static str =
        "the proposed site is decided and taken by all, and the map begins and is asked";

    fn site(nodes: u64) -> setup::Site<Held> {
        let land = Self {
            generation: 0,
            nodes,
            content: 0,
            former: None,
            has_next: false,
        };
        let Some(plan) = land.plan() else { unusable() };
        let members = |group: GroupId| {
            let all = plan.nodes().iter().copied();
            plan.choose::<Held>(&land, 1, all, [group]).pop()
        };
        // 2 leads the registry. Of four nodes the others in it are 1 and 4.
        let wanted = if nodes < 4 { [1, 2, 3] } else { [3, 1, 4] };
        let wanted: Vec<NodeId> = wanted.map(NodeId).into();
        let is_wanted = |it: &GroupId| members(*it).is_some_and(|it| it.1.as_ref() == Ok(&wanted));
        let maps = (0..10_000).map(GroupId).filter(|it| it.is_map());
        let Some(map) = maps.into_iter().find(is_wanted) else {
            unusable()
        };
        (plan, land, vec![map, GroupId::REGISTRY, NEXT])
    }

    fn command(world: &World<Self>, ask: Ask) -> CommandOf<Self> {
        let Some(&group) = world.groups.get(MAP) else {
            unusable()
        };
        let present = *world.site;
        match ask {
            Ask::Change(generation, content) => Self {
                generation,
                content,
                ..present
            }
            .propose(),
            Ask::Remove(generation, node) => Self {
                generation,
                former: Some(node),
                ..present
            }
            .propose(),
            Ask::Regroup(generation) => Self {
                generation,
                has_next: true,
                ..present
            }
            .propose(),
            Ask::Question(payload) => Command::Ask { group, payload },
            Ask::Propose(update) => {
                let update = Change::Add(update);
                Command::Propose { group, update }
            }
            Ask::ProposeNext(update) => Command::Propose {
                group: NEXT,
                update: Change::Add(update),
            },
            Ask::BeginAnew => Command::BeginAnew(group),
            Ask::Epoch(epoch) => Command::SetEpoch(epoch),
        }
    }

    fn is_safe(mesh: &Mesh<Self>, groups: &[GroupId]) -> bool {
        !mesh.observer().differs
            && none::<Self>(mesh, |it| it.differs)
            && are_equal::<Self>(mesh, groups)
            && mesh.machines().all(has_its_groups)
    }

    fn with_promises(model: ModelOf<Self>) -> ModelOf<Self> {
        let name = "the generation of a node never goes back";
        model.always(name, |mesh: &Mesh<Self>| !mesh.observer().goes_back)
    }

    /// A question is asked again where it was in vain: nothing else repeats it.
    fn may_end(setup: &Setup, mesh: &Mesh<Self>) -> bool {
        let is_asked_again = |it: &Node<Groups<Held, u8>>| {
            let asks = setup.asks.iter().filter(|ask| ask.0 == it.member().id.0);
            let done = usize::try_from(it.issued()).unwrap_or(usize::MAX);
            let mut left = asks.skip(done);
            it.is_up() && left.any(|it| matches!(it.1, Ask::Question(_)))
        };
        let watch = mesh.observer();
        !is_asked(setup) || !watch.asked.is_empty() || mesh.nodes().any(is_asked_again)
    }

    fn is_done(setup: &Setup, mesh: &Mesh<Self>, groups: &[GroupId]) -> bool {
        let asks = || setup.asks.iter().map(|it| it.1);
        let proposed = asks().filter_map(|it| match it {
            Ask::Change(generation, _) | Ask::Remove(generation, _) | Ask::Regroup(generation) => {
                Some(generation)
            }
            Ask::Question(_)
            | Ask::Propose(_)
            | Ask::ProposeNext(_)
            | Ask::BeginAnew
            | Ask::Epoch(_) => None,
        });
        let latest = mesh.machines().map(Groups::generation).max();
        let latest = latest.max(proposed.max()).unwrap_or_default();
        let has_latest = |it: &Groups<Held, u8>| {
            it.has_site() && it.generation() == latest && !it.registrar.is_proposing()
        };
        let begins_anew = asks().any(|it| it == Ask::BeginAnew);
        let parts = || {
            mesh.machines()
                .flat_map(|it| groups.iter().map(|group| it.replica(*group)))
        };
        mesh.machines().all(has_latest)
            && (!is_asked(setup) || !mesh.observer().asked.is_empty())
            && parts().flatten().all(|it| it.waiting() == 0)
            && has_begun(mesh, groups, u64::from(begins_anew)).unwrap_or(!begins_anew)
            && mesh.machines().all(|it| is_settled(mesh, it))
    }

    fn name(sight: Sight) -> &'static str {
        match sight {
            Sight::Taken(_) => "all nodes take the site",
            Sight::Overtaken => "another site is decided",
            Sight::Begun(_) => "the map begins",
            Sight::Asked(_) => "questions reach the map's leader",
            Sight::Applied(_) => "updates are applied",
            Sight::AppliedNext(_) => "updates of the next group are applied",
            Sight::Registrars(_) => "another node leads the registry",
            Sight::Voteless => "a founder that has lost its memory does not vote",
        }
    }

    fn is_seen(mesh: &Mesh<Self>, groups: &[GroupId], sight: Sight) -> bool {
        let watch = mesh.observer();
        let of = |group: usize| watch.of_groups().get(group);
        match sight {
            Sight::Taken(generation) => mesh.machines().all(|it| it.generation() == generation),
            Sight::Overtaken => watch.is_overtaken,
            Sight::Begun(before) => has_begun(mesh, groups, before) == Some(true),
            Sight::Asked(count) => watch.asked.len() >= count,
            Sight::Applied(count) => of(MAP).is_some_and(|it| it.applied.len() >= count),
            Sight::AppliedNext(count) => of(OF_NEXT).is_some_and(|it| it.applied.len() >= count),
            Sight::Registrars(count) => of(REGISTRY).is_some_and(|it| it.led.len() >= count),
            Sight::Voteless => mesh.machines().any(|it| {
                let map = groups.get(MAP).and_then(|map| it.replica(*map));
                map.is_some_and(|it| it.configuration().number > 0 && !it.votes())
            }),
        }
    }
}

fn is_asked(setup: &Setup) -> bool {
    setup.asks.iter().any(|it| matches!(it.1, Ask::Question(_)))
}

/// Returns true if the map has begun after so many beginnings before, and a node leads its latest
/// members. `None` where no node has a part in it.
fn has_begun(mesh: &Mesh<Land>, groups: &[GroupId], before: u64) -> Option<bool> {
    let map = *groups.get(MAP)?;
    let parts = || mesh.machines().filter_map(|it| it.replica(map));
    let number = |it: &Replica<Held>| it.configuration().number;
    let latest = parts().map(number).max()?;
    Some(instance(latest) >= before && parts().any(|it| it.leads() && number(it) == latest))
}

/// Returns true if a node has parts in groups of its site alone.
fn has_its_groups(machine: &Groups<Held, u8>) -> bool {
    let mut groups = machine.groups();
    groups.all(|it| Held::exists(machine.site(), it))
}

/// Returns true if the groups of a node's site are led, and it is in none if the site does not have it.
fn is_settled(mesh: &Mesh<Land>, machine: &Groups<Held, u8>) -> bool {
    let is_led = |it: &GroupId| mesh.machines().any(|node| node.leads(*it));
    let is_named = machine
        .plan()
        .nodes()
        .iter()
        .any(|it| it.id == machine.me().id);
    let is_in = machine.groups().next().is_some();
    Held::groups(machine.site()).iter().all(is_led) && (is_named || !is_in)
}
