//! The crate's own encoding is postcard's, in what it takes and in what it refuses.

#![cfg(feature = "serde")]

use proptest::prelude::*;
use selvedge_core::wire::{Envelope, List, Malformed, NotWritten, decode, encode};
use selvedge_core::{Delta, Member, NodeId, Span};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// All that a message may be made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Anything {
    Nothing,
    Unit(()),
    Numbers(bool, u8, u16, u32, u64),
    Named {
        option: Option<Member>,
        nested: Option<Option<u16>>,
        tuple: (NodeId, Span),
    },
    Bytes([u8; 2]),
    Text(String),
    Members(List<Member, 2>),
    Lists(Vec<Vec<Option<bool>>>),
    Delta(Delta),
    Mark(Mark),
    Inner(Box<Anything>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Mark;

fn anything() -> impl Strategy<Value = Anything> {
    let member = || (any::<u64>(), any::<u32>()).prop_map(|(id, life)| Member::new(id, life));
    let leaf = prop_oneof![
        Just(Anything::Nothing),
        Just(Anything::Unit(())),
        Just(Anything::Mark(Mark)),
        any::<(bool, u8, u16, u32, u64)>()
            .prop_map(|(a, b, c, d, e)| Anything::Numbers(a, b, c, d, e)),
        (
            proptest::option::of(member()),
            any::<(Option<Option<u16>>, u64, u64)>()
        )
            .prop_map(|(option, (nested, id, span))| Anything::Named {
                option,
                nested,
                tuple: (NodeId(id), Span(span)),
            }),
        any::<[u8; 2]>().prop_map(Anything::Bytes),
        any::<String>().prop_map(Anything::Text),
        proptest::collection::vec(member(), 0..200)
            .prop_map(|it| Anything::Members(it.into_iter().collect())),
        any::<Vec<Vec<Option<bool>>>>().prop_map(Anything::Lists),
        member().prop_map(|it| Anything::Delta(Delta::Suspected(it))),
    ];
    leaf.prop_recursive(3, 8, 1, |inner| {
        inner.prop_map(|it| Anything::Inner(Box::new(it)))
    })
}

/// What postcard reads from these bytes, and nothing behind it.
fn by_postcard<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (message, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(message)
}

proptest! {
    #[test]
    fn a_message_is_written_as_postcard_writes_it_and_read_again(message in anything()) {
        let expected = postcard::to_allocvec(&message).unwrap();
        let len = expected.len();
        let mut bytes = vec![0; len + 3];
        prop_assert_eq!(encode(&message, &mut bytes), Ok(len));
        prop_assert_eq!(&bytes[..len], &expected);
        prop_assert_eq!(&bytes[len..], [0; 3]);
        prop_assert_eq!(decode(&expected), Ok(message.clone()));
        for room in [0, len / 2, len - 1] {
            let refused = encode(&message, &mut bytes[..room]);
            prop_assert_eq!(refused, Err(NotWritten::TooLong { len, room }));
            prop_assert_eq!(decode::<Anything>(&expected[..room]), Err(Malformed));
        }
        bytes[..len].copy_from_slice(&expected);
        prop_assert_eq!(decode::<Anything>(&bytes[..=len]), Err(Malformed));
    }

    #[test]
    fn bytes_of_any_kind_are_read_and_refused_as_postcard_does(
        bytes in proptest::collection::vec(any::<u8>(), 0..12),
        small in proptest::collection::vec(0_u8..12, 0..12),
        message in anything(),
        places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        prop_assert_eq!(decode(&bytes).ok(), by_postcard::<Anything>(&bytes));
        prop_assert_eq!(decode(&small).ok(), by_postcard::<Anything>(&small));
        prop_assert_eq!(
            decode(&bytes).ok(),
            by_postcard::<Envelope<(u16, u32, u64)>>(&bytes)
        );
        // A message with a few bytes changed.
        let mut spoilt = postcard::to_allocvec(&message).unwrap();
        for (place, byte) in places {
            let at = place.index(spoilt.len());
            spoilt[at] = byte;
        }
        prop_assert_eq!(decode(&spoilt).ok(), by_postcard::<Anything>(&spoilt));
    }
}

/// Each number has a longest form, with bits of its own in the last byte.
#[test]
fn a_number_of_too_many_bits_is_refused() {
    let check = |len: usize, last: u8, wanted: [bool; 3]| {
        let mut bytes = vec![0x80; len - 1];
        bytes.push(last);
        let read = [
            decode::<u16>(&bytes).is_ok(),
            decode::<u32>(&bytes).is_ok(),
            decode::<u64>(&bytes).is_ok(),
        ];
        assert_eq!(read, wanted, "{bytes:?}");
        let theirs = [
            by_postcard::<u16>(&bytes).is_some(),
            by_postcard::<u32>(&bytes).is_some(),
            by_postcard::<u64>(&bytes).is_some(),
        ];
        assert_eq!(read, theirs, "{bytes:?}");
    };
    check(2, 0, [true; 3]);
    check(3, 3, [true; 3]);
    check(3, 4, [false, true, true]);
    check(4, 0, [false, true, true]);
    check(5, 15, [false, true, true]);
    check(5, 16, [false, false, true]);
    check(10, 1, [false, false, true]);
    check(10, 2, [false; 3]);
    check(10, 0x80, [false; 3]);
    check(11, 0, [false; 3]);
}

#[test]
fn what_is_not_supported_is_an_error_both_ways() {
    let mut room = [0; 64];
    macro_rules! refused {
        ($($value:expr => $kind:ty),* $(,)?) => {
            $(
                assert_eq!(encode(&$value, &mut room), Err(NotWritten::Unsupported));
                assert_eq!(decode::<$kind>(&[0; 8]), Err(Malformed));
            )*
        };
    }
    refused! {
        -1_i8 => i8,
        -1_i16 => i16,
        -1_i32 => i32,
        -1_i64 => i64,
        -1_i128 => i128,
        1_u128 => u128,
        1.0_f32 => f32,
        1.0_f64 => f64,
        'a' => char,
        std::collections::BTreeMap::from([(1_u8, 2_u8)]) => std::collections::BTreeMap<u8, u8>,
    }
}
