//! In steady state, handling a message allocates nothing, for any number of members. Also the memory
//! of a member.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "../../core/tests/counting/mod.rs"]
mod counting;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_celect::{
    Ballot, Celect, Command, Config, LeaderState, Lowest, Members, Message, Protocol,
};
use selvedge_core::{
    Delta, Effect, Input, Member, NodeId, Outbox, Sha256Sortition, Sortition, Span,
};

use counting::{ByHand, Host, allocations};

fn member(id: u64) -> Member {
    Member::new(id, 0)
}

/// Node 0, which knows all others and suspected some of them.
struct Lone<H> {
    host: H,
    rng: ChaCha8Rng,
    members: u64,
    /// The messages of the last step, with enough capacity not to allocate.
    sent: Vec<(Member, Message)>,
}

impl<H: Host<Celect>> Lone<H> {
    fn new(members: u64, protocol: Protocol) -> Self {
        let config = Config::new(8, 2).with_protocol(protocol);
        let machine = Celect::new(member(0), config, Lowest::new(Sha256Sortition, b"")).unwrap();
        let mut lone = Self {
            host: H::new(machine),
            rng: ChaCha8Rng::seed_from_u64(members),
            members,
            sent: Vec::with_capacity(8_192),
        };
        for id in 1..members {
            lone.step(Input::Membership(Delta::Joined(member(id))));
        }
        for id in (1..members).step_by(7) {
            lone.step(Input::Membership(Delta::Suspected(member(id))));
        }
        lone
    }

    /// Handles an input. Returns the number of allocations.
    fn step(&mut self, input: Input<Celect>) -> u64 {
        let (sent, rng) = (&mut self.sent, &mut self.rng);
        sent.clear();
        let host = &mut self.host;
        allocations(|| {
            host.step(rng, input, &mut |effect| match effect {
                Effect::Send { to, message } => sent.push((to, message)),
                Effect::Multicast { .. } | Effect::Event(_) => {}
            });
        })
    }

    fn receive(&mut self, from: u64, message: Message) -> u64 {
        let from = member(from);
        self.step(Input::Message { from, message })
    }

    fn others(&self) -> core::ops::Range<u64> {
        1..self.members
    }

    /// Handles a query of every other node. Returns the number of allocations.
    fn queries(&mut self, epoch: u64, (x, y): (u8, u8)) -> u64 {
        let mut count = 0;
        for id in self.others() {
            let message = Message::Query {
                ballot: ballot(epoch, id),
                lowest: x,
                suspected: y,
                want: 0,
                exclude: Members::new(),
                no_majority: false,
            };
            count += self.receive(id, message);
            assert!(matches!(self.sent[..], [(_, Message::Response { .. })]));
        }
        count
    }

    /// Runs an election whose answers name the lowest of all others. Returns the numbers of allocations
    /// for the answers, for LEADER, and for its repetition.
    fn election(&mut self) -> [u64; 3] {
        let mut by_rank: Vec<Member> = self.others().map(member).collect();
        by_rank.sort_by_key(|it| Sha256Sortition.rank(b"", it.id));
        self.step(Input::Command(Command::Elect));
        let asked: Vec<(Member, Message)> = self.sent.clone();
        let mut answers = 0;
        let mut last = Vec::new();
        for (from, message) in asked {
            let Message::Query {
                ballot,
                lowest: x,
                suspected: y,
                ..
            } = message
            else {
                continue;
            };
            let message = Message::Response {
                ballot,
                candidates: by_rank.iter().copied().take(x.into()).collect(),
                unhealthy: by_rank.iter().rev().copied().take(y.into()).collect(),
                known: Members::new(),
            };
            answers += self.receive(from.id.0, message);
            if !self.sent.is_empty() {
                last.clone_from(&self.sent);
            }
        }
        let [(leader, Message::Appoint { ballot, .. })] = last[..] else {
            return [answers, u64::MAX, u64::MAX];
        };
        assert_eq!(leader, by_rank[0]);
        let notified = self.others().chain([0]).map(member);
        let mut notified: Vec<Member> = notified.filter(|&it| it != leader).collect();
        notified.sort_unstable();
        let message = Message::Leader {
            ballot,
            leader,
            renewal: 0,
            lease: Span::ZERO,
            state: LeaderState::Leading,
            covered: notified.into(),
        };
        let news = self.receive(leader.id.0, message.clone());
        assert_eq!(self.host.machine().leader(), Some((leader, ballot)));
        assert!(matches!(self.sent[..], [(_, Message::LeaderAck { .. })]));
        [answers, news, self.receive(leader.id.0, message)]
    }

    /// Handles an appointment, its repetition, and the acknowledgements of all. Returns the number of
    /// allocations for each.
    fn leadership(&mut self, epoch: u64) -> [u64; 3] {
        let ballot = ballot(epoch, 1);
        let message = Message::Appoint {
            ballot,
            life: 0,
            no_majority: false,
        };
        let appointed = self.receive(1, message.clone());
        assert_eq!(self.host.machine().leads(), Some(ballot));
        let again = self.receive(1, message);
        assert!(matches!(self.sent[..], [(_, Message::Leader { .. })]));
        let mut received = 0;
        for id in self.others() {
            received += self.receive(id, Message::LeaderAck { ballot, renewal: 0 });
        }
        [appointed, again, received]
    }
}

fn ballot(epoch: u64, initiator: u64) -> Ballot {
    Ballot {
        epoch,
        initiator: member(initiator),
        step: 1,
    }
}

const SIZES: [u64; 2] = [64, 4_096];

fn messages_allocate_nothing<H: Host<Celect>>() {
    for members in SIZES {
        for protocol in [
            Protocol::Base,
            Protocol::Optimistic,
            Protocol::Preferred,
            Protocol::Hybrid,
            Protocol::Lean,
        ] {
            let mut lone = Lone::<H>::new(members, protocol);
            // The first of each allocates capacity that is kept.
            lone.queries(1, (5, 5));
            lone.election();
            lone.leadership(10);
            // An election that deposes this node has more effects.
            lone.election();
            lone.leadership(20);
            let asked = [(1, 0), (5, 5)].map(|xy| lone.queries(100, xy));
            assert_eq!(asked, [0, 0], "queries, {protocol:?}, {members} members");
            let elected = lone.election();
            assert_eq!(
                elected, [0; 3],
                "elections, {protocol:?}, {members} members"
            );
            let [_, _, received] = lone.leadership(200);
            assert_eq!(
                received, 0,
                "acknowledgements, {protocol:?}, {members} members"
            );
        }
    }
}

#[test]
fn the_machine_allocates_nothing_for_a_message() {
    messages_allocate_nothing::<ByHand<Celect>>();
}

#[test]
#[cfg(not(debug_assertions))]
fn the_driver_allocates_nothing_for_a_message() {
    messages_allocate_nothing::<selvedge_core::Driver<Celect>>();
}

/// Few steps allocate: an election its tables; a new leader the list of receivers and their names; a
/// repetition of LEADER the names again.
#[test]
fn what_allocates_is_known() {
    for members in SIZES {
        let mut lone = Lone::<ByHand<Celect>>::new(members, Protocol::Base);
        lone.leadership(1);
        let elect = lone.step(Input::Command(Command::Elect));
        let [appointed, again, _] = lone.leadership(100);
        println!(
            "{members} members: an election allocates {elect} times, an appointment {appointed}, \
             its repetition {again}"
        );
        assert!(elect <= 12, "an election allocated {elect} times");
        // Names are gathered in a list that doubles, up to the capacity of a frame.
        assert!(again <= 12, "a repetition allocated {again} times");
        // A tree of eleven members a leaf, at most half of each unused.
        let leaves = members / 5;
        assert!(
            appointed <= leaves + 16,
            "an appointment allocated {appointed} times at {members} members"
        );
    }
}

/// A node of 4,096: at this number the tables, which grow by doubling, are full.
#[test]
fn what_a_member_takes() {
    fn more(host: &mut ByHand<Celect>, before: &mut i64) -> i64 {
        // The outbox does not belong to the machine.
        host.outbox = Outbox::new();
        let held = counting::held();
        let more = held - *before;
        *before = held;
        (more + more.signum() * 4_095) / 4_096
    }
    let config = Config::new(8, 2);
    let by_hash = Lowest::new(Sha256Sortition, b"");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut host = ByHand::new(Celect::new(member(0), config, by_hash).unwrap());
    let mut step = |host: &mut ByHand<Celect>, input| host.step(&mut rng, input, &mut drop);
    let mut before = counting::held();
    for id in 1..4_096 {
        step(&mut host, Input::Membership(Delta::Joined(member(id))));
    }
    let listed = more(&mut host, &mut before);
    for id in 1..4_096 {
        step(&mut host, Input::Membership(Delta::Suspected(member(id))));
    }
    let suspected = more(&mut host, &mut before);
    let (from, ballot) = (member(1), ballot(1, 1));
    let message = Message::Appoint {
        ballot,
        life: 0,
        no_majority: false,
    };
    step(&mut host, Input::Message { from, message });
    let notified = more(&mut host, &mut before);
    println!("bytes a member: listed {listed}, suspected {suspected}, to be told {notified}");
    assert_eq!([listed, suspected], [32, 24]);
    assert!(
        notified <= 40,
        "{notified} bytes a member that is to be told"
    );
    assert_eq!(
        host.machine().members().map(|it| it.id).max(),
        Some(NodeId(4_095))
    );
}
