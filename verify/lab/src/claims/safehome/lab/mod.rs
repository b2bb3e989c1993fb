//! A home in virtual time: its loads, and its figures.

mod explain;
mod home;
mod sample;
mod world;

use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::Time;
use selvedge_safehome::{Scheduler, Visibility};

use self::home::Home;
use super::scenario::{Micro, factory, morning, party, short_factory, some};
use crate::claims::stats::mean;
use crate::claims::{Experiment, Fault, Sample, Samples};

/// The number of parts in which shares are kept.
const PARTS: u64 = 1_000_000;

/// The visibility model, and the placement of routines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) visibility: Visibility,
    pub(super) scheduler: Scheduler,
    pub(super) pre_leases: bool,
    pub(super) post_leases: bool,
    /// [`Config::stretch`](selvedge_safehome::Config::stretch): the most that a plan may take, in
    /// percent of the time of the commands, if there is such a plan.
    pub(super) stretch: u16,
}

/// The default of [`Model::stretch`].
const STRETCH: u16 = 300;

const fn model(name: &'static str, visibility: Visibility, scheduler: Scheduler) -> Model {
    Model {
        name,
        visibility,
        scheduler,
        pre_leases: true,
        post_leases: true,
        stretch: STRETCH,
    }
}

pub(super) const EV: Model = model("EV", Visibility::Eventual, Scheduler::Timeline);
pub(super) const JIT: Model = model("JiT", Visibility::Eventual, Scheduler::JustInTime);
pub(super) const FCFS: Model = model("FCFS", Visibility::Eventual, Scheduler::FirstCome);
/// The setting of the authors' program.
pub(super) const JIT_ALONE: Model = Model {
    pre_leases: false,
    post_leases: false,
    ..JIT
};
pub(super) const FCFS_ALONE: Model = Model {
    post_leases: false,
    ..FCFS
};
pub(super) const PSV: Model = model("PSV", Visibility::PartitionedStrict, Scheduler::Timeline);
pub(super) const GSV: Model = model("GSV", Visibility::GlobalStrict, Scheduler::Timeline);
pub(super) const S_GSV: Model = model("S-GSV", Visibility::StrongGlobalStrict, Scheduler::Timeline);
pub(super) const WV: Model = model("WV", Visibility::Weak, Scheduler::Timeline);

/// The load that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Morning,
    Party,
    Factory,
    Micro(Micro),
}

/// A load under a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) load: Load,
    pub(super) model: Model,
    /// Limits the load to this number of its routines.
    pub(super) few: Option<usize>,
    /// Percent of the commands that must succeed.
    pub(super) must: u64,
    /// Percent of the devices that fail, each once and for good.
    pub(super) failing: u64,
}

/// The figures of a trial. Times are in ms, shares in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Figure {
    /// From submission to commitment.
    Mean,
    Median,
    P90,
    P95,
    /// The time that the commands of the routines take, in the mean: the least possible latency.
    MeanWork,
    MedianWork,
    /// The latency, as a multiple of the time that the routine's commands take.
    Normalized,
    /// The number of running routines, in the mean of all moments at which one starts or ends
    /// (section 7.1).
    Parallelism,
    /// The same in the mean of the time during which any runs: dense moments do not count more.
    ParallelismByTime,
    /// The share of routines that suffer a temporary incongruence: before they end, another one
    /// changes a device that they changed (the paper's text).
    Incongruent,
    /// The share of its time that a routine spends after the first of them, in the mean (the
    /// authors' program).
    IncongruentTime,
    /// 1 if no order of the routines explains the end.
    Unexplained,
    /// The share of routines that were aborted.
    Aborted,
    /// The share of its commands that an aborted routine had done, in the mean.
    RolledBack,
    /// The same for routines that had a device when it failed, and did not find it failed.
    RolledBackHit,
    /// The share of an aborted routine's commands that leave a device to be restored.
    Restored,
    /// The share of routines that take longer than their commands.
    Stretched,
    /// Pairs of routines that are serialized otherwise than submitted, of all pairs. These two are
    /// kept of the parameterized load only.
    Swapped,
    /// The same for pairs that share a device.
    SwappedSharing,
}

impl Setting {
    pub(super) const fn new(load: Load, model: Model) -> Self {
        Self {
            load,
            model,
            few: None,
            must: 100,
            failing: 0,
        }
    }

    fn name(&self) -> String {
        let Self {
            load,
            model,
            few,
            must,
            failing,
        } = self;
        let few = few.map_or_else(String::new, |few| format!(", {few} routines"));
        let leases = match (model.pre_leases, model.post_leases) {
            (true, true) => "",
            (true, false) => ", no post-leases",
            (false, true) => ", no pre-leases",
            (false, false) => ", no leases",
        };
        let stretch = match model.stretch {
            STRETCH => String::new(),
            other => format!(", stretch {other}%"),
        };
        let name = model.name;
        let load = match load {
            Load::Morning => "morning".to_owned(),
            Load::Party => "party".to_owned(),
            Load::Factory => "factory".to_owned(),
            Load::Micro(micro) => micro.name(),
        };
        let fail = if *failing > 0 {
            format!(", {failing}% of devices fail, {must}% must")
        } else {
            String::new()
        };
        format!("safehome: {load}{few}, {name}{leases}{stretch}{fail}")
    }

    pub(super) fn experiment(self) -> Experiment {
        Experiment {
            name: self.name(),
            trials: 1_000,
            run: Arc::new(move |seed| self.run(seed)),
        }
    }

    pub(super) fn run(&self, seed: u64) -> Result<Sample, Fault> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let scenario = match (self.load, self.few) {
            (Load::Morning, None) => morning(&mut rng),
            (Load::Party, None) => party(&mut rng),
            (Load::Factory, None) => factory(&mut rng),
            (Load::Morning, Some(count)) => some(morning(&mut rng), count, &mut rng),
            (Load::Party, Some(count)) => some(party(&mut rng), count, &mut rng),
            (Load::Factory, Some(count)) => {
                short_factory(u32::try_from(count).unwrap_or_default(), &mut rng)
            }
            (Load::Micro(micro), _) => micro.draw(&mut rng),
        };
        let again = (self.failing > 0).then(|| scenario.clone());
        let mut home = Home::new(scenario, self, rng)?;
        home.run()?;
        if let Some(scenario) = again {
            // Devices fail at moments of the run as it is without failures.
            let length = home.world.now.since(Time::ZERO);
            let rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(1));
            home = Home::new(scenario, self, rng)?;
            home.fail_some(self.failing, length);
            home.run()?;
        }
        let mut sample = home.world.sample(self.failing == 0);
        if matches!(self.load, Load::Micro(_)) {
            sample.0.extend(home.world.swapped());
        }
        Ok(sample)
    }

    /// A figure of all trials, in order; trials without it are left out.
    pub(super) fn figures(&self, figure: Figure, samples: &Samples) -> Vec<f64> {
        let name = self.name();
        let all = samples.of(&name);
        all.filter_map(|(_, sample)| sample.0.get(figure as usize).copied().flatten())
            .map(|it| it as f64)
            .collect()
    }

    /// The mean of a figure over all trials: times in seconds, shares as shares.
    pub(super) fn mean(&self, figure: Figure, samples: &Samples) -> Option<f64> {
        Some(mean(&self.figures(figure, samples))? / figure.parts())
    }

    pub(super) fn trials(&self, samples: &Samples) -> usize {
        samples.of(&self.name()).count()
    }
}

impl Figure {
    /// The number of parts in the unit in which it is shown.
    pub(super) const fn parts(self) -> f64 {
        // Times come first.
        if (self as usize) < Self::Normalized as usize {
            1_000.0
        } else {
            PARTS as f64
        }
    }
}
