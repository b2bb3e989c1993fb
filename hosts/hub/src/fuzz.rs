//! Fuzz targets as plain functions: they take bytes, and panic when a promise is broken.
//!
//! They run under libFuzzer, from the package in `fuzz/`, and in this package's tests over a committed corpus
//! and over generated inputs.

#![allow(
    clippy::unreachable,
    reason = "a target panics where a promise is broken"
)]

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng as _;
use prometheus_client::metrics::histogram::Histogram;
use selvedge_core::{Span, Time};
use selvedge_http::Json;
use selvedge_routine::file::Format;
use selvedge_safehome::Config;
use tokio::sync::watch;

use crate::device::mqtt::Unlinked;
use crate::device::{esphome, kasa};
use crate::event_loop::{Readers, Request};
use crate::file::HomeFile;
use crate::house::{House, Memory, Moment};
use crate::http;
use crate::http::metrics::Metrics;
use crate::mqtt::topic::{Asked, Topics};

/// The home that requests are made to.
const HOME: &[u8] = include_bytes!("../homes/flat.json");

/// Reads bytes as the file of a home.
///
/// # Panics
/// When a file is accepted that names a device without a driver.
pub fn home(bytes: &[u8]) {
    for format in [Format::Json, Format::Yaml] {
        if let Ok(file) = HomeFile::read(format, bytes, Default::default()) {
            is_reached(&file);
        }
    }
}

fn is_reached(file: &HomeFile) {
    for (_, name) in file.home.catalogue.iter() {
        let driver = file.drivers.get(name);
        assert!(driver.is_some(), "{name:?} has no driver");
        let conventions = driver.and_then(|it| it.conventions(name));
        let is_fine = conventions.is_none_or(|it| it.is_ok() && file.mqtt.is_some());
        assert!(is_fine, "{name:?} cannot be reached");
    }
}

/// Reads bytes as the answer of a plug.
///
/// # Panics
/// When an encoded text is decoded to another text.
pub fn plug(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let sent = kasa::encode(&text);
    let came = sent.get(4..).map(kasa::decode);
    assert_eq!(came.as_deref(), Some(text.as_bytes()));
    let answer = kasa::decode(bytes);
    for outlet in [None, Some(0), Some(255)] {
        kasa::state_in(bytes, outlet).ok();
        kasa::state_in(&answer, outlet).ok();
    }
}

/// Reads bytes as a published message: a topic up to the first zero, and a payload.
///
/// # Panics
/// When the command for a state that was read is read as another state, or a topic that is no request is
/// taken for one.
///
/// Returns true if the hub understands the message.
pub fn published(bytes: &[u8]) -> bool {
    let mut is_understood = false;
    let at = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    let (topic, payload) = bytes.split_at(at);
    let (topic, payload) = (
        String::from_utf8_lossy(topic),
        payload.get(1..).unwrap_or_default(),
    );
    const HOME: &[u8] = br#"{
      "devices": [{"DevID": "a"}, {"DevID": "b"}, {"DevID": "c"}],
      "hub": {"mqtt": {"broker": "a:1"}, "devices": {
        "a": {"tasmota": {"topic": "a"}}, "b": {"zigbee2mqtt": {"name": "b"}},
        "c": {"mqtt": {"command_topic": "c/set", "state_topic": "c", "words": {"x": "y"}}}}}}"#;
    let Ok(file) = HomeFile::read(Format::Json, HOME, Default::default()) else {
        unreachable!("it is a file")
    };
    for (name, driver) in &file.drivers {
        let Some(Ok(how)) = driver.conventions(name) else {
            unreachable!("it speaks MQTT")
        };
        if let Some(state) = how.state_in(payload) {
            let again = how.state_in(&how.command_for(&state));
            assert_eq!(again, Some(state), "{name}");
        }
        let (_, ear) = Unlinked::new(how);
        is_understood |= ear.on_published(&topic, payload, false);
        ear.on_published("tele/a/LWT", payload, false);
    }
    let names = |all: &[&str]| {
        all.iter()
            .map(|it| String::from(*it))
            .collect::<BTreeSet<_>>()
    };
    let routines = names(&["a", "b/c"]);
    let topics = Topics::new("selvedge".into(), "ha".into(), &names(&["a"]), &routines);
    let Ok(topics) = topics else {
        unreachable!("these are names")
    };
    if let Some(Asked::Run(name) | Asked::Cancel(name)) = topics.asked(&topic) {
        assert!(routines.contains(name), "{topic}");
        assert!(
            topic.ends_with("/run") || topic.ends_with("/cancel"),
            "{topic}"
        );
        is_understood = true;
    }
    is_understood
}

/// Reads bytes as the stored data of a hub: its state, the steps since, and the runs.
///
/// # Panics
/// When a house that begins with it cannot show or store itself.
///
/// Returns true if a house begins with it.
pub fn stored(bytes: &[u8]) -> bool {
    let Ok(file) = HomeFile::read(Format::Json, HOME, Default::default()) else {
        unreachable!("it is a home")
    };
    let (mut now, wall) = (Time(0), 0);
    let rng = ChaCha12Rng::seed_from_u64(7);
    let Ok((base, steps, runs)) = postcard::from_bytes(bytes) else {
        return false;
    };
    let memory = Some(Memory { base, steps, runs });
    let moment = Moment { now, wall };
    let lateness = |_| Span::ZERO;
    let config = Config::default();
    let Ok(mut house) = House::new(&file.home, config, lateness, &[], memory, rng, moment) else {
        return false;
    };
    for name in ["good morning", "leave"] {
        // There may be no room.
        house.run(name, Moment { now, wall }).ok();
        now = house.deadline().unwrap_or(now).max(now);
        house.expire(Moment { now, wall });
        let runs = house.take_changes().runs;
        let written = postcard::to_allocvec(&(house.saved(), runs));
        assert!(written.is_ok(), "it is stored: {written:?}");
        drop((house.take_todo(), house.view()));
    }
    true
}

/// Reads bytes as the messages of an ESPHome device: to a hub without a key, and to a hub with one.
///
/// # Panics
/// When the same bytes give other messages in parts than at once.
///
/// Returns the last state of the switch or light, if the device has it.
pub fn esphome(bytes: &[u8]) -> Option<bool> {
    for key in [None, Some([7; 32])] {
        let whole = esphome::packets(bytes, key.as_ref(), usize::MAX);
        for part in [1, 7] {
            assert_eq!(esphome::packets(bytes, key.as_ref(), part), whole);
        }
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
        return None; // The runtime cannot start.
    };
    runtime.block_on(esphome::last_state(bytes, "pump"))
}

/// Reads bytes as a request to the page of a home.
///
/// # Panics
/// When the answer is not HTTP, or reports a defect of the page.
///
/// Returns the status of the answer, if it was a whole request.
pub fn page(bytes: &[u8]) -> Option<u16> {
    let (Ok(file), Ok(page)) = (
        HomeFile::read(Format::Json, HOME, Default::default()),
        http::page(),
    ) else {
        return None; // Random numbers are not available.
    };
    let now = Moment {
        now: Time(0),
        wall: 0,
    };
    let rng = ChaCha12Rng::seed_from_u64(7);
    let house = House::new(
        &file.home,
        Config::default(),
        |_| Span::ZERO,
        &[],
        None,
        rng,
        now,
    );
    let Ok(mut house) = house else {
        unreachable!("it is a home")
    };
    // A run that can be asked for.
    let first = house.run("good morning", now);
    assert!(first.is_ok(), "{first:?}");
    let (to_house, requests) = channel();
    let notify = Readers::new(&house, None);
    let metrics = Metrics::new(notify.view.subscribe(), Histogram::new([1.0]));
    let notified: watch::Receiver<Json> = notify.json.subscribe();
    let router = http::router(notified, to_house, page.clone(), metrics);
    let turn = || answer(&mut house, &requests, now);
    selvedge_http::fuzz::is_answered_with(bytes, router, &page, turn, move || drop(notify))
}

/// Answers as the event loop does, without a disk.
fn answer(house: &mut House, requests: &Receiver<Request>, now: Moment) {
    for request in requests.try_iter() {
        match request {
            Request::Run(name, to) => drop(to.send(house.run(&name, now))),
            Request::Cancel(id, to) => drop(to.send(house.cancel(id, now))),
            Request::CancelOf(name, id, to) => {
                let id = id.map(selvedge_safehome::RoutineId);
                drop(to.send(house.cancel_of(&name, id, now)));
            }
            Request::Show(id, to) => {
                let record = house.records().get(id);
                drop(to.send(record.map(|it| house.run_view(id, it))));
            }
            Request::Preview(name, to) => drop(to.send(house.preview(&name, now))),
            Request::Reports(..) | Request::Stop => {}
        }
        drop((house.take_changes(), house.take_todo()));
    }
}
