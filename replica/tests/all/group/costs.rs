//! The cost in messages and timers, and their moments.

use super::*;

impl Group {
    /// The time until the node's timer is due.
    fn due(&self, id: u64, timer: Timer) -> Option<Span> {
        let mut timers = self.nodes[self.at(id)].timers();
        let found = timers.find(|it| it.0 == timer);
        found.map(|it| it.1.since(self.now))
    }

    /// A group that node 1 leads, with nothing in flight.
    fn led(ids: &[u64]) -> Self {
        let mut group = Self::of(ids);
        group.command(1, Command::Propose(0));
        group.deliver();
        group.wait(Span::secs(1));
        group
    }

    /// Gives the leader the acknowledgement of a member that holds all entries up to `end`.
    fn accepted(&mut self, from: u64, end: u64, committed: u64, round: u64) {
        let ballot = self.node(1).leader().unwrap().1;
        let body = Body::Accepted {
            ballot,
            end,
            committed,
            round,
        };
        let message = Message {
            configuration: 1,
            body,
        };
        let from = member(from);
        self.step(1, Input::Message { from, message }).unwrap();
    }
}

fn receivers(sent: &[(u64, Body<u16>)]) -> Vec<u64> {
    sent.iter().map(|it| it.0).collect()
}

/// The round of the ACCEPT that was sent to this node last.
fn round(sent: &[(u64, Body<u16>)], to: u64) -> u64 {
    let mut rounds = sent.iter().filter_map(|it| match it {
        (id, Body::Accept { round, .. }) if *id == to => Some(*round),
        _ => None,
    });
    rounds.next_back().unwrap()
}

/// Nodes 2 and 3 of five acknowledge the round of a read.
#[test]
fn a_round_is_sent_again_to_those_that_have_not_acknowledged_it_while_a_read_waits() {
    let mut group = Group::led(&[1, 2, 3, 4, 5]);
    group.command(1, Command::Read(1));
    let sent = group.taken();
    assert_eq!(receivers(&sent), [2, 3, 4, 5]);
    let asked = round(&sent, 2);
    group.accepted(2, 1, 1, asked);
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Readable { .. })),
        0
    );
    assert_eq!(
        receivers(&group.pass(1, Span::millis(200))),
        [3, 4, 5],
        "node 2 has acknowledged it"
    );
    group.accepted(3, 1, 1, asked);
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Readable { .. })),
        1
    );
    assert_eq!(group.due(1, Timer::Resend), None);
    assert_eq!(group.pass(1, Span::secs(9)), [], "it waits no more");
}

/// The same with a lease: it is held, and the others need not acknowledge its round.
#[test]
fn the_round_of_a_lease_that_is_held_is_not_sent_again() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.lease = Some(Lease {
        span: Span::secs(60),
        drift: 0,
    });
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Propose(0));
    group.deliver();
    group.wait(Span::secs(61));
    group.command(1, Command::Read(1));
    let asked = round(&group.taken(), 2);
    group.accepted(2, 1, 1, asked);
    assert_eq!(
        group.notified(1, |it| matches!(it, Event::Readable { .. })),
        1
    );
    assert_eq!(group.pass(1, Span::secs(9)), []);
}

#[test]
fn what_was_told_of_a_commit_is_told_again_until_it_is_acknowledged() {
    let mut group = Group::led(&[1, 2, 3]);
    group.command(1, Command::Propose(8));
    let sent = group.taken();
    let asked = round(&sent, 2);
    group.accepted(2, 2, 1, asked);
    group.accepted(3, 2, 1, asked);
    assert_eq!(group.state(1), [0, 8]);
    let notified = |sent: &[(u64, Body<u16>)]| {
        sent.iter()
            .all(|it| matches!(it.1, Body::Accept { commit: 2, .. }))
    };
    let sent = group.pass(1, Span::millis(50));
    assert_eq!((receivers(&sent), notified(&sent)), (vec![2, 3], true));
    group.accepted(2, 2, 2, asked);
    let sent = group.pass(1, Span::millis(200));
    assert_eq!((receivers(&sent), notified(&sent)), (vec![3], true));
    group.accepted(3, 2, 2, asked);
    assert_eq!(group.pass(1, Span::secs(9)), []);
}

/// Two updates are in flight, and the second is committed 40 ms after the first.
#[test]
fn a_commit_is_told_after_its_delay_whatever_is_committed_meanwhile() {
    let mut group = Group::led(&[1, 2, 3]);
    for update in [8, 9] {
        group.command(1, Command::Propose(update));
    }
    let asked = round(&group.taken(), 2);
    group.accepted(2, 2, 1, asked);
    assert_eq!(group.state(1), [0, 8], "what a quorum holds is committed");
    assert_eq!(group.pass(1, Span::millis(40)), []);
    group.accepted(2, 3, 1, asked);
    assert_eq!(group.state(1), [0, 8, 9]);
    assert_eq!(receivers(&group.pass(1, Span::millis(10))), [2, 3]);
}

/// A leader that holds 14 updates for node 3, of which 12 fit into a frame.
#[test]
fn a_member_that_acknowledges_is_sent_what_did_not_fit_before() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Campaign);
    group.deliver();
    group.wait(Span::secs(1));
    for update in 1..=14 {
        group.command(1, Command::Propose(update));
        group.deliver_without(&[3]);
    }
    let sent = group.pass(1, Span::millis(300));
    let part = sent.iter().rev().find_map(|it| match it {
        (
            3,
            Body::Accept {
                after: 0, entries, ..
            },
        ) => Some(entries.len() as u64),
        _ => None,
    });
    let part = part.unwrap();
    assert!(part < 14);
    let asked = round(&sent, 3);
    group.accepted(3, part, 0, asked);
    let sent = group.taken();
    let [(3, Body::Accept { after, entries, .. })] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!((*after, *after + entries.len() as u64), (part, 14));
}

/// The application proposes more often than the resend time.
#[test]
fn what_waits_is_sent_again_in_time_whatever_is_proposed_meanwhile() {
    let mut group = Group::led(&[1, 2, 3]);
    group.command(3, Command::Propose(8));
    assert_eq!(receivers(&group.taken()), [1]);
    assert_eq!(group.pass(3, Span::millis(150)), []);
    group.command(3, Command::Propose(9));
    assert_eq!(receivers(&group.taken()), [1]);
    let sent = group.pass(3, Span::millis(50));
    let [(1, Body::Propose { proposals })] = &sent[..] else {
        panic!("{sent:?}");
    };
    assert_eq!(proposals.len(), 2);
}

/// No leader is known, and the most preferred member does not answer.
#[test]
fn another_member_is_asked_where_one_does_not_answer() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(3, Command::Propose(8));
    assert_eq!(receivers(&group.taken()), [1]);
    assert_eq!(receivers(&group.pass(3, Span::millis(200))), [2]);
    assert_eq!(receivers(&group.pass(3, Span::millis(200))), [1]);
}

/// Node 2 leads, which is not the most preferred one.
#[test]
fn what_waits_is_sent_to_the_leader_while_it_is_there() {
    let mut group = Group::of(&[1, 2, 3]);
    group.command(2, Command::Campaign);
    group.deliver();
    group.wait(Span::secs(1));
    group.command(3, Command::Propose(8));
    assert_eq!(receivers(&group.taken()), [2]);
    for _ in 0..3 {
        assert_eq!(receivers(&group.pass(3, Span::millis(200))), [2]);
    }
    group.notify(3, Delta::Failed(member(2)));
    group.taken();
    let sent = group.pass(3, Span::millis(200));
    let proposed = sent
        .iter()
        .filter(|it| matches!(it.1, Body::Propose { .. }));
    assert_eq!(proposed.map(|it| it.0).collect::<Vec<_>>(), [1]);
}

/// Members of the next configuration that did not lead leave it to the leader to announce it. A
/// former member that left helps.
#[test]
fn a_member_that_stays_invites_nobody_and_one_that_leaves_does() {
    let invites = |sent: &[(u64, Body<u16>)]| {
        let to = sent
            .iter()
            .filter(|it| matches!(it.1, Body::Current { .. }));
        to.map(|it| it.0).collect::<Vec<_>>()
    };
    for (ids, notified) in [([1, 2, 3], vec![]), ([1, 2, 4], vec![1, 2, 4])] {
        let mut first = Configuration::of([1, 2, 3].map(member));
        first.voters[2].is_witness = true;
        let mut group = Group::new(&first, &[1, 2, 3]);
        group.command(1, Command::Propose(0));
        group.wait(Span::secs(1));
        let mut next = Configuration::of(ids.map(member));
        next.number = 2;
        let learn = Body::Learn {
            after: 1,
            entries: [Entry::Configure(next.into())].into_iter().collect(),
        };
        let sent = group.say(3, member(2), learn);
        assert_eq!(group.node(3).configuration().number, 2);
        assert_eq!(invites(&sent), notified, "{sent:?}");
    }
}

/// Its messages, too, carry the commit.
#[test]
fn a_new_life_is_heard_of_from_its_messages() {
    let mut group = Group::led(&[1, 2, 3]);
    let later = |id| Member::new(id, 5);
    let stale = Body::ReadAt {
        life: 9,
        number: 0,
        version: 0,
    };
    assert_eq!(receivers(&group.say(1, later(2), stale.clone())), [2]);
    group.command(1, Command::Propose(8));
    let to: Vec<Member> = group.wire.iter().map(|it| it.1).collect();
    assert_eq!(to, [later(2), member(3)]);
    assert_eq!(group.leader(3), Some(1));
    group.say(3, later(1), stale);
    assert_eq!(group.leader(3), None);
}

/// Node 2 of five holds the first of two updates, and node 3 both.
#[test]
fn what_a_quorum_holds_is_committed_though_one_of_it_holds_more() {
    let mut group = Group::led(&[1, 2, 3, 4, 5]);
    for update in [8, 9] {
        group.command(1, Command::Propose(update));
    }
    let asked = round(&group.taken(), 2);
    group.accepted(2, 2, 1, asked);
    assert_eq!(group.state(1), [0]);
    group.accepted(3, 3, 1, asked);
    assert_eq!(group.state(1), [0, 8]);
    group.accepted(4, 3, 1, asked);
    assert_eq!(group.state(1), [0, 8, 9]);
}

/// The members have failed, and three other nodes are present.
#[test]
fn other_nodes_are_asked_one_after_another_while_no_member_answers() {
    let mut group = Group::led(&[1, 2, 3]);
    for id in [1, 2] {
        group.notify(3, Delta::Failed(member(id)));
    }
    for id in [7, 8, 9] {
        group.notify(3, Delta::Joined(member(id)));
    }
    group.command(3, Command::Propose(8));
    group.taken();
    let mut asked = Vec::new();
    for _ in 0..12 {
        for (to, body) in group.pass(3, Span::millis(200)) {
            assert!(matches!(body, Body::Current { .. }), "{body:?}");
            asked.push(to);
        }
    }
    assert_eq!(asked, [7, 8, 9, 7, 8, 9, 7, 8]);
}

/// More nodes than are remembered have failed; the life of a present node is remembered.
#[test]
fn a_node_that_is_gone_makes_room_for_one_that_is_here() {
    let mut group = Group::led(&[1, 2, 3]);
    let at = group.at(3);
    let first = Configuration::of([1, 2, 3].map(member));
    let config = Config::new().with_peers(64);
    let node = Replica::new(member(3), config, first, Journal::default());
    group.nodes[at] = Driver::new(node.unwrap());
    for id in 100..200 {
        group.notify(3, Delta::Failed(member(id)));
    }
    group.notify(3, Delta::Joined(member(200)));
    let stale = group.node(3).counters().stale;
    let read = Body::Read { number: 1 };
    assert_eq!(group.say(3, Member::new(200, 0), read), []);
    assert_eq!(group.node(3).counters().stale, stale + 1);
}

/// 12 of 20 updates fit into a frame. When two are committed, two others take their places.
#[test]
fn as_many_are_on_their_way_as_fit_into_a_frame() {
    let mut first = Configuration::of([1, 2, 3].map(member));
    first.frame_budget = 127;
    let mut group = Group::new(&first, &[1, 2, 3]);
    group.command(1, Command::Campaign);
    group.deliver();
    group.wait(Span::secs(1));
    for update in 1..=20 {
        group.command(1, Command::Propose(update));
    }
    let end = |sent: &[(u64, Body<u16>)]| {
        let ends = sent.iter().filter_map(|it| match &it.1 {
            Body::Accept { after, entries, .. } => Some(after + entries.len() as u64),
            _ => None,
        });
        ends.max()
    };
    let sent = group.taken();
    let fit = end(&sent).unwrap();
    assert!(fit < 18, "{fit} fit");
    let asked = round(&sent, 2);
    for committed in [2, 3] {
        group.accepted(2, committed, 0, asked);
        assert_eq!(group.node(1).version(), committed);
        assert_eq!(end(&group.taken()), Some(fit + committed));
    }
}
