//! Common parts of the tests: nodes on loopback with a short period.

use core::ops::Deref;
use std::net::SocketAddr;
use std::time::Duration;

use selvedge_core::shared::RecvError;
use selvedge_core::{Delta, Incarnation, NodeId, Span};
use selvedge_membership::{Config, Event};
use selvedge_udp::{Events, Handle, Host, NodeEvent, Setup};
use tokio::time::{sleep, timeout};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A node, and all its events.
pub(crate) struct Node {
    handle: Handle,
    events: Events,
}

pub(crate) fn config() -> Config {
    Config::default()
        .with_period(Span::millis(200))
        .with_jitter(Span::millis(20))
        .with_probe_timeout(Span::millis(60))
}

/// In the clear, without locks and elections.
pub(crate) fn setup(id: u64, seeds: &[SocketAddr]) -> Setup {
    Setup::new(NodeId(id), "127.0.0.1:0".parse().unwrap())
        .life(Incarnation(0))
        .seeds(seeds.iter().copied())
        .membership(config())
        .random_seed(id)
}

impl Node {
    pub(crate) async fn start(setup: Setup) -> Self {
        Self::of(Host::start(setup).await.unwrap())
    }

    pub(crate) fn of(handle: Handle) -> Self {
        let events = handle.events_from_oldest();
        Self { handle, events }
    }

    pub(crate) async fn wait_for(&mut self, wanted: impl Fn(&NodeEvent) -> bool) -> NodeEvent {
        let wait = async {
            loop {
                let observed = self.events.recv().await.unwrap();
                assert_eq!(observed.node, self.handle.id());
                if wanted(&observed.event) {
                    return observed.event;
                }
            }
        };
        timeout(PATIENCE, wait).await.unwrap()
    }

    /// Waits until it is in the mesh.
    pub(crate) async fn joins(&mut self) {
        let is_in = |it: &NodeEvent| matches!(it, NodeEvent::Membership(Event::Identified(_)));
        self.wait_for(is_in).await;
    }

    /// Waits until another node is on its list.
    pub(crate) async fn meets(&mut self, other: NodeId) {
        let is_joined = |it: &NodeEvent| matches!(it, NodeEvent::Membership(Event::Changed(Delta::Joined(it))) if it.id == other);
        self.wait_for(is_joined).await;
    }

    /// The events that were not read yet.
    pub(crate) fn passed(&mut self) -> Vec<NodeEvent> {
        let mut passed = Vec::new();
        loop {
            match self.events.try_recv() {
                Ok(Some(observed)) => passed.push(observed.event),
                Ok(None) | Err(RecvError::Closed) => return passed,
                Err(RecvError::Lagged { missed }) => panic!("{missed} events were missed"),
            }
        }
    }

    pub(crate) fn live(&self) -> usize {
        let members = self.handle.members();
        members.iter().filter(|it| it.status.is_live()).count()
    }
}

impl Deref for Node {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

pub(crate) fn is_failure(event: &NodeEvent) -> bool {
    matches!(
        event,
        NodeEvent::Membership(Event::Changed(Delta::Failed(_)))
    )
}

pub(crate) async fn until(condition: impl Fn() -> bool) {
    let poll = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, poll).await.unwrap();
}
