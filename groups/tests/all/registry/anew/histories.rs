//! Histories under all faults, with changes of the site. One site is decided in each generation, and each node
//! takes no earlier one again. Of two beginnings of a group one decides at a time, and a group whose members
//! have their memory does not begin anew. At the end all nodes have one site, and the group goes on.
//!
//! `SELVEDGE_HISTORIES` and `SELVEDGE_SEED` are those of `selvedge_sim::histories`.

use selvedge_core::Choose as _;
use selvedge_sim::histories::{Choices, random, seeds};

use super::decisions::Decisions;
use super::*;

const NODES: u64 = 7;

/// The most losses of memory in a history. The registry keeps its quorum.
const LOSSES: usize = 3;

#[derive(Debug, Default)]
struct Totals {
    histories: u64,
    losses: usize,
    proposals: u64,
    sites: u64,
    beginnings: u64,
    decisions: usize,
}

struct History {
    town: Town,
    land: Land,
    lives: [u32; NODES as usize + 1],
    /// A node that lost its memory founds nothing in later lives.
    starts: [Start; NODES as usize + 1],
    losses: usize,
    epoch: u64,
    proposals: u64,
    /// The site of each generation.
    sites: BTreeMap<u32, Vec<u8>>,
    /// The generation of each node that remembers it.
    generations: BTreeMap<u64, u32>,
}

impl History {
    fn new(loss: u64) -> Self {
        let land = Land::first(NODES, &[FIRST.0]);
        let mut town = Town::new(&land);
        town.loss = loss;
        town.run(Span::secs(1));
        Self {
            town,
            land,
            lives: [1; NODES as usize + 1],
            starts: [Start::Fresh; NODES as usize + 1],
            losses: 0,
            epoch: 1,
            proposals: 0,
            sites: BTreeMap::new(),
            generations: BTreeMap::new(),
        }
    }

    fn suffer(&mut self, choices: &mut Choices) {
        let id = choices.below(NODES) + 1;
        let is_up = self.town.nodes.contains_key(&id);
        match choices.below(19) {
            0..2 if self.losses < LOSSES && is_up => {
                self.losses += 1;
                self.generations.remove(&id);
                let at = id as usize;
                self.lives[at] += 1;
                self.starts[at] = Start::Restarted;
                forget(&mut self.town, id, self.lives[at], &self.land);
            }
            2 if is_up => self.town.stop(id),
            3 if !is_up => self.start(id),
            4 => {
                self.town.cut.insert(id);
            }
            5 => self.town.cut.clear(),
            6..8 => {
                let (group, payload) = (FIRST, id);
                self.town
                    .input(id, Input::Command(Command::Ask { group, payload }));
            }
            8..12 => {
                self.epoch += 1;
                for id in 1..=NODES {
                    self.town
                        .input(id, Input::Command(Command::SetEpoch(self.epoch)));
                }
                self.town.run(Span::secs(3));
            }
            12..16 => {
                let tenths = choices.below(60) + 1;
                self.town.run(Span::millis(100) * tenths);
            }
            16 => {
                let of = choices.below(NODES) + 1;
                let member = self.town.nodes.get(&of).map(|it| it.machine().me());
                if let Some(member) = member.filter(|_| of != id) {
                    self.town
                        .input(id, Input::Membership(Delta::Failed(member)));
                }
            }
            17.. => self.change(id),
            _ => {}
        }
        self.compare_sites();
    }

    fn start(&mut self, id: u64) {
        let at = id as usize;
        self.lives[at] += 1;
        let me = life(id, self.lives[at]);
        self.town.start(me, &self.land, self.starts[at]);
    }

    /// A node proposes a site with a group that no other one has.
    fn change(&mut self, id: u64) {
        let Some(node) = self.town.nodes.get(&id) else {
            return;
        };
        let mut next = node.machine().site().next();
        self.proposals += 1;
        next.groups.retain(|it| *it == FIRST.0);
        next.groups.push(400 + 4 * self.proposals);
        self.town.change(id, &next);
    }

    fn compare_sites(&mut self) {
        for (id, node) in &self.town.nodes {
            let machine = node.machine();
            let generation = machine.generation();
            let site = Held::encode(machine.site());
            let decided = self.sites.entry(generation).or_insert_with(|| site.clone());
            assert_eq!(*decided, site, "two sites of generation {generation}");
            let before = self.generations.insert(*id, generation);
            assert!(before <= Some(generation), "node {id} takes a former site");
        }
    }

    /// Faults are over, and epochs begin.
    fn heal(&mut self) {
        self.town.cut.clear();
        self.town.loss = u64::MAX;
        for id in 1..=NODES {
            if !self.town.nodes.contains_key(&id) {
                self.start(id);
            }
            let me = self.town.nodes[&id].machine().me();
            for other in (1..=NODES).filter(|it| *it != id) {
                self.town.input(other, Input::Membership(Delta::Joined(me)));
            }
        }
        epochs(&mut self.town, self.epoch + 1..=self.epoch + 5);
        self.compare_sites();
    }

    fn judge(&mut self, all: &mut Totals) {
        let mut decisions = Decisions::default();
        decisions.follow(&self.town, FIRST);
        assert!(!decisions.is_doubled(), "{:?}", decisions.decided);
        let is_anew = has_begun_anew(&self.town, FIRST);
        let losses = self.losses;
        assert!(
            losses > 1 || !is_anew,
            "it begins anew after {losses} losses"
        );
        let generations = self.town.generations();
        assert!(
            generations.windows(2).all(|it| it[0] == it[1]),
            "{generations:?}"
        );
        // A leader may answer, and lead no more before its proposal is decided.
        let is_held = |town: &Town| town.set(FIRST) & 1 << 40 > 0;
        for _ in 0..5 {
            if self.town.leaders(FIRST).len() != 1 || !is_held(&self.town) {
                self.town.ask(1, FIRST, 40);
                self.town.run(Span::secs(2));
            }
        }
        assert!(is_held(&self.town));
        all.histories += 1;
        all.losses += losses;
        all.proposals += self.proposals;
        all.sites += u64::from(generations[0]);
        all.beginnings += u64::from(is_anew);
        all.decisions += decisions.decided.len();
    }
}

fn play(mut choices: Choices, all: &mut Totals) {
    let loss = match choices.percent(50) {
        true => u64::MAX,
        false => choices.below(17) + 3,
    };
    let mut history = History::new(loss);
    for _ in 0..choices.below(50) + 10 {
        history.suffer(&mut choices);
    }
    history.heal();
    history.judge(all);
}

#[test]
fn sites_and_beginnings_are_decided_one_after_another_and_the_group_goes_on() {
    let mut all = Totals::default();
    let ran = random(seeds(24), |choices| play(choices, &mut all));
    println!("{all:?}");
    assert!(
        ran < 24 || all.sites > 24 && all.beginnings > 0 && all.decisions > 100,
        "{all:?}"
    );
}
