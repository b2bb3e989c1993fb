//! A home: its devices, the messages to and from them, and the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use selvedge_core::{NodeId, Span, Time};
use selvedge_hub::device::Report;
use selvedge_hub::file::HomeFile;
use selvedge_hub::house::{House, Memory, Moment, Record, Refusal, Todo};
use selvedge_routine::file::Format;
use selvedge_routine::{Catalogue, Number, State};
use selvedge_safehome::{Config, Outcome, RoutineId};

use super::sheet::{Dice, Faults, MS, Sheet};
use super::tally::Tally;

/// A device, and the task that attends to it.
#[derive(Default)]
pub(super) struct Thing {
    pub(super) state: u64,
    pub(super) is_up: bool,
    pub(super) lateness: u64,
    /// The number of its failures in a row.
    pub(super) fails: u64,
    pub(super) orders: VecDeque<Todo>,
    /// A command that is being carried out, and may still act.
    pub(super) acts: Option<(u64, u64)>,
    pub(super) is_busy: bool,
    /// True if it is up, and its state, as last reported.
    pub(super) seen: (Option<bool>, Option<u64>),
    /// The time at which the last report arrives.
    pub(super) notified: u64,
    /// The acts after it was given up.
    pub(super) ghosts: Vec<(u64, u64)>,
}

pub(super) enum Next {
    Act(NodeId, u64),
    Free(NodeId),
    Report(NodeId, Report),
}

pub(super) struct World {
    pub(super) dice: Dice,
    pub(super) faults: Faults,
    pub(super) config: Config,
    pub(super) sheet: Sheet,
    pub(super) catalogue: Catalogue,
    pub(super) house: House,
    pub(super) memory: Memory,
    pub(super) now: u64,
    /// The time at which the process began.
    pub(super) began: u64,
    pub(super) things: BTreeMap<NodeId, Thing>,
    pub(super) next: BTreeMap<(u64, u64), Next>,
    pub(super) count: u64,
    /// True if time has passed since the orders were taken.
    pub(super) is_late: bool,
    /// Runs with an answer that waits for the disk.
    pub(super) unanswered: Vec<RoutineId>,
    pub(super) answered: BTreeSet<RoutineId>,
    /// All records of runs that were ever stored.
    pub(super) history: BTreeMap<RoutineId, Record>,
    /// Devices with final states that the runs alone do not determine.
    pub(super) loose: BTreeSet<NodeId>,
    pub(super) tally: Tally,
}

pub(super) fn rng() -> ChaCha12Rng {
    ChaCha12Rng::seed_from_u64(7)
}

pub(super) fn number(of: u64) -> State {
    State::Number(Number::from_thousandths(of as i64 * 1_000).unwrap())
}

pub(super) fn value(of: &State) -> u64 {
    match of {
        State::Number(it) => (it.thousandths() / 1_000) as u64,
        State::Word(it) => panic!("{it}"),
    }
}

impl World {
    pub(super) fn new(seed: u64, faults: Faults) -> Self {
        let mut dice = Dice(seed);
        dice.below(2);
        let sheet = Sheet::draw(&mut dice, faults);
        let mut config = Config::default();
        if faults.limits {
            let few = 1 + dice.below(2) as u32;
            config = config.with_routine_limit(few).with_device_limit(4);
            config = config.with_order_limit(1 + dice.below(2) as u32);
        }
        let file = HomeFile::read(Format::Json, sheet.text().as_bytes(), Catalogue::new()).unwrap();
        let moment = Moment {
            now: Time::ZERO,
            wall: 0,
        };
        let house = House::new(&file.home, config, |_| Span::ZERO, &[], None, rng(), moment);
        let mut house = house.unwrap();
        let things = file.home.catalogue.iter().map(|(id, name)| {
            let thing = Thing {
                is_up: true,
                lateness: sheet.devices[name] * MS,
                ..Thing::default()
            };
            (id, thing)
        });
        let things = things.collect();
        let loose = file.home.catalogue.id(sheet.unknown).into_iter().collect();
        let memory = Memory {
            base: house.saved().clone(),
            steps: Vec::new(),
            runs: BTreeMap::new(),
        };
        house.take_changes();
        Self {
            dice,
            faults,
            config,
            sheet,
            catalogue: file.home.catalogue,
            house,
            memory,
            now: 0,
            began: 0,
            things,
            next: BTreeMap::new(),
            count: 0,
            is_late: false,
            unanswered: Vec::new(),
            answered: BTreeSet::new(),
            history: BTreeMap::new(),
            loose,
            tally: Tally::default(),
        }
    }

    pub(super) const fn moment(&self) -> Moment {
        Moment {
            now: Time(self.now - self.began),
            wall: self.now / MS,
        }
    }

    pub(super) fn at(&mut self, when: u64, next: Next) {
        self.count += 1;
        self.next.insert((when, self.count), next);
    }

    /// Sends a report, which arrives after the earlier ones.
    pub(super) fn notify(&mut self, id: NodeId, when: u64, report: Report) {
        let thing = &self.things[&id];
        let delay = if thing.ghosts.is_empty() {
            self.dice.below(300) * MS
        } else {
            0
        };
        let when = (when + delay).max(thing.notified);
        self.things.get_mut(&id).unwrap().notified = when;
        self.at(when, Next::Report(id, report));
    }

    // The acts of a person.

    pub(super) fn run(&mut self, name: &str) -> Option<RoutineId> {
        let before = self.house.saved().clone();
        let open = self.open();
        let preview = self.house.preview(name, self.moment());
        assert_eq!(*self.house.saved(), before, "a preview changed the hub");
        match self.house.run(name, self.moment()) {
            Ok(id) => {
                self.unanswered.push(id);
                let preview = preview.expect("a preview that is refused is not run");
                self.compare(id, &preview, &open);
                Some(id)
            }
            Err(refusal) => {
                assert_eq!(preview, Err(refusal.clone()));
                let is_known = self.house.routines().any(|it| it == name);
                assert_eq!(
                    matches!(refusal, Refusal::Unknown(_)),
                    !is_known,
                    "{refusal}"
                );
                let mode = self.sheet.mode(name);
                assert!(
                    !is_known || self.faults.limits || mode == "single" || mode == "queued",
                    "{refusal}"
                );
                assert_eq!(*self.house.saved(), before, "a refusal changed the hub");
                self.tally.refused += 1;
                None
            }
        }
    }

    /// The runs that are unfinished, and are not about to be undone.
    pub(super) fn open(&self) -> BTreeSet<RoutineId> {
        let runs = self.house.records().latest();
        let open = runs.filter(|it| it.1.ended.is_none() && it.1.aborting.is_none());
        open.map(|it| it.0).collect()
    }

    pub(super) fn cancel(&mut self, id: RoutineId) {
        let is_open = self
            .house
            .records()
            .get(id)
            .is_some_and(|it| it.ended.is_none());
        let before = self.house.saved().clone();
        let done = self.house.cancel(id, self.moment());
        if done.is_err() {
            assert_eq!(*self.house.saved(), before, "a refusal changed the hub");
        }
        assert!(done.is_ok() || !is_open, "{done:?}");
    }

    pub(super) fn by_hand(&mut self, id: NodeId, to: u64) {
        self.loose.insert(id);
        self.things.get_mut(&id).unwrap().state = to;
        self.poll(id);
    }

    // The acts of devices.

    /// Looks at the device.
    pub(super) fn poll(&mut self, id: NodeId) {
        let is_double = self.dice.one_in(4);
        let is_in_file = self.is_in_file(id);
        let thing = self.things.get_mut(&id).unwrap();
        let is_waiting = !thing.ghosts.is_empty() && thing.notified > self.now;
        if thing.is_busy || !is_in_file || is_waiting {
            return;
        }
        let (is_up, state) = (thing.is_up, thing.state);
        let was = mem::replace(&mut thing.seen, (Some(is_up), is_up.then_some(state)));
        if was.0 != Some(is_up) {
            self.notify(id, self.now, if is_up { Report::Up } else { Report::Down });
        }
        // A state is reported each time that it is looked at.
        for _ in 0..if is_up { 1 + u8::from(is_double) } else { 0 } {
            self.notify(id, self.now, Report::Observed(number(state)));
        }
    }

    pub(super) fn turn(&mut self, id: NodeId, is_up: bool) {
        self.things.get_mut(&id).unwrap().is_up = is_up;
        self.poll(id);
    }

    pub(super) fn is_in_file(&self, id: NodeId) -> bool {
        self.catalogue
            .name(id)
            .is_some_and(|it| self.sheet.devices.contains_key(it))
    }

    /// Begins the next order of a device that is idle.
    pub(super) fn begin(&mut self, id: NodeId) {
        let now = self.now;
        let faults = self.faults;
        let thing = self.things.get_mut(&id).unwrap();
        if thing.is_busy {
            return;
        }
        let Some(order) = thing.orders.pop_front() else {
            return;
        };
        assert!(thing.ghosts.is_empty(), "an order while a command may act");
        match order {
            Todo::Ask { token, .. } => {
                let report = if thing.is_up {
                    thing.seen.1 = Some(thing.state);
                    Report::Answered {
                        token,
                        state: number(thing.state),
                    }
                } else {
                    Report::Outcome {
                        token,
                        outcome: Outcome::Unknown,
                    }
                };
                self.notify(id, now, report);
                self.begin(id);
            }
            Todo::Set {
                token,
                state,
                until,
                ..
            } => {
                let until = until.0 + self.began;
                let to = value(&state);
                let takes = (1 + self.dice.below(200)) * MS;
                thing.seen.1 = None;
                if now >= until {
                    let outcome = Outcome::Refused;
                    self.notify(id, now, Report::Outcome { token, outcome });
                    return self.begin(id);
                }
                let over = (now + takes).min(until);
                let fate = if thing.fails >= 3 {
                    9
                } else {
                    self.dice.below(10)
                };
                let fate = if thing.is_up {
                    fate
                } else {
                    self.dice.below(2)
                };
                let lateness = thing.lateness;
                // The time at which it acts, the time at which it ends, and the reported outcome.
                let (acts, over, outcome) = match fate {
                    0 if faults.refuses || !thing.is_up => (None, over, Outcome::Refused),
                    1 if faults.swallows || !thing.is_up => (None, until, Outcome::Unknown),
                    2 if faults.swallows => (Some((now + over) / 2), until, Outcome::Unknown),
                    3 | 4 if faults.late && lateness > 0 => {
                        let over = if fate == 3 { over } else { until };
                        (
                            Some(over + self.dice.below(lateness)),
                            over,
                            Outcome::Unknown,
                        )
                    }
                    _ => (Some((now + over) / 2), over, Outcome::Done),
                };
                let thing = self.things.get_mut(&id).unwrap();
                thing.fails = if outcome == Outcome::Done {
                    0
                } else {
                    thing.fails + 1
                };
                thing.is_busy = true;
                thing.seen.1 = (outcome == Outcome::Done).then_some(to);
                if let Some(acts) = acts {
                    thing.acts = Some((acts, to));
                    if acts > over {
                        thing.ghosts.push((acts, to));
                        self.tally.ghosts += 1;
                    }
                    self.at(acts, Next::Act(id, to));
                }
                self.at(over, Next::Free(id));
                // It is reported when it has ended; earlier reports arrive before it.
                let when = over.max(self.things[&id].notified);
                self.things.get_mut(&id).unwrap().notified = when;
                self.at(when, Next::Report(id, Report::Outcome { token, outcome }));
            }
        }
    }
}
