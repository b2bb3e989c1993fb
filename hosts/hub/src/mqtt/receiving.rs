//! Handling of messages from the broker, on the link's thread.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};

use selvedge_mqtt::link::{Link, LinkEvent};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::time::sleep;

use super::topic::{Asked, Topics};
use super::{ASKED, announce};
use crate::device::mqtt::Ear;
use crate::event_loop::Request;
use crate::house::Refusal;

/// The wait before an answer that found no room is sent again, and the number of attempts.
const FULL: Duration = Duration::from_millis(20);
const TRIES: usize = 250;

/// The receiver of published messages.
pub(super) struct Receiving {
    pub(super) topics: Arc<Topics>,
    pub(super) ears: Vec<Ear>,
    /// The indices of the ears at each topic.
    pub(super) by_topic: BTreeMap<String, Vec<usize>>,
    pub(super) requests: Sender<Request>,
    pub(super) asked: Arc<Semaphore>,
    pub(super) runtime: Handle,
    /// Notified when the link or Home Assistant comes up: the office publishes everything again. It is no
    /// message, which could find no room.
    pub(super) again: Arc<Notify>,
    /// Topics with a retained message that the hub does not publish any more.
    pub(super) stale: mpsc::Sender<String>,
    pub(super) link: Arc<OnceLock<Arc<Link>>>,
    pub(super) left_out: Arc<LeftOut>,
}

/// The number of messages that were dropped for want of room.
#[derive(Debug, Default)]
pub(super) struct LeftOut(AtomicU64);

impl LeftOut {
    /// Counts one more; logs the first, and then each time that the number has doubled.
    fn count(&self, what: &str, of: &str) {
        let all = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        if all.is_power_of_two() {
            tracing::warn!(
                of,
                all,
                "{what}: see whether the broker keeps up with the hub"
            );
        }
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Receiving {
    pub(super) fn receive(&self, event: LinkEvent) {
        match event {
            LinkEvent::Up { .. } => {
                self.ears.iter().for_each(|it| it.on_link(true));
                self.again.notify_one();
            }
            LinkEvent::Down(lost) => {
                self.ears.iter().for_each(|it| it.on_link(false));
                tracing::warn!(why = %lost, "no connection to the broker");
            }
            LinkEvent::Published {
                topic,
                payload,
                is_retained,
            } => self.on_published(&topic, &payload, is_retained),
            LinkEvent::Retained => debug_assert!(false, "all that is retained is taken"),
        }
    }

    fn on_stale(&self, topic: &str) {
        if self.stale.try_send(topic.into()).is_err() {
            // It is received again at the next start.
            self.left_out
                .count("retained messages that were not removed", topic);
        }
    }

    fn on_published(&self, topic: &str, payload: &[u8], is_retained: bool) {
        let ears = self.by_topic.get(topic).into_iter().flatten();
        let ears = ears.filter_map(|nth| self.ears.get(*nth));
        let mut is_understood = false;
        for ear in ears {
            is_understood |= ear.on_published(topic, payload, is_retained);
        }
        match self.topics.asked(topic) {
            Some(Asked::Run(name)) => self.on_run(name, payload, is_retained),
            Some(Asked::Cancel(name)) => self.on_cancel(name, payload, is_retained),
            Some(Asked::Anew) if payload == announce::ONLINE => self.again.notify_one(),
            Some(Asked::Anew) => {}
            // An empty message removes an announcement.
            Some(Asked::Announced) if !payload.is_empty() && !self.topics.is_announced(topic) => {
                self.on_stale(topic);
            }
            Some(Asked::Announced) => {}
            // A new message of the hub itself comes back to it, and is not retained.
            Some(Asked::Kept)
                if is_retained && !payload.is_empty() && !self.topics.is_kept(topic) =>
            {
                self.on_stale(topic);
            }
            Some(Asked::Kept) => {}
            None if !is_understood => {
                tracing::debug!(topic, bytes = payload.len(), "not understood");
            }
            None => {}
        }
    }

    fn on_run(&self, name: &str, payload: &[u8], is_retained: bool) {
        let why = match payload {
            _ if is_retained => announce::RETAINED,
            b"" | announce::PRESS => {
                let asked = String::from(name);
                return self.ask(name, |to| Request::Run(asked, to));
            }
            _ => "unknown payload: send PRESS, or an empty payload",
        };
        self.answer(name, Err(&Refusal::Hub(why.into())));
    }

    fn on_cancel(&self, name: &str, payload: &[u8], is_retained: bool) {
        let text = core::str::from_utf8(payload).unwrap_or("?").trim();
        let number = text.parse::<u64>();
        let why = match (text, number) {
            _ if is_retained => announce::RETAINED,
            ("" | "PRESS", _) => {
                let asked = String::from(name);
                return self.ask(name, |to| Request::CancelOf(asked, None, to));
            }
            (_, Ok(id)) => {
                let asked = String::from(name);
                return self.ask(name, |to| Request::CancelOf(asked, Some(id), to));
            }
            _ => "unknown payload: send the number of a run, or an empty payload for the latest",
        };
        self.answer(name, Err(&Refusal::Hub(why.into())));
    }

    fn ask(
        &self,
        name: &str,
        request: impl FnOnce(oneshot::Sender<Result<selvedge_safehome::RoutineId, Refusal>>) -> Request,
    ) {
        let Ok(permit) = Arc::clone(&self.asked).try_acquire_owned() else {
            let why = format!("{ASKED} requests wait for their answers: ask again in a moment");
            return self.answer(name, Err(&Refusal::Hub(why)));
        };
        let (to, answer) = oneshot::channel();
        if self.requests.send(request(to)).is_err() {
            return; // The process ends.
        }
        let (link, topics) = (Arc::clone(&self.link), Arc::clone(&self.topics));
        let left_out = Arc::clone(&self.left_out);
        let name = String::from(name);
        self.runtime.spawn(async move {
            let answer = answer.await;
            let Some((answer, link)) = answer.ok().zip(link.get()) else {
                return;
            };
            // Refusals to others must not displace the answer to a stored request: the permit is held until
            // it is sent.
            let mut is_reported = false;
            for _ in 0..TRIES {
                is_reported = say_answer(link, &topics, &name, answer.as_ref().map(|it| it.0));
                if is_reported {
                    break;
                }
                sleep(FULL).await;
            }
            if !is_reported {
                left_out.count("answers that found no room", &name);
            }
            drop(permit);
        });
    }

    fn answer(&self, name: &str, answer: Result<u64, &Refusal>) {
        // The link is set in a moment, if a message arrives before that.
        say_answer(self.link.wait(), &self.topics, name, answer);
    }
}

/// Sends an answer. Returns true if there was room for it.
fn say_answer(link: &Link, topics: &Topics, name: &str, answer: Result<u64, &Refusal>) -> bool {
    let payload = match answer {
        Ok(id) => serde_json::json!({ "id": id }),
        Err(refusal) => {
            let why = announce::short(&refusal.to_string(), announce::TEXT_MAX);
            serde_json::json!({ "error": why })
        }
    };
    // A client that misses it sees the messages about the run.
    let reported = link.publish(&topics.answer(name), payload.to_string().into_bytes());
    reported.is_ok()
}
