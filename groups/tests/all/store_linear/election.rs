//! An election among candidates with priorities, whose leader may hand over: a line of entries that sessions own, and
//! the entry of the leader.

use std::collections::BTreeSet;

use selvedge_core::Span;
use selvedge_groups::store::{Owner, Transaction, appended};

use super::*;

const PREFIX: &str = "a/election/";
const LEADER: &str = "a/election/leader";
const ENTERED: &str = "a/election/entered";

/// The candidates that wait, by name: names sort by priority and age. The leader, and the greatest token.
#[derive(Clone, Default)]
struct Election {
    waiting: BTreeSet<String>,
    leader: Leader,
    last: u64,
}

#[derive(Clone, Default, PartialEq)]
enum Leader {
    #[default]
    None,
    Candidate(String),
    /// The former leader has no answer to its hand-over: any candidate may lead, or none.
    Unknown,
}

#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    session: SessionId,
    key: String,
}

#[derive(Clone, Debug)]
enum Op {
    Enter {
        priority: u64,
    },
    Lead(Candidate),
    /// By the leader with this token, to the last one that waits.
    HandOver(Candidate, u64),
    End(Candidate),
}

#[derive(Clone, Debug, PartialEq)]
enum Ret {
    Entered(Candidate),
    /// With its token.
    Leads(Candidate, u64),
    /// To the candidate of this name.
    HandedOver(String),
    /// It leads on.
    LeadsOn(Candidate),
    Ended,
}

impl Election {
    fn is_leader(&self, me: &Candidate) -> bool {
        matches!(&self.leader, Leader::Candidate(leader) if *leader == me.key)
    }
}

impl SequentialSpec for Election {
    type Op = Op;
    type Ret = Ret;

    /// A client without an answer does not lead.
    fn invoke(&mut self, op: &Op) -> Ret {
        let (me, next) = match op {
            Op::Enter { .. } | Op::Lead(_) => return Ret::Ended,
            Op::HandOver(me, _) => (me, Leader::Unknown),
            Op::End(me) => (me, Leader::None),
        };
        self.waiting.remove(&me.key);
        if self.is_leader(me) {
            self.leader = next;
        }
        Ret::Ended
    }

    fn is_valid_step(&mut self, op: &Op, ret: &Ret) -> bool {
        match (op, ret) {
            (_, Ret::Entered(me)) => self.waiting.insert(me.key.clone()),
            (_, Ret::Leads(me, token)) => {
                let is_turn = match &self.leader {
                    Leader::None if matches!(op, Op::Enter { .. }) => self.waiting.is_empty(),
                    Leader::None => self.waiting.first() == Some(&me.key),
                    Leader::Candidate(leader) => *leader == me.key,
                    Leader::Unknown => true,
                };
                let is_valid = is_turn && *token > self.last;
                self.waiting.remove(&me.key);
                self.leader = Leader::Candidate(me.key.clone());
                self.last = *token;
                is_valid
            }
            (Op::HandOver(me, _), Ret::HandedOver(to)) => {
                let is_valid = self.is_leader(me);
                // One that is not known has no answer to its entry, and does not lead.
                let to = self.waiting.take(to);
                self.leader = to.map_or(Leader::None, Leader::Candidate);
                is_valid
            }
            (_, Ret::LeadsOn(_)) => true,
            _ => self.invoke(op) == *ret,
        }
    }
}

fn rank(key: &str) -> bool {
    key.len() == appended(PREFIX, 0).len() + 8
}

fn transact(transaction: Transaction) -> Next<Ret> {
    Next::Ask(Ask::Change(Operation::Transact(transaction)))
}

fn find<'a>(all: &'a [(String, Entry)], key: &str) -> Option<&'a Entry> {
    all.iter().find(|it| it.0 == key).map(|it| &it.1)
}

fn enter(priority: u64, answers: &[Answer]) -> Next<Ret> {
    let prefix = format!("{PREFIX}{priority:08x}");
    let begin = |transaction| {
        let ttl = Span::secs(4);
        Next::Ask(Ask::Change(Operation::BeginSession { ttl, transaction }))
    };
    let enter = Transaction::new()
        .append_owned(&*prefix, &[], Owner::Begun)
        .put(ENTERED, &[]);
    match answers {
        [] => Next::Ask(Ask::List(PREFIX.into())),
        [Answer::Listed(all)] if all.iter().all(|it| it.0 == ENTERED) => begin(
            Transaction::new()
                .when(LEADER, Expected::Absent)
                .when(ENTERED, version(find(all, ENTERED)))
                .put_owned(LEADER, &[], Owner::Begun),
        ),
        [Answer::Listed(_)] | [_, Answer::Stored(Stored::Mismatch { .. })] => begin(enter),
        [
            first,
            ..,
            Answer::Stored(Stored::Begun {
                session, version, ..
            }),
        ] => {
            let key = appended(&prefix, *version);
            let me = Candidate {
                session: *session,
                key,
            };
            let is_claim = answers.len() == 2
                && matches!(first, Answer::Listed(all) if all.iter().all(|it| it.0 == ENTERED));
            Next::Return(match is_claim {
                true => Ret::Leads(me, *version),
                false => Ret::Entered(me),
            })
        }
        _ => Next::Return(Ret::Ended),
    }
}

fn lead(me: &Candidate, answers: &[Answer], is_alive: bool) -> Next<Ret> {
    let all = match answers {
        _ if !is_alive => return Next::Return(Ret::Ended),
        [.., Answer::Stored(Stored::Done { version })] => {
            return Next::Return(Ret::Leads(me.clone(), *version));
        }
        [.., Answer::Listed(all)] => all,
        [] | [.., Answer::Stored(Stored::Mismatch { .. })] => {
            return Next::Ask(Ask::List(PREFIX.into()));
        }
        _ => return Next::Return(Ret::Ended),
    };
    let leader = find(all, LEADER);
    if let Some(mine) = leader.filter(|it| it.session == Some(me.session)) {
        return Next::Return(Ret::Leads(me.clone(), mine.version));
    }
    if find(all, &me.key).is_none() {
        return Next::Return(Ret::Ended);
    }
    let first = all.iter().find(|it| rank(&it.0));
    if leader.is_some() || first.is_none_or(|it| it.0 != me.key) {
        return Next::Ask(Ask::List(PREFIX.into()));
    }
    transact(
        Transaction::new()
            .when(LEADER, Expected::Absent)
            .when(ENTERED, version(find(all, ENTERED)))
            .put_owned(LEADER, me.key.as_bytes(), me.session)
            .remove(&*me.key),
    )
}

fn hand_over(me: &Candidate, token: u64, answers: &[Answer]) -> Next<Ret> {
    let Some(Answer::Listed(all)) = answers.first() else {
        return Next::Ask(Ask::List(PREFIX.into()));
    };
    let to = all.iter().rev().find(|it| rank(&it.0));
    match (answers.get(1), to) {
        (None, Some((key, entry))) => transact(
            Transaction::new()
                .when(LEADER, Expected::Version(token))
                .when(&**key, Expected::Version(entry.version))
                .put_owned(LEADER, key.as_bytes(), entry.session.unwrap())
                .remove(&**key),
        ),
        (Some(Answer::Stored(Stored::Done { .. })), Some((key, _))) => {
            Next::Return(Ret::HandedOver(key.clone()))
        }
        _ => Next::Return(Ret::LeadsOn(me.clone())),
    }
}

impl Recipe for Election {
    const OPERATIONS: usize = 6;

    fn draw(choices: &mut Choices, last: Option<&(Op, Ret)>) -> Op {
        match last {
            Some((_, Ret::Entered(me))) => Op::Lead(me.clone()),
            Some((_, Ret::Leads(me, token))) if choices.percent(50) => {
                Op::HandOver(me.clone(), *token)
            }
            Some((_, Ret::Leads(me, _) | Ret::LeadsOn(me))) => Op::End(me.clone()),
            _ => Op::Enter {
                priority: choices.below(3),
            },
        }
    }

    fn next(op: &Op, answers: &[Answer], is_alive: &dyn Fn(SessionId) -> bool) -> Next<Ret> {
        match op {
            Op::Enter { priority } => enter(*priority, answers),
            Op::Lead(me) => lead(me, answers, is_alive(me.session)),
            Op::HandOver(me, token) => hand_over(me, *token, answers),
            Op::End(me) => match answers {
                [] => Next::Ask(Ask::Change(Operation::EndSession(me.session))),
                _ => Next::Return(Ret::Ended),
            },
        }
    }

    fn is_void(op: &Op) -> bool {
        matches!(op, Op::Enter { .. } | Op::Lead(_))
    }

    fn held(op: &Op, ret: Option<&Ret>) -> Held<Op> {
        match (op, ret) {
            (_, Some(Ret::Entered(me))) | (Op::Enter { .. }, Some(Ret::Leads(me, _))) => {
                Held::By(me.session, Op::End(me.clone()))
            }
            (Op::End(_), _) | (_, Some(Ret::HandedOver(_) | Ret::Ended)) => Held::Nothing,
            _ => Held::Same,
        }
    }
}

#[test]
fn the_smallest_priority_leads_alone_and_later_leaders_have_greater_tokens() {
    judge(&Election::default());
}
