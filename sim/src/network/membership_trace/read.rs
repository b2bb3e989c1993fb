use core::str::FromStr;
use std::io::{BufRead, Read};

use selvedge_core::{Incarnation, Member, NodeId, Time};

use super::{HEADER, KINDS, MembershipEntry, MembershipTrace, MembershipTraceError};

/// The longest entry has 83 bytes.
const LINE_LIMIT: usize = 128;

impl MembershipTrace {
    /// Reads a trace; the format is described [above](Self). Holds one line at a time in addition
    /// to the entries, 48 bytes each: if the source is not trusted, limit the bytes read, for
    /// instance with [`Read::take`].
    ///
    /// # Errors
    /// [`MembershipTraceError`] at the first line that is not in this format. It names the line,
    /// the value found and the value expected.
    pub fn read(from: impl BufRead) -> Result<Self, MembershipTraceError> {
        let mut lines = Lines {
            from,
            line: 0,
            text: Vec::with_capacity(LINE_LIMIT + 1),
        };
        if !lines.advance()? || lines.text != HEADER.as_bytes() {
            return Err(MembershipTraceError::Header {
                found: printable(&lines.text),
            });
        }
        let mut trace = Self::default();
        let mut previous = Time::ZERO;
        while lines.advance()? {
            let entry = parse(lines.line, &lines.text)?;
            if entry.at < previous {
                return Err(MembershipTraceError::BackInTime {
                    line: lines.line,
                    found: entry.at.0,
                    previous: previous.0,
                });
            }
            previous = entry.at;
            trace.entries.push(entry);
        }
        Ok(trace)
    }
}

struct Lines<R> {
    from: R,
    line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads the next line without its line feed; returns false at the end. Never reads more than
    /// the longest line.
    fn advance(&mut self) -> Result<bool, MembershipTraceError> {
        self.line += 1;
        let line = self.line;
        self.text.clear();
        self.from
            .by_ref()
            .take(LINE_LIMIT as u64 + 1)
            .read_until(b'\n', &mut self.text)
            .map_err(|source| MembershipTraceError::Io { line, source })?;
        match self.text.pop() {
            None => Ok(false),
            Some(b'\n') => Ok(true),
            Some(_) if self.text.len() >= LINE_LIMIT => Err(MembershipTraceError::TooLong {
                line,
                limit: LINE_LIMIT,
            }),
            Some(_) => Err(MembershipTraceError::CutOff { line }),
        }
    }
}

fn parse(line: u64, text: &[u8]) -> Result<MembershipEntry, MembershipTraceError> {
    let mut fields = text.split(|&byte| byte == b' ');
    let five = (
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
        fields.next(),
    );
    let (Some(at), Some(observer), Some(kind), Some(id), Some(incarnation), None) = five else {
        return Err(MembershipTraceError::Fields {
            line,
            found: text.split(|&byte| byte == b' ').count(),
        });
    };
    const BELOW_2_64: &str = "a number below 2^64, without sign and leading zeros";
    const BELOW_2_32: &str = "a number below 2^32, without sign and leading zeros";
    let at = number(line, "time", at, BELOW_2_64)?;
    let observer = number(line, "observer", observer, BELOW_2_64)?;
    let kind = KINDS
        .iter()
        .find(|(name, _)| name.as_bytes() == kind)
        .map(|&(_, kind)| kind)
        .ok_or_else(|| MembershipTraceError::Field {
            line,
            field: "change",
            found: printable(kind),
            expected: "joined, suspected, refuted, failed, left or confirmed",
        })?;
    let member = Member {
        id: NodeId(number(line, "member", id, BELOW_2_64)?),
        incarnation: Incarnation(number(line, "incarnation", incarnation, BELOW_2_32)?),
    };
    Ok(MembershipEntry {
        at: Time(at),
        observer: NodeId(observer),
        delta: kind(member),
    })
}

/// A number in its only form.
fn number<T: FromStr>(
    line: u64,
    field: &'static str,
    digits: &[u8],
    expected: &'static str,
) -> Result<T, MembershipTraceError> {
    let plain = digits.iter().all(u8::is_ascii_digit)
        && (digits.len() == 1 || digits.first() != Some(&b'0'));
    core::str::from_utf8(digits)
        .ok()
        .filter(|_| plain)
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| MembershipTraceError::Field {
            line,
            field,
            found: printable(digits),
            expected,
        })
}

fn printable(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
