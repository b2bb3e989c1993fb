//! What a [`Function`] of PCM means here: an export of a module, called with arguments.

mod argument;
mod module_id;

use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::wire::items;
use selvedge_pcm::{Function, Libraries};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use argument::{Argument, ArgumentError, text_of};
pub use module_id::{ModuleId, ModuleIdError};

/// The version of the encoding, its first byte.
pub const VERSION: u8 = 1;

/// How many bytes an export's name may have.
pub const MAX_EXPORT: usize = 64;

/// How many arguments a call may have.
pub const MAX_ARGUMENTS: usize = 16;

/// How many bytes an encoded call may have. A follower takes no more than
/// [`Config::code`](selvedge_pcm::follower::Config::code) of them.
pub const MAX_CALL: usize = 65_535;

/// A call of an export of a module.
///
/// Encoded it is [`VERSION`], then this in postcard: the module's SHA-256, the export's name, and the
/// arguments. Each call has one encoding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    body: Body,
}

/// What follows the version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Body {
    module: ModuleId,
    export: String,
    #[serde(with = "items")]
    arguments: Vec<Argument>,
}

impl Call {
    /// A call of this export with these arguments.
    ///
    /// # Errors
    /// A name longer than [`MAX_EXPORT`], more arguments than [`MAX_ARGUMENTS`], or a call longer
    /// than [`MAX_CALL`].
    pub fn new(
        module: ModuleId,
        export: &str,
        arguments: impl IntoIterator<Item = Argument>,
    ) -> Result<Self, CallError> {
        // One more than there may be, so that an endless list ends.
        let arguments = arguments.into_iter().take(MAX_ARGUMENTS + 1).collect();
        let export = String::from(export);
        let body = Body {
            module,
            export,
            arguments,
        };
        let call = Self { body };
        call.check()?;
        call.encode()?;
        Ok(call)
    }

    /// What a function of PCM calls. O(length).
    ///
    /// # Errors
    /// Those of [`decode`](Self::decode), and a module that is not the function's only library.
    pub fn from_function(function: &Function) -> Result<Self, CallError> {
        let call = Self::decode(&function.code)?;
        if *function.libraries != [call.module().library()] {
            return Err(CallError::Libraries(call.module()));
        }
        Ok(call)
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// Another version, bytes that are no call or not the encoding of one, or a limit of
    /// [`new`](Self::new).
    pub fn decode(bytes: &[u8]) -> Result<Self, CallError> {
        if bytes.len() > MAX_CALL {
            return Err(CallError::TooLong(bytes.len()));
        }
        let (&version, rest) = bytes.split_first().ok_or(CallError::Malformed)?;
        if version != VERSION {
            return Err(CallError::Version(version));
        }
        let body = postcard::from_bytes(rest).map_err(|_| CallError::Malformed)?;
        let call = Self { body };
        call.check()?;
        // A number may be written longer than it must be, and bytes may follow. Such code would be
        // another function with the same meaning, and its result would not be found again.
        match call.encode()? == bytes {
            true => Ok(call),
            false => Err(CallError::Malformed),
        }
    }

    /// A function of PCM that is this call; its library is the module. O(length).
    ///
    /// # Errors
    /// None for a call that was made by [`new`](Self::new) or read.
    pub fn to_function(&self) -> Result<Function, CallError> {
        let code = self.encode()?;
        let libraries: Libraries = Some(self.module().library()).into_iter().collect();
        Ok(Function {
            code: code.into_iter().collect(),
            libraries,
        })
    }

    /// The call as bytes: up to [`MAX_CALL`].
    ///
    /// # Errors
    /// None for a call that was made by [`new`](Self::new) or read.
    pub fn encode(&self) -> Result<Vec<u8>, CallError> {
        let body = postcard::to_extend(&self.body, Vec::from([VERSION]));
        let bytes = body.map_err(|_| CallError::Malformed)?;
        match bytes.len() <= MAX_CALL {
            true => Ok(bytes),
            false => Err(CallError::TooLong(bytes.len())),
        }
    }

    /// The module.
    #[must_use]
    pub const fn module(&self) -> ModuleId {
        self.body.module
    }

    /// The name of the export.
    #[must_use]
    pub fn export(&self) -> &str {
        &self.body.export
    }

    /// What it is called with.
    #[must_use]
    pub fn arguments(&self) -> &[Argument] {
        &self.body.arguments
    }

    fn check(&self) -> Result<(), CallError> {
        let (name, arguments) = (self.export().len(), self.arguments().len());
        if name > MAX_EXPORT {
            return Err(CallError::Export(name));
        }
        if arguments > MAX_ARGUMENTS {
            return Err(CallError::Arguments);
        }
        Ok(())
    }
}

/// Why something is no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// It begins with the version of another encoding.
    #[error(
        "a call of version {0}, where this host reads {VERSION}: client and followers need the same release"
    )]
    Version(u8),
    /// It is no call.
    #[error("the bytes are no call: write them with `Call::encode`")]
    Malformed,
    /// The name of the export is too long; how many bytes it has.
    #[error(
        "the export's name has {0} bytes, where {MAX_EXPORT} may be: export it under a shorter one"
    )]
    Export(usize),
    /// There are too many arguments.
    #[error("more than {MAX_ARGUMENTS} arguments: put some of them into one `Argument::Bytes`")]
    Arguments,
    /// It is too long; how many bytes it has.
    #[error("the call has {0} bytes, where {MAX_CALL} may be: shorten its arguments")]
    TooLong(usize),
    /// The function's libraries are not the module alone.
    #[error(
        "the function's libraries must be that of module {0} alone: make it with `Call::to_function`"
    )]
    Libraries(ModuleId),
}
