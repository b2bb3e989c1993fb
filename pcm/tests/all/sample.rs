//! Tables with followers, units and tasks to test on, and the invariants of all tables.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_core::{Member, NodeId};
use selvedge_pcm::{
    Answer, Attachment, Class, DutyCycle, Function, Libraries, Limits, Outcome, Tables, TaskId,
    Update,
};
use selvedge_replica::State as _;

pub(super) fn follower(id: u64, active_ms: u32) -> Attachment {
    Attachment {
        member: Member::new(id, 0),
        number: 1,
        gateway: NodeId(id % 3),
        duty: DutyCycle {
            active_ms,
            busy_ms: 0,
            asleep_ms: 100_000 - active_ms,
        },
        libraries: Libraries::new(),
    }
}

/// A thousand followers at most, that are available between 0 and 100% of the time.
pub(super) fn tables(followers: impl IntoIterator<Item = (u64, u32)>) -> Tables {
    let mut tables = Tables::new(Limits::new());
    for (id, active) in followers {
        tables.apply(&Update::Attach(follower(id, active)));
    }
    tables.apply(&Update::Cluster { after: 0 });
    tables
}

pub(super) fn units(tables: &Tables) -> Vec<Vec<Member>> {
    let units = 0..tables.units() as u32;
    units.map(|it| tables.members(it).collect()).collect()
}

pub(super) fn task(number: u64) -> TaskId {
    TaskId {
        client: Member::new(900, 0),
        number,
    }
}

pub(super) fn submit(number: u64, code: &[u8]) -> Update {
    Update::Submit {
        task: task(number),
        function: Function::new(code),
    }
}

pub(super) fn attached(id: u64) -> Outcome {
    Outcome::Attached {
        follower: NodeId(id),
        tasks: Vec::new(),
        is_other: true,
    }
}

/// An answer of all that have the task now.
pub(super) fn answer(tables: &Tables, number: u64, attempt: u16, value: &[u8]) -> Update {
    let assignment = tables.assignment(task(number));
    let electors = assignment.into_iter().flat_map(|it| it.electors.iter());
    let voters: BTreeSet<NodeId> = electors.map(|it| it.id).collect();
    Update::Answer {
        task: task(number),
        attempt,
        term: 0,
        answer: Answer::Value(value.iter().copied().collect()),
        voters: voters.into_iter().collect(),
    }
}

/// The invariants.
pub(super) fn check(tables: &Tables) {
    let all: BTreeSet<NodeId> = tables.followers().map(|it| it.member.id).collect();
    let mut seated = BTreeSet::new();
    for (unit, members) in units(tables).into_iter().enumerate() {
        for member in members {
            assert!(seated.insert(member.id), "{member:?} sits twice");
            assert_eq!(tables.unit_of(member.id), Some(unit as u32));
            let counts = tables.class_of(member.id) == Some(Class::Orchestrator);
            let first = tables.members(unit as u32).next();
            // Without one, the first of the others comes first, too.
            assert!(!counts || first == Some(member), "{member:?} counts");
            let follower = tables.follower(member.id);
            assert_eq!(follower.map(|it| it.member.id), Some(member.id));
        }
    }
    assert!(seated.is_subset(&all));
    for id in all.difference(&seated) {
        assert_eq!(tables.unit_of(*id), None);
        assert_eq!(tables.class_of(*id), None);
    }
    for (task, open) in tables.open() {
        let Some(assignment) = &open.assignment else {
            continue;
        };
        assert_eq!(assignment.attempt, open.attempts);
        assert!(!assignment.electors.is_empty(), "{task:?} has no electors");
        for elector in assignment.electors.iter() {
            assert!(
                all.contains(&elector.id),
                "{elector:?} of {task:?} is not in the tables"
            );
        }
    }
    let mut counts = BTreeMap::new();
    for follower in tables.followers() {
        *counts.entry(follower.gateway).or_insert(0) += 1;
    }
    assert_eq!(tables.gateways().collect::<BTreeMap<_, _>>(), counts);
}
