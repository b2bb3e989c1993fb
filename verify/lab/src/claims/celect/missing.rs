//! Lists that lack nodes, as the simulations of chapter 7 make them: a node is missing from an
//! exact number of lists of others, chosen at random.

use chacha20::ChaCha8Rng;
use selvedge_core::{Choose, Member};

use crate::claims::Samples;
use crate::claims::stats::mean;

/// `count` of `from`, all equally likely.
pub(super) fn draw(mut from: Vec<usize>, count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    let count = count.min(from.len());
    for at in 0..count {
        let other = at + rng.below((from.len() - at) as u64) as usize;
        from.swap(at, other);
    }
    from.truncate(count);
    from
}

/// The lists of `nodes` that lack `node`: exactly `count`.
pub(super) fn lackers(nodes: usize, node: usize, count: usize, rng: &mut ChaCha8Rng) -> Vec<usize> {
    draw((0..nodes).filter(|&it| it != node).collect(), count, rng)
}

pub(super) const fn member(node: usize) -> Member {
    Member::new(node as u64 + 1, 0)
}

/// The mean of one figure over all trials of an experiment.
pub(super) fn column(samples: &Samples, name: &str, nth: usize) -> Option<f64> {
    let figures: Vec<f64> = samples
        .of(name)
        .filter_map(|(_, sample)| sample.0.get(nth).copied().flatten())
        .map(|it| it as f64)
        .collect();
    mean(&figures)
}
