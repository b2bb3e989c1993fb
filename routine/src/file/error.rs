//! Why a file was refused.

use alloc::string::String;

use thiserror::Error;

/// Why a file was refused: where, what was found, and the mend.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// It is no JSON, or has a key or value that is not known there.
    #[error("{}{why}", prefix(path))]
    Form {
        /// Where, as in `routines[2].CommandList[1].Priority`; empty at the top.
        path: String,
        /// What was found and what is expected, with line and column.
        why: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1; 0 at a line's end.
        column: usize,
    },
    /// What it says does not make sense.
    #[error("{}{fault}", prefix(path))]
    Meaning {
        /// Where, as in `routines[2].CommandList[1].Priority`; empty at the top.
        path: String,
        /// What was found, and the mend.
        fault: Fault,
    },
}

fn prefix(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        alloc::format!("{path}: ")
    }
}

/// What does not make sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A name without a letter.
    #[error("the name is empty: give one")]
    NoName,
    /// Two routines of one name.
    #[error("a routine is called {0:?} already: rename one of them")]
    SameRoutine(String),
    /// A device that is declared twice.
    #[error("device {0:?} is declared already: remove one of them")]
    SameDevice(String),
    /// A device that is not declared, in a file that declares devices.
    #[error("device {0:?} is not declared: add it to devices, or correct the name")]
    UnknownDevice(String),
    /// A trigger for no routine.
    #[error("there is no routine {0:?} in this file: add it to routines, or correct the name")]
    UnknownRoutine(String),
    /// A list without entries.
    #[error("the list is empty: give it an entry")]
    EmptyList,
    /// More commands than a hub can number.
    #[error("{0} commands are too many: split the routine")]
    TooManyCommands(usize),
    /// A time that is too long.
    #[error("{found} ms are too long: give at most {limit}")]
    TooLong {
        /// How many milliseconds were found.
        found: u64,
        /// How many there may be.
        limit: u64,
    },
    /// Commands that act too late.
    #[error(
        "the lateness of commands is {found} ms: give at most {limit}, and make queued commands expire"
    )]
    TooLate {
        /// How many milliseconds were found.
        found: u64,
        /// How many there may be: [`LONGEST_LATENESS`](crate::LONGEST_LATENESS).
        limit: u64,
    },
    /// A time that must not be zero.
    #[error("it is 0: give milliseconds above zero, or leave it out")]
    Zero,
    /// The undo that undoes nothing.
    #[error(
        "the undo state {0:?} equals the Action, so it undoes nothing: give another state, or leave it out"
    )]
    UndoIsAction(String),
    /// A hold that may be cut short where there is none.
    #[error(
        "preemptible is true and the command does not hold its device: give a hold_ms above zero, or leave it out"
    )]
    NoHold,
    /// Queued runs without a limit.
    #[error(
        "the mode is queued and there is no limit: give how many runs may be unfinished, from 1"
    )]
    NoLimit,
    /// A limit for no queue.
    #[error("a limit is only for the mode queued: remove it, or set mode to queued")]
    StrayLimit,
    /// A name that is too long for a key of runs.
    #[error(
        "the name has {found} bytes and may have {limit} in a routine with a mode: shorten it, or leave the mode out"
    )]
    LongName {
        /// How many it has.
        found: usize,
        /// How many it may have: [`LONGEST_KEY`](crate::LONGEST_KEY).
        limit: usize,
    },
    /// A cool-down of a button.
    #[error("a manual trigger does not cool down: remove cooldown_ms, or give another trigger")]
    StrayCoolDown,
    /// None of the keys of which one must be there, or several.
    #[error("{found} of the keys {keys} are there: give one")]
    OneOf {
        /// How many were found.
        found: usize,
        /// Which keys.
        keys: &'static str,
    },
    /// A comparison without a device.
    #[error("the comparison names no device: add DevID")]
    NoDevice,
    /// A device where none belongs.
    #[error(
        "DevID is only for comparisons: remove it, or compare with equal, not_equal, less or greater"
    )]
    StrayDevice,
    /// Words are not more or less.
    #[error("{0:?} is a word, and words are not more or less: give a number, or use equal")]
    WordOrder(String),
    /// It can never be true.
    #[error("device {device:?} cannot be {first:?} and {second:?} at once: use any, or remove one")]
    NeverTrue {
        /// Which device.
        device: String,
        /// One state.
        first: String,
        /// Another.
        second: String,
    },
    /// No time of day.
    #[error("{0:?} is not a time of day: write 06:30 or 06:30:15, from 00:00 to 23:59:59")]
    NoTime(String),
    /// A trigger that is none.
    #[error("manual is false: make it true, or remove the trigger")]
    NotManual,
    /// A time that is no whole number of milliseconds.
    #[error("{0} us is not a whole number of milliseconds: round it")]
    NotWhole(u64),
    /// A device that the catalogue does not have.
    #[error("device {0} has no name: add it to the catalogue")]
    NoDeviceName(selvedge_core::NodeId),
}
