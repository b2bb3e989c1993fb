//! The thread that keeps a house: it takes what comes, stores what changed, and then does what is to be done.
//!
//! Its channels have no limit of their own. A connection waits for its answer, a device has one order at a time,
//! and what a device says by itself is one mark in the queue, with little behind it ([`reports`]).

pub mod clock;
pub mod reports;

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Instant, UNIX_EPOCH};

use prometheus_client::metrics::histogram::Histogram;
use selvedge_core::{NodeId, Time};
use selvedge_door::Json;
use selvedge_safehome::RoutineId;
use tokio::sync::{mpsc, oneshot, watch};

use self::reports::Reports;
use crate::device::{Order, Report};
use crate::house::{Changes, Happening, House, Moment, PreviewView, Refusal, RunView, Todo, View};
use crate::store::{Store, StoreError};

/// How often the local clock is told.
const CLOCK: Duration = Duration::from_secs(30);
/// How often listeners are told at most.
const TELL: Duration = Duration::from_millis(200);
/// How much is taken before one write to the disk.
const BATCH: usize = 64;

/// What comes to a house.
#[derive(Debug)]
pub enum Request {
    /// A device has said something.
    Reports(NodeId, Arc<Reports>),
    /// A person wants a routine run.
    Run(String, oneshot::Sender<Result<RoutineId, Refusal>>),
    /// A person wants a run undone.
    Cancel(RoutineId, oneshot::Sender<Result<(), Refusal>>),
    /// A person wants a run of this routine undone: the one with this number, or the latest.
    CancelOf(
        String,
        Option<u64>,
        oneshot::Sender<Result<RoutineId, Refusal>>,
    ),
    /// A person asks what would become of a routine.
    Preview(String, oneshot::Sender<Result<PreviewView, Refusal>>),
    /// A person asks for a run.
    Show(RoutineId, oneshot::Sender<Option<RunView>>),
    /// The process is to end.
    Stop,
}

/// An answer that waits until what it rests on is stored.
enum Answer {
    Run(
        oneshot::Sender<Result<RoutineId, Refusal>>,
        Result<RoutineId, Refusal>,
    ),
    Cancel(oneshot::Sender<Result<(), Refusal>>, Result<(), Refusal>),
    Show(oneshot::Sender<Option<RunView>>, Option<RunView>),
    Preview(
        oneshot::Sender<Result<PreviewView, Refusal>>,
        Result<PreviewView, Refusal>,
    ),
}

impl Answer {
    /// One that asked and went hears nothing.
    fn give(self) {
        match self {
            Self::Run(to, answer) => drop(to.send(answer)),
            Self::Cancel(to, answer) => drop(to.send(answer)),
            Self::Show(to, answer) => drop(to.send(answer)),
            Self::Preview(to, answer) => drop(to.send(answer)),
        }
    }
}

/// To those that look on.
#[derive(Debug)]
pub struct Tell {
    /// What is shown, in JSON.
    pub json: watch::Sender<Json>,
    /// What is shown.
    pub view: watch::Sender<Arc<View>>,
    /// Each run that changed, where somebody wants that. What finds no room is left out.
    pub runs: Option<mpsc::Sender<RunView>>,
}

impl Tell {
    /// Tells of a house what is known now.
    #[must_use]
    pub fn new(house: &House, runs: Option<mpsc::Sender<RunView>>) -> Self {
        let view = house.view();
        Self {
            json: watch::Sender::new(json(&view)),
            view: watch::Sender::new(Arc::new(view)),
            runs,
        }
    }
}

/// Keeps a house until it is told to stop.
#[derive(Debug)]
pub struct Keeper {
    /// The machines.
    pub house: House,
    /// The disk.
    pub store: Store,
    /// What comes.
    pub requests: Receiver<Request>,
    /// To devices.
    pub orders: BTreeMap<NodeId, mpsc::UnboundedSender<Order>>,
    /// What is shown.
    pub tell: Tell,
    /// When time began.
    pub start: Instant,
    /// How many seconds each write to the disk took.
    pub writes: Histogram,
}

/// The time at which a process began, and the clock that people read.
#[must_use]
#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
pub fn moment(start: Instant) -> Moment {
    let wall = UNIX_EPOCH.elapsed().unwrap_or_default();
    Moment {
        now: Time::since_start(start.elapsed()),
        wall: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX),
    }
}

fn json(view: &View) -> Json {
    // There is no map in it whose keys are no texts, which is all that could go wrong.
    serde_json::to_string(view).unwrap_or_default().into()
}

impl Keeper {
    /// Keeps the house until [`Request::Stop`], or until no request can come any more.
    ///
    /// # Errors
    /// When the disk fails: nothing is done that is not stored.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub fn run(mut self) -> Result<(), StoreError> {
        let (mut tick, mut told) = (Instant::now(), Instant::now());
        let mut is_told = false;
        let mut answers = Vec::new();
        let mut next = None;
        loop {
            // Before time passes: what came while the disk was slow came in time.
            if self.take_batch(next.take(), &mut answers) {
                return self.settle(&mut answers).map(drop);
            }
            let (now, at) = (Instant::now(), moment(self.start));
            // Before a trigger comes, too: the clock was set, or the host has slept.
            if now >= tick || self.house.is_trigger_due(at.now) {
                tick = now + CLOCK;
                if let Some(clock) = clock::local() {
                    self.house.take(clock, at);
                }
            }
            self.house.expire(at);
            is_told &= !self.settle(&mut answers)?;
            if !is_told && now >= told {
                (is_told, told) = (true, now + TELL);
                let view = self.house.view();
                self.tell.json.send_replace(json(&view));
                self.tell.view.send_replace(Arc::new(view));
            }
            let mut until = tick;
            if !is_told {
                until = until.min(told);
            }
            if let Some(deadline) = self.house.deadline() {
                until = until.min(self.start + Duration::from_micros(deadline.0));
            }
            // What was done until here took time.
            let wait = until.saturating_duration_since(Instant::now());
            next = match self.requests.recv_timeout(wait) {
                Ok(it) => Some(it),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
        }
    }

    /// Takes what waits, beginning with this. Returns whether the process is to end.
    fn take_batch(&mut self, first: Option<Request>, answers: &mut Vec<Answer>) -> bool {
        let waits = first.into_iter();
        let requests: Vec<_> = waits.chain(self.requests.try_iter()).take(BATCH).collect();
        for request in requests {
            if let Request::Stop = request {
                return true;
            }
            answers.extend(self.take(request));
        }
        false
    }

    fn take(&mut self, request: Request) -> Option<Answer> {
        let moment = moment(self.start);
        match request {
            Request::Reports(device, reports) => {
                for report in reports.take() {
                    self.on_report(device, report, moment);
                }
                None
            }
            Request::Run(name, to) => Some(Answer::Run(to, self.house.run(&name, moment))),
            Request::CancelOf(name, id, to) => {
                let told = self.house.cancel_of(&name, id.map(RoutineId), moment);
                Some(Answer::Run(to, told))
            }
            Request::Cancel(id, to) => Some(Answer::Cancel(to, self.house.cancel(id, moment))),
            Request::Preview(name, to) => {
                Some(Answer::Preview(to, self.house.preview(&name, moment)))
            }
            Request::Show(id, to) => {
                let record = self.house.records().get(id);
                Some(Answer::Show(
                    to,
                    record.map(|it| self.house.run_view(id, it)),
                ))
            }
            Request::Stop => None,
        }
    }

    fn on_report(&mut self, device: NodeId, report: Report, moment: Moment) {
        let name = self.house.catalogue().name(device);
        match &report {
            Report::Up | Report::Down => tracing::info!(name, ?report, "device"),
            Report::Trouble(why) => tracing::warn!(name, why, "device"),
            Report::Outcome { .. } | Report::Answered { .. } | Report::Observed(_) => {}
        }
        self.house.take(Happening::Report(device, report), moment);
    }

    /// Says of each run that changed what it is now: in the log, and to those that want that.
    fn tell_runs(&self, changes: &Changes) {
        for (id, record) in &changes.runs {
            let run = self.house.run_view(*id, record);
            let (id, name, what, why) = (run.id, run.name.as_str(), run.what, run.why.as_deref());
            tracing::info!(id, name, what, why, place = run.place, "run");
            if let Some(runs) = &self.tell.runs {
                // What finds no room is left out.
                runs.try_send(run).ok();
            }
        }
    }

    /// Stores what changed, then does what is to be done, and answers. Returns whether something changed.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    fn settle(&mut self, answers: &mut Vec<Answer>) -> Result<bool, StoreError> {
        // Without core's `Barrier`: no order and no answer leaves before the write, so none is held back.
        // A command's timeout runs during the write, so each order has the moment at which the hub gives
        // it up, and nothing is sent to the device after that.
        let changes = self.house.take_changes();
        let is_stored = changes.is_empty();
        if !is_stored {
            let begun = Instant::now();
            self.store.write(&changes, self.house.saved())?;
            self.writes.observe(begun.elapsed().as_secs_f64());
        }
        self.tell_runs(&changes);
        for todo in self.house.take_todo() {
            let (device, order) = match todo {
                Todo::Set {
                    device,
                    token,
                    state,
                    until,
                } => {
                    let until = self.start + Duration::from_micros(until.0);
                    (
                        device,
                        Order::Set {
                            token,
                            state,
                            until,
                        },
                    )
                }
                Todo::Ask { device, token } => (device, Order::Ask { token }),
            };
            let Some(orders) = self.orders.get(&device) else {
                continue; // It is gone from the file: it is down, and the hub gives up.
            };
            if orders.send(order).is_err() {
                debug_assert!(false, "the task of a device does not end by itself");
                let report = Happening::Report(device, Report::Down);
                self.house.take(report, moment(self.start));
            }
        }
        answers.drain(..).for_each(Answer::give);
        Ok(self.house.take_news() || !is_stored)
    }
}
