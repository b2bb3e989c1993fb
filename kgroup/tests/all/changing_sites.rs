//! Sites that change while routines run.

use selvedge_core::{NodeId, Sha256Sortition, Span};
use selvedge_groups::{
    GroupId, Node, Place,
    store::{Expected, Operation, StoreCommand, StoreEvent, Stored},
};
use selvedge_kgroup::routines::{Definition, RoutineEvent, Stage};
use selvedge_kgroup::{Command, Event, GroupState, LeaderEvent, Site};
use selvedge_routine::{Routine, Step};
use selvedge_sim::network::Link;

use crate::building::{Building, device, switching};

/// The nodes of a house in which a group loses its memory.
const NODES: usize = 12;

fn house(nodes: u64, routines: impl IntoIterator<Item = Definition>) -> Building {
    let mut house = Building::new(7, nodes, 4, 1, Link::default(), routines);
    house.run(Span::secs(10));
    house
}

/// Brings devices into a state, and keeps each for so long.
fn holding(devices: &[u64], value: &str, long: Span) -> Definition {
    let steps = devices.iter().map(|it| {
        let mut step = Step::new(device(*it), value.into());
        step.hold = long;
        step
    });
    Definition::new(Routine {
        steps: steps.collect(),
    })
}

fn present(house: &Building) -> Site {
    house.net.machine(0).unwrap().site().clone()
}

/// All nodes that are up have a site of this generation, and the same one.
fn have(house: &Building, generation: u32) {
    let up = house.net.machines().filter(|it| house.net.is_up(it.0));
    let sites: Vec<&Site> = up.map(|it| it.1.site()).collect();
    for site in &sites {
        assert_eq!((site.generation(), *site), (generation, sites[0]));
    }
}

fn values(house: &Building, of: u64) -> Vec<String> {
    let done = house.done.iter().filter(|it| it.device == device(of));
    done.map(|it| it.value.to_string()).collect()
}

fn holder(house: &Building, of: u64) -> Option<GroupId> {
    let cluster = present(house).cluster_of(device(of)).unwrap();
    let leaders = house.leader(cluster);
    assert_eq!(leaders.len(), 1, "{cluster:?} is led by {leaders:?}");
    match house.net.machine(leaders[0]).unwrap().held(cluster) {
        Some(GroupState::Devices(it)) => it.holder(device(of)).map(|it| it.routine),
        other => panic!("{cluster:?} is {other:?}"),
    }
}

#[test]
fn a_lamp_and_its_routine_are_added_while_another_one_runs() {
    let mut house = house(5, [holding(&[1, 2], "on", Span::secs(4))]);
    house.trigger(0, 0, 1);
    house.run(Span::secs(2));
    assert_eq!(values(&house, 1), ["on"]);
    let wanted = present(&house)
        .with_device(device(5), Place([500, 0, 0]))
        .unwrap()
        .with_routine(switching(&[5, 3], "dim"))
        .unwrap();
    house.change(2, wanted);
    house.run(Span::secs(1));
    house.trigger(3, 1, 1);
    house.run(Span::secs(15));
    have(&house, 1);
    assert_eq!(values(&house, 5), ["dim"]);
    assert_eq!(values(&house, 3), ["dim"]);
    assert_eq!(values(&house, 2), ["on"]);
    assert_eq!((house.reports(0), house.reports(1)), (1, 1));
}

#[test]
fn a_removed_routine_frees_the_device_for_which_another_one_waits() {
    let holds = holding(&[1, 1], "on", Span::secs(600));
    let mut house = house(5, [holds, switching(&[1], "off")]);
    house.trigger(0, 0, 1);
    house.run(Span::secs(2));
    house.trigger(1, 1, 1);
    house.trigger(2, 0, 2);
    house.run(Span::secs(5));
    assert_eq!(holder(&house, 1), Some(Site::routine(0)));
    assert_eq!(values(&house, 1), ["on"]);
    house.change(4, present(&house).without_routine(0).unwrap());
    house.run(Span::secs(10));
    have(&house, 1);
    assert_eq!(values(&house, 1), ["on", "off"]);
    assert_eq!(holder(&house, 1), None);
    assert!(house.leader(Site::routine(0)).is_empty());
    assert_eq!(house.reports(1), 1);
    // It takes no trigger any more, and nobody asks for it for ever.
    let routine = Site::routine(0);
    let id = selvedge_kgroup::TriggerId(9);
    let refused = house.net.command(0, Command::Trigger { routine, id });
    assert!(refused.is_err());
}

#[test]
fn a_changed_routine_ends_its_run_under_the_definition_with_which_it_began() {
    let mut house = house(5, [holding(&[1, 2], "on", Span::secs(4))]);
    house.trigger(0, 0, 1);
    house.run(Span::secs(2));
    let changed = present(&house)
        .with_routine_changed(0, switching(&[3, 1], "dim"))
        .unwrap();
    house.change(1, changed);
    house.run(Span::secs(1));
    house.trigger(2, 0, 2);
    house.run(Span::secs(15));
    have(&house, 1);
    assert_eq!(values(&house, 2), ["on"]);
    house.trigger(2, 0, 3);
    house.run(Span::secs(15));
    assert_eq!(values(&house, 2), ["on"]);
    assert_eq!(values(&house, 1).last().unwrap(), "dim");
    assert_eq!(values(&house, 3).last().unwrap(), "dim");
    assert_eq!(house.routine(0).since(), 1);
}

#[test]
fn a_device_that_moves_stays_in_its_cluster_and_keeps_its_holder() {
    let mut house = house(5, [holding(&[1], "on", Span::secs(4))]);
    house.trigger(0, 0, 1);
    house.run(Span::secs(2));
    let cluster = present(&house).cluster_of(device(1));
    let moved = present(&house).with_device(device(1), Place([10_000, 0, 0]));
    house.change(1, moved.unwrap());
    house.run(Span::secs(1));
    assert_eq!(present(&house).cluster_of(device(1)), cluster);
    assert_eq!(holder(&house, 1), Some(Site::routine(0)));
    house.run(Span::secs(15));
    have(&house, 1);
    assert_eq!(house.reports(0), 1);
    assert_eq!(holder(&house, 1), None);
}

#[test]
fn a_node_that_is_added_takes_the_place_of_one_that_is_removed() {
    let mut house = house(4, [switching(&[1, 4], "on")]);
    let wanted = present(&house)
        .with_node(Node::new(5, Place([200, 0, 0])))
        .unwrap();
    house.change(0, wanted);
    house.run(Span::secs(5));
    let with_it = present(&house);
    house.join(with_it.clone());
    house.run(Span::secs(5));
    have(&house, 1);
    let gone = NodeId(2);
    house.change(3, with_it.without_node(gone).unwrap());
    house.run(Span::secs(60));
    have(&house, 2);
    let site = present(&house);
    let mut has_new = false;
    for group in site.groups() {
        let leaders = house.leader(group);
        assert_eq!(leaders.len(), 1, "{group:?} is led by {leaders:?}");
        let leader = house.net.machine(leaders[0]).unwrap();
        let replica = leader.groups().replica(group).unwrap();
        let members: Vec<NodeId> = (replica.configuration().members())
            .map(|it| it.member.id)
            .collect();
        assert!(!members.contains(&gone), "{gone:?} is in {group:?}");
        has_new |= members.contains(&NodeId(5));
    }
    assert!(has_new, "the new node is in no group");
    // The removed one may be switched off.
    house.kill(1);
    house.trigger(4, 0, 1);
    house.run(Span::secs(15));
    assert_eq!(values(&house, 1), ["on"]);
    assert_eq!(house.reports(0), 1);
}

/// The nodes that are members of a group.
fn members(house: &Building, group: GroupId) -> Vec<usize> {
    let leader = house.leader(group)[0];
    let replica = house.net.machine(leader).unwrap().groups().replica(group);
    let members = replica.unwrap().configuration().members();
    members.map(|it| it.member.id.0 as usize - 1).collect()
}

/// More members of the group than may fail begin again at once, without their memory. All other groups
/// keep their own; the registry has more members.
fn forget(house: &mut Building, group: GroupId) {
    let site = present(house);
    let others = site.groups().filter(|it| *it != group);
    let others: Vec<Vec<usize>> = others.map(|it| members(house, it)).collect();
    let all = members(house, group);
    let pairs = [[0, 1], [0, 2], [1, 2]].map(|it| it.map(|at| all[at]));
    let spares = |pair: &[usize; 2]| {
        let mut others = others.iter();
        others.all(|it| !pair.iter().all(|lost| it.contains(lost)))
    };
    let lost = pairs
        .into_iter()
        .find(spares)
        .expect("the groups are apart");
    for at in lost {
        house.begin_again_unnoticed(at);
    }
    for at in 0..NODES {
        for other in 0..NODES {
            if at != other {
                let delta = selvedge_core::Delta::Joined(house.member(other));
                house.net.membership(at, delta).unwrap();
            }
        }
        house.net.command(at, Command::SetEpoch(2)).unwrap();
    }
    house.run(Span::secs(30));
}

#[test]
fn a_run_keeps_its_device_while_the_cluster_begins_anew_and_then_the_device_passes_on() {
    let mut house = house(
        NODES as u64,
        [
            // It waits for the cluster.
            holding(&[1, 1], "on", Span::secs(60)).with_command_timeout(Span::secs(600)),
            switching(&[1], "off"),
        ],
    );
    house.trigger(0, 0, 1);
    house.run(Span::secs(3));
    assert_eq!(values(&house, 1), ["on"]);
    let cluster = present(&house).cluster_of(device(1)).unwrap();
    let act = |house: &Building| {
        let leader = house.leader(cluster)[0];
        match house.net.machine(leader).unwrap().held(cluster) {
            Some(GroupState::Devices(it)) => {
                let number = it.act(device(1)).map_or(0, |it| it.number);
                (number, it.status(device(1)).unwrap().version)
            }
            other => panic!("{cluster:?} is {other:?}"),
        }
    };
    let before = act(&house);
    forget(&mut house, cluster);
    assert!(house.leader(cluster).is_empty(), "it has its memory");
    house.net.command(0, Command::BeginAnew(cluster)).unwrap();
    house.run(Span::secs(20));
    house.trigger(1, 1, 1);
    house.run(Span::secs(10));
    // The former beginning granted it to the first routine.
    assert_eq!(holder(&house, 1), Some(Site::routine(0)));
    house.run(Span::secs(240));
    assert_eq!(values(&house, 1).last().unwrap(), "off");
    let after = act(&house);
    assert!(
        after.0 > before.0 && after.1 > before.1,
        "{before:?} {after:?}"
    );
}

#[test]
fn a_cluster_and_a_routine_begin_anew_by_themselves() {
    for of_routine in [false, true] {
        let routines = [switching(&[1], "on"), switching(&[1], "off")];
        let mut house = house(NODES as u64, routines);
        house.trigger(0, 0, 1);
        house.run(Span::secs(5));
        assert_eq!(values(&house, 1), ["on"]);
        let group = match of_routine {
            true => Site::routine(1),
            false => present(&house).cluster_of(device(1)).unwrap(),
        };
        forget(&mut house, group);
        assert!(house.leader(group).is_empty(), "it has its memory");
        for epoch in 3..=7 {
            for at in 0..NODES {
                house.net.command(at, Command::SetEpoch(epoch)).unwrap();
            }
            house.run(Span::secs(20));
        }
        let is_anew = |it: &Event| matches!(it, Event::Groups(selvedge_groups::Event::BegunAnew(it)) if *it == group);
        assert!(house.events.iter().any(|it| is_anew(&it.2)));
        house.trigger(3, 1, 2);
        house.run(Span::secs(20));
        assert_eq!(values(&house, 1), ["on", "off"]);
    }
}

#[test]
fn a_routine_that_begins_anew_counts_its_runs_on() {
    let mut house = house(NODES as u64, [switching(&[1, 4], "on")]);
    house.trigger(0, 0, 1);
    house.run(Span::secs(5));
    let before = house.routine(0).instance();
    let routine = Site::routine(0);
    forget(&mut house, routine);
    assert!(house.leader(routine).is_empty(), "it has its memory");
    house.net.command(3, Command::BeginAnew(routine)).unwrap();
    house.run(Span::secs(20));
    house.trigger(1, 0, 2);
    house.run(Span::secs(20));
    // A member of before may still have its state.
    let leader = house.leader(routine)[0];
    let Some(GroupState::Routine(state)) = house.net.machine(leader).unwrap().held(routine) else {
        panic!("{routine:?} is no routine");
    };
    assert!(state.instance() > before, "{}", state.instance());
    assert_eq!(*state.stage(), Stage::NotTriggered);
    assert_eq!(values(&house, 4), ["on", "on"]);
    let instance = state.instance();
    let executes = house.events.iter().any(|it| {
        matches!(&it.2, Event::Leader { group, event: LeaderEvent::Routine(RoutineEvent::Executes { instance: of }) } if *group == routine && *of == instance)
    });
    assert!(executes);
}

#[test]
fn a_map_that_begins_anew_is_empty_and_takes_changes() {
    let mut house = house(NODES as u64, []);
    let map = GroupId::map("lights", &Sha256Sortition);
    let put = |house: &mut Building, at: usize, ticket: u64| {
        let operation =
            Operation::set("hall", Expected::Absent, Some([1, 2].into_iter().collect()));
        let command = StoreCommand::Change { ticket, operation };
        house
            .net
            .command(at, Command::Map { map, command })
            .unwrap();
        house.run(Span::secs(20));
        house.events.iter().rev().find_map(|it| match &it.2 {
            Event::Map {
                event: StoreEvent::Changed { ticket: of, stored },
                ..
            } if *of == ticket => Some(*stored),
            _ => None,
        })
    };
    let first = put(&mut house, 0, 1);
    assert!(matches!(first, Some(Stored::Done { .. })), "{first:?}");
    forget(&mut house, map);
    assert!(house.leader(map).is_empty(), "it has its memory");
    house.net.command(2, Command::BeginAnew(map)).unwrap();
    house.run(Span::secs(20));
    let again = put(&mut house, 4, 2);
    assert!(matches!(again, Some(Stored::Done { .. })), "{again:?}");
}

/// It would undo the change that was decided meanwhile.
#[test]
fn a_change_of_a_former_site_is_refused() {
    let mut house = house(NODES as u64, [switching(&[1], "on")]);
    let former = present(&house);
    let at = Place([500, 0, 0]);
    let [one, other] = [5, 6].map(|it| former.clone().with_device(device(it), at).unwrap());
    house.change(0, one);
    house.run(Span::secs(10));
    let refused = house.net.command(1, Command::ChangeSite(Box::new(other)));
    assert!(refused.is_err());
    let again = present(&house).with_device(device(6), at).unwrap();
    house.change(1, again);
    house.run(Span::secs(10));
    let now = present(&house);
    assert!(
        [5, 6]
            .iter()
            .all(|it| now.cluster_of(device(*it)).is_some())
    );
}

#[test]
fn a_routine_that_begins_anew_gives_back_what_its_lost_run_held() {
    let routines = [
        holding(&[1, 1], "on", Span::secs(600)),
        switching(&[1], "off"),
    ];
    let mut house = house(NODES as u64, routines);
    house.trigger(0, 0, 1);
    house.run(Span::secs(3));
    assert_eq!(values(&house, 1), ["on"]);
    forget(&mut house, Site::routine(0));
    house
        .net
        .command(0, Command::BeginAnew(Site::routine(0)))
        .unwrap();
    house.run(Span::secs(20));
    house.trigger(1, 1, 1);
    house.run(Span::secs(30));
    assert_eq!(values(&house, 1), ["on", "off"]);
}
