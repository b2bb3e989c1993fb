//! Estimation of c, the largest number of lists from which a live node is missing (chapter 7 of the
//! thesis).
//!
//! The parts are small and pure. [`Config::estimation`](crate::Config::estimation) makes a machine
//! use them, and is optional. Each part exists as the thesis means it, with its errata corrected,
//! and, behind the feature `check`, as it is printed (`estimate::published`).
//!
//! | part | result | as printed |
//! |---|---|---|
//! | [`sample_size`] | the number of lists to ask for | `published::sample_size` (erratum Z1) |
//! | [`Tally`] | from lists to the paper's estimate, one without its bias, and an upper bound | `published::sampling` (Z2, Z3) |
//! | [`Feedback`] | an estimate from the share of runs whose answers named one candidate only | `published::feedback` (F1) |
//! | [`Average`] | the running average of either; with [`Tally`] it is Sample-Window | the same formula (7.1) |
//! | [`largest_churn`], [`Misses`] | upper bounds of stated confidence | not in the thesis |
//!
//! # A bound, not an estimate
//!
//! An election is right when c is not too low. Any mean is too low in half of all cases. So an
//! election uses a number that the real c exceeds in at most a share `miss` of all samples.
//!
//! # The bound
//!
//! Let the sampler know P others, and let s of them, drawn with equal chances, answer with their
//! lists. Let k be the most answers that lack one live node. Take a node that is missing from the
//! most lists of these P: from c of them. As many answers lack that node as a draw of s from P
//! without replacement has of c marked ones, and k is no smaller. The bound U(k) is the largest c
//! for which k or fewer in the draw are likelier than the miss. It rises with k. Hence c > U(k)
//! only if that one node was in the answers too often, which is no likelier than the miss. **No
//! union over all nodes is needed**: the upward bias of the maximum of many is on the safe side
//! here.
//!
//! Three things are added:
//!
//! - *Lists that could not be drawn.* A node that the answers name and the sampler does not know
//!   was in no draw. All such lists are asked for as well, and count as they are. Lists that do not
//!   come count as lacking every node.
//! - *Dead nodes.* A dead node is missing from more and more lists. A node that the sampler does not
//!   list is left out when m answers lack it, where m or more would lack a live node on half of all
//!   lists only with a probability of at most half of the miss. So U gets the other half of the
//!   miss. The assumption is that no live node is missing from more than half of the lists. A node
//!   that the sampler lists is never left out: while news of a death spreads, bounds are too large,
//!   not too low.
//! - *Nodes in no answer.* These are not counted. Under the same assumption this has a probability of
//!   at most the same half of the miss; where it is likelier, there are too few answers and no bound.
//!
//! A further assumption is that the choice of answering nodes does not depend on the lists'
//! contents. A node that no other can reach, and that has the worst list, breaks it. And the bound
//! is for the time of the sample: the margin in [`Estimation`](crate::Estimation) covers later
//! changes.
//!
//! # The estimate without bias
//!
//! The paper's estimate, k N / s, is the maximum of many chance numbers: with N = 128, s = 32 and
//! every node missing from 13 lists it gives 30 in the mean. Here the answers are divided into two
//! halves, in order of arrival. The node that is missing most in one half is counted in the other half,
//! with k1 + k2 (P - s1) / s2, whose mean is that node's true number. The same is done with the
//! halves exchanged, and the estimate is the mean of both. The remaining bias comes from choosing a
//! node that is not the worst, and is downward. `celect/tests/all/estimate.rs` measures it at
//! N = 128, c = 13:
//!
//! | misses | s | paper's | this |
//! |---|---|---|---|
//! | every node in 13 lists | 32 / 50 / 64 | 30 / 25 / 21 | 13 / 13 / 13 |
//! | one node in 13, others in none | 32 / 50 / 64 | 13 / 13 / 13 | 12 / 13 / 13 |
//! | spread evenly from 0 to 13 | 32 / 50 / 64 | 25 / 21 / 19 | 11 / 12 / 12 |
//! | around 6, with few at 13 | 32 / 50 / 64 | 21 / 18 / 16 | 9 / 9 / 10 |
//!
//! # Feedback
//!
//! If its answers disagree, an initiator has received a list without the lowest node. [`Feedback`]
//! is the thesis' formula, from a pool of many runs. It estimates the misses of the lowest node only. As c
//! grows, nearly all runs disagree and the formula loses information: if every value is 2 it gives
//! N. [`Misses`] needs more from initiators: the *number* of answers, and of those that lack the
//! lowest node, which does not saturate. The machine uses `Misses`.
//!
//! # Numbers
//!
//! Floats of IEEE 754 with its four operations, and roots and powers of `libm`, in software: the
//! same on every platform. No two nodes must agree on them, and no machine keeps one in its state.

mod average;
mod bound;
mod feedback;
#[cfg(feature = "check")]
pub mod published;
mod size;
mod tally;

pub use average::Average;
pub use bound::{Misses, largest_churn};
pub use feedback::Feedback;
pub use size::{sample_size, z_score};
pub use tally::{Estimate, Tally, TooFew};

use selvedge_core::Ratio;

/// Returns a ratio as a number from 0 to 1.
pub(crate) fn share(ratio: Ratio) -> f64 {
    if ratio.numerator == 0 || ratio.denominator == 0 {
        return 0.0;
    }
    (f64::from(ratio.numerator) / f64::from(ratio.denominator)).min(1.0)
}
