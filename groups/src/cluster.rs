//! Devices that are near each other, as clusters: each has one group (section 3.6).
//!
//! K-means in integers (S. Lloyd, "Least squares quantization in PCM", 1982). The paper clusters
//! with a genetic search on top; its effect here is groups of about the wanted size, and two nodes
//! with one list must get the same ones. So the first centres are spread as k-means++ does (D.
//! Arthur and S. Vassilvitskii, 2007), with the same numbers on every node.

use alloc::vec::Vec;

use selvedge_core::NodeId;

use crate::Place;
use crate::draw::mix;

/// Rounds at most. Lloyd's rounds settle in far fewer, mostly.
const ROUNDS: usize = 32;

/// Devices that one group looks after.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cluster {
    /// In order of ids; never empty in the clusters of [`clusters`].
    pub devices: Vec<NodeId>,
    /// Their mean place, rounded down.
    pub centre: Place,
}

impl Cluster {
    /// The cluster of these devices, which differ in their ids. O(n log n).
    #[must_use]
    pub fn of(devices: impl IntoIterator<Item = (NodeId, Place)>) -> Self {
        let mut devices: Vec<(NodeId, Place)> = devices.into_iter().collect();
        devices.sort_unstable_by_key(|it| it.0);
        Self {
            centre: mean(&devices).unwrap_or_default(),
            devices: devices.into_iter().map(|it| it.0).collect(),
        }
    }
}

/// Parts devices into `count` clusters at most, and fewer where fewer places differ. The same list
/// in any order gives the same clusters, in the same order. Of two devices with one id the last
/// counts.
///
/// O(n * count) for each of at most 32 rounds.
#[must_use]
pub fn clusters(devices: impl IntoIterator<Item = (NodeId, Place)>, count: usize) -> Vec<Cluster> {
    let mut devices: Vec<(NodeId, Place)> = devices.into_iter().collect();
    devices.reverse();
    devices.sort_by_key(|it| it.0); // Stable: the last one of an id is first now.
    devices.dedup_by_key(|it| it.0);
    let mut centres = first_centres(&devices, count);
    let mut nearest = assign(&devices, &centres);
    for _ in 0..ROUNDS {
        centres = means(&devices, &nearest, &centres);
        let again = assign(&devices, &centres);
        if again == nearest {
            break;
        }
        nearest = again;
    }
    let all = (0..centres.len()).map(|at| Cluster::of(members(&devices, &nearest, at).copied()));
    all.filter(|it| !it.devices.is_empty()).collect()
}

/// The first device, and then devices that are drawn, each as often as the square of its distance
/// from the centres before it.
fn first_centres(devices: &[(NodeId, Place)], count: usize) -> Vec<Place> {
    let mut centres: Vec<Place> = devices.iter().map(|it| it.1).take(count.min(1)).collect();
    let mut distances: Vec<u64> = devices.iter().map(|_| u64::MAX).collect();
    while let Some(&last) = centres.last()
        && centres.len() < count
    {
        for (distance, device) in distances.iter_mut().zip(devices) {
            *distance = (*distance).min(device.1.distance_squared(last));
        }
        let sum = distances.iter().copied().map(u128::from).sum();
        let mut left = scale(sum, mix(centres.len() as u64));
        let drawn = devices.iter().zip(&distances).find(|(_, distance)| {
            let distance = u128::from(**distance);
            let is_it = left < distance;
            left = left.saturating_sub(distance);
            is_it
        });
        let Some((device, _)) = drawn else {
            break; // All other devices are where a centre is.
        };
        centres.push(device.1);
    }
    centres
}

/// `whole` times `part` / 2^64, rounded down.
const fn scale(whole: u128, part: u64) -> u128 {
    let (high, low) = (whole >> 64, whole & u64::MAX as u128);
    high * part as u128 + ((low * part as u128) >> 64)
}

/// The nearest centre of each device, the first one of several that are equally near.
fn assign(devices: &[(NodeId, Place)], centres: &[Place]) -> Vec<usize> {
    let nearest = |place: Place| {
        let centres = centres.iter().zip(0..);
        let nearest = centres.min_by_key(|it| it.0.distance_squared(place));
        nearest.map_or(0, |it| it.1)
    };
    devices.iter().map(|it| nearest(it.1)).collect()
}

/// The mean of the devices of each centre. A centre without devices stays.
fn means(devices: &[(NodeId, Place)], nearest: &[usize], centres: &[Place]) -> Vec<Place> {
    let mean_of = |(&before, at)| mean(members(devices, nearest, at)).unwrap_or(before);
    centres.iter().zip(0..).map(mean_of).collect()
}

/// The mean place of devices, rounded down; `None` without devices.
fn mean<'a>(devices: impl IntoIterator<Item = &'a (NodeId, Place)>) -> Option<Place> {
    let (mut sums, mut count) = ([0_i64; 3], 0_i64);
    for (_, place) in devices {
        for (sum, &at) in sums.iter_mut().zip(&place.0) {
            *sum += i64::from(at);
        }
        count += 1;
    }
    // Between the least and the greatest, so it fits.
    let axis = |sum: i64| i32::try_from(sum.div_euclid(count)).unwrap_or_default();
    (count > 0).then(|| Place(sums.map(axis)))
}

fn members<'a>(
    devices: &'a [(NodeId, Place)],
    nearest: &'a [usize],
    at: usize,
) -> impl Iterator<Item = &'a (NodeId, Place)> {
    let of_it = devices.iter().zip(nearest).filter(move |it| *it.1 == at);
    of_it.map(|it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_number_is_exact_to_the_last_digit() {
        let half = 1 << 63;
        assert_eq!(scale(10, half), 5);
        assert_eq!(scale(9, half), 4);
        assert_eq!(scale(9, 0), 0);
        assert_eq!(scale(9, u64::MAX), 8);
        assert_eq!(scale(6 << 64, half), 3 << 64);
        assert_eq!(scale((6 << 64) + 10, half), (3 << 64) + 5);
    }
}
