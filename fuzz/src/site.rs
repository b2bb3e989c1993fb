//! Sites of any size and shape, and the groups that are chosen from their nodes.

use arbitrary::{Arbitrary, Result, Unstructured};
use selvedge_core::NodeId;
use selvedge_groups::{Leader, Locality, Node, Place, Policy, Selection, Weight};
use selvedge_kgroup::{GroupState, Site};

/// The most nodes, and the most devices: a list may be long, and an input should be short.
const MOST: usize = 64;

/// Reads `data` as a site: settings, nodes and devices with places, and the number of devices that
/// share a group; and as the encoding of a site.
///
/// For any bytes, the site is refused with an error, or it has a plan, and:
/// - its encoding is decoded as the same site, and a site that is decoded has the encoding from which it came;
/// - each device is in one group of the site;
/// - a group that can be chosen has 2f + 1 different nodes of the site, and the order of the nodes does not
///   change it.
///
/// # Panics
/// When one of these does not hold.
pub fn site(data: &[u8]) {
    if let Ok(site) = Site::decode(data) {
        assert_eq!(site.encode(), data, "another encoding");
        assert!(site.plan().is_ok(), "a decoded site without a plan");
    }
    let _short = read(&mut Unstructured::new(data));
}

fn read(bytes: &mut Unstructured<'_>) -> Result<()> {
    let selection = selection(bytes)?;
    let count = bytes.int_in_range(0..=MOST)?;
    let nodes = (0..count)
        .map(|_| node(bytes))
        .collect::<Result<Vec<_>>>()?;
    let count = bytes.int_in_range(0..=MOST)?;
    let devices = (0..count)
        .map(|_| Ok((NodeId(number(bytes)?), place(bytes)?)))
        .collect::<Result<Vec<_>>>()?;
    let cluster = match bool::arbitrary(bytes)? {
        true => bytes.int_in_range(0..=8)?,
        false => usize::arbitrary(bytes)?,
    };
    let budget = u16::arbitrary(bytes)?;
    let site = Site::new(
        selection,
        nodes.iter().copied(),
        devices.iter().copied(),
        cluster,
    )
    .and_then(|it| it.with_frame_budget(budget));
    let Ok(site) = site else {
        return Ok(());
    };
    assert!(site.plan().is_ok(), "a site without a plan");
    assert_eq!(Site::decode(&site.encode()).as_ref(), Ok(&site));
    for (device, _) in devices {
        let group = site.cluster_of(device);
        let is_known = group.is_some_and(|it| site.groups().any(|known| known == it));
        assert!(is_known, "{device} is in no group");
        let clusters = site.clusters();
        let holders = clusters.filter(|it| it.1.devices.contains(&device)).count();
        assert_eq!(holders, 1, "{device} is in several groups");
    }
    let epoch = u64::arbitrary(bytes)?;
    let Ok(plan) = site.plan() else {
        return Ok(());
    };
    let mut backwards = site.nodes().to_vec();
    backwards.reverse();
    let [one, other] = [site.nodes().to_vec(), backwards]
        .map(|nodes| plan.choose::<GroupState>(&site, epoch, nodes, site.groups()));
    assert_eq!(one, other, "the order of nodes counts");
    assert!(
        one.iter().map(|it| it.0).eq(site.groups()),
        "each group is chosen once"
    );
    for (_, chosen) in one {
        assert!(
            chosen.is_ok(),
            "a site with enough nodes has no group: {chosen:?}"
        );
        let Ok(mut members) = chosen else {
            continue;
        };
        let count = members.len();
        members.sort_unstable();
        members.dedup();
        assert_eq!(count, members.len(), "a node is in a group twice");
        assert_eq!(count, 2 * usize::from(selection.failures) + 1);
        assert!(
            members
                .iter()
                .all(|it| site.nodes().iter().any(|node| node.id == *it))
        );
    }
    Ok(())
}

/// Settings of which about half are out of range.
fn selection(bytes: &mut Unstructured<'_>) -> Result<Selection> {
    let mut selection = Selection::new();
    selection.failures = match bool::arbitrary(bytes)? {
        true => bytes.int_in_range(0..=3)?,
        false => u8::arbitrary(bytes)?,
    };
    if bool::arbitrary(bytes)? {
        let mut locality = Locality::for_spacing(u32::arbitrary(bytes)?);
        if bool::arbitrary(bytes)? {
            locality.functions = u8::arbitrary(bytes)?;
            locality.tables = u8::arbitrary(bytes)?;
            locality.width = u32::arbitrary(bytes)?;
        }
        selection.policy = Policy::Near(locality);
    }
    if bool::arbitrary(bytes)? {
        selection.leader = Leader::Nearest;
    }
    Ok(selection)
}

fn node(bytes: &mut Unstructured<'_>) -> Result<Node> {
    let id = NodeId(number(bytes)?);
    let place = bool::arbitrary(bytes)?.then(|| place(bytes)).transpose()?;
    let weight = Weight(u8::arbitrary(bytes)?);
    Ok(Node { id, place, weight })
}

/// An id: near 0, where two are equal often, or anywhere.
fn number(bytes: &mut Unstructured<'_>) -> Result<u64> {
    match bool::arbitrary(bytes)? {
        true => Ok(u8::arbitrary(bytes)?.into()),
        false => u64::arbitrary(bytes),
    }
}

fn place(bytes: &mut Unstructured<'_>) -> Result<Place> {
    Ok(Place(match bool::arbitrary(bytes)? {
        true => <[i8; 3]>::arbitrary(bytes)?.map(i32::from),
        false => <[i32; 3]>::arbitrary(bytes)?,
    }))
}
