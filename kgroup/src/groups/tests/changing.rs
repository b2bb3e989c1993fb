//! When members change.

use super::*;
use crate::groups::plan::stagger;

const STAGGER: Span = Span::secs(10);

fn change(mesh: &mut Mesh, id: u64) -> Option<Span> {
    let now = mesh.now;
    let due = mesh.node(id).timers().get(&Timer::Change(GROUP)).copied();
    due.map(|it| it.since(now))
}

#[test]
fn a_leader_changes_members_at_its_groups_moment_of_an_epoch() {
    let mut mesh = Mesh::new(9, config().with_stagger(STAGGER));
    mesh.run(Span::secs(20));
    let leader = mesh.leader(GROUP);
    assert_eq!(change(&mut mesh, leader), None);
    mesh.epoch(2);
    let after = Span(STAGGER.0 / 256 * stagger(GROUP));
    assert_ne!(after, Span::ZERO);
    assert_eq!(change(&mut mesh, leader), Some(after));
    for id in (1..=9).filter(|it| *it != leader) {
        assert_eq!(change(&mut mesh, id), None, "it does not lead");
    }
    mesh.run(Span::secs(1));
    mesh.epoch(2);
    assert_eq!(
        change(&mut mesh, leader),
        Some(Span(after.0 - Span::secs(1).0)),
        "the same epoch"
    );
    mesh.run(Span::secs(20));
    let (number, _) = mesh.members(GROUP);
    assert!(number <= 2);
}

/// Nobody asks, so only what the leader says of itself is known.
#[test]
fn founders_that_are_no_members_are_told_where_the_group_is() {
    let mut mesh = Mesh::new(9, config());
    mesh.run(Span::secs(20));
    let founders = founders(9, GROUP);
    let mut told = 0;
    for epoch in 2..8 {
        mesh.epoch(epoch);
        mesh.run(Span::secs(30));
        let (number, members) = mesh.members(GROUP);
        let leader = mesh.leader(GROUP);
        for founder in founders.iter().filter(|it| !members.contains(it)) {
            let answer = mesh.nodes[founder].machine().whereabouts(GROUP);
            let Some(Item::Where {
                number: known,
                leader: known_leader,
                ..
            }) = answer
            else {
                panic!("{answer:?}");
            };
            // One that was a member itself knows the members alone.
            assert_eq!(known, number);
            assert!(known_leader.is_none_or(|it| it.0 == leader));
            told += 1;
        }
        for id in (1..=9).filter(|it| !founders.contains(it)) {
            assert!(!mesh.nodes[&id].machine().hints.contains_key(&GROUP));
        }
    }
    assert!(told > 4);
}

#[test]
fn members_that_are_gone_are_replaced_together() {
    let mut mesh = Mesh::new(9, config().with_stagger(STAGGER));
    mesh.run(Span::secs(20));
    mesh.epoch(2);
    mesh.run(Span::secs(20));
    let (number, members) = mesh.members(GROUP);
    let leader = mesh.leader(GROUP);
    let other = members.into_iter().find(|it| *it != leader).unwrap();
    mesh.kill(other);
    assert_eq!(change(&mut mesh, leader), Some(PATIENCE));
    mesh.run(Span::millis(500));
    let bystander = (1..=9).find(|it| !mesh.members(GROUP).1.contains(it));
    mesh.kill(bystander.unwrap());
    let rest = Some(Span(PATIENCE.0 / 2));
    assert_eq!(change(&mut mesh, leader), rest, "it waits on");
    mesh.run(Span::secs(5));
    let (next, members) = mesh.members(GROUP);
    assert_eq!(next, number + 1);
    assert!(!members.contains(&other));
    assert_eq!(members.len(), 3);
}
