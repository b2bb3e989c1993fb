//! Hashes that stand for states.

use core::hash::{Hash, Hasher};

/// A 128-bit hash of a state's `Hash` output. Two states of a billion share a fingerprint with a
/// probability of about 10^-21, so counts of unique states are taken as exact. States that differ
/// only in fields outside `Hash`, such as [`Untracked`](selvedge_core::Untracked), share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fingerprint(u64, u64);

impl Fingerprint {
    pub(super) fn of(value: &impl Hash) -> Self {
        let mut lanes = Lanes::default();
        value.hash(&mut lanes);
        Self(lanes.a, lanes.b)
    }

    /// The value for a hash table, which needs no further hashing.
    pub(super) const fn as_u64(self) -> u64 {
        self.0
    }
}

/// Two lanes of multiply-and-fold. Not against an adversary: the author of a machine that
/// is checked does not look for collisions.
struct Lanes {
    a: u64,
    b: u64,
}

// Digits of pi, made odd.
const KEYS: [u64; 4] = [
    0x243f_6a88_85a3_08d3,
    0x1319_8a2e_0370_7345,
    0xa409_3822_299f_31d1,
    0x082e_fa98_ec4e_6c89,
];

impl Default for Lanes {
    fn default() -> Self {
        Self {
            a: 0x4528_21e6_38d0_1377,
            b: 0xbe54_66cf_34e9_0c6c,
        }
    }
}

const fn fold(value: u64, key: u64) -> u64 {
    let product = value as u128 * key as u128;
    (product >> 64) as u64 ^ product as u64
}

impl Lanes {
    const fn absorb(&mut self, word: u64) {
        let [key_a, key_b, add_a, add_b] = KEYS;
        self.a = fold(self.a ^ word, key_a).wrapping_add(add_a);
        self.b = fold(self.b.rotate_left(29) ^ word, key_b).wrapping_add(add_b);
    }
}

impl Hasher for Lanes {
    fn write(&mut self, bytes: &[u8]) {
        // The length goes first, in a word of its own. A string does not write its length to a
        // hasher, and inside the last chunk the length could be taken for a byte.
        self.absorb(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let bytes = chunk.iter().rev();
            let word = bytes.fold(0, |word, &byte| word << 8 | u64::from(byte));
            self.absorb(word);
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.absorb(u64::from(value));
    }

    fn write_u16(&mut self, value: u16) {
        self.absorb(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.absorb(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.absorb(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.absorb(value as u64);
    }

    fn finish(&self) -> u64 {
        self.a
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn small_differences_show() {
        let mut seen = BTreeSet::new();
        for a in 0_u8..64 {
            for b in 0_u16..64 {
                for list in [vec![], vec![a], vec![a, a]] {
                    seen.insert(Fingerprint::of(&(a, b, list)));
                }
            }
        }
        assert_eq!(seen.len(), 64 * 64 * 3);
    }

    #[test]
    fn long_byte_strings_are_read_to_the_end() {
        let mut bytes = [7_u8; 41];
        let before = Fingerprint::of(&bytes);
        bytes[40] = 8;
        assert_ne!(Fingerprint::of(&bytes), before);
    }

    /// Strings of up to 18 bytes that end, or begin to end, in bytes that may be taken for a
    /// length: the common beginning is followed by zeros and one small byte, in every place.
    fn near_strings() -> BTreeSet<String> {
        let mut near = BTreeSet::new();
        for len in 0..=18_usize {
            for common in 0..=len {
                for small in 0..=18_u8 {
                    for at in common..len {
                        let mut bytes = vec![0; len];
                        bytes[..common].fill(b'a');
                        bytes[at] = small;
                        near.extend(String::from_utf8(bytes));
                    }
                }
            }
            near.insert("a".repeat(len));
        }
        near
    }

    #[test]
    fn no_two_near_strings_share_a_fingerprint() {
        let strings = near_strings();
        assert!(strings.len() > 10_000, "{} are few", strings.len());
        let seen: BTreeSet<_> = strings.iter().map(Fingerprint::of).collect();
        assert_eq!(seen.len(), strings.len());
        assert_ne!(
            Fingerprint::of(&"abcdefg"),
            Fingerprint::of(&"abcdefg\u{7}")
        );
    }

    #[test]
    fn where_one_string_ends_and_the_next_begins_shows() {
        let mut pairs = BTreeSet::new();
        for all in near_strings().into_iter().filter(|all| all.len() < 12) {
            for end in 0..=all.len() {
                let (first, second) = all.split_at(end);
                pairs.insert((first.to_owned(), second.to_owned()));
            }
        }
        let seen: BTreeSet<_> = pairs.iter().map(Fingerprint::of).collect();
        assert_eq!(seen.len(), pairs.len());
    }

    /// Tests output that a hand-written `Hash` may have: bytes without a length, or no bytes.
    #[test]
    fn how_bytes_are_written_shows() {
        struct Parts(&'static [&'static [u8]]);
        impl Hash for Parts {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                self.0.iter().for_each(|part| hasher.write(part));
            }
        }
        let parts: [&[&[u8]]; 6] = [
            &[],
            &[b""],
            &[b"", b""],
            &[b"abcdefgh", b"i"],
            &[b"abcdefghi"],
            &[b"abcdefghi\0"],
        ];
        let seen: BTreeSet<_> = parts.map(|it| Fingerprint::of(&Parts(it))).into();
        assert_eq!(seen.len(), parts.len());
    }
}
