use selvedge_core::{Context, Input, Machine, Member, NodeId, Span, Time};
use selvedge_sim::network::{CallError, Happened, Link, Network, NetworkError, Topology};

use crate::network::machines::{
    Ask, Chatter, Notified, Unwanted, assert_balanced, member, quiet, received, talking,
};

#[test]
fn nodes_are_found_by_what_they_were_added_as() {
    let mut network = Network::new(1, Topology::full_mesh(2).unwrap(), Link::default()).unwrap();
    assert!(network.is_empty());
    assert_eq!(network.add(Member::new(7, 3), Chatter::quiet()), Ok(0));
    let (id, node) = (NodeId(7), 0);
    let again = network.add(Member::new(7, 4), Chatter::quiet());
    assert_eq!(again, Err(NetworkError::DuplicateId { id, node }));
    assert_eq!(network.add(Member::new(8, 0), Chatter::quiet()), Ok(1));
    let full = network.add(Member::new(9, 0), Chatter::quiet());
    assert_eq!(full, Err(NetworkError::NoPlaceLeft { nodes: 2 }));
    assert_eq!(
        (network.find(NodeId(8)), network.find(NodeId(9))),
        (Some(1), None)
    );
    assert_eq!(
        (network.member(0), network.member(2)),
        (Some(Member::new(7, 3)), None)
    );
    assert_eq!((network.len(), network.machines().count()), (2, 2));
}

#[test]
fn messages_to_nobody_are_lost() {
    let mut network = quiet(1, Topology::full_mesh(2).unwrap(), Link::default());
    network.command(0, Ask::Say(Member::new(5, 0), 1)).unwrap();
    network.run_for(Span::secs(1));
    assert_eq!(network.counters().lost_no_path, 1);
    assert_balanced(&network);
}

#[test]
fn a_message_to_oneself_arrives_a_microsecond_later() {
    let mut network = quiet(1, Topology::full_mesh(1).unwrap(), Link::default());
    network.command(0, Ask::Say(member(0), 1)).unwrap();
    let step = network.step().unwrap();
    assert_eq!(
        (step.at, step.happened),
        (Time(1), Happened::Delivered { node: 0 })
    );
}

#[test]
fn rejections_are_counted_at_the_node_that_rejects() {
    let mut network = quiet(1, Topology::full_mesh(2).unwrap(), Link::default());
    let why = Unwanted;
    assert_eq!(
        network.command(0, Ask::Nonsense),
        Err(CallError::Refused { node: 0, why })
    );
    network.command(0, Ask::Say(member(1), 666)).unwrap();
    network.run_for(Span::secs(1));
    assert_eq!(
        network.with(1, |_, _| Err::<(), _>("no")),
        Err(CallError::Refused { node: 1, why: "no" })
    );
    assert_eq!(
        (
            network.node_counters(0).rejected,
            network.node_counters(1).rejected
        ),
        (1, 2)
    );
    assert_eq!(
        (network.last_reject(1), network.counters().delivered),
        (Some(&Unwanted), 1)
    );
    let (node, nodes) = (2, 2);
    assert_eq!(
        network.command(2, Ask::Start),
        Err(CallError::NoSuchNode { node, nodes })
    );
}

#[test]
fn methods_of_a_machine_are_called_like_commands() {
    let mut network = quiet(1, Topology::full_mesh(2).unwrap(), Link::default());
    let answer = network.with(0, |_, cx| {
        cx.send(member(1), 4);
        cx.arm(0, Span::millis(10));
        Ok::<_, Unwanted>("sent")
    });
    assert_eq!(answer, Ok("sent"));
    network.run_for(Span::millis(10));
    assert_eq!(received(&mut network), [(1, 4)]);
    assert_eq!(network.node_counters(0).ticks, 1);
}

#[test]
fn a_run_stops_at_its_limit_or_when_met() {
    let topology = Topology::full_mesh(3).unwrap();
    let mut network = talking(1, topology, Link::default(), Span::millis(100));
    assert!(network.run_until_met(Time(10_000_000), |network| network.events().len() >= 10));
    assert!(network.now() < Time(10_000_000) && network.events().len() == 10);
    assert!(!network.run_until_met(Time(10_000_000), |_| false));
    assert_eq!(network.now(), Time(10_000_000));
    assert!(network.next_at().unwrap() > Time(10_000_000));
    // Time does not step back, and the limit itself belongs to the run.
    assert_eq!(network.run_until(Time(5)), 0);
    assert_eq!(network.now(), Time(10_000_000));
    let next = network.next_at().unwrap();
    assert!(network.run_until(next) >= 1);
    assert_eq!(network.events().last().map(|event| event.0), Some(next));
    assert_balanced(&network);
}

#[test]
fn what_one_node_draws_disturbs_no_other() {
    let alone = |draws: usize| {
        let topology = Topology::full_mesh(3).unwrap();
        let mut network = talking(5, topology, Link::default(), Span::secs(1));
        // Node 2 takes draws that it does not use.
        for _ in 0..draws {
            let wasted = network.with(2, |_, cx| Ok::<_, ()>(cx.below(1_000)));
            assert!(wasted.unwrap() < 1_000);
        }
        network.run_for(Span::secs(30));
        let from = |sender| {
            let mut reported: Vec<(usize, u32)> = network
                .events()
                .iter()
                .filter_map(|(_, node, notified)| match notified {
                    Notified::Received(from, number) if *from == member(sender) => {
                        Some((*node, *number))
                    }
                    _ => None,
                })
                .collect();
            reported.sort_unstable();
            reported
        };
        [from(0), from(1), from(2)]
    };
    let [none, some] = [alone(0), alone(3)];
    assert_eq!((&none[0], &none[1]), (&some[0], &some[1]));
    assert_ne!(none[2], some[2]);
}

/// Arms a timer with no delay at every tick, and sends to itself at every message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Restless;

impl Machine for Restless {
    type Message = ();
    type Timer = ();
    type Command = ();
    type Event = ();
    type Reject = ();

    fn handle(&mut self, input: Input<Self>, cx: &mut Context<'_, Self>) -> Result<(), ()> {
        cx.arm((), Span::ZERO);
        match input {
            Input::Tick(()) => Ok(()),
            Input::Message { .. } | Input::Command(()) | Input::Membership(_) => {
                cx.send(Member::new(0, 0), ());
                Ok(())
            }
        }
    }
}

#[test]
fn time_moves_although_a_machine_never_waits() {
    let link = Link {
        min_delay: Span::ZERO,
        max_delay: Span::ZERO,
        ..Link::default()
    };
    let mut network = Network::new(1, Topology::full_mesh(1).unwrap(), link).unwrap();
    network.add(Member::new(0, 0), Restless).unwrap();
    network.command(0, ()).unwrap();
    // A tick at 0, then a message and a tick every microsecond.
    assert_eq!(network.run_for(Span::micros(100)), 201);
    assert_eq!(network.now(), Time(100));
}
