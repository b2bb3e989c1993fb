//! Queries: a question to all members, and their answers.
//!
//! A question goes to each live member directly. A member without an answer gets it again after pauses of 0.3 s,
//! doubling to 2.4 s, while the caller waits. A member remembers a question for that time. If it comes again, the
//! application gets no second event, and an earlier answer is sent again. So a query needs no
//! acknowledgement, and a loss costs time alone. A member recognizes a late copy for 2.4 s more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_core::wire::{self, List, varint_len};
use selvedge_core::{Incarnation, Member, Span, Time};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::service::{Error, Reject};
use crate::{Handle, service};

/// The kind of the frames of queries.
pub(crate) const KIND: u8 = 11;

/// The most bytes of a question or of an answer.
pub const QUERY_MAX: usize = 512;
/// The longest wait for answers.
pub const WAIT_MAX: Span = Span::secs(60);
/// The most questions of one node that wait for answers at once.
pub const QUERIES: usize = 16;

/// The most questions that are remembered: of one node, and of all.
const OF_NODE: usize = 64;
const RECEIVED: usize = 1_024;
/// The longest frame around a payload.
const AROUND: usize = 48;
/// The time before a question is sent again, at first and at most.
const RESEND: Span = Span::millis(300);
const RESEND_MAX: Span = Span::millis(2_400);
/// The least time between two sends of one answer to a question that comes again.
const PACE: Span = Span::millis(100);

/// A message of a query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Query {
    /// A question of the sender.
    Question {
        number: u64,
        /// The milliseconds for which it waits for answers.
        left: u32,
        payload: List<u8, 1>,
    },
    /// The sender's answer to a question of the receiver in this life.
    Answer {
        life: u32,
        number: u64,
        payload: List<u8, 1>,
    },
}

impl wire::Message for Query {
    const KIND: u8 = KIND;

    fn encoded_len(&self) -> usize {
        let (number, other, payload) = match self {
            Self::Question {
                number,
                left,
                payload,
            } => (number, left, payload),
            Self::Answer {
                life,
                number,
                payload,
            } => (number, life, payload),
        };
        let numbers = varint_len(*number) + varint_len(u64::from(*other));
        1 + numbers + varint_len(payload.len() as u64) + payload.len()
    }
}

/// A question of a member, perhaps of this node itself: [`NodeEvent::Question`](crate::NodeEvent::Question).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// The node that asks.
    pub from: Member,
    /// Its number among the questions of that life of the node.
    pub number: u64,
    /// Its content.
    pub payload: Arc<[u8]>,
    /// The end of the wait for answers, by the clock of this node.
    pub until: Time,
}

/// The answers to a question, from [`Handle::query`].
#[derive(Debug)]
pub struct Answers {
    asked: Box<[Member]>,
    answers: mpsc::UnboundedReceiver<(Member, Box<[u8]>)>,
}

impl Answers {
    /// The live members when the question was asked, with this node.
    #[must_use]
    pub fn asked(&self) -> &[Member] {
        &self.asked
    }

    /// Waits for the next answer. `None` when all members have answered, the time is over, or the node has stopped.
    pub async fn next(&mut self) -> Option<(Member, Box<[u8]>)> {
        self.answers.recv().await
    }
}

impl Handle {
    /// Asks all live members, this node included, and waits for their answers: from 1 ms to [`WAIT_MAX`]. Programs
    /// there read [`NodeEvent::Question`](crate::NodeEvent::Question) and [`answer`](Self::answer) it. Each member answers
    /// once at most, and a member without such a program never. A member that joins later is not asked. Dropping the
    /// answers ends the query.
    ///
    /// A question is a datagram for each member, at once, and up to 27 more in 60 s for a member without an answer.
    ///
    /// # Errors
    /// [`Reject::QueryTooLong`], [`Reject::QueriesFull`]. When the node has stopped.
    pub async fn query(&self, payload: impl Into<Box<[u8]>>, wait: Span) -> Result<Answers, Error> {
        self.joined().await?;
        let (sender, answers) = mpsc::unbounded_channel();
        let query = service::Command::Query {
            payload: payload.into(),
            wait: wait.clamp(Span::millis(1), WAIT_MAX),
            answers: sender,
        };
        let answer = self.shared.submit(query).await?;
        let service::Answer::Members(asked) = answer else {
            return Err(service::misplaced(&answer));
        };
        Ok(Answers { asked, answers })
    }

    /// Answers a question: the member `from` asked it with this `number`.
    ///
    /// # Errors
    /// [`Reject::QueryTooLong`]; [`Reject::NoQuestion`] when its time is over, or this node never received it;
    /// [`Reject::Answered`] when this node has answered it. When the node has stopped.
    pub async fn answer(
        &self,
        (from, number): (Member, u64),
        payload: impl Into<Box<[u8]>>,
    ) -> Result<(), Error> {
        let answer = service::Command::Answer {
            question: (from, number),
            payload: payload.into(),
        };
        self.shared.submit(answer).await.map(|_done| ())
    }
}

/// A question of this node.
#[derive(Debug)]
struct Asked {
    payload: List<u8, 1>,
    until: Time,
    /// The members that have not answered.
    open: BTreeSet<Member>,
    next: Time,
    pause: Span,
    /// The life of this node that asks.
    by: Member,
    answers: mpsc::UnboundedSender<(Member, Box<[u8]>)>,
}

/// A question of another node, or of this one.
#[derive(Debug)]
struct Received {
    until: Time,
    answer: Option<List<u8, 1>>,
    /// The answer is sent again from this time on: in the clear, anyone may send the question.
    again: Time,
}

/// The effect of a question that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    New(Question),
    /// It has been answered: the answer once more.
    Answered(Query),
    /// It waits for its answer.
    Waits,
    /// There is no room for it.
    Full,
}

/// The questions of this node and of others.
#[derive(Debug, Default)]
pub(crate) struct Queries {
    last: u64,
    asked: BTreeMap<u64, Asked>,
    received: BTreeMap<(Member, u64), Received>,
}

/// Returns the payload as it is sent, in frames of this length.
fn checked(payload: &[u8], frame_budget: usize) -> Result<List<u8, 1>, Reject> {
    let limit = QUERY_MAX.min(frame_budget.saturating_sub(AROUND));
    let found = payload.len();
    if found > limit {
        return Err(Reject::QueryTooLong { found, limit });
    }
    Ok(payload.iter().copied().collect())
}

fn answer(of: Member, number: u64, payload: List<u8, 1>) -> Query {
    let life = of.incarnation.0;
    Query::Answer {
        life,
        number,
        payload,
    }
}

impl Queries {
    /// Asks these members from now on. Returns the question for the node's own application.
    pub(crate) fn ask(
        &mut self,
        (me, now): (Member, Time),
        (payload, wait, frame_budget): (&[u8], Span, usize),
        members: impl Iterator<Item = Member>,
        answers: mpsc::UnboundedSender<(Member, Box<[u8]>)>,
    ) -> Result<Question, Reject> {
        let content = checked(payload, frame_budget)?;
        self.forget(now);
        if self.asked.len() >= QUERIES {
            return Err(Reject::QueriesFull { limit: QUERIES });
        }
        self.last += 1;
        let (number, until) = (self.last, now + wait);
        let asked = Asked {
            payload: content,
            until,
            open: members.collect(),
            next: now,
            pause: RESEND,
            by: me,
            answers,
        };
        self.asked.insert(number, asked);
        self.remember((me, number), until);
        Ok(Question {
            from: me,
            number,
            payload: payload.into(),
            until,
        })
    }

    /// The next time at which something is due.
    pub(crate) fn next(&self) -> Option<Time> {
        self.asked.values().map(|it| it.next.min(it.until)).min()
    }

    /// The questions that are due to other members than this one. Members that are not listed as alive any more in
    /// the life that was asked have no answer.
    pub(crate) fn due(
        &mut self,
        (me, now): (Member, Time),
        is_listed: impl Fn(Member) -> bool,
    ) -> Vec<(Member, Query)> {
        for asked in self.asked.values_mut() {
            asked.open.retain(|it| is_listed(*it));
        }
        // Answers are for the life that asked.
        self.asked.retain(|_, it| it.by == me);
        self.forget(now);
        let mut due = Vec::new();
        for (&number, asked) in self.asked.iter_mut().filter(|it| it.1.next <= now) {
            let left = asked.until.since(now).0.div_ceil(1_000);
            let question = Query::Question {
                number,
                left: u32::try_from(left).unwrap_or(u32::MAX),
                payload: asked.payload.clone(),
            };
            let others = asked.open.iter().filter(|it| it.id != me.id);
            due.extend(others.map(|it| (*it, question.clone())));
            asked.next = now + asked.pause;
            asked.pause = Span((asked.pause.0 * 2).min(RESEND_MAX.0));
        }
        due
    }

    /// Ends queries without time or reader, and forgets questions.
    fn forget(&mut self, now: Time) {
        (self.asked)
            .retain(|_, it| now < it.until && !it.open.is_empty() && !it.answers.is_closed());
        self.received.retain(|_, it| now < it.until + RESEND_MAX);
    }

    /// Remembers a question. If its node has many, the earliest with an answer is forgotten, else the earliest.
    fn remember(&mut self, key: (Member, u64), until: Time) {
        let of_node = || self.received.iter().filter(|it| it.0.0.id == key.0.id);
        if of_node().count() >= OF_NODE {
            let answered = of_node().find(|it| it.1.answer.is_some());
            let former = answered.or_else(|| of_node().next()).map(|it| *it.0);
            former.and_then(|it| self.received.remove(&it));
        }
        let received = Received {
            until,
            answer: None,
            again: Time::ZERO,
        };
        self.received.insert(key, received);
    }

    /// Handles a question of another node.
    pub(crate) fn on_question(
        &mut self,
        (from, now): (Member, Time),
        (number, left): (u64, u32),
        payload: &List<u8, 1>,
    ) -> Arrived {
        self.forget(now);
        match self.received.get_mut(&(from, number)) {
            Some(it) if now >= it.until => return Arrived::Waits, // A late copy.
            Some(it) => {
                let Some(given) = it.answer.as_ref().filter(|_| it.again <= now) else {
                    return Arrived::Waits;
                };
                it.again = now + PACE;
                return Arrived::Answered(answer(from, number, given.clone()));
            }
            None => {}
        }
        let of_node = self.received.iter().filter(|it| it.0.0.id == from.id);
        let open = of_node.filter(|it| it.1.answer.is_none());
        if open.count() >= QUERIES || self.received.len() >= RECEIVED {
            return Arrived::Full;
        }
        let until = now + Span::millis(left.into()).min(WAIT_MAX);
        self.remember((from, number), until);
        Arrived::New(Question {
            from,
            number,
            payload: payload.iter().copied().collect(),
            until,
        })
    }

    /// Handles the answer of a member. Returns false if it is late, a second one, or to no question.
    pub(crate) fn on_answer(&mut self, from: Member, number: u64, payload: &List<u8, 1>) -> bool {
        let Some(asked) = self.asked.get_mut(&number) else {
            return false;
        };
        if !asked.open.remove(&from) {
            return false;
        }
        let payload = payload.iter().copied().collect();
        // Without a reader the query ends.
        let is_read = asked.answers.send((from, payload)).is_ok();
        if asked.open.is_empty() || !is_read {
            self.asked.remove(&number);
        }
        true
    }

    /// Answers a question for the application. Returns the message for the node that asked, if that is another one.
    pub(crate) fn answer(
        &mut self,
        (me, now): (Member, Time),
        (from, number): (Member, u64),
        (payload, frame_budget): (&[u8], usize),
    ) -> Result<Option<Query>, Reject> {
        let payload = checked(payload, frame_budget)?;
        self.forget(now);
        let received = self.received.get_mut(&(from, number));
        let received = received.filter(|it| now < it.until);
        let received = received.ok_or(Reject::NoQuestion)?;
        if received.answer.is_some() {
            return Err(Reject::Answered);
        }
        received.answer = Some(payload.clone());
        if from.id != me.id {
            return Ok(Some(answer(from, number, payload)));
        }
        self.on_answer(from, number, &payload);
        Ok(None)
    }
}

/// Returns true if an answer is for this life of a node.
pub(crate) fn is_for(me: Member, life: u32) -> bool {
    me.incarnation == Incarnation(life)
}

#[cfg(test)]
mod tests;
