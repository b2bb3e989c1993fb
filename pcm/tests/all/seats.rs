//! Followers that keep their seat, and followers that get another one.

use std::collections::BTreeMap;

use selvedge_core::NodeId;
use selvedge_pcm::{Attachment, Tables, Update};
use selvedge_replica::State as _;

use super::sample::{follower, tables, units};

/// The seat of each follower.
fn seats(tables: &Tables) -> BTreeMap<u64, (usize, usize)> {
    let units = units(tables).into_iter().enumerate();
    let seats = units.flat_map(|(unit, members)| {
        let members = members.into_iter().enumerate();
        members.map(move |(place, it)| (it.id.0, (unit, place)))
    });
    seats.collect()
}

/// Followers report these availabilities, and units are formed again. Returns the followers with another
/// seat then.
fn moved(tables: &mut Tables, reported: &[(u64, u32)]) -> Vec<u64> {
    let before = seats(tables);
    for &(id, active) in reported {
        let number = tables.follower(NodeId(id)).unwrap().number + 1;
        tables.apply(&Update::Attach(Attachment {
            number,
            ..follower(id, active)
        }));
    }
    let after = tables.clustered();
    tables.apply(&Update::Cluster { after });
    let now = seats(tables).into_iter();
    let moved = now.filter(|(id, seat)| before[id] != *seat);
    moved.map(|it| it.0).collect()
}

#[test]
fn a_follower_keeps_its_seat_while_its_class_stays() {
    // Orchestrators are 16 to 19, performant 8 to 15.
    let mut tables = tables((0..20).map(|id| (id, 1_000 * id as u32)));
    // The last of each class is nearly the first one.
    let nearly = [(0, 6_500), (8, 14_500), (16, 18_500)];
    assert_eq!(moved(&mut tables, &nearly), [0_u64; 0]);
    // An orchestrator is hardly there: one of each class takes a place that is left.
    assert_eq!(moved(&mut tables, &[(16, 0)]), [7, 15, 16]);
    // Better than a performant one by half a percent.
    assert_eq!(moved(&mut tables, &[(6, 7_500)]), [0_u64; 0]);
    assert_eq!(moved(&mut tables, &[(6, 9_500)]), [6, 7]);
}
