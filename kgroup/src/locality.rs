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

#[derive(Clone, Copy, Debug)]
struct Function {
    slopes: [i64; 3],
    offset: i64,
}

impl Function {
    /// floor((a . v + b) / r), with `width` as r.
    fn bucket(&self, place: Place, width: u32) -> i64 {
        // A slope has 14 bits and a place 32, so three products and the offset fit.
        let products = self.slopes.into_iter().zip(place.0);
        let along: i64 = products.map(|(slope, at)| slope * i64::from(at)).sum();
        (along + self.offset).div_euclid(i64::from(width) * ONE)
    }
}

/// A table, with who is in which bucket.
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
        places: impl Iterator<Item = (u32, Place)> + Clone,
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
                    slopes: [0, 1, 2].map(|axis| draw.normal(3 * id + axis)),
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
            let key = |place| Self::key(&table.functions, width, place);
            let mut buckets: Vec<_> = places.clone().map(|(at, place)| (key(place), at)).collect();
            buckets.sort_unstable();
            table.buckets = buckets;
        }
        all
    }

    fn key(functions: &[Function], width: u32, place: Place) -> u64 {
        functions.iter().fold(0, |key, function| {
            mix(key) ^ mix(function.bucket(place, width) as u64)
        })
    }

    /// Those that are similar to a place, in order and each once. O(log n + what it gives) for each
    /// table.
    pub(crate) fn similar(&self, place: Place) -> Vec<u32> {
        let mut similar = Vec::new();
        for table in &self.tables {
            let key = Self::key(&table.functions, self.width, place);
            let first = table.buckets.partition_point(|it| it.0 < key);
            let rest = table.buckets.iter().skip(first);
            similar.extend(rest.take_while(|it| it.0 == key).map(|it| it.1));
        }
        similar.sort_unstable();
        similar.dedup();
        similar
    }
}
