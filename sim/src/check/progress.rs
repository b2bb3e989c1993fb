//! Backwards breadth-first search, for states from which a goal is out of reach.

/// The targets of transitions, state by state in the order of their numbers.
///
/// 4 bytes a transition and 4 a state; as much again while they are turned round.
pub(super) struct Edges {
    wanted: bool,
    /// Where the targets of each state begin.
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Edges {
    /// A list that stays empty unless `wanted`.
    pub(super) const fn new(wanted: bool) -> Self {
        Self {
            wanted,
            starts: Vec::new(),
            targets: Vec::new(),
        }
    }

    /// The next state's transitions follow.
    pub(super) fn begin(&mut self) {
        if self.wanted {
            self.starts.push(self.end());
        }
    }

    /// A transition of the current state.
    pub(super) fn add(&mut self, target: u32) {
        if !self.wanted {
            return;
        }
        let start = self.starts.last().map_or(0, |&start| start as usize);
        let own = self.targets.get(start..).unwrap_or_default();
        if !own.contains(&target) {
            self.targets.push(target);
        }
    }

    /// The transitions by target instead of by source.
    pub(super) fn reversed(&self) -> Reversed {
        let states = self.starts.len();
        let mut starts = vec![0_u32; states + 1];
        for &target in &self.targets {
            if let Some(count) = starts.get_mut(target as usize + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut free = starts.clone();
        let mut sources = vec![0_u32; self.targets.len()];
        for (source, range) in (0_u32..).zip(self.ranges()) {
            for &target in self.targets.get(range).unwrap_or_default() {
                if let Some(slot) = free.get_mut(target as usize) {
                    if let Some(place) = sources.get_mut(*slot as usize) {
                        *place = source;
                    }
                    *slot += 1;
                }
            }
        }
        Reversed { starts, sources }
    }

    fn ranges(&self) -> impl Iterator<Item = core::ops::Range<usize>> + '_ {
        let ends = self.starts.iter().skip(1).copied().chain([self.end()]);
        self.starts
            .iter()
            .zip(ends)
            .map(|(&start, end)| start as usize..end as usize)
    }

    fn end(&self) -> u32 {
        u32::try_from(self.targets.len()).unwrap_or(u32::MAX)
    }

    /// Returns true if there are more transitions than can be numbered.
    pub(super) const fn overflowed(&self) -> bool {
        self.targets.len() >= u32::MAX as usize
    }
}

/// Transitions by their target.
pub(super) struct Reversed {
    starts: Vec<u32>,
    sources: Vec<u32>,
}

impl Reversed {
    /// The first state in which the goal is asked for (bit 0 of its mark) and from which no state
    /// with the goal (bit 1) can be reached. O(states + transitions).
    pub(super) fn stuck(&self, marks: &[u8]) -> Option<u32> {
        let mut reaches = vec![false; marks.len()];
        let mut work: Vec<u32> = Vec::new();
        for ((number, mark), reached) in (0_u32..).zip(marks).zip(&mut reaches) {
            if mark & 2 != 0 {
                *reached = true;
                work.push(number);
            }
        }
        while let Some(state) = work.pop() {
            let at = state as usize;
            let (Some(&start), Some(&end)) = (self.starts.get(at), self.starts.get(at + 1)) else {
                continue;
            };
            for &source in self
                .sources
                .get(start as usize..end as usize)
                .unwrap_or_default()
            {
                if let Some(reached) = reaches.get_mut(source as usize)
                    && !*reached
                {
                    *reached = true;
                    work.push(source);
                }
            }
        }
        let stuck = |(_, (mark, reached)): &(u32, (&u8, &bool))| **mark & 1 != 0 && !**reached;
        (0..)
            .zip(marks.iter().zip(&reaches))
            .find(stuck)
            .map(|(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stuck(edges: &[&[u32]], marks: &[u8]) -> Option<u32> {
        let mut all = Edges::new(true);
        for targets in edges {
            all.begin();
            for &target in *targets {
                all.add(target);
            }
        }
        all.reversed().stuck(marks)
    }

    #[test]
    fn a_cycle_without_the_goal_is_found() {
        // 0 -> 1 -> 3 (goal), 0 -> 2 <-> 4
        let edges: [&[u32]; 5] = [&[1, 2], &[3], &[4], &[], &[2]];
        assert_eq!(stuck(&edges, &[1, 1, 1, 3, 1]), Some(2));
        assert_eq!(stuck(&edges, &[1, 1, 0, 3, 0]), None);
        assert_eq!(stuck(&edges, &[1, 1, 1, 3, 3]), None);
        assert_eq!(stuck(&edges, &[1, 1, 1, 1, 1]), Some(0));
    }
}
