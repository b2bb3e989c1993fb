//! The actions of all nodes together, compared with the promises.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use selvedge_core::durable::Durable;
use selvedge_core::wire::frame_len;
use selvedge_core::{Effect, Member, Time};
use selvedge_groups::{Fact, Start};
use selvedge_sim::operations::{Step, Watch};

use super::asked::Asked;
use super::home::Home;
use super::limits::{check_limits, sketch};
use super::oracle::Oracle;
use super::settings::Settings;
use super::summary::Summary;
use crate::{Event, GroupState, Kgroup, LeaderEvent, devices};

/// The number of facts above which they are replaced by fewer ones.
const MANY: usize = 64;

pub(super) struct Watcher {
    pub(super) settings: Settings,
    pub(super) oracle: Oracle,
    pub(super) asked: Asked,
    pub(super) home: Home,
    pub(super) summary: Summary,
    /// The facts that the host of each seat has stored.
    stored: Vec<Vec<Fact<GroupState>>>,
    /// The time of the mesh: each life of a node has a clock of its own.
    pub(super) now: Time,
}

impl Watcher {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            oracle: Oracle::new(Arc::clone(&settings.site)),
            asked: Asked::default(),
            home: Home::new(settings.devices()),
            stored: vec![Vec::new(); settings.nodes],
            settings,
            summary: Summary::default(),
            now: Time::ZERO,
        }
    }

    fn on_event(&mut self, step: &Step<'_, Kgroup>, event: &Event) -> Result<(), String> {
        let at = step.at;
        match event {
            Event::Leader { group, event } => match event {
                LeaderEvent::Devices(event) => {
                    let mut is_in_time = true;
                    if let devices::Event::Act { ticket, .. } = event {
                        let (me, now, summary) = (step.me, self.now, &mut self.summary);
                        is_in_time = self.oracle.on_given(me, now, *ticket, summary)?;
                    }
                    self.home
                        .on_event((at, step.me), self.now, event, is_in_time);
                    Ok(())
                }
                LeaderEvent::Routine(event) => {
                    let summary = &mut self.summary;
                    self.oracle.on_routine(*group, event, &self.home, summary)
                }
            },
            Event::Triggered { routine, id } => self.asked.on_triggered(at, *routine, *id),
            Event::Map { event, .. } => self.asked.on_map(at, event, self.oracle.map()),
            Event::Leading { .. }
            | Event::Deposed { .. }
            | Event::Site { .. }
            | Event::OtherSite { .. }
            | Event::Untriggered { .. }
            | Event::Groups(_) => Ok(()),
        }
    }

    /// A host stores before anything else leaves it.
    fn store(&mut self, at: usize, event: &Event) {
        if let (true, Some(fact)) = (self.settings.is_durable, Kgroup::fact(event))
            && let Some(facts) = self.stored.get_mut(at)
        {
            facts.push(fact.clone());
        }
    }

    /// The next life of a node whose host has stored facts.
    fn folded(&mut self, at: usize, me: Member) -> Option<Kgroup> {
        let mut machine = self.settings.machine(at, me, Start::Fresh);
        let facts = self.stored.get_mut(at)?;
        for fact in facts.iter() {
            machine.fold(fact).ok()?;
        }
        // A host at times replaces all facts by the whole state.
        if facts.len() > MANY {
            *facts = machine.groups().stored().collect();
        }
        Some(machine)
    }

    /// Hosts take the tasks of leaders.
    fn take_tasks(&mut self, step: &Step<'_, Kgroup>) {
        for effect in step.effects {
            if let Effect::Event(Event::Leader { event, .. }) = effect
                && let LeaderEvent::Devices(event) = event
            {
                self.home
                    .on_event((step.at, step.me), self.now, event, false);
            }
        }
    }

    fn check_frames(&self, step: &Step<'_, Kgroup>) -> Result<(), String> {
        let budget = self.settings.site.frame_budget();
        for effect in step.effects {
            match effect {
                Effect::Send { message, .. } => {
                    let len = frame_len(step.me, message);
                    if len > budget.into() {
                        return Err(format!("a frame of {len} bytes: {message:?}"));
                    }
                }
                Effect::Multicast { .. } => return Err("groups multicast nothing".into()),
                Effect::Event(_) => {}
            }
        }
        let too_long = step.machine().groups().counters().too_long;
        match too_long == 0 || self.settings.is_hostile {
            true => Ok(()),
            false => Err(format!(
                "{too_long} messages do not fit: {}",
                sketch(step.machine())
            )),
        }
    }
}

impl Watch<Kgroup> for Watcher {
    fn after(&mut self, step: &Step<'_, Kgroup>) -> Result<(), String> {
        check_limits(step.machine())?;
        self.check_frames(step)?;
        if self.settings.is_hostile {
            self.take_tasks(step);
            return Ok(());
        }
        let place = (step.at, self.now);
        let summary = &mut self.summary;
        self.oracle
            .look(place, step.machine(), &self.asked, summary)?;
        for effect in step.effects {
            if let Effect::Event(event) = effect {
                self.store(step.at, event);
                self.on_event(step, event)?;
            }
        }
        Ok(())
    }

    fn crashed(&mut self, seat: usize, _me: Member, _machine: &Kgroup) {
        self.asked.forget(seat);
        self.oracle.forget(seat);
    }

    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, Kgroup)> {
        self.summary.restarts += 1;
        let incarnation = before.incarnation.next();
        let me = Member {
            incarnation,
            ..before
        };
        let machine = match self.settings.is_durable {
            true => self.folded(seat, me)?,
            false => self.settings.machine(seat, me, Start::Restarted),
        };
        Some((me, machine))
    }
}
