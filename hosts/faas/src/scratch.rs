//! Directories for tests.

use std::path::PathBuf;
use std::{env, fs, process};

/// The path of a directory that does not exist yet. The directory is removed on drop.
pub(crate) struct Dir(pub(crate) PathBuf);

impl Dir {
    /// A path for this name, which no other test gives.
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
