//! A node of raft-rs, which applies committed entries.

use protobuf::Message as _;
use raft::prelude::{Config, Entry, Message, RawNode};
use raft::storage::MemStorage;
use slog::{Discard, Logger, o};

use crate::network::{Network, Out, Peer, Time};
use crate::replication::{Sum, Update};

/// With raft-rs' defaults heartbeats are sent every 200 ms and elections begin after 2 to 4 s.
const TICK: Time = 100_000;

/// The size of a message, which is filled with entries up to a datagram.
const MESSAGE_BYTES: u64 = 1_400;

/// Settings of raft-rs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Variant {
    pub(crate) pre_vote: bool,
    /// True if a commit is sent with the next entries alone.
    pub(crate) skip_bcast_commit: bool,
}

pub(crate) struct Raft {
    pub(crate) node: RawNode<MemStorage>,
    pub(crate) state: Sum,
    seed: u64,
    limits: (usize, usize),
}

impl Raft {
    fn new(id: u64, voters: &[u64], variant: Variant, seed: u64) -> Self {
        let config = Config {
            id,
            pre_vote: variant.pre_vote,
            skip_bcast_commit: variant.skip_bcast_commit,
            max_size_per_msg: MESSAGE_BYTES,
            ..Config::default()
        };
        let limits = (config.min_election_tick(), config.max_election_tick());
        let storage = MemStorage::new_with_conf_state((voters.to_vec(), vec![]));
        let logger = Logger::root(Discard, o!());
        let node = RawNode::new(&config, storage, &logger).expect("settings that work");
        Self {
            node,
            state: Sum::default(),
            seed,
            limits,
        }
    }

    /// The node that it takes for the leader.
    pub(crate) fn leader(&self) -> Option<usize> {
        (self.node.raft.leader_id as usize).checked_sub(1)
    }

    /// Sets the timeout of a term to our own draw: raft-rs draws from a generator that cannot be
    /// seeded.
    fn set_timeout(&mut self) {
        let (low, high) = self.limits;
        let term = self.node.raft.term;
        let id = self.node.raft.id;
        let mut mixed = self.seed;
        for value in [id, term] {
            mixed = (mixed ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^= mixed >> 29;
        }
        let timeout = low + mixed as usize % (high - low);
        self.node.raft.set_randomized_election_timeout(timeout);
    }

    pub(crate) fn carry_out<T>(&mut self, out: &mut Out<T>) {
        self.set_timeout();
        while self.node.has_ready() {
            let mut ready = self.node.ready();
            send(ready.take_messages(), out);
            self.apply(ready.take_committed_entries());
            let store = self.node.store().clone();
            let appended = store.wl().append(ready.entries());
            appended.expect("entries in order");
            if let Some(state) = ready.hs() {
                store.wl().set_hardstate(state.clone());
            }
            send(ready.take_persisted_messages(), out);
            let mut light = self.node.advance(ready);
            if let Some(commit) = light.commit_index() {
                store.wl().mut_hard_state().commit = commit;
            }
            send(light.take_messages(), out);
            self.apply(light.take_committed_entries());
            self.node.advance_apply();
        }
    }

    /// Leaders begin with an entry that is empty.
    fn apply(&mut self, entries: Vec<Entry>) {
        let updates = entries
            .iter()
            .filter_map(|it| Update::try_from(&*it.data).ok());
        for update in updates {
            self.state.take(&update);
        }
    }
}

fn send<T>(messages: Vec<Message>, out: &mut Out<T>) {
    for message in messages {
        let bytes = message.write_to_bytes().expect("memory");
        out.sends.push((message.to as usize - 1, bytes));
    }
}

impl Peer for Raft {
    type Timer = ();

    fn receive(&mut self, _now: Time, datagram: &[u8], out: &mut Out<()>) {
        if let Ok(message) = Message::parse_from_bytes(datagram) {
            // Refused messages are dropped, as a host does.
            let _taken = self.node.step(message);
            self.carry_out(out);
        }
    }

    fn tick(&mut self, now: Time, (): (), out: &mut Out<()>) {
        self.node.tick();
        self.carry_out(out);
        out.timers.push((now + TICK, ()));
    }
}

/// A cluster without a leader.
pub(crate) fn cluster((nodes, loss, seed): (usize, u64, u64), variant: Variant) -> Network<Raft> {
    let mut network = Network::new(seed, loss);
    let voters: Vec<u64> = (1..=nodes as u64).collect();
    for node in 0..nodes {
        network.add(Raft::new(voters[node], &voters, variant, seed));
        network.with(node, |peer, now, out| {
            peer.set_timeout();
            // Nodes do not tick in step.
            out.timers
                .push((now + TICK * node as Time / nodes as Time, ()));
        });
    }
    network
}
