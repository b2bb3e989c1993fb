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
    /// Which request is made at a topic.
    requests: BTreeMap<String, (bool, String)>,
    announced: BTreeSet<String>,
    /// Where something is retained of a device or of a routine.
    kept: BTreeSet<String>,
}

/// What is asked for at a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked<'a> {
    /// That this routine is run.
    Run(&'a str),
    /// That a run of this routine is undone.
    Cancel(&'a str),
    /// That all is said anew, for one that was away.
    Anew,
    /// Nothing: it is an announcement.
    Announced,
    /// Nothing: it is what the hub itself says of a device or of a routine, and has retained.
    Kept,
}

/// A name in a topic.
#[must_use]
pub fn level(name: &str) -> String {
    let one = |it: char| match it {
        '/' | '+' | '#' => '_',
        it if it.is_control() => '_',
        it => it,
    };
    name.chars().map(one).collect()
}

/// A name as one word of letters, digits, `_` and `-`; other names are other words.
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

/// Names that are different ones in topics, too.
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
    /// Topics that begin with these two; nothing is announced where the second one is empty.
    ///
    /// # Errors
    /// When two names are one in a topic.
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

    /// There are these devices, too, which are gone from the file and still in use.
    #[must_use]
    pub fn with_gone<'a>(mut self, devices: impl IntoIterator<Item = &'a str>) -> Self {
        for name in devices {
            let topic = self.device(name);
            self.kept.insert(topic);
        }
        self
    }

    /// What they begin with.
    #[must_use]
    pub fn own(&self) -> &str {
        &self.own
    }

    /// The hub, in one word.
    #[must_use]
    pub fn node(&self) -> String {
        word(&self.own)
    }

    /// Whether anything is announced.
    #[must_use]
    pub fn announces(&self) -> bool {
        !self.discovery.is_empty()
    }

    /// The names of all routines.
    pub fn routines(&self) -> impl Iterator<Item = &str> {
        self.routines.iter().map(String::as_str)
    }

    /// Whether there is such a routine.
    #[must_use]
    pub fn has_routine(&self, name: &str) -> bool {
        self.routines.contains(name)
    }

    /// What the hub hears but for its devices.
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

    /// What the hub itself has retained of devices and of routines: also of those that are no more.
    pub fn own_filters(&self) -> impl Iterator<Item = String> + use<> {
        ["device/+/state", "routine/+/last"]
            .map(|it| format!("{}/{it}", self.own))
            .into_iter()
    }

    /// What is asked for at a topic that the hub hears.
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

    /// Whether the hub announces something there.
    #[must_use]
    pub fn is_announced(&self, topic: &str) -> bool {
        self.announced.contains(topic)
    }

    /// Whether the hub has something retained there, of a device or of a routine.
    #[must_use]
    pub fn is_kept(&self, topic: &str) -> bool {
        self.kept.contains(topic)
    }

    /// Whether the hub is there.
    #[must_use]
    pub fn status(&self) -> String {
        format!("{}/status", self.own)
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> String {
        format!("{}/runs", self.own)
    }

    /// A run.
    #[must_use]
    pub fn one_run(&self, id: u64) -> String {
        format!("{}/run/{id}", self.own)
    }

    /// Whether a device is one of those with topics of their own.
    #[must_use]
    pub fn has_device(&self, name: &str) -> bool {
        self.devices.contains(name)
    }

    /// The state of a device. Another one, which is gone from the file and still in use, may have the same topic.
    #[must_use]
    pub fn device(&self, name: &str) -> String {
        format!("{}/device/{}/state", self.own, level(name))
    }

    fn routine(&self, name: &str, what: &str) -> String {
        format!("{}/routine/{}/{what}", self.own, level(name))
    }

    /// Where a routine is asked for.
    #[must_use]
    pub fn run(&self, name: &str) -> String {
        self.routine(name, "run")
    }

    /// Where it is asked that a run is undone.
    #[must_use]
    pub fn cancel(&self, name: &str) -> String {
        self.routine(name, "cancel")
    }

    /// Where both are answered.
    #[must_use]
    pub fn answer(&self, name: &str) -> String {
        self.routine(name, "answer")
    }

    /// The latest run of a routine.
    #[must_use]
    pub fn last(&self, name: &str) -> String {
        self.routine(name, "last")
    }

    fn config(&self, kind: &str, object: &str) -> String {
        format!("{}/{kind}/{}/{object}/config", self.discovery, self.node())
    }

    /// Where the button of a routine is announced.
    #[must_use]
    pub fn button(&self, name: &str) -> String {
        self.config("button", &word(name))
    }

    /// Where the sensor of a routine is announced.
    #[must_use]
    pub fn sensor(&self, name: &str) -> String {
        self.config("sensor", &format!("last-{}", word(name)))
    }

    /// Where the number of those that run, or wait, is announced.
    #[must_use]
    pub fn count(&self, what: &str) -> String {
        self.config("sensor", &format!("count-{what}"))
    }
}

/// What is counted.
pub const COUNTS: [&str; 2] = ["runs", "waits"];
