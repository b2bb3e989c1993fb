//! A node's memory of its groups, and its queries that need no step.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;
use core::marker::PhantomData;

use selvedge_core::{Incarnation, Member, NodeId, Outbox, Untracked};
use selvedge_replica::{Configuration, Replica, State};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::adopt::Adoption;
use crate::leader_hints::LeaderHints;
use crate::part::Part;
use crate::published::Rules;
use crate::registrar::Registrar;
use crate::registry::{Registration, Registry};
use crate::spared::Spared;
use crate::{Config, Counters, Item, Plan, Start};
use crate::{GroupId, Place};

/// A state that groups begin with, from data that is equal on all nodes.
///
/// With [`HAS_REGISTRY`](Self::HAS_REGISTRY) the data can change while groups run
/// ([`Command::ChangeSite`](crate::Command::ChangeSite)): one group more, the
/// [registry](GroupId::REGISTRY), holds it. The methods from [`registry`](Self::registry) on are for
/// that.
pub trait Begins: State {
    /// The data that is equal on all nodes. Its digest belongs into the [`Plan`]'s.
    type Site: Debug;

    /// True if a state can be a [`Registry`]. Then [`begin`](Self::begin) begins one for
    /// [`GroupId::REGISTRY`], and groups that are not [founded](Self::is_founding) begin with
    /// members that the registry decides.
    const HAS_REGISTRY: bool = false;

    /// The groups that begin with the site.
    fn groups(site: &Self::Site) -> Vec<GroupId>;

    /// The devices that a group looks after, with their places: in each epoch one of them is the
    /// centre near which members are chosen. A group without devices gets members by their hashes.
    fn devices(_site: &Self::Site, _group: GroupId) -> Vec<(NodeId, Place)> {
        Vec::new()
    }

    /// The places of devices around one: nodes that are similar to them are taken where too few
    /// are similar to it.
    fn neighbours(_site: &Self::Site, _device: NodeId) -> Vec<Place> {
        Vec::new()
    }

    /// The first state of a group, also of one that is not among [`groups`](Self::groups) and
    /// begins with its first question. `None` where no such group exists.
    fn begin(site: &Self::Site, group: GroupId) -> Option<Self>;

    /// The first state of a group that the registry begins in a generation, after so many beginnings
    /// before. Its founders may have sites of other generations, so the state depends on no site.
    fn begin_later(
        site: &Self::Site,
        group: GroupId,
        _before: u64,
        _generation: u32,
    ) -> Option<Self> {
        Self::begin(site, group)
    }

    /// Returns true if a group began with the site of generation 0: its founders follow from that
    /// site alone.
    fn is_founding(site: &Self::Site, group: GroupId) -> bool {
        Self::groups(site).contains(&group)
    }

    /// Returns true if a site has a group, or a group of it can begin.
    fn exists(site: &Self::Site, group: GroupId) -> bool {
        Self::begin(site, group).is_some()
    }

    /// Returns true if a [group of the site](Self::groups) begins anew by itself, once it is certain that
    /// its memory is lost: its state can be found out again.
    fn begins_anew(_site: &Self::Site, _group: GroupId) -> bool {
        false
    }

    /// The registry in this state, if it is one.
    fn registry(&self) -> Option<&Registry> {
        None
    }

    /// The update that changes a registry.
    fn register(_registration: Registration) -> Option<Self::Update> {
        None
    }

    /// The encoding of a site: at most [`SITE_MAX`](crate::registry::SITE_MAX) bytes.
    fn encode(_site: &Self::Site) -> Vec<u8> {
        Vec::new()
    }

    /// The site with this encoding, and its plan. `None` for bytes that are no site.
    fn decode(_bytes: &[u8]) -> Option<(Self::Site, Plan)> {
        None
    }
}

/// A question to the leader of a group, and its answer.
pub trait Carried: Clone + Eq + Ord + Hash + Debug + Serialize + DeserializeOwned {}
impl<P: Clone + Eq + Ord + Hash + Debug + Serialize + DeserializeOwned> Carried for P {}

/// A node of the plan, as this node knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Peer {
    pub(crate) incarnation: Incarnation,
    pub(crate) has_ended: bool,
    /// Its last report in this life.
    pub(crate) spared: Spared,
}

impl Peer {
    /// The same node after news of it. A later life takes its share.
    pub(crate) fn next(before: Option<Self>, incarnation: Incarnation, has_ended: bool) -> Self {
        let same = before.filter(|it| it.incarnation == incarnation);
        Self {
            incarnation,
            has_ended,
            spared: same.map(|it| it.spared).unwrap_or_default(),
        }
    }
}

/// An item for a node.
pub(crate) type Posted<S, P> = (Member, Item<<S as State>::Update, P>);

/// An outbox that is used again; empty between steps.
pub(crate) struct Scratch<S: State>(pub(crate) Option<Outbox<Replica<S>>>);

impl<S: State> Default for Scratch<S> {
    fn default() -> Self {
        Self(None)
    }
}

impl<S: State> Clone for Scratch<S> {
    fn clone(&self) -> Self {
        Self(None)
    }
}

impl<S: State> Debug for Scratch<S> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Scratch")
    }
}

/// The groups of a node.
#[derive(Debug)]
pub struct Groups<S: Begins, P> {
    pub(crate) me: Member,
    /// The life in which it began to store: each life since then has all memory that earlier lives
    /// stored.
    pub(crate) since: Incarnation,
    pub(crate) config: Config,
    pub(crate) plan: Arc<Plan>,
    pub(crate) site: Arc<S::Site>,
    pub(crate) start: Start,
    pub(crate) parts: BTreeMap<GroupId, Part<S>>,
    /// The last known configuration of each group that it was in.
    pub(crate) marks: BTreeMap<GroupId, Box<Configuration>>,
    /// The numbers of groups below which this node has promised to take no part in a configuration.
    /// A mark of the same group is later.
    pub(crate) ended: BTreeMap<GroupId, u64>,
    pub(crate) leader_hints: LeaderHints<P>,
    /// In the order of the plan's nodes; `None` for a node of which nothing is known.
    pub(crate) peers: Vec<Option<Peer>>,
    /// This node's own report, in this life.
    pub(crate) spared: Spared,
    /// The epoch, from the host.
    pub(crate) epoch: u64,
    /// True if an input has come.
    pub(crate) has_begun: bool,
    /// The number of the last inquiry.
    pub(crate) inquiries: u64,
    /// The site, as it comes from other nodes and goes to them.
    pub(crate) adoption: Adoption,
    /// The tasks of the registry's leader, and this node's questions to it.
    pub(crate) registrar: Registrar,
    pub(crate) counters: Untracked<Counters>,
    /// The items that this step sends; empty between steps.
    pub(crate) posted: Untracked<Vec<Posted<S, P>>>,
    /// True if a replica has emitted a fact in this step; false between steps.
    pub(crate) has_fact: Untracked<bool>,
    /// The outbox of the replica that steps; empty between steps.
    pub(crate) outbox: Untracked<Scratch<S>>,
    pub(crate) asks: PhantomData<P>,
    pub(crate) rules: Rules,
}

impl<S: Begins, P> Groups<S, P> {
    /// The same node under rules that break a promise.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn published(mut self, rules: &[crate::Published]) -> Self {
        self.rules = Rules::published(rules);
        self
    }

    /// This node in its present life.
    #[must_use]
    pub const fn me(&self) -> Member {
        self.me
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The site.
    #[must_use]
    pub fn site(&self) -> &Arc<S::Site> {
        &self.site
    }

    /// The generation of the site.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.plan.generation()
    }

    /// Returns true if this node has the site that the others have, as far as it knows. A node that
    /// begins with a site of a later generation asks the others for theirs first.
    #[must_use]
    pub const fn has_site(&self) -> bool {
        self.adoption.has_site
    }

    /// The epoch, from the host.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The groups that this node has a part in.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> + '_ {
        self.parts.keys().copied()
    }

    /// This node's replica of a group.
    #[must_use]
    pub fn replica(&self, group: GroupId) -> Option<&Replica<S>> {
        self.parts.get(&group).map(|it| &it.replica)
    }

    /// The state of a group, as far as this node knows; see [`Replica::state`].
    #[must_use]
    pub fn state(&self, group: GroupId) -> Option<&S> {
        self.replica(group)?.state()
    }

    /// Returns true if this node leads a group, as far as it knows.
    #[must_use]
    pub fn leads(&self, group: GroupId) -> bool {
        self.replica(group).is_some_and(Replica::leads)
    }

    /// The number of groups that this node was in and is not any more.
    #[must_use]
    pub fn former(&self) -> usize {
        self.marks.len()
    }

    /// Returns true if a group's next configuration is in progress here, or this node inquires
    /// after the nodes that it would name.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn is_changing(&self, group: GroupId) -> bool {
        let part = self.parts.get(&group);
        part.is_some_and(|it| it.inquiry.is_some() || it.replica.is_changing())
    }

    /// The number of groups of which it remembers the place.
    #[cfg(feature = "check")]
    #[must_use]
    pub fn hinted(&self) -> usize {
        self.leader_hints.len()
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters.0
    }

    /// A node in its latest life, as far as it is known.
    #[must_use]
    pub fn latest(&self, id: NodeId) -> Member {
        if id == self.me.id {
            return self.me;
        }
        let peer = self.plan.place(id).and_then(|at| self.peers.get(at));
        let incarnation = peer.copied().flatten().map(|it| it.incarnation);
        let incarnation = incarnation.unwrap_or_default();
        Member { id, incarnation }
    }

    /// Returns true if membership, or a message, shows that a node is present.
    #[must_use]
    pub fn is_here(&self, id: NodeId) -> bool {
        id == self.me.id || self.peer(id).is_some_and(|it| !it.has_ended)
    }

    /// The other nodes that are here, each in its latest life.
    pub(crate) fn others_here(&self) -> Vec<Member> {
        let others = self.plan.known().filter(|it| *it != self.me.id);
        let here = others.filter(|it| self.is_here(*it));
        here.map(|it| self.latest(it)).collect()
    }

    /// Returns true if membership reported that a node failed or left.
    #[must_use]
    pub fn has_ended(&self, id: NodeId) -> bool {
        id != self.me.id && self.peer(id).is_some_and(|it| it.has_ended)
    }

    /// Returns true if a node failed or left, or the site does not have it any more.
    pub(crate) fn is_lost(&self, id: NodeId) -> bool {
        self.has_ended(id) || !self.plan.names(id)
    }

    pub(crate) fn peer(&self, id: NodeId) -> Option<Peer> {
        let at = self.plan.place(id)?;
        self.peers.get(at).copied().flatten()
    }
}

impl<S: Begins, P: Clone> Clone for Groups<S, P> {
    fn clone(&self) -> Self {
        Self {
            plan: Arc::clone(&self.plan),
            site: Arc::clone(&self.site),
            parts: self.parts.clone(),
            marks: self.marks.clone(),
            ended: self.ended.clone(),
            leader_hints: self.leader_hints.clone(),
            peers: self.peers.clone(),
            adoption: self.adoption.clone(),
            registrar: self.registrar.clone(),
            counters: self.counters.clone(),
            posted: Untracked(Vec::new()),
            has_fact: Untracked(false),
            outbox: Untracked::default(),
            ..*self
        }
    }
}

// The digest of the plan stands for the plan and the site.
impl<S: Begins, P: Eq> PartialEq for Groups<S, P> {
    fn eq(&self, other: &Self) -> bool {
        self.me == other.me
            && self.since == other.since
            && self.config == other.config
            && self.start == other.start
            && self.parts == other.parts
            && self.marks == other.marks
            && self.ended == other.ended
            && self.leader_hints == other.leader_hints
            && self.peers == other.peers
            && self.spared == other.spared
            && self.epoch == other.epoch
            && self.has_begun == other.has_begun
            && self.inquiries == other.inquiries
            && self.plan.digest() == other.plan.digest()
            && self.adoption == other.adoption
            && self.registrar == other.registrar
            && self.rules == other.rules
    }
}

impl<S: Begins, P: Eq> Eq for Groups<S, P> {}

impl<S: Begins, P: Hash> Hash for Groups<S, P> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.me.hash(state);
        self.since.hash(state);
        self.parts.hash(state);
        self.marks.hash(state);
        self.ended.hash(state);
        self.leader_hints.hash(state);
        self.peers.hash(state);
        self.spared.hash(state);
        self.epoch.hash(state);
        self.has_begun.hash(state);
        self.inquiries.hash(state);
        self.plan.digest().hash(state);
        self.adoption.hash(state);
        self.registrar.hash(state);
    }
}
