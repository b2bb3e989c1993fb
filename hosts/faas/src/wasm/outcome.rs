//! What a call comes to.

use alloc::vec::Vec;

use selvedge_pcm::Returned;
use thiserror::Error;

/// What a call has come to, and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// What it came to.
    pub outcome: Outcome,
    /// How much fuel it took: all of it where it ran out.
    pub fuel: u64,
    /// What it wrote into the log: up to [`Limits::log`](crate::Limits::log) bytes.
    pub log: Vec<u8>,
}

/// What a call comes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It returned this: up to [`Limits::result`](crate::Limits::result) bytes.
    Value(Vec<u8>),
    /// It returned nothing.
    Failed(Failure),
}

/// PCM agrees on a failure as on any value, by its kind. A follower has more of it for its log.
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

/// Why a call returned nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The code of the function is no [`Call`](crate::Call).
    #[error("the function's code is no call")]
    NoCall,
    /// The module is not here.
    #[error("the module is not here: load it first")]
    NoModule,
    /// The module has no function of this name.
    #[error("the module exports no function of this name")]
    NoExport,
    /// The function does not take these arguments, or returns what cannot be sent.
    #[error("the function does not take these arguments, or returns what cannot be sent")]
    WrongArguments,
    /// It did what WebAssembly forbids.
    #[error("it trapped: {0}")]
    Trapped(Trap),
    /// It took more than [`Limits::fuel`](crate::Limits::fuel).
    #[error("it took more fuel than it may")]
    OutOfFuel,
    /// It asked for more than [`Limits::memory`](crate::Limits::memory).
    #[error("it asked for more memory than it may have")]
    OutOfMemory,
    /// Its result has more than [`Limits::result`](crate::Limits::result).
    #[error("its result is longer than it may be")]
    ResultTooLong,
    /// The module imports what there is not and the call has no stub for, or the call has a stub for what
    /// the module does not import.
    #[error("the module imports what there is not, or a stub is for what it does not import")]
    NoImport,
    /// The host could not run it, or had not the memory that it may have: no fault of the function.
    #[error("the host could not run it, or lacks memory or time for it")]
    Host,
}

impl Failure {
    /// Whether every follower with the same limits fails alike. One that lacks the module, or whose host
    /// lacks memory or time, may be the only one.
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

    /// The kind that has this number.
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

/// What WebAssembly forbids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[non_exhaustive]
pub enum Trap {
    /// It said itself that it fails: `unreachable`, an abort, a panic.
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
    /// It called a function as one of another type.
    #[error("a call of a function of another type")]
    BadSignature,
    /// It divided by zero.
    #[error("a division by zero")]
    DivisionByZero,
    /// A whole number does not fit.
    #[error("a whole number that does not fit")]
    Overflow,
    /// It made a whole number of NaN.
    #[error("a whole number made of NaN")]
    NotANumber,
    /// More calls are under way in each other than [`MAX_CALLS`](super::MAX_CALLS), or their
    /// variables take more than [`MAX_STACK`](super::MAX_STACK).
    #[error("calls that are too deep")]
    StackOverflow,
    /// It asked for an argument that there is not.
    #[error("an argument that there is not")]
    NoArgument,
    /// It passed a pointer, and exports no memory to which it could lead.
    #[error("a pointer, without an exported memory")]
    NoMemory,
    /// It called an import that is a [`Stub`](crate::Stub).
    #[error("a call of an import that there is not")]
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
