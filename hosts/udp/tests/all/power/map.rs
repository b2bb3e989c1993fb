//! Changes of a map.

use selvedge_groups::store::Stored;
use tokio::time::timeout;

use super::Power;
use crate::bench::{Node, PATIENCE};

/// The number of changes before the nodes would stop by themselves.
const CHANGES: u64 = 3;

/// The first change, without a power cut.
pub(super) async fn begin(nodes: &[Node]) {
    let stored = timeout(PATIENCE, nodes[0].map("doors").put("front", b"shut")).await;
    assert_eq!(stored.unwrap(), Ok(Stored::Done { version: 1 }));
}

/// Changes an entry again and again, until the power is cut. Returns the number of changes that
/// were confirmed, of which there is one already.
pub(super) async fn until_cut(nodes: &[Node], power: &Power) -> u64 {
    let mut confirmed = 1;
    while confirmed < CHANGES
        && let Some(node) = nodes.get(confirmed as usize % 3)
    {
        let doors = node.map("doors");
        tokio::select! {
            stored = doors.put("front", b"shut") => match stored {
                Ok(stored) => {
                    confirmed += 1;
                    assert_eq!(stored, Stored::Done { version: confirmed });
                }
                Err(why) => assert!(power.is_cut(), "{why}"),
            },
            () = power.cut() => break,
        }
    }
    assert!(power.is_cut() || confirmed == CHANGES);
    confirmed
}

/// Checks that no confirmed change is lost, and goes on.
pub(super) async fn check(nodes: &[Node], nth: usize, confirmed: u64) {
    let doors = nodes[nth % 3].map("doors");
    let entry = timeout(PATIENCE, doors.get("front")).await.unwrap();
    let version = entry.unwrap().map_or(0, |it| it.version);
    // The change in flight may have been decided.
    let expected = confirmed..=CHANGES.min(confirmed + 1);
    assert!(
        expected.contains(&version),
        "cut at {nth}: {version}, {expected:?}"
    );
    let doors = nodes[nth / 2 % 3].map("doors");
    let stored = timeout(PATIENCE, doors.put("front", b"open")).await;
    let version = version + 1;
    assert_eq!(
        stored.unwrap(),
        Ok(Stored::Done { version }),
        "cut at {nth}"
    );
}
