//! Histories by hand: the defects that random ones have found.

use std::sync::Arc;

use selvedge_core::NodeId;
use selvedge_groups::{GroupId, Item, Node, Selection};
use selvedge_kgroup::routines::Definition;
use selvedge_kgroup::{Command, Config, Site};
use selvedge_routine::{Routine, Step};

use crate::world::{Ev, Faults, MS, World};

const SECOND: u64 = 1_000 * MS;

fn site(failures: u8, nodes: u64) -> Site {
    let all = (1..=nodes).map(|id| Node::without_place(NodeId(id)));
    let devices = [(NodeId(100), selvedge_groups::Place([0; 3]))];
    let selection = Selection::new().with_failures(failures);
    Site::new(selection, all, devices, 1).unwrap()
}

fn definition() -> Definition {
    Definition::new(Routine {
        steps: vec![Step::new(NodeId(100), "w1.0".into())],
    })
}

fn world(site: &Site, has_disk: bool) -> World {
    let faults = Faults {
        loss: 0,
        double: 0,
        delay: 10 * MS,
        slow: 0,
        longest: 0,
        ages: 0,
        storage: 0,
        act: 0,
        detection: 500 * MS,
    };
    let mut world = World::new(1, faults, Config::new(), site.frame_budget());
    let site = Arc::new(site.clone());
    for node in site.nodes() {
        world.add(node.id, has_disk, Arc::clone(&site), 0);
        world.at(
            0,
            Ev::Start {
                node: node.id,
                file: None,
            },
        );
    }
    world.epoch_length = 5 * SECOND;
    world.at(5 * SECOND, Ev::Epoch);
    world
}

fn run(world: &mut World, seconds: u64) {
    let end = world.now + seconds * SECOND;
    while let Some(ev) = world.next(end) {
        let _ = world.run(ev);
    }
}

fn leader(world: &World, group: GroupId) -> Option<NodeId> {
    let mut alive = world.alive().into_iter();
    alive.find(|it| world.machine(*it).unwrap().groups().leads(group))
}

/// The page of the groups: "groups that are new in it begin".
#[test]
fn a_group_of_a_new_site_begins_under_a_later_leader_of_the_registry() {
    let first = site(0, 4);
    let mut world = world(&first, true);
    run(&mut world, 3);
    world.loses = |it| it.items.iter().any(|it| matches!(it, Item::Born { .. }));
    let wanted = first.with_routine(definition()).unwrap();
    let refused = world.command(NodeId(1), Command::ChangeSite(Box::new(wanted)));
    assert_eq!(refused, None);
    run(&mut world, 4);
    let before = leader(&world, GroupId::REGISTRY).expect("a leader has decided the site");
    let routine = Site::routine(0);
    while leader(&world, GroupId::REGISTRY).is_none_or(|it| it == before) {
        run(&mut world, 1);
    }
    world.loses = |_| false;
    run(&mut world, 60);
    assert!(
        leader(&world, routine).is_some(),
        "no leader of the routine after a minute"
    );
}

/// Another routine of the same leader was removed: its refusal is taken as the answer to a release.
#[test]
fn a_refusal_of_a_removed_routine_leaves_no_device_held_by_another_one() {
    let story = crate::history(15_041).expect("its choices make a site");
    assert_eq!(story.world.oracle.failures, [""; 0]);
}
