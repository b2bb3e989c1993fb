//! Server-sent events: lines of bytes that arrive cut anywhere.

use std::fmt::{self, Debug};

use hyper::header::CONTENT_TYPE;

use crate::agent::EVENTS;
use crate::connection::Answer;
use crate::{Agent, Error};

/// Reports of an agent, until the connection ends. Dropping it ends them.
///
/// Its agent sends a comment each 5 s, but its silence is not an error here: a program that must notice it
/// gives [`next`](Self::next) a time limit.
pub struct Events<T> {
    stream: Stream,
    parse: Parse<T>,
}

/// Makes a report of an event's name and data. `None`: an event of a later version of the API.
pub(crate) type Parse<T> = fn(&str, &[u8]) -> Result<Option<T>, Error>;

/// The events of one answer.
#[derive(Debug)]
pub(crate) struct Stream {
    answer: Answer,
    lines: Lines,
}

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

/// Bytes on the way to events.
#[derive(Debug, Default)]
struct Lines {
    bytes: Vec<u8>,
    /// The first bytes that belong to events that were returned.
    used: usize,
    /// The bytes that have no end of a line behind `used`.
    searched: usize,
    name: String,
    data: Vec<u8>,
}

impl<T> Events<T> {
    pub(crate) const fn new(stream: Stream, parse: Parse<T>) -> Self {
        Self { stream, parse }
    }

    /// The next report. Dropping the future loses none.
    ///
    /// # Errors
    /// [`Error::Lost`] when the connection ends; [`Error::TooLong`] and [`Error::Misbehaviour`]. No report comes
    /// after an error: ask for new events, and list members or entries again.
    pub async fn next(&mut self) -> Result<T, Error> {
        loop {
            let event = self.stream.next().await?;
            if let Some(report) = (self.parse)(&event.name, &event.data)? {
                return Ok(report);
            }
        }
    }
}

impl<T> Debug for Events<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(answer: Answer) -> Result<Self, Error> {
        let kind = answer.headers.get(CONTENT_TYPE);
        if !kind.is_some_and(|it| it.as_bytes().starts_with(EVENTS.as_bytes())) {
            return Err(Error::Misbehaviour("an answer without events".to_owned()));
        }
        let lines = Lines::default();
        Ok(Self { answer, lines })
    }

    pub(crate) async fn next(&mut self) -> Result<Event, Error> {
        loop {
            if let Some(event) = self.ready()? {
                return Ok(event);
            }
            self.read().await?;
        }
    }

    /// The next event of the bytes that were read.
    pub(crate) fn ready(&mut self) -> Result<Option<Event>, Error> {
        self.lines.next()
    }

    /// Reads some bytes, which may be a comment.
    pub(crate) async fn read(&mut self) -> Result<(), Error> {
        let bytes = self.answer.bytes().await?;
        let bytes = bytes.ok_or_else(|| Error::lost("the events ended"))?;
        self.lines.push(&bytes);
        Ok(())
    }
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.used);
        self.used = 0;
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            let rest = self.bytes.get(self.used..).unwrap_or_default();
            let behind = rest.get(self.searched..).unwrap_or_default();
            let Some(end) = behind.iter().position(|it| *it == b'\n') else {
                self.searched = rest.len();
                return match rest.len() + self.data.len() > Agent::LONGEST {
                    true => Err(Error::TooLong(Agent::LONGEST)),
                    false => Ok(None),
                };
            };
            let line = rest.get(..self.searched + end).unwrap_or_default();
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let event = match line.is_empty() {
                true => Event::taken(&mut self.name, &mut self.data),
                false => field(line, &mut self.name, &mut self.data).map(|()| None)?,
            };
            self.used += self.searched + end + 1;
            self.searched = 0;
            if event.is_some() {
                return Ok(event);
            }
        }
    }
}

impl Event {
    /// The event that an empty line ends, if it has data.
    fn taken(name: &mut String, data: &mut Vec<u8>) -> Option<Self> {
        let (name, mut data) = (core::mem::take(name), core::mem::take(data));
        // Each line of data ends with one.
        data.pop().map(|_| Self { name, data })
    }
}

/// Stores a line in the fields of an event. Comments and other fields are ignored.
fn field(line: &[u8], name: &mut String, data: &mut Vec<u8>) -> Result<(), Error> {
    let (field, value) = match line.iter().position(|it| *it == b':') {
        Some(colon) => line.split_at(colon),
        None => (line, &b":"[..]),
    };
    let value = value.get(1..).unwrap_or_default();
    let value = value.strip_prefix(b" ").unwrap_or(value);
    match field {
        b"event" => *name = String::from_utf8_lossy(value).into_owned(),
        b"data" if data.len() + value.len() >= Agent::LONGEST => {
            return Err(Error::TooLong(Agent::LONGEST));
        }
        b"data" => {
            data.extend_from_slice(value);
            data.push(b'\n');
        }
        _ => {}
    }
    Ok(())
}
