//! The plan: equal on all nodes, it lists the nodes that can be members.

use alloc::vec::Vec;

use selvedge_core::settings::{self, OutOfRange, Setting};
use selvedge_core::{Incarnation, Member, NodeId, Sha256Sortition};
use selvedge_replica::Configuration;
use thiserror::Error;

use crate::draw::mix;
use crate::message::{FIXED_LEN, ITEM_LEN};
use crate::{Begins, Chooser, GroupId, Node, Policy, Selection, Target, Unplaceable};

/// The length in bytes of all that precedes a replica's message.
const AROUND: u16 = (FIXED_LEN + ITEM_LEN) as u16;

/// The most members of the registry that may fail, where there are enough nodes: so it has up to 15.
const REGISTRY_FAILURES: u8 = 7;

/// The shortest frame: a replica's shortest, and the bytes before its message.
const FRAME_MIN: u64 = 127 + AROUND as u64;

/// The list of nodes that can be members of groups, and the rule that chooses them, equal on all
/// nodes. Its digest stands in each message, so that nodes with different plans refuse each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    selection: Selection,
    /// In order of ids.
    nodes: Vec<Node>,
    /// In order of ids.
    former: Vec<NodeId>,
    frame_budget: u16,
    generation: u32,
    /// The number of members of the registry that may fail.
    registry_failures: u8,
    digest: u32,
}

/// The reason for which a plan cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A number is out of its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// A node is named twice.
    #[error("node {0} is named twice: give each node an id of its own")]
    Twice(NodeId),
    /// There are too few nodes for a group.
    #[error(
        "a group has {needed} members, and the plan has {found} nodes: lower Selection::failures or add nodes"
    )]
    TooFewNodes {
        /// The number of nodes in the plan.
        found: usize,
        /// The number that a group needs.
        needed: usize,
    },
    /// Frames have no room for the members of a group, in any of their lives.
    #[error(
        "frames have {found} bytes, and the names of a group's members need {needed}: set the frame budget to {needed} or more"
    )]
    Frame {
        /// The frame budget.
        found: u16,
        /// The lowest that works.
        needed: u16,
    },
}

impl Plan {
    /// A plan with these nodes, with frames of 1,400 bytes.
    ///
    /// # Errors
    /// The reason for which the plan cannot work.
    pub fn new(
        selection: Selection,
        nodes: impl IntoIterator<Item = Node>,
    ) -> Result<Self, ConfigError> {
        selection.check()?;
        let mut nodes: Vec<Node> = nodes.into_iter().collect();
        nodes.sort_by_key(|it| it.id);
        let mut pairs = nodes.iter().zip(nodes.iter().skip(1));
        if let Some((twice, _)) = pairs.find(|(one, next)| one.id == next.id) {
            return Err(ConfigError::Twice(twice.id));
        }
        let (found, needed) = (nodes.len(), selection.members());
        if found < needed {
            return Err(ConfigError::TooFewNodes { found, needed });
        }
        let locality = selection.policy.for_places(nodes.iter().map(|it| it.place));
        let policy = locality.map_or(Policy::Uniform, Policy::Near);
        let mut plan = Self {
            selection: selection.with_policy(policy),
            nodes,
            former: Vec::new(),
            frame_budget: 1_400,
            generation: 0,
            registry_failures: 0,
            digest: 0,
        };
        plan.digest = plan.of_nodes();
        plan.registry_failures = plan.most_registry_failures();
        Ok(plan)
    }

    /// The same plan with this limit in bytes for a frame, header and sender included: from 150, and no
    /// less than the names of a group's members need.
    ///
    /// # Errors
    /// The number is out of its range, or [`ConfigError::Frame`].
    pub fn with_frame_budget(mut self, frame_budget: u16) -> Result<Self, ConfigError> {
        settings::check(&[Setting::number(
            "frame_budget",
            frame_budget.into(),
            FRAME_MIN,
            u16::MAX.into(),
        )
        .counts("bytes")])?;
        self.frame_budget = frame_budget;
        let needed = (frame_budget..u16::MAX).find(|it| self.members_fit(*it));
        let needed = needed.unwrap_or(u16::MAX);
        if frame_budget < needed {
            let found = frame_budget;
            return Err(ConfigError::Frame { found, needed });
        }
        self.registry_failures = self.most_registry_failures();
        Ok(self.with(frame_budget.into()))
    }

    /// The same plan, of this generation of the site. A node with a plan of generation 0 founds
    /// groups; one with a later plan asks the others for theirs, if groups have a registry. Default 0.
    #[must_use]
    pub fn with_generation(mut self, generation: u32) -> Self {
        self.generation = generation;
        self.with(generation.into())
    }

    /// The same plan, with nodes that a former generation had. They are chosen no more, and their
    /// messages are taken as long as a group has them as members.
    #[must_use]
    pub fn with_former(mut self, former: impl IntoIterator<Item = NodeId>) -> Self {
        self.former = former.into_iter().collect();
        self.former
            .retain(|it| self.nodes.binary_search_by_key(it, |it| it.id).is_err());
        self.former.sort_unstable();
        self.former.dedup();
        self
    }

    /// The same plan, with this in its digest as well: the first states of groups, a generation.
    #[must_use]
    pub fn with(mut self, word: u64) -> Self {
        let digest = mix(u64::from(self.digest) << 32 ^ mix(word));
        self.digest = (digest >> 32) as u32;
        self
    }

    /// The nodes that can be members, by id.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The rule that chooses them, with the policy that the places of the nodes give.
    #[must_use]
    pub const fn selection(&self) -> &Selection {
        &self.selection
    }

    /// The longest frame, in bytes.
    #[must_use]
    pub const fn frame_budget(&self) -> u16 {
        self.frame_budget
    }

    /// The generation of the site.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The digest that distinguishes plans: 32 bits, not cryptographic; against mistakes, and not
    /// against liars.
    #[must_use]
    pub const fn digest(&self) -> u32 {
        self.digest
    }

    /// The longest frame of a replica, so that it fits with the bytes before it.
    pub(crate) const fn replica_budget(&self) -> u16 {
        self.frame_budget - AROUND
    }

    /// Returns true if a link fits into such frames for all members that it may name. Founders are named in life 0;
    /// a link that named later lives and did not fit would never be decided.
    fn members_fit(&self, frame_budget: u16) -> bool {
        self.fits(frame_budget, self.selection.members())
    }

    /// Returns true if a link of this many members fits into such frames.
    fn fits(&self, frame_budget: u16, members: usize) -> bool {
        let longest = self.nodes.iter().rev().take(members);
        let members = longest.map(|it| Member {
            id: it.id,
            incarnation: Incarnation(u32::MAX),
        });
        let configuration = Configuration {
            number: Configuration::NUMBER_MAX,
            frame_budget: frame_budget.saturating_sub(AROUND),
            ..Configuration::of(members)
        };
        configuration.check().is_ok()
    }

    /// As many members of the registry as there are nodes, up to [`REGISTRY_FAILURES`], and as frames
    /// have room for: it decides where other groups begin that have lost their members.
    fn most_registry_failures(&self) -> u8 {
        let least = self.selection.failures;
        if least == 0 {
            return 0; // A node goes on alone.
        }
        let most = (self.nodes.len().saturating_sub(1) / 2).min(REGISTRY_FAILURES.into());
        let most = u8::try_from(most).unwrap_or(REGISTRY_FAILURES);
        let fits = |it: &u8| self.fits(self.frame_budget, 2 * usize::from(*it) + 1);
        (least..=most).rev().find(fits).unwrap_or(least)
    }

    /// The number of members of a group that may fail.
    pub(crate) fn failures<S: Begins>(&self, group: GroupId) -> u8 {
        if S::HAS_REGISTRY && group == GroupId::REGISTRY {
            return self.registry_failures;
        }
        self.selection.failures
    }

    /// The place of a node in the list of [`known`](Self::known) ones.
    pub(crate) fn place(&self, id: NodeId) -> Option<usize> {
        let own = self.nodes.binary_search_by_key(&id, |it| it.id);
        let former = || self.former.binary_search(&id).ok();
        own.ok().or_else(|| Some(self.nodes.len() + former()?))
    }

    /// Returns true if a node can be a member.
    pub(crate) fn names(&self, id: NodeId) -> bool {
        self.nodes.binary_search_by_key(&id, |it| it.id).is_ok()
    }

    /// The nodes with messages that are taken: possible members, and then former nodes.
    pub(crate) fn known(&self) -> impl Iterator<Item = NodeId> + '_ {
        let nodes = self.nodes.iter().map(|it| it.id);
        nodes.chain(self.former.iter().copied())
    }

    /// The members of groups in an epoch, of these nodes of the plan, as [`Groups`](crate::Groups)
    /// chooses them: near the group's [representative](Chooser::representative) in this epoch where
    /// it has devices and the policy is [`Policy::Near`], by hashes else.
    ///
    /// O(n log n) and n hashes, then O(n) for each group, with a hash for each of its devices.
    pub fn choose<S: Begins>(
        &self,
        site: &S::Site,
        epoch: u64,
        nodes: impl IntoIterator<Item = Node, IntoIter: Clone>,
        groups: impl IntoIterator<Item = GroupId>,
    ) -> Vec<(GroupId, Result<Vec<NodeId>, Unplaceable>)> {
        let nodes = nodes.into_iter();
        let chooser = |policy, failures| {
            let selection = self.selection.with_policy(policy).with_failures(failures);
            let chooser = Chooser::new(selection, &Sha256Sortition, epoch, nodes.clone());
            debug_assert!(chooser.is_ok(), "the selection was checked");
            chooser.ok()
        };
        let failures = self.selection.failures;
        let (mut near, mut uniform, mut registry) = (None, None, None);
        let chosen = groups.into_iter().filter_map(|id| {
            let devices = S::devices(site, id);
            // A group without devices, such as a map of the application, gets members by hash.
            let chooser = if S::HAS_REGISTRY && id == GroupId::REGISTRY {
                registry.get_or_insert_with(|| chooser(Policy::Uniform, self.registry_failures))
            } else if devices.is_empty() {
                uniform.get_or_insert_with(|| chooser(Policy::Uniform, failures))
            } else {
                near.get_or_insert_with(|| chooser(self.selection.policy, failures))
            };
            let chooser = chooser.as_ref()?;
            let centre = chooser.representative(id, devices);
            let neighbours = centre.map(|(device, place)| {
                let mut neighbours = S::neighbours(site, device);
                neighbours.sort_unstable_by_key(|it| (it.distance_squared(place), *it));
                neighbours
            });
            let target = Target {
                id,
                place: centre.map(|it| it.1),
                neighbours: neighbours.as_deref().unwrap_or_default(),
            };
            Some((id, chooser.choose(target)))
        });
        chosen.collect()
    }

    /// The members of the first configurations of groups.
    pub(crate) fn founders_of<S: Begins>(
        &self,
        site: &S::Site,
        groups: impl IntoIterator<Item = GroupId>,
    ) -> Vec<(GroupId, Vec<NodeId>)> {
        let all = self.choose::<S>(site, 0, self.nodes.iter().copied(), groups);
        let founders = all.into_iter().filter_map(|(group, founders)| {
            debug_assert!(founders.is_ok(), "there are enough nodes");
            Some((group, founders.ok()?))
        });
        founders.collect()
    }

    /// The members of a group's first configuration.
    pub(crate) fn founders<S: Begins>(&self, site: &S::Site, group: GroupId) -> Vec<NodeId> {
        let founders = self.founders_of::<S>(site, [group]).into_iter().next();
        founders.map(|it| it.1).unwrap_or_default()
    }

    fn of_nodes(&self) -> u32 {
        let Selection {
            failures,
            policy,
            leader,
        } = self.selection;
        let of_policy = match policy {
            Policy::ByPlaces | Policy::Uniform => 0,
            Policy::Near(it) => {
                1 | u64::from(it.functions) << 8
                    | u64::from(it.tables) << 16
                    | u64::from(it.width) << 24
            }
        };
        let of_leader = match leader {
            crate::Leader::LowestHash => 0,
            crate::Leader::Nearest => 1,
        };
        let words = [failures.into(), of_policy, of_leader];
        let of_nodes = self.nodes.iter().flat_map(|it| {
            let place = it.place.map(|it| it.0);
            let axes = place.map(|axes| axes.map(|axis| u64::from(axis as u32)));
            let [x, y, z] = axes.unwrap_or([1 << 40; 3]);
            [it.id.0, x, y, z | u64::from(it.weight.0) << 48]
        });
        let all = words.into_iter().chain(of_nodes);
        (all.fold(0, |digest, word| {
            mix(digest ^ mix(word)).wrapping_add(digest)
        }) >> 32) as u32
    }
}

/// The share of a span by which a group's change is put off, so that not all change at once: in
/// 1/256.
pub(crate) fn stagger(group: GroupId) -> u64 {
    mix(group.0) >> 56
}
