//! A connection to a broker, on a thread of its own.

#[cfg(test)]
mod tests;

use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

use rumqttc::{
    AsyncClient, ConnectionError, Event, EventLoop, Incoming, MqttOptions, Outgoing, Publish, QoS,
    SubscribeReasonCode,
};
use thiserror::Error;
use tokio::sync::Notify;

use crate::frame::NOTICE_MAX;
use crate::topic::Topic;

/// The longest packet: a payload, its topic and a header.
pub(crate) const PACKET_MAX: usize = NOTICE_MAX + 128;
/// How many bytes longer a packet may be when a broker hands it on: with the number of a packet that came
/// without one.
const HANDED_ON: usize = 16;
/// After how long a broker that says nothing is asked whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// How long a connection may take to come up, in seconds.
const CONNECT_SECS: u64 = 2;
/// How long a link that is closed may take to say so.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long to wait before a broker that was lost is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// How many messages may wait for the broker.
const QUEUE: usize = 1_024;

/// Where a broker is: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// A name, or an address of IPv4 or IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why a text is no [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is no address: say HOST:PORT, as in 127.0.0.1:1883 or [::1]:1883")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let error = || AddressError(text.into());
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = port.parse().map_err(|_| error())?;
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_clear = bare.is_some() || !host.contains(':');
        let host = bare.unwrap_or(host);
        if host.is_empty() || !is_clear || port == 0 {
            return Err(error());
        }
        let host = host.into();
        Ok(Self { host, port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// How a node goes to brokers: with which name and password, and whether by TLS.
#[derive(Clone, Default)]
pub struct Access {
    /// The name; without one, nobody asks.
    pub user: Option<String>,
    /// The password.
    pub password: String,
    /// Which brokers it believes; without it, all is said in the clear.
    #[cfg(feature = "tls")]
    pub tls: Option<crate::tls::Trust>,
}

impl Access {
    /// The same, in the clear.
    pub(crate) fn in_the_clear(&self) -> Self {
        let it = self.clone();
        #[cfg(feature = "tls")]
        let it = Self { tls: None, ..it };
        it
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// What the broker keeps for a client that is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// Nothing.
    Clean,
    /// What comes meanwhile: its mailbox.
    Kept,
    /// What comes from now on. What a former life, or a former stay, left there is dropped first.
    Emptied,
}

/// What a link is to do.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: String,
    pub(crate) address: Address,
    pub(crate) access: Access,
    pub(crate) session: Session,
    pub(crate) filters: Vec<String>,
    /// Whether it comes up again by itself when the broker is lost.
    pub(crate) stays: bool,
}

/// What a link tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LinkEvent {
    Up {
        /// Whether the broker has kept the session.
        is_kept: bool,
    },
    /// A link that does not stay tells nothing more.
    Down(Lost),
    Published {
        topic: String,
        payload: Vec<u8>,
    },
    /// Something that was published before this link, and would come again at each: it is not taken.
    Retained,
}

/// Why a link was lost, or does not come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) why: String,
    /// Whether the broker is there and does not want this node, or this node not the broker.
    pub(crate) is_refused: bool,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Lost {
    pub(crate) fn by(why: &dyn fmt::Display) -> Self {
        Self {
            why: why.to_string(),
            is_refused: false,
        }
    }

    /// The broker hands on nothing of this.
    fn unread(filters: &[String]) -> Self {
        let filters = filters.join(" and ");
        Self {
            why: format!("the broker refuses to hand on {filters}: let --user read them there"),
            is_refused: true,
        }
    }

    /// What ended a connection; what is said of one that never came up has a mend.
    fn of(error: &ConnectionError, was_up: bool) -> Self {
        let refused = |why: String| Self {
            why,
            is_refused: true,
        };
        match error {
            ConnectionError::ConnectionRefused(code) => refused(format!(
                "the broker refuses it ({code:?}): see --user and SELVEDGE_FAAS_PASSWORD"
            )),
            #[cfg(feature = "tls")]
            ConnectionError::Tls(why) => refused(format!(
                "no TLS with the broker ({why}): see whether it has TLS, whether --tls-ca vouches for its \
                 certificate, and whether that names the address at which it is"
            )),
            ConnectionError::MqttState(why) if !was_up => refused(format!(
                "the broker ends the connection at once ({why}): see --user and SELVEDGE_FAAS_PASSWORD, \
                 and whether it wants TLS (--tls-ca)"
            )),
            _ => Self::by(error),
        }
    }
}

/// A link. It is closed when it is dropped.
#[derive(Debug)]
pub(crate) struct Link {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Of the present connection.
    client: Mutex<Option<AsyncClient>>,
    closes: AtomicBool,
    wake: Notify,
}

impl Link {
    /// Opens a link. `tell` is called on its thread, and returns whether anybody listens.
    pub(crate) fn open(
        setup: Setup,
        tell: impl FnMut(LinkEvent) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (client, events) = connection(&setup);
        shared.set(Some(client));
        let theirs = Arc::clone(&shared);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new()
            .name("link".into())
            .spawn(move || runtime.block_on(run(&setup, events, &theirs, tell)))?;
        Ok(Self { shared })
    }

    /// Publishes at least once. Returns whether it was handed over; a broker that is lost may have lost
    /// it all the same.
    pub(crate) fn publish(&self, topic: &Topic, payload: Vec<u8>) -> bool {
        self.say(topic, payload, QoS::AtLeastOnce, false)
    }

    /// Publishes what is outdated soon.
    pub(crate) fn publish_once(&self, topic: &Topic, payload: Vec<u8>) -> bool {
        self.say(topic, payload, QoS::AtMostOnce, false)
    }

    /// Publishes what those that come later are told, too. Nothing that has anything run.
    pub(crate) fn retain(&self, topic: &Topic, payload: Vec<u8>) -> bool {
        self.say(topic, payload, QoS::AtLeastOnce, true)
    }

    fn say(&self, topic: &Topic, payload: Vec<u8>, qos: QoS, retains: bool) -> bool {
        let client = self.shared.client();
        client.is_some_and(|it| {
            it.try_publish(topic.to_string(), qos, retains, payload)
                .is_ok()
        })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.closes.store(true, Ordering::Release);
        // A queue that is full is closed without it.
        let _goes = self.shared.client().map(|it| it.try_disconnect());
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn client(&self) -> Option<AsyncClient> {
        let client = self.client.lock();
        client.unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, client: Option<AsyncClient>) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    fn closes(&self) -> bool {
        self.closes.load(Ordering::Acquire)
    }
}

fn options(setup: &Setup, is_clean: bool) -> MqttOptions {
    let Address { host, port } = setup.address.clone();
    let mut options = MqttOptions::new(setup.name.clone(), host, port);
    options.set_keep_alive(KEEP_ALIVE);
    options.set_clean_session(is_clean);
    options.set_max_packet_size(PACKET_MAX + HANDED_ON, PACKET_MAX);
    if let Some(user) = &setup.access.user {
        options.set_credentials(user, &setup.access.password);
    }
    #[cfg(feature = "tls")]
    if let Some(trust) = &setup.access.tls {
        let config = rumqttc::TlsConfiguration::Rustls(trust.config());
        options.set_transport(rumqttc::Transport::tls_with_config(config));
    }
    options
}

fn event_loop(options: MqttOptions) -> (AsyncClient, EventLoop) {
    let (client, mut events) = AsyncClient::new(options, QUEUE);
    // Each packet is waited for: without it, the second of two waits 40 ms.
    events.network_options.set_tcp_nodelay(true);
    events.network_options.set_connection_timeout(CONNECT_SECS);
    (client, events)
}

/// Each connection begins with an empty queue: nothing is said late.
fn connection(setup: &Setup) -> (AsyncClient, EventLoop) {
    let (client, events) = event_loop(options(setup, setup.session == Session::Clean));
    for filter in &setup.filters {
        // The queue is empty, and longer than the list.
        let _queued = client.try_subscribe(filter, QoS::AtLeastOnce);
    }
    (client, events)
}

async fn run(
    setup: &Setup,
    mut events: EventLoop,
    shared: &Shared,
    mut tell: impl FnMut(LinkEvent) -> bool,
) {
    loop {
        let why = match empty(setup).await {
            Ok(()) => serve(setup, &mut events, shared, &mut tell).await,
            Err(why) => why,
        };
        shared.set(None);
        if shared.closes() || !tell(LinkEvent::Down(why)) || !setup.stays {
            return;
        }
        tokio::time::sleep(RETRY).await;
        let (client, next) = connection(setup);
        events = next;
        shared.set(Some(client));
        if shared.closes() {
            return;
        }
    }
}

/// Drops what lies in the mailbox, where that is wanted: a clean session takes the place of the kept one.
async fn empty(setup: &Setup) -> Result<(), Lost> {
    if setup.session != Session::Emptied {
        return Ok(());
    }
    let (client, mut events) = event_loop(options(setup, true));
    let mut is_up = false;
    loop {
        match events.poll().await.map_err(|it| Lost::of(&it, is_up))? {
            Event::Incoming(Incoming::ConnAck(_)) => {
                is_up = true;
                let _queued = client.try_disconnect();
            }
            Event::Outgoing(Outgoing::Disconnect) => return Ok(()),
            Event::Incoming(_) | Event::Outgoing(_) => {}
        }
    }
}

/// Runs a connection until it ends. Returns why it did.
async fn serve(
    setup: &Setup,
    events: &mut EventLoop,
    shared: &Shared,
    tell: &mut impl FnMut(LinkEvent) -> bool,
) -> Lost {
    let mut is_up = false;
    loop {
        let event = tokio::select! {
            biased;
            event = events.poll() => event,
            // What is interrupted then is not gone on with.
            () = close(shared) => return Lost::by(&"it is closed"),
        };
        let listens = match event {
            Ok(Event::Incoming(Incoming::ConnAck(it))) => {
                is_up = true;
                let is_kept = it.session_present;
                tell(LinkEvent::Up { is_kept })
            }
            Ok(Event::Incoming(Incoming::SubAck(it))) => {
                if it.return_codes.contains(&SubscribeReasonCode::Failure) {
                    return Lost::unread(&setup.filters);
                }
                true
            }
            Ok(Event::Incoming(Incoming::Publish(it))) => tell(published(it)),
            Ok(Event::Outgoing(Outgoing::Disconnect)) => return Lost::by(&"it is closed"),
            Ok(Event::Incoming(_) | Event::Outgoing(_)) => true,
            Err(why) => return Lost::of(&why, is_up),
        };
        if !listens {
            return Lost::by(&"nobody listens");
        }
    }
}

/// What a node retains says which gateways there are, and has nothing run.
fn published(it: Publish) -> LinkEvent {
    let says_gateways = matches!(Topic::parse(&it.topic), Ok(Topic::Gateways(_)));
    match it.retain && !says_gateways {
        true => LinkEvent::Retained,
        false => LinkEvent::Published {
            topic: it.topic,
            payload: it.payload.into(),
        },
    }
}

/// The link is closed, and had time to say so.
async fn close(shared: &Shared) {
    while !shared.closes() {
        shared.wake.notified().await;
    }
    tokio::time::sleep(FAREWELL).await;
}
