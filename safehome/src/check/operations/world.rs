//! A hub, its devices, and a host that may stop at any moment.

mod disk;
mod host;
mod things;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::durable::Barrier;
use selvedge_core::{Driver, Effect, Input, NodeId, Span, Time};

use super::super::order::is_in_order;
use super::bytes::{Bytes, FEW, Settings};
use super::oracle::{FIRST, Verdict, Witness};
use super::{Storage, Summary};
use crate::lineage::Entry;
use crate::published::Rules;
use crate::run::Stage;
use crate::{
    Command, DurableHub, Hub, Outcome, Placed, Published, Reject, RoutineId, Scheduler, Timer,
    Visibility,
};

use disk::Disk;
use host::lockstep;

/// So many steps after the last fault all is over.
const ROUNDS: usize = 5_000;

/// A device as it is.
struct Thing {
    state: u8,
    is_up: bool,
    life: u32,
    flight: Option<Flying>,
    /// The hub asks for its state, with this token.
    asked: Option<u64>,
    /// A command of which nothing was heard, and that acts later.
    late: Option<Flying>,
}

/// A command that a device has got.
#[derive(Clone, Copy)]
struct Flying {
    token: u64,
    value: u8,
    /// The routine and step that it is for, unless it is a rollback.
    whose: Option<(RoutineId, u16)>,
    /// It has taken effect.
    is_done: bool,
    /// It takes no effect any more, and no outcome is told.
    is_over: bool,
}

pub(super) struct World<'a> {
    bytes: Bytes<'a>,
    settings: Settings,
    rules: Rules,
    storage: Storage,
    hub: Driver<DurableHub<u8>>,
    /// What waits until the disk has what a step changed.
    barrier: Barrier<Effect<DurableHub<u8>>>,
    disk: Disk,
    now: Time,
    things: Vec<Thing>,
    witness: Witness,
    open: usize,
    /// How often a command took effect.
    effects: BTreeMap<(RoutineId, u16), usize>,
    /// Those that had been done when they were asked for.
    found: BTreeSet<(RoutineId, u16)>,
    by_hand: BTreeSet<usize>,
    /// An undo handler may have changed a device.
    handled: bool,
    /// Devices of which it was told that they are restored, and not yet what came of it.
    begun: BTreeSet<NodeId>,
    unordered: u64,
    /// In the steps since the last restart that were stored.
    unordered_since: u64,
    /// Since when a routine that has issued no command is known to the host.
    waits: BTreeMap<RoutineId, Time>,
    is_calm: bool,
    /// What happened, if it is to be read.
    pub(super) story: Option<Vec<String>>,
    pub(super) summary: Summary,
}

impl<'a> World<'a> {
    pub(super) fn new(
        mut bytes: Bytes<'a>,
        rules: &[Published],
        storage: Storage,
    ) -> Result<Self, String> {
        let settings = bytes.settings();
        let rules = Rules::published(rules);
        let thing = |_| Thing {
            state: FIRST,
            is_up: true,
            life: 0,
            flight: None,
            asked: None,
            late: None,
        };
        let devices = settings.devices;
        let hub = Hub::unchecked(settings.config, rules);
        let mut world = Self {
            bytes,
            rules,
            storage,
            disk: Disk::new(&hub),
            hub: Driver::new(DurableHub::new(hub)),
            barrier: lockstep(),
            now: Time::ZERO,
            things: (0..devices).map(thing).collect(),
            witness: Witness {
                chains: (0..devices).map(|_| Vec::new()).collect(),
                ..Witness::default()
            },
            open: 0,
            effects: BTreeMap::new(),
            found: BTreeSet::new(),
            by_hand: BTreeSet::new(),
            handled: false,
            begun: BTreeSet::new(),
            unordered: 0,
            unordered_since: 0,
            waits: BTreeMap::new(),
            is_calm: true,
            story: None,
            summary: Summary {
                is_weak: settings.config.visibility == Visibility::Weak,
                ..Summary::default()
            },
            settings,
        };
        for nth in 0..devices {
            let device = NodeId(nth as u64);
            let state = Some(FIRST);
            world.must(Input::Command(Command::Device { device, state }))?;
            let lateness = settings.lateness;
            world.must(Input::Command(Command::Lateness { device, lateness }))?;
        }
        world.is_calm = false;
        Ok(world)
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        while !self.bytes.is_empty() {
            self.summary.operations += 1;
            let nth = self.summary.operations;
            self.operate()
                .map_err(|broken| format!("operation {nth}: {broken}"))?;
        }
        self.is_calm = true;
        self.finish()
            .map_err(|broken| format!("after the last fault: {broken}"))?;
        self.judge()
    }

    fn operate(&mut self) -> Result<(), String> {
        let what = self.bytes.take() % 20;
        let nth = self.bytes.pick(self.things.len());
        let what = match what {
            10 | 11 | 15..19 if self.settings.is_obedient => 4,
            12 | 13 if self.settings.is_obedient => 14,
            other => other,
        };
        match what {
            0..4 => self.submit(),
            4..9 => self.land(nth, Outcome::Done),
            9 => self.says_its_state(nth),
            10 => self.land(nth, Outcome::Refused),
            11 => self.goes_over(nth),
            12 | 13 => self.pass_to_deadline(),
            14 => {
                let step = Span::millis(10 * u64::from(self.bytes.take()));
                self.pass(self.now + step)
            }
            15 | 16 => self.flip(nth),
            17 => {
                let last = self.hub.machine().hub().last.0 + 1;
                let id = RoutineId(u64::from(self.bytes.take()) % last);
                match self.tell(Input::Command(Command::Cancel(id)))? {
                    Ok(()) | Err(Reject::UnknownRoutine(_)) => Ok(()),
                    Err(other) => Err(format!("a cancel was refused: {other}")),
                }
            }
            18 => self.change(nth),
            _ => self.restart(0),
        }
    }

    fn submit(&mut self) -> Result<(), String> {
        let nth = self.witness.routines.len();
        if nth >= self.settings.routines {
            return Ok(());
        }
        let routine = self.bytes.routine(&self.settings, nth);
        let next = RoutineId(self.hub.machine().hub().last.0 + 1);
        // If it is lost it has this number all the same, and no event tells of it.
        self.witness.routines.insert(next, routine.clone());
        self.must(Input::Command(Command::Submit(routine)))
    }

    fn pass_to_deadline(&mut self) -> Result<(), String> {
        match self.hub.deadline() {
            Some(due) => self.pass(due),
            None => Ok(()),
        }
    }

    /// Time passes; what is due then ticks.
    fn pass(&mut self, until: Time) -> Result<(), String> {
        let due = self.hub.deadline().unwrap_or(until).min(until);
        self.now = self.now.max(due);
        let now = self.now;
        let due = self.hub.timers().filter(|it| it.1 <= now);
        let due: Vec<Timer> = due.map(|it| it.0).collect();
        for timer in due {
            match timer {
                Timer::Timeout(device) => {
                    // What is not known by now will not happen any more, or late.
                    let nth = usize::try_from(device.0).unwrap_or(usize::MAX);
                    self.resolve(nth)?;
                    if let Some(thing) = self.things.get_mut(nth) {
                        thing.asked = None;
                    }
                    self.summary.unknown += 1;
                }
                Timer::Late(device) => {
                    self.nothing_acts_late(usize::try_from(device.0).unwrap_or(usize::MAX))?;
                }
                Timer::Hold(_) | Timer::Retry(_) | Timer::Lease(_) | Timer::Patience(_) => {}
            }
        }
        self.step(None)?.map_err(|it| format!("{it}"))
    }

    /// What holds after every step.
    fn watch(&self) -> Result<(), String> {
        let hub = self.hub.machine().hub();
        hub.check().map_err(|flaw| format!("{flaw}"))?;
        if !hub.waits_as_routines_say() {
            return Err("those who wait are not as the routines say".into());
        }
        if self.hub.refused_ticks() > 0 {
            return Err(format!("{} ticks were refused", self.hub.refused_ticks()));
        }
        let is_planned = self.settings.config.visibility == Visibility::Eventual
            && self.settings.config.scheduler != Scheduler::JustInTime;
        for (id, device) in hub.devices.iter() {
            // Invariant 1: no two are planned at one time.
            let planned = || device.lineage.iter().filter(|it| !it.touched);
            let mut pairs = planned().zip(planned().skip(1));
            if is_planned && pairs.any(|(first, second)| first.end() > second.start) {
                return Err(format!("two routines are planned on {id} at one time"));
            }
            let has_timer = |timer| self.hub.timers().any(|(it, _)| it == timer);
            // What was on its way when the hub stopped is asked for later.
            let is_late = has_timer(Timer::Late(*id));
            if is_late && self.summary.is_weak {
                return Err(format!("a weak hub waits for {id}"));
            }
            let lacks = device.flight.is_some() && !has_timer(Timer::Timeout(*id)) && !is_late
                || device.late.is_some() && !is_late
                || device.held.is_some() && !has_timer(Timer::Hold(*id))
                || device.rests && !has_timer(Timer::Retry(*id));
            if lacks {
                return Err(format!("nobody wakes {id}"));
            }
            let lease = device.lineage.iter().find(|it| it.is_lease());
            let is_over = |it: &Entry<u8>| {
                let run = it.routine().and_then(|id| hub.runs.get(&id));
                it.revoked || run.is_some_and(|run| matches!(run.stage, Stage::Aborting(_)))
            };
            if lease.is_some_and(|it| !is_over(it)) && !has_timer(Timer::Lease(*id)) {
                return Err(format!("the lease of {id} has no end"));
            }
        }
        Ok(())
    }

    /// Nothing goes wrong any more, and all that was begun comes to its end.
    fn finish(&mut self) -> Result<(), String> {
        for nth in 0..self.things.len() {
            if self.things.get(nth).is_some_and(|it| !it.is_up) {
                self.flip(nth)?;
            }
        }
        for _ in 0..ROUNDS {
            let busy = |it: &Thing| {
                let is_sent = it.flight.is_some_and(|it| !it.is_over);
                it.asked.is_some() || is_sent || it.late.is_some()
            };
            let stuck = self
                .hub
                .machine()
                .hub()
                .devices
                .iter()
                .find(|it| it.1.is_stuck);
            let stuck = stuck.and_then(|it| usize::try_from(it.0.0).ok());
            if let Some(nth) = self.things.iter().position(busy) {
                self.land(nth, Outcome::Done)?;
            } else if self.hub.deadline().is_some() {
                self.pass_to_deadline()?;
            } else if let Some(nth) = stuck {
                // Somebody switches it off and on.
                for _ in 0..2 {
                    if let Some(thing) = self.things.get_mut(nth) {
                        thing.is_up = !thing.is_up;
                    }
                    self.tell_status(nth)?;
                }
            } else {
                return Ok(());
            }
        }
        Err(format!(
            "it does not come to rest: {:?}",
            self.hub.machine().hub()
        ))
    }

    fn judge(&mut self) -> Result<(), String> {
        let hub = self.hub.machine().hub();
        if self.open > 0 || !hub.is_quiet() {
            return Err(format!("{} routines are unfinished: {hub:?}", self.open));
        }
        if let Some(device) = self.begun.first() {
            return Err(format!("nobody heard what came of restoring {device}"));
        }
        self.unordered += self.unordered_since;
        self.witness.end = self.things.iter().map(|it| it.state).collect();
        for (nth, thing) in self.things.iter().enumerate() {
            let known = hub.state(NodeId(nth as u64));
            let is_seen = !self.settings.acts_unseen();
            if is_seen && known.is_some_and(|it| *it != thing.state) {
                return Err(format!("device {nth} is taken to be in {known:?}"));
            }
        }
        for &id in &self.witness.committed {
            let routine = self.witness.routines.get(&id);
            let steps = routine.iter().flat_map(|it| &it.steps).count();
            for nth in 0..u16::try_from(steps).unwrap_or_default() {
                let step = (id, nth);
                let is_done = self.effects.contains_key(&step) || self.found.contains(&step);
                if !is_done && !self.witness.skipped.contains_key(&step) {
                    return Err(format!("command {nth} of {id:?} was never done"));
                }
            }
        }
        let links = self.witness.chains.iter().map(Vec::len).sum::<usize>();
        let is_small = self.witness.committed.len() <= FEW && links <= 2 * FEW;
        let is_tried = !self.handled && is_small;
        let verdict = is_tried.then(|| self.witness.try_all());
        if verdict.is_some_and(|it| it != Verdict::TooMany) {
            self.summary.tried += 1;
        }
        if self.summary.is_weak {
            self.summary.unexplained += u64::from(verdict == Some(Verdict::Unexplained));
            return Ok(());
        }
        let is_routine = |it: &&Placed<u8>| matches!(it, Placed::Routine(_));
        let told = self.witness.order.iter().filter(is_routine).count();
        if told != self.witness.committed.len() {
            return Err(format!("{told} of the committed routines have their place"));
        }
        let (order, routines) = (&self.witness.order, &self.witness.routines);
        let is_skipped = |id, nth| self.witness.skipped.contains_key(&(id, nth));
        if !is_in_order(order, |id| routines.get(&id).cloned(), is_skipped) {
            return Err(format!(
                "the last of those that set the same loses: {order:?}"
            ));
        }
        if self.unordered == 0 {
            self.witness.follow_told()?;
        }
        if verdict == Some(Verdict::Unexplained) {
            let (end, chains) = (&self.witness.end, &self.witness.chains);
            return Err(format!("no order at all leads to {end:?}; {chains:?}"));
        }
        Ok(())
    }
}
