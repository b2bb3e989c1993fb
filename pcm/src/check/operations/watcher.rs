//! The watcher of all nodes' steps, which compares them with the promises.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::durable::Durable as _;
use selvedge_core::wire::frame_len;
use selvedge_core::{Effect, Member};
use selvedge_replica::{self as replica, Fact, Stored};
use selvedge_sim::operations::{Step, Watch};

use super::hosts::Host;
use super::limits::check_limits;
use super::oracle::Oracle;
use super::settings::Settings;
use super::summary::Summary;
use crate::gateway::Gateway;
use crate::node::{Event, Node, Reject};
use crate::{Answer, Tables, TaskId, client, follower, gateway};

/// The longest frame that fits a datagram.
const FRAME: usize = 1_400;

/// The number of facts above which a host replaces them by the state that they result in.
const MANY: usize = 16;

/// A loss of power at a gateway's host in the middle of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tear {
    /// It comes in the next step of a gateway, after this number of its facts is stored.
    Asked(usize),
    /// It has happened at this seat, and this number of messages was not sent.
    Done { seat: usize, lost: usize },
}

/// The storage of a gateway's host.
struct Store {
    base: Stored<Tables>,
    facts: Vec<Fact<Tables>>,
    /// A gateway that has folded all these facts.
    folded: Gateway,
}

pub(super) struct Watcher {
    pub(super) settings: Settings,
    pub(super) oracle: Oracle,
    pub(super) hosts: Vec<Host>,
    stores: Vec<Store>,
    /// The tasks whose answer or refusal a client has received.
    pub(super) received: BTreeSet<TaskId>,
    pub(super) tear: Option<Tear>,
    /// The place of the gateway at which the next life of a follower or client begins.
    pub(super) begins_at: usize,
    pub(super) summary: Summary,
    /// The latest answer that a client received, and its task.
    pub(super) last: Option<(TaskId, Answer)>,
}

impl Watcher {
    pub(super) fn new(settings: Settings) -> Self {
        let members = settings.members();
        let gateways = members.iter().take(settings.gateways);
        let stores = gateways.map(|&me| {
            let folded = settings.first_gateway(me);
            Store {
                base: folded.replica().stored(),
                facts: Vec::new(),
                folded,
            }
        });
        let tables = Tables::new(settings.limits);
        let oracle = Oracle::new(tables, settings.gateways, settings.remembers());
        Self {
            oracle,
            hosts: vec![Host::default(); members.len()],
            stores: stores.collect(),
            received: BTreeSet::new(),
            tear: None,
            begins_at: 0,
            summary: Summary::default(),
            last: None,
            settings,
        }
    }

    /// Loses power after `stored` facts of a step: later effects are lost. Returns false if the step has no
    /// more facts than that, so the power stays.
    fn tear(&mut self, step: &Step<'_, Node>, stored: usize) -> Result<bool, String> {
        let is_fact = |it: &Effect<Node>| {
            matches!(it, Effect::Event(Event::Gateway(gateway::Event::Fact(_))))
        };
        let mut facts = 0;
        let at = step.effects.iter().position(|it| {
            facts += usize::from(is_fact(it));
            facts > stored
        });
        let Some(at) = at else {
            return Ok(false);
        };
        let (before, behind) = step.effects.split_at(at);
        self.store(step.at, before)?;
        let lost = behind.iter().filter(|it| matches!(it, Effect::Send { .. }));
        self.tear = Some(Tear::Done {
            seat: step.at,
            lost: lost.count(),
        });
        Ok(true)
    }

    fn store(&mut self, at: usize, effects: &[Effect<Node>]) -> Result<(), String> {
        let Some(store) = self.stores.get_mut(at) else {
            return Ok(());
        };
        for effect in effects {
            if let Effect::Event(Event::Gateway(gateway::Event::Fact(fact))) = effect {
                self.oracle.on_fact(at, fact);
                store.facts.push(fact.clone());
                let folded = store.folded.fold(fact);
                folded.map_err(|why| format!("{fact:?} was stored, and is not folded: {why}"))?;
            }
        }
        Ok(())
    }

    /// Compares the facts that a gateway's host has stored with the state of the gateway. Versions that the
    /// gateway has committed without a fact are among the entries that it has accepted.
    fn check_stored(&self, at: usize, gateway: &Gateway) -> Result<(), String> {
        let Some(store) = self.stores.get(at) else {
            return Ok(());
        };
        let mut folded = store.folded.clone();
        let committed = Fact::Committed(gateway.replica().version());
        let differs = |why: &str| format!("storage of {:?} {why}", gateway.me());
        let all = folded.fold(&committed);
        all.map_err(|why| differs(&format!("lacks a committed entry: {why}")))?;
        let (stored, held) = (folded.replica().stored(), gateway.replica().stored());
        match stored == held {
            true => Ok(()),
            false => Err(differs(&format!("is\n{stored:?}\nand it holds\n{held:?}"))),
        }
    }

    /// Checks that no honest node accuses an honest peer.
    fn check_refusal(&self, step: &Step<'_, Node>) -> Result<(), String> {
        let Some(accused) = step.refusal.and_then(accused) else {
            return Ok(());
        };
        // A liar receives replies to requests that its own machine did not send.
        let is_honest = |it: Member| self.settings.is_believed(it.id);
        let are_honest = is_honest(step.me) && accused.is_none_or(is_honest);
        match are_honest && !self.settings.is_hostile() {
            true => Err(format!("an honest node is accused: {:?}", step.refusal)),
            false => Ok(()),
        }
    }

    fn check_frames(step: &Step<'_, Node>) -> Result<(), String> {
        for effect in step.effects {
            match effect {
                Effect::Send { message, .. } => {
                    let len = frame_len(step.me, message);
                    if len > FRAME {
                        return Err(format!("a frame of {len} bytes: {message:?}"));
                    }
                }
                Effect::Multicast { .. } => return Err("a multicast".into()),
                Effect::Event(_) => {}
            }
        }
        Ok(())
    }

    /// Checks that a client receives only decided answers, one for each task.
    fn on_client(&mut self, me: Member, event: &client::Event) -> Result<(), String> {
        let (client::Event::Answered { number, .. } | client::Event::Refused { number, .. }) =
            event;
        let task = TaskId {
            client: me,
            number: *number,
        };
        if !self.received.insert(task) {
            return Err(format!("{task:?} is answered twice"));
        }
        let client::Event::Answered { answer, voters, .. } = event else {
            self.summary.refused += 1;
            return Ok(());
        };
        self.summary.received += 1;
        self.summary.values += u64::from(matches!(answer, Answer::Value(_)));
        self.last = Some((task, answer.clone()));
        let known = self.oracle.tasks.get(&task);
        let notified = (answer.clone(), voters.clone());
        match known.is_some_and(|it| it.answers.contains(&notified)) {
            true => Ok(()),
            false => Err(format!(
                "{task:?} is answered by {notified:?}, known as {known:?}"
            )),
        }
    }

    fn look_at_gateway(&mut self, step: &Step<'_, Node>, it: &Gateway) -> Result<(), String> {
        self.store(step.at, step.effects)?;
        self.check_stored(step.at, it)?;
        if self.settings.is_hostile() {
            return Ok(());
        }
        let settings = &self.settings;
        let Some(tables) = it.tables() else {
            return Ok(()); // It is no voter at present, and holds no tables.
        };
        let version = it.replica().version();
        self.oracle
            .look(step.at, version, tables, |id| !settings.is_believed(id))
    }

    fn look_at_follower(&mut self, step: &Step<'_, Node>) {
        let follower = step.machine().follower();
        for task in follower.into_iter().flat_map(|it| it.tasks()) {
            let work = follower.and_then(|it| it.work_on(task));
            if let Some(returned) = work.and_then(|it| it.0) {
                self.oracle.on_returned(step.me, task, returned);
            }
        }
    }

    /// The next life of a gateway whose host has stored facts.
    fn restored(&mut self, seat: usize, me: Member) -> Option<Gateway> {
        let others = self.settings.gateway_ids().filter(|id| *id != me.id);
        let store = self.stores.get_mut(seat)?;
        let config = self.settings.gateway;
        let restored = Gateway::restore(me, config, store.base.clone(), others);
        let mut machine = restored.ok()?;
        for fact in &store.facts {
            machine.fold(fact).ok()?;
        }
        store.folded = machine.clone();
        // Sometimes a host stores the whole state in place of the facts.
        if store.facts.len() > MANY {
            store.base = machine.replica().stored();
            store.facts.clear();
        }
        Some(machine)
    }
}

impl Watch<Node> for Watcher {
    fn after(&mut self, step: &Step<'_, Node>) -> Result<(), String> {
        self.summary.steps += 1;
        check_limits(step.machine(), &self.settings)?;
        self.check_refusal(step)?;
        if let (Some(gateway), Some(Tear::Asked(stored))) = (step.machine().gateway(), self.tear) {
            self.tear = None;
            if gateway.me() == step.me && self.tear(step, stored)? {
                return Ok(());
            }
        }
        if !self.settings.is_hostile() {
            Self::check_frames(step)?;
        }
        if let Some(gateway) = step.machine().gateway() {
            self.look_at_gateway(step, gateway)?;
        } else if !self.settings.is_hostile() {
            self.look_at_follower(step);
        }
        for effect in step.effects {
            let Effect::Event(event) = effect else {
                continue;
            };
            match event {
                Event::Follower(event) => {
                    let host = self.hosts.get_mut(step.at);
                    let begins = host.is_some_and(|it| it.on_event(event));
                    self.summary.begun += u64::from(begins);
                }
                Event::Client(_) if self.settings.is_hostile() => {}
                Event::Client(event) => self.on_client(step.me, event)?,
                Event::Gateway(gateway::Event::Leading) => self.summary.managed += 1,
                Event::Gateway(_) => {}
            }
        }
        Ok(())
    }

    fn crashed(&mut self, seat: usize, _me: Member, _machine: &Node) {
        if let Some(host) = self.hosts.get_mut(seat) {
            *host = Host::default();
        }
    }

    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, Node)> {
        let me = Member {
            incarnation: before.incarnation.next(),
            ..before
        };
        let machine = match seat < self.settings.gateways {
            true => Node::from(self.restored(seat, me)?),
            false => self.settings.machine(seat, me, self.begins_at),
        };
        self.summary.restarts += 1;
        Some((me, machine))
    }
}

/// The peer that the refusal accuses of breaking the rules; `Some(None)` for a gateway without a name.
#[must_use]
pub fn accused(reject: &Reject) -> Option<Option<Member>> {
    match reject {
        Reject::Gateway(gateway::Reject::Misbehaviour(it)) => Some(Some(match *it {
            gateway::Misbehaviour::OwnId(from)
            | gateway::Misbehaviour::Duty(from, _)
            | gateway::Misbehaviour::Misdirected(from) => from,
        })),
        Reject::Gateway(gateway::Reject::Replica(replica::Reject::Misbehaviour(_))) => Some(None),
        Reject::Follower(follower::Reject::Misbehaviour(it)) => Some(Some(match *it {
            follower::Misbehaviour::OwnId(from)
            | follower::Misbehaviour::NoGateway(from)
            | follower::Misbehaviour::NotElected(from)
            | follower::Misbehaviour::TooMany(from, _)
            | follower::Misbehaviour::Misdirected(from) => from,
        })),
        Reject::Client(client::Reject::Misdirected(from) | client::Reject::TooMany(from, _)) => {
            Some(Some(*from))
        }
        Reject::Gateway(_) | Reject::Follower(_) | Reject::Client(_) | Reject::Kind => None,
    }
}
