//! What is done where a module imports what there is not.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What ends the text of a stub that returns.
const RETURNS: &str = "=0";

/// An import that a module declares and the host has not, and what it does when it is called. As text
/// `MODULE.NAME`, or `MODULE.NAME=0` for one that returns; the last dot counts.
///
/// Stubs are part of the [`Call`](super::Call), so all followers do the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stub {
    /// Of what the module imports it: up to [`MAX_EXPORT`](super::MAX_EXPORT) bytes.
    pub module: String,
    /// As what: up to [`MAX_EXPORT`](super::MAX_EXPORT) bytes.
    pub name: String,
    /// What it does.
    pub does: Does,
}

/// What a stub does when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Does {
    /// It ends the call, by [`Trap::Stub`](crate::Trap::Stub). So a wrong guess fails, and is not a wrong
    /// result.
    Traps,
    /// It does nothing, and returns zero where it returns something: for notices, as
    /// `emscripten_notify_memory_growth` is. It is a wrong result where more is expected of it.
    ReturnsZero,
}

impl fmt::Display for Stub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let returns = match self.does {
            Does::Traps => "",
            Does::ReturnsZero => RETURNS,
        };
        write!(f, "{}.{}{returns}", self.module, self.name)
    }
}

impl FromStr for Stub {
    type Err = StubError;

    fn from_str(text: &str) -> Result<Self, StubError> {
        let (path, does) = match text.strip_suffix(RETURNS) {
            Some(path) => (path, Does::ReturnsZero),
            None => (text, Does::Traps),
        };
        let (module, name) = path.rsplit_once('.').ok_or(StubError)?;
        Ok(Self {
            module: module.into(),
            name: name.into(),
            does,
        })
    }
}

/// A text that is no stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a stub is MODULE.NAME, which traps, or MODULE.NAME=0, which returns zero: as in env.abort"
)]
pub struct StubError;
