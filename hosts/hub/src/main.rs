//! The `selvedge-hub` command.

#![forbid(unsafe_code)]
#![allow(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    reason = "hosts have the standard library"
)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use std::{fs, io, thread};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use clap::Parser;
use selvedge_core::{NodeId, Span};
use selvedge_door::{Door, DoorError, NoChance, Token};
use selvedge_hub::device::dummy::Dummy;
use selvedge_hub::device::kasa::Kasa;
use selvedge_hub::device::{Care, Device, Order, attend};
use selvedge_hub::file::{DriverShape, HomeError, HomeFile};
use selvedge_hub::house::{House, HouseError};
use selvedge_hub::http;
use selvedge_hub::keeper::{Keeper, Request, json, moment};
use selvedge_hub::store::{Store, StoreError};
use selvedge_routine::State;
use selvedge_safehome::Config;
use thiserror::Error;
use tokio::sync::{mpsc, watch};

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
}

#[derive(Debug, Error)]
enum Failure {
    #[error("{path}: {source}: name a file that can be read", path = .0.display(), source = .1)]
    Read(PathBuf, io::Error),
    #[error("{path}: {0}", path = .1.display())]
    Home(HomeError, PathBuf),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    House(#[from] HouseError),
    #[error(transparent)]
    Door(#[from] DoorError),
    #[error(transparent)]
    Chance(#[from] NoChance),
    #[error("cannot start a thread: {0}: see how many this process may have")]
    Thread(io::Error),
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
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
    let wrong = |it| Failure::Home(it, path.clone());
    let format = HomeFile::format(path).map_err(wrong)?;
    let door = Door::new(arguments.http, arguments.http_token.clone())?;
    // Before anything is opened: a file that is wrong changes nothing.
    HomeFile::read(format, &bytes, Default::default()).map_err(wrong)?;
    let (mut store, found) = Store::open(&arguments.state)?;
    let HomeFile { home, drivers } =
        HomeFile::read(format, &bytes, found.catalogue).map_err(wrong)?;
    let driver = |name: &str| drivers.get(name).cloned();
    let gone = home
        .catalogue
        .iter()
        .filter(|it| !drivers.contains_key(it.1));
    let gone: Vec<NodeId> = gone.map(|it| it.0).collect();
    let lateness = |id| {
        let driver = home.catalogue.name(id).and_then(driver);
        driver.map_or(Span::ZERO, |it| match it {
            DriverShape::Dummy(it) => Dummy::new(0.into(), it.takes()).lateness(),
            DriverShape::Kasa(it) => Kasa::new(it.address.to_string(), it.outlet).lateness(),
        })
    };
    let rng = ChaCha12Rng::seed_from_u64(getrandom::u64().map_err(|_| NoChance)?);
    let (config, now) = (Config::default(), moment(start));
    let mut house = House::new(&home, config, lateness, &gone, found.memory, rng, now)?;
    store.begin(
        &house.catalogue().clone(),
        &house.take_changes(),
        house.saved(),
    )?;

    let (to_keeper, requests) = channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Thread)?;
    let mut orders = BTreeMap::new();
    for (id, name) in home.catalogue.iter() {
        let Some(driver) = driver(name) else {
            continue;
        };
        let (to, from) = mpsc::unbounded_channel();
        orders.insert(id, to);
        let tell = tell(id, &to_keeper);
        match driver {
            DriverShape::Dummy(it) => {
                let state = house.hub().state(id).cloned();
                let dummy = Dummy::new(state.unwrap_or_else(|| State::from("off")), it.takes());
                start_device(&runtime, dummy, from, tell);
            }
            DriverShape::Kasa(it) => {
                let plug = Kasa::new(it.address.to_string(), it.outlet);
                start_device(&runtime, plug, from, tell);
            }
        }
    }
    let (tell, told) = watch::channel(json(&house));
    let (page, listens) = (http::page()?, door.listens());
    door.open(
        "page",
        http::router(told, to_keeper.clone(), page.clone()),
        &page,
    )?;
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
    };
    Ok(keeper.run()?)
}

fn tell(
    id: NodeId,
    to: &Sender<Request>,
) -> impl Fn(selvedge_hub::device::Report) + Send + 'static + use<> {
    let to = to.clone();
    // A keeper that has stopped hears nothing, and the process ends.
    move |report| drop(to.send(Request::Report(id, report)))
}

fn start_device<D: Device>(
    runtime: &tokio::runtime::Runtime,
    device: D,
    orders: mpsc::UnboundedReceiver<Order>,
    tell: impl Fn(selvedge_hub::device::Report) + Send + 'static,
) {
    runtime.spawn(attend(device, Care::default(), orders, tell));
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
