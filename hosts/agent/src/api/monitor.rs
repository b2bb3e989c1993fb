//! The events of a node, as server-sent events.

use core::convert::Infallible;
use std::collections::VecDeque;

use axum::extract::State;
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use selvedge_udp::selvedge::core::shared::RecvError;
use selvedge_udp::selvedge::membership::Event;
use selvedge_udp::{Events, Member, NodeEvent};

use super::Api;
use super::answer::{Value, event};
use super::holds::COMMENTS;
use super::members::MemberView;
use crate::message;

struct Monitor {
    api: Api,
    events: Events,
    leader: Option<Member>,
    /// Events that wait.
    waiting: VecDeque<sse::Event>,
}

pub(super) async fn monitor(State(api): State<Api>) -> Response {
    let events = api.node.events();
    let leader = api.node.leader().map(|it| it.0);
    let members = api.node.members();
    let present = members
        .iter()
        .map(|it| event("member", &MemberView::from(it)));
    let mut waiting: VecDeque<_> = present.collect();
    waiting.push_back(event("leader", &api.leader()));
    let monitor = Monitor {
        api,
        events,
        leader,
        waiting,
    };
    let events = stream::unfold(monitor, async |mut monitor: Monitor| {
        loop {
            if let Some(event) = monitor.waiting.pop_front() {
                return Some((Ok::<_, Infallible>(event), monitor));
            }
            monitor.next().await?;
        }
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(COMMENTS))
        .into_response()
}

impl Monitor {
    /// Waits for an event of the node; `None` when that has stopped.
    async fn next(&mut self) -> Option<()> {
        match self.events.recv().await {
            Ok(observed) => self.on_event(&observed.event),
            Err(RecvError::Lagged { missed }) => {
                let missed = serde_json::json!({ "missed": missed });
                self.waiting.push_back(event("missed", &missed));
            }
            Err(RecvError::Closed) => return None,
        }
        let leader = self.api.node.leader().map(|it| it.0);
        if leader != self.leader {
            self.leader = leader;
            self.waiting.push_back(event("leader", &self.api.leader()));
        }
        Some(())
    }

    #[allow(
        clippy::wildcard_enum_match_arm,
        reason = "all other events, also later ones, are no news of members"
    )]
    fn on_event(&mut self, news: &NodeEvent) {
        let member = match news {
            NodeEvent::Membership(Event::Changed(delta)) => delta.member(),
            NodeEvent::TagsChanged { member, .. } => *member,
            NodeEvent::Question(question) => {
                let question = self.api.question(question);
                let news = question.map(|it| event("question", &it));
                return self.waiting.extend(news);
            }
            NodeEvent::Membership(Event::BroadcastReceived { origin, payload }) => {
                if let Some((name, value)) = message::decode(payload) {
                    let from = origin.id.0;
                    let news = Message {
                        name,
                        value: Value::of(value),
                        from,
                    };
                    self.waiting.push_back(event("message", &news));
                }
                return;
            }
            _ => return,
        };
        let members = self.api.node.members();
        if let Some(listed) = members.iter().find(|it| it.member.id == member.id) {
            self.waiting
                .push_back(event("member", &MemberView::from(listed)));
        }
    }
}

#[derive(serde::Serialize)]
struct Message<'a> {
    name: &'a str,
    #[serde(flatten)]
    value: Value,
    from: u64,
}
