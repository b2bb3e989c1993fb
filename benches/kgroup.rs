//! What it costs to choose groups: one among 100 nodes from nothing, and all of an epoch.

#![allow(clippy::expect_used, reason = "a bench of nothing ends")]

use core::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use selvedge_core::{NodeId, Sha256Sortition};
use selvedge_kgroup::{
    Chooser, Cluster, GroupId, Locality, Node, Place, Policy, Selection, Target, clusters,
};

const NEAR: Selection = Selection::new().with_policy(Policy::Near(Locality::for_spacing(1)));

/// A floor of devices, one apart.
fn place(at: usize) -> Place {
    let at = i32::try_from(at).expect("few devices");
    Place([at / 100, at % 100, 0])
}

fn node(at: usize) -> Node {
    Node::new(at as u64, place(at))
}

fn one(bench: &mut Criterion) {
    let nodes: Vec<Node> = (0..100).map(node).collect();
    let mut group = bench.benchmark_group("kgroup/one group among 100 nodes");
    for (name, config) in [("uniform", Selection::new()), ("near", NEAR)] {
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            let mut epoch = 0;
            bench.iter(|| {
                epoch += 1;
                let nodes = nodes.iter().copied();
                let chooser = Chooser::new(config, &Sha256Sortition, epoch, nodes);
                let target = Target {
                    id: GroupId(1),
                    place: Some(place(50)),
                    neighbours: &[],
                };
                black_box(chooser.map(|it| it.choose(target)))
            });
        });
    }
}

fn epoch(bench: &mut Criterion) {
    let devices: Vec<(NodeId, Place)> = (0..10_000)
        .map(|at| (NodeId(at as u64), place(at)))
        .collect();
    let all: Vec<Cluster> = clusters(devices, 400);
    let nodes: Vec<Node> = (0..10_000).filter(|at| at % 5 < 2).map(node).collect();
    let mut group = bench.benchmark_group("kgroup/an epoch of 10,000 devices and 4,000 nodes");
    group.sample_size(10);
    for (name, config) in [("uniform", Selection::new()), ("near", NEAR)] {
        group.bench_function(BenchmarkId::from_parameter(name), |bench| {
            let mut epoch = 0;
            bench.iter(|| {
                epoch += 1;
                let nodes = nodes.iter().copied();
                let chooser = Chooser::new(config, &Sha256Sortition, epoch, nodes).expect("sound");
                for (id, cluster) in (0..).zip(&all) {
                    let chosen = chooser.representative(cluster.devices.iter().copied());
                    let at = chosen.and_then(|it| usize::try_from(it.0).ok());
                    let target = Target {
                        id: GroupId(id),
                        place: at.map(place),
                        neighbours: &[],
                    };
                    black_box(chooser.choose(target).is_ok());
                }
            });
        });
    }
}

criterion_group!(benches, one, epoch);
criterion_main!(benches);
