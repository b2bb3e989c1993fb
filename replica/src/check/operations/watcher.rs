//! The actions of all nodes together, compared with the promises.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::durable::Durable;
use selvedge_core::{Driver, Effect, Member};
use selvedge_sim::operations::{Step, Watch};

use super::limits::check_limits;
use super::settings::Settings;
use super::summary::Summary;
use crate::check::Journal;
use crate::encoding::encoded_len;
use crate::{Configuration, Event, Fact, Published, Replica, Stored, Version};

pub(super) type Key = (Member, u64);

pub(super) struct Watcher {
    pub(super) settings: Settings,
    pub(super) rules: Vec<Published>,
    /// The update that each version applied.
    pub(super) applied: BTreeMap<Version, (Key, u16)>,
    pub(super) versions: BTreeMap<Key, Version>,
    /// The proposals, with their values.
    pub(super) proposed: BTreeMap<Key, u16>,
    pub(super) waiting: BTreeMap<Key, usize>,
    /// The highest version that was applied anywhere when a read was asked, by seat and number.
    pub(super) reads: BTreeMap<(usize, u64), Version>,
    pub(super) next_read: u64,
    pub(super) next_update: u16,
    /// The stored memory of each seat.
    pub(super) stored: Vec<(Stored<Journal>, Vec<Fact<Journal>>)>,
    pub(super) newest: Configuration,
    pub(super) summary: Summary,
    /// The last messages, for the reports.
    pub(super) sent: Vec<String>,
    pub(super) is_recording: bool,
}

impl Watcher {
    pub(super) fn new(
        settings: Settings,
        rules: &[Published],
        stored: Vec<(Stored<Journal>, Vec<Fact<Journal>>)>,
    ) -> Self {
        let newest = settings.first.clone();
        Self {
            settings,
            rules: rules.to_vec(),
            applied: BTreeMap::new(),
            versions: BTreeMap::new(),
            proposed: BTreeMap::new(),
            waiting: BTreeMap::new(),
            reads: BTreeMap::new(),
            next_read: 1,
            next_update: 1,
            stored,
            newest,
            summary: Summary::default(),
            sent: Vec::new(),
            is_recording: false,
        }
    }

    pub(super) fn highest(&self) -> Version {
        self.applied.keys().next_back().copied().unwrap_or_default()
    }

    fn on_applied(&mut self, version: Version, key: Key, outcome: usize) -> Result<(), String> {
        let Some(&update) = self.proposed.get(&key) else {
            return Err(format!(
                "version {version} applies {key:?}, which was never proposed"
            ));
        };
        match self.applied.get(&version) {
            Some(&(other, _)) if other != key => {
                return Err(format!("version {version} applies {other:?} and {key:?}"));
            }
            Some(_) => {}
            None => {
                self.summary.applied += 1;
                self.applied.insert(version, (key, update));
            }
        }
        if let Some(other) = self.versions.insert(key, version)
            && other != version
        {
            return Err(format!(
                "{key:?} is applied by versions {other} and {version}"
            ));
        }
        self.waiting.remove(&key);
        let before = self.applied.range(..=version).count();
        if outcome != before {
            return Err(format!(
                "version {version} is told as the update number {outcome}, and is number {before}"
            ));
        }
        Ok(())
    }

    /// Checks that the state of a member holds the updates of the versions up to its own.
    fn check_state(&self, machine: &Replica<Journal>) -> Result<(), String> {
        let Some(state) = machine.state() else {
            return Ok(());
        };
        let known = self
            .applied
            .range(..=machine.version())
            .map(|(_, (_, update))| *update);
        if state.0.iter().copied().eq(known) {
            return Ok(());
        }
        Err(format!(
            "the state of {:?} at version {} is {:?}",
            machine.me(),
            machine.version(),
            state.0
        ))
    }
}

impl Watch<Replica<Journal>> for Watcher {
    fn before(&mut self, _seat: usize, _driver: &Driver<Replica<Journal>>) {}

    fn after(&mut self, step: &Step<'_, Replica<Journal>>) -> Result<(), String> {
        let machine = step.machine();
        check_limits(machine)?;
        if self.settings.is_hostile {
            return Ok(());
        }
        let mut changed = false;
        for effect in step.effects {
            let event = match effect {
                Effect::Event(event) => event,
                Effect::Send { to, message } => {
                    if self.is_recording {
                        self.sent
                            .push(format!("{:?} to {to:?}: {message:?}", step.me));
                    }
                    let len = message.frame_len(step.me);
                    let budget = machine.configuration().frame_budget;
                    if len > budget.into() && machine.configuration().number > 0 {
                        return Err(format!("a frame of {len} bytes: {message:?}"));
                    }
                    continue;
                }
                Effect::Multicast { .. } => return Err("a multicast".into()),
            };
            match event {
                Event::Fact(fact) => {
                    if let Some((_, facts)) = self.stored.get_mut(step.at) {
                        facts.push(fact.clone());
                    }
                }
                Event::Applied {
                    version,
                    by,
                    number,
                    outcome,
                } => {
                    changed = true;
                    self.on_applied(*version, (*by, *number), *outcome)?;
                }
                Event::Overtaken { by, number }
                | Event::Forgotten { by, number }
                | Event::Abandoned { by, number } => {
                    self.waiting.remove(&(*by, *number));
                }
                Event::Unreadable(read) => {
                    self.reads.remove(&(step.at, *read));
                }
                Event::Installed(_) => {
                    changed = true;
                    self.summary.installed += 1;
                }
                Event::Readable { read, version } => {
                    self.summary.read += 1;
                    let Some(least) = self.reads.remove(&(step.at, *read)) else {
                        return Err(format!("read {read} is answered, and was not asked"));
                    };
                    if *version < least || machine.version() < least {
                        return Err(format!(
                            "read {read} sees version {version}, when it was asked there was {least}"
                        ));
                    }
                }
                Event::Elected { leader, .. } => {
                    self.summary.led += u64::from(*leader == step.me.id);
                }
                Event::Configured { number, .. } => {
                    if *number > self.newest.number {
                        self.summary.configured += 1;
                        self.newest = machine.configuration().clone();
                    }
                }
                Event::Unavailable { .. } => self.summary.unavailable += 1,
                Event::Deposed(_) | Event::Available => {}
            }
        }
        if changed {
            self.check_state(machine)?;
        }
        if self.settings.is_durable && !step.effects.is_empty() {
            self.check_folded(step)?;
        }
        Ok(())
    }

    fn crashed(&mut self, seat: usize, me: Member, _machine: &Replica<Journal>) {
        self.waiting.retain(|(by, _), _| *by != me);
        self.reads.retain(|(at, _), _| *at != seat);
    }

    fn restart(&mut self, seat: usize, before: Member) -> Option<(Member, Replica<Journal>)> {
        self.summary.restarts += 1;
        let me = Member {
            incarnation: before.incarnation.next(),
            ..before
        };
        if !self.settings.is_durable {
            let machine = self.settings.machine(seat, me, &self.rules);
            return Some((me, machine));
        }
        let machine = self.folded(seat, me)?;
        let (base, facts) = self.stored.get_mut(seat)?;
        // A host sometimes stores the whole memory in place of all facts.
        if facts.len() > 8 {
            *base = machine.stored();
            facts.clear();
        }
        Some((me, machine))
    }
}

impl Watcher {
    fn folded(&self, seat: usize, me: Member) -> Option<Replica<Journal>> {
        let (base, facts) = self.stored.get(seat)?;
        let restored = Replica::restore(me, self.settings.config(seat), base.clone());
        let mut machine = restored.ok()?.published(&self.rules);
        for fact in facts {
            machine.fold(fact).ok()?;
        }
        Some(machine)
    }

    /// Checks that the stored memory holds every promise.
    fn check_folded(&self, step: &Step<'_, Replica<Journal>>) -> Result<(), String> {
        let Some(folded) = self.folded(step.at, step.me) else {
            return Err("what is stored cannot be folded".into());
        };
        let (stored, now) = (folded.acceptor, &step.machine().acceptor);
        let len: usize = stored.tail().map(encoded_len).sum();
        let room = stored.group().entry_room();
        if len > room {
            return Err(format!(
                "{len} bytes are on their way, a frame has room for {room}"
            ));
        }
        let same = stored.promised() == now.promised()
            && stored.accepted() == now.accepted()
            && stored.end() == now.end()
            && stored.configuration() == now.configuration()
            && stored.committed() <= now.committed();
        match same {
            true => Ok(()),
            false => Err(format!("stored is {stored:?}, held is {now:?}")),
        }
    }
}
