//! Hashes that put near places into one bucket (section 3.6; M. Datar and others, "Locality-
//! sensitive hashing scheme based on p-stable distributions", 2004).
//!
//! A function maps a place v to floor((a . v + b) / r), with a of normal numbers and b below r. A
//! table has m functions: two places are in one bucket of it if all m agree. Two places are similar
//! if they are in one bucket of any of the l tables. All in integers, so that all nodes agree.

use alloc::vec::Vec;

use selvedge_core::Sortition;

use crate::draw::{Draw, SLOPE_BITS, mix};
use crate::{Locality, Place};

/// The unit of the slopes.
const ONE: i64 = 1 << SLOPE_BITS;

/// The input of the hash: a place, and behind it the place that the paper appends, under the
/// published rule; else that part is zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vector([i32; 6]);

impl Vector {
    /// A device: its own place is appended to its place (section 3.6).
    pub(crate) const fn device(place: Place) -> Self {
        Self::node(place, place)
    }

    /// A node, with the place where it looked after devices in the last epoch.
    pub(crate) const fn node(place: Place, history: Place) -> Self {
        let [x, y, z] = place.0;
        let [before_x, before_y, before_z] = history.0;
        Self([x, y, z, before_x, before_y, before_z])
    }
}

#[derive(Clone, Copy, Debug)]
struct Function {
    slopes: [i64; 6],
    offset: i64,
}

impl Function {
    /// floor((a . v + b) / r), with `width` as r.
    fn bucket(&self, vector: Vector, width: u32) -> i64 {
        // A slope has 14 bits and a place 32, so six products and the offset fit.
        let products = self.slopes.into_iter().zip(vector.0);
        let along: i64 = products.map(|(slope, at)| slope * i64::from(at)).sum();
        (along + self.offset).div_euclid(i64::from(width) * ONE)
    }
}

/// A table, with the contents of its buckets.
#[derive(Clone, Debug)]
struct Table {
    functions: Vec<Function>,
    /// In order.
    buckets: Vec<(u64, u32)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Tables {
    width: u32,
    tables: Vec<Table>,
}

impl Tables {
    /// Puts all of `places` into buckets. O(n log n) for each table.
    pub(crate) fn new<H: Sortition>(
        locality: Locality,
        draw: &Draw<'_, H>,
        vectors: impl Iterator<Item = (u32, Vector)> + Clone,
        weighs_history: bool,
    ) -> Self {
        let Locality {
            functions,
            tables,
            width,
        } = locality;
        let tables = (0..u64::from(tables)).map(|table| {
            let functions = (0..u64::from(functions)).map(|nth| {
                let id = table * u64::from(functions) + nth;
                Function {
                    slopes: [0, 1, 2, 3, 4, 5].map(|axis| match axis {
                        0..3 => draw.normal(3 * id + axis),
                        _ if weighs_history => draw.normal(u64::MAX - 3 * id - axis),
                        _ => 0,
                    }),
                    offset: draw.below(id, u64::from(width) << SLOPE_BITS) as i64,
                }
            });
            Table {
                functions: functions.collect(),
                buckets: Vec::new(),
            }
        });
        let mut all = Self {
            width,
            tables: tables.collect(),
        };
        for table in &mut all.tables {
            let key = |vector| Self::key(&table.functions, width, vector);
            let buckets = vectors.clone().map(|(at, vector)| (key(vector), at));
            let mut buckets: Vec<_> = buckets.collect();
            buckets.sort_unstable();
            table.buckets = buckets;
        }
        all
    }

    fn key(functions: &[Function], width: u32, vector: Vector) -> u64 {
        functions.iter().fold(0, |key, function| {
            mix(key) ^ mix(function.bucket(vector, width) as u64)
        })
    }

    /// The indices that are similar to a place, in order and each once. O(log n + the number of
    /// results) for each table.
    pub(crate) fn similar(&self, place: Place) -> Vec<u32> {
        let mut similar = Vec::new();
        for table in &self.tables {
            let key = Self::key(&table.functions, self.width, Vector::device(place));
            let first = table.buckets.partition_point(|it| it.0 < key);
            let rest = table.buckets.iter().skip(first);
            similar.extend(rest.take_while(|it| it.0 == key).map(|it| it.1));
        }
        similar.sort_unstable();
        similar.dedup();
        similar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Along the first axis alone, with the offset in 1/1024 of the unit.
    #[test]
    fn a_bucket_is_as_wide_as_the_width_and_begins_an_offset_earlier() {
        let bucket = |offset, x| {
            let function = Function {
                slopes: [ONE, 0, 0, 0, 0, 0],
                offset,
            };
            function.bucket(Vector::device(Place([x, 50, 70])), 4)
        };
        let of = |offset| [-5, -4, -1, 0, 3, 4, 7, 8].map(|x| bucket(offset, x));
        assert_eq!(of(0), [-2, -1, -1, 0, 0, 1, 1, 2]);
        assert_eq!(of(ONE), [-1, -1, 0, 0, 1, 1, 2, 2]);
    }
}
