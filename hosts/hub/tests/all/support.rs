//! A home of three devices, for all tests; and a folder that is removed with its test.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// Two lamps and a lock, which are dummies. "evening" needs all; "light" is one command.
pub(crate) const HOME: &str = r#"{
  "devices": [{"DevID": "lamp", "initial": "off"}, {"DevID": "lock", "initial": "open"}, {"DevID": "fan", "initial": 0}],
  "routines": [
    {"RoutineName": "evening", "CommandList": [
      {"DevID": "lamp", "Action": "on"}, {"DevID": "fan", "Action": 3}, {"DevID": "lock", "Action": "shut"}]},
    {"RoutineName": "light", "CommandList": [{"DevID": "lamp", "Action": "dim"}]},
    {"RoutineName": "rest", "CommandList": [{"DevID": "fan", "Action": 2, "hold_ms": 1000}]},
    {"RoutineName": "slow", "CommandList": [
      {"DevID": "lamp", "Action": "on", "hold_ms": 1500}, {"DevID": "fan", "Action": 1}]}
  ],
  "triggers": [{"RoutineName": "light", "when": {"DevID": "lock", "equal": "shut"}}],
  "hub": {"devices": {"lamp": {"dummy": {}}, "lock": {"dummy": {}}, "fan": {"dummy": {"takes_ms": 100}}}}
}"#;

/// A folder that is removed when the test has ended.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new(name: &str) -> Self {
        let dir = env::temp_dir().join(format!("selvedge-hub-{name}-{}", process::id()));
        fs::remove_dir_all(&dir).ok();
        fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
