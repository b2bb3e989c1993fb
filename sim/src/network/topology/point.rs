//! Places, and ranges between them.

use super::link;

/// A place, in mm from the corner of the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Point {
    /// To the right, in mm.
    pub x: u32,
    /// Upwards, in mm.
    pub y: u32,
}

impl Point {
    /// The place `x` mm to the right and `y` mm up.
    #[must_use]
    pub const fn new(x: u32, y: u32) -> Self {
        Self { x, y }
    }

    /// The distance in mm, rounded down.
    #[must_use]
    pub fn distance(self, other: Self) -> u64 {
        u64::try_from(self.squared(other).isqrt()).unwrap_or(u64::MAX)
    }

    fn squared(self, other: Self) -> u128 {
        let square = |a: u32, b: u32| {
            let difference = u128::from(a.abs_diff(b));
            difference * difference
        };
        square(self.x, other.x) + square(self.y, other.y)
    }

    /// Compares squares, so that nothing is rounded.
    fn in_range(self, other: Self, range: u32) -> bool {
        self.squared(other) <= u128::from(range) * u128::from(range)
    }
}

/// For every point the points in range of it, by index. Sweeps from left to right, so that only
/// pairs within a range in `x` are compared.
pub(super) fn within(points: &[Point], range: u32) -> Vec<Vec<u32>> {
    let mut near = vec![Vec::new(); points.len()];
    let mut sweep: Vec<(Point, usize)> = points.iter().copied().zip(0..).collect();
    sweep.sort_unstable();
    for (position, &(point, node)) in sweep.iter().enumerate() {
        let ahead = sweep.iter().skip(position + 1);
        for &(other, other_node) in ahead.take_while(|(other, _)| other.x - point.x <= range) {
            if point.in_range(other, range) {
                link(&mut near, node, other_node);
            }
        }
    }
    for row in &mut near {
        row.sort_unstable();
    }
    near
}

/// Replaces the edges of `node` alone.
pub(super) fn relink(points: &[Point], range: u32, near: &mut [Vec<u32>], node: usize) {
    let (Some(&point), Ok(tag)) = (points.get(node), u32::try_from(node)) else {
        return;
    };
    let mut mine = Vec::new();
    for ((other, row), at) in points.iter().zip(near.iter_mut()).zip(0_u32..) {
        if at == tag {
            continue;
        }
        let position = row.binary_search(&tag);
        match (point.in_range(*other, range), position) {
            (true, Err(position)) => row.insert(position, tag),
            (false, Ok(position)) => {
                row.remove(position);
            }
            (true, Ok(_)) | (false, Err(_)) => {}
        }
        if point.in_range(*other, range) {
            mine.push(at);
        }
    }
    if let Some(row) = near.get_mut(node) {
        *row = mine;
    }
}
