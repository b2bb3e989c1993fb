//! The building: its nodes, and requests to them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Effect, Incarnation, Input, Member, NodeId};
use selvedge_groups as groups;
use selvedge_groups::{Fact, GroupId, Start};
use selvedge_kgroup::devices::{self, Ticket};
use selvedge_kgroup::{
    Command, Config, Event, GroupState, Kgroup, LeaderEvent, Message, Outcome, Reject, Site,
};
use selvedge_routine::State;
use selvedge_sim::histories::{
    Choices, Disk, History, Hosts, Item, Life, Node, Real, Step, Weather, What, Write,
};

use crate::devices::Devices;
use crate::oracle::Maps;
use crate::runs::{Named, Runs};
use crate::sites::Sites;
use crate::states::{Observed, Places, States};
use crate::times::Times;

/// More steps at one moment than any correct building needs.
const STORM: u64 = 50_000;

/// An event of clocks or devices.
#[derive(Debug)]
pub(crate) enum Own {
    /// A host's clock begins an epoch.
    Epoch(u64, u64),
    /// A command reaches its device.
    Arrives {
        by: Member,
        ticket: Ticket,
        value: State,
    },
    /// A device's answer reaches the host.
    Answers(Member, Ticket, Outcome),
    Reports(Member, NodeId, Option<State>),
    /// A host reads its clock.
    Clock(u64),
    /// A node begins again, with another site in its program.
    Program(u64, Arc<Site>),
}

/// The test's data of one life.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// The entries that it watches.
    pub(crate) watches: BTreeSet<(GroupId, String)>,
    pub(crate) shown: BTreeMap<(GroupId, String), u64>,
    /// The claims of commands that wait for facts.
    named: VecDeque<(Ticket, Named)>,
    pub(crate) places: Places,
    /// The sites of events that wait for facts.
    pub(crate) sites: VecDeque<Arc<Site>>,
    pub(crate) is_spared: bool,
}

/// Facts that replace all earlier facts of one group, or of all groups.
#[derive(Debug)]
pub(crate) struct Base {
    pub(crate) group: Option<Option<GroupId>>,
    pub(crate) facts: Vec<Fact<GroupState>>,
}

pub(crate) struct World {
    pub(crate) hosts: Hosts<Self>,
    /// The latest site that was decided.
    pub(crate) site: Arc<Site>,
    pub(crate) sites: Sites,
    pub(crate) maps: Vec<GroupId>,
    pub(crate) oracle: Maps,
    pub(crate) devices: Devices,
    pub(crate) runs: Runs,
    pub(crate) states: States,
    pub(crate) times: Times,
    /// Nodes that forgot, or never ran, since the last time without faults.
    pub(crate) spent: BTreeSet<u64>,
    pub(crate) epoch: u64,
    /// Messages of any age come again.
    pub(crate) echoes: bool,
    pub(crate) liars: bool,
    pub(crate) last_sent: Real,
    /// The number of steps that were taken at this moment.
    steps: (Real, u64),
    pub(crate) lies: u64,
    pub(crate) refused: u64,
    /// The number of requests to be spared, and to take a share again.
    pub(crate) spared: u64,
    /// The most messages in 30 seconds of peace.
    pub(crate) idle: u64,
}

impl Deref for World {
    type Target = Hosts<Self>;

    fn deref(&self) -> &Hosts<Self> {
        &self.hosts
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Hosts<Self> {
        &mut self.hosts
    }
}

impl History for World {
    type Machine = Kgroup;
    type Fact = Fact<GroupState>;
    type Base = Base;
    type Note = Vec<Observed>;
    type Happening = Own;
    type Node = Config;
    type Life = Known;

    fn fact(event: &Event) -> Option<&Fact<GroupState>> {
        Kgroup::fact(event)
    }

    fn make(&mut self, Life { me, is_first }: Life) -> Kgroup {
        let node = &self.nodes[&me.id.0];
        let begin = match is_first || node.stores {
            true => Start::Fresh,
            false => Start::Restarted,
        };
        let site = self.sites.program(me.id.0);
        let mut machine = Kgroup::new(me, node.own, site, begin).unwrap();
        if node.stores {
            for fact in &node.disk.facts {
                machine.fold(fact).unwrap();
            }
            self.sites.begins_again(&machine);
            if machine.groups().has_site() {
                self.has_stored(machine.site());
            }
        }
        machine
    }

    fn began(&mut self, me: Member) {
        let epoch = self.epoch;
        self.command(me.id.0, Command::SetEpoch(epoch));
        if self.times.is_on {
            self.read_clock(me.id.0);
        }
        self.meet(me);
        self.ask_again(me.id.0);
    }

    fn replace(disk: &mut Disk<Self>, base: Base) {
        let group = base.group;
        disk.facts
            .retain(|it| group.is_some_and(|group| it.group() != group));
        disk.facts.extend(base.facts);
    }

    fn send(&mut self, from: Member, to: Member, message: Message) {
        self.dispatch(from, to.id.0, &message);
    }

    fn stepped(&mut self, step: &Step<'_, Self>) -> Vec<Vec<Observed>> {
        let me = step.me;
        self.count_step();
        self.refused += u64::from(step.refusal.is_some());
        for effect in step.effects {
            assert!(!matches!(effect, Effect::Multicast { .. }), "a multicast");
            if let Some(named) = self.claim(me.id.0, effect) {
                self.life(me.id.0).named.push_back(named);
            }
        }
        self.note_sites(step);
        self.may_name_unseen(me.id.0);
        self.observe(step)
    }

    /// A leader counts itself once others have acknowledged an entry, so behind an earlier fact; alone, in the step
    /// of its fact.
    fn goes_ahead(note: &Vec<Observed>) -> bool {
        !note.iter().any(Observed::is_alone)
    }

    fn note(&mut self, _: Member, note: Vec<Observed>) {
        for (group, state) in note.iter().filter_map(Observed::routine) {
            self.runs.state(group, state);
        }
        self.states.see(&self.site, &self.sites, note);
    }

    fn event(&mut self, me: Member, reported: Real, event: Event) {
        match event {
            Event::Map { map, event } => self.answered(me, map, event),
            Event::Triggered { routine, id } => self.runs.triggered(me, routine, id),
            Event::Leader { group, event } => match event {
                LeaderEvent::Devices(devices::Event::Ping { device }) => self.ping(me, device),
                LeaderEvent::Devices(devices::Event::Act { ticket, value }) => {
                    if let Some((of, named)) = self.life(me.id.0).named.pop_front() {
                        assert_eq!(of, ticket, "effects are out of order");
                        self.runs.name(ticket, named);
                    }
                    self.act(me, reported, ticket, value);
                }
                LeaderEvent::Routine(event) => {
                    self.times.reported(group, &event);
                    let may_lack = self.sites.is_on;
                    self.runs.reported(group, event, may_lack);
                }
                _ => {}
            },
            Event::Site { generation } => self.site_is(me, generation),
            Event::Groups(groups::Event::Proposed { is_decided, .. }) => {
                self.sites.overtaken += u64::from(!is_decided);
            }
            _ => {}
        }
    }

    fn went(&mut self, id: u64) {
        self.stages(id);
    }

    fn happens(&mut self, what: Own) {
        match what {
            Own::Epoch(to, epoch) => self.command(to, Command::SetEpoch(epoch)),
            Own::Program(id, site) => self.begins_with(id, site),
            Own::Clock(id) => self.reads_clock_again(id),
            Own::Arrives { by, ticket, value } => self.arrives(by, ticket, value),
            Own::Answers(by, ticket, outcome) => {
                self.command_of(by, Command::Acted { ticket, outcome });
            }
            Own::Reports(by, device, value) => {
                self.command_of(by, Command::Reported { device, value });
            }
        }
    }
}

impl World {
    pub(crate) fn new(
        choices: Choices,
        site: Site,
        maps: Vec<GroupId>,
        weather: Weather,
        nodes: Vec<Node<Self>>,
    ) -> Self {
        let devices = Devices::of(&site);
        let site = Arc::new(site);
        Self {
            hosts: Hosts::new(choices, weather, nodes),
            sites: Sites::of(&site),
            site,
            maps,
            oracle: Maps::default(),
            devices,
            runs: Runs::default(),
            states: States::default(),
            times: Times::default(),
            spent: BTreeSet::new(),
            epoch: 1,
            echoes: false,
            liars: false,
            last_sent: 0,
            steps: (0, 0),
            lies: 0,
            refused: 0,
            spared: 0,
            idle: 0,
        }
    }

    /// Counts steps: a storm in no time has no end.
    fn count_step(&mut self) {
        let now = self.now;
        if self.steps.0 != now {
            self.steps = (now, 0);
        }
        self.steps.1 += 1;
        assert!(self.steps.1 < STORM, "a storm at {now}");
    }

    /// The test's data of a node that is up.
    pub(crate) fn life(&mut self, id: u64) -> &mut Known {
        let node = self.nodes.get_mut(&id).unwrap();
        &mut node.host.as_mut().unwrap().own
    }

    /// Returns true if the node takes an input at once.
    pub(crate) fn is_awake(&self, id: u64) -> bool {
        let host = self.nodes[&id].host.as_ref();
        self.is_running(id) && host.is_some_and(|it| it.inbox.is_empty())
    }

    /// All groups: the site's, and the maps that are asked for.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        let maps = self.maps.iter().copied();
        self.site.groups().chain(maps).collect()
    }

    pub(crate) fn a_group(&mut self) -> GroupId {
        let groups = self.groups();
        let at = self.below(groups.len() as u64);
        groups[at as usize]
    }

    /// The nodes that believe to lead a group.
    pub(crate) fn leaders(&self, group: GroupId) -> Vec<u64> {
        let leads = |id: &u64| {
            self.machine(*id)
                .is_some_and(|it| it.leads().any(|led| led == group))
        };
        self.ids().into_iter().filter(leads).collect()
    }

    /// A command that may be refused: the host acts on its own knowledge.
    pub(crate) fn command(&mut self, id: u64, command: Command) {
        self.input(id, Input::Command(command));
    }

    /// The same, to one life of a node.
    fn command_of(&mut self, of: Member, command: Command) {
        if self.is_up(of) {
            self.command(of.id.0, command);
        }
    }

    /// Stores a base of one group, or of all, in place of its facts.
    pub(crate) fn snapshot(&mut self, id: u64) {
        let whole = self.percent(50);
        let group = self.a_group();
        let node = self.nodes.get_mut(&id).unwrap();
        let Some(host) = node.host.as_mut().filter(|_| node.stores) else {
            return;
        };
        let groups = host.driver.machine().groups();
        let facts = match whole {
            true => groups.stored().collect(),
            false => match groups.base(Some(group)) {
                Some(fact) => vec![fact],
                None => return,
            },
        };
        let group = (!whole).then_some(Some(group));
        // New facts of other groups come before it.
        let mut new = Vec::new();
        let mark = host.barrier.write(|item| {
            if let Item::Effect(Effect::Event(event), ..) = item {
                new.extend(Kgroup::fact(event).cloned());
            }
        });
        let last = host.barrier.last();
        if let Some(mark) = mark {
            self.queue_write(id, mark, Write::Facts(new));
        }
        self.queue_write(id, last, Write::Base(Box::new(Base { group, facts })));
    }

    /// Returns true if one more node may forget: f of each group at most do.
    pub(crate) fn may_forget(&self, id: u64) -> bool {
        let others = self.spent.iter().filter(|it| **it != id).count();
        others < usize::from(self.failures())
    }

    /// A group may begin without as many founders as may fail. The registry's leader names these in the lives that
    /// it knows, or in life 0. One that never had this life is one of the f until it is named again.
    fn may_name_unseen(&mut self, id: u64) {
        let Some(machine) = self.machine(id) else {
            return;
        };
        let groups = machine.groups();
        if !groups.leads(GroupId::REGISTRY) {
            return;
        }
        let known = self.nodes_of_the_site().into_iter();
        let known = known.filter_map(|it| Some((self.nodes.get(&it)?, groups.latest(NodeId(it)))));
        let unseen = known.filter(|(node, it)| {
            let since = if node.stores { node.born } else { node.life };
            let last = Incarnation(node.life);
            !it.incarnation.is_within(Incarnation(since), last)
        });
        let unseen: Vec<u64> = unseen.map(|it| it.0.id).collect();
        self.spent.extend(unseen);
    }

    pub(crate) fn failures(&self) -> u8 {
        self.site.plan().unwrap().selection().failures
    }

    /// Stops a node, and notifies the others or not.
    pub(crate) fn crash(&mut self, id: u64, restart_after: Real, is_notified: bool) {
        let node = &self.nodes[&id];
        if node.host.is_none() || (!node.stores && !self.may_forget(id)) {
            return;
        }
        if !node.stores {
            self.spent.insert(id);
        }
        let me = self.stop(id, restart_after).unwrap();
        let compacts = self.below(2) == 0;
        let skipped = self.below(2) as u32;
        let node = self.nodes.get_mut(&id).unwrap();
        if compacts {
            compact(&mut node.disk.facts);
        }
        node.life += skipped;
        if is_notified {
            let delta = match self.below(3) {
                0 => Delta::Left(me),
                1 => Delta::Confirmed(me),
                _ => Delta::Failed(me),
            };
            self.spread(delta);
        }
    }

    /// All stop at once, and keep their storage.
    pub(crate) fn blackout(&mut self) {
        for id in self.ids() {
            let after = self.below(3_000_000);
            let notified = self.percent(20);
            self.crash(id, after, notified);
        }
    }

    /// A node that stores loses its storage, and stores no more.
    pub(crate) fn lose_storage(&mut self, id: u64, after: Real) {
        let may = self.may_forget(id);
        let node = self.nodes.get_mut(&id).unwrap();
        if !node.stores || node.host.is_none() || !may {
            return;
        }
        node.stores = false;
        self.crash(id, after, true);
        self.nodes.get_mut(&id).unwrap().lose_storage();
    }

    /// Notifies all other nodes.
    pub(crate) fn spread(&mut self, delta: Delta) {
        for to in self.ids() {
            if to != delta.member().id.0 {
                self.notify(to, delta);
            }
        }
    }

    /// Begins an epoch at each host in its own time, but for a share that misses it.
    pub(crate) fn begin_epoch(&mut self, epoch: u64, within: Real, missed: u64) {
        for id in self.ids() {
            if self.percent(missed) {
                continue;
            }
            let after = self.below(within + 1);
            self.after(after, What::Own(Own::Epoch(id, epoch)));
        }
    }
}

/// Drops facts that a later fact replaces.
fn compact(facts: &mut Vec<Fact<GroupState>>) {
    let mut covered = BTreeSet::new();
    let mut kept = Vec::new();
    for fact in facts.drain(..).rev() {
        if covered.contains(&fact.group()) {
            continue;
        }
        if fact.is_base() {
            covered.insert(fact.group());
        }
        kept.push(fact);
    }
    kept.reverse();
    *facts = kept;
}

/// Returns true if a node refuses a message as none that a peer of its site sends.
pub(crate) fn is_accusation(taken: &Result<(), Reject>) -> bool {
    matches!(taken, Err(Reject::Groups(groups::Reject::Misbehaviour(_))))
}
