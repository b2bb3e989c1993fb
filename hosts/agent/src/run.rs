//! Runs an agent until a signal or a request has it leave.

use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::time::Duration;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sd_notify::NotifyState;
use selvedge_http::{Access, Page, Server, Token};
use selvedge_udp::seal::Seal;
use selvedge_udp::selvedge::core::Delta;
use selvedge_udp::selvedge::core::shared::RecvError;
use selvedge_udp::selvedge::groups::store::StoreConfig;
use selvedge_udp::selvedge::membership::{Config, Event};
use selvedge_udp::selvedge::{Coordination, kgroup};
use selvedge_udp::{Election, Events, Handle, Host, NodeEvent, NodeId, Seed, Setup, Span, Tags};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use crate::Failure;
use crate::api::Api;
use crate::audit::{self, Audit, Caller, Names};
use crate::config::{Distances, Settings};
use crate::growth::{self, Founders};
use crate::log::{Level, Log};
use crate::reload::{Reloader, Source};
use crate::serve::{Bound, raise_open_files};

/// The address of the API unless another one is set.
const HTTP: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7_780);
/// The interval at which groups move, as the clock of the system has it.
const EPOCH: Span = Span::secs(3_600);
/// The time for the last answer to be sent.
const ANSWER: Duration = Duration::from_millis(250);
/// The text of the page.
const PAGE: &str = include_str!("page.html");

/// Starts an agent, and runs it until it leaves.
///
/// # Errors
/// The reason why it does not start, or why it ends by itself.
pub fn run(source: Source) -> Result<(), Failure> {
    let settings = source.settings()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let served = runtime.block_on(agent(&source, settings));
    // A name that is being looked up may take half a minute.
    runtime.shutdown_background();
    served
}

async fn agent(source: &Source, settings: Settings) -> Result<(), Failure> {
    // Names may be looked up for long: a signal meanwhile is heeded afterwards.
    let mut hangup = signal(SignalKind::hangup()).map_err(Failure::Signal)?;
    let token = |path: &Option<PathBuf>| path.as_deref().map(read_token).transpose();
    let access = Access {
        token: token(&settings.token_file)?,
        readers: token(&settings.readers_token_file)?,
    };
    if access.token.is_none() && access.readers.is_some() {
        return Err(Failure::Missing("token-file"));
    }
    let http = match (settings.http, &settings.socket) {
        (None, Some(_)) => None,
        (http, _) => Some(http.unwrap_or(HTTP)),
    };
    let server = http.map(|it| Server::new(it, access.token.clone()));
    raise_open_files();
    let bound = Bound::new(server.transpose()?, settings.socket.as_deref())?;
    let page = Page::new(PAGE)?;
    let founders = Founders::new(&settings.founders, settings.failures.unwrap_or(1));
    // Also while names are looked up: the first process of a container has no other way to end.
    let mut ends = Ends::new().map_err(Failure::Signal)?;
    let setup = tokio::select! {
        setup = setup(&settings, &founders) => setup?,
        _signal = ends.next() => return Ok(()),
    };
    let log = Log::start(&settings.log.clone().unwrap_or_default())?;
    let audit = Audit::start(&settings.audit.clone().unwrap_or_default(), &log)?;
    let node: &'static Handle = Box::leak(Box::new(Host::start(setup).await?));
    let reloader = Reloader::new(
        (source.clone(), settings),
        (node, founders.clone()),
        (log.clone(), audit.clone()),
    );
    let api = Api::new(node, founders.clone()).with_operations(
        audit.clone(),
        log.clone(),
        reloader.clone(),
    );
    log.line(format!(
        "node {} listens at {}, its API is at {}",
        node.id(),
        node.address(),
        bound.addresses()
    ));
    let _socket = bound.serve(access, &api, &page)?;
    notify(&[NotifyState::Ready]);
    let ended = attend(&api, &mut ends, (&founders, &log, &audit), async {
        while hangup.recv().await.is_some() {
            reloader.reload_by("SIGHUP").await;
        }
        core::future::pending().await
    });
    let ended = ended.await;
    audit.flush().await;
    log.flush().await;
    ended
}

/// Attends to an agent that runs, until it has left.
async fn attend(
    api: &Api,
    ends: &mut Ends,
    (founders, log, audit): (&Founders, &Log, &Audit),
    reloads: impl Future<Output = Infallible>,
) -> Result<(), Failure> {
    let node = api.node();
    let mut events = node.events_from_oldest();
    let signal = tokio::select! {
        never = growth::grow(node, founders, log) => match never {},
        never = reports_that_it_lives() => match never {},
        never = reloads => match never {},
        failure = follow(&mut events, log) => {
            if !api.is_leaving() {
                return Err(failure);
            }
            // The request to leave gets its answer.
            sleep(ANSWER).await;
            return Ok(());
        }
        signal = ends.next() => signal,
    };
    let leaves = audit::Event {
        call: "leave",
        on: &Names::new(),
        status: None,
        outcome: "begun",
    };
    audit.note(&Caller::signal(signal), leaves);
    log.at(
        Level::Notice,
        "leaving the mesh; Ctrl-C again to exit at once",
    );
    notify(&[NotifyState::Stopping]);
    let leaves = async {
        api.end_holds().await;
        node.leave().await
    };
    tokio::select! {
        left = leaves => left?,
        _ = ends.next() => {}
    }
    Ok(())
}

/// The signals that end an agent.
struct Ends {
    interrupt: Signal,
    terminate: Signal,
}

impl Ends {
    fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for one of them, and returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Reports to systemd, where that has started the agent.
fn notify(states: &[NotifyState<'_>]) {
    // Without systemd there is no one to report to.
    sd_notify::notify(states).ok();
}

/// Has the watchdog of systemd know that the thread of the node goes on.
async fn reports_that_it_lives() -> Infallible {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return core::future::pending().await;
    };
    loop {
        notify(&[NotifyState::Watchdog]);
        sleep(limit / 3).await;
    }
}

/// Writes the node's news to the log until it stops.
async fn follow(events: &mut Events, log: &Log) -> Failure {
    loop {
        match events.recv().await {
            Ok(observed) => {
                if let Some((level, line)) = line(&observed.event) {
                    log.at(level, line);
                }
            }
            Err(RecvError::Lagged { missed }) => {
                log.at(Level::Warning, format!("{missed} events were missed"));
            }
            Err(RecvError::Closed) => return Failure::Stopped,
        }
    }
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "all other events, also later ones, are no news for an operator"
)]
fn line(event: &NodeEvent) -> Option<(Level, String)> {
    Some(match event {
        NodeEvent::Membership(Event::Identified(me)) => {
            (Level::Notice, format!("in the mesh as {me}"))
        }
        NodeEvent::Membership(Event::Changed(delta)) => match delta {
            Delta::Joined(it) => (Level::Info, format!("{it} joined")),
            Delta::Suspected(it) => (Level::Info, format!("{it} may have failed")),
            Delta::Refuted(it) => (Level::Info, format!("{it} is alive")),
            Delta::Failed(it) => (Level::Warning, format!("{it} failed")),
            Delta::Left(it) => (Level::Info, format!("{it} left")),
            Delta::Confirmed(it) => (Level::Info, format!("{it} has ended for certain")),
        },
        NodeEvent::Site { generation } => (
            Level::Info,
            format!("the nodes that hold maps changed {generation} times"),
        ),
        NodeEvent::OtherSite(why) => (Level::Error, format!("{why}")),
        NodeEvent::Unstored(why) => (Level::Error, format!("the state is not stored: {why}")),
        NodeEvent::Unsent(it) => (Level::Warning, format!("nothing is sent: {}", it.error)),
        NodeEvent::Twin(_) => (
            Level::Error,
            "another process has the id of this node: give each its own".into(),
        ),
        _ => return None,
    })
}

/// Reads a token from a file that others may not read.
fn read_token(path: &Path) -> Result<Token, Failure> {
    let wrong = |why: String| Failure::File {
        path: path.to_owned(),
        why,
    };
    let mode = fs::metadata(path).map_err(|it| wrong(it.to_string()))?;
    if mode.permissions().mode() & 0o007 != 0 {
        let why = "others may read the token: take that from them with chmod o= FILE";
        return Err(wrong(why.into()));
    }
    let text = fs::read_to_string(path).map_err(|it| wrong(it.to_string()))?;
    text.trim().parse().map_err(|why| Failure::Token {
        path: path.to_owned(),
        why,
    })
}

/// The setup of the node of an agent.
///
/// # Errors
/// When a setting is missing, or a file of it cannot be used.
pub async fn setup(settings: &Settings, founders: &Founders) -> Result<Setup, Failure> {
    let id = NodeId(settings.id.ok_or(Failure::Missing("id"))?);
    let listen = settings.listen.ok_or(Failure::Missing("listen"))?;
    if settings.founders.is_empty() {
        return Err(Failure::Missing("founders"));
    }
    let maps = StoreConfig::new().with_pending(1_024);
    let config = kgroup::Config::new().with_maps(maps);
    let coordination = Coordination::new(founders.site(id)?).with_config(config);
    let period = Span::millis(settings.period.unwrap_or(1_000));
    let membership = Config::default()
        .with_period(period)
        .with_jitter(Span(period.0 / 10))
        .with_probe_timeout(Span(period.0 * 3 / 10));
    let unit = match settings.distances.unwrap_or_default() {
        Distances::Measured => Some(Config::ROUND_TRIP_UNIT),
        Distances::Uniform => None,
    };
    let membership = membership.with_round_trip_unit(unit);
    let mut tags: Tags = settings.tags.iter().collect();
    founders.mark(&mut tags);
    let mut setup = Setup::new(id, listen)
        .advertise(settings.advertise.iter().copied())
        .tags(tags)
        .seeds(seeds(&settings.join).await?)
        .membership(membership)
        .election(Election::paced(period, 2, 1))
        .coordination(coordination, EPOCH);
    setup = match &settings.state {
        Some(dir) => setup.state(dir),
        None if settings.forgets => setup.stateless(),
        None => return Err(Failure::NoState),
    };
    match &settings.key {
        Some(path) => {
            let group = settings.group.as_deref().unwrap_or("selvedge");
            Ok(setup.seal(Seal::new(settings.keys(path)?, group)))
        }
        None if settings.plain => Ok(setup),
        None => Err(Failure::NoKey),
    }
}

/// The nodes to join through. The node itself looks up a name that has no address now.
async fn seeds(names: &[String]) -> Result<Vec<Seed>, Failure> {
    let mut seeds = Vec::new();
    for name in names {
        let wrong = |source| Failure::Resolve {
            name: name.clone(),
            source,
        };
        let later = Seed::found_later(name).map_err(wrong)?;
        seeds.push(Seed::named(name).await.unwrap_or(later));
    }
    Ok(seeds)
}
