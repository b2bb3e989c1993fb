//! The messages and events of the last operations, for the story of a break.

use alloc::collections::VecDeque;

use selvedge_core::{Machine, Member, NodeId};

use super::{Letter, Operation};

/// The number of operations in a story.
const SHOWN: usize = 30;
/// The number of messages that a story shows for each operation.
const MESSAGES: usize = 24;

/// The messages of the last operations.
#[derive(Debug)]
pub(super) struct Story<M: Machine> {
    chapters: VecDeque<Chapter<M>>,
}

/// The messages of one operation.
#[derive(Debug)]
struct Chapter<M: Machine> {
    lines: Vec<Line<M>>,
    /// The number of messages beyond the limit.
    others: usize,
}

/// A message and its fate, or an event.
#[derive(Debug)]
pub(super) enum Line<M: Machine> {
    Arrives(Letter<M>),
    Copied(Letter<M>),
    Lost(Letter<M>),
    /// A multicast has no receiver.
    Sent(Member, Option<NodeId>, M::Message),
    /// An event for the application.
    Reported(Member, M::Event),
}

impl<M: Machine> Story<M> {
    pub(super) const fn new() -> Self {
        Self {
            chapters: VecDeque::new(),
        }
    }

    /// An operation begins.
    pub(super) fn begin(&mut self) {
        let oldest = (self.chapters.len() >= SHOWN).then(|| self.chapters.pop_front());
        let mut lines = oldest.flatten().map_or_else(Vec::new, |it| it.lines);
        lines.clear();
        self.chapters.push_back(Chapter { lines, others: 0 });
    }

    /// Adds a line, if there is room for it; otherwise `line` is not called.
    pub(super) fn note(&mut self, line: impl FnOnce() -> Line<M>) {
        match self.chapters.back_mut() {
            Some(chapter) if chapter.lines.len() < MESSAGES => chapter.lines.push(line()),
            Some(chapter) => chapter.others += 1,
            None => {}
        }
    }

    /// The last of these operations in words: one text each, of one line and a further one for each
    /// message.
    pub(super) fn describe(&self, played: &[Operation<M>]) -> Vec<String> {
        let first = played.len().saturating_sub(self.chapters.len());
        let last = played.get(first..).unwrap_or_default();
        last.iter()
            .zip(&self.chapters)
            .map(|(operation, chapter)| chapter.describe(operation))
            .collect()
    }
}

impl<M: Machine> Chapter<M> {
    fn describe(&self, operation: &Operation<M>) -> String {
        let lines = self.lines.iter().map(Line::describe);
        let others = (self.others > 0).then(|| format!("and {} more", self.others));
        let lines = lines.chain(others).map(|it| format!("\n       {it}"));
        format!("{operation:?}{}", lines.collect::<String>())
    }
}

impl<M: Machine> Line<M> {
    fn describe(&self) -> String {
        let letter = |it: &Letter<M>| format!("{:?} from {:?} to {:?}", it.message, it.from, it.to);
        match self {
            Self::Arrives(it) => format!("{} arrives", letter(it)),
            Self::Copied(it) => format!("{} arrives, and a copy stays on its way", letter(it)),
            Self::Lost(it) => format!("{} is lost", letter(it)),
            Self::Sent(from, Some(to), message) => {
                format!("-> {from:?} sends {message:?} to {to:?}")
            }
            Self::Sent(from, None, message) => format!("-> {from:?} sends {message:?} to all"),
            Self::Reported(by, event) => format!("-> {by:?} reports {event:?}"),
        }
    }
}
