//! A lock: a line of entries that sessions own.

use selvedge_core::Span;
use selvedge_groups::store::{Owner, Transaction, appended};

use super::*;

const PREFIX: &str = "a/lock/";

/// The holder, and the greatest token.
#[derive(Clone, Default)]
struct Lock {
    holder: Option<u64>,
    last: u64,
}

#[derive(Clone, Debug)]
enum Op {
    Acquire,
    /// With the token of the holder.
    Release(SessionId, u64),
}

#[derive(Clone, Debug, PartialEq)]
enum Ret {
    Acquired(SessionId, u64),
    /// The session ended before its turn was known.
    Ended,
    Released,
}

impl SequentialSpec for Lock {
    type Op = Op;
    type Ret = Ret;

    fn invoke(&mut self, op: &Op) -> Ret {
        let Op::Release(_, token) = *op else {
            // A client without an answer does not act.
            return Ret::Ended;
        };
        self.holder.take_if(|it| *it == token);
        Ret::Released
    }

    fn is_valid_step(&mut self, op: &Op, ret: &Ret) -> bool {
        let Ret::Acquired(_, token) = *ret else {
            return self.invoke(op) == *ret;
        };
        let is_free = self.holder.is_none() && token > self.last;
        (self.holder, self.last) = (Some(token), token);
        is_free
    }
}

impl Recipe for Lock {
    const OPERATIONS: usize = 6;

    fn draw(_: &mut Choices, last: Option<&(Op, Ret)>) -> Op {
        match last {
            Some((_, Ret::Acquired(session, token))) => Op::Release(*session, *token),
            _ => Op::Acquire,
        }
    }

    fn next(op: &Op, answers: &[Answer], is_alive: &dyn Fn(SessionId) -> bool) -> Next<Ret> {
        if let Op::Release(session, _) = op {
            return match answers {
                [] => Next::Ask(Ask::Change(Operation::EndSession(*session))),
                _ => Next::Return(Ret::Released),
            };
        }
        let &[
            Answer::Stored(Stored::Begun {
                session, version, ..
            }),
            ref line @ ..,
        ] = answers
        else {
            return Next::Ask(Ask::Change(Operation::BeginSession {
                ttl: Span::secs(4),
                transaction: Transaction::new().append_owned(PREFIX, &[], Owner::Begun),
            }));
        };
        let list = Next::Ask(Ask::List(PREFIX.into()));
        match line {
            [] => list,
            [.., Answer::Listed(all)] => {
                let me = appended(PREFIX, version);
                match all.iter().position(|it| it.0 == me) {
                    Some(0) if is_alive(session) => Next::Return(Ret::Acquired(session, version)),
                    Some(1..) => list,
                    Some(0) => Next::Ask(Ask::Change(Operation::EndSession(session))),
                    None => Next::Return(Ret::Ended),
                }
            }
            _ => Next::Return(Ret::Ended),
        }
    }

    fn is_void(op: &Op) -> bool {
        matches!(op, Op::Acquire)
    }

    fn held(op: &Op, ret: Option<&Ret>) -> Held<Op> {
        match (op, ret) {
            (_, Some(&Ret::Acquired(session, token))) => {
                Held::By(session, Op::Release(session, token))
            }
            (Op::Release(..), _) => Held::Nothing,
            _ => Held::Same,
        }
    }
}

#[test]
fn a_lock_has_one_holder_and_later_ones_have_greater_tokens() {
    judge(&Lock::default());
}
