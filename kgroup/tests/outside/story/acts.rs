//! Acts of a history: proposals, crashes, new files, sleep and suspicion.

use std::sync::Arc;

use selvedge_core::NodeId;
use selvedge_groups::GroupId;
use selvedge_groups::store::StoreCommand;
use selvedge_kgroup::{Command, Reject, Site};

use super::{SECOND, Story, maps, outline};
use crate::world::{Ev, MS};

/// A step that the story takes at a moment.
#[derive(Clone, Debug)]
pub(super) enum Act {
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

impl Story {
    pub(super) fn act(&mut self, act: Act) {
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
                    let file = self.edit(Site::clone(&site)).with_generation(generation);
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

    pub(super) fn propose_site(&mut self, node: NodeId, wanted: Site) -> Option<Reject> {
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

    pub(super) fn crash(&mut self, node: NodeId) {
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
}
