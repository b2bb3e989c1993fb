//! Random histories: a building, faults, and a site that changes; then calm, in which all must end well.

mod dump;
mod edits;
mod ending;
mod losses;
mod setting;

use std::collections::BTreeSet;
use std::sync::Arc;

use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_groups::GroupId;
use selvedge_groups::store::{Bytes, Expected, Operation, StoreCommand};
use selvedge_kgroup::{Command, Reject, Site, TriggerId};

pub(crate) use self::edits::outline;
use self::setting::Disks;
pub(crate) use self::setting::{Break, Setting};
use crate::world::{Dice, Ev, MS, World};

const SECOND: u64 = 1_000 * MS;

/// A step that the story takes at a moment.
#[derive(Clone, Debug)]
enum Act {
    Propose(usize),
    ProposeAndDark,
    Crash,
    Dark,
    Cut,
    Exile(usize),
    Sleep,
    Suspect,
    Roll(Arc<Site>, Vec<NodeId>),
    RollOut,
    Trigger,
    Map,
    Watch,
    Forget,
    Lose,
    Anew(Vec<GroupId>),
    Touch,
}

pub(crate) struct Story {
    pub(crate) world: World,
    setting: Setting,
    acts: Vec<Act>,
    sensor: NodeId,
    number: u64,
    tickets: u64,
    maps: Vec<GroupId>,
    pub(crate) end: Ending,
    plain: bool,
    known: u32,
    has_lost: bool,
    /// Acts that are still to come.
    open: u64,
    pub(crate) unborn: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    pub(crate) converged: bool,
    pub(crate) probes: u64,
}

pub(crate) fn maps() -> Vec<GroupId> {
    ["lights", "doors"]
        .map(|it| GroupId::map(it, &Sha256Sortition))
        .to_vec()
}

impl Story {
    pub(crate) fn new(seed: u64, setting: Setting) -> Option<Self> {
        let mut dice = Dice::new(seed ^ 0xb111);
        let config = setting.config(&mut dice);
        let world = World::new(seed, setting.faults.clone(), config, setting.budget);
        let mut story = Self {
            world,
            setting,
            acts: Vec::new(),
            sensor: NodeId(100),
            number: 0,
            tickets: 0,
            maps: maps(),
            end: Ending::default(),
            plain: false,
            known: 0,
            has_lost: false,
            open: 0,
            unborn: 0,
        };
        let site = story.first_site()?;
        story.world.broken = story.setting.broken;
        story.world.oracle.is_deaf = story.setting.broken == Some(Break::Unheard);
        story.world.oracle.proposes(&site);
        story.world.budget = site.frame_budget();
        let site = Arc::new(site);
        let first_life = story.dice().below(3) as u32 * 1_000;
        for node in site.nodes() {
            let has_disk = story.draw_disk();
            story
                .world
                .add(node.id, has_disk, Arc::clone(&site), first_life);
            let after = story.dice().below(SECOND);
            story.world.after(
                after,
                Ev::Start {
                    node: node.id,
                    file: None,
                },
            );
        }
        story.world.epoch_length = story.setting.epoch;
        let epoch = story.setting.epoch;
        story.world.after(epoch, Ev::Epoch);
        story.note_clauses(&site);
        Some(story)
    }

    fn dice(&mut self) -> &mut Dice {
        &mut self.world.dice
    }

    fn draw_disk(&mut self) -> bool {
        match self.setting.disks {
            Disks::All => true,
            Disks::None => false,
            Disks::Some => self.dice().percent(60),
        }
    }

    fn unique(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn note_clauses(&mut self, site: &Site) {
        for (number, definition) in site.routines() {
            if definition.clause.is_some() {
                self.world.oracle.with_clause.insert(Site::routine(number));
            }
        }
    }

    /// The latest site that was decided, as far as any node has shown.
    pub(crate) fn latest(&self) -> Option<Site> {
        let last = self.world.oracle.sites.last_key_value()?;
        Site::decode(last.1).ok()
    }

    fn schedule(&mut self) {
        let length = self.setting.length;
        let busy = if self.setting.is_busy { 2 } else { 1 };
        let mut plan: Vec<(u64, Act)> = Vec::new();
        let mut some = |dice: &mut Dice, least: u64, most: u64, make: &dyn Fn(&mut Dice) -> Act| {
            for _ in 0..dice.range(least, most) {
                let at = dice.range(SECOND, length);
                let act = make(dice);
                plan.push((at, act));
            }
        };
        let dice = &mut self.world.dice;
        some(dice, 1, 5 * busy, &|dice| {
            Act::Propose(dice.range(1, 3) as usize)
        });
        some(dice, 3, 10 * busy, &|_| Act::Trigger);
        some(dice, 2, 12 * busy, &|_| Act::Map);
        some(dice, 0, 3, &|_| Act::Watch);
        some(dice, 0, 3, &|_| Act::Touch);
        if !self.plain {
            some(dice, 0, 3 * busy, &|_| Act::Crash);
            some(dice, 0, 1, &|_| Act::Dark);
            some(dice, 0, 1, &|_| Act::ProposeAndDark);
            some(dice, 0, 2, &|_| Act::Cut);
            some(dice, 0, 1, &|_| Act::Exile(2));
            some(dice, 0, 2 * busy, &|_| Act::Sleep);
            some(dice, 0, 2, &|_| Act::Suspect);
            some(dice, 0, 1, &|_| Act::RollOut);
            some(dice, 0, 3, &|_| Act::Forget);
            if self.setting.loses {
                some(dice, 1, 1, &|_| Act::Lose);
            }
        }
        for (at, act) in plan {
            self.later(at, act);
        }
    }

    fn later(&mut self, at: u64, act: Act) {
        self.open += 1;
        self.acts.push(act);
        let index = self.acts.len() - 1;
        self.world.at(at, Ev::Step(index));
    }

    /// Runs the history: faults first, calm then.
    pub(crate) fn run(&mut self) {
        self.schedule();
        let length = self.setting.length;
        self.world.at(2 * SECOND, Ev::Poll);
        self.until(length);
        self.calm();
        self.settle();
        if self.world.trace {
            self.dump();
        }
        if self.world.is_unusable {
            self.world.oracle.failures.clear();
            return;
        }
        if let Err(error) = self.world.oracle.maps.check() {
            let now = self.world.now;
            self.world.oracle.fail(now, error);
        }
    }

    /// Returns true until something fails; in a world that is broken on purpose all failures count.
    fn goes_on(&self) -> bool {
        self.world.oracle.failures.is_empty() || self.world.broken.is_some()
    }

    fn until(&mut self, end: u64) {
        while self.goes_on() {
            let Some(ev) = self.world.next(end) else {
                return;
            };
            match self.world.run(ev) {
                Some(Ev::Step(index)) => {
                    let act = self.acts[index].clone();
                    self.open -= 1;
                    self.act(act);
                }
                Some(Ev::Poll) => {
                    self.poll();
                    self.world.after(500 * MS, Ev::Poll);
                }
                _ => self.follow(),
            }
        }
    }

    /// Starts the nodes that a decided site adds.
    fn follow(&mut self) {
        let last = self
            .world
            .oracle
            .sites
            .last_key_value()
            .map_or(0, |it| *it.0);
        if last == self.known {
            return;
        }
        self.known = last;
        let Some(site) = self.latest() else {
            return;
        };
        self.note_clauses(&site);
        self.start_added(&site, 3 * SECOND);
    }

    fn start_added(&mut self, site: &Site, within: u64) {
        let site = Arc::new(site.clone());
        for node in site.nodes() {
            if self
                .world
                .nodes
                .get(&node.id)
                .is_none_or(|it| !it.has_begun)
            {
                let has_disk = self.draw_disk();
                let life = self.dice().below(3) as u32 * 1_000;
                self.world.add(node.id, has_disk, Arc::clone(&site), life);
                let after = self.dice().below(within);
                let file = Some(Arc::clone(&site));
                self.world.after(
                    after,
                    Ev::Start {
                        node: node.id,
                        file,
                    },
                );
            }
        }
    }

    fn some_node(&mut self) -> Option<NodeId> {
        let alive = self.world.alive();
        self.dice().pick(&alive)
    }

    fn act(&mut self, act: Act) {
        self.world.note(|| match &act {
            Act::Roll(_, nodes) => format!("-- roll {nodes:?}"),
            other => format!("-- {other:?}"),
        });
        match act {
            Act::Propose(count) => {
                for _ in 0..count {
                    if let Some(node) = self.some_node() {
                        self.propose(node);
                    }
                }
            }
            Act::ProposeAndDark => {
                if let Some(node) = self.some_node() {
                    self.propose(node);
                }
                let at = self.world.now + self.dice().below(SECOND);
                self.later(at, Act::Dark);
            }
            Act::Crash => {
                if let Some(node) = self.some_node().filter(|it| self.may_stop(&[*it])) {
                    self.crash(node);
                }
            }
            Act::Dark => {
                for node in self.world.alive() {
                    if self.world.nodes[&node].has_disk {
                        self.crash(node);
                    }
                }
            }
            Act::Cut => self.cut(),
            Act::Exile(changes) => self.exile(changes),
            Act::Sleep => {
                if let Some(node) = self.some_node() {
                    let until = self.world.now + self.dice().below(6 * SECOND);
                    self.world.nodes.get_mut(&node).unwrap().asleep_until = until;
                }
            }
            Act::Suspect => {
                let (Some(about), Some(to)) = (self.some_node(), self.some_node()) else {
                    return;
                };
                if about != to {
                    let life = self.world.nodes[&about].life;
                    self.world.suspect(about, life);
                    let alive = self.world.alive();
                    for to in alive.into_iter().filter(|it| *it != about) {
                        if self.dice().percent(70) {
                            self.world.refute(about, to);
                        }
                    }
                }
            }
            Act::RollOut => {
                if let Some(site) = self.latest() {
                    let generation = site.generation() + self.dice().below(4) as u32;
                    let file = self.edit(site).with_generation(generation);
                    if generation == 0 {
                        return;
                    }
                    self.note_clauses(&file);
                    self.world.oracle.proposes(&file);
                    let nodes = file.nodes().iter().map(|it| it.id).collect();
                    self.act(Act::Roll(Arc::new(file), nodes));
                }
            }
            Act::Roll(file, mut nodes) => self.roll(file, &mut nodes),
            Act::Trigger => {
                if let Some(site) = self.latest() {
                    let numbers: Vec<u32> = site.routines().map(|it| it.0).collect();
                    if let Some(number) = self.dice().pick(&numbers) {
                        let times = self.dice().range(1, 2);
                        let id = self.unique();
                        for _ in 0..times {
                            if let Some(node) = self.some_node() {
                                self.trigger(node, Site::routine(number), id);
                            }
                        }
                    }
                }
            }
            Act::Map => {
                if let Some(node) = self.some_node() {
                    self.ask_map(node);
                }
            }
            Act::Watch => {
                if let Some(node) = self.some_node() {
                    let map = self.dice().pick(&maps()).unwrap();
                    let key = self.key();
                    self.map_command(node, map, StoreCommand::Watch(key));
                }
            }
            Act::Touch => {
                let value = if self.dice().percent(50) {
                    "open"
                } else {
                    "shut"
                };
                self.world.device_states.insert(self.sensor, value.into());
            }
            Act::Forget => self.forget(),
            Act::Lose => self.lose(),
            Act::Anew(groups) => self.anew(&groups),
        }
    }

    fn propose(&mut self, node: NodeId) {
        let Some(machine) = self.world.machine(node) else {
            return;
        };
        let present = machine.site().clone();
        let mut wanted = self.edit(present);
        if self.dice().percent(10) {
            let generation = wanted.generation() + self.dice().range(1, 3) as u32;
            wanted = wanted.with_generation(generation);
        }
        self.propose_site(node, wanted);
    }

    fn propose_site(&mut self, node: NodeId, wanted: Site) -> Option<Reject> {
        let life = self.world.nodes[&node].life;
        let text = self.world.trace.then(|| outline(&wanted));
        self.note_clauses(&wanted);
        self.world.oracle.proposes(&wanted);
        let machine = self.world.machine(node)?;
        let number = machine.groups().proposed() + 1;
        self.world
            .oracle
            .waiting
            .insert((node, life, number), wanted.clone());
        let refused = self
            .world
            .command(node, Command::ChangeSite(Box::new(wanted.clone())));
        self.world
            .note(|| format!("{node} proposes {}: {refused:?}", text.unwrap_or_default()));
        if refused.is_some() {
            self.world.oracle.counts.refused_sites += 1;
            self.world.oracle.waiting.remove(&(node, life, number));
            return refused;
        }
        let early = self.dice().percent(40);
        if early && wanted.generation() > 0 {
            self.world.oracle.proposes(&wanted); // As the file of the nodes that it adds.
            self.start_added(&wanted, SECOND);
        }
        None
    }

    fn crash(&mut self, node: NodeId) {
        self.world.stop(node);
        let after = self.dice().range(50 * MS, 6 * SECOND);
        let sites: Vec<Vec<u8>> = self.world.oracle.sites.values().cloned().collect();
        let mut file = None;
        if self.dice().percent(30) {
            let bytes = self.dice().pick(&sites);
            let site = bytes.and_then(|it| Site::decode(&it).ok());
            file = site
                .filter(|it| it.nodes().iter().any(|it| it.id == node))
                .map(Arc::new);
        }
        self.world.after(after, Ev::Start { node, file });
    }

    fn roll(&mut self, file: Arc<Site>, nodes: &mut Vec<NodeId>) {
        let Some(node) = nodes.pop() else {
            return;
        };
        let is_there = self
            .world
            .nodes
            .get(&node)
            .is_some_and(|it| it.driver.is_some());
        let mut gap = self.dice().below(3 * SECOND);
        if !is_there && self.world.nodes.get(&node).is_none_or(|it| !it.has_begun) {
            let (has_disk, life) = (self.draw_disk(), self.dice().below(3) as u32 * 1_000);
            self.world.add(node, has_disk, Arc::clone(&file), life);
            self.world.after(
                0,
                Ev::Start {
                    node,
                    file: Some(Arc::clone(&file)),
                },
            );
        } else if is_there && self.may_stop(&[node]) {
            self.world.stop(node);
            let down = self.dice().range(10 * MS, SECOND);
            gap += down;
            self.world.after(
                down,
                Ev::Start {
                    node,
                    file: Some(Arc::clone(&file)),
                },
            );
        }
        let at = self.world.now + gap;
        self.later(at, Act::Roll(file, nodes.clone()));
    }

    fn sides(&mut self, side: &[NodeId]) -> BTreeSet<(NodeId, NodeId)> {
        let ids: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let is_one_way = self.dice().percent(15);
        let mut pairs = BTreeSet::new();
        for one in &ids {
            for other in &ids {
                if side.contains(one) && !side.contains(other) {
                    pairs.insert((*one, *other));
                    if !is_one_way {
                        pairs.insert((*other, *one));
                    }
                }
            }
        }
        pairs
    }

    fn cut(&mut self) {
        let ids: Vec<NodeId> = self.world.nodes.keys().copied().collect();
        let side: Vec<NodeId> = ids
            .into_iter()
            .filter(|_| self.world.dice.percent(40))
            .collect();
        let pairs = self.sides(&side);
        let time = self.dice().range(500 * MS, 12 * SECOND);
        self.world.cut(pairs, time);
    }

    /// A leader and a follower are cut off while others change the site.
    fn exile(&mut self, changes: usize) {
        let led: Vec<(NodeId, GroupId)> = self
            .world
            .alive()
            .into_iter()
            .flat_map(|it| {
                let machine = self.world.machine(it).unwrap();
                machine.leads().map(|group| (it, group)).collect::<Vec<_>>()
            })
            .collect();
        let Some((leader, group)) = self.dice().pick(&led) else {
            return;
        };
        let members = self
            .world
            .oracle
            .latest
            .get(&group)
            .map(|it| it.members.clone());
        let mut side = vec![leader];
        let others: Vec<NodeId> = members
            .unwrap_or_default()
            .iter()
            .map(|it| it.id)
            .filter(|it| *it != leader)
            .collect();
        side.extend(self.dice().pick(&others));
        let rest: Vec<NodeId> = self
            .world
            .alive()
            .into_iter()
            .filter(|it| !side.contains(it))
            .collect();
        let pairs = self.sides(&side);
        let time = self.dice().range(4 * SECOND, 15 * SECOND);
        self.world.cut(pairs, time);
        for change in 0..changes {
            let after = time * (change as u64) / (changes as u64) + self.dice().below(SECOND);
            let _ = rest;
            let at = self.world.now + after;
            self.later(at, Act::Propose(3));
        }
    }

    fn trigger(&mut self, node: NodeId, routine: GroupId, id: u64) -> bool {
        self.world.oracle.triggers(routine, id);
        let id = TriggerId(id);
        self.world
            .command(node, Command::Trigger { routine, id })
            .is_none()
    }

    fn key(&mut self) -> String {
        ["a", "b", "c"][self.dice().below(3) as usize].to_owned()
    }

    fn ask_map(&mut self, node: NodeId) {
        let map = self.dice().pick(&maps()).unwrap();
        let key = self.key();
        self.tickets += 1;
        let ticket = self.tickets;
        let command = if self.dice().percent(40) {
            StoreCommand::Get { ticket, key }
        } else {
            let last = self.world.oracle.maps.last(map, &key);
            let expected = match self.dice().below(4) {
                0 if last > 0 => Expected::Version(last),
                1 => Expected::Absent,
                _ => Expected::Any,
            };
            let value: Bytes = self.unique().to_le_bytes().into_iter().collect();
            let operation = Operation {
                key,
                expected,
                value: Some(value),
            };
            StoreCommand::Change { ticket, operation }
        };
        self.map_command(node, map, command);
    }

    fn map_command(&mut self, node: NodeId, map: GroupId, command: StoreCommand) -> bool {
        let life = self.world.nodes[&node].life;
        let now = self.world.now;
        let is_watch = matches!(command, StoreCommand::Watch(_));
        if !is_watch {
            self.world.oracle.maps.ask(now, node, life, map, &command);
        }
        let refused = self.world.command(
            node,
            Command::Map {
                map,
                command: command.clone(),
            },
        );
        if refused.is_none() && is_watch {
            let known = &mut self.world.oracle.maps;
            let StoreCommand::Watch(key) = command else {
                return true;
            };
            known.watched.entry((node, life, map, key)).or_insert(None);
            return true;
        }
        if let (Some(_), StoreCommand::Change { ticket, .. } | StoreCommand::Get { ticket, .. }) =
            (&refused, &command)
        {
            self.world.oracle.maps.pending.remove(&(map, *ticket));
        }
        refused.is_none()
    }
}
