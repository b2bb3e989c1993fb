//! What is to hold.

use selvedge_core::NodeId;
use selvedge_sim::check::Model;

use super::party::{Party, TASK, one};
use super::setup::{Mesh, Promise, Sight};
use crate::follower::Follower;
use crate::gateway::Gateway;
use crate::{Answer, Returned};

fn gateways(mesh: &Mesh) -> impl Iterator<Item = &Gateway> {
    mesh.machines().filter_map(Party::gateway)
}

fn followers(mesh: &Mesh) -> impl Iterator<Item = &Follower> {
    mesh.machines().filter_map(Party::follower)
}

fn heard(mesh: &Mesh) -> &[Answer] {
    let client = mesh.machines().find_map(|it| match it {
        Party::Client(_, heard) => Some(heard.as_slice()),
        Party::Gateway(..) | Party::Follower(..) => None,
    });
    client.unwrap_or_default()
}

fn decided(mesh: &Mesh) -> impl Iterator<Item = &Answer> {
    gateways(mesh).filter_map(|it| it.tables()?.answer(TASK))
}

/// Whether a follower is in the tables of some gateway.
pub(super) fn knows(mesh: &Mesh, id: NodeId) -> bool {
    gateways(mesh).any(|it| it.tables().is_some_and(|it| it.follower(id).is_some()))
}

/// Whether a follower was never purged.
pub(super) fn is_at_first(mesh: &Mesh, id: NodeId) -> bool {
    let mut known = gateways(mesh).filter_map(|it| it.tables()?.last_attachment(id));
    known.all(|(_, number)| number == 1)
}

/// Whether a follower is down, or in another life than the tables have it.
pub(super) fn is_gone(mesh: &Mesh, id: NodeId) -> bool {
    let known = gateways(mesh).find_map(|it| it.tables()?.follower(id));
    !followers(mesh).any(|it| known.is_some_and(|known| known.member == it.me()))
}

/// Whether the task is open, or a follower is not in the tables as it is.
pub(super) fn has_something_to_say(mesh: &Mesh) -> bool {
    let is_open =
        gateways(mesh).any(|it| it.tables().is_some_and(|it| it.open_task(TASK).is_some()));
    let is_unknown = |it: &Follower| !knows(mesh, it.me().id) || is_gone(mesh, it.me().id);
    is_open || followers(mesh).any(is_unknown)
}

pub(super) fn promise(model: Model<Party>, promise: Promise) -> Model<Party> {
    match promise {
        Promise::ElectionSafety => model.always(
            "no two gateways manage in one era (election safety)",
            |mesh: &Mesh| {
                let managers = || gateways(mesh).filter(|it| it.manages());
                let label = |it: &Gateway| {
                    let replica = it.replica();
                    (
                        replica.configuration().number,
                        replica.leader().map(|it| it.1),
                    )
                };
                managers()
                    .all(|it| managers().filter(|other| label(other) == label(it)).count() == 1)
            },
        ),
        Promise::TableMatching => model.always(
            "tables of one version are the same (table matching)",
            |mesh: &Mesh| {
                let all = || gateways(mesh).map(|it| (it.replica().version(), it.tables()));
                all().all(|it| all().all(|other| other.0 != it.0 || other.1 == it.1))
            },
        ),
        Promise::OneAnswer => model.always("a task has one answer", |mesh: &Mesh| {
            let first = mesh.machines().filter_map(|it| match it {
                Party::Gateway(_, first) => first.as_ref(),
                Party::Follower(..) | Party::Client(..) => None,
            });
            let mut all = decided(mesh).chain(first);
            let one = all.next();
            all.all(|it| Some(it) == one)
        }),
        Promise::Heard => model.always(
            "a client hears what is decided, once (resource manager completeness)",
            |mesh: &Mesh| {
                let heard = heard(mesh);
                heard.len() <= 1
                    && heard
                        .iter()
                        .all(|it| decided(mesh).any(|other| it == other))
            },
        ),
        Promise::Backed => model.always(
            "what an orchestrator says enough of its electors returned",
            |mesh: &Mesh| followers(mesh).all(|it| is_backed(mesh, it)),
        ),
        Promise::Right => model.always("no wrong value is decided", |mesh: &Mesh| {
            decided(mesh).all(|it| !matches!(it, Answer::Value(value) if *value != one(1)))
        }),
        Promise::Progress => model.progress("the client hears at last", |mesh: &Mesh| {
            !heard(mesh).is_empty()
        }),
        Promise::Value => model.progress("the client hears a value at last", |mesh: &Mesh| {
            matches!(heard(mesh), [Answer::Value(_)])
        }),
    }
}

/// Whether what this follower says, as an orchestrator, is what more than half of the followers of
/// its present list returned, or half with itself.
fn is_backed(mesh: &Mesh, orchestrator: &Follower) -> bool {
    let Some((own, Some(Answer::Value(value)), electors)) = orchestrator.work_on(TASK) else {
        return true;
    };
    let said = Returned::Value(value.clone());
    let returned = |it: &Follower| it.work_on(TASK).and_then(|it| it.0.cloned());
    // One that began again since has voted before.
    let votes = electors.iter().filter(|elector| {
        let present = followers(mesh).find(|it| it.me() == **elector);
        present.is_none_or(|it| returned(it).as_ref() == Some(&said))
    });
    let votes = votes.count();
    2 * votes > electors.len() || 2 * votes == electors.len() && own == Some(&said)
}

pub(super) fn sight(model: Model<Party>, sight: Sight) -> Model<Party> {
    match sight {
        Sight::Value => model.sometimes("the client hears a value", |mesh: &Mesh| {
            matches!(heard(mesh), [Answer::Value(_)])
        }),
        Sight::Cancelled => model.sometimes("the client hears of its wish", |mesh: &Mesh| {
            matches!(heard(mesh), [Answer::Cancelled])
        }),
        Sight::NoMajority => model.sometimes("no value has a majority", |mesh: &Mesh| {
            matches!(heard(mesh), [Answer::NoMajority])
        }),
        Sight::SecondAttempt => model.sometimes("a second attempt is open", |mesh: &Mesh| {
            attempts(mesh).any(|it| it.0 == 2)
        }),
        Sight::SecondTerm => model.sometimes("another orchestrator counts", |mesh: &Mesh| {
            attempts(mesh).any(|it| it.1 > 0)
        }),
        Sight::SecondManager => model.sometimes("another gateway manages", |mesh: &Mesh| {
            gateways(mesh).any(|it| it.manages() && it.me().id != NodeId(1))
        }),
    }
}

fn attempts(mesh: &Mesh) -> impl Iterator<Item = (u16, u16)> {
    let assignments = gateways(mesh).filter_map(|it| it.tables()?.assignment(TASK));
    assignments.map(|it| (it.attempt, it.term))
}
