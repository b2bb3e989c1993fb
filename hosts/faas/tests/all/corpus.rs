//! Inputs of fuzz targets: the committed ones, and changed copies.

use std::fs;
use std::path::Path;

/// The committed inputs of a target.
pub(crate) fn inputs(corpus: &Path, target: &str) -> Vec<Vec<u8>> {
    let files = fs::read_dir(corpus.join(target)).unwrap();
    let inputs: Vec<_> = files
        .map(|it| fs::read(it.unwrap().path()).unwrap())
        .collect();
    assert!(!inputs.is_empty());
    inputs
}

/// The input with some of its bytes changed, removed or doubled, by a seed.
pub(crate) fn changed(input: &[u8], mut seed: u64) -> Vec<u8> {
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below.max(1)
    };
    let mut out = input.to_vec();
    for _ in 0..=next(3) {
        let at = next(out.len());
        match next(4) {
            0 if !out.is_empty() => out[at] ^= 1 << next(8),
            1 if !out.is_empty() => out[at] = next(256) as u8,
            2 if !out.is_empty() => drop(out.remove(at)),
            _ => out.insert(at, next(256) as u8),
        }
    }
    out
}
