//! The hub's storage, and the conditions after each of its steps.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::durable::Barrier;
use selvedge_core::{Driver, Effect, Member};
use selvedge_sim::operations::{Step, Watch};

use super::super::Storage;
use super::disk::Disk;
use crate::lineage::Entry;
use crate::published::Rules;
use crate::run::Stage;
use crate::{
    Config, DurableEvent, DurableHub, Event, Hub, Published, Reject, Scheduler, Timer, Visibility,
};

/// A watcher that stores the changes of the hub's steps, and checks the promises after each step.
pub(super) struct Watcher {
    config: Config,
    rules: Rules,
    disk: Disk,
    /// The effects that wait until the changes of their step are stored.
    barrier: Barrier<Effect<DurableHub<u8>>>,
    /// The reason why the last step was refused, if it was.
    pub(super) refusal: Option<Reject>,
    /// The hub after the next restart.
    next: Option<DurableHub<u8>>,
}

/// A barrier with which the host takes no step before the last one is stored.
const fn lockstep() -> Barrier<Effect<DurableHub<u8>>> {
    Barrier::new(0)
}

impl Watcher {
    /// The watcher of a hub before its first restart.
    pub(super) fn new(config: Config, rules: &[Published]) -> (Self, DurableHub<u8>) {
        let rules = Rules::published(rules);
        let hub = Hub::unchecked(config, rules);
        let watcher = Self {
            config,
            rules,
            disk: Disk::new(&hub),
            barrier: lockstep(),
            refusal: None,
            next: None,
        };
        (watcher, DurableHub::new(hub))
    }

    /// Stores the changes of the step; then its events come out.
    pub(super) fn save(&mut self, hub: &DurableHub<u8>) -> Result<Vec<Event<u8>>, String> {
        let mut facts = Vec::new();
        let mark = self.barrier.write_facts(|fact| facts.push(fact.clone()));
        self.disk.store(facts, hub)?;
        let mut events = Vec::new();
        if let Some(mark) = mark {
            self.barrier.stored(mark, |effect| match effect {
                Effect::Event(DurableEvent::Hub(event)) => events.push(event),
                Effect::Event(DurableEvent::Changed(_)) => {}
            });
        }
        Ok(events)
    }

    /// Reads the stored state, for a hub that restarts now. Unstored changes are lost.
    pub(super) fn recover(&mut self, storage: Storage) -> Result<(), String> {
        self.barrier = lockstep();
        let stored = storage(self.disk.read()?)?;
        let restored = Hub::restored(self.config, self.rules, stored);
        let hub = restored.map_err(|error| format!("what was saved is refused: {error}"))?;
        if hub.save() != *self.disk.stored() {
            return Err(format!("{:?} came back as {hub:?}", self.disk.stored()));
        }
        self.next = Some(DurableHub::new(hub));
        Ok(())
    }

    /// Checks the conditions after every step.
    fn check(&self, driver: &Driver<DurableHub<u8>>) -> Result<(), String> {
        let hub = driver.machine().hub();
        hub.check().map_err(|flaw| format!("{flaw}"))?;
        if !hub.waits_as_routines_say() {
            return Err("those who wait are not as the routines say".into());
        }
        if hub.waits().count() != hub.unfinished().count() {
            return Err("a routine waits for nothing".into());
        }
        let is_planned = self.config.visibility == Visibility::Eventual
            && self.config.scheduler != Scheduler::JustInTime;
        for (id, device) in hub.devices.iter() {
            // Invariant 1: no two are planned for the same time.
            let planned = || device.lineage.iter().filter(|it| !it.touched);
            let mut pairs = planned().zip(planned().skip(1));
            if is_planned && pairs.any(|(first, second)| first.end() > second.start) {
                return Err(format!("two routines are planned on {id} at one time"));
            }
            let has_timer = |timer| driver.timers().any(|(it, _)| it == timer);
            // The hub asks about a command that was in flight when it stopped, only later.
            let is_late = has_timer(Timer::Late(*id));
            if is_late && self.config.visibility == Visibility::Weak {
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
}

impl Watch<DurableHub<u8>> for Watcher {
    /// Keeps all events until the step is stored.
    fn after(&mut self, step: &Step<'_, DurableHub<u8>>) -> Result<(), String> {
        self.refusal = step.refusal.cloned();
        let ready = self.barrier.ready();
        ready.map_err(|behind| format!("{behind}"))?;
        let mut out = Vec::new();
        for effect in step.effects {
            self.barrier.take(effect.clone(), |effect| out.push(effect));
        }
        if let Some(effect) = out.first() {
            return Err(format!("{effect:?} is out before its step is stored"));
        }
        self.check(step.driver)
    }

    fn restart(&mut self, _: usize, before: Member) -> Option<(Member, DurableHub<u8>)> {
        Some((before, self.next.take()?))
    }
}
