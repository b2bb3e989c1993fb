//! A hub, its devices, and a host that may stop at any moment.

mod disk;
mod host;
mod things;
mod watcher;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::{Driver, Member, NodeId, Span, Time};
use selvedge_sim::Bytes;
use selvedge_sim::operations::{Mesh, Operation, Seat};

use super::super::order::is_in_order;
use super::oracle::{FIRST, Verdict, Witness};
use super::settings::{FEW, Settings};
use super::{Storage, Summary};
use crate::{
    Command, DurableHub, Hub, Outcome, Placed, Published, Reject, RoutineId, Terms, Timer,
    Visibility, Wait, WaitCause,
};

use watcher::Watcher;

/// The seat of the hub, which is alone in its mesh.
const HUB: usize = 0;
/// The most steps after the last fault until the end.
const ROUNDS: usize = 5_000;

/// The true state of a device.
struct Thing {
    state: u8,
    is_up: bool,
    life: u32,
    flight: Option<Flying>,
    /// The hub asks for its state, with this token.
    asked: Option<u64>,
    /// A command without an outcome that acts later.
    late: Option<Flying>,
}

/// A command that a device has received.
#[derive(Clone, Copy)]
struct Flying {
    token: u64,
    value: u8,
    /// The routine and step of the command, unless it is a rollback.
    whose: Option<(RoutineId, u16)>,
    /// It has taken effect.
    is_done: bool,
    /// It can take effect no more, and no outcome is reported.
    is_over: bool,
}

pub(super) struct World<'a> {
    bytes: Bytes<'a>,
    settings: Settings,
    storage: Storage,
    /// The hub.
    pub(super) mesh: Mesh<DurableHub<u8>>,
    watch: Watcher,
    things: Vec<Thing>,
    witness: Witness,
    open: usize,
    /// The number of times that each command took effect.
    effects: BTreeMap<(RoutineId, u16), usize>,
    /// The commands that had been done when the hub asked about them.
    found: BTreeSet<(RoutineId, u16)>,
    by_hand: BTreeSet<usize>,
    /// True after an undo handler may have changed a device.
    handled: bool,
    /// The devices with a reported rollback that has not been reported as finished.
    begun: BTreeSet<NodeId>,
    unordered: u64,
    /// The part from the stored steps since the last restart.
    unordered_since: u64,
    /// The time since when the host knows a routine that has issued no command.
    waits: BTreeMap<RoutineId, Time>,
    is_calm: bool,
    /// The events of the run, if they are recorded.
    pub(super) story: Option<Vec<String>>,
    pub(super) summary: Summary,
}

impl<'a> World<'a> {
    pub(super) fn new(
        mut bytes: Bytes<'a>,
        rules: &[Published],
        storage: Storage,
    ) -> Result<Self, String> {
        let settings = Settings::new(&mut bytes);
        let thing = |_| Thing {
            state: FIRST,
            is_up: true,
            life: 0,
            flight: None,
            asked: None,
            late: None,
        };
        let devices = settings.devices;
        let (watch, hub) = Watcher::new(settings.config, rules);
        let mut mesh = Mesh::new(0);
        mesh.add(Member::default(), hub);
        let mut world = Self {
            bytes,
            storage,
            mesh,
            watch,
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
            world.command(Command::AddDevice { device, state })?;
            let lateness = settings.lateness;
            world.command(Command::SetLateness { device, lateness })?;
        }
        world.is_calm = false;
        Ok(world)
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        while !self.bytes.is_empty() {
            self.summary.operations += 1;
            self.operate()?;
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
                self.pass(self.now() + step)
            }
            15 | 16 => self.flip(nth),
            17 => {
                let last = self.hub()?.last.0 + 1;
                let id = RoutineId(u64::from(self.bytes.take()) % last);
                match self.step(Operation::Command(HUB, Command::Cancel(id)))? {
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
        let routine = self.settings.routine(&mut self.bytes, nth);
        let next = RoutineId(self.hub()?.last.0 + 1);
        // If it is lost it has this number all the same, and no event reports it.
        self.witness.routines.insert(next, routine.clone());
        let terms = self.settings.terms(&mut self.bytes);
        if terms == Terms::default() {
            return self.command(Command::Submit(routine));
        }
        let preview = self
            .hub()?
            .preview(self.now(), routine.clone(), terms.clone());
        let restarts = self.summary.restarts;
        let command = Command::SubmitAs { routine, terms };
        match self.step(Operation::Command(HUB, command))? {
            Ok(()) => {}
            Err(Reject::Unfinished { .. } | Reject::QueueFull { .. }) => {
                self.summary.refused += 1;
            }
            Err(other) => return Err(format!("a routine was refused: {other}")),
        }
        let waits = self.hub()?.wait(next);
        match preview {
            Ok(preview) if self.summary.restarts == restarts => {
                let is_own = |it: &Wait| matches!(it.cause, WaitCause::Outcome | WaitCause::Hold);
                if waits.filter(|it| !is_own(it)) != preview.wait {
                    return Err(format!("{preview:?} was foreseen, and {waits:?} is so"));
                }
            }
            Err(_) if waits.is_some() => return Err("it was to be refused".into()),
            Ok(_) | Err(_) => {}
        }
        Ok(())
    }

    fn pass_to_deadline(&mut self) -> Result<(), String> {
        match self.deadline() {
            Some(due) => self.pass(due),
            None => Ok(()),
        }
    }

    /// Lets time pass; due timers then tick.
    fn pass(&mut self, until: Time) -> Result<(), String> {
        let due = self.deadline().unwrap_or(until).min(until);
        let now = self.now().max(due);
        let due = self.driver().into_iter().flat_map(Driver::timers);
        let due: Vec<Timer> = due.filter(|it| it.1 <= now).map(|it| it.0).collect();
        for timer in due {
            match timer {
                Timer::Timeout(device) => {
                    // A change that the hub does not know by now will not happen any more, or will
                    // happen late.
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
        let span = now.since(self.now());
        self.step(Operation::Wait(span))?
            .map_err(|it| format!("{it}"))
    }

    fn driver(&self) -> Option<&Driver<DurableHub<u8>>> {
        self.mesh.seat(HUB).and_then(Seat::driver)
    }

    fn hub(&self) -> Result<&Hub<u8>, String> {
        let machine = self.mesh.machine(HUB);
        machine
            .map(DurableHub::hub)
            .ok_or_else(|| String::from("the hub is down"))
    }

    fn deadline(&self) -> Option<Time> {
        self.driver().and_then(Driver::deadline)
    }

    /// The time on the hub's clock.
    fn now(&self) -> Time {
        self.mesh.seat(HUB).map_or(Time::ZERO, Seat::now)
    }

    /// Stops all faults, and lets all work finish.
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
            let stuck = self.hub()?.devices.iter().find(|it| it.1.is_stuck);
            let stuck = stuck.and_then(|it| usize::try_from(it.0.0).ok());
            if let Some(nth) = self.things.iter().position(busy) {
                self.land(nth, Outcome::Done)?;
            } else if self.deadline().is_some() {
                self.pass_to_deadline()?;
            } else if let Some(nth) = stuck {
                // A person switches it off and on.
                for _ in 0..2 {
                    if let Some(thing) = self.things.get_mut(nth) {
                        thing.is_up = !thing.is_up;
                    }
                    self.report_status(nth)?;
                }
            } else {
                return Ok(());
            }
        }
        Err(format!("it does not come to rest: {:?}", self.hub()?))
    }

    fn judge(&mut self) -> Result<(), String> {
        self.unordered += self.unordered_since;
        self.witness.end = self.things.iter().map(|it| it.state).collect();
        let hub = self.hub()?;
        if self.open > 0 || !hub.is_quiet() {
            return Err(format!("{} routines are unfinished: {hub:?}", self.open));
        }
        if let Some(device) = self.begun.first() {
            return Err(format!("nobody heard what came of restoring {device}"));
        }
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
        let notified = self.witness.order.iter().filter(is_routine).count();
        if notified != self.witness.committed.len() {
            return Err(format!(
                "{notified} of the committed routines have their place"
            ));
        }
        let (order, routines) = (&self.witness.order, &self.witness.routines);
        let is_skipped = |id, nth| self.witness.skipped.contains_key(&(id, nth));
        if !is_in_order(order, |id| routines.get(&id).cloned(), is_skipped) {
            return Err(format!(
                "the last of those that set the same loses: {order:?}"
            ));
        }
        if self.unordered == 0 {
            self.witness.follow_notified()?;
        }
        if verdict == Some(Verdict::Unexplained) {
            let (end, chains) = (&self.witness.end, &self.witness.chains);
            return Err(format!("no order at all leads to {end:?}; {chains:?}"));
        }
        Ok(())
    }
}
