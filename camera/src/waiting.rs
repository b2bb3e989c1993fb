//! This node's own request, while it waits.

use selvedge_core::{BoundedMap, Full, Member};

use crate::{Request, Token};

/// The answer that is awaited from one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    pub(crate) answer: Answer,
    /// The highest number of a token that the node may have, when it is known to want to enter or
    /// to be inside.
    pub(crate) rival: Option<u64>,
    /// True if the node answered that it has the request and that we have to wait.
    pub(crate) received: bool,
    /// The number of copies of the request that were sent again since its last message.
    pub(crate) copies: u8,
}

impl Asked {
    /// Returns true if its answer is needed.
    pub(crate) const fn is_awaited(self) -> bool {
        matches!(self.answer, Answer::Awaited { .. })
    }
}

/// The progress of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// Awaited: the part of its list after this member.
    Awaited { after: Option<Member> },
    /// No longer awaited, because it was declared failed. It still counts if it comes.
    Optional { after: Option<Member> },
    /// The whole answer is here.
    Ok,
    /// It has no room to remember an OK, and its requests with tokens up to this number are over.
    Abstained { over: u64 },
}

impl Answer {
    /// Returns true if no more answers are needed from a node that may enter with this number.
    pub(crate) const fn is_settled(self, up_to: u64) -> bool {
        match self {
            Self::Awaited { .. } | Self::Optional { .. } => false,
            Self::Ok => true,
            Self::Abstained { over } => up_to <= over,
        }
    }
}

/// The nodes that a request waits for. Each operation takes O(log n).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiting {
    /// The number of the request, and this node.
    pub(crate) token: Token,
    /// The highest number of a token that it may enter with.
    pub(crate) up_to: u64,
    /// The highest token that was used, as far as the nodes that answered know.
    pub(crate) floor: Token,
    /// True if it goes through the whole mesh.
    pub(crate) slow: bool,
    /// The number of times that it was sent again since it last was sent to all.
    pub(crate) again: u64,
    asked: BoundedMap<Member, Asked>,
    counts: Counts,
}

/// The numbers of nodes that were asked, by the progress of their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Counts {
    awaited: usize,
    /// The nodes among `awaited` that want to enter too, or may be inside.
    rivals: usize,
    oks: usize,
}

impl Counts {
    const NONE: Self = Self {
        awaited: 0,
        rivals: 0,
        oks: 0,
    };

    fn count(&mut self, before: Option<Asked>, after: Option<Asked>) {
        let awaited = |it: Option<Asked>| usize::from(it.is_some_and(Asked::is_awaited));
        let is_rival = |it: Asked| it.is_awaited() && it.rival.is_some();
        let rivals = |it: Option<Asked>| usize::from(it.is_some_and(is_rival));
        let oks = |it: Option<Asked>| usize::from(it.is_some_and(|it| it.answer == Answer::Ok));
        self.awaited = (self.awaited + awaited(after)).saturating_sub(awaited(before));
        self.rivals = (self.rivals + rivals(after)).saturating_sub(rivals(before));
        self.oks = (self.oks + oks(after)).saturating_sub(oks(before));
    }
}

impl Waiting {
    pub(crate) const fn new(token: Token, up_to: u64, limit: usize) -> Self {
        Self {
            token,
            up_to,
            floor: Token {
                number: 0,
                by: token.by,
            },
            slow: false,
            again: 0,
            asked: BoundedMap::new(limit),
            counts: Counts::NONE,
        }
    }

    /// The request as it is sent to each node; `last`: the number of the token with which we entered
    /// last.
    pub(crate) const fn request(&self, last: u64) -> Request {
        Request {
            number: self.token.number,
            up_to: self.up_to,
            last,
        }
    }

    /// Switches to the slow path: only nodes that may be inside are awaited; the tree counts OKs.
    pub(crate) fn go_slow(&mut self) {
        self.slow = true;
        self.asked.retain(|_, asked| asked.rival.is_some());
        self.counts = Counts::NONE;
        for (_, &asked) in self.asked.iter() {
            self.counts.count(None, Some(asked));
        }
    }

    /// The number of nodes that have not answered and must.
    pub(crate) const fn awaited(&self) -> usize {
        self.counts.awaited
    }

    /// The number of awaited nodes that want to enter too, or may be inside.
    pub(crate) const fn awaited_rivals(&self) -> usize {
        self.counts.rivals
    }

    /// The number of nodes that gave their OK.
    pub(crate) const fn oks(&self) -> usize {
        self.counts.oks
    }

    /// The number of nodes that gave their OK or are awaited.
    pub(crate) const fn reachable(&self) -> usize {
        self.counts.oks + self.counts.awaited
    }

    /// The number of further nodes that can be asked.
    pub(crate) fn room(&self) -> usize {
        self.asked.limit().saturating_sub(self.asked.len())
    }

    pub(crate) fn get(&self, member: Member) -> Option<Asked> {
        self.asked.get(&member).copied()
    }

    /// All nodes that were asked, in order of members.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Member, Asked)> + '_ {
        self.asked.iter().map(|(&member, &asked)| (member, asked))
    }

    /// Changes the state of the answer of `member`, or begins to await it.
    pub(crate) fn set(&mut self, member: Member, asked: Asked) -> Result<(), Full> {
        let before = self.asked.insert(member, asked)?;
        self.counts.count(before, Some(asked));
        Ok(())
    }

    /// Forgets `member`: its answer is not awaited.
    pub(crate) fn remove(&mut self, member: Member) -> Option<Asked> {
        let before = self.asked.remove(&member)?;
        self.counts.count(Some(before), None);
        Some(before)
    }

    /// Raises the floor.
    pub(crate) fn raise(&mut self, floor: Token) {
        self.floor = self.floor.max(floor);
    }
}
