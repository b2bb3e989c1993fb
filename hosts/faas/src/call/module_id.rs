//! The name of a module.

use core::fmt;
use core::str::FromStr;

use selvedge_pcm::Library;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// A module's name: the SHA-256 of its bytes. As text, 64 hexadecimal digits, as `sha256sum` prints it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ModuleId(pub [u8; 32]);

impl ModuleId {
    /// The name of these bytes. O(length).
    #[must_use]
    pub fn of(module: &[u8]) -> Self {
        Self(Sha256::digest(module).into())
    }

    /// The library of PCM for this module: the first 64 bits.
    #[must_use]
    pub const fn library(&self) -> Library {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        Library(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

impl fmt::Display for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

impl fmt::Debug for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = self.0.iter().take(4);
        first.try_for_each(|it| write!(f, "{it:02x}"))
    }
}

impl FromStr for ModuleId {
    type Err = ModuleIdError;

    fn from_str(text: &str) -> Result<Self, ModuleIdError> {
        let bytes = super::argument::from_hex(text).ok_or(ModuleIdError)?;
        bytes.try_into().map(Self).map_err(|_| ModuleIdError)
    }
}

/// An error about a text that is no module's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "a module's name has 64 hexadecimal digits: take what `sha256sum` prints for the .wasm file"
)]
pub struct ModuleIdError;
