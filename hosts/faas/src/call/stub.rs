//! Stubs for imports that the host does not have.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The end of the text of a stub that returns.
const RETURNS: &str = "=0";

/// A stub for an import that a module declares and the host does not have. Its text is
/// `MODULE.NAME`, or `MODULE.NAME=0` if it returns; the last dot separates.
///
/// Stubs are part of the [`Call`](super::Call), so all followers use the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stub {
    /// The module part of the import: up to [`MAX_EXPORT`](super::MAX_EXPORT) bytes.
    pub module: String,
    /// The name part of the import: up to [`MAX_EXPORT`](super::MAX_EXPORT) bytes.
    pub name: String,
    /// Its effect when it is called.
    pub does: Does,
}

/// The effect of a stub when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Does {
    /// It ends the call, by [`Trap::Stub`](crate::Trap::Stub). So a wrong guess fails, and does not
    /// give a wrong result.
    Traps,
    /// It does nothing, and returns zero if the import has a result: for notices such as
    /// `emscripten_notify_memory_growth`. For an import with another effect or value the result of
    /// the call may be wrong.
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

/// An error about a text that is no stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a stub is MODULE.NAME, which traps, or MODULE.NAME=0, which returns zero: as in env.abort"
)]
pub struct StubError;
