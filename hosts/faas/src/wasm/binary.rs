//! Changes to a module's bytes before the interpreter reads them.
//!
//! The interpreter runs a start function to its end, without regard to slices. So it becomes an
//! export, which is called like any other. And the interpreter does not count local variables.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::ops::Range;

use super::limits::MAX_LOCALS;

/// The export that the start function becomes. A module that already has an export of this name is
/// refused, because two exports would have one name.
pub(super) const START: &str = "selvedge:start";

const EXPORTS: u8 = 7;
const FIRST_AFTER_EXPORTS: u8 = 8;
const START_SECTION: u8 = 8;
const CODE: u8 = 10;
const CUSTOM: u8 = 0;

/// A flaw of a module's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// The length of a section is wrong.
    Malformed,
    /// A function has this many local variables.
    Locals(u64),
}

/// Returns true if these bytes have a module's head, and sections. O(length); the contents of
/// sections are checked when the module is compiled.
pub(crate) fn is_module(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\0asm\x01\0\0\0") && prepare(bytes).is_ok()
}

/// The bytes with the start function as an export, if there is one. O(length).
pub(super) fn prepare(bytes: &[u8]) -> Result<Cow<'_, [u8]>, Flaw> {
    let sections = sections(bytes).ok_or(Flaw::Malformed)?;
    let mut start = None;
    let mut last = CUSTOM;
    for (id, range) in sections.iter().filter(|(id, _)| *id != CUSTOM) {
        // The interpreter no longer sees the start section, so its place is checked here.
        let is_late = *id == START_SECTION && last >= START_SECTION;
        let is_early = start.is_some() && *id <= START_SECTION;
        if is_late || is_early {
            return Err(Flaw::Malformed);
        }
        last = *id;
        let mut reader = Reader::of(bytes, range.clone()).ok_or(Flaw::Malformed)?;
        match *id {
            CODE => check_locals(&mut reader)?,
            START_SECTION => {
                start = Some(reader.number().ok_or(Flaw::Malformed)?);
                if !reader.is_empty() {
                    return Err(Flaw::Malformed);
                }
            }
            _ => {}
        }
    }
    let Some(start) = start else {
        return Ok(Cow::Borrowed(bytes));
    };
    with_export(bytes, &sections, start)
        .map(Cow::Owned)
        .ok_or(Flaw::Malformed)
}

/// The module without its start section, and with an export of this function added.
fn with_export(bytes: &[u8], sections: &[(u8, Range<usize>)], start: u32) -> Option<Vec<u8>> {
    let has_exports = sections.iter().any(|(id, _)| *id == EXPORTS);
    let mut out = bytes.get(..8)?.to_vec();
    let mut is_written = false;
    for (id, range) in sections {
        let content = bytes.get(range.clone())?;
        // Sections have an order, except custom ones.
        let comes_later = *id != CUSTOM && *id >= FIRST_AFTER_EXPORTS;
        if !has_exports && comes_later && !is_written {
            write_exports(&mut out, 0, &[], start)?;
            is_written = true;
        }
        match *id {
            START_SECTION => {}
            EXPORTS if !is_written => {
                let mut reader = Reader::of(bytes, range.clone())?;
                let count = reader.number()?;
                write_exports(&mut out, count, reader.rest()?, start)?;
                is_written = true;
            }
            _ => write_section(&mut out, *id, content)?,
        }
    }
    is_written.then_some(out)
}

fn write_exports(out: &mut Vec<u8>, count: u32, entries: &[u8], start: u32) -> Option<()> {
    let mut content = Vec::new();
    write_number(&mut content, count.checked_add(1)?);
    content.extend(entries);
    write_number(&mut content, u32::try_from(START.len()).ok()?);
    content.extend(START.as_bytes());
    content.push(0); // The kind: a function.
    write_number(&mut content, start);
    write_section(out, EXPORTS, &content)
}

fn write_section(out: &mut Vec<u8>, id: u8, content: &[u8]) -> Option<()> {
    out.push(id);
    write_number(out, u32::try_from(content.len()).ok()?);
    out.extend(content);
    Some(())
}

fn check_locals(code: &mut Reader<'_>) -> Result<(), Flaw> {
    for _ in 0..code.number().ok_or(Flaw::Malformed)? {
        let len = code.number().ok_or(Flaw::Malformed)?;
        let mut body = code.take(len).ok_or(Flaw::Malformed)?;
        let mut locals = 0_u64;
        for _ in 0..body.number().ok_or(Flaw::Malformed)? {
            locals += u64::from(body.number().ok_or(Flaw::Malformed)?);
            // The type. Types of more than one byte are refused later.
            body.byte().ok_or(Flaw::Malformed)?;
        }
        if locals > u64::from(MAX_LOCALS) {
            return Err(Flaw::Locals(locals));
        }
    }
    Ok(())
}

/// The range of each section's content.
fn sections(bytes: &[u8]) -> Option<Vec<(u8, Range<usize>)>> {
    let mut reader = Reader::of(bytes, 8..bytes.len())?;
    let mut sections = Vec::new();
    while !reader.is_empty() {
        let id = reader.byte()?;
        let len = reader.number()?;
        let content = reader.take(len)?;
        sections.push((id, content.at..content.end));
    }
    Some(sections)
}

fn write_number(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A reader from `at` up to `end`.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Reader<'a> {
    fn of(bytes: &'a [u8], range: Range<usize>) -> Option<Self> {
        bytes.get(range.clone())?;
        let (at, end) = (range.start, range.end);
        Some(Self { bytes, at, end })
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at..self.end)?.first()?;
        self.at += 1;
        Some(byte)
    }

    /// A whole number of 32 bits, in LEB128.
    fn number(&mut self) -> Option<u32> {
        let mut number = 0_u64;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number).ok();
            }
        }
        None
    }

    fn take(&mut self, len: u32) -> Option<Self> {
        let end = self.at.checked_add(usize::try_from(len).ok()?)?;
        if end > self.end {
            return None;
        }
        let taken = Self::of(self.bytes, self.at..end);
        self.at = end;
        taken
    }

    fn rest(&self) -> Option<&'a [u8]> {
        self.bytes.get(self.at..self.end)
    }

    const fn is_empty(&self) -> bool {
        self.at >= self.end
    }
}
