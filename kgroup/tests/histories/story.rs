//! One history: a building, faults, and what must come true when they end.

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Member, NodeId, Sha256Sortition, Span};
use selvedge_groups as groups;
use selvedge_groups::{
    GroupId, Leader, Node, Place, Selection,
    store::{Expected, Operation, StoreCommand, StoreConfig},
};
use selvedge_kgroup::routines::{Definition, Locking, Retrigger, RoutineConfig, Stage};
use selvedge_kgroup::{Command, Config, Delivery, Held, Site, TriggerId, devices};
use selvedge_routine::trigger::Clause;
use selvedge_routine::{Comparison, Condition, Priority, Routine, State, Step};

use crate::asked::{Asked, Question};
use crate::home::{Device, Devices};
use crate::world::{Link, World};

/// What happened in all histories.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) runs: u64,
    pub(crate) commands: u64,
    pub(crate) stored: u64,
    pub(crate) found: u64,
    pub(crate) unseen: u64,
    pub(crate) restarts: u64,
    pub(crate) changes: u64,
    pub(crate) executing: u64,
    /// In which epochs were shorter than timeouts.
    pub(crate) hurried: u64,
    pub(crate) messages: u64,
    /// In a second.
    pub(crate) busiest: u64,
    /// In 30 seconds of peace.
    pub(crate) idle: u64,
    pub(crate) stale: u64,
    pub(crate) longest_state: usize,
    pub(crate) parts: usize,
    pub(crate) former: usize,
    pub(crate) healed_after: Span,
}

const VALUES: [&str; 3] = ["on", "off", "dim"];

fn device(number: u64) -> NodeId {
    NodeId(1_000 + number)
}

fn value(rng: &mut ChaCha8Rng) -> State {
    VALUES[rng.below(3) as usize].into()
}

fn condition(rng: &mut ChaCha8Rng, devices: u64) -> Condition<State> {
    Condition {
        device: device(1 + rng.below(devices)),
        comparison: [Comparison::Equal, Comparison::NotEqual][rng.below(2) as usize],
        value: value(rng),
    }
}

fn routine(rng: &mut ChaCha8Rng, devices: u64) -> Definition {
    let mut steps = Vec::new();
    let mut deliveries = Vec::new();
    for _ in 0..=rng.below(4) {
        // Nothing commands the first one: a clause that a run makes true, and false, has no end.
        let mut step = Step::new(device(2 + rng.below(devices - 1)), value(rng));
        if rng.below(4) == 0 {
            step.condition = Some(condition(rng, devices).into());
        }
        if rng.below(3) == 0 {
            step.hold = Span::millis(rng.below(2_000));
        }
        if rng.below(2) == 0 {
            step.priority = Priority::BestEffort;
        }
        steps.push(step);
        deliveries.push([Delivery::AtLeastOnce, Delivery::AtMostOnce][rng.below(2) as usize]);
    }
    let policies = [Retrigger::Ignore, Retrigger::QueueOnce, Retrigger::Restart];
    let mut definition = Definition::new(Routine { steps })
        .with_deliveries(deliveries)
        .with_retrigger(policies[rng.below(3) as usize])
        .with_command_timeout(Span::secs(6 + rng.below(6)));
    if rng.below(2) == 0 {
        definition = definition.with_locking(Locking::Optimistic);
    }
    if rng.below(3) == 0 {
        definition = definition.with_clause(Clause::Is(condition(rng, 1)));
    }
    definition
}

fn site(rng: &mut ChaCha8Rng, nodes: u64, failures: u8) -> Site {
    let devices = 2 + rng.below(5);
    let place = |at: u64| Place([at as i32 * 100, 0, 0]);
    let mut selection = Selection::new().with_failures(failures);
    if rng.below(2) == 0 {
        selection = selection.with_leader(Leader::Nearest);
    }
    let smart = (1..=nodes).map(|id| Node::new(id, place(id)));
    let simple = (1..=devices).map(|it| (device(it), place(it)));
    let cluster = devices.div_ceil(1 + rng.below(3)) as usize;
    let mut site = Site::new(selection, smart, simple, cluster).unwrap();
    for _ in 0..2 + rng.below(3) {
        site = site.with_routine(routine(rng, devices)).unwrap();
    }
    site
}

fn config(rng: &mut ChaCha8Rng) -> Config {
    let mut pick = |all: &[u64]| all[rng.below(all.len() as u64) as usize];
    let resend = Span::millis(pick(&[150, 200, 500]));
    let groups = groups::Config::new()
        .with_patience(Span::millis(pick(&[500, 1_000, 3_000])))
        .with_stagger(Span::millis(pick(&[0, 1_000, 10_000])))
        .with_replace_after(pick(&[1, 1, 2]) as u8)
        .with_hints(pick(&[256, 256, 8]) as u16)
        .with_replica(selvedge_replica::Config::new().with_resend(resend));
    let devices = devices::Config::new()
        .with_misses(pick(&[1, 2]) as u8)
        .with_resend(Span::millis(pick(&[300, 500])));
    Config::new()
        .with_groups(groups)
        .with_devices(devices)
        .with_routines(RoutineConfig::new().with_resend(Span::millis(pick(&[300, 400, 1_000]))))
        .with_maps(StoreConfig::new().with_resend(Span::millis(pick(&[300, 400, 1_000]))))
}

struct Story {
    world: World,
    failures: usize,
    epoch: u64,
    triggers: u64,
}

pub(crate) fn tell(seed: u64, all: &mut Totals) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let failures = [1, 1, 1, 1, 2, 0][rng.below(6) as usize];
    let nodes = (2 * u64::from(failures) + 1).max(4) + rng.below(4);
    let site = Arc::new(site(&mut rng, nodes, failures));
    let configs = (0..nodes).map(|_| config(&mut rng)).collect();
    let devices = site.clusters().iter().flat_map(|it| it.devices.clone());
    let all_devices = devices.map(|id| {
        let device = Device {
            value: value(&mut rng),
            is_up: true,
            mute: [0, 0, 5, 30][rng.below(4) as usize],
            slow: [0, 0, 10][rng.below(3) as usize],
            fails: [0, 0, 20][rng.below(3) as usize],
        };
        (id, device)
    });
    let home = Devices {
        all: all_devices.collect(),
        ..Devices::default()
    };
    let maps = ["doors", "lamps"]
        .into_iter()
        .take(1 + rng.below(2) as usize);
    let asked = Asked {
        maps: maps.map(|it| GroupId::map(it, &Sha256Sortition)).collect(),
        ..Asked::default()
    };
    let mut story = Story {
        world: World::new(rng, site, configs, home, asked),
        failures: failures.into(),
        epoch: 1,
        triggers: 0,
    };
    story.begin();
    story.faults();
    let healed_after = story.heal();
    if story.world.chance(40) {
        all.hurried += 1;
        story.hurry();
        story.heal();
    }
    story.end(all);
    all.healed_after = all.healed_after.max(healed_after);
}

impl Story {
    fn count(&self) -> usize {
        self.world.nodes.len()
    }

    fn member(&self, at: usize) -> Member {
        self.world.nodes[at].me
    }

    fn begin(&mut self) {
        for at in 0..self.count() {
            self.world.command(at, Command::Epoch(1), Span::ZERO);
            self.meet(at, 0);
        }
        // Maps are founded while all founders still know that they are.
        for map in self.world.asked.maps.clone() {
            let at = self.world.pick(self.count());
            self.change(at, map);
        }
        self.world.run(Span::secs(5));
    }

    /// A node learns of the others, but for so many percent of them.
    fn meet(&mut self, at: usize, but: u64) {
        for other in 0..self.count() {
            if other != at && self.world.is_up(other) && !self.world.chance(but) {
                let after = self.world.within(Span::millis(300));
                let delta = Delta::Joined(self.member(other));
                self.world.tell(at, delta, after);
            }
        }
    }

    fn spread(&mut self, delta: Delta, percent: u64) {
        for at in 0..self.count() {
            if self.member(at).id != delta.member().id && self.world.chance(percent) {
                let after = self.world.within(Span::secs(2));
                self.world.tell(at, delta, after);
            }
        }
    }

    fn faults(&mut self) {
        let rng = &mut self.world.rng;
        let mut pick = |all: &[u64]| all[rng.below(all.len() as u64) as usize];
        self.world.link = Link {
            lost: pick(&[0, 1, 5, 20]),
            doubled: pick(&[0, 5, 30]),
            late: pick(&[0, 5, 30]),
            most: Span::millis(pick(&[200, 2_000, 20_000])),
        };
        let steps = 20 + self.world.pick(40);
        for _ in 0..steps {
            self.fault();
            let most = [Span::millis(50), Span::secs(1), Span::secs(4)][self.world.pick(3)];
            let span = self.world.within(most);
            self.world.run(span);
            self.world.look_for_named();
        }
    }

    fn fault(&mut self) {
        let at = self.world.pick(self.count());
        match self.world.pick(24) {
            0..=4 => self.trigger(at),
            5..=9 => self.ask_map(at),
            10 | 11 => self.stop_or_start(at),
            12 => {
                let delta = Delta::Failed(self.member(at));
                self.spread(delta, 60);
            }
            13 | 14 => {
                let delta = Delta::Refuted(self.member(at));
                self.spread(delta, 60);
            }
            15 | 16 => {
                if self.world.nodes[at].sleeps {
                    self.world.wake(at);
                } else {
                    self.world.nodes[at].sleeps = true;
                }
            }
            17 | 18 => {
                self.epoch += 1;
                for at in 0..self.count() {
                    if self.world.chance(80) {
                        let after = self.world.within(Span::secs(3));
                        self.world.command(at, Command::Epoch(self.epoch), after);
                    }
                }
            }
            19 => {
                let jump = self.epoch + self.world.rng.below(9);
                self.world.command(at, Command::Epoch(jump), Span::ZERO);
            }
            20 | 21 => self.change_device(),
            _ => {
                for at in 0..self.count() {
                    self.world.wake(at);
                }
            }
        }
    }

    fn change_device(&mut self) {
        let ids: Vec<NodeId> = self.world.devices.all.keys().copied().collect();
        let id = ids[self.world.pick(ids.len())];
        let new = value(&mut self.world.rng);
        let toggles = self.world.chance(40);
        let device = self.world.devices.all.get_mut(&id).unwrap();
        if toggles {
            device.is_up = !device.is_up;
        } else {
            device.value = new;
        }
    }

    fn stop_or_start(&mut self, at: usize) {
        if !self.world.is_up(at) {
            return self.start(at);
        }
        let id = self.member(at).id;
        let is_lost = self.world.lost.contains(&id);
        // A leader that has not heard of a node's present life names the former one, and counts on
        // it: one more node that fails is one too many.
        let is_told = self.world.now.since(self.world.started) > Span::secs(5);
        let all_wake = self.world.nodes.iter().all(|it| !it.sleeps);
        let is_too_much = self.world.lost.len() >= self.failures || !is_told || !all_wake;
        if is_lost || is_too_much {
            return;
        }
        let gone = self.member(at);
        self.world.stop(at);
        if self.world.chance(40) {
            return self.start(at);
        }
        if self.world.chance(80) {
            self.spread(Delta::Failed(gone), 90);
        }
    }

    fn start(&mut self, at: usize) {
        self.world.start(at);
        self.world
            .command(at, Command::Epoch(self.epoch), Span::ZERO);
        self.meet(at, 0);
        let here = Delta::Joined(self.member(at));
        self.spread(here, 100);
    }

    fn trigger(&mut self, at: usize) {
        let count = self.world.site.routines().len();
        let number = self.world.pick(count);
        let routine = Site::routine(number as u32);
        if !self.world.is_up(at) {
            return;
        }
        // Some are asked for twice, by two nodes.
        if self.triggers == 0 || self.world.chance(80) {
            self.triggers += 1;
        }
        let id = TriggerId(self.triggers);
        self.world.asked.triggers.insert((routine, id));
        self.world.asked.runs.insert((at, routine, id));
        self.world
            .command(at, Command::Trigger { routine, id }, Span::ZERO);
    }

    fn ask_map(&mut self, at: usize) {
        if !self.world.is_up(at) || self.world.nodes[at].sleeps {
            return;
        }
        let maps = self.world.asked.maps.clone();
        let map = maps[self.world.pick(maps.len())];
        match self.world.pick(4) {
            0 | 1 => self.change(at, map),
            2 => {
                let key = self.key();
                self.world.asked.tickets += 1;
                let ticket = self.world.asked.tickets;
                let since = self.world.oracle.map(map).map_or(0, |it| it.latest());
                let question = Question::Get(key.clone(), since);
                self.world.asked.waiting.insert((at, map, ticket), question);
                let command = StoreCommand::Get { ticket, key };
                self.world
                    .command(at, Command::Map { map, command }, Span::ZERO);
            }
            _ => {
                let key = self.key();
                self.world.asked.watches.insert((at, map, key.clone()));
                let command = StoreCommand::Watch(key);
                self.world
                    .command(at, Command::Map { map, command }, Span::ZERO);
            }
        }
    }

    fn key(&mut self) -> String {
        ["a", "b"][self.world.pick(2)].into()
    }

    fn change(&mut self, at: usize, map: GroupId) {
        let key = self.key();
        let present = self.world.oracle.map(map).and_then(|it| it.present(&key));
        let present = present.map(|it| it.0);
        let expected = match (self.world.pick(3), present) {
            (0, _) => Expected::Any,
            (1, Some(version)) => Expected::Version(version),
            _ => Expected::Absent,
        };
        self.world.asked.tickets += 1;
        let ticket = self.world.asked.tickets;
        let new = format!("{ticket}").into_bytes();
        let value = (!self.world.chance(20)).then(|| new.into_iter().collect());
        let operation = Operation {
            key,
            expected,
            value,
        };
        let question = Question::Change(operation.clone());
        self.world.asked.waiting.insert((at, map, ticket), question);
        let command = StoreCommand::Change { ticket, operation };
        self.world
            .command(at, Command::Map { map, command }, Span::ZERO);
    }

    /// Faults end. How long it takes until all is well.
    fn heal(&mut self) -> Span {
        self.world.link = Link::GOOD;
        self.world.devices.heal();
        for at in 0..self.count() {
            if !self.world.is_up(at) {
                self.start(at);
            }
            self.world.wake(at);
        }
        // What was said of lists and epochs before comes late.
        self.world.run(Span::secs(4));
        self.epoch += 10;
        for at in 0..self.count() {
            self.meet(at, 0);
            // Some clocks stay wrong.
            let off = [0, 0, 0, 1, 50][self.world.pick(5)];
            let epoch = Command::Epoch(self.epoch + off);
            self.world.command(at, epoch, Span::millis(500));
        }
        let before = self.world.now;
        let mut why = String::new();
        for _ in 0..40 {
            self.world.kinds.clear();
            self.world.run(Span::secs(5));
            match self.what_is_missing() {
                None => return self.world.now.since(before),
                Some(it) => why = it,
            }
        }
        let kinds = &self.world.kinds;
        panic!(
            "after {:?}: {why}\n{kinds:#?}",
            self.world.now.since(before)
        );
    }

    fn what_is_missing(&self) -> Option<String> {
        let world = &self.world;
        for group in world.site.groups().chain(world.asked.maps()) {
            let leaders: Vec<usize> = world
                .machines()
                .filter(|it| it.1.leads().any(|it| it == group))
                .map(|it| it.0)
                .collect();
            if leaders.len() != 1 {
                let all = world.machines().filter_map(|(at, node)| {
                    let replica = node.groups().replica(group)?;
                    let numbers = (replica.configuration().number, replica.version());
                    Some((at, node.me(), numbers, replica.leader()))
                });
                let all: Vec<_> = all.collect();
                return Some(format!("{group:?} is led by {leaders:?} of {all:?}"));
            }
            if !world.is_settled(group) {
                return Some(format!("{group:?} is not settled"));
            }
            match world.oracle.held(group) {
                Some(Held::Devices(devices)) => {
                    for device in devices.ids() {
                        let waits = devices.queue(device).next().is_some();
                        let acts = devices.act(device).is_some_and(|it| it.is_under_way());
                        if devices.holder(device).is_some() || waits || acts {
                            return Some(format!("{group:?} {device:?} is not free: {devices:?}"));
                        }
                        let status = devices.status(device).unwrap();
                        let value = &world.devices.all[&device].value;
                        if !status.is_up || status.value.as_ref() != Some(value) {
                            return Some(format!("{device:?} is {value:?}, not {status:?}"));
                        }
                    }
                }
                Some(Held::Routine(routine)) if *routine.stage() != Stage::NotTriggered => {
                    return Some(format!("{group:?} is {:?}", routine.stage()));
                }
                Some(_) => {}
                None => return Some(format!("nobody holds {group:?}")),
            }
        }
        if let Some(question) = world.asked.waiting.first_key_value() {
            return Some(format!("nobody answers {question:?}"));
        }
        if let Some(run) = world.asked.runs.first() {
            return Some(format!("nobody answers {run:?}"));
        }
        for (at, map, key) in &world.asked.watches {
            let present = world.oracle.map(*map).and_then(|it| it.present(key));
            let present = present.map(|it| it.0);
            let watched = world.asked.watched.get(&(*at, *map, key.clone()));
            if watched != Some(&present) {
                return Some(format!("{at} sees {watched:?} of {key}, not {present:?}"));
            }
        }
        None
    }

    /// Epochs are shorter than the timeouts of devices, which are slow, and runs end all the same.
    fn hurry(&mut self) {
        let epoch = Span::secs([1, 3, 5, 7][self.world.pick(4)]);
        for device in self.world.devices.all.values_mut() {
            device.slow = 50;
        }
        let before = self.runs();
        self.trigger_all();
        let began = self.world.now;
        loop {
            self.world.run(epoch);
            let after = self.world.now.since(began);
            let missing: Vec<_> = (0..before.len())
                .filter(|&it| !self.has_run_since(it, before[it]))
                .collect();
            if missing.is_empty() {
                return;
            }
            assert!(
                after < Span::secs(300),
                "{missing:?} have not run in {after:?} of epochs of {epoch:?}"
            );
            self.epoch += 1;
            for at in 0..self.count() {
                self.world
                    .command(at, Command::Epoch(self.epoch), Span::ZERO);
            }
        }
    }

    /// Returns true if a later run has ended. Optimistic runs may conflict again and again.
    fn has_run_since(&self, number: usize, before: u64) -> bool {
        let routine = Site::routine(number as u32);
        let Some(Held::Routine(routine)) = self.world.oracle.held(routine) else {
            return false;
        };
        routine.definition().locking == Locking::Optimistic
            || routine.report().is_some_and(|it| it.instance > before)
    }

    /// How often each routine has run. A leader that is replaced while its group decides that a run is
    /// over says no report of it; the state has it.
    fn runs(&self) -> Vec<u64> {
        let held = |routine| self.world.oracle.held(Site::routine(routine as u32));
        let runs = (0..self.world.site.routines().len()).map(|it| match held(it) {
            Some(Held::Routine(routine)) => routine.instance(),
            _ => 0,
        });
        runs.collect()
    }

    fn trigger_all(&mut self) {
        for number in 0..self.world.site.routines().len() {
            let at = self.world.pick(self.count());
            self.triggers += 1;
            let id = TriggerId(self.triggers);
            let routine = Site::routine(number as u32);
            self.world.asked.triggers.insert((routine, id));
            self.world.asked.runs.insert((at, routine, id));
            self.world
                .command(at, Command::Trigger { routine, id }, Span::ZERO);
        }
    }

    fn end(&mut self, all: &mut Totals) {
        // A routine runs, a last time.
        let before = self.runs();
        self.trigger_all();
        self.world.run(Span::secs(60));
        assert_eq!(self.what_is_missing(), None);
        let ran: Vec<_> = self.runs().into_iter().zip(before).collect();
        assert!(ran.iter().all(|it| it.0 > it.1), "{ran:?}");
        let before = self.world.sent;
        self.world.kinds.clear();
        self.world.run(Span::secs(30));
        let idle = self.world.sent - before;
        let watches = self.world.asked.watches.len() as u64;
        // A watch is renewed every eight ticks, and answered by nobody.
        let kinds = &self.world.kinds;
        assert!(
            idle <= watches * 26 + 10,
            "{idle} messages in peace, of {watches} watches: {kinds:#?}"
        );
        assert_eq!(self.what_is_missing(), None);
        self.count_all(all, idle);
    }

    fn count_all(&self, all: &mut Totals, idle: u64) {
        let world = &self.world;
        all.runs += world.oracle.reports().count() as u64;
        all.commands += world.devices.done.values().sum::<u64>();
        all.stored += world.asked.stored;
        all.found += world.asked.found;
        all.unseen += world.asked.unseen;
        all.restarts += world.restarts;
        all.messages += world.sent;
        all.busiest = all.busiest.max(world.busiest);
        all.idle = all.idle.max(idle);
        all.stale += world.oracle.stale;
        all.executing += world.oracle.exclusive;
        all.longest_state = all.longest_state.max(world.oracle.longest_state);
        for (_, node) in world.machines() {
            let groups = node.groups();
            all.changes += groups.counters().changes;
            all.parts = all.parts.max(groups.groups().count());
            all.former = all.former.max(groups.former());
            assert_eq!(groups.counters().too_long, 0);
        }
    }
}
