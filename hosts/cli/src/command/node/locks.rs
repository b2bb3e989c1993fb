//! The flags of a node for the locks of the mesh, and the lock that it holds itself.

use core::time::Duration;

use clap::Args;
use selvedge::{Counting, Exclusion};
use selvedge_camera::estimate;
use selvedge_camera::sections::{self, Name};
use selvedge_core::shared::gate::EnterError;
use selvedge_core::{Member, NodeId, Span};
use selvedge_udp::{FencingToken, Gate, Handle, Setup, Tags};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

use super::log::Line;
use crate::command::Failure;

/// The tag of a node that takes part in locks.
const TAG: &str = "locks";
/// The pause after a refusal.
const PAUSE: Duration = Duration::from_secs(1);
/// A lock that waits for longer names the nodes for which it waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of lines that may wait for the log.
const LINES: usize = 16;

/// The part of a node in locks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Locks of the mesh")]
pub(super) struct LockFlags {
    /// Take part in the locks of the mesh, which has at most this number of lives of nodes at a time:
    /// the nodes, and one more for each that restarts while a lock is asked for, held or kept (--keep).
    /// More than half of them must answer. In one mesh all nodes take part, with the same number, or
    /// none
    #[arg(long, value_name = "LIVES", value_parser = clap::value_parser!(u32).range(1..))]
    locks: Option<u32>,
    /// Pass over a dead holder of a lock this many milliseconds after it was declared failed; without
    /// it others wait until the holder's end is certain. A slow holder then has the lock together with
    /// the next one, so the resource must refuse lower tokens. Equal at all nodes of a mesh
    #[arg(long, value_name = "MS", requires = "locks")]
    takeover: Option<u64>,
    /// Count the nodes every so many milliseconds, and raise the number of --locks where there are
    /// more; it is never lowered. A count only follows a mesh that grows: --locks has to be enough from
    /// the start, with room for the nodes that join until the next count, or two nodes may hold one
    /// lock. At all nodes of the mesh or at none
    #[arg(long, value_name = "MS", requires = "locks", value_parser = clap::value_parser!(u64).range(100..))]
    count: Option<u64>,
    /// Number of restarts at the same time for which a counted number has room. Two nodes need 0: they
    /// are counted as 3, and with room for a restart more than half would be more than they are.
    /// Default 1
    #[arg(long, value_name = "LIVES", requires = "count")]
    spare: Option<u32>,
    /// Take the lock of this name, and hold it until the node leaves: of several nodes with the same
    /// name one has it, and the next one when that leaves
    #[arg(long, value_name = "NAME", requires = "locks")]
    lock: Option<Name>,
    /// Hold --lock for so many milliseconds, release it and ask for it again, so that nodes take turns
    #[arg(long, value_name = "MS", requires = "lock", value_parser = clap::value_parser!(u64).range(10..))]
    hold: Option<u64>,
    /// Keep the permissions for --lock up to so many milliseconds after its release, unless another
    /// node asks: this node takes it again without a message. If it dies meanwhile, others wait for it
    /// as for a dead holder. Each node that restarts meanwhile is one more life in --locks. Nodes may
    /// differ in it
    #[arg(long, value_name = "MS", requires = "hold")]
    keep: Option<u64>,
    /// Take --lock as soon as more than half of the lives have agreed, without waiting for the slower
    /// nodes. Nodes may differ in it
    #[arg(long, requires = "lock")]
    eager: bool,
}

impl LockFlags {
    /// A setup with these flags.
    pub(super) fn set(&self, setup: Setup) -> Setup {
        let Some(lives) = self.locks else {
            return setup;
        };
        let mut exclusion = Exclusion::new(sections::Config::new(lives));
        if let Some(every) = self.count {
            exclusion = exclusion.with_counting(Counting {
                config: estimate::Config::default(),
                every: Span::millis(every),
                spare: self.spare.unwrap_or(1),
            });
        }
        let mut setup = setup.exclusion(exclusion);
        if let Some(after) = self.takeover {
            setup = setup.takeover(Span::millis(after));
        }
        if let Some(time) = self.keep {
            setup = setup.keep(Span::millis(time));
        }
        match self.eager {
            true => setup.eager(),
            false => setup,
        }
    }

    /// The settings that all nodes of a mesh must share, as the value of the tag [`TAG`].
    fn shared(&self) -> Option<String> {
        let mut shared = self.locks?.to_string();
        if let Some(after) = self.takeover {
            shared.push_str(&format!(", takeover {after} ms"));
        }
        if self.count.is_some() {
            shared.push_str(", counted");
        }
        Some(shared)
    }

    /// Adds the tag that other nodes compare with their own.
    ///
    /// # Errors
    /// If a tag of this name was given.
    pub(super) fn mark(&self, tags: &mut Tags) -> Result<(), Failure> {
        let Some(shared) = self.shared() else {
            return Ok(());
        };
        if tags.bytes(TAG).is_some() {
            return Err(Failure::TagOfLocks);
        }
        tags.set(TAG, shared);
        Ok(())
    }

    /// A line about a member whose tags show other settings of locks than this node has.
    pub(super) fn other(&self, member: NodeId, tags: &Tags) -> Option<String> {
        let found = tags.get(TAG)?;
        let own = self.shared();
        if own.as_deref() == Some(found) {
            return None;
        }
        // A terminal would obey its control characters.
        let found = found.escape_debug();
        Some(match own {
            Some(own) => format!(
                "node {member} has other settings of locks: {found}; this node has {own}: two nodes \
                 may hold one lock: give all nodes of the mesh the same --locks, --takeover and --count"
            ),
            None => format!(
                "node {member} takes part in locks, and this node does not, so it holds up every \
                 lock: give it --locks as well: {found}"
            ),
        })
    }

    /// Begins to take the lock, if one was named. The lines about it come by the receiver.
    pub(super) fn hold(&self, node: &Handle) -> Receiver<(&'static str, Line)> {
        let (lines, receiver) = channel(LINES);
        if let Some(name) = self.lock {
            let holder = Holder {
                name,
                time: self.hold.map(Duration::from_millis),
                lines,
            };
            let node = node.clone();
            tokio::spawn(async move { holder.run(&node).await });
        }
        receiver
    }
}

/// Holds a lock until the node leaves.
struct Holder {
    name: Name,
    /// The time for which it holds the lock; `None`: until the node leaves.
    time: Option<Duration>,
    lines: Sender<(&'static str, Line)>,
}

impl Holder {
    async fn run(&self, node: &Handle) {
        let gate = match node.gate(self.name).await {
            Ok(gate) => gate,
            Err(error) => return self.line("no-lock", error.to_string()).await,
        };
        let mut refusal = None;
        loop {
            match self.turn(node, &gate).await {
                Ok(true) => refusal = None,
                Ok(false) | Err(EnterError::Closed) => return,
                Err(why) => {
                    if refusal.replace(why) != Some(why) {
                        let text = format!("the lock {} is not given: {why}", self.name);
                        self.line("no-lock", text).await;
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Takes the lock and releases it. Returns false if the node leaves.
    async fn turn(
        &self,
        node: &Handle,
        gate: &Gate,
    ) -> Result<bool, EnterError<selvedge_udp::NoEntry>> {
        let enter = gate.enter();
        tokio::pin!(enter);
        let guard = match timeout(PATIENCE, &mut enter).await {
            Ok(entered) => entered?,
            Err(_) => {
                self.report_wait(node).await;
                enter.await?
            }
        };
        let (name, token) = (self.name, FencingToken::from(guard.token()));
        let line = Line::lock(
            format!("this node has the lock {name}, with the token {token}"),
            token,
        );
        self.send("locked", line).await;
        let over = async {
            match self.time {
                Some(time) => sleep(time).await,
                None => core::future::pending().await,
            }
        };
        let (event, text, goes_on) = tokio::select! {
            fenced = guard.fenced() => match fenced {
                Ok(()) => ("fenced", "another node has taken over", true),
                Err(_closed) => ("unlocked", "this node has released", false),
            },
            () = over => ("unlocked", "this node has released", true),
        };
        drop(guard);
        self.send(event, Line::lock(format!("{text} the lock {name}"), token))
            .await;
        Ok(goes_on)
    }

    async fn report_wait(&self, node: &Handle) {
        let waits_for = node.waits_for(self.name).await.unwrap_or_default();
        self.line("waits", waits(self.name, &waits_for)).await;
    }

    async fn line(&self, event: &'static str, text: String) {
        self.send(event, Line::new(text)).await;
    }

    async fn send(&self, event: &'static str, line: Line) {
        // The node ends where the log is no longer there.
        let _sent = self.lines.send((event, line)).await.is_ok();
    }
}

/// The text about a lock that waits for these.
fn waits(name: Name, waits_for: &[Member]) -> String {
    if waits_for.is_empty() {
        return format!(
            "the lock {name} is not given yet: too few nodes have answered, and none is known that holds it up"
        );
    }
    let nodes = waits_for.iter().map(|it| format!("node {}", it.id));
    let nodes = nodes.collect::<Vec<_>>().join(", ");
    format!("the lock {name} waits for {nodes}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_waits_names_the_nodes_or_that_too_few_have_answered() {
        let door = "door".parse().unwrap();
        let two = [Member::new(2, 0), Member::new(3, 1)];
        assert_eq!(waits(door, &two), "the lock door waits for node 2, node 3");
        let text = waits(door, &[]);
        assert!(
            text.starts_with("the lock door is not given yet: too few"),
            "{text}"
        );
    }
}
