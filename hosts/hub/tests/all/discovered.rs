//! A real Home Assistant presses the buttons that it discovered, and sees the results.
//!
//! `SELVEDGE_HOME_ASSISTANT_REQUIRED` makes a missing one a failure.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::{Value, json};

use crate::broker::{Mosquitto, a_free_port};
use crate::home_assistant::{HomeAssistant, until};
use crate::program::Hub;
use crate::support::Dir;

/// Prints a message if none is installed.
fn program() -> Option<PathBuf> {
    let parts = env::var_os("SELVEDGE_PARTS").map(PathBuf::from);
    let program = parts.map(|it| it.join("hub/home-assistant/bin/hass"));
    let found = program.filter(|it| it.exists());
    if found.is_none() {
        let how = "no Home Assistant: set SELVEDGE_PARTS, and run hosts/hub/parts/fetch-home-assistant.sh";
        let required = env::var_os("SELVEDGE_HOME_ASSISTANT_REQUIRED").is_some();
        assert!(!required, "{how}");
        println!("skipped: {how}");
    }
    found
}

/// A lamp that exists, and a plug that does not.
fn home(mqtt: &str) -> String {
    let no_node = a_free_port("127.0.0.1");
    format!(
        r#"{{
  "devices": [{{"DevID": "lamp", "initial": "off"}}, {{"DevID": "plug"}}],
  "routines": [
    {{"RoutineName": "evening", "CommandList": [{{"DevID": "lamp", "Action": "on"}}]}},
    {{"RoutineName": "rest", "CommandList": [{{"DevID": "lamp", "Action": "dim", "hold_ms": 60000, "undo": "off"}}]}},
    {{"RoutineName": "both", "CommandList": [
      {{"DevID": "lamp", "Action": "bright"}}, {{"DevID": "plug", "Action": "on"}}]}}
  ],
  "hub": {{
    "mqtt": {mqtt},
    "devices": {{"lamp": {{"dummy": {{}}}}, "plug": {{"kasa": {{"address": "{no_node}"}}}}}}
  }}
}}"#
    )
}

/// The states that Home Assistant shows.
struct Shown(HomeAssistant);

impl Shown {
    fn start(dir: &Path, program: &Path, broker: SocketAddr) -> Self {
        let entry = json!({"entry_id": "mqtt", "version": 1, "minor_version": 1, "domain": "mqtt",
            "title": "mqtt", "data": {"broker": broker.ip().to_string(), "port": broker.port(), "discovery": true},
            "options": {}, "pref_disable_new_entities": false, "pref_disable_polling": false,
            "source": "user", "unique_id": null, "disabled_by": null});
        let port = a_free_port("127.0.0.1").port();
        let dir = dir.join("home-assistant");
        let program = Command::new(program);
        Self(HomeAssistant::start(
            program,
            &dir,
            port,
            "",
            &json!([entry]),
        ))
    }

    fn states(&self) -> Vec<Value> {
        let (_, body) = self.0.api("GET", "/api/states", "");
        serde_json::from_str(&body).unwrap_or_default()
    }

    /// Waits until an entity, found by the begin and the end of its name, is in such a state.
    fn wait(&self, kind: &str, name: &str, what: &str, so: impl Fn(&str) -> bool) -> Value {
        let mut last = Value::Null;
        until(&format!("{kind}{name} is not {what}"), 40, || {
            let id = |it: &Value| it["entity_id"].as_str().unwrap_or("").to_owned();
            let is_it = |it: &Value| id(it).starts_with(kind) && id(it).ends_with(name);
            last = self.states().into_iter().find(is_it)?;
            so(last["state"].as_str()?).then(|| last.clone())
        })
    }

    fn wait_for(&self, kind: &str, name: &str, state: &str) -> Value {
        self.wait(kind, name, state, |it| it == state)
    }

    fn press(&self, button: &str) {
        let all = self.states();
        let ids = all.iter().map(|it| it["entity_id"].as_str().unwrap());
        let mut ids = ids.filter(|it| it.starts_with("button.") && it.ends_with(button));
        let id = ids.next().expect("a discovered button");
        let body = json!({ "entity_id": id }).to_string();
        let (status, notified) = self.0.api("POST", "/api/services/button/press", &body);
        assert_eq!(status, 200, "{notified}");
    }
}

/// The hub's view is a moment behind.
fn wait_for_state(hub: &Hub, device: &str, state: &str) {
    until(&format!("{device} is not {state}"), 20, || {
        let home = hub.get("/api/home");
        let mut devices = home["devices"].as_array().unwrap().iter();
        let found = devices.find(|it| it["name"] == device).unwrap();
        (found["state"] == state).then_some(())
    });
}

fn buttons_are_pressed(dir: &Dir, program: &Path, mqtt: &str, broker: SocketAddr) {
    fs::write(dir.path().join("home.json"), home(mqtt)).unwrap();
    let hub = Hub::start(dir.path());
    let shown = Shown::start(dir.path(), program, broker);
    shown.wait_for("button.", "evening", "unknown");

    shown.press("evening");
    shown.wait_for("sensor.", "evening_latest_run", "done");
    wait_for_state(&hub, "lamp", "on");

    shown.press("both");
    let run = shown.wait_for("sensor.", "both_latest_run", "undone");
    assert!(
        run["attributes"]["why"].as_str().unwrap().contains("plug"),
        "{run}"
    );
    wait_for_state(&hub, "lamp", "on");

    // A run, and a second run that waits for it.
    shown.press("rest");
    shown.wait_for("sensor.", "rest_latest_run", "runs");
    shown.press("evening");
    let run = shown.wait_for("sensor.", "evening_latest_run", "waits");
    assert!(
        run["attributes"]["why"].as_str().unwrap().contains("lamp"),
        "{run}"
    );
    shown.wait_for("sensor.", "routines_runs", "1");
    shown.wait_for("sensor.", "routines_waits", "1");

    // A hub that is killed is shown as unavailable; then it is back, and continues.
    drop(hub); // By SIGKILL.
    shown.wait_for("button.", "evening", "unavailable");
    let hub = Hub::start(dir.path());
    shown.wait("button.", "evening", "there", |it| it != "unavailable");
    let run = shown.wait_for("sensor.", "rest_latest_run", "runs");
    let id = &run["attributes"]["id"];
    let (status, notified) = hub.ask("POST", &format!("/api/runs/{id}/cancel"), "");
    assert_eq!(status, 202, "{notified}");
    shown.wait_for("sensor.", "rest_latest_run", "undone");
    shown.wait_for("sensor.", "evening_latest_run", "done");
    shown.wait_for("sensor.", "routines_runs", "0");
}

#[test]
fn home_assistant_presses_discovered_buttons_and_sees_what_becomes_of_them() {
    let Some(program) = program() else { return };
    let dir = Dir::new("discovered");
    if let Some(broker) = Mosquitto::start(dir.path(), "127.0.0.1") {
        let mqtt = format!(r#"{{"broker": "{}"}}"#, broker.at);
        buttons_are_pressed(&dir, &program, &mqtt, broker.at);
    }
    let dir = Dir::new("discovered-inside");
    let inside = a_free_port("127.0.0.1");
    buttons_are_pressed(
        &dir,
        &program,
        &format!(r#"{{"listen": "{inside}"}}"#),
        inside,
    );
}
