//! The metrics of a house, in the text format of Prometheus.
//!
//! | metric | meaning |
//! |---|---|
//! | `selvedge_hub_runs_accepted_total` | runs that were taken, since the process began |
//! | `selvedge_hub_runs_ended_total` | runs that ended, by `end`: `done` or `undone` |
//! | `selvedge_hub_refused_total` | runs of triggers that were refused, and reports that came too late |
//! | `selvedge_hub_commands_total` | commands, by `outcome`: `done`, `refused` or `unknown` |
//! | `selvedge_hub_runs` | runs that are not finished, by `what`: `waits`, `runs` or `aborting` |
//! | `selvedge_hub_devices` | devices, by `up` |
//! | `selvedge_hub_write_seconds` | the time to store changes, with the fsync |

use core::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::watch;

use crate::house::View;

/// A histogram of the time to store changes, from 0.1 ms to 3 s.
#[must_use]
pub fn write_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 16))
}

/// The metrics of a house.
#[derive(Clone, Debug)]
pub struct Metrics(Arc<Registry>);

impl Metrics {
    /// The metrics of the view, and of the writes.
    #[must_use]
    pub fn new(view: watch::Receiver<Arc<View>>, writes: Histogram) -> Self {
        let mut registry = Registry::with_prefix("selvedge_hub");
        registry.register_collector(Box::new(Seen(view)));
        let help = "The time to store changes";
        registry.register_with_unit("write", help, Unit::Seconds, writes);
        Self(Arc::new(registry))
    }

    /// All metrics, as text.
    ///
    /// # Errors
    /// Never in practice: it writes into a string.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.0)?;
        Ok(text)
    }
}

/// The view, as metrics.
#[derive(Debug)]
struct Seen(watch::Receiver<Arc<View>>);

type Labels = [(&'static str, &'static str); 1];

impl Collector for Seen {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let view = Arc::clone(&self.0.borrow());
        let counts = view.counts;
        let mut count = |name, help, all: &[(Option<Labels>, u64)]| {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (labels, number) in all {
                let number = ConstCounter::new(*number);
                match labels {
                    Some(labels) => number.encode(metric.encode_family(labels)?)?,
                    None => return number.encode(metric),
                }
            }
            Ok::<(), fmt::Error>(())
        };
        count(
            "runs_accepted",
            "Runs that were taken",
            &[(None, counts.accepted)],
        )?;
        let ended = [
            (Some([("end", "done")]), counts.committed),
            (Some([("end", "undone")]), counts.aborted),
        ];
        count("runs_ended", "Runs that ended", &ended)?;
        let help = "Runs of triggers that were refused, and reports that came too late";
        count("refused", help, &[(None, view.refused)])?;
        let outcomes = [
            (Some([("outcome", "done")]), counts.done),
            (Some([("outcome", "refused")]), counts.refused),
            (Some([("outcome", "unknown")]), counts.unknown),
        ];
        count("commands", "Commands, by outcome", &outcomes)?;
        let of = |what| view.runs.iter().filter(|it| it.what == what).count();
        let runs = ["waits", "runs", "aborting"].map(|it| ([("what", it)], of(it)));
        gauge(&mut encoder, "runs", "Runs that are not finished", &runs)?;
        let up = |is_up| view.devices.iter().filter(|it| it.up == is_up).count();
        let devices = [([("up", "true")], up(true)), ([("up", "false")], up(false))];
        gauge(&mut encoder, "devices", "Devices", &devices)
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    all: &[(Labels, usize)],
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, number) in all {
        let number = ConstGauge::new(i64::try_from(*number).unwrap_or(i64::MAX));
        number.encode(metric.encode_family(labels)?)?;
    }
    Ok(())
}
