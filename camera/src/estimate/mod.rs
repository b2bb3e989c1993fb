//! An estimate of the number of nodes, by a node that knows only part of them.
//!
//! Walks go out over the overlay (the graph of nodes that know each other). Each walk ends at any
//! node with equal probability, and that node answers. An estimate of the number N of nodes, and an
//! upper bound of stated confidence, follow from the share of answers from nodes that are known
//! already. The method is *Sample & Collide* of L. Massoulie, E. Le Merrer, A.-M. Kermarrec and A.
//! Ganesh, "Peer counting and sampling in overlay networks: random walk methods" (PODC 2006), with
//! one addition: the collection does not begin empty but with the initiator's own list.
//!
//! # Promises
//!
//! | promise | assumptions |
//! |---|---|
//! | N exceeds `max_lives` in at most [`Config::miss`] of all estimates | N does not change meanwhile; no node is the end of a walk more often than (1 + [`Config::skew`]) / N; lost walks would have ended with the same distribution as the others; answers come from the nodes that they name as senders |
//! | `nodes` is the likeliest N, with a relative variance of about 1 / [`Config::hits`] or less | the same, and no node on the list has left or failed |
//! | an estimate ends, with a number or with a reason | timers tick (the driver's work) |
//! | memory is bounded for any input from peers; nothing panics | 16 bytes for each neighbour, 8 for each neighbour and each sample while an estimate is under way |
//! | handling a message takes O(log n) comparisons with n known nodes and moves the ids after a new one; the last answer takes O([`Config::sample_limit`] times [`Config::hits`]) at most | |
//!
//! *Not* promised: a node that no other node has on its list is not counted, because no walk gets
//! there. A part that was cut off is not counted either, and looks the same as a part that failed.
//!
//! # Walks
//!
//! A walk has a budget. At a node of degree d (the number of its neighbours) the budget falls by
//! E / d, with E drawn again at each stay, mean 1. The node where the budget ends is the sample;
//! otherwise the walk goes on to one of the d neighbours, all equally likely. In the long run it
//! spends the same time at each node: it visits a node in proportion to d and stays in proportion
//! to 1 / d. The budget is [`Config::length`] over the initiator's degree, so about `length` hops
//! if degrees are alike.
//!
//! In the paper E is exponential. Here it is one of eight values, the means of the eighths of that
//! distribution, so that a checker has few outcomes to explore and nothing is a float. This does
//! not change the distribution of a walk in the long run: only the mean of E counts, and that is
//! exactly 1. The speed of convergence changes. At a length of 8 a walk takes at least two hops, and no
//! more than two once in 500 times; an exponential one takes two or fewer once in 73 times, and
//! none once in 3,000. So if nearly every node knows nearly every other, the ends of walks are
//! much closer to uniformly distributed than with the exponential, for the same number of messages.
//! A node that has 20 % more or fewer neighbours than the mean is drawn 0.2 % more or less often
//! than its share at a length of 8 (2 % at 5, 0.3 % at 10). Fixed-point rounding adds less than d /
//! 2^24.
//!
//! The length that is needed depends on the overlay. Let m be the second largest absolute eigenvalue
//! of the walk from neighbour to neighbour. Then the distribution of a walk's end differs from the
//! uniform distribution by at most this:
//!
//! | m | overlay, for instance | length 8 | 16 | 20 |
//! |---|---|---|---|---|
//! | 0.05 | lists of N = 256 that miss a tenth | 0.000009 | | |
//! | 0.5 | random, 16 neighbours | 0.015 | 0.0002 | 0.00002 |
//! | 0.87 | random, 4 neighbours | 0.35 | 0.12 | 0.07 |
//!
//! times the square root of N. With more length it shrinks as e^((m - 1) length).
//! On a grid or a ring of near neighbours no practical length is enough, and the bound does not
//! hold there.
//!
//! **Degrees** may differ, but the initiator's own degree sets the length. An initiator with k
//! times the mean degree makes walks k times too short; with 1 / k of it, they are k times as long,
//! and walks of more than [`Config::hop_limit`] hops are dropped. Choose an initiator with a list of
//! usual length.
//!
//! **Edges may go one way** (a knows b, b does not know a). Then a node is drawn in proportion to
//! the number of nodes that know it over the number that it knows. The assumption is that the two
//! are about equal for each node. If lists lack a share q of the others at random, the draw is
//! uneven with a variance of v = 2 q / ((1 - q) N), which makes N look smaller by the factor
//! 1 / (1 + v): 0.5 % at N = 49 and q = 0.1. [`Config::skew`] covers that.
//!
//! **Loss** ends a walk; the initiator starts it again after [`Config::timeout`]. Walks with many
//! hops are lost more often, which matters only as far as degrees differ. A node that is hard to
//! reach for all others is drawn too seldom, as is a node that few others know.
//!
//! # From samples to a bound
//!
//! Let the collection begin with the a nodes on the initiator's list, itself included. A sample is
//! a *hit* when it is in the collection, which has s nodes then; otherwise it is added. So a hit
//! has probability s / N for any s nodes, and the likelihood of a course with u new
//! nodes among C samples is proportional to (N - a)! / ((N - a - u)! N^C). The likelihood depends
//! on the samples through (a, C, u) only, so no information of the samples is wasted. With a = 0 it
//! is the paper's likelihood. The estimate is its maximum.
//!
//! Sampling stops at [`Config::hits`] hits, or at [`Config::sample_limit`] samples. Order the
//! possible ends by the N that they suggest, small N first: an early last hit, a late last hit, the
//! limit with many hits, the limit with few. An end is at or before the end with C samples and l
//! hits exactly when there are at least l hits among the first C samples. The probability of this,
//! P(N), falls with N, and a sum of C times l terms gives it. `max_lives` is the largest N with P(N) >
//! `miss`. If the true N is above `max_lives`, then the end is one of a set of ends that together have
//! a probability of at most `miss`; that is the promise. Rounding goes to the side of a larger
//! bound.
//!
//! If no node is drawn with more than (1 + x) / N, the probability of a new node for a
//! collection of s is at least 1 - s (1 + x) / N: as if there were N / (1 + x) nodes, drawn alike.
//! So `max_lives` is then multiplied by 1 + `skew`. (This is the worst case, for the likeliest node;
//! in the mean over courses the variance of the draw counts, which is far less.)
//!
//! Members on the list that have left or failed make both numbers larger, by their share of the
//! list. So do nodes that leave after they were drawn. Nodes that join during an estimate count in
//! part.
//!
//! The estimate falls short of N by 1.3 % in the mean at N = 49, 0.2 % at N = 256 (computed for 64
//! hits and lists of nine tenths): it is the likeliest number, not an unbiased one.
//!
//! # Cost
//!
//! With the default settings and hops of 1 to 5 ms, as `tests/all/estimate` measures. Messages are
//! walks and answers; walks that were under way at the end are included.
//!
//! | lists | N | samples | messages | time | relative error | mean `max_lives` |
//! |---|---|---|---|---|---|---|
//! | complete | 49 / 256 | 64 | 600 / 610 | 0.2 s | 0 | 1.14 N |
//! | a tenth missing | 49 / 256 | 68 / 71 | 630 / 670 | 0.25 s | 3 % / 4 % | 1.20 N / 1.23 N |
//! | a tenth missing, 5 % loss | 49 / 256 | 67 / 71 | 770 / 810 | 5 s | 3 % / 4 % | 1.19 N / 1.23 N |
//! | a tenth missing, [`Config::count_known`] off | 49 / 256 | 107 / 205 | 990 / 1,870 | 0.4 / 0.7 s | 6 % / 10 % | 1.31 N / 1.44 N |
//!
//! Under loss the time is set by [`Config::timeout`], which is generous for such hops. Doubled
//! messages double walks, and each of the two goes on: with 10 % doubled, an estimate takes 1.6
//! times as many messages.
//!
//! # Why not a Random Tour
//!
//! The paper's other method sends one walk until it returns, which takes about N messages in a
//! dense overlay and gives N with a relative variance of about 1. For a variance of 1 / 64 it takes
//! 64 N messages, 16,000 at N = 256. Sample & Collide takes 600 with complete lists, and about
//! 9 sqrt(128 N) when the list is nearly empty. Above all, a tour that loses one message in twenty
//! returns only if it is short, and short tours suggest a small N: with 5 % loss no tour of 256
//! hops returns, and no upper bound follows from the tours that return. A walk here has 9 messages
//! for any N, and its end does not depend on its length.
//!
//! # Use
//!
//! ```
//! use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
//! use selvedge_camera::estimate::{Command, Config, Estimator, Event};
//! use selvedge_core::{Delta, Driver, Effect, Input, Member, Time};
//! use std::collections::VecDeque;
//!
//! let mut rng = ChaCha8Rng::seed_from_u64(1);
//! let member = |id| Member::new(id, 0);
//! let mut nodes = Vec::new();
//! for me in 0..20 {
//!     let mut node = Driver::new(Estimator::new(member(me), Config::default())?);
//!     // Each lacks two of the others.
//!     for other in (0..20).filter(|other| ![0, 1, 2].contains(&((20 + other - me) % 20))) {
//!         let joined = Input::Membership(Delta::Joined(member(other)));
//!         node.step(Time::ZERO, &mut rng, joined, |_| ())?;
//!     }
//!     nodes.push(node);
//! }
//!
//! let mut wire = VecDeque::new();
//! let estimate = Input::Command(Command::Estimate);
//! nodes[0].step(Time::ZERO, &mut rng, estimate, |effect| wire.push_back((0, effect)))?;
//! let mut notified = None;
//! while let Some((from, effect)) = wire.pop_front() {
//!     match effect {
//!         Effect::Send { to, message } => {
//!             let input = Input::Message { from: member(from), message };
//!             let at = to.id.0;
//!             nodes[at as usize].step(Time::ZERO, &mut rng, input, |effect| {
//!                 wire.push_back((at, effect));
//!             })?;
//!         }
//!         Effect::Event(event) => notified = Some(event),
//!         Effect::Multicast { .. } => {}
//!     }
//! }
//! let Some(Event::Estimated { nodes, max_lives, .. }) = notified else { panic!("{notified:?}") };
//! assert!((18..=24).contains(&nodes) && (20..=30).contains(&max_lives));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # From an estimate to the bound of every section
//!
//! A host that does not know the number of nodes makes estimates periodically, and gives the
//! upper bound to [`Sections`](crate::sections::Sections), which applies it to all its sections.
//! Three rules keep this safe:
//!
//! - begin with a bound that is not too low, for instance the number of devices that were bought:
//!   the first request may come before the first estimate;
//! - add the lives that may also be present: one for each node that restarts at the same time;
//! - only raise it. An estimate that is made across a partition does not count the nodes behind it,
//!   and with such a low bound both parts would let a node enter. Only an operator should lower
//!   the bound.
//!
//! ```
//! use selvedge_camera::{estimate, sections};
//!
//! /// The command to the sections after an estimate.
//! fn raised(bound: u32, spare: u32, notified: estimate::Event) -> Option<sections::Command> {
//!     let estimate::Event::Estimated { max_lives, .. } = notified else {
//!         return None; // No number, so the bound stays.
//!     };
//!     let max_lives = max_lives.saturating_add(spare);
//!     (max_lives > bound).then_some(sections::Command::SetMaxLives(max_lives))
//! }
//!
//! let notified = |max_lives| estimate::Event::Estimated {
//!     nodes: 40, max_lives, known: 40, samples: 64, fresh: 0,
//! };
//! assert_eq!(raised(49, 2, notified(50)), Some(sections::Command::SetMaxLives(52)));
//! assert_eq!(raised(49, 2, notified(45)), None);
//! ```

mod bound;
mod config;
mod event;
mod machine;
mod message;
mod walk;

pub use config::{Config, ConfigError};
pub use event::{Command, Counters, Event, Failure, Misbehaviour, Reject, Timer};
pub use machine::Estimator;
pub use message::{KIND, MESSAGE_MAX_LEN, Message, Walk};
