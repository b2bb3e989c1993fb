//! Runs an agent until a signal or a request has it leave.

use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};

use selvedge_http::{Access, Page, Server, Token};
use selvedge_udp::seal::{Seal, read_key_file};
use selvedge_udp::selvedge::Coordination;
use selvedge_udp::selvedge::core::shared::RecvError;
use selvedge_udp::selvedge::membership::Config;
use selvedge_udp::{Election, Events, Handle, Host, NodeEvent, NodeId, Seed, Setup, Span, Tags};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use crate::api::{Api, router};
use crate::config::Settings;
use crate::serve::serve;
use crate::{Failure, growth};

/// The address of the API unless another one is set.
const HTTP: &str = "127.0.0.1:7780";
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
pub fn run(settings: &Settings) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let served = runtime.block_on(agent(settings));
    // A name that is being looked up may take half a minute.
    runtime.shutdown_background();
    served
}

async fn agent(settings: &Settings) -> Result<(), Failure> {
    let token = |path: &Option<PathBuf>| path.as_deref().map(read_token).transpose();
    let access = Access {
        token: token(&settings.token_file)?,
        readers: token(&settings.readers_token_file)?,
    };
    if access.token.is_none() && access.readers.is_some() {
        return Err(Failure::Missing("token-file"));
    }
    let http = settings.http.map_or_else(|| HTTP.parse(), Ok);
    let http = http.map_err(|_| Failure::Missing("http"))?;
    let server = Server::new(http, access.token.clone())?;
    let page = Page::new(PAGE)?;
    let setup = setup(settings).await?;
    // Once the node has started, others may know of it, so it leaves properly.
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::Signal)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::Signal)?;
    let node: &'static Handle = Box::leak(Box::new(Host::start(setup).await?));
    let api = Api::new(node);
    let socket = settings.socket.as_deref();
    let (address, _socket) = serve(
        server,
        access,
        socket,
        router(api.clone(), page.clone()),
        &page,
    )?;
    println!(
        "node {} listens at {}, its API is at http://{address}",
        node.id(),
        node.address()
    );
    let grows = growth::grow(node);
    let mut events = node.events_from_oldest();
    tokio::select! {
        never = grows => match never {},
        failure = follow(&mut events) => {
            if !api.is_leaving() {
                return Err(failure);
            }
            // The request to leave gets its answer.
            sleep(ANSWER).await;
            return Ok(());
        }
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    println!("leaving the mesh; Ctrl-C again to exit at once");
    tokio::select! {
        left = node.leave() => left?,
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Prints the node's news until it stops.
async fn follow(events: &mut Events) -> Failure {
    loop {
        match events.recv().await {
            Ok(observed) => print_event(&observed.event),
            Err(RecvError::Lagged { missed }) => println!("{missed} events were missed"),
            Err(RecvError::Closed) => return Failure::Stopped,
        }
    }
}

#[allow(
    clippy::wildcard_enum_match_arm,
    reason = "all other events, also later ones, are no news for an operator"
)]
fn print_event(event: &NodeEvent) {
    use selvedge_udp::selvedge::membership::Event;
    match event {
        NodeEvent::Membership(Event::Identified(me)) => println!("in the mesh as {me}"),
        NodeEvent::Membership(Event::Changed(delta)) => println!("{delta:?}"),
        NodeEvent::Site { generation } => println!("nodes that hold maps: generation {generation}"),
        NodeEvent::OtherSite(why) => println!("{why}"),
        NodeEvent::Unstored(why) => println!("the state is not stored: {why}"),
        NodeEvent::Unsent(it) => println!("nothing is sent: {}", it.error),
        NodeEvent::Twin(it) => println!("{it:?}"),
        _ => {}
    }
}

fn read_token(path: &Path) -> Result<Token, Failure> {
    let text = fs::read_to_string(path).map_err(|it| Failure::File {
        path: path.to_owned(),
        why: it.to_string(),
    })?;
    text.trim().parse().map_err(|why| Failure::Token {
        path: path.to_owned(),
        why,
    })
}

/// The setup of the node.
async fn setup(settings: &Settings) -> Result<Setup, Failure> {
    let id = NodeId(settings.id.ok_or(Failure::Missing("id"))?);
    let listen = settings.listen.ok_or(Failure::Missing("listen"))?;
    if settings.founders.is_empty() {
        return Err(Failure::Missing("founders"));
    }
    let site = growth::first_site(id, &settings.founders, settings.failures.unwrap_or(1))?;
    let period = Span::millis(settings.period.unwrap_or(1_000));
    let membership = Config::default()
        .with_period(period)
        .with_jitter(Span(period.0 / 10))
        .with_probe_timeout(Span(period.0 * 3 / 10));
    let mut tags: Tags = settings.tags.iter().collect();
    growth::mark(&mut tags);
    let mut setup = Setup::new(id, listen)
        .advertise(settings.advertise.iter().copied())
        .tags(tags)
        .seeds(seeds(&settings.join).await?)
        .membership(membership)
        .election(Election::paced(period, 2, 1))
        .coordination(Coordination::new(site), EPOCH);
    setup = match &settings.state {
        Some(dir) => setup.state(dir),
        None if settings.forgets => setup.stateless(),
        None => return Err(Failure::NoState),
    };
    match &settings.key {
        Some(path) => {
            let group = settings.group.as_deref().unwrap_or("selvedge");
            Ok(setup.seal(Seal::new(read_key_file(path)?, group)))
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
