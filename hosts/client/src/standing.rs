//! The standing of a hold, and the tasks that follow it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use crate::events::Stream;
use crate::{Agent, Error, Hold, HoldInfo, Kind};

/// The shortest interval of requests to extend a hold: a quarter of a second, the shortest time to live.
const EXTENDS: Duration = Duration::from_millis(250);
/// The longest one: a quarter of a day, the longest time to live.
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// The standing of a hold, as far as this process has received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    phase: Phase,
    /// The moment until which it is certainly held. The clock passes it without a task.
    pub(crate) until: Instant,
    /// The last report that it lapsed. Answers to earlier requests do not count.
    lapsed: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It is held, or may be again.
    Open,
    /// Its connection is closed: the agent releases it.
    Closed,
    Ended,
}

impl Standing {
    /// The standing at the event that it is held, which answers a request that was sent at this moment.
    pub(crate) fn new(sent: Instant, info: &HoldInfo) -> Self {
        Self {
            phase: Phase::Open,
            until: until(sent, info),
            lapsed: sent,
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.phase == Phase::Open && now() < self.until
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Takes the answer to a request that was sent at this moment.
    pub(crate) fn answered(&mut self, sent: Instant, info: &HoldInfo) {
        if sent >= self.lapsed {
            self.until = until(sent, info);
        }
    }

    fn lapse(&mut self) {
        self.lapsed = now();
        self.until = self.lapsed;
    }

    /// The first end is final.
    fn close(&mut self, phase: Phase) {
        if self.phase != Phase::Ended {
            self.phase = phase;
        }
    }
}

/// The moment until which a hold is certainly held, if its agent answered at this one or later.
fn until(at: Instant, info: &HoldInfo) -> Instant {
    let alive_for = match info.is_held {
        true => info.alive_for_ms.min(info.ttl_ms),
        false => 0,
    };
    let until = at.checked_add(Duration::from_millis(alive_for));
    until.unwrap_or(at)
}

#[allow(clippy::disallowed_methods, reason = "a host reads the clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Extends a hold each quarter of its time to live, and when it is woken, until it ends.
pub(crate) async fn extend(
    agent: Agent,
    info: HoldInfo,
    standing: watch::Sender<Standing>,
    wakes: Arc<Notify>,
) {
    let interval = Duration::from_millis(info.ttl_ms / 4).clamp(EXTENDS, LONGEST);
    let agent = agent.with_wait(interval);
    while standing.borrow().phase == Phase::Open {
        let sent = now();
        match timeout(interval, agent.extend_hold(&info.hold)).await {
            Ok(Ok(info)) => standing.send_modify(|it| it.answered(sent, &info)),
            Ok(Err(error)) if error.kind() == Some(Kind::NotFound) => {
                standing.send_modify(|it| it.close(Phase::Ended));
            }
            // Another attempt follows, and without an answer it lapses.
            Ok(Err(_)) | Err(_) => {}
        }
        timeout_at(sent + interval, wakes.notified()).await.ok();
        sleep_until(sent + EXTENDS).await;
    }
}

/// Follows the events of a hold until it has ended.
pub(crate) async fn follow(
    stream: Stream,
    ttl: Duration,
    standing: watch::Sender<Standing>,
    wakes: Arc<Notify>,
) {
    if read(stream, &standing, ttl.max(Hold::SILENCE), &wakes)
        .await
        .is_err()
    {
        // The connection is closed. An agent that is alive releases the hold now; without one, its session ends
        // after its time to live.
        standing.send_modify(|it| it.close(Phase::Closed));
        sleep(ttl).await;
    }
    standing.send_modify(|it| it.close(Phase::Ended));
}

/// Reads events until the hold has ended, or the agent is silent.
async fn read(
    mut stream: Stream,
    standing: &watch::Sender<Standing>,
    silence: Duration,
    wakes: &Notify,
) -> Result<(), Error> {
    loop {
        while let Some(event) = stream.ready()? {
            match &*event.name {
                "lapsed" => standing.send_modify(Standing::lapse),
                "alive" => wakes.notify_one(),
                "ended" => return Ok(()),
                _ => {}
            }
        }
        match timeout(silence, stream.read()).await {
            Ok(read) => read?,
            Err(_) => return Ok(()),
        }
    }
}
