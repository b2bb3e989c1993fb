//! Directories for tests.

use std::path::PathBuf;
use std::{env, fs, process};

/// The path of a directory, where there is nothing yet. What is there later goes with this.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    /// No two tests give the same name.
    pub(crate) fn new(name: &str) -> Self {
        let dir = env::temp_dir().join(format!("selvedge-faas-unit-{name}-{}", process::id()));
        fs::remove_dir_all(&dir).ok();
        Self(dir)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
