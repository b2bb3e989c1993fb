//! Numbers far from a member's own: lives and revisions on the other side of the circle, where
//! neither of two is later, lies that drive a member around it, and the effect of a longer name on
//! a frame. In the end all lists agree.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

extern crate alloc;

use alloc::collections::VecDeque;

use chacha20::{ChaCha8Rng, rand_core::SeedableRng};
use selvedge_core::wire::frame_len;
use selvedge_core::{Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_membership::{
    Age, Body, Claim, Command, Config, Digest, Key, Membership, Message, Metadata, Record, Status,
};

const OPPOSITE: u32 = 1 << 31;
const PERIOD: Span = Span::secs(1);

/// Nodes 1, 2, .. on a network that loses messages only of nodes that are cut off.
struct Mesh {
    nodes: Vec<Driver<Membership>>,
    rng: ChaCha8Rng,
    now: Time,
    wire: VecDeque<(Member, NodeId, Message)>,
    cut_off: Option<u64>,
}

impl Mesh {
    /// A mesh of nodes that know each other.
    fn new(count: u64, config: &Config) -> Self {
        let mut mesh = Self {
            nodes: Vec::new(),
            rng: ChaCha8Rng::seed_from_u64(count),
            now: Time::ZERO,
            wire: VecDeque::new(),
            cut_off: None,
        };
        for id in 1..=count {
            let machine = Membership::new(Member::new(id, 0), config.clone()).unwrap();
            mesh.nodes.push(Driver::new(machine));
            let seeds = (1..id.min(2)).map(NodeId).collect();
            mesh.step(id, Input::Command(Command::Join { seeds }))
                .unwrap();
            mesh.carry();
        }
        mesh.run(20);
        assert!(mesh.agrees(), "before any lie");
        mesh
    }

    fn node(&self, id: u64) -> &Membership {
        self.nodes[id as usize - 1].machine()
    }

    fn step(
        &mut self,
        id: u64,
        input: Input<Membership>,
    ) -> Result<(), selvedge_membership::Reject> {
        let mut effects = Vec::new();
        let node = &mut self.nodes[id as usize - 1];
        let outcome = node.step(self.now, &mut self.rng, input, |effect| {
            effects.push(effect);
        });
        self.send(id, effects);
        outcome
    }

    /// As a host sends: frames carry the name that the node has after the step.
    fn send(&mut self, id: u64, effects: Vec<Effect<Membership>>) {
        let me = self.node(id).me();
        let budget = usize::from(self.node(id).config().frame_budget);
        for effect in effects {
            if let Effect::Send { to, message } = effect {
                let len = frame_len(me, &message);
                assert!(len <= budget, "{len} of {budget} bytes: {message:?}");
                self.wire.push_back((me, to.id, message));
            }
        }
    }

    fn carry(&mut self) {
        while let Some((from, to, message)) = self.wire.pop_front() {
            let is_cut = self.cut_off.is_some_and(|id| from.id.0 == id || to.0 == id);
            if !is_cut && (1..=self.nodes.len() as u64).contains(&to.0) {
                // A sender that is a former life to the receiver may be refused.
                self.step(to.0, Input::Message { from, message }).ok();
            }
        }
    }

    fn run(&mut self, periods: u64) {
        let end = self.now + PERIOD * periods;
        while let Some(at) =
            (self.nodes.iter().filter_map(Driver::deadline).min()).filter(|&at| at <= end)
        {
            self.now = self.now.max(at);
            for id in 1..=self.nodes.len() as u64 {
                let mut effects = Vec::new();
                let node = &mut self.nodes[id as usize - 1];
                node.expire_into(self.now, &mut self.rng, &mut effects);
                self.send(id, effects);
            }
            self.carry();
        }
        self.now = end;
    }

    /// Sends a message to `to` as `from`, which may be `to` itself.
    fn notify(&mut self, from: Member, to: u64, body: Body, records: Vec<Record>) {
        let mut message = Message::bare(body);
        message.records = records.into_iter().collect();
        self.step(to, Input::Message { from, message }).unwrap();
    }

    fn agrees(&self) -> bool {
        let own = |node: &Driver<Membership>| node.machine().me();
        let mut truth: Vec<Member> = self.nodes.iter().map(own).collect();
        truth.sort_unstable();
        self.nodes.iter().all(|node| {
            let alive = (node.machine().members()).filter(|it| it.status == Status::Alive);
            let mut alive: Vec<Member> = alive.map(|it| it.member).collect();
            alive.sort_unstable();
            alive == truth
        })
    }

    #[track_caller]
    fn agrees_within(&mut self, periods: u64) {
        self.run(periods);
        let lists: Vec<Vec<_>> = (self.nodes.iter())
            .map(|node| {
                node.machine()
                    .members()
                    .map(|it| (it.member, it.status))
                    .collect()
            })
            .collect();
        assert!(self.agrees(), "after {periods} periods: {lists:?}");
    }
}

fn ping() -> Body {
    Body::Ping {
        digest: Digest::default(),
        origin: None,
    }
}

fn alive(member: Member) -> Record {
    Record {
        member,
        revision: 0,
        claim: Claim::Alive(Metadata::default()),
    }
}

fn failed(member: Member, revision: u32) -> Record {
    Record {
        claim: Claim::Failed(Metadata::default(), Age::default()),
        revision,
        member,
    }
}

const LIAR: Member = Member::new(9, 0);

/// A mesh of three in which node 2 first learns of node 4 from a liar, and falsely; then 4 joins
/// through 1.
fn told_before_it_comes(lie: Record) -> Mesh {
    let mut mesh = Mesh::new(3, &Config::default());
    mesh.cut_off = Some(2);
    mesh.notify(LIAR, 2, ping(), vec![lie]);
    let machine = Membership::new(Member::new(4, 0), Config::default()).unwrap();
    mesh.nodes.push(Driver::new(machine));
    let seeds = vec![NodeId(1)];
    mesh.step(4, Input::Command(Command::Join { seeds }))
        .unwrap();
    mesh.carry();
    assert_eq!(mesh.node(4).live(), 4);
    mesh.cut_off = None;
    mesh
}

#[test]
fn a_life_opposite_to_the_true_one_is_given_way_to() {
    let mut mesh = told_before_it_comes(alive(Member::new(4, OPPOSITE)));
    mesh.agrees_within(100);
    assert!(mesh.node(4).counters().identity_changes > 0);
}

#[test]
fn a_revision_opposite_to_the_true_one_is_given_way_to() {
    for lie in [
        failed(Member::new(4, 0), OPPOSITE),
        Record {
            revision: OPPOSITE,
            ..alive(Member::new(4, 0))
        },
    ] {
        let mut mesh = told_before_it_comes(lie);
        mesh.agrees_within(100);
        assert!(mesh.node(4).counters().identity_changes > 0);
    }
}

/// Lies drive a member halfway around the circle, while one other is cut off for that time. All
/// that are in contact follow every step.
#[test]
fn who_is_driven_around_the_circle_is_followed() {
    let mut mesh = Mesh::new(8, &Config::default());
    mesh.cut_off = Some(8);
    for _ in 0..40 {
        let me = mesh.node(3).me();
        let far = Member::new(3, me.incarnation.0.wrapping_add(OPPOSITE - 1));
        mesh.notify(LIAR, 3, ping(), vec![alive(far)]);
        mesh.carry();
        mesh.run(1);
        let behind = |id| {
            let listed = mesh.node(id).member(NodeId(3)).unwrap().member;
            listed != me && listed != mesh.node(3).me() && !mesh.node(3).me().supersedes(listed)
        };
        assert!(!(1..8).any(behind), "someone cannot follow");
    }
    mesh.cut_off = None;
    mesh.agrees_within(200);
}

/// Each takes the other for a former life, so each ignores the other's messages except for that.
#[test]
fn two_that_take_each_other_for_a_former_life_find_together() {
    let mut mesh = Mesh::new(2, &Config::default());
    for (about, to) in [(1, 2), (2, 1)] {
        let lies = vec![
            failed(Member::new(about, 0), 0),
            alive(Member::new(about, 7)),
        ];
        mesh.notify(LIAR, to, ping(), lies);
        mesh.wire.clear();
        let listed = mesh.node(to).member(NodeId(about)).unwrap().member;
        assert_eq!(listed, Member::new(about, 7));
    }
    mesh.agrees_within(100);
}

/// A record makes the name of the receiver four bytes longer, after others made it send a frame
/// that is full of news. How full depends on the metadata.
#[test]
fn no_frame_grows_beyond_the_budget_with_the_name_of_its_sender() {
    let body = Body::Records {
        first: Key(0),
        last: Key(u64::MAX),
        next: None,
        exchange: false,
    };
    for len in 1..=16 {
        let mut mesh = Mesh::new(12, &Config::radio());
        let record_of = |id| Record {
            revision: 9,
            claim: Claim::Alive(Metadata(vec![7; len].into())),
            member: Member::new(id, 0),
        };
        for id in 3..=12 {
            mesh.notify(Member::new(id, 0), 1, Body::Unlucky, vec![record_of(id)]);
        }
        let lies = vec![failed(Member::new(6, 0), 9), alive(Member::new(1, 1 << 29))];
        mesh.notify(LIAR, 1, body, lies);
        assert_eq!(mesh.node(1).me(), Member::new(1, (1 << 29) + 1));
        let asks = |it: &(_, _, Message)| it.1 == NodeId(6) && it.2.records.len() > 3;
        assert!(mesh.wire.iter().any(asks), "it asks 6, and has news");
    }
}

/// Only the list that a joiner asked for is believed in whole.
#[test]
fn a_welcome_that_nobody_asked_for_opens_nothing() {
    let mut mesh = Mesh::new(3, &Config::default());
    let you = mesh.node(2).me();
    let next = Some(Key(1));
    mesh.notify(LIAR, 2, Body::Welcome { you, next }, Vec::new());
    let body = Body::Records {
        first: Key(1),
        last: Key(u64::MAX),
        next: None,
        exchange: false,
    };
    let invented = (100..130).map(|id| alive(Member::new(id, 0))).collect();
    mesh.notify(LIAR, 2, body, invented);
    assert_eq!(mesh.node(2).live(), 3 + 8, "one allowance");
}
