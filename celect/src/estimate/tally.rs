//! From lists to estimates.

use alloc::vec::Vec;

use selvedge_core::{BoundedMap, Full, Incarnation, Member, NodeId, Ratio};
use thiserror::Error;

use super::bound::{largest, so_few};
use super::share;

/// The nodes that lists name, with counts: the corrected Algorithm 6 (erratum Z2). Memory is about
/// 32 bytes for each node, for any number of lists.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tally {
    /// The number of lists in each half of the answers.
    lists: [u16; 2],
    nodes: BoundedMap<NodeId, Named>,
    /// The number of nodes that could be drawn, without the sampler.
    others: u32,
}

/// A node's latest known life, and the number of lists that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Named {
    incarnation: Incarnation,
    named: [u16; 2],
    /// The number of lists that name it, of nodes that the sampler did not know.
    named_outside: u16,
    /// True if the sampler knew it.
    known: bool,
    /// True if its own list has arrived.
    answered: bool,
}

impl Named {
    /// Counts a list that names this node.
    const fn count(&mut self, own: bool, is_drawn: bool, half: usize) {
        self.answered |= own;
        if is_drawn {
            bump(&mut self.named, half);
        } else {
            self.named_outside = self.named_outside.saturating_add(1);
        }
    }
}

/// An estimate of c from lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Estimate {
    /// The number of nodes: the sampler, the nodes that it knows, and the nodes that lists name,
    /// without nodes that are believed dead.
    pub nodes: u32,
    /// The number of lists that were used, of nodes that the sampler knew.
    pub lists: u16,
    /// The largest number of these lists that lack one node.
    pub missing: u16,
    /// The paper's estimate, k N / s, rounded up: too large where many nodes are missing somewhere
    /// (erratum Z3).
    pub paper: u32,
    /// The estimate without that bias, rounded up; the [module's page](super) has the
    /// remaining bias.
    pub likely: u32,
    /// A bound that c exceeds in at most `miss` of all samples.
    pub upper_bound: u32,
    /// See `upper_bound`.
    pub miss: Ratio,
}

/// Too few lists for any bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[error(
    "{lists} lists of {others} are too few for a bound with a miss of {} in {}: ask for more, or \
     allow a larger miss",
    miss.numerator,
    miss.denominator
)]
pub struct TooFew {
    /// The number of lists.
    pub lists: u16,
    /// The number of known others.
    pub others: u32,
    /// The requested miss.
    pub miss: Ratio,
}

impl Tally {
    /// Returns a tally without lists. The sampler is `me` and knows `others`, from which it draws; at most
    /// `limit` nodes are remembered.
    ///
    /// # Errors
    /// [`Full`] when the sampler knows more.
    pub fn new(
        me: Member,
        others: impl IntoIterator<Item = Member>,
        limit: usize,
    ) -> Result<Self, Full> {
        let mut tally = Self {
            lists: [0; 2],
            nodes: BoundedMap::new(limit),
            others: 0,
        };
        for member in core::iter::once(me).chain(others) {
            let known = Named {
                incarnation: member.incarnation,
                named: [0; 2],
                named_outside: 0,
                known: true,
                answered: false,
            };
            if tally.nodes.insert(member.id, known)?.is_none() {
                tally.others += 1;
            }
        }
        tally.others = tally.others.saturating_sub(1);
        Ok(tally)
    }

    /// Adds a list and its owner: the owner counts as named. Lists of nodes that the sampler did not
    /// know are not in the draw, and are counted apart. O(n log n), and moves the nodes behind a new
    /// one.
    ///
    /// # Errors
    /// [`Full`] when the list names a new node and the tally has no room. Then the tally is unusable.
    pub fn add(
        &mut self,
        owner: Member,
        list: impl IntoIterator<Item = Member>,
    ) -> Result<(), Full> {
        let mut list: Vec<Member> = list.into_iter().chain([owner]).collect();
        list.sort_unstable();
        list.dedup_by(|next, last| {
            if next.id == last.id && next.supersedes(*last) {
                *last = *next;
            }
            next.id == last.id
        });
        let is_drawn = self.nodes.get(&owner.id).is_some_and(|it| it.known);
        let half = usize::from(self.lists() % 2);
        for member in list {
            let incarnation = member.incarnation;
            match self.nodes.get_mut(&member.id) {
                Some(node) if node.incarnation.newer_than(incarnation) => {}
                Some(node) => {
                    if node.incarnation != incarnation {
                        // Lists that named its former life lack this one.
                        node.incarnation = incarnation;
                        node.named = [0; 2];
                        node.named_outside = 0;
                    }
                    node.count(member == owner, is_drawn, half);
                }
                None => {
                    let mut node = Named {
                        incarnation,
                        named: [0; 2],
                        named_outside: 0,
                        known: false,
                        answered: false,
                    };
                    node.count(member == owner, is_drawn, half);
                    self.nodes.insert(member.id, node)?;
                }
            }
        }
        if is_drawn {
            bump(&mut self.lists, half);
        }
        Ok(())
    }

    /// The number of lists.
    #[must_use]
    pub const fn lists(&self) -> u16 {
        let [first, second] = self.lists;
        first.saturating_add(second)
    }

    /// Returns the estimate of c from the lists. `is_listed` is true for nodes that are now on the
    /// sampler's own list. c exceeds the bound in at most `miss` of all samples. O(n + s log n).
    ///
    /// # Errors
    /// [`TooFew`] lists for any bound.
    pub fn estimate(
        &self,
        is_listed: impl Fn(Member) -> bool,
        miss: Ratio,
    ) -> Result<Estimate, TooFew> {
        let lists = self.lists();
        let half_of_miss = share(miss) / 2.0;
        let too_few = TooFew {
            lists,
            others: self.others,
            miss,
        };
        let ended = self.taken_for_gone(half_of_miss).ok_or(too_few)?;
        let live = || self.live(&is_listed, ended);
        let missing = live().map(|(_, it)| sum(self.lacking(it))).max();
        let missing = missing.unwrap_or(0);
        let nodes = u32::try_from(live().count()).unwrap_or(u32::MAX);
        let paper = (u64::from(missing) * u64::from(nodes)).div_ceil(u64::from(lists.max(1)));
        Ok(Estimate {
            nodes,
            lists,
            missing,
            paper: u32::try_from(paper).unwrap_or(u32::MAX),
            likely: self.likely(live).max(missing.into()),
            upper_bound: self.upper_bound(live, half_of_miss),
            miss,
        })
    }

    /// Returns the nodes that were named and not known to the sampler: their lists can be asked for,
    /// and make the bound smaller.
    pub fn strangers(&self) -> impl Iterator<Item = Member> + '_ {
        let strangers = self
            .nodes
            .iter()
            .filter(|(_, it)| !it.known && !it.answered);
        strangers.map(|(&id, it)| Member {
            id,
            incarnation: it.incarnation,
        })
    }

    /// Returns all known nodes, in their latest lives, except nodes that are believed dead.
    pub(crate) fn members<'a>(
        &'a self,
        is_listed: &'a impl Fn(Member) -> bool,
        miss: Ratio,
    ) -> impl Iterator<Item = Member> + 'a {
        let ended = self.taken_for_gone(share(miss) / 2.0).unwrap_or(u16::MAX);
        self.live(is_listed, ended).map(|(member, _)| member)
    }

    /// Returns the number of lists without a node from which on the node is believed dead: a node on
    /// half of all lists is missing from that many with probability `miss` at most. `None` when not
    /// even all lists are enough.
    fn taken_for_gone(&self, miss: f64) -> Option<u16> {
        let (half, drawn) = (self.others / 2, u32::from(self.lists()).min(self.others));
        (1..=self.lists())
            .find(|&lists| 1.0 - so_few(self.others, half, drawn, u32::from(lists) - 1) <= miss)
    }

    fn live<'a>(
        &'a self,
        is_listed: &'a impl Fn(Member) -> bool,
        ended: u16,
    ) -> impl Iterator<Item = (Member, Named)> + 'a {
        self.nodes.iter().filter_map(move |(&id, &node)| {
            let member = Member {
                id,
                incarnation: node.incarnation,
            };
            let is_live = is_listed(member) || sum(self.lacking(node)) < ended;
            is_live.then_some((member, node))
        })
    }

    fn lacking(&self, node: Named) -> [u16; 2] {
        let ([all, other_all], [named, other_named]) = (self.lists, node.named);
        [
            all.saturating_sub(named),
            other_all.saturating_sub(other_named),
        ]
    }

    /// A bound on the number of lists that lack any node: of the lists that could be drawn, and of
    /// all others.
    fn upper_bound<I: Iterator<Item = (Member, Named)>>(
        &self,
        live: impl Fn() -> I,
        miss: f64,
    ) -> u32 {
        let outside = u32::try_from(live().filter(|(_, it)| !it.known).count());
        let outside = outside.unwrap_or(u32::MAX);
        // Indexed by how many lists lack a node: the most that lists outside may add.
        let mut most: Vec<Option<u32>> = Vec::new();
        most.resize(usize::from(self.lists()) + 1, None);
        for (_, node) in live() {
            let lacks = outside.saturating_sub(node.named_outside.into());
            // A stranger is not on the sampler's list. If the stranger's own list did not arrive,
            // that list was already counted as lacking the stranger.
            let lacks = lacks.saturating_add((!node.known && node.answered).into());
            if let Some(most) = most.get_mut(usize::from(sum(self.lacking(node)))) {
                *most = (*most).max(Some(lacks));
            }
        }
        let bounds = (0..).zip(most).filter_map(|(missing, lacks)| {
            let lacks = lacks?;
            let drawn = largest(self.others, self.lists().into(), missing, miss);
            Some(drawn.saturating_add(lacks))
        });
        bounds.max().unwrap_or(self.others)
    }

    /// Returns the estimate without bias: the node that is missing most in one half is counted in the
    /// other.
    fn likely<I: Iterator<Item = (Member, Named)>>(&self, live: impl Fn() -> I) -> u32 {
        let found = [0, 1].map(|half| {
            let other = 1 - half;
            let at = |lists: [u16; 2], half: usize| lists.get(half).copied().unwrap_or(0);
            let lacking = live().map(|(_, node)| self.lacking(node));
            // The first of equals.
            let worst = lacking.reduce(|worst, it| {
                if at(it, half) > at(worst, half) {
                    it
                } else {
                    worst
                }
            })?;
            let drawn = f64::from(at(self.lists, other));
            if drawn == 0.0 {
                return None;
            }
            let rest = (f64::from(self.others) - f64::from(at(self.lists, half))).max(drawn);
            Some(f64::from(at(worst, half)) + f64::from(at(worst, other)) * rest / drawn)
        });
        match found {
            [Some(one), Some(two)] => libm::ceil((one + two) / 2.0) as u32,
            [..] => 0,
        }
    }
}

const fn bump([first, second]: &mut [u16; 2], half: usize) {
    let count = if half == 0 { first } else { second };
    *count = count.saturating_add(1);
}

const fn sum([one, two]: [u16; 2]) -> u16 {
    one.saturating_add(two)
}
