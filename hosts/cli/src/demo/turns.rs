//! The contents of the file that nodes wrote in turns, with the counters of the writers.

use core::fmt;
use std::collections::BTreeMap;

use selvedge_camera::Token;
use selvedge_core::{Member, NodeId, Span, Time};

/// A write: a line of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// The node that wrote.
    pub node: NodeId,
    /// Its token.
    pub token: Token,
    /// The beginning, by the common clock.
    pub start: Time,
    /// The end; `None` if the line is incomplete.
    pub end: Option<Time>,
}

/// The whole file, and the counters of the writers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turns {
    /// The lines, in the order of the file.
    pub writes: Vec<Write>,
    /// Lines that cannot be read: two nodes wrote at once, or the file could not be written.
    pub garbled: usize,
    /// The waiting times of nodes, including the nodes that still waited at the end.
    pub waits: Vec<Span>,
    /// The number of times too few nodes could be reached to get a turn.
    pub refused: usize,
    /// Writes that were refused, because the file had seen a higher token.
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

    /// The rest of the line.
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

    /// The number of writes that were under way when another write began, including unreadable
    /// lines. `down`: the times of crashes, which end a node's write. An incomplete line of another
    /// node counts, too.
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

    /// The number of writes whose token is not above the token of the line before.
    #[must_use]
    pub fn falls(&self) -> usize {
        let pairs = self.writes.iter().zip(self.writes.iter().skip(1));
        pairs.filter(|(one, next)| next.token <= one.token).count()
    }

    /// The number of these nodes that began no write from `since` on.
    #[must_use]
    pub fn missing(&self, nodes: impl Iterator<Item = u64>, since: Time) -> usize {
        let writes = self.writes.iter().filter(|write| write.start >= since);
        let wrote = |node: u64| writes.clone().any(|write| write.node.0 == node);
        nodes.filter(|&node| !wrote(node)).count()
    }

    /// The waiting times of nodes; `None` if no node had or wanted a turn.
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

/// The shortest, the median and the longest wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The shortest.
    pub min: Span,
    /// The median.
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
        // Two nodes that write at once leave unreadable lines.
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
        // A node that crashes later was still writing; a line of a node that never crashed is
        // incomplete for no reason.
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
