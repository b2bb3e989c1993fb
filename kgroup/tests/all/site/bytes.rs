//! A site in bytes, and its digest.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use selvedge_core::{NodeId, Span};
use selvedge_groups::{Node, Place, Selection};
use selvedge_kgroup::devices::Limits;
use selvedge_kgroup::routines::Definition;
use selvedge_kgroup::{ConfigError, Site};
use serde::{Deserialize, Serialize};

use super::edits::{edited, edits};
use super::{routine, site};

/// The parts of an encoding, in their order.
#[derive(Clone, Serialize, Deserialize)]
struct Parts {
    origin: u32,
    generation: u32,
    selection: Selection,
    frame_budget: u16,
    limits: Limits,
    cluster_size: u32,
    nodes: Vec<Node>,
    former: Vec<NodeId>,
    devices: BTreeMap<NodeId, (u32, Place)>,
    routines: BTreeMap<u32, Definition>,
    next: (u32, u32),
    founding: (u32, u32),
}

fn parts(site: &Site) -> Parts {
    postcard::from_bytes(&site.encode()).unwrap()
}

fn decoded(parts: &impl Serialize) -> Result<Site, ConfigError> {
    Site::decode(&postcard::to_allocvec(parts).unwrap())
}

/// A site with a part of each kind, in a later generation.
fn running() -> Site {
    let site = site().with_routine(routine(103, "on")).unwrap();
    let site = site.with_origin(2).with_generation(5);
    let site = site.without_node(NodeId(4)).unwrap();
    let site = site.with_device(NodeId(1), Place([-1, 0, 0])).unwrap();
    site.with_routine(routine(1, "off")).unwrap()
}

#[test]
fn the_format_of_a_site() {
    let node = |id| Node::new(id, Place([id as i32, 0, 0]));
    let selection = Selection::new().with_failures(1);
    let devices = [(NodeId(9), Place([-1, 2, 0]))];
    let site = Site::new(selection, [1, 2, 3, 4].map(node), devices, 25).unwrap();
    let site = site.with_origin(7).with_generation(6);
    let site = site.without_node(NodeId(4)).unwrap();
    let nodes: [&[u8]; 4] = [
        &[3],
        &[1, 1, 2, 0, 0, 16],
        &[2, 1, 4, 0, 0, 16],
        &[3, 1, 6, 0, 0, 16],
    ];
    let parts: [&[u8]; 9] = [
        &[7, 6],
        // The selection, and 1,400 bytes.
        &[1, 0, 0, 248, 10],
        &[64, 128, 2, 64, 64],
        &[25],
        &nodes.concat(),
        &[1, 4],
        &[1, 9, 0, 1, 4, 0],
        // No routine.
        &[0],
        &[1, 0, 1, 0],
    ];
    assert_eq!(site.encode(), parts.concat());
    assert_eq!(Site::decode(&parts.concat()), Ok(site.clone()));
    // Wake intervals are behind the rest.
    let sleeps = site.with_wake_interval(NodeId(9), Some(Span(300)));
    let sleeps = sleeps.unwrap();
    let bytes = [&parts.concat()[..], &[1, 9, 172, 2]].concat();
    assert_eq!(sleeps.encode(), bytes);
    assert_eq!(Site::decode(&bytes), Ok(sleeps));
}

#[test]
fn wake_intervals_that_do_not_fit_are_refused() {
    let with = |more: &[u8]| Site::decode(&[&running().encode(), more].concat());
    assert!(with(&[1, 1, 5]).is_ok());
    let device = NodeId(1);
    let zero = with(&[1, 1, 0]).unwrap_err();
    assert!(matches!(zero, ConfigError::WakeInterval { device: of, .. } if of == device));
    let (kind, id) = ("device", 9);
    assert_eq!(with(&[1, 9, 5]), Err(ConfigError::Absent { kind, id }));
    // None, too few or too many bytes, another order, one device twice.
    for more in [
        &[0][..],
        &[1, 1],
        &[1, 1, 5, 0],
        &[2, 103, 5, 1, 5],
        &[2, 1, 5, 1, 5],
    ] {
        let found = with(more).unwrap_err();
        assert!(matches!(found, ConfigError::Encoding { .. }), "{more:?}");
    }
}

#[test]
fn a_site_is_the_same_after_it_was_encoded() {
    let sleeps = running().with_wake_interval(NodeId(1), Some(Span::secs(600)));
    for site in [site(), running(), sleeps.unwrap()] {
        assert_eq!(Site::decode(&site.encode()), Ok(site));
    }
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let good = parts(&running());
    assert_eq!(decoded(&good), Ok(running()));
    type Edit = fn(&mut Parts);
    let edits: [(&str, Edit); 15] = [
        ("cluster above next", |it| it.next.0 = 2),
        ("routine above next", |it| it.next.1 = 1),
        ("founding above next", |it| it.founding.0 = 4),
        ("founding above next", |it| it.founding.1 = 3),
        ("founding below next", |it| it.generation = 0),
        ("no room", |it| it.cluster_size = 0),
        ("order", |it| it.nodes.swap(0, 1)),
        ("twice", |it| it.nodes[1] = it.nodes[0]),
        ("former twice", |it| it.former.push(NodeId(4))),
        ("former is here", |it| it.former.push(NodeId(5))),
        ("former", |it| it.former.extend((100..164).map(NodeId))),
        ("no device", |it| it.devices.clear()),
        ("failures", |it| it.selection.failures = 16),
        ("few nodes", |it| it.nodes.truncate(2)),
        ("frame", |it| it.frame_budget = 144),
    ];
    for (what, edit) in edits {
        let mut parts = good.clone();
        edit(&mut parts);
        assert!(decoded(&parts).is_err(), "{what}");
    }
    let mut lacks = good.clone();
    lacks.devices.remove(&NodeId(103));
    let (routine, device) = (0, NodeId(103));
    assert_eq!(
        decoded(&lacks),
        Err(ConfigError::NoDevice { routine, device })
    );
    let mut long = good.clone();
    long.frame_budget = 200;
    let found = decoded(&long).unwrap_err();
    assert!(matches!(found, ConfigError::TooLong { routine: 1, .. }));
    let mut empty = good;
    empty.routines.get_mut(&0).unwrap().routine.steps.clear();
    let found = decoded(&empty).unwrap_err();
    assert!(matches!(found, ConfigError::Routine { routine: 0, .. }));
}

/// A list of devices with one id twice, or in another order.
#[test]
fn bytes_that_encode_would_not_write_are_refused() {
    let bytes = running().encode();
    let length = bytes.len() + 1;
    let longer = [bytes.clone(), vec![0]].concat();
    assert_eq!(Site::decode(&longer), Err(ConfigError::Encoding { length }));
    for to in 0..bytes.len() {
        assert!(Site::decode(&bytes[..to]).is_err(), "{to}");
    }
    let place = Place::default();
    let of = |ids: [u64; 2]| {
        let it = parts(&running());
        let devices = ids.map(|id| (NodeId(id), (0_u32, place))).to_vec();
        let nodes = (it.nodes, it.former);
        let head = (it.origin, it.generation, it.selection, it.frame_budget);
        let none = BTreeMap::<u32, Definition>::new();
        decoded(&(
            head,
            it.limits,
            it.cluster_size,
            nodes,
            devices,
            none,
            it.next,
            it.founding,
        ))
    };
    assert!(of([1, 2]).is_ok());
    assert!(matches!(of([2, 1]), Err(ConfigError::Encoding { .. })));
    assert!(matches!(of([1, 1]), Err(ConfigError::Encoding { .. })));
}

/// Nodes whose sites differ in any part would choose other groups, or other sites to follow.
#[test]
fn each_part_counts_in_the_digest() {
    let base = running();
    let smaller = {
        let mut parts = parts(&base);
        parts.cluster_size = 1;
        decoded(&parts).unwrap()
    };
    let sites = [
        base.clone().with_generation(6),
        base.clone().with_origin(3),
        base.clone().without_routine(1).unwrap(),
        // The next routine gets another number.
        base.clone()
            .with_routine(routine(1, "x"))
            .unwrap()
            .without_routine(2)
            .unwrap(),
        base.clone().with_device(NodeId(1), Place([0; 3])).unwrap(),
        base.clone().without_node(NodeId(5)).unwrap(),
        base.clone()
            .with_node(Node::new(4, Place([4, 0, 0])))
            .unwrap(),
        base.clone().with_limits(Limits::new().with_word(65)),
        base.clone().with_frame_budget(1_399).unwrap(),
        smaller,
        (base.clone().with_wake_interval(NodeId(1), Some(Span(1)))).unwrap(),
        (base.clone().with_wake_interval(NodeId(1), Some(Span(2)))).unwrap(),
        base,
    ];
    let mut digests = sites
        .each_ref()
        .map(|it| it.plan().unwrap().digest())
        .to_vec();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), sites.len());
}

/// Bytes are refused, or they are the encoding of what they are read as.
fn check(bytes: &[u8]) -> bool {
    let site = Site::decode(bytes);
    if let Ok(site) = &site {
        assert_eq!(site.encode(), bytes);
        assert!(site.plan().is_ok());
        assert!(site.groups().all(|it| site.begin(it).is_some()));
    }
    site.is_ok()
}

/// All bytes of an encoding, each with all values.
#[test]
fn a_changed_byte_is_refused_or_gives_another_site() {
    let sleeps = running().with_wake_interval(NodeId(1), Some(Span::secs(600)));
    let good = sleeps.unwrap().encode();
    let mut taken = 0;
    for at in 0..good.len() {
        let mut bytes = good.clone();
        for byte in 0..=u8::MAX {
            bytes[at] = byte;
            taken += u32::from(check(&bytes));
        }
    }
    assert!(taken > 1_000, "{taken}");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_are_the_encoding_of_a_site(bytes in vec(any::<u8>(), 0..200)) {
        check(&bytes);
    }

    #[test]
    fn any_bytes_in_a_site_are_refused_or_are_the_encoding_of_a_site(
        edits in edits(),
        at in any::<prop::sample::Index>(),
        bytes in vec(any::<u8>(), 0..20),
        over in 0..20_usize,
    ) {
        let made = edits.into_iter().fold(site(), |site, it| edited(&site, it).unwrap_or(site));
        let mut good = made.encode();
        let at = at.index(good.len());
        good.splice(at..(at + over).min(good.len()), bytes);
        check(&good);
    }
}
