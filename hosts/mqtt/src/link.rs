//! A connection to a broker, on a thread of its own.

mod lost;
#[cfg(test)]
mod tests;

use core::fmt;
use core::time::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

use rumqttc::{
    AsyncClient, Event, EventLoop, Incoming, LastWill, MqttOptions, Outgoing, Publish, QoS,
    SubscribeReasonCode,
};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

pub use self::lost::{Lost, PublishError};
use crate::access::{Access, Address};

/// The bytes that a broker may add to a packet when it hands it on: the packet's number, if it came without
/// one.
const HANDED_ON: usize = 16;
/// The time after which a silent broker is asked whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// The time that a connection has to come up, in seconds.
const CONNECT_SECS: u64 = 2;
/// The time that a closed link has to disconnect.
const FAREWELL: Duration = Duration::from_millis(500);
/// The wait before a lost broker is tried again, at first and at most. It doubles each time, until a
/// connection has held for the longest wait.
const RETRY: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// The number of messages that may wait for the broker, beside the subscriptions. Of messages with an
/// acknowledgement, the ones under way count, too.
const QUEUE: usize = 1_024;
/// The number of messages that may be under way. At this number the library takes nothing more from the
/// queue, not even messages without an acknowledgement, so it must never be reached.
const UNDER_WAY: u16 = 1_025;
const _: () = assert!(UNDER_WAY as usize > QUEUE, "what waits is never held up");

/// The messages that the broker keeps for a client that is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Session {
    /// None.
    Clean,
    /// All messages that arrive meanwhile: its mailbox.
    Kept,
    /// All messages that arrive from now on. Messages for an earlier life, or an earlier connection, are
    /// dropped first.
    Emptied,
}

/// The settings that all links of a program have in common.
#[derive(Clone, Copy, Debug)]
pub struct Dialect {
    /// The longest packet that is sent, in bytes: a payload, its topic and a header.
    pub packet_max: usize,
    /// The longest packet that is received, in bytes. A longer one ends the connection.
    pub incoming_max: usize,
    /// Returns true for topics at which retained messages are taken, which were published before the link and
    /// are repeated to each.
    pub takes_retained: fn(&str) -> bool,
    /// The settings for the program's name and password, as error texts name them.
    pub credentials: &'static str,
    /// The setting for the certificates that the program trusts, as error texts name it.
    pub certificates: &'static str,
}

/// The message that the broker publishes, and retains, when the link is lost without a farewell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// The topic.
    pub topic: String,
    /// The payload.
    pub payload: Vec<u8>,
}

/// The settings of a link.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its name; a broker ends an older link with the same name.
    pub name: String,
    /// The broker's address.
    pub address: Address,
    /// The credentials for the broker.
    pub access: Access,
    /// The messages that the broker keeps for it.
    pub session: Session,
    /// The filters of its subscriptions.
    pub filters: Vec<String>,
    /// More filters, at quality of service 0. The broker may refuse these.
    pub asides: Vec<String>,
    /// The message that the broker publishes when the link is lost.
    pub will: Option<Will>,
    /// True if it comes up again by itself after the broker was lost.
    pub stays: bool,
    /// The settings that it has in common with other links.
    pub dialect: Dialect,
}

/// A report of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// It is up.
    Up {
        /// True if the broker has kept the session.
        is_kept: bool,
    },
    /// It is lost, or does not come up. Reported once, until it is up again or the reason changes. A link
    /// that does not stay reports nothing more.
    Down(Lost),
    /// A message was published.
    Published {
        /// The topic.
        topic: String,
        /// The payload.
        payload: Vec<u8>,
        /// True if it was published before this link.
        is_retained: bool,
    },
    /// A message that was published before this link, and would be repeated to each: it is not taken.
    Retained,
}

/// A link. It is closed when it is dropped.
#[derive(Debug)]
pub struct Link {
    shared: Arc<Shared>,
    packet_max: usize,
}

#[derive(Debug, Default)]
struct Shared {
    /// The present connection.
    line: Mutex<Option<Line>>,
    closes: AtomicBool,
    wake: Notify,
}

/// The messages of one connection.
#[derive(Debug)]
struct Line {
    client: AsyncClient,
    /// The number of messages that the broker has to acknowledge, and has not.
    open: usize,
}

impl Link {
    /// Opens a link. `notify` is called on its thread, and returns false to end the link.
    ///
    /// # Errors
    /// If a thread does not start.
    pub fn open(
        setup: Setup,
        notify: impl FnMut(LinkEvent) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (client, events) = connection(&setup);
        shared.set(Some(client));
        let theirs = Arc::clone(&shared);
        let packet_max = setup.dialect.packet_max;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new()
            .name("link".into())
            .spawn(move || runtime.block_on(run(&setup, events, &theirs, notify)))?;
        Ok(Self { shared, packet_max })
    }

    /// Publishes at least once. A message that was handed over may still be lost with the broker.
    ///
    /// # Errors
    /// When it is not handed over; the link stays as it is.
    pub fn publish(&self, topic: &dyn fmt::Display, payload: Vec<u8>) -> Result<(), PublishError> {
        self.say(topic, payload, QoS::AtLeastOnce, false)
    }

    /// Publishes a message that is soon outdated, at most once.
    ///
    /// # Errors
    /// When it is not handed over; the link stays as it is.
    pub fn publish_once(
        &self,
        topic: &dyn fmt::Display,
        payload: Vec<u8>,
    ) -> Result<(), PublishError> {
        self.say(topic, payload, QoS::AtMostOnce, false)
    }

    /// Publishes a message that later subscribers receive, too. Not for requests.
    ///
    /// # Errors
    /// When it is not handed over; the link stays as it is.
    pub fn retain(&self, topic: &dyn fmt::Display, payload: Vec<u8>) -> Result<(), PublishError> {
        self.say(topic, payload, QoS::AtLeastOnce, true)
    }

    fn say(
        &self,
        topic: &dyn fmt::Display,
        payload: Vec<u8>,
        qos: QoS,
        retains: bool,
    ) -> Result<(), PublishError> {
        let topic = topic.to_string();
        let (bytes, most) = (packet(&topic, &payload, qos), self.packet_max);
        if bytes > most {
            // The library would end the connection.
            return Err(PublishError::TooLong { bytes, most });
        }
        if topic.is_empty() || topic.contains(['+', '#', '\0']) {
            return Err(PublishError::NoTopic);
        }
        let mut line = self.shared.line();
        let line = line.as_mut().ok_or(PublishError::NoBroker)?;
        let is_open = qos != QoS::AtMostOnce;
        if is_open && line.open >= QUEUE {
            return Err(PublishError::NoRoom);
        }
        let reported = line.client.try_publish(topic, qos, retains, payload);
        reported.map_err(|_| PublishError::NoRoom)?;
        line.open += usize::from(is_open);
        Ok(())
    }
}

/// The length of a packet in bytes.
pub(crate) fn packet(topic: &str, payload: &[u8], qos: QoS) -> usize {
    let number = if qos == QoS::AtMostOnce { 0 } else { 2 };
    let rest = 2 + topic.len() + number + payload.len();
    // Each byte of the length holds seven bits of it.
    let mut length = 1;
    while length < 4 && rest >> (7 * length) > 0 {
        length += 1;
    }
    1 + length + rest
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.closes.store(true, Ordering::Release);
        // A full queue is closed without a farewell.
        let line = self.shared.line();
        let _goes = line.as_ref().map(|it| it.client.try_disconnect());
        drop(line);
        self.shared.wake.notify_one();
    }
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Option<Line>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, client: Option<AsyncClient>) {
        *self.line() = client.map(|client| Line { client, open: 0 });
    }

    fn on_acknowledged(&self) {
        if let Some(line) = self.line().as_mut() {
            line.open = line.open.saturating_sub(1);
        }
    }

    /// Waits until the link is closed.
    async fn closed(&self) {
        while !self.closes() {
            self.wake.notified().await;
        }
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
    options.set_inflight(UNDER_WAY);
    let Dialect {
        packet_max,
        incoming_max,
        ..
    } = setup.dialect;
    options.set_max_packet_size(incoming_max + HANDED_ON, packet_max);
    if let Some(user) = &setup.access.user {
        options.set_credentials(user, &setup.access.password);
    }
    if let Some(Will { topic, payload }) = setup.will.clone() {
        options.set_last_will(LastWill::new(topic, payload, QoS::AtLeastOnce, true));
    }
    #[cfg(feature = "tls")]
    if let Some(trust) = &setup.access.tls {
        let config = rumqttc::TlsConfiguration::Rustls(trust.config());
        options.set_transport(rumqttc::Transport::tls_with_config(config));
    }
    options
}

fn event_loop(options: MqttOptions, queue: usize) -> (AsyncClient, EventLoop) {
    let (client, mut events) = AsyncClient::new(options, queue);
    // Each packet waits for an answer: without this, the second of two packets waits 40 ms.
    events.network_options.set_tcp_nodelay(true);
    events.network_options.set_connection_timeout(CONNECT_SECS);
    (client, events)
}

/// A connection with an empty queue, so that nothing is sent late.
fn connection(setup: &Setup) -> (AsyncClient, EventLoop) {
    let options = options(setup, setup.session == Session::Clean);
    let (filters, asides) = (&setup.filters, &setup.asides);
    let (client, events) = event_loop(options, QUEUE + filters.len() + asides.len());
    let filters = filters.iter().map(|it| (it, QoS::AtLeastOnce));
    // Last, because a broker may drop messages that are too many at once.
    for (filter, qos) in filters.chain(asides.iter().map(|it| (it, QoS::AtMostOnce))) {
        // The queue is empty, and has room for all of them.
        let _queued = client.try_subscribe(filter, qos);
    }
    (client, events)
}

async fn run(
    setup: &Setup,
    mut events: EventLoop,
    shared: &Shared,
    mut notify: impl FnMut(LinkEvent) -> bool,
) {
    // The reason why it is down, once that was reported.
    let mut told: Option<Lost> = None;
    let mut wait = RETRY;
    loop {
        // The time at which it came up.
        let mut up = None;
        let mut tell_up = |event| {
            if matches!(event, LinkEvent::Up { .. }) {
                up = Some(Instant::now());
            }
            notify(event)
        };
        let why = match empty(setup).await {
            Ok(()) => serve(setup, &mut events, shared, &mut tell_up).await,
            Err(why) => why,
        };
        shared.set(None);
        if shared.closes() {
            return;
        }
        let is_news = up.is_some() || told.as_ref() != Some(&why);
        if is_news && !notify(LinkEvent::Down(why.clone())) || !setup.stays {
            return;
        }
        told = Some(why);
        if up.is_some_and(|it| it.elapsed() >= RETRY_MAX) {
            wait = RETRY;
        }
        if timeout(wait, shared.closed()).await.is_ok() {
            return;
        }
        wait = (wait * 2).min(RETRY_MAX);
        let (client, next) = connection(setup);
        events = next;
        shared.set(Some(client));
        if shared.closes() {
            return;
        }
    }
}

/// Empties the mailbox, if the session wants that: a clean session replaces the kept one.
async fn empty(setup: &Setup) -> Result<(), Lost> {
    if setup.session != Session::Emptied {
        return Ok(());
    }
    let (client, mut events) = event_loop(options(setup, true), QUEUE);
    let mut is_up = false;
    loop {
        match events
            .poll()
            .await
            .map_err(|it| Lost::of(&it, is_up, &setup.dialect))?
        {
            Event::Incoming(Incoming::ConnAck(_)) => {
                is_up = true;
                let _queued = client.try_disconnect();
            }
            Event::Outgoing(Outgoing::Disconnect) => return Ok(()),
            Event::Incoming(_) | Event::Outgoing(_) => {}
        }
    }
}

/// Runs a connection until it ends. Returns the reason.
async fn serve(
    setup: &Setup,
    events: &mut EventLoop,
    shared: &Shared,
    notify: &mut impl FnMut(LinkEvent) -> bool,
) -> Lost {
    let mut is_up = false;
    // The number of subscriptions, and the packet numbers of the optional ones.
    let (mut asked, mut asides) = (0, Vec::new());
    loop {
        let event = tokio::select! {
            biased;
            event = events.poll() => event,
            // A step that is interrupted here is not resumed.
            () = close(shared) => return Lost::by(&"the link is closed"),
        };
        let listens = match event {
            Ok(Event::Incoming(Incoming::ConnAck(it))) => {
                is_up = true;
                let is_kept = it.session_present;
                notify(LinkEvent::Up { is_kept })
            }
            Ok(Event::Outgoing(Outgoing::Subscribe(number))) => {
                asked += 1;
                if asked > setup.filters.len() {
                    asides.push(number);
                }
                true
            }
            Ok(Event::Incoming(Incoming::SubAck(it))) => {
                let aside = asides.iter().position(|number| *number == it.pkid);
                if let Some(nth) = aside {
                    asides.swap_remove(nth);
                } else if it.return_codes.contains(&SubscribeReasonCode::Failure) {
                    return Lost::unread(setup);
                }
                true
            }
            Ok(Event::Incoming(Incoming::Publish(it))) => {
                notify(published(it, setup.dialect.takes_retained))
            }
            Ok(Event::Incoming(Incoming::PubAck(_))) => {
                shared.on_acknowledged();
                true
            }
            Ok(Event::Outgoing(Outgoing::Disconnect)) => return Lost::by(&"the link is closed"),
            Ok(Event::Incoming(_) | Event::Outgoing(_)) => true,
            Err(why) => return Lost::of(&why, is_up, &setup.dialect),
        };
        if !listens {
            return Lost::by(&"the receiver has left");
        }
    }
}

pub(crate) fn published(it: Publish, takes_retained: fn(&str) -> bool) -> LinkEvent {
    match it.retain && !takes_retained(&it.topic) {
        true => LinkEvent::Retained,
        false => LinkEvent::Published {
            topic: it.topic,
            payload: it.payload.into(),
            is_retained: it.retain,
        },
    }
}

/// Waits until the link is closed and has had time to disconnect.
async fn close(shared: &Shared) {
    shared.closed().await;
    tokio::time::sleep(FAREWELL).await;
}
