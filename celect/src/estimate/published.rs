//! The thesis' formulas to the letter, for tests and comparison only. `docs/errata.md` lists their
//! errors.

use alloc::collections::BTreeMap;

use selvedge_core::{NodeId, Ratio};

use super::share;

/// s = p (1 - p) (z / E)^2 with z = x + (1 - x) / 2, rounded to the nearest as in table 7.1
/// (erratum Z1).
#[must_use]
pub fn sample_size(missing: Ratio, error: Ratio, confidence: Ratio) -> u32 {
    let (p, error, x) = (share(missing), share(error), share(confidence));
    let z = (x + (1.0 - x) / 2.0) / error;
    libm::round(p * (1.0 - p) * z * z) as u32
}

/// Algorithm 6: the largest value of N minus the number of lists that name a node, times N / s
/// (erratum Z2). Lists are taken unchanged, without their owners.
#[must_use]
pub fn sampling(nodes: u32, lists: &[&[NodeId]]) -> f64 {
    let mut named = BTreeMap::<NodeId, u32>::new();
    for node in lists.iter().flat_map(|list| list.iter()) {
        *named.entry(*node).or_default() += 1;
    }
    let lacks = named.values().map(|&named| nodes.saturating_sub(named));
    f64::from(lacks.max().unwrap_or(0)) * f64::from(nodes) / lists.len() as f64
}

/// Lines 7 and 8 of Algorithm 7: the mean d of the values 1 and 2, and
/// N (1 - exp(ln(2 - d) / (c + 1))) (erratum F1).
#[must_use]
pub fn feedback(nodes: u32, c: u32, values: &[u32]) -> f64 {
    let total: u32 = values.iter().sum();
    let d = f64::from(total) / values.len() as f64;
    f64::from(nodes) * (1.0 - libm::exp(libm::log(2.0 - d) / (f64::from(c) + 1.0)))
}

/// Line 9: c = alpha c1 + (1 - alpha) c, truncated, since an election asks a whole number of nodes
/// and the thesis' simulator is in Java (erratum F1).
#[must_use]
pub fn average(c: u32, found: f64, alpha: Ratio) -> u32 {
    let alpha = share(alpha);
    (alpha * found + (1.0 - alpha) * f64::from(c)) as u32
}
