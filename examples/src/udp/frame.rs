//! What a datagram looks like: version, kind, then sender and message in postcard's encoding.

use postcard::ser_flavors::Flavor;
use selvedge_core::Member;
use selvedge_core::wire::{Envelope, HEADER_LEN, VERSION};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::seal::SEALED;

/// Why bytes are no frame of ours, or a message cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// More bytes than a frame may have.
    #[error(
        "{len} bytes in a datagram and {limit} are allowed: share one frame_budget in the mesh"
    )]
    Oversize {
        /// How many there are at least.
        len: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A sealed datagram, where frames are sent in the clear.
    #[error("a sealed datagram, and this node sends in the clear: give it the key of the others")]
    Sealed,
    /// Another version of the frame format.
    #[error("frame version {found} and this node speaks {VERSION}: upgrade the older of the two")]
    Version {
        /// What the frame says.
        found: u8,
    },
    /// Another protocol.
    #[error("a frame of protocol {found} and {expected} was expected: give each protocol its port")]
    Kind {
        /// What the frame says.
        found: u8,
        /// What the socket is for.
        expected: u8,
    },
    /// Anything else: cut short, followed by more, or no frame at all.
    #[error("not a frame, or a damaged one: check who sends to this port")]
    Malformed,
}

/// Writes the frame of `message` from `from` over what `frame` holds.
///
/// # Errors
/// [`FrameError::Oversize`] when it becomes longer than `budget`; `frame` is empty then.
pub fn encode<T: Serialize>(
    kind: u8,
    from: Member,
    message: &T,
    budget: usize,
    frame: &mut Vec<u8>,
) -> Result<(), FrameError> {
    frame.clear();
    frame.extend([VERSION, kind]);
    let envelope = Envelope { from, message };
    let written = postcard::serialize_with_flavor(&envelope, Append(frame));
    let len = frame.len();
    if written.is_err() || len > budget {
        frame.clear();
        return Err(FrameError::Oversize { len, limit: budget });
    }
    Ok(())
}

/// Reads a frame. Any bytes may be given.
///
/// # Errors
/// When the bytes are not exactly one frame of this `kind` within `budget`.
pub fn decode<T: DeserializeOwned>(
    kind: u8,
    bytes: &[u8],
    budget: usize,
) -> Result<Envelope<T>, FrameError> {
    if bytes.len() > budget {
        return Err(FrameError::Oversize {
            len: bytes.len(),
            limit: budget,
        });
    }
    let (header, body) = bytes
        .split_first_chunk::<HEADER_LEN>()
        .ok_or(FrameError::Malformed)?;
    match *header {
        [VERSION, found] if found == kind => {}
        [VERSION, found] => {
            return Err(FrameError::Kind {
                found,
                expected: kind,
            });
        }
        [SEALED, _] => return Err(FrameError::Sealed),
        [found, _] => return Err(FrameError::Version { found }),
    }
    match postcard::take_from_bytes(body) {
        Ok((envelope, [])) => Ok(envelope),
        Ok(_) | Err(_) => Err(FrameError::Malformed),
    }
}

/// Lets postcard append to a buffer that is used again and again.
struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use selvedge_core::NodeId;
    use selvedge_membership::{
        Age, Body, Broadcast, Broadcasts, Claim, Digest, KIND, Key, Message, Metadata, Record,
        Records,
    };

    const BUDGET: usize = 1_400;

    fn member() -> impl Strategy<Value = Member> {
        (any::<u64>(), any::<u32>()).prop_map(|(id, incarnation)| Member::new(id, incarnation))
    }

    fn body() -> impl Strategy<Value = Body> {
        let key = || any::<u64>().prop_map(Key);
        prop_oneof![
            (any::<[u8; 2]>(), proptest::option::of(member())).prop_map(|(digest, origin)| {
                Body::Ping {
                    digest: Digest(digest),
                    origin,
                }
            }),
            proptest::option::of(member()).prop_map(|origin| Body::Ack { origin }),
            member().prop_map(|target| Body::PingRequest { target }),
            Just(Body::Join),
            Just(Body::Farewell),
            (member(), proptest::option::of(key()))
                .prop_map(|(you, next)| Body::Welcome { you, next }),
            (key(), key(), proptest::option::of(key()), any::<bool>()).prop_map(
                |(first, last, next, exchange)| Body::Records {
                    first,
                    last,
                    next,
                    exchange
                }
            ),
        ]
    }

    fn bytes() -> impl Strategy<Value = Box<[u8]>> {
        proptest::collection::vec(any::<u8>(), 0..24).prop_map(Vec::into_boxed_slice)
    }

    fn message() -> impl Strategy<Value = Message> {
        let claim = prop_oneof![
            bytes().prop_map(|bytes| Claim::Alive(Metadata(bytes))),
            bytes().prop_map(|bytes| Claim::Suspect(Metadata(bytes))),
            (bytes(), any::<u16>())
                .prop_map(|(bytes, age)| Claim::Failed(Metadata(bytes), Age(age))),
            any::<u16>().prop_map(|age| Claim::Left(Age(age))),
        ];
        let record = (member(), any::<u32>(), claim).prop_map(|(member, revision, claim)| Record {
            member,
            revision,
            claim,
        });
        let broadcast =
            (member(), any::<u32>(), bytes()).prop_map(|(origin, number, payload)| Broadcast {
                origin,
                number,
                payload,
            });
        (
            body(),
            proptest::collection::vec(record, 0..6),
            proptest::collection::vec(broadcast, 0..3),
        )
            .prop_map(|(body, records, broadcasts)| Message {
                body,
                records: Records(records.into_iter().collect()),
                broadcasts: Broadcasts(broadcasts.into_iter().collect()),
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(from in member(), message in message()) {
            let mut frame = vec![7; 3];
            prop_assert_eq!(encode(KIND, from, &message, BUDGET, &mut frame), Ok(()));
            prop_assert_eq!(frame.len(), message.frame_len(from));
            let read = decode::<Message>(KIND, &frame, BUDGET);
            prop_assert_eq!(read, Ok(Envelope { from, message }));
        }

        #[test]
        fn a_cut_or_lengthened_frame_is_malformed(
            from in member(), message in message(), cut in any::<proptest::sample::Index>(),
        ) {
            let mut frame = Vec::new();
            prop_assert_eq!(encode(KIND, from, &message, BUDGET, &mut frame), Ok(()));
            let part = &frame[..cut.index(frame.len())];
            prop_assert_eq!(decode::<Message>(KIND, part, BUDGET), Err(FrameError::Malformed));
            frame.push(0);
            prop_assert_eq!(decode::<Message>(KIND, &frame, BUDGET), Err(FrameError::Malformed));
        }

        #[test]
        fn any_bytes_are_survived(
            bytes in proptest::collection::vec(any::<u8>(), 0..200), ours in any::<bool>(),
        ) {
            let mut bytes = bytes;
            if ours {
                bytes.splice(0..0, [VERSION, KIND]);
            }
            if let Ok(envelope) = decode::<Message>(KIND, &bytes, BUDGET) {
                prop_assert!(envelope.message.records.0.len() <= bytes.len());
            }
        }

        #[test]
        fn a_damaged_frame_is_survived(
            from in member(), message in message(),
            at in any::<proptest::sample::Index>(), flip in 1..=u8::MAX,
        ) {
            let mut frame = Vec::new();
            prop_assert_eq!(encode(KIND, from, &message, BUDGET, &mut frame), Ok(()));
            let at = at.index(frame.len());
            frame[at] ^= flip;
            let read = decode::<Message>(KIND, &frame, BUDGET);
            prop_assert_ne!(read, Ok(Envelope { from, message }));
        }
    }

    #[test]
    fn strangers_are_told_apart() {
        let read = |bytes: &[u8]| decode::<Message>(KIND, bytes, 8).err();
        assert_eq!(read(&[]), Some(FrameError::Malformed));
        assert_eq!(read(&[9, KIND, 1]), Some(FrameError::Version { found: 9 }));
        let other = FrameError::Kind {
            found: 77,
            expected: KIND,
        };
        assert_eq!(read(&[VERSION, 77, 1]), Some(other));
        assert_eq!(
            read(&[0; 9]),
            Some(FrameError::Oversize { len: 9, limit: 8 })
        );
    }

    #[test]
    fn what_exceeds_the_budget_is_not_sent() {
        let mut frame = Vec::new();
        let message = Message::bare(Body::Join);
        let from = Member {
            id: NodeId(u64::MAX),
            ..Member::default()
        };
        let refused = encode(KIND, from, &message, 4, &mut frame);
        assert!(matches!(
            refused,
            Err(FrameError::Oversize { limit: 4, .. })
        ));
        assert!(frame.is_empty());
    }
}
