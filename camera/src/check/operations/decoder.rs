//! Bytes as operations, messages and choices. When they run out, all that follows is zero.

use selvedge_core::{Choose, Member, Ratio, Weights};

use crate::{Branch, Message, Request, Rival, Rivals, Token, TreeId};

pub(super) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn take(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&first, rest)) => {
                self.rest = rest;
                first
            }
            None => 0,
        }
    }

    /// One of so many: 0 when there are none.
    pub(super) fn pick(&mut self, of: usize) -> usize {
        usize::from(self.take()).checked_rem(of).unwrap_or_default()
    }

    /// A coin.
    fn flip(&mut self) -> bool {
        self.take().is_multiple_of(2)
    }

    /// A message of anyone about anyone.
    pub(super) fn message(&mut self, first: Member) -> (Member, Message) {
        let from = self.member(first);
        let kind = self.take();
        if kind >= 128 {
            return (from, self.slow_message(kind, first));
        }
        let message = match kind % 8 {
            0 | 1 => Message::Request {
                request: Request {
                    number: self.number(),
                    up_to: self.number(),
                    last: self.number(),
                },
                after: self.after(first),
            },
            2..=4 => Message::Ok {
                life: self.member(first).incarnation.0,
                number: self.number(),
                after: self.after(first),
                rivals: self.rivals(first),
                more: self.flip(),
                floor: self.token(first),
            },
            5 => Message::Wait {
                number: self.number(),
            },
            6 => Message::Release {
                number: self.number(),
                last: self.number(),
                over: self.number(),
            },
            _ => match self.take() % 4 {
                0 | 2 => Message::Fence {
                    token: self.token(first),
                },
                1 => Message::Floor {
                    token: self.token(first),
                },
                _ => Message::Abstain {
                    life: self.member(first).incarnation.0,
                    number: self.number(),
                    over: self.number(),
                    floor: self.token(first),
                },
            },
        };
        (from, message)
    }

    /// A message about anyone's tree.
    fn slow_message(&mut self, kind: u8, first: Member) -> Message {
        let tree = TreeId {
            root: self.member(first),
            number: self.number(),
            attempt: (self.take() % 4).into(),
        };
        match kind % 8 {
            0 => Message::Join {
                tree,
                up_to: self.number(),
                last: self.number(),
            },
            1 => Message::Nack { tree },
            2 | 3 => Message::Echo {
                life: self.member(first).incarnation.0,
                tree,
                levels: self.take() % 10,
                branches: (0..self.take() % 6)
                    .map(|_| Branch {
                        depth: self.take() % 4,
                        member: self.member(first),
                    })
                    .collect(),
            },
            4 => Message::Up {
                life: self.member(first).incarnation.0,
                tree,
                // Few, or as many as there can be.
                oks: match self.take() {
                    255 => u32::MAX,
                    few => u32::from(few % 8),
                },
                after: self.after(first),
                rivals: self.rivals(first),
                more: self.flip(),
                floor: self.token(first),
            },
            5 => Message::Adopt {
                tree,
                up_to: self.number(),
                last: self.number(),
                after: self.after(first),
            },
            6 => Message::Broken { tree },
            _ => Message::Over {
                root: tree.root,
                number: tree.number,
                last: self.number(),
                over: self.number(),
            },
        }
    }

    fn rivals(&mut self, first: Member) -> Rivals {
        (0..self.take() % 6)
            .map(|_| Rival {
                member: self.member(first),
                up_to: self.number(),
            })
            .collect()
    }

    /// A member near `first`, known or invented, in a life near its own.
    fn member(&mut self, first: Member) -> Member {
        let byte = self.take();
        let id = first.id.0.wrapping_add(u64::from(byte & 15));
        let life = first.incarnation.0.wrapping_add(u32::from(byte >> 5));
        Member::new(id, life.wrapping_sub(1))
    }

    fn after(&mut self, first: Member) -> Option<Member> {
        self.take().is_multiple_of(4).then(|| self.member(first))
    }

    fn token(&mut self, first: Member) -> Token {
        Token {
            number: self.number(),
            by: self.member(first),
        }
    }

    /// Mostly one that is in use, now and then one of the last there are.
    fn number(&mut self) -> u64 {
        match self.take() {
            byte @ 0..=239 => u64::from(byte % 80),
            byte => u64::MAX - u64::from(byte - 240),
        }
    }
}

/// Camera draws nothing, but whoever runs it has to offer something.
impl Choose for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        u64::from(self.take())
            .checked_rem(bound)
            .unwrap_or_default()
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        ratio.numerator > 0 && (ratio.numerator >= ratio.denominator || self.flip())
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        (0..weights.len()).find(|&outcome| weights.weight(outcome) > 0)
    }
}
