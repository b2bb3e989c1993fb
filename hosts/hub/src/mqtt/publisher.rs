//! The publisher of changes, a task of its own.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_mqtt::link::{Link, PublishError};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};

use super::topic::Topics;
use super::{Notified, announce};
use crate::house::RunView;

/// The wait before a message that found no room is sent again.
const RETRY: Duration = Duration::from_millis(200);

/// The publisher of changes.
#[derive(Debug)]
pub(super) struct Publisher {
    link: Arc<Link>,
    topics: Arc<Topics>,
    /// The retained messages, by topic.
    retained: BTreeMap<String, Vec<u8>>,
    /// The latest run of each routine.
    latest: BTreeMap<String, RunView>,
    /// The announcements for Home Assistant.
    discovery: Vec<(String, Vec<u8>)>,
    /// True if a message found no room.
    is_behind: bool,
}

impl Publisher {
    pub(super) fn new(link: Arc<Link>, topics: Arc<Topics>) -> Self {
        Self {
            discovery: announce::discovery(&topics),
            link,
            topics,
            retained: BTreeMap::new(),
            latest: BTreeMap::new(),
            is_behind: false,
        }
    }

    /// Runs until the house has ended.
    pub(super) async fn run(
        mut self,
        anew: Arc<Notify>,
        mut stale: mpsc::Receiver<String>,
        told: Notified,
    ) {
        let Notified {
            mut view,
            mut runs,
            latest,
        } = told;
        let latest = latest.into_iter().map(|it| (it.name.clone(), it));
        self.latest
            .extend(latest.filter(|it| self.topics.has_routine(&it.0)));
        // It continues through other events.
        let mut again = interval(RETRY);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // Rare events, and events a few times a second, are not delayed by events that may come in
                // crowds.
                biased;
                () = anew.notified() => {
                    // The broker's retained messages, and the outcome of messages under way, are unknown.
                    self.retained.clear();
                    self.say_what_stays();
                }
                _ = again.tick(), if self.is_behind => self.say_what_stays(),
                changed = view.changed() => if changed.is_err() {
                    return;
                },
                run = runs.recv() => match run {
                    Some(run) => {
                        self.on_run(run);
                        continue;
                    }
                    None => return,
                },
                topic = stale.recv() => match topic {
                    Some(topic) => {
                        // A topic that finds no room is received again at the next start.
                        self.link.retain(&topic, Vec::new()).ok();
                        continue;
                    }
                    None => return,
                },
            }
            for (topic, payload) in announce::house(&self.topics, &view.borrow_and_update()) {
                self.retain(topic, payload);
            }
        }
    }

    /// Publishes everything that does not change with the house, except the messages that the broker retains
    /// already.
    fn say_what_stays(&mut self) {
        self.is_behind = false;
        for (topic, payload) in self.discovery.clone() {
            self.retain(topic, payload);
        }
        let latest: Vec<RunView> = self.latest.values().cloned().collect();
        for run in latest {
            self.retain(self.topics.last(&run.name), announce::run(&run));
        }
        self.retain(self.topics.status(), announce::ONLINE.into());
    }

    fn on_run(&mut self, run: RunView) {
        // A client that misses it has the retained message, and the hub's page.
        let topic = self.topics.one_run(run.id);
        self.link.publish(&topic, announce::run(&run)).ok();
        let is_latest = self.latest.get(&run.name).is_none_or(|it| it.id <= run.id);
        if is_latest && self.topics.has_routine(&run.name) {
            self.retain(self.topics.last(&run.name), announce::run(&run));
            self.latest.insert(run.name.clone(), run);
        }
    }

    /// Has the broker retain a message, unless it does already.
    fn retain(&mut self, topic: String, payload: Vec<u8>) {
        if self.retained.get(&topic) == Some(&payload) {
            return;
        }
        match self.link.retain(&topic, payload.clone()) {
            Ok(()) => drop(self.retained.insert(topic, payload)),
            Err(why @ (PublishError::TooLong { .. } | PublishError::NoTopic)) => {
                tracing::warn!(topic, %why, "not announced");
                // Sending it again would not help.
                self.retained.insert(topic, payload);
            }
            // Everything is published again when the broker is back.
            Err(PublishError::NoBroker) => {}
            Err(_) => self.is_behind = true,
        }
    }
}
