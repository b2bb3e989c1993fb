//! A short stand-in for a state.

use core::hash::{BuildHasherDefault, Hash, Hasher};

/// 128 bits of a state. Two states of a billion share one with a probability of about 10^-21, so
/// counts of unique states are taken as exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fingerprint(u64, u64);

impl Fingerprint {
    pub(super) fn of(value: &impl Hash) -> Self {
        let mut lanes = Lanes::default();
        value.hash(&mut lanes);
        Self(lanes.a, lanes.b)
    }
}

/// A hash map's hasher for keys that are hashes already.
#[derive(Default)]
pub(super) struct Passed(u64);

pub(super) type BuildPassed = BuildHasherDefault<Passed>;

impl Hasher for Passed {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 ^= value;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Two lanes of multiply-and-fold. Not against an adversary: whoever writes a machine to be
/// checked does not look for collisions.
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
        for chunk in bytes.chunks(8) {
            let word = chunk.iter().rev().fold(chunk.len() as u64, |word, &byte| {
                word << 8 | u64::from(byte)
            });
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
}
