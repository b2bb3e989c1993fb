//! The settings of a run, drawn from its first bytes.

use alloc::vec::Vec;

use selvedge_core::{Member, NodeId, Span};
use selvedge_replica::Configuration;
use selvedge_sim::Bytes;

use crate::client::{self, Client};
use crate::follower::{self, Follower};
use crate::gateway::{self, Gateway, Voting};
use crate::node::Node;
use crate::{DutyCycle, Limits};

/// The first id of a follower.
const FOLLOWERS: u64 = 11;
/// The first id of a client.
const CLIENTS: u64 = 21;
/// The first id of a stranger: a sender that is no node of the mesh.
const STRANGERS: u64 = 31;

/// The number of a client's tasks that may wait at once.
pub(super) const CLIENT_TASKS: u16 = 4;

/// The number of strangers.
pub(super) const STRANGER_COUNT: u64 = 2;

/// The wrong values and messages that a run may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Honesty {
    /// None: all nodes follow the rules.
    Honest,
    /// Functions return wrong values at some followers.
    Values,
    /// Some followers, and strangers, also send any message, but not in a gateway's name.
    Liars,
    /// Messages come from any id, with any fields: then only limits are promised.
    Hostile,
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) gateways: usize,
    pub(super) followers: usize,
    pub(super) clients: usize,
    pub(super) honesty: Honesty,
    /// The followers that lie, a bit for each.
    liars: u8,
    pub(super) limits: Limits,
    pub(super) gateway: gateway::Config,
    /// True if functions return at once.
    pub(super) is_prompt: bool,
    /// True if units are formed before faults begin.
    pub(super) is_formed: bool,
    /// A number from which the nodes' own settings are picked.
    variant: usize,
}

impl Settings {
    pub(super) fn new(bytes: &mut Bytes<'_>) -> Self {
        let (shape, more, sizes) = (bytes.take(), bytes.take(), bytes.take());
        let (times, room) = (bytes.take(), bytes.take());
        let variant = bytes.take();
        let honesty = match more & 7 {
            0..=2 => Honesty::Honest,
            3 => Honesty::Values,
            4 | 5 => Honesty::Liars,
            _ => Honesty::Hostile,
        };
        let liars = match honesty {
            Honesty::Honest => 0,
            Honesty::Values | Honesty::Liars | Honesty::Hostile => bytes.take(),
        };
        let voting = match shape & 64 {
            0 => Voting::Static,
            _ => Voting::Dynamic,
        };
        Self {
            gateways: 1 + usize::from(shape & 3).min(2),
            followers: 3 + usize::from(shape >> 2 & 3).min(2),
            clients: 1 + usize::from(shape >> 4 & 1),
            honesty,
            liars,
            limits: limits(sizes, room).with_counts_votes(shape & 32 == 32),
            gateway: gateway_config(times)
                .with_voting(voting)
                .with_heartbeat(Span::millis(if shape & 128 == 0 { 500 } else { 0 })),
            is_prompt: more & 8 == 0,
            is_formed: more & 48 != 48,
            variant: variant.into(),
        }
    }

    /// Returns true if only limits are promised.
    pub(super) fn is_hostile(&self) -> bool {
        self.honesty == Honesty::Hostile
    }

    /// Returns true if a membership service reports gateways, in place of heartbeats.
    pub(super) fn has_membership(&self) -> bool {
        self.gateway.heartbeat == Span::ZERO
    }

    /// Returns true if the tables have room to remember every node that ever sends a task.
    pub(super) fn remembers(&self) -> bool {
        let others = match self.honesty {
            Honesty::Honest | Honesty::Values => 0,
            Honesty::Liars | Honesty::Hostile => self.followers + STRANGER_COUNT as usize,
        };
        self.limits.clients as usize >= self.clients + others
    }

    /// Returns true if the tables have room for all followers, and for strangers that attach themselves.
    pub(super) fn has_room(&self) -> bool {
        let others = match self.honesty {
            Honesty::Honest | Honesty::Values => 0,
            Honesty::Liars | Honesty::Hostile => STRANGER_COUNT as usize,
        };
        self.limits.followers as usize >= self.followers + others
    }

    /// Returns true if this is a follower that may lie.
    pub(super) fn lies(&self, id: NodeId) -> bool {
        let nth = id.0.saturating_sub(FOLLOWERS);
        let is_follower = id.0 >= FOLLOWERS && nth < self.followers as u64;
        is_follower && self.liars >> nth & 1 == 1
    }

    /// Returns true if the node's messages are all its machine's own, and none is forged.
    pub(super) fn is_believed(&self, id: NodeId) -> bool {
        self.honesty <= Honesty::Values || !self.lies(id) && id.0 < STRANGERS
    }

    pub(super) fn stranger(byte: u8) -> Member {
        let id = STRANGERS + u64::from(byte) % STRANGER_COUNT;
        Member::new(id, u32::from(byte >> 6 & 1))
    }

    pub(super) fn first_follower(&self) -> usize {
        self.gateways
    }

    pub(super) fn first_client(&self) -> usize {
        self.gateways + self.followers
    }

    /// All nodes, each in its first life.
    pub(super) fn members(&self) -> Vec<Member> {
        let ids = |first: u64, count: usize| first..first + count as u64;
        let gateways = ids(1, self.gateways);
        let followers = ids(FOLLOWERS, self.followers);
        let all = gateways.chain(followers).chain(ids(CLIENTS, self.clients));
        all.map(|id| Member::new(id, 0)).collect()
    }

    pub(super) fn gateway_ids(&self) -> impl Iterator<Item = NodeId> + Clone + use<> {
        (1..=self.gateways as u64).map(NodeId)
    }

    /// Picks one of these values, by the run and by the node.
    fn pick<T: Copy>(&self, of: &[T], node: usize, shift: u32, otherwise: T) -> T {
        let at = (self.variant >> shift).wrapping_add(node);
        let at = at.checked_rem(of.len()).unwrap_or_default();
        of.get(at).copied().unwrap_or(otherwise)
    }

    /// The first configuration of the gateways.
    pub(super) fn first_configuration(&self) -> Configuration {
        Configuration::of(self.gateway_ids().map(|id| Member::new(id.0, 0)))
    }

    /// A gateway at the beginning of a run, without stored facts.
    pub(super) fn first_gateway(&self, me: Member) -> Gateway {
        let first = self.first_configuration();
        let made = Gateway::new(me, self.gateway, first, self.limits);
        made.unwrap_or_else(|_| unreachable_settings())
    }

    /// The duty cycle of a follower.
    pub(super) fn duty(&self, node: usize, like: u8) -> DutyCycle {
        let like = node + usize::from(like);
        DutyCycle {
            active_ms: self.pick(&[300, 500, 1_000], like, 0, 1),
            busy_ms: self.pick(&[0, 0, 200], like, 1, 0),
            asleep_ms: self.pick(&[0, 700, 2_000, 0], like, 2, 0),
        }
    }

    pub(super) fn follower_config(&self, node: usize) -> follower::Config {
        follower::Config::new(self.duty(node, 0))
            .with_jobs(self.pick(&[8, 2, 1, 3], node, 3, 1))
            .with_code(6)
            .with_result(self.limits.result)
            .with_libraries(self.pick(&[2, 4, 1], node, 1, 1))
            .with_repeats(self.pick(&[16, 3, 1], node, 2, 1))
            .with_time(Span::millis(self.pick(&[400, 1_500], node, 4, 1)))
    }

    pub(super) fn client_config(&self, node: usize) -> client::Config {
        client::Config::new()
            .with_resend(Span::millis(self.pick(&[500, 1_000, 2_000], node, 3, 1)))
            .with_repeats(self.pick(&[2, 1], node, 5, 1))
            .with_tasks(CLIENT_TASKS)
    }

    /// The gateways of a node's list, beginning at the gateway at place `first`.
    fn list_from(&self, first: usize) -> Vec<NodeId> {
        let all = self.gateway_ids();
        all.clone()
            .chain(all)
            .skip(first % self.gateways.max(1))
            .take(self.gateways)
            .collect()
    }

    /// A new node for a seat. The list of a follower or client begins at the gateway at place `at`.
    pub(super) fn machine(&self, seat: usize, me: Member, at: usize) -> Node {
        let list = self.list_from(at);
        if seat < self.gateways {
            return Node::from(self.first_gateway(me));
        }
        if seat < self.first_client() {
            let made = Follower::new(me, self.follower_config(seat), list);
            let made = made.unwrap_or_else(|_| unreachable_settings());
            return Node::from(made);
        }
        let made = Client::new(me, self.client_config(seat), list);
        let made = made.unwrap_or_else(|_| unreachable_settings());
        Node::from(made)
    }
}

fn limits(sizes: u8, room: u8) -> Limits {
    let pick = |of: [u32; 4], at: u8| of.get(usize::from(at & 3)).copied().unwrap_or(1);
    let short = |it: u32| u16::try_from(it).unwrap_or(1);
    Limits::new()
        .with_followers(if room & 192 == 192 { 3 } else { 8 })
        .with_libraries(short(pick([4, 1, 0, 2], room >> 4)))
        .with_unit(short(pick([5, 3, 4, 3], sizes)))
        .with_gateways(3)
        .with_tombstones(pick([8, 8, 1, 0], sizes >> 2))
        .with_open(pick([16, 4, 2, 1], sizes >> 4))
        .with_done(pick([16, 16, 4, 1], sizes >> 6))
        .with_cache(pick([0, 4, 1, 0], room))
        .with_clients(pick([16, 16, 2, 1], room >> 2))
        .with_attempts(short(pick([5, 2, 1, 5], room >> 1)))
        .with_result(4)
}

fn gateway_config(times: u8) -> gateway::Config {
    let pick = |of: [u64; 4], at: u8| of.get(usize::from(at & 3)).copied().unwrap_or(1);
    let tenths = |it: u64| u16::try_from(it).unwrap_or(u16::MAX);
    gateway::Config::new()
        .with_timeout(Span::millis(pick([1_500, 4_000, 1_500, 2_000], times)))
        .with_purge_after(tenths(pick([35, 25, 15, 11], times >> 1)))
        .with_offload_after(tenths(pick([40, 20, 10, 40], times >> 3)))
        .with_settle(Span::millis(pick([200, 1, 1_000, 200], times >> 4)))
        .with_review(Span::millis(pick(
            [3_000, 2_000, 10_000, 5_000],
            times >> 6,
        )))
        .with_clients(tenths(pick([16, 16, 3, 1], times >> 5)))
}

#[allow(clippy::panic, reason = "a defect of the check itself")]
pub(super) fn unreachable_settings() -> ! {
    panic!("the settings of a run can work")
}
