//! Devices that carry out the commands of nodes, and the application that reads the reports of runs.

use std::sync::{Arc, Mutex};

use selvedge_core::NodeId;
use selvedge_core::shared::RecvError;
use selvedge_kgroup::devices::{self, Ticket};
use selvedge_kgroup::routines::{Report, RoutineEvent};
use selvedge_kgroup::{Event, LeaderEvent, Outcome};
use selvedge_udp::{Handle, NodeEvent};

/// All devices of a building.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    /// The commands that devices got, in order.
    commands: Vec<Ticket>,
    /// The events of the leaders of routines.
    runs: Vec<RoutineEvent>,
}

impl Devices {
    pub(crate) fn count(&self, device: NodeId) -> usize {
        self.commands(device).len()
    }

    /// The numbers of the commands that a device got: of one that was given again, twice.
    pub(crate) fn commands(&self, device: NodeId) -> Vec<u64> {
        let record = self.0.lock().unwrap();
        let here = record.commands.iter().filter(|it| it.device == device);
        here.map(|it| it.number).collect()
    }

    /// The number of the last run that was reported as triggered, where there is one routine; 0 if
    /// there was none.
    pub(crate) fn last_run(&self) -> u64 {
        let record = self.0.lock().unwrap();
        let triggered = record.runs.iter().map(|it| match it {
            RoutineEvent::Triggered { instance } => *instance,
            _ => 0,
        });
        triggered.max().unwrap_or(0)
    }

    /// The report of a run, where there is one routine.
    pub(crate) fn report(&self, instance: u64) -> Option<Report> {
        let record = self.0.lock().unwrap();
        let mut reports = record.runs.iter().filter_map(|it| match it {
            RoutineEvent::Reports(it) if it.instance == instance => Some(it),
            _ => None,
        });
        let first = reports.next()?;
        // A later leader may report it again.
        assert!(reports.all(|it| it == first), "{record:?}");
        Some(first.clone())
    }

    /// Carries out the commands of a node until it stops.
    pub(crate) async fn serve(self, node: Handle) {
        let mut events = node.events_from_oldest();
        loop {
            let event = match events.recv().await {
                Ok(observed) => observed.event,
                Err(RecvError::Lagged { .. }) => continue,
                Err(RecvError::Closed) => return,
            };
            let NodeEvent::Groups(Event::Leader { event, .. }) = event else {
                continue;
            };
            // It may lead no more.
            let _taken = match event {
                LeaderEvent::Devices(devices::Event::Ping { device }) => {
                    node.reported(device, None).await.is_ok()
                }
                LeaderEvent::Devices(devices::Event::Act { ticket, .. }) => {
                    self.0.lock().unwrap().commands.push(ticket);
                    node.acted(ticket, Outcome::Done).await.is_ok()
                }
                LeaderEvent::Routine(event) => {
                    self.0.lock().unwrap().runs.push(event);
                    true
                }
                _ => false,
            };
        }
    }
}
