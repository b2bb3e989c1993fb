//! The requests to the building: visitors at the door, and runs by hand.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chacha20::ChaCha12Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, Span};
use selvedge_kgroup::TriggerId;
use selvedge_udp::Handle;
use tokio::time::{sleep, timeout};

use super::course::Course;
use super::limits::PAUSE;
use super::site::{DOOR, OPEN, Which};
use super::stage::Shared;

/// Triggers runs, one after another, each at some node that is up. A routine drops a trigger while
/// one run is active and another waits, so each trigger waits for the end of the former run, as
/// long as the limits allow.
pub(super) async fn request(
    routine: Which,
    shared: Arc<Shared>,
    is_closed: Arc<AtomicBool>,
    (period, patience): (Span, Span),
    seed: u64,
) {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    for id in (1..).map(TriggerId) {
        sleep(some(period, 1, 4, &mut rng)).await;
        if is_closed.load(Ordering::Relaxed) {
            return;
        }
        let before = shared.course().ended(routine);
        // A repetition is the same request, at any node.
        loop {
            // None is up while the whole building is dark.
            if let Some(node) = pick(&shared, &mut rng) {
                let asked = timeout((period * 10).into(), node.trigger(routine.group(), id));
                if matches!(asked.await, Ok(Ok(()))) {
                    break;
                }
            }
            sleep(some(period, 1, 2, &mut rng)).await;
        }
        *shared.course().asked.entry(routine).or_default() += 1;
        let is_over = |course: &Course| course.ended(routine) > before;
        let _is_long = wait_for(&shared, patience, is_over).await;
    }
}

/// Opens the door for visitors, one after another; the routine shuts it.
pub(super) async fn visit(
    shared: Arc<Shared>,
    is_closed: Arc<AtomicBool>,
    (period, patience): (Span, Span),
    seed: u64,
) {
    let mut rng = ChaCha12Rng::seed_from_u64(!seed);
    while !is_closed.load(Ordering::Relaxed) {
        let before = shared.course().ended(Which::Visitor);
        shared.rooms.touch(DOOR, OPEN);
        let is_over = |course: &Course| course.ended(Which::Visitor) > before;
        if !wait_for(&shared, patience, is_over).await {
            // The routine may not have shut it since the last visit.
            shared.rooms.touch(DOOR, "shut");
        }
        // A ping observes that it is shut.
        sleep(some(period, 5, PAUSE, &mut rng)).await;
    }
    shared.rooms.touch(DOOR, "shut");
}

/// Waits until a condition on the history holds, for at most `span`. Returns true if it does.
async fn wait_for(shared: &Shared, span: Span, is_so: impl Fn(&Course) -> bool) -> bool {
    const STEPS: u64 = 2_000;
    for _ in 0..STEPS {
        if is_so(&shared.course()) {
            return true;
        }
        sleep(Span(span.0 / STEPS).into()).await;
    }
    false
}

pub(super) fn pick(shared: &Shared, rng: &mut ChaCha12Rng) -> Option<Handle> {
    let up = shared.up();
    let at = rng.below(up.len().max(1) as u64);
    up.into_values().nth(usize::try_from(at).ok()?)
}

/// A random time between these numbers of periods.
fn some(period: Span, least: u64, most: u64, rng: &mut ChaCha12Rng) -> Duration {
    let spread = period * (most - least);
    (period * least + Span(rng.below(spread.0.max(1)))).into()
}
