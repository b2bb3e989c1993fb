//! An order that no node chooses: ranks drawn from a hash.

use core::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::NodeId;

/// A place in the order that a [`Sortition`] gives; the lowest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rank(pub u128);

/// A hash that ranks nodes, the same on every node with the same hash.
#[diagnostic::on_unimplemented(
    note = "`Sha256Sortition` ranks with the feature `sha256` of selvedge-core"
)]
pub trait Sortition {
    /// The rank of `id` in the draw called `label` (an election, an epoch, a group's name).
    /// O(length of the label).
    fn rank(&self, label: &[u8], id: NodeId) -> Rank;
}

/// SHA-256, the first 128 bits: the default. Anyone can compute it, so a node that can choose its
/// id can also choose a low rank by trial.
///
/// It is a [`Sortition`] with the feature `sha256`, which is on by default. The name exists without
/// it, so that a type that is generic over the hash has one default in every build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sha256Sortition;

#[cfg(feature = "sha256")]
impl Sortition for Sha256Sortition {
    fn rank(&self, label: &[u8], id: NodeId) -> Rank {
        use sha2::{Digest, Sha256};

        // The id comes first and has a fixed width, so no label can imitate another pair.
        let digest = Sha256::new()
            .chain_update(id.0.to_be_bytes())
            .chain_update(label)
            .finalize();
        let rank = digest
            .iter()
            .take(16)
            .fold(0, |rank, &byte| rank << 8 | u128::from(byte));
        Rank(rank)
    }
}

/// SipHash-2-4 with a 128-bit key that all nodes share: several times faster and smaller, and a
/// node without the key cannot choose an id with a low rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SipSortition {
    key: [u8; 16],
}

impl SipSortition {
    /// Ranks under this key. All nodes must use the same one.
    #[must_use]
    pub const fn new(key: [u8; 16]) -> Self {
        Self { key }
    }
}

impl Sortition for SipSortition {
    fn rank(&self, label: &[u8], id: NodeId) -> Rank {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write(&id.0.to_be_bytes());
        hasher.write(label);
        Rank(hasher.finish128().as_u128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with `printf '\0\0\0\0\0\0\0\1' | sha256sum`, the first 32 digits.
    #[cfg(feature = "sha256")]
    #[test]
    fn sha256_ranks_are_those_of_the_standard() {
        assert_eq!(
            Sha256Sortition.rank(b"", NodeId(1)),
            Rank(0xcd26_6215_4e6d_76b2_b2b9_2e70_c0ca_c3cc),
        );
    }

    #[test]
    fn ranks_differ_by_label_id_and_key() {
        let sip = SipSortition::new([7; 16]);
        let rank = sip.rank(b"epoch 1", NodeId(3));
        assert_eq!(rank, sip.rank(b"epoch 1", NodeId(3)));
        assert_ne!(rank, sip.rank(b"epoch 2", NodeId(3)));
        assert_ne!(rank, sip.rank(b"epoch 1", NodeId(4)));
        assert_ne!(rank, SipSortition::new([8; 16]).rank(b"epoch 1", NodeId(3)));
    }
}
