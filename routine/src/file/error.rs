//! Errors of files.

use alloc::format;
use alloc::string::String;

use thiserror::Error;

/// The reason why a file was refused: its place, the fault, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// It is no text of its format.
    #[error("{}{why}{}", prefix(path), suffix(*line, *column))]
    Form {
        /// The place, as in `routines[2].CommandList[1].Priority`; empty at the top.
        path: String,
        /// The unexpected text, and the expected one.
        why: String,
        /// The line, from 1.
        line: usize,
        /// The column, in characters from 1.
        column: usize,
    },
    /// Its content does not make sense, or has a key or a value that is not known there.
    #[error("{}{fault}{}", prefix(path), suffix(*line, *column))]
    Meaning {
        /// The place, as in `routines[2].CommandList[1].Priority`; empty at the top.
        path: String,
        /// The fault, and the remedy.
        fault: Fault,
        /// The line, from 1; 0 where a home is written.
        line: usize,
        /// The column, in characters from 1; 0 where a home is written.
        column: usize,
    },
}

fn prefix(path: &str) -> String {
    if path.is_empty() {
        String::new()
    } else {
        format!("{path}: ")
    }
}

pub(super) fn suffix(line: usize, column: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(", at line {line} column {column}")
    }
}

/// A question with the name that was perhaps meant.
pub(super) fn perhaps(near: Option<&str>) -> String {
    near.map_or_else(String::new, |it| format!("did you mean {it:?}? else "))
}

/// A fault in the content of a file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// A key that does not belong there.
    #[error("there is no key {found:?} here: {}give one of {keys}", perhaps(near.as_deref()))]
    UnknownKey {
        /// The key.
        found: String,
        /// A similar known key.
        near: Option<String>,
        /// The known keys.
        keys: String,
    },
    /// A repeated key.
    #[error("the key {0:?} is there twice: remove one of them")]
    SameKey(String),
    /// A key that is missing.
    #[error("the key {0:?} is missing: add it")]
    NoKey(&'static str),
    /// A value of another kind.
    #[error("found {found}: give {wanted}")]
    Wrong {
        /// The value in the file.
        found: String,
        /// The expected value.
        wanted: &'static str,
    },
    /// A number that would be rounded.
    #[error("{0} is too long: give a number of up to 12 digits before the point and 3 behind it")]
    Inexact(String),
    /// A time below zero.
    #[error("{0} is below zero: give whole milliseconds from 0")]
    Negative(String),
    /// A name without a letter.
    #[error("the name is empty: give one")]
    NoName,
    /// A name or a word that is too long.
    #[error("it has {found} bytes and may have {limit}: shorten it")]
    LongWord {
        /// The number of bytes.
        found: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Two routines of one name.
    #[error("a routine is called {0:?} already: rename one of them")]
    SameRoutine(String),
    /// A device that is declared twice.
    #[error("device {0:?} is declared already: remove one of them")]
    SameDevice(String),
    /// A device that a list has twice.
    #[error("device {0:?} is there twice: remove one of them")]
    TwiceInList(String),
    /// A device that is not declared, in a file that declares devices.
    #[error("device {name:?} is not declared: {}add it to devices, or correct the name", perhaps(near.as_deref()))]
    UnknownDevice {
        /// The name.
        name: String,
        /// A similar name.
        near: Option<String>,
    },
    /// A group that the file does not have.
    #[error("there is no group {name:?} in this file: {}add it to groups, or correct the name", perhaps(near.as_deref()))]
    UnknownGroup {
        /// The name.
        name: String,
        /// A similar name.
        near: Option<String>,
    },
    /// A scene that the file does not have.
    #[error("there is no scene {name:?} in this file: {}add it to scenes, or correct the name", perhaps(near.as_deref()))]
    UnknownScene {
        /// The name.
        name: String,
        /// A similar name.
        near: Option<String>,
    },
    /// A trigger for no routine.
    #[error("there is no routine {name:?} in this file: {}add it to routines, or correct the name", perhaps(near.as_deref()))]
    UnknownRoutine {
        /// The name.
        name: String,
        /// A similar name.
        near: Option<String>,
    },
    /// A list without entries.
    #[error("the list is empty: give it an entry")]
    EmptyList,
    /// More commands than a hub can number.
    #[error("{0} commands are too many: split the routine")]
    TooManyCommands(usize),
    /// A file that is too large.
    #[error("the file has {found} bytes and may have {limit}: split it")]
    LargeFile {
        /// The number of bytes.
        found: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A file that becomes too large when its groups, scenes and repetitions are expanded.
    #[error(
        "written out, the file has more than {limit} commands and parts of conditions: split it"
    )]
    TooLarge {
        /// The limit, in commands and parts.
        limit: usize,
    },
    /// A time that is too long.
    #[error("{found} ms are too long: give at most {limit}")]
    TooLong {
        /// The value, in milliseconds.
        found: String,
        /// The limit, in milliseconds.
        limit: u64,
    },
    /// Commands that act too late.
    #[error(
        "the lateness of commands is {found} ms: give at most {limit}, and make queued commands expire"
    )]
    TooLate {
        /// The value, in milliseconds.
        found: u64,
        /// The limit, in milliseconds: [`LONGEST_LATENESS`](crate::LONGEST_LATENESS).
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
    /// A hold that may be cut short, in a command without a hold.
    #[error(
        "preemptible is true and the command does not hold its device: give a hold_ms above zero, or leave it out"
    )]
    NoHold,
    /// No mode of runs.
    #[error("{found:?} is no mode: {}give parallel, single, restart or queued", perhaps(near.as_deref()))]
    NoMode {
        /// The value in the file.
        found: String,
        /// A similar mode.
        near: Option<String>,
    },
    /// An invalid urgency.
    #[error("the urgency is {0}: give a whole number from 0 to 255")]
    Urgency(String),
    /// An invalid limit.
    #[error("the limit is {0}: give a whole number from 1 to 65535")]
    Limit(String),
    /// Queued runs without a limit.
    #[error(
        "the mode is queued and there is no limit: give how many runs may be unfinished, from 1"
    )]
    NoLimit,
    /// A limit for no queue.
    #[error("a limit is only for the mode queued: remove it, or set mode to queued")]
    StrayLimit,
    /// A cool-down of a button.
    #[error("a manual trigger does not cool down: remove cooldown_ms, or give another trigger")]
    StrayCoolDown,
    /// None or several of some keys, of which one must be given.
    #[error("{found} of the keys {keys} are there: give one")]
    OneOf {
        /// The number of keys found.
        found: usize,
        /// The keys.
        keys: &'static str,
    },
    /// A comparison without a device.
    #[error("the comparison names no device: add DevID, any_of, all_of or none_of")]
    NoDevice,
    /// A device where none belongs.
    #[error(
        "a device or a group is only for comparisons: remove it, or compare with equal, not_equal, less or greater"
    )]
    StrayDevice,
    /// Words are not more or less.
    #[error("{0:?} is a word, and words are not more or less: give a number, or use equal")]
    WordOrder(String),
    /// It can never be true.
    #[error("device {device:?} cannot be {first:?} and {second:?} at once: use any, or remove one")]
    NeverTrue {
        /// The device.
        device: String,
        /// A state.
        first: String,
        /// Another state.
        second: String,
    },
    /// A condition of too many parts, with those of the blocks in which the command stands.
    #[error(
        "the condition of a command has {found} parts here and may have {limit}: simplify it, or split the routine"
    )]
    LongCondition {
        /// The number of parts.
        found: usize,
        /// The limit, in parts: [`Clause::MOST`](crate::Clause::MOST).
        limit: usize,
    },
    /// A clause that is nested too deep.
    #[error("the clause is nested more than {limit} deep: nest it less")]
    DeepClause {
        /// The limit of the depth.
        limit: usize,
    },
    /// Each command evaluates its own condition, so the later ones would see the effect of an
    /// earlier one.
    #[error(
        "device {0:?} is commanded while later commands still ask about it: put the command to it last, or split the routine"
    )]
    AsksWhatItSets(String),
    /// A delay is the hold of the command before it.
    #[error(
        "a delay stands behind a command of the same list that must succeed and has no condition of its own: move it, or remove it"
    )]
    StrayDelay,
    /// No time of day.
    #[error(
        "{0:?} is not a time of day: write 06:30 or 06:30:15, from 00:00 to 23:59:59, or sunrise or sunset"
    )]
    NoTime(String),
    /// No day of the week.
    #[error("{0:?} is not a day of the week: give mon, tue, wed, thu, fri, sat or sun")]
    NoDay(String),
    /// A key that only a time of day has.
    #[error("{0} belongs to a trigger with at: remove it")]
    OnlyAt(&'static str),
    /// A key that only sunrise and sunset have.
    #[error("offset_ms belongs to sunrise and sunset: remove it, or write another time")]
    OnlySun,
    /// A time before or after sunrise or sunset that is too long.
    #[error("the offset is {0} ms: give whole milliseconds from -43200000 to 43200000, half a day")]
    Offset(String),
    /// Sunrise and sunset without a place.
    #[error(
        "the file has no location, so sunrise and sunset are unknown: add location with latitude and longitude"
    )]
    NoLocation,
    /// No place on Earth.
    #[error(
        "{found} is no {what}: give degrees from -{limit} to {limit}, with 3 digits behind the point at most"
    )]
    NoDegrees {
        /// The value in the file.
        found: String,
        /// `latitude` or `longitude`.
        what: &'static str,
        /// The largest value.
        limit: i64,
    },
    /// An invalid count of repetitions.
    #[error("the count is {0}: give a whole number from 1 to 65535")]
    NoCount(String),
    /// A trigger with `manual: false`, which is no trigger.
    #[error("manual is false: make it true, or remove the trigger")]
    NotManual,
    /// A time that is no whole number of milliseconds.
    #[error("{0} us is not a whole number of milliseconds: round it")]
    NotWhole(u64),
    /// A device that the catalogue does not have.
    #[error("device {0} has no name: add it to the catalogue")]
    NoDeviceName(selvedge_core::NodeId),
    /// A fault that a host finds in its own part of the file (`section`, feature `serde`).
    #[error("{0}")]
    OfHost(String),
    /// A construct of another system that has no equal in routines.
    #[error("{what} is not understood: {mend}")]
    NotUnderstood {
        /// The construct.
        what: String,
        /// The remedy.
        mend: &'static str,
    },
}
