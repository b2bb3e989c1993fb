//! Groups by hand: messages, time and storage as the test says.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use selvedge_core::durable::Durable;
use selvedge_core::{Delta, Driver, Effect, Input, Member, NodeId, Span, Time};
use selvedge_replica::check::Journal;
use selvedge_replica::{
    Body, Command, Config, Configuration, Event, Lease, Message, Proposal, Reject, Replica, Voter,
};

type Node = Replica<Journal>;

/// A few nodes, the messages between them, and what they told.
struct Group {
    now: Time,
    nodes: Vec<Driver<Node>>,
    wire: Vec<(Member, Member, Message<u16>)>,
    events: Vec<(u64, Event<Journal>)>,
    sent: usize,
    rng: ChaCha8Rng,
}

fn member(id: u64) -> Member {
    Member::new(id, 1)
}

impl Group {
    fn new(first: &Configuration, ids: &[u64]) -> Self {
        let node = |&id: &u64| {
            let config = Config::new();
            let node = match first.voter(NodeId(id)) {
                Some(_) => Replica::new(member(id), config, first.clone(), Journal::default()),
                None => Ok(Replica::newcomer(member(id), config).unwrap()),
            };
            Driver::new(node.unwrap())
        };
        Self {
            now: Time::ZERO,
            nodes: ids.iter().map(node).collect(),
            wire: Vec::new(),
            events: Vec::new(),
            sent: 0,
            rng: ChaCha8Rng::seed_from_u64(5),
        }
    }

    fn of(ids: &[u64]) -> Self {
        Self::new(&Configuration::of(ids.iter().map(|&id| member(id))), ids)
    }

    fn at(&self, id: u64) -> usize {
        let found = self
            .nodes
            .iter()
            .position(|it| it.machine().me().id == NodeId(id));
        found.unwrap()
    }

    fn node(&self, id: u64) -> &Node {
        self.nodes[self.at(id)].machine()
    }

    fn step(&mut self, id: u64, input: Input<Node>) -> Result<(), Reject> {
        let at = self.at(id);
        let mut effects = Vec::new();
        let taken = self.nodes[at].step(self.now, &mut self.rng, input, |it| effects.push(it));
        self.take(at, effects);
        taken
    }

    fn take(&mut self, at: usize, effects: Vec<Effect<Node>>) {
        let me = self.nodes[at].machine().me();
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.sent += 1;
                    self.wire.push((me, to, message));
                }
                Effect::Event(event) => self.events.push((me.id.0, event)),
                Effect::Multicast { .. } => panic!("nothing is sent to all"),
            }
        }
    }

    fn command(&mut self, id: u64, command: Command<u16>) {
        self.step(id, Input::Command(command)).unwrap();
    }

    fn tell(&mut self, id: u64, delta: Delta) {
        self.step(id, Input::Membership(delta)).unwrap();
    }

    /// Delivers all messages, and those that they cause. None reaches a node in `down`.
    fn deliver_without(&mut self, down: &[u64]) {
        while !self.wire.is_empty() {
            self.round_without(down);
        }
    }

    /// Delivers the messages that are on their way.
    fn round_without(&mut self, down: &[u64]) {
        for (from, to, message) in core::mem::take(&mut self.wire) {
            let is_there = self.nodes.iter().any(|it| it.machine().me().id == to.id);
            if is_there && !down.contains(&to.id.0) && !down.contains(&from.id.0) {
                self.step(to.id.0, Input::Message { from, message })
                    .unwrap();
            }
        }
    }

    fn deliver(&mut self) {
        self.deliver_without(&[]);
    }

    /// Time passes, and what is due ticks; messages arrive at once.
    fn wait_without(&mut self, span: Span, down: &[u64]) {
        let end = self.now + span;
        while self.now < end {
            self.now = self.now + Span::millis(10);
            for at in 0..self.nodes.len() {
                let id = self.nodes[at].machine().me().id.0;
                if down.contains(&id) {
                    continue;
                }
                let mut effects = Vec::new();
                self.nodes[at].expire(self.now, &mut self.rng, |it| effects.push(it));
                self.take(at, effects);
            }
            self.deliver_without(down);
        }
    }

    fn wait(&mut self, span: Span) {
        self.wait_without(span, &[]);
    }

    fn state(&self, id: u64) -> &[u16] {
        self.node(id).state().map_or(&[], |it| &it.0)
    }

    fn leader(&self, id: u64) -> Option<u64> {
        self.node(id).leader().map(|it| it.0.0)
    }

    fn told(&self, id: u64, is_it: impl Fn(&Event<Journal>) -> bool) -> usize {
        self.events
            .iter()
            .filter(|(at, event)| *at == id && is_it(event))
            .count()
    }

    /// The node stops, and begins its next life with what it stored.
    fn restart_with_storage(&mut self, id: u64, first: &Configuration) {
        let at = self.at(id);
        let before = self.node(id).me();
        let me = Member {
            incarnation: before.incarnation.next(),
            ..before
        };
        let base = Replica::new(member(id), Config::new(), first.clone(), Journal::default());
        let mut node = Replica::restore(me, Config::new(), base.unwrap().stored()).unwrap();
        for (by, event) in &self.events {
            if *by == id
                && let Some(fact) = Node::fact(event)
            {
                node.fold(fact).unwrap();
            }
        }
        self.nodes[at] = Driver::new(node);
    }
}

#[test]
fn an_update_costs_8_messages_among_5_members_when_another_follows() {
    let mut group = Group::of(&[1, 2, 3, 4, 5]);
    group.command(1, Command::Propose(1));
    group.deliver();
    let before = group.sent;
    for update in 2..=101 {
        group.command(1, Command::Propose(update));
        group.deliver();
    }
    assert_eq!((group.sent - before) / 100, 8);
    assert_eq!(group.state(1).len(), 101);
    // The last one is told after a while, and then nothing is sent.
    group.wait(Span::millis(200));
    assert!((2..=5).all(|id| group.state(id).len() == 101));
    let idle = group.sent;
    group.wait(Span::secs(60));
    assert_eq!(group.sent, idle);
}

#[test]
fn many_updates_are_on_their_way_at_once() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(0));
    group.deliver();
    for update in 1..=64 {
        group.command(1, Command::Propose(update));
    }
    group.round_without(&[]);
    group.round_without(&[]);
    assert_eq!(group.state(1).len(), 65, "one round trip for all");
}

#[test]
fn a_leader_that_fails_is_replaced_one_round_trip_after_it_is_told() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    for id in [2, 3] {
        group.tell(id, Delta::Failed(member(1)));
    }
    group.round_without(&[1]);
    assert!(!group.node(2).leads());
    group.round_without(&[1]);
    assert!(group.node(2).leads(), "PREPARE there and PROMISE back");
    group.deliver_without(&[1]);
    assert_eq!(group.leader(3), Some(2));
    assert_eq!(group.state(2), [7], "what a quorum held is adopted");
}

/// Node 3 hears of the failure only after node 2 has asked it.
#[test]
fn a_question_that_came_too_early_is_answered_when_the_leader_is_told_to_be_gone() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.tell(2, Delta::Failed(member(1)));
    group.round_without(&[1]);
    group.round_without(&[1]);
    assert!(!group.node(2).leads(), "refused: the leader is there");
    group.tell(3, Delta::Failed(member(1)));
    group.deliver_without(&[1]);
    assert!(group.node(2).leads());
}

#[test]
fn a_member_that_was_cut_off_deposes_nobody() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let ballot = group.node(1).leader();
    for other in [1, 2] {
        group.tell(3, Delta::Failed(member(other)));
    }
    group.step(3, Input::Command(Command::Propose(9))).unwrap();
    group.wait_without(Span::secs(20), &[3]);
    assert_eq!(
        group.told(3, |it| matches!(it, Event::Unavailable { .. })),
        0
    );
    // Time passes there, too, and nobody answers.
    for _ in 0..20 {
        group.now = group.now + Span::millis(200);
        let mut effects = Vec::new();
        let at = group.at(3);
        let now = group.now;
        group.nodes[at].expire(now, &mut group.rng, |it| effects.push(it));
        group.take(at, effects);
        group.wire.clear();
    }
    assert_eq!(
        group.told(3, |it| matches!(it, Event::Unavailable { .. })),
        1
    );
    for other in [1, 2] {
        group.tell(3, Delta::Refuted(member(other)));
    }
    group.wait(Span::secs(5));
    assert_eq!(group.node(1).leader(), ballot);
    assert_eq!(group.told(1, |it| matches!(it, Event::Deposed(_))), 0);
    assert_eq!(group.state(1), [7, 9]);
    assert_eq!(group.told(3, |it| matches!(it, Event::Available)), 1);
}

#[test]
fn a_restart_with_storage_keeps_the_promise_and_the_state() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    for id in [1, 2, 3] {
        group.restart_with_storage(id, &first);
    }
    group.command(2, Command::Propose(8));
    group.wait(Span::secs(2));
    for id in [1, 2, 3] {
        assert_eq!(group.state(id), [7, 8], "node {id}");
        assert_eq!(group.node(id).voter(), member(id));
    }
    assert_eq!(group.node(1).configuration().number, 1);
}

#[test]
fn a_restart_without_memory_has_no_vote_until_it_is_named_again() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    let me = Member::new(3, 2);
    let fresh = Replica::new(me, Config::new(), first, Journal::default()).unwrap();
    let at = group.at(3);
    group.nodes[at] = Driver::new(fresh);
    assert!(!group.node(3).votes());
    group.tell(1, Delta::Joined(me));
    group.tell(2, Delta::Joined(me));
    group.wait(Span::secs(2));
    assert!(group.node(3).votes());
    assert_eq!(group.node(3).configuration().number, 2);
    assert_eq!(group.state(3), [7]);
    assert_eq!(group.node(1).configuration().voters[2], Voter::new(me));
}

#[test]
fn members_may_all_be_new_and_the_former_ones_give_the_state_up() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3, 4, 5, 6]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let next = Configuration::of([4, 5, 6].map(member));
    group.command(1, Command::Configure(next));
    group.wait(Span::secs(2));
    for id in [4, 5, 6] {
        assert_eq!(
            (group.state(id), group.leader(id)),
            (&[7][..], Some(4)),
            "node {id}"
        );
    }
    for id in [1, 2, 3] {
        assert_eq!(group.node(id).state(), None, "node {id}");
        let refused = group.step(id, Input::Command(Command::Propose(8)));
        assert_eq!(refused, Err(Reject::NoMember));
    }
    group.command(5, Command::Propose(8));
    group.wait(Span::secs(1));
    assert_eq!(group.state(6), [7, 8]);
}

/// The members of the next configuration are down: the former ones keep the state.
#[test]
fn the_former_members_keep_the_state_until_the_next_ones_have_it() {
    let first = Configuration::of([1, 2, 3].map(member));
    let mut group = Group::new(&first, &[1, 2, 3, 4, 5, 6]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let next = Configuration::of([4, 5, 6].map(member));
    group.command(1, Command::Configure(next));
    group.wait_without(Span::secs(3), &[4, 5, 6]);
    group.restart_with_storage(1, &first);
    group.wait(Span::secs(30));
    assert_eq!(group.state(4), [7]);
    assert_eq!(
        group.told(1, |it| matches!(
            it,
            Event::Fact(selvedge_replica::Fact::Retired)
        )),
        1
    );
}

#[test]
fn a_state_travels_in_pages_of_127_bytes_while_updates_go_on() {
    let mut first = Configuration::of([1, 2].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    for update in 0..400 {
        group.command(1, Command::Propose(update));
        group.deliver();
    }
    let mut next = first.clone();
    next.voters.push(Voter::new(member(3)));
    group.command(1, Command::Configure(next));
    for update in 400..600 {
        group
            .step(1, Input::Command(Command::Propose(update)))
            .unwrap();
        group.wait(Span::millis(20));
    }
    group.wait(Span::secs(5));
    assert_eq!(group.told(3, |it| matches!(it, Event::Installed(_))), 1);
    assert_eq!(group.state(3).len(), 600);
    assert_eq!(group.state(3), group.state(1));
}

#[test]
fn two_holders_and_a_witness_survive_the_loss_of_one() {
    let voters = [
        Voter::new(member(1)),
        Voter::new(member(2)),
        Voter::witness(member(3)),
    ];
    let mut group = Group::new(&Configuration::new(voters), &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    assert_eq!(group.node(3).state(), None);
    assert_eq!(
        group.step(3, Input::Command(Command::Read(1))),
        Err(Reject::NoMember)
    );
    for id in [2, 3] {
        group.tell(id, Delta::Failed(member(1)));
    }
    group.command(2, Command::Propose(8));
    group.wait_without(Span::secs(2), &[1]);
    assert_eq!(group.state(2), [7, 8]);
}

/// Only node 1 and the witness accepted 8: node 2 cannot know it, and says that it waits.
#[test]
fn what_a_witness_alone_has_accepted_is_waited_for() {
    let voters = [
        Voter::new(member(1)),
        Voter::new(member(2)),
        Voter::witness(member(3)),
    ];
    let mut group = Group::new(&Configuration::new(voters), &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.wait(Span::secs(1));
    group.command(1, Command::Propose(8));
    group.deliver_without(&[2]);
    assert_eq!(group.state(1), [7, 8]);
    for id in [2, 3] {
        group.tell(id, Delta::Failed(member(1)));
    }
    group.command(2, Command::Propose(9));
    group.wait_without(Span::secs(5), &[1]);
    assert_eq!(group.state(2), [7]);
    assert!(!group.node(2).leads());
    assert_eq!(
        group.told(2, |it| matches!(it, Event::Unavailable { .. })),
        1
    );
    group.tell(2, Delta::Refuted(member(1)));
    group.tell(3, Delta::Refuted(member(1)));
    group.wait(Span::secs(5));
    assert_eq!(group.state(2), [7, 8, 9]);
}

#[test]
fn a_read_takes_a_round_and_with_a_lease_none() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.lease = Some(Lease {
        span: Span::secs(1),
        drift: 1_000,
    });
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.wait(Span::secs(2));
    let readable = |group: &Group| group.told(1, |it| matches!(it, Event::Readable { .. }));
    // The lease is over: a round.
    let before = group.sent;
    group.command(1, Command::Read(1));
    assert_eq!((group.sent - before, readable(&group)), (2, 0));
    group.deliver();
    assert_eq!(readable(&group), 1);
    // It is held now.
    let before = group.sent;
    group.command(1, Command::Read(2));
    assert_eq!((group.sent - before, readable(&group)), (0, 2));
}

/// The host of the leader sleeps, and is asked before its timers tick.
#[test]
fn a_leader_that_slept_does_not_answer_by_its_lease() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.lease = Some(Lease {
        span: Span::secs(1),
        drift: 1_000,
    });
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    group.command(1, Command::Read(1));
    group.deliver();
    for id in [2, 3] {
        group.tell(id, Delta::Failed(member(1)));
    }
    // While the lease runs, nobody else leads; then node 2 does, and decides.
    group.wait_without(Span::millis(900), &[1]);
    assert!(!group.node(2).leads());
    group.wait_without(Span::secs(2), &[1]);
    assert!(group.node(2).leads());
    group.command(2, Command::Propose(8));
    group.deliver_without(&[1]);
    let before = group.told(1, |it| matches!(it, Event::Readable { .. }));
    group.command(1, Command::Read(2));
    assert_eq!(
        group.told(1, |it| matches!(it, Event::Readable { .. })),
        before
    );
    group.wait(Span::secs(3));
    assert_eq!(
        group.told(1, |it| matches!(it, Event::Readable { read: 2, .. })),
        1
    );
    assert_eq!(group.state(1), [7, 8]);
}

#[test]
fn a_leader_hands_over_when_it_is_asked() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(1, Command::Propose(7));
    group.deliver();
    let refused = group.step(2, Input::Command(Command::HandOver(NodeId(3))));
    let leader = Some(NodeId(1));
    assert_eq!(refused, Err(Reject::NotLeader { leader }));
    let refused = group.step(1, Input::Command(Command::HandOver(NodeId(9))));
    assert_eq!(refused, Err(Reject::NoCandidate(NodeId(9))));
    group.command(1, Command::HandOver(NodeId(3)));
    group.deliver();
    assert!((1..=3).all(|id| group.leader(id) == Some(3)));
    assert_eq!(group.told(1, |it| matches!(it, Event::Deposed(_))), 1);
}

/// A client outside proposes through one member, and, without an answer, through another one.
#[test]
fn a_proposal_that_is_relayed_twice_is_applied_once() {
    let mut group = Group::of(&[1, 2, 3]);
    let proposal = |number| Proposal {
        by: Member::new(77, 1),
        number,
        first: 1,
        since: 0,
        update: number as u16,
    };
    for relay in [2, 3, 1] {
        group.command(relay, Command::Relay(proposal(1)));
        group.wait(Span::secs(1));
    }
    group.command(3, Command::Relay(proposal(2)));
    group.wait(Span::secs(1));
    assert_eq!(group.state(1), [1, 2]);
    let overtaken = |it: &Event<Journal>| matches!(it, Event::Overtaken { number: 1, .. });
    assert_eq!((group.told(3, overtaken), group.told(1, overtaken)), (1, 1));
}

/// A group that remembers one proposer.
#[test]
fn a_proposer_that_was_forgotten_is_told_so_and_begins_again() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.proposers = 1;
    let mut group = Group::new(&first, &[1, 2, 3]);
    for id in [1, 2] {
        group.command(id, Command::Propose(id as u16));
        group.wait(Span::secs(1));
    }
    group.command(1, Command::Propose(11));
    group.wait(Span::secs(1));
    // It knows that it was forgotten.
    let forgotten = |it: &Event<Journal>| matches!(it, Event::Forgotten { .. });
    assert_eq!(group.told(1, forgotten), 0);
    let late = Proposal {
        by: member(2),
        number: 2,
        first: 1,
        since: 0,
        update: 12,
    };
    for relay in [1, 3] {
        group.command(relay, Command::Relay(late.clone()));
        group.wait(Span::secs(1));
        assert_eq!(group.told(relay, forgotten), 1);
    }
    group.command(2, Command::Propose(13));
    group.wait(Span::secs(1));
    assert_eq!(group.state(3), [1, 2, 11, 13]);
}

#[test]
fn what_is_too_much_is_refused() {
    let first = Configuration::of([1, 2, 3].map(member));
    let config = Config::new().with_pending(1);
    let node = Replica::new(member(2), config, first, Journal::default()).unwrap();
    let mut group = Group::of(&[1, 2, 3]);
    let at = group.at(2);
    group.nodes[at] = Driver::new(node);
    group.command(2, Command::Propose(1));
    let refused = group.step(2, Input::Command(Command::Read(1)));
    assert_eq!(refused, Err(Reject::Full { limit: 1 }));
    group.deliver();
    group.wait(Span::secs(1));
    group.command(2, Command::Read(1));
}

/// Committed entries are gone from the window of the member that is asked.
#[test]
fn a_member_that_was_away_for_long_gets_the_state_whole_and_one_for_short_the_entries() {
    for (updates, installed) in [(10, 0), (300, 1)] {
        let mut group = Group::of(&[1, 2, 3]);
        for update in 0..updates {
            group.command(1, Command::Propose(update));
            group.deliver_without(&[3]);
        }
        group.wait(Span::secs(2));
        assert_eq!(group.state(3).len(), updates.into());
        assert_eq!(
            group.told(3, |it| matches!(it, Event::Installed(_))),
            installed
        );
    }
}

/// A stranger's answer must not count, nor one under the id of the node itself.
#[test]
fn liars_are_counted_or_refused() {
    let mut group = Group::of(&[1, 2, 3]);
    let stand = Body::Stand {
        ballot: selvedge_core::Stamp {
            number: 4,
            by: NodeId(3),
        },
    };
    let message = Message {
        configuration: 1,
        body: stand,
    };
    let from = member(2);
    let refused = group.step(
        1,
        Input::Message {
            from,
            message: message.clone(),
        },
    );
    assert!(matches!(refused, Err(Reject::Misbehaviour(_))));
    let from = Member::new(1, 9);
    let refused = group.step(1, Input::Message { from, message });
    assert!(matches!(refused, Err(Reject::Misbehaviour(_))));
}
