//! YAML to a tree and back. Feature `yaml`.
//!
//! The events come from `saphyr-parser`: it is maintained, is no_std, has no unsafe code of C
//! behind it, and reports the place of each event. A crate that reads YAML to serde's types
//! (`serde_norway` and other forks of the archived `serde_yaml`, `serde-saphyr`) would neither
//! report the place of a key nor accept as little of the language as a file of routines needs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, StrInput};

use super::FileError;
use super::json::quote;
use super::tree::{DEEPEST, Data, Entry, Mark, Node, short};

/// Reads one document. Anchors, aliases and tags are refused, so a tree is no larger than its text.
///
/// Scalars are those of YAML 1.2's core schema, decimal numbers alone: `on` and `yes` are words.
pub(super) fn parse(text: &str) -> Result<Node, FileError> {
    let mut reader = Reader {
        parser: Parser::new_from_str(text),
    };
    let (event, mark) = reader.next()?;
    debug_assert!(matches!(event, Event::StreamStart), "a stream begins so");
    let (event, _) = reader.next()?;
    if matches!(event, Event::StreamEnd) {
        return Ok(Node {
            data: Data::Null,
            mark,
        });
    }
    let (event, mark) = reader.next()?;
    let node = reader.node(event, mark, 0)?;
    // The end of the document.
    reader.next()?;
    match reader.next()? {
        (Event::StreamEnd, _) => Ok(node),
        (_, mark) => Err(wrong(
            mark,
            "a second document begins here: leave one".into(),
        )),
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Mark), FileError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let mark = Mark {
                    line: span.start.line(),
                    column: span.start.col() + 1,
                };
                Ok((event, mark))
            }
            Some(Err(error)) => Err(refusal(&error)),
            None => Err(wrong(
                Mark::default(),
                "the file ends early: complete it".into(),
            )),
        }
    }

    /// Reads a node, as deep on the stack as lists and maps are nested, up to [`DEEPEST`].
    fn node(&mut self, event: Event<'a>, mark: Mark, depth: usize) -> Result<Node, FileError> {
        if depth > DEEPEST {
            return Err(wrong(
                mark,
                format!("lists and maps are nested more than {DEEPEST} deep: nest them less"),
            ));
        }
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.clone()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor, tag.clone())
            }
            Event::Alias(anchor) => (*anchor, None),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => (0, None),
        };
        if anchor > 0 {
            let why = "anchors and aliases are not read: write out what is meant";
            return Err(wrong(mark, why.into()));
        }
        if let Some(tag) = tag {
            let tag = short(&tag.to_string());
            return Err(wrong(
                mark,
                format!("the tag {tag:?} is not read: remove it"),
            ));
        }
        let data = match event {
            Event::Scalar(text, ScalarStyle::Plain, ..) => plain(&text, mark)?,
            Event::Scalar(text, ..) => Data::Word(text.into_owned()),
            Event::SequenceStart(..) => self.list(depth)?,
            Event::MappingStart(..) => self.map(depth)?,
            Event::Alias(_)
            | Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => {
                return Err(wrong(mark, "nothing stands here: give a value".into()));
            }
        };
        Ok(Node { data, mark })
    }

    fn list(&mut self, depth: usize) -> Result<Data, FileError> {
        let mut nodes = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => {
                    nodes.shrink_to_fit();
                    return Ok(Data::List(nodes));
                }
                (event, mark) => nodes.push(self.node(event, mark, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Data, FileError> {
        let mut entries = Vec::new();
        loop {
            let (event, mark) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                entries.shrink_to_fit();
                return Ok(Data::Map(entries));
            }
            let Event::Scalar(text, _, 0, None) = event else {
                return Err(wrong(mark, "a key that is no word: give a word".into()));
            };
            let key = text.into_owned();
            let (event, at) = self.next()?;
            let value = self.node(event, at, depth + 1)?;
            entries.push(Entry { key, mark, value });
        }
    }
}

/// The value of a scalar without quotes.
fn plain(text: &str, mark: Mark) -> Result<Data, FileError> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        _ if is_decimal(text) => {
            let digits = text.trim_start_matches(['-', '+']);
            let is_octal = digits.len() > 1
                && digits.starts_with('0')
                && digits.bytes().all(|it| it.is_ascii_digit());
            if is_octal {
                let why = format!(
                    "{} has a 0 in front: remove it, or quote it for a word",
                    short(text)
                );
                return Err(wrong(mark, why));
            }
            Data::Number(text.into())
        }
        _ if is_odd(text) => {
            let text = short(text);
            let why = format!(
                "{text} is a number in YAML: write it as a decimal number, or quote it for a word"
            );
            return Err(wrong(mark, why));
        }
        _ => Data::Word(text.into()),
    })
}

/// Returns true for a decimal number of the core schema.
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (number, power) = match unsigned.split_once(['e', 'E']) {
        Some((number, power)) => (
            number,
            Some(power.strip_prefix(['-', '+']).unwrap_or(power)),
        ),
        None => (unsigned, None),
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    let has_digits = !whole.is_empty() || !part.is_empty();
    let is_power = power.is_none_or(|it| !it.is_empty() && are_digits(it));
    has_digits && are_digits(whole) && are_digits(part) && is_power
}

/// Returns true for another number of the core schema.
fn is_odd(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let with = |prefix: &str, radix: u32| {
        let digits = text.strip_prefix(prefix).filter(|it| !it.is_empty());
        digits.is_some_and(|it| it.chars().all(|it| it.is_digit(radix)))
    };
    unsigned.eq_ignore_ascii_case(".inf")
        || text.eq_ignore_ascii_case(".nan")
        || with("0x", 16)
        || with("0o", 8)
}

fn refusal(error: &ScanError) -> FileError {
    let mark = Mark {
        line: error.marker().line(),
        column: error.marker().col() + 1,
    };
    wrong(
        mark,
        format!("this is no YAML ({}): mend it", short(error.info())),
    )
}

const fn wrong(mark: Mark, why: String) -> FileError {
    FileError::Form {
        path: String::new(),
        why,
        line: mark.line,
        column: mark.column,
    }
}

/// Writes a value as text: keys plain where possible, words in quotes, two spaces for each level.
pub(super) fn print(node: &Node, indent: usize, out: &mut String) {
    match &node.data {
        Data::Null => out.push_str("null"),
        Data::Bool(it) => out.push_str(if *it { "true" } else { "false" }),
        Data::Number(text) => out.push_str(text),
        Data::Word(text) => quote(text, out),
        Data::List(nodes) if nodes.is_empty() => out.push_str("[]"),
        Data::Map(entries) if entries.is_empty() => out.push_str("{}"),
        Data::List(nodes) => {
            for (nth, node) in nodes.iter().enumerate() {
                line(nth, indent, out);
                out.push_str("- ");
                print(node, indent + 1, out);
            }
        }
        Data::Map(entries) => {
            for (nth, entry) in entries.iter().enumerate() {
                line(nth, indent, out);
                let key = entry.key.as_str();
                let is_plain = plain(key, Mark::default()) == Ok(Data::Word(key.into()))
                    && key
                        .bytes()
                        .all(|it| it.is_ascii_alphanumeric() || it == b'_');
                if is_plain {
                    out.push_str(key);
                } else {
                    quote(key, out);
                }
                let is_block = match &entry.value.data {
                    Data::List(nodes) => !nodes.is_empty(),
                    Data::Map(entries) => !entries.is_empty(),
                    Data::Null | Data::Bool(_) | Data::Number(_) | Data::Word(_) => false,
                };
                if is_block {
                    out.push_str(":\n");
                    out.extend(core::iter::repeat_n("  ", indent + 1));
                    print(&entry.value, indent + 1, out);
                } else {
                    out.push_str(": ");
                    print(&entry.value, indent + 1, out);
                }
            }
        }
    }
}

/// Begins a line; the first entry stands where its list or map begins.
fn line(nth: usize, indent: usize, out: &mut String) {
    if nth > 0 {
        out.push('\n');
        out.extend(core::iter::repeat_n("  ", indent));
    }
}
