//! The process of a hub, and its kills.

use selvedge_core::Span;
use selvedge_hub::device::Report;
use selvedge_hub::file::HomeFile;
use selvedge_hub::house::{Happening, House, KEPT, Todo};
use selvedge_routine::file::Format;
use selvedge_routine::sun::Date;
use selvedge_routine::trigger::TimeOfDay;
use selvedge_safehome::RoutineId;

use super::sheet::{MS, NAMES};
use super::world::{Next, Thing, World, rng};

impl World {
    /// Stores the changes; then the answers are given.
    pub(super) fn store(&mut self) {
        let changes = self.house.take_changes();
        for (&id, record) in &changes.runs {
            self.note(id, record);
        }
        self.memory.steps.extend(changes.steps);
        self.memory.runs.extend(changes.runs);
        for id in changes.forgotten {
            assert!(
                self.memory.runs.remove(&id).is_some(),
                "run {id} was never stored"
            );
            let later = self.history.range(id..).filter(|it| it.1.is_over()).count();
            assert!(later > KEPT, "run {id} is forgotten after {later}");
        }
        if self.dice.one_in(8) {
            self.memory.base = self.house.saved().clone();
            self.memory.steps.clear();
        }
        self.answered.extend(self.unanswered.drain(..));
    }

    pub(super) fn settle(&mut self) {
        self.store();
        for todo in self.house.take_todo() {
            if let Todo::Set { until, .. } = &todo {
                let is_in_time = until.0 + self.began > self.now;
                assert!(is_in_time || self.is_late, "a command without time");
            }
            self.order(todo);
        }
        self.is_late = false;
        if self.history.len() < 100 {
            self.agree();
        }
    }

    pub(super) fn order(&mut self, todo: Todo) {
        let id = match &todo {
            Todo::Set { device, .. } => {
                self.tally.sets += 1;
                *device
            }
            Todo::Ask { device, .. } => {
                self.tally.asks += 1;
                *device
            }
        };
        // No order reaches a device that has left the file.
        if self.is_in_file(id) {
            self.things.get_mut(&id).unwrap().orders.push_back(todo);
            self.begin(id);
        }
    }

    /// The next event; `false` if none is left.
    pub(super) fn go_on(&mut self) -> bool {
        if !self.faults.sleeps {
            self.settle();
        }
        let due = self
            .house
            .deadline()
            .map(|it| (it.0 + self.began).max(self.now));
        let first = self.next.keys().next().map(|it| it.0.max(self.now));
        let Some(when) = due.into_iter().chain(first).min() else {
            return false;
        };
        self.is_late |= when > self.now;
        self.now = when;
        let is_act = self
            .next
            .iter()
            .next()
            .is_some_and(|it| matches!(it.1, Next::Act(..)));
        let is_both = due == first && !is_act;
        if due == Some(when) && first != Some(when) || is_both && self.dice.one_in(2) {
            self.house.expire(self.moment());
        } else if let Some((_, next)) = self.next.pop_first() {
            match next {
                Next::Act(id, to) => {
                    let thing = self.things.get_mut(&id).unwrap();
                    thing.state = to;
                    thing.acts = None;
                    thing.ghosts.clear();
                }
                Next::Free(id) => {
                    self.things.get_mut(&id).unwrap().is_busy = false;
                    self.begin(id);
                    self.poll(id);
                }
                Next::Report(id, report) => {
                    self.house
                        .take(Happening::Report(id, report), self.moment());
                }
            }
        }
        true
    }

    /// All acts that are due are done, even if nothing looks.
    pub(super) fn sleep(&mut self, span: u64) {
        let is_notified = |it: &Next| matches!(it, Next::Report(_, Report::Observed(_)));
        if self.next.values().any(is_notified) {
            // A report that it made before a command would arrive after the command was given up.
            return;
        }
        self.now += span;
        self.is_late = true;
        let now = self.now;
        let due: Vec<_> = self
            .next
            .range(..(now, 0))
            .filter(|it| matches!(it.1, Next::Act(..)))
            .map(|it| *it.0)
            .collect();
        for key in due {
            if let Some(Next::Act(id, to)) = self.next.remove(&key) {
                let thing = self.things.get_mut(&id).unwrap();
                thing.state = to;
                thing.acts = None;
                thing.ghosts.clear();
            }
        }
    }

    /// The process is killed, and begins again.
    pub(super) fn kill(&mut self) {
        self.tally.kills += 1;
        match self.dice.below(4) {
            // Before it had stored the changes.
            0 => self.unanswered.clear(),
            1 => self.store(),
            _ => {
                self.store();
                let mut todo = self.house.take_todo();
                todo.truncate(self.dice.below(3) as usize);
                for todo in todo {
                    self.order(todo);
                }
            }
        }
        self.end_process();
        if self.faults.files && self.dice.one_in(3) {
            self.sheet.change(&mut self.dice, self.faults);
        }
        while !self.live() {
            self.tally.kills += 1;
            self.end_process();
        }
        self.is_late = false;
    }

    pub(super) fn end_process(&mut self) {
        self.unanswered.clear();
        self.next.retain(|_, it| matches!(it, Next::Act(..)));
        for (&id, thing) in &mut self.things {
            thing.is_busy = false;
            thing.seen = (None, None);
            thing.orders.clear();
            thing.notified = 0;
            if let Some((_, to)) = thing.acts.filter(|_| thing.lateness == 0) {
                // A command without lateness acts now, or never.
                if self.dice.one_in(2) {
                    thing.state = to;
                }
                thing.acts = None;
                self.next
                    .retain(|_, it| !matches!(it, Next::Act(of, _) if *of == id));
            } else if let Some(acts) = thing.acts {
                thing.ghosts = vec![acts];
            }
        }
        self.now += self.dice.below(3_000) * MS;
    }

    /// Starts the process; `false` if it is killed meanwhile.
    pub(super) fn live(&mut self) -> bool {
        if self.dice.one_in(2) {
            self.began = self.now;
        }
        let text = self.sheet.text();
        let home = HomeFile::read(Format::Json, text.as_bytes(), self.catalogue.clone())
            .unwrap()
            .home;
        let all = || home.catalogue.iter().map(|it| it.0);
        let ended: Vec<_> = all().filter(|it| !self.is_in_file(*it)).collect();
        let (memory, moment) = (Some(self.memory.clone()), self.moment());
        let house = House::new(
            &home,
            self.config,
            |_| Span::ZERO,
            &ended,
            memory,
            rng(),
            moment,
        );
        self.house = house.unwrap();
        for (id, name) in home.catalogue.iter() {
            let thing = self.things.get_mut(&id).unwrap();
            if let Some(lateness) = self.sheet.devices.get(name) {
                thing.lateness = lateness * MS;
                continue;
            }
            self.loose.insert(id);
            if self.house.hub().state(id).is_none() {
                // It is removed. If it returns it is another device.
                *thing = Thing {
                    is_up: true,
                    ..Thing::default()
                };
                self.next
                    .retain(|_, it| !matches!(it, Next::Act(of, _) if *of == id));
            }
        }
        if self.dice.one_in(4) {
            return false;
        }
        let changes = self.house.take_changes();
        for (&id, record) in &changes.runs {
            self.note(id, record);
        }
        self.memory.base = self.house.saved().clone();
        self.memory.steps.clear();
        self.memory.runs.extend(changes.runs);
        self.agree();
        if self.dice.one_in(4) {
            return false;
        }
        for todo in self.house.take_todo() {
            self.order(todo);
        }
        for id in all() {
            self.poll(id);
        }
        true
    }

    // The acts of a trial, and its findings.

    pub(super) fn play(&mut self, steps: usize) {
        for _ in 0..steps {
            let id = self
                .catalogue
                .id(NAMES[self.dice.below(4) as usize])
                .unwrap();
            match self.dice.below(16) {
                0..4 => {
                    let nth = self.dice.below(7);
                    self.run(&format!("r{nth}"));
                }
                4 if self.faults.cancels => {
                    let run = self.dice.below(12);
                    let latest = self.house.records().latest().nth(run as usize);
                    let run = latest.map_or(RoutineId(99), |it| it.0);
                    self.cancel(run);
                }
                5 if self.faults.hands => {
                    let to = self.dice.below(6);
                    self.by_hand(id, to);
                }
                6 | 7 if self.faults.down => {
                    let is_up = self.dice.one_in(2);
                    self.turn(id, is_up);
                }
                8 => self.poll(id),
                9 if self.faults.sleeps => {
                    let hours = self.dice.below(5);
                    self.sleep(hours * 3_600_000 * MS + 900 * MS);
                }
                10 if self.faults.kills => self.kill(),
                11 => {
                    let time = TimeOfDay::from_seconds(self.dice.below(86_400) as u32);
                    let clock = Happening::Clock(
                        time.unwrap(),
                        Date {
                            year: 2026,
                            month: 3,
                            day: 2,
                        },
                        3_600,
                    );
                    self.house.take(clock, self.moment());
                }
                _ => {
                    self.go_on();
                }
            }
            if !self.dice.one_in(4) {
                self.settle();
            }
        }
    }

    /// Continues until nothing more happens, which is soon.
    pub(super) fn rest(&mut self) {
        let mut steps = 0;
        self.settle();
        while self.go_on() {
            self.settle();
            steps += 1;
            assert!(steps < 20_000, "it does not end");
        }
    }
}
