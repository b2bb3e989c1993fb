//! The times that changes of maps and waits for holds take, as histograms.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::time::Instant;

use super::refusal::Refusal;

/// The upper ends of the buckets of changes, in seconds.
const CHANGES: [f64; 13] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// The upper ends of the buckets of waits, in seconds. An hour is the longest wait.
const WAITS: [f64; 13] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 900.0, 3_600.0,
];

type Kind = [(&'static str, &'static str); 1];

/// The times since the process began. Clones are of the same ones.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    changes: Histogram,
    waits: Family<Kind, Histogram, fn() -> Histogram>,
    registry: Arc<Registry>,
}

impl Latencies {
    pub(super) fn new() -> Self {
        let changes = Histogram::new(CHANGES);
        let waits = Family::new_with_constructor((|| Histogram::new(WAITS)) as fn() -> Histogram);
        let mut registry = Registry::with_prefix("selvedge");
        let help = "The time to decide a change of a map";
        registry.register_with_unit("change", help, Unit::Seconds, changes.clone());
        let help = "The time until a client had what it waited for";
        registry.register_with_unit("wait", help, Unit::Seconds, waits.clone());
        Self {
            changes,
            waits,
            registry: Arc::new(registry),
        }
    }

    /// The outcome of a change, whose time counts if it was decided.
    pub(super) async fn of_change<T>(
        &self,
        change: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let begun = now();
        let done = change.await?;
        self.changes.observe(since(begun));
        Ok(done)
    }

    /// The outcome of a wait, whose time counts if it ended with a hold.
    pub(super) async fn of_wait<T>(
        &self,
        kind: &'static str,
        wait: impl Future<Output = Option<Result<T, Refusal>>>,
    ) -> Result<Option<T>, Refusal> {
        let begun = now();
        let held = wait.await.transpose()?;
        if held.is_some() {
            let waits = self.waits.get_or_create(&[("kind", kind)]);
            waits.observe(since(begun));
        }
        Ok(held)
    }

    /// Writes them in the text format of Prometheus.
    pub(super) fn write(&self, text: &mut String) -> fmt::Result {
        encode_registry(text, &self.registry)
    }
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn now() -> Instant {
    Instant::now()
}

fn since(begun: Instant) -> f64 {
    let passed: Duration = begun.elapsed();
    passed.as_secs_f64()
}
