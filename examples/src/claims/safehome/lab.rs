//! A home in virtual time: a hub, and devices that take as long as each command says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use selvedge_core::{Choose, Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_safehome::{
    Command, Config, Event, Hub, Outcome, Placed, Priority, Routine, RoutineId, Scheduler, Skip,
    Step, Undo, Visibility, Why,
};

use super::scenario::{
    Arrivals, Micro, Need, Scenario, factory, morning, party, short_factory, some,
};
use crate::claims::stats::{mean, quantile};
use crate::claims::{Experiment, Fault, Sample, Samples};

/// A device has done a command after so long: what a short command takes in section 4.3. It is part
/// of the time that the load gives a command.
const ANSWER: Span = Span::millis(100);
/// The failure detector asks each second, and waits for 100 ms (section 6).
const PING: Span = Span::secs(1);
/// A run that is not over by then has failed.
const PATIENCE: Span = Span::secs(100_000_000);
/// Shares are kept in so many parts.
const PARTS: u64 = 1_000_000;

/// What users may see, and how routines are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) visibility: Visibility,
    pub(super) scheduler: Scheduler,
    pub(super) pre_leases: bool,
    pub(super) post_leases: bool,
}

const fn model(name: &'static str, visibility: Visibility, scheduler: Scheduler) -> Model {
    Model {
        name,
        visibility,
        scheduler,
        pre_leases: true,
        post_leases: true,
    }
}

pub(super) const EV: Model = model("EV", Visibility::Eventual, Scheduler::Timeline);
pub(super) const JIT: Model = model("JiT", Visibility::Eventual, Scheduler::JustInTime);
pub(super) const FCFS: Model = model("FCFS", Visibility::Eventual, Scheduler::FirstCome);
/// As in the authors' program.
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

/// What is run.
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
    /// Only so many routines.
    pub(super) few: Option<usize>,
    /// Percent of the commands that must succeed.
    pub(super) must: u64,
    /// Percent of the devices that fail, each once and for good.
    pub(super) failing: u64,
}

/// What is kept of a trial. Times are in ms, shares in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Figure {
    /// From submission to commitment.
    Mean,
    Median,
    P90,
    P95,
    /// What the commands of the routines take, in the mean: nothing is faster.
    MeanWork,
    MedianWork,
    /// The latency, in times of what the routine's commands take.
    Normalized,
    /// How many run, in the mean of all moments at which one starts or ends.
    Parallelism,
    /// The share of routines that suffer a temporary incongruence: before they end, another one
    /// changes what they changed (the paper's text).
    Incongruent,
    /// The share of its time that a routine spends after the first of them, in the mean (the
    /// authors' program).
    IncongruentTime,
    /// Whether no order of the routines explains the end.
    Unexplained,
    /// The share of routines that were aborted.
    Aborted,
    /// The share of its commands that an aborted routine had done, in the mean.
    RolledBack,
    /// The same of those that had a device when it failed, and did not find it so.
    RolledBackHit,
    /// The share of its commands whose devices an aborted routine leaves to be restored.
    Restored,
    /// The share of routines whose run takes longer than its commands.
    Stretched,
    /// Pairs of routines that are serialized otherwise than submitted, of all pairs. These two are
    /// kept of the parameterized load only.
    Swapped,
    /// The same of the pairs that share a device.
    SwappedSharing,
}

/// A routine and what became of it.
#[derive(Clone, Debug)]
struct Job {
    submitted: Time,
    started: Option<Time>,
    ended: Option<Time>,
    committed: bool,
    /// When another one first changed what it had changed.
    collided: Option<Time>,
    /// Commands that were done.
    done: usize,
    /// Devices that were to be restored when it was aborted.
    restored: usize,
    /// A device that it had failed.
    is_hit: bool,
}

/// A device as it is.
#[derive(Clone, Debug, Default)]
struct Thing {
    is_down: bool,
    /// The number of the routine that changed it last, from 1.
    state: u32,
    /// The unfinished ones who have changed it.
    changed: Vec<usize>,
}

/// What happens in the home by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Comes,
    Answers {
        device: u32,
        token: u64,
        state: u32,
        routine: Option<u64>,
    },
    Fails(u32),
    Noticed(u32),
}

struct Home {
    hub: Driver<Hub<u32>>,
    rng: ChaCha8Rng,
    now: Time,
    scenario: Scenario,
    must: u64,
    jobs: Vec<Job>,
    things: Vec<Thing>,
    happenings: BinaryHeap<Reverse<(Time, u64, Happening)>>,
    /// The same of answers: they take equally long, so they come in order.
    answers: VecDeque<(Time, u64, Happening)>,
    /// Happenings so far: what happens at one time happens in order.
    count: u64,
    told: Vec<Event<u32>>,
    order: Vec<usize>,
    running: u64,
    /// The sum of those that ran, over so many starts and ends.
    ran: (u64, u64),
    open: usize,
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
        format!("safehome: {load}{few}, {name}{leases}{fail}")
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
            // Devices fail at moments of the run as it is without.
            let length = home.now.since(Time::ZERO);
            let rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(1));
            home = Home::new(scenario, self, rng)?;
            home.fail_some(self.failing, length);
            home.run()?;
        }
        let mut sample = home.sample(self.failing == 0);
        if matches!(self.load, Load::Micro(_)) {
            sample.0.extend(home.swapped());
        }
        Ok(sample)
    }

    /// A figure of all trials, in order; those left out that did not have it.
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
    /// In how many parts of what is told it is kept.
    pub(super) const fn parts(self) -> f64 {
        // Times come first.
        if (self as usize) < Self::Normalized as usize {
            1_000.0
        } else {
            PARTS as f64
        }
    }
}

impl Home {
    fn new(scenario: Scenario, setting: &Setting, rng: ChaCha8Rng) -> Result<Self, Fault> {
        let Model {
            visibility,
            scheduler,
            pre_leases,
            post_leases,
            ..
        } = setting.model;
        let config = Config {
            visibility,
            scheduler,
            pre_leases,
            post_leases,
            short: ANSWER,
            ..Config::default()
        };
        let hub = Hub::new(config).map_err(Fault::network)?;
        let mut home = Self {
            hub: Driver::new(hub),
            rng,
            now: Time::ZERO,
            must: setting.must,
            jobs: Vec::with_capacity(scenario.routines.len()),
            things: vec![Thing::default(); scenario.devices as usize],
            happenings: BinaryHeap::new(),
            answers: VecDeque::new(),
            count: 0,
            told: Vec::new(),
            order: Vec::new(),
            running: 0,
            ran: (0, 0),
            open: 0,
            scenario,
        };
        for device in 0..home.scenario.devices {
            home.command(Command::Device {
                device: node(device),
                state: Some(0),
            })?;
        }
        let times = match &home.scenario.arrivals {
            Arrivals::At(times) => times.clone(),
            Arrivals::Concurrent(count) => vec![Span::ZERO; *count],
        };
        for at in times {
            home.happens(Time::ZERO + at, Happening::Comes);
        }
        Ok(home)
    }

    /// So many percent of the devices fail, each at a moment within this time.
    fn fail_some(&mut self, percent: u64, length: Span) {
        let mut left: Vec<u32> = (0..self.scenario.devices).collect();
        for _ in 0..u64::from(self.scenario.devices) * percent / 100 {
            let device = left.swap_remove(self.rng.below(left.len() as u64) as usize);
            let at = Time::ZERO + Span(self.rng.below(length.0));
            self.happens(at, Happening::Fails(device));
        }
    }

    fn run(&mut self) -> Result<(), Fault> {
        loop {
            let next = self
                .next_answer()
                .into_iter()
                .chain(self.next_other())
                .min();
            let next = next.map(|it| it.0);
            let due = self.hub.deadline();
            let is_over = self.open == 0 && self.jobs.len() == self.scenario.routines.len();
            if is_over && next.is_none() {
                return Ok(());
            }
            let is_tick = due.is_some_and(|due| next.is_none_or(|next| due < next));
            let Some(now) = (if is_tick { due } else { next }) else {
                let open = self.open;
                return Err(Fault::Outcome(format!("{open} routines never ended")));
            };
            if now > Time::ZERO + PATIENCE {
                return Err(Fault::Outcome("the run does not end".to_owned()));
            }
            self.now = now;
            if is_tick {
                let told = &mut self.told;
                self.hub.expire(now, &mut self.rng, |it| tell(told, it));
                self.hear()?;
            } else if let Some((_, _, happening)) = self.pop() {
                self.happen(happening)?;
            }
        }
    }

    fn happens(&mut self, at: Time, happening: Happening) {
        self.count += 1;
        self.happenings.push(Reverse((at, self.count, happening)));
    }

    fn next_answer(&self) -> Option<(Time, u64)> {
        self.answers.front().map(|it| (it.0, it.1))
    }

    fn next_other(&self) -> Option<(Time, u64)> {
        self.happenings.peek().map(|it| (it.0.0, it.0.1))
    }

    /// What happens next.
    fn pop(&mut self) -> Option<(Time, u64, Happening)> {
        let other = self.next_other();
        if self
            .next_answer()
            .is_some_and(|it| other.is_none_or(|other| it < other))
        {
            return self.answers.pop_front();
        }
        self.happenings.pop().map(|it| it.0)
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Fault> {
        match happening {
            Happening::Comes => self.submit(),
            Happening::Answers {
                device,
                token,
                state,
                routine,
            } => {
                let routine = routine.map(|it| it as usize - 1);
                let is_done = self.change(device, state, routine);
                let outcome = if is_done {
                    Outcome::Done
                } else {
                    Outcome::Refused
                };
                let device = node(device);
                self.command(Command::Outcome {
                    device,
                    token,
                    outcome,
                })
            }
            Happening::Fails(device) => {
                if let Some(thing) = self.things.get_mut(device as usize) {
                    thing.is_down = true;
                }
                let after = Span(self.rng.below(PING.0)) + ANSWER;
                self.happens(self.now + after, Happening::Noticed(device));
                Ok(())
            }
            Happening::Noticed(device) => {
                let member = Member::new(node(device).0, 0);
                self.step(Input::Membership(Delta::Failed(member)))
            }
        }
    }

    fn submit(&mut self) -> Result<(), Fault> {
        let number = self.jobs.len();
        let Some(needs) = self.scenario.routines.get(number) else {
            return Ok(());
        };
        self.jobs.push(Job {
            submitted: self.now,
            started: None,
            ended: None,
            committed: false,
            collided: None,
            done: 0,
            restored: 0,
            is_hit: false,
        });
        self.open += 1;
        let state = number as u32 + 1;
        let must = self.must;
        let rng = &mut self.rng;
        let steps = needs.iter().map(|&(device, seconds)| Step {
            hold: Span(Span::secs(seconds.into()).0.saturating_sub(ANSWER.0)),
            priority: if must == 100 || rng.below(100) < must {
                Priority::Must
            } else {
                Priority::BestEffort
            },
            ..Step::new(node(device), state)
        });
        let routine = Routine {
            steps: steps.collect(),
        };
        self.command(Command::Submit(routine))
    }

    /// A device does what it is told, if it is up.
    fn change(&mut self, device: u32, state: u32, routine: Option<usize>) -> bool {
        let Some(thing) = self.things.get_mut(device as usize) else {
            return false;
        };
        if thing.is_down {
            return false;
        }
        thing.state = state;
        let Some(routine) = routine else {
            return true;
        };
        let (jobs, now) = (&mut self.jobs, self.now);
        thing.changed.retain(|&other| {
            let Some(job) = jobs.get_mut(other).filter(|it| it.ended.is_none()) else {
                return false;
            };
            if other != routine && job.collided.is_none() {
                job.collided = Some(now);
            }
            other != routine
        });
        thing.changed.push(routine);
        if let Some(job) = jobs.get_mut(routine) {
            job.done += 1;
        }
        true
    }

    fn command(&mut self, command: Command<u32>) -> Result<(), Fault> {
        self.step(Input::Command(command))
    }

    fn step(&mut self, input: Input<Hub<u32>>) -> Result<(), Fault> {
        let told = &mut self.told;
        self.hub
            .step(self.now, &mut self.rng, input, |it| tell(told, it))
            .map_err(Fault::network)?;
        self.hear()
    }

    /// What the hub tells.
    fn hear(&mut self) -> Result<(), Fault> {
        let mut told = core::mem::take(&mut self.told);
        for event in told.drain(..) {
            match event {
                Event::Issue {
                    device,
                    token,
                    value,
                    routine,
                } => {
                    let answers = Happening::Answers {
                        device: device.0 as u32 - 1,
                        token,
                        state: value,
                        routine: routine.map(|it| it.0),
                    };
                    self.count += 1;
                    self.answers
                        .push_back((self.now + ANSWER, self.count, answers));
                }
                Event::Started(routine) => {
                    let now = self.now;
                    self.job(routine)?.started = Some(now);
                    self.running += 1;
                    self.ran = (self.ran.0 + self.running, self.ran.1 + 1);
                }
                Event::Committed(routine) => self.ended(routine, None)?,
                Event::Aborted { routine, undo, why } => {
                    self.job(routine)?.is_hit = !matches!(why, Why::Step(_, Skip::Down));
                    self.ended(routine, Some(&undo))?;
                }
                Event::Ordered(Placed::Routine(routine)) => self.order.push(number(routine)),
                Event::Accepted(_)
                | Event::Ask { .. }
                | Event::Skipped { .. }
                | Event::Aborting { .. }
                | Event::Restored(_)
                | Event::Stuck(_)
                | Event::Ordered(_)
                | Event::Incongruent { .. } => {}
            }
        }
        self.told = told;
        Ok(())
    }

    fn job(&mut self, routine: RoutineId) -> Result<&mut Job, Fault> {
        let job = self.jobs.get_mut(number(routine));
        job.ok_or_else(|| Fault::Outcome(format!("{routine:?} was never submitted")))
    }

    fn ended(&mut self, routine: RoutineId, undo: Option<&[(NodeId, Undo)]>) -> Result<(), Fault> {
        let now = self.now;
        let job = self.job(routine)?;
        job.ended = Some(now);
        job.committed = undo.is_none();
        let undo = undo.unwrap_or_default().iter();
        job.restored = undo.filter(|it| it.1 != Undo::NotNeeded).count();
        if job.started.is_some() {
            self.running -= 1;
            self.ran = (self.ran.0 + self.running, self.ran.1 + 1);
        }
        self.open -= 1;
        if matches!(self.scenario.arrivals, Arrivals::Concurrent(_)) {
            self.happens(now, Happening::Comes);
        }
        Ok(())
    }

    fn sample(&self, is_whole: bool) -> Sample {
        let jobs = || self.jobs.iter().zip(&self.scenario.routines);
        let committed = || jobs().filter(|(job, _)| job.committed);
        let latency = |job: &Job| job.ended.map_or(0, |it| it.since(job.submitted).0);
        let mut latencies: Vec<f64> = committed().map(|(job, _)| latency(job) as f64).collect();
        latencies.sort_by(f64::total_cmp);
        let at = |share| quantile(&latencies, share).map(|it| (it / 1_000.0) as u64);
        let mut figures = vec![None; Figure::Swapped as usize];
        let mut put = |figure: Figure, value: Option<u64>| {
            if let Some(place) = figures.get_mut(figure as usize) {
                *place = value;
            }
        };
        put(
            Figure::Mean,
            mean(&latencies).map(|it| (it / 1_000.0) as u64),
        );
        put(Figure::Median, at(0.5));
        put(Figure::P90, at(0.9));
        put(Figure::P95, at(0.95));
        let mut works: Vec<f64> = jobs().map(|(_, needs)| work(needs).0 as f64).collect();
        works.sort_by(f64::total_cmp);
        put(
            Figure::MeanWork,
            mean(&works).map(|it| (it / 1_000.0) as u64),
        );
        let middle = quantile(&works, 0.5);
        put(Figure::MedianWork, middle.map(|it| (it / 1_000.0) as u64));
        let normal = committed().map(|(job, needs)| latency(job) * PARTS / work(needs).0.max(1));
        put(Figure::Normalized, average(normal));
        put(
            Figure::Parallelism,
            (self.ran.0 * PARTS).checked_div(self.ran.1),
        );
        put(
            Figure::Incongruent,
            average(jobs().map(|(job, _)| u64::from(job.collided.is_some()) * PARTS)),
        );
        let time = |(job, _): (&Job, _)| {
            let (started, ended) = (job.started?, job.ended?);
            let after = job.collided.map_or(0, |it| ended.since(it).0);
            Some(
                (after * PARTS)
                    .checked_div(ended.since(started).0)
                    .unwrap_or(0),
            )
        };
        put(Figure::IncongruentTime, average(jobs().filter_map(time)));
        let is_explained = is_whole.then(|| u64::from(!self.is_explained()) * PARTS);
        put(Figure::Unexplained, is_explained);
        let aborted = || jobs().filter(|(job, _)| job.ended.is_some() && !job.committed);
        put(
            Figure::Aborted,
            Some(aborted().count() as u64 * PARTS / self.jobs.len().max(1) as u64),
        );
        let share = |part: usize, needs: &[Need]| part as u64 * PARTS / needs.len().max(1) as u64;
        put(
            Figure::RolledBack,
            average(aborted().map(|(job, needs)| share(job.done, needs))),
        );
        let hit = aborted().filter(|(job, _)| job.is_hit);
        put(
            Figure::RolledBackHit,
            average(hit.map(|(job, needs)| share(job.done, needs))),
        );
        put(
            Figure::Restored,
            average(aborted().map(|(job, needs)| share(job.restored, needs))),
        );
        let stretched = committed().filter_map(|(job, needs)| {
            let took = job.ended?.since(job.started?);
            Some(u64::from(took > work(needs)) * PARTS)
        });
        put(Figure::Stretched, average(stretched));
        Sample(figures)
    }

    /// The share of pairs that come otherwise in the order that the hub told than they were
    /// submitted; and of those that share a device.
    fn swapped(&self) -> [Option<u64>; 2] {
        let mut pairs = [(0, 0); 2];
        for (at, &one) in self.order.iter().enumerate() {
            for &other in self.order.iter().skip(at + 1) {
                let routines = &self.scenario.routines;
                let needs = |it: usize| routines.get(it).into_iter().flatten().map(|it| it.0);
                let shares = needs(one).any(|it| needs(other).any(|other| it == other));
                for ((swapped, all), counts) in pairs.iter_mut().zip([true, shares]) {
                    *swapped += u64::from(counts && one > other);
                    *all += u64::from(counts);
                }
            }
        }
        pairs.map(|(swapped, all)| (swapped * PARTS).checked_div(all))
    }

    /// Whether any order of the routines leaves the devices as they are.
    fn is_explained(&self) -> bool {
        let states: Vec<u32> = self.things.iter().map(|it| it.state).collect();
        let routines: Vec<&[Need]> = self.scenario.routines.iter().map(Vec::as_slice).collect();
        explains(&routines, &states)
    }
}

/// Whether the devices are as some order of all these leaves them. The state of a device is the
/// number of the routine that changed it last, from 1.
///
/// Whoever can be the last one is: what it changed is explained then, and no order that has it
/// earlier explains more. So this finds an order if any of all orders is one.
fn explains(routines: &[&[Need]], states: &[u32]) -> bool {
    let mut is_open = vec![true; states.len()];
    let mut left: Vec<usize> = (0..routines.len()).collect();
    loop {
        let before = left.len();
        left.retain(|&number| {
            let needs = routines.get(number).copied().unwrap_or_default();
            let is_last = |need: &Need| {
                let device = need.0 as usize;
                let is_its_own = states.get(device) == Some(&(number as u32 + 1));
                is_its_own || is_open.get(device) == Some(&false)
            };
            if !needs.iter().all(is_last) {
                return true;
            }
            for need in needs {
                if let Some(open) = is_open.get_mut(need.0 as usize) {
                    *open = false;
                }
            }
            false
        });
        if left.is_empty() {
            // What nobody changed is as it was.
            let mut all = states.iter().zip(&is_open);
            return all.all(|(&state, &open)| !open || state == 0);
        }
        if left.len() == before {
            return false;
        }
    }
}

const fn node(device: u32) -> NodeId {
    NodeId(device as u64 + 1)
}

const fn number(routine: RoutineId) -> usize {
    routine.0 as usize - 1
}

/// How long the commands take.
fn work(needs: &[Need]) -> Span {
    Span::secs(needs.iter().map(|it| u64::from(it.1)).sum())
}

fn average(values: impl Iterator<Item = u64>) -> Option<u64> {
    let (sum, count) = values.fold((0, 0), |(sum, count), it| (sum + it, count + 1));
    u64::checked_div(sum, count)
}

fn tell(told: &mut Vec<Event<u32>>, effect: Effect<Hub<u32>>) {
    match effect {
        Effect::Event(event) => told.push(event),
        Effect::Send { message, .. } => match message {},
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether any of all orders leaves the devices so: every one is tried.
    fn tried(routines: &[&[Need]], states: &[u32], order: &mut Vec<usize>) -> bool {
        if order.len() == routines.len() {
            let mut ends = vec![0; states.len()];
            for &number in order.iter() {
                for need in routines[number] {
                    ends[need.0 as usize] = number as u32 + 1;
                }
            }
            return ends == states;
        }
        (0..routines.len()).any(|next| {
            if order.contains(&next) {
                return false;
            }
            order.push(next);
            let is_found = tried(routines, states, order);
            order.pop();
            is_found
        })
    }

    #[test]
    fn an_end_is_explained_when_one_of_all_orders_has_it() {
        let mut counts = [0, 0];
        for seed in 0..2_000 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let routines: Vec<Vec<Need>> = (0..5)
                .map(|_| {
                    (0..4)
                        .filter(|_| rng.below(2) == 0)
                        .map(|it| (it, 1))
                        .collect()
                })
                .collect();
            let routines: Vec<&[Need]> = routines.iter().map(Vec::as_slice).collect();
            let states: Vec<u32> = (0..4)
                .map(|device| {
                    let writes = |number: &u32| {
                        let needs = routines[*number as usize - 1];
                        needs.iter().any(|it| it.0 == device)
                    };
                    let writers: Vec<u32> = (1..=5).filter(writes).collect();
                    let nth = rng.below(writers.len() as u64) as usize;
                    writers.get(nth).copied().unwrap_or_default()
                })
                .collect();
            let is_one = tried(&routines, &states, &mut Vec::new());
            assert_eq!(explains(&routines, &states), is_one, "seed {seed}");
            counts[usize::from(is_one)] += 1;
        }
        assert!(counts.iter().all(|&it| it > 100), "{counts:?}");
    }
}
