//! From bytes to a home.

use alloc::string::{String, ToString};

use serde::de::DeserializeOwned;

use super::shape::{Document, Probe, RoutineShape};
use super::{FileError, Home, check};
use crate::Catalogue;

impl Home {
    /// Reads a file: one routine, or a document.
    ///
    /// # Errors
    /// When it is not as the format says. [`FileError`] names the place and the mend.
    pub fn read(bytes: &[u8]) -> Result<Self, FileError> {
        Self::read_with(bytes, Catalogue::new())
    }

    /// Reads a file for a home with known devices: they keep their ids, and need not be
    /// declared again.
    ///
    /// # Errors
    /// When it is not as the format says. [`FileError`] names the place and the mend.
    pub fn read_with(bytes: &[u8], catalogue: Catalogue) -> Result<Self, FileError> {
        let probe: Probe = parse(bytes)?;
        if probe.name.is_some() || probe.commands.is_some() {
            let shape: RoutineShape = parse(bytes)?;
            check::single(&shape, catalogue)
        } else {
            let shape: Document = parse(bytes)?;
            check::document(&shape, catalogue)
        }
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, FileError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path();
        let path = if path.iter().next().is_none() {
            String::new()
        } else {
            path.to_string()
        };
        refusal(path, error.inner())
    })?;
    json.end().map_err(|error| refusal(String::new(), &error))?;
    Ok(value)
}

fn refusal(path: String, error: &serde_json::Error) -> FileError {
    FileError::Form {
        path,
        why: error.to_string(),
        line: error.line(),
        column: error.column(),
    }
}
