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
//! ([`announce`]). What the hub announced and does not have any more is taken back.

pub mod announce;
mod office;
pub mod topic;

use core::net::SocketAddr;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use selvedge_mqtt::access::{Access, Address};
#[cfg(feature = "broker")]
use selvedge_mqtt::broker::{self, Settings};
use selvedge_mqtt::link::{Dialect, Link, LinkEvent, Session, Setup, Will};
use selvedge_mqtt::tls::{Identity, TlsError, Trust};
use selvedge_mqtt::users::{Users, UsersError};
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::sleep;

use self::office::Office;
use self::topic::{Asked, Topics};
use crate::device::mqtt::Ear;
use crate::file::{BrokerShape, MqttError, Place};
use crate::house::{Refusal, RunView, View};
use crate::keeper::Request;

/// How many requests may wait for their answers.
pub const ASKED: usize = 64;
/// The longest packet that the hub says, in bytes.
const PACKET_MAX: usize = 64 * 1024;
/// The longest packet that it takes, in bytes: a longer one ends the connection.
const INCOMING_MAX: usize = 1024 * 1024;
/// How much may wait to be said; what is more is left out, and counted.
const WAITING: usize = 1_024;

/// How long to wait before an answer that found no room is said again, and how often.
const FULL: Duration = Duration::from_millis(20);
const TRIES: usize = 250;

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
            packet_max: PACKET_MAX,
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
}

/// Where each run that changed is told.
#[must_use]
pub fn runs() -> (mpsc::Sender<RunView>, mpsc::Receiver<RunView>) {
    mpsc::channel(WAITING)
}

/// The hub's place at its broker.
#[derive(Debug)]
pub struct Post {
    link: Arc<Link>,
    topics: Arc<Topics>,
}

/// What is heard on the link's thread.
struct Hearing {
    topics: Arc<Topics>,
    ears: Vec<Ear>,
    /// Which of them hear at a topic.
    by_topic: BTreeMap<String, Vec<usize>>,
    requests: Sender<Request>,
    asked: Arc<Semaphore>,
    runtime: Handle,
    said: mpsc::Sender<Said>,
    link: Arc<OnceLock<Arc<Link>>>,
}

/// What the office has to know.
#[derive(Debug)]
enum Said {
    /// The link is up, or Home Assistant is: all is said anew.
    Anew,
    /// Something is retained that the hub did not announce.
    Stale(String),
}

impl Post {
    /// Goes to the broker, and stays there. What is asked for goes to the keeper.
    ///
    /// # Errors
    /// When the broker inside does not start, or names meet.
    pub fn open(
        way: &Way,
        names: (&BTreeSet<String>, &BTreeSet<String>),
        ears: Vec<Ear>,
        requests: Sender<Request>,
        told: Told,
        runtime: &Handle,
    ) -> Result<Self, PostError> {
        let (devices, routines) = names;
        let (own, discovery) = (way.shape.topic.clone(), way.shape.discovery.clone());
        let topics = Arc::new(Topics::new(own, discovery, devices, routines)?);
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
            will: Some(Will {
                topic: topics.status(),
                payload: announce::OFFLINE.into(),
            }),
            stays: true,
            dialect: DIALECT,
        };
        let (say, said) = mpsc::channel(WAITING);
        let shared = Arc::new(OnceLock::new());
        let hearing = Hearing {
            topics: Arc::clone(&topics),
            ears,
            by_topic,
            requests,
            asked: Arc::new(Semaphore::new(ASKED)),
            runtime: runtime.clone(),
            said: say,
            link: Arc::clone(&shared),
        };
        let link = Link::open(setup, move |event| {
            hearing.hear(event);
            true
        });
        let link = Arc::new(link.map_err(PostError::Thread)?);
        // It is set once.
        let _is_first = shared.set(Arc::clone(&link));
        let office = Office::new(Arc::clone(&link), Arc::clone(&topics));
        runtime.spawn(office.run(said, told));
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

impl Hearing {
    fn hear(&self, event: LinkEvent) {
        match event {
            LinkEvent::Up { .. } => {
                self.ears.iter().for_each(|it| it.on_link(true));
                self.say(Said::Anew);
            }
            LinkEvent::Down(lost) => {
                self.ears.iter().for_each(|it| it.on_link(false));
                tracing::warn!(why = %lost, "the broker is lost");
            }
            LinkEvent::Published {
                topic,
                payload,
                is_retained,
            } => self.on_published(&topic, &payload, is_retained),
            LinkEvent::Retained => debug_assert!(false, "all that is retained is taken"),
        }
    }

    fn say(&self, said: Said) {
        // One that is full is about to say all anew, or hears of what is stale at the next start.
        self.said.try_send(said).ok();
    }

    fn on_published(&self, topic: &str, payload: &[u8], is_retained: bool) {
        let ears = self.by_topic.get(topic).into_iter().flatten();
        let ears = ears.filter_map(|nth| self.ears.get(*nth));
        let mut is_understood = false;
        for ear in ears {
            is_understood |= ear.on_published(topic, payload, is_retained);
        }
        match self.topics.asked(topic) {
            Some(Asked::Run(name)) => self.on_run(name, payload, is_retained),
            Some(Asked::Cancel(name)) => self.on_cancel(name, payload, is_retained),
            Some(Asked::Anew) if payload == announce::ONLINE => self.say(Said::Anew),
            Some(Asked::Anew) => {}
            // What is taken back is empty.
            Some(Asked::Announced) if !payload.is_empty() && !self.topics.is_announced(topic) => {
                self.say(Said::Stale(topic.into()));
            }
            Some(Asked::Announced) => {}
            None if !is_understood => {
                tracing::debug!(topic, bytes = payload.len(), "not understood");
            }
            None => {}
        }
    }

    fn on_run(&self, name: &str, payload: &[u8], is_retained: bool) {
        let why = match payload {
            _ if is_retained => announce::RETAINED,
            b"" | announce::PRESS => {
                let asked = String::from(name);
                return self.ask(name, |to| Request::Run(asked, to));
            }
            _ => "a routine takes no payload but PRESS: send that, or nothing",
        };
        self.answer(name, Err(&Refusal::Hub(why.into())));
    }

    fn on_cancel(&self, name: &str, payload: &[u8], is_retained: bool) {
        let text = core::str::from_utf8(payload).unwrap_or("?").trim();
        let number = text.parse::<u64>();
        let why = match (text, number) {
            _ if is_retained => announce::RETAINED,
            ("" | "PRESS", _) => {
                let asked = String::from(name);
                return self.ask(name, |to| Request::CancelOf(asked, None, to));
            }
            (_, Ok(id)) => {
                let asked = String::from(name);
                return self.ask(name, |to| Request::CancelOf(asked, Some(id), to));
            }
            _ => "a run is a number: send that, or nothing for the latest",
        };
        self.answer(name, Err(&Refusal::Hub(why.into())));
    }

    fn ask(
        &self,
        name: &str,
        request: impl FnOnce(oneshot::Sender<Result<selvedge_safehome::RoutineId, Refusal>>) -> Request,
    ) {
        let Ok(permit) = Arc::clone(&self.asked).try_acquire_owned() else {
            let why = format!("{ASKED} requests wait for their answers: ask again in a moment");
            return self.answer(name, Err(&Refusal::Hub(why)));
        };
        let (to, answer) = oneshot::channel();
        if self.requests.send(request(to)).is_err() {
            return; // The process ends.
        }
        let (link, topics) = (Arc::clone(&self.link), Arc::clone(&self.topics));
        let name = String::from(name);
        self.runtime.spawn(async move {
            let answer = answer.await;
            let Some((answer, link)) = answer.ok().zip(link.get()) else {
                return;
            };
            // What is stored is not left out for others that are refused: no more is taken until it is said.
            for _ in 0..TRIES {
                if say_answer(link, &topics, &name, answer.as_ref().map(|it| it.0)) {
                    break;
                }
                sleep(FULL).await;
            }
            drop(permit);
        });
    }

    fn answer(&self, name: &str, answer: Result<u64, &Refusal>) {
        if let Some(link) = self.link.get() {
            say_answer(link, &self.topics, name, answer);
        }
    }
}

/// Returns whether there was room for it.
fn say_answer(link: &Link, topics: &Topics, name: &str, answer: Result<u64, &Refusal>) -> bool {
    let payload = match answer {
        Ok(id) => serde_json::json!({ "id": id }),
        Err(refusal) => {
            let why = announce::short(&refusal.to_string(), announce::TEXT_MAX);
            serde_json::json!({ "error": why })
        }
    };
    // Who does not hear it sees what the run does.
    let said = link.publish(&topics.answer(name), payload.to_string().into_bytes());
    said.is_ok()
}
