//! Short hashes of lists, by which two nodes find out where their lists differ.

use selvedge_core::{Member, NodeId};

use crate::message::{BUCKETS, Digest, Key, Metadata};

/// Digests of the live members of a list and their latest claims: a number for each bucket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Digests {
    buckets: [u64; BUCKETS],
    /// All buckets in one: the digest on every probe.
    whole: u64,
}

impl Digests {
    /// Adds a member, or removes it. O(length of the metadata).
    pub(crate) fn toggle(&mut self, member: Member, revision: u32, metadata: Option<&Metadata>) {
        let key = key(member.id);
        let version = u64::from(member.incarnation.0) << 32 | u64::from(revision);
        let digest = mix(key.0 ^ mix(version ^ metadata.map_or(0, hash)));
        self.whole ^= digest;
        if let Some(bucket) = self.buckets.get_mut(bucket_of(key)) {
            *bucket ^= digest;
        }
    }

    pub(crate) const fn whole(&self) -> Digest {
        shorten(self.whole)
    }

    pub(crate) fn buckets(&self) -> [Digest; BUCKETS] {
        self.buckets.map(shorten)
    }
}

/// A bijection that spreads ids evenly (the finaliser of SplitMix64).
pub(crate) const fn key(id: NodeId) -> Key {
    Key(mix(id.0))
}

const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of metadata, the same on every node: 0 for none. A peer that looks for a collision finds
/// one, as it does for the 16 bits of a digest.
fn hash(metadata: &Metadata) -> u64 {
    let of_chunk = |hash, chunk: &[u8]| {
        let word = chunk
            .iter()
            .fold(0, |word, &byte| word << 8 | u64::from(byte));
        mix(hash ^ word)
    };
    if metadata.0.is_empty() {
        return 0;
    }
    // The length comes first, so that a padded last chunk differs from a full one.
    let len = metadata.0.len() as u64;
    metadata.0.chunks(8).fold(mix(len), of_chunk)
}

const fn bucket_of(key: Key) -> usize {
    (key.0 >> (64 - BUCKETS.ilog2())) as usize
}

/// The range of hashed ids in a bucket, both ends inclusive.
pub(crate) const fn bucket_range(bucket: usize) -> (Key, Key) {
    let width = 64 - BUCKETS.ilog2();
    let first = (bucket as u64) << width;
    (Key(first), Key(first | (u64::MAX >> BUCKETS.ilog2())))
}

const fn shorten(digest: u64) -> Digest {
    Digest([(digest >> 8) as u8, digest as u8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_keys_and_do_not_overlap() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (first, last) = bucket_range(bucket);
            assert_eq!(first.0, next);
            assert_eq!((bucket_of(first), bucket_of(last)), (bucket, bucket));
            next = last.0.wrapping_add(1);
        }
        assert_eq!(next, 0);
    }

    /// Zeros in front and behind, and on both sides of a chunk's end.
    #[test]
    fn near_metadata_has_different_hashes() {
        let mut hashes = alloc::vec::Vec::new();
        for len in 0..40 {
            for place in 0..len.max(1) {
                let mut bytes = alloc::vec![0; len];
                hashes.push(hash(&Metadata(bytes.clone().into())));
                if let Some(byte) = bytes.get_mut(place) {
                    *byte = 1;
                    hashes.push(hash(&Metadata(bytes.into())));
                }
            }
        }
        hashes.sort_unstable();
        hashes.dedup();
        // One of zeros for each length, and one for each place.
        assert_eq!(hashes.len(), 40 + 39 * 40 / 2);
    }
}
