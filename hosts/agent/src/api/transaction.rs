//! Transactions.

use axum::extract::State;
use selvedge_udp::selvedge::groups::store::{Action, Compare, Owner, Transaction};
use serde::Deserialize;

use super::Api;
use super::answer::{Answer, Value};
use super::asked::{Asked, Body, Part, from_json, session_id};
use super::maps::{Waits, expected, stored};
use super::refusal::Refusal;
use crate::audit::Caller;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Steps {
    #[serde(default)]
    when: Vec<When>,
    then: Vec<Step>,
    #[serde(default)]
    otherwise: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    key: String,
    version: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Step {
    Put(Put),
    Append(Append),
    Remove(Remove),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    key: String,
    value: Option<String>,
    value_base64: Option<String>,
    session: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Append {
    prefix: String,
    value: Option<String>,
    value_base64: Option<String>,
    session: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remove {
    key: String,
}

impl Step {
    /// The key that it changes, or the prefix of a new one.
    fn key(&self) -> &str {
        match self {
            Self::Put(it) => &it.key,
            Self::Append(it) => &it.prefix,
            Self::Remove(it) => &it.key,
        }
    }

    fn action(self) -> Result<Action, Refusal> {
        let owner = |it: Option<String>| -> Result<Option<Owner>, Refusal> {
            let session = it.as_deref().map(session_id).transpose()?;
            Ok(session.map(Owner::Session))
        };
        let bytes = |value, value_base64| -> Result<_, Refusal> {
            let value = Value {
                value,
                value_base64,
            };
            Ok(value.bytes()?.into_iter().collect())
        };
        Ok(match self {
            Self::Put(it) => Action::Put {
                key: it.key,
                value: bytes(it.value, it.value_base64)?,
                owner: owner(it.session)?,
            },
            Self::Append(it) => Action::Append {
                prefix: it.prefix,
                value: bytes(it.value, it.value_base64)?,
                owner: owner(it.session)?,
            },
            Self::Remove(it) => Action::Remove { key: it.key },
        })
    }
}

pub(super) async fn transact(
    State(api): State<Api>,
    Part(map): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
    caller: Caller,
    Body(body): Body,
) -> Answer {
    let body: Steps = from_json(&body)?;
    let steps = body.then.iter().chain(&body.otherwise);
    caller.notes("keys", steps.map(Step::key));
    let compare = body.when.into_iter().map(|it| Compare {
        key: it.key,
        expected: expected(Some(it.version)),
    });
    let actions = |steps: Vec<Step>| -> Result<Vec<Action>, Refusal> {
        steps.into_iter().map(Step::action).collect()
    };
    let mut transaction = Transaction::new();
    transaction.compare.extend(compare);
    transaction.then.extend(actions(body.then)?);
    transaction.otherwise.extend(actions(body.otherwise)?);
    let map = api.node.map(&map);
    let done = wait.of(map.transact(transaction));
    stored(api.latencies.of_change(done).await?)
}
