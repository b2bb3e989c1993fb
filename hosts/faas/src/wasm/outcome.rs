//! Outcomes of calls.

use alloc::vec::Vec;

use selvedge_pcm::Returned;
use thiserror::Error;

/// The outcome of a call, and its costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The outcome.
    pub outcome: Outcome,
    /// The fuel that it took: all of it if it ran out.
    pub fuel: u64,
    /// Its log: up to [`Limits::log`](crate::Limits::log) bytes.
    pub log: Vec<u8>,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It returned this: up to [`Limits::result`](crate::Limits::result) bytes.
    Value(Vec<u8>),
    /// It returned nothing.
    Failed(Failure),
}

/// PCM agrees on a failure as on any value, by its kind. A follower's log has more details.
impl From<Outcome> for Returned {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Value(value) => Self::Value(value.into_iter().collect()),
            Outcome::Failed(why) => Self::Failed(why.into()),
        }
    }
}

impl From<Failure> for selvedge_pcm::Failure {
    fn from(why: Failure) -> Self {
        match why {
            Failure::NoCall | Failure::NoExport | Failure::NoImport | Failure::WrongArguments => {
                Self::NoFunction
            }
            Failure::NoModule => Self::NoLibrary,
            Failure::Trapped(_) => Self::Trapped,
            Failure::OutOfFuel => Self::Time,
            Failure::OutOfMemory => Self::Memory,
            Failure::ResultTooLong => Self::Result,
            Failure::Host => Self::Host,
        }
    }
}

/// The reason why a call returned nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The code of the function is no [`Call`](crate::Call).
    #[error("the function's code is no call")]
    NoCall,
    /// The host does not have the module.
    #[error("the module is not here: load it first")]
    NoModule,
    /// The module has no function of this name.
    #[error("the module exports no function of this name")]
    NoExport,
    /// The function does not take these arguments, or returns values that cannot be sent.
    #[error("the function does not take these arguments, or returns values that cannot be sent")]
    WrongArguments,
    /// It did something that WebAssembly forbids.
    #[error("it trapped: {0}")]
    Trapped(Trap),
    /// It took more than [`Limits::fuel`](crate::Limits::fuel).
    #[error("it took more fuel than the limit")]
    OutOfFuel,
    /// It requested more than [`Limits::memory`](crate::Limits::memory).
    #[error("it requested more memory than the limit")]
    OutOfMemory,
    /// Its result has more than [`Limits::result`](crate::Limits::result).
    #[error("its result is longer than the limit")]
    ResultTooLong,
    /// The module has an import that neither the host has nor a stub replaces, or the call has a
    /// stub for something that the module does not import.
    #[error("an import of the module is missing and has no stub, or a stub is not for an import")]
    NoImport,
    /// The host could not run it, or lacked memory within the limit: no fault of the function.
    #[error("the host could not run it, or lacks memory or time for it")]
    Host,
}

impl Failure {
    /// Returns true if every follower with the same limits fails with the same kind. A follower
    /// that lacks the module, or whose host lacks memory or time, may be the only one to fail.
    #[must_use]
    pub const fn is_agreed(self) -> bool {
        !matches!(self, Self::NoModule | Self::Host)
    }

    /// A number for the kind, from 1, that later versions keep.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::NoCall => 1,
            Self::NoModule => 2,
            Self::NoExport => 3,
            Self::WrongArguments => 4,
            Self::OutOfFuel => 5,
            Self::OutOfMemory => 6,
            Self::ResultTooLong => 7,
            Self::NoImport => 8,
            Self::Host => 9,
            Self::Trapped(trap) => 16 + trap as u8,
        }
    }

    /// The kind with this number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        let traps = Trap::ALL.into_iter().map(Self::Trapped);
        let others = [
            Self::NoCall,
            Self::NoModule,
            Self::NoExport,
            Self::WrongArguments,
            Self::OutOfFuel,
            Self::OutOfMemory,
            Self::ResultTooLong,
            Self::NoImport,
            Self::Host,
        ];
        let mut all = others.into_iter().chain(traps);
        all.find(|it| it.code() == code)
    }
}

/// An operation that WebAssembly forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Trap {
    /// It failed on purpose: `unreachable`, an abort, a panic.
    #[error("unreachable code was reached")]
    Unreachable,
    /// It reached beyond its memory.
    #[error("an address beyond the memory")]
    MemoryOutOfBounds,
    /// It reached beyond a table.
    #[error("an index beyond the table")]
    TableOutOfBounds,
    /// It called an element of a table that is null.
    #[error("a call of an element that is null")]
    NullCall,
    /// It called a function with another type than it has.
    #[error("a call of a function of another type")]
    BadSignature,
    /// It divided by zero.
    #[error("a division by zero")]
    DivisionByZero,
    /// A whole number does not fit.
    #[error("a whole number that does not fit")]
    Overflow,
    /// It converted NaN to a whole number.
    #[error("a whole number made of NaN")]
    NotANumber,
    /// Calls are nested deeper than [`MAX_CALLS`](super::MAX_CALLS), or their variables take more
    /// than [`MAX_STACK`](super::MAX_STACK).
    #[error("calls that are too deep")]
    StackOverflow,
    /// It read an argument that does not exist.
    #[error("an argument that does not exist")]
    NoArgument,
    /// It passed a pointer, and exports no memory for it.
    #[error("a pointer, without an exported memory")]
    NoMemory,
    /// It called an import that is a [`Stub`](crate::Stub).
    #[error("a call of a missing import")]
    Stub,
}

impl Trap {
    const ALL: [Self; 12] = [
        Self::Unreachable,
        Self::MemoryOutOfBounds,
        Self::TableOutOfBounds,
        Self::NullCall,
        Self::BadSignature,
        Self::DivisionByZero,
        Self::Overflow,
        Self::NotANumber,
        Self::StackOverflow,
        Self::NoArgument,
        Self::NoMemory,
        Self::Stub,
    ];
}
