use proptest::prelude::*;
use selvedge_sim::network::{
    Link, NetworkError, PAPER_CLUSTERS, Point, Relays, Square, Topology, TopologyError,
};

use crate::network::machines::{Ask, line, member, quiet, received};

/// All pairs by Floyd and Warshall, over the nodes that `passes` lets relay.
fn brute_force(topology: &Topology, passes: impl Fn(usize) -> bool) -> Vec<Vec<Option<u16>>> {
    let n = topology.len();
    let mut hops = vec![vec![None; n]; n];
    for (a, row) in hops.iter_mut().enumerate() {
        for b in topology.neighbours(a) {
            row[b] = Some(1);
        }
        row[a] = Some(0);
    }
    for via in (0..n).filter(|&via| passes(via)) {
        for a in 0..n {
            for b in 0..n {
                if let (Some(x), Some(y)) = (hops[a][via], hops[via][b])
                    && hops[a][b].is_none_or(|old| x + y < old)
                {
                    hops[a][b] = Some(x + y);
                }
            }
        }
    }
    hops
}

fn points() -> impl Strategy<Value = Vec<Point>> {
    let point = (0_u32..6_000, 0_u32..6_000).prop_map(|(x, y)| Point::new(x, y));
    proptest::collection::vec(point, 1..24)
}

fn neighbours_by_definition(points: &[Point], range: u32) -> Vec<Vec<usize>> {
    let near = |a: &Point, b: &Point| {
        let (dx, dy) = (u64::from(a.x.abs_diff(b.x)), u64::from(a.y.abs_diff(b.y)));
        dx * dx + dy * dy <= u64::from(range).pow(2)
    };
    (0..points.len())
        .map(|a| {
            (0..points.len())
                .filter(|&b| a != b && near(&points[a], &points[b]))
                .collect()
        })
        .collect()
}

proptest! {
    #[test]
    fn range_decides_who_is_a_neighbour_also_after_moves(
        mut points in points(),
        range in 1_u32..4_000,
        moves in proptest::collection::vec((0_usize..24, 0_u32..6_000, 0_u32..6_000), 0..8),
    ) {
        let mut topology = Topology::placed(points.clone(), range).unwrap();
        for (node, x, y) in moves {
            let node = node % points.len();
            points[node] = Point::new(x, y);
            topology.move_to(node, points[node]).unwrap();
        }
        let expected = neighbours_by_definition(&points, range);
        for (node, expected) in expected.iter().enumerate() {
            prop_assert_eq!(&topology.neighbours(node).collect::<Vec<_>>(), expected);
            prop_assert_eq!(topology.degree(node), expected.len());
        }
        prop_assert_eq!(&topology, &Topology::placed(points, range).unwrap());
    }

    #[test]
    fn paths_are_shortest(points in points(), range in 500_u32..4_000) {
        let topology = Topology::placed(points, range).unwrap();
        let expected = brute_force(&topology, |_| true);
        let mut network = quiet(1, topology.clone(), Link::default());
        for (a, row) in expected.iter().enumerate() {
            prop_assert_eq!(&topology.hops_from(a), row);
            for (b, &hops) in row.iter().enumerate() {
                prop_assert_eq!(network.hops(a, b), hops, "from {} to {}", a, b);
            }
        }
        let connected = expected.iter().flatten().all(Option::is_some);
        prop_assert_eq!(topology.is_connected(), connected);
    }

    #[test]
    fn paths_avoid_what_is_down_and_the_other_side(
        points in points(),
        range in 500_u32..4_000,
        down in proptest::collection::vec(any::<bool>(), 24),
        side in proptest::collection::vec(any::<bool>(), 24),
    ) {
        let topology = Topology::placed(points, range).unwrap();
        let n = topology.len();
        let mut network = quiet(1, topology.clone(), Link::default());
        // Asked earlier, so that the remembered paths are void.
        let before = brute_force(&topology, |_| true);
        for (a, row) in before.iter().enumerate() {
            prop_assert_eq!(network.hops(a, n - 1), row[n - 1]);
        }
        for node in (0..n).filter(|&node| down[node]) {
            network.crash(node).unwrap();
        }
        let expected = brute_force(&topology, |via| !down[via]);
        for (a, row) in expected.iter().enumerate() {
            for (b, &hops) in row.iter().enumerate() {
                prop_assert_eq!(network.hops(a, b), hops, "from {} to {}", a, b);
            }
        }
        network.set_relays(Relays::All);
        for (a, row) in before.iter().enumerate() {
            prop_assert_eq!(network.hops(a, 0), row[0]);
        }
        let group: Vec<usize> = (0..n).filter(|&node| side[node]).collect();
        network.partition(&[group]).unwrap();
        let edges: Vec<_> = (0..n)
            .flat_map(|a| topology.neighbours(a).map(move |b| (a, b)))
            .filter(|&(a, b)| side[a] == side[b])
            .collect();
        let expected = brute_force(&Topology::from_edges(n, &edges).unwrap(), |_| true);
        for (a, row) in expected.iter().enumerate() {
            for (b, &hops) in row.iter().enumerate() {
                prop_assert_eq!(network.hops(a, b), hops, "from {} to {}", a, b);
            }
        }
        network.heal();
        for (a, row) in before.iter().enumerate() {
            prop_assert_eq!(network.hops(a, 0), row[0]);
        }
    }
}

#[test]
fn a_full_mesh_is_one_hop_wide() {
    let mesh = Topology::full_mesh(4).unwrap();
    assert_eq!(mesh.neighbours(1).collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(mesh.hops_from(1), [Some(1), Some(0), Some(1), Some(1)]);
    assert_eq!(
        (mesh.degree(1), mesh.degree(4), mesh.hops(0, 4)),
        (3, 0, None)
    );
    assert_eq!((mesh.distance(0, 1), mesh.is_connected()), (None, true));
    let mut network = quiet(1, mesh, Link::default());
    assert_eq!((network.hops(0, 3), network.hops(3, 3)), (Some(1), Some(0)));
    assert_eq!((network.hops(0, 4), network.hops(9, 0)), (None, None));
}

#[test]
fn the_papers_topologies_are_connected_and_repeatable() {
    for seed in 0..20 {
        let random = Topology::random_geometric(49, 15_000, 4_000, seed).unwrap();
        assert!(random.is_connected() && random.len() == 49, "seed {seed}");
        let again = Topology::random_geometric(49, 15_000, 4_000, seed).unwrap();
        assert_eq!(random, again, "seed {seed}");
        let clusters = Topology::clusters(&PAPER_CLUSTERS, 4_000, seed).unwrap();
        assert!(clusters.is_connected(), "seed {seed}");
        let mut node = 0;
        for square in PAPER_CLUSTERS {
            for _ in 0..square.nodes {
                let point = clusters.point(node).unwrap();
                assert!((square.corner.x..=square.corner.x + 5_000).contains(&point.x));
                assert!((square.corner.y..=square.corner.y + 5_000).contains(&point.y));
                node += 1;
            }
        }
        assert_eq!(node, 49);
    }
    let other = Topology::random_geometric(49, 15_000, 4_000, 1).unwrap();
    assert_ne!(
        other,
        Topology::random_geometric(49, 15_000, 4_000, 2).unwrap()
    );
}

#[test]
fn a_topology_that_cannot_be_is_refused() {
    assert_eq!(
        Topology::full_mesh(0),
        Err(TopologyError::Size { nodes: 0 })
    );
    let many = Topology::MAX_NODES + 1;
    assert_eq!(
        Topology::full_mesh(many),
        Err(TopologyError::Size { nodes: many })
    );
    let huge = Topology::grid(u32::MAX, u32::MAX, 1, 1);
    assert!(matches!(huge, Err(TopologyError::Size { .. })));
    assert_eq!(
        Topology::grid(3, 1, u32::MAX, 1),
        Err(TopologyError::TooFar)
    );
    let edge = Err(TopologyError::Edge {
        a: 1,
        b: 2,
        nodes: 2,
    });
    assert_eq!(Topology::from_edges(2, &[(0, 1), (1, 2)]), edge);
    assert!(Topology::from_edges(2, &[(1, 1)]).is_err());
    let sparse = Topology::random_geometric(10, 1_000_000, 1, 1);
    assert_eq!(
        sparse,
        Err(TopologyError::NotConnected {
            tries: 1_000,
            nodes: 10,
            range: 1
        })
    );
    let beyond = Square {
        nodes: 1,
        corner: Point::new(1, 0),
        side: u32::MAX,
    };
    assert_eq!(
        Topology::clusters(&[beyond], 1, 1),
        Err(TopologyError::TooFar)
    );
    let mut mesh = Topology::full_mesh(2).unwrap();
    assert!(mesh.move_to(0, Point::new(1, 1)).is_err());
}

#[test]
fn a_line_of_many_hops_is_counted_to_its_end() {
    let mut network = quiet(1, line(2_000), Link::default());
    assert_eq!(network.hops(0, 1_999), Some(1_999));
}

#[test]
fn a_node_that_moves_finds_other_neighbours() {
    let points = vec![Point::new(0, 0), Point::new(1_000, 0), Point::new(9_000, 0)];
    let mut network = quiet(1, Topology::placed(points, 1_000).unwrap(), Link::default());
    assert_eq!((network.hops(0, 1), network.hops(0, 2)), (Some(1), None));
    network.move_to(2, Point::new(2_000, 0)).unwrap();
    assert_eq!(network.hops(0, 2), Some(2));
    assert_eq!(network.topology().distance(0, 2), Some(2_000));
    network.command(0, Ask::Say(member(2), 5)).unwrap();
    network.run_for(selvedge_core::Span::secs(1));
    assert_eq!(received(&mut network), [(2, 5)]);
    let nowhere = network.move_to(3, Point::new(0, 0));
    assert_eq!(nowhere, Err(NetworkError::NoSuchNode { node: 3, nodes: 3 }));
}

#[test]
fn distances_round_down_and_reach_across_the_whole_area() {
    let far = Point::new(u32::MAX, u32::MAX);
    let topology = Topology::placed(vec![Point::new(0, 0), far, Point::new(1, 1)], 1).unwrap();
    assert_eq!(topology.distance(0, 2), Some(1));
    // 2^32 - 1 times the root of 2, which does not fit 32 bits.
    assert_eq!(topology.distance(0, 1), Some(6_074_000_998));
}

#[test]
fn an_edge_given_twice_counts_once() {
    let topology = Topology::from_edges(3, &[(0, 2), (0, 1), (1, 0)]).unwrap();
    assert_eq!(topology.neighbours(0).collect::<Vec<_>>(), [1, 2]);
}
