//! The `selvedge-hub` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::env::VarError;
use std::io::IsTerminal as _;
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
use selvedge_door::{Door, DoorError, NoChance, Token};
use selvedge_hub::device::dummy::Dummy;
use selvedge_hub::device::esphome::Esphome;
use selvedge_hub::device::kasa::Kasa;
use selvedge_hub::device::mqtt::{Ear, Unlinked};
use selvedge_hub::device::{Care, Device, Order, Report, attend};
use selvedge_hub::file::{DriverShape, EsphomeShape, HomeError, HomeFile};
use selvedge_hub::house::{House, HouseError};
use selvedge_hub::http;
use selvedge_hub::http::metrics::{Metrics, write_seconds};
use selvedge_hub::keeper::{Keeper, Request, Tell, moment};
use selvedge_hub::mqtt::{self, Post, PostError, Told, Way};
use selvedge_hub::store::{Store, StoreError};
use selvedge_routine::State;
use selvedge_safehome::Config;
use thiserror::Error;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Run a home: routines over its devices, that end as some order explains and are undone when they fail.
#[derive(Debug, Parser)]
#[command(name = "selvedge-hub", version)]
struct Arguments {
    /// The file of the home, in JSON or YAML: devices and how they are reached, routines, triggers
    home: PathBuf,
    /// The folder for what must not be forgotten
    #[arg(long, value_name = "DIR", default_value = "selvedge-hub")]
    state: PathBuf,
    /// Where the page is
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8124")]
    http: SocketAddr,
    /// What a reader of the page has to know; needed beyond loopback
    #[arg(
        long,
        value_name = "TOKEN",
        env = "SELVEDGE_HUB_TOKEN",
        hide_env_values = true
    )]
    http_token: Option<Token>,
    /// How much is said on the standard error: off, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: LevelFilter,
}

#[derive(Debug, Error)]
enum Failure {
    #[error("{path}: {source}: name a file that can be read", path = .0.display(), source = .1)]
    Read(PathBuf, io::Error),
    #[error("{path}: {0}", path = .1.display())]
    Home(Box<HomeError>, PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    House(#[from] HouseError),
    #[error(transparent)]
    Door(#[from] DoorError),
    #[error(transparent)]
    Chance(#[from] NoChance),
    #[error("{path}: {0}", path = .1.display())]
    Mqtt(Box<PostError>, PathBuf),
    #[error("{name} is no UTF-8: choose a password that is", name = mqtt::PASSWORD)]
    Password,
    #[error("cannot start a thread: {0}: see how many this process may have")]
    Thread(io::Error),
}

/// How many lines of the log may wait for their reader.
const LINES: usize = 1_024;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A reader of the log that stalls holds up nothing: what finds no room is left out.
    let (log, _writer) = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES)
        .finish(io::stderr());
    let lines = fmt::layer()
        .with_target(false)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(log);
    // The broker inside tells of each connection.
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
    let format = HomeFile::format(path).map_err(wrong)?;
    let door = Door::new(arguments.http, arguments.http_token.clone())?;
    // Before anything is opened: a file that is wrong changes nothing.
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

    let (to_keeper, requests) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Thread)?;
    let mut devices = Devices::new(&house, &file, &to_keeper);
    devices
        .start_local(&runtime)
        .map_err(|it| Failure::Mqtt(it.into(), path.clone()))?;
    let (runs, changed) = mqtt::runs();
    let tell = Tell::new(&house, way.is_some().then_some(runs));
    let post = match &way {
        None => None,
        Some(way) => {
            let told = Told {
                view: tell.view.subscribe(),
                runs: changed,
            };
            let names = names(&house, &file);
            let ears = core::mem::take(&mut devices.ears);
            let handle = runtime.handle();
            let post = Post::open(
                way,
                (&names.0, &names.1),
                ears,
                to_keeper.clone(),
                told,
                handle,
            );
            Some(post.map_err(|it| Failure::Mqtt(it.into(), path.clone()))?)
        }
    };
    if let Some(post) = &post {
        devices.start_remote(&runtime, post);
    }
    let orders = devices.orders;
    let (page, listens) = (http::page()?, door.listens());
    let writes = write_seconds();
    let metrics = Metrics::new(tell.view.subscribe(), writes.clone());
    let router = http::router(
        tell.json.subscribe(),
        to_keeper.clone(),
        page.clone(),
        metrics,
    );
    door.open("page", router, &page)?;
    eprintln!(
        "selvedge-hub: {} devices, the page is at http://{listens}",
        orders.len()
    );
    thread::Builder::new()
        .name("devices".into())
        .spawn(move || runtime.block_on(until_asked(&to_keeper)))
        .map_err(Failure::Thread)?;
    let keeper = Keeper {
        house,
        store,
        requests,
        orders,
        tell,
        start,
        writes,
    };
    let ended = keeper.run();
    if let Some(post) = post {
        post.farewell();
    }
    Ok(ended?)
}

/// How the broker is gone to, if there is one.
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
fn names(house: &House, file: &HomeFile) -> (BTreeSet<String>, BTreeSet<String>) {
    let devices = file.drivers.keys().cloned().collect();
    let routines = house.routines().map(Into::into).collect();
    (devices, routines)
}

/// For how long a command of a device may still act after its outcome came back unknown.
fn lateness(driver: &DriverShape) -> Span {
    match driver {
        DriverShape::Dummy(it) => Dummy::new(0.into(), it.takes()).lateness(),
        DriverShape::Kasa(it) => Kasa::new(it.address.to_string(), it.outlet).lateness(),
        DriverShape::Esphome(it) => esphome(it).lateness(),
        DriverShape::Mqtt(_) | DriverShape::Tasmota(_) | DriverShape::Zigbee2mqtt(_) => {
            Unlinked::lateness()
        }
    }
}

fn esphome(it: &EsphomeShape) -> Esphome {
    Esphome::new(it.address.to_string(), it.entity.clone(), it.key)
}

/// The devices of a home, as they are started.
struct Devices<'a> {
    house: &'a House,
    file: &'a HomeFile,
    to_keeper: &'a Sender<Request>,
    orders: BTreeMap<NodeId, mpsc::UnboundedSender<Order>>,
    ears: Vec<Ear>,
    /// Those that wait for the link to the broker.
    unlinked: Vec<(NodeId, Unlinked, mpsc::UnboundedReceiver<Order>)>,
}
impl<'a> Devices<'a> {
    const fn new(house: &'a House, file: &'a HomeFile, to_keeper: &'a Sender<Request>) -> Self {
        Self {
            house,
            file,
            to_keeper,
            orders: BTreeMap::new(),
            ears: Vec::new(),
            unlinked: Vec::new(),
        }
    }

    /// Starts all that need no broker.
    fn start_local(&mut self, runtime: &Runtime) -> Result<(), PostError> {
        for (id, name) in self.file.home.catalogue.iter() {
            let Some(driver) = self.file.drivers.get(name) else {
                continue;
            };
            let (to, from) = mpsc::unbounded_channel();
            self.orders.insert(id, to);
            if let Some(how) = driver.conventions(name).transpose()? {
                let (device, ear) = Unlinked::new(how);
                self.ears.push(ear);
                self.unlinked.push((id, device, from));
                continue;
            }
            match driver {
                DriverShape::Dummy(it) => {
                    let state = self.house.hub().state(id).cloned();
                    let state = state.unwrap_or_else(|| State::from("off"));
                    self.start(runtime, id, Dummy::new(state, it.takes()), from);
                }
                DriverShape::Kasa(it) => {
                    let plug = Kasa::new(it.address.to_string(), it.outlet);
                    self.start(runtime, id, plug, from);
                }
                DriverShape::Esphome(it) => self.start(runtime, id, esphome(it), from),
                DriverShape::Mqtt(_) | DriverShape::Tasmota(_) | DriverShape::Zigbee2mqtt(_) => {}
            }
        }
        Ok(())
    }

    /// Starts those that go by the broker.
    fn start_remote(&mut self, runtime: &Runtime, post: &Post) {
        for (id, device, from) in core::mem::take(&mut self.unlinked) {
            self.start(runtime, id, device.link(post.link()), from);
        }
    }

    fn start<D: Device>(
        &self,
        runtime: &Runtime,
        id: NodeId,
        device: D,
        orders: mpsc::UnboundedReceiver<Order>,
    ) {
        let to = self.to_keeper.clone();
        // A keeper that has stopped hears nothing, and the process ends.
        let tell = move |report: Report| drop(to.send(Request::Report(id, report)));
        runtime.spawn(attend(device, Care::default(), orders, tell));
    }
}

/// Runs devices until the process is asked to end.
async fn until_asked(to: &Sender<Request>) {
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
}
