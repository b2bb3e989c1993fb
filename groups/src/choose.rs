//! The choice of the nodes that look after a target, in one epoch.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;

use selvedge_core::settings::OutOfRange;
use selvedge_core::{NodeId, Sortition};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::draw::{Draw, Drawn, Use};
use crate::locality::{Tables, Vector};
use crate::{GroupId, Leader, Place, Selection, Weight};

/// A smart node: it can look after others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Its place. A node without a place is chosen by its hash alone.
    pub place: Option<Place>,
    /// The share of the groups that it takes.
    pub weight: Weight,
}

impl Node {
    /// A node with a place.
    #[must_use]
    pub fn new(id: u64, place: Place) -> Self {
        Self {
            place: Some(place),
            ..Self::without_place(NodeId(id))
        }
    }

    /// A node without a place.
    #[must_use]
    pub fn without_place(id: NodeId) -> Self {
        Self {
            id,
            place: None,
            weight: Weight::default(),
        }
    }

    /// The same node with this weight.
    #[must_use]
    pub const fn with_weight(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }
}

/// A target, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target<'a> {
    /// Its id.
    pub id: GroupId,
    /// Its centre: the place of its [representative](Chooser::representative). A target without a
    /// place gets members by their hashes.
    pub place: Option<Place>,
    /// Devices near the centre, the nearest first. Nodes similar to them are taken where too few
    /// are similar to the centre.
    pub neighbours: &'a [Place],
}

/// The reason for which a target has no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Unplaceable {
    /// There are fewer nodes than a group has members.
    #[error(
        "a group has {needed} members, and {found} nodes are known: lower Selection::failures or add nodes"
    )]
    TooFewNodes {
        /// The number of known nodes.
        found: usize,
        /// The number that a group needs.
        needed: usize,
    },
}

#[derive(Clone, Copy, Debug)]
struct Smart {
    node: Node,
    drawn: Drawn,
}

/// All nodes of one epoch, ready to be chosen from (sections 3.1 and 3.6).
///
/// | promise | under which assumption |
/// |---|---|
/// | two nodes choose the same group for a target, in the same order, bit for bit | their lists of nodes, places, settings, hash and epoch are equal; the order of the lists does not matter |
/// | nodes of equal weights are chosen as if there were no weights, bit for bit | |
/// | with [`Policy::Uniform`](crate::Policy::Uniform) a node leads in proportion to its [`Weight`], on average over targets and epochs, and is in groups in proportion to it | the hash is one; the node is in few of all groups |
/// | a node of weight 0 is in a group only where too few others are here, and leads only where no other member can | some nodes have more weight |
/// | a group has 2f + 1 different members | enough nodes are known; else the result is [`Unplaceable`] |
/// | a node that joins or leaves changes, with [`Policy::Uniform`](crate::Policy::Uniform), only the groups that it enters or was in, and one member of each | |
/// | nothing panics, for all places and ids | |
///
/// The choice does *not* promise that nodes with different lists agree (a choice is a proposal: the
/// decision of a group's members counts), that near members are near, where few nodes are similar
/// to the target's place, or anything against a node that chooses its id: it can choose one of a
/// low rank. Use a keyed [`Sortition`] then.
///
/// # Why two nodes agree
///
/// All numbers are integers: places, the slopes of the hash functions (sums of uniform numbers that
/// a hash draws, in 1/1024), floors of divisions, squares of distances. Ties are broken by rank,
/// and then by id. No node's past plays a part: the paper appends to a node's place the place where
/// it was active in the last epoch, and a node that missed one epoch then chooses other groups for
/// ever (erratum G10).
///
/// ```
/// use selvedge_core::Sha256Sortition;
/// use selvedge_groups::{Chooser, GroupId, Locality, Node, Place, Policy, Selection, Target};
///
/// // A floor of 10 by 10 metres, in centimetres.
/// let nodes = (0..100).map(|at| Node::new(at as u64, Place([at / 10 * 100, at % 10 * 100, 0])));
/// let near = Selection::new().with_policy(Policy::Near(Locality::for_spacing(100)));
/// let chooser = Chooser::new(near, &Sha256Sortition, 7, nodes)?;
///
/// let lamp = Target { id: GroupId(1), place: Some(Place([420, 310, 0])), neighbours: &[] };
/// let members = chooser.choose(lamp)?;
/// assert_eq!(members.len(), 5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Chooser<'a, H> {
    config: Selection,
    draw: Draw<'a, H>,
    /// In order of ids.
    nodes: Vec<Smart>,
    /// The highest weight, where nodes differ in weight. Else ranks are in the order of positions,
    /// and cost less.
    heaviest: Option<Weight>,
    tables: Option<Tables>,
}

impl<'a, H: Sortition> Chooser<'a, H> {
    /// Prepares an epoch. `nodes` may come in any order; of two with one id the last counts.
    ///
    /// O(n log n), with one hash for each node.
    ///
    /// # Errors
    /// A setting is out of its range.
    pub fn new(
        config: Selection,
        hash: &'a H,
        epoch: u64,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Result<Self, OutOfRange> {
        let nodes = nodes
            .into_iter()
            .map(|it| (it, it.place.unwrap_or_default()));
        Self::make(config, hash, epoch, nodes.collect(), false)
    }

    /// Prepares an epoch under the published rule: the place of each node is followed by the mean
    /// place of the devices that it looked after in the last epoch, as this node remembers it
    /// (section 3.6; erratum G10).
    ///
    /// # Errors
    /// A setting is out of its range.
    #[cfg(feature = "check")]
    pub fn published(
        config: Selection,
        hash: &'a H,
        epoch: u64,
        nodes: impl IntoIterator<Item = (Node, Place)>,
    ) -> Result<Self, OutOfRange> {
        Self::make(config, hash, epoch, nodes.into_iter().collect(), true)
    }

    fn make(
        config: Selection,
        hash: &'a H,
        epoch: u64,
        mut nodes: Vec<(Node, Place)>,
        weighs_history: bool,
    ) -> Result<Self, OutOfRange> {
        config.check()?;
        let draw = Draw::new(hash, epoch);
        nodes.reverse();
        nodes.sort_by_key(|it| it.0.id); // Stable: the last one of an id is first now.
        nodes.dedup_by_key(|it| it.0.id);
        let tables = match config.policy.for_places(nodes.iter().map(|it| it.0.place)) {
            None => None,
            Some(locality) => {
                let vectors = nodes.iter().zip(0..).filter_map(|((node, history), at)| {
                    Some((at, Vector::node(node.place?, *history)))
                });
                Some(Tables::new(locality, &draw, vectors, weighs_history))
            }
        };
        let drawn = nodes.into_iter().map(|(node, _)| Smart {
            node,
            drawn: draw.draw(Use::Node, node.id.0),
        });
        let nodes: Vec<Smart> = drawn.collect();
        let weights = nodes.iter().map(|it| it.node.weight);
        let heaviest = weights.clone().max();
        let heaviest = heaviest.filter(|heaviest| weights.clone().any(|it| it < *heaviest));
        Ok(Self {
            config,
            draw,
            nodes,
            heaviest,
            tables,
        })
    }

    /// The members of the group of `target`. The first one leads if it can, then the second one.
    ///
    /// O(n) comparisons of numbers, and one hash.
    ///
    /// # Errors
    /// The reason for which the target has no group.
    pub fn choose(&self, target: Target<'_>) -> Result<Vec<NodeId>, Unplaceable> {
        let needed = self.config.members();
        if self.nodes.len() < needed {
            let found = self.nodes.len();
            return Err(Unplaceable::TooFewNodes { found, needed });
        }
        let of_target = self.draw.draw(Use::Target, target.id.0);
        let mut members: Vec<Chosen> = Vec::with_capacity(needed);
        if let Some((tables, centre)) = self.tables.as_ref().zip(target.place) {
            self.choose_near(tables, centre, target.neighbours, of_target, &mut members);
        }
        let near = members.len();
        self.choose_lowest(needed, of_target, target.place, &mut members);
        match self.config.leader {
            Leader::LowestHash => {
                let (near, others) = members.split_at_mut(near);
                for part in [near, others] {
                    part.sort_unstable_by_key(|it| it.order);
                }
            }
            Leader::Nearest => {
                members.sort_unstable_by_key(|it| (it.weight == Weight(0), it.distance, it.order));
            }
        }
        Ok(members.into_iter().map(|it| it.order.id).collect())
    }

    /// The number of nodes that are similar to a place: candidates for the near part of its group.
    /// `None` with [`Policy::Uniform`](crate::Policy::Uniform), where all are.
    #[must_use]
    pub fn candidates(&self, place: Place) -> Option<usize> {
        Some(self.tables.as_ref()?.similar(place).len())
    }

    /// The device of a group whose place is the group's centre in this epoch: any of its devices,
    /// each with equal probability. O(n) hashes. `None` for no device.
    #[must_use]
    pub fn representative(
        &self,
        group: GroupId,
        devices: impl IntoIterator<Item = (NodeId, Place)>,
    ) -> Option<(NodeId, Place)> {
        let of_group = self.draw.draw(Use::Target, group.0);
        let rank = |id: NodeId| self.draw.draw(Use::Representative, id.0).rank_for(of_group);
        devices.into_iter().min_by_key(|it| (rank(it.0), it.0))
    }

    /// Chooses f + 1 of the nodes that are similar to the centre, the nearest first; and if they
    /// are too few, of the nodes that are similar to its neighbours.
    fn choose_near(
        &self,
        tables: &Tables,
        centre: Place,
        neighbours: &[Place],
        target: Drawn,
        members: &mut Vec<Chosen>,
    ) {
        let wanted = usize::from(self.config.failures) + 1;
        for place in [&centre].into_iter().chain(neighbours) {
            let similar = tables.similar(*place);
            let similar = similar.iter().filter_map(|&at| self.nodes.get(at as usize));
            let chosen = similar.map(|it| self.chosen(it, target, Some(centre)));
            let mut found: Vec<Chosen> = chosen.filter(|it| !members.contains(it)).collect();
            found.sort_unstable_by_key(|it| (it.distance, it.order));
            let missing = wanted - members.len();
            self.weigh(missing, &mut found);
            members.extend(found.into_iter().take(missing));
            if members.len() == wanted {
                return;
            }
        }
    }

    /// Keeps the nearest nodes whose weights together are those of `missing` times the heaviest, in
    /// their order: so light nodes share in groups with others around them, in proportion.
    fn weigh(&self, missing: usize, found: &mut Vec<Chosen>) {
        // Of these alone: a heavy node elsewhere changes nothing here.
        let weights = found.iter().map(|it| it.weight);
        let (Some(_), Some(heaviest)) = (self.heaviest, weights.max()) else {
            return;
        };
        let mut room = missing * usize::from(heaviest.0);
        found.retain(|it| {
            let is_kept = room > 0 && it.weight > Weight(0);
            room = room.saturating_sub(it.weight.0.into());
            is_kept
        });
        found.sort_unstable_by_key(|it| it.order);
    }

    /// Fills the group up with the nodes of the lowest ranks.
    fn choose_lowest(
        &self,
        needed: usize,
        target: Drawn,
        centre: Option<Place>,
        members: &mut Vec<Chosen>,
    ) {
        let wanted = needed - members.len();
        // The highest of the lowest on top.
        let mut lowest: BinaryHeap<(Order, usize)> = BinaryHeap::with_capacity(wanted + 1);
        for (at, node) in self.nodes.iter().enumerate() {
            let order = self.order(node, target);
            let is_full = lowest.len() == wanted;
            if is_full && lowest.peek().is_none_or(|it| it.0 <= order) {
                continue;
            }
            if members.iter().any(|it| it.order.id == order.id) {
                continue;
            }
            if is_full {
                lowest.pop();
            }
            lowest.push((order, at));
        }
        let lowest = lowest.into_iter().filter_map(|it| self.nodes.get(it.1));
        members.extend(lowest.map(|it| self.chosen(it, target, centre)));
    }

    fn order(&self, smart: &Smart, target: Drawn) -> Order {
        let rank = smart.drawn.rank_for(target);
        Order {
            position: match self.heaviest {
                Some(_) => smart.node.weight.position(rank),
                None => rank,
            },
            rank,
            id: smart.node.id,
        }
    }

    fn chosen(&self, smart: &Smart, target: Drawn, centre: Option<Place>) -> Chosen {
        let places = smart.node.place.zip(centre);
        let squared = places.map(|(one, other)| one.distance_squared(other));
        Chosen {
            order: self.order(smart, target),
            weight: smart.node.weight,
            distance: squared.unwrap_or(u64::MAX),
        }
    }
}

/// The order of the nodes for one target: the lowest is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    position: u64,
    rank: u64,
    id: NodeId,
}

/// A member, with its sort keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chosen {
    order: Order,
    weight: Weight,
    /// The square of its distance from the centre.
    distance: u64,
}
