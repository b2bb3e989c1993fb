//! The number of trials of SafeHome's scenarios per second: in all six models of its authors'
//! program, one after the other, and in each alone.
//!
//! Each trial draws another scenario. A trial in all six draws the same one six times.

#![allow(
    clippy::unwrap_used,
    missing_docs,
    reason = "a bench of trials that cannot be run fails by panicking"
)]

use core::hint::black_box;
use core::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use selvedge_lab::claims::{Experiment, safehome};

/// The model that the authors' program does not have.
const OURS: &str = "S-GSV";

fn trials(c: &mut Criterion) {
    let all: Vec<Experiment> = safehome::scenarios().collect();
    for scenario in ["morning", "party", "factory"] {
        let mut group = c.benchmark_group(scenario);
        group.throughput(Throughput::Elements(1));
        group.sample_size(20).warm_up_time(Duration::from_secs(1));
        let prefix = format!("safehome: {scenario}, ");
        let models = all
            .iter()
            .filter_map(|it| Some((it.name.strip_prefix(&prefix)?, it)));
        let (_, theirs): (Vec<_>, Vec<_>) = models.clone().filter(|it| it.0 != OURS).unzip();
        let each = models.map(|(model, it)| (model, vec![it]));
        for (name, experiments) in [("all six", theirs)].into_iter().chain(each) {
            let mut seed = 0;
            group.bench_function(name, |b| {
                b.iter(|| {
                    seed += 1;
                    for experiment in &experiments {
                        black_box((experiment.run)(seed).unwrap());
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, trials);
criterion_main!(benches);
