//! Devices in clusters.

use proptest::prelude::*;
use selvedge_core::NodeId;
use selvedge_groups::{Cluster, Place, clusters};

use crate::{grid, ids};

fn devices(places: &[Place]) -> Vec<(NodeId, Place)> {
    (1..).map(NodeId).zip(places.iter().copied()).collect()
}

fn around(x: i32, y: i32) -> [Place; 4] {
    [(0, 0), (2, 0), (0, 2), (2, 2)].map(|(right, up)| Place([x + right, y + up, 0]))
}

#[test]
fn heaps_of_devices_become_clusters() {
    let places = [around(0, 0), around(100, 0), around(0, -100)].concat();
    let found = clusters(devices(&places), 3);
    let cluster = |devices: &[u64], centre| Cluster {
        devices: ids(devices),
        centre,
    };
    assert_eq!(
        found,
        [
            cluster(&[1, 2, 3, 4], Place([1, 1, 0])),
            cluster(&[9, 10, 11, 12], Place([1, -99, 0])),
            cluster(&[5, 6, 7, 8], Place([101, 1, 0])),
        ]
    );
}

#[test]
fn fewer_places_than_clusters_give_fewer() {
    assert_eq!(clusters([], 3), []);
    assert_eq!(clusters(devices(&[Place([1, 2, 3])]), 0), []);
    let same = clusters(devices(&[Place([7; 3]); 5]), 3);
    assert_eq!(same.len(), 1);
    assert_eq!(same[0].devices, ids(&[1, 2, 3, 4, 5]));
    let extremes = [Place([i32::MIN; 3]), Place([i32::MAX; 3]), Place([-1; 3])];
    assert_eq!(clusters(devices(&extremes), 5).len(), 3);
    // Rounded down: between -1 and -2.
    let two = clusters(devices(&[Place([-1; 3]), Place([-2; 3])]), 1);
    assert_eq!(two[0].centre, Place([-2; 3]));
}

#[test]
fn of_two_devices_with_one_id_the_last_counts() {
    let twice = [(NodeId(1), Place([9; 3])), (NodeId(1), Place([4; 3]))];
    assert_eq!(clusters(twice, 2)[0].centre, Place([4; 3]));
}

/// 250 devices in 25 clusters, as table 3 has them: 10 each on average.
#[test]
fn a_grid_is_parted_into_clusters_of_like_size() {
    let found = clusters(devices(&grid(250, 1)), 25);
    let sizes: Vec<usize> = found.iter().map(|it| it.devices.len()).collect();
    assert!((22..=25).contains(&sizes.len()), "{sizes:?}");
    assert!(sizes.iter().all(|it| (3..=25).contains(it)), "{sizes:?}");
}

proptest! {
    #[test]
    fn each_device_is_in_the_cluster_of_the_nearest_centre(
        places in prop::collection::vec(prop::array::uniform3(-30..30_i32).prop_map(Place), 0..60),
        count in 0..9_usize,
    ) {
        let devices = devices(&places);
        let found = clusters(devices.clone(), count);
        prop_assert!(found.len() <= count);
        let reversed: Vec<_> = devices.iter().rev().copied().collect();
        prop_assert_eq!(&found, &clusters(reversed, count));
        let mut all: Vec<NodeId> = found.iter().flat_map(|it| it.devices.clone()).collect();
        all.sort_unstable();
        let expected = if count == 0 { 0 } else { devices.len() };
        prop_assert_eq!(all.len(), expected);
        all.dedup();
        prop_assert_eq!(all.len(), expected);
        for cluster in &found {
            prop_assert!(cluster.devices.is_sorted() && !cluster.devices.is_empty());
        }
    }
}
