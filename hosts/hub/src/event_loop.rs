//! The event loop of a house: it takes requests, stores the changes, then sends orders and answers.
//!
//! Its channels have no limit of their own. A connection waits for its answer, a device has one order at a
//! time, and the reports that a device sends by itself are one mark in the queue, with a bounded buffer
//! behind it ([`reports`]).

pub mod clock;
pub mod reports;

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Instant, UNIX_EPOCH};

use prometheus_client::metrics::histogram::Histogram;
use selvedge_core::{NodeId, Time};
use selvedge_http::Json;
use selvedge_safehome::RoutineId;
use tokio::sync::{mpsc, oneshot, watch};

use self::reports::Reports;
use crate::device::{Order, Report};
use crate::house::{Changes, Happening, House, Moment, PreviewView, Refusal, RunView, Todo, View};
use crate::store::{Store, StoreError};

/// The interval between readings of the local clock.
const CLOCK: Duration = Duration::from_secs(30);
/// The least time between two updates of the view.
const TELL: Duration = Duration::from_millis(200);
/// The largest number of requests that are taken before one write to the disk.
const BATCH: usize = 64;

/// A request to a house.
#[derive(Debug)]
pub enum Request {
    /// A device has sent reports.
    Reports(NodeId, Arc<Reports>),
    /// A person asks to run a routine.
    Run(String, oneshot::Sender<Result<RoutineId, Refusal>>),
    /// A person asks to undo a run.
    Cancel(RoutineId, oneshot::Sender<Result<(), Refusal>>),
    /// A person asks to undo a run of this routine: the run with this number, or the latest.
    CancelOf(
        String,
        Option<u64>,
        oneshot::Sender<Result<RoutineId, Refusal>>,
    ),
    /// A person asks for the preview of a run of this routine.
    Preview(String, oneshot::Sender<Result<PreviewView, Refusal>>),
    /// A person asks to see a run.
    Show(RoutineId, oneshot::Sender<Option<RunView>>),
    /// A request to end the process.
    Stop,
}

/// An answer that waits until the changes it depends on are stored.
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
    /// Sends the answer, unless the caller has left.
    fn give(self) {
        match self {
            Self::Run(to, answer) => drop(to.send(answer)),
            Self::Cancel(to, answer) => drop(to.send(answer)),
            Self::Show(to, answer) => drop(to.send(answer)),
            Self::Preview(to, answer) => drop(to.send(answer)),
        }
    }
}

/// The channels to readers of the view.
#[derive(Debug)]
pub struct Readers {
    /// The view, in JSON.
    pub json: watch::Sender<Json>,
    /// The view.
    pub view: watch::Sender<Arc<View>>,
    /// Each run that changed, if there is a reader. A run that finds no room is dropped.
    pub runs: Option<mpsc::Sender<RunView>>,
}

impl Readers {
    /// Channels that hold the present view of a house.
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

/// The event loop of a house.
#[derive(Debug)]
pub struct EventLoop {
    /// The state machines.
    pub house: House,
    /// The database.
    pub store: Store,
    /// The requests to this house.
    pub requests: Receiver<Request>,
    /// The channels to devices.
    pub orders: BTreeMap<NodeId, mpsc::UnboundedSender<Order>>,
    /// The channels to readers of the view.
    pub notify: Readers,
    /// The start of the house's time.
    pub start: Instant,
    /// The durations of writes to the disk, in seconds.
    pub writes: Histogram,
}

/// The present moment of a process that began at `start`.
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
    // Only a map with keys that are not strings can fail, and the view has no such map.
    serde_json::to_string(view).unwrap_or_default().into()
}

impl EventLoop {
    /// Runs until [`Request::Stop`], or until all senders of requests are dropped.
    ///
    /// # Errors
    /// When the disk fails. Nothing that depends on an unstored change is sent.
    #[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
    pub fn run(mut self) -> Result<(), StoreError> {
        let (mut tick, mut notified) = (Instant::now(), Instant::now());
        let mut is_notified = false;
        let mut answers = Vec::new();
        let mut next = None;
        loop {
            // Before time passes: requests that came while the disk was slow came in time.
            if self.take_batch(next.take(), &mut answers) {
                return self.settle(&mut answers).map(drop);
            }
            let (now, at) = (Instant::now(), moment(self.start));
            // Also before a trigger is due: the clock may have been set, or the host may have slept.
            if now >= tick || self.house.is_trigger_due(at.now) {
                tick = now + CLOCK;
                if let Some(clock) = clock::local() {
                    self.house.take(clock, at);
                }
            }
            self.house.expire(at);
            is_notified &= !self.settle(&mut answers)?;
            if !is_notified && now >= notified {
                (is_notified, notified) = (true, now + TELL);
                let view = self.house.view();
                self.notify.json.send_replace(json(&view));
                self.notify.view.send_replace(Arc::new(view));
            }
            let mut until = tick;
            if !is_notified {
                until = until.min(notified);
            }
            if let Some(deadline) = self.house.deadline() {
                until = until.min(self.start + Duration::from_micros(deadline.0));
            }
            // The steps above took time.
            let wait = until.saturating_duration_since(Instant::now());
            next = match self.requests.recv_timeout(wait) {
                Ok(it) => Some(it),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
        }
    }

    /// Takes the waiting requests, beginning with `first`. Returns true if the process shall end.
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
                let notified = self.house.cancel_of(&name, id.map(RoutineId), moment);
                Some(Answer::Run(to, notified))
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

    /// Reports each run that changed, in its present state, to the log and to the reader of runs.
    fn tell_runs(&self, changes: &Changes) {
        for (id, record) in &changes.runs {
            let run = self.house.run_view(*id, record);
            let (id, name, what, why) = (run.id, run.name.as_str(), run.what, run.why.as_deref());
            tracing::info!(id, name, what, why, place = run.place, "run");
            if let Some(runs) = &self.notify.runs {
                // A run that finds no room is dropped.
                runs.try_send(run).ok();
            }
        }
    }

    /// Stores the changes, then sends orders and answers. Returns true if anything changed.
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
                continue; // It has left the file: it is down, and the hub gives up.
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
