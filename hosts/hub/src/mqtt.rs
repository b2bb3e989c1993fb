//! The messages between the hub and a broker.
//!
//! | topic | message | retained |
//! |---|---|---|
//! | `selvedge/status` | `online`, or `offline`, by the hub or as its last will | yes |
//! | `selvedge/runs` | `{"runs":1,"waits":0}`: the numbers of running and of waiting runs | yes |
//! | `selvedge/device/NAME/state` | `{"state":"on","up":true}` | yes |
//! | `selvedge/routine/NAME/last` | the latest [run](RunView) of a routine, each time that it changes | yes |
//! | `selvedge/run/7` | a run, each time that it changes | no |
//! | `selvedge/routine/NAME/run` | to the hub: run it; `PRESS`, or nothing | no |
//! | `selvedge/routine/NAME/cancel` | to the hub: undo its latest run, or the run with the number in the payload | no |
//! | `selvedge/routine/NAME/answer` | the answer to both: `{"id":7}` or `{"error":".."}` | no |
//!
//! In a NAME, `/`, `+`, `#` and control characters are `_`. A retained message never starts a run: a request
//! that a broker retained is answered with an error. At most [`ASKED`] requests wait for their answers.
//!
//! Home Assistant discovers a button and a sensor for each routine, and sensors for the numbers of running
//! and waiting runs ([`announce`]). The hub removes its retained announcements and states of devices and
//! routines that no longer exist.

pub mod announce;
mod publisher;
mod receiving;
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

use self::publisher::Publisher;
use self::receiving::Receiving;
use self::topic::Topics;
use crate::device::mqtt::Ear;
use crate::event_loop::Request;
use crate::file::{BrokerShape, MqttError, Place};
use crate::house::{RunView, View};

/// The number of requests that may wait for their answers.
pub const ASKED: usize = 64;
/// The longest packet that the hub sends, in bytes.
const PACKET_MAX: usize = 64 * 1024;
/// The longest packet that the hub and the broker inside receive, in bytes: a longer one ends the connection.
const INCOMING_MAX: usize = 1024 * 1024;
/// The number of messages that may wait to be sent; further messages are dropped, and counted.
const WAITING: usize = 1_024;

/// The environment variable with the password.
pub const PASSWORD: &str = "SELVEDGE_HUB_MQTT_PASSWORD";

const DIALECT: Dialect = Dialect {
    packet_max: PACKET_MAX,
    incoming_max: INCOMING_MAX,
    // The receiver looks at the retained flag.
    takes_retained: |_| true,
    credentials: "hub.mqtt.user and SELVEDGE_HUB_MQTT_PASSWORD",
    certificates: "hub.mqtt.ca",
};

/// An error that keeps MQTT from starting.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PostError {
    /// An error in the file.
    #[error(transparent)]
    Shape(#[from] MqttError),
    /// An error in a certificate or its key.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An error in the users of the broker inside.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// A name without a password, or the other way round.
    #[error("hub.mqtt.user and SELVEDGE_HUB_MQTT_PASSWORD belong together: set both, or neither")]
    Password,
    /// The broker inside does not start.
    #[error("hub.mqtt.listen: cannot listen at {0}: {1}: choose another address")]
    Listen(SocketAddr, io::Error),
    /// A program without a broker.
    #[error("hub.mqtt.listen: this program was built without a broker: name one with \"broker\"")]
    NoBroker,
    /// Two names that are the same in a topic.
    #[error("{0:?} and {1:?} are the same name in a topic of MQTT: rename one of them")]
    Twice(String, String),
    /// A thread does not start.
    #[error("cannot start a thread: {0}: raise the limit on threads of this process")]
    Thread(io::Error),
}

/// The settings for the connection to the broker, all checked.
#[derive(Debug)]
pub struct Way {
    shape: BrokerShape,
    access: Access,
    users: Option<Users>,
    identity: Option<Identity>,
}

impl Way {
    /// Reads the files that a home names, relative to the folder `beside`.
    ///
    /// # Errors
    /// When one of them, or the password, is invalid.
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

    /// Starts the broker inside, if the settings have one. Returns the address of the broker for the hub.
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
            // As long as other brokers allow: Zigbee2MQTT sends all its devices in one packet.
            packet_max: INCOMING_MAX,
            // A device does not carry out later a command that it missed.
            keeps_sessions: false,
        };
        let inside = broker::start(settings);
        let inside = inside.map_err(|it| PostError::Listen(listen, it))?;
        // Behind its front it has another address.
        Ok(inside.unwrap_or_else(|| Address {
            host: listen.ip().to_string(),
            port: listen.port(),
        }))
    }
}

/// The updates from the event loop.
#[derive(Debug)]
pub struct Notified {
    /// The view of the house.
    pub view: watch::Receiver<Arc<View>>,
    /// Each run that changed.
    pub runs: mpsc::Receiver<RunView>,
    /// The latest run of each routine until then.
    pub latest: Vec<RunView>,
}

/// A channel for each run that changed.
#[must_use]
pub fn runs() -> (mpsc::Sender<RunView>, mpsc::Receiver<RunView>) {
    mpsc::channel(WAITING)
}

/// The names in a house.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The devices in the file.
    pub devices: BTreeSet<String>,
    /// The devices that have left the file and are still in use.
    pub ended: BTreeSet<String>,
    /// The routines.
    pub routines: BTreeSet<String>,
}

/// The hub's connection to its broker.
#[derive(Debug)]
pub struct Post {
    link: Arc<Link>,
    topics: Arc<Topics>,
}

impl Post {
    /// Connects to the broker, and stays connected. Requests go to the event loop.
    ///
    /// # Errors
    /// When the broker inside does not start, or two names are the same in a topic.
    pub fn open(
        way: &Way,
        names: &Names,
        ears: Vec<Ear>,
        requests: Sender<Request>,
        notified: Notified,
        runtime: &Handle,
    ) -> Result<Self, PostError> {
        let (own, discovery) = (way.shape.topic.clone(), way.shape.discovery.clone());
        let topics = Topics::new(own, discovery, &names.devices, &names.routines)?;
        let topics = Arc::new(topics.with_gone(names.ended.iter().map(String::as_str)));
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
            // A request that was made while the hub was away is not run when it returns.
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
        let (notify, stale) = mpsc::channel(WAITING);
        let again = Arc::new(Notify::new());
        let shared = Arc::new(OnceLock::new());
        let receiving = Receiving {
            topics: Arc::clone(&topics),
            ears,
            by_topic,
            requests,
            asked: Arc::new(Semaphore::new(ASKED)),
            runtime: runtime.clone(),
            again: Arc::clone(&again),
            stale: notify,
            link: Arc::clone(&shared),
            left_out: Arc::default(),
        };
        let link = Link::open(setup, move |event| {
            receiving.receive(event);
            true
        });
        let link = Arc::new(link.map_err(PostError::Thread)?);
        // It is set once.
        let _is_first = shared.set(Arc::clone(&link));
        let publisher = Publisher::new(Arc::clone(&link), Arc::clone(&topics));
        runtime.spawn(publisher.run(again, stale, notified));
        Ok(Self { link, topics })
    }

    /// The link, for devices.
    #[must_use]
    pub fn link(&self) -> Arc<Link> {
        Arc::clone(&self.link)
    }

    /// Publishes that the hub is offline, when it ends by itself.
    pub fn farewell(&self) {
        let reported = self
            .link
            .retain(&self.topics.status(), announce::OFFLINE.into());
        if let Err(why) = reported {
            // Then its last will does so.
            tracing::debug!(%why, "no farewell");
        }
    }
}
