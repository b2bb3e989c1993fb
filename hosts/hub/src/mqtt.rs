//! What the hub says and hears at a broker.
//!
//! | topic | what is said there | retained |
//! |---|---|---|
//! | `selvedge/status` | `online`, or `offline`, by the hub or as its last will | yes |
//! | `selvedge/runs` | `{"runs":1,"waits":0}`: how many run, and how many wait | yes |
//! | `selvedge/device/NAME/state` | `{"state":"on","up":true}` | yes |
//! | `selvedge/routine/NAME/last` | the latest [run](RunView) of a routine, each time that it changes | yes |
//! | `selvedge/run/7` | a run, each time that it changes | no |
//! | `selvedge/routine/NAME/run` | to the hub: run it; `PRESS`, or nothing | no |
//! | `selvedge/routine/NAME/cancel` | to the hub: undo its latest run, or the one whose number is said | no |
//! | `selvedge/routine/NAME/answer` | what became of that: `{"id":7}` or `{"error":".."}` | no |
//!
//! In a NAME, `/`, `+`, `#` and control characters are `_`. What is retained never has anything run: a request
//! that a broker retained is answered with an error. At most [`ASKED`] requests wait for their answers.
//!
//! Home Assistant discovers a button and a sensor for each routine, and sensors for what runs and waits
//! ([`announce`]). What the hub announced, or had retained of devices and routines, and does not have any more is
//! taken back.

pub mod announce;
mod hearing;
mod office;
#[cfg(test)]
mod tests;
pub mod topic;

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use selvedge_mqtt::access::{Access, Address};
#[cfg(feature = "broker")]
use selvedge_mqtt::broker::{self, Settings};
use selvedge_mqtt::link::{Dialect, Link, Session, Setup, Will};
use selvedge_mqtt::tls::{Identity, TlsError, Trust};
use selvedge_mqtt::users::{Users, UsersError};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use self::hearing::Hearing;
use self::office::Office;
use self::topic::Topics;
use crate::device::mqtt::Ear;
use crate::file::{BrokerShape, MqttError, Place};
use crate::house::{RunView, View};
use crate::keeper::Request;

/// How many requests may wait for their answers.
pub const ASKED: usize = 64;
/// The longest packet that the hub says, in bytes.
const PACKET_MAX: usize = 64 * 1024;
/// The longest packet that it takes, and the broker inside, in bytes: a longer one ends the connection.
const INCOMING_MAX: usize = 1024 * 1024;
/// How much may wait to be said; what is more is left out, and counted.
const WAITING: usize = 1_024;

/// The environment's name for the password.
pub const PASSWORD: &str = "SELVEDGE_HUB_MQTT_PASSWORD";

const DIALECT: Dialect = Dialect {
    packet_max: PACKET_MAX,
    incoming_max: INCOMING_MAX,
    // Whether it was retained is looked at where it is heard.
    takes_retained: |_| true,
    credentials: "hub.mqtt.user and SELVEDGE_HUB_MQTT_PASSWORD",
    certificates: "hub.mqtt.ca",
};

/// Why there is no MQTT.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PostError {
    /// The file.
    #[error(transparent)]
    Shape(#[from] MqttError),
    /// A certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The users of the broker inside.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// A name without a password, or the other way round.
    #[error("hub.mqtt.user and SELVEDGE_HUB_MQTT_PASSWORD belong together: say both, or neither")]
    Password,
    /// The broker inside does not start.
    #[error("hub.mqtt.listen: cannot listen at {0}: {1}: choose another address")]
    Listen(SocketAddr, io::Error),
    /// This program has no broker.
    #[error("hub.mqtt.listen: this program was built without a broker: name one with \"broker\"")]
    NoBroker,
    /// Two names that are one in a topic.
    #[error("{0:?} and {1:?} are one name in a topic of MQTT: rename one of them")]
    Twice(String, String),
    /// A thread does not start.
    #[error("cannot start a thread: {0}: see how many this process may have")]
    Thread(io::Error),
}

/// How the broker is gone to, once all that can be wrong with it was looked at.
#[derive(Debug)]
pub struct Way {
    shape: BrokerShape,
    access: Access,
    users: Option<Users>,
    identity: Option<Identity>,
}

impl Way {
    /// Reads the files that a home names; they are looked for beside it.
    ///
    /// # Errors
    /// When one of them, or the password, is not as it has to be.
    pub fn new(
        shape: &BrokerShape,
        beside: &Path,
        password: Option<String>,
    ) -> Result<Self, PostError> {
        if shape.user.is_some() != password.as_ref().is_some_and(|it| !it.is_empty()) {
            return Err(PostError::Password);
        }
        let found = |it: &PathBuf| beside.join(it);
        let pair = shape.certificate.as_ref().zip(shape.key.as_ref());
        let identity =
            pair.map(|(certificate, key)| Identity::open(&found(certificate), &found(key)));
        let identity = identity.transpose()?;
        let tls = shape.ca.as_ref();
        let tls = tls.map(|it| Trust::open(&found(it), identity.as_ref()));
        let users = shape.users.as_ref().map(|it| Users::open(&found(it)));
        Ok(Self {
            shape: shape.clone(),
            access: Access {
                user: shape.user.clone(),
                password: password.unwrap_or_default(),
                tls: tls.transpose()?,
            },
            users: users.transpose()?,
            identity,
        })
    }

    /// Starts the broker inside, if there is to be one. Returns where the broker is for the hub.
    fn broker(&self) -> Result<Address, PostError> {
        match self.shape.place()? {
            Place::At(address) => Ok(address),
            Place::Inside(listen) => self.start_broker(listen),
        }
    }

    #[cfg(not(feature = "broker"))]
    fn start_broker(&self, _: SocketAddr) -> Result<Address, PostError> {
        let _unused = (&self.users, &self.identity);
        Err(PostError::NoBroker)
    }

    #[cfg(feature = "broker")]
    fn start_broker(&self, listen: SocketAddr) -> Result<Address, PostError> {
        let settings = Settings {
            listen,
            access: &self.access,
            users: self.users.as_ref(),
            identity: self.identity.as_ref(),
            // As long as those that other brokers take: a Zigbee2MQTT says all its devices in one.
            packet_max: INCOMING_MAX,
            // What a device missed it does not do later.
            keeps_sessions: false,
        };
        let inside = broker::start(settings);
        let inside = inside.map_err(|it| PostError::Listen(listen, it))?;
        // Behind its front it is elsewhere.
        Ok(inside.unwrap_or_else(|| Address {
            host: listen.ip().to_string(),
            port: listen.port(),
        }))
    }
}

/// What the keeper tells.
#[derive(Debug)]
pub struct Told {
    /// What is shown of the house.
    pub view: watch::Receiver<Arc<View>>,
    /// Each run that changed.
    pub runs: mpsc::Receiver<RunView>,
    /// The latest run of each routine until then.
    pub latest: Vec<RunView>,
}

/// Where each run that changed is told.
#[must_use]
pub fn runs() -> (mpsc::Sender<RunView>, mpsc::Receiver<RunView>) {
    mpsc::channel(WAITING)
}

/// The names in a house.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Of the devices in the file.
    pub devices: BTreeSet<String>,
    /// Of those that are gone from it and still in use.
    pub gone: BTreeSet<String>,
    /// Of the routines.
    pub routines: BTreeSet<String>,
}

/// The hub's place at its broker.
#[derive(Debug)]
pub struct Post {
    link: Arc<Link>,
    topics: Arc<Topics>,
}

impl Post {
    /// Goes to the broker, and stays there. What is asked for goes to the keeper.
    ///
    /// # Errors
    /// When the broker inside does not start, or names meet.
    pub fn open(
        way: &Way,
        names: &Names,
        ears: Vec<Ear>,
        requests: Sender<Request>,
        told: Told,
        runtime: &Handle,
    ) -> Result<Self, PostError> {
        let (own, discovery) = (way.shape.topic.clone(), way.shape.discovery.clone());
        let topics = Topics::new(own, discovery, &names.devices, &names.routines)?;
        let topics = Arc::new(topics.with_gone(names.gone.iter().map(String::as_str)));
        let mut by_topic: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (nth, ear) in ears.iter().enumerate() {
            for topic in ear.topics() {
                by_topic.entry(topic.into()).or_default().push(nth);
            }
        }
        let setup = Setup {
            name: format!("selvedge-hub-{}", topics.own().replace('/', "-")),
            address: way.broker()?,
            access: match way.shape.place()? {
                Place::Inside(_) => way.access.in_the_clear(),
                Place::At(_) => way.access.clone(),
            },
            // What was asked for while the hub was away is not run when it comes back.
            session: Session::Clean,
            filters: topics.filters().chain(by_topic.keys().cloned()).collect(),
            asides: topics.own_filters().collect(),
            will: Some(Will {
                topic: topics.status(),
                payload: announce::OFFLINE.into(),
            }),
            stays: true,
            dialect: DIALECT,
        };
        let (tell, stale) = mpsc::channel(WAITING);
        let anew = Arc::new(Notify::new());
        let shared = Arc::new(OnceLock::new());
        let hearing = Hearing {
            topics: Arc::clone(&topics),
            ears,
            by_topic,
            requests,
            asked: Arc::new(Semaphore::new(ASKED)),
            runtime: runtime.clone(),
            anew: Arc::clone(&anew),
            stale: tell,
            link: Arc::clone(&shared),
            left_out: Arc::default(),
        };
        let link = Link::open(setup, move |event| {
            hearing.hear(event);
            true
        });
        let link = Arc::new(link.map_err(PostError::Thread)?);
        // It is set once.
        let _is_first = shared.set(Arc::clone(&link));
        let office = Office::new(Arc::clone(&link), Arc::clone(&topics));
        runtime.spawn(office.run(anew, stale, told));
        Ok(Self { link, topics })
    }

    /// The link, for devices.
    #[must_use]
    pub fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    /// Says that the hub is gone, where it ends by itself.
    pub fn farewell(&self) {
        let said = self
            .link
            .retain(&self.topics.status(), announce::OFFLINE.into());
        if let Err(why) = said {
            // Then its last will says so.
            tracing::debug!(%why, "no farewell");
        }
    }
}
