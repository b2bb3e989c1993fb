//! What must hold, from what can be read of nodes and is said to their applications.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_core::{NodeId, Time};
use selvedge_groups::{GroupId, Item, Message, store::Store};
use selvedge_kgroup::devices::{self, Act, Ticket};
use selvedge_kgroup::routines::{Report, RoutineEvent, Stage, StepOutcome};
use selvedge_kgroup::{Delivery, Held, Kgroup, Outcome, Parcel, Site, Update};
use selvedge_replica::{Body, Configuration};

use crate::home::Devices;

/// An entry's version, and its value.
pub(crate) type Entry = (u64, Vec<u8>);

/// What a map was at each of its versions that a node was seen at. A step may take a node over several.
#[derive(Default)]
pub(crate) struct MapHistory {
    versions: BTreeMap<u64, BTreeMap<String, Entry>>,
}

impl MapHistory {
    fn see(&mut self, map: &Store) {
        let entries = map.entries().map(|(key, it)| {
            let value = it.value.iter().copied().collect();
            (key.to_owned(), (it.version, value))
        });
        let entries: BTreeMap<String, Entry> = entries.collect();
        let is_new = self.versions.insert(map.version(), entries.clone());
        assert!(is_new.is_none_or(|it| it == entries), "one map a version");
    }

    pub(crate) fn latest(&self) -> u64 {
        self.versions.last_key_value().map_or(0, |it| *it.0)
    }

    /// What an entry is.
    pub(crate) fn present(&self, key: &str) -> Option<&Entry> {
        self.versions.last_key_value()?.1.get(key)
    }

    /// What an entry was at a version, if that was seen.
    pub(crate) fn at(&self, version: u64, key: &str) -> Option<Option<&Entry>> {
        match version {
            0 => Some(None),
            _ => Some(self.versions.get(&version)?.get(key)),
        }
    }

    /// Whether the entry was this at that version or later; nothing where the version at which it
    /// was is one that nobody was seen at.
    pub(crate) fn was(&self, key: &str, entry: Option<&Entry>, since: u64) -> Option<bool> {
        let all = (since..=self.latest()).map(|it| self.at(it, key));
        let mut has_gap = false;
        for seen in all {
            match seen {
                Some(it) if it == entry => return Some(true),
                Some(_) => {}
                None => has_gap = true,
            }
        }
        // An entry has the version that put it: what is older was over.
        let is_old = entry.is_some_and(|it| it.0 <= since);
        (is_old || !has_gap).then_some(false)
    }
}

struct Latest {
    version: u64,
    held: Held,
}

pub(crate) struct Oracle {
    site: Arc<Site>,
    /// What each node was seen to hold last.
    seen: BTreeMap<(usize, GroupId), (u64, u64)>,
    history: BTreeMap<(GroupId, u64), Vec<u8>>,
    latest: BTreeMap<GroupId, Latest>,
    configurations: BTreeMap<GroupId, Configuration>,
    by_number: BTreeMap<(GroupId, u64), Configuration>,
    acts: BTreeMap<Ticket, Act>,
    given: BTreeMap<Ticket, u64>,
    /// The links that were proposed, and may be decided.
    proposed: Vec<(GroupId, Configuration)>,
    reports: BTreeMap<(GroupId, u64), Report>,
    maps: BTreeMap<GroupId, MapHistory>,
    /// Commands that were given although another one had followed: by hosts that slept.
    pub(crate) stale: u64,
    pub(crate) exclusive: u64,
    pub(crate) longest_state: usize,
}

impl Oracle {
    pub(crate) fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            seen: BTreeMap::new(),
            history: BTreeMap::new(),
            latest: BTreeMap::new(),
            configurations: BTreeMap::new(),
            by_number: BTreeMap::new(),
            acts: BTreeMap::new(),
            given: BTreeMap::new(),
            proposed: Vec::new(),
            reports: BTreeMap::new(),
            maps: BTreeMap::new(),
            stale: 0,
            exclusive: 0,
            longest_state: 0,
        }
    }

    pub(crate) fn held(&self, group: GroupId) -> Option<&Held> {
        self.latest.get(&group).map(|it| &it.held)
    }

    pub(crate) fn map(&self, map: GroupId) -> Option<&MapHistory> {
        self.maps.get(&map)
    }

    pub(crate) fn configuration(&self, group: GroupId) -> Option<&Configuration> {
        self.configurations.get(&group)
    }

    /// Those that groups have, and those that a leader has proposed: a link that was proposed may be
    /// decided long after, and names nodes in the lives of that time.
    pub(crate) fn configurations(&self) -> impl Iterator<Item = &Configuration> {
        let open = self.proposed.iter().filter(|it| self.is_open(it));
        self.configurations.values().chain(open.map(|it| &it.1))
    }

    fn is_open(&self, (group, next): &(GroupId, Configuration)) -> bool {
        let latest = self.configurations.get(group);
        latest.is_none_or(|it| it.number < next.number)
    }

    /// A leader sends this.
    pub(crate) fn look_at_links(&mut self, message: &Message<Update, Parcel>) {
        for item in message.items.iter() {
            let Item::Replica { group, message } = item else {
                continue;
            };
            let Body::Accept { entries, .. } = &message.body else {
                continue;
            };
            for entry in entries.iter() {
                let selvedge_replica::Entry::Configure(next) = entry else {
                    continue;
                };
                let link = (*group, (**next).clone());
                if self.is_open(&link) && !self.proposed.contains(&link) {
                    let mut proposed = core::mem::take(&mut self.proposed);
                    proposed.retain(|it| self.is_open(it));
                    proposed.push(link);
                    self.proposed = proposed;
                }
            }
        }
    }

    pub(crate) fn reports(&self) -> impl Iterator<Item = &Report> {
        self.reports.values()
    }

    /// A node has taken a step.
    pub(crate) fn look(&mut self, at: usize, node: &Kgroup) {
        let mut is_new = false;
        for group in node.groups().groups() {
            let Some(replica) = node.groups().replica(group) else {
                continue;
            };
            let configuration = replica.configuration();
            let place = (replica.version(), configuration.number);
            if self.seen.get(&(at, group)) == Some(&place) {
                continue;
            }
            self.seen.insert((at, group), place);
            if !configuration.voters.is_empty() {
                self.on_configuration(group, configuration);
            }
            if let Some(held) = replica.state() {
                is_new |= self.on_state(group, replica.version(), held);
            }
        }
        if is_new {
            self.check_locks();
        }
    }

    fn on_configuration(&mut self, group: GroupId, configuration: &Configuration) {
        let number = configuration.number;
        let first = self
            .by_number
            .entry((group, number))
            .or_insert_with(|| configuration.clone());
        assert_eq!(
            first, configuration,
            "{group:?}: one configuration a number"
        );
        let latest = self
            .configurations
            .entry(group)
            .or_insert_with(|| configuration.clone());
        if latest.number < number {
            *latest = configuration.clone();
        }
    }

    fn on_state(&mut self, group: GroupId, version: u64, held: &Held) -> bool {
        let bytes = postcard::to_allocvec(held).unwrap();
        self.longest_state = self.longest_state.max(bytes.len());
        let known = self.history.entry((group, version));
        let known = known.or_insert_with(|| bytes.clone());
        assert_eq!(*known, bytes, "{group:?}: one state at version {version}");
        if let Held::Map(map) = held {
            self.maps.entry(group).or_default().see(map);
        }
        let latest = self.latest.get(&group);
        if latest.is_some_and(|it| it.version >= version) {
            return false;
        }
        if let Held::Devices(devices) = held {
            for device in devices.ids() {
                if let Some(act) = devices.act(device) {
                    self.on_act(device, act);
                }
            }
        }
        let held = held.clone();
        self.latest.insert(group, Latest { version, held });
        true
    }

    fn on_act(&mut self, device: NodeId, act: &Act) {
        let number = act.number;
        let ticket = Ticket { device, number };
        let known = self.acts.entry(ticket).or_insert_with(|| act.clone());
        let is_same = (known.claim, known.step, &known.value) == (act.claim, act.step, &act.value);
        assert!(is_same, "one command for a ticket");
        if act.outcome.is_some() {
            known.outcome = act.outcome;
        }
    }

    /// Theorem 3.
    fn check_locks(&mut self) {
        for (&group, latest) in &self.latest {
            let Held::Routine(routine) = &latest.held else {
                continue;
            };
            let Stage::Executing { .. } = routine.stage() else {
                continue;
            };
            let claim = routine.claim(group).unwrap();
            self.exclusive += 1;
            for device in routine.definition().locks() {
                let cluster = self.site.cluster_of(device).unwrap();
                let Some(Held::Devices(devices)) = self.held(cluster) else {
                    panic!("{group:?} executes, and nobody holds {cluster:?}");
                };
                assert_eq!(devices.holder(device), Some(claim), "{group:?} {device:?}");
            }
        }
    }

    pub(crate) fn on_devices(&mut self, at: usize, _now: Time, event: &devices::Event) {
        let devices::Event::Act { ticket, value } = event else {
            return;
        };
        let Some(act) = self.acts.get(ticket) else {
            // Decided and over within one step.
            return;
        };
        assert_eq!(act.value, *value);
        let given = self.given.entry(*ticket).or_default();
        *given += 1;
        if act.delivery == Delivery::AtMostOnce {
            assert_eq!(*given, 1, "{ticket:?} is given by {at} again: {act:?}");
        }
        let cluster = self.site.cluster_of(ticket.device).unwrap();
        let Some(Held::Devices(devices)) = self.held(cluster) else {
            return;
        };
        let is_present = devices
            .act(ticket.device)
            .is_some_and(|it| it.number == ticket.number && it.is_under_way());
        if !is_present {
            self.stale += 1;
        }
    }

    pub(crate) fn on_routine(&mut self, group: GroupId, event: &RoutineEvent, home: &Devices) {
        let RoutineEvent::Reports(report) = event else {
            return;
        };
        let key = (group, report.instance);
        if let Some(known) = self.reports.get(&key) {
            assert_eq!(known, report, "one report for a run");
            return;
        }
        self.reports.insert(key, report.clone());
        for (step, outcome) in report.steps.iter().enumerate() {
            let is_of = |it: &(&Ticket, &Act)| {
                let act = it.1;
                let claim = act.claim;
                (claim.routine, claim.instance, usize::from(act.step))
                    == (group, report.instance, step)
            };
            let acts: Vec<_> = self.acts.iter().filter(is_of).collect();
            assert!(acts.len() <= 1, "{key:?} {step}: {acts:?}");
            match (outcome, acts.first()) {
                (StepOutcome::Done, act) => {
                    let (ticket, act) = act.expect("what was done was decided");
                    // Nothing where another command followed in the same step.
                    let is_done = act.outcome.is_none_or(|it| it == Outcome::Done);
                    assert!(is_done, "{key:?} {step} {act:?}");
                    assert!(home.done.contains_key(ticket), "{key:?} {step} {act:?}");
                }
                (StepOutcome::Skipped | StepOutcome::NotReached, act) => {
                    assert!(act.is_none(), "{key:?} {step} {outcome:?}: {act:?}");
                }
                (StepOutcome::Failed, Some((ticket, act))) => {
                    let failed = home.failed.contains_key(ticket);
                    let is_down = !home.given.contains_key(ticket);
                    assert!(failed || is_down, "{key:?} {step} {act:?}");
                }
                (StepOutcome::Failed | StepOutcome::Unknown, _) => {}
            }
        }
    }
}
