//! What one file says about the nodes that wrote it in turns, and what they said about waiting.

use core::fmt;
use std::collections::BTreeMap;

use selvedge_camera::Token;
use selvedge_core::{Member, NodeId, Span, Time};

/// One write: a line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The node that wrote.
    pub node: NodeId,
    /// With which token.
    pub token: Token,
    /// When it began, by the common clock.
    pub start: Time,
    /// When it ended; nothing when the line breaks off.
    pub end: Option<Time>,
}

/// The whole file, and what the writers counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// The lines, in the order of the file.
    pub writes: Vec<Write>,
    /// Lines that are none: two wrote at once, or the file could not be written.
    pub garbled: usize,
    /// How long nodes waited for their turns, those included that waited still in the end.
    pub waits: Vec<Span>,
    /// How often too few nodes could be reached to get a turn.
    pub refused: usize,
    /// Writes that the file refused, because it had seen a higher token.
    pub stale: usize,
}

impl Write {
    /// The beginning of the line, which is in the file while the node writes.
    #[must_use]
    pub fn beginning(&self) -> String {
        let Token { number, by: holder } = self.token;
        let Member { id, incarnation } = holder;
        format!(
            "node {} token {number} {id} {} start {}",
            self.node, incarnation.0, self.start.0
        )
    }

    /// The rest of it.
    #[must_use]
    pub fn ending(end: Time) -> String {
        format!(" end {}\n", end.0)
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let is = |at: usize, word: &str| words.get(at) == Some(&word);
        if !(is(0, "node") && is(2, "token") && is(6, "start")) {
            return None;
        }
        let life = u32::try_from(number(5)?).ok()?;
        let write = Self {
            node: NodeId(number(1)?),
            token: Token {
                number: number(3)?,
                by: Member::new(number(4)?, life),
            },
            start: Time(number(7)?),
            end: None,
        };
        match words.len() {
            8 => Some(write),
            10 if is(8, "end") => Some(Self {
                end: Some(Time(number(9)?)),
                ..write
            }),
            _ => None,
        }
    }
}

impl Turns {
    /// Reads the file.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut turns = Self::default();
        for line in text.lines() {
            match Write::parse(line) {
                Some(write) => turns.writes.push(write),
                None => turns.garbled += 1,
            }
        }
        turns
    }

    /// How many writes were under way when another one began, lines that nobody can read included.
    /// `down`: when nodes crashed, which ends what they wrote. A line of another node that breaks
    /// off counts, too.
    #[must_use]
    pub fn overlaps(&self, down: &BTreeMap<NodeId, Time>) -> usize {
        let end = |write: &Write| write.end.or_else(|| down.get(&write.node).copied());
        let is_bad = |(write, next): (&Write, Option<&Write>)| match (end(write), next) {
            (None, _) => true,
            (Some(end), Some(next)) => next.start < end || end < write.start,
            (Some(end), None) => end < write.start,
        };
        let next = self.writes.iter().skip(1).map(Some).chain([None]);
        let bad = self.writes.iter().zip(next).filter(|&pair| is_bad(pair));
        self.garbled + bad.count()
    }

    /// How many writes have a token that is not above that of the line before.
    #[must_use]
    pub fn falls(&self) -> usize {
        let pairs = self.writes.iter().zip(self.writes.iter().skip(1));
        pairs.filter(|(one, next)| next.token <= one.token).count()
    }

    /// How many of these nodes did not begin to write from `since` on.
    #[must_use]
    pub fn missing(&self, nodes: impl Iterator<Item = u64>, since: Time) -> usize {
        let writes = self.writes.iter().filter(|write| write.start >= since);
        let wrote = |node: u64| writes.clone().any(|write| write.node.0 == node);
        nodes.filter(|&node| !wrote(node)).count()
    }

    /// How long nodes waited; `None` when nobody ever got a turn or waited for one.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        Some(Waiting {
            min: *waits.first()?,
            median: *waits.get(waits.len() / 2)?,
            max: *waits.last()?,
        })
    }
}

/// The shortest wait, the usual one, and the longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The shortest.
    pub min: Span,
    /// As many were longer as shorter.
    pub median: Span,
    /// The longest.
    pub max: Span,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |span: Span| span.0.div_ceil(1_000);
        let (min, median, max) = (millis(self.min), millis(self.median), millis(self.max));
        write!(f, "min {min} ms, median {median} ms, max {max} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(node: u64, number: u64, start: u64, end: Option<u64>) -> Write {
        let holder = Member::new(node, 2);
        Write {
            node: holder.id,
            token: Token { number, by: holder },
            start: Time(start),
            end: end.map(Time),
        }
    }

    fn file(writes: &[Write]) -> String {
        let lines = writes.iter().map(|write| {
            let ending = write.end.map_or("\n".to_owned(), Write::ending);
            write.beginning() + &ending
        });
        lines.collect()
    }

    #[test]
    fn lines_return_as_they_were_written() {
        let writes = [write(3, 1, 10, Some(20)), write(4, 2, 30, None)];
        let turns = Turns::read(&file(&writes));
        assert_eq!((&turns.writes[..], turns.garbled), (&writes[..], 0));
        // Two that write at once leave lines that are none.
        let both = writes[0].beginning() + &writes[1].beginning() + &Write::ending(Time(9));
        assert_eq!(Turns::read(&both).garbled, 1);
        assert_eq!(Turns::read(" end 20\n").garbled, 1);
    }

    #[test]
    fn overlaps_falling_tokens_and_missing_nodes_are_found() {
        let good = [
            write(3, 1, 10, Some(20)),
            write(4, 1, 20, None),
            write(3, 7, 40, Some(50)),
        ];
        let down = BTreeMap::from([(NodeId(4), Time(40))]);
        let turns = Turns::read(&file(&good));
        assert_eq!((turns.overlaps(&down), turns.falls()), (0, 0));
        assert_eq!(turns.missing(3..=5, Time(10)), 1);
        assert_eq!(turns.missing(3..=5, Time(21)), 2);
        // A node that crashes later was still writing; one that never crashed breaks off for no
        // reason.
        let late = BTreeMap::from([(NodeId(4), Time(41))]);
        assert_eq!(turns.overlaps(&late), 1);
        assert_eq!(turns.overlaps(&BTreeMap::new()), 1);
        let mut bad = good;
        bad[1] = write(2, 1, 19, Some(30));
        let turns = Turns::read(&file(&bad));
        assert_eq!((turns.overlaps(&down), turns.falls()), (1, 1));
    }

    #[test]
    fn waits_are_summed_up() {
        let mut turns = Turns::default();
        assert_eq!(turns.waiting(), None);
        turns.waits = [9, 1, 500].map(Span::millis).to_vec();
        let text = turns.waiting().unwrap().to_string();
        assert_eq!(text, "min 1 ms, median 9 ms, max 500 ms");
    }
}
