//! The latest statuses of gateways, combined.

use core::time::Duration;
use std::collections::BTreeMap;
use std::time::Instant;

use selvedge_core::{Member, NodeId};
use selvedge_pcm::{Answer, TaskId};

use super::{AnswerView, FollowerView, GatewayView, Phase, Role, TaskView, View};
use crate::notice::{AnswerStatus, FollowerStatus, Status, TaskStatus};
use crate::text_of;

/// The time without a status after which a gateway is shown as silent.
pub const SILENT: Duration = Duration::from_secs(3);
/// The number of characters of a text that are shown.
const TEXT: usize = 600;
/// The number of followers of a unit that are shown.
const ELECTORS: usize = 64;
/// The number of modules of a follower that are shown.
const LIBRARIES: usize = 16;

/// The latest status of each gateway.
#[derive(Clone, Debug, Default)]
pub struct Seen(BTreeMap<NodeId, Reported>);

#[derive(Clone, Debug)]
struct Reported {
    from: Member,
    status: Status,
    at: Instant,
}

impl Seen {
    /// Adds a status of a gateway.
    pub fn see(&mut self, from: Member, status: Status, at: Instant) {
        self.0.insert(from.id, Reported { from, status, at });
    }

    /// Returns true if all these gateways have sent a status.
    pub fn has_all(&self, mut ids: impl Iterator<Item = NodeId>) -> bool {
        ids.all(|it| self.0.contains_key(&it))
    }

    /// The view of these gateways. O(n log n) for the length of their statuses.
    #[must_use]
    pub fn view(&self, ids: impl Iterator<Item = NodeId>, now: Instant) -> View {
        let received = |it: &&Reported| now.saturating_duration_since(it.at) <= SILENT;
        let by_version = |it: &&Reported| it.status.version;
        // The gateway with the latest tables; a gateway that is not silent, if there is any.
        let base = self.0.values().filter(received).max_by_key(by_version);
        let base = base.or_else(|| self.0.values().max_by_key(by_version));
        let manages = self
            .0
            .values()
            .filter(received)
            .filter(|it| it.status.manages);
        // Two may report it for a moment: the later era counts.
        let manager = manages.max_by_key(|it| it.status.era.map(|it| it.1));
        let eras = self.0.values().filter_map(|it| it.status.era);
        let era = manager.and_then(|it| it.status.era);
        let era = era.map(|it| it.1).or_else(|| eras.map(|it| it.1).max());
        let who_knows = manager.or(base);
        let gateways = ids.map(|it| self.gateway(it, who_knows, now)).collect();
        let status = base.map(|it| &it.status);
        View {
            manager: manager.map(|it| it.from.id),
            era,
            version: status.map_or(0, |it| it.version),
            units: status.map_or(0, |it| it.units),
            followers: status.map_or(0, |it| it.followers),
            open: status.map_or(0, |it| it.open),
            modules: status.map_or(0, |it| it.modules),
            gateways,
            some_followers: status.map_or_else(Vec::new, |it| self.followers(it, now)),
            some_tasks: status.map_or_else(Vec::new, |it| self.tasks(it, now)),
            answers: self.answers(now),
        }
    }

    fn gateway(&self, id: NodeId, who_knows: Option<&Reported>, now: Instant) -> GatewayView {
        let reported = self.0.get(&id);
        let ago = reported.map(|it| now.saturating_duration_since(it.at));
        let status = reported.map(|it| &it.status);
        let role = match (status, ago) {
            (Some(_), Some(ago)) if ago > SILENT => Role::Silent,
            (Some(status), _) if status.manages => Role::Manager,
            (Some(status), _) if status.is_available => Role::Member,
            (Some(_), _) => Role::NoQuorum,
            (None, _) => Role::Unknown,
        };
        let mut known = who_knows
            .into_iter()
            .flat_map(|it| it.status.gateways.iter());
        GatewayView {
            id,
            life: reported.map(|it| it.from.incarnation.0),
            role,
            is_gone: known.any(|(gateway, is_here)| gateway.id == id && !is_here),
            said_ms: ago.map(millis),
            era: status.and_then(|it| it.era).map(|it| it.1),
            version: status.map_or(0, |it| it.version),
            modules: status.map_or(0, |it| it.modules),
            counters: status.map(|it| it.counters).unwrap_or_default(),
        }
    }

    fn followers(&self, status: &Status, now: Instant) -> Vec<FollowerView> {
        // Only a follower's own gateway knows when it woke.
        let mut woke: BTreeMap<Member, u64> = BTreeMap::new();
        for reported in self.0.values() {
            let since = now.saturating_duration_since(reported.at);
            if since > SILENT {
                continue;
            }
            let own = reported.status.some_followers.iter().take(Status::SHOWN);
            let own = own.filter(|it| it.gateway == reported.from.id);
            woke.extend(own.filter_map(|it| Some((it.member, woke_ms(it, since)?))));
        }
        let followers = status.some_followers.iter().take(Status::SHOWN);
        let mut followers: Vec<FollowerView> = followers
            .map(|it| follower(it, woke.get(&it.member).copied()))
            .collect();
        followers.sort_by_key(|it| {
            let unit = it.unit.unwrap_or(u32::MAX);
            (unit, core::cmp::Reverse(it.class), it.id)
        });
        followers
    }

    fn tasks(&self, status: &Status, now: Instant) -> Vec<TaskView> {
        let mut tasks: BTreeMap<TaskId, TaskView> = BTreeMap::new();
        for it in status.some_tasks.iter().take(Status::SHOWN) {
            tasks.insert(it.task, task(it));
        }
        for reported in self.0.values() {
            let since = millis(now.saturating_duration_since(reported.at));
            for other in reported.status.some_tasks.iter().take(Status::SHOWN) {
                let Some(known) = tasks.get_mut(&other.task) else {
                    continue;
                };
                known.age_ms = known.age_ms.max(u64::from(other.age_ms) + since);
                if other.attempts == known.attempt {
                    known
                        .votes
                        .extend(other.votes.iter().take(ELECTORS).copied());
                }
            }
        }
        let mut tasks: Vec<TaskView> = tasks.into_values().collect();
        tasks.iter_mut().for_each(|it| tidy(&mut it.votes));
        tasks
    }

    fn answers(&self, now: Instant) -> Vec<AnswerView> {
        let mut answers: BTreeMap<TaskId, AnswerView> = BTreeMap::new();
        for reported in self.0.values() {
            let since = millis(now.saturating_duration_since(reported.at));
            for other in reported.status.answers.iter().take(Status::ANSWERS) {
                let mut other_view = answer(other);
                other_view.ago_ms += since;
                let known = answers
                    .entry(other.task)
                    .or_insert_with(|| other_view.clone());
                known.add(other_view);
            }
        }
        let mut answers: Vec<AnswerView> = answers.into_values().collect();
        answers.iter_mut().for_each(|it| tidy(&mut it.votes));
        answers.sort_by_key(|it| (it.ago_ms, it.client, it.number));
        answers.truncate(Status::ANSWERS);
        answers
    }
}

impl AnswerView {
    /// Adds another gateway's knowledge of the same task.
    fn add(&mut self, other: Self) {
        if self.function.is_empty() {
            self.function = other.function;
        }
        if other.attempt > self.attempt {
            (self.attempt, self.electors) = (other.attempt, other.electors);
        }
        // The parts from the tables are equal.
        if self.votes.is_empty() {
            self.votes = other.votes;
        }
        self.took_ms = self.took_ms.max(other.took_ms);
        self.ago_ms = self.ago_ms.max(other.ago_ms);
    }
}

/// The time since a follower woke, this long after its gateway reported it. Meanwhile it follows
/// its cycle.
fn woke_ms(it: &FollowerStatus, since: Duration) -> Option<u64> {
    let (reported, period) = (u64::from(it.woke_ms?), it.duty.period().0 / 1_000);
    let at = reported + millis(since);
    match reported < period {
        true => at.checked_rem(period),
        false => Some(at),
    }
}

fn follower(it: &FollowerStatus, woke_ms: Option<u64>) -> FollowerView {
    FollowerView {
        id: it.member.id,
        life: it.member.incarnation.0,
        gateway: it.gateway,
        unit: it.unit,
        class: it.class,
        duty: it.duty,
        phase: Phase::of(it.duty, woke_ms),
        woke_ms,
        libraries: it
            .libraries
            .iter()
            .take(LIBRARIES)
            .map(|it| format!("{:016x}", it.0))
            .collect(),
    }
}

fn task(it: &TaskStatus) -> TaskView {
    TaskView {
        client: it.task.client.id,
        life: it.task.client.incarnation.0,
        number: it.task.number,
        function: shown(&String::from_utf8_lossy(&it.function)),
        attempt: it.attempts,
        electors: it.electors.iter().take(ELECTORS).map(|it| it.id).collect(),
        votes: Vec::new(),
        age_ms: 0,
    }
}

fn answer(it: &AnswerStatus) -> AnswerView {
    let (outcome, value, why) = match &it.answer {
        Answer::Value(value) => ("value", Some(shown(&text_of(value))), None),
        Answer::Failed(why) => ("failed", None, Some(why.to_string())),
        Answer::NoMajority => ("no_majority", None, None),
        Answer::Unanswered => ("unanswered", None, None),
        Answer::Cancelled => ("cancelled", None, None),
    };
    AnswerView {
        client: it.task.client.id,
        life: it.task.client.incarnation.0,
        number: it.task.number,
        function: shown(&String::from_utf8_lossy(&it.function)),
        outcome,
        value,
        why,
        attempt: it.attempt,
        electors: it.electors.iter().take(ELECTORS).map(|it| it.id).collect(),
        votes: it.votes.iter().take(ELECTORS).copied().collect(),
        took_ms: it.took_ms.into(),
        ago_ms: it.ago_ms.into(),
    }
}

/// A text that is cut to a limit; any client may have written it.
fn shown(text: &str) -> String {
    text.chars().take(TEXT).collect()
}

fn tidy(votes: &mut Vec<NodeId>) {
    votes.sort_unstable();
    votes.dedup();
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
