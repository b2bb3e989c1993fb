//! How complete the lists of a lossy mesh are over time, for claims of protocols that run on them.

use selvedge_core::{Delta, Ratio, Span};
use selvedge_membership::Event;

use super::lab::{PERIOD, Placement, Setting, Variant};
use super::nodes::id;
use crate::claims::Fault;

pub(in crate::claims) const TENTHS: usize = 10;

/// A mesh placed at random in which every hop loses `loss` percent, and no node ever fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::claims) struct Lists {
    pub(in crate::claims) nodes: usize,
    pub(in crate::claims) loss: u32,
    /// Our leanest rules instead of the thesis'.
    pub(in crate::claims) ours: bool,
}

/// Figures of the lists, a node itself not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::claims) struct Completeness {
    /// Entries of all lists, summed over the periods of each tenth of the time.
    pub(in crate::claims) entries: [u64; TENTHS],
    /// The smallest list that each node ever had, summed over all nodes.
    pub(in crate::claims) smallest_of_each: u64,
    /// The smallest list of any node.
    pub(in crate::claims) smallest: u64,
    /// The fewest that two nodes ever had on both their lists, at the end of a period.
    pub(in crate::claims) common: u64,
    /// The number of declared failures: each is false.
    pub(in crate::claims) declared: u64,
}

impl Lists {
    /// Watches the lists for `periods` periods.
    pub(in crate::claims) fn watch(self, periods: u64, seed: u64) -> Result<Completeness, Fault> {
        let Self { nodes, loss, ours } = self;
        let variant = if ours { Variant::Lean } else { Variant::Plain };
        let setting = Setting {
            placement: Placement::Random,
            nodes,
            ..Setting::new(variant, 3)
        };
        let mut mesh = setting.settled(seed, Ratio::new(loss, 100))?;
        // Events from settling under loss are drained: begin with the lists as they are.
        let mut gaps: Vec<Gaps> = mesh
            .machines()
            .map(|(me, machine)| {
                let is_there = |it| machine.member(id(it)).is_some_and(|it| it.status.is_live());
                Gaps::of(nodes, (0..nodes).filter(|&it| it != me && !is_there(it)))
            })
            .collect();
        let others = nodes as u64 - 1;
        let mut seen = Completeness {
            smallest: others,
            common: others.saturating_sub(1),
            ..Completeness::default()
        };
        let mut most: Vec<u64> = gaps.iter().map(|it| it.count).collect();
        for period in 0..periods {
            mesh.run_for(Span::millis(PERIOD));
            let mut changed = false;
            for (_, node, event) in mesh.drain_events() {
                let Event::Changed(delta) = event else {
                    continue;
                };
                let about = delta.member().id.0 as usize - 1;
                let (Some(gaps), Some(most)) = (gaps.get_mut(node), most.get_mut(node)) else {
                    continue;
                };
                match delta {
                    Delta::Failed(_) => {
                        seen.declared += 1;
                        gaps.insert(about);
                        *most = gaps.count.max(*most);
                        changed = true;
                    }
                    Delta::Joined(_) | Delta::Refuted(_) => gaps.remove(about),
                    Delta::Suspected(_) | Delta::Left(_) | Delta::Confirmed(_) => {}
                }
            }
            let missing: u64 = gaps.iter().map(|it| it.count).sum();
            let tenth = (period * TENTHS as u64 / periods) as usize;
            if let Some(entries) = seen.entries.get_mut(tenth) {
                *entries += nodes as u64 * others - missing;
            }
            if changed {
                seen.common = fewest_common(&gaps, seen.common);
            }
        }
        for most in most {
            seen.smallest_of_each += others - most;
            seen.smallest = seen.smallest.min(others - most);
        }
        Ok(seen)
    }
}

/// The nodes missing on a list.
#[derive(Clone, Debug)]
struct Gaps {
    bits: Vec<u64>,
    count: u64,
}

impl Gaps {
    fn of(nodes: usize, missing: impl Iterator<Item = usize>) -> Self {
        let mut gaps = Self {
            bits: vec![0; nodes.div_ceil(64)],
            count: 0,
        };
        missing.for_each(|node| gaps.insert(node));
        gaps
    }

    fn insert(&mut self, node: usize) {
        if let Some(word) = self.bits.get_mut(node / 64) {
            self.count += u64::from(*word >> (node % 64) & 1 == 0);
            *word |= 1 << (node % 64);
        }
    }

    fn remove(&mut self, node: usize) {
        if let Some(word) = self.bits.get_mut(node / 64) {
            self.count -= *word >> (node % 64) & 1;
            *word &= !(1 << (node % 64));
        }
    }

    fn has(&self, node: usize) -> bool {
        let word = self.bits.get(node / 64);
        word.is_some_and(|word| word >> (node % 64) & 1 == 1)
    }
}

/// The smallest number of nodes that are on the lists of two nodes at once, these two not counted,
/// if that is below `known`.
fn fewest_common(gaps: &[Gaps], known: u64) -> u64 {
    let mut fewest = known;
    let others = gaps.len() as u64 - 2;
    let longest = gaps.iter().map(|it| it.count).max().unwrap_or_default();
    for (a, mine) in gaps.iter().enumerate() {
        // No pair with this one can be below.
        if others.saturating_sub(mine.count + longest) >= fewest {
            continue;
        }
        for (b, theirs) in gaps.iter().enumerate() {
            if a == b || others.saturating_sub(mine.count + theirs.count) >= fewest {
                continue;
            }
            let either = mine.bits.iter().zip(&theirs.bits);
            let missing: u64 = either.map(|(a, b)| u64::from((a | b).count_ones())).sum();
            let themselves = u64::from(mine.has(b)) + u64::from(theirs.has(a));
            fewest = fewest.min((others + themselves).saturating_sub(missing));
        }
    }
    fewest
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn two_that_miss_each_other_still_have_all_others_in_common() {
        let gaps = |missing: &[usize]| Gaps::of(70, missing.iter().copied());
        let mut lists: Vec<Gaps> = (0..70).map(|_| gaps(&[])).collect();
        assert_eq!(fewest_common(&lists, 100), 68);
        lists[0] = gaps(&[1]);
        lists[1] = gaps(&[0]);
        // 0 and 2 do not share 1.
        assert_eq!(fewest_common(&lists, 68), 67);
        lists[0] = gaps(&[1, 64, 65]);
        lists[69] = gaps(&[65, 66, 0]);
        assert_eq!(fewest_common(&lists, 68), 68 - 4);
        lists[69].remove(66);
        lists[69].remove(66);
        assert_eq!((lists[69].count, fewest_common(&lists, 68)), (2, 65));
    }
}
