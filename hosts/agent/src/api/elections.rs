//! Elections among candidates with priorities.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse as _;
use axum::response::sse::{KeepAlive, Sse};
use futures_util::stream;
use selvedge_udp::recipes::priority_election::{Candidate, PriorityElection, Token};
use selvedge_udp::selvedge::groups::store::{Entry, TTL_MIN};
use selvedge_udp::{Error, Span, Watch};
use serde::{Deserialize, Serialize};

use super::Api;
use super::answer::{Answer, Value, event, json};
use super::asked::{Asked, Body, Client, Part, Ttl, Wait, session_id, wants_events};
use super::holds::{COMMENTS, no_hold, taken};
use super::maps::Waits;
use super::refusal::{Kind, Refusal};
use crate::held::{HandOver, Held, TokenView};

/// The priority of candidates and items that give none: there is room before it and behind it.
pub(super) const PRIORITY: u32 = 100;

pub(super) const fn priority() -> u32 {
    PRIORITY
}

#[derive(Serialize)]
struct Leader {
    #[serde(flatten)]
    value: Value,
    token: TokenView,
}

#[derive(Serialize)]
struct CandidateView {
    #[serde(flatten)]
    value: Value,
    priority: u32,
    session: Option<String>,
}

impl From<&Candidate> for CandidateView {
    fn from(candidate: &Candidate) -> Self {
        Self {
            value: Value::of(candidate.value()),
            priority: candidate.priority(),
            session: candidate.session().map(|it| it.to_string()),
        }
    }
}

impl Api {
    fn election(&self, name: &str, ttl: Span) -> PriorityElection<'static> {
        PriorityElection::new(self.recipe("elections"), name, ttl)
    }

    /// The refusal of a client whose leader is not here.
    async fn leads_elsewhere(&self, name: &str, wait: Wait) -> Result<Refusal, Refusal> {
        let election = self.election(name, TTL_MIN);
        let leader = async { election.observe().await?.next().await };
        let by = wait.of(leader).await?.and_then(|it| it.session);
        let why = match by.map(|it| it.by.id) {
            Some(id) if id != self.node.id() => format!(
                "the program that leads {name:?} uses the agent of the member {id}: ask that one"
            ),
            Some(_) | None => {
                format!("no program leads {name:?} through an agent: see who leads, and ask again")
            }
        };
        Ok(Refusal::new(Kind::NotFound, why))
    }

    fn leading(&self, entry: &Entry) -> Leader {
        let token = Token {
            map: self.recipe("elections").group(),
            version: entry.version,
        };
        Leader {
            value: Value::of(&entry.value),
            token: token.into(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsksPlace {
    #[serde(default = "priority")]
    priority: u32,
    #[serde(default)]
    ttl: Ttl,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn campaign(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(AsksPlace {
        priority,
        ttl,
        wait,
    }): Asked<AsksPlace>,
    client: Client,
    Body(value): Body,
) -> Answer {
    let election = api.election(&name, ttl.span()?);
    let leads = wait.above_zero()?.over(election.campaign(priority, &value));
    let leads = api.latencies.of_wait("election", leads).await?;
    let leads = leads.ok_or_else(|| taken("the place of the leader of", &name))?;
    api.hold(Held::Election(election, leads), &name, ttl, client)
}

pub(super) async fn observe(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
    headers: HeaderMap,
) -> Answer {
    // An observer has no session.
    let election = api.election(&name, TTL_MIN);
    if !wants_events(&headers) {
        let leader = async { election.observe().await?.next().await };
        let leader = wait.of(leader).await?;
        return json(&leader.map(|it| api.leading(&it)));
    }
    let watch = wait.of(election.observe()).await?;
    let events = stream::try_unfold((api, watch), |(api, mut watch): (Api, Watch)| async {
        let leader = watch.next().await?.map(|it| api.leading(&it));
        Ok::<_, Error>(Some((event("leader", &leader), (api, watch))))
    });
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::new().interval(COMMENTS))
        .into_response())
}

pub(super) async fn candidates(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let election = api.election(&name, TTL_MIN);
    let candidates = wait.of(election.candidates()).await?;
    json(
        &candidates
            .iter()
            .map(CandidateView::from)
            .collect::<Vec<_>>(),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AsksHandOver {
    /// The session of the candidate; the first one without it.
    to: Option<String>,
    #[serde(default)]
    wait: Wait,
}

pub(super) async fn hand_over(
    State(api): State<Api>,
    Part(hold): Part<String>,
    Asked(AsksHandOver { to, wait }): Asked<AsksHandOver>,
) -> Answer {
    let to = to.as_deref().map(session_id).transpose()?;
    let handed = async { Ok(api.holds.hand_over(&hold, to).await) };
    let handed = wait.above_zero()?.of(handed).await?;
    handed_over(handed.ok_or_else(|| no_hold(&hold))??)
}

fn handed_over(outcome: HandOver) -> Answer {
    match outcome {
        HandOver::Done => json(&serde_json::Map::new()),
        HandOver::NoCandidate => Err(no_candidate()),
        HandOver::NoElection => Err(Refusal::bad(
            "this hold has no candidates: release it, or give the hold of a leader",
        )),
        HandOver::Overtaken => {
            let why = "a later request to hand over took the place of this one: see who leads";
            Err(Refusal::new(Kind::Unavailable, why))
        }
    }
}

fn no_candidate() -> Refusal {
    let why = "no such candidate waits, so the leader leads on: see the candidates";
    Refusal::new(Kind::Mismatch, why)
}

/// Hands the leadership over for a program that is not the leader.
pub(super) async fn depose(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(AsksHandOver { to, wait }): Asked<AsksHandOver>,
) -> Answer {
    let to = to.as_deref().map(session_id).transpose()?;
    let wait = wait.above_zero()?;
    let deposed = async {
        let election = api.election(&name, TTL_MIN);
        let candidates = election.candidates().await?;
        let is_meant = |it: &Candidate| to.is_none_or(|to| it.session() == Some(to));
        // The leader is not disturbed in vain.
        if !candidates.iter().any(is_meant) {
            return Ok(Some(Ok(HandOver::NoCandidate)));
        }
        Ok(api.holds.depose(&name, to).await)
    };
    let end = wait.end();
    match wait.of(deposed).await? {
        Some(outcome) => handed_over(outcome?),
        None => Err(api.leads_elsewhere(&name, wait.until(end)).await?),
    }
}
