//! The configuration that is equal on all nodes, and commands of a node's application.

mod bytes;
mod edits;

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::{Driver, Input, Member, NodeId, Sha256Sortition, Span, Time};
use selvedge_groups as groups;
use selvedge_groups::{
    Begins, GroupId, Node, Place, Selection, Start,
    store::{StoreCommand, StoreConfig},
};
use selvedge_kgroup::routines::{Definition, RoutineConfig};
use selvedge_kgroup::{
    Command, Config, ConfigError, GroupState, Kgroup, Reject, Site, TriggerId, devices,
};
use selvedge_routine::{Routine, Step};

fn nodes() -> Vec<Node> {
    (1..=5)
        .map(|id| Node::new(id, Place([id as i32, 0, 0])))
        .collect()
}

fn routine(device: u64, value: &str) -> Definition {
    let steps = vec![Step::new(NodeId(device), value.into())];
    Definition::new(Routine { steps })
}

/// Two clusters of two devices, far from each other.
fn site() -> Site {
    let devices = [(101, 0), (102, 10), (103, 1_000), (104, 1_020)];
    let devices = devices.map(|(id, x)| (NodeId(id), Place([x, 7, 0])));
    Site::new(Selection::new().with_failures(1), nodes(), devices, 2).unwrap()
}

fn node(site: Site) -> Driver<Kgroup> {
    let me = Member::new(1, 0);
    Driver::new(Kgroup::new(me, Config::new(), Arc::new(site), Start::Fresh).unwrap())
}

fn command(node: &mut Driver<Kgroup>, command: Command) -> Result<(), Reject> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    node.step(Time::ZERO, &mut rng, Input::Command(command), |_| ())
}

#[test]
fn a_site_has_what_it_was_given() {
    let definition = routine(103, "on");
    let site = site().with_routine(definition.clone()).unwrap();
    assert_eq!(site.nodes(), nodes());
    assert!(site.routines().eq([(0, &definition)]));
    let clusters = site.clusters();
    let devices: Vec<_> = clusters.map(|it| it.1.devices.clone()).collect();
    assert_eq!(
        devices,
        [[101, 102], [103, 104]].map(|it| it.map(NodeId).to_vec())
    );
    let groups: Vec<_> = site.groups().collect();
    let [one, two] = [0, 1].map(Site::cluster);
    assert_eq!(groups, [one, two, Site::routine(0)]);
    assert_eq!(site.cluster_of(NodeId(102)), Some(one));
    assert_eq!(site.cluster_of(NodeId(103)), Some(two));
    assert_eq!(site.cluster_of(NodeId(105)), None);
}

#[test]
fn a_group_is_where_what_it_looks_after_is() {
    let site = site().with_routine(routine(104, "on")).unwrap();
    let map = GroupId::map("doors", &Sha256Sortition);
    let devices = |group| site.devices(group);
    let at = |id, x| (NodeId(id), Place([x, 7, 0]));
    assert_eq!(devices(Site::cluster(0)), [at(101, 0), at(102, 10)]);
    assert_eq!(devices(Site::cluster(1)), [at(103, 1_000), at(104, 1_020)]);
    assert_eq!(devices(Site::routine(0)), [at(104, 1_020)]);
    for nowhere in [Site::cluster(2), Site::routine(1), map] {
        assert_eq!(devices(nowhere), []);
    }
    let neighbours = |id| GroupState::neighbours(&site, NodeId(id));
    assert_eq!(neighbours(101), [Place([10, 7, 0])]);
    assert_eq!(neighbours(104), [Place([1_000, 7, 0])]);
    assert_eq!(neighbours(105), []);

    let begins = |group| site.begin(group);
    assert!(matches!(
        begins(Site::cluster(1)),
        Some(GroupState::Devices(_))
    ));
    assert!(matches!(
        begins(Site::routine(0)),
        Some(GroupState::Routine(_))
    ));
    assert!(matches!(begins(map), Some(GroupState::Map(_))));
    for unknown in [Site::cluster(2), Site::routine(1), GroupId(map.0 | 3)] {
        assert_eq!(begins(unknown), None);
    }
}

#[test]
fn ids_of_groups_say_what_they_hold_and_are_short() {
    let map = |number: u32| GroupId::map(&format!("map {number}"), &Sha256Sortition);
    let made = [Site::cluster, Site::routine, map];
    let mut all: Vec<GroupId> = (0..1_000)
        .flat_map(|number| made.map(|make| make(number)))
        .collect();
    for (at, group) in all.iter().enumerate() {
        let bytes = postcard::to_allocvec(group).unwrap().len();
        let most = if at % 3 == 2 { 7 } else { 2 };
        assert!(bytes <= most, "{group:?}");
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 3_000);
}

/// Nodes whose devices are elsewhere would choose other groups.
#[test]
fn each_place_of_a_device_counts_in_the_digest() {
    let digest = |place| {
        let devices = [(NodeId(101), place)];
        let site = Site::new(Selection::new().with_failures(1), nodes(), devices, 1).unwrap();
        site.plan().unwrap().digest()
    };
    let places = [[7, 8, 9], [6, 8, 9], [7, 6, 9], [7, 8, 6], [-7, 8, 9]];
    let mut digests = places.map(|it| digest(Place(it))).to_vec();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), places.len());
}

/// States of eight bytes, each of which counts.
#[test]
fn each_byte_of_a_routine_counts_in_the_digest() {
    let value = "a".repeat(24);
    let changed = (0..24).map(|at| {
        let mut value = value.clone();
        value.replace_range(at..=at, "b");
        value
    });
    let values = changed.chain([value.clone()]);
    let mut digests: Vec<u32> = values
        .map(|value| {
            let site = site().with_routine(routine(101, &value)).unwrap();
            site.plan().unwrap().digest()
        })
        .collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 25);
}

#[test]
fn settings_of_each_part_are_checked() {
    let good = Config::new();
    assert!(good.check().is_ok());
    let groups = groups::Config::new().with_groups(0);
    let refused = good.with_groups(groups).check().unwrap_err();
    assert!(matches!(refused, ConfigError::Groups(_)));
    let devices = devices::Config::new().with_ping(Span(0));
    let refused = good.with_devices(devices).check().unwrap_err();
    assert!(matches!(refused, ConfigError::Devices(_)));
    let routines = RoutineConfig::new().with_resend(Span(0));
    let refused = good.with_routines(routines).check().unwrap_err();
    assert!(matches!(refused, ConfigError::Routines(_)));
    let maps = StoreConfig::new().with_pending(0);
    let bad = good.with_maps(maps);
    assert!(matches!(bad.check().unwrap_err(), ConfigError::Maps(_)));
    let me = Member::new(1, 0);
    let made = Kgroup::new(me, bad, Arc::new(site()), Start::Fresh);
    assert!(matches!(made.unwrap_err(), Reject::Config(_)));
}

#[test]
fn what_is_asked_of_a_group_of_another_kind_is_refused() {
    let mut node = node(site().with_routine(routine(101, "on")).unwrap());
    let map = GroupId::map("doors", &Sha256Sortition);
    let (routine, cluster) = (Site::routine(0), Site::cluster(0));
    for group in [map, cluster] {
        let id = TriggerId(1);
        let routine = group;
        let trigger = Command::Trigger { routine, id };
        assert_eq!(
            command(&mut node, trigger).unwrap_err(),
            Reject::OtherKind(group, "routine")
        );
    }
    for group in [routine, cluster] {
        let watch = StoreCommand::Watch("front".into());
        let watch = Command::Map {
            map: group,
            command: watch,
        };
        assert_eq!(
            command(&mut node, watch).unwrap_err(),
            Reject::OtherKind(group, "map")
        );
    }
}

#[test]
fn a_node_asks_for_so_many_runs_and_for_a_known_one_again() {
    let mut node = node(site().with_routine(routine(101, "on")).unwrap());
    let mut trigger = |id| {
        let (routine, id) = (Site::routine(0), TriggerId(id));
        command(&mut node, Command::Trigger { routine, id })
    };
    let mut taken = 0;
    let refused = (0..1_000).find_map(|id| match trigger(id) {
        Ok(()) => {
            taken += 1;
            None
        }
        Err(refused) => Some(refused),
    });
    assert_eq!(refused, Some(Reject::Triggers { limit: taken }));
    for id in 0..taken as u64 {
        trigger(id).unwrap();
    }
    assert!(trigger(1_000).is_err());
}
