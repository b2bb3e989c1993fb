//! A record of decisions, votes and leaders, from events.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::Member;
use selvedge_replica as replica;
use selvedge_replica::{Ballot, Version};
use selvedge_sim::check::Observer;

use crate::registry::instance;
use crate::{Begins, Event, Fact, Groups};

/// An update that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Applied {
    /// The beginning of the group.
    instance: u64,
    version: Version,
    by: Member,
    number: u64,
    /// The length of the journal.
    outcome: usize,
}

/// The highest ballots that a node promised, and under which it accepted, in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
struct Vote {
    promised: Ballot,
    accepted: Ballot,
}

/// Remembers the decisions, votes and leaders that events report.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub(super) struct Watch {
    /// In order.
    pub(super) applied: Vec<Applied>,
    /// Two updates have one version.
    pub(super) differs: bool,
    /// One update has two versions.
    pub(super) doubles: bool,
    /// A journal misses an update that was applied before.
    pub(super) loses: bool,
    /// The configurations and ballots under which nodes led, in order.
    pub(super) led: Vec<(u64, Ballot)>,
    pub(super) leads_again: bool,
    /// The nodes, by id.
    ids: Vec<u64>,
    /// The number of the configuration that each node knows; 0 where it has no part.
    pub(super) numbers: Vec<u64>,
    /// The ballot under which each node accepted last in that configuration, as far as its present
    /// memory goes.
    held: Vec<Ballot>,
    /// The votes of nodes (by id) in configurations, in order.
    votes: Vec<((u64, u64), Vote)>,
    /// A node voted in a configuration, and had forgotten an earlier vote there.
    pub(super) forgets: bool,
    /// A question to the group reached a leader.
    pub(super) is_asked: bool,
    pub(super) has_left: bool,
}

impl Watch {
    /// A watch over nodes that have done nothing.
    pub(super) fn of(ids: Vec<u64>) -> Self {
        Self {
            numbers: vec![0; ids.len()],
            held: vec![Ballot::default(); ids.len()],
            ids,
            ..Self::default()
        }
    }

    /// Some nodes are down for good, and a scenario begins.
    pub(super) fn without(mut self, down: &[u64]) -> Self {
        let known = self.numbers.into_iter().zip(self.held);
        let up = (self.ids.into_iter().zip(known)).filter(|it| !down.contains(&it.0));
        (self.ids, (self.numbers, self.held)) = up.unzip();
        self.is_asked = false;
        self
    }

    fn id(&self, node: usize) -> u64 {
        self.ids.get(node).copied().unwrap_or_default()
    }

    fn on_applied(&mut self, new: Applied) {
        let key = |it: &Applied| (it.instance, it.version);
        let is_same = |it: &Applied| it.by == new.by && it.number == new.number;
        self.doubles |= (self.applied.iter()).any(|it| is_same(it) && key(it) != key(&new));
        let at = self.applied.partition_point(|it| key(it) < key(&new));
        match self.applied.get(at).filter(|it| key(it) == key(&new)) {
            Some(other) => self.differs |= *other != new,
            None => {
                let first = self
                    .applied
                    .partition_point(|it| it.instance < new.instance);
                self.loses |= new.outcome > 0 && new.outcome != at - first + 1;
                self.applied.insert(at, new);
            }
        }
    }

    /// A node promises a ballot, or accepts under it.
    fn on_vote(&mut self, node: usize, ballot: Ballot, accepts: bool) {
        let number = self.numbers.get(node).copied().unwrap_or_default();
        let key = (self.id(node), number);
        let place = self.votes.binary_search_by_key(&key, |it| it.0);
        let at = match place {
            Ok(at) => at,
            Err(at) => {
                self.votes.insert(at, (key, Vote::default()));
                at
            }
        };
        let (Some((_, vote)), Some(held)) = (self.votes.get_mut(at), self.held.get_mut(node))
        else {
            return;
        };
        self.forgets |= ballot < vote.promised || *held < vote.accepted;
        vote.promised = ballot.max(vote.promised);
        if accepts {
            *held = ballot;
            vote.accepted = ballot.max(vote.accepted);
        }
    }

    /// A node is in this configuration now, and has accepted under this ballot there.
    fn on_number(&mut self, node: usize, number: u64, accepted: Ballot) {
        if let (Some(slot), Some(held)) = (self.numbers.get_mut(node), self.held.get_mut(node)) {
            *slot = number;
            *held = accepted;
        }
    }

    fn on_fact<S: Begins>(&mut self, node: usize, fact: &Fact<S>) {
        match fact {
            Fact::Base { stored, .. } => {
                let none = Ballot::default();
                self.on_number(node, stored.configuration().number, stored.accepted());
                if stored.promised() > none {
                    self.on_vote(node, stored.promised(), false);
                }
                if stored.accepted() > none {
                    self.on_vote(node, stored.accepted(), true);
                }
            }
            Fact::Replica { fact, .. } => match fact {
                replica::Fact::Promised(ballot) => self.on_vote(node, *ballot, false),
                replica::Fact::Accepted { ballot, .. } => self.on_vote(node, *ballot, true),
                replica::Fact::Committed(_)
                | replica::Fact::Learned { .. }
                | replica::Fact::Installed(_)
                | replica::Fact::Retired => {}
            },
            Fact::Began { .. } | Fact::Site { .. } => {}
            Fact::Left { .. } | Fact::Ended { .. } => {
                self.has_left = true;
                self.on_number(node, 0, Ballot::default());
            }
        }
    }

    fn on_replica<S: Begins<Outcome = usize>>(&mut self, node: usize, event: &replica::Event<S>) {
        match event {
            replica::Event::Applied {
                version,
                by,
                number,
                outcome,
            } => self.on_applied(Applied {
                instance: instance(self.numbers.get(node).copied().unwrap_or_default()),
                version: *version,
                by: *by,
                number: *number,
                outcome: *outcome,
            }),
            replica::Event::Elected { leader, ballot } if leader.0 == self.id(node) => {
                let led = (self.numbers.get(node).copied().unwrap_or_default(), *ballot);
                match self.led.binary_search(&led) {
                    Ok(_) => self.leads_again = true,
                    Err(at) => self.led.insert(at, led),
                }
            }
            replica::Event::Configured { number, .. } => {
                let is_known = self.numbers.get(node) == Some(number);
                if !is_known {
                    self.on_number(node, *number, Ballot::default());
                }
            }
            replica::Event::Elected { .. }
            | replica::Event::Fact(_)
            | replica::Event::Overtaken { .. }
            | replica::Event::Forgotten { .. }
            | replica::Event::Abandoned { .. }
            | replica::Event::Unreadable(_)
            | replica::Event::Installed(_)
            | replica::Event::Readable { .. }
            | replica::Event::Deposed(_)
            | replica::Event::Unavailable { .. }
            | replica::Event::Available
            | _ => {}
        }
    }
}

impl<S: Begins<Outcome = usize>> Observer<Groups<S, u8>> for Watch {
    fn event(&mut self, node: usize, event: &Event<S, u8>) {
        match event {
            Event::Fact(fact) => self.on_fact(node, fact),
            Event::Replica { event, .. } => self.on_replica(node, event),
            Event::Asked { .. } => self.is_asked = true,
            Event::Answered { .. }
            | Event::Entered(_)
            | Event::Left(_)
            | Event::Site { .. }
            | Event::Proposed { .. }
            | Event::QuorumLost(_)
            | Event::BegunAnew(_)
            | Event::Unplaced { .. } => {}
        }
    }

    fn restarted(&mut self, node: usize) {
        self.on_number(node, 0, Ballot::default());
    }
}
