//! A node's metadata: its addresses and its tags.
//!
//! Without tags it is the list of addresses ([`address`]). With tags it is a byte 255, the length of
//! that list, the list, and the tags.

use std::net::SocketAddr;

use crate::{Tags, address};

/// The first byte of metadata with tags. No list of several addresses begins with it, and no single
/// address but 255.0.0.0/8, which is written as if there were tags.
const WITH_TAGS: u8 = 255;

/// The addresses and tags that a node announces as its metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The addresses at which other nodes reach it, at most [`LIMIT`](address::LIMIT). The first ones
    /// count, IPv4 first.
    pub addresses: Vec<SocketAddr>,
    /// Its tags.
    pub tags: Tags,
}

impl Announcement {
    /// The metadata.
    #[must_use]
    pub fn encode(&self) -> Box<[u8]> {
        let list = address::to_bytes(&self.addresses);
        if self.tags.is_empty() && list.first() != Some(&WITH_TAGS) {
            return list;
        }
        let head = [WITH_TAGS, list.len() as u8];
        [&head, &*list, self.tags.encoded()].concat().into()
    }

    /// Reads metadata, without the addresses to which no datagram can be sent. `None` for any bytes
    /// that are no announcement: then nothing of it counts.
    #[must_use]
    pub fn decode(metadata: &[u8]) -> Option<Self> {
        let (list, tags) = match metadata {
            [WITH_TAGS, len, rest @ ..] => rest.split_at_checked((*len).into())?,
            all => (all, [].as_slice()),
        };
        Some(Self {
            addresses: address::from_bytes(list)?,
            tags: Tags::decode(tags)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(port: u16) -> SocketAddr {
        ([10, 1, 2, 3], port).into()
    }

    fn tagged(addresses: &[SocketAddr], tags: &[(&str, &str)]) -> Announcement {
        Announcement {
            addresses: addresses.to_vec(),
            tags: tags.iter().copied().collect(),
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived_and_announcements_return(
            bytes in proptest::collection::vec(any::<u8>(), 0..30),
            head in prop_oneof![Just(vec![]), Just(vec![255, 0]), Just(vec![255, 6, 10, 1, 2, 3, 0, 7])],
        ) {
            if let Some(read) = Announcement::decode(&[head, bytes].concat()) {
                prop_assert_eq!(Announcement::decode(&read.encode()), Some(read));
            }
        }
    }

    #[test]
    fn addresses_and_tags_return_in_each_combination() {
        let v6 = "[2001:db8::1]:7001".parse().unwrap();
        // An address that begins as metadata with tags does.
        let odd = SocketAddr::from(([255, 1, 2, 3], 7));
        for addresses in [
            &[][..],
            &[at(1)],
            &[v6],
            &[at(1), at(2), v6],
            &[v6; 4],
            &[odd],
        ] {
            for tags in [&[][..], &[("role", "db")]] {
                let announced = tagged(addresses, tags);
                assert_eq!(Announcement::decode(&announced.encode()), Some(announced));
            }
        }
    }

    /// The format, which nodes of other versions read.
    #[test]
    fn tags_stand_behind_the_list_of_addresses() {
        let alone = tagged(&[at(7)], &[]).encode();
        assert_eq!(*alone, [10, 1, 2, 3, 0, 7]);
        let bytes = tagged(&[at(7)], &[("a", "b")]).encode();
        assert_eq!(*bytes, *b"\xFF\x06\x0A\x01\x02\x03\x00\x07\x01a\x01b");
        assert!(tagged(&[], &[]).encode().is_empty());
    }

    /// A good list of addresses beside tags that are none, and the other way round.
    #[test]
    fn metadata_counts_as_a_whole_or_not_at_all() {
        for bytes in [
            &b"\xFF\x06\x0A\x01\x02\x03\x00\x07\x01a\x02b"[..],
            b"\xFF\x06\x0A\x01\x02\x03\x00\x07\x01\xFF\x01b",
            b"\xFF\x05\x0A\x01\x02\x03\x00\x01a\x01b",
            b"\xFF\x06\x0A\x01\x02",
            b"\xFF",
            b"kitchen",
        ] {
            assert_eq!(Announcement::decode(bytes), None, "{bytes:?}");
        }
    }
}
