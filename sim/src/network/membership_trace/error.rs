use std::io;

use thiserror::Error;

use super::HEADER;

/// An error in a membership trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MembershipTraceError {
    /// Reading failed.
    #[error("line {line} could not be read")]
    Io {
        /// The line, from 1.
        line: u64,
        /// The reason.
        source: io::Error,
    },
    /// The first line is not the header of this version.
    #[error("line 1: found `{found}`; expected `{HEADER}`, the only version this reader knows")]
    Header {
        /// The line found.
        found: String,
    },
    /// A line is too long to be an entry.
    #[error("line {line}: found more than {limit} bytes; expected a line feed before that")]
    TooLong {
        /// The line, from 1.
        line: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The file ends within a line.
    #[error("line {line}: found the end of the file; expected a line feed (is the file cut off?)")]
    CutOff {
        /// The line, from 1.
        line: u64,
    },
    /// A line has fewer or more fields than an entry.
    #[error(
        "line {line}: found {found} fields; expected 5, with one space between: time, observer, change, member, incarnation"
    )]
    Fields {
        /// The line, from 1.
        line: u64,
        /// The number found.
        found: usize,
    },
    /// A field with a wrong value.
    #[error("line {line}: the {field} is `{found}`; expected {expected}")]
    Field {
        /// The line, from 1.
        line: u64,
        /// The field.
        field: &'static str,
        /// The value found. Bytes that are not printable ASCII are escaped.
        found: String,
        /// The value expected.
        expected: &'static str,
    },
    /// An entry is older than the one before it.
    #[error(
        "line {line}: the time is {found}; expected at least {previous}, the time of the line before"
    )]
    BackInTime {
        /// The line, from 1.
        line: u64,
        /// The time, in µs.
        found: u64,
        /// The time of the line before, in µs.
        previous: u64,
    },
}
