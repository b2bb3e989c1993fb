//! The hub's own topics.

use std::collections::{BTreeMap, BTreeSet};

use super::PostError;

/// The hub's topics, for devices and routines with these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    own: String,
    discovery: String,
    devices: BTreeSet<String>,
    routines: BTreeSet<String>,
    /// The request of each topic: true to run a routine, false to cancel it, and the routine's name.
    requests: BTreeMap<String, (bool, String)>,
    announced: BTreeSet<String>,
    /// The topics at which the state of a device or the last run of a routine is retained.
    kept: BTreeSet<String>,
}

/// The meaning of a message at a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// A request to run this routine.
    Run(&'a str),
    /// A request to undo a run of this routine.
    Cancel(&'a str),
    /// A request to publish everything again, for a reader that was away.
    Anew,
    /// No request, but an announcement.
    Announced,
    /// No request, but a retained message of the hub itself about a device or a routine.
    Kept,
}

/// A name as one level of a topic.
#[must_use]
pub fn level(name: &str) -> String {
    let one = |it: char| match it {
        '/' | '+' | '#' => '_',
        it if it.is_control() => '_',
        it => it,
    };
    name.chars().map(one).collect()
}

/// A name as one word of letters, digits, `_` and `-`; different names give different words.
#[must_use]
pub fn word(name: &str) -> String {
    let mut word = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => word.push(byte.into()),
            other => word.push_str(&format!("_{other:02x}")),
        }
    }
    word
}

/// Checks that the names are also different in topics.
fn distinct(names: &BTreeSet<String>) -> Result<BTreeSet<String>, PostError> {
    let mut by_level: BTreeMap<String, &String> = BTreeMap::new();
    for name in names {
        if let Some(other) = by_level.insert(level(name), name) {
            return Err(PostError::Twice(other.clone(), name.clone()));
        }
    }
    Ok(names.clone())
}

impl Topics {
    /// Topics that begin with these two prefixes; nothing is announced if the second is empty.
    ///
    /// # Errors
    /// When two names are the same in a topic.
    pub fn new(
        own: String,
        discovery: String,
        devices: &BTreeSet<String>,
        routines: &BTreeSet<String>,
    ) -> Result<Self, PostError> {
        let mut topics = Self {
            devices: distinct(devices)?,
            routines: distinct(routines)?,
            own,
            discovery,
            requests: BTreeMap::new(),
            announced: BTreeSet::new(),
            kept: BTreeSet::new(),
        };
        topics.kept = devices.iter().map(|it| topics.device(it)).collect();
        for name in routines {
            let run = topics.run(name);
            topics.requests.insert(run, (true, name.clone()));
            let cancel = topics.cancel(name);
            topics.requests.insert(cancel, (false, name.clone()));
            topics.announced.insert(topics.button(name));
            topics.announced.insert(topics.sensor(name));
            topics.kept.insert(topics.last(name));
        }
        for it in COUNTS {
            topics.announced.insert(topics.count(it));
        }
        Ok(topics)
    }

    /// Adds devices that have left the file and are still in use.
    #[must_use]
    pub fn with_gone<'a>(mut self, devices: impl IntoIterator<Item = &'a str>) -> Self {
        for name in devices {
            let topic = self.device(name);
            self.kept.insert(topic);
        }
        self
    }

    /// The prefix of the hub's own topics.
    #[must_use]
    pub fn own(&self) -> &str {
        &self.own
    }

    /// The hub's own prefix as one word.
    #[must_use]
    pub fn node(&self) -> String {
        word(&self.own)
    }

    /// Returns true if anything is announced.
    #[must_use]
    pub fn announces(&self) -> bool {
        !self.discovery.is_empty()
    }

    /// The names of all routines.
    pub fn routines(&self) -> impl Iterator<Item = &str> {
        self.routines.iter().map(String::as_str)
    }

    /// Returns true if there is such a routine.
    #[must_use]
    pub fn has_routine(&self, name: &str) -> bool {
        self.routines.contains(name)
    }

    /// The filters that the hub subscribes to, apart from the topics of its devices.
    pub fn filters(&self) -> impl Iterator<Item = String> + use<> {
        let own = &self.own;
        let asked = ["run", "cancel"].map(|it| format!("{own}/routine/+/{it}"));
        let (discovery, node) = (&self.discovery, self.node());
        let others = [
            format!("{discovery}/status"),
            format!("{discovery}/button/{node}/+/config"),
            format!("{discovery}/sensor/{node}/+/config"),
        ];
        let others = others.into_iter().filter({
            let announces = self.announces();
            move |_| announces
        });
        asked.into_iter().chain(others)
    }

    /// The filters of the hub's own retained messages about devices and routines, also about such as no
    /// longer exist.
    pub fn own_filters(&self) -> impl Iterator<Item = String> + use<> {
        ["device/+/state", "routine/+/last"]
            .map(|it| format!("{}/{it}", self.own))
            .into_iter()
    }

    /// The meaning of a message at a topic.
    #[must_use]
    pub fn asked(&self, topic: &str) -> Option<Asked<'_>> {
        if let Some((runs, name)) = self.requests.get(topic) {
            return Some(match runs {
                true => Asked::Run(name),
                false => Asked::Cancel(name),
            });
        }
        let below = |prefix: &str| {
            let rest = topic.strip_prefix(prefix)?.strip_prefix('/')?;
            Some(rest.split('/').collect::<Vec<_>>())
        };
        if let Some(["device", _, "state"] | ["routine", _, "last"]) = below(&self.own).as_deref() {
            return Some(Asked::Kept);
        }
        match below(&self.discovery).as_deref() {
            Some(["status"]) => Some(Asked::Anew),
            Some(["button" | "sensor", node, _, "config"])
                if self.announces() && *node == self.node() =>
            {
                Some(Asked::Announced)
            }
            _ => None,
        }
    }

    /// Returns true if the hub announces something at this topic.
    #[must_use]
    pub fn is_announced(&self, topic: &str) -> bool {
        self.announced.contains(topic)
    }

    /// Returns true if the hub has a retained message about a device or a routine at this topic.
    #[must_use]
    pub fn is_kept(&self, topic: &str) -> bool {
        self.kept.contains(topic)
    }

    /// The topic that reports whether the hub is online.
    #[must_use]
    pub fn status(&self) -> String {
        format!("{}/status", self.own)
    }

    /// The topic of the number of runs.
    #[must_use]
    pub fn runs(&self) -> String {
        format!("{}/runs", self.own)
    }

    /// The topic of a run.
    #[must_use]
    pub fn one_run(&self, id: u64) -> String {
        format!("{}/run/{id}", self.own)
    }

    /// Returns true if a device has topics of its own.
    #[must_use]
    pub fn has_device(&self, name: &str) -> bool {
        self.devices.contains(name)
    }

    /// The topic of a device's state. A device that has left the file and is still in use may have the same
    /// topic.
    #[must_use]
    pub fn device(&self, name: &str) -> String {
        format!("{}/device/{}/state", self.own, level(name))
    }

    fn routine(&self, name: &str, what: &str) -> String {
        format!("{}/routine/{}/{what}", self.own, level(name))
    }

    /// The topic of requests to run a routine.
    #[must_use]
    pub fn run(&self, name: &str) -> String {
        self.routine(name, "run")
    }

    /// The topic of requests to undo a run.
    #[must_use]
    pub fn cancel(&self, name: &str) -> String {
        self.routine(name, "cancel")
    }

    /// The topic of the answers to both.
    #[must_use]
    pub fn answer(&self, name: &str) -> String {
        self.routine(name, "answer")
    }

    /// The topic of the latest run of a routine.
    #[must_use]
    pub fn last(&self, name: &str) -> String {
        self.routine(name, "last")
    }

    fn config(&self, kind: &str, object: &str) -> String {
        format!("{}/{kind}/{}/{object}/config", self.discovery, self.node())
    }

    /// The topic at which the button of a routine is announced.
    #[must_use]
    pub fn button(&self, name: &str) -> String {
        self.config("button", &word(name))
    }

    /// The topic at which the sensor of a routine is announced.
    #[must_use]
    pub fn sensor(&self, name: &str) -> String {
        self.config("sensor", &format!("last-{}", word(name)))
    }

    /// The topic at which the number of running or of waiting runs is announced.
    #[must_use]
    pub fn count(&self, what: &str) -> String {
        self.config("sensor", &format!("count-{what}"))
    }
}

/// The numbers that are published.
pub const COUNTS: [&str; 2] = ["runs", "waits"];
