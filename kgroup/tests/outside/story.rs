//! Random histories: a building, faults, and a site that changes; then calm, in which all must end well.

mod acts;
mod commands;
mod cuts;
mod dump;
mod edits;
mod ending;
mod losses;
mod setting;

use std::sync::Arc;

use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_groups::GroupId;
use selvedge_kgroup::Site;

use self::acts::Act;
pub(crate) use self::edits::outline;
use self::setting::Disks;
pub(crate) use self::setting::{Break, Setting};
use crate::world::{Dice, Ev, MS, World};

const SECOND: u64 = 1_000 * MS;

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
    pub(crate) fn latest(&self) -> Option<Arc<Site>> {
        self.world.oracle.last_site.clone()
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
}
