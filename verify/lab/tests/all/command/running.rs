//! Runs the command and reads its output.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs the command to its end.
pub(crate) fn lab(arguments: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_selvedge-lab");
    Command::new(command).args(arguments).output().unwrap()
}

/// The text that a finished command wrote to its standard error.
pub(crate) fn complaint(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A test's own folder, removed when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("selvedge-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ended = std::fs::remove_dir_all(&self.0).is_ok();
    }
}
