//! The two systems, as a client sees them.

use core::fmt::Write as _;
use core::time::Duration;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::home_assistant::{HomeAssistant, Process, until};
use crate::http::request;
use crate::plug::tied;

/// The answer to a client about a script that it had run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notified {
    Done,
    Failed,
}

/// Plugs of one trio.
pub(crate) type Trio = [String; 3];

pub(crate) trait System: Sync {
    /// Requests a script, and returns as soon as that is answered; with the ticket for its end.
    fn ask(&self, script: &str) -> Result<Ticket, String>;

    /// Waits until the script has ended.
    fn end(&self, ticket: Ticket) -> Notified;

    /// True for each plug that is shown as on; `None` for a plug that is shown as absent.
    fn shown(&self, plugs: &Trio) -> [Option<bool>; 3];

    fn run(&self, script: &str) -> Notified {
        self.ask(script).map_or(Notified::Failed, |it| self.end(it))
    }
}

/// The number to ask for the end of a script; `None` if the answer was the end.
pub(crate) struct Ticket(Option<u64>);

/// The scripts of a trio: all plugs on or off, one after another.
pub(crate) struct Scripts {
    pub(crate) trios: Vec<Trio>,
    /// The time between two commands.
    pub(crate) hold: Duration,
}

impl Scripts {
    /// The name of each script, its plugs, their final state, and the time for which each is held.
    fn all(&self) -> impl Iterator<Item = (String, &[String], &'static str, u128)> {
        let hold = self.hold.as_millis();
        self.trios.iter().enumerate().flat_map(move |(nth, trio)| {
            [
                (format!("on{nth}"), &trio[..], "on", hold),
                (format!("off{nth}"), &trio[..], "off", 0),
                (format!("first{nth}"), &trio[..1], "on", 0),
                (format!("back{nth}"), &trio[..1], "off", 0),
            ]
        })
    }
}

/// This hub.
pub(crate) struct Hub {
    address: String,
    _process: Process,
}

impl Hub {
    pub(crate) fn start(program: &Path, dir: &Path, scripts: &Scripts) -> Self {
        fs::create_dir_all(dir).unwrap();
        let routines = scripts.all().map(|(name, plugs, action, hold)| {
            let commands = plugs
                .iter()
                .map(|it| json!({"DevID": it, "Action": action, "hold_ms": hold as u64}));
            json!({"RoutineName": name, "CommandList": commands.collect::<Value>()})
        });
        let drivers = scripts.trios.iter().flatten().map(|it| {
            let driver = json!({"kasa": {"address": format!("{it}:9999")}});
            (it.clone(), driver)
        });
        let home = json!({
            "routines": routines.collect::<Value>(),
            "hub": {"devices": drivers.collect::<serde_json::Map<_, _>>()},
        });
        fs::write(dir.join("home.json"), home.to_string()).unwrap();
        let address = String::from("127.0.0.1:8124");
        let process = tied(program)
            .arg(dir.join("home.json"))
            .arg("--state")
            .arg(dir.join("state"))
            .args(["--http", &address])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let hub = Self {
            address,
            _process: Process(process),
        };
        until("the hub does not start", 30, || {
            (request(&hub.address, "GET", "/api/home", "", "").0 == 200).then_some(())
        });
        hub
    }

    fn get(&self, path: &str) -> Value {
        let (_, body) = request(&self.address, "GET", path, "", "");
        serde_json::from_str(&body).unwrap()
    }
}

impl System for Hub {
    fn ask(&self, script: &str) -> Result<Ticket, String> {
        let path = format!("/api/routines/{script}/run");
        let (status, body) = request(&self.address, "POST", &path, "", "");
        if status != 202 {
            return Err(body);
        }
        let notified: Value = serde_json::from_str(&body).unwrap();
        Ok(Ticket(notified["id"].as_u64()))
    }

    fn end(&self, ticket: Ticket) -> Notified {
        let path = format!("/api/runs/{}", ticket.0.unwrap());
        until(
            "a run has not ended",
            60,
            || match self.get(&path)["what"].as_str().unwrap() {
                "done" => Some(Notified::Done),
                "undone" => Some(Notified::Failed),
                _ => None,
            },
        )
    }

    fn shown(&self, plugs: &Trio) -> [Option<bool>; 3] {
        let home = self.get("/api/home");
        let devices = home["devices"].as_array().unwrap();
        plugs.each_ref().map(|name| {
            let device = devices.iter().find(|it| it["name"] == **name).unwrap();
            let is_on = device["state"].as_str().map(|it| it == "on");
            is_on.filter(|_| device["up"] == true)
        })
    }
}

/// Home Assistant, with its integration for plugs of this kind and its scripts.
pub(crate) struct Scripted(HomeAssistant);

impl Scripted {
    /// `goes_on`: true if a script continues after a failed command, which is a setting of each command.
    pub(crate) fn start(
        program: &Path,
        dir: &Path,
        port: u16,
        scripts: &Scripts,
        goes_on: bool,
    ) -> Self {
        let configuration = configuration(scripts, goes_on);
        let started =
            HomeAssistant::start(tied(program), dir, port, &configuration, &entries(scripts));
        let system = Self(started);
        until("Home Assistant does not show all plugs", 180, || {
            let mut shown = scripts.trios.iter().flat_map(|it| system.shown(it));
            shown.all(|it| it.is_some()).then_some(())
        });
        system
    }
}

fn entity(plug: &str) -> String {
    format!("switch.plug_at_{}", plug.replace('.', "_"))
}

fn configuration(scripts: &Scripts, goes_on: bool) -> String {
    let mut text = String::from("script:\n");
    for (name, plugs, action, hold) in scripts.all() {
        writeln!(text, "  {name}:\n    sequence:").unwrap();
        for plug in plugs {
            let entity = entity(plug);
            writeln!(
                text,
                "      - service: switch.turn_{action}
        target: {{entity_id: {entity}}}
        continue_on_error: {goes_on}"
            )
            .unwrap();
            if hold > 0 {
                writeln!(text, "      - delay: {{milliseconds: {hold}}}").unwrap();
            }
        }
    }
    text
}

fn entries(scripts: &Scripts) -> Value {
    let entries = scripts.trios.iter().flatten().map(|plug| {
        let mut bytes = plug.split('.').skip(2).map(|it| it.parse::<u8>().unwrap());
        let (c, d) = (bytes.next().unwrap(), bytes.next().unwrap());
        json!({"entry_id": plug, "version": 1, "minor_version": 1, "domain": "tplink", "title": plug,
            "data": {"host": plug}, "options": {}, "pref_disable_new_entities": false,
            "pref_disable_polling": false, "source": "user",
            "unique_id": format!("50:c7:bf:00:{c:02x}:{d:02x}"), "disabled_by": null})
    });
    entries.collect()
}

impl System for Scripted {
    fn ask(&self, script: &str) -> Result<Ticket, String> {
        // Answered when the script has ended.
        match self
            .0
            .api("POST", &format!("/api/services/script/{script}"), "")
        {
            (200, _) => Ok(Ticket(None)),
            (_, body) => Err(body),
        }
    }

    fn end(&self, _: Ticket) -> Notified {
        Notified::Done
    }

    fn shown(&self, plugs: &Trio) -> [Option<bool>; 3] {
        let (_, body) = self.0.api("GET", "/api/states", "");
        let states: Value = serde_json::from_str(&body).unwrap_or_default();
        let states = states.as_array().cloned().unwrap_or_default();
        plugs.each_ref().map(|plug| {
            let entity = entity(plug);
            let state = states.iter().find(|it| it["entity_id"] == *entity)?;
            match state["state"].as_str()? {
                "on" => Some(true),
                "off" => Some(false),
                _ => None,
            }
        })
    }
}
