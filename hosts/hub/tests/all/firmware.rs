//! Real firmware of ESPHome, if it is installed.

use core::time::Duration;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use std::{env, fs, thread};

use crate::program::Hub;
use crate::support::Dir;

/// Real firmware, by its path.
fn firmware() -> Option<PathBuf> {
    let parts = env::var_os("SELVEDGE_PARTS").map(|it| PathBuf::from(it).join("hub/esphome/relay"));
    let found = parts.filter(|it| it.exists());
    if found.is_none() {
        let how =
            "no ESPHome firmware: set SELVEDGE_PARTS, and run hosts/hub/parts/fetch-esphome.sh";
        let required = env::var_os("SELVEDGE_PARTS_REQUIRED").is_some();
        assert!(!required, "{how}");
        println!("skipped: {how}");
    }
    found
}

struct Firmware(Child);

impl Firmware {
    fn start(path: &PathBuf) -> Self {
        let mut command = Command::new(path);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Firmware {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn real_firmware_is_switched_and_a_routine_that_it_fails_is_undone() {
    let Some(path) = firmware() else { return };
    let dir = Dir::new("esphome");
    let home = r#"{"devices": [{"DevID": "lamp", "initial": "off"}, {"DevID": "pump"}],
      "routines": [
        {"RoutineName": "on", "CommandList": [
          {"DevID": "lamp", "Action": "on"}, {"DevID": "pump", "Action": "on"}]},
        {"RoutineName": "off", "CommandList": [
          {"DevID": "lamp", "Action": "off"}, {"DevID": "pump", "Action": "off"}]}],
      "hub": {"devices": {"lamp": {"dummy": {}},
        "pump": {"esphome": {"address": "127.0.0.1:6053", "entity": "Relay"}}}}}"#;
    fs::write(dir.path().join("home.json"), home).unwrap();
    let first = Firmware::start(&path);
    let hub = Hub::start(dir.path());
    let wait = |what: &str, state: &str, is_up: bool| {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let home = hub.get("/api/home");
            let pump = &home["devices"][1];
            if pump["state"] == state && pump["up"] == is_up {
                return;
            }
            assert!(Instant::now() < until, "{what}: {home}");
            thread::sleep(Duration::from_millis(30));
        }
    };
    wait("it is there", "off", true);
    for (routine, state) in [("on", "on"), ("on", "on"), ("off", "off")] {
        let id = hub.run(routine);
        hub.wait_for(id, "done");
        wait("it is switched", state, true);
    }
    drop(first);
    let id = hub.run("on");
    hub.wait_for(id, "undone");
    wait("it is gone", "off", false);
    assert_eq!(hub.get("/api/home")["devices"][0]["state"], "off");
    let _second = Firmware::start(&path);
    wait("it is back", "off", true);
    let id = hub.run("on");
    hub.wait_for(id, "done");
}
