//! Questions to all members, and the answers of programs.

use core::num::ParseIntError;
use core::str::FromStr;

use axum::extract::State;
use selvedge_udp::query::Question;
use selvedge_udp::selvedge::core::Incarnation;
use selvedge_udp::{Member, NodeId};
use serde::{Deserialize, Deserializer, Serialize};

use super::Api;
use super::answer::{Answer, Value, json};
use super::asked::{Asked, Body, Part};
use super::maps::Waits;
use crate::message;

/// A question for the programs at this member.
#[derive(Serialize)]
pub(super) struct QuestionView<'a> {
    /// Its name in an answer.
    question: String,
    name: &'a str,
    #[serde(flatten)]
    value: Value,
    from: u64,
    /// The milliseconds until answers are late.
    left_ms: u64,
}

#[derive(Serialize)]
struct MemberAnswer {
    from: u64,
    #[serde(flatten)]
    value: Value,
}

#[derive(Serialize)]
struct Outcome {
    /// The members that were asked.
    asked: Vec<u64>,
    answers: Vec<MemberAnswer>,
}

/// The name of a question: the member, its incarnation and the number of the question, as in `4.1.7`.
pub(super) struct QuestionId(Member, u64);

impl FromStr for QuestionId {
    type Err = Option<ParseIntError>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or(None);
        let (id, life, number) = (next()?, next()?, next()?);
        let member = Member {
            id: NodeId(id.parse()?),
            incarnation: Incarnation(life.parse()?),
        };
        Ok(Self(member, number.parse()?))
    }
}

impl<'de> Deserialize<'de> for QuestionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let why = "a question is named by its event, as 4.1.7";
        text.parse().map_err(|_| serde::de::Error::custom(why))
    }
}

impl Api {
    /// Shows a question of an agent; `None` for the question of another program.
    pub(super) fn question<'a>(&self, question: &'a Question) -> Option<QuestionView<'a>> {
        let (name, value) = message::decode(&question.payload)?;
        let Member { id, incarnation } = question.from;
        let left = question.until.since(self.node.clock().now());
        Some(QuestionView {
            question: format!("{}.{}.{}", id.0, incarnation.0, question.number),
            name,
            value: Value::of(value),
            from: id.0,
            left_ms: left.0 / 1_000,
        })
    }
}

pub(super) async fn query(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
    Body(value): Body,
) -> Answer {
    let wait = wait.above_zero()?;
    let payload = message::encode(&name, &value).ok_or_else(message::too_long)?;
    let end = wait.end();
    wait.of(api.node.joined()).await?;
    let left = wait.until(end);
    let mut answers = left.of(api.node.query(payload, left.span())).await?;
    let asked = answers.asked().iter().map(|it| it.id.0).collect();
    let mut received = Vec::new();
    while let Some((from, value)) = answers.next().await {
        received.push(MemberAnswer {
            from: from.id.0,
            value: Value::of(&value),
        });
    }
    let answers = received;
    json(&Outcome { asked, answers })
}

pub(super) async fn answer(
    State(api): State<Api>,
    Part(QuestionId(from, number)): Part<QuestionId>,
    Asked(Waits { wait }): Asked<Waits>,
    Body(value): Body,
) -> Answer {
    wait.of(api.node.answer((from, number), value.to_vec()))
        .await?;
    json(&serde_json::Map::new())
}

#[cfg(test)]
mod tests {
    use super::{Member, QuestionId};

    #[test]
    fn a_question_is_named_by_three_numbers() {
        let QuestionId(from, number) = "4.1.7".parse().ok().unwrap();
        assert_eq!((from, number), (Member::new(4, 1), 7));
        for wrong in [
            "",
            "4",
            "4.1",
            "4.1.",
            "4.1.7.2",
            "-4.1.7",
            "4.99999999999.7",
            "a.b.c",
        ] {
            assert!(wrong.parse::<QuestionId>().is_err(), "{wrong}");
        }
    }
}
