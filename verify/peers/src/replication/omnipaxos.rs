//! Nodes of OmniPaxos, with storage in memory.

use omnipaxos::messages::Message;
use omnipaxos::storage::{Entry, Snapshot};
use omnipaxos::util::LogEntry;
use omnipaxos::{ClusterConfig, OmniPaxos, ServerConfig};
use omnipaxos_storage::memory_storage::MemoryStorage;
use serde::{Deserialize, Serialize};

use super::{Replicates, Sum, Update};
use crate::network::{Network, Out, Peer, Time};

/// The period of the leader's heartbeats, and so the time in which its failure is noticed.
const TICK: Time = 100_000;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Logged(Update);

/// Its log is never replaced by a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NoSnapshot;

impl Entry for Logged {
    type Snapshot = NoSnapshot;
}

impl Snapshot<Logged> for NoSnapshot {
    fn create(_entries: &[Logged]) -> Self {
        Self
    }

    fn merge(&mut self, _delta: Self) {}

    fn use_snapshots() -> bool {
        false
    }
}

pub(crate) struct Node {
    node: OmniPaxos<Logged, MemoryStorage<Logged>>,
    state: Sum,
    /// The end of the applied part of the log.
    applied: usize,
    outgoing: Vec<Message<Logged>>,
}

impl Node {
    fn new(node: usize, nodes: usize) -> Self {
        let cluster = ClusterConfig {
            configuration_id: 1,
            nodes: (1..=nodes as u64).collect(),
            flexible_quorum: None,
        };
        let server = ServerConfig {
            pid: node as u64 + 1,
            // The first node leads.
            leader_priority: u32::from(node == 0),
            ..ServerConfig::default()
        };
        let node = cluster.build_for_server(server, MemoryStorage::default());
        Self {
            node: node.expect("settings that work"),
            state: Sum::default(),
            applied: 0,
            outgoing: Vec::new(),
        }
    }

    fn carry_out<T>(&mut self, out: &mut Out<T>) {
        let decided = self.node.get_decided_idx();
        if decided > self.applied {
            let entries = self.node.read_decided_suffix(self.applied);
            for entry in entries.into_iter().flatten() {
                if let LogEntry::Decided(Logged(update)) = entry {
                    self.state.take(&update);
                }
            }
            self.applied = decided;
        }
        self.node.take_outgoing_messages(&mut self.outgoing);
        for message in self.outgoing.drain(..) {
            let to = message.get_receiver() as usize - 1;
            let bytes = postcard::to_extend(&message, Vec::with_capacity(64));
            out.sends.push((to, bytes.expect("memory")));
        }
    }
}

impl Peer for Node {
    type Timer = ();

    fn receive(&mut self, _now: Time, datagram: &[u8], out: &mut Out<()>) {
        if let Ok(message) = postcard::from_bytes(datagram) {
            self.node.handle_incoming(message);
            self.carry_out(out);
        }
    }

    fn tick(&mut self, now: Time, (): (), out: &mut Out<()>) {
        self.node.tick();
        self.carry_out(out);
        out.timers.push((now + TICK, ()));
    }
}

impl Replicates for Node {
    fn leads(&self) -> bool {
        let leader = self.node.get_current_leader();
        leader == Some((self.node.get_pid(), true))
    }

    fn stand(&mut self, _now: Time, out: &mut Out<()>) {
        self.node.try_become_leader();
        self.carry_out(out);
    }

    /// It would notice by itself after some heartbeats.
    fn lose(&mut self, now: Time, _leader: usize, is_first: bool, out: &mut Out<()>) {
        if is_first {
            self.stand(now, out);
        }
    }

    fn propose(&mut self, _now: Time, updates: &[Update], out: &mut Out<()>) {
        for update in updates {
            let proposed = self.node.append(Logged(*update));
            proposed.expect("it is not stopped");
        }
        self.carry_out(out);
    }

    fn state(&self) -> &Sum {
        &self.state
    }
}

/// A cluster without a leader.
pub(super) fn cluster(nodes: usize, seed: u64) -> Network<Node> {
    let mut network = Network::new(seed, 0);
    for node in 0..nodes {
        network.add(Node::new(node, nodes));
        network.with(node, |_, now, out| {
            // Nodes do not tick in step.
            out.timers
                .push((now + TICK * node as Time / nodes as Time, ()));
        });
    }
    network
}
