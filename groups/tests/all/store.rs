//! Maps of the application.

use selvedge_core::Member;
use selvedge_groups::store::{
    BYTES_MAX, CLIENTS_MAX, Change, Decided, ENTRIES_MAX, Expected, Operation, Outcome, Store,
    Stored,
};
use selvedge_replica::State;

fn operation(key: &str, expected: Expected, value: Option<&[u8]>) -> Operation {
    Operation::set(key, expected, value.map(|it| it.iter().copied().collect()))
}

fn stored(decided: &Decided) -> Stored {
    let Outcome::Asked { stored, .. } = decided.outcome else {
        panic!("{decided:?}");
    };
    stored
}

/// Node 1 asks, one change after another.
struct Asker {
    store: Store,
    number: u64,
}

impl Asker {
    fn new() -> Self {
        Self {
            store: Store::default(),
            number: 0,
        }
    }

    fn change(&mut self, operation: Operation) -> Stored {
        self.number += 1;
        let change = Change::Asked {
            by: Member::new(1, 0),
            number: self.number,
            operation,
        };
        stored(&self.store.apply(&change))
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Stored {
        self.change(operation(key, Expected::Any, Some(value)))
    }
}

#[test]
fn an_entry_is_changed_only_where_it_is_as_expected() {
    let mut map = Asker::new();
    let absent = |value| operation("lamp", Expected::Absent, value);
    let at = |version, value| operation("lamp", Expected::Version(version), value);

    assert_eq!(
        map.change(at(1, Some(b"on"))),
        Stored::Mismatch { found: None }
    );
    assert_eq!(map.change(absent(Some(b"on"))), Stored::Done { version: 1 });
    assert_eq!(
        map.change(absent(Some(b"off"))),
        Stored::Mismatch { found: Some(1) }
    );
    assert_eq!(map.put("door", b"shut"), Stored::Done { version: 2 });
    assert_eq!(
        map.change(at(2, Some(b"off"))),
        Stored::Mismatch { found: Some(1) }
    );
    assert_eq!(map.change(at(1, Some(b"off"))), Stored::Done { version: 3 });
    assert_eq!(map.change(at(1, None)), Stored::Mismatch { found: Some(3) });
    assert_eq!(map.change(at(3, None)), Stored::Done { version: 4 });
    assert_eq!(map.change(absent(None)), Stored::Done { version: 4 });
    assert_eq!(map.store.get("lamp"), None);
    assert_eq!(map.store.entries().count(), 1);
}

#[test]
fn a_change_is_done_once_and_answered_alike_each_time() {
    let mut store = Store::default();
    let [early, late] = [Member::new(1, 0), Member::new(1, 1)];
    let change = |by, number, value: &[u8]| Change::Asked {
        by,
        number,
        operation: operation("count", Expected::Any, Some(value)),
    };
    let first = change(early, 1, b"1");
    let once = store.apply(&first);
    assert_eq!(store.apply(&first).outcome, once.outcome);
    assert_eq!(stored(&once), Stored::Done { version: 1 });

    store.apply(&change(early, 2, b"2"));
    assert_eq!(stored(&store.apply(&first)), Stored::Over);
    store.apply(&change(late, 1, b"3"));
    for over in [first, change(early, 3, b"4")] {
        assert_eq!(
            stored(&store.apply(&over)),
            Stored::Over,
            "its life is over"
        );
    }
    assert_eq!(*store.get("count").unwrap().value, *b"3");
    assert_eq!(store.version(), 3);
}

#[test]
fn the_node_that_was_idle_for_longest_is_forgotten_first() {
    let mut store = Store::default();
    let change = |id, number| Change::Asked {
        by: Member::new(id, 0),
        number,
        operation: operation("x", Expected::Any, Some(b"")),
    };
    for id in 0..CLIENTS_MAX as u64 {
        store.apply(&change(id, 1));
    }
    store.apply(&change(0, 2));
    store.apply(&change(1_000, 1));
    let version = store.version();
    for (id, number) in [(0, 2), (2, 1), (1_000, 1)] {
        store.apply(&change(id, number));
    }
    assert_eq!(store.version(), version, "these are remembered");
    store.apply(&change(1, 1));
    assert_eq!(store.version(), version + 1, "this one is not");
}

#[test]
fn a_map_without_room_refuses_and_has_room_again() {
    let mut map = Asker::new();
    for at in 0..ENTRIES_MAX {
        let stored = map.put(&at.to_string(), b"");
        assert!(matches!(stored, Stored::Done { .. }));
    }
    assert_eq!(map.put("one more", b""), Stored::Full);
    assert!(matches!(map.put("0", b"more"), Stored::Done { .. }));
    map.change(operation("1", Expected::Any, None));
    assert!(matches!(map.put("one more", b""), Stored::Done { .. }));

    let mut map = Asker::new();
    let half = vec![0; BYTES_MAX / 2 - 1];
    assert!(matches!(map.put("a", &half), Stored::Done { .. }));
    assert!(matches!(map.put("b", &half), Stored::Done { .. }));
    assert_eq!(map.put("c", b""), Stored::Full);
    assert!(
        matches!(map.put("b", &half), Stored::Done { .. }),
        "it takes no more than before"
    );
    assert_eq!(map.put("b", &[&*half, b"1"].concat()), Stored::Full);
    map.change(operation("a", Expected::Any, None));
    assert!(matches!(map.put("c", b"1"), Stored::Done { .. }));
}
