//! Nodes that wait, their times, and nodes that send nothing.

use super::*;

fn ballot(initiator: u64) -> Ballot {
    Ballot {
        epoch: 1,
        initiator: member(initiator),
        step: 0,
    }
}

fn query(initiator: u64, x: u8, y: u8, want: u16) -> Message {
    Message::Query {
        ballot: ballot(initiator),
        lowest: x,
        suspected: y,
        want,
        exclude: [].into_iter().collect(),
        no_majority: false,
    }
}

fn answer(ballot: Ballot, named: &[Member]) -> Message {
    Message::Response {
        ballot,
        candidates: named.iter().copied().collect(),
        unhealthy: [].into_iter().collect(),
        known: [].into_iter().collect(),
    }
}

fn leader(ballot: Ballot, id: u64) -> Message {
    Message::Leader {
        ballot,
        leader: member(id),
        renewal: 0,
        lease: Span::ZERO,
        state: selvedge_celect::LeaderState::Leading,
        covered: [].into_iter().collect(),
    }
}

fn receive(mesh: &mut Mesh, id: u64, from: u64, message: Message) {
    let from = member(from);
    mesh.step(id, Input::Message { from, message }).unwrap();
}

/// Returns the receivers and the ballots of the queries of a new election.
fn asked(mesh: &Mesh, id: u64) -> Vec<(u64, Ballot)> {
    let query = |it: &Letter| match it {
        (from, to, Message::Query { ballot, .. }) if from.id.0 == id => Some((to.id.0, *ballot)),
        _ => None,
    };
    mesh.wire.iter().filter_map(query).collect()
}

fn appointed(mesh: &Mesh) -> Option<(Member, Ballot)> {
    mesh.wire.iter().find_map(|it| match it {
        (_, to, Message::Appoint { ballot, .. }) => Some((*to, *ballot)),
        _ => None,
    })
}

/// A node that ran no election itself: only membership reports the crash of the initiator.
#[test]
fn who_answered_waits_for_the_initiator_for_as_long_as_it_is_not_said_to_have_failed() {
    let mut mesh = Mesh::new(3, Config::new(1, 0));
    mesh.cut.push(1);
    receive(&mut mesh, 2, 1, query(1, 1, 0, 0));
    mesh.pass(Span::secs(60));
    assert!(mesh.events.is_empty(), "{:?}", mesh.events);
    mesh.notify(2, Delta::Failed(member(1)));
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leader(2), Some(2));
}

#[test]
fn who_gave_way_without_patience_waits_for_the_membership_service() {
    let config = Config::new(1, 0).with_patience(Span::ZERO);
    let mut mesh = Mesh::new(3, config);
    mesh.cut.push(1);
    mesh.elect(2);
    receive(&mut mesh, 2, 1, query(1, 1, 0, 0));
    let yielded = |it: &(u64, Event)| matches!(it, (2, Event::Yielded { .. }));
    assert!(mesh.events.iter().any(yielded));
    mesh.events.clear();
    mesh.pass(Span::secs(60));
    assert!(mesh.events.is_empty(), "{:?}", mesh.events);
    mesh.notify(2, Delta::Failed(member(1)));
    mesh.pass(Span::secs(60));
    assert_eq!(mesh.leader(2), Some(2));
}

/// Without acknowledgements the host's multicast is reliable, and notifies nodes that missed a later
/// leader.
#[test]
fn where_nothing_is_acknowledged_nobody_is_corrected() {
    for (retries, corrected) in [(0, 0), (1, 1)] {
        let config = Config::new(1, 0).with_retries(retries);
        let mut mesh = Mesh::with_lists(&[vec![], vec![], vec![]], config);
        receive(&mut mesh, 2, 1, leader(ballot(1), 1));
        mesh.wire.clear();
        receive(&mut mesh, 2, 3, leader(ballot(3), 3));
        assert_eq!(mesh.wire.len(), corrected, "{:?}", mesh.wire);
        assert_eq!(mesh.leader(2), Some(1));
    }
}

/// Returns the time that an appointee of 3 has to answer.
fn time_to_answer(mesh: &mut Mesh, named: u64) -> Span {
    mesh.elect(3);
    let [(other, ballot)] = asked(mesh, 3)[..] else {
        panic!("{:?}", mesh.wire);
    };
    receive(mesh, 3, other, answer(ballot, &[member(named)]));
    assert_eq!(appointed(mesh).map(|it| it.0), Some(member(named)));
    let mut timers = mesh.nodes[2].timers();
    let (_, at) = timers.find(|it| it.0 == Timer::Answer).unwrap();
    Span(at.0)
}

/// All attempts together take one timeout only for a node that is believed dead.
#[test]
fn who_is_not_lost_has_a_timeout_for_each_attempt() {
    let config = Config::new(0, 0);
    let following = || {
        let mut mesh = Mesh::new(3, config);
        receive(&mut mesh, 3, 1, leader(ballot(1), 1));
        mesh.wire.clear();
        mesh
    };
    assert_eq!(time_to_answer(&mut following(), 1), config.timeout);
    let mut lost = following();
    lost.notify(3, Delta::Failed(member(1)));
    assert_eq!(time_to_answer(&mut lost, 2), config.timeout);
    let third = Span(config.timeout.0 / 3);
    let mut lost = following();
    lost.notify(3, Delta::Failed(member(1)));
    assert_eq!(time_to_answer(&mut lost, 1), third);
}

/// An election that waits for its appointee keeps the bound with which it appointed.
#[test]
fn more_to_tolerate_does_not_hold_up_an_election_that_had_enough() {
    let mut mesh = Mesh::new(4, Config::new(0, 0));
    mesh.elect(3);
    let (other, of_run) = asked(&mesh, 3)[0];
    receive(&mut mesh, 3, other, answer(of_run, &[member(1)]));
    let (_, by) = appointed(&mesh).unwrap();
    mesh.command(
        3,
        Command::SetBounds {
            missing_from: 2,
            failures: 0,
        },
    );
    receive(&mut mesh, 3, 1, leader(by, 1));
    let concluded = mesh.events.iter().find_map(|it| match it {
        (
            3,
            Event::Concluded {
                missing_from: c, ..
            },
        ) => Some(*c),
        _ => None,
    });
    assert_eq!(concluded, Some(0));
    assert!(!mesh.nodes[2].machine().is_electing());
}

/// Neither life is on the list of the initiator, and the first answer is right.
#[test]
fn a_former_life_that_is_named_late_does_not_take_the_place_of_the_present_one() {
    let mut mesh = Mesh::with_lists(&[vec![], vec![], vec![], vec![2, 3]], Config::new(1, 0));
    mesh.elect(4);
    let present = Member::new(1, 1);
    for ((other, ballot), named) in asked(&mesh, 4).into_iter().zip([present, member(1)]) {
        receive(&mut mesh, 4, other, answer(ballot, &[named]));
    }
    assert_eq!(appointed(&mesh).map(|it| it.0), Some(present));
}

/// With more than one candidate, lives that have ended hide no other node.
#[test]
fn where_preferences_count_nobody_is_asked_anew_for_one_who_has_left() {
    let config = Config::new(0, 0)
        .with_protocol(Protocol::Preferred)
        .with_lowest(2);
    let mut mesh = Mesh::new(3, config);
    mesh.notify(3, Delta::Left(member(1)));
    mesh.elect(3);
    let (other, ballot) = asked(&mesh, 3)[0];
    receive(&mut mesh, 3, other, answer(ballot, &[member(1), member(2)]));
    assert_eq!(appointed(&mesh).map(|it| it.0), Some(member(2)));
    assert_eq!(mesh.nodes[2].machine().counters().rounds, 0);
}

/// 1 lists 59 others, of which a short frame names some.
fn short() -> Mesh {
    let config = Config::new(0, 0).with_frame_budget(127);
    Mesh::with_lists(&[(2..=60).collect()], config)
}

/// Returns the answer of 1: the number of its candidates, and the other nodes that it names.
fn answered(mesh: &mut Mesh, query: Message) -> (usize, Vec<Member>) {
    receive(mesh, 1, 2, query);
    match mesh.wire.pop() {
        Some((
            _,
            _,
            Message::Response {
                candidates, known, ..
            },
        )) => (candidates.len(), known.to_vec()),
        other => panic!("{other:?}"),
    }
}

/// Half of a frame is for the suspects, if the query asks for them.
#[test]
fn without_suspects_candidates_have_the_whole_frame() {
    let mut mesh = short();
    let (all, _) = answered(&mut mesh, query(2, u8::MAX, 0, 0));
    let (half, _) = answered(&mut mesh, query(2, u8::MAX, 1, 0));
    assert!(half > 0 && all >= 2 * half - 1, "{all} and {half}");
}

/// If fewer nodes fit than the query asks for, the same dead nodes must not be named each time.
#[test]
fn whom_an_answer_names_besides_is_drawn_where_not_all_fit() {
    let mut mesh = short();
    let named = |mesh: &mut Mesh| answered(mesh, query(2, 1, 0, 100)).1;
    let first = named(&mut mesh);
    assert!((1..58).contains(&first.len()), "{first:?}");
    let mut all = first.clone();
    for _ in 0..50 {
        all.extend(named(&mut mesh));
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 58, "all but the one that asks, at some time");
}
