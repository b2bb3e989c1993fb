//! Edits of a site, and its next generation.

use proptest::collection::vec;
use proptest::prelude::*;
use selvedge_core::{NodeId, Sha256Sortition, Span};
use selvedge_groups::{Begins, GroupId, Node, Place, Policy, Selection, Weight};
use selvedge_kgroup::devices::Limits;
use selvedge_kgroup::routines::Definition;
use selvedge_kgroup::{ConfigError, GroupState, Site};

use super::{routine, site};

fn at(x: i32) -> Place {
    Place([x, 7, 0])
}

/// The numbers of clusters with the ids of their devices.
fn clusters(site: &Site) -> Vec<(u32, Vec<u64>)> {
    let ids = |all: &[NodeId]| all.iter().map(|it| it.0).collect();
    let clusters = site.clusters();
    clusters.map(|it| (it.0, ids(&it.1.devices))).collect()
}

/// The devices, with their places.
fn devices(site: &Site) -> Vec<(NodeId, Place)> {
    let clusters = site.clusters();
    let mut devices: Vec<_> = clusters
        .flat_map(|it| site.devices(Site::cluster(it.0)))
        .collect();
    devices.sort_unstable();
    devices
}

/// The wake intervals of all ids that tests use.
fn sleepers(site: &Site) -> Vec<Option<Span>> {
    (0..200).map(|id| site.wake_interval(NodeId(id))).collect()
}

fn refused<T: std::fmt::Debug>(edited: Result<T, ConfigError>) -> String {
    edited.unwrap_err().to_string()
}

#[test]
fn a_routine_keeps_its_number_and_no_other_one_gets_it() {
    let [one, two, three] = ["a", "b", "c"].map(|it| routine(101, it));
    let site = site().with_routine(one.clone()).unwrap();
    let site = site.with_routine(two.clone()).unwrap();
    let site = site.without_routine(1).unwrap();
    let group = Site::routine(1);
    assert_eq!(site.definition(group), None);
    assert_eq!(site.begin(group), None);
    assert!(site.groups().all(|it| it != group));
    let site = site.with_routine(three.clone()).unwrap();
    assert!(site.routines().eq([(0, &one), (2, &three)]));
    let site = site.with_routine_changed(2, two.clone()).unwrap();
    assert_eq!(site.definition(Site::routine(2)), Some(&two));
    assert_eq!(site.definition(Site::cluster(0)), None);
    let site = site.without_routine(2).unwrap();
    assert!(site.routines().eq([(0, &one)]));
    let expected = "the site has no routine 2: name one that it has";
    assert_eq!(refused(site.clone().without_routine(2)), expected);
    assert_eq!(refused(site.with_routine_changed(2, two)), expected);
}

#[test]
fn a_changed_routine_is_checked_like_a_new_one() {
    let site = site().with_routine(routine(101, "on")).unwrap();
    let lacks = site.clone().with_routine_changed(0, routine(9, "on"));
    let (routine, device) = (0, NodeId(9));
    let expected = ConfigError::NoDevice { routine, device };
    assert_eq!(lacks.unwrap_err(), expected);
    let empty = Definition::new(selvedge_routine::Routine { steps: vec![] });
    let refused = site.with_routine_changed(0, empty).unwrap_err();
    assert!(matches!(refused, ConfigError::Routine { routine: 0, .. }));
}

#[test]
fn a_device_joins_the_nearest_cluster_with_room_and_stays_there_when_it_moves() {
    let full = || vec![(0, vec![101, 102]), (1, vec![103, 104])];
    assert_eq!(clusters(&site()), full());
    // Both have as many devices as they should have.
    let three = site().with_device(NodeId(1), at(0)).unwrap();
    let new = (2, vec![1]);
    assert_eq!(clusters(&three), [full(), vec![new]].concat());
    let moved = three.with_device(NodeId(1), at(1_010)).unwrap();
    assert_eq!(moved.cluster_of(NodeId(1)), Some(Site::cluster(2)));
    assert_eq!(moved.devices(Site::cluster(2)), [(NodeId(1), at(1_010))]);
    // There is room beside device 1, which has moved, and in cluster 0.
    let room = moved.without_device(NodeId(101)).unwrap();
    let far = room.clone().with_device(NodeId(2), at(900)).unwrap();
    assert_eq!(far.cluster_of(NodeId(2)), Some(Site::cluster(2)));
    let near = room.with_device(NodeId(2), at(100)).unwrap();
    assert_eq!(near.cluster_of(NodeId(2)), Some(Site::cluster(0)));
    let centre = |site: &Site| site.clusters().next().unwrap().1.centre;
    assert_eq!(centre(&near), at(55));
    let gone = near.without_device(NodeId(1)).unwrap();
    let expected = [(0, vec![2, 102]), (1, vec![103, 104])];
    assert_eq!(clusters(&gone), expected);
    // The number of the empty cluster is not used again.
    let other = gone.with_device(NodeId(3), at(0)).unwrap();
    assert_eq!(other.cluster_of(NodeId(3)), Some(Site::cluster(3)));
    assert_eq!(
        refused(other.without_device(NodeId(1))),
        "the site has no device 1: name one that it has"
    );
}

#[test]
fn a_device_keeps_its_wake_interval_until_it_leaves() {
    let valve = NodeId(101);
    let ten = Some(Span::secs(600));
    let sleeps = site().with_wake_interval(valve, ten).unwrap();
    assert_eq!(sleeps.wake_interval(valve), ten);
    assert_eq!(sleeps.wake_interval(NodeId(102)), None);
    let moved = sleeps.clone().with_device(valve, at(3)).unwrap();
    assert_eq!(moved.wake_interval(valve), ten);
    let gone = sleeps.clone().without_device(valve).unwrap();
    let back = gone.with_device(valve, at(3)).unwrap();
    assert_eq!(back.wake_interval(valve), None);
    let awake = sleeps.clone().with_wake_interval(valve, None).unwrap();
    assert_eq!(awake, site());
    // The next generation has that of the wanted site.
    for (running, wanted) in [(&awake, &sleeps), (&sleeps, &awake)] {
        let next = running.changed_to(wanted).unwrap();
        assert_eq!(next.wake_interval(valve), wanted.wake_interval(valve));
    }
    let longest = Span::secs(365 * 24 * 3_600);
    for interval in [Span(1), longest] {
        assert!(site().with_wake_interval(valve, Some(interval)).is_ok());
    }
    let expected =
        "device n101: wake_interval is 0 us: set it to 1 us or more, up to 31536000000000 us";
    let zero = site().with_wake_interval(valve, Some(Span::ZERO));
    assert_eq!(refused(zero), expected);
    let long = site().with_wake_interval(valve, Some(Span(longest.0 + 1)));
    assert!(matches!(long, Err(ConfigError::WakeInterval { .. })));
    let expected = "the site has no device 9: name one that it has";
    for interval in [ten, None] {
        let nowhere = site().with_wake_interval(NodeId(9), interval);
        assert_eq!(refused(nowhere), expected);
    }
}

#[test]
fn a_device_stays_while_a_routine_needs_it() {
    let site = site().with_routine(routine(102, "on")).unwrap();
    let site = site.with_routine(routine(103, "on")).unwrap();
    let device = NodeId(103);
    let expected = ConfigError::Needed { device, routine: 1 };
    let found = site.clone().without_device(device).unwrap_err();
    assert_eq!(found, expected);
    assert!(site.clone().without_device(NodeId(101)).is_ok());
    let site = site.without_routine(1).unwrap();
    assert!(site.without_device(device).is_ok());
}

#[test]
fn a_node_that_was_removed_is_a_former_one_until_it_is_back() {
    let ids = |all: &[NodeId]| all.iter().map(|it| it.0).collect::<Vec<_>>();
    let site = site().without_node(NodeId(4)).unwrap();
    let site = site.without_node(NodeId(2)).unwrap();
    assert_eq!(ids(site.former_nodes()), [4, 2]);
    let expected =
        "a group has 3 members, and the plan has 2 nodes: lower Selection::failures or add nodes";
    assert_eq!(refused(site.clone().without_node(NodeId(1))), expected);
    let expected = "the site has no node 2: name one that it has";
    assert_eq!(refused(site.clone().without_node(NodeId(2))), expected);
    let heavy = Node::new(4, at(9)).with_weight(Weight(32));
    let site = site.with_node(heavy).unwrap();
    assert_eq!(ids(site.former_nodes()), [2]);
    assert_eq!(site.nodes()[2], heavy);
    let light = Node::without_place(NodeId(4)).with_weight(Weight(1));
    let site = site.with_node(light).unwrap();
    assert_eq!(site.nodes().len(), 4);
    assert_eq!(site.nodes()[2], light);
    // Of many the last ones are kept.
    let mut site = site;
    for id in 100..200 {
        site = site.with_node(Node::new(id, at(0))).unwrap();
        site = site.without_node(NodeId(id)).unwrap();
    }
    assert!(ids(site.former_nodes()).into_iter().eq(136..200));
}

#[test]
fn what_a_site_has_in_generation_0_is_founding() {
    let site = site().with_routine(routine(101, "on")).unwrap();
    let site = site.with_device(NodeId(1), at(0)).unwrap();
    let site = site.without_routine(0).unwrap().with_generation(1);
    let site = site.with_device(NodeId(2), at(0)).unwrap();
    let site = site.with_device(NodeId(3), at(0)).unwrap();
    let site = site.with_routine(routine(1, "on")).unwrap();
    let [old, new] = [2, 3].map(Site::cluster);
    assert_eq!(site.cluster_of(NodeId(2)), Some(old));
    assert_eq!(site.cluster_of(NodeId(3)), Some(new));
    let (removed, added) = (Site::routine(0), Site::routine(1));
    let map = GroupId::map("doors", &Sha256Sortition);
    let founding = [old, new, removed, added, map].map(|it| site.is_founding(it));
    assert_eq!(founding, [true, false, true, false, false]);
    let begins = |group| match site.is_founding(group) {
        true => site.begin(group),
        false => GroupState::begin_later(&site, group, 0, 0),
    };
    let held = |group| match begins(group) {
        Some(GroupState::Devices(devices)) => devices.ids().collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(held(old), [NodeId(1), NodeId(2)]);
    assert_eq!(held(new), []);
    assert!(begins(added).is_some());
    let anew = site.with_generation(0);
    assert!([old, new, added].into_iter().all(|it| anew.is_founding(it)));
}

#[test]
fn the_next_generation_has_the_other_content_under_the_same_numbers() {
    let [one, two, three] = ["a", "b", "c"].map(|it| routine(101, it));
    let running = site().with_routine(one.clone()).unwrap();
    let running = running.with_routine(routine(103, "on")).unwrap();
    // Of another order of devices, with other clusters; without the routine that needs device 103.
    let nodes = [1, 2, 3, 6].map(|id| Node::new(id, at(id as i32)));
    let places = [(104, 5), (102, 0), (101, 3), (7, 1_000)];
    let places = places.map(|(id, x)| (NodeId(id), at(x)));
    let selection = Selection::new().with_failures(1);
    let wanted = Site::new(selection, nodes, places, 2).unwrap();
    let wanted = wanted.with_routine(two.clone()).unwrap();
    let wanted = wanted.with_routine(one).unwrap();
    let wanted = wanted.without_routine(1).unwrap();
    let wanted = wanted.with_routine(three.clone()).unwrap();
    let next = running.changed_to(&wanted).unwrap();
    assert_eq!(next.generation(), 1);
    assert_eq!(next.nodes(), wanted.nodes());
    assert_eq!(next.former_nodes(), [NodeId(4), NodeId(5)]);
    assert_eq!(devices(&next), devices(&wanted));
    // Device 7 joins the cluster with room, which has moved.
    let expected = [(0, vec![101, 102]), (1, vec![7, 104])];
    assert_eq!(clusters(&next), expected);
    assert!(next.routines().eq([(0, &two), (2, &three)]));
    assert!(next.is_founding(Site::routine(0)) && !next.is_founding(Site::routine(2)));
    let later = |generation| next.changed_to(&wanted.clone().with_generation(generation));
    let generations = [0, 1, 2, 9].map(|it| later(it).unwrap().generation());
    assert_eq!(generations, [2, 2, 2, 9]);
    let last = next.clone().with_generation(u32::MAX);
    let kind = "generations";
    let found = last.changed_to(&wanted).unwrap_err();
    assert_eq!(found, ConfigError::Exhausted { kind });
}

#[test]
fn the_number_of_a_removed_routine_is_refused_in_the_next_generation() {
    let running = site().with_routine(routine(101, "a")).unwrap();
    let wanted = running.clone();
    let running = running.without_routine(0).unwrap();
    let found = running.changed_to(&wanted).unwrap_err();
    let (routine, next) = (0, 1);
    assert_eq!(found, ConfigError::Removed { routine, next });
}

#[test]
fn settings_that_stay_are_named() {
    let limits = Limits::new;
    let selection = Selection::new().with_failures(1);
    let of_size = |cluster| Site::new(selection, super::nodes(), [], cluster).unwrap();
    let cases = [
        (site().with_origin(3), "origin", 3, 0),
        (
            site().with_frame_budget(900).unwrap(),
            "frame_budget",
            900,
            1_400,
        ),
        (of_size(3), "cluster", 3, 2),
        (site().with_limits(limits().with_queue(1)), "queue", 1, 64),
        (
            site().with_limits(limits().with_routines(1)),
            "routines",
            1,
            256,
        ),
        (
            site().with_limits(limits().with_watchers(1)),
            "watchers",
            1,
            64,
        ),
        (site().with_limits(limits().with_word(1)), "word", 1, 64),
    ];
    for (wanted, setting, found, running) in cases {
        let expected = ConfigError::Fixed {
            setting,
            found,
            running,
        };
        assert_eq!(site().changed_to(&wanted).unwrap_err(), expected);
    }
    let found = selection.with_policy(Policy::Uniform);
    let wanted = Site::new(found, super::nodes(), [], 2).unwrap();
    let running = selection;
    let expected = ConfigError::Selection { found, running };
    assert_eq!(site().changed_to(&wanted).unwrap_err(), expected);
}

#[test]
fn a_routine_that_is_sent_fits_into_a_frame() {
    let longest = |length: usize| {
        let rest = postcard::to_allocvec(&routine(101, "")).unwrap().len();
        // The length of a state of 128 bytes or more takes two bytes.
        let sent = routine(101, &"x".repeat(length - rest - 1));
        assert_eq!(postcard::to_allocvec(&sent).unwrap().len(), length);
        sent
    };
    let (fits, long) = (longest(1_210), longest(1_211));
    let expected = ConfigError::TooLong {
        routine: 0,
        length: 1_211,
        limit: 1_210,
    };
    // Nodes begin with it, and nothing is sent.
    let founding = site().with_routine(long.clone()).unwrap();
    let running = site().with_generation(1);
    let found = running.clone().with_routine(long.clone());
    assert_eq!(found.unwrap_err(), expected);
    assert_eq!(site().changed_to(&founding).unwrap_err(), expected);
    let changed = running.with_routine(fits.clone()).unwrap();
    let found = changed.clone().with_routine_changed(0, long);
    assert_eq!(found.unwrap_err(), expected);
    let found = changed.with_frame_budget(1_399).unwrap_err();
    assert!(matches!(found, ConfigError::TooLong { limit: 1_209, .. }));
    // It stays as it is.
    assert!(founding.changed_to(&founding).is_ok());
    let shorter = founding.clone().with_routine_changed(0, fits).unwrap();
    assert!(founding.changed_to(&shorter).is_ok());
    assert_eq!(shorter.changed_to(&founding).unwrap_err(), expected);
}

/// An edit by four numbers: what is refused changes nothing.
pub(super) fn edited(site: &Site, (which, id, number, x): (u8, u64, u32, i32)) -> Option<Site> {
    let device = NodeId(100 + id);
    let made = routine(device.0, &x.to_string());
    let site = site.clone();
    let interval = (x > 0).then(|| Span::secs(x.unsigned_abs().into()));
    let edited = match which % 9 {
        0 => site.with_device(device, at(x)),
        1 => site.without_device(device),
        2 => site.with_node(Node::new(id, at(x))),
        3 => site.without_node(NodeId(id)),
        4 => site.with_routine(made),
        5 => site.with_routine_changed(number, made),
        6 => site.without_routine(number),
        7 => site.with_wake_interval(device, interval),
        _ => {
            let generation = site.generation() + 1;
            Ok(site.with_generation(generation))
        }
    };
    edited.ok()
}

pub(super) fn edits() -> impl Strategy<Value = Vec<(u8, u64, u32, i32)>> {
    vec((any::<u8>(), 0..9_u64, 0..5_u32, -99..99), 0..40)
}

fn all(site: Site, edits: Vec<(u8, u64, u32, i32)>) -> Site {
    edits
        .into_iter()
        .fold(site, |site, it| edited(&site, it).unwrap_or(site))
}

/// The number that the next routine gets.
fn next_routine(site: &Site) -> u32 {
    let (device, place) = (NodeId(1), at(0));
    let site = site.clone().with_device(device, place).unwrap();
    let site = site.with_routine(routine(1, "on")).unwrap();
    site.routines().last().unwrap().0
}

/// Each device is in one cluster, each cluster has devices, and each group has a state to begin with.
fn check(site: &Site) {
    assert!(site.plan().is_ok());
    for (number, cluster) in site.clusters() {
        assert!(!cluster.devices.is_empty());
        let group = Some(Site::cluster(number));
        assert!(
            cluster
                .devices
                .iter()
                .all(|it| site.cluster_of(*it) == group)
        );
    }
    let mut ids = devices(site);
    ids.dedup_by_key(|it| it.0);
    assert_eq!(ids.len(), devices(site).len());
    for group in site.groups() {
        assert!(site.begin(group).is_some());
        assert!(!site.devices(group).is_empty());
    }
    for (number, definition) in site.routines() {
        let places = site.devices(Site::routine(number));
        assert_eq!(places.len(), definition.devices().len());
    }
    assert_eq!(Site::decode(&site.encode()).as_ref(), Ok(site));
}

proptest! {
    #[test]
    fn a_site_stays_consistent_and_numbers_are_used_once(edits in edits()) {
        let mut site = site();
        let mut gone = Vec::new();
        for edit in edits {
            let Some(next) = edited(&site, edit) else {
                continue;
            };
            check(&next);
            let groups: Vec<GroupId> = next.groups().collect();
            gone.extend(site.groups().filter(|it| !groups.contains(it)));
            prop_assert!(groups.iter().all(|it| !gone.contains(it)));
            site = next;
        }
    }

    #[test]
    fn the_next_generation_has_the_wanted_content_and_only_that(
        first in edits(),
        one in edits(),
        other in edits(),
    ) {
        // Both are from one site: what they removed may differ.
        let base = all(site(), first);
        let (running, wanted) = (all(base.clone(), one), all(base, other));
        let changed = running.changed_to(&wanted);
        let has = |number| running.definition(Site::routine(number)).is_some();
        let unused = next_routine(&running);
        let mut numbers = wanted.routines().map(|it| it.0);
        if let Some(routine) = numbers.find(|it| *it < unused && !has(*it)) {
            let next = unused.max(next_routine(&wanted));
            prop_assert_eq!(changed, Err(ConfigError::Removed { routine, next }));
            return Ok(());
        }
        let next = changed.unwrap();
        check(&next);
        prop_assert_eq!(next.nodes(), wanted.nodes());
        prop_assert_eq!(devices(&next), devices(&wanted));
        prop_assert_eq!(sleepers(&next), sleepers(&wanted));
        prop_assert!(next.routines().eq(wanted.routines()));
        prop_assert!(next.generation() > running.generation());
        prop_assert!(next.generation() >= wanted.generation());
        for (device, _) in devices(&running) {
            let (was, is) = (running.cluster_of(device), next.cluster_of(device));
            prop_assert!(is.is_none() || is == was);
        }
        prop_assert_eq!(running.changed_to(&wanted).unwrap().encode(), next.encode());
        // The number of the generation is all that a second change to it changes.
        let again = next.changed_to(&wanted).unwrap();
        prop_assert_eq!(again.with_generation(next.generation()), next);
    }
}
