//! The `selvedge-hub` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use core::convert::Infallible;
use std::env::VarError;
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use std::{env, fs, io, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use clap::Parser;
use selvedge_core::{NodeId, Span};
use selvedge_http::{NoChance, Server, ServerError, Token};
use selvedge_hub::event_loop::{EventLoop, Readers, Request, clock, moment};
use selvedge_hub::file::{HomeError, HomeFile};
use selvedge_hub::house::{House, HouseError};
use selvedge_hub::http;
use selvedge_hub::http::metrics::{Metrics, write_seconds};
use selvedge_hub::mqtt::{self, Names, Notified, Post, PostError, Way};
use selvedge_hub::store::{Store, StoreError};
use selvedge_routine::Catalogue;
use selvedge_routine::file::{FileError, Format, home_assistant};
use selvedge_safehome::Config;
use thiserror::Error;
use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

mod start;

use start::{Devices, lateness};

/// Run the routines of a home on its devices. Their end states match some serial order, and a routine that
/// fails is undone
#[derive(Debug, Parser)]
#[command(name = "selvedge-hub", version)]
struct Arguments {
    /// The file of the home, in JSON or YAML: devices and how they are reached, routines, triggers
    home: PathBuf,
    /// Read the file, print possible mistakes, and exit
    #[arg(long)]
    check: bool,
    /// Convert scripts or automations of Home Assistant, in this file, to a home's file in YAML on the
    /// standard output, and exit. Parts that cannot be converted are reported as errors
    #[arg(long, conflicts_with = "check")]
    from_home_assistant: bool,
    /// The folder for the durable state
    #[arg(long, value_name = "DIR", default_value = "selvedge-hub")]
    state: PathBuf,
    /// The address of the page
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8124")]
    http: SocketAddr,
    /// The token that a reader of the page must present; required for addresses other than loopback
    #[arg(
        long,
        value_name = "TOKEN",
        env = "SELVEDGE_HUB_TOKEN",
        hide_env_values = true
    )]
    http_token: Option<Token>,
    /// The level of the log on the standard error: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LevelFilter,
}

#[derive(Debug, Error)]
enum Failure {
    #[error("{path}: {source}: name a file that can be read", path = .0.display(), source = .1)]
    Read(PathBuf, io::Error),
    #[error("{path}: {0}", path = .1.display())]
    Home(Box<HomeError>, PathBuf),
    #[error("{path}: {all}", path = .1.display(), all = lines(.0))]
    Scripts(Vec<FileError>, PathBuf),
    #[error("cannot write to the standard output: {0}: redirect it to a file that can be written")]
    Output(io::Error),
    #[error("{0} (--state names the folder)")]
    Store(#[from] StoreError),
    #[error(transparent)]
    House(#[from] HouseError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Chance(#[from] NoChance),
    #[error("{path}: {0}", path = .1.display())]
    Mqtt(Box<PostError>, PathBuf),
    #[error("{name} is not UTF-8: choose a password in UTF-8", name = mqtt::PASSWORD)]
    Password,
    #[error("cannot start a thread: {0}: raise the limit on threads of this process")]
    Thread(io::Error),
}

/// The errors, each on a line of its own.
fn lines(all: &[FileError]) -> String {
    let all: Vec<String> = all.iter().map(ToString::to_string).collect();
    all.join("\n  ")
}

/// The number of log lines that may wait to be written.
const LINES: usize = 1_024;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A slow reader of the log delays nothing: lines that find no room are dropped.
    let (log, _writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES)
        .finish(io::stderr());
    let lines = fmt::layer()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(log);
    // The broker inside logs each connection.
    let broker = arguments.log.min(LevelFilter::WARN);
    let levels = Targets::new()
        .with_default(arguments.log)
        .with_target("rumqttd", broker);
    tracing_subscriber::registry()
        .with(lines.with_filter(levels))
        .init();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("selvedge-hub: {failure}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let path = &arguments.home;
    let bytes = fs::read(path).map_err(|it| Failure::Read(path.clone(), it))?;
    let wrong = |it| Failure::Home(Box::new(it), path.clone());
    if arguments.from_home_assistant {
        return convert(path, &bytes);
    }
    let format = HomeFile::format(path).map_err(wrong)?;
    for it in HomeFile::odd(format, &bytes).map_err(wrong)? {
        eprintln!("selvedge-hub: {}: {it}", path.display());
    }
    if arguments.check {
        return HomeFile::read(format, &bytes, Default::default())
            .map(drop)
            .map_err(wrong);
    }
    clock::log_zone();
    let server = Server::new(arguments.http, arguments.http_token.clone())?;
    // Before anything is opened: a file with an error changes nothing.
    let file = HomeFile::read(format, &bytes, Default::default()).map_err(wrong)?;
    let way = way(&file, path)?;
    let (mut store, found) = Store::open(&arguments.state)?;
    let file = HomeFile::read(format, &bytes, found.catalogue).map_err(wrong)?;
    let (home, drivers) = (&file.home, &file.drivers);
    let gone = home
        .catalogue
        .iter()
        .filter(|it| !drivers.contains_key(it.1));
    let gone: Vec<NodeId> = gone.map(|it| it.0).collect();
    let lateness = |id| {
        let driver = home.catalogue.name(id).and_then(|it| drivers.get(it));
        driver.map_or(Span::ZERO, lateness)
    };
    let rng = ChaCha12Rng::seed_from_u64(getrandom::u64().map_err(|_| NoChance)?);
    let (config, now) = (Config::default(), moment(start));
    let mut house = House::new(home, config, lateness, &gone, found.memory, rng, now)?;
    store.begin(&house.names().clone(), &house.take_changes(), house.saved())?;

    let (to_controller, requests) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Thread)?;
    let mut devices = Devices::new(&house, &file, &to_controller);
    devices
        .start_local(&runtime)
        .map_err(|it| Failure::Mqtt(it.into(), path.clone()))?;
    let (runs, changed) = mqtt::runs();
    let notify = Readers::new(&house, way.is_some().then_some(runs));
    let post = match &way {
        None => None,
        Some(way) => {
            let notified = Notified {
                view: notify.view.subscribe(),
                runs: changed,
                latest: house.latest_runs(),
            };
            let names = names(&house, &file);
            let ears = core::mem::take(&mut devices.ears);
            let handle = runtime.handle();
            let post = Post::open(way, &names, ears, to_controller.clone(), notified, handle);
            Some(post.map_err(|it| Failure::Mqtt(it.into(), path.clone()))?)
        }
    };
    if let Some(post) = &post {
        devices.start_remote(&runtime, post);
    }
    let orders = devices.orders;
    let (page, listens) = (http::page()?, server.listens());
    let writes = write_seconds();
    let metrics = Metrics::new(notify.view.subscribe(), writes.clone());
    let router = http::router(
        notify.json.subscribe(),
        to_controller.clone(),
        page.clone(),
        metrics,
    );
    server.open("page", router, &page)?;
    eprintln!(
        "selvedge-hub: {} devices, the page is at http://{listens}",
        orders.len()
    );
    thread::Builder::new()
        .name("devices".into())
        .spawn(move || -> Infallible { runtime.block_on(until_asked(&to_controller)) })
        .map_err(Failure::Thread)?;
    let event_loop = EventLoop {
        house,
        store,
        requests,
        orders,
        notify,
        start,
        writes,
    };
    let ended = event_loop.run();
    if let Some(post) = post {
        post.farewell();
    }
    Ok(ended?)
}

/// Writes scripts of Home Assistant as a home's file.
fn convert(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let scripts = home_assistant::read(bytes, Catalogue::new());
    let scripts = scripts.map_err(|it| Failure::Scripts(it, path.to_owned()))?;
    let written = scripts.write_as(Format::Yaml);
    let written = written.map_err(|it| Failure::Home(Box::new(it.into()), path.to_owned()))?;
    io::stdout()
        .write_all(written.as_bytes())
        .map_err(Failure::Output)
}

/// The way to the broker, if the file names one.
fn way(file: &HomeFile, path: &Path) -> Result<Option<Way>, Failure> {
    let Some(shape) = &file.mqtt else {
        return Ok(None);
    };
    let password = match env::var(mqtt::PASSWORD) {
        Ok(it) => Some(it),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => return Err(Failure::Password),
    };
    let beside = path.parent().unwrap_or(Path::new(""));
    let way = Way::new(shape, beside, password);
    way.map(Some)
        .map_err(|it| Failure::Mqtt(it.into(), path.to_owned()))
}

/// The names of all devices and of all routines.
fn names(house: &House, file: &HomeFile) -> Names {
    let all = house.catalogue().iter().map(|it| it.1);
    let gone = all.filter(|it| !file.drivers.contains_key(*it));
    Names {
        ended: gone.map(Into::into).collect(),
        devices: file.drivers.keys().cloned().collect(),
        routines: house.routines().map(Into::into).collect(),
    }
}

/// Runs devices, and notifies the event loop when the process is asked to end.
async fn until_asked(to: &Sender<Request>) -> Infallible {
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut it) => drop(it.recv().await),
            Err(_) => core::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = core::future::pending::<()>();
    tokio::select! {
        // Without a handler the process ends at once, which it may at any time.
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
    drop(to.send(Request::Stop));
    // Devices run until the event loop has ended, and the process with it.
    core::future::pending().await
}
