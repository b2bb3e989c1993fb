//! The status of a gateway, for observers.

use selvedge_core::{NodeId, Time};
use selvedge_pcm::gateway::Gateway;

use super::diary::Diary;
use crate::counters::Counters;
use crate::notice::{FollowerStatus, Status};

/// The present status of the gateway. O(n) for n followers and tasks.
pub(crate) fn of(
    gateway: &Gateway,
    diary: &Diary,
    is_available: bool,
    counters: Counters,
    modules: u64,
    now: Time,
) -> Status {
    let tables = gateway.tables();
    let unit = |id: NodeId| tables.and_then(|it| it.unit_of(id));
    let class = |id: NodeId| tables.and_then(|it| it.class_of(id));
    let followers = tables.into_iter().flat_map(|it| it.followers());
    let some_followers = followers.take(Status::SHOWN).map(|it| FollowerStatus {
        member: it.member,
        gateway: it.gateway,
        duty: it.duty,
        unit: unit(it.member.id),
        class: class(it.member.id),
        woke_ms: diary.woke_ms(it.member.id, now),
        libraries: it.libraries.clone(),
    });
    let tasks = tables.into_iter().flat_map(|it| it.open());
    let some_tasks = tasks.take(Status::SHOWN);
    let some_tasks = some_tasks.map(|(task, open)| diary.task(task, open, now));
    let count = |many: usize| u32::try_from(many).unwrap_or(u32::MAX);
    Status {
        manages: gateway.manages(),
        is_available,
        era: gateway.replica().leader().map(|it| (it.0, it.1.number)),
        version: gateway.replica().version(),
        gateways: gateway.gateways().collect(),
        units: count(tables.map_or(0, |it| it.units())),
        followers: count(tables.map_or(0, |it| it.followers().count())),
        some_followers: some_followers.collect(),
        open: count(tables.map_or(0, |it| it.open().count())),
        some_tasks: some_tasks.collect(),
        answers: diary.answers(now).collect(),
        counters,
        modules: u32::try_from(modules).unwrap_or(u32::MAX),
    }
}
