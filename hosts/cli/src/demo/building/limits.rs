//! The limits of the building's times. They follow from the settings, as in the mesh.

use selvedge_core::Span;

use super::site::{EPOCH, PATIENCE, Which, settings};
use crate::demo::plan::Plan;

/// The number of questions in a run. It asks a dozen, one after another, and asks again after a
/// period if a message is lost; more than two dozen are needed less than once in a million runs.
const QUESTIONS: u64 = 24;
/// The longest time between two visitors, in periods.
pub(super) const PAUSE: u64 = 8;

/// The limits, each with its beginning and its end.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    /// Until all nodes see all.
    pub(super) join: Span,
    /// From a failure until all others know.
    pub(super) known: Span,
    /// From a restart until all nodes see all.
    pub(super) back: Span,
    /// From a request until a node has taken it.
    pub(super) asked: Span,
    /// From the request for another site until all nodes have it.
    pub(super) taken: Span,
    /// Between two ends of runs.
    pub(super) gap: Span,
    /// The derivation of `gap` from the settings.
    pub(super) why: String,
    /// Until a run of each routine has ended, when all others know of a failure.
    pub(super) each: Span,
}

impl Limits {
    pub(super) fn new(plan: &Plan) -> Self {
        let period = plan.config.period;
        let devices = settings(period).devices;
        let (detect, spread) = (plan.bounds.detect.span, plan.bounds.spread.span);
        // Until a live member leads: the first candidate may be dead, too.
        let lead = period * (PATIENCE * 2);
        let questions = period * QUESTIONS;
        // A leader that finds a command under way holds its device until the host of the former
        // leader can no longer act.
        let hold = devices.act_timeout * 2;
        let holds = holds(questions, hold, period * EPOCH);
        let run = questions + hold * holds;
        let gap = detect + spread + lead + run;
        // A visitor comes, and is noticed. Then each run may wait for the runs of all other
        // routines.
        let visit = period * PAUSE + devices.ping + devices.ping_timeout;
        Self {
            join: plan.bounds.join.span,
            known: detect + spread,
            back: plan.bounds.back.span,
            asked: questions,
            taken: lead + questions,
            gap,
            why: format!(
                "{detect:?} until a failure is detected + {spread:?} until all {} know + {lead:?} until a live member leads + {run:?} for a run: {QUESTIONS} questions, lost ones included, and {holds} times {hold:?}, for which a device is held when a leader fails or an epoch begins amid a command",
                plan.nodes
            ),
            each: lead + visit + run * Which::ALL.len() as u64,
        }
    }
}

/// The number of times that a run finds its device held: once when a leader fails, and once for each
/// epoch that begins during the run with all these holds.
fn holds(questions: Span, hold: Span, epoch: Span) -> u64 {
    let (all, rest) = (questions + hold, epoch - hold);
    1 + all.0.div_ceil(rest.0.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha12Rng;
    use rand_core::SeedableRng;

    /// Otherwise a run might never end.
    #[test]
    fn a_device_that_is_held_is_free_before_the_next_epoch() {
        let period = Span::millis(200);
        assert!(settings(period).devices.act_timeout * 2 < period * EPOCH);
    }

    #[test]
    fn a_run_is_over_before_more_epochs_begin_than_it_has_time_for() {
        let [questions, hold, epoch] = [24, 10, 30].map(Span::secs);
        let holds = holds(questions, hold, epoch);
        assert_eq!(holds, 3, "one failure and two epochs");
        assert!(questions + hold * holds <= epoch * (holds - 1));
    }

    #[test]
    fn all_limits_are_in_proportion_to_the_period() {
        let limits = |millis| {
            let mut rng = ChaCha12Rng::seed_from_u64(1);
            let it = Limits::new(&Plan::new(10, Span::millis(millis), &mut rng));
            [
                it.join, it.known, it.back, it.asked, it.taken, it.gap, it.each,
            ]
        };
        assert_eq!(limits(50).map(|it| it * 100), limits(5_000));
    }
}
