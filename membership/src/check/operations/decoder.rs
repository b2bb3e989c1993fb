//! Bytes as operations, messages and choices. When they run out, all that follows is zero.

use alloc::boxed::Box;
use alloc::vec::Vec;

use selvedge_core::{Choose, Member, Ratio, Weights};

use crate::{Age, Body, Broadcast, Claim, Digest, Key, Message, Metadata, Record};

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

    /// A coin.
    pub(super) fn flip(&mut self) -> bool {
        self.take().is_multiple_of(2)
    }

    pub(super) fn bytes(&mut self, longest: u8) -> Box<[u8]> {
        let len = self.take() % (longest + 1);
        (0..len)
            .map(|_| self.take())
            .collect::<Vec<_>>()
            .into_boxed_slice()
    }

    /// A few bytes that differ, or many that do not: up to the longest that a frame holds.
    pub(super) fn payload(&mut self) -> Box<[u8]> {
        if self.flip() {
            return self.bytes(60);
        }
        let len = 6 * usize::from(self.take());
        Box::from_iter(core::iter::repeat_n(self.take(), len))
    }

    /// A member near `offset`, known or invented, in a life around the wrap.
    fn member(&mut self, offset: u64) -> Member {
        let byte = self.take();
        let id = offset.wrapping_add(u64::from(byte & 7));
        Member::new(
            id,
            u32::MAX.wrapping_sub(2).wrapping_add(u32::from(byte >> 5)),
        )
    }

    fn key(&mut self) -> Key {
        Key(u64::from(self.take()) << 56 | u64::from(self.take()))
    }

    fn optional<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.flip()).then(|| make(self))
    }

    fn body(&mut self, offset: u64) -> Body {
        let digest = |bytes: &mut Self| Digest([bytes.take() % 2, 0]);
        match self.take() % 12 {
            0 => Body::Ping {
                digest: digest(self),
                origin: self.optional(|bytes| bytes.member(offset)),
            },
            1 => Body::Ack {
                origin: self.optional(|bytes| bytes.member(offset)),
            },
            2 => Body::PingRequest {
                target: self.member(offset),
            },
            3 => Body::RelayedAck {
                target: self.member(offset),
            },
            4 => Body::Unlucky,
            5 => Body::Join,
            6 => Body::Welcome {
                you: self.member(offset),
                next: self.optional(Self::key),
            },
            7 => Body::IdTaken {
                life: self.member(offset),
            },
            8 => Body::Digests {
                buckets: [digest(self); 32],
            },
            9 => Body::Pull {
                first: self.key(),
                last: self.key(),
            },
            10 => Body::Records {
                first: self.key(),
                last: if self.flip() {
                    Key(u64::MAX)
                } else {
                    self.key()
                },
                next: self.optional(Self::key),
                exchange: self.flip(),
            },
            _ => Body::Farewell,
        }
    }

    /// A message of anyone about anyone.
    pub(super) fn message(&mut self, offset: u64) -> (Member, Message) {
        let from = self.member(offset);
        let mut message = Message::bare(self.body(offset));
        for _ in 0..self.take() % 5 {
            let member = self.member(offset);
            let byte = self.take();
            let revision = u32::from(byte >> 4).wrapping_sub(4);
            let age = Age(u16::from(byte) * 16);
            let claim = match byte % 4 {
                0 => Claim::Alive(Metadata(self.payload())),
                1 => Claim::Suspect(Metadata(self.payload())),
                2 => Claim::Failed(Metadata(self.payload()), age),
                _ => Claim::Left(age),
            };
            message.records.push(Record {
                member,
                revision,
                claim,
            });
        }
        for _ in 0..self.take() % 2 {
            let origin = self.member(offset);
            let number = self.take().into();
            let payload = self.payload();
            message.broadcasts.push(Broadcast {
                origin,
                number,
                payload,
            });
        }
        (from, message)
    }
}

impl Choose for Bytes<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        let wide = u64::from(self.take()) << 8 | u64::from(self.take());
        if bound <= 1 << 16 {
            return wide % bound;
        }
        // Enough to reach both ends.
        bound / (1 << 16) * wide
    }

    fn chance(&mut self, ratio: Ratio) -> bool {
        ratio.numerator > 0 && (ratio.numerator >= ratio.denominator || self.flip())
    }

    fn weighted(&mut self, weights: &dyn Weights) -> Option<usize> {
        // Any outcome that is possible at all, the unlikely ones as well.
        let possible = (0..weights.len()).filter(|&outcome| weights.weight(outcome) > 0);
        let count = possible.clone().count();
        let chosen = usize::from(self.take()).checked_rem(count)?;
        let mut possible = possible;
        possible.nth(chosen)
    }
}
