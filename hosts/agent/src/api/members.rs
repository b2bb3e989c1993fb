//! The members of the mesh.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use axum::extract::State;
use selvedge_udp::selvedge::kgroup::{ConfigError, Site};
use selvedge_udp::selvedge::membership::{Command, Status};
use selvedge_udp::{Error, Member, MemberInfo, NodeId, Tags};
use serde::Serialize;

use super::Api;
use super::answer::{Answer, json};
use super::asked::{Asked, Body, Part, Wait, from_json};
use super::maps::Waits;
use super::refusal::{Kind, Refusal};
use crate::audit::Caller;
use crate::{growth, message};

#[derive(Serialize)]
pub(super) struct Info {
    id: u64,
    incarnation: u32,
    address: SocketAddr,
    version: &'static str,
    is_in: bool,
    is_leader: bool,
    /// The generation of the list of nodes that hold maps.
    generation: Option<u32>,
    /// The nodes that hold maps.
    nodes: Vec<u64>,
}

#[derive(Serialize)]
pub(super) struct MemberView {
    id: u64,
    incarnation: u32,
    status: &'static str,
    address: Option<SocketAddr>,
    /// The smoothed round trip of this node's probes.
    round_trip_us: Option<u64>,
    tags: BTreeMap<String, String>,
}

#[derive(Serialize)]
pub(super) struct LeaderView {
    id: u64,
    incarnation: u32,
}

impl From<&MemberInfo> for MemberView {
    fn from(info: &MemberInfo) -> Self {
        let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
        let tags = info.tags.iter();
        Self {
            id: info.member.id.0,
            incarnation: info.member.incarnation.0,
            status: match info.status {
                Status::Alive => "alive",
                Status::Suspect => "suspected",
                Status::Failed => "failed",
                Status::Left => "left",
            },
            address: info.address,
            round_trip_us: info.round_trip.map(|it| it.0),
            tags: tags.map(|(name, it)| (name.to_owned(), text(it))).collect(),
        }
    }
}

impl From<Member> for LeaderView {
    fn from(member: Member) -> Self {
        Self {
            id: member.id.0,
            incarnation: member.incarnation.0,
        }
    }
}

impl Api {
    pub(super) fn leader(&self) -> Option<LeaderView> {
        self.node.leader().map(|it| it.0.into())
    }

    fn site(&self) -> Result<Site, Refusal> {
        let site = self.node.site().map(|it| it.as_ref().clone());
        site.ok_or_else(|| {
            let why = "this node does not know the nodes that hold maps yet: ask again";
            Refusal::new(Kind::Unavailable, why)
        })
    }

    async fn change(&self, later: Result<Site, ConfigError>, wait: Wait) -> Answer {
        let later = later.map_err(|it| Refusal::new(Kind::Mismatch, it))?;
        let generation = wait.of(self.node.change_site(later)).await?;
        json(&serde_json::json!({ "generation": generation }))
    }

    fn info(&self) -> Info {
        let state = self.node.state();
        let site = state.site.as_ref();
        Info {
            id: state.me.id.0,
            incarnation: state.me.incarnation.0,
            address: self.node.address(),
            version: env!("CARGO_PKG_VERSION"),
            is_in: state.is_in,
            is_leader: state.leader.is_some_and(|it| it.0 == state.me),
            generation: site.map(|it| it.generation()),
            nodes: site.map_or_else(Vec::new, |it| it.nodes().iter().map(|it| it.id.0).collect()),
        }
    }
}

pub(super) async fn info(State(api): State<Api>) -> Answer {
    json(&api.info())
}

pub(super) async fn members(State(api): State<Api>) -> Answer {
    let members = api.node.members();
    json(&members.iter().map(MemberView::from).collect::<Vec<_>>())
}

pub(super) async fn leader(State(api): State<Api>) -> Answer {
    json(&api.leader())
}

pub(super) async fn confirm(
    State(api): State<Api>,
    Part(id): Part<u64>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let members = api.node.members();
    let Some(listed) = members.iter().find(|it| it.member.id == NodeId(id)) else {
        let why = format!("no member has the id {id}: see /v1/members");
        return Err(Refusal::new(Kind::NotFound, why));
    };
    if listed.status.is_live() {
        let why = format!("the member {id} is here: only a failed one has ended for certain");
        return Err(Refusal::new(Kind::Mismatch, why));
    }
    let confirm = Command::Confirm(listed.member);
    wait.of(api.node.command(confirm)).await?;
    json(&serde_json::Map::new())
}

pub(super) async fn remove(
    State(api): State<Api>,
    Part(id): Part<u64>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let later = api.site()?.without_node(NodeId(id));
    api.change(later, wait).await
}

pub(super) async fn add(
    State(api): State<Api>,
    Part(id): Part<u64>,
    Asked(Waits { wait }): Asked<Waits>,
) -> Answer {
    let site = api.site()?;
    let later = site.with_node(growth::node(NodeId(id)));
    api.change(later, wait).await
}

pub(super) async fn reload(
    State(api): State<Api>,
    Asked(Waits { wait }): Asked<Waits>,
    caller: Caller,
) -> Answer {
    let Some(reloader) = api.reloader.clone() else {
        let why = "this agent has no settings to read again: start another one";
        return Err(Refusal::new(Kind::Unavailable, why));
    };
    // It goes on also if this request is over before.
    let reloads = tokio::spawn(async move { reloader.reload().await });
    let reloaded = wait.of(async { reloads.await.map_err(|_| Error::Unanswered) });
    let reloaded = reloaded.await?;
    caller.names.set(reloaded.names()).ok();
    json(&reloaded)
}

pub(super) async fn leave(State(api): State<Api>, Asked(Waits { wait }): Asked<Waits>) -> Answer {
    api.is_leaving.store(true, Ordering::Relaxed);
    let leaving = api.clone();
    // It leaves also if this request is over before.
    let leaves = tokio::spawn(async move {
        leaving.end_holds().await;
        leaving.node.leave().await
    });
    wait.of(async { leaves.await.unwrap_or(Err(Error::Unanswered)) })
        .await?;
    json(&serde_json::Map::new())
}

pub(super) async fn tags(
    State(api): State<Api>,
    Asked(Waits { wait }): Asked<Waits>,
    Body(body): Body,
) -> Answer {
    let tags: BTreeMap<String, String> = from_json(&body)?;
    let mut tags: Tags = tags.into_iter().collect();
    api.founders.mark(&mut tags);
    wait.of(api.node.set_tags(tags)).await?;
    json(&serde_json::Map::new())
}

pub(super) async fn message(
    State(api): State<Api>,
    Part(name): Part<String>,
    Asked(Waits { wait }): Asked<Waits>,
    Body(value): Body,
) -> Answer {
    let payload = message::encode(&name, &value).ok_or_else(message::too_long)?;
    let broadcast = Command::Broadcast(payload.into_boxed_slice());
    wait.of(api.node.command(broadcast)).await?;
    json(&serde_json::Map::new())
}
