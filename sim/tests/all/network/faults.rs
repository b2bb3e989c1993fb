use selvedge_core::{Member, NodeId, Ratio, Span, Time};
use selvedge_sim::network::{
    Action, CallError, DutyCycle, Happened, Link, Loss, Network, NetworkError, Topology,
};

use crate::network::machines::{
    Ask, Chatter, Notified, Unwanted, assert_balanced, line, member, quiet, received, talking,
};

/// 1 ms a hop, exactly.
const STEADY: Link = Link {
    min_delay: Span::millis(1),
    max_delay: Span::millis(1),
    loss: Ratio::NEVER,
    duplicate: Ratio::NEVER,
    slow: Ratio::NEVER,
    slow_by: Span::ZERO,
    bandwidth: None,
};

fn mesh(nodes: usize) -> Network<Chatter> {
    quiet(1, Topology::full_mesh(nodes).unwrap(), STEADY)
}

fn say(network: &mut Network<Chatter>, from: usize, to: usize, number: u32) {
    network.command(from, Ask::Say(member(to), number)).unwrap();
}

fn wait(network: &mut Network<Chatter>) {
    network.run_for(Span::secs(1));
}

#[test]
fn a_partition_blocks_and_healing_unblocks() {
    let mut network = mesh(5);
    network.partition(&[vec![0, 1], vec![2]]).unwrap();
    for (from, to) in [(0, 1), (0, 2), (0, 3), (2, 3), (3, 4)] {
        say(&mut network, from, to, 10 * from as u32 + to as u32);
    }
    network.command(1, Ask::Shout(9)).unwrap();
    wait(&mut network);
    assert_eq!(received(&mut network), [(1, 1), (4, 34), (0, 9)]);
    assert_eq!(network.counters().lost_no_path, 3);
    network.heal();
    say(&mut network, 0, 2, 5);
    wait(&mut network);
    assert_eq!(received(&mut network), [(2, 5)]);
    assert_balanced(&network);
}

#[test]
fn what_is_sent_under_a_partition_stays_behind_when_it_heals() {
    let mut network = mesh(3);
    network.partition(&[[0]]).unwrap();
    network.command(1, Ask::Shout(1)).unwrap();
    say(&mut network, 1, 0, 2);
    network.heal();
    wait(&mut network);
    assert_eq!(received(&mut network), [(2, 1)]);
}

#[test]
fn a_partition_cuts_off_what_is_on_its_way() {
    let mut network = mesh(2);
    say(&mut network, 0, 1, 1);
    network.partition(&[[0]]).unwrap();
    let step = network.step().unwrap();
    let why = Loss::Partition;
    assert_eq!(step.happened, Happened::Lost { node: 1, why });
    assert_eq!(network.counters().lost_to_partition, 1);
}

#[test]
fn a_partition_that_cannot_be_changes_nothing() {
    let mut network = mesh(3);
    let twice = network.partition(&[vec![0, 1], vec![1]]);
    assert_eq!(twice, Err(NetworkError::TwoGroups { node: 1 }));
    let (node, nodes) = (3, 3);
    assert_eq!(
        network.partition(&[[3]]),
        Err(NetworkError::NoSuchNode { node, nodes })
    );
    say(&mut network, 0, 2, 1);
    wait(&mut network);
    assert_eq!(received(&mut network), [(2, 1)]);
}

#[test]
fn a_crashed_node_gets_nothing_and_its_timers_die() {
    let topology = Topology::full_mesh(2).unwrap();
    let mut network = talking(1, topology, STEADY, Span::millis(100));
    network.run_for(Span::secs(1));
    assert_eq!(network.crash(1), Ok(true));
    assert_eq!(network.crash(1), Ok(false));
    let before = network.machine(1).unwrap().received;
    assert_eq!(network.timers(1).count(), 0);
    drop(network.drain_events());
    network.run_for(Span::secs(1));
    assert!(network.events().iter().all(|&(_, node, _)| node == 0));
    assert_eq!(network.machine(1).unwrap().received, before);
    assert!(network.counters().lost_down >= 9);
    assert_eq!(
        network.command(1, Ask::Start),
        Err(CallError::Down { node: 1 })
    );
    assert_balanced(&network);
}

#[test]
fn a_restart_keeps_what_the_test_took_from_stable_storage() {
    let mut network = mesh(2);
    say(&mut network, 0, 1, 1);
    wait(&mut network);
    network.crash(1).unwrap();
    let saved = network.machine(1).unwrap().clone();
    network.restart(1, member(1), saved).unwrap();
    assert_eq!(
        (network.lives(1), network.machine(1).unwrap().received),
        (2, 1)
    );
    // Up, and without stable storage: it crashes first.
    let next = Member {
        incarnation: member(1).incarnation.next(),
        ..member(1)
    };
    network.restart(1, next, Chatter::quiet()).unwrap();
    assert_eq!(
        (network.lives(1), network.machine(1).unwrap().received),
        (3, 0)
    );
    assert_eq!(network.member(1), Some(next));
    // Others still use its former name; its own messages bear the new one.
    say(&mut network, 0, 1, 2);
    say(&mut network, 1, 0, 3);
    drop(network.drain_events());
    wait(&mut network);
    let notified: Vec<_> = network
        .drain_events()
        .map(|(_, node, notified)| (node, notified))
        .collect();
    assert_eq!(
        notified,
        [
            (1, Notified::Received(member(0), 2)),
            (0, Notified::Received(next, 3))
        ]
    );
    let other = network.restart(1, member(0), Chatter::quiet());
    let (expected, found) = (NodeId(101), NodeId(100));
    assert_eq!(
        other,
        Err(NetworkError::OtherId {
            node: 1,
            expected,
            found
        })
    );
}

#[test]
fn the_timers_of_a_former_life_never_tick() {
    let mut network = mesh(1);
    network.command(0, Ask::Start).unwrap();
    network.restart(0, member(0), Chatter::quiet()).unwrap();
    wait(&mut network);
    assert!(network.events().is_empty());
    assert_eq!(network.pending(), 0);
}

#[test]
fn a_message_on_its_way_reaches_the_next_life() {
    let mut network = mesh(2);
    say(&mut network, 0, 1, 1);
    network.crash(0).unwrap();
    network
        .restart(1, Member::new(101, 1), Chatter::quiet())
        .unwrap();
    wait(&mut network);
    assert_eq!(received(&mut network), [(1, 1)]);
}

#[test]
fn a_crashed_relay_breaks_the_path() {
    let mut network = quiet(1, line(3), STEADY);
    network.crash(1).unwrap();
    say(&mut network, 0, 2, 1);
    wait(&mut network);
    assert_eq!(
        (
            received(&mut network).len(),
            network.counters().lost_no_path
        ),
        (0, 1)
    );
    network.restart(1, member(1), Chatter::quiet()).unwrap();
    say(&mut network, 0, 2, 2);
    wait(&mut network);
    assert_eq!(received(&mut network), [(2, 2)]);
}

#[test]
fn a_sleeping_node_hears_nothing_and_its_timers_wait() {
    let mut network = mesh(2);
    let cycle = DutyCycle {
        period: Span::secs(10),
        awake: Span::secs(1),
        offset: Span::ZERO,
    };
    network.set_duty_cycle(1, Some(cycle)).unwrap();
    // Due every second from 1 s on, when it falls asleep: it ticks on waking only.
    network.command(1, Ask::Start).unwrap();
    for second in 0..20 {
        network.run_until(Time(second * 1_000_000 + 500_000));
        assert_eq!(network.is_awake(1), second % 10 == 0, "second {second}");
        say(&mut network, 0, 1, second as u32);
    }
    network.run_until(Time(25_000_000));
    let happened: Vec<_> = network
        .drain_events()
        .map(|(at, _, notified)| (at.0, notified == Notified::Ticked))
        .collect();
    let expected = [
        (501_000, false),
        (10_000_000, true),
        (10_501_000, false),
        (20_000_000, true),
    ];
    assert_eq!(happened, expected);
    assert_eq!(network.counters().lost_asleep, 18);
    network.set_duty_cycle(1, None).unwrap();
    network.run_until(Time(26_000_000));
    assert_eq!(
        network.events().len(),
        2,
        "one that was due, one a second later"
    );
}

#[test]
fn a_duty_cycle_begins_at_its_offset() {
    let cycle = DutyCycle {
        period: Span(10),
        awake: Span(3),
        offset: Span(8),
    };
    let awake: Vec<u64> = (0..20).filter(|&at| cycle.is_awake(Time(at))).collect();
    assert_eq!(awake, [0, 8, 9, 10, 18, 19]);
    for at in 0..40 {
        let from = (at..).find(|&later| cycle.is_awake(Time(later))).unwrap();
        assert_eq!(cycle.awake_from(Time(at)), Time(from), "{at}");
    }
    let mut network = mesh(1);
    let never = DutyCycle {
        awake: Span::ZERO,
        ..cycle
    };
    assert!(network.set_duty_cycle(0, Some(never)).is_err());
    let endless = DutyCycle {
        period: Span::ZERO,
        ..cycle
    };
    assert!(network.set_duty_cycle(0, Some(endless)).is_err());
}

#[test]
fn scheduled_actions_happen_in_order_at_their_times() {
    let mut network = mesh(2);
    let say = |number| Action::Command {
        node: 0,
        command: Ask::Say(member(1), number),
    };
    let at = |millis: u64| Time(millis * 1_000);
    network.schedule(at(40), say(4)).unwrap();
    network.schedule(at(10), say(1)).unwrap();
    network
        .schedule(
            at(20),
            Action::Partition {
                groups: vec![vec![0]],
            },
        )
        .unwrap();
    network.schedule(at(20), say(2)).unwrap();
    network.schedule(at(30), Action::Heal).unwrap();
    network.schedule(at(30), say(3)).unwrap();
    network.schedule(at(35), Action::Crash { node: 1 }).unwrap();
    network
        .schedule(
            at(36),
            Action::Membership {
                node: 1,
                delta: selvedge_core::Delta::Joined(member(0)),
            },
        )
        .unwrap();
    let machine = Box::new(Chatter::quiet());
    network
        .schedule(
            at(37),
            Action::Restart {
                node: 1,
                member: member(1),
                machine,
            },
        )
        .unwrap();
    network.schedule(at(38), Action::SetLink(STEADY)).unwrap();
    network
        .schedule(
            at(39),
            Action::Command {
                node: 1,
                command: Ask::Nonsense,
            },
        )
        .unwrap();
    network.run_until(Time(50_000));
    let notified: Vec<_> = network
        .events()
        .iter()
        .map(|(at, _, notified)| (at.0, notified.clone()))
        .collect();
    let expected = [(11_000, 1), (31_000, 3), (41_000, 4)];
    assert_eq!(
        notified,
        expected.map(|(at, number)| (at, Notified::Received(member(0), number)))
    );
    assert_eq!(
        network.counters().failed_actions,
        2,
        "one at a node that is down, one rejected"
    );
    assert_eq!(network.last_reject(1), Some(&Unwanted));
}

#[test]
fn an_action_that_cannot_be_is_refused_when_scheduled() {
    let mut network = mesh(1);
    let no_node = Err(NetworkError::NoSuchNode { node: 1, nodes: 1 });
    assert_eq!(
        network.schedule(Time::ZERO, Action::Crash { node: 1 }),
        no_node
    );
    let groups = vec![vec![0, 0]];
    assert_eq!(
        network.schedule(Time::ZERO, Action::Partition { groups }),
        Err(NetworkError::TwoGroups { node: 0 })
    );
    let place = selvedge_sim::network::Point::new(0, 0);
    assert!(
        network
            .schedule(Time::ZERO, Action::MoveTo { node: 0, place })
            .is_err()
    );
    assert_eq!(network.pending(), 0);
}
