//! The promises and the sights as properties of the model checker.

use selvedge_core::{Member, NodeId};
use selvedge_sim::check::Model;

use super::party::{Decided, Party, Received, TASK, heard_from, one};
use super::setup::{Mesh, Promise, Sight};
use super::watch::Watch;
use crate::follower::Follower;
use crate::gateway::Gateway;
use crate::{Answer, Returned, Tables};

fn gateways(mesh: &Mesh) -> impl Iterator<Item = &Gateway> {
    mesh.machines().filter_map(Party::gateway)
}

fn followers(mesh: &Mesh) -> impl Iterator<Item = &Follower> {
    mesh.machines().filter_map(Party::follower)
}

fn received(mesh: &Mesh) -> &[Received] {
    let client = mesh.machines().find_map(|it| match it {
        Party::Client(_, received) => Some(received.as_slice()),
        Party::Gateway(..) | Party::Follower(..) => None,
    });
    client.unwrap_or_default()
}

fn decided(mesh: &Mesh) -> impl Iterator<Item = Received> {
    gateways(mesh).filter_map(heard_from)
}

/// The first answer that each gateway knew.
fn decided_first(mesh: &Mesh) -> impl Iterator<Item = &Decided> {
    mesh.machines().filter_map(|it| match it {
        Party::Gateway(_, first) => first.as_ref(),
        Party::Follower(..) | Party::Client(..) => None,
    })
}

/// Returns true if a follower is in the tables of some gateway.
pub(super) fn knows(mesh: &Mesh, id: NodeId) -> bool {
    gateways(mesh).any(|it| it.tables().is_some_and(|it| it.follower(id).is_some()))
}

/// Returns true if a follower has returned a result.
pub(super) fn has_returned(mesh: &Mesh, id: NodeId) -> bool {
    let mut all = followers(mesh).filter(|it| it.me().id == id);
    all.any(|it| it.work_on(TASK).is_some_and(|it| it.0.is_some()))
}

/// Returns true if a follower was never purged.
pub(super) fn is_at_first(mesh: &Mesh, id: NodeId) -> bool {
    let mut known = gateways(mesh).filter_map(|it| it.tables()?.last_attachment(id));
    known.all(|(_, number)| number == 1)
}

/// Returns true if a follower is down, or in another life than the one in the tables.
pub(super) fn has_ended(mesh: &Mesh, id: NodeId) -> bool {
    let known = gateways(mesh).find_map(|it| it.tables()?.follower(id));
    !followers(mesh).any(|it| known.is_some_and(|known| known.member == it.me()))
}

/// Returns true if the task is open, or the tables lack the present life of some follower.
pub(super) fn has_something_to_say(mesh: &Mesh) -> bool {
    let is_open =
        gateways(mesh).any(|it| it.tables().is_some_and(|it| it.open_task(TASK).is_some()));
    let is_unknown = |it: &Follower| !knows(mesh, it.me().id) || has_ended(mesh, it.me().id);
    is_open || followers(mesh).any(is_unknown)
}

pub(super) fn promise(model: Model<Party, Watch>, promise: Promise) -> Model<Party, Watch> {
    match promise {
        Promise::ElectionSafety => model.always(
            "no two gateways manage in one era (election safety)",
            has_one_manager,
        ),
        Promise::OneOrchestrator => model.always(
            "an attempt has one orchestrator at a time (election safety)",
            has_one_orchestrator,
        ),
        Promise::Tracking => model
            .always(
                "a version is of one table (topology and task tracking safety)",
                |mesh: &Mesh| !mesh.observer().differs,
            )
            .always(
                "later tables have the answer (resource manager completeness)",
                keeps_the_answer,
            ),
        Promise::OneUnit => model.always(
            "a follower has one seat (cluster exclusiveness)",
            |mesh: &Mesh| {
                gateways(mesh)
                    .filter_map(Gateway::tables)
                    .all(has_one_seat_each)
            },
        ),
        Promise::AppendOnly => model.always(
            "a vote that is counted stays (CO append-only)",
            |mesh: &Mesh| !mesh.observer().recounts,
        ),
        Promise::TableMatching => model.always(
            "tables of one version are the same (table matching)",
            tables_match,
        ),
        Promise::OneAnswer => model.always("a task has one answer", has_one_answer),
        Promise::Received => model.always(
            "a client hears what is decided, once (resource manager completeness)",
            hears_what_is_decided,
        ),
        Promise::Backed => model.always(
            "what an orchestrator says enough of its electors returned",
            |mesh: &Mesh| followers(mesh).all(|it| is_backed(mesh, it)),
        ),
        Promise::Voted => model.always(
            "those that are told as voters returned the answer, and are enough",
            |mesh: &Mesh| decided_first(mesh).all(|it| have_voted(mesh, it)),
        ),
        Promise::Rest => model.always(
            "units are formed no more often than followers changed",
            |mesh: &Mesh| {
                let first = |it: &Tables| it.followers().map(|it| u64::from(it.number)).max();
                let mut all = gateways(mesh).filter_map(Gateway::tables);
                all.all(|it| it.clustered() <= first(it).unwrap_or_default())
            },
        ),
        Promise::Right => model.always("no wrong value is decided", |mesh: &Mesh| {
            decided(mesh).all(|it| !matches!(it.0, Answer::Value(value) if value != one(1)))
        }),
        Promise::Progress => model.progress("the client hears at last", |mesh: &Mesh| {
            !received(mesh).is_empty()
        }),
        Promise::Value => model.progress("the client hears a value at last", |mesh: &Mesh| {
            matches!(received(mesh), [(Answer::Value(_), _)])
        }),
    }
}

fn has_one_manager(mesh: &Mesh) -> bool {
    let managers = || gateways(mesh).filter(|it| it.manages());
    let label = |it: &Gateway| {
        let replica = it.replica();
        (
            replica.configuration().number,
            replica.leader().map(|it| it.1),
        )
    };
    managers().all(|it| managers().filter(|other| label(other) == label(it)).count() == 1)
}

fn has_one_orchestrator(mesh: &Mesh) -> bool {
    seats(mesh).all(|it| {
        let mut alike = seats(mesh).filter(|other| other.0 == it.0);
        alike.all(|other| other.1 == it.1)
    })
}

fn keeps_the_answer(mesh: &Mesh) -> bool {
    let Some(first) = mesh.observer().answered else {
        return true;
    };
    let mut later = gateways(mesh).filter(|it| it.replica().version() >= first);
    later.all(|it| it.tables().is_none_or(|it| it.answer(TASK).is_some()))
}

fn tables_match(mesh: &Mesh) -> bool {
    let all = || gateways(mesh).filter_map(|it| Some((it.replica().version(), it.tables()?)));
    all().all(|it| all().all(|other| other.0 != it.0 || other.1 == it.1))
}

fn has_one_answer(mesh: &Mesh) -> bool {
    let first = decided_first(mesh).map(|it| it.received.clone());
    let mut all = decided(mesh).chain(first);
    let one = all.next();
    all.all(|it| Some(&it) == one.as_ref())
}

fn hears_what_is_decided(mesh: &Mesh) -> bool {
    let received = received(mesh);
    let mut all = received.iter();
    received.len() <= 1 && all.all(|it| decided(mesh).any(|other| *it == other))
}

/// The orchestrator of each attempt and term, as gateways and followers know it.
fn seats(mesh: &Mesh) -> impl Iterator<Item = ((u16, u16), Member)> {
    let known = gateways(mesh).filter_map(|it| {
        let assignment = it.tables()?.assignment(TASK)?;
        let label = (assignment.attempt, assignment.term);
        Some((label, assignment.orchestrator()?))
    });
    known.chain(followers(mesh).filter_map(|it| it.seat(TASK)))
}

/// Returns true if each follower sits once in the unit that the tables give for it, and in no other.
fn has_one_seat_each(tables: &Tables) -> bool {
    let units = 0..u32::try_from(tables.units()).unwrap_or(u32::MAX);
    tables.followers().all(|it| {
        let seats = units.clone().flat_map(|unit| {
            let members = tables.members(unit);
            members
                .filter(|other| *other == it.member)
                .map(move |_| unit)
        });
        seats.eq(tables.unit_of(it.member.id))
    })
}

/// Returns true if this follower's answer as an orchestrator is the result of more than half of the
/// followers of its present list, or of half of them, itself included.
fn is_backed(mesh: &Mesh, orchestrator: &Follower) -> bool {
    let Some((own, Some(Answer::Value(value)), electors)) = orchestrator.work_on(TASK) else {
        return true;
    };
    let reported = Returned::Value(value.clone());
    let returned = |it: &Follower| it.work_on(TASK).and_then(|it| it.0.cloned());
    // An elector that has crashed since voted before that, and its vote stays counted.
    let votes = electors.iter().filter(|elector| {
        let present = followers(mesh).find(|it| it.me() == **elector);
        present.is_none_or(|it| returned(it).as_ref() == Some(&reported))
    });
    let votes = votes.count();
    2 * votes > electors.len() || 2 * votes == electors.len() && own == Some(&reported)
}

/// Returns true if all named voters returned the answer, and they are more than half of the followers
/// that had the task, or half of them with the orchestrator.
fn have_voted(mesh: &Mesh, decided: &Decided) -> bool {
    let (answer, voters) = &decided.received;
    let reported = match answer {
        Answer::Value(value) => Returned::Value(value.clone()),
        Answer::Failed(why) => Returned::Failed(*why),
        Answer::NoMajority | Answer::Unanswered | Answer::Cancelled => return voters.is_empty(),
    };
    let returned = |it: &Follower| it.work_on(TASK).and_then(|it| it.0.cloned());
    // A voter that is down, or has restarted since, voted before that.
    let has_said = |id: &NodeId| {
        let mut alive = followers(mesh).filter(|it| it.me().id == *id);
        alive.all(|it| returned(it).as_ref() == Some(&reported) || it.me().incarnation.0 > 0)
    };
    let is_first = |(nth, id): (usize, &NodeId)| voters.iter().position(|it| it == id) == Some(nth);
    let are_enough = decided.electors.as_ref().is_none_or(|electors| {
        let ids = || electors.iter().map(|it| it.id);
        let count = voters.len();
        let is_own = ids().next().is_some_and(|it| voters.contains(&it));
        voters.iter().all(|it| ids().any(|id| id == *it))
            && (2 * count > electors.len() || 2 * count == electors.len() && is_own)
    });
    !voters.is_empty()
        && voters.iter().all(has_said)
        && voters.iter().enumerate().all(is_first)
        && are_enough
}

pub(super) fn sight(model: Model<Party, Watch>, sight: Sight) -> Model<Party, Watch> {
    match sight {
        Sight::Value => model.sometimes("the client hears a value", |mesh: &Mesh| {
            matches!(received(mesh), [(Answer::Value(_), _)])
        }),
        Sight::Cancelled => model.sometimes("the client hears of its wish", |mesh: &Mesh| {
            matches!(received(mesh), [(Answer::Cancelled, _)])
        }),
        Sight::NoMajority => model.sometimes("no value has a majority", |mesh: &Mesh| {
            matches!(received(mesh), [(Answer::NoMajority, _)])
        }),
        Sight::SecondAttempt => model.sometimes("a second attempt is open", |mesh: &Mesh| {
            attempts(mesh).any(|it| it.0 == 2)
        }),
        Sight::SecondTerm => model.sometimes("another orchestrator counts", |mesh: &Mesh| {
            attempts(mesh).any(|it| it.1 > 0)
        }),
        Sight::Decided => model.sometimes("it is decided that the task is open", |mesh: &Mesh| {
            let mut all = gateways(mesh).filter_map(Gateway::tables);
            all.any(|it| it.open_task(TASK).is_some())
        }),
        Sight::ManagesAgain => model.sometimes("a gateway manages again", |mesh: &Mesh| {
            gateways(mesh).any(|it| it.manages() && it.me().incarnation.0 > 0)
        }),
        Sight::Configured => model.sometimes("other gateways decide", |mesh: &Mesh| {
            gateways(mesh).any(|it| it.replica().configuration().number > 1)
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
