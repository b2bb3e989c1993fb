//! Calls, which are the [`Function`]s of PCM in this crate: an export of a module, with arguments.

mod argument;
mod module_id;
mod stub;

use alloc::string::String;
use alloc::vec::Vec;

use selvedge_core::wire::items;
use selvedge_pcm::{Function, Libraries};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use argument::is_plain;
pub use argument::{Argument, ArgumentError, text_of};
pub use module_id::{ModuleId, ModuleIdError};
pub use stub::{Does, Stub, StubError};

/// The version of the encoding of a call without stubs, its first byte.
pub const VERSION: u8 = 1;

/// The version of the encoding of a call with stubs.
pub const VERSION_WITH_STUBS: u8 = 2;

/// The longest name in bytes, of an export and of each part of a stub.
pub const MAX_EXPORT: usize = 64;

/// The largest number of arguments of a call.
pub const MAX_ARGUMENTS: usize = 16;

/// The largest number of stubs of a call.
pub const MAX_STUBS: usize = 16;

/// The length of the longest encoded call, in bytes. A follower accepts at most
/// [`Config::code`](selvedge_pcm::follower::Config::code) of them.
pub const MAX_CALL: usize = 65_535;

/// A call of an export of a module.
///
/// Its encoding is [`VERSION`], then this in postcard: the module's SHA-256, the export's name, and
/// the arguments. A call with stubs is [`VERSION_WITH_STUBS`], the same, and the stubs in ascending
/// order. Each call has one encoding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    body: Body,
    stubs: Stubs,
}

/// The part after the arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Stubs(#[serde(with = "items")] Vec<Stub>);

/// The part after the version.
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
        // One more than the limit, so that an endless list ends.
        let arguments = arguments.into_iter().take(MAX_ARGUMENTS + 1).collect();
        let export = String::from(export);
        let body = Body {
            module,
            export,
            arguments,
        };
        let stubs = Stubs::default();
        let call = Self { body, stubs };
        call.check()?;
        call.encode()?;
        Ok(call)
    }

    /// The same call with these stubs, in any order, in place of its former ones.
    ///
    /// # Errors
    /// More stubs than [`MAX_STUBS`], two for one import, a name longer than [`MAX_EXPORT`], or a call
    /// longer than [`MAX_CALL`].
    pub fn with_stubs(mut self, stubs: impl IntoIterator<Item = Stub>) -> Result<Self, CallError> {
        self.stubs = Stubs(stubs.into_iter().take(MAX_STUBS + 1).collect());
        self.stubs.0.sort_unstable();
        self.check()?;
        self.encode()?;
        Ok(self)
    }

    /// The call of a function of PCM. O(length).
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode), and a module that is not the function's only
    /// library.
    pub fn from_function(function: &Function) -> Result<Self, CallError> {
        let call = Self::decode(&function.code)?;
        if *function.libraries != [call.module().library()] {
            return Err(CallError::Libraries(call.module()));
        }
        Ok(call)
    }

    /// Reads the output of [`encode`](Self::encode).
    ///
    /// # Errors
    /// Another version, bytes that are no call or not the encoding of one, or an exceeded limit of
    /// [`new`](Self::new) or [`with_stubs`](Self::with_stubs).
    pub fn decode(bytes: &[u8]) -> Result<Self, CallError> {
        if bytes.len() > MAX_CALL {
            return Err(CallError::TooLong(bytes.len()));
        }
        let (&version, rest) = bytes.split_first().ok_or(CallError::Malformed)?;
        let read = match version {
            VERSION => postcard::from_bytes(rest).map(|body| (body, Stubs::default())),
            VERSION_WITH_STUBS => postcard::from_bytes(rest),
            _ => return Err(CallError::Version(version)),
        };
        let (body, stubs) = read.map_err(|_| CallError::Malformed)?;
        let call = Self { body, stubs };
        call.check()?;
        // A number may be longer than necessary, bytes may follow, and a list of stubs may be
        // empty. Such code would be another function with the same meaning, and its remembered
        // result would not be found.
        match call.encode()? == bytes {
            true => Ok(call),
            false => Err(CallError::Malformed),
        }
    }

    /// A function of PCM for this call; its library is the module. O(length).
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
        let (body, stubs) = (&self.body, &self.stubs);
        let bytes = match stubs.0.is_empty() {
            true => postcard::to_extend(body, Vec::from([VERSION])),
            false => postcard::to_extend(&(body, stubs), Vec::from([VERSION_WITH_STUBS])),
        };
        let bytes = bytes.map_err(|_| CallError::Malformed)?;
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

    /// The arguments.
    #[must_use]
    pub fn arguments(&self) -> &[Argument] {
        &self.body.arguments
    }

    /// The stubs for missing imports, in ascending order.
    #[must_use]
    pub fn stubs(&self) -> &[Stub] {
        &self.stubs.0
    }

    fn check(&self) -> Result<(), CallError> {
        let (name, arguments) = (self.export().len(), self.arguments().len());
        if name > MAX_EXPORT {
            return Err(CallError::Export(name));
        }
        if arguments > MAX_ARGUMENTS {
            return Err(CallError::Arguments);
        }
        self.check_stubs()
    }

    fn check_stubs(&self) -> Result<(), CallError> {
        let stubs = self.stubs();
        if stubs.len() > MAX_STUBS {
            return Err(CallError::Stubs);
        }
        let mut names = stubs.iter().flat_map(|it| [&it.module, &it.name]);
        if let Some(long) = names.find(|it| it.len() > MAX_EXPORT) {
            return Err(CallError::Export(long.len()));
        }
        let path = |it: &Stub| (it.module.clone(), it.name.clone());
        match stubs.is_sorted_by(|one, next| path(one) < path(next)) {
            true => Ok(()),
            false => Err(CallError::StubTwice),
        }
    }
}

/// An error about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CallError {
    /// It begins with the version of another encoding; that version.
    #[error(
        "the call has version {0}, this host reads {VERSION} and {VERSION_WITH_STUBS}: client and \
         followers need the same release"
    )]
    Version(u8),
    /// It is no call.
    #[error("the bytes are no call: write them with `Call::encode`")]
    Malformed,
    /// The name of the export, or of a stub, is too long; its length in bytes.
    #[error("a name has {0} bytes, the limit is {MAX_EXPORT}: export it under a shorter one")]
    Export(usize),
    /// There are too many arguments.
    #[error("more than {MAX_ARGUMENTS} arguments: put some of them into one `Argument::Bytes`")]
    Arguments,
    /// There are too many stubs.
    #[error("more than {MAX_STUBS} stubs: merge the module with one that exports its imports")]
    Stubs,
    /// Two stubs replace the same import, or the stubs are not in order.
    #[error("two stubs of one import, or stubs that are not in order: give each once")]
    StubTwice,
    /// It is too long; its length in bytes.
    #[error("the call has {0} bytes, the limit is {MAX_CALL}: shorten its arguments")]
    TooLong(usize),
    /// The function has other libraries than the module.
    #[error(
        "the function must have the library of module {0} alone: make it with `Call::to_function`"
    )]
    Libraries(ModuleId),
}
