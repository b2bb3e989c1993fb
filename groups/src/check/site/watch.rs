//! A record of the sites that nodes take, beside those of the groups.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::NodeId;
use selvedge_sim::check::Observer;

use super::super::setup::Watches;
use super::super::watch::Watch;
use super::{Held, Land, MAP, NEXT, OF_NEXT, REGISTRY};
use crate::{Begins as _, Event, Fact, GroupId, Groups};

/// Remembers sites, questions, and the events of groups.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct SiteWatch {
    groups: [Watch; 3],
    /// The nodes, by id.
    ids: Vec<u64>,
    /// The generation of each, once it has stored one.
    generations: Vec<Option<u32>>,
    /// The first site of each generation that a node took.
    taken: Vec<Land>,
    /// Two sites have one generation.
    pub(super) differs: bool,
    /// A node took a site that is no later than its own.
    pub(super) goes_back: bool,
    /// A proposed site was not decided.
    pub(super) is_overtaken: bool,
    /// The nodes whose questions reached a leader.
    pub(super) asked: Vec<NodeId>,
}

impl SiteWatch {
    fn on_site(&mut self, node: usize, land: Land) {
        if let Some(generation) = self.generations.get_mut(node) {
            let is_later = generation.is_none_or(|it| land.generation > it);
            self.goes_back |= land.generation > 0 && !is_later;
            *generation = Some(land.generation);
        }
        let of = |it: &Land| it.generation;
        match self.taken.binary_search_by_key(&land.generation, of) {
            Ok(at) => self.differs |= self.taken.get(at) != Some(&land),
            Err(at) => self.taken.insert(at, land),
        }
    }

    fn on_asked(&mut self, from: NodeId) {
        if let Err(at) = self.asked.binary_search(&from) {
            self.asked.insert(at, from);
        }
    }

    fn of(&mut self, group: GroupId) -> Option<&mut Watch> {
        let place = match group {
            GroupId::REGISTRY => REGISTRY,
            NEXT => OF_NEXT,
            _ => MAP,
        };
        self.groups.get_mut(place)
    }
}

impl Observer<Groups<Held, u8>> for SiteWatch {
    fn event(&mut self, node: usize, event: &Event<Held, u8>) {
        match event {
            Event::Fact(Fact::Site { site, .. }) => {
                if let Some((land, _)) = Held::decode(site) {
                    self.on_site(node, land);
                }
            }
            Event::Fact(fact) => {
                if let Some(watch) = fact.group().and_then(|it| self.of(it)) {
                    watch.event(node, event);
                }
            }
            Event::Replica { group, .. } => {
                if let Some(watch) = self.of(*group) {
                    watch.event(node, event);
                }
            }
            Event::Asked { from, .. } => self.on_asked(from.id),
            Event::Proposed { is_decided, .. } => self.is_overtaken |= !is_decided,
            Event::Answered { .. }
            | Event::Entered(_)
            | Event::Left(_)
            | Event::QuorumLost(_)
            | Event::BegunAnew(_)
            | Event::Site { .. }
            | Event::Unplaced { .. } => {}
        }
    }

    fn restarted(&mut self, node: usize) {
        if let Some(generation) = self.generations.get_mut(node) {
            *generation = None;
        }
        for watch in &mut self.groups {
            Observer::<Groups<Held, u8>>::restarted(watch, node);
        }
    }
}

impl Watches<Held> for SiteWatch {
    fn of(ids: Vec<u64>) -> Self {
        Self {
            groups: [(); 3].map(|()| Watch::of(ids.clone())),
            generations: vec![None; ids.len()],
            ids,
            taken: Vec::new(),
            differs: false,
            goes_back: false,
            is_overtaken: false,
            asked: Vec::new(),
        }
    }

    fn without(mut self, down: &[u64]) -> Self {
        self.groups = self.groups.map(|it| it.without(down));
        let generations = self.ids.iter().copied().zip(self.generations);
        let up = generations.filter(|it| !down.contains(&it.0));
        (self.ids, self.generations) = up.unzip();
        self.is_overtaken = false;
        self.asked.clear();
        self
    }

    fn of_groups(&self) -> &[Watch] {
        &self.groups
    }
}
