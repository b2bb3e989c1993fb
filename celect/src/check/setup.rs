//! A mesh to be checked.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::{Delta, Input, Machine as _, Member, NodeId, Rank, Span};
use selvedge_sim::check::{Bounds, Expected, Model, Node, Observer, Scenario, State, Trial};

use crate::published::Rules;
use crate::{Attribute, Ballot, Celect, Command, Config, Estimation, Event, Protocol, Published};

/// The lowest id leads: node 1, where it is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ById;

impl Attribute for ById {
    fn rank(&self, member: Member) -> Rank {
        Rank(member.id.0.into())
    }
}

/// The first lists of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// All nodes know each other.
    Full,
    /// The list of each node, by id, node 1 first, without the owner.
    Given(&'static [&'static [u64]]),
    /// Every possible list of every node. This node begins the election when it learns that the
    /// former leader failed: only where no node is missing from more than c lists of others, and
    /// where c + 1 nodes can be reached from list to list, without the nodes that may crash.
    Any(u64),
}

/// A mesh of nodes 1 to n: their lists, commands, deltas and faults.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The number of nodes.
    pub nodes: u64,
    /// The first lists of all nodes.
    pub lists: Lists,
    /// The protocol of all nodes.
    pub protocol: Protocol,
    /// See [`Config::missing_from`].
    pub c: u16,
    /// See [`Config::failures`].
    pub f: u16,
    /// See [`Config::lowest`] and [`Config::suspected`].
    pub xy: (u8, u8),
    /// The commands of each node's application.
    pub commands: &'static [&'static [Command]],
    /// Deltas that a node (by id) learns before anything else: suspicions, mostly.
    pub notified: &'static [(u64, Delta)],
    /// Deltas that a node (by id) may learn at any time, true or false.
    pub deltas: &'static [(u64, Delta)],
    /// True if lists change only while no election runs, and leave no node missing from more than c
    /// lists.
    pub calm_lists: bool,
    /// Nodes (by id) that may crash, once an election has begun.
    pub ends: &'static [u64],
    /// True if the nodes of [`ends`](Self::ends) may crash only while no node leads.
    pub early: bool,
    /// True if nodes that crash come back in a new life, of which all others learn.
    pub rejoins: bool,
    /// Nodes (by id) that learn `Failed` of the nodes that crashed.
    pub witnesses: &'static [u64],
    /// The bounds on faults.
    pub bounds: Bounds,
    /// See [`Config::retries`].
    pub retries: u8,
    /// True if a node that gave way begins again by itself. See [`Config::patience`].
    pub patience: bool,
    /// See [`Config::frame_budget`]; here it may be shorter than any election needs.
    pub frame: u16,
    /// See [`Config::peer_limit`].
    pub peers: u32,
    /// The first leader, by id, which all follow.
    pub led_by: Option<u64>,
    /// The node that was cut off, by id: it leads itself by a later ballot, and believes that all
    /// others failed, as these believe of it. Each may learn at any time that it is wrong.
    pub alone: Option<u64>,
    /// True if [`alone`](Self::alone) has met the first of the others again, and elects.
    pub alone_elects: bool,
    /// See [`Config::keep_leader`].
    pub keep_leader: bool,
    /// See [`Config::lease`].
    pub lease: bool,
    /// See [`Config::reelect`].
    pub reelect: bool,
    /// See [`Config::estimation`].
    pub estimation: Option<Estimation>,
    /// Published rules that take the place of this crate's.
    pub rules: &'static [Published],
    /// The only promise to check; `None` for all.
    pub only: Option<Promise>,
    /// The node that must lead in the end.
    pub leads: Leads,
}

/// The node that must lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// The lowest live node.
    Lowest,
    /// The node that all agree on.
    One,
    /// This node, by id.
    This(u64),
    /// Any node, or none: this is not checked.
    Any,
}

/// A promise of the crate, as a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// All nodes follow the same leader, the lowest live node, when no message is on its way, no
    /// election runs, and the leaders are alive (theorem 1).
    Safety,
    /// From every state the mesh can reach a state in which all follow one live leader (theorem 2).
    Liveness,
    /// No node returns to a smaller ballot, no two leaders share a ballot, and no node follows a
    /// former life of itself.
    Ballots,
    /// The nodes that were not cut off follow their leader at each moment.
    Stays,
    /// The nodes that were not cut off follow their leader at each moment, and from every state the
    /// mesh can reach a state in which the node that was cut off follows it, too.
    Kept,
    /// A measured bound is the largest number of lists that lack one node. From every state the mesh
    /// can reach a state in which a node knows it.
    Measured,
}

/// The leader before the run; it is not in the mesh.
const FORMER: Member = Member::new(99, 0);

/// The state of a run.
type Mesh = State<Celect<ById>, Watch>;

impl Setup {
    /// Bounds without faults: timeouts are longer than any delivery.
    pub const CALM: Bounds = Bounds {
        drops: 0,
        duplicates: 0,
        crashes: 0,
        restarts: 0,
        deltas: None,
        ticks: None,
        early_ticks: Some(0),
    };

    /// Returns `nodes` nodes that know each other, with these [`Config::missing_from`] and [`Config::failures`].
    #[must_use]
    pub const fn full(nodes: u64, c: u16, f: u16) -> Self {
        Self {
            nodes,
            lists: Lists::Full,
            protocol: Protocol::Base,
            c,
            f,
            xy: (1, 0),
            commands: &[],
            notified: &[],
            deltas: &[],
            calm_lists: false,
            ends: &[],
            early: false,
            rejoins: false,
            witnesses: &[1, 2, 3, 4, 5],
            bounds: Self::CALM,
            retries: 0,
            patience: false,
            frame: 1_400,
            peers: 16,
            led_by: None,
            alone: None,
            alone_elects: false,
            keep_leader: false,
            lease: false,
            reelect: true,
            estimation: None,
            rules: &[],
            only: None,
            leads: Leads::Lowest,
        }
    }

    fn machine(&self, id: u64, life: u32) -> Celect<ById> {
        let config = Config {
            protocol: self.protocol,
            lowest: self.xy.0,
            suspected: self.xy.1,
            // More than one attempt adds states that differ in the count only.
            attempts: if self.bounds.drops > 0 { 2 } else { 1 },
            retries: self.retries,
            patience: if self.patience {
                Span::secs(5)
            } else {
                Span::ZERO
            },
            spread: Span::ZERO,
            lease: self.lease.then(|| Span::secs(9)),
            reelect: self.reelect,
            keep_leader: self.keep_leader,
            estimation: self.estimation,
            frame_budget: self.frame,
            peer_limit: self.peers,
            ..Config::new(self.c, self.f)
        };
        let rules = Rules::published(self.rules);
        Celect::unchecked(Member::new(id, life), config, ById, rules)
    }

    /// Returns the model for the checker.
    #[must_use]
    pub fn model(self) -> Model<Celect<ById>, Watch> {
        let machines: Vec<Celect<ById>> = (1..=self.nodes).map(|id| self.machine(id, 0)).collect();
        let mut model = Model::observed(machines, Celect::me, Watch::default())
            .bounds(self.bounds)
            .start(move |node, _, machine, cx| {
                let me = node as u64 + 1;
                for id in (1..=self.nodes).filter(|&id| id != me) {
                    let is_listed = match self.lists {
                        Lists::Full => true,
                        Lists::Given(lists) => {
                            lists.get(node).is_some_and(|list| list.contains(&id))
                        }
                        Lists::Any(_) => cx.below(2) == 0,
                    };
                    if is_listed {
                        let joined = Delta::Joined(Member::new(id, 0));
                        machine.handle(Input::Membership(joined), cx)?;
                    }
                }
                if self.lists == Lists::Any(me) {
                    machine.follow(FORMER);
                }
                if let Some(leader) = self.led_by.filter(|_| self.alone != Some(me)) {
                    machine.follow(Member::new(leader, 0));
                }
                let is_wrong = |id: &u64| self.alone.is_some_and(|it| it == me || it == *id);
                for id in (1..=self.nodes).filter(|&id| id != me).filter(is_wrong) {
                    let failed = Delta::Failed(Member::new(id, 0));
                    machine.handle(Input::Membership(failed), cx)?;
                }
                if self.alone == Some(me) {
                    machine.lead_alone();
                    if self.alone_elects {
                        let first = Member::new(if me == 1 { 2 } else { 1 }, 0);
                        machine.handle(Input::Membership(Delta::Refuted(first)), cx)?;
                        machine.handle(Input::Command(Command::Elect), cx)?;
                    }
                }
                for &(_, delta) in self.notified.iter().filter(|(id, _)| *id == me) {
                    machine.handle(Input::Membership(delta), cx)?;
                }
                Ok(())
            })
            .restart(move |node, life, _| self.machine(node as u64 + 1, life))
            .remains(Celect::remains)
            .show(show)
            .crash_when(move |state: &Mesh, node| {
                let begun = state.observer().begun;
                let led = state.machines().any(|it| it.leads().is_some());
                begun && !(self.early && led) && self.ends.contains(&(node as u64 + 1))
            })
            .delta_when(move |state: &Mesh, node, delta| self.may_be_notified(state, node, delta));
        let looks_at = |promise| self.only.is_none_or(|only| only == promise);
        if self.only.is_none() {
            model = model
                .never_rejects("no message is refused")
                .sometimes("a node leads", |state| {
                    state.machines().any(|it| it.leads().is_some())
                });
        }
        if self.estimation.is_some() {
            model = model.sometimes("an election may rest on what was measured", |state| {
                state.machines().any(|it| it.bound().1.is_some())
            });
        }
        if looks_at(Promise::Safety) {
            model = model.always("in the end all follow one, the right one", move |state| {
                !is_quiet(state)
                    || self.calm_lists && !self.is_tolerable(state)
                    || self.is_right(state)
            });
        }
        if looks_at(Promise::Ballots) {
            model = model.always("ballots rise, and no two share one", |state| {
                !state.observer().fell
            });
            model = model.always("no node follows a former life of itself", |state| {
                state.machines().all(|it| {
                    let leader = it.leader().map(|(leader, _)| leader);
                    leader.is_none_or(|leader| leader.id != it.me.id || leader == it.me)
                })
            });
        }
        if matches!(self.only, Some(Promise::Kept | Promise::Stays)) {
            let follows = move |it: &Celect<ById>| {
                let leader = it.leader.map(|it| it.member.id.0);
                leader == self.led_by
            };
            model = model.always("the leader stays", move |state| {
                let mut rest = state.machines().filter(|it| Some(it.me.id.0) != self.alone);
                rest.all(follows)
            });
            if self.only == Some(Promise::Kept) {
                model = model.progress("the node that comes back follows it", move |state| {
                    state.machines().all(follows)
                });
            }
        }
        if self.only == Some(Promise::Measured) {
            model = model.always("what is measured is right", move |state| {
                let measured = state.observer().measured;
                measured.is_none_or(|it| it == self.missed_at_most(state))
            });
            let name = "a node knows what it measured";
            model =
                model.progress_when(name, |_| true, |state| state.observer().measured.is_some());
        }
        if looks_at(Promise::Liveness) {
            let begun = |state: &Mesh| state.observer().begun;
            let name = "all follow one that is alive, and no election runs";
            model = model.progress_when(name, begun, move |state| {
                follows_one(state) && state.machines().all(|it| it.run.is_none())
            });
        }
        for (node, commands) in self.commands.iter().enumerate() {
            model = model.commands(node, commands.to_vec());
        }
        let mut notified = vec![Vec::new(); usize::try_from(self.nodes).unwrap_or_default()];
        for &(id, delta) in self.deltas {
            if let Some(notified) = notified.get_mut((id as usize).saturating_sub(1)) {
                notified.push(delta);
            }
        }
        for (node, notified) in notified.iter_mut().enumerate() {
            let me = node as u64 + 1;
            let is_wrong = |id: &u64| self.alone.is_some_and(|it| it == me || it == *id);
            let wrong = (1..=self.nodes).filter(|&id| id != me).filter(is_wrong);
            notified.extend(wrong.map(|id| Delta::Refuted(Member::new(id, 0))));
        }
        if let Lists::Any(id) = self.lists
            && let Some(notified) = notified.get_mut((id as usize).saturating_sub(1))
        {
            notified.push(Delta::Failed(FORMER));
        }
        for &id in self.ends {
            let failed = Delta::Failed(Member::new(id, 0));
            for (node, notified) in notified.iter_mut().enumerate() {
                let me = node as u64 + 1;
                if me != id && self.witnesses.contains(&me) && !notified.contains(&failed) {
                    notified.push(failed);
                    if self.rejoins {
                        notified.push(Delta::Joined(Member::new(id, 1)));
                    }
                }
            }
        }
        for (node, notified) in notified.into_iter().enumerate() {
            model = model.deltas(node, notified);
        }
        model
    }

    /// Returns the largest number of lists that lack one node.
    fn missed_at_most(&self, state: &Mesh) -> Option<u16> {
        let missed = state.machines().map(|it| self.missed(state, it.me.id.0));
        missed.max().and_then(|it| u16::try_from(it).ok())
    }

    /// Returns true if a node may learn `delta` now: failures of the nodes in `ends` when they are
    /// true, and the deltas in `deltas` at any time.
    fn may_be_notified(&self, state: &Mesh, node: usize, delta: Delta) -> bool {
        if delta.member() == FORMER {
            return self.is_tolerable(state) && self.is_enough(state, node);
        }
        let id = delta.member().id;
        let is_listed = self.deltas.contains(&(node as u64 + 1, delta));
        if !is_listed && self.ends.contains(&id.0) {
            let node = state.position(id).and_then(|node| state.node(node));
            let member = delta.member();
            let rejoins = matches!(delta, Delta::Joined(_));
            return node.is_some_and(|it| it.member() == member && it.is_up() == rejoins);
        }
        if !self.calm_lists {
            return true;
        }
        let is_calm = state.machines().all(|it| it.run.is_none());
        let rejoins = matches!(delta, Delta::Joined(_) | Delta::Refuted(_));
        is_calm && (rejoins || self.missed(state, id.0) < usize::from(self.c))
    }

    /// Returns the number of live nodes that lack this node.
    fn missed(&self, state: &Mesh, id: u64) -> usize {
        let lacks =
            |it: &&Celect<ById>| it.me.id.0 != id && !it.peers.iter().any(|other| other.id.0 == id);
        state.machines().filter(lacks).count()
    }

    /// Returns true if no live node is missing from more than c lists.
    fn is_tolerable(&self, state: &Mesh) -> bool {
        state
            .machines()
            .all(|it| self.missed(state, it.me.id.0) <= usize::from(self.c))
    }

    /// Returns true if c + 1 nodes can be reached, from list to list, from the initiator and from each
    /// node that does not crash, without the nodes that may.
    fn is_enough(&self, state: &Mesh, initiator: usize) -> bool {
        let stays = |node: usize| !self.ends.contains(&(node as u64 + 1));
        let begins = |node: usize| stays(node) || node == initiator;
        let mut starts = (0..state.nodes().len()).filter(|&node| begins(node));
        starts.all(|start| {
            let mut reached: Vec<usize> = vec![start];
            let mut next = 0;
            while let Some(&node) = reached.get(next) {
                next += 1;
                let machine = state.node(node).map(Node::machine);
                let list = machine.into_iter().flat_map(Celect::members);
                for other in list.filter_map(|it| state.position(it.id)) {
                    if stays(other) && !reached.contains(&other) {
                        reached.push(other);
                    }
                }
            }
            reached.len() > usize::from(self.c)
        })
    }

    fn is_right(&self, state: &Mesh) -> bool {
        let lowest = state.machines().map(|it| it.me.id).min();
        let right = match self.leads {
            Leads::Any => return true,
            Leads::One => None,
            Leads::Lowest => lowest,
            Leads::This(id) => Some(NodeId(id)),
        };
        let is_right = |it: &Celect<ById>| {
            let leader = it.leader.map(|leader| leader.member.id);
            right.is_none() || leader == right
        };
        follows_one(state) && state.machines().all(is_right)
    }
}

impl Trial for Setup {
    const PROTOCOL: &'static str = "celect";

    type Rule = Published;
    type Promise = Promise;

    fn scenario(self, name: String, expected: Expected) -> Scenario {
        Scenario::new(name, expected, move || self.model())
    }

    fn under(self, rules: &'static [Published], promise: Promise) -> Self {
        Self {
            rules,
            only: Some(promise),
            ..self
        }
    }
}

/// Returns true if no message is on its way, no node runs an election or waits for one, an election
/// has begun, and the leaders that are followed live.
fn is_quiet(state: &Mesh) -> bool {
    let lives = |member: Member| {
        let node = state.position(member.id).and_then(|node| state.node(node));
        node.is_some_and(|node| node.is_up())
    };
    !state.is_busy()
        && state.observer().begun
        && state.machines().all(|it| {
            it.run.is_none()
                && it.awaited.is_none()
                && it.announcement.as_ref().is_none_or(|it| it.is_given_up)
                && it.leader.is_none_or(|leader| lives(leader.member))
        })
        && state.machines().any(|it| it.leader.is_some())
}

/// Returns true if all nodes that are up follow the same leader, which is up and leads.
fn follows_one(state: &Mesh) -> bool {
    let mut leaders = state.machines().map(|it| it.leader.map(|it| it.member));
    let Some(Some(first)) = leaders.next() else {
        return false;
    };
    leaders.all(|leader| leader == Some(first)) && state.machines().any(|it| it.me == first)
}

/// The leaders in the nodes' events.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Watch {
    begun: bool,
    fell: bool,
    /// The last bound that a node measured; the inner `None` if too few lists arrived.
    measured: Option<Option<u16>>,
    /// The last ballot in each node's events.
    last: Vec<(usize, Ballot, Member)>,
}

impl Observer<Celect<ById>> for Watch {
    fn event(&mut self, node: usize, event: &Event) {
        match event {
            Event::Electing(_) => self.begun = true,
            Event::Elected { leader, ballot } => {
                self.fell |= self.last.iter().any(|(other, last, by)| {
                    *other == node && last >= ballot || last == ballot && by != leader
                });
                self.last.retain(|(other, ..)| *other != node);
                let at = self.last.partition_point(|(other, ..)| *other < node);
                self.last.insert(at, (node, *ballot, *leader));
            }
            Event::Measured(it) => self.measured = Some(u16::try_from(it.upper_bound).ok()),
            Event::Unmeasured(_) => self.measured = Some(None),
            Event::Yielded { .. }
            | Event::Stalled { .. }
            | Event::Deposed { .. }
            | Event::Lost { .. }
            | Event::Regained { .. }
            | Event::LeaseExpired { .. }
            | Event::Ended(_)
            | Event::Concluded { .. }
            | Event::BoundChanged { .. } => {}
        }
    }

    fn crashed(&mut self, node: usize) {
        self.last.retain(|(other, ..)| *other != node);
    }
}

/// Describes a node in one line.
fn show(machine: &Celect<ById>) -> String {
    let list: Vec<String> = machine.members().map(|it| it.id.to_string()).collect();
    let leader = machine.leader.map_or_else(
        || "no node".to_string(),
        |it| {
            let Ballot {
                epoch,
                initiator,
                step,
            } = it.ballot;
            let ended = if it.lost { " (gone)" } else { "" };
            format!("{} by {epoch}/{}/{step}{ended}", it.member.id, initiator.id)
        },
    );
    let run = machine
        .run
        .as_ref()
        .map_or_else(String::new, |run| format!(", runs {run:?}"));
    format!("knows [{}], follows {leader}{run}", list.join(" "))
}
