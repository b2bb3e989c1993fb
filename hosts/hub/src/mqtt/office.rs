//! Says what changes, in a task of its own.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_mqtt::link::{Link, Unsaid};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval};

use super::topic::Topics;
use super::{Told, announce};
use crate::house::RunView;

/// How long to wait before what found no room is said again.
const RETRY: Duration = Duration::from_millis(200);

/// Says what is not said yet.
#[derive(Debug)]
pub(super) struct Office {
    link: Arc<Link>,
    topics: Arc<Topics>,
    /// What is retained, by its topic.
    retained: BTreeMap<String, Vec<u8>>,
    /// The latest run of each routine.
    latest: BTreeMap<String, RunView>,
    /// What Home Assistant discovers.
    discovery: Vec<(String, Vec<u8>)>,
    /// Whether something found no room.
    is_behind: bool,
}

impl Office {
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

    /// Goes on until the house is no more.
    pub(super) async fn run(
        mut self,
        anew: Arc<Notify>,
        mut stale: mpsc::Receiver<String>,
        told: Told,
    ) {
        let Told {
            mut view,
            mut runs,
            latest,
        } = told;
        let latest = latest.into_iter().map(|it| (it.name.clone(), it));
        self.latest
            .extend(latest.filter(|it| self.topics.has_routine(&it.0)));
        // It goes on through what happens meanwhile.
        let mut again = interval(RETRY);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // What is rare, or comes a few times a second, is not put off by what may come in crowds.
                biased;
                () = anew.notified() => {
                    // Nobody knows what the broker has, nor what became of what was under way.
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
                        // One that finds no room is heard of at the next start.
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

    /// Says all that does not change with the house, but for what the broker retains.
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
        // What is missed of it is in what is retained, and at the hub's page.
        let topic = self.topics.one_run(run.id);
        self.link.publish(&topic, announce::run(&run)).ok();
        let is_latest = self.latest.get(&run.name).is_none_or(|it| it.id <= run.id);
        if is_latest && self.topics.has_routine(&run.name) {
            self.retain(self.topics.last(&run.name), announce::run(&run));
            self.latest.insert(run.name.clone(), run);
        }
    }

    /// Has a broker retain something, unless it does.
    fn retain(&mut self, topic: String, payload: Vec<u8>) {
        if self.retained.get(&topic) == Some(&payload) {
            return;
        }
        match self.link.retain(&topic, payload.clone()) {
            Ok(()) => drop(self.retained.insert(topic, payload)),
            Err(why @ (Unsaid::TooLong { .. } | Unsaid::NoTopic)) => {
                tracing::warn!(topic, %why, "not announced");
                // To say it again would not mend it.
                self.retained.insert(topic, payload);
            }
            // All is said anew when it is there.
            Err(Unsaid::NoBroker) => {}
            Err(_) => self.is_behind = true,
        }
    }
}
