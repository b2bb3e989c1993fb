//! The memory of a decoded envelope is bounded by its content, not by the lengths that it claims.

#![cfg(feature = "serde")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate alloc;

use alloc::sync::Arc;

use crate::allocator::peak;
use selvedge_core::wire::{self, Envelope, List, Message};
use selvedge_core::{Member, NodeId, Stamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

type Members = List<Member, 2>;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Boxed(#[serde(with = "selvedge_core::wire::items")] Box<[Member]>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Shared(#[serde(with = "selvedge_core::wire::items")] Arc<[Member]>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Grown(#[serde(with = "selvedge_core::wire::items")] Vec<Member>);

fn member(id: u64) -> Member {
    Member::new(id, 0)
}

/// The body of a frame that claims `claim` members and holds these.
fn claiming(claim: u64, held: &[Member]) -> Vec<u8> {
    let from = member(1);
    let front = postcard::to_allocvec(&Envelope {
        from,
        message: claim,
    });
    held.iter().fold(front.unwrap(), |body, it| {
        postcard::to_extend(it, body).unwrap()
    })
}

/// The value that is read from these bytes, and the memory that this took.
fn read<T: DeserializeOwned>(body: &[u8]) -> (Option<T>, usize) {
    let (envelope, memory) = peak(|| postcard::from_bytes::<Envelope<T>>(body).ok());
    (envelope.map(|it| it.message), memory)
}

fn takes_what_it_holds<T: DeserializeOwned + Serialize + PartialEq + core::fmt::Debug>(
    list: impl Fn(&[Member]) -> T,
) {
    for len in 0..100 {
        let members: Vec<Member> = (0..len).map(member).collect();
        let (read_back, honest) = read::<T>(&claiming(len, &members));
        assert_eq!(read_back, Some(list(&members)));
        // A list that grows has room for twice its items or for four; to move them into a shared
        // list takes as much as the items do, and two counters.
        let room = (2 * members.len()).max(4) + members.len();
        let most = room * size_of::<Member>() + 2 * size_of::<usize>();
        assert!(honest <= most, "{honest} bytes for {len} members");
        for claim in [len + 1, 2 * len + 1, 1_000, 1 << 32, u64::MAX] {
            // Behind the members is nothing, or bytes from which no member can be read: enough of
            // them that an encoding of the claimed members would fit.
            for rest in [0, 2_000] {
                let mut body = claiming(claim, &members);
                body.extend(core::iter::repeat_n(0xff, rest));
                let (refused, memory) = read::<T>(&body);
                assert_eq!(refused, None);
                assert!(
                    memory <= honest,
                    "{memory} bytes for {len} members where {claim} are claimed, not {honest}"
                );
            }
        }
    }
}

#[test]
fn a_list_takes_what_it_holds_and_not_what_it_claims() {
    takes_what_it_holds::<Members>(|members| members.iter().copied().collect());
    takes_what_it_holds(|members| Boxed(members.into()));
    takes_what_it_holds(|members| Shared(members.into()));
    takes_what_it_holds(|members| Grown(members.into()));
}

/// Shows that the test above can fail.
#[test]
fn a_vec_takes_what_is_claimed() {
    let mut body = claiming(1_000, &[]);
    body.extend([0xff; 2_000]);
    let (refused, memory) = read::<Vec<Member>>(&body);
    assert_eq!((refused, memory), (None, 1_000 * size_of::<Member>()));
}

#[test]
fn a_list_is_encoded_as_a_slice_is() {
    for len in [0, 1, 2, 3, 127, 128] {
        let members: Vec<Member> = (0..len).map(member).collect();
        let slice = postcard::to_allocvec(&members).unwrap();
        let list: Members = members.iter().copied().collect();
        assert_eq!(postcard::to_allocvec(&list).unwrap(), slice);
        assert_eq!(
            postcard::to_allocvec(&Shared(members.into())).unwrap(),
            slice
        );
    }
}

impl Message for Grown {
    const KIND: u8 = 200;

    fn encoded_len(&self) -> usize {
        let members = self.0.iter().copied().map(wire::member_len);
        wire::varint_len(self.0.len() as u64) + members.sum::<usize>()
    }
}

#[test]
fn lengths_are_those_of_the_encoder() {
    let ends_of_each_length = (0..10_u32).flat_map(|bytes| {
        let first = 1_u64 << (7 * bytes);
        [first - 1, first]
    });
    for number in ends_of_each_length.chain([u64::MAX]) {
        let lives = [Member::new(number, 0), Member::new(3, u32::MAX)];
        for by in lives {
            let stamp = Stamp { number, by };
            assert_eq!(
                stamp.encoded_len(),
                postcard::to_allocvec(&stamp).unwrap().len()
            );
            let by = by.id;
            let stamp: Stamp<NodeId> = Stamp { number, by };
            assert_eq!(
                stamp.encoded_len(),
                postcard::to_allocvec(&stamp).unwrap().len()
            );
        }
        for from in lives {
            let message = Grown(lives.to_vec());
            let len = wire::frame_len(from, &message);
            let envelope = postcard::to_allocvec(&Envelope { from, message }).unwrap();
            assert_eq!(len, wire::HEADER_LEN + envelope.len());
        }
    }
}
